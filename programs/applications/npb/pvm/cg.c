/* Conjugate gradient, on PVM. */
#include "../cg.h"
#include "../../tasks/pvm.h"

static void sum_of_all(double *values, int count)
{
    sum_of_doubles(values, count);
}

/* Sends this task's part to all others, because PVM gathers at one task only. */
static void gather_parts(double *vector, const int *counts, const int *starts)
{
    const int bytes = sizeof *vector;
    for (int d = 1; d < size; d++)
        send_to((rank + d) % size, TAG_DATA, vector + starts[rank], counts[rank] * bytes);
    for (int d = 1; d < size; d++) {
        int from = (rank + size - d) % size;
        receive_from(from, TAG_DATA, vector + starts[from], counts[from] * bytes);
    }
}

int main(int argc, char **argv)
{
    join(argc, argv);
    return leave(cg(npb_class(argc, argv), rank, size));
}
