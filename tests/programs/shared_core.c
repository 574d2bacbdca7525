/*
 * Two tasks are bound to one core, unknown to their launcher: an answer must take about as long as through pipes, even
 * if another program computes on that core. With more tasks than cores, some of which test for messages without
 * waiting: a few tests must suffice, because each test yields the core to tasks that can send.
 */
#include "check.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { ROUNDS = 600, SAMPLES = 5, TAG = 4, MAX_MESSAGES_PER_PIPE = 25, LOOK_SAMPLES = 60, MAX_LOOKS = 200 };

static int from_other, to_other;

static void bind_to_first_core(void)
{
    cpu_set_t cores;
    CHECK(sched_getaffinity(0, sizeof cores, &cores) == 0);
    int core = 0;
    while (!CPU_ISSET(core, &cores))
        core++;
    CPU_ZERO(&cores);
    CPU_SET(core, &cores);
    CHECK(sched_setaffinity(0, sizeof cores, &cores) == 0);
}

/* Opens one pipe in each direction, in the folder of the first argument. */
static void open_pipes(void)
{
    char names[2][4096];
    for (int i = 0; i < 2; i++) {
        snprintf(names[i], sizeof names[i], "%s/pipe%d", args[0], i);
        int made = mkfifo(names[i], 0600);
        CHECK(made == 0 || errno == EEXIST);
    }
    /* Opens for reading and writing, so that neither task waits for the other here. */
    from_other = open(names[me], O_RDWR);
    to_other = open(names[1 - me], O_RDWR);
    CHECK(from_other >= 0 && to_other >= 0);
}

static void by_messages(void)
{
    uint64_t word = 0;
    if (me == 0)
        OK(rg_send(&word, sizeof word, 1, TAG, RG_WORLD));
    OK(rg_recv(&word, sizeof word, 1 - me, TAG, RG_WORLD, NULL));
    if (me == 1)
        OK(rg_send(&word, sizeof word, 0, TAG, RG_WORLD));
}

static void by_pipes(void)
{
    uint64_t word = 0;
    if (me == 0)
        CHECK(write(to_other, &word, sizeof word) == sizeof word);
    CHECK(read(from_other, &word, sizeof word) == sizeof word);
    if (me == 1)
        CHECK(write(to_other, &word, sizeof word) == sizeof word);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns the median time of a message and its answer, in seconds. */
static double median(void (*round)(void))
{
    static double took[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        double begun = rg_time();
        round();
        took[i] = rg_time() - begun;
    }
    qsort(took, ROUNDS, sizeof *took, ascending);
    return took[ROUNDS / 2];
}

static void compare(void)
{
    double messages = 1e9, pipes = 1e9;
    for (int i = 0; i < SAMPLES; i++) {
        double one = median(by_messages), other = median(by_pipes);
        messages = one < messages ? one : messages;
        pipes = other < pipes ? other : pipes;
    }
    /*
     * Spinning before each sleep would take fifty times as long as a pipe, and waiting for a time slice a thousand
     * times.
     */
    if (me == 0) {
        printf("messages %.1f us, pipes %.1f us\n", messages * 1e6, pipes * 1e6);
        CHECK(messages <= MAX_MESSAGES_PER_PIPE * pipes);
    }
}

static void together(void)
{
    open_pipes();
    bind_to_first_core();
    compare();
}

static void beside_a_program(void)
{
    open_pipes();
    bind_to_first_core();
    pid_t pid = -1;
    if (me == 0) {
        pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            for (volatile uint64_t steps = 0;;)
                steps++;
        }
    }
    OK(rg_barrier(RG_WORLD));
    compare();
    if (pid > 0) {
        CHECK(kill(pid, SIGKILL) == 0);
        CHECK(waitpid(pid, NULL, 0) == pid);
    }
}

/* ---- tests that do not wait -------------------------------------------------------------------- */

static uint64_t word;
static rg_request wanted;

static bool by_test(void)
{
    int done;
    OK(rg_test(&wanted, &done, NULL));
    return done;
}

static bool by_look(void)
{
    int done;
    OK(rg_look(wanted, &done, NULL));
    if (done)
        OK(rg_wait(&wanted, NULL));
    return done;
}

static bool by_testall(void)
{
    int done;
    OK(rg_testall(1, &wanted, &done, NULL));
    return done;
}

static bool by_testany(void)
{
    int done, index;
    OK(rg_testany(1, &wanted, &index, &done, NULL));
    return done;
}

static bool by_iprobe(void)
{
    int found;
    OK(rg_iprobe(me - 1, TAG, RG_WORLD, &found, NULL));
    if (found)
        OK(rg_recv(&word, sizeof word, me - 1, TAG, RG_WORLD, NULL));
    return found;
}

static bool by_improbe(void)
{
    int found;
    rg_message message;
    OK(rg_improbe(me - 1, TAG, RG_WORLD, &found, &message, NULL));
    if (found)
        OK(rg_mrecv(&message, &word, sizeof word, NULL));
    return found;
}

/* Returns the number of tests until a message has arrived, as a median of several messages. */
static double median_of_looks(bool (*come)(void), bool request)
{
    static double looks[LOOK_SAMPLES];
    for (int i = 0; i < LOOK_SAMPLES; i++) {
        if (request)
            OK(rg_irecv(&word, sizeof word, me - 1, TAG, RG_WORLD, &wanted));
        looks[i] = 1;
        while (!come())
            looks[i]++;
        OK(rg_send(&word, sizeof word, me - 1, TAG, RG_WORLD));
    }
    qsort(looks, LOOK_SAMPLES, sizeof *looks, ascending);
    return looks[LOOK_SAMPLES / 2];
}

/* Even tasks send and wait for answers; odd tasks test for messages and answer. */
static void looks(void)
{
    static const struct {
        const char *name;
        bool (*come)(void);
        bool request;
    } ways[] = {
        {"rg_test", by_test, true},         {"rg_look", by_look, true},
        {"rg_testall", by_testall, true},   {"rg_testany", by_testany, true},
        {"rg_iprobe", by_iprobe, false},    {"rg_improbe", by_improbe, false},
    };
    bind_to_first_core();
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        OK(rg_barrier(RG_WORLD));
        if (me % 2 == 0) {
            for (int i = 0; i < LOOK_SAMPLES; i++) {
                OK(rg_send(&word, sizeof word, me + 1, TAG, RG_WORLD));
                OK(rg_recv(&word, sizeof word, me + 1, TAG, RG_WORLD, NULL));
            }
            continue;
        }
        double most = median_of_looks(ways[way].come, ways[way].request);
        if (most > MAX_LOOKS)
            FAILED("%s: %.0f looks until a message has come", ways[way].name, most);
    }
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"together", together, false},
        {"beside-a-program", beside_a_program, false},
        {"looks", looks, false},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
