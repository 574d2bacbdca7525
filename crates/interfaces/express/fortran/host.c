/* A program on the host. A Fortran string is padded with blanks and not NUL-terminated; its length is passed after all
 * other arguments. */
#include <express.h>

#include <stdio.h>
#include <string.h>

enum { MAX_TEXT_BYTES = 1024 };

int kxopen_(char *device, int *nprocs, int *first, int length)
{
    (void)device, (void)length;
    return exopen("", *nprocs, *first);
}

int kxload_(int *nodes, char *program, int length)
{
    char text[MAX_TEXT_BYTES + 1];

    while (length > 0 && program[length - 1] == ' ')
        length--;
    if (length > MAX_TEXT_BYTES) {
        fputs("express: KXLOAD: the name of the program is too long\n", stderr);
        return -1;
    }
    memcpy(text, program, (size_t)length);
    text[length] = 0;
    return exload(*nodes, text);
}

int kxstar_(int *nodes, int *node) { return exstart(*nodes, *node); }
int kxmain_(int *nodes, int *node) { return exmain(*nodes, *node); }
int kxclos_(int *nodes) { return exclose(*nodes); }
