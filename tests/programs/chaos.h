/* Shared by the captain and the workers of the chaos run (chaos.c, chaos_worker.c, chaos_rounds.c). */
#ifndef CHAOS_H
#define CHAOS_H

#include "fleet.h"
#include <signal.h>

#ifdef OVER_MPI
enum { IS_OVER_MPI = 1 };
#else
enum { IS_OVER_MPI = 0 };
#endif

enum {
    MAX_MEMBERS = 64,
    MAX_SUBGROUPS = 3,     /* of a crew at the same time, that one worker is a member of */
    OWN_SIGNAL = SIGUSR1,  /* the signal by which workers end themselves */
};
/* Tags in ORDERS besides those of the captain's events: reports of workers, then orders of the captain. */
enum { JOINED = OWN_TAGS, REPORT, READY, MADE, LEAVING, RESULT, MAKE_FIRST, MAKE, GO_ON, STOP };

/* The members of a group. Each epoch has a unique number that all members know. */
struct crew {
    uint64_t epoch;
    int n, tids[MAX_MEMBERS];
};

/* The kinds of rounds. */
#define KINDS(X) X(RING) X(PAIRS) X(FAN_IN) X(MESH) X(STRAY) X(MAKING) X(AGREEING) X(COLLECTIVES)
#define NAME_OF_KIND(name) name##_ROUND,
enum kind { KINDS(NAME_OF_KIND) ALL_KINDS };
extern const char *const names_of_kinds[ALL_KINDS];

/* The outcomes of operations. */
#define CLASSES(X) X(OK) X(DEAD) X(LEFT) X(REVOKED) X(CANCELLED)
#define NAME_OF_CLASS(name) CLASS_##name,
enum class { CLASSES(NAME_OF_CLASS) ALL_CLASSES };
extern const char *const names_of_classes[ALL_CLASSES];

/* Counts since a worker's last report. */
struct count {
    uint64_t epochs, revokes, shrinks, agreements, bytes;
    uint64_t kinds[ALL_KINDS], classes[ALL_CLASSES];
};

/* A worker's report about an epoch. */
struct report {
    struct crew before, after;
    uint64_t agreements, history;     /* their number, and a hash of their results */
    uint64_t has_revoked, has_found;  /* bits of the epoch's groups that it has revoked, or found revoked */
    struct count count;
};

/* A group that the worker may be in: the crew's own, or one made from it. */
struct area {
    rg_group group;
    int n, me, tids[MAX_MEMBERS];
    bool is_here;     /* this worker is a member */
    bool is_tied;     /* it is revoked together with the crew's own group */
    bool is_revoked;  /* as far as this worker has been notified */
    uint64_t bit;
};

extern struct area main_area, subgroups[MAX_SUBGROUPS];
extern struct count count;
extern bool has_failed; /* whether this worker must leave the epoch */

/* Prints what is wrong, and ends this task. */
__attribute__((noreturn, format(printf, 1, 2))) void wrong(const char *form, ...);
/*
 * Checks the result of a call in a group. `peer` is the task that the call depends on, or RG_NONE. If the call has
 * failed for a valid reason, leaves the epoch by revoking all groups. `was_begun` says that the call may have been in
 * progress when the group was revoked.
 */
bool judge(struct area *area, int code, int peer, bool was_begun);
/* Waits for a request, and judges its result. */
bool finish(struct area *area, rg_request *request, int peer, rg_status *status);
void revoke_area(struct area *area);
/* Has all members of the crew agree whether all are fine. */
bool all_are_fine(bool is_fine);
/* At random, lets this worker revoke the group, or end itself. Called in many places. */
void maybe(void);

/* Plays a round. What is done follows from `random`, which all members have. */
void play_round(uint64_t random, int tag);
/*
 * Ends the operations that this worker has left pending: cancels them, or, if the groups are revoked, waits for them.
 */
void end_strays(bool is_revoked);
/* Forgets the groups that were made from the crew's own. */
void free_subgroups(void);
void start_rounds(void);

int worker(uint64_t seed);

#endif
