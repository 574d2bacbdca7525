/*
 * Jobs that outlive hosts, including the launcher's. There is a task on each host, h0 first. To have a host lost, a
 * task writes a line to the pipe `plug`: the host, and how (cut or kill). After the launcher is lost, the tasks' output
 * goes to a file that only the driver reads, at the end.
 */
#include "check.h"
#include <fcntl.h>
#include <time.h>

enum { EVENT = 6, END = 7, QUESTION = 8, ANSWER = 9, READY = 10 };

static char self[4096];

/* Sends a line to the driver. */
static void say(const char *host, const char *what)
{
    int pipe = open("plug", O_WRONLY);
    CHECK(pipe >= 0);
    char line[64];
    int length = snprintf(line, sizeof line, "%s %s\n", host, what);
    CHECK(write(pipe, line, (size_t)length) == length);
    close(pipe);
}

/* Has the driver take down a host. */
static void pull(const char *host)
{
    say(host, args[0]);
}

/*
 * After a barrier, the task after the one whose host is to be lost waits for all others and then has the host taken
 * down.
 */
static void lose_host_of(int tid, const char *name, rg_group group)
{
    OK(rg_barrier(group));
    if (me == tid + 1) {
        for (int others = rg_size(group) - 2; others > 0; others--)
            OK(rg_recv(NULL, 0, RG_ANY, READY, RG_ALL, NULL));
        pull(name);
    } else if (me != tid) {
        OK(rg_send(NULL, 0, tid + 1, READY, RG_ALL));
    }
}

static rg_event next_event(int kind)
{
    rg_event event;
    OK(rg_recv(&event, sizeof event, RG_ANY, EVENT, RG_ALL, NULL));
    if (event.kind != kind)
        FAILED("event %d of task %d and host %d, not %d", event.kind, event.tid, event.host, kind);
    return event;
}

/* Returns the number of a host, or -1 if it is not alive. */
static int number_of(const char *name)
{
    rg_host hosts[8];
    int count = -1;
    OK(rg_hosts(hosts, 8, &count));
    for (int i = 0; i < count; i++)
        if (strcmp(hosts[i].name, name) == 0)
            return hosts[i].alive ? hosts[i].host : -1;
    FAILED("host %s is not listed", name);
}

/* Calls collectives until one reports a lost member. Returns the group of the remaining members. */
static rg_group go_on_without(rg_group group, int left)
{
    int one = 1, sum = 0, code;
    while ((code = rg_allreduce(&one, &sum, 1, RG_INT32, RG_SUM, group)) == RG_OK)
        CHECK(sum == rg_size(group));
    if (code != RG_ERR_DEAD)
        FAILED("an allreduce gave %d (%s)", code, rg_last_error());
    rg_group rest;
    OK(rg_group_shrink(group, &rest));
    CHECK(rg_size(rest) == left);
    OK(rg_allreduce(&one, &sum, 1, RG_INT32, RG_SUM, rest));
    CHECK(sum == left);
    return rest;
}

/* Starts a task on a host, communicates with it, and watches it end; another one is killed. */
static void try_out(const char *host)
{
    char *argv[] = {"as-child", args[0], NULL};
    rg_spawn_options options = {.host = host};
    int tids[2], started = -1, question = 40, answer = -1;
    OK(rg_spawn(self, argv, &options, 2, tids, &started));
    CHECK(started == 2);
    for (int i = 0; i < 2; i++) {
        OK(rg_notify(RG_TASK_EXIT, tids[i], EVENT, RG_ALL, NULL));
        OK(rg_send(&question, sizeof question, tids[i], QUESTION, RG_ALL));
        OK(rg_recv(&answer, sizeof answer, tids[i], ANSWER, RG_ALL, NULL));
        CHECK(answer == 42);
    }
    OK(rg_kill(tids[0]));
    rg_event event = next_event(RG_TASK_EXIT);
    CHECK(event.tid == tids[0] && event.how == RG_BY_SIGNAL && event.value == SIGKILL);
    OK(rg_send(NULL, 0, tids[1], END, RG_ALL));
    event = next_event(RG_TASK_EXIT);
    CHECK(event.tid == tids[1] && event.how == RG_BY_EXIT && event.value == 0);
}

static void as_child(void)
{
    int number = -1;
    OK(rg_recv(&number, sizeof number, rg_parent(), QUESTION, RG_ALL, NULL));
    number += 2;
    OK(rg_send(&number, sizeof number, rg_parent(), ANSWER, RG_ALL));
    OK(rg_recv(NULL, 0, rg_parent(), END, RG_ALL, NULL));
}

static void put(const char *name, int flags)
{
    OK(rg_put(name, &me, sizeof me, RG_ANY, flags, NULL));
}

/* Checks that the entry under this name has this number. */
static void expect(const char *name, int flags, int number)
{
    int value = -1, index = -1;
    size_t length = 0;
    OK(rg_get(name, 0, flags, &value, sizeof value, &length, &index));
    CHECK(length == sizeof value && value == number);
}

/* Checks that of the entries of tasks on lost hosts only the persistent ones are left. */
static void look(int first_left)
{
    int value, index, tids[8], count = -1;
    size_t length;
    char name[16];
    for (int task = 0; task < 4; task++) {
        snprintf(name, sizeof name, "of-%d", task);
        if (task < first_left)
            CHECK(rg_get(name, 0, 0, &value, sizeof value, &length, &index) == RG_ERR_NAME);
        else
            expect(name, 0, task);
    }
    expect("stays", 0, 0);
    OK(rg_members("crew", tids, 8, &count));
    CHECK(count == 4);
    for (int task = 0; task < 4; task++)
        CHECK(tids[task] == (task < first_left ? RG_NONE : task));
}

static void come_together(rg_group group)
{
    OK(rg_barrier(group));
}

/*
 * Has the host of this name lost, and checks everything that depended on it: its tasks, the launcher's role, and what
 * that launcher managed.
 */
static rg_group lose(const char *name, int number, int tid, rg_group group, int left)
{
    int asked_by = tid + 3 > 3 ? 3 : tid + 3; /* meanwhile, the last task waits in a call to the launcher */
    char late[16];
    snprintf(late, sizeof late, "late-%d", tid);
    OK(rg_notify(RG_TASK_EXIT, tid, EVENT, RG_ALL, NULL));
    OK(rg_notify(RG_HOST_LOST, number, EVENT, RG_ALL, NULL));
    lose_host_of(tid, name, group);
    if (me == tid) /* on the lost host */
        for (;;)
            pause();
    if (me == asked_by)
        expect(late, RG_AWAIT | RG_TAKE, tid + 1);
    if (me == tid + 1) {
        /* The request arrives while no host leads the job, or right after one does. */
        CHECK(next_event(RG_TASK_EXIT).how == RG_BY_HOST);
        put(late, RG_OVERWRITABLE);
    } else {
        rg_event event = next_event(RG_TASK_EXIT);
        CHECK(event.tid == tid && event.how == RG_BY_HOST);
    }
    CHECK(next_event(RG_HOST_LOST).host == number);
    CHECK(number_of(name) == -1);
    /* A plain send may still be accepted for a moment. */
    FAILS(rg_ssend(NULL, 0, tid, END, RG_ALL), RG_ERR_DEAD, "task");
    rg_group rest = go_on_without(group, left);
    come_together(rest);
    look(tid + 1);
    come_together(rest);
    return rest;
}

/* First the launcher's host is lost, then that of its successor. */
static void both(void)
{
    char name[16];
    int number, numbers[2] = {number_of("h0"), number_of("h1")};
    snprintf(name, sizeof name, "of-%d", me);
    put(name, 0);
    if (me == 0)
        put("stays", RG_PERSISTENT);
    for (int task = 0; task < size; task++) {
        if (me == task)
            OK(rg_join("crew", &number));
        come_together(RG_WORLD);
    }
    CHECK(number == me);
    rg_group rest = lose("h0", numbers[0], 0, RG_WORLD, 3);
    if (me == 1)
        try_out("h2");
    if (me == 3)
        try_out("h3");
    come_together(rest);
    rg_group last = lose("h1", numbers[1], 1, rest, 2);
    if (me == 2)
        try_out("h3");
    come_together(last);
    printf("task %d has outlived both\n", me);
}

/* The launcher's host is lost, and the job waits until it is ended. */
static void wait_for_the_end(void)
{
    lose_host_of(0, "h0", RG_WORLD);
    if (me != 0) {
        rg_group rest = go_on_without(RG_WORLD, size - 1);
        printf("task %d goes on\n", me);
        come_together(rest);
    }
    if (me == 1)
        say("all", "ready");
    for (;;)
        pause();
}

/* The launcher's host is cut off. The tasks there must end; the others run to their end. */
static void split(void)
{
    lose_host_of(0, "h0", RG_WORLD);
    if (me == 0)
        for (;;)
            pause();
    rg_group rest = go_on_without(RG_WORLD, size - 1);
    printf("task %d goes on\n", me);
    come_together(rest);
    if (me == 1) /* stays until the driver has checked */
        say("all", "ready");
    come_together(rest);
}

/*
 * The launcher's host is lost, and then that of another task before any host leads the job again. The others are
 * notified of both.
 */
static void two(void)
{
    int other = atoi(args[1]);
    bool stays = me != 0 && me != other;
    if (stays) {
        OK(rg_notify(RG_TASK_EXIT, 0, EVENT, RG_ALL, NULL));
        OK(rg_notify(RG_TASK_EXIT, other, EVENT, RG_ALL, NULL));
    }
    lose_host_of(0, "h0", RG_WORLD);
    if (!stays)
        for (;;)
            pause();
    for (int i = 0; i < 2; i++) {
        rg_event event = next_event(RG_TASK_EXIT);
        CHECK(event.how == RG_BY_HOST && (event.tid == 0 || event.tid == other));
    }
    rg_group rest = go_on_without(RG_WORLD, 2);
    printf("task %d has outlived both\n", me);
    come_together(rest);
}

/*
 * A host is given back, the launcher's host is lost, and a host joins. The latter becomes a host of the job, and the
 * one that was given back does not.
 */
static void back(void)
{
    const char *given = "h3";
    int outcome;
    if (me != 1)
        for (;;)
            pause();
    OK(rg_notify(RG_HOST_ADDED, 0, EVENT, RG_ALL, NULL));
    for (int task = 0; task < size; task++)
        if (task != me)
            OK(rg_notify(RG_TASK_EXIT, task, EVENT, RG_ALL, NULL));
    OK(rg_remove_hosts(&given, 1, &outcome));
    CHECK(next_event(RG_TASK_EXIT).tid == 3);
    pull("h0");
    CHECK(next_event(RG_TASK_EXIT).tid == 0);
    say("h2", "returns");
    for (bool lost = false, come = false; !lost || !come;) {
        rg_event event;
        OK(rg_recv(&event, sizeof event, RG_ANY, EVENT, RG_ALL, NULL));
        lost |= event.kind == RG_TASK_EXIT && event.tid == 2;
        come |= event.kind == RG_HOST_ADDED;
        if (event.kind == RG_HOST_ADDED && strcmp(event.name, "h2") != 0)
            FAILED("the host %s has come, which was given back", event.name);
    }
    printf("the host that came is of the job\n");
}

/* A task gives a host back and adds it again. A task there outlives the launcher's host like those on other hosts. */
static void again(void)
{
    const char *host = "h3";
    int outcome, tid, started;
    if (me != 1)
        for (;;)
            pause();
    OK(rg_remove_hosts(&host, 1, &outcome));
    OK(rg_add_hosts(&host, 1, &outcome));
    char *arguments[] = {"as-child", args[0], NULL};
    rg_spawn_options options = {.host = host};
    OK(rg_spawn(self, arguments, &options, 1, &tid, &started));
    CHECK(started == 1);
    OK(rg_notify(RG_TASK_EXIT, 0, EVENT, RG_ALL, NULL));
    pull("h0");
    CHECK(next_event(RG_TASK_EXIT).tid == 0);
    int question = 40, answer;
    OK(rg_send(&question, sizeof question, tid, QUESTION, RG_ALL));
    OK(rg_recv(&answer, sizeof answer, tid, ANSWER, RG_ALL, NULL));
    CHECK(answer == 42);
    OK(rg_send(NULL, 0, tid, END, RG_ALL));
    printf("the task on the host that was added again goes on\n");
    say("all", "ready");
    OK(rg_kill(2));
}

/* The launcher gives up the host of task 1, which is alive. Then its own host is lost. */
static void given_up(void)
{
    bool stays = me > 1;
    if (stays) {
        OK(rg_notify(RG_TASK_EXIT, 0, EVENT, RG_ALL, NULL));
        OK(rg_notify(RG_TASK_EXIT, 1, EVENT, RG_ALL, NULL));
    }
    OK(rg_barrier(RG_WORLD));
    if (me == 2)
        say("h1", "apart from h0");
    if (!stays)
        for (;;)
            pause();
    CHECK(next_event(RG_TASK_EXIT).tid == 1);
    if (me == 3)
        OK(rg_send(NULL, 0, 2, READY, RG_ALL));
    else {
        OK(rg_recv(NULL, 0, 3, READY, RG_ALL, NULL));
        pull("h0");
    }
    CHECK(next_event(RG_TASK_EXIT).tid == 0);
    rg_group rest = go_on_without(RG_WORLD, 2);
    printf("task %d goes on without the host that was given up\n", me);
    come_together(rest);
}

/* The launcher is stopped for longer than --host-timeout. */
static void still(void)
{
    OK(rg_barrier(RG_WORLD));
    if (me == 0) {
        pull("h0");
        /* Between --host-timeout (2 s) and three times that. */
        const struct timespec silence = {.tv_sec = 4};
        CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &silence, NULL) == 0);
    }
    int one = 1, sum = 0;
    OK(rg_allreduce(&one, &sum, 1, RG_INT32, RG_SUM, RG_WORLD));
    CHECK(sum == size);
    printf("task %d has all others\n", me);
    if (me == 0)
        say("h0", "goes on");
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"both", both, false},
        {"still", still, false},
        {"split", split, false},
        {"two", two, false},
        {"back", back, false},
        {"again", again, false},
        {"given-up", given_up, false},
        {"wait-for-the-end", wait_for_the_end, false},
        {"as-child", as_child, false},
        {NULL, NULL, false},
    };
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0)
        return 2;
    return check_main(argc, argv, scenarios);
}
