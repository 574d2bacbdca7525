/* Each task sends its two neighbours in a ring messages of 8 B, 4 KiB and 64 KiB and receives theirs, ten times; then all tell their proportional and their resident memory
 * (Pss and Rss of /proc/self/smaps_rollup), while all are there:
 *     cc -O2 neighbours.c -o neighbours $(pkg-config --cflags --libs regatta) && regatta run -n 1000 ./neighbours */
#include <regatta.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int code)
{
    if (code < 0) {
        fprintf(stderr, "%s\n", rg_last_error());
        exit(1);
    }
}

/* KiB. */
static void memory(double kib[2])
{
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    long n;
    kib[0] = kib[1] = 0;
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "Pss: %ld", &n) == 1)
            kib[0] = (double)n;
        if (sscanf(line, "Rss: %ld", &n) == 1)
            kib[1] = (double)n;
    }
    if (file)
        fclose(file);
}

int main(void)
{
    static char out[65536], in[2][65536];
    const size_t lengths[] = {8, 4096, 65536};
    check(rg_init());
    int me = rg_rank(RG_WORLD), size = rg_size(RG_WORLD);
    int sides[2] = {(me + 1) % size, (me + size - 1) % size};
    for (int turn = 0; turn < 10; turn++)
        for (int i = 0; i < 3; i++) {
            rg_request requests[4];
            for (int side = 0; side < 2; side++)
                check(rg_irecv(in[side], lengths[i], sides[side], i, RG_WORLD, &requests[side]));
            for (int side = 0; side < 2; side++)
                check(rg_isend(out, lengths[i], sides[side], i, RG_WORLD, &requests[2 + side]));
            check(rg_waitall(4, requests, NULL));
        }
    check(rg_barrier(RG_WORLD));
    double kib[2], sum[2], most[2];
    memory(kib);
    check(rg_allreduce(kib, sum, 2, RG_DOUBLE, RG_SUM, RG_WORLD));
    check(rg_allreduce(kib, most, 2, RG_DOUBLE, RG_MAX, RG_WORLD));
    if (me == 0)
        printf("%d tasks: %.0f KiB each in proportion (at most %.0f), %.0f resident\n", size, sum[0] / size, most[0], sum[1] / size);
    check(rg_finalize());
}
