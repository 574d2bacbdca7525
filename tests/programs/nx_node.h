/* Orders of nx_host.c to nx_node.c. */
#ifndef NX_NODE_H
#define NX_NODE_H

#include <cube.h>

enum { ORDER = 1, ANSWER = 2, RING = 3 };

struct order {
    long what, number;
};

#endif
