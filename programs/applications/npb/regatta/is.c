/* Integer sort, on Regatta's own interface. */
#include "../is.h"
#include "../../tasks/regatta.h"

static void sum_of_all(int *numbers, int count)
{
    check(rg_allreduce(RG_IN_PLACE, numbers, (size_t)count, RG_INT32, RG_SUM, RG_WORLD));
}

static void trade_numbers(const int *out, int *in)
{
    check(rg_alltoall(out, sizeof *out, in, RG_WORLD));
}

static void trade_keys(const int *out, const int *counts_out, const int *starts_out, int *in, const int *counts_in,
                       const int *starts_in)
{
    size_t layout[4][size];
    for (int r = 0; r < size; r++) {
        layout[0][r] = (size_t)counts_out[r] * sizeof *out;
        layout[1][r] = (size_t)starts_out[r] * sizeof *out;
        layout[2][r] = (size_t)counts_in[r] * sizeof *in;
        layout[3][r] = (size_t)starts_in[r] * sizeof *in;
    }
    check(rg_alltoallv(out, layout[0], layout[1], in, layout[2], layout[3], RG_WORLD));
}

static int key_from_before(int key, int none)
{
    int before = rank > 0 ? rank - 1 : RG_NONE, behind = rank + 1 < size ? rank + 1 : RG_NONE, got = none;
    check(rg_sendrecv(&key, sizeof key, behind, 1, &got, sizeof got, before, 1, RG_WORLD, NULL));
    return got;
}

int main(int argc, char **argv)
{
    join();
    return leave(is(npb_class(argc, argv), rank, size));
}
