/* The kernel ep without a message-passing environment, for comparison. */
#include "../ep.h"

static void sum_of_all(double *values, int count)
{
    (void)values;
    (void)count;
}

/* Never called: a single task has no other task to hand out work to. */
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
