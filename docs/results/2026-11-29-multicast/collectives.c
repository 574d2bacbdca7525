/* Time of a barrier, and of a broadcast of 64 bytes from each task in turn, as tasks of Regatta wait for them: collectives ROUNDS. */
#include <regatta.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BYTES = 64 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

int main(int count, char **words)
{
    long rounds = count > 1 ? atol(words[1]) : 1000;
    char bytes[BYTES] = {0};
    if (rg_init() != 0)
        return 1;
    int me = rg_rank(RG_WORLD), tasks = rg_size(RG_WORLD);
    for (int barrier = 0; barrier < 2; barrier++) {
        double begin = 0;
        for (long i = -200; i < rounds; i++) {
            if (i == 0)
                begin = now();
            int failed = barrier ? rg_barrier(RG_WORLD) : rg_broadcast(bytes, BYTES, (int)((i + 200) % tasks), RG_WORLD);
            if (failed)
                return 1;
        }
        if (me == 0)
            printf("%s,regatta,%s,%.2f\n", barrier ? "barrier" : "broadcast", getenv("REGATTA_BYPASS"), (now() - begin) / rounds);
    }
    return rg_finalize() != 0;
}
