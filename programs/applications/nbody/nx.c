/* Bodies that attract each other, on NX. */
#include "nbody.h"
#include "../tasks/nx.h"

static void sum_of_all(double *values, int count)
{
    sum_of_doubles(values, count);
}

static void pass_on(const void *out, int bytes, void *in, int room)
{
    csendrecv(TYPE_FORWARD, out, bytes, (rank + 1) % size, PTYPE, TYPE_FORWARD, in, room);
}

int main(int argc, char **argv)
{
    join();
    return nbody(argc, argv, rank, size);
}
