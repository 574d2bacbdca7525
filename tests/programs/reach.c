/*
 * The last two tasks of the job exchange messages for some time while their network fails now and then: every message
 * must arrive once, in order and complete. The other tasks wait for them.
 */
#include "check.h"
#include <time.h>

enum { LARGE = 200000, EVERY = 16 };

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* A question is a number, sometimes followed by painted bytes. An empty message ends the dialogue. */
static size_t length_of(int64_t number) { return number % EVERY == 0 ? LARGE : sizeof number; }

/* Pauses without sending anything. */
static void rest(void)
{
    char nothing;
    int said = rg_recv_within(&nothing, 1, me, 9, RG_WORLD, 0.002, NULL);
    CHECK(said == RG_ERR_NOTHING);
}

/* Asks questions for this many seconds. Prints the longest time that an answer took, and when a long one occurred. */
static void ask(int other, double seconds, char *bytes)
{
    double end = now() + seconds, worst = 0;
    int64_t number = 0;
    while (now() < end) {
        number++;
        double asked = now();
        paint(bytes, LARGE, (uint64_t)number);
        memcpy(bytes, &number, sizeof number);
        OK(rg_send(bytes, length_of(number), other, 1, RG_WORLD));
        memset(bytes, 0, LARGE);
        rg_status status;
        OK(rg_recv(bytes, LARGE, other, 2, RG_WORLD, &status));
        CHECK(status.length == length_of(number) && memcmp(bytes, &number, sizeof number) == 0);
        double took = now() - asked;
        if (took > 1)
            printf("waited %.1f\n", took);
        worst = took > worst ? took : worst;
        rest();
    }
    number = 0;
    OK(rg_send(&number, sizeof number, other, 1, RG_WORLD));
    printf("worst %d ms\n", (int)(1000 * worst));
}

static void answer(int other, char *bytes)
{
    char *expected = need(LARGE);
    for (int64_t last = 0;; last++) {
        int64_t number;
        rg_status status;
        OK(rg_recv(bytes, LARGE, other, 1, RG_WORLD, &status));
        memcpy(&number, bytes, sizeof number);
        if (number == 0)
            break;
        CHECK(number == last + 1 && status.length == length_of(number));
        paint(expected, LARGE, (uint64_t)number);
        memcpy(expected, &number, sizeof number);
        CHECK(memcmp(bytes, expected, status.length) == 0);
        OK(rg_send(bytes, status.length, other, 2, RG_WORLD));
    }
    free(expected);
}

/* pair SECONDS */
static void pair(void)
{
    char *bytes = need(LARGE);
    check_patience(150);
    OK(rg_barrier(RG_WORLD));
    if (me == size - 2) {
        printf("begun\n");
        ask(size - 1, atof(args[0]), bytes);
    } else if (me == size - 1) {
        answer(size - 2, bytes);
    }
    OK(rg_barrier(RG_WORLD));
    if (me == 0)
        printf("all is well\n");
    free(bytes);
}

/* The last two tasks communicate until each gets the error that it cannot reach the other. */
static void talk_until_given_up(void)
{
    int64_t number = 0;
    int said = RG_OK, other = me == size - 1 ? size - 2 : size - 1;
    check_patience(90);
    OK(rg_barrier(RG_WORLD));
    if (me == size - 2)
        printf("begun\n");
    while (me >= size - 2 && said == RG_OK) {
        if (me == size - 2)
            said = rg_send(&number, sizeof number, other, 1, RG_WORLD);
        if (said == RG_OK)
            said = rg_recv(&number, sizeof number, other, 1, RG_WORLD, NULL);
        if (said == RG_OK && me == size - 1)
            said = rg_send(&number, sizeof number, other, 1, RG_WORLD);
    }
    if (said != RG_OK)
        printf("got %d %d %s\n", me, said, rg_last_error());
}

/* shrunk: after that, all make the group of the tasks that can reach each other. */
static void shrunk(void)
{
    rg_group rest;
    talk_until_given_up();
    int one = 1, sum = 0, code = rg_group_shrink(RG_WORLD, &rest);
    if (code == RG_OK) {
        OK(rg_allreduce(&one, &sum, 1, RG_INT32, RG_SUM, rest));
        CHECK(sum == rg_size(rest));
        printf("task %d is one of %d\n", me, sum);
    } else {
        CHECK(code == RG_ERR_STATE);
        printf("task %d is left out: %s\n", me, rg_last_error());
    }
}

/* given-up [JUDGE]: after that, tasks that reach both receive from both. */
static void given_up(void)
{
    int judge = args[0] == NULL ? 0 : atoi(args[0]);
    int64_t number = me;
    talk_until_given_up();
    if (me > judge)
        OK(rg_send(&number, sizeof number, judge, 3, RG_WORLD));
    for (int from = judge + 1; me == judge && from < size; from++) {
        OK(rg_recv(&number, sizeof number, from, 3, RG_WORLD, NULL));
        CHECK(number == from);
        if (from == size - 1)
            printf("all are heard\n");
    }
    /* The judge's host will be lost. */
    if (me < judge)
        rg_recv(&number, sizeof number, judge, 3, RG_WORLD, NULL);
}

/*
 * reported: after that, a collective of all ends with the error that one of the two is dead, also at tasks that reach
 * both. From then on nothing is sent to that one in this group. What it sent before is received, and other groups work
 * as before.
 */
static void reported(void)
{
    rg_group other, tied;
    int64_t number = me;
    rg_request request = RG_REQUEST_NULL;
    int dead, found, ranks[2], count;
    OK(rg_group_dup(RG_WORLD, &other));
    OK(rg_group_dup(RG_WORLD, &tied));
    OK(rg_group_tie(RG_WORLD, tied));
    talk_until_given_up();
    if (me != 0)
        OK(rg_send(&number, sizeof number, 0, 3, RG_WORLD));
    CHECK(rg_barrier(RG_WORLD) == RG_ERR_DEAD);
    if (me == 0) {
        const char *said = rg_last_error();
        CHECK(sscanf(said, "task %d", &dead) == 1 && (dead == size - 1 || dead == size - 2));
        OK(rg_dead(RG_WORLD, ranks, 2, &count));
        CHECK(count == 1 && ranks[0] == dead);
        CHECK(rg_send(&number, 1, dead, 4, RG_WORLD) == RG_ERR_DEAD);
        CHECK(rg_send(&number, sizeof number, dead, 4, RG_WORLD) == RG_ERR_DEAD);
        CHECK(rg_send(&number, sizeof number, dead, 4, tied) == RG_ERR_DEAD);
        CHECK(rg_isend(&number, sizeof number, dead, 4, RG_WORLD, &request) == RG_ERR_DEAD);
        CHECK(rg_issend(&number, sizeof number, dead, 4, RG_WORLD, &request) == RG_ERR_DEAD);
        CHECK(rg_bsend(&number, sizeof number, dead, 4, RG_WORLD) == RG_ERR_DEAD);
        CHECK(strstr(rg_last_error(), "task ") != NULL);
        OK(rg_recv(&number, sizeof number, dead, 3, RG_WORLD, NULL));
        CHECK(number == dead);
        OK(rg_iprobe(dead, 3, RG_WORLD, &found, NULL));
        OK(rg_send(&number, sizeof number, 2 * size - 3 - dead, 4, RG_WORLD));
        for (int to = size - 2; to < size; to++)
            OK(rg_send(&number, sizeof number, to, 5, other));
        printf("nothing is sent to task %d\n", dead);
    } else {
        OK(rg_recv(&number, sizeof number, 0, 5, other, NULL));
    }
}

/*
 * crowd: each task of the first half, except task 0, communicates with each of the second half until all of those count
 * as dead for it.
 */
static void crowd(void)
{
    int half = size / 2, first = me <= half, dead = 0;
    bool is_dead[64] = {false};
    check_patience(90);
    CHECK(size <= 64 && size % 2 == 1);
    OK(rg_barrier(RG_WORLD));
    if (me == 1)
        printf("begun\n");
    while (me != 0 && dead < half) {
        for (int step = 0; step < 2; step++) {
            for (int i = 0; i < half; i++) {
                int other = first ? half + 1 + i : 1 + i, said;
                int64_t number = me;
                if (is_dead[other])
                    continue;
                if (first == (step == 0))
                    said = rg_send(&number, sizeof number, other, 1, RG_WORLD);
                else
                    said = rg_recv(&number, sizeof number, other, 1, RG_WORLD, NULL);
                CHECK(said == RG_OK || said == RG_ERR_DEAD);
                is_dead[other] = said == RG_ERR_DEAD;
                dead += is_dead[other];
            }
        }
    }
    if (me != 0)
        printf("task %d has lost %d\n", me, dead);
    /* No task leaves before all have lost all. */
    for (int turn = 0; turn < 2; turn++) {
        for (int task = 1; me == 0 && task < size; task++)
            OK(turn == 0 ? rg_recv(NULL, 0, task, 3, RG_WORLD, NULL) : rg_send(NULL, 0, task, 3, RG_WORLD));
        if (me != 0)
            OK(turn == 0 ? rg_send(NULL, 0, 0, 3, RG_WORLD) : rg_recv(NULL, 0, 0, 3, RG_WORLD, NULL));
    }
}

/* mesh SECONDS: all tasks but task 0 send to each other all the time, and receive only after all has been sent. */
static void mesh(void)
{
    double end = now() + atof(args[0]);
    int64_t number = 0, last = 0;
    check_patience(90);
    OK(rg_barrier(RG_WORLD));
    if (me == 1)
        printf("begun\n");
    while (me != 0 && now() < end) {
        number++;
        for (int other = 1; other < size; other++)
            if (other != me)
                OK(rg_send(&number, sizeof number, other, 1, RG_WORLD));
        char nothing;
        int said = rg_recv_within(&nothing, 1, me, 9, RG_WORLD, 0.05, NULL);
        CHECK(said == RG_ERR_NOTHING);
    }
    for (int other = 1; me != 0 && other < size; other++)
        if (other != me)
            OK(rg_send(&last, sizeof last, other, 1, RG_WORLD));
    for (int other = 1; me != 0 && other < size; other++) {
        for (int64_t expected = 1; other != me; expected++) {
            OK(rg_recv(&number, sizeof number, other, 1, RG_WORLD, NULL));
            if (number == last)
                break;
            CHECK(number == expected);
        }
    }
    OK(rg_barrier(RG_WORLD));
    if (me == 0)
        printf("all is well\n");
}

/* away SECONDS: the last task computes this long from the beginning. Meanwhile the task before it connects to it. */
static void away(void)
{
    double end = now() + atof(args[0]);
    int64_t number = 7;
    check_patience(90);
    while (me == size - 1 && now() < end)
        continue;
    if (me == size - 2) {
        OK(rg_send(&number, sizeof number, size - 1, 1, RG_WORLD));
        printf("begun\n");
    } else if (me == size - 1) {
        number = 0;
        OK(rg_recv(&number, sizeof number, size - 2, 1, RG_WORLD, NULL));
        CHECK(number == 7);
        printf("all is well\n");
    }
    OK(rg_barrier(RG_WORLD));
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"away", away, false},
        {"pair", pair, false},
        {"given-up", given_up, false},
        {"shrunk", shrunk, false},
        {"reported", reported, false},
        {"crowd", crowd, false},
        {"mesh", mesh, false},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
