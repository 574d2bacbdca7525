/*
 * Windows: elements in many blocks, which the target's process moves for an origin that cannot access its memory
 * directly.
 */
#define _GNU_SOURCE
#include "mpi_check.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { N = 3000, ROUNDS = 20 };

enum kind { CREATED, ALLOCATED, DYNAMIC, KINDS };

/* A window of `count` ints in each process. Displacements of a dynamic window, in bytes, begin at `at[rank]`. */
struct made {
    MPI_Win win;
    int *memory;
    enum kind kind;
    MPI_Aint *at;
};

static struct made make(enum kind kind, MPI_Aint count)
{
    struct made made = {.kind = kind, .at = calloc(size, sizeof(MPI_Aint))};
    MPI_Aint bytes = count * (MPI_Aint)sizeof(int), own = 0;
    if (kind != ALLOCATED)
        made.memory = malloc(bytes);
    switch (kind) {
    case CREATED:
        SUCCEEDS(MPI_Win_create(made.memory, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &made.win));
        break;
    case ALLOCATED:
        SUCCEEDS(MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &made.memory, &made.win));
        break;
    default:
        SUCCEEDS(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &made.win));
        SUCCEEDS(MPI_Win_attach(made.win, made.memory, bytes));
        SUCCEEDS(MPI_Get_address(made.memory, &own));
    }
    SUCCEEDS(MPI_Allgather(&own, 1, MPI_AINT, made.at, 1, MPI_AINT, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Win_set_errhandler(made.win, MPI_ERRORS_RETURN));
    for (MPI_Aint i = 0; i < count; i++)
        made.memory[i] = -1 - (int)i;
    SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
    return made;
}

static MPI_Aint place(const struct made *made, int rank, MPI_Aint index)
{
    return made->at[rank] + index * (MPI_Aint)sizeof(int);
}

static void end(struct made *made)
{
    SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
    if (made->kind == DYNAMIC)
        SUCCEEDS(MPI_Win_detach(made->win, made->memory));
    SUCCEEDS(MPI_Win_free(&made->win));
    if (made->kind != ALLOCATED)
        free(made->memory);
    free(made->at);
}

/* Types of many blocks, with the number of elements and their positions in the window. */
enum form { SPREAD, BACKWARD, IRREGULAR, NESTED, FORMS };

struct layout {
    MPI_Datatype type;
    int count;
    int index[N];
};

static struct layout layout_of(enum form form)
{
    static int lengths[N], places[N];
    struct layout it = {.count = 0};
    MPI_Datatype row;
    switch (form) {
    case SPREAD:
        SUCCEEDS(MPI_Type_vector(200, 2, 7, MPI_INT, &it.type));
        for (int i = 0; i < 200; i++)
            for (int k = 0; k < 2; k++)
                it.index[it.count++] = 7 * i + k;
        break;
    case BACKWARD:
        /* Strides go down from the displacement; the window's part begins 299 strides below it. */
        SUCCEEDS(MPI_Type_create_hvector(300, 1, -5 * (MPI_Aint)sizeof(int), MPI_INT, &row));
        SUCCEEDS(MPI_Type_create_hindexed(1, (int[]){1}, (MPI_Aint[]){299 * 5 * (MPI_Aint)sizeof(int)}, row, &it.type));
        SUCCEEDS(MPI_Type_free(&row));
        for (int i = 0; i < 300; i++)
            it.index[it.count++] = 5 * (299 - i);
        break;
    case IRREGULAR:
        for (int i = 0; i < 150; i++) {
            /* Not in address order, and some of the blocks are empty. */
            lengths[i] = i % 4;
            places[i] = 9 * ((i * 77) % 150) + i % 3;
            for (int k = 0; k < lengths[i]; k++)
                it.index[it.count++] = places[i] + k;
        }
        SUCCEEDS(MPI_Type_indexed(150, lengths, places, MPI_INT, &it.type));
        break;
    default:
        SUCCEEDS(MPI_Type_vector(3, 1, 2, MPI_INT, &row));
        SUCCEEDS(MPI_Type_create_hvector(60, 1, 10 * (MPI_Aint)sizeof(int), row, &it.type));
        SUCCEEDS(MPI_Type_free(&row));
        for (int i = 0; i < 60; i++)
            for (int k = 0; k < 3; k++)
                it.index[it.count++] = 10 * i + 2 * k;
    }
    SUCCEEDS(MPI_Type_commit(&it.type));
    return it;
}

#define EACH(kind, form)                                                                       \
    for (int kind = 0; kind < KINDS; kind++)                                                   \
        for (int form = 0; form < FORMS; form++)

/* Puts, gets and accumulates access their elements, and none between them. */
static void apart(void)
{
    static int given[N], got[N], expected[N];
    EACH(kind, form) {
        struct made made = make(kind, N);
        struct layout layout = layout_of(form);
        int next = (me + 1) % size, before = (me + size - 1) % size, n = layout.count;
        MPI_Aint at = place(&made, next, 8);
        for (int i = 0; i < N; i++)
            expected[i] = -1 - i;
        SUCCEEDS(MPI_Win_fence(0, made.win));
        for (int i = 0; i < n; i++)
            given[i] = 1000 * me + i;
        SUCCEEDS(MPI_Put(given, n, MPI_INT, next, at, 1, layout.type, made.win));
        SUCCEEDS(MPI_Put(given, 0, MPI_INT, next, at, 0, layout.type, made.win));
        SUCCEEDS(MPI_Win_fence(0, made.win));
        for (int i = 0; i < n; i++)
            expected[8 + layout.index[i]] = 1000 * before + i;
        CHECK(memcmp(made.memory, expected, sizeof expected) == 0);
        SUCCEEDS(MPI_Win_fence(0, made.win));
        SUCCEEDS(MPI_Get(got, n, MPI_INT, next, at, 1, layout.type, made.win));
        SUCCEEDS(MPI_Win_fence(0, made.win));
        CHECK(memcmp(got, given, n * sizeof(int)) == 0);
        SUCCEEDS(MPI_Accumulate(given, n, MPI_INT, next, at, 1, layout.type, MPI_SUM, made.win));
        SUCCEEDS(MPI_Win_fence(0, made.win));
        for (int i = 0; i < n; i++)
            expected[8 + layout.index[i]] *= 2;
        CHECK(memcmp(made.memory, expected, sizeof expected) == 0);
        SUCCEEDS(MPI_Win_fence(0, made.win));
        SUCCEEDS(MPI_Get_accumulate(given, n, MPI_INT, got, n, MPI_INT, next, at, 1, layout.type, MPI_REPLACE, made.win));
        SUCCEEDS(MPI_Win_fence(0, made.win));
        for (int i = 0; i < n; i++) {
            CHECK(got[i] == 2 * given[i]);
            expected[8 + layout.index[i]] = 1000 * before + i;
        }
        CHECK(memcmp(made.memory, expected, sizeof expected) == 0);
        SUCCEEDS(MPI_Win_fence(0, made.win));
        SUCCEEDS(MPI_Get_accumulate(NULL, 0, MPI_INT, got, n, MPI_INT, next, at, 1, layout.type, MPI_NO_OP, made.win));
        SUCCEEDS(MPI_Win_fence(MPI_MODE_NOSUCCEED, made.win));
        CHECK(memcmp(got, given, n * sizeof(int)) == 0);
        CHECK(memcmp(made.memory, expected, sizeof expected) == 0);
        SUCCEEDS(MPI_Type_free(&layout.type));
        end(&made);
    }
}

/* All processes update the same elements of the first process, which meanwhile increments a counter between them. */
static void together(void)
{
    static int ones[N], seen[N];
    for (int i = 0; i < N; i++)
        ones[i] = 1;
    EACH(kind, form) {
        struct made made = make(kind, N);
        struct layout layout = layout_of(form);
        int n = layout.count;
        /* This position lies behind the first element of each form. */
        volatile int *own = &made.memory[layout.index[0] + 1 + (form == SPREAD || form == IRREGULAR)];
        for (int i = 0; i < n; i++)
            made.memory[layout.index[i]] = 0;
        *own = 0;
        SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
        SUCCEEDS(MPI_Win_lock_all(0, made.win));
        for (int round = 0; round < ROUNDS; round++) {
            MPI_Aint at = place(&made, 0, 0);
            SUCCEEDS(MPI_Accumulate(ones, n, MPI_INT, 0, at, 1, layout.type, MPI_SUM, made.win));
            SUCCEEDS(MPI_Get_accumulate(ones, n, MPI_INT, seen, n, MPI_INT, 0, at, 1, layout.type, MPI_SUM, made.win));
            SUCCEEDS(MPI_Win_flush(0, made.win));
            /* The whole update is one atomic step. */
            for (int i = 0; i < n; i++)
                CHECK(seen[i] == seen[0] && seen[i] > round);
            for (int i = 0; me == 0 && i < 1000; i++)
                *own += 1;
        }
        SUCCEEDS(MPI_Win_unlock_all(made.win));
        SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
        for (int i = 0; me == 0 && i < n; i++)
            CHECK(made.memory[layout.index[i]] == 2 * ROUNDS * size);
        CHECK(*own == (me == 0 ? 1000 * ROUNDS : 0));
        SUCCEEDS(MPI_Type_free(&layout.type));
        end(&made);
    }
}

/* Elements with gaps of their own, and more of them than fit into one request. */
static void large(void)
{
    enum { ELEMENT_COUNT = 300000, PAIRS = 400 };
    struct pair {
        double value;
        int index;
    };
    for (int kind = 0; kind < KINDS; kind++) {
        struct made made = make(kind, 3 * ELEMENT_COUNT);
        int next = (me + 1) % size, before = (me + size - 1) % size;
        int *given = malloc(ELEMENT_COUNT * sizeof(int)), *got = malloc(ELEMENT_COUNT * sizeof(int));
        MPI_Datatype thirds, pairs;
        SUCCEEDS(MPI_Type_vector(ELEMENT_COUNT, 1, 3, MPI_INT, &thirds));
        SUCCEEDS(MPI_Type_commit(&thirds));
        for (int i = 0; i < ELEMENT_COUNT; i++)
            given[i] = me + i;
        SUCCEEDS(MPI_Win_fence(0, made.win));
        SUCCEEDS(MPI_Put(given, ELEMENT_COUNT, MPI_INT, next, place(&made, next, 1), 1, thirds, made.win));
        SUCCEEDS(MPI_Win_fence(0, made.win));
        SUCCEEDS(MPI_Get_accumulate(given, ELEMENT_COUNT, MPI_INT, got, ELEMENT_COUNT, MPI_INT, next, place(&made, next, 1), 1, thirds, MPI_SUM, made.win));
        SUCCEEDS(MPI_Win_fence(0, made.win));
        CHECK(memcmp(got, given, ELEMENT_COUNT * sizeof(int)) == 0);
        for (int i = 0; i < ELEMENT_COUNT; i++) {
            CHECK(made.memory[3 * i] == -1 - 3 * i && made.memory[3 * i + 2] == -1 - 3 * i - 2);
            CHECK(made.memory[3 * i + 1] == 2 * (before + i));
        }
        SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
        struct pair *mine = (struct pair *)made.memory, own[PAIRS];
        memset(own, 0, sizeof own);
        for (int i = 0; i < PAIRS; i++) {
            mine[2 * i] = (struct pair){.value = i % 2 ? 1e9 : -1, .index = -7};
            mine[2 * i + 1].index = 12345;
            own[i] = (struct pair){.value = i, .index = me};
        }
        SUCCEEDS(MPI_Type_vector(PAIRS, 1, 2, MPI_DOUBLE_INT, &pairs));
        SUCCEEDS(MPI_Type_commit(&pairs));
        SUCCEEDS(MPI_Win_fence(0, made.win));
        SUCCEEDS(MPI_Accumulate(own, PAIRS, MPI_DOUBLE_INT, next, place(&made, next, 0), 1, pairs, MPI_MAXLOC, made.win));
        SUCCEEDS(MPI_Win_fence(MPI_MODE_NOSUCCEED, made.win));
        for (int i = 0; i < PAIRS; i++) {
            CHECK(mine[2 * i].index == (i % 2 ? -7 : before) && mine[2 * i + 1].index == 12345);
            CHECK(mine[2 * i].value == (i % 2 ? 1e9 : i));
        }
        SUCCEEDS(MPI_Type_free(&pairs));
        SUCCEEDS(MPI_Type_free(&thirds));
        free(given);
        free(got);
        end(&made);
    }
}

/* The blocks are in separate memory regions, each of which has been attached by itself. */
static void attached(void)
{
    enum { PARTS = 20, LENGTH = 10, STRIDE = 100 };
    static int memory[PARTS * STRIDE], given[PARTS * LENGTH], got[PARTS * LENGTH];
    MPI_Aint own, *at = calloc(size, sizeof(MPI_Aint));
    MPI_Datatype type;
    MPI_Win win;
    int next = (me + 1) % size, before = (me + size - 1) % size;
    SUCCEEDS(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    for (int i = 0; i < PARTS; i++)
        SUCCEEDS(MPI_Win_attach(win, &memory[i * STRIDE], LENGTH * sizeof(int)));
    SUCCEEDS(MPI_Get_address(memory, &own));
    SUCCEEDS(MPI_Allgather(&own, 1, MPI_AINT, at, 1, MPI_AINT, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Type_vector(PARTS, LENGTH, STRIDE, MPI_INT, &type));
    SUCCEEDS(MPI_Type_commit(&type));
    for (int i = 0; i < PARTS * LENGTH; i++)
        given[i] = 1000 * me + i;
    SUCCEEDS(MPI_Win_fence(0, win));
    SUCCEEDS(MPI_Put(given, PARTS * LENGTH, MPI_INT, next, at[next], 1, type, win));
    SUCCEEDS(MPI_Win_fence(0, win));
    SUCCEEDS(MPI_Get(got, PARTS * LENGTH, MPI_INT, next, at[next], 1, type, win));
    SUCCEEDS(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK(memcmp(got, given, sizeof given) == 0);
    for (int i = 0; i < PARTS * STRIDE; i++)
        CHECK(memory[i] == (i % STRIDE < LENGTH ? 1000 * before + i / STRIDE * LENGTH + i % STRIDE : 0));
    for (int i = 0; i < PARTS; i++)
        SUCCEEDS(MPI_Win_detach(win, &memory[i * STRIDE]));
    SUCCEEDS(MPI_Win_free(&win));
    SUCCEEDS(MPI_Type_free(&type));
    free(at);
}

/* The target makes no call until everything has happened. */
static void unaided(void)
{
    struct made made = make(CREATED, N);
    struct layout layout = layout_of(SPREAD);
    volatile int *last = &made.memory[layout.index[layout.count - 1]];
    static int ones[N];
    for (int i = 0; i < N; i++)
        ones[i] = 1;
    SUCCEEDS(MPI_Win_lock_all(0, made.win));
    SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
    if (me == 0)
        while (*last != 1)
            continue;
    else if (me == 1)
        SUCCEEDS(MPI_Put(ones, layout.count, MPI_INT, 0, 0, 1, layout.type, made.win));
    SUCCEEDS(MPI_Win_unlock_all(made.win));
    SUCCEEDS(MPI_Type_free(&layout.type));
    end(&made);
}

/* The target dies before a request, and while others wait for it. */
static void gone(void)
{
    struct made made = make(CREATED, N);
    struct layout layout = layout_of(SPREAD);
    static int given[N];
    SUCCEEDS(MPI_Win_lock_all(0, made.win));
    /* From now on the target's request queue is known. */
    SUCCEEDS(MPI_Put(given, layout.count, MPI_INT, size - 1, 0, 1, layout.type, made.win));
    SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
    if (me == size - 1)
        raise(SIGKILL);
    int code;
    do
        code = MPI_Put(given, layout.count, MPI_INT, size - 1, 0, 1, layout.type, made.win);
    while (code == MPI_SUCCESS);
    CHECK(class_of(code) == MPIX_ERR_PROC_FAILED);
    FAILS(MPIX_ERR_PROC_FAILED, MPI_Accumulate(given, layout.count, MPI_INT, size - 1, 0, 1, layout.type, MPI_SUM, made.win));
    SUCCEEDS(MPI_Win_unlock_all(made.win));
    FAILS(MPIX_ERR_PROC_FAILED, MPI_Win_free(&made.win));
}

/* Number of requests that can be queued at a process. */
enum { REQUESTS = 31 };

static _Thread_local int dies;
static atomic_int asleep;

/*
 * Replaces the function by which the library sleeps and wakes others, which a thread does in the middle of a request.
 * Threads that are to die wait for each other here.
 */
long syscall(long number, ...)
{
    long (*call)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall"), given[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        given[i] = va_arg(list, long);
    va_end(list);
    int what = (int)given[1];
    if (dies && number == SYS_futex && (what == FUTEX_WAIT || what == FUTEX_WAKE)) {
        if (atomic_fetch_add(&asleep, 1) + 1 == REQUESTS)
            kill(getpid(), SIGKILL);
        for (;;)
            pause();
    }
    return call(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}

/* A put of many blocks to process 0. */
static int put_spread(MPI_Win win)
{
    static int given[N];
    struct layout layout = layout_of(SPREAD);
    int code = MPI_Put(given, layout.count, MPI_INT, 0, 0, 1, layout.type, win);
    SUCCEEDS(MPI_Type_free(&layout.type));
    return code;
}

static void *put_and_die(void *win)
{
    dies = 1;
    for (;;)
        SUCCEEDS(put_spread(*(MPI_Win *)win));
}

/*
 * Process 1 dies in the middle of as many requests to process 0 as can be queued there. Requests of others must still
 * be served.
 */
static void abandoned(void)
{
    struct made made = make(CREATED, N);
    int got = 0;
    SUCCEEDS(MPI_Win_lock_all(0, made.win));
    SUCCEEDS(put_spread(made.win));
    SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
    if (me == 1) {
        pthread_t other;
        for (int i = 0; i < REQUESTS; i++)
            CHECK(pthread_create(&other, NULL, put_and_die, &made.win) == 0);
        pthread_join(other, NULL);
    }
    FAILS(MPIX_ERR_PROC_FAILED, MPI_Recv(&got, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (me == 0) {
        SUCCEEDS(MPI_Recv(&got, 1, MPI_INT, 2, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    } else {
        for (int i = 0; i < 2 * REQUESTS; i++)
            SUCCEEDS(put_spread(made.win));
        SUCCEEDS(MPI_Send(&me, 1, MPI_INT, 0, 0, MPI_COMM_WORLD));
    }
    SUCCEEDS(MPI_Win_unlock_all(made.win));
    FAILS(MPIX_ERR_PROC_FAILED, MPI_Win_free(&made.win));
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {{"apart", apart}, {"together", together}, {"large", large},
        {"attached", attached}, {"unaided", unaided}, {"gone", gone}, {"abandoned", abandoned}, {NULL, NULL}};
    int level;
    if (argc > 1 && strcmp(argv[1], "abandoned") == 0) {
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
        CHECK(level == MPI_THREAD_MULTIPLE);
        return play_initialized(argc, argv, scenarios);
    }
    return play(argc, argv, scenarios);
}
