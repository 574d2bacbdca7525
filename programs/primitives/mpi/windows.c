/* Windows on memory of the program (MPI_Win_create: ...-created) and on memory of the library (MPI_Win_allocate:
 * ...-allocated).
 *
 * win-create, win-allocate, win-allocate-shared: a window is created and freed.
 * put, get, accumulate: a transfer of contiguous words of 4 bytes, or (put-vector and so on) of every second one of an
 * array, and a flush, in an epoch of MPI_Win_lock_all. fetch-op: the same with one integer. lock-put: MPI_Win_lock, a
 * put of 8 bytes, MPI_Win_unlock. lock-fetch-op: fetch-op with an exclusive lock each time. fence: only the fence.
 * put-fence: both tasks put 8 bytes, and a fence follows.
 *
 * Task 0 accesses the memory of task 1; with fences both access each other's. A batch ends when the target has checked
 * its memory. */
#ifdef ENV_MPI
#include "expect.h"

enum rma_kind { RMA_CREATED, RMA_ALLOCATED };
/* Epochs in which a window is kept: of MPI_Win_lock_all, of fences, or none, so that each transfer takes a lock of its
 * own. */
enum rma_epoch { RMA_ALL, RMA_FENCED, RMA_NONE };
enum { RMA_SMALL = 8, RMA_WINDOW = 4096 };

/* The current window. */
static struct {
    MPI_Win window;
    char *memory;
    enum rma_kind kind;
    enum rma_epoch epoch;
    size_t bytes;
} rma = {.window = MPI_WIN_NULL};

static void rma_close(void)
{
    if (rma.window == MPI_WIN_NULL)
        return;
    if (rma.epoch == RMA_ALL)
        MPI_Win_unlock_all(rma.window);
    if (rma.epoch == RMA_FENCED)
        MPI_Win_fence(MPI_MODE_NOSUCCEED, rma.window);
    MPI_Win_free(&rma.window);
    if (rma.kind == RMA_CREATED)
        free(rma.memory);
}

static MPI_Win rma_make(enum rma_kind kind, size_t bytes, char **memory)
{
    MPI_Win window;
    if (kind == RMA_ALLOCATED) {
        MPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, memory, &window);
    } else {
        *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
        EXPECT(*memory, "aligned_alloc", "no memory for a window");
        MPI_Win_create(*memory, (MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    }
    return window;
}

/* Creates the requested window, unless it is the current one. */
static void rma_open(enum rma_kind kind, enum rma_epoch epoch, size_t bytes)
{
    if (__builtin_expect(rma.window != MPI_WIN_NULL && rma.kind == kind && rma.epoch == epoch && rma.bytes == bytes, 1))
        return;
    rma_close();
    rma.window = rma_make(kind, bytes, &rma.memory);
    rma.kind = kind;
    rma.epoch = epoch;
    rma.bytes = bytes;
    memset(rma.memory, 0, bytes);
    if (epoch == RMA_ALL)
        MPI_Win_lock_all(0, rma.window);
    if (epoch == RMA_FENCED)
        MPI_Win_fence(0, rma.window);
    MPI_Barrier(MPI_COMM_WORLD);
    env_before_finalize(rma_close);
}

/* Makes what was written into the window visible to all tasks. */
static void rma_meet(void)
{
    if (rma.epoch == RMA_ALL)
        MPI_Win_sync(rma.window);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rma.epoch == RMA_ALL)
        MPI_Win_sync(rma.window);
}

/* Begins an access of a task to its own memory: with an exclusive lock if no epoch is open. */
static void rma_look(void)
{
    if (rma.epoch == RMA_NONE)
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, me, 0, rma.window);
}

static void rma_looked(void)
{
    if (rma.epoch == RMA_NONE)
        MPI_Win_unlock(me, rma.window);
}

/* The count and the datatype for words, contiguous or with a stride. */
struct rma_words {
    int count;
    MPI_Datatype type;
};

static inline struct rma_words rma_words(size_t stride, size_t words)
{
    if (stride == ENV_WORD)
        return (struct rma_words){(int)words, MPI_INT32_T};
    return (struct rma_words){1, env_vector_type(stride, words)};
}

static inline void rma_put(enum rma_kind kind, size_t stride, size_t bytes, long n)
{
    size_t words = bytes / ENV_WORD;
    struct rma_words all = rma_words(stride, words);
    uint32_t last = payload_turn + (uint32_t)n;
    rma_open(kind, RMA_ALL, words * stride);
    for (long i = 0; me == 0 && i < n; i++) {
        vector_mark(payload_a, stride, words, ++payload_turn);
        MPI_Put(payload_a, all.count, all.type, 1, 0, all.count, all.type, rma.window);
        MPI_Win_flush(1, rma.window);
    }
    rma_meet();
    if (me == 1)
        vector_check(rma.memory, stride, words, last);
    MPI_Barrier(MPI_COMM_WORLD);
}

static inline void rma_get(enum rma_kind kind, size_t stride, size_t bytes, long n)
{
    size_t words = bytes / ENV_WORD;
    struct rma_words all = rma_words(stride, words);
    uint32_t stamp = payload_turn + 1;
    rma_open(kind, RMA_ALL, words * stride);
    if (me == 1)
        vector_mark(rma.memory, stride, words, stamp);
    rma_meet();
    for (long i = 0; me == 0 && i < n; i++) {
        vector_mark(payload_b, stride, words, 0);
        MPI_Get(payload_b, all.count, all.type, 1, 0, all.count, all.type, rma.window);
        MPI_Win_flush(1, rma.window);
        vector_check(payload_b, stride, words, stamp);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Each accumulate adds one to the sums at the target. */
static inline void rma_accumulate(enum rma_kind kind, size_t stride, size_t bytes, long n)
{
    size_t words = bytes / ENV_WORD;
    struct rma_words all = rma_words(stride, words);
    int32_t sum, one = 1;
    rma_open(kind, RMA_ALL, words * stride);
    for (size_t k = 0; k < words; k++)
        memcpy(payload_a + k * stride, &one, sizeof one);
    if (me == 1)
        memset(rma.memory, 0, rma.bytes);
    rma_meet();
    for (long i = 0; me == 0 && i < n; i++) {
        MPI_Accumulate(payload_a, all.count, all.type, 1, 0, all.count, all.type, MPI_SUM, rma.window);
        MPI_Win_flush(1, rma.window);
    }
    rma_meet();
    for (size_t k = 0; me == 1 && k < words; k++) {
        memcpy(&sum, rma.memory + k * stride, sizeof sum);
        EXPECT(sum == (int32_t)n, "MPI_Accumulate", "a sum at the target is wrong");
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* With `lock`, each fetch takes an exclusive lock of its own. */
static inline void rma_fetch(enum rma_kind kind, int lock, long n)
{
    int64_t one = 1, was = -1;
    rma_open(kind, lock ? RMA_NONE : RMA_ALL, RMA_SMALL);
    rma_look();
    memset(rma.memory, 0, RMA_SMALL);
    rma_looked();
    rma_meet();
    for (long i = 0; me == 0 && i < n; i++) {
        if (lock)
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, rma.window);
        MPI_Fetch_and_op(&one, &was, MPI_INT64_T, 1, 0, MPI_SUM, rma.window);
        if (lock)
            MPI_Win_unlock(1, rma.window);
        else
            MPI_Win_flush(1, rma.window);
        EXPECT(was == i, "MPI_Fetch_and_op", "it fetched another number");
    }
    rma_meet();
    rma_look();
    memcpy(&was, rma.memory, sizeof was);
    EXPECT(was == (me == 1 ? n : 0), "MPI_Fetch_and_op", "the integer at the target is wrong");
    rma_looked();
    MPI_Barrier(MPI_COMM_WORLD);
}

static inline void rma_lock_put(enum rma_kind kind, long n)
{
    uint32_t last = payload_turn + (uint32_t)n;
    rma_open(kind, RMA_NONE, RMA_SMALL);
    for (long i = 0; me == 0 && i < n; i++) {
        vector_mark(payload_a, ENV_WORD, RMA_SMALL / ENV_WORD, ++payload_turn);
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, rma.window);
        MPI_Put(payload_a, RMA_SMALL, MPI_BYTE, 1, 0, RMA_SMALL, MPI_BYTE, rma.window);
        MPI_Win_unlock(1, rma.window);
    }
    rma_meet();
    rma_look();
    if (me == 1)
        vector_check(rma.memory, ENV_WORD, RMA_SMALL / ENV_WORD, last);
    rma_looked();
    MPI_Barrier(MPI_COMM_WORLD);
}

static inline void rma_fence(enum rma_kind kind, long n)
{
    rma_open(kind, RMA_FENCED, RMA_SMALL);
    for (long i = 0; i < n; i++)
        MPI_Win_fence(0, rma.window);
}

/* A task checks its memory between two fences, when no task writes to it. */
static inline void rma_put_fence(enum rma_kind kind, long n)
{
    rma_open(kind, RMA_FENCED, RMA_SMALL);
    for (long i = 0; i < n; i++) {
        vector_mark(payload_a, ENV_WORD, RMA_SMALL / ENV_WORD, ++payload_turn);
        MPI_Put(payload_a, RMA_SMALL, MPI_BYTE, me ^ 1, 0, RMA_SMALL, MPI_BYTE, rma.window);
        MPI_Win_fence(0, rma.window);
    }
    vector_check(rma.memory, ENV_WORD, RMA_SMALL / ENV_WORD, payload_turn);
    MPI_Win_fence(0, rma.window);
}

static inline void rma_make_free(enum rma_kind kind, long n)
{
    for (long i = 0; i < n; i++) {
        char *memory;
        MPI_Win window = rma_make(kind, RMA_WINDOW, &memory);
        memory[0] = memory[RMA_WINDOW - 1] = 1;
        MPI_Win_free(&window);
        if (kind == RMA_CREATED)
            free(memory);
    }
}

/* Each task also accesses its neighbour's memory. */
static void win_allocate_shared(size_t bytes, long n)
{
    (void)bytes;
    for (long i = 0; i < n; i++) {
        MPI_Win window;
        MPI_Aint size;
        int unit;
        char *memory, *other;
        MPI_Win_allocate_shared(RMA_WINDOW, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
        MPI_Win_shared_query(window, me ^ 1, &size, &unit, &other);
        EXPECT(size == RMA_WINDOW && other != memory, "MPI_Win_shared_query", "the other task has no memory of that size");
        memory[0] = 1;
        MPI_Win_free(&window);
    }
}

/* Defines both operations, for the two kinds of windows; `call` may use `kind`, `bytes` and `n`. */
#define RMA_BOTH(id, call)                                    \
    static void id##_created(size_t bytes, long n)            \
    {                                                         \
        enum rma_kind kind = RMA_CREATED;                     \
        (void)bytes;                                          \
        call;                                                 \
    }                                                         \
    static void id##_allocated(size_t bytes, long n)          \
    {                                                         \
        enum rma_kind kind = RMA_ALLOCATED;                   \
        (void)bytes;                                          \
        call;                                                 \
    }

RMA_BOTH(win, rma_make_free(kind, n))
RMA_BOTH(put, rma_put(kind, ENV_WORD, bytes, n))
RMA_BOTH(get, rma_get(kind, ENV_WORD, bytes, n))
RMA_BOTH(accumulate, rma_accumulate(kind, ENV_WORD, bytes, n))
RMA_BOTH(put_vector, rma_put(kind, VECTOR_APART, bytes, n))
RMA_BOTH(get_vector, rma_get(kind, VECTOR_APART, bytes, n))
RMA_BOTH(accumulate_vector, rma_accumulate(kind, VECTOR_APART, bytes, n))
RMA_BOTH(fetch_op, rma_fetch(kind, 0, n))
RMA_BOTH(lock_fetch_op, rma_fetch(kind, 1, n))
RMA_BOTH(lock_put, rma_lock_put(kind, n))
RMA_BOTH(fence, rma_fence(kind, n))
RMA_BOTH(put_fence, rma_put_fence(kind, n))

OPERATION(win_created, .name = "win-create", .run = win_created, .parts = 1)
OPERATION(win_allocated, .name = "win-allocate", .run = win_allocated, .parts = 1)
OPERATION(win_allocate_shared, .name = "win-allocate-shared", .run = win_allocate_shared, .parts = 1, .pairs = 2)
OPERATION(put_created, .name = "put-created", .run = put_created, .parts = 1, .unit = 4, .pairs = 2)
OPERATION(put_allocated, .name = "put-allocated", .run = put_allocated, .parts = 1, .unit = 4, .pairs = 2)
OPERATION(get_created, .name = "get-created", .run = get_created, .parts = 1, .unit = 4, .pairs = 2)
OPERATION(get_allocated, .name = "get-allocated", .run = get_allocated, .parts = 1, .unit = 4, .pairs = 2)
OPERATION(accumulate_created, .name = "accumulate-created", .run = accumulate_created, .parts = 1, .unit = 4, .pairs = 2)
OPERATION(accumulate_allocated, .name = "accumulate-allocated", .run = accumulate_allocated, .parts = 1, .unit = 4, .pairs = 2)
OPERATION(put_vector_created, .name = "put-vector-created", .run = put_vector_created, .parts = 1, .unit = 4, .pairs = 2, .blocks = 2)
OPERATION(put_vector_allocated, .name = "put-vector-allocated", .run = put_vector_allocated, .parts = 1, .unit = 4, .pairs = 2, .blocks = 2)
OPERATION(get_vector_created, .name = "get-vector-created", .run = get_vector_created, .parts = 1, .unit = 4, .pairs = 2, .blocks = 2)
OPERATION(get_vector_allocated, .name = "get-vector-allocated", .run = get_vector_allocated, .parts = 1, .unit = 4, .pairs = 2, .blocks = 2)
OPERATION(accumulate_vector_created, .name = "accumulate-vector-created", .run = accumulate_vector_created, .parts = 1, .unit = 4, .pairs = 2, .blocks = 2)
OPERATION(accumulate_vector_allocated, .name = "accumulate-vector-allocated", .run = accumulate_vector_allocated, .parts = 1, .unit = 4, .pairs = 2, .blocks = 2)
OPERATION(fetch_op_created, .name = "fetch-op-created", .run = fetch_op_created, .parts = 1, .pairs = 2)
OPERATION(fetch_op_allocated, .name = "fetch-op-allocated", .run = fetch_op_allocated, .parts = 1, .pairs = 2)
OPERATION(lock_fetch_op_created, .name = "lock-fetch-op-created", .run = lock_fetch_op_created, .parts = 1, .pairs = 2)
OPERATION(lock_fetch_op_allocated, .name = "lock-fetch-op-allocated", .run = lock_fetch_op_allocated, .parts = 1, .pairs = 2)
OPERATION(lock_put_created, .name = "lock-put-created", .run = lock_put_created, .parts = 1, .pairs = 2)
OPERATION(lock_put_allocated, .name = "lock-put-allocated", .run = lock_put_allocated, .parts = 1, .pairs = 2)
OPERATION(fence_created, .name = "fence-created", .run = fence_created, .parts = 1)
OPERATION(fence_allocated, .name = "fence-allocated", .run = fence_allocated, .parts = 1)
OPERATION(put_fence_created, .name = "put-fence-created", .run = put_fence_created, .parts = 1, .pairs = 2)
OPERATION(put_fence_allocated, .name = "put-fence-allocated", .run = put_fence_allocated, .parts = 1, .pairs = 2)
#endif
