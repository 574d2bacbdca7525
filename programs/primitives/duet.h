/*
 * duet.h: the program as one of several that take turns, slice by slice.
 *
 * Every task connects to the driver's socket and then does what it is told, a line each:
 *     prepare OPERATION BYTES SECONDS   run it once with every byte checked; then find how many operations take so long
 *     slice OPERATION BYTES N           run N operations, and say how many microseconds one of them took
 *     end                               leave
 * It answers `cannot` if it cannot run that, or `ready N` and `took US US ...`, one figure for each part of the slice; its first words are `task RANK of TASKS`. With 0 seconds nothing is looked for, and N is 0.
 *
 * Between two slices a task waits in read(2), outside its library: it uses no processor while others have their turn. A slice
 * begins with some operations that are not timed and a barrier, since the caches are the others' by then.
 */
#ifndef DUET_H
#define DUET_H

#include "measure.h"

#include <sys/socket.h>
#include <sys/un.h>

/* A slice is timed in so many parts of equal length, or in as many as it has operations. */
enum { DUET_PARTS = 16 };

static FILE *duet_connect(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int end = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (strlen(path) >= sizeof address.sun_path)
        env_fail("duet", "the path of the driver's socket is too long");
    strcpy(address.sun_path, path);
    if (end < 0 || connect(end, (struct sockaddr *)&address, sizeof address) != 0)
        env_fail("connect", "the driver of the race does not answer");
    FILE *driver = fdopen(end, "r+");
    if (!driver)
        env_fail("fdopen", "no memory");
    setvbuf(driver, NULL, _IOLBF, 0);
    return driver;
}

/* So many operations are a slice of that many seconds: the same number in all tasks. The fastest of three tries counts, since a task
 * may be off its processor for a while, and memory is new in the first. */
static long duet_length(const struct operation *op, size_t bytes, double seconds)
{
    double each = seconds;
    measure_budget = seconds * 16;
    for (int try = 0; try < 3; try++) {
        double took;
        long n = measure_length(op, bytes, &took);
        if (measure_whole / (double)n < each)
            each = measure_whole / (double)n;
    }
    return each > 0 && seconds / each > 1 ? (long)(seconds / each) : 1;
}

/* Before the clock starts: an eighth of the slice, at least once. The parts follow each other without a barrier: an operation takes what it
 * takes among its like, and a moment in which a task has no processor is in one part only. */
static void duet_slice(const struct operation *op, size_t bytes, long n, FILE *driver)
{
    double us[DUET_PARTS];
    long parts = n < DUET_PARTS ? n : DUET_PARTS;
    measure_batch(op, bytes, n / 8 + 1);
    meet();
    for (long i = 0; i < parts; i++) {
        long number = n * (i + 1) / parts - n * i / parts;
        us[i] = measure_batch(op, bytes, number) / (double)number / op->parts * 1e6;
    }
    fputs("took", driver);
    for (long i = 0; i < parts; i++)
        fprintf(driver, " %.7g", us[i]);
    fputs("\n", driver);
}

/* One line of the driver's; 0 at the end. */
static int duet_obey(FILE *driver, const struct operation *(*find)(const char *, size_t))
{
    char line[128], name[64];
    size_t bytes;
    double number;
    if (!fgets(line, sizeof line, driver) || !strncmp(line, "end", 3))
        return 0;
    if (sscanf(line, "%*s %63s %zu %lf", name, &bytes, &number) != 3 || number < 0)
        env_fail("duet", "the driver says something that makes no sense");
    const struct operation *op = find(name, strlen(name));
    if (!op) {
        fprintf(driver, "cannot\n");
    } else if (!strncmp(line, "prepare", 7)) {
        measure_verify(op, bytes);
        fprintf(driver, "ready %ld\n", number > 0 ? duet_length(op, bytes, number) : 0);
    } else {
        meet();
        duet_slice(op, bytes, number > 1 ? (long)number : 1, driver);
    }
    fflush(driver);
    /* Between reading and writing, as the standard asks. */
    fseek(driver, 0, SEEK_CUR);
    return 1;
}

static void duet(const char *path, const struct operation *(*find)(const char *, size_t))
{
    FILE *driver = duet_connect(path);
    fprintf(driver, "task %d of %d\n", me, tasks);
    fflush(driver);
    fseek(driver, 0, SEEK_CUR);
    while (duet_obey(driver, find))
        ;
    fclose(driver);
}

#endif
