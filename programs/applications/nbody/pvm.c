/* Bodies that attract each other, on PVM. */
#include "nbody.h"
#include "../tasks/pvm.h"

static void sum_of_all(double *values, int count)
{
    sum_of_doubles(values, count);
}

/* Sends first, then receives: a send of PVM does not wait for its receive. */
static void pass_on(const void *out, int bytes, void *in, int room)
{
    send_to((rank + 1) % size, TAG_DATA, out, bytes);
    receive_from((rank + size - 1) % size, TAG_DATA, in, room);
}

int main(int argc, char **argv)
{
    join(argc, argv);
    return leave(nbody(argc, argv, rank, size));
}
