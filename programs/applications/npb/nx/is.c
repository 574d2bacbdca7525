/* Integer sort, on NX. */
#include "../is.h"
#include "../../tasks/nx.h"

/* Sums in numbers of type long, because gisum has no other integers. */
static void sum_of_all(int *numbers, int count)
{
    long sums[count], work[count];
    for (int k = 0; k < count; k++)
        sums[k] = numbers[k];
    gisum(sums, count, work);
    for (int k = 0; k < count; k++)
        numbers[k] = (int)sums[k];
}

/* Exchanges numbers, a message for each task. */
static void trade_numbers(const int *out, int *in)
{
    in[rank] = out[rank];
    for (int d = 1; d < size; d++) {
        int to = (rank + d) % size, from = (rank + size - d) % size;
        csendrecv(TYPE_BLOCK + rank, out + to, sizeof *out, to, PTYPE, TYPE_BLOCK + from, in + from, sizeof *in);
    }
}

static void trade_keys(const int *out, const int *counts_out, const int *starts_out, int *in, const int *counts_in,
                       const int *starts_in)
{
    const long bytes = sizeof *out;
    memcpy(in + starts_in[rank], out + starts_out[rank], (size_t)(counts_out[rank] * bytes));
    for (int d = 1; d < size; d++) {
        int to = (rank + d) % size, from = (rank + size - d) % size;
        csendrecv(TYPE_BLOCK + rank, out + starts_out[to], counts_out[to] * bytes, to, PTYPE, TYPE_BLOCK + from,
                  in + starts_in[from], counts_in[from] * bytes);
    }
}

static int key_from_before(int key, int none)
{
    int got = none;
    if (rank + 1 < size)
        csend(TYPE_FORWARD, &key, sizeof key, rank + 1, PTYPE);
    if (rank > 0)
        crecv(TYPE_FORWARD, &got, sizeof got);
    return got;
}

int main(int argc, char **argv)
{
    join();
    return is(npb_class(argc, argv), rank, size);
}
