/*
 * How a spawned task starts: its name, environment and folder; what group calls return for numbers that do not exist;
 * and a task's output goes to the log.
 */
#define _DEFAULT_SOURCE
#include <pvm3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void born(char **argv)
{
    const char *names[] = {"PVM_ARCH", "PVMCTX", "PVM_EXPORT", "EXPORTED"};
    char text[4096], folder[2048];
    const char *process = getenv("PVMEPID");
    int length = snprintf(text, sizeof text, "name %s\n", argv[0]);
    for (int i = 0; i < 4; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, "%s=%s\n", names[i], getenv(names[i]) ? getenv(names[i]) : "(none)");
    if (getcwd(folder, sizeof folder) != NULL)
        length += snprintf(text + length, sizeof text - (size_t)length, "folder %s\n", folder);
    snprintf(text + length, sizeof text - (size_t)length, "process %d\n", process != NULL && atoi(process) == getpid());
    pvm_initsend(PvmDataDefault);
    pvm_pkstr(text);
    pvm_send(pvm_parent(), 1);
    printf("said by t%x\n", pvm_mytid());
    fflush(stdout);
    fprintf(stderr, "and to its standard error by t%x\n", pvm_mytid());
    pvm_exit();
    exit(EXIT_SUCCESS);
}

/* Writes more than fits into the log. */
static void writes(void)
{
    pvm_mytid();
    for (int i = 0; i < 20000; i++)
        printf("line %d of many that nobody will ever read\n", i);
    fflush(stdout);
    pvm_exit();
    exit(EXIT_SUCCESS);
}

static void groups(int other)
{
    int numbers[] = {-1, 0, 1, -5, other, 0x40000001, pvm_tidtohost(other), -2};
    printf("nobody's group: %d\n", pvm_getinst("born", -1));
    printf("joined: %d\n", pvm_joingroup("born"));
    for (int i = 0; i < 8; i++)
        printf("instance of number %d: %d\n", i, pvm_getinst("born", numbers[i]));
    for (int i = -2; i < 3; i++)
        printf("task of instance %d: %d\n", i, pvm_gettid("born", i) == pvm_mytid() ? 1 : pvm_gettid("born", i));
    printf("size %d, of none %d, of NULL %d\n", pvm_gsize("born"), pvm_gsize(""), pvm_gsize(NULL));
    printf("left: %d, again %d\n", pvm_lvgroup("born"), 0);
    printf("left again: %d\n", pvm_lvgroup("born"));
}

int main(int argc, char **argv)
{
    char *arguments[] = {"born", NULL}, text[4096];
    int tid = 0;
    if (argc > 1 && strcmp(argv[1], "born") == 0)
        born(argv);
    if (argc > 1 && strcmp(argv[1], "writes") == 0)
        writes();
    if (argc > 1)
        arguments[0] = "writes";
    setenv("EXPORTED", "yes", 1);
    setenv("PVM_EXPORT", "EXPORTED", 1);
    if (pvm_spawn("pvm_born", arguments, PvmTaskDefault, NULL, 1, &tid) != 1)
        return EXIT_FAILURE;
    pvm_notify(PvmTaskExit, 2, 1, &tid);
    if (argc == 1) {
        pvm_recv(tid, 1);
        pvm_upkstr(text);
        printf("%s", text);
    }
    pvm_recv(-1, 2);
    if (argc == 1)
        groups(tid);
    pvm_exit();
    return EXIT_SUCCESS;
}
