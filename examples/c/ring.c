/* ring: a number is passed around all tasks, and each adds its rank to it. */
#include <regatta.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int code)
{
    if (code < 0) {
        fprintf(stderr, "ring: %s\n", rg_last_error());
        exit(1);
    }
}

int main(void)
{
    enum { TOKEN = 1 };

    check(rg_init());
    int rank = rg_rank(RG_WORLD), size = rg_size(RG_WORLD);
    int left = (rank + size - 1) % size, right = (rank + 1) % size;

    int64_t token = 0;
    /* Task 0 starts the round. All other tasks first wait for the number. */
    if (rank > 0)
        check(rg_recv(&token, sizeof token, left, TOKEN, RG_WORLD, NULL));
    token += rank;
    printf("task %d passes on %lld\n", rank, (long long)token);
    check(rg_send(&token, sizeof token, right, TOKEN, RG_WORLD));

    int wrong = 0;
    if (rank == 0) {
        check(rg_recv(&token, sizeof token, left, TOKEN, RG_WORLD, NULL));
        printf("the ranks add up to %lld\n", (long long)token);
        wrong = token != (int64_t)size * (size - 1) / 2;
    }
    check(rg_finalize());
    return wrong;
}
