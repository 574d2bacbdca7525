/* exchange.c: the exchange of the integer sort alone. Each task has KEYS keys, of which each task gets an equal part, and writes all of
 * them before each exchange and reads all that it got after it, as the sort does.
 *
 *   exchange KEYS [PARTS]     PARTS: "others" leaves out a task's own part, "own" all but that */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXCHANGES = 3000, FIRST = 12 };

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int keys = argc > 1 ? atoi(argv[1]) : 524288;
    const char *parts = argc > 2 ? argv[2] : "";
    int *out = aligned_alloc(4096, sizeof(int) * keys), *in = aligned_alloc(4096, sizeof(int) * keys);
    int counts[size], starts[size];
    memset(in, 1, sizeof(int) * keys);
    for (int task = 0; task < size; task++) {
        int left_out = strcmp(parts, "others") == 0 ? task == rank : strcmp(parts, "own") == 0 && task != rank;
        counts[task] = left_out ? 0 : keys / size;
        starts[task] = task * (keys / size);
    }
    static double times[EXCHANGES];
    long sum = 0;
    for (int exchange = 0; exchange < EXCHANGES; exchange++) {
        for (int key = 0; key < keys; key++)
            out[key] = key + exchange;
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        MPI_Alltoallv(out, counts, starts, MPI_INT, in, counts, starts, MPI_INT, MPI_COMM_WORLD);
        times[exchange] = (MPI_Wtime() - begin) * 1e6;
        for (int key = 0; key < keys; key++)
            sum += in[key];
    }
    if (rank == 0) {
        printf("first:");
        for (int exchange = 0; exchange < FIRST; exchange++)
            printf(" %.0f", times[exchange]);
        qsort(times, EXCHANGES, sizeof *times, ascending);
        printf("; median %.1f us (sum %ld)\n", times[EXCHANGES / 2], sum);
    }
    MPI_Finalize();
    return 0;
}
