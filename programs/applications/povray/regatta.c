/* A farm for POV-Ray, on Regatta's own interface: `regatta run -n 3 ./povray scene.pov` is a master and two workers.
 *
 * The end of a worker arrives as a message of the master to itself, which its receive takes like any other; the master
 * then spawns another worker. Spawned workers are not in the same world as the first ones, so all tasks send in RG_ALL,
 * where the rank of a task is its id. */
#include "povray.h"
#include "../tasks/regatta.h"

enum { TAG_TILE, TAG_RESULT, TAG_ENDED };

static char program[PATH_MAX];        /* path of this program, for rg_spawn */
static int tids[MAX_WORKERS], master_tid;

static int worker_of(int tid)
{
    for (int k = 0; k < MAX_WORKERS; k++)
        if (tids[k] == tid)
            return k;
    return -1;
}

static void send_tile(int worker, const struct tile *tile)
{
    int code = rg_send(tile, sizeof *tile, tids[worker], TAG_TILE, RG_ALL);
    if (code != RG_ERR_DEAD && code != RG_ERR_LEFT) /* the notification of the worker's end is on its way */
        check(code);
}

static int hear(struct result *result, int max_pixel_bytes, int *worker)
{
    rg_status status;
    for (;;) {
        check(rg_recv(result, result_bytes(max_pixel_bytes), RG_ANY, RG_ANY, RG_ALL, &status));
        const rg_event *event = (const void *)result;
        *worker = worker_of(status.tag == TAG_ENDED ? event->tid : status.source);
        if (*worker >= 0) /* otherwise from a worker that was already replaced */
            return status.tag == TAG_RESULT;
    }
}

static void watch(int worker)
{
    check(rg_notify(RG_TASK_EXIT, tids[worker], TAG_ENDED, RG_ALL, NULL));
}

static int replace_worker(int worker, const struct picture *picture)
{
    char numbers[2][16], *argv[5];
    arguments_of_worker(picture, numbers, argv);
    if (rg_spawn(program, argv, NULL, 1, &tids[worker], NULL) < 0) {
        fprintf(stderr, "povray: no worker can be started: %s\n", rg_last_error());
        tids[worker] = RG_NONE;
        return 0;
    }
    watch(worker);
    return 1;
}

static int tile_waits(void)
{
    int found;
    check(rg_iprobe(master_tid, TAG_TILE, RG_ALL, &found, NULL));
    return found;
}

static void receive_tile(struct tile *tile)
{
    check(rg_recv(tile, sizeof *tile, master_tid, TAG_TILE, RG_ALL, NULL));
}

static void send_result(const struct result *result)
{
    check(rg_send(result, result_bytes(result->pixel_bytes), master_tid, TAG_RESULT, RG_ALL));
}

int main(int argc, char **argv)
{
    struct picture picture;
    const char *path = arguments(argc, argv, &picture);
    join();
    int spawned = rg_parent() != RG_NONE;
    master_tid = spawned ? rg_parent() : rg_tid_of(RG_WORLD, 0);
    if (spawned || rank > 0)
        return leave(worker(&picture));

    if (size - 1 > MAX_WORKERS || readlink("/proc/self/exe", program, sizeof program - 1) < 0)
        refuse("povray", "at most 256 workers are possible, and this program's file must still exist to start them");
    for (int k = 0; k < MAX_WORKERS; k++)
        tids[k] = k < size - 1 ? rg_tid_of(RG_WORLD, k + 1) : RG_NONE;
    for (int k = 0; k < size - 1; k++)
        watch(k);
    return leave(master(&picture, path, size - 1));
}
