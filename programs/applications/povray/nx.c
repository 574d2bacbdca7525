/* A farm for POV-Ray, on NX: node 0 is the master. A node that dies ends the program; a POV-Ray that dies does not. */
#include "povray.h"
#include "../tasks/nx.h"

enum { TYPE_TILE = 1, TYPE_RESULT };

static void send_tile(int worker, const struct tile *tile)
{
    csend(TYPE_TILE, tile, sizeof *tile, worker + 1, PTYPE);
}

static int hear(struct result *result, int max_pixel_bytes, int *worker)
{
    crecv(TYPE_RESULT, result, (long)result_bytes(max_pixel_bytes));
    *worker = (int)infonode() - 1;
    return 1;
}

static int replace_worker(int worker, const struct picture *picture)
{
    (void)worker;
    (void)picture;
    return 0;
}

static int tile_waits(void)
{
    return iprobe(TYPE_TILE) == 1;
}

static void receive_tile(struct tile *tile)
{
    crecv(TYPE_TILE, tile, sizeof *tile);
}

static void send_result(const struct result *result)
{
    csend(TYPE_RESULT, result, (long)result_bytes(result->pixel_bytes), 0, PTYPE);
}

int main(int argc, char **argv)
{
    struct picture picture;
    const char *path = arguments(argc, argv, &picture);
    join();
    return rank > 0 ? worker(&picture) : master(&picture, path, size - 1);
}
