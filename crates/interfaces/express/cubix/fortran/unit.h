/* A Fortran unit under Cubix. gfortran writes to a descriptor number. This number refers to the unit's own file or, while this node's lines must
 * not be written at once, to memory that looks like a file. */
#ifndef REGATTA_CUBIX_UNIT_H
#define REGATTA_CUBIX_UNIT_H

#define _GNU_SOURCE
#include <express.h>
#include <regatta.h>

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum mode { ASYNC, SINGLE, MULTI };

struct unit {
    struct unit *next;
    int number;
    enum mode mode;
    int file;    /* the unit's own file, as gfortran has opened it */
    int memory;  /* a memory file, or -1 if gfortran writes to the file */
    off_t taken; /* number of bytes of the memory that have been written to the file */
    bool fresh;  /* no collective call has used the unit yet */
};

/* unit.c */
struct unit *unit_first(void);
/* Returns the unit of this number; the first time it is as gfortran has opened it. Returns NULL if it is not open; the error was printed. */
struct unit *unit_find(const char *call, int number);
void unit_forget(struct unit *unit);
/* Flushes gfortran's buffer to the descriptor. Returns 0, or -1 if the unit is closed. */
int unit_push(const struct unit *unit);
/* Make gfortran write to memory, or to the file at this position (negative: the current one). Return 0, or -1. */
int unit_to_memory(struct unit *unit);
int unit_to_file(struct unit *unit, off_t at);
int unit_failed(const char *call, int number, const char *why); /* prints an error and returns -1 */

/* modes.c */
int unit_node(void); /* returns this node's number, or -1 if the program is no node */

#endif
