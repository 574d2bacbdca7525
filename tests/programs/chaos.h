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
    MAX_SUBGROUPS = 3,     /* of a crew at the same time, as far as one worker is in them */
    OWN_SIGNAL = SIGUSR1,  /* by which workers end themselves */
};
/* Tags of ORDERS beside the captain's events: words of workers, then orders of the captain. */
enum { JOINED = OWN_TAGS, REPORT, READY, MADE, LEAVING, RESULT, MAKE_FIRST, MAKE, GO_ON, STOP };

/* The members of a group. Each epoch has its own number, which all members know. */
struct crew {
    uint64_t epoch;
    int n, tids[MAX_MEMBERS];
};

/* The things that rounds consist of. */
#define KINDS(X) X(RING) X(PAIRS) X(FAN_IN) X(MESH) X(STRAY) X(MAKING) X(AGREEING) X(COLLECTIVES)
#define NAME_OF_KIND(name) name##_ROUND,
enum kind { KINDS(NAME_OF_KIND) ALL_KINDS };
extern const char *const names_of_kinds[ALL_KINDS];

/* The ends of operations. */
#define CLASSES(X) X(OK) X(DEAD) X(LEFT) X(REVOKED) X(CANCELLED)
#define NAME_OF_CLASS(name) CLASS_##name,
enum class { CLASSES(NAME_OF_CLASS) ALL_CLASSES };
extern const char *const names_of_classes[ALL_CLASSES];

/* Counted since a worker's last report. */
struct count {
    uint64_t epochs, revokes, shrinks, agreements, bytes;
    uint64_t kinds[ALL_KINDS], classes[ALL_CLASSES];
};

/* A worker's report of an epoch. */
struct report {
    struct crew before, after;
    uint64_t agreements, history;     /* how many there were, and all that came of them */
    uint64_t has_revoked, has_found;  /* groups of the epoch, a bit for each, that it has revoked, or found revoked */
    struct count count;
};

/* A group that the worker is in: the crew's own, or one that is made of it. */
struct area {
    rg_group group;
    int n, me, tids[MAX_MEMBERS];
    bool is_here;     /* this worker is in it */
    bool is_tied;     /* it is revoked together with the crew's own */
    bool is_revoked;  /* as far as this worker has been told */
    uint64_t bit;
};

extern struct area main_area, subgroups[MAX_SUBGROUPS];
extern struct count count;
extern bool has_failed; /* the epoch is to be left */

/* Says what is wrong, and ends this task. */
__attribute__((noreturn, format(printf, 1, 2))) void wrong(const char *form, ...);
/* Judges what a call in a group has ended with. `peer`: the task on which alone it depends, or RG_NONE. If it has failed, rightly, the epoch is left: all groups are
 * revoked. `was_begun`: it may have been under way when the group was revoked. */
bool judge(struct area *area, int code, int peer, bool was_begun);
/* Waits for a request, and judges that. */
bool finish(struct area *area, rg_request *request, int peer, rg_status *status);
void revoke_area(struct area *area);
/* All members of the crew agree whether all are fine. */
bool all_are_fine(bool is_fine);
/* At some of these places, this worker revokes the group, or ends itself. */
void maybe(void);

/* Plays a round: what is done follows from `random`, which all members have. */
void play_round(uint64_t random, int tag);
/* Ends what this worker has left under way: by cancelling it, or, if the groups are revoked, by waiting. */
void end_strays(bool is_revoked);
/* Forgets groups that are made of the crew's own. */
void free_subgroups(void);
void start_rounds(void);

int worker(uint64_t seed);

#endif
