/*
 * Tasks on different hosts make short broadcasts, which are sent to all others as one frame where possible: every task
 * must get every broadcast once, in order and complete, even if such frames are lost.
 */
#include "check.h"
#include <sys/resource.h>

enum { MAX_BYTES = 128 };

/* Returns the length of a broadcast; most fit into such a frame. */
static size_t length_of(int number)
{
    static const size_t lengths[] = { 64, 8, 0, 64, 128, 1, 64, 40 };
    return lengths[number % 8];
}

/* Makes broadcast `number` in a group of the first `members` tasks. */
static void broadcast_in(rg_group group, int members, int number)
{
    char bytes[MAX_BYTES], expected[MAX_BYTES];
    int root = number / 5 % members;
    size_t length = length_of(number);
    paint(expected, length, (uint64_t)number);
    if (me == root)
        memcpy(bytes, expected, length);
    else
        memset(bytes, 0, length);
    OK(rg_broadcast(bytes, length, root, group));
    CHECK(memcmp(bytes, expected, length) == 0);
}

static void broadcast(int number)
{
    broadcast_in(RG_WORLD, size, number);
}

/* often COUNT: this many broadcasts, interleaved with messages and barriers. */
static void often(void)
{
    int count = atoi(args[0]);
    check_patience(100);
    for (int number = 0; number < count; number++) {
        broadcast(number);
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

/* dies: a task broadcasts and is killed. The others must get what it has sent, or the error that it is dead. */
static void dies(void)
{
    char bytes[8];
    for (int number = 0; number < 1000; number++)
        broadcast(number);
    OK(rg_barrier(RG_WORLD));
    if (me == 0) {
        memset(bytes, 7, sizeof bytes);
        OK(rg_broadcast(bytes, sizeof bytes, 0, RG_WORLD));
        raise(SIGKILL);
    }
    int error = rg_broadcast(bytes, sizeof bytes, 0, RG_WORLD);
    CHECK(error == RG_ERR_DEAD || (error == 0 && bytes[7] == 7));
    CHECK(rg_barrier(RG_WORLD) == RG_ERR_DEAD);
    printf("told\n");
}

static long wakes(void)
{
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    return usage.ru_nvcsw;
}

/*
 * bystander: all but the last task broadcast among themselves. The last one, which has a bypass to each of them, must
 * not be woken.
 */
static void bystander(void)
{
    enum { FREQUENT = 3000, RARE = 300, DONE = 9 };
    rg_group others;
    for (int number = 0; number < 1000; number++)
        broadcast(number);
    OK(rg_group_split(RG_WORLD, me == size - 1, me, &others));
    OK(rg_barrier(RG_WORLD));
    if (me == size - 1) {
        long before = wakes();
        OK(rg_recv(NULL, 0, 0, DONE, RG_WORLD, NULL));
        long woken = wakes() - before;
        printf("woken %ld times\n", woken);
        CHECK(woken < RARE);
    } else {
        for (int number = 0; number < FREQUENT; number++)
            broadcast_in(others, size - 1, number);
        OK(rg_barrier(others));
        if (me == 0)
            OK(rg_send(NULL, 0, size - 1, DONE, RG_WORLD));
    }
    OK(rg_group_free(others));
    OK(rg_barrier(RG_WORLD));
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"bystander", bystander, false},
        {"dies", dies, false},
        {"often", often, false},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
