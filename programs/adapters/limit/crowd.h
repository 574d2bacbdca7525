/*
 * How a task of `limit` waits, and on which processor it runs.
 *
 * Where there is a processor for each task, it has one of its own, and looks again and again. In a crowd neighbours in rank share a
 * processor. There a task that waits gives it away and then looks on for a moment: mostly the others have had their turn by
 * then, and what it waits for is on its way from another processor. So a message goes round a ring in one switch per task. It does not where the
 * scheduler has the tasks in another order; then looking on only delays the others. So a task that has looked on in vain does without it
 * for a number of waits, which doubles with each failure. Without it a task gives its processor away some times more, and then sleeps until
 * somebody rings: those who are asleep are in nobody's way.
 */
#ifndef LIMIT_CROWD_H
#define LIMIT_CROWD_H

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>

#include "layout.h"

enum {
    LOOKS_BEFORE_YIELD = 1000,      /* how long to look on */
    YIELDS = 4,        /* before a task sleeps; with 1 or 2 a processor runs out of tasks, and is slow to wake */
    MIN_WAITS = 64,    /* without looking on after a failure, */
    MAX_WAITS = 4096, /* and after many of them */
    SUCCESSES_TO_FORGET = 64,       /* so many successes in a row, and failures are forgotten */
};

static int env_crowded;

/* One wait: how often it has looked, and up to which of these looks it looks on. */
struct wait {
    int looks, looks_on;
};

static struct {
    unsigned rest, next, successes; /* waits without looking on, now and after the next failure */
} env_stay = {.next = MIN_WAITS};

static inline void env_pin(int processor, const cpu_set_t *allowed)
{
    cpu_set_t one;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, allowed) && processor-- == 0) {
            CPU_ZERO(&one);
            CPU_SET(i, &one);
            sched_setaffinity(0, sizeof one, &one);
            return;
        }
}

/* Task r on the r-th processor this program may use, as the launchers do when there are enough; else neighbours share one. Against
 * tasks that go where the scheduler wants, a barrier of 16 or 32 takes 0.7 of the time. */
static void env_settle(void)
{
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    int processors = CPU_COUNT(&allowed);
    env_crowded = env_my_size > processors;
    env_pin(env_crowded ? env_my_rank * processors / env_my_size : env_my_rank, &allowed);
}

static inline void env_failed_to_look_on(void)
{
    env_stay.rest = env_stay.next;
    env_stay.next *= env_stay.next < MAX_WAITS ? 2 : 1;
    env_stay.successes = 0;
}

/* From here on senders wake this task. The look that follows finds what has come before. */
static inline void env_announce(_Atomic uint32_t *asleep)
{
    atomic_store(asleep, 1);
    atomic_thread_fence(memory_order_seq_cst);
}

static void env_pause_in_crowd(struct wait *wait)
{
    _Atomic uint32_t *asleep = &env_shared->bells[env_my_rank].asleep;
    int look = wait->looks++;
    if (look == 0) {
        env_stay.rest -= env_stay.rest > 0;
        wait->looks_on = env_stay.rest == 0 ? LOOKS_BEFORE_YIELD : 0;
    }
    if (look > 0 && look <= wait->looks_on) {
        if (look == wait->looks_on)
            env_failed_to_look_on();
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
        return;
    }
    look -= wait->looks_on;
    if (look < YIELDS) {
        sched_yield();
        return;
    }
    if (look > YIELDS)
        syscall(SYS_futex, asleep, FUTEX_WAIT, 1, NULL);
    env_announce(asleep);
}

/* Between two looks at a line: one pause is best where there is a processor for each task (50 ns one
 * way instead of 58; two pauses 60), because the line is not torn away from its writer so often. */
static inline void env_pause(struct wait *wait)
{
    if (__builtin_expect(env_crowded, 0))
        env_pause_in_crowd(wait);
#if defined(__x86_64__)
    else
        __builtin_ia32_pause();
#endif
}

/* It has come. */
static inline void env_end_wait(const struct wait *wait)
{
    if (__builtin_expect(wait->looks == 0, 1))
        return;
    if (wait->looks > YIELDS + wait->looks_on)
        atomic_store(&env_shared->bells[env_my_rank].asleep, 0);
    else if (wait->looks > 1 && wait->looks <= wait->looks_on && ++env_stay.successes >= SUCCESSES_TO_FORGET)
        env_stay.next = MIN_WAITS;
}

#define ENV_AWAIT(condition)             \
    do {                                 \
        struct wait wait_ = {0, 0};      \
        while (!(condition))             \
            env_pause(&wait_);           \
        env_end_wait(&wait_);            \
    } while (0)

/* Another task may sleep for what has just been stored. */
static inline void env_ring(int task)
{
    if (__builtin_expect(!env_crowded, 1))
        return;
    _Atomic uint32_t *asleep = &env_shared->bells[task].asleep;
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(asleep, memory_order_relaxed) && atomic_exchange(asleep, 0))
        syscall(SYS_futex, asleep, FUTEX_WAKE, 1);
}

#endif
