/*
 * Waits for a task that is gone, or never existed. `pvm_absent ways` lists the ways to wait. `pvm_absent WAY` waits in
 * one, and prints after a moment that it still waits, and whether it has slept.
 */
#include <pvm3.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#define ENDED 5
#define MOMENT 300000

static int me, gone;

static long used(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000L + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

static long before;

static void moment_is_over(int number)
{
    (void)number;
    const char *text = used() - before < MOMENT / 2 ? "waits, asleep\n" : "waits, awake\n";
    if (write(1, text, strlen(text)) < 0)
        _exit(EXIT_FAILURE);
    _exit(EXIT_SUCCESS);
}

/* Starts that moment. */
static void begin(void)
{
    struct itimerval moment = {{0, 0}, {0, MOMENT}};
    signal(SIGALRM, moment_is_over);
    before = used();
    setitimer(ITIMER_REAL, &moment, NULL);
}

static int never(void)
{
    return (me & ~0x3ffff) | 0x3fff0;
}

static int recv_of(int tid, int tag)
{
    begin();
    return pvm_recv(tid, tag);
}

static int recv_gone(void) { return recv_of(gone, 1); }
static int recv_never(void) { return recv_of(never(), 1); }
static int recv_daemon(void) { return recv_of(pvm_tidtohost(me), 1); }
static int recv_0(void) { return recv_of(0, 1); }
static int recv_odd(void) { return recv_of(-5, 1); }
static int recv_group(void) { return recv_of(0x40000001, 1); }
static int recv_tag(void) { return recv_of(-1, -7); }

static int recv_among_others(void)
{
    for (int i = 0; i < 40; i++) {
        pvm_initsend(PvmDataDefault);
        pvm_send(me, 1);
    }
    return recv_of(gone, 1);
}

static int recv_without_limit(void)
{
    begin();
    return pvm_trecv(gone, 1, NULL);
}

static int handle(int buffer)
{
    (void)buffer;
    return 0;
}

static int recv_with_handler(void)
{
    pvm_addmhf(-1, 77, -1, handle);
    return recv_of(gone, 1);
}

static int precv_gone(void)
{
    char bytes[10];
    begin();
    return pvm_precv(gone, 1, bytes, sizeof bytes, PVM_BYTE, NULL, NULL, NULL);
}

static int precv_much(void)
{
    static char bytes[100000];
    begin();
    return pvm_precv(gone, 1, bytes, sizeof bytes, PVM_BYTE, NULL, NULL, NULL);
}

static int looks(void)
{
    int tids[] = {gone, never(), 0, -5, 0x40000001, pvm_tidtohost(me)}, sum = 0;
    for (int i = 0; i < 6; i++) {
        struct timeval none = {0, 0}, some = {0, 2000};
        sum = sum * 2 + (pvm_nrecv(tids[i], 1) != 0);
        sum = sum * 2 + (pvm_probe(tids[i], 1) != 0);
        sum = sum * 2 + (pvm_trecv(tids[i], 1, &none) != 0);
        sum = sum * 2 + (pvm_trecv(tids[i], 1, &some) != 0);
    }
    return sum;
}

static int sends(void)
{
    int tids[] = {gone, never()}, answer;
    char bytes[10] = "";
    pvm_initsend(PvmDataDefault);
    answer = pvm_send(gone, 1) | pvm_send(never(), 1) | pvm_mcast(tids, 2, 1);
    return answer | pvm_psend(gone, 1, bytes, sizeof bytes, PVM_BYTE) | pvm_psend(never(), 1, bytes, 10, PVM_BYTE);
}

static int spawn(const char *way);

/* A member has ended: the remaining members wait for it at the barrier. */
static int barrier(void)
{
    pvm_joingroup("absent");
    gone = spawn("member");
    pvm_recv(gone, 1);
    pvm_initsend(PvmDataDefault);
    pvm_send(gone, 2);
    pvm_recv(-1, ENDED);
    begin();
    return pvm_barrier("absent", 2);
}

static const struct way {
    const char *name;
    int (*wait)(void);
} ways[] = {
    {"recv-gone", recv_gone},
    {"recv-never", recv_never},
    {"recv-daemon", recv_daemon},
    {"recv-0", recv_0},
    {"recv-odd", recv_odd},
    {"recv-group", recv_group},
    {"recv-tag", recv_tag},
    {"recv-among-others", recv_among_others},
    {"recv-without-limit", recv_without_limit},
    {"recv-with-handler", recv_with_handler},
    {"precv-gone", precv_gone},
    {"precv-much", precv_much},
    {"looks", looks},
    {"sends", sends},
    {"barrier", barrier},
};

/* Starts a task that reports its end. */
static int spawn(const char *way)
{
    char *arguments[] = {(char *)way, NULL};
    int tid = 0;
    if (pvm_spawn("pvm_absent", arguments, PvmTaskDefault, NULL, 1, &tid) != 1)
        printf("no task: %d\n", tid);
    pvm_notify(PvmTaskExit, ENDED, 1, &tid);
    return tid;
}

static void be_member(void)
{
    int parent = pvm_parent();
    pvm_joingroup("absent");
    pvm_initsend(PvmDataDefault);
    pvm_send(parent, 1);
    pvm_recv(parent, 2);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "ways") == 0) {
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
            printf("%s\n", ways[i].name);
        return EXIT_SUCCESS;
    }
    me = pvm_mytid();
    if (me < 0)
        return EXIT_FAILURE;
    if (strcmp(name, "member") == 0) {
        be_member();
        pvm_exit();
        return EXIT_SUCCESS;
    }
    if (strcmp(name, "end") != 0 && strcmp(name, "barrier") != 0) {
        gone = spawn("end");
        pvm_recv(-1, ENDED);
    }
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(name, ways[i].name) == 0)
            printf("answer %d\n", ways[i].wait());
    pvm_exit();
    return EXIT_SUCCESS;
}
