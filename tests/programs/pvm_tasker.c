/*
 * Starts tasks in place of the daemon: one that joins the machine, and one that never becomes a task. Prints the
 * requests it gets, and what other tasks see.
 */
#define _DEFAULT_SOURCE
#include <stdio.h>

#include <pvm3.h>
#include <pvmproto.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT 99
#define STATUS 3

static int child(const char *word)
{
    int parent = pvm_parent(), me = pvm_mytid();
    printf("child %s has a parent: %d\n", word, parent > 0);
    fflush(stdout);
    pvm_initsend(PvmDataDefault);
    pvm_pkint(&me, 1, 1);
    pvm_send(parent, 7);
    pvm_exit();
    return STATUS;
}

/* Prints whether a task is listed by pvm_tasks, and its flags without that of spawned tasks. */
static void see(const char *when, int tid)
{
    struct pvmtaskinfo *all;
    int count = 0, found = 0;
    pvm_tasks(0, &count, &all);
    for (int i = 0; i < count; i++)
        if (all[i].ti_tid == tid) {
            found = 1;
            printf("%s: flags %x, a process: %d\n", when, all[i].ti_flag & ~2, all[i].ti_pid < 1 << 22);
        }
    if (!found)
        printf("%s: not there\n", when);
}

static void tell_end(int to, int tid, int status)
{
    int usage[] = {0, 0, 0, 0};
    pvm_initsend(PvmDataDefault);
    pvm_pkint(&tid, 1, 1);
    pvm_pkint(&status, 1, 1);
    pvm_pkint(usage, 4, 1);
    printf("told: %d\n", pvm_send(to, SM_TASKX));
}

static void start(int expected, int begin)
{
    static char path[1024], arguments[4][1024], environment[64][4096];
    char *argv[5] = {NULL};
    int buffer = pvm_recv(-1, SM_STTASK), from, tid, flags, argc, envc, status = 9 << 8, who;
    struct pvmminfo info;
    pvm_bufinfo(buffer, NULL, NULL, &from);
    pvm_getminfo(buffer, &info);
    pvm_upkint(&tid, 1, 1);
    pvm_upkint(&flags, 1, 1);
    pvm_upkstr(path);
    pvm_upkint(&argc, 1, 1);
    printf("from %x in %x as %x: expected %d, flags %x, argc %d\n", from, info.ctx, info.enc, tid == expected, flags, argc);
    for (int i = 0; i < argc && i < 4; i++) {
        pvm_upkstr(arguments[i]);
        argv[i] = arguments[i];
        printf("argument %s\n", i ? arguments[i] : strrchr(arguments[i], '/'));
    }
    pvm_upkint(&envc, 1, 1);
    for (int i = 0; i < envc && i < 64; i++) {
        pvm_upkstr(environment[i]);
        if (!strncmp(environment[i], "PVMEPID=", 8) || !strncmp(environment[i], "PVMCTX=", 7))
            printf("variable %s\n", environment[i]);
    }
    see("ordered", tid);
    fflush(stdout);
    if (begin) {
        int pid = fork();
        if (pid == 0) {
            for (int i = 0; i < envc && i < 64; i++)
                putenv(environment[i]);
            execv(path, argv);
            _exit(STATUS + 1);
        }
        pvm_recv(tid, 7);
        waitpid(pid, &status, 0);
        printf("ended with %d\n", WEXITSTATUS(status));
    }
    tell_end(from, tid, status);
    pvm_recv(-1, EXIT);
    pvm_upkint(&who, 1, 1);
    printf("noticed the end: %d\n", who == tid);
    see("ended", tid);
}

int main(int argc, char **argv)
{
    int me = pvm_mytid(), tids[2] = {0, 0};
    if (argc > 1)
        return child(argv[1]);
    printf("registered: %d\n", pvm_reg_tasker());
    pvm_setopt(PvmResvTids, 1);
    see("the tasker", me);
    char *words[] = {"one", "two", NULL};
    printf("spawned: %d\n", pvm_spawn("pvm_tasker", words, PvmTaskTrace, NULL, 2, tids));
    pvm_notify(PvmTaskExit, EXIT, 2, tids);
    start(tids[0], 1);
    start(tids[1], 0);
    printf("no such program: %d", pvm_spawn("nonesuch", words, PvmTaskDefault, NULL, 1, tids));
    printf(" %d\n", tids[0]);
    pvm_exit();
    /* Only the daemon starts tasks again. */
    pvm_mytid();
    fflush(stdout);
    pvm_catchout(stdout);
    int spawned = pvm_spawn("pvm_tasker", words, PvmTaskDefault, NULL, 1, tids);
    pvm_recv(tids[0], 7);
    pvm_exit();
    printf("spawned: %d\n", spawned);
    return EXIT_SUCCESS;
}
