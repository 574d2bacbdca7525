/*
 * measure.h: how an operation is timed.
 *
 * A sample is a batch: n operations between two readings of the clock, divided by n. Each task
 * times its own batches; the batch took as long as it did in the slowest task. The length n is
 * found by trial so that a batch is long against the clock; before samples are kept, batches run
 * until three in a row agree within 10 %, or the warm-up's share of the time is used up.
 *
 * All tasks take the same decisions, because they take them from agreed times (a global maximum).
 */
#ifndef MEASURE_H
#define MEASURE_H

#include "hosted.h"

#include <time.h>

enum { SLOW_SAMPLES = 2 };

/* Seconds a point may take once it is warm, and the cost of reading the clock. */
static double measure_budget = 0.02;
static double measure_clock;
static uint32_t measure_next_turn = 1;

struct operation {
    const char *name;
    void (*run)(size_t bytes, long n);
    double parts;    /* the time of one run is divided by this */
    size_t unit;     /* sizes are rounded down to a multiple; 0: the operation has no size */
    int pairs;       /* 1: needs an even number of tasks; 2: needs exactly two */
    int all_to_all;  /* 1: buffers hold a block for every task */
    int window;      /* buffers hold so many windows of messages */
    int apart;       /* 1: words in buffers lie apart */
    int nodes;       /* 1: needs exactly one node beside the host */
};

static double measure_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The smallest of many: what a reading costs when nothing interferes. */
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

static double measure_batch(const struct operation *op, size_t bytes, long n)
{
    payload_turn = measure_next_turn;
    measure_next_turn += (uint32_t)n;
    double start = measure_now();
    op->run(bytes, n);
#ifdef MEASURE_DELAY
    /* A program that is so many per cent slower on purpose, to see whether the race finds that out. */
    double end = start + (measure_now() - start) * (1 + MEASURE_DELAY / 100.0);
    while (measure_now() < end)
        ;
#endif
    double took = measure_now() - start - measure_clock;
    return took > 0 ? took : 0;
}

/* One batch after a barrier; all tasks get the time of the slowest. */
static double measure_agreed(const struct operation *op, size_t bytes, long n)
{
    double mine, agreed;
    meet();
    mine = measure_batch(op, bytes, n);
    agree(&mine, &agreed, 1);
    return agreed;
}

static void measure_verify(const struct operation *op, size_t bytes)
{
    payload_whole = 1;
    measure_agreed(op, bytes, 1);
    payload_whole = 0;
}

/* The batch length that takes about a sixteenth of the budget, at least 100 us. */
static long measure_length(const struct operation *op, size_t bytes, double *took)
{
    double target = measure_budget / 16 > 1e-4 ? measure_budget / 16 : 1e-4;
    long n = 1;
    for (;;) {
        *took = measure_agreed(op, bytes, n);
        if (*took >= target || n >= 1 << 24)
            return n;
        double wanted = *took > 0 ? (double)n * target / *took * 1.1 : (double)n * 16;
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
        spent += *took;
    }
}

static void measure_point(const struct operation *op, size_t bytes)
{
    double took, mine[MOST_SAMPLES], agreed[MOST_SAMPLES];
    measure_verify(op, bytes);
    long n = measure_length(op, bytes, &took);
    measure_warm_up(op, bytes, n, &took);
    int samples = took > 0 ? (int)(measure_budget / took) : MOST_SAMPLES;
    samples = samples > MOST_SAMPLES ? MOST_SAMPLES : samples < SLOW_SAMPLES ? SLOW_SAMPLES : samples;
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
