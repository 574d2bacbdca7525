/* Molecular dynamics, on MPI. */
#include "md.h"
#include "../tasks/mpi.h"

static void sum_of_all(double *values, int count)
{
    sum_of_doubles(values, count);
}

enum { FORWARD = 1, BACK };

static void trade_neighbours(const double *to_before, const double *to_behind, double *from_before, double *from_behind, int room)
{
    int before = (rank + size - 1) % size, behind = (rank + 1) % size;
    MPI_Sendrecv(to_behind, (int)to_behind[0], MPI_DOUBLE, behind, FORWARD, from_before, room, MPI_DOUBLE, before, FORWARD,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(to_before, (int)to_before[0], MPI_DOUBLE, before, BACK, from_behind, room, MPI_DOUBLE, behind, BACK,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    join(&argc, &argv);
    return leave(md(argc, argv, rank, size));
}
