/*
 * The trials of `limit`, where there is a processor for each task. They choose how messages of each length go through
 * the rings, one by one and in streams, and how blocks go over the board. Memory that fits into the second-level cache
 * is best where two cores are close, more memory where they are not. Where they are far apart, taking lines away from
 * the reader takes longest, and stores that bypass the caches avoid that.
 */
#ifndef LIMIT_TRIALS_H
#define LIMIT_TRIALS_H

#include "board.h"

enum {
    TRIALS = 5,  /* measurements, of which the fastest counts */
    STREAM = 64, /* messages of a stream in a row */
};

static inline void env_send(const void *buf, size_t bytes, int to, int tag);
static inline void env_recv(void *buf, size_t bytes, int from, int tag);
static inline void env_stream(char *buf, size_t bytes, int n);
static inline void env_trade(const void *out, void *in, size_t bytes, int peer);

static inline double env_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Sends messages to and fro between tasks 0 and 1, enough for twice the window. Returns the time of one round trip in
 * seconds. Buffers are aligned to pages, and task 0 sends from one buffer and receives into another, as in the race:
 * the best way to copy depends on it. */
static inline double env_try_echo(char *buf, size_t bytes, size_t window)
{
    long n = (long)(2 * window / bytes) + 1;
    double start = env_seconds();
    for (long i = 0; i < n; i++) {
        if (env_my_rank == 0) {
            memcpy(buf, &i, sizeof i);
            env_send(buf, bytes, 1, 0);
            env_recv(buf + env_lengths[LENGTHS - 1], bytes, 1, 0);
        } else {
            env_recv(buf, bytes, 0, 0);
            env_send(buf, bytes, 0, 0);
        }
    }
    return (env_seconds() - start) / (double)n;
}

/* Sends as many messages in a row as the race does, enough for twice the window; long messages are exchanged in pairs
 * instead. Returns the time of STREAM messages, or of one exchange, in seconds. */
static inline double env_try_stream(char *buf, size_t bytes, size_t window)
{
    long n = (long)(2 * window / bytes / STREAM) + 1;
    double start = env_seconds();
    for (long i = 0; i < n; i++) {
        if (bytes > env_lengths[STREAMS - 1]) {
            env_trade(buf, buf + env_lengths[LENGTHS - 1], bytes, 1 - env_my_rank);
            continue;
        }
        env_stream(buf, bytes, STREAM);
        if (env_my_rank == 0)
            env_recv(NULL, 0, 1, 0);
        else
            env_send(NULL, 0, 0, 0);
    }
    return (env_seconds() - start) / (double)n;
}

/* Returns the time, in seconds, to write blocks on the board and read those of another task. */
static inline double env_try_board(char *buf, size_t bytes, size_t window)
{
    long n = (long)(2 * window / bytes) + 64;
    double start = env_seconds();
    for (long i = 0; i < n; i++) {
        env_board_meet(buf, bytes);
        memcpy(buf + env_lengths[LENGTHS - 1], env_board((env_my_rank + 1) % env_my_size, bytes), bytes);
    }
    return (env_seconds() - start) / (double)n;
}

/* Returns task 0's value of `chosen` at all tasks. */
static inline size_t env_agree(int choice, size_t chosen)
{
    if (env_my_rank == 0)
        atomic_store_explicit(&env_shared->choices[choice], chosen, memory_order_release);
    env_board_meet(NULL, 0);
    chosen = atomic_load_explicit(&env_shared->choices[choice], memory_order_acquire);
    env_board_meet(NULL, 0);
    return chosen;
}

/* Adopts a setting. Choices are numbered echoes first, then streams, then blocks on the board. */
static inline void env_adopt(int choice, size_t chosen)
{
    size_t window = chosen & ~(size_t)(FRONT | PAST);
    if (choice < 2 * LENGTHS) {
        env_ways[choice / LENGTHS][choice % LENGTHS] = (struct way){window, (chosen & FRONT) != 0, (chosen & PAST) != 0};
        return;
    }
    int block = choice - 2 * LENGTHS;
    env_areas[block].turns = window / env_blocks[block];
    env_areas[block].past = (chosen & PAST) != 0;
}

/* Returns the fastest of TRIALS measurements with these settings. */
static inline double env_fastest(char *buf, int choice, size_t chosen)
{
    double fastest = 1e9;
    chosen = env_agree(choice, chosen);
    env_adopt(choice, chosen);
    size_t window = chosen & ~(size_t)(FRONT | PAST);
    for (int trial = 0; buf && trial < TRIALS + 1; trial++) {
        double took = choice >= 2 * LENGTHS ? env_try_board(buf, env_blocks[choice - 2 * LENGTHS], window)
                      : choice >= LENGTHS   ? env_try_stream(buf, env_lengths[choice - LENGTHS], window)
                                            : env_try_echo(buf, env_lengths[choice], window);
        /* The first measurement touches the memory. */
        if (trial > 0 && took < fastest)
            fastest = took;
    }
    return fastest;
}

/* Chooses and adopts a setting: the smallest window, unless a larger one is faster by more than the noise; then
 * starting at the front or bypassing the caches, if that is better. */
static inline size_t env_choose(char *buf, int choice, size_t narrowest, size_t widest, size_t step)
{
    double best = 1e9;
    size_t chosen = narrowest;
    for (size_t window = widest; window >= narrowest; window /= step) {
        double fastest = env_fastest(buf, choice, window);
        if (fastest < best * 1.03) {
            best = fastest < best ? fastest : best;
            chosen = window;
        }
    }
    double front = choice < 2 * LENGTHS ? env_fastest(buf, choice, chosen | FRONT) : 1e9;
    double past = env_fastest(buf, choice, narrowest | PAST);
    if (past < best * 0.97 && past < front)
        chosen = narrowest | PAST;
    else if (front < best * 1.03)
        chosen |= FRONT;
    chosen = env_agree(choice, chosen);
    env_adopt(choice, chosen);
    return chosen;
}

/* Adopts the settings used where nothing is tried out. */
static inline void env_choose_nothing(void)
{
    for (int choice = 0; choice < 2 * LENGTHS; choice++)
        env_adopt(choice, env_crowded && env_lengths[choice % LENGTHS] < 2 * CROWDED ? CROWDED : NARROW);
    for (int block = 0; block < BLOCKS; block++)
        env_adopt(2 * LENGTHS + block, 2 * env_blocks[block]);
}

/* Tries out all settings: tasks 0 and 1 those of the rings, all tasks those of the board. */
static inline void env_choose_all(size_t chosen[CHOICES])
{
    size_t most = 2 * env_lengths[LENGTHS - 1];
    char *buf = aligned_alloc(4096, most), *pair = env_my_rank < 2 ? buf : NULL;
    if (!buf)
        env_fail("malloc", "no memory to try out the ways of messages");
    memset(buf, 1, most);
    for (int length = 0; length < LENGTHS; length++)
        chosen[length] = env_choose(pair, length, NARROW, RING, 2);
    for (int length = 0; length < LENGTHS; length++)
        chosen[LENGTHS + length] = env_choose(pair, LENGTHS + length, NARROW, RING, 2);
    for (int block = 0; block < BLOCKS; block++)
        chosen[2 * LENGTHS + block] = env_choose(buf, 2 * LENGTHS + block, 2 * env_blocks[block], AREA, 4);
    free(buf);
}

#endif
