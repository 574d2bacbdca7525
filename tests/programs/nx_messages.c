/* Blocking sends and receives of NX, the info calls about received messages, and errors in both modes. */
#include "nx_check.h"

enum { LONG = 3 << 20, LITTLE = 64 };

static void who(void)
{
    begin();
    CHECK(size == 3 && me >= 0 && me < size);
    CHECK(_mynode() == me && _numnodes() == size);
    CHECK(mypid() == 0 && myptype() == 0 && _mypid() == 0 && _myptype() == 0);
    CHECK(myhost() == size && _myhost() == size && HOST == size);
    CHECK(nodedim() == 2 && _nodedim() == 2);
    long rows = 0, columns = 0;
    CHECK(mypart(&rows, &columns) == 0 && rows == 1 && columns == 3);
    CHECK(_mypart(&rows, &columns) == 0);
    GIVES(_mypart(NULL, &columns), EQPARAM);
    setptype(0);
    CHECK(_setptype(0) == 0);
    GIVES(_setptype(4), EQSET);
    GIVES(_setptype(INVALID_PTYPE), EQPID);
    gsync();
}

/* A message travels round the ring, and each node adds its number. */
static void ring(void)
{
    begin();
    long word = 0, next = (me + 1) % size, before = (me + size - 1) % size;
    for (int round = 0; round < 20; round++) {
        if (me == 0)
            csend(round, &word, sizeof word, next, mypid());
        crecv(round, &word, sizeof word);
        INFO(round, (long)sizeof word, before);
        if (me != 0) {
            word += me;
            csend(round, &word, sizeof word, next, 0);
        }
    }
    CHECK(me != 0 || word == 20L * (size * (size - 1) / 2));
    gsync();
}

/* A receive selects by type, whoever the sender is and in any order. */
static void types(void)
{
    begin();
    static const long all[] = {0, 29, 30, 31, 999999999, 1073741823, 1000};
    enum { TYPES = sizeof all / sizeof *all };
    if (me != 0)
        for (int i = 0; i < TYPES; i++) {
            long word = all[i] * 10 + me;
            csend(all[i], &word, sizeof word, 0, 0);
        }
    for (int i = TYPES - 1; me == 0 && i >= 0; i--)
        for (int from = 1; from < size; from++) {
            long word = 0;
            crecv(all[i], &word, sizeof word);
            INFO(all[i], (long)sizeof word, word - all[i] * 10);
        }
    gsync();
}

/* Messages of one type from one node arrive in order; type -1 takes the message that arrived first. */
static void order(void)
{
    begin();
    if (me == 1)
        for (long i = 0; i < 500; i++)
            csend(i % 7, &i, sizeof i, 0, 0);
    for (long i = 0; me == 0 && i < 500; i++) {
        long word = -1;
        crecv(-1, &word, sizeof word);
        CHECK(word == i);
        INFO(i % 7, (long)sizeof word, 1);
    }
    gsync();
}

static void lengths(void)
{
    begin();
    char *bytes = need(LONG);
    static const long each[] = {0, 1, 48, 49, 4096, 8193, 100000, LONG};
    for (unsigned i = 0; i < sizeof each / sizeof *each; i++) {
        if (me == 0) {
            paint(bytes, (size_t)each[i], i);
            csend(9, each[i] ? bytes : NULL, each[i], 1, 0);
        } else if (me == 1) {
            memset(bytes, 0, LONG);
            crecv(9, bytes, LONG);
            INFO(9, each[i], 0);
            CHECK(unpainted(bytes, (size_t)each[i], i) == (size_t)each[i]);
        }
    }
    free(bytes);
    gsync();
}

/* Messages to itself, and to each other before either receives: sends do not wait for receivers. */
static void buffered(void)
{
    begin();
    char *out = need(LONG), *in = need(LONG);
    static const long each[] = {8, 50000, LONG};
    for (unsigned i = 0; i < sizeof each / sizeof *each; i++) {
        paint(out, (size_t)each[i], i + 10u * (unsigned)me);
        csend(3, out, each[i], me, 0);
        csend(4, out, each[i], me ^ 1, 0);
        memset(out, 0, LONG);
        crecv(4, in, LONG);
        INFO(4, each[i], me ^ 1);
        CHECK(unpainted(in, (size_t)each[i], i + 10u * (unsigned)(me ^ 1)) == (size_t)each[i]);
        crecv(3, in, LONG);
        INFO(3, each[i], me);
        CHECK(unpainted(in, (size_t)each[i], i + 10u * (unsigned)me) == (size_t)each[i]);
    }
    free(out);
    free(in);
    gsync();
}

static void exchange(void)
{
    begin();
    char *out = need(LONG), *in = need(LONG);
    static const long each[] = {0, 8, 8193, LONG};
    for (unsigned i = 0; i < sizeof each / sizeof *each; i++) {
        paint(out, (size_t)each[i], i + 10u * (unsigned)me);
        CHECK(csendrecv(20 + me, out, each[i], me ^ 1, 0, 20 + (me ^ 1), in, LONG) == each[i]);
        INFO(20 + (me ^ 1), each[i], me ^ 1);
        CHECK(unpainted(in, (size_t)each[i], i + 10u * (unsigned)(me ^ 1)) == (size_t)each[i]);
        CHECK(_csendrecv(5, out, each[i], me ^ 1, 0, 5, in, LONG) == each[i]);
    }
    free(out);
    free(in);
    gsync();
}

static void broadcast(void)
{
    begin();
    long word = 4711;
    for (int root = 0; root < size; root++) {
        if (me == root)
            csend(root, &word, sizeof word, -1, 0);
        else {
            long got = 0;
            crecv(root, &got, sizeof got);
            CHECK(got == word);
            INFO(root, (long)sizeof got, root);
        }
    }
    gsync();
    /* The sender itself receives nothing. */
    CHECK(iprobe(-1) == 0);
    gsync();
    long list[] = {2, 0};
    if (me == 1)
        gsendx(8, &word, sizeof word, list, 2);
    else {
        crecv(8, &word, sizeof word);
        INFO(8, (long)sizeof word, 1);
    }
    gsync();
    CHECK(iprobe(-1) == 0);
}

static void wrong(void)
{
    begin();
    long word = 1, list[] = {0, 7};
    GIVES(_csend(-1, &word, sizeof word, 0, 0), EQTYPE);
    GIVES(_csend(1L << 31, &word, sizeof word, 0, 0), EQTYPE);
    GIVES(_csend(1, &word, -1, 0, 0), EQLEN);
    GIVES(_csend(1, NULL, 1, 0, 0), EQPBUF);
    GIVES(_csend(1, &word, sizeof word, size + 1, 0), EQNODE);
    GIVES(_csend(1, &word, sizeof word, -2, 0), EQNODE);
    GIVES(_csend(1, &word, sizeof word, myhost(), 0), EQNOACT);
    GIVES(_csend(1, &word, sizeof word, 0, 1), EQNOACT);
    GIVES(_csend(1, &word, sizeof word, 0, -1), EQPID);
    GIVES(_crecv(1L << 32, &word, sizeof word), EQTYPE);
    GIVES(_crecv(1, &word, -8), EQLEN);
    GIVES(_crecv(1, NULL, 8), EQPBUF);
    GIVES(_csendrecv(1, &word, sizeof word, 0, 0, 2, NULL, 8), EQPBUF);
    GIVES(_csendrecv(1, &word, -1, 0, 0, 2, &word, 8), EQLEN);
    GIVES(_crecvx(1, &word, 8, 99, 0, NULL), EQNODE);
    GIVES(_crecvx(1, &word, 8, -1, 3, NULL), EQNOACT);
    GIVES(_gsendx(1, &word, 8, list, 2), EQNODE);
    GIVES(_gsendx(1, &word, 8, list, -2), EQLEN);
    /* These calls are for hosts. */
    long code;
    GIVES(_setpid(3), EQSET);
    GIVES(_load("program", -1, 0), EQPRIV);
    GIVES(_getcube("mine", "2", "", 0), EQPRIV);
    GIVES(_attachcube("mine"), EQCUBENOTEXIST);
    GIVES(_relcube("mine"), EQCUBENOTEXIST);
    GIVES(_waitall(-1, -1), EQPRIV);
    GIVES(_waitone(-1, -1, &code, &code, &code), EQPRIV);
    CHECK(_killproc(-1, 5) == 0 && _killcube(size + 3, 0) == 0);
    /* None of these calls has sent anything. */
    gsync();
    CHECK(iprobe(-1) == 0);
}

/* A message that does not fit is kept, and can be received with a larger buffer. */
static void too_long(void)
{
    begin();
    char text[LITTLE] = "longer than what the first receive has room for";
    long count = (long)strlen(text) + 1;
    if (me == 1)
        csend(6, text, count, 0, 0);
    if (me == 0) {
        char room[LITTLE] = "";
        GIVES(_crecv(6, room, 5), EQMSGLONG);
        GIVES(_crecvx(6, room, 5, 1, 0, NULL), EQMSGLONG);
        crecv(6, room, LITTLE);
        CHECK(strcmp(room, text) == 0);
        INFO(6, count, 1);
    }
    gsync();
}

/* One node ends all nodes. */
static void killed(void)
{
    begin();
    gsync();
    if (me == 1)
        killcube(-1, -1);
    crecv(1, NULL, 0);
}

/* Each of these ends the program with an error text. */
static void ends(void)
{
    begin();
    long word = 1;
    const char *what = arg_count > 0 ? args[0] : "";
    if (strcmp(what, "node") == 0)
        csend(1, &word, sizeof word, 99, 0);
    else if (strcmp(what, "type") == 0)
        csend(-7, &word, sizeof word, 0, 0);
    else if (strcmp(what, "long") == 0) {
        csend(1, &word, sizeof word, me, 0);
        crecv(1, &word, 1);
    } else if (strcmp(what, "id") == 0)
        msgwait(12345);
    else if (strcmp(what, "pid") == 0)
        isend(1, &word, sizeof word, 0, 2);
    FAILED("it went on");
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"who", who, true},           {"ring", ring, true},           {"types", types, true},
        {"order", order, true},       {"lengths", lengths, true},     {"buffered", buffered, true},
        {"exchange", exchange, true}, {"broadcast", broadcast, true}, {"wrong", wrong, true},
        {"too-long", too_long, true}, {"ends", ends, true},           {"killed", killed, true},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
