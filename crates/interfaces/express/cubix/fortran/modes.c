/* KSINGL, KMULTI, KASYNC, KFLUSH: the modes of units that are open for writing. All are collective. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int node = -1, nodes;

static void at_end(void);

int unit_node(void)
{
    struct nodenv env;

    if (node >= 0)
        return node;
    if (exparam(&env) != 0)
        return -1;
    node = env.procnum;
    nodes = env.nprocs;
    atexit(at_end);
    return node;
}

static void give_up(const char *why)
{
    fprintf(stderr, "cubix: node %d: %s\n", node, why);
    abort();
}

static int regatta_failed(void)
{
    fprintf(stderr, "cubix: node %d: %s\n", node, rg_last_error());
    return EIO;
}

static int write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t done = write(fd, bytes, len);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return errno;
        bytes += done;
        len -= (size_t)done;
    }
    return 0;
}

/* Returns the part of the memory that has not been written to the file, and frees that memory. */
static char *take(struct unit *unit, size_t *len)
{
    struct stat is;
    size_t got = 0;

    *len = 0;
    if (unit->memory < 0 || fstat(unit->memory, &is) != 0)
        return NULL;
    size_t whole = is.st_size > unit->taken ? (size_t)(is.st_size - unit->taken) : 0;
    char *part = malloc(whole ? whole : 1);
    if (!part)
        give_up("out of memory for the output of this node");
    while (got < whole) {
        ssize_t more = pread(unit->memory, part + got, whole - got, unit->taken + (off_t)got);
        if (more <= 0)
            break;
        got += (size_t)more;
    }
    (void)fallocate(unit->memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, is.st_size > 0 ? is.st_size : 1);
    unit->taken = is.st_size;
    *len = got;
    return part;
}

/* At node 0: gathers and writes the parts of all nodes, in order. Returns 0 or an errno value. */
static int write_parts(const struct unit *unit, const char *part, size_t len)
{
    size_t *lens = calloc(2 * (size_t)nodes, sizeof *lens), whole = 0;
    int failed = 0;

    if (!lens)
        give_up("out of memory");
    size_t *offsets = lens + nodes;
    int code = rg_gather(&len, sizeof len, lens, 0, RG_WORLD);
    for (int i = 0; i < nodes; i++) {
        offsets[i] = whole;
        if (__builtin_add_overflow(whole, lens[i], &whole))
            give_up("nodes report that they have written more data than is possible");
    }
    char *all = malloc(whole ? whole : 1);
    if (!all)
        give_up("out of memory for the output of the nodes");
    if (code == RG_OK)
        code = rg_gatherv(part, len, all, lens, offsets, 0, RG_WORLD);
    failed = code == RG_OK ? write_all(unit->file, all, whole) : regatta_failed();
    free(all);
    free(lens);
    return failed;
}

/* Writes the parts of all nodes to the file, collectively. Returns 0 or an errno value. */
static int bring_together(struct unit *unit)
{
    size_t len;
    char *part = take(unit, &len);
    int failed = 0, code;

    if (node == 0) {
        failed = write_parts(unit, part, len);
    } else {
        code = rg_gather(&len, sizeof len, NULL, 0, RG_WORLD);
        if (code == RG_OK)
            code = rg_gatherv(part, len, NULL, NULL, NULL, 0, RG_WORLD);
        failed = code == RG_OK ? 0 : regatta_failed();
    }
    free(part);
    if (failed && node != 0)
        return failed;
    code = rg_broadcast(&failed, sizeof failed, 0, RG_WORLD);
    return code == RG_OK ? failed : regatta_failed();
}

/* Writes the lines that are pending in the unit's mode. Returns 0 or an errno value. */
static int flush(struct unit *unit)
{
    size_t len;

    unit_push(unit);
    if (unit->mode == MULTI)
        return bring_together(unit);
    /* In single mode node 0 has written the only copy; drop this node's. */
    free(take(unit, &len));
    return 0;
}

static int told(const char *call, int number, int failed)
{
    return failed ? unit_failed(call, number, strerror(failed)) : 0;
}

/* Flushes units that gfortran has closed and that have pending lines. */
static int flush_closed(const char *call)
{
    int failed = 0;

    for (struct unit *unit = unit_first(), *next; unit; unit = next) {
        next = unit->next;
        if (unit->mode == MULTI && unit_push(unit) != 0) {
            failed = told(call, unit->number, bring_together(unit)) || failed;
            unit_forget(unit);
        }
    }
    return failed;
}

/* Returns the unit for a collective call, or NULL unless all nodes have it open. A node may not notice that a unit was
 * closed and opened again, so the nodes agree on this. */
static struct unit *find_together(const char *call, int number)
{
    enum { KNOWN, FRESH, MISSING };

    if (unit_node() < 0 || flush_closed(call) != 0)
        return NULL;
    struct unit *unit = unit_find(call, number);
    int mine = !unit ? MISSING : unit->fresh ? FRESH : KNOWN, all = 0;
    if (rg_allreduce(&mine, &all, 1, RG_INT32, RG_MAX, RG_WORLD) != RG_OK)
        return regatta_failed(), NULL;
    if (all == MISSING)
        return unit ? unit_failed(call, number, "is not open on all nodes") : 0, NULL;
    if (all == FRESH && !unit->fresh) {
        unit_forget(unit);
        unit = unit_find(call, number);
    }
    if (unit)
        unit->fresh = false;
    return unit;
}

/* Gives each node its own position in the file, beginning at node 0's position. */
static int apart(struct unit *unit)
{
    int64_t at = node == 0 ? lseek(unit->file, 0, SEEK_CUR) : 0;

    if (rg_broadcast(&at, sizeof at, 0, RG_WORLD) != RG_OK)
        return regatta_failed(), -1;
    return unit_to_file(unit, at);
}

static int change(const char *call, int number, enum mode mode)
{
    struct unit *unit = find_together(call, number);
    int code;

    if (!unit)
        return -1;
    code = told(call, number, flush(unit));
    /* No node's lines may be written in the new mode before all lines of the old mode are in the file. */
    if (code != 0 || exsync() != 0)
        return -1;
    if (mode == ASYNC)
        code = unit->mode == ASYNC ? 0 : apart(unit);
    else if (mode == SINGLE && node == 0)
        code = unit->memory >= 0 ? unit_to_file(unit, -1) : 0;
    else
        code = unit_to_memory(unit);
    if (code != 0)
        return unit_failed(call, number, "cannot change its mode");
    unit->mode = mode;
    return 0;
}

int ksingl_(int *unit) { return change("KSINGL", *unit, SINGLE); }
int kmulti_(int *unit) { return change("KMULTI", *unit, MULTI); }
int kasync_(int *unit) { return change("KASYNC", *unit, ASYNC); }

int kflush_(int *number)
{
    struct unit *unit = find_together("KFLUSH", *number);

    return unit ? told("KFLUSH", *number, flush(unit)) : -1;
}

/* Flushes pending multi output when all nodes end, before they leave. */
static void at_end(void)
{
    for (struct unit *unit = unit_first(); unit; unit = unit->next)
        if (unit->mode == MULTI)
            (void)told("exit", unit->number, flush(unit));
}
