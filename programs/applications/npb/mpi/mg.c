/* Multigrid, on MPI. */
#include "../mg.h"
#include "../../tasks/mpi.h"

static void sum_of_all(double *values, int count)
{
    sum_of_doubles(values, count);
}

enum { FORWARD = 1, BACK };

static void trade_planes(const double *first, const double *last, double *ghost_before, double *ghost_behind, int count)
{
    int before = (rank + size - 1) % size, behind = (rank + 1) % size;
    MPI_Sendrecv(last, count, MPI_DOUBLE, behind, FORWARD, ghost_before, count, MPI_DOUBLE, before, FORWARD,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(first, count, MPI_DOUBLE, before, BACK, ghost_behind, count, MPI_DOUBLE, behind, BACK, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

static void gather_parts(double *vector, int count)
{
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DOUBLE, vector, count, MPI_DOUBLE, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    join(&argc, &argv);
    return leave(mg(npb_class(argc, argv), rank, size));
}
