/* A picture of a scene, on NX. */
#include "contiguous.h"
#include "../tasks/nx.h"

enum { TYPE_SCENE = 3000, TYPE_PARCEL };

/* A message to node -1 goes to all others. */
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

/* A receive takes a message of this type from any node, and then tells of which. */
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
