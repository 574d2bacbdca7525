/*
 * Common parts of the NX test programs, on top of check.h: a scenario begins without a call of Regatta's own interface,
 * as NX programs do.
 */
#ifndef NX_CHECK_H
#define NX_CHECK_H

#include "check.h"

#include <errno.h>
#include <nx.h>

/* The form of the call with an underscore must return -1 and set this errno. */
#define GIVES(call, number)                                                               \
    do {                                                                                  \
        check_line = __LINE__;                                                            \
        errno = 0;                                                                        \
        long value_ = (call);                                                             \
        if (value_ != -1 || errno != (number))                                            \
            FAILED("%s gave %ld and errno %d, not -1 and %s", #call, value_, errno, #number); \
    } while (0)

/* Checks what the info calls return about the last message. */
#define INFO(type, count, node)                                                                 \
    do {                                                                                        \
        check_line = __LINE__;                                                                  \
        if (infotype() != (type) || infocount() != (count) || infonode() != (node) || infopid() != 0 || \
            infoptype() != 0)                                                                   \
            FAILED("info of type %ld count %ld node %ld pid %ld", infotype(), infocount(), infonode(), \
                   infopid());                                                                  \
    } while (0)

__attribute__((unused)) static void begin(void)
{
    me = (int)mynode();
    size = (int)numnodes();
}

#endif
