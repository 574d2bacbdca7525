/* clock.h: timing and memory functions of all applications. */
#ifndef APPLICATION_CLOCK_H
#define APPLICATION_CLOCK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Returns the time in seconds since an arbitrary moment. */
static inline double clock_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Seconds spent in communication. Set to 0 where the timed part begins. */
static __attribute__((unused)) double seconds_communicating;

/* Performs a communication call and adds its time to seconds_communicating. */
#define COMMUNICATE(call)                                    \
    do {                                                     \
        double communicate_start_ = clock_seconds();         \
        call;                                                \
        seconds_communicating += clock_seconds() - communicate_start_; \
    } while (0)

#define CACHE_LINE_BYTES 64

/* Returns zeroed memory that is aligned to a cache line and whose pages have been touched, so that timings do not
 * depend on where the environment put its own memory. Ends the program if there is no memory. */
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

/* Returns the number of the first of `all` items that belong to task `rank` of `size`. The items of the next task
 * follow directly. */
static inline long first_of(long all, int rank, int size)
{
    return all * rank / size;
}

/* Ends the program because it was started with unusable arguments or on an unusable number of tasks. */
static inline _Noreturn void refuse(const char *program, const char *reason)
{
    fprintf(stderr, "%s: %s\n", program, reason);
    exit(2);
}

#endif
