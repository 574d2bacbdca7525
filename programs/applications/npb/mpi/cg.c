/* Conjugate gradient, on MPI. */
#include "../cg.h"
#include "../../tasks/mpi.h"

static void sum_of_all(double *values, int count)
{
    sum_of_doubles(values, count);
}

static void gather_parts(double *vector, const int *counts, const int *starts)
{
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DOUBLE, vector, counts, starts, MPI_DOUBLE, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    join(&argc, &argv);
    return leave(cg(npb_class(argc, argv), rank, size));
}
