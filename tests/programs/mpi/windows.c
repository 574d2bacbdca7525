/* Windows: all ways to make one, all epochs, all accesses, derived types on both sides, and invalid arguments. */
#include "mpi_check.h"

#include <signal.h>
#include <stdint.h>

enum { N = 64 };

enum kind { CREATED, ALLOCATED, SHARED, DYNAMIC, KINDS };

static int one_host;

/* A window of N longs in each process. Displacements of a dynamic window begin at `at[rank]`. */
struct made {
    MPI_Win win;
    long *memory;
    enum kind kind;
    MPI_Aint *at;
};

static struct made make(enum kind kind)
{
    struct made made = {.kind = kind, .at = calloc(size, sizeof(MPI_Aint))};
    MPI_Aint bytes = N * sizeof(long);
    if (kind == CREATED || kind == DYNAMIC)
        made.memory = calloc(N, sizeof(long));
    switch (kind) {
    case CREATED:
        SUCCEEDS(MPI_Win_create(made.memory, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &made.win));
        break;
    case ALLOCATED:
        SUCCEEDS(MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &made.memory, &made.win));
        break;
    case SHARED:
        SUCCEEDS(MPI_Win_allocate_shared(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &made.memory, &made.win));
        break;
    default:
        SUCCEEDS(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &made.win));
        SUCCEEDS(MPI_Win_attach(made.win, made.memory, bytes));
        MPI_Aint own;
        SUCCEEDS(MPI_Get_address(made.memory, &own));
        SUCCEEDS(MPI_Allgather(&own, 1, MPI_AINT, made.at, 1, MPI_AINT, MPI_COMM_WORLD));
    }
    SUCCEEDS(MPI_Win_set_errhandler(made.win, MPI_ERRORS_RETURN));
    for (int i = 0; i < N; i++)
        made.memory[i] = 1000 * me + i;
    SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
    return made;
}

static MPI_Aint place(const struct made *made, int rank, int index)
{
    return made->kind == DYNAMIC ? made->at[rank] + index * (MPI_Aint)sizeof(long) : index;
}

static void end(struct made *made)
{
    /* Others may still access the memory. */
    SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
    if (made->kind == DYNAMIC)
        SUCCEEDS(MPI_Win_detach(made->win, made->memory));
    SUCCEEDS(MPI_Win_free(&made->win));
    CHECK(made->win == MPI_WIN_NULL);
    if (made->kind == CREATED || made->kind == DYNAMIC)
        free(made->memory);
    free(made->at);
}

static void see_hosts(void)
{
    MPI_Comm host;
    int count;
    SUCCEEDS(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
    SUCCEEDS(MPI_Comm_size(host, &count));
    SUCCEEDS(MPI_Comm_free(&host));
    one_host = count == size;
}

#define EACH_KIND(kind)                                                                        \
    see_hosts();                                                                              \
    for (int kind = 0; kind < KINDS; kind++)                                                   \
        if (kind != SHARED || one_host)

static void fences(void)
{
    EACH_KIND(kind) {
        struct made made = make(kind);
        int next = (me + 1) % size, before = (me + size - 1) % size;
        long given = 7 + me, got = -1, sum = 1;
        SUCCEEDS(MPI_Win_fence(MPI_MODE_NOPRECEDE, made.win));
        SUCCEEDS(MPI_Put(&given, 1, MPI_LONG, next, place(&made, next, 3), 1, MPI_LONG, made.win));
        SUCCEEDS(MPI_Get(&got, 1, MPI_LONG, next, place(&made, next, 5), 1, MPI_LONG, made.win));
        SUCCEEDS(MPI_Accumulate(&sum, 1, MPI_LONG, 0, place(&made, 0, 9), 1, MPI_LONG, MPI_SUM, made.win));
        SUCCEEDS(MPI_Put(&given, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, made.win));
        SUCCEEDS(MPI_Win_fence(0, made.win));
        CHECK(made.memory[3] == 7 + before);
        CHECK(got == 1000 * next + 5);
        if (me == 0)
            CHECK(made.memory[9] == 9 + size);
        SUCCEEDS(MPI_Win_fence(MPI_MODE_NOSUCCEED, made.win));
        FAILS(MPI_ERR_RMA_SYNC, MPI_Put(&given, 1, MPI_LONG, next, place(&made, next, 3), 1, MPI_LONG, made.win));
        end(&made);
    }
}

static void posts(void)
{
    EACH_KIND(kind) {
        struct made made = make(kind);
        MPI_Group all, targets, origins;
        int next = (me + 1) % size, before = (me + size - 1) % size, flag = 0;
        SUCCEEDS(MPI_Win_get_group(made.win, &all));
        SUCCEEDS(MPI_Group_incl(all, 1, &next, &targets));
        SUCCEEDS(MPI_Group_incl(all, 1, &before, &origins));
        for (int round = 0; round < 3; round++) {
            long given = 100 * round + me;
            SUCCEEDS(MPI_Win_post(origins, 0, made.win));
            FAILS(MPI_ERR_RMA_SYNC, MPI_Win_post(origins, 0, made.win));
            SUCCEEDS(MPI_Win_start(targets, 0, made.win));
            SUCCEEDS(MPI_Put(&given, 1, MPI_LONG, next, place(&made, next, 1), 1, MPI_LONG, made.win));
            SUCCEEDS(MPI_Win_complete(made.win));
            if (round == 1)
                SUCCEEDS(MPI_Win_wait(made.win));
            else
                for (flag = 0; !flag;)
                    SUCCEEDS(MPI_Win_test(made.win, &flag));
            CHECK(made.memory[1] == 100 * round + before);
        }
        FAILS(MPI_ERR_RMA_SYNC, MPI_Win_complete(made.win));
        FAILS(MPI_ERR_RMA_SYNC, MPI_Win_wait(made.win));
        FAILS(MPI_ERR_RMA_SYNC, MPI_Win_test(made.win, &flag));
        SUCCEEDS(MPI_Group_free(&targets));
        SUCCEEDS(MPI_Group_free(&origins));
        SUCCEEDS(MPI_Group_free(&all));
        end(&made);
    }
}

static void locks(void)
{
    enum { ROUNDS = 200 };
    EACH_KIND(kind) {
        struct made made = make(kind);
        int last = size - 1;
        MPI_Aint at = place(&made, last, 0);
        if (me == last) {
            made.memory[0] = 0;
            SUCCEEDS(MPI_Win_sync(made.win));
        }
        SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
        /* Reading and writing are separate steps: only the lock excludes others. */
        for (int i = 0; i < ROUNDS; i++) {
            long value;
            SUCCEEDS(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, last, 0, made.win));
            SUCCEEDS(MPI_Get(&value, 1, MPI_LONG, last, at, 1, MPI_LONG, made.win));
            SUCCEEDS(MPI_Win_flush(last, made.win));
            value++;
            SUCCEEDS(MPI_Put(&value, 1, MPI_LONG, last, at, 1, MPI_LONG, made.win));
            SUCCEEDS(MPI_Win_unlock(last, made.win));
        }
        SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
        long value = -1;
        SUCCEEDS(MPI_Win_lock(MPI_LOCK_SHARED, last, 0, made.win));
        SUCCEEDS(MPI_Get(&value, 1, MPI_LONG, last, at, 1, MPI_LONG, made.win));
        SUCCEEDS(MPI_Win_flush_local(last, made.win));
        CHECK(value == (long)ROUNDS * size);
        FAILS(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, last, 0, made.win));
        FAILS(MPI_ERR_RMA_SYNC, MPI_Win_lock_all(0, made.win));
        if (size > 1) {
            FAILS(MPI_ERR_RMA_SYNC, MPI_Put(&value, 1, MPI_LONG, 0, place(&made, 0, 0), 1, MPI_LONG, made.win));
            SUCCEEDS(MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOCHECK, made.win));
            SUCCEEDS(MPI_Win_unlock(0, made.win));
        }
        SUCCEEDS(MPI_Win_unlock(last, made.win));
        FAILS(MPI_ERR_RMA_SYNC, MPI_Win_unlock(last, made.win));
        FAILS(MPI_ERR_RMA_SYNC, MPI_Win_flush(last, made.win));
        SUCCEEDS(MPI_Win_lock_all(0, made.win));
        for (int rank = 0; rank < size; rank++) {
            long mine = 5000 + me;
            SUCCEEDS(MPI_Put(&mine, 1, MPI_LONG, rank, place(&made, rank, 10 + me), 1, MPI_LONG, made.win));
            SUCCEEDS(MPI_Win_flush(rank, made.win));
        }
        SUCCEEDS(MPI_Win_flush_all(made.win));
        SUCCEEDS(MPI_Win_flush_local_all(made.win));
        SUCCEEDS(MPI_Win_unlock_all(made.win));
        FAILS(MPI_ERR_RMA_SYNC, MPI_Win_unlock_all(made.win));
        FAILS(MPI_ERR_RMA_SYNC, MPI_Win_flush_all(made.win));
        SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
        SUCCEEDS(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, me, 0, made.win));
        for (int rank = 0; rank < size; rank++)
            CHECK(made.memory[10 + rank] == 5000 + rank);
        SUCCEEDS(MPI_Win_unlock(me, made.win));
        end(&made);
    }
}

/* All processes at once update sums and counters, and no update may be lost. */
static void atomics(void)
{
    enum { ROUNDS = 300 };
    EACH_KIND(kind) {
        struct made made = make(kind);
        memset(made.memory, 0, N * sizeof(long));
        SUCCEEDS(MPI_Win_lock_all(0, made.win));
        SUCCEEDS(MPI_Win_sync(made.win));
        SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
        long seen = -1;
        for (int i = 0; i < ROUNDS; i++) {
            long ones[4] = {1, 2, 3, 4}, one = 1, got = -1, old[4];
            double half = 0.5;
            struct { double value; int index; } pair = {i, me};
            MPI_Aint at = place(&made, 0, 0);
            SUCCEEDS(MPI_Accumulate(ones, 4, MPI_LONG, 0, at, 4, MPI_LONG, MPI_SUM, made.win));
            SUCCEEDS(MPI_Fetch_and_op(&one, &got, MPI_LONG, 0, place(&made, 0, 5), MPI_SUM, made.win));
            CHECK(got > seen && got < (long)ROUNDS * size);
            seen = got;
            SUCCEEDS(MPI_Accumulate(&half, 1, MPI_DOUBLE, 0, place(&made, 0, 6), 1, MPI_DOUBLE, MPI_SUM, made.win));
            SUCCEEDS(MPI_Get_accumulate(ones, 4, MPI_LONG, old, 4, MPI_LONG, 0, place(&made, 0, 8), 4, MPI_LONG, MPI_SUM, made.win));
            /* Each element is updated atomically, but not all of them together. */
            for (int k = 0; k < 4; k++)
                CHECK(old[k] % (k + 1) == 0 && old[k] < (k + 1) * (long)ROUNDS * size);
            SUCCEEDS(MPI_Accumulate(&pair, 1, MPI_DOUBLE_INT, 0, place(&made, 0, 20), 1, MPI_DOUBLE_INT, MPI_MAXLOC, made.win));
            /* A counter by compare and swap. */
            long known, next, before;
            SUCCEEDS(MPI_Fetch_and_op(NULL, &known, MPI_LONG, 0, place(&made, 0, 30), MPI_NO_OP, made.win));
            for (;;) {
                next = known + 1;
                SUCCEEDS(MPI_Compare_and_swap(&next, &known, &before, MPI_LONG, 0, place(&made, 0, 30), made.win));
                if (before == known)
                    break;
                known = before;
            }
        }
        SUCCEEDS(MPI_Win_flush_all(made.win));
        SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
        SUCCEEDS(MPI_Win_unlock_all(made.win));
        if (me == 0) {
            long all = (long)ROUNDS * size;
            double sum;
            struct { double value; int index; } pair;
            for (int i = 0; i < 4; i++)
                CHECK(made.memory[i] == (i + 1) * all);
            CHECK(made.memory[5] == all);
            memcpy(&sum, &made.memory[6], sizeof sum);
            CHECK(sum == all * 0.5);
            CHECK(made.memory[8] == all && made.memory[11] == 4 * all);
            memcpy(&pair, &made.memory[20], sizeof pair);
            CHECK(pair.value == ROUNDS - 1 && pair.index == 0);
            CHECK(made.memory[30] == all);
        }
        SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
        end(&made);
    }
}

static void operators(void)
{
    EACH_KIND(kind) {
        struct made made = make(kind);
        int next = (me + 1) % size;
        MPI_Aint at = place(&made, next, 40 + 0);
        long given[2] = {6, 3}, got[2] = {-1, -1};
        unsigned char bytes[3] = {1, 2, 4}, old[3];
        SUCCEEDS(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, made.win));
        SUCCEEDS(MPI_Accumulate(given, 2, MPI_LONG, next, at, 2, MPI_LONG, MPI_REPLACE, made.win));
        SUCCEEDS(MPI_Get_accumulate(given, 2, MPI_LONG, got, 2, MPI_LONG, next, at, 2, MPI_LONG, MPI_PROD, made.win));
        CHECK(got[0] == 6 && got[1] == 3);
        SUCCEEDS(MPI_Get_accumulate(NULL, 0, MPI_LONG, got, 2, MPI_LONG, next, at, 2, MPI_LONG, MPI_NO_OP, made.win));
        CHECK(got[0] == 36 && got[1] == 9);
        SUCCEEDS(MPI_Accumulate(given, 2, MPI_LONG, next, at, 2, MPI_LONG, MPI_BAND, made.win));
        SUCCEEDS(MPI_Win_flush(next, made.win));
        SUCCEEDS(MPI_Get(got, 2, MPI_LONG, next, at, 2, MPI_LONG, made.win));
        CHECK(got[0] == (36 & 6) && got[1] == (9 & 3));
        SUCCEEDS(MPI_Fetch_and_op(&given[1], got, MPI_LONG, next, at, MPI_MAX, made.win));
        CHECK(got[0] == 4);
        SUCCEEDS(MPI_Get_accumulate(bytes, 3, MPI_BYTE, old, 3, MPI_BYTE, next, at, 3, MPI_BYTE, MPI_REPLACE, made.win));
        CHECK(old[0] == 4 && old[1] == 0);
        FAILS(MPI_ERR_OP, MPI_Accumulate(given, 2, MPI_LONG, next, at, 2, MPI_LONG, MPI_OP_NULL, made.win));
        /* Bytes are numbers here, as in other MPI libraries: 200 plus 100 is 44. */
        unsigned char numbers[2] = {200, 100}, number;
        SUCCEEDS(MPI_Accumulate(&numbers[0], 1, MPI_BYTE, next, at, 1, MPI_BYTE, MPI_REPLACE, made.win));
        SUCCEEDS(MPI_Accumulate(&numbers[1], 1, MPI_BYTE, next, at, 1, MPI_BYTE, MPI_SUM, made.win));
        SUCCEEDS(MPI_Fetch_and_op(&numbers[0], &number, MPI_BYTE, next, at, MPI_MAX, made.win));
        CHECK(number == 44);
        SUCCEEDS(MPI_Get_accumulate(bytes, 3, MPI_BYTE, old, 3, MPI_BYTE, next, at, 3, MPI_BYTE, MPI_SUM, made.win));
        CHECK(old[0] == 200 && old[1] == 2 && old[2] == 4);
        FAILS(MPI_ERR_OP, MPI_Accumulate(bytes, 1, MPI_BYTE, next, at, 1, MPI_BYTE, MPI_MINLOC, made.win));
        /* Without elements, the operator need not suit the type, but must be valid. */
        SUCCEEDS(MPI_Accumulate(bytes, 0, MPI_BYTE, next, at, 0, MPI_BYTE, MPI_SUM, made.win));
        SUCCEEDS(MPI_Get_accumulate(bytes, 0, MPI_BYTE, old, 0, MPI_BYTE, next, at, 0, MPI_BYTE, MPI_SUM, made.win));
        FAILS(MPI_ERR_OP, MPI_Accumulate(bytes, 0, MPI_BYTE, next, at, 0, MPI_BYTE, MPI_OP_NULL, made.win));
        FAILS(MPI_ERR_TRUNCATE, MPI_Accumulate(bytes, 1, MPI_BYTE, next, at, 0, MPI_BYTE, MPI_SUM, made.win));
        /* A type whose parts have no elements has no elements. */
        MPI_Datatype none, apart, empty;
        SUCCEEDS(MPI_Type_contiguous(0, MPI_LONG, &none));
        SUCCEEDS(MPI_Type_create_resized(none, 0, 16, &apart));
        SUCCEEDS(MPI_Type_contiguous(2, apart, &empty));
        SUCCEEDS(MPI_Type_commit(&empty));
        SUCCEEDS(MPI_Accumulate(bytes, 1, empty, next, at, 1, empty, MPI_SUM, made.win));
        SUCCEEDS(MPI_Type_free(&none));
        SUCCEEDS(MPI_Type_free(&apart));
        SUCCEEDS(MPI_Type_free(&empty));
        SUCCEEDS(MPI_Win_unlock(next, made.win));
        /* Accesses with requests. */
        MPI_Request requests[4];
        long value = 11, sum = 1, result = -1, before = -1;
        SUCCEEDS(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, made.win));
        SUCCEEDS(MPI_Rput(&value, 1, MPI_LONG, next, at, 1, MPI_LONG, made.win, &requests[0]));
        SUCCEEDS(MPI_Raccumulate(&sum, 1, MPI_LONG, next, at, 1, MPI_LONG, MPI_SUM, made.win, &requests[1]));
        SUCCEEDS(MPI_Rget_accumulate(&sum, 1, MPI_LONG, &before, 1, MPI_LONG, next, at, 1, MPI_LONG, MPI_SUM, made.win, &requests[2]));
        SUCCEEDS(MPI_Rget(&result, 1, MPI_LONG, next, at, 1, MPI_LONG, made.win, &requests[3]));
        SUCCEEDS(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
        CHECK(before == 12 && result == 13);
        SUCCEEDS(MPI_Win_unlock(next, made.win));
        end(&made);
    }
}

static void layouts(void)
{
    EACH_KIND(kind) {
        struct made made = make(kind);
        int next = (me + 1) % size;
        MPI_Datatype column, pieces;
        int lengths[3] = {1, 3, 2}, offsets[3] = {0, 2, 8};
        long given[24], got[6], row[6];
        SUCCEEDS(MPI_Type_vector(6, 1, 4, MPI_LONG, &column));
        SUCCEEDS(MPI_Type_indexed(3, lengths, offsets, MPI_LONG, &pieces));
        SUCCEEDS(MPI_Type_commit(&column));
        SUCCEEDS(MPI_Type_commit(&pieces));
        for (int i = 0; i < 24; i++)
            given[i] = 10 * i;
        SUCCEEDS(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, made.win));
        SUCCEEDS(MPI_Put(given, 1, column, next, place(&made, next, 20), 1, pieces, made.win));
        SUCCEEDS(MPI_Win_flush(next, made.win));
        SUCCEEDS(MPI_Get(got, 6, MPI_LONG, next, place(&made, next, 20), 1, pieces, made.win));
        for (int i = 0; i < 6; i++)
            CHECK(got[i] == 40 * i);
        SUCCEEDS(MPI_Accumulate(got, 6, MPI_LONG, next, place(&made, next, 20), 1, pieces, MPI_SUM, made.win));
        SUCCEEDS(MPI_Get_accumulate(given, 1, column, row, 6, MPI_LONG, next, place(&made, next, 20), 1, pieces, MPI_MIN, made.win));
        for (int i = 0; i < 6; i++)
            CHECK(row[i] == 80 * i);
        SUCCEEDS(MPI_Win_unlock(next, made.win));
        SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
        SUCCEEDS(MPI_Win_lock(MPI_LOCK_SHARED, me, 0, made.win));
        CHECK(made.memory[20] == 0 && made.memory[21] == 1000 * me + 21 && made.memory[22] == 40);
        CHECK(made.memory[24] == 120 && made.memory[25] == 1000 * me + 25 && made.memory[29] == 200);
        SUCCEEDS(MPI_Win_unlock(me, made.win));
        SUCCEEDS(MPI_Type_free(&column));
        SUCCEEDS(MPI_Type_free(&pieces));
        end(&made);
    }
}

/* More bytes than fit into one request to another host. */
static void large(void)
{
    enum { BIG = 400000 };
    long *memory, *given = malloc(BIG * sizeof(long)), *got = calloc(BIG, sizeof(long));
    MPI_Win win;
    int next = (me + 1) % size, before = (me + size - 1) % size;
    SUCCEEDS(MPI_Win_allocate(BIG * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    for (int i = 0; i < BIG; i++)
        given[i] = (long)me * BIG + i, memory[i] = 0;
    SUCCEEDS(MPI_Win_fence(0, win));
    SUCCEEDS(MPI_Put(given, BIG, MPI_LONG, next, 0, BIG, MPI_LONG, win));
    SUCCEEDS(MPI_Win_fence(0, win));
    SUCCEEDS(MPI_Accumulate(given, BIG, MPI_LONG, next, 0, BIG, MPI_LONG, MPI_SUM, win));
    SUCCEEDS(MPI_Win_fence(0, win));
    SUCCEEDS(MPI_Get(got, BIG, MPI_LONG, me, 0, BIG, MPI_LONG, win));
    SUCCEEDS(MPI_Win_fence(0, win));
    for (int i = 0; i < BIG; i++)
        CHECK(got[i] == 2 * ((long)before * BIG + i));
    SUCCEEDS(MPI_Get(got, BIG, MPI_LONG, next, 0, BIG, MPI_LONG, win));
    SUCCEEDS(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK(got[BIG - 1] == 2 * ((long)me * BIG + BIG - 1));
    SUCCEEDS(MPI_Win_free(&win));
    free(given);
    free(got);
}

static void shared(void)
{
    int *mine, *theirs, unit = -1;
    MPI_Aint bytes = -1;
    MPI_Win win;
    SUCCEEDS(MPI_Win_allocate_shared((me + 1) * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
    SUCCEEDS(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    SUCCEEDS(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    for (int i = 0; i <= me; i++)
        mine[i] = 100 * me + i;
    SUCCEEDS(MPI_Win_sync(win));
    SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
    SUCCEEDS(MPI_Win_sync(win));
    int *first = NULL;
    for (int rank = 0; rank < size; rank++) {
        SUCCEEDS(MPI_Win_shared_query(win, rank, &bytes, &unit, &theirs));
        CHECK(bytes == (MPI_Aint)((rank + 1) * sizeof(int)) && unit == sizeof(int));
        CHECK(theirs[rank] == 101 * rank);
        if (rank == 0)
            first = theirs;
        /* The memory of all processes is contiguous. */
        CHECK(theirs == first + rank * (rank + 1) / 2);
    }
    SUCCEEDS(MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &theirs));
    CHECK(theirs == first && bytes == sizeof(int));
    FAILS(MPI_ERR_RANK, MPI_Win_shared_query(win, size, &bytes, &unit, &theirs));
    SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
    SUCCEEDS(MPI_Win_unlock_all(win));
    SUCCEEDS(MPI_Win_free(&win));
    /* A part without memory has no address. */
    SUCCEEDS(MPI_Win_allocate_shared(me == 0 ? 8 : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
    SUCCEEDS(MPI_Win_shared_query(win, size - 1, &bytes, &unit, &theirs));
    CHECK(size == 1 || (bytes == 0 && theirs == NULL));
    SUCCEEDS(MPI_Win_free(&win));
}

static int handled;

static void handle(MPI_Win *win, int *code, ...)
{
    CHECK(*win != MPI_WIN_NULL);
    handled = class_of(*code);
}

static int forget(MPI_Win win, int key, void *value, void *extra)
{
    (void)win, (void)key, (void)value;
    ++*(int *)extra;
    return MPI_SUCCESS;
}

static void facts(void)
{
    struct made made = make(CREATED);
    void *value;
    int flag = 0, key, length, ended = 0;
    char name[MPI_MAX_OBJECT_NAME];
    SUCCEEDS(MPI_Win_get_attr(made.win, MPI_WIN_BASE, &value, &flag));
    CHECK(flag && value == made.memory);
    SUCCEEDS(MPI_Win_get_attr(made.win, MPI_WIN_SIZE, &value, &flag));
    CHECK(flag && *(MPI_Aint *)value == (MPI_Aint)(N * sizeof(long)));
    SUCCEEDS(MPI_Win_get_attr(made.win, MPI_WIN_DISP_UNIT, &value, &flag));
    CHECK(flag && *(int *)value == sizeof(long));
    SUCCEEDS(MPI_Win_get_attr(made.win, MPI_WIN_CREATE_FLAVOR, &value, &flag));
    CHECK(flag && *(int *)value == MPI_WIN_FLAVOR_CREATE);
    SUCCEEDS(MPI_Win_get_attr(made.win, MPI_WIN_MODEL, &value, &flag));
    CHECK(flag && *(int *)value == MPI_WIN_UNIFIED);
    SUCCEEDS(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, forget, &key, &ended));
    SUCCEEDS(MPI_Win_get_attr(made.win, key, &value, &flag));
    CHECK(!flag);
    SUCCEEDS(MPI_Win_set_attr(made.win, key, &ended));
    SUCCEEDS(MPI_Win_get_attr(made.win, key, &value, &flag));
    CHECK(flag && value == &ended);
    SUCCEEDS(MPI_Win_delete_attr(made.win, key));
    CHECK(ended == 1);
    SUCCEEDS(MPI_Win_set_attr(made.win, key, &ended));
    SUCCEEDS(MPI_Win_free_keyval(&key));
    CHECK(key == MPI_KEYVAL_INVALID);
    SUCCEEDS(MPI_Win_get_name(made.win, name, &length));
    CHECK(length == 0);
    SUCCEEDS(MPI_Win_set_name(made.win, "heights"));
    SUCCEEDS(MPI_Win_get_name(made.win, name, &length));
    CHECK(length == 7 && strcmp(name, "heights") == 0);
    CHECK(MPI_Win_fromint(MPI_Win_toint(made.win)) == made.win);
    MPI_Info info;
    char text[8];
    SUCCEEDS(MPI_Info_create(&info));
    SUCCEEDS(MPI_Info_set(info, "no_locks", "true"));
    SUCCEEDS(MPI_Win_set_info(made.win, info));
    SUCCEEDS(MPI_Info_free(&info));
    SUCCEEDS(MPI_Win_get_info(made.win, &info));
    length = sizeof text;
    SUCCEEDS(MPI_Info_get_string(info, "no_locks", &length, text, &flag));
    CHECK(flag && strcmp(text, "true") == 0);
    SUCCEEDS(MPI_Info_free(&info));
    MPI_Errhandler handler, again;
    SUCCEEDS(MPI_Win_create_errhandler(handle, &handler));
    SUCCEEDS(MPI_Win_set_errhandler(made.win, handler));
    SUCCEEDS(MPI_Win_get_errhandler(made.win, &again));
    CHECK(again == handler);
    SUCCEEDS(MPI_Errhandler_free(&again));
    SUCCEEDS(MPI_Errhandler_free(&handler));
    SUCCEEDS(MPI_Win_call_errhandler(made.win, MPI_ERR_OTHER));
    CHECK(handled == MPI_ERR_OTHER);
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_unlock(0, made.win));
    CHECK(handled == MPI_ERR_RMA_SYNC);
    end(&made);
    CHECK(ended == 2);
}

static void mistakes(void)
{
    struct made made = make(ALLOCATED);
    MPI_Win win = made.win, other = MPI_WIN_NULL;
    long value = 0, two[2];
    void *base;
    FAILS(MPI_ERR_WIN, MPI_Win_fence(0, MPI_WIN_NULL));
    FAILS(MPI_ERR_WIN, MPI_Put(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_WIN_NULL));
    FAILS(MPI_ERR_WIN, MPI_Win_free(&other));
    FAILS(MPI_ERR_SIZE, MPI_Win_create(&value, -1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &other));
    FAILS(MPI_ERR_DISP, MPI_Win_create(&value, 1, 0, MPI_INFO_NULL, MPI_COMM_WORLD, &other));
    FAILS(MPI_ERR_COMM, MPI_Win_allocate(1, 1, MPI_INFO_NULL, MPI_COMM_NULL, &base, &other));
    FAILS(MPI_ERR_ASSERT, MPI_Win_fence(MPI_MODE_NOCHECK, win));
    FAILS(MPI_ERR_ASSERT, MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOPUT, win));
    FAILS(MPI_ERR_ASSERT, MPI_Win_lock_all(1, win));
    FAILS(MPI_ERR_LOCKTYPE, MPI_Win_lock(17, 0, 0, win));
    FAILS(MPI_ERR_RANK, MPI_Win_lock(MPI_LOCK_SHARED, size, 0, win));
    FAILS(MPI_ERR_RANK, MPI_Win_lock(MPI_LOCK_SHARED, -17, 0, win));
    FAILS(MPI_ERR_RMA_FLAVOR, MPI_Win_attach(win, &value, sizeof value));
    FAILS(MPI_ERR_RMA_FLAVOR, MPI_Win_detach(win, &value));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Put(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win));
    SUCCEEDS(MPI_Win_lock_all(0, win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_free(&win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_fence(0, win));
    FAILS(MPI_ERR_RANK, MPI_Put(&value, 1, MPI_LONG, size, 0, 1, MPI_LONG, win));
    FAILS(MPI_ERR_COUNT, MPI_Put(&value, -1, MPI_LONG, 0, 0, 1, MPI_LONG, win));
    FAILS(MPI_ERR_COUNT, MPI_Get(&value, 1, MPI_LONG, 0, 0, -1, MPI_LONG, win));
    FAILS(MPI_ERR_TYPE, MPI_Put(&value, 1, MPI_DATATYPE_NULL, 0, 0, 1, MPI_LONG, win));
    FAILS(MPI_ERR_TYPE, MPI_Put(&value, 1, MPI_LONG, 0, 0, 1, MPI_DATATYPE_NULL, win));
    FAILS(MPI_ERR_RMA_RANGE, MPI_Put(&value, 1, MPI_LONG, 0, -1, 1, MPI_LONG, win));
    FAILS(MPI_ERR_RMA_RANGE, MPI_Put(&value, 1, MPI_LONG, 0, N, 1, MPI_LONG, win));
    FAILS(MPI_ERR_RMA_RANGE, MPI_Get(two, 2, MPI_LONG, 0, N - 1, 2, MPI_LONG, win));
    FAILS(MPI_ERR_RMA_RANGE, MPI_Get(&value, 1, MPI_LONG, 0, INT64_MAX, 1, MPI_LONG, win));
    FAILS(MPI_ERR_BUFFER, MPI_Put(NULL, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win));
    FAILS(MPI_ERR_TYPE, MPI_Compare_and_swap(&value, &value, two, MPI_DOUBLE, 0, 0, win));
    FAILS(MPI_ERR_OP, MPI_Fetch_and_op(&value, two, MPI_DOUBLE, 0, 0, MPI_BAND, win));
    FAILS(MPI_ERR_ARG, MPI_Rput(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win, NULL));
    SUCCEEDS(MPI_Win_unlock_all(win));
    MPI_Win stale = win;
    end(&made);
    FAILS(MPI_ERR_WIN, MPI_Win_fence(0, stale));
    struct made dynamic = make(DYNAMIC);
    FAILS(MPI_ERR_RMA_ATTACH, MPI_Win_attach(dynamic.win, dynamic.memory + 1, 8));
    FAILS(MPI_ERR_RMA_ATTACH, MPI_Win_detach(dynamic.win, dynamic.memory + 1));
    int unit;
    MPI_Aint bytes;
    FAILS(MPI_ERR_RMA_FLAVOR, MPI_Win_shared_query(dynamic.win, 0, &bytes, &unit, &base));
    end(&dynamic);
    see_hosts();
    if (!one_host)
        FAILS(MPI_ERR_RMA_SHARED, MPI_Win_allocate_shared(8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &other));
}

/* The last process dies while it holds the lock of process 0. */
static void dead_holder(void)
{
    struct made made = make(ALLOCATED);
    long value = 1;
    if (me == size - 1) {
        SUCCEEDS(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, made.win));
        SUCCEEDS(MPI_Send(&me, 1, MPI_INT, 0, 0, MPI_COMM_WORLD));
        raise(SIGKILL);
    }
    if (me == 0) {
        SUCCEEDS(MPI_Recv(&value, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        FAILS(MPIX_ERR_PROC_FAILED, MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, made.win));
    }
    FAILS(MPIX_ERR_PROC_FAILED, MPI_Win_free(&made.win));
    CHECK(made.win == MPI_WIN_NULL);
}

/* More windows at a time than fit into one block of the shared table. */
static void many(void)
{
    enum { OPEN_WINDOWS = 200 };
    static MPI_Win wins[OPEN_WINDOWS];
    static long memory[OPEN_WINDOWS];
    int next = (me + 1) % size, before = (me + size - 1) % size;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < OPEN_WINDOWS; i++) {
            SUCCEEDS(MPI_Win_create(&memory[i], sizeof(long), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &wins[i]));
            SUCCEEDS(MPI_Win_fence(0, wins[i]));
            long mine = 1000 * round + 10 * i + me;
            SUCCEEDS(MPI_Put(&mine, 1, MPI_LONG, next, 0, 1, MPI_LONG, wins[i]));
            SUCCEEDS(MPI_Win_fence(0, wins[i]));
        }
        for (int i = 0; i < OPEN_WINDOWS; i++) {
            CHECK(memory[i] == 1000 * round + 10 * i + before);
            SUCCEEDS(MPI_Win_free(&wins[i]));
        }
    }
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {{"fences", fences}, {"posts", posts},
        {"locks", locks}, {"atomics", atomics}, {"operators", operators}, {"layouts", layouts},
        {"large", large}, {"shared", shared}, {"facts", facts}, {"mistakes", mistakes},
        {"dead_holder", dead_holder}, {"many", many}, {NULL, NULL}};
    return play(argc, argv, scenarios);
}
