/* A node that does what its host tells it, in messages of type 1: see nx_host.c. */
#include "nx_node.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

/* To whoever has told it. */
static void answer(long value)
{
    csend(ANSWER, &value, sizeof value, infonode(), infopid());
}

static void ring(void)
{
    long host = infonode(), pid = infopid(), word = 1, n = numnodes();
    if (mynode() == 0)
        csend(RING, &word, sizeof word, 1 % n, mypid());
    crecv(RING, &word, sizeof word);
    if (mynode() != 0) {
        word++;
        csend(RING, &word, sizeof word, (mynode() + 1) % n, mypid());
    }
    csend(ANSWER, &word, sizeof word, host, pid);
}

int main(void)
{
    for (;;) {
        struct order order;
        crecv(ORDER, &order, sizeof order);
        long value = order.number, work;
        switch (order.what) {
        case 'w':
            answer(mynode() + 10 * numnodes() + 100 * mypid() + 100000 * myhost());
            break;
        case 's': {
            long host = infonode(), pid = infopid();
            value = mynode() + 1;
            gisum(&value, 1, &work);
            csend(ANSWER, &value, sizeof value, host, pid);
            break;
        }
        case 'r':
            ring();
            break;
        case 't': /* ask the process with that pid on the same node */
            order.what = 'w';
            work = infopid();
            csend(ORDER, &order, sizeof order, mynode(), value);
            crecv(ANSWER, &value, sizeof value);
            value = infonode() == mynode() && infopid() == order.number ? value : -1;
            csend(ANSWER, &value, sizeof value, myhost(), work);
            break;
        case 'x':
            exit((int)value);
        case 'k':
            raise((int)value);
            break;
        case 'f':
            csend(ORDER, &order, sizeof order, 99, 0);
            break;
        case 'a': /* the end of all nodes */
            killcube(-1, -1);
            break;
        }
    }
}
