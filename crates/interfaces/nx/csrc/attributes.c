/*
 * nx_initve_attr and nx_mkpart_attr, which take any number of attributes: pairs of an attribute and its value,
 * terminated by NX_ATTR_END.
 *
 * Only C can read a variadic list; Rust uses what has been read. Numbers may be passed as int or as long: only the
 * lower 32 bits are read.
 */
#include <stdarg.h>
#include <stddef.h>

#include "../include/nx.h"

/* The same layout as in src/attributes.rs. A size of 0, and -1 in the other fields, means not given. rows and columns
 * are valid only if has_rectangle is set. */
struct attributes {
    long size, has_rectangle, rows, columns, scheduling, quantum, mode, priority_limit;
    const long *map;
    long wrong; /* an unknown attribute, or 0 */
};

/* Wraps a va_list so that a pointer to it can be passed: as a parameter a va_list may decay from an array. */
struct arguments {
    va_list list;
};

long regatta_nx_initve_read(const char *partition, void *argc, char **argv, const struct attributes *attributes);
long regatta_nx_mkpart_read(const char *partition, const struct attributes *attributes);
long regatta_nx_initve_attr(const char *partition, void *argc, char **argv, ...);
long regatta_nx_mkpart_attr(const char *partition, ...);

static void read_rectangle(struct attributes *attributes, struct arguments *arguments)
{
    const long *sides = va_arg(arguments->list, const long *);

    if (sides) {
        attributes->has_rectangle = 1;
        attributes->rows = sides[0];
        attributes->columns = sides[1];
    }
}

/* Reads a value. Returns 0 if the attribute is unknown. */
static int read_value(int attribute, struct attributes *attributes, struct arguments *arguments)
{
    switch (attribute) {
    case NX_ATTR_SZ:
        attributes->size = va_arg(arguments->list, int);
        return 1;
    case NX_ATTR_RECT:
        read_rectangle(attributes, arguments);
        return 1;
    case NX_ATTR_MAP:
        attributes->map = va_arg(arguments->list, const long *);
        return 1;
    case NX_ATTR_SCHED:
        attributes->scheduling = va_arg(arguments->list, int);
        return 1;
    case NX_ATTR_EPL:
        attributes->priority_limit = va_arg(arguments->list, int);
        return 1;
    case NX_ATTR_RQ:
        attributes->quantum = va_arg(arguments->list, int);
        return 1;
    case NX_ATTR_MOD:
        attributes->mode = va_arg(arguments->list, int);
        return 1;
    case NX_ATTR_SEL: /* which types of nodes: there is only one */
        (void)va_arg(arguments->list, const char *);
        return 1;
    case NX_ATTR_ANCHOR:
    case NX_ATTR_RELAXED:
    case NX_ATTR_PRI:
        (void)va_arg(arguments->list, int);
        return 1;
    default:
        return 0;
    }
}

static struct attributes read_all(struct arguments *arguments)
{
    struct attributes attributes = {0, 0, 0, 0, -1, -1, -1, -1, NULL, 0};
    int attribute;

    while ((attribute = va_arg(arguments->list, int)) != NX_ATTR_END)
        if (!read_value(attribute, &attributes, arguments)) {
            attributes.wrong = attribute;
            break;
        }
    return attributes;
}

long regatta_nx_initve_attr(const char *partition, void *argc, char **argv, ...)
{
    struct arguments arguments;
    va_start(arguments.list, argv);
    struct attributes attributes = read_all(&arguments);
    va_end(arguments.list);
    return regatta_nx_initve_read(partition, argc, argv, &attributes);
}

long regatta_nx_mkpart_attr(const char *partition, ...)
{
    struct arguments arguments;
    va_start(arguments.list, partition);
    struct attributes attributes = read_all(&arguments);
    va_end(arguments.list);
    return regatta_nx_mkpart_read(partition, &attributes);
}
