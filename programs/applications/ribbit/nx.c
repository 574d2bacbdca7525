/* A picture of a scene, on NX. */
#include "contiguous.h"
#include "../tasks/nx.h"

enum { TYPE_SCENE = 3000, TYPE_PARCEL };

/* Broadcasts the scene. A message to node -1 goes to all other nodes. */
static void broadcast_scene(struct scene *scene)
{
    if (rank == 0)
        csend(TYPE_SCENE, scene, sizeof *scene, -1, PTYPE);
    else
        crecv(TYPE_SCENE, scene, sizeof *scene);
}

static void send_parcel(struct parcel *parcel, int to)
{
    csend(TYPE_PARCEL, contiguous_space, contiguous_pack(parcel), to, PTYPE);
}

/* Receives a parcel from any node. infonode returns its sender. */
static int receive_parcel(struct parcel *parcel)
{
    crecv(TYPE_PARCEL, contiguous_space, CONTIGUOUS_ROOM);
    contiguous_unpack(parcel);
    return (int)infonode();
}

int main(int argc, char **argv)
{
    join();
    return ribbit(argc, argv, rank, size);
}
