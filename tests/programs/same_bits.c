/*
 * Two tasks get the same result to the last bit, even where the order of operands matters: for NaNs, for signed zeros,
 * and for a function declared commutative that rounds.
 */
#include <math.h>
#include <regatta.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ELEMENTS = 4000 };

static void rounded(const void *in, void *inout, size_t count, void *argument)
{
    const double *from = in;
    double *into = inout;
    (void)argument;
    for (size_t i = 0; i < count; i++)
        into[i] = (from[i] * 1.0000001 + into[i]) * 0.9999999;
}

static double given(int rank, int i)
{
    switch (i % 4) {
    case 0:
        return rank ? NAN : 1.5;
    case 1:
        return rank ? 0.0 : -0.0;
    case 2:
        return rank ? -0.0 : 0.0;
    default:
        return rank + i * 0.1;
    }
}

static void compare(const double *mine, size_t count, const char *what, int in_place)
{
    static double all[2 * MAX_ELEMENTS];
    if (rg_allgather(mine, count * sizeof *mine, all, RG_WORLD) != RG_OK)
        exit(1);
    if (memcmp(all, all + count, count * sizeof *all) != 0) {
        fprintf(stderr, "%s of %zu elements%s: the two have different results\n", what, count, in_place ? ", in place" : "");
        exit(1);
    }
}

int main(void)
{
    static double in[MAX_ELEMENTS], out[MAX_ELEMENTS];
    const size_t counts[] = {1, 7, 8, 32, 33, 100, 500, 767, 768, 2000, 2048, 2049, MAX_ELEMENTS};
    if (rg_init() != RG_OK)
        return 1;
    int rank = rg_rank(RG_WORLD);
    rg_op function;
    if (rg_op_create(rounded, NULL, 1, &function) != RG_OK)
        return 1;
    const rg_op operators[] = {RG_MAX, RG_MIN, RG_SUM, function};
    const char *names[] = {"the maximum", "the minimum", "the sum", "a function"};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (int o = 0; o < 4; o++)
            for (int in_place = 0; in_place < 2; in_place++) {
                for (size_t i = 0; i < counts[c]; i++)
                    in[i] = out[i] = given(rank, (int)i);
                const void *from = in_place ? RG_IN_PLACE : in;
                if (rg_allreduce(from, out, counts[c], RG_DOUBLE, operators[o], RG_WORLD) != RG_OK)
                    return 1;
                compare(out, counts[c], names[o], in_place);
            }
    return rg_finalize() == RG_OK ? 0 : 1;
}
