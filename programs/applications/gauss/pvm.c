/* Gaussian elimination, on PVM. */
#include "gauss.h"
#include "../tasks/pvm.h"

/* Broadcasts with pvm_bcast, which does not send to the caller itself. */
static void broadcast(void *data, int bytes, int from)
{
    if (size == 1)
        return;
    if (rank == from) {
        check(pvm_initsend(PvmDataRaw), "pvm_initsend");
        pvm_pkbyte(data, bytes, 1);
        check(pvm_bcast(group, TAG_DATA), "pvm_bcast");
    } else {
        receive_from(from, TAG_DATA, data, bytes);
    }
}

/* Combining function, which a program of PVM supplies for a reduction. Elements are pairs of a value and a task. */
static void keep_larger(int *type, void *x, void *y, int *count, int *result)
{
    double *kept = x, *other = y;
    (void)type;
    for (int k = 0; k < *count; k += 2)
        if (other[k] > kept[k] || (other[k] == kept[k] && other[k + 1] < kept[k + 1]))
            memcpy(kept + k, other + k, 2 * sizeof *kept);
    *result = 0;
}

static void largest_of_all(struct gauss_pivot *pivot)
{
    double pair[2] = {pivot->value, pivot->task};
    if (size > 1)
        check(pvm_reduce(keep_larger, pair, 2, PVM_DOUBLE, TAG_SUM, group, 0), "pvm_reduce");
    broadcast(pair, sizeof pair, 0);
    pivot->value = pair[0];
    pivot->task = (int)pair[1];
}

int main(int argc, char **argv)
{
    join(argc, argv);
    return leave(gauss(argc, argv, rank, size));
}
