/*
 * Random programs of several tasks, played one after the other. Prints the result of every step of every task, so that
 * the same binary can be compared on PVM's own library and on Regatta's.
 *
 *   pvm_course FIRST COUNT EPISODES [LEFT_OUT]
 *
 * plays COUNT courses, with seeds from FIRST on. LEFT_OUT lists episodes that are not played, separated by commas. A
 * course needs two to six tasks; there are always six, started once. The first task is the one started by hand: it
 * tells the others when to begin and prints the results of all.
 *
 * pvm_course_plan.c draws the plan, pvm_course_play.c carries it out, pvm_course_data.c makes and checks the contents
 * of messages, and pvm_course_odd.c makes invalid calls.
 */
#define _GNU_SOURCE
#include "pvm_course.h"
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { BEGIN = 1, TIDS = 2, ENDED = 3, CLEAN = 4, VICTIM_TAG = 5000, MAX_SECONDS = 40, WORDS = 1 << 20 };

int tids[MAX_TASKS], me, own_tid, parent_tid;
static char said[WORDS];
static size_t said_length;
static struct plan plan;
static char left_out[MAX_EPISODES];

/* With PVM_COURSE_TRACE, each task also writes its output to a file named by the variable and the task's number. */
static FILE *trace;

void say(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int length = vsnprintf(said + said_length, WORDS - said_length, format, values);
    va_end(values);
    if (length > 0 && said_length + (size_t)length < WORDS) {
        if (trace)
            fputs(said + said_length, trace);
        said_length += (size_t)length;
    }
}

static void fail(const char *what)
{
    fflush(stdout);
    fprintf(stderr, "pvm_course: task %d: %s\n", me, what);
    exit(1);
}

static void open_trace(void)
{
    const char *name = getenv("PVM_COURSE_TRACE");
    char path[4096];
    if (!name)
        return;
    snprintf(path, sizeof path, "%s.%d", name, me);
    trace = fopen(path, "w");
    if (trace)
        setvbuf(trace, NULL, _IONBF, 0);
}

/* Starts a task that will end. */
static int victim(void)
{
    int how = 0;
    pvm_mytid();
    pvm_setcontext(0);
    pvm_precv(-1, VICTIM_TAG, (char *)&how, 1, PVM_INT, NULL, NULL, NULL);
    if (how == 0)
        pvm_exit();
    return 0;
}

static void block_signal(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

/* Sends an order of the first task to all others. */
static void say_to_all(int what)
{
    int before = pvm_setcontext(wire);
    pvm_initsend(PvmDataRaw);
    pvm_mcast(tids + 1, MAX_TASKS - 1, what);
    pvm_freebuf(pvm_setsbuf(0));
    pvm_setcontext(before);
}

static void hear_first(int what)
{
    int before = pvm_setcontext(wire);
    pvm_recv(parent_tid, what);
    pvm_freebuf(pvm_setrbuf(0));
    pvm_setcontext(before);
}

static void tell_first(const char *words, int length)
{
    int before = pvm_setcontext(wire);
    pvm_psend(parent_tid, ENDED, (char *)words, length, PVM_BYTE);
    pvm_setcontext(before);
}

static void play_course(uint64_t seed, int episodes, const char *program)
{
    said_length = 0;
    said[0] = 0;
    draw(&plan, seed, episodes, left_out);
    if (me < plan.tasks)
        play(&plan, program);
}

/* Run by all but the first task: plays each course when the first task says so. */
static void follow(uint64_t first, int count, int episodes, const char *program)
{
    int news[MAX_TASKS + CONTEXTS + 1];
    pvm_recv(parent_tid, TIDS);
    pvm_upkint(news, MAX_TASKS + CONTEXTS + 1, 1);
    memcpy(tids, news, sizeof tids);
    memcpy(contexts, news + MAX_TASKS, sizeof contexts);
    wire = news[MAX_TASKS + CONTEXTS];
    for (me = 0; me < MAX_TASKS && tids[me] != own_tid; me++)
        ;
    open_trace();
    prepare();
    for (int course = 0; course < count; course++) {
        hear_first(BEGIN);
        /* Ends this task if the first task has given up. */
        alarm(MAX_SECONDS + 10);
        play_course(first + (uint64_t)course, episodes, program);
        tell_first(said, (int)said_length + 1);
        hear_first(CLEAN);
        clean();
        tell_first("", 1);
    }
}

static void start_others(int argc, char **argv)
{
    int news[MAX_TASKS + CONTEXTS + 1];
    (void)argc;
    tids[0] = own_tid;
    if (pvm_spawn(argv[0], argv + 1, PvmTaskDefault, "", MAX_TASKS - 1, tids + 1) != MAX_TASKS - 1)
        fail("the others cannot be started");
    contexts[0] = 0;
    for (int at = 1; at < CONTEXTS; at++)
        contexts[at] = pvm_newcontext();
    wire = pvm_newcontext();
    memcpy(news, tids, sizeof tids);
    memcpy(news + MAX_TASKS, contexts, sizeof contexts);
    news[MAX_TASKS + CONTEXTS] = wire;
    pvm_initsend(PvmDataDefault);
    pvm_pkint(news, MAX_TASKS + CONTEXTS + 1, 1);
    pvm_mcast(tids + 1, MAX_TASKS - 1, TIDS);
    pvm_freebuf(pvm_setsbuf(0));
}

static void kill_others(void)
{
    for (int task = 1; task < MAX_TASKS; task++)
        pvm_kill(tids[task]);
}

/* Receives another task's report about a course. */
static void hear(int task)
{
    static char words[WORDS];
    struct timeval limit = {MAX_SECONDS, 0};
    int before = pvm_setcontext(wire), length = 0, buffer = pvm_trecv(tids[task], ENDED, &limit);
    if (buffer <= 0) {
        kill_others();
        me = task;
        fail("it does not come to its end");
    }
    pvm_bufinfo(buffer, &length, NULL, NULL);
    pvm_upkbyte(words, length, 1);
    pvm_freebuf(pvm_setrbuf(0));
    pvm_setcontext(before);
    fputs(words, stdout);
}

/* Runs if the first task waits for something that never arrives. */
static void on_alarm(int number)
{
    (void)number;
    static const char words[] = "pvm_course: task 0: it does not come to its end\n";
    if (write(2, words, sizeof words - 1) < 0)
        _exit(3);
    for (int task = 1; task < MAX_TASKS; task++)
        pvm_kill(tids[task]);
    _exit(2);
}

static void lead(uint64_t first, int count, int episodes, char **argv)
{
    prepare();
    for (int course = 0; course < count; course++) {
        uint64_t seed = first + (uint64_t)course;
        printf("course %llu\n", (unsigned long long)seed);
        fflush(stdout);
        say_to_all(BEGIN);
        alarm(MAX_SECONDS);
        play_course(seed, episodes, argv[0]);
        alarm(0);
        fputs(said, stdout);
        for (int task = 1; task < MAX_TASKS; task++)
            hear(task);
        /* What others could have seen is removed only when all have ended. */
        say_to_all(CLEAN);
        clean();
        for (int task = 1; task < MAX_TASKS; task++)
            hear(task);
    }
}

static void leave_out(const char *list)
{
    for (char *end; *list; list = *end ? end + 1 : end) {
        long episode = strtol(list, &end, 10);
        if (end == list)
            return;
        if (episode >= 0 && episode < MAX_EPISODES)
            left_out[episode] = 1;
    }
}

int main(int argc, char **argv)
{
    block_signal();
    if (argc > 1 && strcmp(argv[1], "victim") == 0)
        return victim();
    if (argc < 4)
        return 2;
    if (argc > 4)
        leave_out(argv[4]);
    uint64_t first = strtoull(argv[1], NULL, 10);
    int count = atoi(argv[2]), episodes = atoi(argv[3]);
    if (episodes > MAX_EPISODES)
        episodes = MAX_EPISODES;
    own_tid = pvm_mytid();
    if (own_tid < 0)
        fail("no machine");
    parent_tid = pvm_parent();
    pvm_setopt(PvmAutoErr, 0);
    if (parent_tid > 0) {
        follow(first, count, episodes, argv[0]);
    } else {
        signal(SIGALRM, on_alarm);
        start_others(argc, argv);
        open_trace();
        lead(first, count, episodes, argv);
    }
    pvm_exit();
    return 0;
}
