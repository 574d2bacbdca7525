/* Embarrassingly parallel, on Express. */
#include "../ep.h"
#include "../../tasks/express.h"

enum { TYPE_REQUEST = 1, TYPE_ANSWER };

static void sum_of_all(double *values, int count)
{
    sum_of_doubles(values, count);
}

/* Receives a request: one byte without meaning, since its sender is all that matters. */
static int take_request(int waits)
{
    char request;
    int task = DONTCARE, type = TYPE_REQUEST;
    if (!waits && extest(&task, &type) < 0)
        return -1;
    check(exread(&request, 1, &task, &type));
    return task;
}

static void answer_request(int task, long block)
{
    write_to(task, TYPE_ANSWER, &block, sizeof block);
}

static void send_request(void)
{
    write_to(0, TYPE_REQUEST, "", 1);
}

static long receive_answer(void)
{
    long block;
    read_from(0, TYPE_ANSWER, &block, sizeof block);
    return block;
}

int main(int argc, char **argv)
{
    join();
    return ep(npb_class(argc, argv), ep_way(argc, argv), rank, size);
}
