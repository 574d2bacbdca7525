/* Asynchronous sends and receives of NX, probes, selection by node, by masks and by force types. */
#include "nx_check.h"

enum { LONG = 1 << 20, MASK = -2147483647 - 1 };

static void ids(void)
{
    begin();
    long in[3] = {0}, out = 100 + me, mids[3];
    for (int from = 0; from < size; from++)
        mids[from] = irecv(from, &in[from], sizeof in[from]);
    for (int to = 0; to < size; to++) {
        long mid = isend(me, &out, sizeof out, to, 0);
        CHECK(mid > 0);
        msgwait(mid);
        /* A released id is invalid. */
        GIVES(_msgwait(mid), EQMID);
        GIVES(_msgdone(mid), EQMID);
    }
    for (int from = size - 1; from >= 0; from--) {
        while (msgdone(mids[from]) == 0)
            flick();
        INFO(from, (long)sizeof out, from);
        CHECK(in[from] == 100 + from);
        GIVES(_msgcancel(mids[from]), EQMID);
        GIVES(_msgignore(mids[from]), EQMID);
        GIVES(_msgmerge(mids[from], -1), EQMID);
    }
    GIVES(_msgwait(0), EQMID);
    GIVES(_msgwait(-5), EQMID);
    GIVES(_isend(1, &out, sizeof out, size + 5, 0), EQNODE);
    GIVES(_irecv(1, &out, -1), EQLEN);
    GIVES(_irecvx(1, &out, 8, 77, 0, NULL), EQNODE);
    gsync();
}

/* Two nodes start long sends to each other and then receive. */
static void long_ones(void)
{
    begin();
    char *out = need(LONG), *in = need(LONG);
    paint(out, LONG, (uint64_t)me);
    long mid = isend(1, out, LONG, me ^ 1, 0);
    crecv(1, in, LONG);
    CHECK(unpainted(in, LONG, (uint64_t)(me ^ 1)) == LONG);
    msgwait(mid);
    memset(in, 0, LONG);
    mid = isendrecv(2, out, LONG, me ^ 1, 0, 2, in, LONG);
    msgwait(mid);
    INFO(2, LONG, me ^ 1);
    CHECK(unpainted(in, LONG, (uint64_t)(me ^ 1)) == LONG);
    GIVES(_msgwait(mid), EQMID);
    free(out);
    free(in);
    gsync();
}

static void merged(void)
{
    begin();
    long in[10], out[10], all = -1;
    for (int i = 0; i < 10; i++)
        all = msgmerge(all, irecv(i, &in[i], sizeof in[i]));
    CHECK(msgdone(all) == 0);
    gsync();
    long sends = -1;
    for (int i = 9; i >= 0; i--) {
        out[i] = 10 * i + me;
        sends = msgmerge(isend(i, &out[i], sizeof out[i], me ^ 1, 0), sends);
    }
    all = msgmerge(all, sends);
    msgwait(all);
    for (int i = 0; i < 10; i++)
        CHECK(in[i] == 10 * i + (me ^ 1));
    GIVES(_msgdone(all), EQMID);
    CHECK(msgmerge(-1, -1) == -1);
    long one = irecv(1, in, sizeof *in), other = irecv(2, in, sizeof *in);
    GIVES(_msgmerge(one, one), EQMID);
    CHECK(msgmerge(one, other) == one);
    /* From then on only one id stands for both. */
    GIVES(_msgmerge(other, one), EQMID);
    GIVES(_msgdone(other), EQMID);
    msgcancel(one);
    GIVES(_msgdone(one), EQMID);
    gsync();
}

static void cancelled(void)
{
    begin();
    long early = -1, late = -1, word = me;
    long mid = irecv(1, &early, sizeof early);
    msgcancel(mid);
    GIVES(_msgdone(mid), EQMID);
    gsync();
    csend(1, &word, sizeof word, me ^ 1, 0);
    /* The cancelled receive takes no message. */
    crecv(1, &late, sizeof late);
    CHECK(late == (me ^ 1) && early == -1);
    /* An ignored receive continues. */
    mid = irecv(2, &early, sizeof early);
    msgignore(mid);
    GIVES(_msgwait(mid), EQMID);
    msgignore(isend(2, &word, sizeof word, me ^ 1, 0));
    gsync();
    csend(3, &word, sizeof word, me ^ 1, 0);
    crecv(3, &late, sizeof late);
    CHECK(early == (me ^ 1) && iprobe(-1) == 0);
    /* The same holds for a receive by a mask. */
    early = -1;
    msgignore(irecv(MASK + (1 << 4 | 1 << 5), &early, sizeof early));
    gsync();
    csend(5, &word, sizeof word, me ^ 1, 0);
    csend(6, &word, sizeof word, me ^ 1, 0);
    crecv(6, &late, sizeof late);
    CHECK(early == (me ^ 1) && iprobe(-1) == 0);
    gsync();
}

static void to_all(void)
{
    begin();
    long word = 100 + me, got, seen = 0;
    long mid = isend(1, &word, sizeof word, -1, 0);
    for (int i = 1; i < size; i++) {
        crecv(1, &got, sizeof got);
        CHECK(got == 100 + infonode() && infonode() != me);
        seen |= 1L << infonode();
    }
    CHECK(seen == (((1L << size) - 1) & ~(1L << me)));
    msgwait(mid);
    gsync();
    CHECK(iprobe(-1) == 0);
}

static void probes(void)
{
    begin();
    long word = 5, info[8] = {0};
    CHECK(iprobe(-1) == 0 && iprobe(3) == 0 && iprobex(-1, 0, 0, info) == 0);
    gsync();
    if (me == 1) {
        csend(3, &word, sizeof word, 0, 0);
        csend(4, &word, 2, 0, 0);
    }
    if (me == 0) {
        cprobe(4);
        INFO(4, 2, 1);
        CHECK(iprobe(3) == 1);
        INFO(3, (long)sizeof word, 1);
        CHECK(iprobe(5) == 0 && iprobex(3, 0, 0, info) == 0 && info[1] == 0);
        CHECK(iprobex(4, 1, -1, info) == 1 && info[0] == 4 && info[1] == 2 && info[2] == 1 && info[3] == 0);
        cprobex(3, 1, 0, msginfo);
        INFO(3, (long)sizeof word, 1);
        cprobex(-1, -1, -1, info);
        CHECK(info[0] == 3);
        GIVES(_cprobe(1L << 40), EQTYPE);
        GIVES(_iprobe(1L << 40), EQTYPE);
        GIVES(_cprobex(1, 50, 0, info), EQNODE);
        GIVES(_iprobex(1, 50, 0, info), EQNODE);
        flushmsg(3, 0, -1);
        CHECK(iprobe(3) == 1);
        flushmsg(3, -1, -1);
        CHECK(iprobe(3) == 0 && iprobe(4) == 1);
        CHECK(_flushmsg(-1, 1, 0) == 0 && iprobe(-1) == 0);
        GIVES(_flushmsg(1, 1, 9), EQNOACT);
    }
    gsync();
}

/* Receives that select by node, in the reverse order of the sends. */
static void by_node(void)
{
    begin();
    long word = me, info[8], got = -1;
    if (me != 0)
        csend(1, &word, sizeof word, 0, 0);
    gsync();
    for (int from = size - 1; me == 0 && from > 0; from--) {
        if (from % 2) {
            crecvx(1, &got, sizeof got, from, -1, info);
        } else {
            long mid = irecvx(-1, &got, sizeof got, from, 0, info);
            msgwait(mid);
        }
        CHECK(got == from && info[0] == 1 && info[1] == sizeof got && info[2] == from && info[3] == 0);
    }
    /* With msginfo as the argument, the info calls describe this receive. */
    csend(2, &word, sizeof word, me, 0);
    crecvx(2, &got, sizeof got, me, 0, msginfo);
    INFO(2, (long)sizeof word, me);
    gsync();
}

/* Force types: a receive of any type does not take them. */
static void forced(void)
{
    begin();
    long word = 1 + me, got = 0, mid = 0;
    if (me == 0)
        mid = irecv(FORCE_TYPE + 5, &got, sizeof got);
    gsync();
    if (me == 1) {
        csend(FORCE_TYPE + 5, &word, sizeof word, 0, 0);
        csend(1600000000, &word, sizeof word, 0, 0);
        csend(7, &word, sizeof word, 0, 0);
    }
    if (me == 0) {
        long any = 0;
        crecv(-1, &any, sizeof any);
        INFO(7, (long)sizeof any, 1);
        CHECK(iprobe(-1) == 0);
        msgwait(mid);
        INFO(FORCE_TYPE + 5, (long)sizeof got, 1);
        CHECK(got == 2);
        cprobe(1600000000);
        CHECK(iprobe(1600000000) == 1);
        flushmsg(1600000000, -1, -1);
        CHECK(iprobe(1600000000) == 0);
    }
    gsync();
}

/* Masks: bits select types 0 to 29, bit 30 all larger ones. */
static void masks(void)
{
    begin();
    static const long sent[] = {7, 3, 29, 30, 500, 3, 8, 1};
    enum { SENT = sizeof sent / sizeof *sent };
    long got = 0, mid = 0, other = 0;
    const long threes = MASK + (1 << 3) + (1 << 8), large = MASK + (1 << 30);
    if (me == 0) {
        mid = irecv(MASK + (1 << 8) + (1 << 9), &other, sizeof other);
        CHECK(msgdone(mid) == 0 && iprobe(threes) == 0);
    }
    gsync();
    for (long i = 0; me == 1 && i < SENT; i++)
        csend(sent[i], &i, sizeof i, 0, 0);
    if (me == 0) {
        cprobe(threes);
        INFO(3, (long)sizeof got, 1);
        crecv(large, &got, sizeof got);
        CHECK(got == 3);
        INFO(30, (long)sizeof got, 1);
        /* A mask written as an unsigned number. */
        crecv(0x80000000L + (1 << 3) + (1 << 8), &got, sizeof got);
        CHECK(got == 1);
        crecv(large, &got, sizeof got);
        CHECK(got == 4);
        INFO(500, (long)sizeof got, 1);
        msgwait(mid);
        CHECK(other == 6);
        INFO(8, (long)sizeof other, 1);
        CHECK(iprobe(MASK + (1 << 8) + (1 << 9)) == 0);
        GIVES(_crecv(threes, &got, 3), EQMSGLONG);
        crecv(threes, &got, sizeof got);
        CHECK(got == 5);
        /* The other messages are still queued, in order. */
        mid = irecv(1, &other, sizeof other);
        crecv(-1, &got, sizeof got);
        CHECK(got == 0);
        crecv(29, &got, sizeof got);
        CHECK(got == 2);
        msgwait(mid);
        CHECK(other == 7);
        CHECK(iprobe(-1) == 0);
        mid = irecv(threes, &got, sizeof got);
        msgcancel(mid);
    }
    gsync();
    /* After all messages have been received, receives work as before. */
    csend(3, &got, sizeof got, me, 0);
    crecv(3, &got, sizeof got);
    INFO(3, (long)sizeof got, me);
    gsync();
}

/* Receives by mask that have to wait, also for a long message. */
static void awaited(void)
{
    begin();
    char *bytes = need(LONG);
    if (me == 1) {
        crecv(1, NULL, 0);
        paint(bytes, LONG, 3);
        csend(20, bytes, 10, 0, 0);
        csend(12, bytes, LONG, 0, 0);
    }
    if (me == 0) {
        csend(1, NULL, 0, 1, 0);
        crecv(MASK + (1 << 12) + (1 << 11), bytes, LONG);
        INFO(12, LONG, 1);
        CHECK(unpainted(bytes, LONG, 3) == LONG);
        crecv(20, bytes, 10);
        INFO(20, 10, 1);
    }
    free(bytes);
    gsync();
}

/* Starts more requests than the limit allows. */
static void full(void)
{
    begin();
    static long mids[65535];
    long word;
    for (int i = 0; i < 65535; i++)
        mids[i] = irecv(1, NULL, 0);
    GIVES(_irecv(1, &word, sizeof word), EQNOMID);
    GIVES(_isend(1, &word, sizeof word, me, 0), EQNOMID);
    GIVES(_isend(1, &word, sizeof word, -1, 0), EQNOMID);
    GIVES(_isendrecv(1, &word, sizeof word, me, 0, 1, &word, 0), EQNOMID);
    CHECK(iprobe(-1) == 0);
    for (int i = 0; i < 65535; i++)
        msgcancel(mids[i]);
    long mid = irecv(1, &word, sizeof word);
    csend(1, &mid, sizeof mid, me, 0);
    msgwait(mid);
    CHECK(word == mid);
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"ids", ids, true},       {"long-ones", long_ones, true}, {"merged", merged, true},
        {"cancelled", cancelled, true}, {"to-all", to_all, true}, {"probes", probes, true},
        {"by-node", by_node, true}, {"forced", forced, true},     {"masks", masks, true},
        {"awaited", awaited, true}, {"full", full, true},         {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
