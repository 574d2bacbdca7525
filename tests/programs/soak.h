/* Shared by the captain and the workers of the soak (soak.c, soak_worker.c). */
#ifndef SOAK_H
#define SOAK_H

#include "fleet.h"

#define TRAFFIC RG_CHANNEL(2) /* between workers */

/* Tags in ORDERS besides those of the captain's events. */
enum { ROSTER = OWN_TAGS, STOP, RESULT };

/* A worker's report: all its counters. */
struct result {
    uint64_t sent, received, bytes, rounds;
    uint64_t lost, doubled, disordered, damaged;
    uint64_t ways[ALL_WAYS];
};

int worker(uint64_t seed);

#endif
