/* Shared by the programs of fleets: a captain that starts workers on all hosts and hears of their ends (fleet.c), and ways to send and to receive. */
#ifndef FLEET_H
#define FLEET_H

#include <regatta.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ORDERS RG_CHANNEL(1) /* captain to workers and back, and the captain's events */

enum {
    MAX_TASKS = 4096,       /* of a job, one after the other */
    MAX_HOSTS = 64,
    STALL_SECONDS = 60,     /* a task in which nothing has happened for so long ends itself */
    MAX_LENGTH = 4 << 20,   /* bytes of a message */
};
/* Tags of the captain's events in ORDERS; each program's own follow. ACCUSED: a call has told a worker that a task is gone. */
enum { EXIT = 1, LOST, ADDED, ACCUSED, OWN_TAGS };

/* Ways to send and ways to complete, each counted. */
#define WAYS(X)                                                                                                         \
    X(SEND) X(SSEND) X(BSEND) X(SENDV) X(BSENDV) X(ISEND) X(ISSEND) X(ISENDV) X(LOAN) X(CALLED_SEND)                     \
    X(RECV) X(RECVV) X(RECV_WITHIN) X(LOAN_RECV) X(IRECV) X(IRECVV) X(CALLED_RECV)                                       \
    X(WAITANY) X(TESTANY) X(TEST_BY_FD) X(COLLECTIVE)
#define NAME_OF_WAY(name) name,
enum way { WAYS(NAME_OF_WAY) ALL_WAYS };
extern const char *const names_of_ways[ALL_WAYS];

struct accusation {
    int tid, code;
    char said[200]; /* the sentence of the error */
};

/* A worker, as the captain knows it. */
struct crewman {
    int host;            /* the number of the host where it runs, or -1: it does not */
    bool done;           /* it has reported, and nothing more is expected of it */
    bool has_left;       /* it has said that it leaves */
    bool owes_word;      /* it has ended well, and its last word has not come */
    bool was_killed;     /* it has ended by a signal, with its host, or with a status of failure */
    bool is_called_dead; /* somebody has been told that it has died */
    bool is_called_left; /* or that it has left */
    bool is_called_gone; /* or one of the two */
    struct accusation first; /* the first word of that */
};

/* The ends of workers, by their causes, and the hosts that came and went. */
struct losses {
    int killed, lost_workers, lost_hosts, added_hosts, by_themselves, failures;
};

extern struct crewman crewmen[MAX_TASKS];
extern int ids_given; /* task ids from here on have not been given */
extern int spawned;
extern struct losses losses;

static inline uint64_t hash(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

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

static inline bool is_gone(int code) { return code == RG_ERR_DEAD || code == RG_ERR_LEFT; }

/* Choices of this task alone, by the dice that its program has set. */
extern uint64_t dice;
static inline uint64_t roll(void) { return dice = hash(dice); }
static inline bool one_in(uint64_t sides) { return roll() % sides == 0; }

/* A length, up to MAX_LENGTH, that `random` stands for. Most are small; many are just below and above the sizes at which a message of this head takes
 * another way; a few are megabytes. */
size_t length_of(uint64_t random, size_t head);
/* Describes the bytes by views: the front whole, then pieces side by side. Returns their number. */
int views_of(char *bytes, size_t length, rg_view views[3]);

/* Sends in this way; `request` is set by the ways that start a send. */
int send_by(enum way way, char *bytes, size_t length, int to, int tag, rg_group group, rg_request *request);
/* Whether this way starts a send, which has to be completed. */
static inline bool is_started(enum way way) { return way == ISEND || way == ISSEND || way == ISENDV; }
/* Receives in this way, which waits, into `bytes`. */
int receive_by(enum way way, char *bytes, size_t length, int from, int tag, rg_group group, rg_status *status);

/* ---- captain ---- */

/* Nobody has been started, and the captain is told of hosts that are lost and added. */
void begin_captain(void);
/* Starts some on this host, or wherever there is room, together. */
void start_workers(const char *program, const char *host, int missing, const char *seed);
/* Starts what is missing on each host, where `per_host` workers are to be. The first are started together, so that they have one world, on all hosts. */
void start_missing(const char *program, int per_host, const char *seed);
/* Waits until something may have come in ORDERS, or it is this time (rg_time). */
void await_word(double until);
/* Deals with an event that came with this tag, if it is one. True: it was. `own_signal`: by which workers may end themselves, or 0. */
bool take_event(int tag, const rg_event *event, int own_signal);
void take_accusation(const struct accusation *accusation);
/* How many workers others were told to be gone, though they are not, or not in that way; prints each. */
int count_wrongly_called(void);
bool is_alive(int tid);
/* It has ended well, and has neither reported nor said that it leaves. */
bool owes_word(int tid);

#endif
