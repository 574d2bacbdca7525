/*
 * Two tasks answer each other with messages of several lengths in turn; each line has the time of one message in us, of each
 * length, and first that of 8 bytes in ns, which tells how far apart the processors are just then.
 *
 *     cc -O2 answers.c -o answers $(pkg-config --cflags --libs regatta)
 *     regatta run -n 2 --bind core ./answers LINES [BYTES]        of this length alone
 */
#include <regatta.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int me;
static char *memory;

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Microseconds a message. */
static double answer(size_t bytes, int messages)
{
    double began = seconds();
    for (int i = 0; i < messages; i++) {
        if (i % 2 == me)
            rg_send(memory, bytes, 1 - me, 0, RG_WORLD);
        else
            rg_recv(memory, bytes, 1 - me, 0, RG_WORLD, NULL);
    }
    return (seconds() - began) / messages * 1e6;
}

int main(int argc, char **argv)
{
    static const struct {
        size_t bytes;
        int messages;
    } lengths[] = {{1 << 10, 4000}, {4 << 10, 2000}, {64 << 10, 400}, {256 << 10, 100}, {4 << 20, 8}, {16 << 20, 4}};
    int lines = argc > 1 ? atoi(argv[1]) : 20;
    size_t alone = argc > 2 ? (size_t)atol(argv[2]) : 0;
    rg_init();
    me = rg_rank(RG_WORLD);
    memory = calloc(1, 16 << 20);
    for (int line = 0; line < lines; line++) {
        double small = answer(8, 6000) * 1e3, took[6];
        for (int i = 0; i < 6; i++)
            took[i] = alone == 0 || alone == lengths[i].bytes ? answer(lengths[i].bytes, lengths[i].messages) : 0;
        if (me == 0)
            printf("%5.0f: %.2f %.2f %.1f %.1f %.0f %.0f\n", small, took[0], took[1], took[2], took[3], took[4], took[5]);
    }
    rg_finalize();
    return 0;
}
