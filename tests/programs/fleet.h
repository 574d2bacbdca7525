/*
 * Shared by the programs of fleets: a captain that starts workers on all hosts and is notified of their ends (fleet.c),
 * and ways to send and to receive.
 */
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
    MAX_TASKS = 4096,       /* of a job over its whole life */
    MAX_HOSTS = 64,
    STALL_SECONDS = 60,     /* a task without progress for this long ends itself */
    MAX_LENGTH = 4 << 20,   /* bytes of a message */
};
/*
 * Tags of the captain's events in ORDERS; each program's own tags follow. ACCUSED: a worker got an error that a task is
 * gone.
 */
enum { EXIT = 1, LOST, ADDED, ACCUSED, OWN_TAGS };

/* Ways to send and ways to complete, with a counter for each. */
#define WAYS(X)                                                                                                         \
    X(SEND) X(SSEND) X(BSEND) X(SENDV) X(BSENDV) X(ISEND) X(ISSEND) X(ISENDV) X(LOAN) X(CALLED_SEND)                     \
    X(RECV) X(RECVV) X(RECV_WITHIN) X(LOAN_RECV) X(IRECV) X(IRECVV) X(CALLED_RECV)                                       \
    X(WAITANY) X(TESTANY) X(TEST_BY_FD) X(COLLECTIVE)
#define NAME_OF_WAY(name) name,
enum way { WAYS(NAME_OF_WAY) ALL_WAYS };
extern const char *const names_of_ways[ALL_WAYS];

struct accusation {
    int tid, code;
    char said[200]; /* text of the error */
};

/* The captain's state of a worker. */
struct crewman {
    int host;            /* number of the host where it runs, or -1 if it does not run */
    bool done;           /* it has reported, and no further message is expected */
    bool has_left;       /* it has announced that it leaves */
    bool owes_word;      /* it has exited normally, but its last report has not arrived */
    bool was_killed;     /* it has ended by a signal, with its host, or with a failure status */
    bool is_called_dead; /* some worker got the error that it has died */
    bool is_called_left; /* some worker got the error that it has left */
    bool is_called_gone; /* some worker got one of the two errors */
    struct accusation first; /* the first of these errors */
};

/* Ends of workers by cause, and hosts that were lost and added. */
struct losses {
    int killed, lost_workers, lost_hosts, added_hosts, by_themselves, failures;
};

extern struct crewman crewmen[MAX_TASKS];
extern int ids_given; /* first task id that has not been assigned yet */
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

/* Random choices of this task alone. The program sets the seed. */
extern uint64_t dice;
static inline uint64_t roll(void) { return dice = hash(dice); }
static inline bool one_in(uint64_t sides) { return roll() % sides == 0; }

/*
 * Maps `random` to a length of at most MAX_LENGTH. Most are small; many are just below and above the sizes at which a
 * message with a header of `head` bytes takes another path; a few are megabytes.
 */
size_t length_of(uint64_t random, size_t head);
/* Describes the bytes by views: the front as a whole, then adjacent pieces. Returns the number of views. */
int views_of(char *bytes, size_t length, rg_view views[3]);

/* Sends in this way. Sets `request` if the way is nonblocking. */
int send_by(enum way way, char *bytes, size_t length, int to, int tag, rg_group group, rg_request *request);
/* Returns whether this way is nonblocking, so that its request has to be completed. */
static inline bool is_started(enum way way) { return way == ISEND || way == ISSEND || way == ISENDV; }
/* Receives into `bytes` in this way, which blocks. */
int receive_by(enum way way, char *bytes, size_t length, int from, int tag, rg_group group, rg_status *status);

/* ---- captain ---- */

/* Initializes the captain: no workers yet, and requests notices of lost and added hosts. */
void begin_captain(void);
/* Starts workers together, on this host or wherever there is room. */
void start_workers(const char *program, const char *host, int missing, const char *seed);
/*
 * Starts the missing workers on each host, which is to have `per_host`. The first are started together on all hosts, so
 * that they have one world.
 */
void start_missing(const char *program, int per_host, const char *seed);
/* Waits until something may have arrived in ORDERS, or until this time (rg_time). */
void await_word(double until);
/*
 * Handles an event that arrived with this tag. Returns false if the message is not an event. `own_signal` is the signal
 * by which workers may end themselves, or 0.
 */
bool take_event(int tag, const rg_event *event, int own_signal);
void take_accusation(const struct accusation *accusation);
/* Prints each worker that others were wrongly told to be dead or to have left. Returns their number. */
int count_wrongly_called(void);
bool is_alive(int tid);
/* Returns whether it has exited normally, without a report or notice that it leaves. */
bool owes_word(int tid);

#endif
