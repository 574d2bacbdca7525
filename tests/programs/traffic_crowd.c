/*
 * Many more tasks than cores: every task communicates with every other, and every collective is compared with a serial
 * model.
 *
 *     PROGRAM collectives SEED ROUNDS
 *
 * The model is simple: what each member contributes is painted from a seed, so each member can create all inputs itself
 * and compute the expected result.
 */
#include "check.h"

/* ---- every task with every other --------------------------------------------------------------- */

static uint64_t pair_seed(int from, int to, int round)
{
    return ((uint64_t)from << 32 | (uint64_t)to) * 31 + (uint64_t)round;
}

static void alltoall(void)
{
    static const size_t lengths[] = {8, 0, 1, 100, 3000};
    check_patience(130);
    for (int round = 0; round < 5; round++) {
        size_t len = lengths[round];
        unsigned char *in = need(len * (size_t)size), *out = need(len * (size_t)size);
        for (int rank = 0; rank < size; rank++)
            paint(in + len * (size_t)rank, len, pair_seed(me, rank, round));
        memset(out, 0, len * (size_t)size);
        OK(rg_alltoall(in, len, out, RG_WORLD));
        for (int rank = 0; rank < size; rank++)
            CHECK(unpainted(out + len * (size_t)rank, len, pair_seed(rank, me, round)) == len);
        free(in);
        free(out);
    }
}

static void messages(void)
{
    enum { LEN = 64 };
    check_patience(130);
    rg_request *requests = need(sizeof *requests * 2 * (size_t)size);
    unsigned char *in = need(LEN * (size_t)size), *out = need(LEN * (size_t)size);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < size; i++) {
            int peer = (me + i) % size;
            size_t at = LEN * (size_t)peer;
            paint(in + at, LEN, pair_seed(me, peer, round));
            OK(rg_irecv(out + at, LEN, peer, round, RG_WORLD, &requests[2 * i]));
            OK(rg_isend(in + at, LEN, peer, round, RG_WORLD, &requests[2 * i + 1]));
        }
        OK(rg_waitall(2 * size, requests, NULL));
        for (int peer = 0; peer < size; peer++)
            CHECK(unpainted(out + LEN * (size_t)peer, LEN, pair_seed(peer, me, round)) == LEN);
    }
    free(requests);
    free(in);
    free(out);
}

/* ---- collectives ----------------------------------------------------------------------------- */

enum kind { BARRIER, BROADCAST, REDUCE, ALLREDUCE, SCAN, GATHER, GATHERV, SCATTER, SCATTERV, ALLGATHER,
            ALLGATHERV, ALLTOALL, ALLTOALLV, KINDS };
enum { MAX_OPEN = 4, MAX_MEMBERS = 40 };

/* One collective, planned identically by all members, and this member's part of it. */
struct act {
    enum kind kind;
    bool started, own; /* nonblocking; uses the operator below */
    int root;
    size_t len, count; /* bytes of one piece; elements of a reduction */
    rg_op op;
    uint64_t paint;
    size_t ins[MAX_MEMBERS], in_at[MAX_MEMBERS], outs[MAX_MEMBERS], out_at[MAX_MEMBERS];
    size_t in_all, out_all;
    unsigned char *in, *out;
    rg_request request;
};

static rg_op affine_op;

/* The map x -> (a x + b) mod 2^32. Composition is associative but not commutative. */
static uint64_t compose(uint64_t first, uint64_t then)
{
    uint32_t a = (uint32_t)(then >> 32), b = (uint32_t)then;
    uint32_t c = (uint32_t)(first >> 32), d = (uint32_t)first;
    return (uint64_t)(uint32_t)(a * c) << 32 | (uint32_t)(a * d + b);
}

static void combine_affine(const void *in, void *inout, size_t count, void *arg)
{
    const uint64_t *lower = in;
    uint64_t *higher = inout;
    if (arg != &affine_op)
        FAILED("the operator's argument is not its own");
    for (size_t i = 0; i < count; i++)
        higher[i] = compose(lower[i], higher[i]);
}

static uint64_t combine(const struct act *act, uint64_t lower, uint64_t higher)
{
    if (act->own)
        return compose(lower, higher);
    if (act->op.id == RG_SUM.id)
        return lower + higher;
    if (act->op.id == RG_MAX.id)
        return lower > higher ? lower : higher;
    return lower ^ higher;
}

/* Returns the length of a member's contribution, or of the piece from one to another if lengths vary. */
static size_t piece(const struct act *act, int from, int to)
{
    uint64_t state = act->paint ^ pair_seed(from, to, 1);
    if (act->kind == GATHERV || act->kind == ALLGATHERV)
        state = act->paint ^ pair_seed(from, 0, 2);
    if (act->kind == SCATTERV)
        state = act->paint ^ pair_seed(0, to, 3);
    return next_random(&state) % (act->len + 1);
}

static uint64_t piece_seed(const struct act *act, int from, int to)
{
    bool same = act->kind == GATHER || act->kind == GATHERV || act->kind == ALLGATHER ||
                act->kind == ALLGATHERV;
    return act->paint ^ pair_seed(from, same ? 0 : to, 4);
}

static bool in_pieces(enum kind kind) { return kind >= GATHER; }
static bool varied(enum kind kind)
{
    return kind == GATHERV || kind == SCATTERV || kind == ALLGATHERV || kind == ALLTOALLV;
}

static struct act plan(uint64_t *state, int members)
{
    static const size_t most[] = {0, 1, 16, 200, 3000, 40000};
    struct act act = {.kind = (enum kind)(next_random(state) % KINDS)};
    act.started = next_random(state) % 2;
    act.root = (int)(next_random(state) % (uint64_t)members);
    act.len = next_random(state) % (most[next_random(state) % 6] + 1);
    if (in_pieces(act.kind) && act.len > 3000 && next_random(state) % 4)
        act.len = 3000;
    act.count = act.len / 8;
    act.own = next_random(state) % 3 == 0;
    rg_op ops[] = {RG_SUM, RG_MAX, RG_BXOR};
    act.op = act.own ? affine_op : ops[next_random(state) % 3];
    act.paint = next_random(state);
    return act;
}

/* Lays the pieces out, with gaps if the call takes offsets. */
static void lay_out(struct act *act, int rank, int members)
{
    size_t gap = varied(act->kind) ? 3 : 0;
    for (int i = 0; i < members; i++) {
        bool scatters = act->kind == SCATTERV || act->kind == SCATTER;
        int from = scatters ? act->root : i;
        act->ins[i] = varied(act->kind) ? piece(act, scatters ? act->root : rank, i) : act->len;
        act->outs[i] = varied(act->kind) ? piece(act, from, rank) : act->len;
        act->in_at[i] = act->in_all;
        act->out_at[i] = act->out_all;
        act->in_all += act->ins[i] + gap;
        act->out_all += act->outs[i] + gap;
    }
    if (act->kind == BROADCAST || act->kind == REDUCE || act->kind == ALLREDUCE || act->kind == SCAN)
        act->in_all = act->out_all = act->count * 8;
    if (act->kind == BROADCAST)
        act->out_all = act->len;
    act->in = need(act->in_all);
    act->out = need(act->out_all);
    memset(act->out, 0x77, act->out_all);
    if (!in_pieces(act->kind))
        paint(act->in, act->in_all, act->paint ^ (uint64_t)rank);
    else
        for (int i = 0; i < members; i++)
            paint(act->in + act->in_at[i], act->ins[i], piece_seed(act, rank, i));
    if (act->kind == BROADCAST && rank == act->root)
        paint(act->out, act->len, act->paint);
}

#define EITHER(name, ...) \
    (act->started ? rg_i##name(__VA_ARGS__, group, &act->request) : rg_##name(__VA_ARGS__, group))

static void call(struct act *act, int rank, rg_group group)
{
    const size_t len = act->len;
    void *in = act->in, *out = act->out;
    rg_type type = act->own ? RG_BYTES(8) : RG_UINT64;
    switch (act->kind) {
    case BARRIER: OK(act->started ? rg_ibarrier(group, &act->request) : rg_barrier(group)); break;
    case BROADCAST: OK(EITHER(broadcast, out, len, act->root)); break;
    case REDUCE: OK(EITHER(reduce, in, out, act->count, type, act->op, act->root)); break;
    case ALLREDUCE: OK(EITHER(allreduce, in, out, act->count, type, act->op)); break;
    case SCAN: OK(EITHER(scan, in, out, act->count, type, act->op)); break;
    case GATHER: OK(EITHER(gather, in, len, out, act->root)); break;
    case GATHERV:
        OK(EITHER(gatherv, in, act->outs[rank], out, act->outs, act->out_at, act->root));
        break;
    case SCATTER: OK(EITHER(scatter, in, out, len, act->root)); break;
    case SCATTERV:
        OK(EITHER(scatterv, in, act->ins, act->in_at, out, act->ins[rank], act->root));
        break;
    case ALLGATHER: OK(EITHER(allgather, in, len, out)); break;
    case ALLGATHERV: OK(EITHER(allgatherv, in, act->outs[rank], out, act->outs, act->out_at)); break;
    case ALLTOALL: OK(EITHER(alltoall, in, len, out)); break;
    default:
        OK(EITHER(alltoallv, in, act->ins, act->in_at, out, act->outs, act->out_at));
    }
}

static void check_reduction(const struct act *act, int rank, int members)
{
    if (act->kind == REDUCE && rank != act->root)
        return;
    int last = act->kind == SCAN ? rank : members - 1;
    uint64_t *expected = need(act->count * 8), *one = need(act->count * 8);
    for (int i = 0; i <= last; i++) {
        paint(i == 0 ? expected : one, act->count * 8, act->paint ^ (uint64_t)i);
        for (size_t k = 0; i > 0 && k < act->count; k++)
            expected[k] = combine(act, expected[k], one[k]);
    }
    CHECK(memcmp(expected, act->out, act->count * 8) == 0);
    free(expected);
    free(one);
}

static void check(const struct act *act, int rank, int members)
{
    bool rooted = act->kind == GATHER || act->kind == GATHERV;
    if (act->kind == BROADCAST) {
        CHECK(unpainted(act->out, act->len, act->paint) == act->len);
    } else if (act->kind == SCATTER || act->kind == SCATTERV) {
        size_t len = act->kind == SCATTER ? act->len : act->ins[rank];
        CHECK(unpainted(act->out, len, piece_seed(act, act->root, rank)) == len);
    } else if (in_pieces(act->kind) && (!rooted || rank == act->root)) {
        for (int i = 0; i < members; i++) {
            const unsigned char *at = act->out + act->out_at[i];
            size_t len = act->outs[i];
            CHECK(unpainted(at, len, piece_seed(act, i, rank)) == len);
            /* Nothing may have been written between the pieces. */
            if (varied(act->kind))
                CHECK(at[len] == 0x77 && at[len + 1] == 0x77 && at[len + 2] == 0x77);
        }
    } else if (act->kind == REDUCE || act->kind == ALLREDUCE || act->kind == SCAN) {
        check_reduction(act, rank, members);
    }
}

/* Makes a few collectives in a row. Nonblocking ones stay pending and are completed together. */
static void play(rg_group group, uint64_t *state)
{
    struct act acts[MAX_OPEN];
    rg_request requests[MAX_OPEN];
    int rank = rg_rank(group), members = rg_size(group);
    for (int i = 0; i < MAX_OPEN; i++) {
        acts[i] = plan(state, members);
        lay_out(&acts[i], rank, members);
        call(&acts[i], rank, group);
        requests[i] = acts[i].request;
    }
    OK(rg_waitall(MAX_OPEN, requests, NULL));
    for (int i = 0; i < MAX_OPEN; i++) {
        check(&acts[i], rank, members);
        free(acts[i].in);
        free(acts[i].out);
    }
}

/* On the world and on random subsets, each with its own order of members. */
static void collectives(void)
{
    static char name[60];
    const char *given = getenv("TRAFFIC_SEED");
    CHECK(arg_count == 2 && size <= MAX_MEMBERS);
    uint64_t seed = strtoull(given ? given : args[0], NULL, 0);
    OK(rg_op_create(combine_affine, &affine_op, 0, &affine_op));
    for (int rounds = atoi(args[1]); rounds > 0; rounds--, seed++) {
        snprintf(name, sizeof name, "TRAFFIC_SEED=%llu collectives", (unsigned long long)seed);
        check_scenario = name;
        check_patience(130);
        uint64_t state = seed, own = seed * 1000 + (uint64_t)me;
        play(RG_WORLD, &state);
        rg_group part;
        int colour = (int)(next_random(&own) % 4) - 1;
        OK(rg_group_split(RG_WORLD, colour < 0 ? RG_NONE : colour, (int)(next_random(&own) % 100), &part));
        if (colour >= 0) {
            state = seed + (uint64_t)colour * 7777;
            play(part, &state);
            OK(rg_group_free(part));
        }
    }
    OK(rg_barrier(RG_WORLD));
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"alltoall", alltoall, false},
        {"messages", messages, false},
        {"collectives", collectives, false},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
