/* Fourier transform, on NX. */
#include "../ft.h"
#include "../../tasks/nx.h"

static void sum_of_all(double *values, int count)
{
    sum_of_doubles(values, count);
}

/* Sends each block as a message, because NX has no all-to-all exchange. */
static void trade_blocks(const void *out, void *in, size_t bytes)
{
    memcpy((char *)in + (size_t)rank * bytes, (const char *)out + (size_t)rank * bytes, bytes);
    for (int d = 1; d < size; d++) {
        int to = (rank + d) % size, from = (rank + size - d) % size;
        csendrecv(TYPE_BLOCK + rank, (const char *)out + (size_t)to * bytes, (long)bytes, to, PTYPE, TYPE_BLOCK + from,
                  (char *)in + (size_t)from * bytes, (long)bytes);
    }
}

int main(int argc, char **argv)
{
    join();
    return ft(npb_class(argc, argv), rank, size);
}
