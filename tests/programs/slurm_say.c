/*
 * Prints the result of joining: "joined RANK SIZE" or "refused CODE TEXT". Ranks named as arguments never try to join,
 * and wait to be killed. Each rank prints "calls RANK PID" first.
 */
#define _GNU_SOURCE
#include <regatta.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    const char *rank = getenv("SLURM_PROCID");
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < count; i++)
        while (strcmp(arguments[i], rank) == 0)
            pause();
    printf("calls %s %d\n", rank, (int)getpid());
    int code = rg_init();
    if (code != RG_OK) {
        printf("refused %d %s\n", code, rg_last_error());
        return 1;
    }
    printf("joined %d %d\n", rg_rank(RG_WORLD), rg_size(RG_WORLD));
    return rg_finalize() == RG_OK ? 0 : 1;
}
