/*
 * Adapter without a library: what this hardware allows between two processes that share memory.
 *
 * env_init forks the tasks, which share one mapping. A message of up to 56 bytes is one cache line that holds a
 * sequence number and the data. A longer one is copied through a ring in pieces, so that both sides copy at the same
 * time. It starts at the front of the ring again if a message of the receiver has confirmed that all earlier bytes were
 * read; so two tasks that answer each other use few cache lines. Collectives use a board that all tasks can read. There
 * is no matching, no tag and no queue: both sides know the sizes, and messages are received in order. So this is not a
 * usable library; it is the limit that libraries are compared with.
 *
 * | where | what |
 * |---|---|
 * | limit/layout.h | the shared memory |
 * | limit/crowd.h | how a task waits, and which processor it runs on |
 * | limit/rings.h, limit/board.h | messages, collectives |
 * | limit/trials.h | the settings that are tried out |
 * | limit/distance.h | when they are tried out, and which results are kept |
 *
 * Payload is copied with `rep movsb` where the processor has it, because that was the fastest on this hardware for
 * every piece above 2 KiB.
 */
#include <sys/mman.h>

#include "limit/distance.h"

typedef struct {
    char *buf; /* NULL when done */
    size_t bytes;
    int peer, sends, begun;
} env_request;

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
    env_settle();
    env_choose_nothing();
    if (env_my_size > 1 && !env_crowded)
        env_look_at_distance();
}

static inline void env_version(char *text, size_t size)
{
    snprintf(text, size, "shared memory, no library");
}

static inline void env_path(char *text, size_t size)
{
    int used = snprintf(text, size, "one cache line to %d bytes, then rings in pieces of %d and %d KiB, as tried out:", LINE_DATA,
                        PIECE_BYTES / 1024, LONG_PIECE_BYTES / 1024);
    for (int i = 0; i < LENGTHS && used < (int)size; i++)
        used += snprintf(text + used, size - (size_t)used, " %zu KiB%s for messages like %zu%s", env_ways[0][i].window / 1024,
                         env_ways[0][i].past ? " past the caches" : env_ways[0][i].front ? " from the front" : "", env_lengths[i] / 1024, i + 1 < LENGTHS ? "," : " KiB");
}

#define ENV_IN_ORDER

static inline void env_send(const void *buf, size_t bytes, int to, int tag)
{
    (void)tag;
    if (bytes <= LINE_DATA) {
        ENV_AWAIT(env_line_put(to, buf, bytes));
        return;
    }
    env_begin(to, bytes, 0);
    for (size_t done = 0, piece; done < bytes; done += piece)
        ENV_AWAIT((piece = env_push(to, (const char *)buf + done, bytes - done)) != 0);
}

static inline void env_recv(void *buf, size_t bytes, int from, int tag)
{
    (void)tag;
    if (bytes <= LINE_DATA) {
        ENV_AWAIT(env_line_take(from, buf, bytes));
        return;
    }
    env_measure(&env_in[from], bytes);
    for (size_t done = 0, piece; done < bytes; done += piece)
        ENV_AWAIT((piece = env_pull(from, (char *)buf + done, bytes - done)) != 0);
}

/* Moves a request on by at most one piece. Returns 1 if it moved. */
static inline int env_advance(env_request *request)
{
    int peer = request->peer;
    size_t piece;
    if (request->bytes <= LINE_DATA && !request->begun) {
        int moved = request->sends ? env_line_put(peer, request->buf, request->bytes)
                                   : env_line_take(peer, request->buf, request->bytes);
        if (moved)
            request->buf = NULL;
        return moved;
    }
    if (!request->begun && request->sends)
        env_begin(peer, request->bytes, 1);
    else if (!request->begun)
        env_measure(&env_in[peer], request->bytes);
    piece = request->sends ? env_push(peer, request->buf, request->bytes) : env_pull(peer, request->buf, request->bytes);
    request->begun |= piece != 0;
    request->buf += piece;
    request->bytes -= piece;
    if (!request->bytes)
        request->buf = NULL;
    return piece != 0;
}

/* Buffer of requests without data, whose own buffer may be NULL: NULL marks a request as done. */
static char env_nothing;

static inline env_request env_isend(const void *buf, size_t bytes, int to, int tag)
{
    (void)tag;
    return (env_request){buf ? (char *)(uintptr_t)buf : &env_nothing, bytes, to, 1, 0};
}

static inline env_request env_irecv(void *buf, size_t bytes, int from, int tag)
{
    (void)tag;
    return (env_request){buf ? buf : &env_nothing, bytes, from, 0, 0};
}

/* Tries to move each request from `first` on once, and returns whether any moved. Requests to one peer in one direction
 * complete in order, others in any order. */
static inline int env_advance_all(int n, env_request *requests, int *first)
{
    uint64_t blocked[2] = {0, 0}; /* bit masks of peers, for receiving and for sending */
    int moved = 0;
    for (int i = *first; i < n; i++) {
        env_request *request = &requests[i];
        uint64_t peer = 1ull << request->peer;
        if (request->buf && !(blocked[request->sends] & peer)) {
            moved |= env_advance(request);
            if (request->buf)
                blocked[request->sends] |= peer;
        }
        if (i == *first && !request->buf)
            ++*first;
    }
    return moved;
}

static inline void env_waitall(int n, env_request *requests)
{
    for (int first = 0; first < n;)
        ENV_AWAIT(env_advance_all(n, requests, &first) || first == n);
}

/* Exchanges messages with a peer through the rings. */
static inline void env_trade(const void *out, void *in, size_t bytes, int peer)
{
    env_request requests[2] = {env_isend(out, bytes, peer, 0), env_irecv(in, bytes, peer, 0)};
    env_waitall(2, requests);
}

/* For trials: task 0 sends `n` messages in a row and task 1 receives them, each in its own part of `buf`. */
static inline void env_stream(char *buf, size_t bytes, int n)
{
    env_request requests[STREAM];
    for (int i = 0; i < n; i++)
        requests[i] = env_my_rank == 0 ? env_isend(buf + (size_t)i * bytes, bytes, 1, 0) : env_irecv(buf + (size_t)i * bytes, bytes, 0, 0);
    env_waitall(n, requests);
}

/* A task has one line for all barriers, since the line holds nothing but their number; this takes half of the time of
 * several lines in turn. The lowest bit of task 0's line says that a measurement of the distance is due. A task that
 * reads the number of a later barrier there knows that none was due: task 0 could not have gone on, because a
 * measurement needs all tasks. */
static inline void env_barrier(void)
{
    static uint64_t barrier;
    struct place *places = env_shared->places;
    if (env_crowded) {
        env_board_meet(NULL, 0);
        return;
    }
    uint64_t due = env_due, turn = ++barrier * 2, seen = 0;
    atomic_store_explicit(&places[env_my_rank].barrier.turn, turn + due, memory_order_release);
    env_look_at_clock(barrier);
    for (int r = env_my_size - 1; r >= 0; r--)
        if (r != env_my_rank)
            ENV_AWAIT((seen = atomic_load_explicit(&places[r].barrier.turn, memory_order_acquire)) >= turn);
    /* `seen` is the line of task 0, which the loop reads last. */
    if (env_my_rank != 0)
        due = seen == turn + 1;
    if (due)
        env_look_at_distance();
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
        /* The root sends a message to each task, so nobody waits for tasks that are late. */
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

static inline __attribute__((always_inline)) double env_of_two(double a, double b, enum env_operator operator)
{
    return operator == ENV_MAX ? (a > b ? a : b) : operator == ENV_PRODUCT ? a * b : a + b;
}

static inline __attribute__((always_inline)) void env_combine_each(const double *a, const double *b, double *into, size_t count,
                                                                  enum env_operator operator)
{
#pragma GCC ivdep
    for (size_t k = 0; k < count; k++)
        into[k] = env_of_two(a[k], b[k], operator);
}

/* Wider loads request more of the other task's lines at once: where the two tasks are far apart, a sum of 64 KiB takes
 * 0.83 of the time. */
#if defined(__x86_64__)
static __attribute__((noinline, target("avx2"))) void env_combine_wide(const double *a, const double *b, double *into, size_t count,
                                                                       enum env_operator operator)
{
    if (operator == ENV_SUM)
        env_combine_each(a, b, into, count, ENV_SUM);
    else if (operator == ENV_PRODUCT)
        env_combine_each(a, b, into, count, ENV_PRODUCT);
    else
        env_combine_each(a, b, into, count, ENV_MAX);
}
#endif

static inline __attribute__((always_inline)) void env_combine_two(const double *a, const double *b, double *into, size_t count,
                                                                 enum env_operator operator)
{
#if defined(__x86_64__)
    if (count >= 64 && __builtin_cpu_supports("avx2")) {
        env_combine_wide(a, b, into, count, operator);
        return;
    }
#endif
    env_combine_each(a, b, into, count, operator);
}

static inline __attribute__((always_inline)) void env_combine(const double *in, double *out, size_t count,
                                                              enum env_operator operator)
{
    size_t most = BOARD / sizeof(double);
    for (size_t done = 0; done < count; done += most) {
        size_t piece = count - done < most ? count - done : most, bytes = piece * sizeof(double);
        const double *mine = in + done;
        env_board_meet(mine, bytes);
        if (env_my_size == 1)
            memcpy(out + done, mine, bytes);
        for (int d = 1; d < env_my_size; d++) {
            env_combine_two(mine, env_board((env_my_rank + d) % env_my_size, bytes), out + done, piece, operator);
            mine = out + done;
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

/* Exchanges blocks with every task. With in_step 0 it sends the same block to all. */
static inline void env_all_pairs(const char *in, size_t in_step, size_t bytes, char *out)
{
    env_request requests[2 * MAX_TASKS];
    int n = 0;
    for (int d = 1; d < env_my_size; d++) {
        int to = (env_my_rank + d) % env_my_size, from = (env_my_rank + env_my_size - d) % env_my_size;
        requests[n++] = env_isend(in + (size_t)to * in_step, bytes, to, 0);
        requests[n++] = env_irecv(out + (size_t)from * bytes, bytes, from, 0);
    }
    memcpy(out + (size_t)env_my_rank * bytes, in + (size_t)env_my_rank * in_step, bytes);
    env_waitall(n, requests);
}

/* Exchanges a block with the other of two tasks, and meanwhile copies the own block, if any. */
static inline void env_swap(const void *give, void *get, size_t bytes, const void *own, void *own_to)
{
    int peer = 1 - env_my_rank;
    if (bytes > BOARD) {
        env_request requests[2] = {env_isend(give, bytes, peer, 0), env_irecv(get, bytes, peer, 0)};
        if (own)
            memcpy(own_to, own, bytes);
        env_waitall(2, requests);
        return;
    }
    env_board_show(give, bytes);
    if (own)
        memcpy(own_to, own, bytes);
    env_board_await();
    memcpy(get, env_board(peer, bytes), bytes);
}

#define ENV_EXCHANGES

static inline void env_exchange(const void *out, void *in, size_t bytes, int peer, int tag)
{
    (void)tag;
    if (env_my_size == 2) {
        env_swap(out, in, bytes, NULL, NULL);
        return;
    }
    env_trade(out, in, bytes, peer);
}

static inline void env_concatenation(const void *in, size_t bytes, void *out)
{
    char *to = out;
    if (env_my_size == 2) {
        size_t mine = (size_t)env_my_rank * bytes;
        env_swap(in, to + (bytes - mine), bytes, in, to + mine);
        return;
    }
    if (bytes > BOARD) {
        env_all_pairs(in, 0, bytes, out);
        return;
    }
    env_board_meet(in, bytes);
    for (int r = 0; r < env_my_size; r++)
        memcpy(to + (size_t)r * bytes, env_board(r, bytes), bytes);
}

static inline void env_complete_exchange(const void *in, size_t bytes, void *out)
{
    const char *from = in;
    char *to = out;
    size_t all = bytes * (size_t)env_my_size;
    if (env_my_size == 2) {
        size_t mine = (size_t)env_my_rank * bytes, other = bytes - mine;
        env_swap(from + other, to + other, bytes, from + mine, to + mine);
        return;
    }
    if (all > BOARD_ROOM) {
        env_all_pairs(in, bytes, bytes, out);
        return;
    }
    env_board_meet(in, all);
    for (int r = 0; r < env_my_size; r++)
        memcpy(to + (size_t)r * bytes, (const char *)env_board(r, all) + (size_t)env_my_rank * bytes, bytes);
}
