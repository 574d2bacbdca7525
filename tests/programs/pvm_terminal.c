/*
 * A machine that is started at a terminal. Its tasks are in the session of the program that started it, but the
 * terminal is not their controlling terminal, and its end does not end them.
 *
 *     pvm_terminal begin    at a terminal: starts a task and prints its report
 *     pvm_terminal end      later, elsewhere: checks that the task still answers
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pvm3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TOLD = 1, ASKED = 2, ANSWERED = 3 };

static int has_terminal(void)
{
    int fd = open("/dev/tty", O_RDWR | O_NOCTTY);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static int begin(void)
{
    int task, session, terminal;
    char *arguments[] = {"task", NULL};
    if (!has_terminal()) {
        puts("this is to be run at a terminal");
        return EXIT_FAILURE;
    }
    if (pvm_spawn("pvm_terminal", arguments, PvmTaskDefault, NULL, 1, &task) != 1)
        return EXIT_FAILURE;
    pvm_recv(task, TOLD);
    pvm_upkint(&session, 1, 1);
    pvm_upkint(&terminal, 1, 1);
    printf("%s session, %s terminal\n", session == getsid(0) ? "the same" : "another", terminal ? "a" : "no");
    pvm_exit();
    return EXIT_SUCCESS;
}

static int task(void)
{
    int session = getsid(0), terminal = has_terminal();
    pvm_initsend(PvmDataDefault);
    pvm_pkint(&session, 1, 1);
    pvm_pkint(&terminal, 1, 1);
    pvm_send(pvm_parent(), TOLD);
    int from, asked = pvm_recv(-1, ASKED);
    pvm_bufinfo(asked, NULL, NULL, &from);
    pvm_initsend(PvmDataDefault);
    pvm_send(from, ANSWERED);
    pvm_exit();
    return EXIT_SUCCESS;
}

static int end(void)
{
    int me = pvm_mytid(), count;
    struct pvmtaskinfo *tasks;
    pvm_tasks(0, &count, &tasks);
    for (int i = 0; i < count; i++) {
        if (tasks[i].ti_tid == me)
            continue;
        pvm_initsend(PvmDataDefault);
        pvm_send(tasks[i].ti_tid, ASKED);
        pvm_recv(tasks[i].ti_tid, ANSWERED);
        puts("it answers");
    }
    pvm_exit();
    return EXIT_SUCCESS;
}

int main(int count, char **arguments)
{
    const char *role = count > 1 ? arguments[1] : "";
    if (!strcmp(role, "begin"))
        return begin();
    return strcmp(role, "end") ? task() : end();
}
