/*
 * Tasks on different hosts broadcast what is short, which goes to all others as one frame where it can: everybody has every broadcast
 * once, in order and whole, whatever becomes of such frames.
 */
#include "check.h"

enum { LONGEST = 128 };

/* The task that sends, and the length, of a broadcast; most are short enough for such a frame. */
static size_t length_of(int number)
{
    static const size_t lengths[] = { 64, 8, 0, 64, 128, 1, 64, 40 };
    return lengths[number % 8];
}

static void broadcast(int number, char *bytes, char *expected)
{
    int root = number / 5 % size;
    size_t length = length_of(number);
    paint(expected, length, (uint64_t)number);
    if (me == root)
        memcpy(bytes, expected, length);
    else
        memset(bytes, 0, length);
    OK(rg_broadcast(bytes, length, root, RG_WORLD));
    CHECK(memcmp(bytes, expected, length) == 0);
}

/* often COUNT: so many broadcasts, with messages and barriers among them. */
static void often(void)
{
    int count = atoi(args[0]);
    char bytes[LONGEST], expected[LONGEST];
    check_patience(100);
    for (int number = 0; number < count; number++) {
        broadcast(number, bytes, expected);
        int other = (me + 1) % size, before = (me + size - 1) % size, got = -1;
        if (number % 7 == 0) {
            OK(rg_send(&number, sizeof number, other, 1, RG_WORLD));
            OK(rg_recv(&got, sizeof got, before, 1, RG_WORLD, NULL));
            CHECK(got == number);
        }
        if (number % 50 == 0)
            OK(rg_barrier(RG_WORLD));
    }
    OK(rg_barrier(RG_WORLD));
    if (me == 0)
        printf("all %d came\n", count);
}

/* dies: a task broadcasts and is killed: the others have what it has sent, or hear of its death. */
static void dies(void)
{
    char bytes[LONGEST], expected[LONGEST];
    for (int number = 0; number < 1000; number++)
        broadcast(number, bytes, expected);
    OK(rg_barrier(RG_WORLD));
    if (me == 0) {
        memset(bytes, 7, 8);
        OK(rg_broadcast(bytes, 8, 0, RG_WORLD));
        raise(SIGKILL);
    }
    int error = rg_broadcast(bytes, 8, 0, RG_WORLD);
    CHECK(error == RG_ERR_DEAD || (error == 0 && bytes[7] == 7));
    CHECK(rg_barrier(RG_WORLD) == RG_ERR_DEAD);
    printf("told\n");
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"dies", dies, false},
        {"often", often, false},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
