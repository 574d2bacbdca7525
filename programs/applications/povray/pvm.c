/* A farm for POV-Ray, on PVM 3.4: `./povray scene.pov 400 300 3` is a master that starts two workers. The last argument
 * is the number of tasks.
 *
 * The master asks to be notified when a worker ends, and then starts another one. Messages are packed value by value,
 * so that hosts of different architectures can exchange them; the pixels are bytes. */
#include "povray.h"
#include <pvm3.h>
#include <stdio.h>
#include <stdlib.h>

enum { TAG_TILE = 1, TAG_RESULT, TAG_ENDED };

static char program[PATH_MAX]; /* path of this program, for pvm_spawn */
static int tids[MAX_WORKERS];

static void check(int code, const char *call)
{
    if (code < 0) {
        fprintf(stderr, "povray: %s failed: PVM's error %d\n", call, code);
        exit(1);
    }
}

static int worker_of(int tid)
{
    for (int k = 0; k < MAX_WORKERS; k++)
        if (tids[k] == tid)
            return k;
    return -1;
}

/* Sends a tile. A send to a dead task has no effect and is no error. */
static void send_tile(int worker, const struct tile *tile)
{
    int numbers[] = {tile->number, tile->x, tile->y, tile->width, tile->height};
    check(pvm_initsend(PvmDataDefault), "pvm_initsend");
    pvm_pkint(numbers, 5, 1);
    check(pvm_send(tids[worker], TAG_TILE), "pvm_send");
}

static void unpack_result(struct result *result, int max_pixel_bytes)
{
    pvm_upkint(&result->number, 1, 1);
    pvm_upkint(&result->pixel_bytes, 1, 1);
    pvm_upkdouble(&result->seconds, 1, 1);
    pvm_upkstr(result->failure);
    if (result->pixel_bytes > max_pixel_bytes)
        refuse("povray", "a worker sent more pixels than the picture has; it may be of another version");
    check(pvm_upkbyte((char *)result->pixels, result->pixel_bytes, 1), "pvm_upkbyte");
}

static int hear(struct result *result, int max_pixel_bytes, int *worker)
{
    for (;;) {
        int bytes, tag, from, buffer = pvm_recv(-1, -1);
        check(buffer, "pvm_recv");
        pvm_bufinfo(buffer, &bytes, &tag, &from);
        if (tag == TAG_ENDED)
            pvm_upkint(&from, 1, 1);
        *worker = worker_of(from);
        if (*worker < 0)
            continue; /* from a worker whose end is already known */
        if (tag == TAG_RESULT)
            unpack_result(result, max_pixel_bytes);
        return tag == TAG_RESULT;
    }
}

/* Starts `count` workers from number `first` on. Returns whether all were started. */
static int start_workers(const struct picture *picture, int first, int count)
{
    char numbers[2][16], *argv[5];
    arguments_of_worker(picture, numbers, argv);
    if (pvm_spawn(program, argv, PvmTaskDefault, "", count, tids + first) != count) {
        fprintf(stderr, "povray: PVM cannot start %d workers: error %d\n", count, tids[first + count - 1]);
        return 0;
    }
    check(pvm_notify(PvmTaskExit, TAG_ENDED, count, tids + first), "pvm_notify");
    return 1;
}

static int replace_worker(int worker, const struct picture *picture)
{
    return start_workers(picture, worker, 1);
}

static int tile_waits(void)
{
    return pvm_probe(pvm_parent(), TAG_TILE) > 0;
}

static void receive_tile(struct tile *tile)
{
    int numbers[5];
    check(pvm_recv(pvm_parent(), TAG_TILE), "pvm_recv");
    pvm_upkint(numbers, 5, 1);
    *tile = (struct tile){numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
}

static void send_result(const struct result *result)
{
    check(pvm_initsend(PvmDataDefault), "pvm_initsend");
    pvm_pkint((int *)&result->number, 1, 1);
    pvm_pkint((int *)&result->pixel_bytes, 1, 1);
    pvm_pkdouble((double *)&result->seconds, 1, 1);
    pvm_pkstr((char *)result->failure);
    pvm_pkbyte((char *)result->pixels, result->pixel_bytes, 1);
    check(pvm_send(pvm_parent(), TAG_RESULT), "pvm_send");
}

static int leave(int status)
{
    pvm_exit();
    return status;
}

int main(int argc, char **argv)
{
    struct picture picture;
    check(pvm_mytid(), "pvm_mytid");
    pvm_setopt(PvmRoute, PvmRouteDirect);
    if (pvm_parent() > 0) {
        arguments(argc, argv, &picture);
        return leave(worker(&picture));
    }
    int tasks = argc > 2 ? atoi(argv[argc - 1]) : 0;
    if (tasks < 2 || tasks > MAX_WORKERS + 1 || readlink("/proc/self/exe", program, sizeof program - 1) < 0)
        refuse("povray", "the last argument is the number of tasks, 2 to 257: a master and its workers");
    const char *path = arguments(argc - 1, argv, &picture);
    if (picture.tells)
        pvm_catchout(stdout); /* otherwise PVM writes the output of workers to its log */
    if (!start_workers(&picture, 0, tasks - 1))
        return leave(1);
    return leave(master(&picture, path, tasks - 1));
}
