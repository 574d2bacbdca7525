/*
 * Collectives in a random order that is the same for all processes: of any kind, in any form, several in progress at
 * once, waited for in a different order by each process. What each process contributes is a function of numbers that
 * all know, and so is the expected result.
 */
#include "mpi_check.h"

#include <stdint.h>

enum kind {
    BARRIER, BCAST, GATHER, GATHERV, SCATTER, SCATTERV, ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW,
    REDUCE, ALLREDUCE, SCAN, EXSCAN, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, KINDS
};

/* A unit is two numbers. Its memory layouts: two MPI_UINT32_T, a contiguous pair, a pair with a gap. */
enum layout { NUMBERS, PAIR, SPREAD, LAYOUTS };
static MPI_Datatype types[LAYOUTS];
static MPI_Op compose;

#define MAX_RANKS 8
#define MAX_UNITS 300
#define MAX_UNITS_IN_BUFFER (MAX_RANKS * (MAX_UNITS + 7) * 3 + 16)
#define UNTOUCHED 0xabababab

struct call {
    enum kind kind;
    int number, root, units, in_place, persistent, op;
    enum layout gives, takes;
    int counts[MAX_RANKS], starts[MAX_RANKS];          /* of what a process receives, in units */
    int their_counts[MAX_RANKS], their_starts[MAX_RANKS]; /* of what it sends */
    int sizes[2][MAX_RANKS], places[2][MAX_RANKS];     /* as passed to the call */
    MPI_Datatype kinds[2][MAX_RANKS];
    uint32_t *send, *recv;
    MPI_Request request;
};

static uint32_t seed;
static uint32_t draw(uint32_t below)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

/* Returns number `at` of what a process sends to another one in a call. */
static uint32_t value(int number, int from, int to, int at)
{
    uint32_t x = (uint32_t)number * 2654435761u ^ (uint32_t)(from * 97 + to * 7919 + at * 31 + 1);
    x ^= x >> 15;
    return x * 2246822519u ^ x >> 13;
}

/* Returns the position of number `at` in memory. */
static int place(enum layout layout, int at)
{
    return layout == SPREAD ? at / 2 * 3 + at % 2 * 2 : at;
}
static int extent(enum layout layout) /* of a unit, in numbers */
{
    return layout == SPREAD ? 3 : 2;
}
static int elements(enum layout layout, int units)
{
    return layout == NUMBERS ? 2 * units : units;
}

/* Composes maps x -> a x + b: associative, but not commutative. */
static void composed(const uint32_t *first, uint32_t *second)
{
    second[1] = first[0] * second[1] + first[1];
    second[0] = first[0] * second[0];
}
static void combine(void *in, void *inout, int *count, MPI_Datatype *type)
{
    int step = *type == types[SPREAD] ? 3 : 2, second = *type == types[SPREAD] ? 2 : 1;
    CHECK(*type == types[SPREAD] || *type == types[PAIR]);
    for (int i = 0; i < *count; i++) {
        uint32_t *a = (uint32_t *)in + i * step, *b = (uint32_t *)inout + i * step;
        uint32_t from[2] = {a[0], a[second]}, to[2] = {b[0], b[second]};
        composed(from, to);
        b[0] = to[0];
        b[second] = to[1];
    }
}

/* Combines what processes `0 .. upto` contribute, for one unit from number `at` on. */
static void reduced(const struct call *call, int upto, int at, uint32_t out[2])
{
    for (int rank = 0; rank < upto; rank++) {
        uint32_t theirs[2] = {value(call->number, rank, 0, at), value(call->number, rank, 0, at + 1)};
        if (rank == 0) {
            memcpy(out, theirs, sizeof theirs);
        } else if (call->op == 0) {
            out[0] += theirs[0];
            out[1] += theirs[1];
        } else if (call->op == 1) {
            out[0] = out[0] > theirs[0] ? out[0] : theirs[0];
            out[1] = out[1] > theirs[1] ? out[1] : theirs[1];
        } else {
            composed(out, theirs);
            memcpy(out, theirs, sizeof theirs);
        }
    }
}

static void put(uint32_t *buffer, enum layout layout, int from_unit, int units, int number, int from, int to, int first)
{
    for (int at = 0; at < 2 * units; at++)
        buffer[from_unit * extent(layout) + place(layout, at)] = value(number, from, to, first + at);
}
static void expect(const struct call *call, int from_unit, int units, int from, int to)
{
    for (int at = 0; at < 2 * units; at++) {
        uint32_t got = call->recv[from_unit * extent(call->takes) + place(call->takes, at)];
        if (got != value(call->number, from, to, at)) {
            fprintf(stderr, "process %d: call %d of kind %d (from %d to %d, number %d, layouts %d %d, in place %d): %x\n", me,
                    call->number, call->kind, from, to, at, call->gives, call->takes, call->in_place, got);
            exit(1);
        }
    }
}

static int is_reduction(enum kind kind)
{
    return kind >= REDUCE;
}

static struct call *make(int number)
{
    struct call *call = calloc(1, sizeof *call);
    call->number = number;
    call->kind = draw(KINDS);
    call->root = draw(size);
    call->units = draw(4) == 0 ? draw(MAX_UNITS) : draw(6);
    call->in_place = draw(3) == 0;
    call->op = draw(3);
    /* Processes may have different layouts. */
    uint32_t kept = seed;
    seed ^= (uint32_t)me * 7777777u;
    draw(2);
    call->gives = draw(LAYOUTS);
    call->takes = draw(LAYOUTS);
    seed = kept;
    if (is_reduction(call->kind)) {
        call->takes = call->gives = call->op == 2 ? 1 + draw(2) : NUMBERS;
    }
    for (int rank = 0, end = 0, their_end = 0; rank < size; rank++) {
        int listed = call->kind == GATHERV || call->kind == SCATTERV || call->kind == ALLGATHERV || call->kind == ALLTOALLV ||
                     call->kind == ALLTOALLW || call->kind == REDUCE_SCATTER;
        int exchanged = call->kind == ALLTOALLV || call->kind == ALLTOALLW;
        int units = !listed ? call->units : (number * 7 + rank * 5) % 6 * (call->units / 6 + 1);
        /* In place, both directions have the same counts. */
        call->counts[rank] = exchanged ? (number + (call->in_place ? rank + me : rank * 3 + me)) % 5 : units;
        call->their_counts[rank] = exchanged ? (number + (call->in_place ? rank + me : me * 3 + rank)) % 5 : units;
        int gap = listed && call->kind != REDUCE_SCATTER ? (rank * 3 + number) % 3 : 0;
        call->starts[rank] = end + gap;
        call->their_starts[rank] = their_end + gap;
        end += gap + call->counts[rank];
        their_end += gap + call->their_counts[rank];
        for (int side = 0; side < 2; side++) {
            enum layout layout = side ? call->takes : call->gives;
            int start = side ? call->starts[rank] : call->their_starts[rank];
            call->sizes[side][rank] = elements(layout, side ? call->counts[rank] : call->their_counts[rank]);
            call->places[side][rank] = call->kind == ALLTOALLW ? start * extent(layout) * 4 : elements(layout, start);
            call->kinds[side][rank] = types[layout];
        }
    }
    call->send = malloc(MAX_UNITS_IN_BUFFER * sizeof *call->send);
    call->recv = malloc(MAX_UNITS_IN_BUFFER * sizeof *call->recv);
    call->request = MPI_REQUEST_NULL;
    return call;
}

/* Returns whether this process's operands are in its result buffer. */
static int in_place(const struct call *call)
{
    switch (call->kind) {
    case GATHER: case GATHERV: case SCATTER: case SCATTERV: case REDUCE: return call->in_place && me == call->root;
    case BARRIER: case BCAST: return 0;
    default: return call->in_place;
    }
}

static void fill(struct call *call)
{
    memset(call->send, 0xab, MAX_UNITS_IN_BUFFER * sizeof *call->send);
    memset(call->recv, 0xab, MAX_UNITS_IN_BUFFER * sizeof *call->recv);
    int number = call->number, here = in_place(call);
    uint32_t *own = here ? call->recv : call->send;
    enum layout layout = here ? call->takes : call->gives;
    switch (call->kind) {
    case BARRIER: break;
    case BCAST:
        if (me == call->root)
            put(call->recv, call->takes, 0, call->units, number, call->root, 0, 0);
        break;
    case GATHER: case ALLGATHER: put(own, layout, here ? me * call->units : 0, call->units, number, me, 0, 0); break;
    case GATHERV: case ALLGATHERV: put(own, layout, here ? call->starts[me] : 0, call->counts[me], number, me, 0, 0); break;
    case SCATTER: case SCATTERV:
        for (int rank = 0; me == call->root && rank < size; rank++)
            put(call->send, call->gives, call->kind == SCATTER ? rank * call->units : call->their_starts[rank],
                call->their_counts[rank], number, me, rank, 0);
        break;
    case ALLTOALL: case ALLTOALLV: case ALLTOALLW:
        for (int rank = 0; rank < size; rank++) {
            int start = call->kind == ALLTOALL ? rank * call->units : here ? call->starts[rank] : call->their_starts[rank];
            put(own, layout, start, here ? call->counts[rank] : call->their_counts[rank], number, me, rank, 0);
        }
        break;
    default: {
        int units = call->units;
        if (call->kind == REDUCE_SCATTER)
            units = call->starts[size - 1] + call->counts[size - 1];
        else if (call->kind == REDUCE_SCATTER_BLOCK)
            units = size * call->units;
        put(own, layout, 0, units, number, me, 0, 0);
    }
    }
}

#define CALL(blocking, started, kept, ...)                                                   \
    do {                                                                                     \
        if (form == 0)                                                                       \
            SUCCEEDS(blocking(__VA_ARGS__));                                                 \
        else if (form == 1)                                                                  \
            SUCCEEDS(started(__VA_ARGS__, &call->request));                                  \
        else                                                                                 \
            SUCCEEDS(kept(__VA_ARGS__, MPI_INFO_NULL, &call->request));                      \
    } while (0)

static void begin(struct call *call, int form)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    void *send = in_place(call) ? MPI_IN_PLACE : call->send, *recv = call->recv;
    int root = call->root, give = elements(call->gives, call->units), take = elements(call->takes, call->units);
    MPI_Datatype gives = types[call->gives], takes = types[call->takes];
    int mine = elements(call->gives, call->their_counts[me]);
    MPI_Op op = call->op == 0 ? MPI_SUM : call->op == 1 ? MPI_MAX : compose;
    call->persistent = form == 2;
    switch (call->kind) {
    case BARRIER: CALL(MPI_Barrier, MPI_Ibarrier, MPI_Barrier_init, comm); break;
    case BCAST: CALL(MPI_Bcast, MPI_Ibcast, MPI_Bcast_init, recv, take, takes, root, comm); break;
    case GATHER:
        CALL(MPI_Gather, MPI_Igather, MPI_Gather_init, send, give, gives, recv, take, takes, root, comm);
        break;
    case GATHERV:
        CALL(MPI_Gatherv, MPI_Igatherv, MPI_Gatherv_init, send, mine, gives, recv, call->sizes[1], call->places[1], takes,
             root, comm);
        break;
    case SCATTER:
        if (in_place(call))
            CALL(MPI_Scatter, MPI_Iscatter, MPI_Scatter_init, call->send, give, gives, MPI_IN_PLACE, take, takes, root, comm);
        else
            CALL(MPI_Scatter, MPI_Iscatter, MPI_Scatter_init, send, give, gives, recv, take, takes, root, comm);
        break;
    case SCATTERV:
        CALL(MPI_Scatterv, MPI_Iscatterv, MPI_Scatterv_init, call->send, call->sizes[0], call->places[0], gives,
             in_place(call) ? MPI_IN_PLACE : recv, elements(call->takes, call->counts[me]), takes, root, comm);
        break;
    case ALLGATHER:
        CALL(MPI_Allgather, MPI_Iallgather, MPI_Allgather_init, send, give, gives, recv, take, takes, comm);
        break;
    case ALLGATHERV:
        CALL(MPI_Allgatherv, MPI_Iallgatherv, MPI_Allgatherv_init, send, mine, gives, recv, call->sizes[1],
             call->places[1], takes, comm);
        break;
    case ALLTOALL:
        CALL(MPI_Alltoall, MPI_Ialltoall, MPI_Alltoall_init, send, give, gives, recv, take, takes, comm);
        break;
    case ALLTOALLV:
        CALL(MPI_Alltoallv, MPI_Ialltoallv, MPI_Alltoallv_init, send, call->sizes[0], call->places[0], gives, recv,
             call->sizes[1], call->places[1], takes, comm);
        break;
    case ALLTOALLW:
        CALL(MPI_Alltoallw, MPI_Ialltoallw, MPI_Alltoallw_init, send, call->sizes[0], call->places[0], call->kinds[0], recv,
             call->sizes[1], call->places[1], call->kinds[1], comm);
        break;
    case REDUCE: CALL(MPI_Reduce, MPI_Ireduce, MPI_Reduce_init, send, recv, give, gives, op, root, comm); break;
    case ALLREDUCE: CALL(MPI_Allreduce, MPI_Iallreduce, MPI_Allreduce_init, send, recv, give, gives, op, comm); break;
    case SCAN: CALL(MPI_Scan, MPI_Iscan, MPI_Scan_init, send, recv, give, gives, op, comm); break;
    case EXSCAN: CALL(MPI_Exscan, MPI_Iexscan, MPI_Exscan_init, send, recv, give, gives, op, comm); break;
    case REDUCE_SCATTER:
        CALL(MPI_Reduce_scatter, MPI_Ireduce_scatter, MPI_Reduce_scatter_init, send, recv, call->sizes[1], gives, op, comm);
        break;
    default:
        CALL(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, MPI_Reduce_scatter_block_init, send, recv, give, gives,
             op, comm);
    }
}

/*
 * Checks the result of a reduction of processes `0 .. upto`: `units` units, of which the first is number `first` of the
 * operands.
 */
static void expect_reduced(const struct call *call, int upto, int first, int units)
{
    for (int unit = 0; unit < units; unit++) {
        uint32_t wanted[2] = {0, 0};
        reduced(call, upto, first + 2 * unit, wanted);
        for (int half = 0; half < 2; half++) {
            uint32_t got = call->recv[unit * extent(call->takes) + place(call->takes, half)];
            if (got != wanted[half]) {
                fprintf(stderr, "process %d: call %d of kind %d, op %d, unit %d: %x, and not %x\n", me, call->number,
                        call->kind, call->op, unit, got, wanted[half]);
                exit(1);
            }
        }
    }
}

static void check(const struct call *call)
{
    switch (call->kind) {
    case BARRIER: break;
    case BCAST: expect(call, 0, call->units, call->root, 0); break;
    case GATHER: case ALLGATHER: case GATHERV: case ALLGATHERV:
        for (int rank = 0; rank < size; rank++) {
            int listed = call->kind == GATHERV || call->kind == ALLGATHERV;
            if (call->kind == ALLGATHER || call->kind == ALLGATHERV || me == call->root)
                expect(call, listed ? call->starts[rank] : rank * call->units, call->counts[rank], rank, 0);
        }
        break;
    case SCATTER: case SCATTERV:
        if (!in_place(call))
            expect(call, 0, call->counts[me], call->root, me);
        break;
    case ALLTOALL: case ALLTOALLV: case ALLTOALLW:
        for (int rank = 0; rank < size; rank++)
            expect(call, call->kind == ALLTOALL ? rank * call->units : call->starts[rank], call->counts[rank], rank, me);
        break;
    case REDUCE:
        if (me == call->root)
            expect_reduced(call, size, 0, call->units);
        break;
    case ALLREDUCE: expect_reduced(call, size, 0, call->units); break;
    case SCAN: expect_reduced(call, me + 1, 0, call->units); break;
    case EXSCAN:
        if (me > 0)
            expect_reduced(call, me, 0, call->units);
        break;
    case REDUCE_SCATTER: expect_reduced(call, size, 2 * call->starts[me], call->counts[me]); break;
    default: expect_reduced(call, size, 2 * me * call->units, call->units);
    }
    /* Gaps between the numbers must not have been written. */
    for (int at = 1; call->takes == SPREAD && at < MAX_UNITS_IN_BUFFER; at += 3)
        CHECK(call->recv[at] == UNTOUCHED);
}

static void drop(struct call *call)
{
    if (call->persistent)
        SUCCEEDS(MPI_Request_free(&call->request));
    CHECK(call->request == MPI_REQUEST_NULL);
    free(call->send);
    free(call->recv);
    free(call);
}

#define MAX_UNDER_WAY 6

/* Waits for all calls in progress, in this process's own order. Persistent ones are started once more. */
static void finish(struct call **under_way, int *count, uint32_t *order)
{
    for (int left = *count; left > 0; left--) {
        *order = *order * 1664525u + 1013904223u;
        int at = (*order >> 8) % left;
        SUCCEEDS(MPI_Wait(&under_way[at]->request, MPI_STATUS_IGNORE));
        check(under_way[at]);
        struct call *done = under_way[at];
        under_way[at] = under_way[left - 1];
        under_way[left - 1] = done;
    }
    for (int round = 0; round < 2; round++) {
        /* Started in this process's own order. */
        for (int at = 0; at < *count; at++) {
            struct call *call = under_way[at];
            if (call->persistent) {
                fill(call);
                SUCCEEDS(MPI_Start(&call->request));
            }
        }
        for (int at = 0; at < *count; at++) {
            if (under_way[at]->persistent) {
                SUCCEEDS(MPI_Wait(&under_way[at]->request, MPI_STATUS_IGNORE));
                check(under_way[at]);
            }
        }
    }
    for (int at = 0; at < *count; at++)
        drop(under_way[at]);
    *count = 0;
}

static void pass_a_message(int number)
{
    int got = -1;
    MPI_Request request;
    SUCCEEDS(MPI_Isend(&number, 1, MPI_INT, (me + 1) % size, 3, MPI_COMM_WORLD, &request));
    SUCCEEDS(MPI_Recv(&got, 1, MPI_INT, (me + size - 1) % size, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(got == number);
}

static void play_forms(int calls, int forms)
{
    struct call *under_way[MAX_UNDER_WAY];
    int count = 0;
    uint32_t order = (uint32_t)me * 99991u + 5;
    types[NUMBERS] = MPI_UINT32_T;
    SUCCEEDS(MPI_Type_contiguous(2, MPI_UINT32_T, &types[PAIR]));
    SUCCEEDS(MPI_Type_vector(2, 1, 2, MPI_UINT32_T, &types[SPREAD]));
    SUCCEEDS(MPI_Type_commit(&types[PAIR]));
    SUCCEEDS(MPI_Type_commit(&types[SPREAD]));
    SUCCEEDS(MPI_Op_create(combine, 0, &compose));
    seed = 20261125u + (uint32_t)forms;
    for (int number = 0; number < calls; number++) {
        struct call *call = make(number);
        int form = draw(forms);
        fill(call);
        begin(call, form);
        if (form == 0) {
            check(call);
            drop(call);
        } else {
            if (form == 2)
                SUCCEEDS(MPI_Start(&call->request));
            under_way[count++] = call;
        }
        if (draw(5) == 0)
            pass_a_message(number);
        if (count == MAX_UNDER_WAY || draw(7) == 0)
            finish(under_way, &count, &order);
    }
    finish(under_way, &count, &order);
    SUCCEEDS(MPI_Op_free(&compose));
    SUCCEEDS(MPI_Type_free(&types[PAIR]));
    SUCCEEDS(MPI_Type_free(&types[SPREAD]));
}

static void blocking(void)
{
    play_forms(600, 1);
}
static void started(void)
{
    play_forms(600, 2);
}
static void all_forms(void)
{
    play_forms(400, 3);
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"blocking", blocking},
        {"started", started},
        {"all_forms", all_forms},
        {NULL, NULL},
    };
    return play(argc, argv, scenarios);
}
