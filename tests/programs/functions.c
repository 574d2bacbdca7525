/*
 * Reductions with functions of the program: the right elements are combined, in rank order if the operator is not
 * commutative.
 */
#include "check.h"

enum { MAX_BYTES = 65536 };

static _Alignas(16) unsigned char gives[MAX_BYTES], gets[MAX_BYTES];

/* The map x -> factor * x + term. Composition is associative but not commutative. */
struct map {
    uint32_t factor, term;
};

/* Number of maps in one element of the reduction. */
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

/* A commutative function that overwrites its input, which may harm only the caller that uses it. */
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

/*
 * Sums by functions of the program, of lengths that cover all algorithms; in place and not, as one element and as many.
 */
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
        {"functions", functions, false},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
