/*
 * How far apart the processors are, for `limit`: the hypervisor may move them while the tasks run.
 *
 * The best settings of messages depend on how long a cache line takes from one task to the other. So barriers measure
 * that every few milliseconds. Each task remembers the best settings of each distance for a while only: the machine may
 * have been busy or moving processors when they were tried out.
 */
#ifndef LIMIT_DISTANCE_H
#define LIMIT_DISTANCE_H

#include "trials.h"

enum {
    DISTANCES = 3,     /* two threads of one core, close cores, cores far apart */
    ROUNDS = 32,       /* rounds of the board in one measurement */
    MEASUREMENT_INTERVAL_MS = 10,  /* milliseconds between two measurements */
    ROW = 1024,        /* barriers in a row between two reads of the clock */
    WHILE = 20000,     /* milliseconds after which the settings of a distance are tried out again */
    OTHERWISE = 160,   /* per cent: a time that differs by more means another distance */
    ATTEMPTS = 3,      /* how often trials are repeated if the distance changed during them */
};

static struct {
    size_t picoseconds; /* time of a round of the board; 0: not measured yet */
    int64_t tried;      /* time of the trials in milliseconds; task 0's is used */
    size_t chosen[CHOICES];
} env_distances[DISTANCES];
static int env_distance;
/* On task 0: whether a measurement follows the next barrier; time of the last one, in milliseconds. */
static uint64_t env_due;
static int64_t env_looked;

static inline int64_t env_milliseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Returns the time of a round of the board, in picoseconds, as task 0 measures it. */
static inline size_t env_measure_distance(void)
{
    double fastest = 1;
    for (int trial = 0; trial < TRIALS; trial++) {
        double start = env_seconds();
        for (int i = 0; i < ROUNDS; i++)
            env_board_meet(NULL, 0);
        double took = (env_seconds() - start) / ROUNDS;
        fastest = took < fastest ? took : fastest;
    }
    return env_agree(CHOICES, (size_t)(fastest * 1e12) + 1);
}

static inline int env_differ(size_t a, size_t b)
{
    return a > b * OTHERWISE / 100 || b > a * OTHERWISE / 100;
}

/* Measures the distance of the tasks, and adopts the settings that are best there. All tasks call it. */
static void env_look_at_distance(void)
{
    int before = env_distance;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        size_t now = env_measure_distance();
        env_distance = 0;
        while (env_distance < DISTANCES - 1 && env_distances[env_distance].picoseconds
               && env_differ(now, env_distances[env_distance].picoseconds))
            env_distance++;
        int64_t age = env_milliseconds() - env_distances[env_distance].tried;
        if (env_distances[env_distance].picoseconds && env_agree(CHOICES, age < WHILE))
            break;
        env_choose_all(env_distances[env_distance].chosen);
        before = env_distance;
        if (attempt + 1 < ATTEMPTS && env_differ(now, env_measure_distance()))
            continue;
        env_distances[env_distance].picoseconds = now;
        env_distances[env_distance].tried = env_milliseconds();
    }
    for (int choice = 0; choice < CHOICES && env_distance != before; choice++)
        env_adopt(choice, env_distances[env_distance].chosen[choice]);
    env_due = 0;
    env_looked = env_milliseconds();
}

/* On task 0, sets `env_due` if a measurement is due. Reading the clock takes as long as half a barrier, so barriers in
 * a row read it only every ROW-th time. */
static inline void env_look_at_clock(uint64_t barrier)
{
    static uint64_t turn, sent;
    uint64_t sent_now = env_out[1].line + env_out[1].at;
    if (env_my_rank == 0 && (env_turn != turn || sent_now != sent || barrier % ROW == 0))
        env_due = env_milliseconds() - env_looked >= MEASUREMENT_INTERVAL_MS;
    turn = env_turn;
    sent = sent_now;
}

#endif
