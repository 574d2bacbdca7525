/* The kernel ep without a message-passing environment: what the others are measured against. */
#include "../ep.h"

static void sum_of_all(double *values, int count)
{
    (void)values;
    (void)count;
}

/* One task hands out work to nobody: these are never called. */
static int take_request(int waits)
{
    (void)waits;
    return -1;
}

static void answer_request(int task, long block)
{
    (void)task;
    (void)block;
}

static void send_request(void)
{
}

static long receive_answer(void)
{
    return -1;
}

int main(int argc, char **argv)
{
    return ep(npb_class(argc, argv), ep_way(argc, argv), 0, 1);
}
