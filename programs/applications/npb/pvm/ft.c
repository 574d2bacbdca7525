/* Fourier transform, on PVM. */
#include "../ft.h"
#include "../../tasks/pvm.h"

static void sum_of_all(double *values, int count)
{
    sum_of_doubles(values, count);
}

/* Sends each block as a message, because PVM has no all-to-all exchange. */
static void trade_blocks(const void *out, void *in, size_t bytes)
{
    memcpy((char *)in + (size_t)rank * bytes, (const char *)out + (size_t)rank * bytes, bytes);
    for (int d = 1; d < size; d++) {
        int to = (rank + d) % size, from = (rank + size - d) % size;
        send_to(to, TAG_DATA, (const char *)out + (size_t)to * bytes, (int)bytes);
        receive_from(from, TAG_DATA, (char *)in + (size_t)from * bytes, (int)bytes);
    }
}

int main(int argc, char **argv)
{
    join(argc, argv);
    return leave(ft(npb_class(argc, argv), rank, size));
}
