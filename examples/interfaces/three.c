/*
 * three: one program that uses three interfaces over one engine. It is started by hand:
 *
 *     ./three 4
 *
 * The host is an NX program, and loads this program into the given number of nodes. The nodes add their numbers by Express, with a
 * function of their own. Node 0 puts the sum into a mailbox of PVM, from which the host, which is not an Express node, reads it.
 */
#define _POSIX_C_SOURCE 200809L
#include <pvm3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <nx.h>
#undef HOST /* NX's macro, which Express defines differently */
#include <express.h>

enum { PID = 0, HOST_PID = 100, TYPE_ANSWER = 1, TYPE_SUM = 2 };
static char MAILBOX[] = "sum of three";

static void fail(const char *what)
{
    fprintf(stderr, "three: %s\n", what);
    exit(1);
}

/* Adds the second number to the first, for excombine. */
static int add(void *sum, void *number, int size)
{
    (void)size;
    *(int *)sum += *(int *)number;
    return 0;
}

static void node(void)
{
    struct nodenv env;
    int sum = (int)mynode() + 1, type = TYPE_SUM;

    /* A node of NX is also a node of Express, with the same number. */
    if (exparam(&env) != 0 || env.procnum != mynode() || env.nprocs != numnodes())
        fail("NX and Express disagree about the nodes");
    if (excombine(&sum, add, sizeof sum, 1, ALLNODES, NULLPTR, &type) != 0)
        fail("excombine");
    if (env.procnum == 0) {
        int index;
        if (pvm_initsend(PvmDataDefault) < 0 || pvm_pkint(&sum, 1, 1) < 0)
            fail("pvm_pkint");
        /* Persistent, so that the entry still exists when this node has ended. */
        index = pvm_putinfo(MAILBOX, pvm_getsbuf(), PvmMboxPersistent);
        if (index < 0)
            fail("pvm_putinfo");
    }
    csend(TYPE_ANSWER, &sum, sizeof sum, myhost(), HOST_PID);
}

static int host(const char *count)
{
    static char path[4096];
    int nodes = atoi(count), expected = nodes * (nodes + 1) / 2, sum = 0;
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);

    if (nodes < 1 || length < 0)
        fail("the number of nodes is missing");
    getcube("three", count, NULL, 0);
    setpid(HOST_PID);
    load(path, -1, PID);
    for (int i = 0; i < nodes; i++) {
        int answer = 0;
        crecv(TYPE_ANSWER, &answer, sizeof answer);
        if (answer != expected)
            fail("a node has another sum");
    }
    if (pvm_recvinfo(MAILBOX, 0, PvmMboxWaitForInfo) < 0 || pvm_upkint(&sum, 1, 1) < 0)
        fail("pvm_recvinfo");
    waitall(-1, -1);
    printf("%d nodes: the sum is %d, by NX, Express and PVM\n", nodes, sum);
    return sum == expected ? 0 : 1;
}

/* NX loads programs without arguments, so a process with an argument is the host. */
int main(int argc, char **argv)
{
    if (argc > 1)
        return host(argv[1]);
    node();
    return 0;
}
