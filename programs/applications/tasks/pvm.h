/* How the applications join, send and sum, on PVM 3.4.
 *
 * The user starts the program once, with the number of tasks as its last argument; it starts the others. All join a
 * group, in which the instance number of a task is its rank. */
#include <pvm3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_TASKS = 256, TAG_START = 1, TAG_TURN, TAG_SUM, TAG_TOTAL, TAG_DATA };

static char group[] = "application";
static int rank, size, tids[MAX_TASKS];

static void check(int code, const char *call)
{
    if (code < 0) {
        fprintf(stderr, "application: %s failed: PVM's error %d\n", call, code);
        exit(1);
    }
}

static void send_to(int task, int tag, const void *data, int bytes)
{
    check(pvm_psend(tids[task], tag, (void *)data, bytes, PVM_BYTE), "pvm_psend");
}

static void receive_from(int task, int tag, void *data, int bytes)
{
    check(pvm_precv(tids[task], tag, data, bytes, PVM_BYTE, NULL, NULL, NULL), "pvm_precv");
}

/* Starts the other tasks and sends them the ids of all tasks. */
static void start_others(int argc, char **argv)
{
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    size = argc > 1 ? atoi(argv[argc - 1]) : 0;
    if (length < 0 || size < 1 || size > MAX_TASKS) {
        fprintf(stderr, "application: the last argument is the number of tasks, 1 to %d\n", MAX_TASKS);
        exit(2);
    }
    program[length] = 0;
    tids[0] = pvm_mytid();
    if (size > 1 && pvm_spawn(program, argv + 1, PvmTaskDefault, "", size - 1, tids + 1) != size - 1) {
        fprintf(stderr, "application: PVM could not start %d tasks\n", size - 1);
        exit(1);
    }
    check(pvm_initsend(PvmDataDefault), "pvm_initsend");
    pvm_pkint(&size, 1, 1);
    pvm_pkint(tids, size, 1);
    check(pvm_mcast(tids + 1, size - 1, TAG_START), "pvm_mcast");
}

/* Receives the ids of all tasks from the parent. */
static void hear_from_parent(void)
{
    check(pvm_recv(pvm_parent(), TAG_START), "pvm_recv");
    pvm_upkint(&size, 1, 1);
    pvm_upkint(tids, size, 1);
    while (tids[rank] != pvm_mytid())
        rank++;
}

static void join(int argc, char **argv)
{
    check(pvm_mytid(), "pvm_mytid");
    /* Use direct routes, unless the race measures the route through the daemons. */
    if (!getenv("RACE_PVM_ROUTE"))
        pvm_setopt(PvmRoute, PvmRouteDirect);
    if (pvm_parent() > 0)
        hear_from_parent();
    else
        start_others(argc, argv);
    /* Join in turn, so that instance numbers are ranks. */
    char turn = 0;
    if (rank > 0)
        receive_from(rank - 1, TAG_TURN, &turn, 1);
    check(pvm_joingroup(group), "pvm_joingroup");
    if (rank + 1 < size)
        send_to(rank + 1, TAG_TURN, &turn, 1);
    check(pvm_freezegroup(group, size), "pvm_freezegroup");
}

static int leave(int status)
{
    check(pvm_barrier(group, size), "pvm_barrier");
    pvm_lvgroup(group);
    pvm_exit();
    return status;
}

/* Sums at all tasks. PVM has no such reduction, so this is one to task 0 and a broadcast, which needs another task. */
static void sum_to_all(void *values, int count, int type, int bytes)
{
    if (size == 1)
        return;
    check(pvm_reduce(PvmSum, values, count, type, TAG_SUM, group, 0), "pvm_reduce");
    if (rank == 0) {
        check(pvm_initsend(PvmDataRaw), "pvm_initsend");
        pvm_pkbyte(values, bytes, 1);
        check(pvm_bcast(group, TAG_TOTAL), "pvm_bcast");
    } else {
        receive_from(0, TAG_TOTAL, values, bytes);
    }
}

static inline void sum_of_doubles(double *values, int count)
{
    sum_to_all(values, count, PVM_DOUBLE, count * (int)sizeof *values);
}
