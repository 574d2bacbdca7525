/* CrOS III: messages through channels of a hypercube, collective calls of all its nodes, grids, the crystal router. */
#include "check.h"

#include <cros.h>

static struct cubenv env;

static void begin(void)
{
    CHECK(cparam(&env) == 0);
    me = env.procnum;
    size = env.nproc;
    CHECK(size == 1 << env.doc && env.cubemask == size - 1);
}

static int add(int *one, const int *other, int bytes)
{
    CHECK(bytes == sizeof *one);
    *one += *other;
    return 0;
}

static void channels(void)
{
    begin();
    for (int channel = 0; channel < env.doc; channel++) {
        int mask = 1 << channel, got = -1, numbers[6], spread[9] = {0};

        CHECK(cwrite(&me, mask, sizeof me) == sizeof me);
        CHECK(cread(&got, mask, 0, sizeof got) == sizeof got && got == (me ^ mask));
        got = -1;
        CHECK(cshift(&got, mask, sizeof got, &me, mask, sizeof me) == sizeof got && got == (me ^ mask));
        for (int i = 0; i < 6; i++)
            numbers[i] = 10 * me + i;
        CHECK(vwrite(numbers, mask, 4, 8, 3) == 12);
        CHECK(vread(spread, mask, 0, 4, 12, 3) == 12);
        for (int i = 0; i < 3; i++)
            CHECK(spread[3 * i] == 10 * (me ^ mask) + 2 * i && spread[3 * i + 1] == 0);
        CHECK(vshift(spread, mask, 4, 4, 3, numbers, mask, 4, 8, 3) == 12 && spread[2] == 10 * (me ^ mask) + 4);
    }
    /* Writes to all channels at once, and to none. */
    CHECK(cwrite(&me, env.cubemask, sizeof me) == sizeof me);
    for (int channel = env.doc - 1; channel >= 0; channel--) {
        int got = -1;
        CHECK(cread(&got, 1 << channel, 0, sizeof got) == sizeof got && got == (me ^ (1 << channel)));
    }
    int none = 5;
    CHECK(cwrite(&none, 0, sizeof none) == sizeof none && cread(&none, 0, 0, sizeof none) == 0 && none == 5);
}

/* Passes data through all nodes, starting at 0: each reads from one channel and writes to the next one of the ring. */
static void forwards(void)
{
    begin();
    CHECK(gridinit(1, &size) == 0);
    int at, back = gridchan(me, 0, -1), on = gridchan(me, 0, 1), numbers[8] = {0};

    CHECK(gridcoord(me, &at) == 0);
    if (size == 1)
        return;
    if (at == 0) {
        for (int i = 0; i < 8; i++)
            numbers[i] = 100 + i;
        CHECK(vwrite(numbers, on, 4, 8, 3) == 12);
        CHECK(cread(numbers, back, 0, sizeof numbers) == 12 && numbers[2] == 104);
    } else {
        CHECK(vread(numbers, back, on, 4, 8, 4) == 12);
        CHECK(numbers[0] == 100 && numbers[2] == 102 && numbers[4] == 104 && numbers[6] == 0);
    }
}

static void everybody(void)
{
    begin();
    for (int source = 0; source < size; source++) {
        for (int mask = 0; mask <= env.cubemask; mask++) {
            int number = me == source ? 1000 + source : -1;
            if (((me ^ source) & ~mask) != 0)
                continue;
            CHECK(broadcast(&number, source, mask, sizeof number) == sizeof number);
            CHECK(number == 1000 + source);
        }
    }
    int numbers[3] = {me, 1, 2 * me}, all[64], sizes[64];
    CHECK(combine(numbers, add, sizeof *numbers, 3) == 0);
    CHECK(numbers[0] == size * (size - 1) / 2 && numbers[1] == size && numbers[2] == size * (size - 1));
    memset(all, 0, sizeof all);
    for (int i = 0; i < 3; i++)
        numbers[i] = me;
    int mine = (me % 3 + 1) * (int)sizeof(int), at = 0;
    int whole = concat(numbers, mine, all, sizeof all, sizes);
    for (int node = 0; node < size; node++) {
        CHECK(sizes[node] == (node % 3 + 1) * (int)sizeof(int));
        for (int i = 0; i <= node % 3; i++)
            CHECK(all[at++] == node);
    }
    CHECK(whole == at * (int)sizeof(int));
}

static void grids(void)
{
    begin();
    int bits = env.doc, num[2] = {1 << bits / 2, 1 << (bits - bits / 2)}, coord[2], next[2];

    CHECK(gridinit(2, num) == 0 && gridcoord(me, coord) == 0 && gridproc(coord) == me);
    for (int dim = 0; dim < 2; dim++) {
        int up = gridchan(me, dim, 1), down = gridchan(me, dim, -1), got = me;
        memcpy(next, coord, sizeof next);
        next[dim]--;
        CHECK(cshift(&got, down, sizeof got, &me, up, sizeof me) == (num[dim] > 1 ? (int)sizeof got : 0));
        CHECK(got == gridproc(next));
    }
}

/* Every node writes some records of different lengths to every other node. */
static void routes(void)
{
    begin();
    enum { ROOM = 1 << 16 };
    char *buf = need(ROOM);
    int len = 0, came = 0, before = 0, counts[64] = {0};

    for (int node = size - 1; node >= 0; node--) {
        for (int i = 0; i < (me + node) % 4; i++) {
            struct crystal_head head = {node, 5 * i + me};
            memcpy(buf + len, &head, sizeof head);
            memset(buf + len + sizeof head, 'a' + i, (size_t)head.len);
            len += (int)sizeof head + (head.len + 7) / 8 * 8;
        }
    }
    came = crystal_router(buf, len, ROOM);
    CHECK(came >= 0);
    for (int at = 0; at < came;) {
        struct crystal_head head;
        memcpy(&head, buf + at, sizeof head);
        CHECK(head.node >= before && head.node < size);
        before = head.node;
        int i = counts[head.node]++;
        CHECK(head.len == 5 * i + head.node);
        for (int k = 0; k < head.len; k++)
            CHECK(buf[at + (int)sizeof head + k] == 'a' + i);
        at += (int)sizeof head + (head.len + 7) / 8 * 8;
    }
    for (int node = 0; node < size; node++)
        CHECK(counts[node] == (me + node) % 4);
    /* A node with an invalid record fails, and does not block the others. */
    struct crystal_head head = {me == 0 ? size : 0, 0};
    memcpy(buf, &head, sizeof head);
    came = crystal_router(buf, sizeof head, ROOM);
    CHECK(came == (me == 0 ? -1 : 0));
    /* The same holds for a node with an invalid buffer. */
    CHECK(crystal_router(buf, me == 0 ? -1 : 0, ROOM) == (me == 0 ? -1 : 0));
    CHECK(crystal_router(me == 0 ? NULL : buf, 0, ROOM) == (me == 0 ? -1 : 0));
    free(buf);
}

static void nonsense(void)
{
    begin();
    int number = 0, three = 3;
    CHECK(cwrite(&number, size, sizeof number) == -1);
    CHECK(cwrite(&number, env.cpmask, sizeof number) == -1);
    if (size > 2)
        CHECK(cread(&number, env.cubemask, 0, sizeof number) == -1);
    CHECK(cwrite(&number, 0, -1) == -1);
    /* Nothing may have been written to the valid channels. */
    CHECK(cwrite(&number, env.cubemask | env.cpmask, sizeof number) == -1);
    for (int channel = 1; channel < size; channel *= 2) {
        CHECK(cwrite(&channel, channel, sizeof channel) == sizeof channel);
        CHECK(cread(&number, channel, env.cpmask, sizeof number) == -1 && number == 0);
        CHECK(cread(&number, channel, 0, sizeof number) == sizeof number && number == channel);
        number = 0;
    }
    CHECK(broadcast(&number, size, env.cubemask, sizeof number) == -1);
    CHECK(gridcoord(0, &number) == -1);
    CHECK(gridinit(1, &three) == -1 && gridinit(0, &size) == -1 && gridinit(1, NULL) == -1);
    CHECK(combine(&number, NULL, sizeof number, 1) == -1);
    CHECK(cparam(NULL) == -1);
}

/* Three nodes do not form a cube. */
static void no_cube(void)
{
    CHECK(cparam(&env) == -1);
}

static const struct scenario scenarios[] = {
    {"channels", channels, true}, {"forwards", forwards, true}, {"everybody", everybody, true}, {"grids", grids, true},
    {"routes", routes, true},     {"nonsense", nonsense, true}, {"no-cube", no_cube, true},     {NULL, NULL, false}};

int main(int argc, char **argv)
{
    return check_main(argc, argv, scenarios);
}
