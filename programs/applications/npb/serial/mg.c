/* The kernel mg without a message-passing environment, for comparison. */
#include "../mg.h"

static void sum_of_all(double *values, int count)
{
    (void)values;
    (void)count;
}

/* Never called: the grids of a single task are not split. */
static void trade_planes(const double *first, const double *last, double *ghost_before, double *ghost_behind, int count)
{
    (void)first;
    (void)last;
    (void)ghost_before;
    (void)ghost_behind;
    (void)count;
}

static void gather_parts(double *vector, int count)
{
    (void)vector;
    (void)count;
}

int main(int argc, char **argv)
{
    return mg(npb_class(argc, argv), 0, 1);
}
