/* mesh.h: the name under which programs of the Touchstone Delta find nx.h. */
#ifndef REGATTA_NX_MESH_H
#define REGATTA_NX_MESH_H

#include "nx.h"

#endif
