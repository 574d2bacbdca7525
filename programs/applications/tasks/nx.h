/* How the applications join and sum, on Intel's NX, whose errors end the program. A receive selects by type alone:
 * where several nodes may send, the sender's number is part of the type. */
#include <nx.h>
#include <stdio.h>
#include <stdlib.h>

enum { PTYPE = 0, TYPE_BLOCK = 1000, TYPE_FORWARD = 2000, TYPE_BACK = 2001 };

static int rank, size;

static void join(void)
{
    rank = (int)mynode();
    size = (int)numnodes();
}

/* Returns at least `bytes` bytes of memory. The next call may return the same memory. */
static inline void *work_space(size_t bytes)
{
    static void *space;
    static size_t room;
    if (bytes > room) {
        free(space);
        space = malloc(bytes);
        room = bytes;
        if (!space) {
            fprintf(stderr, "application: no memory for %zu bytes\n", bytes);
            exit(1);
        }
    }
    return space;
}

/* Sums at all nodes. NX needs a work vector of the same length. */
static inline void sum_of_doubles(double *values, int count)
{
    gdsum(values, count, work_space((size_t)count * sizeof *values));
}
