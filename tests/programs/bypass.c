/*
 * Two tasks on different hosts exchange messages while the bypass between them is set up, cut and set up again. Every
 * message must arrive once, in order and complete. The test creates the files that say what it has done to the bypass.
 */
#include "check.h"

enum { LARGE = 50000 };

/* Most messages are short; some are too long for the bypass, or for one piece. */
static size_t length_of(int64_t number)
{
    static const size_t lengths[] = { 8, 60, 8, 1200, 8, 8, 16, 400 };
    if (number % 211 == 0)
        return LARGE;
    return number % 53 == 0 ? 3000 : lengths[number % 8];
}

static void write_body(char *bytes, int64_t number)
{
    paint(bytes, length_of(number), (uint64_t)number);
    memcpy(bytes, &number, sizeof number);
}

static bool is_by_bypass(int other)
{
    char path[400];
    OK(rg_path(RG_WORLD, other, path, sizeof path));
    return strstr(path, "bypass TCP/IP") != NULL;
}

static int64_t asked;

/*
 * Sends `count` messages and waits for an acknowledgement after each. Before each hundredth acknowledgement it sends a
 * burst of 40.
 */
static void ask(int other, int count, char *bytes)
{
    while (count--) {
        int burst = asked % 100 == 99 ? 40 : 1;
        for (int one = 0; one < burst; one++) {
            asked++;
            write_body(bytes, asked);
            OK(rg_send(bytes, length_of(asked), other, 1, RG_WORLD));
        }
        int64_t answer;
        OK(rg_send(NULL, 0, other, 3, RG_WORLD));
        OK(rg_recv(&answer, sizeof answer, other, 2, RG_WORLD, NULL));
        CHECK(answer == asked);
    }
}

static void answer(int other, char *bytes)
{
    char *expected = need(LARGE);
    for (int64_t last = 0;;) {
        rg_status status;
        OK(rg_recv(bytes, LARGE, other, RG_ANY, RG_WORLD, &status));
        if (status.tag == 3) {
            OK(rg_send(&last, sizeof last, other, 2, RG_WORLD));
            continue;
        }
        if (status.tag == 4)
            break;
        last++;
        write_body(expected, last);
        CHECK(status.length == length_of(last) && memcmp(bytes, expected, status.length) == 0);
    }
    free(expected);
}

static void until_bypass(bool there, int other, char *bytes)
{
    while (is_by_bypass(other) != there)
        ask(other, 10, bytes);
}

static void until_file(const char *name, int other, char *bytes)
{
    while (access(name, F_OK) != 0)
        ask(other, 10, bytes);
}

/* cut: the bypass is used, then cut, then used again. */
static void cut(void)
{
    char *bytes = need(LARGE);
    check_patience(100);
    if (me == 0) {
        until_bypass(true, 1, bytes);
        ask(1, 3000, bytes);
        printf("by the bypass\n");
        until_file("/run/dropped", 1, bytes);
        until_bypass(false, 1, bytes);
        ask(1, 1000, bytes);
        printf("without the bypass\n");
        until_file("/run/mended", 1, bytes);
        until_bypass(true, 1, bytes);
        ask(1, 1000, bytes);
        printf("by the bypass again\n");
        OK(rg_send(NULL, 0, 1, 4, RG_WORLD));
    } else {
        answer(0, bytes);
    }
    OK(rg_barrier(RG_WORLD));
    free(bytes);
}

/*
 * away: task 0 sends a message now and then and computes without any call. Task 1 prints the longest latency of these
 * messages, of which some frames are lost.
 */
static void away(void)
{
    double worst = 0;
    OK(rg_barrier(RG_WORLD));
    for (int turn = 0; turn < 20; turn++) {
        double said = rg_time();
        if (me == 0) {
            for (int one = 0; one < 200; one++) {
                OK(rg_send(&said, sizeof said, 1, 5, RG_WORLD));
                OK(rg_recv(&said, sizeof said, 1, 5, RG_WORLD, NULL));
            }
            said = rg_time();
            OK(rg_send(&said, sizeof said, 1, 6, RG_WORLD));
            while (rg_time() < said + 0.3)
                continue;
        } else {
            for (int one = 0; one < 200; one++) {
                OK(rg_recv(&said, sizeof said, 0, 5, RG_WORLD, NULL));
                OK(rg_send(&said, sizeof said, 0, 5, RG_WORLD));
            }
            OK(rg_recv(&said, sizeof said, 0, 6, RG_WORLD, NULL));
            double took = rg_time() - said;
            worst = took > worst ? took : worst;
        }
    }
    if (me == 1)
        printf("worst %d ms\n", (int)(1000 * worst));
    OK(rg_barrier(RG_WORLD));
}

/* Each task sends `count` messages to the other at the same time. */
static void both_say(int count, char *bytes, char *expected)
{
    static int64_t number;
    while (count--) {
        number++;
        size_t length = length_of(number);
        write_body(bytes, number);
        OK(rg_send(bytes, length, 1 - me, 5, RG_WORLD));
        rg_status status;
        OK(rg_recv(bytes, LARGE, 1 - me, 5, RG_WORLD, &status));
        write_body(expected, number);
        CHECK(status.length == length && memcmp(bytes, expected, length) == 0);
    }
}

/*
 * both: both tasks send at the same time, over and over. Before each turn one of them computes, then the other, while
 * the one that waits falls asleep. So both use the connection at the beginning of a turn.
 */
static void both(void)
{
    char *bytes = need(LARGE), *expected = need(LARGE);
    OK(rg_barrier(RG_WORLD));
    for (int turn = 0; turn < 20; turn++) {
        for (int one = 0; one < 2; one++) {
            for (double begun = rg_time(); me == one && rg_time() < begun + 0.02;)
                continue;
            both_say(4, bytes, expected);
        }
        both_say(300, bytes, expected);
    }
    OK(rg_barrier(RG_WORLD));
    free(bytes);
    free(expected);
}

/*
 * dies: task 1 sends messages and is killed. Task 0 must receive all of them, although it knows of the death by then.
 */
static void dies(void)
{
    int word = 0;
    OK(rg_barrier(RG_WORLD));
    for (int one = 0; one < 500; one++) {
        if (me == 0)
            OK(rg_send(&word, sizeof word, 1, 5, RG_WORLD));
        OK(rg_recv(&word, sizeof word, 1 - me, 5, RG_WORLD, NULL));
        if (me == 1)
            OK(rg_send(&word, sizeof word, 0, 5, RG_WORLD));
    }
    if (me == 0) {
        for (word = 0; word < 10; word++)
            OK(rg_send(&word, sizeof word, 1, 6, RG_WORLD));
        raise(SIGKILL);
    }
    for (double begun = rg_time(); rg_time() < begun + 0.5;)
        continue;
    for (int expected = 0; expected < 10; expected++) {
        OK(rg_recv(&word, sizeof word, 0, 6, RG_WORLD, NULL));
        CHECK(word == expected);
    }
    CHECK(rg_recv(&word, sizeof word, 0, 6, RG_WORLD, NULL) == RG_ERR_DEAD);
    printf("all came\n");
}

/* some: a few thousand messages. Prints whether the bypass is used afterwards. */
static void some(void)
{
    char *bytes = need(LARGE);
    if (me == 0) {
        ask(1, 2000, bytes);
        printf("%s\n", is_by_bypass(1) ? "it is used" : "it is not used");
        OK(rg_send(NULL, 0, 1, 4, RG_WORLD));
    } else {
        answer(0, bytes);
    }
    OK(rg_barrier(RG_WORLD));
    free(bytes);
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"away", away, false},
        {"both", both, false},
        {"cut", cut, false},
        {"dies", dies, false},
        {"some", some, false},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
