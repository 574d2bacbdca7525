/*
 * Messages of `limit`: lines for small ones, rings for longer ones.
 *
 * The sender chooses how a message goes through a ring: the bytes it cycles through, whether it starts at the front,
 * and whether its stores bypass the caches. The choice may change whenever the receiver has read all; the receiver
 * reads it together with the tail.
 */
#ifndef LIMIT_RINGS_H
#define LIMIT_RINGS_H

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "crowd.h"

/* How messages of a length class go through rings. */
struct way {
    size_t window;
    int front, past;
};

static const size_t env_lengths[LENGTHS] = {1 << 10, 4 << 10, 16 << 10, 64 << 10, 1 << 20, 4 << 20};
/* One row for messages that are waited for one by one, one for streams. */
static struct way env_ways[2][LENGTHS];

/* Copies `bytes` bytes. `near`: the other side's copy is in its caches, and so are the lines written to. */
static inline void env_copy(void *to, const void *from, size_t bytes, int near)
{
#if defined(__x86_64__)
    if (bytes >= STRING_COPY && !near) {
        __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes)::"memory");
        return;
    }
#endif
    memcpy(to, from, bytes);
}

/* Copies with stores that bypass this processor's caches, so that lines held by the other side need not be fetched
 * first. */
static inline void env_copy_past(char *to, const char *from, size_t bytes)
{
#if defined(__x86_64__)
    size_t head = -(uintptr_t)to % 16;
    head = head < bytes ? head : bytes;
    memcpy(to, from, head);
    for (; head + 16 <= bytes; head += 16)
        _mm_stream_si128((__m128i *)(to + head), _mm_loadu_si128((const __m128i *)(from + head)));
    memcpy(to + head, from + head, bytes - head);
    _mm_sfence();
#else
    memcpy(to, from, bytes);
#endif
}

static inline int env_length(size_t bytes)
{
    int length = 0;
    while (length + 1 < LENGTHS && bytes >= env_lengths[length + 1] / 2)
        length++;
    return length;
}

/* Sets how a message of `bytes` bytes is copied. */
static inline void env_measure(struct cursor *me, size_t bytes)
{
    me->near = bytes <= MAX_NEAR_MESSAGE_BYTES;
    me->piece = bytes < MIN_LONG_BYTES ? PIECE_BYTES : LONG_PIECE_BYTES;
}

/* Begins a message for `peer`. It starts at the front of the ring if the receiver is known to have read all bytes
 * before. */
static inline void env_begin(int peer, size_t bytes, int streams)
{
    struct cursor *out = &env_out[peer];
    env_measure(out, bytes);
    const struct way *way = &env_ways[streams][env_length(bytes)];
    out->past = way->past;
    out->wanted = way->window;
    if (out->limit == out->at && way->front)
        out->front = out->at;
}

/* Copies as much as fits into the ring, one piece at most. Returns the number of bytes. */
static inline size_t env_push(int peer, const char *buf, size_t bytes)
{
    struct channel *c = env_channel(env_my_rank, peer);
    struct cursor *me = &env_out[peer];
    if (__builtin_expect(me->window != me->wanted, 0)) {
        /* The window changes: bytes in the old one must not be overwritten before they are read. */
        me->limit = atomic_load_explicit(&c->head, memory_order_acquire);
        if (me->limit != me->at)
            return 0;
        me->window = me->wanted;
        atomic_store_explicit(&c->window, me->window, memory_order_relaxed);
    }
    size_t window = me->window, offset = (me->at - me->front) % window, free = window - (me->at - me->limit);
    int near = me->near && me->at - me->front < NEAR;
    size_t most = near ? NEAR_PIECE_BYTES : me->piece, piece = bytes < most ? bytes : most;
    if (free < piece) {
        me->limit = atomic_load_explicit(&c->head, memory_order_acquire);
        free = window - (me->at - me->limit);
    }
    piece = piece < free ? piece : free;
    piece = piece < window - offset ? piece : window - offset;
    if (piece == 0)
        return 0;
    if (me->past)
        env_copy_past(c->ring + offset, buf, piece);
    else
        env_copy(c->ring + offset, buf, piece, near);
    me->at += piece;
    atomic_store_explicit(&c->front, me->front, memory_order_relaxed);
    atomic_store_explicit(&c->heard, env_in[peer].at, memory_order_relaxed);
    atomic_store_explicit(&c->tail, me->at, memory_order_release);
    env_ring(peer);
    return piece;
}

static inline size_t env_pull(int peer, char *buf, size_t bytes)
{
    struct channel *c = env_channel(peer, env_my_rank);
    struct cursor *me = &env_in[peer];
    if (me->limit == me->at) {
        me->limit = atomic_load_explicit(&c->tail, memory_order_acquire);
        if (me->limit == me->at)
            return 0;
        me->front = atomic_load_explicit(&c->front, memory_order_relaxed);
        me->window = atomic_load_explicit(&c->window, memory_order_relaxed);
        uint64_t heard = atomic_load_explicit(&c->heard, memory_order_relaxed);
        if (heard > env_out[peer].limit)
            env_out[peer].limit = heard;
    }
    size_t window = me->window, offset = (me->at - me->front) % window, piece = me->limit - me->at;
    piece = piece < bytes ? piece : bytes;
    piece = piece < me->piece ? piece : me->piece;
    piece = piece < window - offset ? piece : window - offset;
    env_copy(buf, c->ring + offset, piece, me->near && me->at - me->front < NEAR);
    me->at += piece;
    atomic_store_explicit(&c->head, me->at, memory_order_release);
    env_ring(peer);
    return piece;
}

/* Puts a message of at most LINE_DATA bytes into the next line for `peer`. Returns 0 if none is free. */
static inline int env_line_put(int peer, const void *buf, size_t bytes)
{
    struct channel *c = env_channel(env_my_rank, peer);
    struct cursor *me = &env_out[peer];
    if (me->line - me->lines_free_to == LINES) {
        me->lines_free_to = atomic_load_explicit(&c->taken, memory_order_acquire);
        if (me->line - me->lines_free_to == LINES)
            return 0;
    }
    struct line *line = &c->lines[me->line++ % LINES];
    if (bytes == 8)
        memcpy(line->data, buf, 8);
    else
        memcpy(line->data, buf, bytes);
    atomic_store_explicit(&line->turn, me->line, memory_order_release);
    env_ring(peer);
    return 1;
}

static inline int env_line_take(int peer, void *buf, size_t bytes)
{
    struct channel *c = env_channel(peer, env_my_rank);
    struct cursor *me = &env_in[peer];
    struct line *line = &c->lines[me->line % LINES];
    if (atomic_load_explicit(&line->turn, memory_order_acquire) != me->line + 1)
        return 0;
    if (bytes == 8)
        memcpy(buf, line->data, 8);
    else
        memcpy(buf, line->data, bytes);
    if (++me->line % (LINES / 2) == 0) {
        atomic_store_explicit(&c->taken, me->line, memory_order_release);
        env_ring(peer);
    }
    return 1;
}

#endif
