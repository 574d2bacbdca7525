/*
 * Traces a child and prints the events that it receives. With an argument, this is the child, or merely the child's
 * parent.
 */
#include <stdio.h>

#include <pvm3.h>
#include <pvmtev.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EVENTS 666
#define OUTPUT 667
#define READY 9
#define STATUS 3

int pvm_reg_tracer(int context, int tag, int out_context, int out_tag, char *mask, int buffer, int options);

static void see(const char *who)
{
    Pvmtmask mine, children;
    pvm_gettmask(PvmTaskSelf, mine);
    pvm_gettmask(PvmTaskChild, children);
    printf("%s: events to a task %d as %d in %d, options %d, buffer %d, mask %s, children's %s\n", who,
           pvm_getopt(PvmTraceTid) > 0, pvm_getopt(PvmTraceCode), pvm_getopt(PvmTraceContext),
           pvm_getopt(PvmSelfTraceOptions), pvm_getopt(PvmTraceBuffer), mine, children);
}

static int child(void)
{
    int value = 5, parent = pvm_parent();
    see("child");
    fflush(stdout);
    pvm_initsend(PvmDataTrace);
    pvm_pkint(&value, 1, 1);
    pvm_send(PVM_TRACE_TID, PVM_TRACE_CODE);
    pvm_initsend(PvmDataDefault);
    pvm_send(parent, READY);
    pvm_exit();
    return STATUS;
}

static int start(void)
{
    char *words[] = {"child", NULL};
    int tid = 0, spawned = pvm_spawn("pvm_traced", words, PvmTaskDefault, NULL, 1, &tid);
    printf("spawned: %d\n", spawned);
    pvm_recv(tid, READY);
    return tid;
}

/* Type codes that precede a number in an event. */
enum { MICROSECONDS = 0x6b, AN_INT = 6 };

static int is_now(int word) { return word >> 16 == time(NULL) >> 16; }

/* Prints one trace message, without times and task numbers. */
static void event(int kid)
{
    int bytes, who, word, buffer = pvm_recv(-1, EVENTS);
    struct pvmminfo info;
    pvm_bufinfo(buffer, &bytes, NULL, &who);
    pvm_getminfo(buffer, &info);
    printf("event from %s: %d bytes, encoding %x:", who == kid ? "the child" : "a daemon", bytes, info.enc);
    for (int at = 0, last = 0, before = 0; at < bytes / 4 && at < 25; at++, before = last, last = word) {
        pvm_upkint(&word, 1, 1);
        /* A microseconds value follows the seconds, or a type code that says so. Its value may be small. */
        int micro = is_now(last) || (before == MICROSECONDS && last == AN_INT);
        printf(micro || (word > 0x400 && (word < 0x61000000 || is_now(word))) ? " ." : " %x", word);
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    Pvmtmask mask;
    struct pvmtaskinfo *me;
    int count = 0, kid;
    pvm_mytid();
    if (argc > 1)
        return strcmp(argv[1], "child") ? (start(), pvm_exit(), 0) : child();
    TEV_MASK_INIT(mask);
    TEV_MASK_SET(mask, TEV_USER_DEFINED);
    pvm_settmask(PvmTaskChild, mask);
    printf("registered: %d\n", pvm_reg_tracer(0, EVENTS, 0, OUTPUT, mask, 0, 1));
    printf("no more: %d\n", pvm_reg_tracer(0, EVENTS, 0, OUTPUT, mask, 0, 1));
    printf("registered: %d\n", pvm_reg_tracer(0, EVENTS, 0, OUTPUT, mask, 0, 1));
    pvm_tasks(pvm_mytid(), &count, &me);
    printf("flags: %x\n", me->ti_flag);
    see("tracer");
    fflush(stdout);
    pvm_catchout(stdout);
    kid = start();
    fflush(stdout);
    for (int i = 0; i < 4; i++)
        event(kid);
    pvm_exit();
    return EXIT_SUCCESS;
}
