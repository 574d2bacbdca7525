/* Shared by the captain and the workers of the soak (soak.c, soak_worker.c). */
#ifndef SOAK_H
#define SOAK_H

#include <regatta.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ORDERS RG_CHANNEL(1)  /* captain to workers and back, and the captain's events */
#define TRAFFIC RG_CHANNEL(2) /* between workers */

enum { MOST_TASKS = 4096, PATIENCE = 60 };
/* Tags of ORDERS. ACCUSED: a worker says that a call has told it that this task is gone. */
enum { ROSTER = 1, STOP, RESULT, EXIT, LOST, ADDED, ACCUSED };

/* Ways to send and ways to complete, each counted. */
#define WAYS(X)                                                                                                         \
    X(SEND) X(SSEND) X(BSEND) X(SENDV) X(BSENDV) X(ISEND) X(ISSEND) X(ISENDV) X(LOAN) X(CALLED_SEND)                     \
    X(RECV) X(RECVV) X(RECV_WITHIN) X(LOAN_RECV) X(IRECV) X(IRECVV) X(CALLED_RECV)                                       \
    X(WAITANY) X(TESTANY) X(TEST_BY_FD) X(COLLECTIVE)
#define NAME_OF_WAY(name) name,
enum way { WAYS(NAME_OF_WAY) ALL_WAYS };

/* A worker's report: everything it has counted. */
struct result {
    uint64_t sent, received, bytes, rounds;
    uint64_t lost, doubled, disordered, damaged;
    uint64_t ways[ALL_WAYS];
};

struct accusation {
    int tid, code;
};

__attribute__((noreturn)) static inline void give_up(const char *what)
{
    fprintf(stderr, "FAIL task %d: %s: %s\n", rg_tid(), what, rg_last_error());
    _exit(3);
}

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != RG_OK)                                                                       \
            give_up(#call);                                                                        \
    } while (0)

static inline uint64_t hash(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline bool is_gone(int code) { return code == RG_ERR_DEAD || code == RG_ERR_LEFT; }

int worker(uint64_t seed);

#endif
