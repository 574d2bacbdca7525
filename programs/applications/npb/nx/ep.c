/* Embarrassingly parallel, on NX. */
#include "../ep.h"
#include "../../tasks/nx.h"

enum { TYPE_REQUEST = 1, TYPE_ANSWER };

static void sum_of_all(double *values, int count)
{
    sum_of_doubles(values, count);
}

/* Receives a request: an empty message, since its sender is all that matters. */
static int take_request(int waits)
{
    if (!waits && !iprobe(TYPE_REQUEST))
        return -1;
    crecv(TYPE_REQUEST, NULL, 0);
    return (int)infonode();
}

static void answer_request(int task, long block)
{
    csend(TYPE_ANSWER, &block, sizeof block, task, PTYPE);
}

static void send_request(void)
{
    csend(TYPE_REQUEST, NULL, 0, 0, PTYPE);
}

static long receive_answer(void)
{
    long block;
    crecv(TYPE_ANSWER, &block, sizeof block);
    return block;
}

int main(int argc, char **argv)
{
    join();
    return ep(npb_class(argc, argv), ep_way(argc, argv), rank, size);
}
