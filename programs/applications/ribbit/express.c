/* A picture of a scene, on Express. */
#include "contiguous.h"
#include "../tasks/express.h"

enum { TYPE_PARCEL = TYPE_BACK + 1 };

static void broadcast_scene(struct scene *scene)
{
    int type = TYPE_BLOCK;
    check(exbroadcast(scene, 0, sizeof *scene, ALLNODES, NULLPTR, &type));
}

static void send_parcel(struct parcel *parcel, int to)
{
    write_to(to, TYPE_PARCEL, contiguous_space, contiguous_pack(parcel));
}

/* Receives a parcel from any node. exread replaces DONTCARE by the sender's node. */
static int receive_parcel(struct parcel *parcel)
{
    int from = DONTCARE, type = TYPE_PARCEL;
    check(exread(contiguous_space, CONTIGUOUS_ROOM, &from, &type));
    contiguous_unpack(parcel);
    return from;
}

int main(int argc, char **argv)
{
    join();
    return ribbit(argc, argv, rank, size);
}
