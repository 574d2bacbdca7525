/* Handlers in Fortran get the length by reference, so the library calls them through this file. */
#include <express.h>

#include <stdio.h>
#include <stdlib.h>

typedef int (*function)(int *src, int *type, int *length);

static struct handler {
    function function;
    int src, type;
} *handlers;
static int count, room;

static int fits(int wanted, int is) { return wanted == DONTCARE || wanted == is; }

/* Calls the first handler that matches, which is the one that the library has chosen. */
static int handle(int *src, int *type, int length)
{
    for (int i = 0; i < count; i++)
        if (fits(handlers[i].src, *src) && fits(handlers[i].type, *type))
            return handlers[i].function(src, type, &length);
    return -1;
}

static void forget(int src, int type)
{
    int kept = 0;

    for (int i = 0; i < count; i++)
        if (handlers[i].src != src || handlers[i].type != type)
            handlers[kept++] = handlers[i];
    count = kept;
}

/* KXHAND(FUNC, SRC, TYPE): registers FUNC(SRC, TYPE, LENGTH) as a handler. */
int kxhand_(function of, int *src, int *type)
{
    if (count == room) {
        struct handler *more = realloc(handlers, (size_t)(2 * room + 8) * sizeof *more);
        if (more == NULL) {
            fputs("express: KXHAND: out of memory for another handler\n", stderr);
            return -1;
        }
        handlers = more;
        room = 2 * room + 8;
    }
    if (exhandle(handle, src, type) != 0)
        return -1;
    forget(*src, *type);
    handlers[count++] = (struct handler){of, *src, *type};
    return 0;
}

/* KXUNHA(SRC, TYPE): removes the handler. An addition of Regatta's, because Fortran cannot pass NULLPTR. */
int kxunha_(int *src, int *type)
{
    /* The handler still gets the messages that have arrived: exhandle runs handlers first. */
    int code = exhandle(NULLPTR, src, type);

    if (code == 0)
        forget(*src, *type);
    return code;
}
