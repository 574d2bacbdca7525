/*
 * Tasks that do not end when they are asked to. Arguments: how task 0 and all but the last stay alive, and what the
 * last task does: the same, before or after it has joined (`stays`, `joins`), or it fails, or ends the job. Each prints
 * `up` and its process ID when it is ready.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <regatta.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int asks[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

static void on_all(void (*handler)(int))
{
    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++)
        signal(asks[i], handler);
}

static void say_up(void)
{
    printf("up %d\n", (int)getpid());
    fflush(stdout);
}

static void caught(int number)
{
    (void)number;
}

static _Noreturn void *go_on(void *unused)
{
    (void)unused;
    for (;;)
        pause();
}

/* Reports that it is ready, and stays alive. */
static void go_on_for_ever(const char *how)
{
    pthread_t other;
    if (!strcmp(how, "ignores"))
        on_all(SIG_IGN);
    else if (!strcmp(how, "catches"))
        on_all(caught);
    else if (!strcmp(how, "blocks")) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
    } else if (!strcmp(how, "stops")) {
        /* A child reports that this process is ready, and ends. */
        if (fork() == 0) {
            printf("up %d\n", (int)getppid());
            fflush(stdout);
            _exit(0);
        }
        raise(SIGSTOP);
        on_all(SIG_IGN);
        go_on(NULL);
    } else if (!strcmp(how, "leaves")) {
        /* The first thread exits; the other one ignores signals. */
        on_all(SIG_IGN);
        pthread_create(&other, NULL, go_on, NULL);
        say_up();
        pthread_exit(NULL);
    } else if (!strcmp(how, "vforks")) {
        /* Until its child has ended it is in a system call that only SIGKILL interrupts. */
        on_all(SIG_IGN);
        say_up();
        if (vfork() == 0)
            go_on(NULL);
    }
    say_up();
    go_on(NULL);
}

int main(int count, char **words)
{
    const char *how = words[1], *last = words[2];
    if (count != 3)
        return 2;
    if (!strcmp(last, "stays"))
        go_on_for_ever(how);
    rg_init();
    if (!strcmp(last, "joins") || rg_rank(RG_ALL) < rg_size(RG_ALL) - 1)
        go_on_for_ever(how);
    if (!strcmp(last, "fails"))
        _exit(3);
    if (!strcmp(last, "aborts"))
        rg_abort(7);
    return 0;
}
