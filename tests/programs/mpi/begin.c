/* The minimum: processes know their ranks, and exchange messages. */
#include "mpi_check.h"

/* Every process sends to the next one, and receives from the previous one. */
static void ring(void)
{
    int sent = me, got = -1, next = (me + 1) % size, before = (me + size - 1) % size;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    SUCCEEDS(MPI_Irecv(&got, 1, MPI_INT, before, 3, MPI_COMM_WORLD, &requests[0]));
    SUCCEEDS(MPI_Isend(&sent, 1, MPI_INT, next, 3, MPI_COMM_WORLD, &requests[1]));
    SUCCEEDS(MPI_Waitall(2, requests, statuses));
    CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);
    CHECK(got == before && statuses[0].MPI_SOURCE == before && statuses[0].MPI_TAG == 3);
}

/* Every other process sends a message to the first one, with blocking calls. */
static void many_to_one(void)
{
    double value = me * 0.5;
    if (me != 0) {
        SUCCEEDS(MPI_Send(&value, 1, MPI_DOUBLE, 0, me, MPI_COMM_WORLD));
        return;
    }
    for (int i = 1; i < size; i++) {
        MPI_Status status;
        SUCCEEDS(MPI_Recv(&value, 1, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
        CHECK(value == status.MPI_SOURCE * 0.5 && status.MPI_TAG == status.MPI_SOURCE);
    }
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"ring", ring},
        {"many_to_one", many_to_one},
        {NULL, NULL},
    };
    return play(argc, argv, scenarios);
}
