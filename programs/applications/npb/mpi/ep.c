/* Embarrassingly parallel, on MPI. */
#include "../ep.h"
#include "../../tasks/mpi.h"

enum { TAG_REQUEST, TAG_ANSWER };

static void sum_of_all(double *values, int count)
{
    sum_of_doubles(values, count);
}

/* Receives a request: an empty message, since its sender is all that matters. */
static int take_request(int waits)
{
    MPI_Status status;
    int found = waits;
    if (!waits)
        MPI_Iprobe(MPI_ANY_SOURCE, TAG_REQUEST, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    if (!found)
        return -1;
    MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, TAG_REQUEST, MPI_COMM_WORLD, &status);
    return status.MPI_SOURCE;
}

static void answer_request(int task, long block)
{
    MPI_Send(&block, 1, MPI_LONG, task, TAG_ANSWER, MPI_COMM_WORLD);
}

static void send_request(void)
{
    MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_REQUEST, MPI_COMM_WORLD);
}

static long receive_answer(void)
{
    long block;
    MPI_Recv(&block, 1, MPI_LONG, 0, TAG_ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return block;
}

int main(int argc, char **argv)
{
    join(&argc, &argv);
    return leave(ep(npb_class(argc, argv), ep_way(argc, argv), rank, size));
}
