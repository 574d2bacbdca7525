/* Conjugate gradient, on Express. */
#include "../cg.h"
#include "../../tasks/express.h"

static void sum_of_all(double *values, int count)
{
    sum_of_doubles(values, count);
}

static void gather_parts(double *vector, const int *counts, const int *starts)
{
    static double *part;
    int type = TYPE_GATHER, own = counts[rank] * (int)sizeof *vector;
    int whole = (starts[size - 1] + counts[size - 1]) * (int)sizeof *vector;
    /* The input and the output of the call must not overlap. */
    if (!part)
        part = zeroed_memory((size_t)counts[rank], sizeof *part);
    memcpy(part, vector + starts[rank], (size_t)own);
    check(exconcat(part, own, vector, whole, NULLPTR, ALLNODES, NULLPTR, &type));
}

int main(int argc, char **argv)
{
    join();
    return cg(npb_class(argc, argv), rank, size);
}
