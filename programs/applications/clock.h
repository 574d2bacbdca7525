/* clock.h: time and memory for all applications. */
#ifndef APPLICATION_CLOCK_H
#define APPLICATION_CLOCK_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Returns seconds since some moment. */
static inline double clock_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Seconds spent in communications, set to 0 where the timed part begins. */
static __attribute__((unused)) double seconds_communicating;

/* Carries out a communication and counts its time. */
#define COMMUNICATE(call)                                    \
    do {                                                     \
        double communicate_start_ = clock_seconds();         \
        call;                                                \
        seconds_communicating += clock_seconds() - communicate_start_; \
    } while (0)

/* Returns zeroed memory, or ends the program. */
static inline void *zeroed_memory(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory) {
        fprintf(stderr, "application: no memory for %zu elements of %zu bytes\n", count, size);
        exit(1);
    }
    return memory;
}

/* Returns the first of `all` things that belongs to task `rank` of `size`; those of the next task begin where its end. */
static inline long first_of(long all, int rank, int size)
{
    return all * rank / size;
}

/* Ends the program because it was started in a way that it cannot work in. */
static inline _Noreturn void refuse(const char *program, const char *reason)
{
    fprintf(stderr, "%s: %s\n", program, reason);
    exit(2);
}

#endif
