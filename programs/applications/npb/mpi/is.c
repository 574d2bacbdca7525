/* Integer sort, on MPI. */
#include "../is.h"
#include "../../tasks/mpi.h"

static void sum_of_all(int *numbers, int count)
{
    MPI_Allreduce(MPI_IN_PLACE, numbers, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void trade_numbers(const int *out, int *in)
{
    MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
}

static void trade_keys(const int *out, const int *counts_out, const int *starts_out, int *in, const int *counts_in,
                       const int *starts_in)
{
    MPI_Alltoallv(out, counts_out, starts_out, MPI_INT, in, counts_in, starts_in, MPI_INT, MPI_COMM_WORLD);
}

static int key_from_before(int key, int none)
{
    int before = rank > 0 ? rank - 1 : MPI_PROC_NULL, behind = rank + 1 < size ? rank + 1 : MPI_PROC_NULL, got = none;
    MPI_Sendrecv(&key, 1, MPI_INT, behind, 1, &got, 1, MPI_INT, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return got;
}

int main(int argc, char **argv)
{
    join(&argc, &argv);
    return leave(is(npb_class(argc, argv), rank, size));
}
