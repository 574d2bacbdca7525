/* A picture of a scene, on MPI. */
#include "ribbit.h"
#include "../tasks/mpi.h"

enum { TAG_PARCEL = 1 };

static void broadcast_scene(struct scene *scene)
{
    MPI_Bcast(&scene->ints, SCENE_INTS, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Bcast(&scene->numbers, SCENE_NUMBERS, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}

/* Returns memory for the longest packed parcel, of `*room` bytes. Packed elements may take more bytes than unpacked
 * ones. */
static void *packing_space(int *room)
{
    static void *space;
    static int all;
    const struct {
        int count;
        MPI_Datatype type;
    } parts[] = {{PARCEL_HEAD, MPI_INT}, {PARCEL_INTS, MPI_INT}, {PARCEL_NUMBERS, MPI_DOUBLE}, {PARCEL_BYTES, MPI_BYTE}};
    if (!space) {
        for (int k = 0; k < 4; k++) {
            int bytes;
            MPI_Pack_size(parts[k].count, parts[k].type, MPI_COMM_WORLD, &bytes);
            all += bytes;
        }
        space = zeroed_memory((size_t)all, 1);
    }
    *room = all;
    return space;
}

/* Packs elements of several types into one message. A derived datatype would have to be created for each parcel,
 * because their lengths differ. */
static void send_parcel(struct parcel *parcel, int to)
{
    int room, at = 0;
    void *space = packing_space(&room);
    MPI_Pack(&parcel->kind, PARCEL_HEAD, MPI_INT, space, room, &at, MPI_COMM_WORLD);
    MPI_Pack(parcel->piece_ints, parcel->pieces * PIECE_INTS, MPI_INT, space, room, &at, MPI_COMM_WORLD);
    MPI_Pack(parcel->number, parcel->numbers, MPI_DOUBLE, space, room, &at, MPI_COMM_WORLD);
    MPI_Pack(parcel->byte, parcel->bytes, MPI_BYTE, space, room, &at, MPI_COMM_WORLD);
    MPI_Send(space, at, MPI_PACKED, to, TAG_PARCEL, MPI_COMM_WORLD);
}

/* Receives a parcel and unpacks its elements in the order in which they were packed. The header, which comes first, has
 * the lengths of the others. */
static int receive_parcel(struct parcel *parcel)
{
    int room, at = 0;
    void *space = packing_space(&room);
    MPI_Status status;
    MPI_Recv(space, room, MPI_PACKED, MPI_ANY_SOURCE, TAG_PARCEL, MPI_COMM_WORLD, &status);
    MPI_Unpack(space, room, &at, &parcel->kind, PARCEL_HEAD, MPI_INT, MPI_COMM_WORLD);
    MPI_Unpack(space, room, &at, parcel->piece_ints, parcel->pieces * PIECE_INTS, MPI_INT, MPI_COMM_WORLD);
    MPI_Unpack(space, room, &at, parcel->number, parcel->numbers, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Unpack(space, room, &at, parcel->byte, parcel->bytes, MPI_BYTE, MPI_COMM_WORLD);
    return status.MPI_SOURCE;
}

int main(int argc, char **argv)
{
    join(&argc, &argv);
    return leave(ribbit(argc, argv, rank, size));
}
