/* Gaussian elimination, on MPI. */
#include "gauss.h"
#include "../tasks/mpi.h"

/* Finds the largest value and its task with MPI_MAXLOC. Only that task knows the row. */
static void largest_of_all(struct gauss_pivot *pivot)
{
    struct {
        double value;
        int task;
    } largest = {pivot->value, pivot->task};
    MPI_Allreduce(MPI_IN_PLACE, &largest, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    pivot->value = largest.value;
    pivot->task = largest.task;
}

static void broadcast(void *data, int bytes, int from)
{
    MPI_Bcast(data, bytes, MPI_BYTE, from, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    join(&argc, &argv);
    return leave(gauss(argc, argv, rank, size));
}
