/* Multigrid, on Regatta's own interface. */
#include "../mg.h"
#include "../../tasks/regatta.h"

static void sum_of_all(double *values, int count)
{
    sum_of_doubles(values, count);
}

enum { FORWARD = 1, BACK };

static void trade_planes(const double *first, const double *last, double *ghost_before, double *ghost_behind, int count)
{
    int before = (rank + size - 1) % size, behind = (rank + 1) % size;
    size_t bytes = (size_t)count * sizeof *first;
    check(rg_sendrecv(last, bytes, behind, FORWARD, ghost_before, bytes, before, FORWARD, RG_WORLD, NULL));
    check(rg_sendrecv(first, bytes, before, BACK, ghost_behind, bytes, behind, BACK, RG_WORLD, NULL));
}

static void gather_parts(double *vector, int count)
{
    check(rg_allgather(RG_IN_PLACE, (size_t)count * sizeof *vector, vector, RG_WORLD));
}

int main(int argc, char **argv)
{
    join();
    return leave(mg(npb_class(argc, argv), rank, size));
}
