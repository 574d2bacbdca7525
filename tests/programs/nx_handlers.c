/*
 * Handlers of NX programs that run when a message has arrived: while the program computes, while it waits, or not at
 * all.
 */
#include "nx_check.h"

enum { ASK = 1, ANSWER = 2, STOP = 3, ROUNDS = 200 };

static volatile long calls, told[5];

static void note(long type, long count, long node, long pid)
{
    told[0] = type, told[1] = count, told[2] = node, told[3] = pid;
    calls++;
}

static void note_own(long type, long count, long node, long pid, long own)
{
    told[4] = own;
    note(type, count, node, pid);
}

#define TOLD(type, count, node) \
    CHECK(told[0] == (type) && told[1] == (count) && told[2] == (node) && told[3] == 0)

/* ---- a server that makes no calls --------------------------------------------------------------- */

static long counter, asked;

static void serve(long type, long count, long node, long pid)
{
    CHECK(type == ASK && count == sizeof asked && pid == 0);
    long before = masktrap(1), value = counter;
    counter += asked;
    csend(ANSWER, &value, sizeof value, node, pid);
    hrecv(ASK, &asked, sizeof asked, serve);
    masktrap(before);
    calls++;
}

static void ask(void)
{
    long step = 1, value, last = -1;
    for (int i = 0; i < ROUNDS; i++) {
        csend(ASK, &step, sizeof step, 0, 0);
        crecv(ANSWER, &value, sizeof value);
        CHECK(value > last);
        last = value;
    }
}

/* Node 0 computes and makes no call. */
static void computes(void)
{
    begin();
    CHECK(masktrap(0) == 0);
    if (me == 0)
        hrecv(ASK, &asked, sizeof asked, serve);
    gsync();
    if (me == 0) {
        while (calls < (size - 1) * ROUNDS)
            ;
        CHECK(counter == (size - 1) * ROUNDS);
    } else
        ask();
    gsync();
}

/* Node 0 waits for something else. */
static void waits(void)
{
    begin();
    long word = 5;
    if (me == 0)
        hrecv(ASK, &asked, sizeof asked, serve);
    gsync();
    if (me == 0) {
        for (int from = 1; from < size; from++) {
            crecv(STOP, &word, sizeof word);
            INFO(STOP, (long)sizeof word, word);
        }
    } else {
        ask();
        word = me;
        csend(STOP, &word, sizeof word, 0, 0);
        ask();
    }
    /* The handlers also run during a barrier. */
    gsync();
    CHECK(me != 0 || counter == 2L * (size - 1) * ROUNDS);
}

/* ---- masks --------------------------------------------------------------------------------------- */

static void masked(void)
{
    begin();
    long word = 7, got = 0, back = 0;
    if (me == 0) {
        CHECK(masktrap(1) == 0 && masktrap(1) == 1);
        hrecv(4, &got, sizeof got, note);
        hrecv(5, &back, sizeof back, note);
    }
    gsync();
    if (me == 1) {
        csend(4, &word, sizeof word, 0, 0);
        csend(6, &word, sizeof word, 0, 0);
        crecv(7, &word, sizeof word);
        csend(5, &word, 2, 0, 0);
    }
    if (me == 0) {
        crecv(6, &back, sizeof back);
        be_away(0.05);
        CHECK(calls == 0 && got == 7);
        /* The handler is pending, and runs before masktrap returns. */
        CHECK(masktrap(0) == 1 && calls == 1);
        TOLD(4, (long)sizeof got, 1);
        INFO(6, (long)sizeof back, 1);
        csend(7, &word, sizeof word, 1, 0);
        while (calls < 2)
            ;
        TOLD(5, 2, 1);
        INFO(6, (long)sizeof back, 1);
        CHECK(_masktrap(0) == 0);
    }
    gsync();
}

/* ---- all calls ------------------------------------------------------------------------------------ */

static void await(long number)
{
    while (calls < number)
        ;
}

static void forms(void)
{
    begin();
    long out = 10 + me, in = 0, other = me ^ 1;
    hsend(1, &out, sizeof out, other, 0, note);
    await(1);
    TOLD(1, (long)sizeof out, other);
    crecv(1, &in, sizeof in);
    CHECK(in == 10 + other);
    hsendx(2, &out, 4, other, 0, note_own, 99);
    await(2);
    TOLD(2, 4, other);
    CHECK(told[4] == 99);
    hrecvx(2, &in, sizeof in, other, -1, note_own, -5);
    await(3);
    TOLD(2, 4, other);
    CHECK(told[4] == -5);
    hsendrecv(3, &out, sizeof out, other, 0, 3, &in, sizeof in, note);
    await(4);
    TOLD(3, (long)sizeof in, other);
    /* To all nodes, of any type, and to itself. */
    hsend(4, &out, 1, -1, 0, note);
    await(5);
    TOLD(4, 1, -1);
    hrecv(-1, &in, sizeof in, note);
    await(6);
    TOLD(4, 1, other);
    hrecv(9, &in, sizeof in, note);
    csend(9, &out, 3, me, 0);
    await(7);
    TOLD(9, 3, me);
    CHECK(_hsend(5, &out, 8, other, 0, note) == 0 && _hsendx(5, &out, 8, other, 0, note_own, 1) == 0);
    CHECK(_hrecv(5, &in, 8, note) == 0);
    await(10);
    CHECK(_hrecvx(5, &in, 8, -1, -1, note_own, 2) == 0);
    await(11);
    CHECK(_hsendrecv(6, &out, 8, other, 0, 6, &in, 8, note) == 0);
    await(12);
    gsync();
}

/* A handler's long message had arrived before a probe by mask took messages in. */
static void earlier(void)
{
    begin();
    enum { MESSAGE_BYTES = 1 << 20 };
    char *bytes = need(MESSAGE_BYTES);
    if (me == 1) {
        paint(bytes, MESSAGE_BYTES, 4);
        csend(1, bytes, MESSAGE_BYTES, 0, 0);
        csend(2, bytes, 100, 0, 0);
    }
    gsync();
    if (me == 0) {
        CHECK(iprobe(-2147483647 - 1 + 12) == 1);
        INFO(2, 100, 1);
        hrecv(1, bytes, MESSAGE_BYTES, note);
        await(1);
        TOLD(1, MESSAGE_BYTES, 1);
        CHECK(unpainted(bytes, MESSAGE_BYTES, 4) == MESSAGE_BYTES);
        crecv(2, bytes, MESSAGE_BYTES);
        INFO(2, 100, 1);
    }
    free(bytes);
    gsync();
}

#define MASK(types) (-2147483647 - 1 + (types))

static long third;

static void take_third(long type, long count, long node, long pid)
{
    csend(ANSWER, &third, sizeof third, node, pid);
    crecv(MASK(1 << 5 | 1 << 7), &third, sizeof third);
    note(type, count, node, pid);
}

/* A handler receives the message that the program waits for, because both select by masks. */
static void taken_in(void)
{
    begin();
    long word = 0;
    if (me == 0) {
        hrecv(ASK, &asked, sizeof asked, take_third);
        gsync();
        crecv(MASK(1 << 4 | 1 << 6), &word, sizeof word);
        INFO(4, (long)sizeof word, 1);
        CHECK(word == 44 && third == 55 && calls == 1);
        hrecv(ASK, &asked, sizeof asked, take_third);
        gsync();
        long mid = irecv(MASK(1 << 4 | 1 << 6), &word, sizeof word);
        msgwait(mid);
        CHECK(word == 44 && third == 55 && calls == 2);
        hrecv(ASK, &asked, sizeof asked, take_third);
        gsync();
        cprobe(MASK(1 << 4 | 1 << 6));
        INFO(4, (long)sizeof word, 1);
        crecv(4, &word, sizeof word);
    } else
        for (int i = 0; i < 3; i++) {
            gsync();
            /* Node 0 is waiting by then. */
            be_away(0.05);
            csend(ASK, &word, sizeof word, 0, 0);
            crecv(ANSWER, &word, sizeof word);
            for (long type = 4; type < 6; type++) {
                word = 11 * type;
                csend(type, &word, sizeof word, 0, 0);
            }
        }
    gsync();
}

static void serve_again(long type, long count, long node, long pid, long own)
{
    hrecvx(ASK, &asked, sizeof asked, 1, -1, serve_again, own);
    note_own(type, count, node, pid, own);
}

/* Node 1 has exited: receives from it do not complete, and do no harm. */
static void gone(void)
{
    begin();
    long word = 1;
    if (me == 0)
        hrecvx(ASK, &asked, sizeof asked, 1, -1, serve_again, 8);
    gsync();
    if (me == 1) {
        csend(ASK, &word, sizeof word, 0, 0);
        csend(ASK, &word, sizeof word, 0, 0);
        return;
    }
    GIVES(_crecvx(STOP, &word, sizeof word, 1, -1, NULL), EQNOACT);
    if (me == 0) {
        await(2);
        CHECK(_hrecvx(ASK, &asked, sizeof asked, 1, -1, serve_again, 8) == 0);
        crecv(STOP, &word, sizeof word);
        CHECK(calls == 2 && told[4] == 8);
    } else
        csend(STOP, &word, sizeof word, 0, 0);
}

static void wrong(void)
{
    begin();
    long word;
    GIVES(_hrecv(1, &word, 8, NULL), EQHND);
    GIVES(_hsend(1, &word, 8, 0, 0, NULL), EQHND);
    GIVES(_hsendrecv(1, &word, 8, 0, 0, 1, &word, 8, NULL), EQHND);
    GIVES(_hrecvx(1, &word, 8, -1, -1, NULL, 0), EQHND);
    GIVES(_hsendx(1, &word, 8, 0, 0, NULL, 0), EQHND);
    GIVES(_hrecv(1, &word, -1, note), EQLEN);
    GIVES(_hrecv(-2147483647 - 1 + 6, &word, 8, note), EQTYPE);
    GIVES(_hrecvx(1, &word, 8, 9, -1, note_own, 0), EQNODE);
    GIVES(_hsend(1, &word, 8, 9, 0, note), EQNODE);
    GIVES(_hsend(-1, &word, 8, 0, 0, note), EQTYPE);
    GIVES(_hsendx(1, NULL, 8, 0, 0, note_own, 0), EQPBUF);
    GIVES(_hsendrecv(1, &word, 8, 0, 0, 1, NULL, 8, note), EQPBUF);
    CHECK(iprobe(-1) == 0 && calls == 0);
}

/* A message that is too long for a handler's buffer ends the program, during a call or while it computes. */
static void ends(void)
{
    begin();
    long word = 1;
    if (me == 0)
        hrecv(1, &word, 2, note);
    gsync();
    if (me == size - 1)
        csend(1, &word, sizeof word, 0, 0);
    if (me == 0)
        await(1);
    crecv(2, NULL, 0);
    FAILED("it went on");
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"computes", computes, true}, {"waits", waits, true},     {"masked", masked, true},
        {"forms", forms, true},       {"earlier", earlier, true}, {"wrong", wrong, true},
        {"taken-in", taken_in, true}, {"gone", gone, true},
        {"ends", ends, true},         {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
