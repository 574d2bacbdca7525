/* How the applications join and sum, on ParaSoft's Express. */
#include <express.h>
#include <stdio.h>
#include <stdlib.h>

enum { TYPE_SUM = 100, TYPE_GATHER, TYPE_BLOCK, TYPE_FORWARD, TYPE_BACK };

static int rank, size;

/* Ends the program if a call failed. Express has printed the reason. */
static void check(int code)
{
    if (code < 0)
        exit(1);
}

static void join(void)
{
    struct nodenv node;
    check(exinit());
    check(exparam(&node));
    rank = node.procnum;
    size = node.nprocs;
}

static inline void write_to(int node, int type, const void *data, int bytes)
{
    check(exwrite(data, bytes, &node, &type));
}

static inline void read_from(int node, int type, void *data, int bytes)
{
    check(exread(data, bytes, &node, &type));
}

/* Combining function of the program, which Express calls for two vectors of this size. */
static int add_doubles(void *to, void *from, int bytes)
{
    for (int k = 0; k < bytes / (int)sizeof(double); k++)
        ((double *)to)[k] += ((double *)from)[k];
    return 0;
}

static inline void sum_of_doubles(double *values, int count)
{
    int type = TYPE_SUM;
    check(excombine(values, add_doubles, count * (int)sizeof *values, 1, ALLNODES, NULLPTR, &type));
}
