/* ep.h: embarrassingly parallel. Pairs of random numbers become pairs of Gaussian deviates, which are summed and
 * counted by size. Tasks communicate once, to add their sums.
 *
 * The work is distributed in one of three ways. `equal` is best for tasks of one speed; on hosts of different speeds
 * all would wait for the slowest. With `pilot` each task first measures its speed, and then the rest is distributed
 * once in proportion to speed. With `units` task 0, which computes as well, hands out small pieces until none is left;
 * this also compensates for changes during the run. */
#ifndef EP_H
#define EP_H

#include "npb.h"

/* Sums the values of all tasks element by element; all tasks get the result. */
static void sum_of_all(double *values, int count);

/* For `units`: task 0 receives a request for work. With `waits` it blocks until there is one. Returns the task that
 * sent it, or -1 if there is none. */
static int take_request(int waits);
/* Task 0 answers a request with the first block of a unit, or -1 if none is left. */
static void answer_request(int task, long block);
/* Another task sends a request; receive_answer waits for the answer to it. */
static void send_request(void);
static long receive_answer(void);

#define EP_SEED UINT64_C(271828183)
enum { EP_BLOCK_BITS = 16, EP_RINGS = 10, EP_SUMS = 2 + EP_RINGS };

/* A pilot calculation ends after this time, or after 1 / EP_PILOT_PART of an equal share, whichever is first. */
#define EP_PILOT_SECONDS 0.25
enum { EP_PILOT_PART = 16 };
/* Blocks of a unit of work: about 10 ms. */
enum { EP_UNIT = 4 };

enum ep_way { EP_EQUAL, EP_PILOT, EP_UNITS };
static const char *const ep_ways[] = {"equal", "pilot", "units"};

/* Returns the way named on the command line after the class, or EP_EQUAL if none is named. */
static inline enum ep_way ep_way(int argc, char **argv)
{
    if (argc < 3)
        return EP_EQUAL;
    for (int way = EP_EQUAL; way <= EP_UNITS; way++)
        if (strcmp(argv[2], ep_ways[way]) == 0)
            return way;
    refuse("npb", "the distribution of ep must be one of equal, pilot, units");
}

static const struct ep_class {
    char name;
    int bits; /* the number of pairs is 2 to this power */
    double x, y; /* published sums */
} ep_classes[] = {
    {'S', 24, -3.247834652034740e+3, -6.958407078382297e+3},
    {'W', 25, -2.863319731645753e+3, -6.320053679109499e+3},
    {'A', 28, -4.295875165629892e+3, -1.580732573678431e+4},
    {'B', 30, 4.033815542441498e+4, -2.660669192809235e+4},
};

/* Adds the pairs of one block of 2^16 to the sums: the first deviates, the second ones, and the number of pairs in each
 * square ring. */
static void ep_block(long block, double *sums)
{
    uint64_t state = npb_times(EP_SEED, npb_power((uint64_t)block << (EP_BLOCK_BITS + 1)));
    for (long pair = 0; pair < 1L << EP_BLOCK_BITS; pair++) {
        double x = 2 * npb_random(&state) - 1, y = 2 * npb_random(&state) - 1, t = x * x + y * y;
        if (t > 1)
            continue;
        double factor = sqrt(-2 * log(t) / t), gx = x * factor, gy = y * factor;
        int ring = (int)fmax(fabs(gx), fabs(gy));
        sums[0] += gx;
        sums[1] += gy;
        sums[2 + ring] += 1;
    }
}

/* A task and its results. */
struct ep {
    int rank, size;
    long blocks, computed; /* blocks of all tasks, and blocks that this task has computed so far */
    double sums[EP_SUMS];
};

static void ep_compute(struct ep *e, long first, long end)
{
    for (long block = first; block < end; block++)
        ep_block(block, e->sums);
    e->computed += end - first;
}

/* Computes an equal share of the blocks. */
static void ep_equal(struct ep *e)
{
    ep_compute(e, first_of(e->blocks, e->rank, e->size), first_of(e->blocks, e->rank + 1, e->size));
}

/* Computes with the first blocks of an equal share for a short time to measure this task's speed. All tasks then
 * exchange their speeds. The remaining blocks of all shares, taken as one sequence, are distributed in proportion to
 * speed. */
static void ep_pilot(struct ep *e)
{
    long first = first_of(e->blocks, e->rank, e->size), most = (first_of(e->blocks, e->rank + 1, e->size) - first) / EP_PILOT_PART;
    double start = clock_seconds(), seconds = 0;
    while (e->computed < most && seconds < EP_PILOT_SECONDS) {
        ep_compute(e, first + e->computed, first + e->computed + 1);
        seconds = clock_seconds() - start;
    }

    /* Two elements for each task: blocks computed, and blocks per second. A task whose share is too small to measure
     * has speed 1. */
    double *told = zeroed_memory(2 * (size_t)e->size, sizeof *told);
    told[2 * e->rank] = (double)e->computed;
    told[2 * e->rank + 1] = e->computed ? (double)e->computed / seconds : 1;
    COMMUNICATE(sum_of_all(told, 2 * e->size));
    double speed = 0, before = 0, left = (double)e->blocks;
    for (int task = 0; task < e->size; task++) {
        speed += told[2 * task + 1];
        before += task < e->rank ? told[2 * task + 1] : 0;
        left -= told[2 * task];
    }
    long from = lround(left * before / speed), to = lround(left * (before + told[2 * e->rank + 1]) / speed), at = 0;
    for (int task = 0; task < e->size; task++) {
        /* Compute this task's part of the rest of the share of `task`. `at` counts the remaining blocks of the shares
         * before. */
        long begin = first_of(e->blocks, task, e->size) + (long)told[2 * task], count = first_of(e->blocks, task + 1, e->size) - begin;
        long mine = from > at ? from : at, end = to < at + count ? to : at + count;
        if (mine < end)
            ep_compute(e, begin + mine - at, begin + end - at);
        at += count;
    }
    free(told);
}

/* Runs `units` at task 0, which answers requests between its own blocks. */
static void ep_hand_out(struct ep *e)
{
    long next = 0;
    for (int asking = e->size - 1; next < e->blocks || asking > 0;) {
        int task = -1;
        if (asking > 0)
            COMMUNICATE(task = take_request(next >= e->blocks));
        if (task >= 0) {
            COMMUNICATE(answer_request(task, next < e->blocks ? next : -1));
            asking -= next >= e->blocks;
            next += EP_UNIT;
        } else {
            ep_compute(e, next, next + 1);
            next++;
        }
    }
}

/* Runs `units` at another task, which requests the next unit before it computes one, so that the answer has arrived
 * when it is done. */
static void ep_ask(struct ep *e)
{
    long unit;
    COMMUNICATE(send_request());
    for (;;) {
        COMMUNICATE(unit = receive_answer());
        if (unit < 0)
            return;
        COMMUNICATE(send_request());
        ep_compute(e, unit, unit + EP_UNIT < e->blocks ? unit + EP_UNIT : e->blocks);
    }
}

/* Prints how many blocks each task has computed. */
static void ep_tell_shares(const struct ep *e, enum ep_way way)
{
    double *shares = zeroed_memory((size_t)e->size, sizeof *shares);
    shares[e->rank] = (double)e->computed;
    sum_of_all(shares, e->size);
    if (e->rank == 0) {
        printf("npb-ep %s: blocks of each task:", ep_ways[way]);
        for (int task = 0; task < e->size; task++)
            printf(" %.0f", shares[task]);
        printf("\n");
    }
    free(shares);
}

/* Runs the kernel as one of `size` tasks. Returns the exit status of the program. */
static int ep(char name, enum ep_way way, int rank, int size)
{
    const struct ep_class *class = ep_classes;
    while (class->name != name)
        class++;
    struct ep e = {.rank = rank, .size = size, .blocks = 1L << (class->bits - EP_BLOCK_BITS)};
    double nothing[EP_SUMS] = {0};
    sum_of_all(nothing, EP_SUMS); /* synchronizes all tasks before the clock starts */

    seconds_communicating = 0;
    double start = clock_seconds();
    if (way == EP_PILOT)
        ep_pilot(&e);
    else if (way == EP_EQUAL)
        ep_equal(&e);
    else if (rank == 0)
        ep_hand_out(&e);
    else
        ep_ask(&e);
    COMMUNICATE(sum_of_all(e.sums, EP_SUMS));
    double seconds = clock_seconds() - start;

    if (way != EP_EQUAL)
        ep_tell_shares(&e, way);
    int verified = npb_equal(e.sums[0], class->x, 1e-8) && npb_equal(e.sums[1], class->y, 1e-8);
    return npb_tell("ep", name, rank, size, verified, seconds, ldexp(1, class->bits + 1));
}

#endif
