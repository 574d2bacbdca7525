/*
 * Successive collectives of a group in random order, with tasks of different speeds: each must return the right bytes.
 * Exchanges with several rounds in shared memory alternate with calls in which a task only contributes, so some tasks
 * are far ahead of others.
 */
#include "check.h"

enum { MAX_TASKS = 16, MAX_BYTES = 65536 };

static _Alignas(16) unsigned char gives[MAX_BYTES * MAX_TASKS], gets[MAX_BYTES * MAX_TASKS];
static uint64_t state;

static uint32_t draw(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

/* Returns byte `at` of what `from` sends to `to` in a call. */
static unsigned char byte(unsigned call, int from, int to, size_t at)
{
    return (unsigned char)(call * 31 + (unsigned)from * 7 + (unsigned)to * 3 + at / 61 + at);
}

static void put(unsigned char *at, size_t len, unsigned call, int from, int to)
{
    for (size_t i = 0; i < len; i++)
        at[i] = byte(call, from, to, i);
}

static void right(const unsigned char *at, size_t len, unsigned call, int from, int to)
{
    for (size_t i = 0; i < len; i++)
        if (at[i] != byte(call, from, to, i))
            FAILED("call %u: byte %zu of %zu from %d is %d and not %d", call, i, len, from, at[i], byte(call, from, to, i));
}

static void gather(unsigned call, size_t len, rg_group group, int rank, int tasks)
{
    put(gives, len, call, rank, 0);
    OK(rg_allgather(gives, len, gets, group));
    for (int from = 0; from < tasks; from++)
        right(gets + (size_t)from * len, len, call, from, 0);
}

static void exchange(unsigned call, size_t len, rg_group group, int rank, int tasks)
{
    for (int to = 0; to < tasks; to++)
        put(gives + (size_t)to * len, len, call, rank, to);
    OK(rg_alltoall(gives, len, gets, group));
    for (int from = 0; from < tasks; from++)
        right(gets + (size_t)from * len, len, call, from, rank);
}

static void broadcast(unsigned call, size_t len, int root, rg_group group, int rank)
{
    memset(gets, 0, len);
    if (rank == root)
        put(gets, len, call, root, 0);
    OK(rg_broadcast(gets, len, root, group));
    right(gets, len, call, root, 0);
}

static void sum(unsigned call, int root, rg_group group, int rank, int tasks)
{
    int64_t mine[8], all[8];
    for (int i = 0; i < 8; i++)
        mine[i] = (int64_t)call * (rank + 1) + i;
    if (root >= 0)
        OK(rg_reduce(mine, all, 8, RG_INT64, RG_SUM, root, group));
    else
        OK(rg_allreduce(mine, all, 8, RG_INT64, RG_SUM, group));
    for (int i = 0; i < 8 && (root < 0 || root == rank); i++)
        CHECK(all[i] == (int64_t)call * tasks * (tasks + 1) / 2 + (int64_t)i * tasks);
}

/* All to the root, and from there to all. */
static void to_root_and_back(unsigned call, size_t len, int root, rg_group group, int rank, int tasks)
{
    put(gives, len, call, rank, 0);
    OK(rg_gather(gives, len, gets, root, group));
    for (int other = 0; other < tasks && rank == root; other++) {
        right(gets + (size_t)other * len, len, call, other, 0);
        put(gives + (size_t)other * len, len, call, root, other);
    }
    OK(rg_scatter(gives, gets, len, root, group));
    right(gets, len, call, root, rank);
}

/* The sums of the ranks up to this one, and below it. */
static void sums_in_order(unsigned call, size_t count, rg_group group, int rank)
{
    int64_t *mine = (int64_t *)gives, *all = (int64_t *)gets, ranks;
    for (int exclusive = 0; exclusive < 2; exclusive++) {
        for (size_t i = 0; i < count; i++)
            mine[i] = (int64_t)(call + i) * (rank + 1);
        OK((exclusive ? rg_exscan : rg_scan)(mine, all, count, RG_INT64, RG_SUM, group));
        ranks = rank + !exclusive;
        for (size_t i = 0; i < count && ranks > 0; i++)
            CHECK(all[i] == (int64_t)(call + i) * ranks * (ranks + 1) / 2);
    }
}

static void course(void)
{
    unsigned seed = (unsigned)atoi(args[0]), calls = (unsigned)atoi(args[1]);
    rg_group groups[2] = {RG_WORLD};
    CHECK(size <= MAX_TASKS);
    OK(rg_group_split(RG_WORLD, 0, -me, &groups[1]));
    state = seed;
    for (unsigned call = 0; call < calls; call++) {
        rg_group group = groups[draw(8) == 0];
        int rank = rg_rank(group), root = (int)draw((uint32_t)size);
        size_t len = 1u << draw(17);
        len -= draw((uint32_t)len);
        /* Small ones are many, or tasks would seldom get far ahead. */
        uint32_t what = draw(24);
        uint32_t slow = draw(64);
        for (volatile unsigned i = 0; (int)slow == me && i < 20000; i++)
            continue;
        if (what < 3)
            gather(call, len, group, rank, size);
        else if (what < 5)
            exchange(call, len / (size_t)size + 1, group, rank, size);
        else if (what < 11)
            broadcast(call, what < 10 ? len % 4096 + 1 : len, root, group, rank);
        else if (what < 14)
            sum(call, root, group, rank, size);
        else if (what == 14)
            sum(call, -1, group, rank, size);
        else if (what < 18)
            to_root_and_back(call, len % 20000 + 1, root, group, rank, size);
        else if (what < 22)
            sums_in_order(call, len / 8, group, rank);
        else
            OK(rg_barrier(group));
    }
    OK(rg_group_free(groups[1]));
}

/*
 * Alternates exchanges with calls in which a task only contributes. This is the shortest sequence that fails if the
 * next rounds overwrite data that is still to be read.
 */
static void alternate(void)
{
    unsigned calls = (unsigned)atoi(args[0]);
    for (unsigned call = 0; call < calls; call++) {
        gather(call, 16384, RG_WORLD, me, size);
        broadcast(call, 4, 0, RG_WORLD, me);
        exchange(call, 4096, RG_WORLD, me, size);
        sum(call, 0, RG_WORLD, me, size);
        sums_in_order(call, call % 64, RG_WORLD, me);
    }
}

/* The map x -> ax + b. Composition is associative but not commutative. */
struct map {
    uint32_t a, b;
};

static void compose(const void *in, void *inout, size_t count, void *arg)
{
    const struct map *first = in;
    struct map *second = inout;
    (void)arg;
    for (size_t i = 0; i < count; i++) {
        second[i].b += second[i].a * first[i].b;
        second[i].a *= first[i].a;
    }
}

static struct map map_of(unsigned call, int rank, size_t at)
{
    return (struct map){2 * (call + (unsigned)rank + (unsigned)at) + 3, call * 5 + (unsigned)rank * 7 + (unsigned)at + 1};
}

/* Returns the combination of the maps of ranks 0 to last - 1, in this order. */
static struct map composed(unsigned call, int last, size_t at, bool commutative)
{
    struct map all = map_of(call, 0, at);
    for (int rank = 1; rank < last; rank++) {
        struct map next = map_of(call, rank, at);
        if (commutative) {
            all.a += next.a;
            all.b += next.b;
        } else {
            compose(&all, &next, 1, NULL);
            all = next;
        }
    }
    return all;
}

static void equal(const struct map *got, struct map wanted, unsigned call, size_t at)
{
    if (memcmp(got, &wanted, sizeof wanted) != 0)
        FAILED("call %u: element %zu is %u %u and not %u %u", call, at, got->a, got->b, wanted.a, wanted.b);
}

/*
 * Exclusive prefixes and reduce-scatters: short and long, in place or not, blocking or not, with commutative and other
 * operators.
 */
static void prefixes(void)
{
    enum { MAX_MAPS = 20000 };
    static struct map in[MAX_MAPS * 2], out[MAX_MAPS * 2];
    rg_op op;
    OK(rg_op_create(compose, NULL, 0, &op));
    for (unsigned call = 0; call < 48; call++) {
        bool commutative = call & 1, in_place = call & 2, waits = call & 4;
        size_t most = call % 3 == 0 ? 8 : call % 3 == 1 ? 700 : MAX_MAPS;
        /* A map consists of two words. */
        size_t words = commutative ? 2 : 1;
        rg_type type = commutative ? RG_UINT32 : RG_BYTES(sizeof(struct map));
        rg_op how = commutative ? RG_SUM : op;
        rg_request request = RG_REQUEST_NULL;
        for (size_t i = 0; i < most; i++) {
            in[i] = map_of(call, me, i);
            out[i] = in_place ? in[i] : (struct map){99, 99};
        }
        const void *from = in_place ? RG_IN_PLACE : in;
        if (waits)
            OK(rg_exscan(from, out, most * words, type, how, RG_WORLD));
        else
            OK(rg_iexscan(from, out, most * words, type, how, RG_WORLD, &request));
        OK(rg_wait(&request, NULL));
        for (size_t i = 0; i < most; i++) {
            struct map alone = in_place ? in[i] : (struct map){99, 99};
            equal(&out[i], me == 0 ? alone : composed(call, me, i, commutative), call, i);
        }
        /* Unequal parts, some of them empty. */
        size_t counts[MAX_TASKS], all = 0, first = 0;
        for (int rank = 0; rank < size; rank++) {
            counts[rank] = rank % 3 == 1 ? 0 : most / (size_t)size - (size_t)(rank % 2);
            first += rank < me ? counts[rank] : 0;
            all += counts[rank];
        }
        size_t mine = counts[me];
        for (int rank = 0; rank < size; rank++)
            counts[rank] *= words;
        for (size_t i = 0; i < all + 1; i++)
            out[i] = in_place && i < all ? in[i] : (struct map){99, 99};
        if (waits)
            OK(rg_reduce_scatter(from, out, counts, type, how, RG_WORLD));
        else
            OK(rg_ireduce_scatter(from, out, counts, type, how, RG_WORLD, &request));
        memset(counts, 0, sizeof counts);
        OK(rg_wait(&request, NULL));
        for (size_t i = 0; i < mine; i++)
            equal(&out[i], composed(call, size, first + i, commutative), call, i);
        equal(&out[mine], in_place && mine < all ? in[mine] : (struct map){99, 99}, call, mine);
        /* Equal parts. */
        size_t each = most / (size_t)size;
        for (size_t i = 0; i <= each * (size_t)size; i++)
            out[i] = in_place && i < each * (size_t)size ? in[i] : (struct map){99, 99};
        if (waits)
            OK(rg_reduce_scatter_block(from, out, each * words, type, how, RG_WORLD));
        else
            OK(rg_ireduce_scatter_block(from, out, each * words, type, how, RG_WORLD, &request));
        OK(rg_wait(&request, NULL));
        for (size_t i = 0; i < each; i++)
            equal(&out[i], composed(call, size, each * (size_t)me + i, commutative), call, i);
        equal(&out[each], in_place && each * (size_t)size > each ? in[each] : (struct map){99, 99}, call, each);
    }
    if (me == 0)
        OK(rg_exscan(in, NULL, 2, RG_UINT32, RG_SUM, RG_WORLD));
    else
        OK(rg_exscan(in, out, 2, RG_UINT32, RG_SUM, RG_WORLD));
    FAILS(rg_reduce_scatter(in, out, NULL, RG_UINT32, RG_SUM, RG_WORLD), RG_ERR_ARGUMENT, "counts");
    FAILS(rg_reduce_scatter_block(in, out, SIZE_MAX / 2, RG_UINT32, RG_SUM, RG_WORLD), RG_ERR_ARGUMENT, "exceed the address space");
    OK(rg_op_free(op));
}

/* Rank 0 has given to the first two collectives of a group, and then revokes and frees it, before rank 1 begins the first one. What rank 1 gets is the sum or an
 * error, and never the bytes of the second collective. */
static void ended(void)
{
    int32_t given = me + 1, sum = 0, other[2] = {777, 777}, all[2 * 8] = {0};
    char left = 0;
    rg_group group;
    CHECK(size <= 8);
    for (int turn = 0; turn < 50; turn++) {
        OK(rg_group_dup(RG_WORLD, &group));
        if (me == 0) {
            OK(rg_reduce(&given, &sum, 1, RG_INT32, RG_SUM, 1, group));
            OK(rg_gather(other, sizeof other, all, 1, group));
            OK(rg_group_revoke(group));
            OK(rg_group_free(group));
            for (int rank = 1; rank < size; rank++)
                OK(rg_send(&left, 1, rank, 0, RG_WORLD));
            continue;
        }
        OK(rg_recv(&left, 1, 0, 0, RG_WORLD, NULL));
        int code = rg_reduce(&given, &sum, 1, RG_INT32, RG_SUM, 1, group);
        if (code != RG_ERR_REVOKED && (code != RG_OK || (me == 1 && sum != size * (size + 1) / 2)))
            FAILED("the sum is %d, code %d (%s)", sum, code, rg_last_error());
        OK(rg_group_free(group));
    }
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"ended", ended, false},
        {"course", course, false},
        {"alternate", alternate, false},
        {"prefixes", prefixes, false},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
