/*
 * Which message a program gets: by a comparison function of its own (pvm_recvf), by handlers, by contexts, in the order
 * of sending. Also exchanges in which both tasks send before they receive.
 */
#include <pvm3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG (3 << 20)

static int me, handled;

static void send_one(int to, int tag, int value)
{
    pvm_initsend(PvmDataRaw);
    pvm_pkint(&value, 1, 1);
    pvm_send(to, tag);
}

static int value_of(int buffer)
{
    int value = -1;
    if (buffer <= 0)
        return buffer;
    pvm_upkint(&value, 1, 1);
    return value;
}

/* A comparison function that prefers the highest tag. */
static int highest(int buffer, int tid, int tag)
{
    int its_tag = 0, from = 0;
    pvm_bufinfo(buffer, NULL, &its_tag, &from);
    return (tid == -1 || tid == from) && tag == -1 ? its_tag + 1 : 0;
}

static int handle(int buffer)
{
    (void)buffer;
    int value = 0;
    pvm_upkint(&value, 1, 1);
    handled = handled * 10 + value;
    return 0;
}

static void choose(void)
{
    for (int tag = 1; tag <= 3; tag++)
        send_one(me, tag, tag * 11);
    while (pvm_probe(me, 3) <= 0)
        ; /* until all have arrived */
    int (*before)(int, int, int) = pvm_recvf(highest);
    printf("chosen: %d", value_of(pvm_recv(-1, -1)));
    printf(" %d", value_of(pvm_nrecv(me, -1)));
    printf(" none %d\n", pvm_nrecv(-1, 2));
    printf("it was the usual one: %d\n", before == NULL || before != highest);
    pvm_recvf(NULL);
    printf("left: %d\n", value_of(pvm_recv(-1, -1)));
}

static void handlers(void)
{
    int number = pvm_addmhf(me, 40, -1, handle);
    send_one(me, 40, 1);
    send_one(me, 41, 2);
    send_one(me, 40, 3);
    printf("beside handled ones: %d\n", value_of(pvm_recv(-1, -1)));
    while (handled != 13)
        pvm_nrecv(-1, 99);
    printf("handled: %d, deleted: %d\n", handled, pvm_delmhf(number));
    send_one(me, 40, 4);
    printf("not handled: %d\n", value_of(pvm_recv(me, 40)));
}

static void contexts(void)
{
    int context = pvm_newcontext();
    pvm_setcontext(context);
    send_one(me, 5, 1);
    pvm_setcontext(PvmBaseContext);
    send_one(me, 5, 2);
    printf("in the base context: %d\n", value_of(pvm_recv(-1, -1)));
    printf("and nothing more: %d\n", pvm_nrecv(-1, -1));
    pvm_setcontext(context);
    printf("in the other: %d\n", value_of(pvm_recv(-1, -1)));
    pvm_setcontext(PvmBaseContext);
    pvm_freecontext(context);
}

/* Both tasks send all their messages, and then receive. */
static void exchange(int other, int first)
{
    char *bytes = malloc(LONG);
    int wrong = 0, length = 0;
    memset(bytes, first ? 1 : 2, LONG);
    pvm_psend(other, 50, bytes, LONG, PVM_BYTE);
    for (int i = 0; i < 3000; i++)
        send_one(other, 51, i);
    pvm_initsend(PvmDataInPlace);
    pvm_pkbyte(bytes, LONG, 1);
    pvm_send(other, 52);
    pvm_initsend(PvmDataDefault);
    pvm_pkbyte(bytes, LONG, 1);
    pvm_send(other, 53);
    memset(bytes, 9, LONG);
    for (int tag = 53; tag >= 52; tag--) {
        pvm_recv(other, tag);
        pvm_upkbyte(bytes, LONG, 1);
        wrong += bytes[0] != (first ? 2 : 1) || bytes[LONG - 1] != bytes[0];
    }
    for (int i = 0; i < 3000; i++)
        wrong += value_of(pvm_recv(other, 51)) != i;
    pvm_precv(other, 50, bytes, LONG, PVM_BYTE, NULL, NULL, &length);
    wrong += length != LONG || bytes[LONG / 2] != (first ? 2 : 1);
    free(bytes);
    if (!first)
        send_one(other, 60, wrong);
    else
        printf("exchanged: %d wrong here, %d there\n", wrong, value_of(pvm_recv(other, 60)));
}

int main(int argc, char **argv)
{
    char *arguments[] = {"child", NULL};
    int child = 0;
    me = pvm_mytid();
    if (argc > 1) {
        exchange(pvm_parent(), 0);
        pvm_exit();
        return EXIT_SUCCESS;
    }
    choose();
    handlers();
    contexts();
    pvm_spawn(argv[0], arguments, PvmTaskDefault, NULL, 1, &child);
    exchange(child, 1);
    pvm_exit();
    return EXIT_SUCCESS;
}
