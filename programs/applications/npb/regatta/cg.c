/* Conjugate gradient, on Regatta's own interface. */
#include "../cg.h"
#include "../../tasks/regatta.h"

static void sum_of_all(double *values, int count)
{
    sum_of_doubles(values, count);
}

static void gather_parts(double *vector, const int *counts, const int *starts)
{
    size_t lengths[size], offsets[size];
    for (int r = 0; r < size; r++) {
        lengths[r] = (size_t)counts[r] * sizeof *vector;
        offsets[r] = (size_t)starts[r] * sizeof *vector;
    }
    gather_bytes(vector, lengths, offsets);
}

int main(int argc, char **argv)
{
    join();
    return leave(cg(npb_class(argc, argv), rank, size));
}
