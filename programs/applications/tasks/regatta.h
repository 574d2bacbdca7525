/* How the applications join and sum, on Regatta's own interface. */
#include <regatta.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, size;

static void check(int code)
{
    if (code < 0) {
        fprintf(stderr, "application: %s\n", rg_last_error());
        exit(1);
    }
}

static void join(void)
{
    check(rg_init());
    rank = rg_rank(RG_WORLD);
    size = rg_size(RG_WORLD);
}

static int leave(int status)
{
    check(rg_finalize());
    return status;
}

static inline void sum_of_doubles(double *values, int count)
{
    check(rg_allreduce(RG_IN_PLACE, values, (size_t)count, RG_DOUBLE, RG_SUM, RG_WORLD));
}

/* Gathers counts[r] bytes of each task r at starts[r]. This task's own bytes are already there. */
static inline void gather_bytes(void *all, const size_t *counts, const size_t *starts)
{
    check(rg_allgatherv(RG_IN_PLACE, counts[rank], all, counts, starts, RG_WORLD));
}
