/*
 * Calls at the ends of threads: in atexit functions, in destructors, in signal handlers, in cancelled threads; and
 * tasks whose threads exit.
 */
#include "check.h"

#include <pthread.h>
#include <sys/time.h>

static int heard;

static void failing_call(void)
{
    char byte = 0;
    FAILS(rg_send(&byte, 1, 12345, 0, RG_WORLD), RG_ERR_TASK, "12345");
}

static void at_exit(void)
{
    int got = 0, sent = 5;
    rg_request request;
    failing_call();
    OK(rg_isend(&sent, sizeof sent, me, 1, RG_WORLD, &request));
    OK(rg_recv(&got, sizeof got, me, 1, RG_WORLD, NULL));
    OK(rg_wait(&request, NULL));
    CHECK(got == 5);
    OK(rg_finalize());
    FAILS(rg_size(RG_WORLD), RG_ERR_STATE, "rg_init");
    printf("at exit all is well\n");
}

/* A call fails once in main, and again at the end of the process. */
static void ends(void)
{
    OK(rg_init());
    me = rg_rank(RG_WORLD);
    CHECK(atexit(at_exit) == 0);
    failing_call();
    exit(0);
}

static pthread_key_t key;

static void destructor(void *again)
{
    failing_call();
    heard++;
    if ((long)again < 3)
        pthread_setspecific(key, (void *)((long)again + 1));
}

static void *with_destructor(void *unused)
{
    failing_call();
    pthread_setspecific(key, (void *)1);
    return unused;
}

static void key_destructors(void)
{
    pthread_t thread;
    CHECK(pthread_key_create(&key, destructor) == 0);
    CHECK(pthread_create(&thread, NULL, with_destructor, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(heard == 3);
}

/* Receives a late message, and only then checks for cancellation. */
static void *receive_late(void *unused)
{
    int got = 0;
    OK(rg_recv(&got, sizeof got, me, 7, RG_WORLD, NULL));
    heard = got;
    pthread_testcancel();
    return unused;
}

/* Makes calls to the launcher, until it is cancelled between two of them. */
static void *ask_on(void *unused)
{
    rg_task tasks[4];
    int count = 0;
    for (;;) {
        OK(rg_tasks(tasks, 4, &count));
        pthread_testcancel();
    }
    return unused;
}

/* Cancelled before it makes these calls. */
static void *take_memory(void *unused)
{
    void *block;
    rg_group half;
    CHECK(pthread_cancel(pthread_self()) == 0);
    OK(rg_loan(4 << 20, &block));
    OK(rg_loan_free(block));
    OK(rg_group_select(RG_WORLD, 1, (int[]){me}, &half));
    OK(rg_group_free(half));
    pthread_testcancel();
    return unused;
}

static void cancelled(void)
{
    pthread_t taker;
    void *taken = NULL;
    CHECK(pthread_create(&taker, NULL, take_memory, NULL) == 0);
    CHECK(pthread_join(taker, &taken) == 0 && taken == PTHREAD_CANCELED);
    void *result = NULL;
    int number = 9;
    for (int round = 0; round < 20; round++) {
        pthread_t thread;
        heard = 0;
        CHECK(pthread_create(&thread, NULL, receive_late, NULL) == 0);
        doze(round * 0.001);
        CHECK(pthread_cancel(thread) == 0);
        OK(rg_barrier(RG_WORLD));
        OK(rg_send(&number, sizeof number, me, 7, RG_WORLD));
        CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
        CHECK(heard == number || round == 0);

        CHECK(pthread_create(&thread, NULL, ask_on, NULL) == 0);
        doze(round * 0.001);
        CHECK(pthread_cancel(thread) == 0);
        CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
        OK(rg_barrier(RG_WORLD));
    }
}

static volatile sig_atomic_t sent, refused, wrong;

static void send_in_handler(int signal)
{
    (void)signal;
    int number = sent;
    int code = rg_send(&number, sizeof number, me, 9, RG_WORLD);
    if (code == RG_OK)
        sent++;
    else if (code == RG_ERR_STATE && strstr(rg_last_error(), "signal handler") != NULL)
        refused++;
    else
        wrong++;
}

static void *one_call(void *unused)
{
    OK(rg_progress());
    return unused;
}

static void interrupts(void (*handler)(int))
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    CHECK(sigaction(SIGPROF, &action, NULL) == 0);
    struct itimerval often = {{0, 200}, {0, 200}};
    CHECK(setitimer(ITIMER_PROF, &often, NULL) == 0);
}

/*
 * interrupted THREADS: a message that a signal handler sends arrives once, or the handler gets an error that it cannot
 * send there.
 */
static void interrupted(void)
{
    CHECK(arg_count == 1);
    pthread_t thread;
    if (atoi(args[0]) > 1) {
        CHECK(pthread_create(&thread, NULL, one_call, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    interrupts(send_in_handler);
    int got = 0, number, found;
    for (long i = 0; i < 1000000 && refused < 100; i++) {
        long echo = -1;
        rg_request request;
        OK(rg_isend(&i, sizeof i, me, 1, RG_WORLD, &request));
        OK(rg_recv(&echo, sizeof echo, me, 1, RG_WORLD, NULL));
        CHECK(echo == i);
        OK(rg_wait(&request, NULL));
        OK(rg_iprobe(RG_ANY, 9, RG_WORLD, &found, NULL));
        if (found) {
            OK(rg_recv(&number, sizeof number, RG_ANY, 9, RG_WORLD, NULL));
            CHECK(number == got++);
        }
    }
    struct itimerval never = {{0, 0}, {0, 0}};
    CHECK(setitimer(ITIMER_PROF, &never, NULL) == 0);
    for (; got < sent; got++) {
        OK(rg_recv(&number, sizeof number, RG_ANY, 9, RG_WORLD, NULL));
        CHECK(number == got);
    }
    OK(rg_iprobe(RG_ANY, 9, RG_WORLD, &found, NULL));
    CHECK(!found && refused > 0 && wrong == 0);
}

static volatile sig_atomic_t signals, questions;

static void count_signal(int signal)
{
    (void)signal;
    signals++;
}

/* Called while task 0 waits: ends the wait if a signal has arrived since the last wait was ended. */
static void asked(int *ends, void *arg)
{
    CHECK(arg == &questions);
    questions++;
    *ends = signals > 0;
    signals = 0;
}

/* Task 1 sends nothing until task 0 has told it that a signal has ended each of its waits. */
static void asks(void)
{
    char byte = 0;
    rg_request request;
    rg_group group;
    OK(rg_group_dup(RG_WORLD, &group));
    if (me != 0) {
        OK(rg_recv(&byte, 1, 0, 2, RG_WORLD, NULL));
        OK(rg_send(&byte, 1, 0, 3, RG_WORLD));
        FAILS(rg_recv(&byte, 1, 0, 4, group, NULL), RG_ERR_REVOKED, "revoked");
        return;
    }
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = count_signal;
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    struct itimerval often = {{0, 20000}, {0, 20000}};
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    OK(rg_on_wait(asked, (void *)&questions));
    FAILS(rg_recv(&byte, 1, 1, 1, RG_WORLD, NULL), RG_ERR_CANCELLED, "");
    FAILS(rg_recv_within(&byte, 1, 1, 1, RG_WORLD, -1, NULL), RG_ERR_CANCELLED, "");
    FAILS(rg_probe(1, 1, RG_WORLD, NULL), RG_ERR_CANCELLED, "");
    FAILS(rg_ssend(&byte, 1, 1, 1, RG_WORLD), RG_ERR_CANCELLED, "");
    OK(rg_irecv(&byte, 1, 1, 3, RG_WORLD, &request));
    FAILS(rg_wait(&request, NULL), RG_ERR_CANCELLED, "");
    CHECK(request.id != 0 && questions >= 5);
    /* Without the function, signals end no wait. */
    OK(rg_on_wait(NULL, NULL));
    questions = 0;
    OK(rg_send(&byte, 1, 1, 2, RG_WORLD));
    OK(rg_wait(&request, NULL));
    CHECK(questions == 0);
    OK(rg_on_wait(asked, (void *)&questions));
    FAILS(rg_barrier(group), RG_ERR_CANCELLED, "rg_on_wait");
    OK(rg_group_revoke(group));
    memset(&often, 0, sizeof often);
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
}

static void abort_in_handler(int signal)
{
    (void)signal;
    rg_abort(7);
}

/* Allocates memory and makes calls until a signal handler of one task aborts the job. */
static void aborted(void)
{
    if (me == 0)
        interrupts(abort_in_handler);
    for (;;) {
        char byte = 0;
        free(need(100));
        OK(rg_sendrecv(&byte, 1, me, 1, &byte, 1, me, 1, RG_WORLD, NULL));
    }
}

/* Task 0 has communicated with the other task and has its descriptor; then its only thread exits. */
static void leaves(void)
{
    char byte = 0;
    int fd;
    OK(rg_init());
    me = rg_rank(RG_WORLD);
    for (int i = 0; i < 100; i++) {
        OK(rg_sendrecv(&byte, 1, 1 - me, 1, &byte, 1, 1 - me, 1, RG_WORLD, NULL));
    }
    if (me == 0) {
        OK(rg_fd(&fd));
        pthread_exit(NULL);
    }
    FAILS(rg_recv(&byte, 1, 0, 1, RG_WORLD, NULL), RG_ERR_DEAD, "status 0");
    OK(rg_finalize());
    printf("the other one has ended\n");
}

/* A signal that the program has blocked is pending when its last thread exits. */
static void leaves_blocked(void)
{
    sigset_t blocked;
    OK(rg_init());
    OK(rg_finalize());
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    CHECK(pthread_sigmask(SIG_BLOCK, &blocked, NULL) == 0);
    CHECK(kill(getpid(), SIGUSR1) == 0);
    pthread_exit(NULL);
}

static int links;

/* A detached thread that starts the next one, and exits. */
static void *next_link(void *unused)
{
    pthread_t next;
    if (links-- == 0) {
        printf("the last link has come\n");
        return unused;
    }
    CHECK(pthread_create(&next, NULL, next_link, NULL) == 0);
    CHECK(pthread_detach(next) == 0);
    return unused;
}

/*
 * links NUMBER [blocked]: after its first thread has exited, the program goes on in threads that start each other. It
 * may block all signals.
 */
static void leaves_links(void)
{
    sigset_t all;
    CHECK(arg_count == 1 || arg_count == 2);
    OK(rg_init());
    OK(rg_finalize());
    links = atoi(args[0]);
    sigfillset(&all);
    CHECK(arg_count == 1 || pthread_sigmask(SIG_BLOCK, &all, NULL) == 0);
    next_link(NULL);
    pthread_exit(NULL);
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"leaves-blocked", leaves_blocked, true},
        {"links", leaves_links, true},
        {"ends", ends, true},
        {"key-destructors", key_destructors, false},
        {"cancelled", cancelled, false},
        {"interrupted", interrupted, false},
        {"asks", asks, false},
        {"aborted", aborted, false},
        {"leaves", leaves, true},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
