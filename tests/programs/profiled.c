/*
 * Programs with known profiles: how many messages of how many bytes to which task, and where time is spent.
 */
#include "check.h"
#include <sys/wait.h>
#include <pthread.h>
#include <time.h>

enum { ROUNDS = 50, BYTES = 1000, LARGE = 100000 };

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Uses this much processor time, whatever else runs on the machine. */
__attribute__((noinline)) void burn_the_processor(double time)
{
    volatile double sum = 0;
    for (double end = seconds(CLOCK_THREAD_CPUTIME_ID) + time; seconds(CLOCK_THREAD_CPUTIME_ID) < end;)
        for (int i = 0; i < 20000; i++)
            sum += i * 0.5;
}

/*
 * Ring: each task sends and receives 50 messages of 1000 bytes and one of 100000, and takes part in 10 barriers and 5
 * sums of 3 doubles.
 */
static void ring(void)
{
    static char buffer[LARGE];
    int next = (me + 1) % size, last = (me + size - 1) % size;
    rg_request request;
    rg_status status;
    for (int i = 0; i < ROUNDS; i++) {
        OK(rg_irecv(buffer, sizeof buffer, last, 7, RG_WORLD, &request));
        OK(rg_send(buffer, BYTES, next, 7, RG_WORLD));
        OK(rg_wait(&request, i % 2 ? &status : NULL));
    }
    OK(rg_sendrecv(buffer, LARGE, next, 8, buffer, 0, RG_NONE, 8, RG_WORLD, NULL));
    OK(rg_recv(buffer, sizeof buffer, last, 8, RG_WORLD, NULL));
    for (int i = 0; i < 10; i++)
        OK(rg_barrier(RG_WORLD));
    double in[3] = {1, 2, 3}, out[3];
    for (int i = 0; i < 5; i++)
        OK(rg_allreduce(in, out, 3, RG_DOUBLE, RG_SUM, RG_WORLD));
    CHECK(out[2] == 3.0 * size);
    /* Each task gives 8 bytes to each other, then to each rank as many as that rank plus one. */
    char from[64 * 8], to[64 * 8];
    size_t gives[64], gets[64], starts[64];
    for (int i = 0; i < size; i++) {
        gives[i] = (size_t)i + 1;
        gets[i] = (size_t)me + 1;
        starts[i] = 8 * (size_t)i;
    }
    OK(rg_alltoall(from, 8, to, RG_WORLD));
    OK(rg_allgatherv(RG_IN_PLACE, 0, to, gives, starts, RG_WORLD));
    OK(rg_alltoallv(from, gives, starts, to, gets, starts, RG_WORLD));
    /* Bytes: 1, 2, ... for the ranks, then 5 for each. */
    OK(rg_reduce_scatter(from, to, gives, RG_INT8, RG_MAX, RG_WORLD));
    OK(rg_reduce_scatter_block(from, to, 5, RG_INT8, RG_MAX, RG_WORLD));
    CHECK(rg_send(buffer, 1, size + 5, 7, RG_WORLD) == RG_ERR_TASK);
}

/* A group in reverse order: the profile names peers by task number, not by rank. Uses all ways to complete. */
static void ways(void)
{
    int ranks[64], done = 0, index;
    char buffers[4][16];
    rg_group group;
    rg_request requests[4];
    rg_status statuses[4];
    CHECK(size == 2);
    for (int i = 0; i < size; i++)
        ranks[i] = size - 1 - i;
    OK(rg_group_select(RG_WORLD, size, ranks, &group));
    int other = 1 - rg_rank(group);
    /* waitall with and without statuses, waitany, testall, test: 4 messages of 16 bytes each. */
    for (int way = 0; way < 5; way++) {
        for (int i = 0; i < 4; i++)
            OK(rg_irecv(buffers[i], 16, other, i, group, &requests[i]));
        OK(rg_barrier(group));
        for (int i = 0; i < 4; i++)
            OK(rg_send(buffers[i], 16, other, i, group));
        switch (way) {
        case 0:
            OK(rg_waitall(4, requests, NULL));
            break;
        case 1:
            OK(rg_waitall(4, requests, statuses));
            break;
        case 2:
            for (int i = 0; i < 4; i++)
                OK(rg_waitany(4, requests, i % 2 ? &index : NULL, NULL));
            break;
        case 3:
            for (done = 0; !done;)
                OK(rg_testall(4, requests, &done, NULL));
            break;
        case 4:
            for (int i = 0; i < 4; i++)
                for (done = 0; !done;)
                    OK(rg_test(&requests[i], &done, NULL));
            break;
        }
        OK(rg_barrier(group));
    }
}

/* Task 0 computes, and all others wait for it. */
static void waits(void)
{
    char byte = 0;
    if (me == 0) {
        burn_the_processor(1.0);
        for (int other = 1; other < size; other++)
            OK(rg_send(&byte, 1, other, 1, RG_WORLD));
    } else {
        OK(rg_recv(&byte, 1, 0, 1, RG_WORLD, NULL));
    }
}

/* Marks, toggles, and a part that is not recorded. */
static void marks(void)
{
    OK(rg_mark("begin"));
    for (int i = 0; i < 3; i++) {
        OK(rg_toggle("step <b>", 1));
        OK(rg_toggle("step <b>", 1));
        burn_the_processor(0.05);
        OK(rg_toggle("step <b>", 0));
        OK(rg_toggle("step <b>", 0));
    }
    OK(rg_profile(0));
    OK(rg_barrier(RG_WORLD));
    OK(rg_mark("unseen"));
    OK(rg_profile(1));
    OK(rg_mark("begin"));
    OK(rg_barrier(RG_WORLD));
    CHECK(rg_mark(NULL) == RG_ERR_ARGUMENT && rg_toggle(NULL, 1) == RG_ERR_ARGUMENT);
}

/* Task 1 is killed while it waits for a message that never arrives, after 5 that did. */
static void killed(void)
{
    char byte = 0;
    for (int i = 0; i < 5; i++) {
        if (me == 0)
            OK(rg_send(&byte, 1, 1, 1, RG_WORLD));
        else
            OK(rg_recv(&byte, 1, 0, 1, RG_WORLD, NULL));
    }
    if (me == 0) {
        OK(rg_recv(&byte, 1, 1, 2, RG_WORLD, NULL));
        /* Task 1 begins to wait in this time. */
        burn_the_processor(0.3);
        OK(rg_kill(rg_tid_of(RG_WORLD, 1)));
        return;
    }
    OK(rg_send(&byte, 1, 0, 2, RG_WORLD));
    rg_recv(&byte, 1, 0, 3, RG_WORLD, NULL);
    FAILED("a message that nobody sent has come");
}

/* Produces more events than there is room for. */
static void many(void)
{
    char byte = 0;
    for (int i = 0; i < 1000; i++)
        OK(rg_send(&byte, 1, RG_NONE, 1, RG_WORLD));
}

/* A forked child computes and ends, and a command is run. Neither is counted as the task. */
static void forks(void)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        char byte = 0;
        if (rg_send(&byte, 1, 0, 1, RG_WORLD) != RG_ERR_STATE)
            _exit(1);
        burn_the_processor(0.2);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(system("true") == 0);
    OK(rg_barrier(RG_WORLD));
}

static void *barriers(void *nothing)
{
    char byte = 0;
    for (int i = 0; i < 10; i++)
        OK(rg_send(&byte, 1, RG_NONE, 1, RG_WORLD));
    return nothing;
}

/* 40 threads one after the other, then 20 at once. Each makes 10 calls. */
static void threads(void)
{
    pthread_t all[20];
    for (int i = 0; i < 40; i++) {
        CHECK(pthread_create(&all[0], NULL, barriers, NULL) == 0);
        CHECK(pthread_join(all[0], NULL) == 0);
    }
    for (int i = 0; i < 20; i++)
        CHECK(pthread_create(&all[i], NULL, barriers, NULL) == 0);
    for (int i = 0; i < 20; i++)
        CHECK(pthread_join(all[i], NULL) == 0);
}

/* Prints the cost of a call in nanoseconds: a send to RG_NONE, which completes at once. */
static void costs(void)
{
    char byte = 0;
    enum { CALLS = 200000 };
    double best = 1;
    for (int turn = 0; turn < 10; turn++) {
        double begin = seconds(CLOCK_MONOTONIC);
        for (int i = 0; i < CALLS; i++)
            rg_send(&byte, 1, RG_NONE, 1, RG_WORLD);
        double each = (seconds(CLOCK_MONOTONIC) - begin) / CALLS;
        best = each < best ? each : best;
    }
    printf("nanoseconds %.1f\n", best * 1e9);
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"ring", ring, false},
        {"ways", ways, false},
        {"waits", waits, false},
        {"marks", marks, false},
        {"killed", killed, false},
        {"many", many, false},
        {"forks", forks, false},
        {"threads", threads, false},
        {"costs", costs, false},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
