/* Embarrassingly parallel, on Regatta's own interface. */
#include "../ep.h"
#include "../../tasks/regatta.h"

enum { TAG_REQUEST, TAG_ANSWER };

static void sum_of_all(double *values, int count)
{
    sum_of_doubles(values, count);
}

/* Receives a request: an empty message, since its sender is all that matters. */
static int take_request(int waits)
{
    rg_status status;
    int found = waits;
    if (!waits)
        check(rg_iprobe(RG_ANY, TAG_REQUEST, RG_WORLD, &found, NULL));
    if (!found)
        return -1;
    check(rg_recv(NULL, 0, RG_ANY, TAG_REQUEST, RG_WORLD, &status));
    return status.source;
}

static void answer_request(int task, long block)
{
    check(rg_send(&block, sizeof block, task, TAG_ANSWER, RG_WORLD));
}

static void send_request(void)
{
    check(rg_send(NULL, 0, 0, TAG_REQUEST, RG_WORLD));
}

static long receive_answer(void)
{
    long block;
    check(rg_recv(&block, sizeof block, 0, TAG_ANSWER, RG_WORLD, NULL));
    return block;
}

int main(int argc, char **argv)
{
    join();
    return leave(ep(npb_class(argc, argv), ep_way(argc, argv), rank, size));
}
