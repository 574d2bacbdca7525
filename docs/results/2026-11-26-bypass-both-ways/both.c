/*
 * Two tasks on different hosts that say 8 bytes to each other at the same time, over and over. Before each turn one of them computes while
 * the other one waits and falls asleep, then the other way round: so both use the connection when the turn begins. Prints, for each
 * 64 rounds of a turn, the median over the turns of the time of a round, in microseconds.
 */
#define _GNU_SOURCE
#include <regatta.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { TURNS = 30, PARTS = 16, ROUNDS = 64 };

static int me;

static void both_say(int rounds)
{
    char said[8] = { 0 }, heard[8];
    while (rounds--) {
        rg_send(said, sizeof said, 1 - me, 1, RG_WORLD);
        rg_recv(heard, sizeof heard, 1 - me, 1, RG_WORLD, NULL);
    }
}

static int compare(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

int main(void)
{
    static double took[PARTS][TURNS];
    rg_init();
    me = rg_rank(RG_WORLD);
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(me, &own);
    sched_setaffinity(0, sizeof own, &own);
    rg_barrier(RG_WORLD);
    for (int turn = 0; turn < TURNS; turn++) {
        for (int one = 0; one < 2; one++) {
            for (double begun = rg_time(); me == one && rg_time() < begun + 0.02;)
                continue;
            both_say(4);
        }
        for (int part = 0; part < PARTS; part++) {
            double begun = rg_time();
            both_say(ROUNDS);
            took[part][turn] = (rg_time() - begun) * 1e6 / ROUNDS;
        }
    }
    for (int part = 0; me == 0 && part < PARTS; part++) {
        qsort(took[part], TURNS, sizeof(double), compare);
        printf("%.1f%s", took[part][TURNS / 2], part + 1 < PARTS ? " " : "\n");
    }
    rg_finalize();
    return 0;
}
