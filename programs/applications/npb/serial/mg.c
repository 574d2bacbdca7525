/* The kernel mg without a message-passing environment: what the others are measured against. */
#include "../mg.h"

static void sum_of_all(double *values, int count)
{
    (void)values;
    (void)count;
}

/* Grids of a task that is alone are whole. */
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
