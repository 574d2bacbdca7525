/*
 * Lets a program make a call of the library fail: the program defines a function of the same name, which the library's
 * call resolves to.
 */
#ifndef FAILING_H
#define FAILING_H

#include <string.h>

/* Name of the function that fails at present. */
static const char *failing = "";

static inline int fails(const char *name)
{
    return strcmp(failing, name) == 0;
}

#endif
