/* A node that carries out its host's orders, which arrive as messages of type 1: see nx_host.c. */
#include "nx_node.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Answers the process that has given the order. */
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

/* Starts this program by hand, and returns its node number and number of nodes there. */
static long by_itself(void)
{
    char command[100];
    snprintf(command, sizeof command, "unset REGATTA_JOB; exec /proc/%ld/exe alone", (long)getpid());
    int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "set") == 0) {
        /* Waits for the host, which must be notified of this process's end. */
        crecv(ORDER, NULL, 0);
        return getenv("NX_TEST") ? (int)(10 * numnodes() + mynode()) : 98;
    }
    if (argc > 1)
        return argv[1][0] == 'a' ? (int)(10 * numnodes() + mynode()) : 99;
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
        case 'h':
            answer(by_itself());
            break;
        case 'x':
            exit((int)value);
        case 'k':
            raise((int)value);
            break;
        case 'f':
            csend(ORDER, &order, sizeof order, 99, 0);
            break;
        case 'a': /* end all nodes */
            killcube(-1, -1);
            break;
        }
    }
}
