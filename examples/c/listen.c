/* listen: every task starts two programs that do not use Regatta, and receives their output. */
#include <regatta.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 2, WRITTEN = 1 };

/* Regatta's calls return 0 or a negative error code. rg_last_error() explains the error. */
static void check(int code)
{
    if (code < 0) {
        fprintf(stderr, "listen: %s\n", rg_last_error());
        exit(1);
    }
}

int main(void)
{
    check(rg_init());
    char *argv[] = {"one\ntwo", NULL};
    rg_spawn_options options = {
        .output = RG_OUTPUT_LINES, .output_tag = WRITTEN, .output_group = RG_ALL};
    int tids[COUNT], lines = 0, bytes = 0;
    check(rg_spawn("echo", argv, &options, COUNT, tids, NULL));
    /* Each program has two streams, and the end of each stream is a message, too. */
    for (int ends = 0; ends < 2 * COUNT;) {
        rg_output output;
        check(rg_recv(&output, sizeof output, RG_ANY, WRITTEN, RG_ALL, NULL));
        bytes += (int)output.length;
        if (output.length > 0)
            lines++;
        else
            ends++;
    }
    if (rg_rank(RG_WORLD) == 0)
        printf("%d programs wrote %d lines, %d bytes\n", COUNT, lines, bytes);
    check(rg_finalize());
    return 0;
}
