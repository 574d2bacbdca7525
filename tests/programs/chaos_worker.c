/*
 * A worker of the chaos run. It is a member of a crew that has a group. An epoch is the time from one agreement of the
 * whole crew to the next, with random rounds (chaos_rounds.c) in between, which all members play in the same order.
 *
 * A worker that gets the error that another one is gone, or that the group is revoked, revokes all groups of the epoch,
 * so that no member waits for it, and goes to the agreement at the end of the epoch. All others arrive there as well,
 * because they get an error, or because they have finished. If not all are fine, the crew's group is shrunk, and the
 * next epoch begins with the survivors. Random workers revoke the group, leave, or end themselves, at any point.
 *
 * `judge` accepts an error by these rules (docs/failures.md, regatta.h):
 *
 *   DEAD, LEFT   the error text names a member of the group, the peer if there is one; that task has died or left (the
 *                captain compares)
 *   REVOKED      the group is revoked from then on; a member has revoked it (the captain compares)
 *   others       are wrong
 *
 * A call that begins when the group is known to be revoked must return REVOKED. Collectives fail once a death is known.
 * Agreements return the same flag and the same error to all members, and shrinking returns the same members: the
 * captain compares the reports about an epoch.
 */
#include "chaos.h"
#include <pthread.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <time.h>

enum { MAX_ROUNDS = 48 };

struct area main_area, subgroups[MAX_SUBGROUPS];
struct count count;
bool has_failed;

static struct crew crew;
static struct report report;
static bool is_over;    /* the epoch is over: all have agreed that not all are fine */
static bool is_counted; /* this epoch has not ended by agreement yet, so a group that is found revoked was revoked in it */
static bool accused[MAX_TASKS];
static int captain;
static rg_group old = {-1}; /* the group of an earlier epoch, not freed yet */
static char doing[200] = "starting";

/* ---- what is right ---- */

void wrong(const char *form, ...)
{
    char text[400];
    va_list arguments;
    va_start(arguments, form);
    vsnprintf(text, sizeof text, form, arguments);
    va_end(arguments);
    fprintf(stderr, "FAIL task %d, %s: %s\n", rg_tid(), doing, text);
    _exit(3);
}

static void stalled(int number)
{
    static const char what[] = "FAIL a task has stalled, ";
    (void)number;
    if (write(2, what, sizeof what - 1) < 0 || write(2, doing, strlen(doing)) < 0 || write(2, "\n", 1) < 0)
        _exit(5);
    _exit(4);
}

static void accuse(int tid, int code)
{
    if (accused[tid])
        return;
    accused[tid] = true;
    struct accusation word = {.tid = tid, .code = code};
    snprintf(word.said, sizeof word.said, "%.80s: %.110s", doing, rg_last_error());
    OK(rg_bsend(&word, sizeof word, captain, ACCUSED, ORDERS));
}

static bool is_member(int tid, const int *tids, int n)
{
    for (int i = 0; i < n; i++)
        if (tids[i] == tid)
            return true;
    return false;
}

/* Returns the task that the last error names. */
static int named(int code)
{
    int tid;
    const char *said = strstr(rg_last_error(), "task ");
    if (said == NULL || sscanf(said, "task %d", &tid) != 1 || tid < 0 || tid >= MAX_TASKS)
        wrong("error %d names nobody: %s", code, rg_last_error());
    return tid;
}

static struct area *area_of(int i) { return i < 0 ? &main_area : &subgroups[i]; }

/* Notes that the group and all groups tied to it are revoked. Returns their bits. */
static uint64_t note_revoked(struct area *area)
{
    uint64_t bits = area->bit;
    area->is_revoked = true;
    for (int i = -1; i < MAX_SUBGROUPS; i++) {
        struct area *other = area_of(i);
        bool together = (area == &main_area || area->is_tied) && (other == &main_area || other->is_tied);
        if (other->is_here && together) {
            other->is_revoked = true;
            bits |= other->bit;
        }
    }
    return bits;
}

void revoke_area(struct area *area)
{
    if (!area->is_here)
        return;
    report.has_revoked |= note_revoked(area);
    OK(rg_group_revoke(area->group));
    count.revokes++;
}

/* A thread that revokes the crew's group at some moment. */
static struct {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t over_or_time;
    uint64_t nanoseconds;
    bool is_armed, is_over, has_revoked, kills;
} timer = {.lock = PTHREAD_MUTEX_INITIALIZER, .over_or_time = PTHREAD_COND_INITIALIZER};

static void *await_moment(void *group)
{
    struct timespec end;
    timespec_get(&end, TIME_UTC);
    uint64_t nanoseconds = (uint64_t)end.tv_nsec + timer.nanoseconds;
    end.tv_sec += (time_t)(nanoseconds / 1000000000);
    end.tv_nsec = (long)(nanoseconds % 1000000000);
    pthread_mutex_lock(&timer.lock);
    while (!timer.is_over && pthread_cond_timedwait(&timer.over_or_time, &timer.lock, &end) == 0)
        continue;
    if (!timer.is_over && timer.kills)
        raise(OWN_SIGNAL);
    timer.has_revoked = !timer.is_over;
    pthread_mutex_unlock(&timer.lock);
    if (timer.has_revoked)
        OK(rg_group_revoke(*(rg_group *)group));
    return NULL;
}

static void arm(bool kills)
{
    timer.is_armed = true;
    timer.is_over = timer.has_revoked = false;
    timer.kills = kills;
    timer.nanoseconds = roll() % (one_in(2) ? 2000000 : 200000000);
    if (pthread_create(&timer.thread, NULL, await_moment, &main_area.group) != 0)
        give_up("pthread_create");
}

/* Stops the thread. Returns whether it has revoked the group. */
static bool disarm(void)
{
    if (!timer.is_armed)
        return false;
    pthread_mutex_lock(&timer.lock);
    timer.is_over = true;
    pthread_cond_signal(&timer.over_or_time);
    pthread_mutex_unlock(&timer.lock);
    pthread_join(timer.thread, NULL);
    timer.is_armed = false;
    if (timer.has_revoked) {
        report.has_revoked |= note_revoked(&main_area);
        count.revokes++;
    }
    return timer.has_revoked;
}

/* Checks that in a group with a dead member a barrier fails, and so does a send to that member. */
static void try_after_death(struct area *area, int dead)
{
    char byte = 0;
    int code = rg_barrier(area->group), rank = rg_rank_of(area->group, dead);
    if (code != RG_ERR_DEAD && code != RG_ERR_REVOKED)
        wrong("task %d is dead, and a barrier gives %d", dead, code);
    code = rg_send(&byte, one_in(2), rank, 0, area->group);
    if (code != RG_ERR_REVOKED && (code != RG_ERR_DEAD || named(code) != dead))
        wrong("task %d is dead, and a send to it gives %d: %s", dead, code, rg_last_error());
}

/* Checks that in a group that is known to be revoked every call returns that error. */
static void try_after_revocation(struct area *area)
{
    char byte = 0;
    int peer = (int)(roll() % (uint64_t)area->n), code = RG_OK, found;
    rg_request request;
    rg_group made;
    switch (roll() % 7) {
    case 0: code = rg_send(&byte, 1, peer, 0, area->group); break;
    case 1: code = rg_isend(&byte, 1, peer, 0, area->group, &request); break;
    case 2: code = rg_recv(&byte, 1, one_in(2) ? peer : RG_ANY, RG_ANY, area->group, NULL); break;
    case 3: code = rg_irecv(&byte, 1, peer, 0, area->group, &request); break;
    case 4: code = rg_iprobe(peer, RG_ANY, area->group, &found, NULL); break;
    case 5: code = rg_barrier(area->group); break;
    default: code = rg_group_dup(area->group, &made);
    }
    if (code != RG_ERR_REVOKED || rg_group_is_revoked(area->group) != 1)
        wrong("the group is revoked, and a call gives %d: %s", code, code == RG_OK ? "" : rg_last_error());
}

/* Does nothing more in this epoch, and revokes its groups so that no member waits for this worker. */
static void abandon(struct area *area)
{
    if (has_failed)
        return;
    has_failed = true;
    if (!area->is_revoked || one_in(2))
        revoke_area(area);
    revoke_area(&main_area);
    for (int i = 0; i < MAX_SUBGROUPS; i++)
        revoke_area(&subgroups[i]);
    if (one_in(2))
        try_after_revocation(area);
    if (one_in(2))
        try_after_revocation(&main_area);
}

void maybe(void)
{
    if (one_in(3000))
        raise(OWN_SIGNAL);
    if (one_in(1500))
        abandon(&main_area);
}

bool judge(struct area *area, int code, int peer, bool was_begun)
{
    if (area->is_revoked && !was_begun && code != RG_ERR_REVOKED)
        wrong("the group was revoked, and a call gives %d", code);
    switch (code) {
    case RG_OK: count.classes[CLASS_OK]++; return true;
    case RG_ERR_REVOKED:
        count.classes[CLASS_REVOKED]++;
        report.has_found |= is_counted ? area->bit : 0;
        note_revoked(area);
        if (rg_group_is_revoked(area->group) != 1)
            wrong("a call gives REVOKED, and the group is not revoked");
        break;
    case RG_ERR_DEAD:
    case RG_ERR_LEFT: {
        int tid = named(code);
        count.classes[code == RG_ERR_DEAD ? CLASS_DEAD : CLASS_LEFT]++;
        if (!is_member(tid, area->tids, area->n) || (peer != RG_NONE && tid != peer))
            wrong("error %d is not about task %d or not about a member: %s", code, peer, rg_last_error());
        accuse(tid, code);
        if (code == RG_ERR_DEAD && !has_failed && one_in(2))
            try_after_death(area, tid);
        break;
    }
    default: wrong("wrong class %d: %s", code, rg_last_error());
    }
    abandon(area);
    return false;
}

bool finish(struct area *area, rg_request *request, int peer, rg_status *status)
{
    rg_status own;
    return judge(area, rg_wait(request, status != NULL ? status : &own), peer, true);
}

/* ---- epochs ---- */

bool all_are_fine(bool is_fine)
{
    for (int tries = 0;; tries++) {
        int dead, flag, own = 1 << (1 + main_area.me % 30);
        OK(rg_acknowledge_dead(main_area.group, &dead));
        is_fine &= dead == 0;
        flag = ~own & (is_fine ? ~0 : ~1);
        int code;
        if (one_in(2)) {
            code = rg_agree(&flag, main_area.group);
        } else {
            rg_request request;
            OK(rg_iagree(&flag, main_area.group, &request));
            maybe();
            code = rg_wait(&request, NULL);
        }
        count.agreements++;
        report.agreements++;
        report.history = hash(report.history ^ (uint64_t)(uint32_t)flag ^ (uint64_t)(uint32_t)code << 32);
        if ((code != RG_OK && code != RG_ERR_DEAD) || (flag & own))
            wrong("an agreement gives %d and the flag %x: %s", code, (unsigned)flag, rg_last_error());
        if (code == RG_OK) {
            is_over |= !(flag & 1);
            return flag & 1;
        }
        accuse(named(code), code);
        /* All members have had this error. */
        is_fine = false;
    }
}

/* Sets the group of the next epoch. */
static void take_group(rg_group group)
{
    main_area = (struct area){.group = group, .n = rg_size(group), .me = rg_rank(group), .is_here = true, .bit = 1};
    if (main_area.n <= 0 || main_area.n > MAX_MEMBERS)
        wrong("a group of %d members", main_area.n);
    for (int i = 0; i < main_area.n; i++)
        main_area.tids[i] = rg_tid_of(group, i);
    if (main_area.tids[main_area.me] != rg_tid())
        wrong("rank %d of the new group is task %d", main_area.me, main_area.tids[main_area.me]);
    if (!IS_OVER_MPI && one_in(4))
        OK(rg_group_tolerate_left(group, 1));
}

/* Frees a group that no member needs any more, now or an epoch later. */
static void retire(rg_group group)
{
    if (old.id != -1)
        OK(rg_group_free(old));
    old = (rg_group){-1};
    if (group.id == RG_WORLD.id)
        return;
    if (one_in(2))
        old = group;
    else
        OK(rg_group_free(group));
}

/* Shrinks the group to the survivors. Their order must not change. */
static void shrink(void)
{
    rg_group rest;
    snprintf(doing, sizeof doing, "epoch %016llx of %d: shrinking", (unsigned long long)crew.epoch, crew.n);
    if (one_in(60))
        raise(OWN_SIGNAL);
    OK(rg_group_shrink(main_area.group, &rest));
    count.shrinks++;
    retire(main_area.group);
    take_group(rest);
    int at = 0;
    for (int i = 0; i < main_area.n; i++) {
        while (at < crew.n && crew.tids[at] != main_area.tids[i])
            at++;
        if (at++ == crew.n)
            wrong("task %d is in the shrunk group, and not in its place", main_area.tids[i]);
    }
}

/* Leaves the job. The others must not wait for this worker afterwards. */
static void leave(void)
{
    OK(rg_send(&count, sizeof count, captain, LEAVING, ORDERS));
    disarm();
    OK(rg_finalize());
    exit(0);
}

static void play(void)
{
    uint64_t rounds = 2 + hash(crew.epoch) % MAX_ROUNDS;
    for (uint64_t round = 0; round < rounds && !has_failed; round++) {
        uint64_t random = hash(crew.epoch + round * 0x51ed);
        int tag = (int)(random >> 34);
        enum kind kind = random % ALL_KINDS;
        alarm(STALL_SECONDS);
        snprintf(doing, sizeof doing, "epoch %016llx of %d: round %d %s", (unsigned long long)crew.epoch, crew.n, (int)round, names_of_kinds[kind]);
        count.kinds[kind]++;
        maybe();
        /*
         * In such a round the neighbour receives from this worker by rank, so the departure is detected. MPI_Finalize
         * is not a departure.
         */
        if (!IS_OVER_MPI && kind == RING_ROUND && main_area.n > 1 && !has_failed && one_in(150))
            leave();
        if (!has_failed)
            play_round(random, tag);
    }
}

/* Plays one epoch. It ends with an agreement of all members. */
static void live_through(void)
{
    has_failed = is_over = false;
    is_counted = true;
    report = (struct report){.before = crew};
    /* Revoked in the last moment of the previous epoch. */
    if (main_area.is_revoked)
        report.has_revoked |= main_area.bit;
    if (one_in(2 * (uint64_t)crew.n))
        arm(one_in(4));
    play();
    alarm(STALL_SECONDS);
    size_t length = strlen(doing);
    snprintf(doing + length, sizeof doing - length, "; at the end");
    if (disarm())
        abandon(&main_area);
    bool are_fine = !is_over && all_are_fine(!has_failed);
    is_counted = false;
    uint64_t how = hash(crew.epoch ^ 1) % 3;
    if (!are_fine || (how == 0 && hash(crew.epoch ^ 2) % (uint64_t)crew.n == (uint64_t)main_area.me))
        revoke_area(&main_area);
    if (!are_fine)
        for (int i = 0; i < MAX_SUBGROUPS; i++)
            revoke_area(&subgroups[i]);
    end_strays(!are_fine);
    free_subgroups();
    if (!are_fine || how < 2)
        shrink();
    crew.epoch = hash(crew.epoch);
    crew.n = main_area.n;
    memcpy(crew.tids, main_area.tids, sizeof crew.tids);
    count.epochs++;
    report.after = crew;
    report.count = count;
    count = (struct count){0};
    OK(rg_send(&report, sizeof report, captain, REPORT, ORDERS));
}

/* Plays epochs until all members have to wait for the captain. */
static void go_on(void)
{
    do
        live_through();
    while (hash(crew.epoch ^ 3) % 3 != 0 && crew.n > 2);
    OK(rg_send(&crew, sizeof crew, captain, READY, ORDERS));
}

/*
 * Makes a group of tasks that may never have communicated: RG_WORLD if it consists of exactly these tasks and is
 * unused, otherwise a group made from all tasks of the job.
 */
static int make_group(bool is_first)
{
    bool is_world = is_first && rg_size(RG_WORLD) == crew.n;
    rg_group made = RG_WORLD;
    for (int i = 0; i < crew.n && is_world; i++)
        is_world = rg_tid_of(RG_WORLD, i) == crew.tids[i];
    if (main_area.is_here)
        retire(main_area.group);
    main_area.is_here = false;
    int code = is_world ? RG_OK : rg_group_select_tagged(RG_ALL, crew.n, crew.tids, (int)(crew.epoch & 0x7fffffff), &made);
    if (code == RG_OK) {
        take_group(made);
        /* Over MPI some members may already be missing. */
        crew.n = main_area.n;
        memcpy(crew.tids, main_area.tids, sizeof crew.tids);
    } else if (is_gone(code)) {
        if (!is_member(named(code), crew.tids, crew.n))
            wrong("a member of the new group is missing that is none: %s", rg_last_error());
        accuse(named(code), code);
    } else {
        wrong("rg_group_select gives %d: %s", code, rg_last_error());
    }
    return code;
}

/* Sets the process name by which the driver knows that this worker may be killed (tests/src/network.rs). */
static void say_that_it_is_up(void)
{
    if (prctl(PR_SET_NAME, "chaos-up") != 0)
        give_up("the name of the process");
}

int worker(uint64_t seed)
{
    OK(rg_init());
    say_that_it_is_up();
    captain = rg_parent();
    dice = hash(seed ^ (uint64_t)rg_tid() << 32);
    signal(SIGALRM, stalled);
    start_rounds();
    OK(rg_send(NULL, 0, captain, JOINED, ORDERS));
    for (;;) {
        rg_status status;
        snprintf(doing, sizeof doing, "waiting for the captain");
        alarm(3 * STALL_SECONDS);
        OK(rg_recv(&crew, sizeof crew, captain, RG_ANY, ORDERS, &status));
        alarm(STALL_SECONDS);
        if (status.tag == STOP)
            break;
        if (status.tag == GO_ON) {
            go_on();
            continue;
        }
        snprintf(doing, sizeof doing, "making a group of %d", crew.n);
        int code = make_group(status.tag == MAKE_FIRST);
        OK(rg_send(&code, sizeof code, captain, MADE, ORDERS));
    }
    OK(rg_send(&count, sizeof count, captain, RESULT, ORDERS));
    OK(rg_finalize());
    return 0;
}
