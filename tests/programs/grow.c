/*
 * Jobs that grow: task 0 has hosts added to the virtual machine, is notified of them, and starts tasks there. The first
 * argument is the command `regatta`.
 */
#include "check.h"
#include <sys/wait.h>

enum { EVENT = 6, END = 7, QUESTION = 8, ANSWER = 9, TIDS = 10 };

static char self[4096];

/* Runs a shell command, which must succeed. */
static void shell(const char *format, const char *word)
{
    char line[8192];
    CHECK(snprintf(line, sizeof line, format, args[0], word) < (int)sizeof line);
    int status = system(line);
    if (status != 0)
        FAILED("%s: status %d", line, status);
}

static rg_event next_event(int kind)
{
    rg_event event;
    OK(rg_recv(&event, sizeof event, RG_ANY, EVENT, RG_ALL, NULL));
    if (event.mark != RG_EVENT_MARK || event.kind != kind)
        FAILED("event %d of task %d and host %d (%s), not %d", event.kind, event.tid, event.host, event.name, kind);
    return event;
}

static rg_host host_of_number(int number)
{
    rg_host hosts[8];
    int count = -1;
    OK(rg_hosts(hosts, 8, &count));
    for (int i = 0; i < count; i++)
        if (hosts[i].host == number)
            return hosts[i];
    FAILED("host %d is not listed", number);
}

/* Starts tasks of this program on a host. */
static void start(const char *role, const char *host, int count, int *tids)
{
    char *argv[] = {(char *)role, NULL};
    rg_spawn_options options = {.host = host};
    int started = -1;
    OK(rg_spawn(self, argv, &options, count, tids, &started));
    CHECK(started == count);
}

/* Sends a number to a task and checks its answer. */
static void ask(int tid)
{
    int question = 100 + rg_tid(), answer = -1;
    OK(rg_send(&question, sizeof question, tid, QUESTION, RG_ALL));
    OK(rg_recv(&answer, sizeof answer, tid, ANSWER, RG_ALL, NULL));
    CHECK(answer == question + tid);
}

/* Answers requests until the order to end arrives. */
static void serve(void)
{
    for (;;) {
        int question = -1;
        rg_status status;
        OK(rg_probe(RG_ANY, RG_ANY, RG_ALL, &status));
        if (status.tag == END)
            break;
        OK(rg_recv(&question, sizeof question, status.source, QUESTION, RG_ALL, NULL));
        question += rg_tid();
        OK(rg_send(&question, sizeof question, status.source, ANSWER, RG_ALL));
    }
    OK(rg_recv(NULL, 0, 0, END, RG_ALL, NULL));
}

static void as_server(void)
{
    serve();
}

/* Communicates with tasks of all ages, and with tasks that were gone before this host joined. */
static void as_newcomer(void)
{
    int tids[3]; /* one of the first tasks, one started before this host joined, one that had ended by then */
    OK(rg_barrier(RG_WORLD));
    OK(rg_recv(tids, sizeof tids, 0, TIDS, RG_ALL, NULL));
    ask(tids[0]);
    ask(tids[1]);
    int nothing = 0;
    CHECK(rg_send(&nothing, sizeof nothing, tids[2], QUESTION, RG_ALL) == RG_ERR_LEFT);
    int sum = 0, one = 1;
    OK(rg_allreduce(&one, &sum, 1, RG_INT32, RG_SUM, RG_WORLD));
    CHECK(sum == size);
    serve();
}

static void end(int tid)
{
    OK(rg_send(NULL, 0, tid, END, RG_ALL));
}

/* Waits until the host of this name joins. Returns its number. */
static int arrive(const char *name)
{
    rg_event event = next_event(RG_HOST_ADDED);
    CHECK(strcmp(event.name, name) == 0);
    rg_host host = host_of_number(event.host);
    CHECK(host.alive && host.cores > 0 && host.tasks == 0 && strcmp(host.name, name) == 0);
    return event.host;
}

/* Checks that two tasks on a host that has joined can communicate with all others. */
static void try_out(const char *name, int number, const int *known, int *tids)
{
    start("as-newcomer", name, 2, tids);
    for (int i = 0; i < 2; i++)
        OK(rg_send(known, 3 * sizeof *known, tids[i], TIDS, RG_ALL));
    for (int i = 0; i < 2; i++)
        ask(tids[i]);
    CHECK(host_of_number(number).tasks == 2);
}

/* Begins with two hosts, h0 and h1; others join, are lost, and join again. */
static void grow(void)
{
    if (me != 0) {
        serve();
        return;
    }
    int watch, tids[2], known[3] = {1};
    OK(rg_notify(RG_HOST_ADDED, 0, EVENT, RG_ALL, &watch));
    start("as-server", "h1", 1, &known[1]);
    start("as-server", "h1", 1, &known[2]);
    OK(rg_notify(RG_TASK_EXIT, known[2], EVENT, RG_ALL, NULL));
    end(known[2]);
    next_event(RG_TASK_EXIT);

    /* Hosts on which no program can run do not join the job; the next host does. */
    shell("%s add %s:1", "h3");
    shell("%s add %s:1", "h4");
    shell("%s add %s:1", "h2");
    int first = arrive("h2");
    try_out("h2", first, known, tids);

    /* The host is lost, with the tasks on it. */
    OK(rg_notify(RG_HOST_LOST, first, EVENT, RG_ALL, NULL));
    OK(rg_notify(RG_TASK_EXIT, tids[0], EVENT, RG_ALL, NULL));
    OK(rg_notify(RG_TASK_EXIT, tids[1], EVENT, RG_ALL, NULL));
    /* Some of these processes end before they are killed, because others have. */
    shell("ip netns pids %2$s | xargs kill -9 2>/dev/null || true", "h2");
    CHECK(next_event(RG_TASK_EXIT).how == RG_BY_HOST);
    CHECK(next_event(RG_TASK_EXIT).how == RG_BY_HOST);
    CHECK(next_event(RG_HOST_LOST).host == first);
    CHECK(!host_of_number(first).alive);

    /* The host joins again, as a new one: the machine accepts it once it has noticed the loss. */
    shell("mkfifo seen; %1$s hosts --watch --json >seen & watcher=$!; grep -q -m 1 '\"known\":4,' <seen && kill $watcher && %1$s add %2$s:1", "h2");
    int again = arrive("h2");
    CHECK(again != first && !host_of_number(first).alive);
    FAILS(rg_send(NULL, 0, tids[0], END, RG_ALL), RG_ERR_DEAD, "task");
    try_out("h2", again, known, tids);
    CHECK(tids[0] > known[2] + 2);
    end(tids[0]);
    end(tids[1]);
    end(known[1]);
    end(1);
}

/* Runs on the only host of the machine. */
static void alone(void)
{
    int watch, tids[2], known[3];
    OK(rg_notify(RG_HOST_ADDED, 0, EVENT, RG_ALL, &watch));
    start("as-server", "h0", 3, known);
    OK(rg_notify(RG_TASK_EXIT, known[2], EVENT, RG_ALL, NULL));
    end(known[2]);
    next_event(RG_TASK_EXIT);
    shell("%s add %s:1", "h1");
    try_out("h1", arrive("h1"), known, tids);
    int pending;
    OK(rg_notify_cancel(watch, &pending));
    CHECK(pending);
    end(tids[0]);
    end(tids[1]);
    end(known[0]);
    end(known[1]);
}

static void as_sleeper(void)
{
    for (;;)
        pause();
}

/* Receives from a task that was gone before this host joined, and reports the result. */
static void as_receiver(void)
{
    int tid, one = 1;
    OK(rg_recv(&tid, sizeof tid, 0, TIDS, RG_ALL, NULL));
    int code = rg_recv_within(&one, sizeof one, tid, QUESTION, RG_ALL, 10.0, NULL);
    OK(rg_send(&code, sizeof code, 0, ANSWER, RG_ALL));
}

/* Begins with two hosts, h0 and h1; h1 is given back, and then h2 joins. */
static void back(void)
{
    const char *host = "h1";
    int watch, tids[2], outcome, code;
    OK(rg_notify(RG_HOST_ADDED, 0, EVENT, RG_ALL, &watch));
    start("as-sleeper", "h1", 1, &tids[0]);
    OK(rg_notify(RG_TASK_EXIT, tids[0], EVENT, RG_ALL, NULL));
    OK(rg_remove_hosts(&host, 1, &outcome));
    next_event(RG_TASK_EXIT);
    shell("%s add %s:1", "h2");
    arrive("h2");
    start("as-receiver", "h2", 1, &tids[1]);
    OK(rg_send(&tids[0], sizeof tids[0], tids[1], TIDS, RG_ALL));
    OK(rg_recv(&code, sizeof code, tids[1], ANSWER, RG_ALL, NULL));
    if (code != RG_ERR_DEAD)
        FAILED("to receive from a task on a host that was given back gave %d", code);
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"grow", grow, false},
        {"alone", alone, false},
        {"back", back, false},
        {"as-sleeper", as_sleeper, false},
        {"as-receiver", as_receiver, false},
        {"as-server", as_server, false},
        {"as-newcomer", as_newcomer, false},
        {NULL, NULL, false},
    };
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0)
        return 2;
    return check_main(argc, argv, scenarios);
}
