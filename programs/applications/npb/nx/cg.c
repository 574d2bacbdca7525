/* Conjugate gradient, on NX. */
#include "../cg.h"
#include "../../tasks/nx.h"

static void sum_of_all(double *values, int count)
{
    sum_of_doubles(values, count);
}

static void gather_parts(double *vector, const int *counts, const int *starts)
{
    long lengths[size];
    size_t own = (size_t)counts[rank] * sizeof *vector;
    for (int r = 0; r < size; r++)
        lengths[r] = counts[r] * (long)sizeof *vector;
    /* The input and the output of the call must not overlap. */
    gcolx(memcpy(work_space(own), vector + starts[rank], own), lengths, vector);
}

int main(int argc, char **argv)
{
    join();
    return cg(npb_class(argc, argv), rank, size);
}
