/*
 * How soon tasks are notified of failures and other events, for `make reactions`. Each scenario repeats one event and
 * prints lines of "took SECONDS". All hosts are on one machine, so they have one clock.
 */
#include "spawn.h"
#include <time.h>

static double now(void)
{
    struct timespec at;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &at) == 0);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

static void took(double begun, double done)
{
    printf("took %.6f\n", done - begun);
}

/* Runs a shell command, which must succeed. */
static void shell(const char *line)
{
    int status = system(line);
    if (status != 0)
        FAILED("%s: status %d", line, status);
}

static int start_on(const char *role, const char *host)
{
    char *argv[] = {(char *)role, NULL};
    rg_spawn_options options = {.host = host};
    int tid, started;
    OK(rg_spawn(own_path(), argv, &options, 1, &tid, &started));
    return tid;
}

static void as_quiet(void)
{
    await_end();
}

static void as_greeter(void)
{
    OK(rg_send(NULL, 0, rg_parent(), GREETING, RG_ALL));
    await_end();
}

/* A task on another host is killed. Arguments: HOST TIMES */
static void killed(void)
{
    for (int i = 0; i < atoi(args[1]); i++) {
        rg_task tasks[2];
        int count, tid = start_on("as-greeter", args[0]);
        OK(rg_recv(NULL, 0, tid, GREETING, RG_ALL, NULL));
        OK(rg_notify(RG_TASK_EXIT, tid, EVENT, RG_ALL, NULL));
        OK(rg_tasks(tasks, 2, &count));
        CHECK(count == 2 && tasks[1].tid == tid);
        double begun = now();
        CHECK(kill(tasks[1].pid, SIGKILL) == 0);
        rg_event event = next_event();
        took(begun, now());
        CHECK(event.tid == tid && event.how == RG_BY_SIGNAL && event.value == SIGKILL);
    }
}

/* A host is cut off without any notification. Arguments: HOST TIMES CUT HEAL, where CUT and HEAL are commands. */
static void silent(void)
{
    OK(rg_notify(RG_HOST_ADDED, 0, EVENT, RG_ALL, NULL));
    for (int i = 0; i < atoi(args[1]); i++) {
        int tid = start_on("as-quiet", args[0]);
        OK(rg_notify(RG_TASK_EXIT, tid, EVENT, RG_ALL, NULL));
        double begun = now();
        shell(args[2]);
        rg_event event = next_event();
        took(begun, now());
        CHECK(event.kind == RG_TASK_EXIT && event.tid == tid && event.how == RG_BY_HOST);
        shell(args[3]);
        event = next_event();
        CHECK(event.kind == RG_HOST_ADDED && strcmp(event.name, args[0]) == 0);
    }
}

/*
 * A member's host fails during collectives, by the command STRIKE. Measures the time until every other member has got
 * the error, made the group of the survivors, and completed the next collective.
 */
static void collectives(void)
{
    enum { ROUNDS = 1000, STRUCK = 200 };
    double begun = 0, done, last = 0;
    bool lost = false;
    rg_group group;
    OK(rg_group_dup(RG_WORLD, &group));
    for (int round = 0; round < ROUNDS; round++) {
        /* On a busy machine all rounds together take long, so the watchdog is set again every 20 rounds. */
        if (round % 20 == 0)
            check_patience(75);
        if (round == STRUCK && me == 0) {
            begun = now();
            shell(args[0]);
        }
        int one = 1, sum = 0, furthest = 0;
        int code = rg_allreduce(&one, &sum, 1, RG_INT32, RG_SUM, group);
        if (code == RG_OK) {
            CHECK(sum == (lost ? size - 1 : size));
            continue;
        }
        if (code != RG_ERR_DEAD || lost)
            FAILED("round %d gave %d (%s)", round, code, rg_last_error());
        OK(rg_group_shrink(group, &group));
        /* Some members may have completed the round that failed for others. */
        OK(rg_allreduce(&round, &furthest, 1, RG_INT32, RG_MAX, group));
        done = now();
        CHECK(rg_size(group) == size - 1);
        OK(rg_reduce(&done, &last, 1, RG_DOUBLE, RG_MAX, 0, group));
        if (me == 0)
            took(begun, last);
        lost = true;
        round = furthest;
    }
    CHECK(lost);
}

/* A host is added until a task runs there. Arguments: HOST TIMES ADD REMOVE, where ADD and REMOVE are commands. */
static void added(void)
{
    OK(rg_notify(RG_HOST_ADDED, 0, EVENT, RG_ALL, NULL));
    for (int i = 0; i < atoi(args[1]); i++) {
        double begun = now();
        shell(args[2]);
        rg_event event = next_event();
        CHECK(event.kind == RG_HOST_ADDED && strcmp(event.name, args[0]) == 0);
        int tid = start_on("as-greeter", args[0]);
        OK(rg_recv(NULL, 0, tid, GREETING, RG_ALL, NULL));
        took(begun, now());
        OK(rg_notify(RG_TASK_EXIT, tid, EVENT, RG_ALL, NULL));
        end(1, &tid);
        CHECK(next_event().kind == RG_TASK_EXIT);
        OK(rg_notify(RG_HOST_LOST, event.host, EVENT, RG_ALL, NULL));
        shell(args[3]);
        CHECK(next_event().kind == RG_HOST_LOST);
    }
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"as-quiet", as_quiet, false},
        {"as-greeter", as_greeter, false},
        {"killed", killed, false},
        {"silent", silent, false},
        {"collectives", collectives, false},
        {"added", added, false},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
