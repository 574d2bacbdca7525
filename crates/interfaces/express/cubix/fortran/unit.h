/* A unit of Fortran's under Cubix. gfortran writes to a descriptor by number: behind that number lies the unit's own file, or, where this node's
 * lines are not to go there at once, memory that looks like a file. */
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
    int file;    /* the unit's own, as gfortran has opened it */
    int memory;  /* or -1: gfortran writes to the file */
    off_t taken; /* so much of the memory has gone to the file */
    bool fresh;  /* no call of all nodes has been about it */
};

/* unit.c */
struct unit *unit_first(void);
/* The unit of this number, for the first time as gfortran has it. NULL: it is not open, as was told. */
struct unit *unit_find(const char *call, int number);
void unit_forget(struct unit *unit);
/* Brings what gfortran holds back to the descriptor. Returns 0, or -1: the unit is closed. */
int unit_push(const struct unit *unit);
/* Has gfortran write to memory, or to the file, at this place of it (negative: where it is). Return 0, or -1. */
int unit_to_memory(struct unit *unit);
int unit_to_file(struct unit *unit, off_t at);
int unit_failed(const char *call, int number, const char *why); /* -1 */

/* modes.c */
int unit_node(void); /* -1: this is no node */

#endif
