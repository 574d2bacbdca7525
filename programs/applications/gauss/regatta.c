/* Gaussian elimination, on Regatta's own interface. */
#include "gauss.h"
#include "../tasks/regatta.h"

/* Combining function for elements of any size. The elements at `in` come from lower tasks than those at `inout`. */
static void keep_larger(const void *in, void *inout, size_t count, void *unused)
{
    const struct gauss_pivot *lower = in;
    struct gauss_pivot *kept = inout;
    (void)unused;
    for (size_t k = 0; k < count; k++)
        if (lower[k].value >= kept[k].value)
            kept[k] = lower[k];
}

static void largest_of_all(struct gauss_pivot *pivot)
{
    static rg_op larger;
    if (larger.id == 0)
        check(rg_op_create(keep_larger, NULL, 1, &larger));
    check(rg_allreduce(RG_IN_PLACE, pivot, 1, RG_BYTES(sizeof *pivot), larger, RG_WORLD));
}

static void broadcast(void *data, int bytes, int from)
{
    check(rg_broadcast(data, (size_t)bytes, from, RG_WORLD));
}

int main(int argc, char **argv)
{
    join();
    return leave(gauss(argc, argv, rank, size));
}
