/* A picture of a scene, on Regatta's own interface. */
#include "ribbit.h"
#include "../tasks/regatta.h"

enum { TAG_HEAD = 1, TAG_BODY };

static void broadcast_scene(struct scene *scene)
{
    check(rg_broadcast(scene, sizeof *scene, 0, RG_WORLD));
}

/* Describes the arrays of a parcel as views of one block each. The message is sent from there without packing. Returns
 * the number of views. */
static int body(struct parcel *p, rg_view blocks[3])
{
    blocks[0] = (rg_view){p->piece_ints, (size_t)p->pieces * PIECE_INTS * sizeof(int), 1, 0};
    blocks[1] = (rg_view){p->number, (size_t)p->numbers * sizeof(double), 1, 0};
    blocks[2] = (rg_view){p->byte, (size_t)p->bytes, 1, 0};
    return 3;
}

/* Sends a parcel: first its header, from which the receiver learns the lengths of the arrays, then the arrays, which
 * are received in place. */
static void send_parcel(struct parcel *parcel, int to)
{
    rg_view blocks[3];
    check(rg_send(&parcel->kind, PARCEL_HEAD * sizeof(int), to, TAG_HEAD, RG_WORLD));
    check(rg_sendv(blocks, body(parcel, blocks), to, TAG_BODY, RG_WORLD));
}

static int receive_parcel(struct parcel *parcel)
{
    rg_view blocks[3];
    rg_status status;
    check(rg_recv(&parcel->kind, PARCEL_HEAD * sizeof(int), RG_ANY, TAG_HEAD, RG_WORLD, &status));
    check(rg_recvv(blocks, body(parcel, blocks), status.source, TAG_BODY, RG_WORLD, NULL));
    return status.source;
}

int main(int argc, char **argv)
{
    join();
    return leave(ribbit(argc, argv, rank, size));
}
