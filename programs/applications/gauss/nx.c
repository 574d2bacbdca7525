/* Gaussian elimination, on NX. */
#include "gauss.h"
#include "../tasks/nx.h"

enum { TYPE_BROADCAST = 3000 };

/* Finds the largest value with one reduction, and the lowest task that has it with another. */
static void largest_of_all(struct gauss_pivot *pivot)
{
    double value = pivot->value, value_work;
    long task, task_work;
    gdhigh(&value, 1, &value_work);
    task = pivot->value == value ? pivot->task : size;
    gilow(&task, 1, &task_work);
    pivot->value = value;
    pivot->task = (int32_t)task;
}

/* Sends to node -1, all other nodes. The sender is part of the message type, so that the next broadcast cannot be
 * mistaken for this one. */
static void broadcast(void *data, int bytes, int from)
{
    if (rank == from)
        csend(TYPE_BROADCAST + from, data, bytes, -1, PTYPE);
    else
        crecv(TYPE_BROADCAST + from, data, bytes);
}

int main(int argc, char **argv)
{
    join();
    return gauss(argc, argv, rank, size);
}
