/*
  * Fortran strings: no NUL but a length, which follows all other arguments, and padding with blanks.
 * Compilers pass the length as an int or as a size_t; the lower half is the same.
 */
#ifndef REGATTA_FPVM_TEXT_H
#define REGATTA_FPVM_TEXT_H

#include <string.h>

enum { MAX_TEXT_BYTES = 256, BAD_PARAM = -2 };

/* A NUL-terminated copy of a string, without trailing blanks. */
struct text {
    char c[MAX_TEXT_BYTES + 1];
};

/* Returns 0, or BAD_PARAM if the string is too long. */
static inline int to_c(struct text *to, const char *from, int length)
{
    while (length > 0 && from[length - 1] == ' ')
        length--;
    if (length > MAX_TEXT_BYTES)
        return BAD_PARAM;
    /* A C program may pass a NUL-terminated string. */
    if (length > 0) {
        const char *end = memchr(from, 0, (size_t)length);
        if (end)
            length = (int)(end - from);
        memcpy(to->c, from, (size_t)length);
    }
    to->c[length > 0 ? length : 0] = 0;
    return 0;
}

static inline void to_fortran(char *to, int length, const char *from)
{
    size_t given = from ? strlen(from) : 0;

    if (!to || length <= 0)
        return;
    if (given > (size_t)length)
        given = (size_t)length;
    memcpy(to, from ? from : "", given);
    memset(to + given, ' ', (size_t)length - given);
}

#endif
