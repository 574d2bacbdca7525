/* Fourier transform, on MPI. */
#include "../ft.h"
#include "../../tasks/mpi.h"

static void sum_of_all(double *values, int count)
{
    sum_of_doubles(values, count);
}

/* Counts numbers, not bytes, whose count could exceed an int. */
static void trade_blocks(const void *out, void *in, size_t bytes)
{
    int count = (int)(bytes / sizeof(ft_number));
    MPI_Alltoall(out, count, MPI_C_DOUBLE_COMPLEX, in, count, MPI_C_DOUBLE_COMPLEX, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    join(&argc, &argv);
    return leave(ft(npb_class(argc, argv), rank, size));
}
