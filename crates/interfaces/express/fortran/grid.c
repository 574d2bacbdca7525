/* Grids of nodes. KXGDIN is attested; the other names are derived from it. */
#include <express.h>

int kxgdin_(int *ndim, int *nprocs) { return exgridinit(*ndim, nprocs); }
int kxgdbc_(int *periodic) { return exgridbc(periodic); }
int kxgdco_(int *node, int *coordinates) { return exgridcoord(*node, coordinates); }
int kxgdpr_(int *coordinates) { return exgridproc(coordinates); }
int kxgdno_(int *node, int *dimension, int *distance) { return exgridnode(*node, *dimension, *distance); }
int kxgdsi_(int *node, int *global, int *local, int *start) { return exgridsize(*node, global, local, start); }
int kxgdsp_(int *nprocs, int *ndim, int *counts) { return exgridsplit(*nprocs, *ndim, counts); }
