/* Collectives of a group one after the other in a random course, all tasks at speeds of their own: each has the right bytes. Exchanges of
 * several rounds in shared memory stand between calls in which a task only gives, so some are far ahead of others. */
#include "check.h"

enum { MOST = 16, LONGEST = 65536 };

static unsigned char gives[LONGEST * MOST], gets[LONGEST * MOST];
static uint64_t state;

static uint32_t draw(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

/* Byte `at` of what `from` has for `to` in a call. */
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

static void course(void)
{
    unsigned seed = (unsigned)atoi(args[0]), calls = (unsigned)atoi(args[1]);
    rg_group groups[2] = {RG_WORLD};
    CHECK(size <= MOST);
    OK(rg_group_split(RG_WORLD, 0, -me, &groups[1]));
    state = seed;
    for (unsigned call = 0; call < calls; call++) {
        rg_group group = groups[draw(8) == 0];
        int rank = rg_rank(group), root = (int)draw((uint32_t)size);
        size_t len = 1u << draw(17);
        len -= draw((uint32_t)len);
        /* Small ones are many, or tasks would seldom get far ahead. */
        uint32_t what = draw(16);
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
        else
            OK(rg_barrier(group));
    }
    OK(rg_group_free(groups[1]));
}

/* One exchange, one call in which a task only gives, and so on: the shortest course that goes wrong if the next rounds destroy what is
 * still to be read. */
static void alternate(void)
{
    unsigned calls = (unsigned)atoi(args[0]);
    for (unsigned call = 0; call < calls; call++) {
        gather(call, 16384, RG_WORLD, me, size);
        broadcast(call, 4, 0, RG_WORLD, me);
        exchange(call, 4096, RG_WORLD, me, size);
        sum(call, 0, RG_WORLD, me, size);
    }
}

/* x -> factor * x + term. Composed they are associative and not commutative. */
struct map {
    uint32_t factor, term;
};

/* Maps of one element of Regatta's. */
static size_t each;

static struct map then(struct map first, struct map second)
{
    return (struct map){first.factor * second.factor, first.term * second.factor + second.term};
}

static void compose(const void *in, void *inout, size_t count, void *arg)
{
    const struct map *lower = in;
    struct map *map = inout;
    (void)arg;
    for (size_t i = 0; i < count * each; i++)
        map[i] = then(lower[i], map[i]);
}

/* Commutative; and it spoils what it should only read, which is to harm nobody but the caller who does it. */
static void add_and_spoil(const void *in, void *inout, size_t count, void *arg)
{
    uint32_t *from = (uint32_t *)in, *to = inout;
    (void)arg;
    for (size_t i = 0; i < 2 * count * each; i++) {
        to[i] += from[i];
        from[i] = 0xdead;
    }
}

static struct map map_of(unsigned call, int rank, size_t at)
{
    return (struct map){call * 5 + (uint32_t)rank * 2 + 3, call + (uint32_t)rank * 17 + (uint32_t)at};
}

static void reduce_by(rg_op op, bool commutes, unsigned call, size_t maps, bool in_place)
{
    struct map *in = (struct map *)gives, *out = (struct map *)gets, *own = in_place ? out : in;
    for (size_t i = 0; i < maps; i++)
        own[i] = map_of(call, me, i);
    OK(rg_allreduce(in_place ? RG_IN_PLACE : in, out, maps / each, RG_BYTES(each * sizeof *in), op, RG_WORLD));
    for (size_t i = 0; i < maps; i++) {
        struct map all = map_of(call, 0, i);
        for (int rank = 1; rank < size; rank++) {
            struct map next = map_of(call, rank, i);
            all = commutes ? (struct map){all.factor + next.factor, all.term + next.term} : then(all, next);
        }
        if (out[i].factor != all.factor || out[i].term != all.term)
            FAILED("call %u, %s: map %zu of %zu is %u %u and not %u %u", call, commutes ? "sum" : "composition", i, maps,
                   out[i].factor, out[i].term, all.factor, all.term);
    }
}

/* Sums by functions of the program's, of all lengths at which they are done in another way; in place and not, as one element and as many. */
static void functions(void)
{
    static const size_t lengths[] = {1, 6, 7, 8, 9, 31, 32, 33, 128, 129, 512, 513, 2048, 2049, 3000, 8192};
    unsigned calls = (unsigned)atoi(args[0]);
    rg_op ordered, sum;
    OK(rg_op_create(compose, NULL, 0, &ordered));
    OK(rg_op_create(add_and_spoil, NULL, 1, &sum));
    for (unsigned call = 0; call < calls; call++) {
        size_t maps = lengths[call / 8 % (sizeof lengths / sizeof *lengths)];
        bool commutes = call & 2;
        each = call & 4 ? maps : 1;
        for (volatile unsigned i = 0; call * 7 % 16 / 8 == (unsigned)me && i < 2000; i++)
            continue;
        reduce_by(commutes ? sum : ordered, commutes, call, maps, call & 1);
    }
    OK(rg_op_free(ordered));
    OK(rg_op_free(sum));
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"course", course, false},
        {"alternate", alternate, false},
        {"functions", functions, false},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
