/* Fourier transform, on Express. */
#include "../ft.h"
#include "../../tasks/express.h"

static void sum_of_all(double *values, int count)
{
    sum_of_doubles(values, count);
}

/* Sends each block as a message, because Express has no all-to-all exchange. */
static void trade_blocks(const void *out, void *in, size_t bytes)
{
    memcpy((char *)in + (size_t)rank * bytes, (const char *)out + (size_t)rank * bytes, bytes);
    for (int d = 1; d < size; d++) {
        int to = (rank + d) % size, from = (rank + size - d) % size;
        write_to(to, TYPE_BLOCK, (const char *)out + (size_t)to * bytes, (int)bytes);
        read_from(from, TYPE_BLOCK, (char *)in + (size_t)from * bytes, (int)bytes);
    }
}

int main(int argc, char **argv)
{
    join();
    return ft(npb_class(argc, argv), rank, size);
}
