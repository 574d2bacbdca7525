/* clock.h: time and memory for all applications. */
#ifndef APPLICATION_CLOCK_H
#define APPLICATION_CLOCK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

#define CACHE_LINE_BYTES 64

/* Returns zeroed memory, aligned to a cache line and already touched, or ends the program. So what is timed does not depend on where the
 * environment has put memory of its own. */
static inline void *zeroed_memory(size_t count, size_t size)
{
    size_t bytes = 0;
    void *memory = NULL;
    if (!__builtin_mul_overflow(count, size, &bytes) && bytes < SIZE_MAX - CACHE_LINE_BYTES) {
        bytes = (bytes / CACHE_LINE_BYTES + 1) * CACHE_LINE_BYTES;
        memory = aligned_alloc(CACHE_LINE_BYTES, bytes);
    }
    if (!memory) {
        fprintf(stderr, "application: no memory for %zu elements of %zu bytes\n", count, size);
        exit(1);
    }
    return memset(memory, 0, bytes);
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
