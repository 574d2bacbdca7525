/* Messages of Express between nodes: reads, writes, exchanges, vectors, nonblocking calls, handlers. */
#include "express_check.h"

static void told(void)
{
    /* Without exinit, the first call makes the program a node. */
    CHECK(exparam(&env) == 0);
    CHECK(exinit() == 0);
    CHECK(env.procnum == rg_rank(RG_WORLD) && env.nprocs == rg_size(RG_WORLD));
    CHECK(env.host == HOST && env.taskid == rg_tid());
    CHECK(exparam(NULL) == -1);
}

static void types(void)
{
    begin();
    if (me == 0) {
        for (int type = 0; type < 4; type++)
            CHECK(write_to(1, type, &type, sizeof type) == sizeof type);
        CHECK(write_to(1, INT32_MAX, NULL, 0) == 0);
    } else if (me == 1) {
        int got = -1, src = DONTCARE, type = DONTCARE;

        CHECK(read_from(0, 3, &got, sizeof got) == sizeof got && got == 3);
        CHECK(read_from(0, 1, &got, sizeof got) == sizeof got && got == 1);
        CHECK(exread(&got, sizeof got, &src, &type) == sizeof got && got == 0);
        CHECK(src == 0 && type == 0);
        src = DONTCARE, type = 2;
        CHECK(exread(&got, sizeof got, &src, &type) == sizeof got && got == 2);
        CHECK(src == 0 && type == 2);
        CHECK(exread(NULL, 0, NULL, NULL) == 0);
    }
}

/* All write to all before any of them reads; the messages are buffered. */
static void room(void)
{
    enum { LENGTH = 1 << 20 };
    char *mine = need(LENGTH), *got = need(LENGTH);

    begin();
    paint(mine, LENGTH, (uint64_t)me);
    for (int node = 0; node < size; node++)
        CHECK(write_to(node, 5, mine, LENGTH) == LENGTH);
    for (int i = 0; i < size; i++) {
        int src = DONTCARE, type = 5;

        CHECK(exread(got, LENGTH, &src, &type) == LENGTH);
        CHECK(unpainted(got, LENGTH, (uint64_t)src) == LENGTH);
    }
}

static void nobody(void)
{
    int none = NONODE, type = 9, any = DONTCARE;
    char byte = 'x';

    begin();
    CHECK(exwrite(&byte, 1, &none, &type) == 0);
    CHECK(exread(&byte, 1, &none, &any) == 0);
    CHECK(none == NONODE && any == DONTCARE && byte == 'x');
    CHECK(extest(&none, &any) == -1);
    CHECK(exchange(&byte, 1, &none, &any, &byte, 1, &none, &type) == 0);
    CHECK(exvwrite(&byte, 1, 2, 1, &none, &type) == 0 && exvread(&byte, 1, 2, 1, &none, &any) == 0);
}

/* Sends to the right on a ring, then on an open line. */
static void exchanges(void)
{
    begin();
    int right = (me + 1) % size, left = (me + size - 1) % size, type = 4, got = -1, any = DONTCARE;

    CHECK(exchange(&got, sizeof got, &left, &any, &me, sizeof me, &right, &type) == sizeof got);
    CHECK(got == left && any == type);
    if (me == size - 1)
        right = NONODE;
    if (me == 0)
        left = NONODE;
    got = -1;
    int bytes = exchange(&got, sizeof got, &left, &type, &me, sizeof me, &right, &type);
    CHECK(bytes == (me == 0 ? 0 : (int)sizeof got) && got == me - 1);
}

static void looks(void)
{
    begin();
    if (me == 1) {
        int src = DONTCARE, type = DONTCARE, got;

        CHECK(read_from(0, 1, &got, sizeof got) == sizeof got);
        /* The message that was written before has also arrived. */
        CHECK(extest(&src, &type) == 3 && src == 0 && type == 2);
        src = DONTCARE, type = DONTCARE;
        CHECK(exprobe(&src, &type) == 3 && src == 0 && type == 2);
        type = 3;
        CHECK(extest(&src, &type) == -1 && type == 3);
        char text[3];
        CHECK(read_from(0, 2, text, sizeof text) == 3 && memcmp(text, "abc", 3) == 0);
        src = DONTCARE, type = DONTCARE;
        CHECK(extest(&src, &type) == -1 && src == DONTCARE && type == DONTCARE);
    } else if (me == 0) {
        CHECK(write_to(1, 2, "abc", 3) == 3);
        CHECK(write_to(1, 1, &me, sizeof me) == sizeof me);
    }
}

/* An invalid call returns -1 with an error text, and changes nothing. */
static void nonsense(void)
{
    char byte = 0, two[2] = "..";
    int status = 7;

    begin();
    CHECK(write_to(size, 0, &byte, 1) == -1);
    CHECK(write_to(HOST, 0, &byte, 1) == -1);
    CHECK(write_to(0, DONTCARE, &byte, 1) == -1);
    CHECK(write_to(0, 0, &byte, -1) == -1);
    CHECK(read_from(-9, 0, &byte, 1) == -1);
    CHECK(read_from(0, -7, &byte, 1) == -1);
    CHECK(exvwrite(&byte, -1, 1, 1, &me, &me) == -1);
    CHECK(exsend(&byte, 1, &size, &me, &status) == -1 && status == 7);
    CHECK(exsend(&byte, 1, &me, &me, NULL) == -1);
    /* A message that is too long is truncated and consumed. */
    int src = DONTCARE, type = DONTCARE;
    CHECK(write_to(me, 6, "abc", 3) == 3);
    CHECK(exread(two, 2, &src, &type) == -1 && src == me && type == 6);
    CHECK(memcmp(two, "ab", 2) == 0);
    CHECK(extest(NULL, NULL) == -1);
}

/* Arguments whose values do not change are not written to, because Fortran may pass constants. */
static void constants(void)
{
    static const int type = 8;
    static const int zero = 0;
    int got = 0;

    begin();
    if (me == 0)
        CHECK(write_to(0, 8, &size, sizeof size) == sizeof size);
    if (me == 0)
        CHECK(exread(&got, sizeof got, (int *)&zero, (int *)&type) == sizeof got && got == size);
}

/* Messages that the program sends with Regatta's own interface are separate. */
static void apart(void)
{
    int got = 0, src = DONTCARE, type = DONTCARE;

    begin();
    OK(rg_send("r", 1, me, 3, RG_WORLD));
    CHECK(extest(&src, &type) == -1);
    CHECK(write_to(me, 3, &size, sizeof size) == sizeof size);
    CHECK(exread(&got, sizeof got, &src, &type) == sizeof got && got == size);
    char byte = 0;
    OK(rg_recv(&byte, 1, RG_ANY, RG_ANY, RG_WORLD, NULL));
    CHECK(byte == 'r');
}

/* Items of every size with every stride of sender and receiver, few and many. */
static void vectors(void)
{
    enum { MAX_ITEMS = 8192 };
    static const int layouts[][3] = {/* size, strides of sender and receiver */
                                     {4, 8, 8}, {4, 4, 12}, {4, 12, 4}, {1, 3, 2}, {7, 7, 7}, {24, 40, 31}, {8, -8, 16}};
    char *from = need(MAX_ITEMS * 64), *to = need(MAX_ITEMS * 64);

    begin();
    paint(from, MAX_ITEMS * 64, 1);
    for (size_t which = 0; which < sizeof layouts / sizeof *layouts; which++) {
        for (int items = 0; items <= MAX_ITEMS; items = items * 8 + 1) {
            int bytes = layouts[which][0], apart = layouts[which][1], then = layouts[which][2];
            int peer = (me + 1) % size, before = (me + size - 1) % size, type = items;
            char *first = apart < 0 ? from + MAX_ITEMS * 64 - bytes : from;

            memset(to, 0, MAX_ITEMS * 64);
            if (which % 2 == 0) {
                CHECK(exvwrite(first, bytes, apart, items, &peer, &type) == bytes * items);
                CHECK(exvread(to, bytes, then, items, &before, &type) == bytes * items);
            } else {
                CHECK(exvchange(to, bytes, then, items, &before, &type, first, bytes, apart, items, &peer, &type) ==
                      bytes * items);
            }
            for (int i = 0; i < items; i++)
                CHECK(memcmp(to + (ptrdiff_t)i * then, first + (ptrdiff_t)i * apart, (size_t)bytes) == 0);
            if (items > 0 && then > bytes)
                CHECK(to[bytes] == 0);
        }
    }
}

/* A vector may be read as a block, in parts, or truncated. */
static void shapes(void)
{
    int numbers[6] = {1, 2, 3, 4, 5, 6}, got[6] = {0}, type = 1;

    begin();
    CHECK(exvwrite(numbers, 4, 8, 3, &me, &type) == 12);
    CHECK(exread(got, sizeof got, &me, &type) == 12 && got[0] == 1 && got[1] == 3 && got[2] == 5);
    CHECK(write_to(me, 1, numbers, 12) == 12);
    memset(got, 0, sizeof got);
    CHECK(exvread(got, 4, 8, 2, &me, &type) == -1);
    CHECK(got[0] == 1 && got[1] == 0 && got[2] == 2 && got[3] == 0 && got[4] == 0);
    /* Fewer items than there is room for. */
    memset(got, 0, sizeof got);
    CHECK(write_to(me, 1, numbers, 6) == 6);
    CHECK(exvread(got, 4, 8, 3, &me, &type) == 6);
    CHECK(got[0] == 1 && got[2] == 2 && got[4] == 0);
}

static void begun(void)
{
    enum { LENGTH = 3 << 20 };
    char *mine = need(LENGTH), *got = need(LENGTH);
    int sent = 0, received = 0, none = NONODE, type = 2, src = DONTCARE, any = DONTCARE;

    begin();
    int right = (me + 1) % size, left = (me + size - 1) % size;
    CHECK(exreceive(got, LENGTH, &src, &any, &received) == 0 && received == EXPENDING);
    exsync();
    CHECK(received == EXPENDING && src == DONTCARE);
    paint(mine, LENGTH, (uint64_t)me);
    CHECK(exsend(mine, LENGTH, &right, &type, &sent) == 0);
    CHECK(exwait(&received) == LENGTH && received == LENGTH && src == left && any == type);
    CHECK(unpainted(got, LENGTH, (uint64_t)left) == LENGTH);
    CHECK(exwait(&sent) == LENGTH && exwait(&sent) == LENGTH);
    CHECK(exsend(mine, 5, &none, &type, &sent) == 0 && sent == 0);
    CHECK(exreceive(mine, 5, &none, &type, &received) == 0 && received == 0);

    /* A loop of nonblocking calls also sees the end; a message that is too long is an error. */
    char two[2];
    CHECK(exreceive(two, 2, &left, &type, &received) == 0);
    CHECK(write_to(right, 2, "abc", 3) == 3);
    while (received == EXPENDING)
        extest(&none, &type);
    CHECK(received == EXFAILED && memcmp(two, "ab", 2) == 0);
}

/* Many requests at once, completed in another order, with blocking calls between them. */
static void many(void)
{
    enum { COUNT = 100 };
    int got[COUNT], status[COUNT], src[COUNT], type[COUNT], sent[COUNT];

    begin();
    int right = (me + 1) % size, left = (me + size - 1) % size;
    for (int i = 0; i < COUNT; i++) {
        src[i] = left, type[i] = i;
        CHECK(exreceive(&got[i], sizeof *got, &src[i], &type[i], &status[i]) == 0);
    }
    CHECK(write_to(right, COUNT, &me, sizeof me) == sizeof me);
    for (int i = COUNT - 1; i >= 0; i--) {
        int value = i * 3;
        CHECK(exsend(&value, sizeof value, &right, &type[i], &sent[i]) == 0);
        CHECK(exwait(&sent[i]) == sizeof value);
    }
    int last = -1;
    CHECK(read_from(left, COUNT, &last, sizeof last) == sizeof last && last == left);
    for (int i = 0; i < COUNT; i++)
        CHECK(exwait(&status[i]) == sizeof *got && got[i] == i * 3);
}

static int calls, sum;

static int add(int *src, int *type, int len)
{
    int value = 0;

    CHECK(len == sizeof value && *type == 11);
    CHECK(exread(&value, len, src, type) == len);
    calls++;
    sum += value;
    /* A handler may write. */
    if (*src != me)
        CHECK(exwrite(&value, len, src, &(int){12}) == len);
    return 0;
}

static int forget(int *src, int *type, int len)
{
    (void)src, (void)type, (void)len;
    calls++;
    return 0;
}

static void handlers(void)
{
    int any = DONTCARE, type = 11, dropped = 13, got = 0;

    begin();
    if (me == 0) {
        CHECK(exhandle(add, &any, &type) == 0 && exhandle(forget, &any, &dropped) == 0);
        /* Reads of any type skip messages that a handler takes. */
        for (int node = 1; node < size; node++) {
            int src = DONTCARE, kind = DONTCARE;
            CHECK(exread(&got, sizeof got, &src, &kind) == sizeof got && kind == 14 && got == src);
        }
        CHECK(calls == 2 * (size - 1) && sum == size * (size - 1) / 2);
        /* extest reports no message that a handler takes, so a read of a message that it reports does not wait. */
        for (int node = 1; node < size; node++)
            CHECK(write_to(node, 16, &me, sizeof me) == sizeof me);
        for (int left = 100 * (size - 1); left > 0;) {
            int src = DONTCARE, kind = DONTCARE;
            if (extest(&src, &kind) == sizeof got) {
                CHECK(kind == 15);
                CHECK(exread(&got, sizeof got, &src, &kind) == sizeof got);
                left--;
            }
        }
        /* Without the handlers, their messages are ordinary ones. */
        CHECK(exhandle(NULL, &any, &type) == 0);
        CHECK(write_to(0, 11, &size, sizeof size) == sizeof size);
        CHECK(extest(&any, &type) == sizeof size && any == 0);
        CHECK(read_from(0, 11, &got, sizeof got) == sizeof got && got == size);
    } else {
        CHECK(write_to(0, 13, "forgotten", 9) == 9);
        CHECK(write_to(0, 11, &me, sizeof me) == sizeof me);
        CHECK(read_from(0, 12, &got, sizeof got) == sizeof got && got == me);
        CHECK(write_to(0, 14, &me, sizeof me) == sizeof me);
        CHECK(read_from(0, 16, &got, sizeof got) == sizeof got);
        for (int i = 0; i < 100; i++) {
            CHECK(write_to(0, 13, &me, sizeof me) == sizeof me);
            CHECK(write_to(0, 15, &me, sizeof me) == sizeof me);
        }
    }
}

static int begin_to_read(int *src, int *type, int len)
{
    int value = 0, status;

    CHECK(exreceive(&value, len, src, type, &status) == 0 && exwait(&status) == len);
    calls++;
    sum += value;
    return 0;
}

static int read_another(int *src, int *type, int len)
{
    int value = 0;

    (void)type;
    CHECK(read_from(*src, 12, &value, len) == len && value == 12);
    calls += 100;
    return 0;
}

/* Handlers that read their message with a nonblocking call, and one that reads another message than its own. */
static void other_reads(void)
{
    int any = DONTCARE, got = 0, words[] = {11, 11, 12, 13};

    begin();
    if (me == 0) {
        CHECK(exhandle(begin_to_read, &any, &(int){11}) == 0 && exhandle(read_another, &any, &(int){13}) == 0);
        CHECK(read_from(1, 14, &got, sizeof got) == sizeof got);
        CHECK(write_to(1, 14, &me, sizeof me) == sizeof me);
        CHECK(calls == 102 && sum == 22);
        CHECK(exhandle(NULL, &any, &(int){11}) == 0 && exhandle(NULL, &any, &(int){13}) == 0);
        CHECK(extest(&any, &any) == -1);
    } else {
        for (int i = 0; i < 4; i++)
            CHECK(write_to(0, words[i], &words[i], sizeof *words) == sizeof *words);
        CHECK(write_to(0, 14, &me, sizeof me) == sizeof me);
        CHECK(read_from(0, 14, &got, sizeof got) == sizeof got);
    }
}

/* Node 1 has left. A handler for its messages must not block other calls. */
static void left(void)
{
    int got = 0, one = 1, type = 11;

    begin();
    CHECK(exsync() == 0);
    if (me == 1) {
        CHECK(write_to(2, 14, &me, sizeof me) == sizeof me);
        return;
    }
    if (me == 0) {
        CHECK(exhandle(forget, &one, &type) == 0);
        CHECK(read_from(1, 3, &got, sizeof got) == -1);
        CHECK(read_from(2, 14, &got, sizeof got) == sizeof got && got == 2);
        CHECK(extest(&(int){DONTCARE}, &(int){DONTCARE}) == -1);
        CHECK(write_to(2, 15, &me, sizeof me) == sizeof me);
    } else {
        CHECK(read_from(1, 14, &got, sizeof got) == sizeof got && got == 1);
        CHECK(write_to(0, 14, &me, sizeof me) == sizeof me);
        CHECK(read_from(0, 15, &got, sizeof got) == sizeof got && got == 0);
    }
}

/* Node 1 is killed. Calls that depend on it fail with an error that names it, and the others work. */
static void death(void)
{
    int got = 0, src = DONTCARE, type = 3;

    begin();
    CHECK(exsync() == 0);
    if (me == 1)
        raise(SIGKILL);
    /* A node with handlers waits in a different way. */
    if (me == 0)
        CHECK(exhandle(forget, &src, &(int){13}) == 0);
    CHECK(read_from(1, 3, &got, sizeof got) == -1);
    CHECK(exsync() == -1);
    int other = me == 0 ? 2 : 0;
    CHECK(write_to(other, 3, &me, sizeof me) == sizeof me);
    CHECK(exread(&got, sizeof got, &src, &type) == sizeof got && got == other && src == other);
    int living[] = {0, 2};
    CHECK(exbroadcast(&got, 2, sizeof got, 2, living, &type) == sizeof got && got == (me == 2 ? other : 0));
}

static const struct scenario scenarios[] = {
    {"told", told, true},           {"types", types, true},         {"room", room, true},     {"nobody", nobody, true},
    {"exchanges", exchanges, true}, {"looks", looks, true},         {"nonsense", nonsense, true},
    {"constants", constants, true}, {"apart", apart, true},         {"vectors", vectors, true},
    {"shapes", shapes, true},       {"begun", begun, true},         {"many", many, true},
    {"handlers", handlers, true},   {"death", death, true},         {"other-reads", other_reads, true},
    {"left", left, true},           {NULL, NULL, false}};

int main(int argc, char **argv)
{
    return check_main(argc, argv, scenarios);
}
