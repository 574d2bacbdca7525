/* Integer sort, on PVM. */
#include "../is.h"
#include "../../tasks/pvm.h"

static void sum_of_all(int *numbers, int count)
{
    sum_to_all(numbers, count, PVM_INT, count * (int)sizeof *numbers);
}

/* Exchanges numbers, a message for each task. A send of PVM does not wait for its receive. */
static void trade_numbers(const int *out, int *in)
{
    in[rank] = out[rank];
    for (int d = 1; d < size; d++)
        send_to((rank + d) % size, TAG_DATA, out + (rank + d) % size, sizeof *out);
    for (int d = 1; d < size; d++)
        receive_from((rank + size - d) % size, TAG_DATA, in + (rank + size - d) % size, sizeof *in);
}

static void trade_keys(const int *out, const int *counts_out, const int *starts_out, int *in, const int *counts_in,
                       const int *starts_in)
{
    const int bytes = sizeof *out;
    memcpy(in + starts_in[rank], out + starts_out[rank], (size_t)(counts_out[rank] * bytes));
    for (int d = 1; d < size; d++) {
        int to = (rank + d) % size, from = (rank + size - d) % size;
        send_to(to, TAG_DATA, out + starts_out[to], counts_out[to] * bytes);
        receive_from(from, TAG_DATA, in + starts_in[from], counts_in[from] * bytes);
    }
}

static int key_from_before(int key, int none)
{
    int got = none;
    if (rank + 1 < size)
        send_to(rank + 1, TAG_DATA, &key, sizeof key);
    if (rank > 0)
        receive_from(rank - 1, TAG_DATA, &got, sizeof got);
    return got;
}

int main(int argc, char **argv)
{
    join(argc, argv);
    return leave(is(npb_class(argc, argv), rank, size));
}
