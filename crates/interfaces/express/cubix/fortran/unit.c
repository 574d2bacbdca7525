/* Redirects a unit's output by replacing the descriptor that gfortran uses. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* From libgfortran: the functions behind FNUM, FLUSH, FTELL and FSEEK. */
int _gfortran_fnum_i4(const int *unit);
void _gfortran_flush_i4(int *unit);
int64_t _gfortran_ftell(int *unit);
void _gfortran_fseek_sub(int *unit, int64_t *offset, int *whence, int *status);

static struct unit *units;

struct unit *unit_first(void) { return units; }

int unit_failed(const char *call, int number, const char *why)
{
    fprintf(stderr, "cubix: node %d: %s: unit %d %s\n", unit_node(), call, number, why);
    return -1;
}

/* Returns whether this descriptor is still the unit's memory or file. Otherwise gfortran has closed it, and perhaps
 * opened another file. */
static bool is_its_own(const struct unit *unit, int fd)
{
    struct stat given, is;

    return fd >= 0 && fstat(fd, &is) == 0 && fstat(unit->memory >= 0 ? unit->memory : unit->file, &given) == 0 &&
           is.st_dev == given.st_dev && is.st_ino == given.st_ino;
}

struct unit *unit_find(const char *call, int number)
{
    int fd = _gfortran_fnum_i4(&number);
    struct unit *unit;

    for (unit = units; unit; unit = unit->next)
        if (unit->number == number && is_its_own(unit, fd))
            return unit;
    if (fd < 0)
        return unit_failed(call, number, "is not open"), NULL;
    unit = calloc(1, sizeof *unit);
    if (!unit)
        return NULL;
    unit->number = number;
    unit->fresh = true;
    unit->memory = -1;
    unit->file = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (unit->file < 0)
        return free(unit), unit_failed(call, number, strerror(errno)), NULL;
    unit->next = units;
    units = unit;
    return unit;
}

void unit_forget(struct unit *unit)
{
    struct unit **place = &units;

    while (*place && *place != unit)
        place = &(*place)->next;
    if (*place)
        *place = unit->next;
    close(unit->file);
    if (unit->memory >= 0)
        close(unit->memory);
    free(unit);
}

int unit_push(const struct unit *unit)
{
    int number = unit->number;

    if (!is_its_own(unit, _gfortran_fnum_i4(&number)))
        return -1;
    _gfortran_flush_i4(&number);
    return 0;
}

/* The position in the memory starts at the position in the file, because gfortran continues its own count and seeks
 * only when necessary. */
int unit_to_memory(struct unit *unit)
{
    int number = unit->number, fd = _gfortran_fnum_i4(&number), memory;
    off_t at = lseek(fd, 0, SEEK_CUR);

    if (unit->memory >= 0)
        return 0;
    memory = memfd_create("cubix", MFD_CLOEXEC);
    if (memory < 0)
        return -1;
    /* A file that is not seekable has no position. */
    unit->taken = at < 0 ? 0 : at;
    if (ftruncate(memory, unit->taken) != 0 || lseek(memory, unit->taken, SEEK_SET) < 0 || dup2(memory, fd) < 0)
        return close(memory), -1;
    unit->memory = memory;
    return 0;
}

int unit_to_file(struct unit *unit, off_t at)
{
    int number = unit->number, fd = _gfortran_fnum_i4(&number), begin = SEEK_SET, status = 0;
    int64_t place = at >= 0 ? at : lseek(unit->file, 0, SEEK_CUR);

    if (unit->memory >= 0) {
        if (dup2(unit->file, fd) < 0)
            return -1;
        close(unit->memory);
        unit->memory = -1;
    }
    /* gfortran's count belongs to the memory: make it seek. */
    if (place >= 0)
        _gfortran_fseek_sub(&number, &place, &begin, &status);
    return status == 0 ? 0 : -1;
}
