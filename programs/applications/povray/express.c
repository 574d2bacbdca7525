/* A farm for POV-Ray, on Express: node 0 is the master. A node that dies ends the program; a POV-Ray that dies does not. */
#include "povray.h"
#include "../tasks/express.h"

enum { TYPE_TILE = 1, TYPE_RESULT };

static void send_tile(int worker, const struct tile *tile)
{
    write_to(worker + 1, TYPE_TILE, tile, sizeof *tile);
}

/* Receives a result from any node: exread sets `from` to the sender's node. */
static int hear(struct result *result, int max_pixel_bytes, int *worker)
{
    int from = DONTCARE, type = TYPE_RESULT;
    check(exread(result, (int)result_bytes(max_pixel_bytes), &from, &type));
    *worker = from - 1;
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
    int from = 0, type = TYPE_TILE;
    return extest(&from, &type) >= 0;
}

static void receive_tile(struct tile *tile)
{
    read_from(0, TYPE_TILE, tile, sizeof *tile);
}

static void send_result(const struct result *result)
{
    write_to(0, TYPE_RESULT, result, (int)result_bytes(result->pixel_bytes));
}

int main(int argc, char **argv)
{
    struct picture picture;
    const char *path = arguments(argc, argv, &picture);
    join();
    return rank > 0 ? worker(&picture) : master(&picture, path, size - 1);
}
