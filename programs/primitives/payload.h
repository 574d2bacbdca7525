/*
 * payload.h: buffers of the programs, and checks that messages arrived unchanged.
 *
 * In the timed part only the first and the last word of a message are written and compared: that costs the same few
 * cycles in every environment and detects stale, lost and truncated messages. Before the clock starts, every point is
 * run once with payload_whole set: then every byte is checked.
 */
#ifndef PAYLOAD_H
#define PAYLOAD_H

#include "../adapter.h"

/* Page-aligned, touched, and large enough for any point of this run. */
static char *payload_a, *payload_b;
static size_t payload_capacity;
static int payload_whole;
/* Number of the iteration, the same in every task. */
static uint32_t payload_turn;

static int me, tasks;

static void payload_reserve(size_t bytes)
{
    payload_capacity = (bytes + 4095) / 4096 * 4096 + 4096;
    payload_a = aligned_alloc(4096, payload_capacity);
    payload_b = aligned_alloc(4096, payload_capacity);
    if (!payload_a || !payload_b)
        env_fail("aligned_alloc", "not enough memory for the largest message of this race");
    memset(payload_a, 1, payload_capacity);
    memset(payload_b, 2, payload_capacity);
}

static void payload_wrong(size_t bytes, uint32_t stamp)
{
    fprintf(stderr, "task %d: a message of %zu bytes arrived with the wrong content (turn %u, stamp %u)\n", me,
            bytes, payload_turn, stamp);
    fflush(NULL);
    _exit(1);
}

/* Returns the k-th eight bytes of a message with this stamp; they depend on k. */
static uint64_t payload_word(size_t k, uint32_t stamp)
{
    return ((uint64_t)k + 1) * 0x9e3779b97f4a7c15u + (uint64_t)stamp * 0x100000001b3u;
}

static void payload_fill(char *buf, size_t bytes, uint32_t stamp)
{
    for (size_t k = 0; k * 8 < bytes; k++) {
        uint64_t word = payload_word(k, stamp);
        memcpy(buf + k * 8, &word, bytes - k * 8 < 8 ? bytes - k * 8 : 8);
    }
}

static void payload_compare(const char *buf, size_t bytes, uint32_t stamp)
{
    for (size_t k = 0; k * 8 < bytes; k++) {
        uint64_t word = payload_word(k, stamp);
        if (memcmp(buf + k * 8, &word, bytes - k * 8 < 8 ? bytes - k * 8 : 8))
            payload_wrong(bytes, stamp);
    }
}

/* Writes the stamp into a message that is to be sent. */
static inline void payload_mark(char *buf, size_t bytes, uint32_t stamp)
{
    if (__builtin_expect(payload_whole, 0)) {
        payload_fill(buf, bytes, stamp);
    } else if (bytes >= 8) {
        memcpy(buf, &stamp, 4);
        memcpy(buf + bytes - 4, &stamp, 4);
    }
}

/* Ends the program unless the message carries the stamp. */
static inline void payload_check(const char *buf, size_t bytes, uint32_t stamp)
{
    if (__builtin_expect(payload_whole, 0)) {
        payload_compare(buf, bytes, stamp);
    } else if (bytes >= 8) {
        uint32_t first, last;
        memcpy(&first, buf, 4);
        memcpy(&last, buf + bytes - 4, 4);
        if (__builtin_expect(first != stamp || last != stamp, 0))
            payload_wrong(bytes, stamp);
    }
}

#endif
