/* A farm for POV-Ray, on MPI: rank 0 is the master. A worker that dies ends the job, as is usual with MPI; a POV-Ray
 * that dies does not. */
#include "povray.h"
#include "../tasks/mpi.h"

enum { TAG_TILE, TAG_RESULT };

static void send_tile(int worker, const struct tile *tile)
{
    MPI_Send(tile, sizeof *tile, MPI_BYTE, worker + 1, TAG_TILE, MPI_COMM_WORLD);
}

static int hear(struct result *result, int max_pixel_bytes, int *worker)
{
    MPI_Status status;
    MPI_Recv(result, (int)result_bytes(max_pixel_bytes), MPI_BYTE, MPI_ANY_SOURCE, TAG_RESULT, MPI_COMM_WORLD, &status);
    *worker = status.MPI_SOURCE - 1;
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
    int found;
    MPI_Iprobe(0, TAG_TILE, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    return found;
}

static void receive_tile(struct tile *tile)
{
    MPI_Recv(tile, sizeof *tile, MPI_BYTE, 0, TAG_TILE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void send_result(const struct result *result)
{
    MPI_Send(result, (int)result_bytes(result->pixel_bytes), MPI_BYTE, 0, TAG_RESULT, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    struct picture picture;
    join(&argc, &argv);
    const char *path = arguments(argc, argv, &picture);
    return leave(rank > 0 ? worker(&picture) : master(&picture, path, size - 1));
}
