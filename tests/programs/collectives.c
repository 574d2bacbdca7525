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

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"course", course, false},
        {"alternate", alternate, false},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
