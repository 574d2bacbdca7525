/*
 * Long messages: sent again, sent to many, extended, forwarded, held and freed in every order. Prints the results,
 * which must be the same with both libraries. Without an argument this is the main task; otherwise a helper.
 */
#include <pvm3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HELPERS = 12, LONG = 1 << 18, ORDER = 1, DATA = 2, BACK = 3 };
enum { HASH = 1, FORWARD, PACK_ON, HOLD, AGAIN, SHORT, LEAVE, END };

static int numbers[2 * LONG], got[2 * LONG];

static unsigned hash(const int *at, int count)
{
    unsigned sum = 17;
    for (int i = 0; i < count; i++)
        sum = sum * 31 + (unsigned)at[i];
    return sum;
}

static void fill(int seed)
{
    for (int i = 0; i < 2 * LONG; i++)
        numbers[i] = seed * 1000003 + i * 7;
}

/* Unpacks the rest of the current receive buffer, in pieces of this size. */
static unsigned unpacked(int piece)
{
    int count = 0;
    memset(got, 0, sizeof got);
    while (count < LONG && pvm_upkint(got + count, piece, 1) == 0)
        count += piece;
    return hash(got, LONG) + (unsigned)count;
}

static void answer(int to, unsigned sum)
{
    int value = (int)sum;
    pvm_initsend(PvmDataDefault);
    pvm_pkint(&value, 1, 1);
    pvm_send(to, BACK);
}

static int helper(void)
{
    int parent = pvm_parent(), order = 0, held = 0;

    while (order != END) {
        int bytes, tag, from, few[5] = {0};
        pvm_recv(parent, ORDER);
        pvm_upkint(&order, 1, 1);
        if (order == HASH || order == FORWARD || order == PACK_ON) {
            int buffer = pvm_recv(parent, DATA);
            pvm_bufinfo(buffer, &bytes, &tag, &from);
            unsigned sum = unpacked(LONG / 4) + (unsigned)bytes + (unsigned)tag + (unsigned)(from == parent);
            if (order == HASH) {
                answer(parent, sum);
                continue;
            }
            pvm_setrbuf(0);
            int before = pvm_setsbuf(buffer);
            if (order == PACK_ON)
                pvm_pkint(numbers, 5, 1);
            pvm_send(parent, BACK);
            pvm_freebuf(pvm_setsbuf(before));
        } else if (order == HOLD) {
            pvm_recv(parent, DATA);
            held = pvm_setrbuf(0);
            answer(parent, 0);
        } else if (order == AGAIN) {
            pvm_setrbuf(held);
            answer(parent, unpacked(LONG));
            pvm_freebuf(pvm_setrbuf(0));
        } else if (order == SHORT) {
            int length;
            pvm_precv(parent, DATA, few, 5, PVM_INT, &from, &tag, &length);
            answer(parent, hash(few, 5) + (unsigned)length);
        } else if (order == LEAVE) {
            pvm_recv(parent, DATA);
            unsigned sum = unpacked(LONG / 2);
            answer(parent, sum);
            break;
        }
    }
    pvm_exit();
    return 0;
}

static void say_answers(const char *what, int *tids, int count)
{
    for (int i = 0; i < count; i++) {
        int value;
        pvm_recv(tids[i], BACK);
        pvm_upkint(&value, 1, 1);
        printf("%s %d: %u\n", what, i, (unsigned)value);
    }
}

static void order(int *tids, int count, int what)
{
    pvm_initsend(PvmDataRaw);
    pvm_pkint(&what, 1, 1);
    for (int i = 0; i < count; i++)
        pvm_send(tids[i], ORDER);
}

/* A task sends a buffer to itself, reads it, packs more into it and sends it again. */
static void alone(int me, int encoding)
{
    int more[3] = {7, 8, 9};
    fill(encoding + 1);
    int buffer = pvm_initsend(encoding);
    pvm_pkint(numbers, LONG, 1);
    pvm_send(me, 10);
    pvm_pkint(more, 3, 1);
    pvm_send(me, 11);
    pvm_send(me, 12);
    fill(99);
    pvm_initsend(encoding);
    pvm_pkint(numbers, LONG, 1);
    pvm_send(me, 13);
    for (int tag = 13; tag >= 10; tag--) {
        int bytes;
        buffer = pvm_recv(me, tag);
        pvm_bufinfo(buffer, &bytes, NULL, NULL);
        unsigned sum = unpacked(LONG / 2);
        int rest = pvm_upkint(more, 3, 1);
        printf("alone %d %d: %d bytes %u, then %d %d\n", encoding, tag, bytes, sum, rest, more[2]);
    }
    /* The buffer is read while it is sent. */
    buffer = pvm_initsend(encoding);
    pvm_pkint(numbers, LONG, 1);
    pvm_send(me, 14);
    int kept = pvm_setsbuf(0);
    pvm_setrbuf(kept);
    printf("own: %u\n", unpacked(LONG));
    pvm_freebuf(pvm_setrbuf(0));
    pvm_recv(-1, 14);
    printf("freed: %u\n", unpacked(LONG));
    /* Every second number, backwards and forwards. */
    pvm_initsend(encoding);
    pvm_pkint(numbers, LONG, 2);
    pvm_send(me, 15);
    while (pvm_probe(me, 15) <= 0)
        ;
    printf("looked: %d\n", pvm_nrecv(me, 15) > 0);
    memset(got, 0, sizeof got);
    printf("strided: %d", pvm_upkint(got, LONG, 2));
    printf(" %u\n", hash(got, 2 * LONG));
    (void)buffer;
}

static void together(int *tids, int encoding)
{
    printf("encoding %d\n", encoding);
    fill(encoding + 5);
    order(tids, HELPERS, HASH);
    pvm_initsend(encoding);
    pvm_pkint(numbers, LONG, 1);
    pvm_mcast(tids, HELPERS, DATA);
    pvm_mcast(tids, 3, DATA);
    fill(3);
    say_answers("to all", tids, HELPERS);
    order(tids, 3, HASH);
    say_answers("again", tids, 3);

    fill(encoding + 6);
    order(tids, HELPERS, HOLD);
    pvm_initsend(encoding);
    pvm_pkint(numbers, LONG, 1);
    for (int i = 0; i < HELPERS; i++)
        pvm_send(tids[i], DATA);
    say_answers("held", tids, HELPERS);
    for (int turn = 0; turn < 4; turn++) {
        fill(turn);
        order(tids + turn, 1, FORWARD);
        pvm_initsend(encoding);
        pvm_pkint(numbers, LONG / 2, 1);
        pvm_pkint(numbers + LONG / 2, LONG / 2, 1);
        pvm_send(tids[turn], DATA);
        pvm_recv(tids[turn], BACK);
        printf("forwarded: %u\n", unpacked(LONG));
        /* The result of packing more into a long XDR message that has been read depends on PVM's fragments. */
        if (encoding == PvmDataDefault)
            continue;
        order(tids + turn, 1, PACK_ON);
        pvm_initsend(encoding);
        pvm_pkint(numbers, LONG, 1);
        pvm_send(tids[turn], DATA);
        int bytes;
        pvm_bufinfo(pvm_recv(tids[turn], BACK), &bytes, NULL, NULL);
        printf("packed on: %d bytes %u\n", bytes, unpacked(LONG));
    }
    order(tids, HELPERS, AGAIN);
    say_answers("still held", tids, HELPERS);
}

int main(int count, char **arguments)
{
    static char name[] = "pvm_long", yes[] = "helper", *words[] = {yes, NULL};
    int me = pvm_mytid(), tids[HELPERS];
    if (count > 1)
        return helper();
    (void)arguments;
    pvm_setopt(PvmRoute, PvmRouteDirect);
    alone(me, PvmDataRaw);
    alone(me, PvmDataDefault);
    printf("spawned: %d\n", pvm_spawn(name, words, PvmTaskDefault, NULL, HELPERS, tids));
    together(tids, PvmDataRaw);
    together(tids, PvmDataInPlace);
    together(tids, PvmDataDefault);

    fill(50);
    order(tids, HELPERS, SHORT);
    pvm_initsend(PvmDataRaw);
    pvm_pkint(numbers, LONG, 1);
    pvm_mcast(tids, HELPERS, DATA);
    say_answers("short", tids, HELPERS);
    order(tids, HELPERS / 2, LEAVE);
    order(tids + HELPERS / 2, HELPERS / 2, END);
    pvm_initsend(PvmDataRaw);
    pvm_pkint(numbers, LONG, 1);
    pvm_mcast(tids, HELPERS / 2, DATA);
    say_answers("left", tids, HELPERS / 2);
    pvm_exit();
    return 0;
}
