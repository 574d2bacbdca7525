/*
 * Tasks that call pvm_exit while very many of their messages have found no room. The time to send them must grow with
 * their number, and not with its square. The program measures processor time of both sides, because the machine may be
 * busy.
 *
 *   pvm_drain                     begins
 *   pvm_drain FILE COUNT          sends COUNT messages, reports that through a named pipe, and exits
 */
#define _XOPEN_SOURCE 700
#include <pvm3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                               \
    do {                                                                               \
        if (!(condition)) {                                                            \
            fprintf(stderr, "pvm_drain.c:%d: not so: %s\n", __LINE__, #condition);     \
            exit(1);                                                                   \
        }                                                                              \
    } while (0)

enum { DATA = 1, MESSAGE_COUNT = 50000, TIMES = 4, LARGER_COUNT = MESSAGE_COUNT * TIMES };

static double processor_time(void)
{
    struct timespec time;
    CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void send_and_exit(const char *file, int count)
{
    int parent = pvm_parent();
    CHECK(parent > 0);
    for (int i = 0; i < count; i++)
        CHECK(pvm_initsend(PvmDataRaw) >= 0 && pvm_pkint(&i, 1, 1) == 0 && pvm_send(parent, DATA) == 0);
    /* Blocks until the parent opens the pipe, which makes no PVM call before that. */
    FILE *sent = fopen(file, "w");
    CHECK(sent != NULL);
    double before = processor_time();
    CHECK(pvm_exit() == 0);
    CHECK(fprintf(sent, "%.9f\n", processor_time() - before) > 0 && fclose(sent) == 0);
}

/* Returns the processor time that COUNT messages from an exiting task to this one take. */
static double drained(int count)
{
    char file[64], number[16];
    snprintf(file, sizeof file, "/tmp/pvm-drain-%d-%d", (int)getpid(), count);
    snprintf(number, sizeof number, "%d", count);
    CHECK(mkfifo(file, 0600) == 0);
    char *arguments[] = {file, number, NULL};
    int sender = 0;
    CHECK(pvm_spawn("pvm_drain", arguments, PvmTaskDefault, "", 1, &sender) == 1);
    FILE *sent = fopen(file, "r");
    CHECK(sent != NULL);
    double before = processor_time(), theirs = -1;
    for (int i = 0; i < count; i++) {
        int got = -1;
        CHECK(pvm_recv(sender, DATA) > 0 && pvm_upkint(&got, 1, 1) == 0 && got == i);
    }
    double ours = processor_time() - before;
    CHECK(fscanf(sent, "%lf", &theirs) == 1 && theirs >= 0);
    CHECK(fclose(sent) == 0 && unlink(file) == 0);
    return ours + theirs;
}

int main(int argc, char **argv)
{
    CHECK(pvm_mytid() > 0);
    if (argc == 3) {
        send_and_exit(argv[1], atoi(argv[2]));
        return 0;
    }
    double few = drained(MESSAGE_COUNT), many = drained(LARGER_COUNT);
    /* Halfway, in the exponent, between linear and quadratic. */
    if (many > 2 * TIMES * few)
        printf("%d messages take %.3f s, %d take %.3f s\n", MESSAGE_COUNT, few, LARGER_COUNT, many);
    else
        printf("as their number\n");
    CHECK(pvm_exit() == 0);
    return 0;
}
