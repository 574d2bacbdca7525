/* Collective calls of Express, by all nodes or by those of a list. */
#include "express_check.h"

static int add_ints(int *one, const int *other, int bytes)
{
    CHECK(bytes == sizeof *one);
    *one += *other;
    return 0;
}

/* Selects the record with the larger first number. */
struct found {
    double value;
    int node;
    char rest[12];
};

static int greater(struct found *one, const struct found *other, int bytes)
{
    CHECK(bytes == sizeof *one);
    if (other->value > one->value)
        *one = *other;
    return 0;
}

static void broadcasts(void)
{
    enum { LENGTH = 300000 };
    char *buf = need(LENGTH);
    int type = 1;

    begin();
    for (int origin = 0; origin < size; origin++) {
        for (int len = 0; len <= LENGTH; len = len * 60 + 7) {
            memset(buf, 0, LENGTH);
            if (me == origin)
                paint(buf, (size_t)len, (uint64_t)(origin + len));
            CHECK(exbroadcast(buf, origin, len, ALLNODES, NULLPTR, &type) == len);
            CHECK(unpainted(buf, (size_t)len, (uint64_t)(origin + len)) == (size_t)len);
        }
    }
    CHECK(exsync() == 0);
}

static void combines(void)
{
    begin();
    for (int items = 1; items <= 4096; items *= 8) {
        int *numbers = need((size_t)items * sizeof *numbers);
        for (int i = 0; i < items; i++)
            numbers[i] = me + i;
        CHECK(excombine(numbers, add_ints, sizeof *numbers, items, ALLNODES, NULLPTR, &items) == 0);
        for (int i = 0; i < items; i++)
            CHECK(numbers[i] == size * (size - 1) / 2 + i * size);
        free(numbers);
    }
    /* Each item is the maximum at a different node. */
    struct found *found = need((size_t)size * sizeof *found);
    memset(found, 0, (size_t)size * sizeof *found);
    for (int i = 0; i < size; i++) {
        found[i].value = i == me ? 10 + i : 1.0 / (1 + me);
        found[i].node = me;
        memset(found[i].rest, 'a' + me, sizeof found[i].rest);
    }
    CHECK(excombine(found, greater, sizeof *found, size, ALLNODES, NULLPTR, &size) == 0);
    for (int i = 0; i < size; i++)
        CHECK(found[i].node == i && found[i].value == 10 + i && found[i].rest[11] == 'a' + i);
    free(found);
}

/* Node i has 3 i + 1 bytes; node 2 has none. */
static int part(int node)
{
    return node == 2 ? 0 : 3 * node + 1;
}

static void check_whole(const char *whole, const int *sizes, int count, const int *list)
{
    for (int i = 0; i < count; i++) {
        int node = list ? list[i] : i;
        CHECK(sizes[i] == part(node));
        for (int k = 0; k < sizes[i]; k++)
            CHECK(*whole++ == 'A' + node);
    }
}

static void concatenations(void)
{
    int sizes[64], expected = 0, type = 3;
    char mine[200], whole[4000];

    begin();
    memset(mine, 'A' + me, sizeof mine);
    for (int node = 0; node < size; node++)
        expected += part(node);
    for (int round = 0; round < 3; round++) {
        memset(whole, 0, sizeof whole);
        CHECK(exconcat(mine, part(me), whole, sizeof whole, sizes, ALLNODES, NULLPTR, &type) == expected);
        check_whole(whole, sizes, size, NULL);
        CHECK(whole[expected] == 0);
    }
    CHECK(exconcat(mine, part(me), whole, expected, NULL, ALLNODES, NULLPTR, &type) == expected);
    /* A node without enough room gets a truncated result, and does not block the others. */
    memset(whole, 0, sizeof whole);
    int got = exconcat(mine, part(me), whole, me == 1 ? 2 : expected, sizes, ALLNODES, NULLPTR, &type);
    CHECK(got == (me == 1 ? -1 : expected) && sizes[size - 1] == part(size - 1));
    CHECK(whole[0] == 'A' && whole[1] == 'B' && whole[2] == (me == 1 ? 0 : 'B'));
}

/* Even and odd nodes in separate lists, in two orders; then a node that is not in its list begins. */
static void lists(void)
{
    int list[64], back[64], count = 0, number, type = 5;

    begin();
    for (int node = me % 2; node < size; node += 2)
        list[count++] = node;
    for (int i = 0; i < count; i++)
        back[i] = list[count - 1 - i];
    for (int round = 0; round < 3; round++) {
        number = 1;
        CHECK(excombine(&number, add_ints, sizeof number, 1, count, list, &type) == 0 && number == count);
        number = me;
        CHECK(exbroadcast(&number, list[count - 1], sizeof number, count, round == 1 ? back : list, &type) == sizeof number);
        CHECK(number == list[count - 1]);
        char mine[200], whole[4000];
        int sizes[64], expected = 0;
        memset(mine, 'A' + me, sizeof mine);
        for (int i = 0; i < count; i++)
            expected += part(list[i]);
        CHECK(exconcat(mine, part(me), whole, sizeof whole, sizes, count, back, &type) == expected);
        check_whole(whole, sizes, count, back);
    }
    /* Node 0 broadcasts to the odd ones, whose lists do not contain it. */
    count = 0;
    for (int node = 1; node < size; node += 2)
        list[count++] = node;
    if (me % 2 == 1 || me == 0) {
        number = me == 0 ? 77 : 0;
        CHECK(exbroadcast(&number, 0, sizeof number, count, list, &type) == sizeof number && number == 77);
    }
    /* A list of all nodes, a list of one, and a list with repetitions. */
    for (int node = 0; node < size; node++)
        list[node] = size - 1 - node;
    number = 1;
    CHECK(excombine(&number, add_ints, sizeof number, 1, size, list, &type) == 0 && number == size);
    CHECK(excombine(&number, add_ints, sizeof number, 1, 1, &me, &type) == 0 && number == size);
    int twice[] = {me, me}, sizes[2];
    char both[8] = "";
    CHECK(exconcat("ab", 2, both, sizeof both, sizes, 2, twice, &type) == 2);
    CHECK(strcmp(both, "ab") == 0 && sizes[0] == 2 && sizes[1] == 2);
    CHECK(exsync() == 0);
}

static void nonsense(void)
{
    int number = 0, list[] = {0, 1}, far[] = {0, 64}, other = (me + 1) % 2;

    begin();
    other = (me + 1) % size;
    CHECK(excombine(&number, NULL, sizeof number, 1, ALLNODES, NULLPTR, &number) == -1);
    CHECK(excombine(&number, add_ints, 0, 1, ALLNODES, NULLPTR, &number) == -1);
    CHECK(excombine(&number, add_ints, sizeof number, -1, ALLNODES, NULLPTR, &number) == -1);
    CHECK(excombine(&number, add_ints, sizeof number, 1, 2, NULLPTR, &number) == -1);
    CHECK(excombine(&number, add_ints, sizeof number, 1, 0, list, &number) == -1);
    CHECK(excombine(&number, add_ints, sizeof number, 1, 2, far, &number) == -1);
    CHECK(excombine(&number, add_ints, sizeof number, 1, 1, &other, &number) == -1);
    CHECK(exbroadcast(&number, size, sizeof number, ALLNODES, NULLPTR, &number) == -1);
    CHECK(exbroadcast(&number, HOST, sizeof number, ALLNODES, NULLPTR, &number) == -1);
    CHECK(exbroadcast(&number, 0, -1, ALLNODES, NULLPTR, &number) == -1);
    CHECK(exconcat(&number, -1, &number, 0, NULL, ALLNODES, NULLPTR, &number) == -1);
    CHECK(exsync() == 0);
}

/* No node leaves the barrier before all have entered it. */
static void barriers(void)
{
    begin();
    for (int round = 0; round < 20; round++) {
        int late = round % size, word = round, type = 100 + round;

        if (me == late)
            for (int node = 0; node < size; node++)
                CHECK(write_to(node, type, &word, sizeof word) == sizeof word);
        CHECK(exsync() == 0);
        if (me != late) {
            int src = DONTCARE;
            CHECK(extest(&src, &type) == sizeof word);
        }
        CHECK(read_from(late, type, &word, sizeof word) == sizeof word && word == round);
        CHECK(exsync() == 0);
    }
}

/* A node waits for units that others add. With a count of 1, only one node at a time is inside the guarded part. */
static void semaphores(void)
{
    enum { ADDED = 5, GUARD = 6, WITHIN = 7 };

    begin();
    CHECK(exsemaphore(ADDED, 0) == 0 && exsync() == 0);
    CHECK(exsemaphore(ADDED, me + 1) == 0);
    if (me == 0)
        for (int i = 0; i < size * (size + 1) / 2; i++)
            CHECK(exsemaphore(ADDED, -1) == 0);
    CHECK(exsync() == 0 && exsemaphore(ADDED, 0) == 0);
    if (me == size - 1)
        CHECK(exsemaphore(GUARD, 1) == 0);
    for (int round = 0; round < 10; round++) {
        CHECK(exsemaphore(GUARD, -1) == 0);
        CHECK(exsemaphore(WITHIN, 0) == 0 && exsemaphore(WITHIN, 1) == 0);
        CHECK(exsemaphore(GUARD, 0) == 0 && exsemaphore(WITHIN, -1) == 0);
        CHECK(exsemaphore(GUARD, 1) == 0);
    }
    CHECK(exsync() == 0 && exsemaphore(GUARD, 0) == 1);
    CHECK(exsemaphore(-1, 1) == -1 && exsemaphore(GUARD, -2) == -1);
    CHECK(exsemaphore(GUARD, INT32_MAX) == -1 && exsemaphore(GUARD, 0) == 1);
    /* Units that a node has added remain after it has exited. */
    if (me == 0 && size > 1)
        CHECK(exsemaphore(8, -1) == 0 && exsemaphore(8, -1) == 0);
    else
        CHECK(exsemaphore(8, 2) == 0);
}

static const struct scenario scenarios[] = {
    {"broadcasts", broadcasts, true}, {"combines", combines, true}, {"concatenations", concatenations, true},
    {"lists", lists, true},           {"nonsense", nonsense, true}, {"barriers", barriers, true},
    {"semaphores", semaphores, true},
    {NULL, NULL, false}};

int main(int argc, char **argv)
{
    return check_main(argc, argv, scenarios);
}
