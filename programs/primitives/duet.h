/*
 * duet.h: the mode in which several such programs take turns, slice by slice.
 *
 * Every task connects to the driver's socket and executes the commands it receives, one on each line:
 *     prepare OPERATION BYTES SECONDS   run it once with every byte checked; then find how many operations take SECONDS
 *     slice OPERATION BYTES N           run N operations, and report the microseconds that one of them took
 *     end                               leave
 * The task first sends `task RANK of TASKS`. It answers a command with `ready N`, with `took US US ...` (one number for
 * each part of the slice), or with `cannot` if it cannot run the operation. With 0 seconds no number is searched for,
 * and N is 0.
 *
 * Between two slices a task waits in read(2), outside its library, and uses no processor while other programs have
 * their turn. A slice begins with some untimed operations and a barrier, since the caches are filled with other
 * programs' data by then.
 */
#ifndef DUET_H
#define DUET_H

#include "measure.h"

#include <sys/socket.h>
#include <sys/un.h>

/* Number of parts of equal length in which a slice is timed; a slice of fewer operations has one part for each. */
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

/* Returns the number of operations that take `seconds`, the same in all tasks. The fastest of three measurements
 * counts, since a task may lose its processor for a while, and memory is new in the first. */
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

/* Runs and times a slice. Before the clock starts, an eighth of the slice is run, but at least one operation. The parts
 * follow each other without a barrier, so that operations run under steady conditions, and a moment in which a task has
 * no processor falls into one part only. */
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

/* Executes one command of the driver. Returns 0 at the end. */
static int duet_obey(FILE *driver, const struct operation *(*find)(const char *, size_t))
{
    char line[128], name[64];
    size_t bytes;
    double number;
    if (!fgets(line, sizeof line, driver) || !strncmp(line, "end", 3))
        return 0;
    if (sscanf(line, "%*s %63s %zu %lf", name, &bytes, &number) != 3 || number < 0)
        env_fail("duet", "the driver sent an invalid line");
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
    /* The C standard requires this between writing and reading. */
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
