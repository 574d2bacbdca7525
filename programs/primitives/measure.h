/*
 * measure.h: how an operation is timed.
 *
 * A sample is a batch: n operations between two readings of the clock, divided by n. Each task times its own batches;
 * the time of a batch is that of the slowest task. The length n is found by trial so that a batch is long compared with
 * reading the clock. Before samples are kept, batches run until three in a row agree within 10 %, or until the warm-up
 * has used the time of the budget.
 *
 * All tasks take the same decisions, because these depend only on agreed times (a global maximum).
 *
 * An operation with `calls` counts only the time of single calls, which it sums with measure_call. The length of a
 * batch is then chosen by the time of the whole batch.
 */
#ifndef MEASURE_H
#define MEASURE_H

#include "hosted.h"

#include <time.h>

enum { SLOW_SAMPLES = 2 };

/* Seconds that a point may take after its warm-up; cost of reading the clock in seconds. */
static double measure_budget = 0.02;
static double measure_clock;
static uint32_t measure_next_turn = 1;
/* Seconds of the last batch: of the calls summed by measure_call, and of the whole batch. */
static double measure_calls, measure_whole;

/* Messages of one window of message-rate and similar operations. */
enum { WINDOW = 64 };

struct operation {
    const char *name;
    void (*run)(size_t bytes, long n);
    double parts;    /* the time of one run is divided by this */
    size_t unit;     /* sizes are rounded down to a multiple of this; 0: the operation has no size */
    int pairs;       /* 1: needs an even number of tasks; 2: needs exactly two */
    int all_to_all;  /* 1: buffers hold a message for every task */
    int blocks;      /* messages for which buffers have room; 0: one */
    int nodes;       /* 1: needs a host and exactly one node */
    int calls;       /* 1: counts the time summed by measure_call, not that of the whole batch */
    struct operation *next;
};

/* All operations of this program. The source of each adds it before main begins. */
static struct operation *operations;

#define OPERATION(id, ...)                                                      \
    static struct operation operation_##id = {__VA_ARGS__};                     \
    __attribute__((constructor)) static void operation_add_##id(void)           \
    {                                                                           \
        operation_##id.next = operations;                                       \
        operations = &operation_##id;                                           \
    }

static double measure_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Returns the smallest of many measurements of the cost of reading the clock. */
static double measure_clock_cost(void)
{
    double best = 1;
    for (int round = 0; round < 20; round++) {
        double start = measure_now();
        for (int i = 0; i < 100; i++)
            measure_now();
        double each = (measure_now() - start) / 101;
        if (each < best)
            best = each;
    }
    return best;
}

/* Adds the time of a call that began at `start` and has just returned. */
static inline void measure_call(double start)
{
    measure_calls += measure_now() - start - measure_clock;
}

/* Returns the seconds that count. Sets measure_whole to those of the whole batch. */
static double measure_batch(const struct operation *op, size_t bytes, long n)
{
    payload_turn = measure_next_turn;
    measure_next_turn += (uint32_t)n;
    measure_calls = 0;
    double start = measure_now();
    op->run(bytes, n);
#ifdef MEASURE_DELAY
    /* Makes the program slower by this many per cent, to test whether the race detects it. */
    double end = start + (measure_now() - start) * (1 + MEASURE_DELAY / 100.0);
    while (measure_now() < end)
        ;
    measure_calls *= 1 + MEASURE_DELAY / 100.0;
#endif
    double took = measure_now() - start - measure_clock, counted = op->calls ? measure_calls : took;
    measure_whole = took > 0 ? took : 0;
    return counted > 0 ? counted : 0;
}

/* Runs a batch after a barrier. Returns the time of the slowest task at all tasks. */
static double measure_agreed(const struct operation *op, size_t bytes, long n)
{
    double mine[2], agreed[2] = {0, 0};
    meet();
    mine[0] = measure_batch(op, bytes, n);
    mine[1] = measure_whole;
    agree(mine, agreed, 2);
    measure_whole = agreed[1];
    return agreed[0];
}

static void measure_verify(const struct operation *op, size_t bytes)
{
    payload_whole = 1;
    measure_agreed(op, bytes, 1);
    payload_whole = 0;
}

/* Returns the batch length that takes about a sixteenth of the budget, but at least 100 us. */
static long measure_length(const struct operation *op, size_t bytes, double *took)
{
    double target = measure_budget / 16 > 1e-4 ? measure_budget / 16 : 1e-4;
    long n = 1;
    for (;;) {
        *took = measure_agreed(op, bytes, n);
        if (measure_whole >= target || n >= 1 << 24)
            return n;
        double wanted = measure_whole > 0 ? (double)n * target / measure_whole * 1.1 : (double)n * 16;
        n = wanted > (double)n * 16 ? n * 16 : (long)wanted + 1;
    }
}

static void measure_warm_up(const struct operation *op, size_t bytes, long n, double *took)
{
    double before[2] = {0, 0}, spent = 0;
    while (spent < measure_budget) {
        double low = *took, high = *took;
        for (int i = 0; i < 2; i++) {
            low = before[i] < low ? before[i] : low;
            high = before[i] > high ? before[i] : high;
        }
        if (low > 0 && high <= low * 1.1)
            return;
        before[0] = before[1];
        before[1] = *took;
        *took = measure_agreed(op, bytes, n);
        spent += measure_whole;
    }
}

static void measure_point(const struct operation *op, size_t bytes)
{
    double took, mine[MAX_SAMPLES], agreed[MAX_SAMPLES];
    measure_verify(op, bytes);
    long n = measure_length(op, bytes, &took);
    measure_warm_up(op, bytes, n, &took);
    double batch = measure_whole;
    int samples = batch > 0 && measure_budget / batch < MAX_SAMPLES ? (int)(measure_budget / batch) : MAX_SAMPLES;
    samples = samples < SLOW_SAMPLES ? SLOW_SAMPLES : samples;
    meet();
    for (int k = 0; k < samples; k++)
        mine[k] = measure_batch(op, bytes, n);
    agree(mine, agreed, (size_t)samples);
    if (me != 0)
        return;
    printf("point %s %zu %ld", op->name, bytes, n);
    for (int k = 0; k < samples; k++)
        printf(" %.6g", agreed[k] / (double)n / op->parts * 1e6);
    printf("\n");
    fflush(stdout);
}

#endif
