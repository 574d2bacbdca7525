/* The kernel is without a message-passing environment, for comparison. */
#include "../is.h"

static void sum_of_all(int *numbers, int count)
{
    (void)numbers;
    (void)count;
}

static void trade_numbers(const int *out, int *in)
{
    in[0] = out[0];
}

static void trade_keys(const int *out, const int *counts_out, const int *starts_out, int *in, const int *counts_in,
                       const int *starts_in)
{
    (void)starts_out;
    (void)counts_in;
    (void)starts_in;
    memcpy(in, out, (size_t)counts_out[0] * sizeof *in);
}

static int key_from_before(int key, int none)
{
    (void)key;
    return none;
}

int main(int argc, char **argv)
{
    return is(npb_class(argc, argv), 0, 1);
}
