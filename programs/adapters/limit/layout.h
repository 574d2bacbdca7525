/* The memory that the tasks of `limit` share, and the state that each keeps for itself. */
#ifndef LIMIT_LAYOUT_H
#define LIMIT_LAYOUT_H

#include <stdatomic.h>
#include <time.h>

#include "../processes.h"

enum {
    LINE_DATA = 56,          /* bytes beside the sequence number in a line */
    LINES = 64,              /* lines in flight per direction */
    RING = 2048 * 1024,      /* bytes of the ring per direction */
    NARROW = 256 * 1024,     /* bytes of it that are in use where nothing has been tried out */
    CROWDED = 16 * 1024,     /* and of shorter messages in a crowd, whose rings share one cache */
    LENGTHS = 6,             /* for messages of so many lengths */
    STREAMS = 4,             /* so many of them are tried out in streams, the longer ones in exchanges */
    PIECE = 16 * 1024,       /* longest copy between two looks at the counters; */
    LONG = 256 * 1024,       /* of messages from this length on */
    LONG_PIECE = 32 * 1024,  /* it is longer */
    SHORT = 32 * 1024,       /* of messages up to this length, */
    NEAR = 8 * 1024,         /* so much behind the front lies in caches still: */
    NEAR_PIECE = 1024,       /* pieces of it are short, so that both sides overlap */
    STRING_COPY = 2 * 1024,  /* so much is copied by `rep movsb`, which is slow to begin */
    FRONT = 1,               /* beside a window: messages begin at the front where possible */
    PAST = 2,                /* messages are stored past the caches */
    BOARD = 16 * 1024,       /* longest piece of a collective that goes over the board */
    BOARD_ROOM = 32 * 1024,  /* what a task may have on the board: blocks for all others */
    BLOCKS = 4,              /* blocks on the board are of so many lengths */
    AREA = 2048 * 1024,      /* bytes for blocks of one length */
    TURNS = 4,               /* lines of a task on the board, used in turns */
    CHOICES = 2 * LENGTHS + BLOCKS, /* all that is tried out */
};

struct line {
    _Alignas(64) _Atomic uint64_t turn;
    char data[LINE_DATA];
};

/* One direction of one pair. `taken` and `head` are written by the receiver, the rest by the sender. */
struct channel {
    struct line lines[LINES];
    _Alignas(128) _Atomic uint64_t taken;
    _Alignas(128) _Atomic uint64_t tail;
    _Atomic uint64_t front;  /* the byte count that stands at the ring's begin; changes while all is read */
    _Atomic uint64_t heard;  /* how much this sender has read the other way */
    _Atomic uint64_t window; /* bytes of the ring in use; changes while all is read */
    _Alignas(128) _Atomic uint64_t head;
    _Alignas(4096) char ring[RING];
};

/* The private state of each side of a channel. */
struct cursor {
    uint64_t line, lines_free_to; /* next line; sender: lines up to here are free */
    uint64_t at, limit;           /* bytes moved; how far the other side is known to be */
    uint64_t front;               /* the byte count that stands at the ring's begin */
    size_t window;                /* bytes of the ring that the last message cycled through */
    size_t wanted;                /* sender: those of this message */
    int past;                     /* sender: this message is stored past the caches */
    int near;                     /* it is a short one: its first bytes lie in caches still */
    size_t piece;                 /* longest copy of it */
};

/* A task's place on the board: a line for barriers, lines for small blocks, an area for larger ones of each length; used in turns. */
struct place {
    struct line barrier;
    struct line small[TURNS];
    _Alignas(4096) char areas[BLOCKS][AREA];
};

struct shared {
    _Alignas(128) _Atomic uint32_t arrived;
    _Alignas(128) _Atomic uint32_t generation;
    _Alignas(128) _Atomic size_t choices[CHOICES + 1]; /* and a time */
    struct {
        _Alignas(128) _Atomic uint32_t asleep;
    } bells[MAX_TASKS];
    struct place places[MAX_TASKS];
    struct channel channels[]; /* [from * size + to] */
};

static struct shared *env_shared;
static struct cursor env_out[MAX_TASKS], env_in[MAX_TASKS];

static inline struct channel *env_channel(int from, int to)
{
    return &env_shared->channels[from * env_my_size + to];
}

#endif
