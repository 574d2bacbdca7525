/* A program and its nodes; collective calls. */
#include <express.h>

#include "fortran.h"

int xpress_[6] __attribute__((common));

int kxinit_(void)
{
    const int values[6] = {DONTCARE, 0, NONODE, HOST, ALLNODES, ALLPROCS};

    for (int i = 0; i < 6; i++)
        xpress_[i] = values[i];
    return exinit();
}

/* The node's number, the number of nodes, the host program's number, and the task. */
int kxpara_(int *environment)
{
    struct nodenv told;
    int code = exparam(&told);

    if (code == 0) {
        environment[0] = told.procnum;
        environment[1] = told.nprocs;
        environment[2] = told.host;
        environment[3] = told.taskid;
    }
    return code;
}

int kxsync_(void) { return exsync(); }
int kxsema_(int *semaphore, int *change) { return exsemaphore(*semaphore, *change); }

int kxbrod_(void *buf, int *origin, int *length, int *nnodes, int *nodelist, int *type)
{
    return exbroadcast(buf, *origin, *length, *nnodes, nodelist, type);
}
ALSO(kxbroad_, kxbrod_);

/* A Fortran function gets the size by reference. Only one combine runs at a time. */
static int (*combining)(void *, void *, int *);

static int combine(void *one, void *other, int size) { return combining(one, other, &size); }

int kxcomb_(void *buf, int (*function)(void *, void *, int *), int *size, int *items, int *nnodes, int *nodelist, int *type)
{
    combining = function;
    return excombine(buf, combine, *size, *items, *nnodes, nodelist, type);
}

int kxconc_(void *mine, int *length, void *all, int *room, int *sizes, int *nnodes, int *nodelist, int *type)
{
    return exconcat(mine, *length, all, *room, sizes, *nnodes, nodelist, type);
}
