/* A program can have a call of the library's fail: it has a function of the same name, which the library finds before the real one. */
#ifndef FAILING_H
#define FAILING_H

#include <string.h>

/* The name of the function that fails now. */
static const char *failing = "";

static inline int fails(const char *name)
{
    return strcmp(failing, name) == 0;
}

#endif
