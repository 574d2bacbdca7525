/* Molecular dynamics, on PVM. */
#include "md.h"
#include "../tasks/pvm.h"

static void sum_of_all(double *values, int count)
{
    sum_of_doubles(values, count);
}

enum { TAG_FORWARD = TAG_DATA + 1, TAG_BACK };

/* Sends first, then receives: a send of PVM does not wait for its receive. */
static void trade_neighbours(const double *to_before, const double *to_behind, double *from_before, double *from_behind, int room)
{
    int before = (rank + size - 1) % size, behind = (rank + 1) % size;
    const int each = sizeof(double);
    send_to(behind, TAG_FORWARD, to_behind, (int)to_behind[0] * each);
    send_to(before, TAG_BACK, to_before, (int)to_before[0] * each);
    receive_from(before, TAG_FORWARD, from_before, room * each);
    receive_from(behind, TAG_BACK, from_behind, room * each);
}

int main(int argc, char **argv)
{
    join(argc, argv);
    return leave(md(argc, argv, rank, size));
}
