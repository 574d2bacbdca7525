/* Bodies that attract each other, on Express. */
#include "nbody.h"
#include "../tasks/express.h"

static void sum_of_all(double *values, int count)
{
    sum_of_doubles(values, count);
}

/* Sends first, then receives: a write of Express does not wait for its read. */
static void pass_on(const void *out, int bytes, void *in, int room)
{
    write_to((rank + 1) % size, TYPE_FORWARD, out, bytes);
    read_from((rank + size - 1) % size, TYPE_FORWARD, in, room);
}

int main(int argc, char **argv)
{
    join();
    return nbody(argc, argv, rank, size);
}
