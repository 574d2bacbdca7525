/*
 * Adapter to no library at all: what this hardware allows between two processes that share memory.
 *
 * env_init forks the tasks, which share one mapping. A message of up to 56 bytes is one cache line
 * that holds a sequence number and the data; a longer one is copied through a ring, in pieces, so
 * that both sides copy at the same time. How much of the ring is cycled through is tried out at the start for messages of five
 * lengths: what fits into the second-level cache is best where the two cores are close, more than that where they are not.
 * Tried out as well: whether the sender stores past its caches, because where cores are far apart it takes longest to
 * take lines away from the receiver; and whether a message begins at the front of the ring again when the receiver has said in a message of
 * its own that it has read all, so that two tasks which answer each other use few lines of memory. There is no
 * matching, no tag, no queue: sizes are known to both sides, and messages are taken in order. So
 * this is no library one could use; it is the line that libraries are measured against.
 *
 * Waiting is spinning (with one pause per look) while there is a processor for each task, else yielding. Payload is copied with
 * `rep movsb` where the processor has it, because it was the fastest here for every piece above
 * 256 bytes.
 */
#if defined(__x86_64__)
#include <emmintrin.h>
#endif
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>

#include "processes.h"

enum {
    LINE_DATA = 56,       /* bytes beside the sequence number in a line */
    LINES = 64,           /* lines in flight per direction */
    RING = 2048 * 1024,   /* bytes of the ring per direction */
    NARROW = 256 * 1024,  /* bytes of it that are in use where nothing has been tried out */
    LENGTHS = 5,          /* for messages of so many lengths */
    TRIALS = 5,           /* the fastest of so many counts */
    PIECE = 16 * 1024,    /* longest copy between two looks at the counters */
    NEAR = 8 * 1024,      /* so much behind a message's front lies in caches still: */
    NEAR_PIECE = 1024,    /* pieces of it are short, so that both sides overlap in short messages */
    FRONT = 1,            /* beside a window: messages begin at the front where possible */
    PAST = 2,             /* messages are stored past the caches */
    BOARD = 16384,        /* longest piece of a collective that goes over the board */
    BOARD_ROOM = 32768,   /* what a task may have on the board: blocks for all others */
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
    _Atomic uint64_t front; /* the byte count that stands at the ring's begin; changes while all is read */
    _Atomic uint64_t heard; /* how much this sender has read the other way */
    _Alignas(128) _Atomic uint64_t head;
    _Alignas(4096) char ring[RING];
};

/* The private state of each side of a channel. */
struct cursor {
    uint64_t line, lines_free_to; /* next line; sender: lines up to here are free */
    uint64_t at, limit;           /* bytes moved; how far the other side is known to be */
    uint64_t front;               /* the byte count that stands at the ring's begin */
    size_t window;                /* bytes of the ring that the last message cycled through */
    int past;                     /* sender: this message is stored past the caches */
};

/* A task's place on the board: a line for small blocks, room for larger ones; used in turns of two. */
struct place {
    struct line small[2];
    _Alignas(64) char large[2][BOARD_ROOM];
};

struct shared {
    _Alignas(128) _Atomic uint32_t arrived;
    _Alignas(128) _Atomic uint32_t generation;
    _Alignas(128) _Atomic size_t windows[LENGTHS]; /* as tried out; FRONT or PAST beside it */
    struct place places[MOST_TASKS];
    struct channel channels[]; /* [from * size + to] */
};

typedef struct {
    char *buf; /* NULL when done */
    size_t bytes, window;
    int peer, sends, begun;
} env_request;

static struct shared *env_shared;
static int env_crowded;
static uint64_t env_turn;
static const size_t env_lengths[LENGTHS] = {4 << 10, 16 << 10, 64 << 10, 1 << 20, 4 << 20};
static size_t env_windows[LENGTHS];
static int env_fronts[LENGTHS], env_past[LENGTHS];
static struct cursor env_out[MOST_TASKS], env_in[MOST_TASKS];

/* Between two looks at a line: one pause is best where there is a processor for each task (50 ns one
 * way instead of 58; two pauses 60), because the line is not torn away from its writer so often. */
static inline void env_pause(void)
{
    if (__builtin_expect(env_crowded, 0))
        sched_yield();
#if defined(__x86_64__)
    else
        __builtin_ia32_pause();
#endif
}

/* `near`: the other side's copy is in its caches, and so are the lines written to. */
static inline void env_copy(void *to, const void *from, size_t bytes, int near)
{
#if defined(__x86_64__)
    if (bytes > 256 && !near) {
        __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes)::"memory");
        return;
    }
#endif
    memcpy(to, from, bytes);
}

static inline struct channel *env_channel(int from, int to)
{
    return &env_shared->channels[from * env_my_size + to];
}

/* Task r on the r-th processor this program may use, as the launchers do when there are enough. */
static void env_pin(void)
{
    cpu_set_t allowed, one;
    int wanted = env_my_rank;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    env_crowded = env_my_size > CPU_COUNT(&allowed);
    for (int i = 0; !env_crowded && i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &allowed) && wanted-- == 0) {
            CPU_ZERO(&one);
            CPU_SET(i, &one);
            sched_setaffinity(0, sizeof one, &one);
            return;
        }
}

static inline void env_choose_windows(void);
static inline void env_board_meet(const void *in, size_t bytes);

static inline void env_init(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    env_count_tasks();
    size_t bytes = sizeof(struct shared) + (size_t)(env_my_size * env_my_size) * sizeof(struct channel);
    env_shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (env_shared == MAP_FAILED)
        env_fail("mmap", "no shared memory");
    env_fork_tasks();
    env_pin();
    env_choose_windows();
}

static inline void env_version(char *text, size_t size)
{
    snprintf(text, size, "shared memory, no library");
}

static inline void env_path(char *text, size_t size)
{
    int used = snprintf(text, size, "one cache line to %d bytes, then rings in pieces of %d KiB, as tried out:", LINE_DATA,
                        PIECE / 1024);
    for (int i = 0; i < LENGTHS && used < (int)size; i++)
        used += snprintf(text + used, size - (size_t)used, " %zu KiB%s for messages like %zu%s", env_windows[i] / 1024,
                         env_past[i] ? " past the caches" : env_fronts[i] ? " from the front" : "", env_lengths[i] / 1024, i + 1 < LENGTHS ? "," : " KiB");
}

/* Copy into a ring past this processor's caches: lines that the other side holds are not asked for first. */
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

/* How much of a ring a message of this length cycles through: both sides know it. */
static inline size_t env_window(size_t bytes)
{
    return env_windows[env_length(bytes)];
}

/* A message for `peer` begins: at the front of the ring, if all before it is known to be read. */
static inline void env_begin(int peer, size_t bytes)
{
    struct cursor *out = &env_out[peer];
    out->past = env_past[env_length(bytes)];
    if (out->limit == out->at && env_fronts[env_length(bytes)])
        out->front = out->at;
}

/* Copy as much as fits into the ring; how much that was. */
static inline size_t env_push(int peer, size_t window, const char *buf, size_t bytes)
{
    struct channel *c = env_channel(env_my_rank, peer);
    struct cursor *me = &env_out[peer];
    if (__builtin_expect(me->window != window, 0)) {
        /* Another window: bytes of the one before must not be written over. */
        me->limit = atomic_load_explicit(&c->head, memory_order_acquire);
        if (me->limit != me->at)
            return 0;
        me->window = window;
    }
    size_t offset = (me->at - me->front) % window, free = window - (me->at - me->limit);
    int near = me->at - me->front < NEAR;
    size_t most = near ? NEAR_PIECE : PIECE, piece = bytes < most ? bytes : most;
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
    return piece;
}

static inline size_t env_pull(int peer, size_t window, char *buf, size_t bytes)
{
    struct channel *c = env_channel(peer, env_my_rank);
    struct cursor *me = &env_in[peer];
    if (me->limit == me->at) {
        me->limit = atomic_load_explicit(&c->tail, memory_order_acquire);
        if (me->limit == me->at)
            return 0;
        me->front = atomic_load_explicit(&c->front, memory_order_relaxed);
        uint64_t heard = atomic_load_explicit(&c->heard, memory_order_relaxed);
        if (heard > env_out[peer].limit)
            env_out[peer].limit = heard;
    }
    size_t offset = (me->at - me->front) % window, piece = me->limit - me->at;
    piece = piece < bytes ? piece : bytes;
    piece = piece < PIECE ? piece : PIECE;
    piece = piece < window - offset ? piece : window - offset;
    env_copy(buf, c->ring + offset, piece, me->at - me->front < NEAR);
    me->at += piece;
    atomic_store_explicit(&c->head, me->at, memory_order_release);
    return piece;
}

/* Put a message of at most LINE_DATA bytes into the next line; 0 if none is free. */
static inline int env_line_put(struct channel *c, struct cursor *me, const void *buf, size_t bytes)
{
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
    return 1;
}

static inline int env_line_take(struct channel *c, struct cursor *me, void *buf, size_t bytes)
{
    struct line *line = &c->lines[me->line % LINES];
    if (atomic_load_explicit(&line->turn, memory_order_acquire) != me->line + 1)
        return 0;
    if (bytes == 8)
        memcpy(buf, line->data, 8);
    else
        memcpy(buf, line->data, bytes);
    if (++me->line % (LINES / 2) == 0)
        atomic_store_explicit(&c->taken, me->line, memory_order_release);
    return 1;
}

static inline void env_send(const void *buf, size_t bytes, int to, int tag)
{
    struct channel *c = env_channel(env_my_rank, to);
    struct cursor *cursor = &env_out[to];
    (void)tag;
    if (bytes <= LINE_DATA) {
        while (!env_line_put(c, cursor, buf, bytes))
            env_pause();
        return;
    }
    env_begin(to, bytes);
    for (size_t done = 0, window = env_window(bytes); done < bytes;) {
        size_t piece = env_push(to, window, (const char *)buf + done, bytes - done);
        done += piece;
        if (!piece)
            env_pause();
    }
}

static inline void env_recv(void *buf, size_t bytes, int from, int tag)
{
    struct channel *c = env_channel(from, env_my_rank);
    struct cursor *cursor = &env_in[from];
    (void)tag;
    if (bytes <= LINE_DATA) {
        while (!env_line_take(c, cursor, buf, bytes))
            env_pause();
        return;
    }
    for (size_t done = 0, window = env_window(bytes); done < bytes;) {
        size_t piece = env_pull(from, window, (char *)buf + done, bytes - done);
        done += piece;
        if (!piece)
            env_pause();
    }
}

static inline double env_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Messages to and fro between tasks 0 and 1, twice round the window; how long one takes. Buffers are aligned to pages and
 * the first task writes to one and reads another, as in the race: the best way to copy depends on it. */
static inline double env_try_window(char *buf, size_t bytes, size_t window)
{
    long n = (long)(2 * window / bytes) + 1;
    double start = env_seconds();
    for (long i = 0; i < n; i++) {
        if (env_my_rank == 0) {
            memcpy(buf, &i, sizeof i);
            env_send(buf, bytes, 1, 0);
            env_recv(buf + env_lengths[LENGTHS - 1], bytes, 1, 0);
        } else {
            env_recv(buf, bytes, 0, 0);
            env_send(buf, bytes, 0, 0);
        }
    }
    return (env_seconds() - start) / (double)n;
}

/* The fastest of several counts with the settings of the moment. */
static inline double env_fastest(char *buf, size_t bytes)
{
    double fastest = 1e9;
    for (int trial = 0; trial < TRIALS + 1; trial++) {
        double took = env_try_window(buf, bytes, env_windows[env_length(bytes)]);
        /* The first one makes the memory. */
        if (trial > 0 && took < fastest)
            fastest = took;
    }
    return fastest;
}

/* All tasks take task 0's word for how messages of this length go. */
static inline void env_agree(int length, size_t chosen)
{
    if (env_my_rank == 0)
        atomic_store_explicit(&env_shared->windows[length], chosen, memory_order_release);
    env_board_meet(NULL, 0);
    chosen = atomic_load_explicit(&env_shared->windows[length], memory_order_acquire);
    env_board_meet(NULL, 0);
    env_windows[length] = chosen & ~(size_t)(FRONT | PAST);
    env_fronts[length] = (chosen & FRONT) != 0;
    env_past[length] = (chosen & PAST) != 0;
}

/* Tasks 0 and 1 try out how much of a ring is best; the others go by that. */
static inline void env_choose_windows(void)
{
    for (int length = 0; length < LENGTHS; length++)
        env_windows[length] = NARROW;
    if (env_my_size < 2 || env_crowded)
        return;
    size_t most = 2 * env_lengths[LENGTHS - 1];
    char *buf = env_my_rank < 2 ? aligned_alloc(4096, most) : NULL;
    if (env_my_rank < 2 && !buf)
        env_fail("malloc", "no memory to try out the rings");
    if (buf)
        memset(buf, 1, most);
    for (int length = 0; length < LENGTHS; length++) {
        double best = 1e9;
        size_t chosen = NARROW;
        for (size_t window = RING; buf && window >= NARROW; window /= 2) {
            env_windows[length] = window;
            double fastest = env_fastest(buf, env_lengths[length]);
            /* The smaller one, unless the larger one is better by more than the noise. */
            if (fastest < best * 1.03) {
                best = fastest < best ? fastest : best;
                chosen = window;
            }
        }
        env_agree(length, chosen | FRONT);
        double front = buf ? env_fastest(buf, env_lengths[length]) : best;
        env_agree(length, NARROW | PAST);
        double past = buf ? env_fastest(buf, env_lengths[length]) : best;
        if (past < best * 0.97 && past < front)
            chosen = NARROW | PAST;
        else if (front < best * 1.03)
            chosen |= FRONT;
        env_agree(length, chosen);
    }
    free(buf);
}

/* Move a request on by one piece; 1 when it moved. */
static inline int env_advance(env_request *request)
{
    int peer = request->peer, self = env_my_rank;
    struct channel *c = request->sends ? env_channel(self, peer) : env_channel(peer, self);
    struct cursor *cursor = request->sends ? &env_out[peer] : &env_in[peer];
    size_t piece;
    if (request->bytes <= LINE_DATA) {
        int moved = request->sends ? env_line_put(c, cursor, request->buf, request->bytes)
                                   : env_line_take(c, cursor, request->buf, request->bytes);
        if (moved)
            request->buf = NULL;
        return moved;
    }
    if (request->sends && !request->begun)
        env_begin(peer, request->bytes);
    if (request->sends)
        piece = env_push(peer, request->window, request->buf, request->bytes);
    else
        piece = env_pull(peer, request->window, request->buf, request->bytes);
    request->begun |= piece != 0;
    request->buf += piece;
    request->bytes -= piece;
    /* The tail of a long message must not be taken for a short one: finish it here. */
    while (piece && request->bytes && request->bytes <= LINE_DATA) {
        size_t rest = request->sends ? env_push(peer, request->window, request->buf, request->bytes)
                                     : env_pull(peer, request->window, request->buf, request->bytes);
        request->buf += rest;
        request->bytes -= rest;
    }
    if (!request->bytes)
        request->buf = NULL;
    return piece != 0;
}

/* A request without data still needs a place to point to: NULL means done. */
static char env_nothing;

static inline env_request env_isend(const void *buf, size_t bytes, int to, int tag)
{
    (void)tag;
    return (env_request){buf ? (char *)(uintptr_t)buf : &env_nothing, bytes, env_window(bytes), to, 1, 0};
}

static inline env_request env_irecv(void *buf, size_t bytes, int from, int tag)
{
    (void)tag;
    return (env_request){buf ? buf : &env_nothing, bytes, env_window(bytes), from, 0, 0};
}

/* Requests to one peer in one direction complete in order, others in any order. */
static inline void env_waitall(int n, env_request *requests)
{
    int first = 0;
    while (first < n) {
        uint64_t blocked[2] = {0, 0}; /* peers, for receiving and for sending */
        int moved = 0;
        for (int i = first; i < n; i++) {
            env_request *request = &requests[i];
            uint64_t peer = 1ull << request->peer;
            if (request->buf && !(blocked[request->sends] & peer)) {
                moved |= env_advance(request);
                if (request->buf)
                    blocked[request->sends] |= peer;
            }
            if (i == first && !request->buf)
                first++;
        }
        if (!moved)
            env_pause();
    }
}

/* Write a block on the board, and wait until every task has written its own of this turn. */
static inline void env_board_meet(const void *in, size_t bytes)
{
    struct place *mine = &env_shared->places[env_my_rank];
    uint64_t turn = ++env_turn;
    if (bytes > LINE_DATA)
        env_copy(mine->large[turn % 2], in, bytes, 0);
    else if (bytes)
        memcpy(mine->small[turn % 2].data, in, bytes);
    if (!env_crowded) {
        atomic_store_explicit(&mine->small[turn % 2].turn, turn, memory_order_release);
        for (int r = 0; r < env_my_size; r++)
            while (atomic_load_explicit(&env_shared->places[r].small[turn % 2].turn, memory_order_acquire) < turn)
                env_pause();
        return;
    }
    if (atomic_fetch_add(&env_shared->arrived, 1) + 1 == (uint32_t)env_my_size) {
        atomic_store(&env_shared->arrived, 0);
        atomic_store(&env_shared->generation, (uint32_t)turn);
    } else {
        while (atomic_load_explicit(&env_shared->generation, memory_order_acquire) != (uint32_t)turn)
            sched_yield();
    }
}

/* The block of task r in the turn that env_board_meet has just completed. */
static inline const void *env_board(int r, size_t bytes)
{
    struct place *place = &env_shared->places[r];
    return bytes > LINE_DATA ? place->large[env_turn % 2] : place->small[env_turn % 2].data;
}

static inline void env_barrier(void)
{
    env_board_meet(NULL, 0);
}

static inline void env_broadcast(void *buf, size_t bytes, int root)
{
    if (env_my_size == 2) {
        if (env_my_rank == root)
            env_send(buf, bytes, 1 - root, 0);
        else
            env_recv(buf, bytes, root, 0);
        return;
    }
    if (bytes <= BOARD) {
        /* A piece for each: nobody waits for those that come late. */
        for (int d = 1; env_my_rank == root && d < env_my_size; d++)
            env_send(buf, bytes, (root + d) % env_my_size, 0);
        if (env_my_rank != root)
            env_recv(buf, bytes, root, 0);
        return;
    }
    for (size_t done = 0; done < bytes || !done; done += BOARD) {
        size_t piece = bytes - done < BOARD ? bytes - done : BOARD;
        env_board_meet((char *)buf + done, env_my_rank == root ? piece : 0);
        if (env_my_rank != root)
            memcpy((char *)buf + done, env_board(root, piece), piece);
    }
}

enum env_operator { ENV_SUM, ENV_PRODUCT, ENV_MAX };

static inline __attribute__((always_inline)) void env_combine(const double *in, double *out, size_t count,
                                                              enum env_operator operator)
{
    size_t most = BOARD / sizeof(double);
    for (size_t done = 0; done < count; done += most) {
        size_t piece = count - done < most ? count - done : most, bytes = piece * sizeof(double);
        double *restrict into = out + done;
        env_board_meet(in + done, bytes);
        memcpy(into, in + done, bytes);
        for (int r = 0; r < env_my_size; r++) {
            const double *restrict other = env_board(r, bytes);
            if (r == env_my_rank)
                continue;
            if (operator == ENV_MAX)
                for (size_t k = 0; k < piece; k++)
                    into[k] = other[k] > into[k] ? other[k] : into[k];
            else if (operator == ENV_PRODUCT)
                for (size_t k = 0; k < piece; k++)
                    into[k] *= other[k];
            else
                for (size_t k = 0; k < piece; k++)
                    into[k] += other[k];
        }
    }
}

static inline void env_sum(const double *in, double *out, size_t count)
{
    env_combine(in, out, count, ENV_SUM);
}

static inline void env_product(const double *in, double *out, size_t count)
{
    env_combine(in, out, count, ENV_PRODUCT);
}

static inline void env_max(const double *in, double *out, size_t count)
{
    env_combine(in, out, count, ENV_MAX);
}

/* Blocks to and from every task; in_step 0 sends the same block to all. */
static inline void env_all_pairs(const char *in, size_t in_step, size_t bytes, char *out)
{
    env_request requests[2 * MOST_TASKS];
    int n = 0;
    for (int d = 1; d < env_my_size; d++) {
        int to = (env_my_rank + d) % env_my_size, from = (env_my_rank + env_my_size - d) % env_my_size;
        requests[n++] = env_isend(in + (size_t)to * in_step, bytes, to, 0);
        requests[n++] = env_irecv(out + (size_t)from * bytes, bytes, from, 0);
    }
    memcpy(out + (size_t)env_my_rank * bytes, in + (size_t)env_my_rank * in_step, bytes);
    env_waitall(n, requests);
}

static inline void env_concatenation(const void *in, size_t bytes, void *out)
{
    /* Two tasks overlap their copies in the rings; more than two share one copy on the board. */
    if (bytes > (env_my_size == 2 ? 1024 : BOARD)) {
        env_all_pairs(in, 0, bytes, out);
        return;
    }
    env_board_meet(in, bytes);
    for (int r = 0; r < env_my_size; r++)
        memcpy((char *)out + (size_t)r * bytes, env_board(r, bytes), bytes);
}

static inline void env_complete_exchange(const void *in, size_t bytes, void *out)
{
    size_t all = bytes * (size_t)env_my_size;
    if (all > BOARD_ROOM) {
        env_all_pairs(in, bytes, bytes, out);
        return;
    }
    env_board_meet(in, all);
    for (int r = 0; r < env_my_size; r++)
        memcpy((char *)out + (size_t)r * bytes, (const char *)env_board(r, all) + (size_t)env_my_rank * bytes, bytes);
}
