/*
 * The memory of long messages while tasks start and end, are killed, or do not receive: it must not grow, and no
 * message may be lost. Without an argument this is the main task; otherwise a helper.
 */
#define _XOPEN_SOURCE 700
#include <pvm3.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHECK(condition)                                                                   \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            fprintf(stderr, "pvm_long_lives.c:%d: not so: %s\n", __LINE__, #condition);    \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

enum { LONG = 1 << 20, BYTES = LONG * (int)sizeof(int), DATA = 2, BACK = 3, ENDED = 4, ROUNDS = 40 };
/* Limit of the memory in use: enough for a few messages, but not for one of every sender. */
enum { MAX_MIB = 160 };

static int numbers[LONG], got[LONG];

/* Returns the memory shared by the machine's tasks, in MiB. */
static long in_use(void)
{
    for (int fd = 3; fd < 256; fd++) {
        char link[32], name[64] = {0};
        struct stat stat;
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        if (readlink(link, name, sizeof name - 1) > 0 && strncmp(name, "/memfd:", 7) == 0 && fstat(fd, &stat) == 0 &&
            stat.st_size > 1 << 20)
            return (long)(stat.st_blocks >> 11);
    }
    CHECK(!"the memory of the machine is a descriptor of this task");
    return 0;
}

static void fill(int seed)
{
    for (int i = 0; i < LONG; i++)
        numbers[i] = seed + i;
}

static void send_numbers(int to)
{
    CHECK(pvm_initsend(PvmDataRaw) > 0 && pvm_pkint(numbers, LONG, 1) == 0 && pvm_send(to, DATA) == 0);
}

static void check_numbers(int seed)
{
    memset(got, 0, sizeof got);
    CHECK(pvm_upkint(got, LONG, 1) == 0);
    for (int i = 0; i < LONG; i++)
        CHECK(got[i] == seed + i);
}

static void helper(const char *what)
{
    int parent = pvm_parent(), value = 0;
    if (strcmp(what, "sends") == 0) {
        fill(77);
        send_numbers(parent);
        raise(SIGKILL);
    } else if (strcmp(what, "holds") == 0) {
        CHECK(pvm_recv(parent, DATA) > 0);
        pvm_psend(parent, BACK, &value, 1, PVM_INT);
        raise(SIGKILL);
    } else if (strcmp(what, "takes") == 0) {
        int rounds;
        pvm_precv(parent, BACK, &rounds, 1, PVM_INT, NULL, NULL, NULL);
        for (int round = 0; round < rounds; round++) {
            CHECK(pvm_recv(parent, DATA) > 0);
            CHECK(pvm_upkint(got, 1, 1) == 0 && got[0] == round);
        }
        pvm_psend(parent, BACK, &value, 1, PVM_INT);
    }
    pvm_exit();
}

static int spawn(const char *what)
{
    static char name[] = "pvm_long_lives";
    char word[16], *words[] = {word, NULL};
    int tid;
    snprintf(word, sizeof word, "%s", what);
    CHECK(pvm_spawn(name, words, PvmTaskDefault, NULL, 1, &tid) == 1);
    return tid;
}

static void await_end(int tid)
{
    CHECK(pvm_notify(PvmTaskExit, ENDED, 1, &tid) == 0);
    CHECK(pvm_recv(-1, ENDED) > 0);
}

static void take_back(int from)
{
    int value;
    CHECK(pvm_precv(from, BACK, &value, 1, PVM_INT, NULL, NULL, NULL) == 0);
}

int main(int count, char **arguments)
{
    CHECK(pvm_mytid() > 0);
    if (count > 1) {
        helper(arguments[1]);
        return 0;
    }
    /* Senders that are killed after sending: their messages arrive, and their memory is reused. */
    for (int round = 0; round < ROUNDS; round++) {
        int tid = spawn("sends");
        await_end(tid);
        CHECK(pvm_recv(tid, DATA) > 0);
        check_numbers(77);
    }
    CHECK(in_use() < MAX_MIB);
    /* Receivers that are killed while they hold the message. */
    for (int round = 0; round < ROUNDS; round++) {
        int tid = spawn("holds");
        fill(round);
        send_numbers(tid);
        take_back(tid);
        await_end(tid);
    }
    CHECK(in_use() < MAX_MIB);
    /* The receiver does not receive yet: no send blocks, and the memory stays bounded. */
    int tid = spawn("takes"), rounds = 100;
    for (int round = 0; round < rounds; round++) {
        numbers[0] = round;
        send_numbers(tid);
    }
    CHECK(in_use() < 2 * MAX_MIB);
    pvm_psend(tid, BACK, &rounds, 1, PVM_INT);
    take_back(tid);
    /* One message after the other. */
    tid = spawn("takes"), rounds = 3000;
    pvm_psend(tid, BACK, &rounds, 1, PVM_INT);
    for (int round = 0; round < rounds; round++) {
        CHECK(pvm_initsend(PvmDataRaw) > 0 && pvm_pkint(&round, 1, 1) == 0);
        CHECK(pvm_pkint(numbers, 30000, 1) == 0 && pvm_send(tid, DATA) == 0);
    }
    take_back(tid);
    CHECK(in_use() < 2 * MAX_MIB);
    /* A message that was received before pvm_exit can be read afterwards. */
    fill(5);
    send_numbers(pvm_mytid());
    CHECK(pvm_recv(-1, DATA) > 0);
    pvm_exit();
    check_numbers(5);
    printf("all is well\n");
    return 0;
}
