/* The memory that the tasks of `limit` share, and the state that each keeps for itself. */
#ifndef LIMIT_LAYOUT_H
#define LIMIT_LAYOUT_H

#include <stdatomic.h>
#include <time.h>

#include "../processes.h"

enum {
    LINE_DATA = 56,          /* bytes of data in a line, next to its sequence number */
    LINES = 64,              /* lines in flight in each direction */
    RING = 2048 * 1024,      /* bytes of the ring of each direction */
    NARROW = 256 * 1024,     /* bytes of it in use where nothing is tried out */
    CROWDED = 16 * 1024,     /* the same for shorter messages in a crowd, whose rings share one cache */
    LENGTHS = 6,             /* length classes of messages */
    STREAMS = 4,             /* those tried out in streams; longer messages are tried out in exchanges */
    PIECE_BYTES = 16 * 1024,       /* bytes of the longest copy between two reads of the counters */
    MIN_LONG_BYTES = 256 * 1024,       /* messages from this length on */
    LONG_PIECE_BYTES = 32 * 1024,  /* use this longest copy instead */
    MAX_NEAR_MESSAGE_BYTES = 32 * 1024,       /* of messages up to this length */
    NEAR = 8 * 1024,         /* this many bytes from the front on are still in caches; */
    NEAR_PIECE_BYTES = 1024,       /* they are copied in short pieces, so that both sides overlap */
    STRING_COPY = 2 * 1024,  /* length from which `rep movsb` is used, which is slow to start */
    FRONT = 1,               /* flag added to a window: messages start at the front where possible */
    PAST = 2,                /* flag: stores of messages bypass the caches */
    BOARD = 16 * 1024,       /* longest piece of a collective on the board */
    BOARD_ROOM = 32 * 1024,  /* bytes a task may have on the board: blocks for all others */
    BLOCKS = 4,              /* length classes of blocks on the board */
    AREA = 2048 * 1024,      /* bytes for the blocks of one class */
    TURNS = 4,               /* lines of a task on the board, used in turn */
    CHOICES = 2 * LENGTHS + BLOCKS, /* all settings that are tried out */
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
    _Atomic uint64_t front;  /* byte count at the start of the ring; changes only when all bytes have been read */
    _Atomic uint64_t heard;  /* bytes this sender has read in the other direction */
    _Atomic uint64_t window; /* bytes of the ring in use; changes only when all bytes have been read */
    _Alignas(128) _Atomic uint64_t head;
    _Alignas(4096) char ring[RING];
};

/* The private state of each side of a channel. */
struct cursor {
    uint64_t line, lines_free_to; /* next line; sender: lines below this are free */
    uint64_t at, limit;           /* bytes moved; sender: bytes known to be read, receiver: bytes known to be written */
    uint64_t front;               /* byte count at the start of the ring */
    size_t window;                /* bytes of the ring that the last message cycled through */
    size_t wanted;                /* sender: the same for this message */
    int past;                     /* sender: stores of this message bypass the caches */
    int near;                     /* this message is short: its first bytes are still in caches */
    size_t piece;                 /* longest copy of this message */
};

/* A task's part of the board: a line for barriers, lines for small blocks used in turn, and an area for larger blocks
 * of each length class. */
struct place {
    struct line barrier;
    struct line small[TURNS];
    _Alignas(4096) char areas[BLOCKS][AREA];
};

struct shared {
    _Alignas(128) _Atomic uint32_t arrived;
    _Alignas(128) _Atomic uint32_t generation;
    _Alignas(128) _Atomic size_t choices[CHOICES + 1]; /* the last one is for the measurement of the distance */
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
