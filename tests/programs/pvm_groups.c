/*
 * PVM's groups: every call, with its result. The first task starts the others under the name "pvm_groups" and prints
 * the output of all, so that the same binary can be compared line by line on PVM's own library and on Regatta's.
 *
 *   pvm_groups            calls and results
 *   pvm_groups ROUNDS     tasks leave and join between barriers
 */
#include <pvm3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OTHERS = 3, READY = 1, GO = 2, SAID = 3, HEARD = 4 };

static char said[8192];
static int me;

static void say(const char *what, int answer)
{
    size_t length = strlen(said);
    snprintf(said + length, sizeof said - length, "%d: %s = %d\n", me, what, answer);
}

#define SAY(call) say(#call, (call))

static void fail(const char *what)
{
    fprintf(stderr, "pvm_groups: %s\n", what);
    exit(1);
}

static void report(int parent)
{
    pvm_initsend(PvmDataDefault);
    pvm_pkstr(said);
    pvm_send(parent, SAID);
    said[0] = 0;
}

/* Prints the reports of all members, in the order of the instances. */
static void hear(const int *tids)
{
    fputs(said, stdout);
    said[0] = 0;
    for (int other = 0; other < OTHERS; other++) {
        char text[sizeof said];
        if (pvm_recv(tids[other], SAID) < 0 || pvm_upkstr(text) < 0)
            fail("a task has nothing to say");
        fputs(text, stdout);
    }
}

static void nonsense(void)
{
    int data[4] = {1, 2, 3, 4}, result[4];

    SAY(pvm_joingroup(NULL));
    SAY(pvm_joingroup(""));
    SAY(pvm_lvgroup(""));
    SAY(pvm_gsize(NULL));
    SAY(pvm_gettid("", 0));
    SAY(pvm_getinst(NULL, 0));
    SAY(pvm_barrier("", 1));
    SAY(pvm_bcast(NULL, 1));
    SAY(pvm_freezegroup("", 1));
    SAY(pvm_reduce(PvmSum, data, 4, PVM_INT, 3, "", 0));
    SAY(pvm_lvgroup("nobody"));
    SAY(pvm_gsize("nobody"));
    SAY(pvm_gettid("nobody", 0));
    SAY(pvm_getinst("nobody", pvm_mytid()));
    SAY(pvm_barrier("nobody", 1));
    SAY(pvm_reduce(PvmSum, data, 4, PVM_INT, 3, "nobody", 0));
    SAY(pvm_gather(result, data, 1, PVM_INT, 3, "nobody", 0));
    SAY(pvm_scatter(result, data, 1, PVM_INT, 3, "nobody", 0));
    SAY(pvm_reduce(PvmSum, NULL, 4, PVM_INT, 3, "nobody", 0));
    SAY(pvm_reduce(PvmSum, data, 0, PVM_INT, 3, "nobody", 0));
    SAY(pvm_gather(result, NULL, 1, PVM_INT, 3, "nobody", 0));
    SAY(pvm_gather(result, data, -1, PVM_INT, 3, "nobody", 0));
    SAY(pvm_gather(result, data, 1, 99, 3, "nobody", 0));
    SAY(pvm_scatter(NULL, data, 1, PVM_INT, 3, "nobody", 0));
}

static void alone(void)
{
    int data[4] = {1, 2, 3, 4}, result[4];

    SAY(pvm_joingroup("alone"));
    SAY(pvm_joingroup("alone"));
    SAY(pvm_gsize("alone"));
    SAY(pvm_gettid("alone", 0) == pvm_mytid());
    SAY(pvm_gettid("alone", 1));
    SAY(pvm_gettid("alone", -1));
    SAY(pvm_getinst("alone", pvm_mytid()));
    SAY(pvm_getinst("alone", -5));
    SAY(pvm_barrier("alone", 1));
    SAY(pvm_barrier("alone", -1));
    SAY(pvm_barrier("alone", 1));
    pvm_initsend(PvmDataDefault);
    SAY(pvm_bcast("alone", 1));
    SAY(pvm_reduce(PvmSum, data, 4, PVM_INT, 3, "alone", 0));
    SAY(data[3]);
    SAY(pvm_reduce(PvmSum, data, 4, PVM_INT, 3, "alone", 1));
    SAY(pvm_reduce(PvmSum, data, 1, 77, 3, "alone", 0));
    SAY(pvm_gather(result, data, 2, PVM_INT, 3, "alone", 0));
    SAY(result[1]);
    SAY(pvm_gather(result, data, 2, PVM_INT, 3, "alone", 5));
    SAY(pvm_scatter(result, data + 2, 2, PVM_INT, 3, "alone", 0));
    SAY(result[0]);
    SAY(pvm_freezegroup("alone", 1));
    SAY(pvm_freezegroup("alone", 1));
    SAY(pvm_joingroup("alone"));
    SAY(pvm_barrier("alone", 1));
    SAY(pvm_gsize("alone"));
    SAY(pvm_lvgroup("alone"));
    SAY(pvm_lvgroup("alone"));
    SAY(pvm_gsize("alone"));
    SAY(pvm_joingroup("alone"));
    SAY(pvm_lvgroup("alone"));
}

/* A reduction function of the program. */
static void digits(int *type, void *inout, void *in, int *count, int *info)
{
    (void)type;
    for (int at = 0; at < *count; at++)
        ((int *)inout)[at] += 100 * ((int *)in)[at];
    *info = PvmOk;
}

/* Called by all members. */
static void together(void)
{
    double reals[3] = {me + 1, -me, 0.5};
    int numbers[2] = {me + 1, 10 * (me + 1)}, all[2 * (OTHERS + 1)] = {0}, mine[2], whole[2] = {me + 1, 1};
    long large = 70000l * (me + 1);

    SAY(pvm_barrier("all", OTHERS + 1));
    SAY(pvm_barrier("all", OTHERS + 1));
    SAY(pvm_barrier("all", -1));
    SAY(pvm_gather(all, numbers, 2, PVM_INT, 5, "all", 1));
    for (int at = 0; me == 1 && at < 2 * (OTHERS + 1); at++)
        SAY(all[at]);
    SAY(pvm_scatter(mine, all, 2, PVM_INT, 6, "all", 1));
    SAY(mine[0]);
    SAY(mine[1]);
    SAY(pvm_reduce(PvmSum, reals, 3, PVM_DOUBLE, 7, "all", 2));
    if (me == 2)
        SAY((int)(10 * (reals[0] + reals[1] + reals[2])));
    /* Separated by a barrier: if PVM's reductions overtake each other, some of them never end. */
    SAY(pvm_barrier("all", OTHERS + 1));
    SAY(pvm_reduce(PvmMax, &large, 1, PVM_LONG, 7, "all", 0));
    if (me == 0)
        SAY((int)large);
    SAY(pvm_barrier("all", OTHERS + 1));
    SAY(pvm_reduce(digits, whole, 2, PVM_INT, 8, "all", 0));
    if (me == 0)
        SAY(whole[1]);
    SAY(pvm_barrier("all", OTHERS + 1));
}

static void child(int parent)
{
    int order = 0;

    pvm_recv(parent, READY);
    me = pvm_joingroup("all");
    pvm_initsend(PvmDataDefault);
    pvm_pkint(&me, 1, 1);
    pvm_send(parent, READY);
    pvm_recv(parent, GO);
    SAY(pvm_joingroup("closed"));
    SAY(pvm_gsize("closed"));
    SAY(pvm_gettid("closed", 0) == parent);
    SAY(pvm_getinst("closed", parent));
    SAY(pvm_lvgroup("closed"));
    SAY(pvm_barrier("closed", 1));
    together();
    pvm_recv(-1, HEARD);
    pvm_upkint(&order, 1, 1);
    SAY(order);
    /* The parent's instance is a gap now. */
    pvm_recv(parent, GO);
    SAY(pvm_gettid("all", 0));
    SAY(pvm_gsize("all"));
    SAY(pvm_gather(NULL, &order, 1, PVM_INT, 9, "all", 1) == PvmOk || me == 1);
    if (me == 1)
        SAY(pvm_gather(&order, &order, 1, PVM_INT, 9, "all", 1));
    SAY(pvm_barrier("all", OTHERS));
    SAY(pvm_barrier("all", OTHERS));
    report(parent);
    SAY(pvm_lvgroup("all"));
    pvm_exit();
}

static void start(char **argv, int *tids)
{
    if (pvm_spawn("pvm_groups", argv, PvmTaskDefault, "", OTHERS, tids) != OTHERS)
        fail("the others cannot be started");
}

static void questions(void)
{
    int tids[OTHERS], order = 1234;

    nonsense();
    alone();
    SAY(pvm_joingroup("closed"));
    SAY(pvm_freezegroup("closed", -1));
    me = pvm_joingroup("all");
    SAY(me);
    start(NULL, tids);
    /* One after the other, so that instances are in the order of the tasks. */
    for (int other = 0; other < OTHERS; other++) {
        int instance;
        pvm_initsend(PvmDataDefault);
        pvm_send(tids[other], READY);
        pvm_recv(tids[other], READY);
        pvm_upkint(&instance, 1, 1);
        SAY(instance);
    }
    SAY(pvm_gsize("all"));
    SAY(pvm_gettid("all", 2) == tids[1]);
    SAY(pvm_getinst("all", tids[2]));
    pvm_initsend(PvmDataDefault);
    pvm_mcast(tids, OTHERS, GO);
    together();
    pvm_initsend(PvmDataDefault);
    pvm_pkint(&order, 1, 1);
    SAY(pvm_bcast("all", HEARD));
    SAY(pvm_lvgroup("all"));
    pvm_initsend(PvmDataDefault);
    pvm_mcast(tids, OTHERS, GO);
    hear(tids);
}

/* In each round, one of the tasks leaves and joins again under its old instance; then all meet. */
static void churn(int rounds, int parent)
{
    int own[1] = {0};

    me = pvm_joingroup("churn");
    if (pvm_barrier("churn", OTHERS + 1) < 0)
        fail("a barrier failed");
    for (int round = 0; round < rounds; round++) {
        if (round % 3 == 0 && round / 3 % (OTHERS + 1) == me) {
            if (pvm_lvgroup("churn") < 0 || pvm_joingroup("churn") != me)
                fail("the number that was left is not the one that is free");
        }
        if (pvm_barrier("churn", OTHERS + 1) < 0)
            fail("a barrier failed");
        own[0] = round + me;
        if (pvm_reduce(PvmSum, own, 1, PVM_INT, round, "churn", 0) < 0)
            fail("a reduction failed");
        if (me == 0 && own[0] != (OTHERS + 1) * round + OTHERS * (OTHERS + 1) / 2)
            fail("a sum is wrong");
        /* No task leaves before the root has the sum. */
        if (pvm_barrier("churn", OTHERS + 1) < 0)
            fail("a barrier failed");
    }
    SAY(rounds);
    if (parent > 0)
        report(parent);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 0, tids[OTHERS], parent;

    pvm_setopt(PvmAutoErr, 0);
    parent = pvm_parent();
    if (rounds) {
        if (parent < 0)
            start(argv + 1, tids);
        churn(rounds, parent);
        for (int other = 0; parent < 0 && other < OTHERS; other++)
            if (pvm_recv(tids[other], SAID) < 0)
                fail("a task did not finish");
        if (parent < 0)
            printf("%d rounds\n", rounds);
    } else if (parent > 0) {
        child(parent);
    } else {
        questions();
    }
    pvm_exit();
    return 0;
}
