/* A picture of a scene, on PVM. */
#include "ribbit.h"
#include "../tasks/pvm.h"

enum { TAG_SCENE = TAG_DATA + 1, TAG_PARCEL };

/* Broadcasts the scene with pvm_bcast, which does not send to the caller and fails without another task. */
static void broadcast_scene(struct scene *scene)
{
    if (size == 1)
        return;
    if (rank == 0) {
        check(pvm_initsend(PvmDataDefault), "pvm_initsend");
        pvm_pkint((int *)&scene->ints, SCENE_INTS, 1);
        pvm_pkdouble((double *)&scene->numbers, SCENE_NUMBERS, 1);
        check(pvm_bcast(group, TAG_SCENE), "pvm_bcast");
    } else {
        check(pvm_recv(tids[0], TAG_SCENE), "pvm_recv");
        pvm_upkint((int *)&scene->ints, SCENE_INTS, 1);
        pvm_upkdouble((double *)&scene->numbers, SCENE_NUMBERS, 1);
    }
}

/* Sends a parcel. Values of any type and number are packed into one message, in a format that every machine can read.
 * */
static void send_parcel(struct parcel *parcel, int to)
{
    check(pvm_initsend(PvmDataDefault), "pvm_initsend");
    pvm_pkint(&parcel->kind, PARCEL_HEAD, 1);
    pvm_pkint(parcel->piece_ints, parcel->pieces * PIECE_INTS, 1);
    pvm_pkdouble(parcel->number, parcel->numbers, 1);
    pvm_pkbyte((char *)parcel->byte, parcel->bytes, 1);
    check(pvm_send(tids[to], TAG_PARCEL), "pvm_send");
}

/* Receives a parcel and unpacks its elements in the order in which they were packed. The header, which comes first, has
 * the lengths of the others. */
static int receive_parcel(struct parcel *parcel)
{
    int message = pvm_recv(-1, TAG_PARCEL), from = 0, tid;
    check(message, "pvm_recv");
    pvm_upkint(&parcel->kind, PARCEL_HEAD, 1);
    pvm_upkint(parcel->piece_ints, parcel->pieces * PIECE_INTS, 1);
    pvm_upkdouble(parcel->number, parcel->numbers, 1);
    pvm_upkbyte((char *)parcel->byte, parcel->bytes, 1);
    check(pvm_bufinfo(message, NULL, NULL, &tid), "pvm_bufinfo");
    while (tids[from] != tid)
        from++;
    return from;
}

/* Runs the program. The last argument is the number of tasks. */
int main(int argc, char **argv)
{
    join(argc, argv);
    return leave(ribbit(argc - 1, argv, rank, size));
}
