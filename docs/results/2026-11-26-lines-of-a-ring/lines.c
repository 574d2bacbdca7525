/*
 * How fast small messages of 8 B go from each even task to the odd one behind it, by how they are sent. In a checkout with a release build:
 *
 *     cc -O2 -Icrates/interfaces/c/include lines.c -o lines -Ltarget/release -lregatta
 *     regatta run -n 2 ./lines row WINDOW         so many are started, against as many started receives, and waited for at once
 *     regatta run -n 2 ./lines stream             blocking sends and receives, without an answer
 *     regatta run -n 2 ./lines burst COUNT        so many blocking sends to a task that computes for 20 ms: the time of all sends
 */
#include <regatta.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1024, MESSAGES = 200000, TURNS = 8 };

static long words[MOST];
static rg_request requests[MOST];
static int sends, peer;

static void row(int window)
{
    for (int i = 0; i < MESSAGES / window; i++) {
        for (int k = 0; k < window; k++) {
            if (sends)
                rg_isend(&words[k], sizeof words[k], peer, 1, RG_WORLD, &requests[k]);
            else
                rg_irecv(&words[k], sizeof words[k], peer, 1, RG_WORLD, &requests[k]);
        }
        rg_waitall(window, requests, NULL);
        if (sends)
            rg_recv(NULL, 0, peer, 2, RG_WORLD, NULL);
        else
            rg_send(NULL, 0, peer, 2, RG_WORLD);
    }
}

static void stream(int count)
{
    for (int i = 0; i < count; i++) {
        if (sends)
            rg_send(words, sizeof *words, peer, 1, RG_WORLD);
        else
            rg_recv(words, sizeof *words, peer, 1, RG_WORLD, NULL);
    }
}

int main(int argc, char **argv)
{
    if (argc < 2 || rg_init() != RG_OK)
        return 1;
    int rank = rg_rank(RG_WORLD), count = argc > 2 ? atoi(argv[2]) : MESSAGES;
    int rows = strcmp(argv[1], "row") == 0, bursts = strcmp(argv[1], "burst") == 0;
    if (count < 1 || (rows && count > MOST))
        return 1;
    sends = rank % 2 == 0;
    peer = rank ^ 1;
    double best = 1e9;
    for (int turn = 0; turn < TURNS; turn++) {
        rg_barrier(RG_WORLD);
        double start = rg_time();
        while (bursts && !sends && rg_time() - start < 0.02)
            ;
        if (rows)
            row(count);
        else
            stream(count);
        if (!bursts)
            rg_barrier(RG_WORLD);
        double took = rg_time() - start;
        best = took < best ? took : best;
    }
    if (rank == 0 && bursts)
        printf("%.3f ms\n", best * 1e3);
    else if (rank == 0)
        printf("%.1f ns\n", best * 1e9 / (rows ? MESSAGES / count * count : count));
    return rg_finalize() == RG_OK ? 0 : 1;
}
