/*
 * A task is killed while it and others are in the middle of a call. The driver kills rank 1 once every survivor is
 * blocked. Each survivor then prints the error it got, and goes on in the group of survivors. Needs three or more
 * tasks, and --on-failure continue.
 *
 * Each survivor prints "blocked RANK PID" before the call that cannot succeed, and "got RANK CODE TEXT" after it.
 */
#include "check.h"

#define LARGE ((size_t)64 << 20)

static char small[64];
static unsigned char *large;

static void announce(void) { printf("blocked %d %d\n", me, (int)getpid()); }

static void got(int code)
{
    printf("got %d %d %s\n", me, code, code ? rg_last_error() : "nothing wrong");
}

/* Reports that all are busy: the victim has done this many rounds with the others. */
static void busy(int round)
{
    if (me == 1 && round == 20)
        printf("busy %d\n", me);
}

static bool victim(void) { return me == 1; }

/* Checks that the survivors can make a group, reduce over it, and still use shared memory. */
static void go_on(void)
{
    rg_group rest;
    OK(rg_group_shrink(RG_WORLD, &rest));
    if (rg_size(rest) != size - 1)
        FAILED("%d survivors of %d tasks", rg_size(rest), size);
    CHECK(rg_rank(rest) == (me > 1 ? me - 1 : me));
    int one = 1, sum = 0;
    for (int round = 0; round < 10; round++) {
        OK(rg_allreduce(&one, &sum, 1, RG_INT32, RG_SUM, rest));
        CHECK(sum == size - 1);
    }
    size_t len = 100000;
    unsigned char *bytes = need(len);
    if (rg_rank(rest) == 0)
        paint(bytes, len, 8);
    OK(rg_broadcast(bytes, len, 0, rest));
    CHECK(unpainted(bytes, len, 8) == len);
    free(bytes);
    rg_request request;
    OK(rg_ibarrier(rest, &request));
    OK(rg_wait(&request, NULL));
    /*
     * The dead task stays dead, the living stay reachable. Its last message may still be queued, so this uses another
     * tag.
     */
    FAILS(rg_recv(small, 1, 1, 77, RG_WORLD, NULL), RG_ERR_DEAD, "task 1 ");
    FAILS(rg_ssend(small, 1, 1, 0, RG_WORLD), RG_ERR_DEAD, "task 1 ");
    if (strcmp(check_scenario, "send-to-the-dead") == 0)
        FAILS(rg_send(small, 1, 1, 0, RG_WORLD), RG_ERR_DEAD, "task 1 ");
    int next = (rg_rank(rest) + 1) % rg_size(rest), before = (rg_rank(rest) + rg_size(rest) - 1);
    OK(rg_sendrecv(&me, sizeof me, next, 3, &one, sizeof one, before % rg_size(rest), 3, rest, NULL));
    printf("went on %d\n", me);
}

__attribute__((noreturn)) static void wait_for_death(void)
{
    for (;;)
        pause();
}

/* ---- the calls in progress when the task is killed ------------------------------------------- */

static void receive_exact(void)
{
    if (victim())
        announce(), wait_for_death();
    announce();
    got(rg_recv(small, sizeof small, 1, 0, RG_WORLD, NULL));
    go_on();
}

static void receive_any(void)
{
    if (victim())
        announce(), wait_for_death();
    announce();
    got(rg_recv(small, sizeof small, RG_ANY, 8, RG_WORLD, NULL)); /* a message that no task sends */
    FAILS(rg_recv(small, sizeof small, RG_ANY, 1, RG_WORLD, NULL), RG_ERR_DEAD, "task 1 ");
    int dead = 0;
    OK(rg_acknowledge_dead(RG_WORLD, &dead));
    CHECK(dead == 1);
    /* The living still communicate. */
    int other = me == 0 ? 2 : 0, value = 0;
    rg_status status;
    rg_request request;
    OK(rg_irecv(&value, sizeof value, RG_ANY, RG_ANY, RG_WORLD, &request));
    OK(rg_send(&me, sizeof me, other, 6, RG_WORLD));
    OK(rg_wait(&request, &status));
    CHECK(value == other && status.source == other && status.tag == 6);
    go_on();
}

static void send_to_the_dead(void) { receive_exact(); }

static void probe(void)
{
    if (victim())
        announce(), wait_for_death();
    announce();
    got(rg_probe(1, 0, RG_WORLD, NULL));
    go_on();
}

/* The victim itself is blocked in a receive. */
static void both_receive(void)
{
    announce();
    got(rg_recv(small, sizeof small, victim() ? 0 : 1, 0, RG_WORLD, NULL));
    go_on();
}

/* The survivors are sending a large message of which the victim has received only a part. */
static void large_send(void)
{
    large = calloc(1, LARGE);
    if (victim())
        announce(), wait_for_death();
    announce();
    got(rg_send(large, LARGE, 1, 0, RG_WORLD));
    go_on();
}

static void synchronous_send(void)
{
    if (victim())
        announce(), wait_for_death();
    announce();
    got(rg_ssend(small, 8, 1, 0, RG_WORLD));
    go_on();
}

/* Sends many small messages, until the victim's ring and queue are full. */
static void flood(void)
{
    if (victim())
        announce(), wait_for_death();
    int code = RG_OK;
    announce();
    while (code == RG_OK)
        code = rg_send(small, sizeof small, 1, 0, RG_WORLD);
    got(code);
    go_on();
}

/* The victim dies when half of its large message is sent, while rank 0 is receiving it. */
static void large_receive(void)
{
    large = calloc(1, LARGE);
    rg_request request;
    if (victim()) {
        /* In two views, so that the receiver cannot copy it directly from the sender's memory. */
        rg_view halves[2] = {{large, LARGE / 4, 1, 0}, {large + LARGE / 2, LARGE / 4, 1, 0}};
        OK(rg_isendv(halves, 2, 0, 0, RG_WORLD, &request));
        OK(rg_isendv(halves, 2, 2, 0, RG_WORLD, &request));
        announce(), wait_for_death();
    }
    announce();
    got(rg_recv(large, LARGE, 1, 0, RG_WORLD, NULL));
    go_on();
}

/* As before, but data flows in both directions at full speed when the victim is killed. */
static void exchange(void)
{
    size_t len = 8 << 20;
    unsigned char *in = calloc(1, len), *out = calloc(1, len);
    announce();
    int code = RG_OK;
    int with = me == 1 ? 0 : 1;
    for (int round = 0; code == RG_OK; round++) {
        busy(round);
        if (me == 2) {
            code = rg_recv(small, 4, 1, 9, RG_WORLD, NULL);
            break;
        }
        code = rg_sendrecv(out, len, with, 0, in, len, with, 0, RG_WORLD, NULL);
    }
    got(code);
    go_on();
}

/* A ping-pong of small messages at full speed. */
static void ping_pong(void)
{
    announce();
    int code = RG_OK, with = me == 1 ? 0 : 1;
    for (int round = 0; code == RG_OK; round++) {
        busy(round);
        if (me == 2) {
            code = rg_recv(small, 4, 1, 9, RG_WORLD, NULL);
            break;
        }
        code = rg_sendrecv(small, 8, with, 0, small + 32, 8, with, 0, RG_WORLD, NULL);
    }
    got(code);
    go_on();
}

static void wait_one(void)
{
    if (victim())
        announce(), wait_for_death();
    rg_request request;
    rg_status status;
    OK(rg_irecv(small, 4, 1, 0, RG_WORLD, &request));
    announce();
    got(rg_wait(&request, &status));
    CHECK(request.id == 0);
    go_on();
}

static void wait_any(void)
{
    if (victim())
        announce(), wait_for_death();
    rg_request requests[3];
    int index = -5, other = me == 0 ? 2 : 0, cancelled;
    OK(rg_irecv(small, 4, other, 50, RG_WORLD, &requests[0]));
    OK(rg_irecv(small + 4, 4, 1, 0, RG_WORLD, &requests[1]));
    requests[2] = RG_REQUEST_NULL;
    announce();
    got(rg_waitany(3, requests, &index, NULL));
    CHECK(index == 1 && requests[1].id == 0);
    OK(rg_cancel(requests[0], &cancelled));
    CHECK(cancelled);
    FAILS(rg_wait(&requests[0], NULL), RG_ERR_CANCELLED, "cancelled");
    go_on();
}

static int callback_error = 1;

static void called(const rg_status *status, void *arg)
{
    (void)arg;
    callback_error = status->error;
}

static void callback(void)
{
    if (victim())
        announce(), wait_for_death();
    rg_request request;
    OK(rg_irecv(small, 4, 1, 0, RG_WORLD, &request));
    OK(rg_on_complete(&request, called, NULL));
    announce();
    got(rg_recv(small + 4, 4, 1, 1, RG_WORLD, NULL));
    OK(rg_progress());
    CHECK(callback_error == RG_ERR_DEAD);
    go_on();
}

/* A collective, given by name, in which rank 1 never takes part. */
static void collective(void)
{
    const char *which = args[0];
    bool big = arg_count > 1 && strcmp(args[1], "large") == 0;
    size_t len = big ? 1 << 20 : 16;
    size_t count = len / sizeof(double);
    char *in = calloc((size_t)size, len), *out = calloc((size_t)size, len);
    rg_request request = RG_REQUEST_NULL;
    int code = 0;
    bool starts = which[0] == 'i' && strcmp(which, "i") != 0;
    const char *name = starts ? which + 1 : which;
    rg_group group;
    OK(rg_group_dup(RG_WORLD, &group)); /* works while all tasks are alive */
    OK(rg_group_free(group));
    group = RG_WORLD;
    if (victim())
        announce(), wait_for_death();
    announce();
#define EITHER(call, ...) (starts ? rg_i##call(__VA_ARGS__, group, &request) : rg_##call(__VA_ARGS__, group))
    if (strcmp(name, "barrier") == 0)
        code = starts ? rg_ibarrier(group, &request) : rg_barrier(group);
    else if (strcmp(name, "broadcast") == 0)
        code = EITHER(broadcast, in, len, 1);
    else if (strcmp(name, "reduce") == 0)
        code = EITHER(reduce, in, out, count, RG_DOUBLE, RG_SUM, 0);
    else if (strcmp(name, "allreduce") == 0)
        code = EITHER(allreduce, in, out, count, RG_DOUBLE, RG_SUM);
    else if (strcmp(name, "scan") == 0)
        code = EITHER(scan, in, out, count, RG_DOUBLE, RG_SUM);
    else if (strcmp(name, "gather") == 0)
        code = EITHER(gather, in, len, out, 0);
    else if (strcmp(name, "scatter") == 0)
        code = EITHER(scatter, in, out, len, 1);
    else if (strcmp(name, "allgather") == 0)
        code = EITHER(allgather, in, len, out);
    else if (strcmp(name, "alltoall") == 0)
        code = EITHER(alltoall, in, len, out);
    else
        FAILED("no collective %s", name);
    if (code == RG_OK && starts)
        code = rg_wait(&request, NULL);
    got(code);
    /* The world stays broken, and calls in it fail at once. */
    FAILS(rg_barrier(RG_WORLD), RG_ERR_DEAD, "task 1 ");
    CHECK(rg_last_error_task() == rg_tid_of(RG_WORLD, 1));
    FAILS(rg_tid_of(RG_WORLD, size), RG_ERR_TASK, "");
    CHECK(rg_last_error_task() == RG_NONE);
    int value = 1, sum;
    FAILS(rg_allreduce(&value, &sum, 1, RG_INT32, RG_SUM, RG_WORLD), RG_ERR_DEAD, "task 1 ");
    go_on();
}

/* A member dies while a group is made. */
static void grouping(void)
{
    rg_group group;
    if (victim())
        announce(), wait_for_death();
    announce();
    if (strcmp(args[0], "dup") == 0) {
        got(rg_group_dup(RG_WORLD, &group));
    } else if (strcmp(args[0], "split") == 0) {
        got(rg_group_split(RG_WORLD, 0, 0, &group));
    } else {
        int all[64];
        for (int i = 0; i < size; i++)
            all[i] = i;
        got(rg_group_select(RG_WORLD, size, all, &group));
    }
    go_on();
}

/* All kinds of collectives are running at full speed when the victim is killed. */
static void storm(void)
{
    size_t len = 300000;
    char *in = calloc((size_t)size, len), *out = calloc((size_t)size, len);
    announce();
    int code = RG_OK;
    for (int round = 0; code == RG_OK; round++) {
        busy(round);
        size_t some = round % 3 == 0 ? 8 : round % 3 == 1 ? 5000 : len;
        switch (round % 7) {
        case 0: code = rg_barrier(RG_WORLD); break;
        case 1: code = rg_broadcast(in, some, round % size, RG_WORLD); break;
        case 2: code = rg_allreduce(in, out, some / 8, RG_DOUBLE, RG_SUM, RG_WORLD); break;
        case 3: code = rg_allgather(in, some, out, RG_WORLD); break;
        case 4: code = rg_alltoall(in, some, out, RG_WORLD); break;
        case 5: code = rg_reduce(in, out, some / 8, RG_DOUBLE, RG_MAX, round % size, RG_WORLD); break;
        case 6: code = rg_scan(in, out, some / 8, RG_DOUBLE, RG_SUM, RG_WORLD); break;
        }
    }
    got(code);
    go_on();
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"receive-exact", receive_exact, false},
        {"receive-any", receive_any, false},
        {"send-to-the-dead", send_to_the_dead, false},
        {"probe", probe, false},
        {"both-receive", both_receive, false},
        {"large-send", large_send, false},
        {"synchronous-send", synchronous_send, false},
        {"flood", flood, false},
        {"large-receive", large_receive, false},
        {"exchange", exchange, false},
        {"ping-pong", ping_pong, false},
        {"wait", wait_one, false},
        {"wait-any", wait_any, false},
        {"callback", callback, false},
        {"collective", collective, false},
        {"grouping", grouping, false},
        {"storm", storm, false},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
