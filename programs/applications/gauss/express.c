/* Gaussian elimination, on Express. */
#include "gauss.h"
#include "../tasks/express.h"

/* Combining function, which a program of Express supplies. */
static int keep_larger(void *to, void *from, int bytes)
{
    struct gauss_pivot *kept = to;
    const struct gauss_pivot *other = from;
    (void)bytes;
    if (other->value > kept->value || (other->value == kept->value && other->task < kept->task))
        *kept = *other;
    return 0;
}

static void largest_of_all(struct gauss_pivot *pivot)
{
    int type = TYPE_SUM;
    check(excombine(pivot, keep_larger, sizeof *pivot, 1, ALLNODES, NULLPTR, &type));
}

static void broadcast(void *data, int bytes, int from)
{
    int type = TYPE_BLOCK;
    check(exbroadcast(data, from, bytes, ALLNODES, NULLPTR, &type));
}

int main(int argc, char **argv)
{
    join();
    return gauss(argc, argv, rank, size);
}
