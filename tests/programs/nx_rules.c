/*
 * The rules of NX's hot paths, enforced by counting.
 *
 *     PROGRAM SCENARIO alloc|calls
 *
 * As in rules.c, a path runs in batches until one batch costs no more than the rule allows on every node.
 */
#include "count.h"
#include "nx_check.h"

enum { ROUNDS = 100, BATCHES = 10, MAX_CALLS = 1, MAX_SECONDS = 15 };

static char bytes[8192], room[8192];
static long length = 8;

static void ping(void)
{
    for (int turn = 0; turn < 2; turn++)
        if (turn == me)
            csend(7, bytes, length, me ^ 1, 0);
        else
            crecv(7, room, length);
}

static void any(void)
{
    for (int turn = 0; turn < 2; turn++)
        if (turn == me)
            csend(7, bytes, length, me ^ 1, 0);
        else
            crecv(-1, room, length);
}

static void exchange(void)
{
    csendrecv(3, bytes, length, me ^ 1, 0, 3, room, length);
}

static void sum(void)
{
    double x[2] = {me, 1}, work[2];
    gdsum(x, 2, work);
    CHECK(x[1] == size);
}

static void held(void (*round)(void))
{
    begin();
    CHECK(arg_count == 1);
    if (strcmp(args[0], "calls") == 0)
        count_calls();
    struct counts best = {.allocations = -1ul, .calls = -1ul};
    double end = dclock() + MAX_SECONDS;
    for (int batch = -4;; batch++) {
        struct counts before = counts;
        for (int i = 0; i < ROUNDS; i++)
            round();
        unsigned long allocations = counts.allocations - before.allocations, made = counts.calls - before.calls;
        if (batch < 0)
            continue;
        best.allocations = allocations < best.allocations ? allocations : best.allocations;
        best.calls = made < best.calls ? made : best.calls;
        /* All nodes go on, or none. */
        long told[] = {best.allocations > 0 || best.calls > MAX_CALLS, dclock() > end}, work[2];
        long broken = told[0];
        gihigh(told, 2, work);
        if (batch < BATCHES || (told[0] && !told[1]))
            continue;
        if (broken)
            FAILED("%d rounds make %lu allocations and %lu system calls at best", ROUNDS, best.allocations,
                   best.calls);
        return;
    }
}

static void pings(void)
{
    held(ping);
}

static void longer(void)
{
    length = 4096;
    held(ping);
}

static void anys(void)
{
    held(any);
}

static void exchanges(void)
{
    held(exchange);
}

static void sums(void)
{
    held(sum);
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"ping", pings, true},         {"longer", longer, true}, {"any", anys, true},
        {"exchange", exchanges, true}, {"sum", sums, true},      {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
