/* hello: every task sends a greeting to task 0, which prints them in rank order. */
#include <regatta.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Regatta's calls return 0 or a negative error code. rg_last_error() explains the error. */
static void check(int code)
{
    if (code < 0) {
        fprintf(stderr, "hello: %s\n", rg_last_error());
        exit(1);
    }
}

int main(void)
{
    enum { GREETING = 1 };

    check(rg_init());
    int rank = rg_rank(RG_WORLD), size = rg_size(RG_WORLD);

    char mine[64];
    snprintf(mine, sizeof mine, "hello from task %d of %d", rank, size);
    /* Small messages do not wait for their receiver, so task 0 may send to itself. */
    check(rg_send(mine, strlen(mine), 0, GREETING, RG_WORLD));

    int wrong = 0;
    for (int from = 0; rank == 0 && from < size; from++) {
        char text[64], expected[64];
        rg_status status;
        check(rg_recv(text, sizeof text - 1, from, GREETING, RG_WORLD, &status));
        text[status.length] = 0;
        puts(text);
        snprintf(expected, sizeof expected, "hello from task %d of %d", from, size);
        wrong |= strcmp(text, expected) != 0;
    }
    check(rg_finalize());
    return wrong;
}
