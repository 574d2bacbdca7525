/* pi: each task integrates its share of 4 / (1 + x^2) from 0 to 1. An allreduce adds the shares. */
#include <regatta.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int code)
{
    if (code < 0) {
        fprintf(stderr, "pi: %s\n", rg_last_error());
        exit(1);
    }
}

int main(void)
{
    const double PI = 3.141592653589793;
    const int steps = 1000000;

    check(rg_init());
    int rank = rg_rank(RG_WORLD), size = rg_size(RG_WORLD);

    /* The steps are distributed round-robin: this task takes every size-th step. */
    double share = 0;
    for (int i = rank; i < steps; i += size) {
        double x = (i + 0.5) / steps;
        share += 4 / (1 + x * x) / steps;
    }
    /* Adds the shares of all tasks. Every task gets the result. */
    double pi = 0;
    check(rg_allreduce(&share, &pi, 1, RG_DOUBLE, RG_SUM, RG_WORLD));

    printf("task %d of %d: pi is about %.9f\n", rank, size, pi);
    int wrong = pi < PI - 1e-9 || pi > PI + 1e-9;
    check(rg_finalize());
    return wrong;
}
