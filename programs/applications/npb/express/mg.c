/* Multigrid, on Express. */
#include "../mg.h"
#include "../../tasks/express.h"

static void sum_of_all(double *values, int count)
{
    sum_of_doubles(values, count);
}

/* Sends first, then receives: a write of Express does not wait for its read. */
static void trade_planes(const double *first, const double *last, double *ghost_before, double *ghost_behind, int count)
{
    int before = (rank + size - 1) % size, behind = (rank + 1) % size, bytes = count * (int)sizeof *first;
    write_to(behind, TYPE_FORWARD, last, bytes);
    write_to(before, TYPE_BACK, first, bytes);
    read_from(before, TYPE_FORWARD, ghost_before, bytes);
    read_from(behind, TYPE_BACK, ghost_behind, bytes);
}

static void gather_parts(double *vector, int count)
{
    int type = TYPE_GATHER, own = count * (int)sizeof *vector;
    /* The input and the output of the call must not overlap. */
    double *part = zeroed_memory((size_t)count, sizeof *part);
    memcpy(part, vector + (size_t)rank * (size_t)count, (size_t)own);
    check(exconcat(part, own, vector, own * size, NULLPTR, ALLNODES, NULLPTR, &type));
    free(part);
}

int main(int argc, char **argv)
{
    join();
    return mg(npb_class(argc, argv), rank, size);
}
