/*
 * Catches the output of its child and grandchild: in a file, then as messages. Prints no task numbers except those at
 * the start of lines.
 */
#include <stdio.h>

#include <pvm3.h>
#include <stdlib.h>
#include <string.h>

#define CODE 55

static void start(char *self, char *how)
{
    char *arguments[] = {how, NULL};
    int tid = 0;
    if (pvm_spawn(self, arguments, PvmTaskDefault, NULL, 1, &tid) != 1)
        printf("not spawned: %d\n", tid);
}

static void messages(int me)
{
    int tid, count = 1, parent, bytes, from, sum = 0;
    char text[4096];
    while (count != 0) {
        pvm_bufinfo(pvm_recv(-1, CODE), &bytes, NULL, &from);
        pvm_upkint(&tid, 1, 1);
        pvm_upkint(&count, 1, 1);
        if (count > 0) {
            pvm_upkbyte(text, count, 1);
            sum += count;
        } else if (count < 0) {
            pvm_upkint(&parent, 1, 1);
            printf("%d by me: %d, from %d\n", count, parent == me, from);
        }
    }
    printf("%d bytes\n", sum);
}

int main(int argc, char **argv)
{
    int me = pvm_mytid();
    if (argc > 1) {
        printf("one\ntwo\nnot ended");
        fflush(stdout);
        if (!strcmp(argv[1], "parent"))
            start(argv[0], "child");
        pvm_exit();
        return EXIT_SUCCESS;
    }
    printf("catch: %d, to me: %d\n", pvm_catchout(stdout), pvm_getopt(PvmOutputTid) == me);
    fflush(stdout);
    start(argv[0], "parent");
    pvm_exit();
    printf("all has been written\n");
    me = pvm_mytid();
    printf("nobody's: %d %d\n", pvm_getopt(PvmOutputTid), pvm_getopt(PvmOutputCode));
    pvm_setopt(PvmOutputTid, me);
    pvm_setopt(PvmOutputCode, CODE);
    start(argv[0], "child");
    messages(me);
    pvm_exit();
    return EXIT_SUCCESS;
}
