/*
 * Starts a task in a debugger, and makes small requests to a daemon.
 */
#include <stdio.h>

#include <pvm3.h>
#include <stdlib.h>

static void tickle(int request, int argument)
{
    int numbers[] = {request, argument}, count = -7, answers[10] = {-7};
    int code = pvm_tickle(2, numbers, &count, answers);
    printf("tickle %d: %d, %d answers, %x\n", request, code, count, answers[0]);
}

int main(int argc, char **argv)
{
    char *words[] = {"one", "two", NULL};
    int tid = 0, who = 0, number = 0;
    pvm_setopt(PvmAutoErr, 0);
    tickle(5, 0);
    tickle(6, 0x1c0);
    tickle(5, 0);
    tickle(6, 0);
    tickle(8, 0);
    tickle(9, 0);
    printf("too few: %d, too many: %d\n", pvm_tickle(0, &number, NULL, NULL), pvm_tickle(11, &number, NULL, NULL));
    printf("routes: %d\n", pvm_notify(PvmRouteAdd, 7, -1, NULL));
    if (argc > 1) {
        fflush(stdout);
        pvm_catchout(stdout);
        int spawned = pvm_spawn(argv[1], words, PvmTaskDebug, NULL, 1, &tid);
        if (spawned != 1) {
            printf("not spawned: %d, %d\n", spawned, tid);
            return EXIT_FAILURE;
        }
        pvm_notify(PvmTaskExit, 5, 1, &tid);
        pvm_recv(-1, 5);
        pvm_upkint(&who, 1, 1);
        pvm_exit();
        printf("spawned: %d, ended: %d\n", spawned, who == tid);
        return EXIT_SUCCESS;
    }
    pvm_exit();
    return EXIT_SUCCESS;
}
