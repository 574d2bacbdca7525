/*
 * Members of groups meet, join, leave and die in random order: each round, a random number that all tasks draw alike
 * determines what happens in it. Before a barrier, every task that enters it increments a counter in a mapped file;
 * after the barrier, the counter must include all of them.
 *
 *   pvm_storm NAME SEED ROUNDS     NAME is the prefix of the names of its groups and of its file
 */
#include <fcntl.h>
#include <pvm3.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TASKS = 6, MORTAL = TASKS, JOINED = 1, GONE = 2, BIRTH = 3 };
enum { BURST, WHOLE, SOME, CHANGE, ODD, MORTAL_COMES, MORTAL_WAITS, KINDS };

static char all[64], even[64], steps[64];
static uint64_t state;
static unsigned *counts, expected;
static int me, number_of_even;

static void fail(const char *what, int answer)
{
    fprintf(stderr, "pvm_storm: task %d: %s: %d\n", me, what, answer);
    exit(1);
}

static void check(const char *what, int answer)
{
    if (answer < 0)
        fail(what, answer);
}

static unsigned draw(unsigned below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 33) % below;
}

static void map_counts(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.counts", getenv("HOME"), name);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, 4096) != 0)
        fail("the file", fd);
    counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (counts == MAP_FAILED)
        fail("the memory", -1);
}

/* A barrier of `come` tasks: none leaves before all have entered. */
static void meet(char *group, int count, unsigned come)
{
    expected += come;
    __atomic_add_fetch(counts, 1, __ATOMIC_SEQ_CST);
    check("a barrier", pvm_barrier(group, count));
    if (__atomic_load_n(counts, __ATOMIC_SEQ_CST) < expected)
        fail("somebody was not there", (int)expected);
}

/* A barrier of all tasks, so that rounds do not overlap. */
static void step(void)
{
    check("the step", pvm_barrier(steps, TASKS));
}

static void sum_of_even(void)
{
    int sum = me, members = (TASKS + 1) / 2, count = draw(2) ? -1 : members;
    if (me % 2)
        return;
    check("a reduction", pvm_reduce(PvmSum, &sum, 1, PVM_INT, 7, even, 0));
    if (number_of_even == 0 && sum != members * (members - 1))
        fail("a sum is wrong", sum);
    check("a barrier of some", pvm_barrier(even, count));
}

static void leave_and_join(char *group, int number)
{
    check("leaving", pvm_lvgroup(group));
    if (pvm_joingroup(group) != number)
        fail("the number that was left is not the one that is free", number);
}

static int start_mortal(char **argv, const char *end)
{
    int tid;
    char *arguments[] = {argv[1], (char *)(uintptr_t)end, argv[3], NULL};
    if (pvm_spawn("pvm_storm", arguments, PvmTaskDefault, "", 1, &tid) != 1)
        fail("a task cannot be started", tid);
    check("a notification", pvm_notify(PvmTaskExit, GONE, 1, &tid));
    check("a task that joins", pvm_recv(tid, JOINED));
    return tid;
}

/* Another task joins, enters one barrier, and ends in one of several ways. */
static void with_mortal(char **argv, int comes)
{
    const char *ends[] = {"leaves", "exits", "dies", "waits"};
    const char *end = ends[comes ? draw(3) : 3];
    int tid = me == 0 ? start_mortal(argv, end) : 0;
    if (comes) {
        step();
        meet(all, TASKS + 1, TASKS + 1);
    }
    if (me == 0) {
        if (!comes)
            check("killing", pvm_kill(tid));
        check("its end", pvm_recv(-1, GONE));
    }
    /* If it does not enter the barrier itself, others have entered before it ends. */
    if (!comes)
        step();
    meet(all, TASKS, TASKS);
    step();
    meet(all, -1, TASKS);
}

static void be_mortal(int parent, const char *end)
{
    me = MORTAL;
    if (pvm_joingroup(all) != MORTAL)
        fail("the number of a further task", MORTAL);
    pvm_initsend(PvmDataDefault);
    check("a word", pvm_send(parent, JOINED));
    __atomic_add_fetch(counts, strcmp(end, "waits") != 0, __ATOMIC_SEQ_CST);
    check("a barrier", pvm_barrier(all, TASKS + 1));
    if (!strcmp(end, "dies"))
        raise(SIGKILL);
    if (!strcmp(end, "leaves"))
        check("leaving", pvm_lvgroup(all));
    pvm_exit();
    exit(0);
}

static void play(char **argv)
{
    unsigned kind = draw(KINDS), who = draw(TASKS), times = 1 + draw(20), some = 1 + draw(TASKS);
    switch (kind) {
    case BURST:
        while (times--)
            meet(all, TASKS, TASKS);
        break;
    case WHOLE:
        meet(all, -1, TASKS);
        break;
    case SOME:
        if ((unsigned)me < some)
            meet(all, (int)some, some);
        else
            expected += some;
        break;
    case CHANGE:
        if ((unsigned)me == who)
            leave_and_join(draw(2) ? all : steps, me);
        else
            draw(2);
        meet(all, TASKS, TASKS);
        break;
    case ODD:
        /* This task either passes at once, or gets the error that others wait with a larger count. */
        if ((unsigned)me == who) {
            int answer = pvm_barrier(all, 1);
            if (answer != PvmOk && answer != PvmMismatch)
                fail("a barrier of one", answer);
        }
        meet(all, TASKS, TASKS);
        break;
    default:
        with_mortal(argv, kind == MORTAL_COMES);
    }
    sum_of_even();
    step();
}

static void join(void)
{
    if (pvm_joingroup(all) != me || pvm_joingroup(steps) != me)
        fail("joining", me);
}

/* The others join one after the other, so that each has the instance that it expects. */
static void start_others(char **argv)
{
    int tids[TASKS];
    if (pvm_spawn("pvm_storm", argv + 1, PvmTaskDefault, "", TASKS - 1, tids + 1) != TASKS - 1)
        fail("the others cannot be started", tids[1]);
    for (int other = 1; other < TASKS; other++) {
        pvm_initsend(PvmDataDefault);
        pvm_pkint(&other, 1, 1);
        check("a word", pvm_send(tids[other], BIRTH));
        check("an answer", pvm_recv(tids[other], JOINED));
    }
}

int main(int argc, char **argv)
{
    if (argc < 4)
        fail("pvm_storm NAME SEED ROUNDS", argc);
    pvm_setopt(PvmAutoErr, 0);
    int parent = pvm_parent(), rounds = atoi(argv[3]);
    snprintf(all, sizeof all, "%s all", argv[1]);
    snprintf(even, sizeof even, "%s even", argv[1]);
    snprintf(steps, sizeof steps, "%s steps", argv[1]);
    map_counts(argv[1]);
    state = strtoull(argv[2], NULL, 10);
    if (parent > 0 && state == 0)
        be_mortal(parent, argv[2]);
    if (parent > 0) {
        check("a word", pvm_recv(parent, BIRTH));
        pvm_upkint(&me, 1, 1);
        join();
        pvm_initsend(PvmDataDefault);
        check("an answer", pvm_send(parent, JOINED));
    } else {
        join();
        start_others(argv);
    }
    step();
    if (me % 2 == 0)
        number_of_even = pvm_joingroup(even);
    step();
    for (int round = 0; round < rounds; round++)
        play(argv);
    if (me == 0)
        printf("%d rounds\n", rounds);
    pvm_exit();
    return 0;
}
