/*
 * Traces a child, and prints the events about the child's calls: their names, and the meanings and values of their
 * fields. Does not print numbers of tasks and buffers, addresses or times.
 */
#include <stdarg.h>
#include <stdio.h>

#include <pvm3.h>
#include <pvmtev.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#define EVENTS 666
#define OUTPUT 667
#define TEXT 200
#define FIELDS 16

int pvm_reg_tracer(int context, int tag, int out_context, int out_tag, char *mask, int buffer, int options);

extern struct Pvmtevinfo pvmtevinfo[];
extern struct Pvmtevdid pvmtevdidlist[];

/* The traced calls. */
static const int CALLS[] = {
    TEV_MYTID,     TEV_EXIT,     TEV_PARENT,   TEV_SPAWN,    TEV_KILL,        TEV_SENDSIG,  TEV_PSTAT,      TEV_TASKS,
    TEV_NOTIFY,    TEV_CONFIG,   TEV_MSTAT,    TEV_ARCHCODE, TEV_GETOPT,      TEV_SETOPT,   TEV_SEND,       TEV_MCAST,
    TEV_PSEND,     TEV_RECV,     TEV_NRECV,    TEV_TRECV,    TEV_PROBE,       TEV_PRECV,    TEV_NEWCONTEXT, TEV_FREECONTEXT,
    TEV_SETCONTEXT, TEV_GETCONTEXT, TEV_MKBUF, TEV_INITSEND, TEV_FREEBUF,     TEV_GETSBUF,  TEV_GETRBUF,    TEV_SETSBUF,
    TEV_SETRBUF,   TEV_BUFINFO,  TEV_GETMINFO, TEV_SETMINFO, TEV_PKBYTE,      TEV_PKSHORT,  TEV_PKINT,      TEV_PKLONG,
    TEV_PKUSHORT,  TEV_PKUINT,   TEV_PKULONG,  TEV_PKFLOAT,  TEV_PKDOUBLE,    TEV_PKCPLX,   TEV_PKDCPLX,    TEV_PKSTR,
    TEV_UPKBYTE,   TEV_UPKSHORT, TEV_UPKINT,   TEV_UPKLONG,  TEV_UPKUSHORT,   TEV_UPKUINT,  TEV_UPKULONG,   TEV_UPKFLOAT,
    TEV_UPKDOUBLE, TEV_UPKCPLX,  TEV_UPKDCPLX, TEV_UPKSTR,   TEV_JOINGROUP,   TEV_LVGROUP,  TEV_GSIZE,      TEV_GETTID,
    TEV_GETINST,   TEV_BARRIER,  TEV_BCAST,    TEV_REDUCE,   TEV_GATHER,      TEV_SCATTER,  TEV_PUTINFO,    TEV_GETINFO,
    TEV_DELINFO,   TEV_GETMBOXINFO, TEV_INSERT, TEV_LOOKUP,  TEV_DELETE,      TEV_SIBLINGS, TEV_RECVF,      TEV_ADDMHF,
    TEV_DELMHF,    TEV_TICKLE,   TEV_ADDHOSTS, TEV_DELHOSTS, TEV_GETFDS,      TEV_PACKF,    TEV_UNPACKF,    TEV_START_PVMD,
    TEV_REG_RM,    TEV_REG_TASKER, TEV_REG_TRACER,
};

/* ---- the child: calls of every kind ---------------------------------------------------------- */

static void buffers(void)
{
    int id = pvm_mkbuf(PvmDataRaw), sent = pvm_initsend(PvmDataDefault), bytes, tag, from;
    struct pvmminfo info;
    pvm_setsbuf(id);
    pvm_setsbuf(sent);
    pvm_setrbuf(pvm_getrbuf());
    pvm_getsbuf();
    pvm_bufinfo(id, &bytes, &tag, &from);
    pvm_getminfo(id, &info);
    pvm_setminfo(id, &info);
    pvm_freebuf(id);
    pvm_freebuf(id);
    pvm_mkbuf(77);
}

static void packing(int me)
{
    char bytes[4] = "abc", text[8];
    short s = 1;
    int i = 2;
    long l = 3;
    float f[2] = {4, 5};
    double d[2] = {6, 7};
    pvm_initsend(PvmDataDefault);
    pvm_pkbyte(bytes, 4, 1), pvm_pkshort(&s, 1, 1), pvm_pkint(&i, 1, 2), pvm_pklong(&l, 1, 1);
    pvm_pkushort((unsigned short *)&s, 1, 1), pvm_pkuint((unsigned *)&i, 1, 1), pvm_pkulong((unsigned long *)&l, 1, 1);
    pvm_pkfloat(f, 2, 1), pvm_pkdouble(d, 2, 1), pvm_pkcplx(f, 1, 1), pvm_pkdcplx(d, 1, 1), pvm_pkstr("text");
    pvm_pkint(&i, -1, 1);
    pvm_send(me, 5);
    pvm_recv(-1, 5);
    pvm_upkbyte(bytes, 4, 1), pvm_upkshort(&s, 1, 1), pvm_upkint(&i, 1, 2), pvm_upklong(&l, 1, 1);
    pvm_upkushort((unsigned short *)&s, 1, 1), pvm_upkuint((unsigned *)&i, 1, 1);
    pvm_upkulong((unsigned long *)&l, 1, 1), pvm_upkfloat(f, 2, 1), pvm_upkdouble(d, 2, 1), pvm_upkcplx(f, 1, 1);
    pvm_upkdcplx(d, 1, 1), pvm_upkstr(text);
    pvm_upkint(&i, 1, 1);
    pvm_packf("%+ %d %hd", PvmDataDefault, 4, 5);
    pvm_packf("%q");
    pvm_send(me, 5);
    pvm_recv(-1, 5);
    pvm_unpackf("%d", &i);
    pvm_unpackf("%d%d", &i, &i);
}

static int handler(int buffer)
{
    int length, tag, from, number;
    pvm_bufinfo(buffer, &length, &tag, &from);
    pvm_upkint(&number, 1, 1);
    pvm_initsend(PvmDataDefault);
    pvm_getcontext();
    return 0;
}

/*
 * A message handler is called for a message in another context than the current one. The sender is told that context.
 */
static void handled(void)
{
    int context = pvm_newcontext(), handles = pvm_addmhf(-1, 98, context, handler);
    Pvmtmask mask;
    /* PVM's library has handlers of its own, which are called earlier. */
    pvm_gettmask(PvmTaskSelf, mask);
    TEV_MASK_SET(mask, TEV_MHF_INVOKE);
    pvm_settmask(PvmTaskSelf, mask);
    pvm_initsend(PvmDataDefault);
    pvm_pkint(&context, 1, 1);
    pvm_bcast("calls", 14);
    pvm_recv(-1, 97);
    pvm_getcontext();
    TEV_MASK_UNSET(mask, TEV_MHF_INVOKE);
    pvm_settmask(PvmTaskSelf, mask);
    pvm_delmhf(handles);
    pvm_freecontext(context);
}

static void messages(int me)
{
    int number = 1, from, tag, length, tids[2] = {me, me}, context;
    struct timeval limit = {0, 20}, none = {0, 0};
    pvm_initsend(PvmDataDefault);
    pvm_send(me, -7);
    pvm_nrecv(-1, 6);
    pvm_trecv(-1, 6, &limit);
    pvm_trecv(me, 6, &none);
    pvm_probe(me, 6);
    pvm_send(me, 6);
    pvm_send(me, 7);
    pvm_recv(me, 7);
    pvm_probe(me, 6);
    pvm_nrecv(-1, 6);
    pvm_send(me, 7);
    pvm_trecv(-1, 7, NULL);
    pvm_psend(me, 8, &number, 1, PVM_INT);
    pvm_precv(-1, 8, &number, 1, PVM_INT, &from, &tag, &length);
    pvm_psend(me, 8, &number, 1, 99);
    pvm_mcast(tids, 2, 9);
    context = pvm_newcontext();
    pvm_setcontext(context);
    pvm_nrecv(me, 6);
    pvm_setcontext(0);
    pvm_getcontext();
    pvm_freecontext(context);
    pvm_recvf(NULL);
    pvm_delmhf(pvm_addmhf(me, 99, 0, handler));
    pvm_delmhf(-1);
}

static void tasks(int me)
{
    int count, kinds, tids[2] = {0, 0}, *siblings, request[1] = {6}, answers[10];
    char *host = "no-such-host.invalid";
    struct pvmtaskinfo *all;
    struct pvmhostinfo *hosts;
    pvm_spawn("no-such-program", NULL, PvmTaskDefault, "", 2, tids);
    pvm_spawn("no-such-program", NULL, PvmTaskHost, "nowhere", 1, tids);
    pvm_kill(0x40fff);
    pvm_sendsig(0x40fff, 10);
    pvm_pstat(me);
    pvm_pstat(0x40fff);
    pvm_tasks(me, &count, &all);
    pvm_notify(PvmTaskExit, 12, 1, &me);
    pvm_notify(PvmHostAdd, 13, -1, NULL);
    pvm_config(&count, &kinds, &hosts);
    pvm_config(NULL, NULL, NULL);
    pvm_mstat("nowhere");
    pvm_archcode("LINUX64");
    pvm_setopt(PvmRoute, PvmDontRoute);
    pvm_getopt(PvmFragSize);
    pvm_setopt(PvmRoute, 99);
    pvm_siblings(&siblings);
    pvm_tickle(1, request, &count, answers);
    pvm_tickle(0, request, &count, answers);
    pvm_delhosts(&host, 1, &count);
    pvm_addhosts(NULL, 0, NULL);
    pvm_getfds(&siblings);
}

/* Calls of programs that do a daemon's work. They come last. */
static void daemons(void)
{
    char *words[] = {"one", "two"};
    struct pvmhostinfo *host;
    Pvmtmask mask;
    TEV_MASK_INIT(mask);
    pvm_start_pvmd(2, words, 1);
    pvm_reg_tracer(1, 2, 3, 4, mask, 5, 1);
    pvm_reg_rm(&host);
    pvm_reg_tasker();
}

/* The other member of the child's group. */
static int member(void)
{
    int context = 0;
    pvm_joingroup("calls");
    pvm_barrier("calls", 2);
    pvm_recv(-1, 14);
    pvm_upkint(&context, 1, 1);
    pvm_setcontext(context);
    pvm_initsend(PvmDataDefault);
    pvm_pkint(&context, 1, 1);
    pvm_send(pvm_parent(), 98);
    pvm_setcontext(0);
    pvm_send(pvm_parent(), 97);
    return pvm_exit();
}

static void groups(int me)
{
    int sum = 1, all[1], other;
    char *words[] = {"other", NULL};
    pvm_lvgroup("nobody");
    pvm_joingroup("calls");
    pvm_gsize("calls");
    pvm_gettid("calls", 0);
    pvm_getinst("calls", me);
    pvm_gettid("calls", 5);
    pvm_barrier("calls", 1);
    pvm_initsend(PvmDataDefault);
    pvm_bcast("calls", 14);
    pvm_reduce(PvmSum, &sum, 1, PVM_INT, 15, "calls", 0);
    pvm_gather(all, &sum, 1, PVM_INT, 16, "calls", 0);
    pvm_scatter(&sum, all, 1, PVM_INT, 17, "calls", 0);
    pvm_spawn("pvm_calls", words, PvmTaskHost, ".", 1, &other);
    pvm_barrier("calls", 2);
    handled();
    pvm_lvgroup("calls");
}

static void mailboxes(void)
{
    int data, count;
    struct pvmmboxinfo *all;
    pvm_initsend(PvmDataDefault);
    pvm_putinfo("calls", pvm_getsbuf(), PvmMboxDefault);
    pvm_recvinfo("calls", 0, PvmMboxDefault);
    pvm_putinfo("calls at a place", pvm_getsbuf(), PvmMboxMultiInstance | PvmMboxDirectIndex(5));
    pvm_delinfo("calls at a place", 5, PvmMboxDefault);
    pvm_recvinfo("other", 0, PvmMboxDefault);
    pvm_delinfo("calls", 0, PvmMboxDefault);
    pvm_delinfo(NULL, 0, PvmMboxDefault);
    pvm_insert("old calls", 3, 5);
    pvm_lookup("old calls", 3, &data);
    pvm_lookup("old calls", 4, &data);
    pvm_getmboxinfo("old calls", &count, &all);
    pvm_delete("old calls", 3);
}

static int child(void)
{
    int me = pvm_mytid();
    pvm_parent();
    pvm_setopt(PvmAutoErr, 0);
    buffers();
    packing(me);
    messages(me);
    tasks(me);
    groups(me);
    mailboxes();
    daemons();
    pvm_exit();
    return 0;
}

/* ---- the tracer ------------------------------------------------------------------------------- */

/* The meanings and types of the fields, for the begin and the end of each event. */
static struct description {
    int fields, meaning[FIELDS], type[FIELDS];
} known[2][TEV_MAX + 1];

/* Set while the child becomes a task: the library's own calls in that time are not printed. */
static int quiet;

static void say(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    if (!quiet)
        vprintf(format, values);
    va_end(values);
}

static int number(void)
{
    int value = -1;
    pvm_upkint(&value, 1, 1);
    return value;
}

/* Index of the call that is printed. */
static int call;

static int is_private(int meaning)
{
    switch (meaning) {
    case TEV_DID_CC:
        return call == TEV_PROBE || call == TEV_SETCONTEXT;
    case TEV_DID_PDA: case TEV_DID_MB: case TEV_DID_MSB: case TEV_DID_MRB: case TEV_DID_CXN: case TEV_DID_CXS:
    case TEV_DID_CXF: case TEV_DID_FDS: case TEV_DID_RCX: case TEV_DID_MCX: case TEV_DID_CXC: case TEV_DID_CD: case TEV_DID_CR:
        return 1;
    }
    return 0;
}

static void say_number(int meaning, int value)
{
    if ((is_private(meaning) && value > 0) || (value >> 18 == 1 && value != 0x40fff))
        say(" *");
    else
        say(" %d", value);
}

static void field(int meaning, int type)
{
    char text[TEXT];
    int silent = meaning == TEV_DID_TS || meaning == TEV_DID_TU || meaning == TEV_DID_TID || meaning == TEV_DID_TGS ||
                 meaning == TEV_DID_TGU;
    int count = type & TEV_DATA_ARRAY ? number() : 1;
    if (!silent)
        say(" %s:%x", pvmtevdidlist[meaning].did, type);
    if (type & TEV_DATA_ARRAY)
        say("[%d]", count);
    for (int at = 0; at < count; at++) {
        if ((type & ~TEV_DATA_ARRAY) == TEV_DATA_STRING) {
            pvm_upkstr(text);
            say(" \"%s\"", text);
        } else if (silent || meaning == TEV_DID_PDA)
            number();
        else
            say_number(meaning, number());
    }
}

/* Prints the fields of an event after its number, with the descriptions in it or those received earlier. */
static void fields(int mark, int event, int side)
{
    char name[TEXT];
    struct description *all = &known[side][event];
    if (mark == TEV_MARK_EVENT_RECORD) {
        for (int at = 0; at < all->fields; at++)
            field(all->meaning[at], all->type[at]);
        if (!all->fields || number() != TEV_MARK_EVENT_RECORD_END)
            say(" not as described");
        return;
    }
    pvm_upkstr(name);
    if (all->fields || strcmp(name, pvmtevinfo[event].name))
        say(" described again, as %s", name);
    for (int meaning; (meaning = number()) >= 0 && all->fields < FIELDS;) {
        int type = number();
        all->meaning[all->fields] = meaning;
        all->type[all->fields++] = type;
        field(meaning, type);
    }
}

/* Handles one event, and prints it if the child's own code caused it. Returns whether it was the last one. */
static int event(int mark)
{
    static int becoming;
    int event = number();
    int side = event & TEV_EVENT_EXIT ? 1 : 0;
    call = event & ~(TEV_EVENT_ENTRY | TEV_EVENT_EXIT);
    if (call < 0 || call > TEV_MAX)
        return 0;
    if (call == TEV_TIMING || call == TEV_PROFILING) {
        say("%s:", pvmtevinfo[call].name);
        fields(mark, call, side);
        say("\n");
        return 1;
    }
    if (call == event)
        return 0;
    if (call == TEV_MYTID)
        becoming = !side;
    quiet = becoming && call != TEV_MYTID;
    say("%s %s:", pvmtevinfo[call].name, side ? "ends" : "begins");
    fields(mark, call, side);
    say("\n");
    return call == TEV_EXIT;
}

/* Handles a message of one event or, where events are sent together, of several. */
static int events(void)
{
    int ended = 0, mark = number(), several = mark == TEV_MARK_EVENT_BUFFER;
    if (several)
        mark = number();
    while (mark == TEV_MARK_EVENT_DESC || mark == TEV_MARK_EVENT_RECORD) {
        ended |= event(mark);
        mark = several ? number() : 0;
    }
    if (several && mark != TEV_MARK_EVENT_BUFFER_END)
        say("several without an end\n");
    return ended;
}

/* Numeric arguments: how many bytes of events are sent together, and what is traced: all events, times or counts. */
int main(int argc, char **argv)
{
    int asked = argc > 2 ? atoi(argv[2]) : PvmTraceFull;
    Pvmtmask mask;
    char *words[] = {"child", NULL};
    int kid, ended = 0;
    pvm_mytid();
    if (argc > 1 && !strcmp(argv[1], "child"))
        return child();
    if (argc > 1 && !strcmp(argv[1], "other"))
        return member();
    TEV_MASK_INIT(mask);
    for (unsigned at = 0; at < sizeof CALLS / sizeof *CALLS; at++)
        TEV_MASK_SET(mask, CALLS[at]);
    pvm_settmask(PvmTaskChild, mask);
    pvm_reg_tracer(0, EVENTS, 0, OUTPUT, mask, argc > 1 ? atoi(argv[1]) : 0, asked);
    if (pvm_spawn("pvm_calls", words, PvmTaskDefault, NULL, 1, &kid) != 1)
        return EXIT_FAILURE;
    while (!ended) {
        int from, buffer = pvm_recv(-1, EVENTS);
        pvm_bufinfo(buffer, NULL, NULL, &from);
        if (from == kid)
            ended = events();
    }
    pvm_exit();
    return EXIT_SUCCESS;
}
