/* Embarrassingly parallel, on PVM. */
#include "../ep.h"
#include "../../tasks/pvm.h"

enum { TAG_REQUEST = TAG_DATA + 1, TAG_ANSWER };

static void sum_of_all(double *values, int count)
{
    sum_of_doubles(values, count);
}

/* Receives requests in the order in which they arrive. */
static int take_request(int waits)
{
    int task, buffer = waits ? pvm_recv(-1, TAG_REQUEST) : pvm_nrecv(-1, TAG_REQUEST);
    check(buffer, "the receive of a request");
    if (buffer == 0)
        return -1;
    pvm_upkint(&task, 1, 1);
    return task;
}

static void answer_request(int task, long block)
{
    int number = (int)block; /* PvmDataDefault sends a long as 32 bits, and -1 would arrive as a positive number */
    check(pvm_initsend(PvmDataDefault), "pvm_initsend");
    pvm_pkint(&number, 1, 1);
    check(pvm_send(tids[task], TAG_ANSWER), "pvm_send");
}

static void send_request(void)
{
    check(pvm_initsend(PvmDataDefault), "pvm_initsend");
    pvm_pkint(&rank, 1, 1);
    check(pvm_send(tids[0], TAG_REQUEST), "pvm_send");
}

static long receive_answer(void)
{
    int number;
    check(pvm_recv(tids[0], TAG_ANSWER), "pvm_recv");
    pvm_upkint(&number, 1, 1);
    return number;
}

/* Runs the kernel. The last argument is the number of tasks. */
int main(int argc, char **argv)
{
    join(argc, argv);
    return leave(ep(npb_class(argc, argv), ep_way(argc - 1, argv), rank, size));
}
