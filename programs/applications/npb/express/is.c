/* Integer sort, on Express. */
#include "../is.h"
#include "../../tasks/express.h"

static int add_ints(void *to, void *from, int bytes)
{
    for (int k = 0; k < bytes / (int)sizeof(int); k++)
        ((int *)to)[k] += ((int *)from)[k];
    return 0;
}

static void sum_of_all(int *numbers, int count)
{
    int type = TYPE_SUM;
    check(excombine(numbers, add_ints, count * (int)sizeof *numbers, 1, ALLNODES, NULLPTR, &type));
}

/* Exchanges numbers, a message for each task. A write of Express does not wait for its read. */
static void trade_numbers(const int *out, int *in)
{
    in[rank] = out[rank];
    for (int d = 1; d < size; d++)
        write_to((rank + d) % size, TYPE_BLOCK, out + (rank + d) % size, sizeof *out);
    for (int d = 1; d < size; d++)
        read_from((rank + size - d) % size, TYPE_BLOCK, in + (rank + size - d) % size, sizeof *in);
}

static void trade_keys(const int *out, const int *counts_out, const int *starts_out, int *in, const int *counts_in,
                       const int *starts_in)
{
    const int bytes = sizeof *out;
    memcpy(in + starts_in[rank], out + starts_out[rank], (size_t)(counts_out[rank] * bytes));
    for (int d = 1; d < size; d++) {
        int to = (rank + d) % size, from = (rank + size - d) % size;
        write_to(to, TYPE_BLOCK, out + starts_out[to], counts_out[to] * bytes);
        read_from(from, TYPE_BLOCK, in + starts_in[from], counts_in[from] * bytes);
    }
}

static int key_from_before(int key, int none)
{
    int got = none;
    if (rank + 1 < size)
        write_to(rank + 1, TYPE_FORWARD, &key, sizeof key);
    if (rank > 0)
        read_from(rank - 1, TYPE_FORWARD, &got, sizeof got);
    return got;
}

int main(int argc, char **argv)
{
    join();
    return is(npb_class(argc, argv), rank, size);
}
