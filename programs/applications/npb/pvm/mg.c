/* Multigrid, on PVM. */
#include "../mg.h"
#include "../../tasks/pvm.h"

static void sum_of_all(double *values, int count)
{
    sum_of_doubles(values, count);
}

enum { TAG_FORWARD = TAG_DATA + 1, TAG_BACK };

/* Sends first, then receives: a send of PVM does not wait for its receive. */
static void trade_planes(const double *first, const double *last, double *ghost_before, double *ghost_behind, int count)
{
    int before = (rank + size - 1) % size, behind = (rank + 1) % size, bytes = count * (int)sizeof *first;
    send_to(behind, TAG_FORWARD, last, bytes);
    send_to(before, TAG_BACK, first, bytes);
    receive_from(before, TAG_FORWARD, ghost_before, bytes);
    receive_from(behind, TAG_BACK, ghost_behind, bytes);
}

/* Sends this task's part to all others, because PVM gathers at one task only. */
static void gather_parts(double *vector, int count)
{
    int bytes = count * (int)sizeof *vector;
    for (int d = 1; d < size; d++)
        send_to((rank + d) % size, TAG_DATA, vector + (size_t)rank * (size_t)count, bytes);
    for (int d = 1; d < size; d++) {
        int from = (rank + size - d) % size;
        receive_from(from, TAG_DATA, vector + (size_t)from * (size_t)count, bytes);
    }
}

int main(int argc, char **argv)
{
    join(argc, argv);
    return leave(mg(npb_class(argc, argv), rank, size));
}
