/*
 * How a task of `limit` waits, and on which processor it runs.
 *
 * Where there is a processor for each task, a task has one of its own and polls while it waits. In a crowd (more tasks
 * than processors) neighbours in rank share a processor. There a task that waits first yields its processor and then
 * polls for a moment: mostly the other tasks of the processor have run by then, and what it waits for is on its way
 * from another processor. So a message goes round a ring with one context switch per task. That fails if the scheduler
 * runs the tasks in another order; polling then only delays the other tasks. So after a poll in vain a task does not
 * poll for a number of waits, which doubles with each failure. Without polling it yields a few more times and then
 * sleeps on a futex until a sender wakes it, so that it takes no time from other tasks.
 */
#ifndef LIMIT_CROWD_H
#define LIMIT_CROWD_H

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>

#include "layout.h"

enum {
    POLLS_AFTER_YIELD = 1000,      /* polls after the first yield */
    YIELDS = 4,        /* before a task sleeps; with 1 or 2 a processor runs out of tasks, and is slow to wake up */
    MIN_WAITS = 64,    /* waits without polling after a failure */
    MAX_WAITS = 4096, /* the same after many failures */
    SUCCESSES_TO_FORGET = 64,       /* successes in a row after which failures are forgotten */
};

static int env_crowded;

/* One wait: how often the task has checked its condition, and how many of these checks after the first yield are polls.
 * */
struct wait {
    int looks, looks_on;
};

static struct {
    unsigned rest, next, successes; /* waits left without polling; the same after the next failure; successes in a row */
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

/* Pins task r to the r-th processor that this program may use, as launchers do; in a crowd, neighbours share one.
 * Compared with tasks that the scheduler places, a barrier of 16 or 32 takes 0.7 of the time. */
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

/* Lets senders wake this task from now on. The check that follows finds what was stored before. */
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
        wait->looks_on = env_stay.rest == 0 ? POLLS_AFTER_YIELD : 0;
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

/* Pauses between two polls of a line. One pause is best where there is a processor for each task (50 ns one way instead
 * of 58 without; two pauses 60), because the line is taken from its writer less often. */
static inline void env_pause(struct wait *wait)
{
    if (__builtin_expect(env_crowded, 0))
        env_pause_in_crowd(wait);
#if defined(__x86_64__)
    else
        __builtin_ia32_pause();
#endif
}

/* Ends a wait whose condition has become true. */
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

/* Wakes `task` if it sleeps, after something was stored that it may wait for. */
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
