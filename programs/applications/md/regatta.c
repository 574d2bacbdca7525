/* Molecular dynamics, on Regatta's own interface. */
#include "md.h"
#include "../tasks/regatta.h"

static void sum_of_all(double *values, int count)
{
    sum_of_doubles(values, count);
}

enum { FORWARD = 1, BACK };

static void trade_neighbours(const double *to_before, const double *to_behind, double *from_before, double *from_behind, int room)
{
    int before = (rank + size - 1) % size, behind = (rank + 1) % size;
    size_t most = (size_t)room * sizeof(double), forward = (size_t)to_behind[0] * sizeof(double),
           back = (size_t)to_before[0] * sizeof(double);
    check(rg_sendrecv(to_behind, forward, behind, FORWARD, from_before, most, before, FORWARD, RG_WORLD, NULL));
    check(rg_sendrecv(to_before, back, before, BACK, from_behind, most, behind, BACK, RG_WORLD, NULL));
}

int main(int argc, char **argv)
{
    join();
    return leave(md(argc, argv, rank, size));
}
