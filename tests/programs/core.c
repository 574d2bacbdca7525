/*
 * Two hosts that are one machine: their tasks get different cores, and so communicate at full speed.
 */
#include "check.h"
#include <sched.h>

enum { TAG = 4 };

/* Tasks on different hosts of one machine must not get the same core. With "bound", each must be bound to one core. */
static void different_cores(void)
{
    cpu_set_t own, other, both;
    CHECK(sched_getaffinity(0, sizeof own, &own) == 0);
    OK(rg_send(&own, sizeof own, 1 - me, TAG, RG_WORLD));
    OK(rg_recv(&other, sizeof other, 1 - me, TAG, RG_WORLD, NULL));
    CPU_AND(&both, &own, &other);
    bool bound = CPU_COUNT(&own) == 1 && CPU_COUNT(&other) == 1;
    CHECK(bound || strcmp(args[0], "bound") != 0);
    CHECK(!bound || CPU_COUNT(&both) == 0);
}

/* Sends messages of 8 bytes back and forth, and prints the time per message, for records of measurements. */
static void to_and_fro(void)
{
    const int most = atoi(args[0]), warm = most / 10;
    uint64_t word = 0;
    double begun = 0;
    for (int i = 0; i < warm + most; i++) {
        if (i == warm)
            begun = rg_time();
        if (me == 0)
            OK(rg_send(&word, sizeof word, 1, TAG, RG_WORLD));
        OK(rg_recv(&word, sizeof word, 1 - me, TAG, RG_WORLD, NULL));
        if (me == 1)
            OK(rg_send(&word, sizeof word, 0, TAG, RG_WORLD));
    }
    if (me == 0)
        printf("one way %.2f us\n", (rg_time() - begun) * 1e6 / (2.0 * most));
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"different-cores", different_cores, false},
        {"to-and-fro", to_and_fro, false},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
