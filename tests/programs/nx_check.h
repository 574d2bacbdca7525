/*
 * Common parts of the test programs of NX, on top of check.h: scenarios begin without a call of Regatta's, as programs of NX do.
 */
#ifndef NX_CHECK_H
#define NX_CHECK_H

#include "check.h"

#include <errno.h>
#include <nx.h>

/* The call by its name with an underscore gives -1 and this errno. */
#define GIVES(call, number)                                                               \
    do {                                                                                  \
        check_line = __LINE__;                                                            \
        errno = 0;                                                                        \
        long value_ = (call);                                                             \
        if (value_ != -1 || errno != (number))                                            \
            FAILED("%s gave %ld and errno %d, not -1 and %s", #call, value_, errno, #number); \
    } while (0)

/* So says what is told of the last message. */
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
