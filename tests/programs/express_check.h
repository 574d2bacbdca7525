/*
 * Common parts of the Express programs: a node learns its number before its scenario, without any call of Regatta's own
 * interface.
 */
#ifndef EXPRESS_CHECK_H
#define EXPRESS_CHECK_H

#include "check.h"

#include <express.h>

static struct nodenv env;

static inline void begin(void)
{
    CHECK(exinit() == 0);
    CHECK(exparam(&env) == 0);
    me = env.procnum;
    size = env.nprocs;
}

/* Passes the numbers by address, as Express requires. */
static inline int write_to(int dest, int type, const void *buf, int len)
{
    return exwrite(buf, len, &dest, &type);
}

static inline int read_from(int src, int type, void *buf, int len)
{
    return exread(buf, len, &src, &type);
}

#endif
