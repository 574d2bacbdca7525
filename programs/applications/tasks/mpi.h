/* How the applications join and sum, on MPI, whose errors end the program. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, size;

static void join(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

static int leave(int status)
{
    MPI_Finalize();
    return status;
}

static inline void sum_of_doubles(double *values, int count)
{
    MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}
