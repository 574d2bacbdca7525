/* cube.h: the name under which programs of the iPSC/2 and iPSC/860 find nx.h. */
#ifndef REGATTA_NX_CUBE_H
#define REGATTA_NX_CUBE_H

#include "nx.h"

#endif
