/*
 * Texts of Fortran: no end, but a length, which comes behind all other arguments, and blanks to
 * fill up. Compilers pass the length as an int or as a size_t; its lower half is the same.
 */
#ifndef REGATTA_FPVM_TEXT_H
#define REGATTA_FPVM_TEXT_H

#include <string.h>

enum { LONGEST_TEXT = 256, BAD_PARAM = -2 };

/* A text as C has it, without the blanks at its end. */
struct text {
    char c[LONGEST_TEXT + 1];
};

/* 0, or BAD_PARAM for a text that is too long. */
static inline int to_c(struct text *to, const char *from, int length)
{
    while (length > 0 && from[length - 1] == ' ')
        length--;
    if (length > LONGEST_TEXT)
        return BAD_PARAM;
    /* A C program may hand over a text with an end. */
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
