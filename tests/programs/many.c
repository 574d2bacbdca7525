/*
 * Very many tasks on few cores: what each of them costs a job.
 *
 *     PROGRAM meet | talk | miss | idle
 */
#include "check.h"

/* All tasks meet in a barrier, and leave. */
static void meet(void)
{
    check_patience(150);
    OK(rg_barrier(RG_WORLD));
}

/* Each task exchanges a message with each other, in turn. */
static void talk(void)
{
    check_patience(150);
    for (int i = 1; i < size; i++) {
        int to = (me + i) % size, from = (me + size - i) % size, word = me * size + to, heard = -1;
        OK(rg_send(&word, sizeof word, to, i, RG_WORLD));
        OK(rg_recv(&heard, sizeof heard, from, i, RG_WORLD, NULL));
        CHECK(heard == from * size + me);
    }
}

/*
 * One task leaves while all others meet in a collective. All of them must get an error that names it, no matter which
 * of them notices first.
 */
static void miss(void)
{
    check_patience(150);
    OK(rg_barrier(RG_WORLD));
    if (me == 40)
        return;
    FAILS(rg_barrier(RG_WORLD), RG_ERR_LEFT, "task 40 ");
}

/* Returns the resident memory of a process in KiB. */
static long resident(long process)
{
    char path[64], line[256];
    long kib = -1;
    snprintf(path, sizeof path, "/proc/%ld/smaps_rollup", process);
    FILE *maps = fopen(path, "r");
    CHECK(maps != NULL);
    while (kib < 0 && fgets(line, sizeof line, maps) != NULL)
        sscanf(line, "Rss: %ld kB", &kib);
    fclose(maps);
    CHECK(kib > 0);
    return kib;
}

/* All tasks but task 0 have joined and met, and wait for a message. Task 0 prints their average memory. */
static void idle(void)
{
    long process = getpid(), sum = 0;
    OK(rg_barrier(RG_WORLD));
    if (me != 0) {
        OK(rg_send(&process, sizeof process, 0, 0, RG_WORLD));
        OK(rg_recv(&process, sizeof process, 0, 0, RG_WORLD, NULL));
        return;
    }
    for (int i = 1; i < size; i++) {
        OK(rg_recv(&process, sizeof process, i, 0, RG_WORLD, NULL));
        sum += resident(process);
    }
    printf("resident: %ld\n", sum / (size - 1));
    for (int i = 1; i < size; i++)
        OK(rg_send(&process, sizeof process, i, 0, RG_WORLD));
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"meet", meet, false},
        {"talk", talk, false},
        {"miss", miss, false},
        {"idle", idle, false},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
