/* Molecular dynamics, on Express. */
#include "md.h"
#include "../tasks/express.h"

static void sum_of_all(double *values, int count)
{
    sum_of_doubles(values, count);
}

/* Sends first, then receives: a write of Express does not wait for its read. */
static void trade_neighbours(const double *to_before, const double *to_behind, double *from_before, double *from_behind, int room)
{
    int before = (rank + size - 1) % size, behind = (rank + 1) % size;
    const int each = sizeof(double);
    write_to(behind, TYPE_FORWARD, to_behind, (int)to_behind[0] * each);
    write_to(before, TYPE_BACK, to_before, (int)to_before[0] * each);
    read_from(before, TYPE_FORWARD, from_before, room * each);
    read_from(behind, TYPE_BACK, from_behind, room * each);
}

int main(int argc, char **argv)
{
    join();
    return md(argc, argv, rank, size);
}
