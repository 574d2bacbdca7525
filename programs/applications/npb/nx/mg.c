/* Multigrid, on NX. */
#include "../mg.h"
#include "../../tasks/nx.h"

static void sum_of_all(double *values, int count)
{
    sum_of_doubles(values, count);
}

static void trade_planes(const double *first, const double *last, double *ghost_before, double *ghost_behind, int count)
{
    int before = (rank + size - 1) % size, behind = (rank + 1) % size;
    long bytes = count * (long)sizeof *first;
    csendrecv(TYPE_FORWARD, last, bytes, behind, PTYPE, TYPE_FORWARD, ghost_before, bytes);
    csendrecv(TYPE_BACK, first, bytes, before, PTYPE, TYPE_BACK, ghost_behind, bytes);
}

static void gather_parts(double *vector, int count)
{
    long lengths[size];
    size_t own = (size_t)count * sizeof *vector;
    for (int r = 0; r < size; r++)
        lengths[r] = (long)own;
    /* The input and the output of the call must not overlap. */
    gcolx(memcpy(work_space(own), vector + (size_t)rank * (size_t)count, own), lengths, vector);
}

int main(int argc, char **argv)
{
    join();
    return mg(npb_class(argc, argv), rank, size);
}
