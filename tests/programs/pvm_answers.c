/*
 * Calls all query functions of the PVM library it runs on, with valid and invalid arguments, and prints the results.
 * Prints no task numbers, so the output must be the same on every library.
 */
#include <pvm3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#define NEVER_WAS 0x40eee /* task number that was never assigned */
#define NO_HOST 0x800000  /* host number that does not exist */

static char *self; /* path of this program */
static int me;

static void say(const char *what, int count, ...)
{
    va_list values;
    va_start(values, count);
    printf("%s:", what);
    for (int i = 0; i < count; i++)
        printf(" %d", va_arg(values, int));
    printf("\n");
    va_end(values);
}

/* Starts a copy of this program that waits for a message. */
static int child(void)
{
    char *arguments[] = {"wait", NULL};
    int tid = 0;
    say("spawn", 1, pvm_spawn(self, arguments, PvmTaskDefault, NULL, 1, &tid));
    return tid;
}

static void options(void)
{
    for (int option = 0; option <= 26; option++)
        say("option", 2, option, pvm_getopt(option));
    say("unknown option", 1, pvm_setopt(99, 1));
    say("route", 1, pvm_setopt(PvmRoute, PvmRouteDirect));
    say("routed", 1, pvm_getopt(PvmRoute));
    say("no route", 1, pvm_setopt(PvmRoute, 9));
    say("fragment", 1, pvm_setopt(PvmFragSize, 10));
    say("output", 1, pvm_setopt(PvmOutputTid, me));
    say("to me", 1, pvm_getopt(PvmOutputTid) == me);
    say("nobody's output", 1, pvm_setopt(PvmOutputTid, 12345));
    say("no output", 1, pvm_setopt(PvmOutputTid, 0) == me);
}

static void contexts(void)
{
    int made = pvm_newcontext(), other = pvm_newcontext();
    say("new contexts", 2, made > 0, made != other);
    say("free", 1, pvm_freecontext(made));
    say("free again", 1, pvm_freecontext(made));
    int next = pvm_newcontext();
    say("not the one just freed", 1, next != made);
    say("free the next", 1, pvm_freecontext(next));
    say("free another's", 1, pvm_freecontext(777777));
    say("set", 1, pvm_setcontext(other));
    say("it is set", 1, pvm_getcontext() == other);
    say("set back", 1, pvm_setcontext(0) == other);
    say("set a strange one", 1, pvm_setcontext(-1));
    say("and back", 1, pvm_setcontext(0));
    pvm_freecontext(other);
}

static void spawning(void)
{
    int tids[2] = {0, 0};
    int count = pvm_spawn("no_such_program", NULL, PvmTaskDefault, NULL, 2, tids);
    say("no program", 3, count, tids[0], tids[1]);
    count = pvm_spawn(self, NULL, PvmTaskHost, "nohost", 2, tids);
    say("no host", 3, count, tids[0], tids[1]);
    count = pvm_spawn(self, NULL, PvmTaskArch, "NOARCH", 1, tids);
    say("no architecture", 2, count, tids[0]);
    count = pvm_spawn(self, NULL, PvmTaskHost, NULL, 1, tids);
    say("no name of a host", 2, count, tids[0]);
    say("no task", 1, pvm_spawn(self, NULL, PvmTaskDefault, NULL, 0, tids));
    count = pvm_spawn(self, NULL, PvmTaskHost | PvmHostCompl, ".", 1, tids);
    say("no other host", 2, count, tids[0]);
}

/* Checks a notification. */
static void notified(const char *what, int tag, int about)
{
    struct timeval patience = {20, 0};
    int buffer = pvm_trecv(-1, tag, &patience), bytes = 0, its_tag = 0, from = 0, value = 0;
    struct pvmminfo info;
    if (buffer <= 0) {
        say(what, 1, buffer);
        return;
    }
    pvm_bufinfo(buffer, &bytes, &its_tag, &from);
    pvm_upkint(&value, 1, 1);
    pvm_getminfo(buffer, &info);
    say(what, 7, bytes, its_tag, from, value == about, info.enc, info.ctx, info.dst == me);
}

static void ends(void)
{
    int tid = child(), gone = NEVER_WAS, host = pvm_tidtohost(tid), no_host = NO_HOST;
    say("runs", 5, pvm_pstat(tid), pvm_pstat(me), pvm_pstat(gone), pvm_pstat(0), pvm_pstat(host));
    say("notify", 1, pvm_notify(PvmTaskExit, 77, 1, &tid));
    say("notify of nonsense", 2, pvm_notify(9, 77, 1, &tid), pvm_notify(PvmTaskExit, 77, 1, &host));
    say("notify of nobody", 1, pvm_notify(PvmTaskExit, 78, 1, &gone));
    notified("nobody has ended", 78, gone);
    say("notify of no host", 1, pvm_notify(PvmHostDelete, 80, 1, &no_host));
    notified("no host has gone", 80, no_host);
    say("notify of a host", 1, pvm_notify(PvmHostDelete, 79, 1, &host));
    say("not any more", 1, pvm_notify(PvmHostDelete | PvmNotifyCancel, 79, 1, &host));
    notified("as if it had gone", 79, host);
    say("notify of hosts", 1, pvm_notify(PvmHostAdd, 81, -1, NULL));
    say("no more", 1, pvm_notify(PvmHostAdd | PvmNotifyCancel, 81, -1, NULL));
    say("kill", 1, pvm_kill(tid));
    notified("it has ended", 77, tid);
    say("kill it again", 2, pvm_kill(tid), pvm_sendsig(tid, 15));
    say("kill nonsense", 2, pvm_kill(0), pvm_kill(host));
    say("no signal", 1, pvm_sendsig(me, 9999));
    pvm_initsend(PvmDataDefault);
    say("send to it", 1, pvm_send(tid, 1));
    say("send to nonsense", 3, pvm_send(0, 1), pvm_send(host, 1), pvm_send(me, -5));
    say("receive from it", 1, pvm_nrecv(tid, 1));
    int count = -1;
    struct pvmtaskinfo *tasks;
    say("ask about it", 1, pvm_tasks(tid, &count, &tasks));
}

static void messages(void)
{
    struct timeval never = {-1, 0};
    int nonsense = 0, value = 3;
    say("to nobody", 3, pvm_mcast(&nonsense, 1, 1), pvm_mcast(NULL, 0, 1), pvm_mcast(&me, -1, 1));
    say("to several that are me", 1, pvm_mcast(&me, 1, 99));
    say("nothing came", 1, pvm_nrecv(-1, 99));
    say("from nonsense", 2, pvm_nrecv(0, 1), pvm_nrecv(-1, -2));
    say("no time", 1, pvm_trecv(-1, 1, &never));
    say("nothing is there", 1, pvm_probe(-1, -1));
    pvm_initsend(PvmDataDefault);
    pvm_pkint(&value, 1, 1);
    say("to myself", 1, pvm_send(me, 5));
    int seen = 0;
    while (seen == 0)
        seen = pvm_probe(-1, 5);
    say("what was seen came", 1, pvm_recv(-1, -1) == seen);
}

static void at_once(void)
{
    double numbers[4] = {1, 2, 3, 4};
    char text[8] = "text";
    int from = 0, tag = 0, length = 0, value = 42;
    say("text at once", 1, pvm_psend(me, 6, text, 5, PVM_STR));
    say("four", 1, pvm_psend(me, 6, numbers, 4, PVM_DOUBLE));
    say("two of them", 1, pvm_precv(-1, 6, numbers, 2, PVM_DOUBLE, &from, &tag, &length));
    say("told", 3, from == me, tag, length);
    say("one", 1, pvm_psend(me, 6, numbers, 1, PVM_DOUBLE));
    say("into four", 1, pvm_precv(-1, -1, numbers, 4, PVM_DOUBLE, NULL, NULL, &length));
    say("told", 1, length);
    say("nonsense", 2, pvm_psend(me, 7, numbers, -1, PVM_DOUBLE), pvm_psend(me, 7, numbers, 1, 99));
    say("nothing", 1, pvm_precv(me, 7, numbers, 0, PVM_DOUBLE, NULL, NULL, &length));
    pvm_initsend(PvmDataDefault);
    pvm_pkint(&value, 1, 1);
    pvm_send(me, 8);
    say("packed", 1, pvm_precv(-1, 8, &value, 1, PVM_INT, NULL, NULL, &length));
    say("told", 2, value, length);
}

static void entries(const char *pattern)
{
    struct pvmmboxinfo *classes;
    int count = -1;
    say("names", 1, pvm_getmboxinfo((char *)pattern, &count, &classes));
    say("so many", 1, count);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < classes[i].mi_nentries; k++)
            printf("  %s %d %d %d\n", classes[i].mi_name, classes[i].mi_indices[k],
                   classes[i].mi_owners[k] == me, classes[i].mi_flags[k]);
}

static void mailboxes(void)
{
    int value = 42;
    pvm_initsend(PvmDataDefault);
    pvm_pkint(&value, 1, 1);
    int buffer = pvm_getsbuf();
    say("put", 1, pvm_putinfo("a", buffer, PvmMboxDefault));
    say("put again", 1, pvm_putinfo("a", buffer, PvmMboxDefault));
    say("put beside", 1, pvm_putinfo("a", buffer, PvmMboxMultiInstance));
    say("put", 1, pvm_putinfo("m", buffer, PvmMboxMultiInstance));
    say("put beside", 1, pvm_putinfo("m", buffer, PvmMboxMultiInstance));
    say("put without a name", 1, pvm_putinfo(NULL, buffer, PvmMboxDefault));
    entries("a");
    entries("m");
    int got = pvm_recvinfo("a", 0, PvmMboxDefault);
    struct pvmminfo info;
    pvm_setrbuf(got);
    value = 0;
    pvm_upkint(&value, 1, 1);
    pvm_getminfo(got, &info);
    say("got", 5, got > 0, value, info.src == me, info.tag, info.ctx);
    say("not there", 1, pvm_recvinfo("none", 0, PvmMboxDefault));
    say("no such index", 2, pvm_recvinfo("a", 3, PvmMboxDefault), pvm_recvinfo("a", -1, PvmMboxDefault));
    say("the first from there", 1, pvm_recvinfo("m", 1, PvmMboxFirstAvail) > 0);
    say("take", 1, pvm_recvinfo("m", 0, PvmMboxReadAndDelete) > 0);
    entries("m");
    say("delete", 1, pvm_delinfo("a", 0, 0));
    say("delete again", 1, pvm_delinfo("a", 0, 0));
    say("insert", 1, pvm_insert("i", -1, 5));
    say("insert", 1, pvm_insert("i", -1, 6));
    say("insert there", 1, pvm_insert("i", 4, 7));
    say("insert there again", 1, pvm_insert("i", 4, 8));
    entries("i");
    int at = pvm_lookup("i", -1, &value);
    say("look up", 2, at, value);
    at = pvm_lookup("i", 1, &value);
    say("look up there", 2, at, value);
    say("look up nowhere", 1, pvm_lookup("i", 9, &value));
    for (int i = 0; i < 5; i++)
        say("delete", 1, pvm_delete("i", i));
    say("insert nowhere", 1, pvm_insert("i", -2, 5));
}

static void machine(void)
{
    struct pvmhostinfo *hosts = NULL;
    struct pvmtaskinfo *tasks = NULL;
    struct timeval clock, delta;
    int count = 0, architectures = 0, *siblings = NULL, *files = NULL;
    int host = pvm_tidtohost(me), told = pvm_config(&count, &architectures, &hosts);
    say("hosts", 4, told, count, architectures, hosts[0].hi_tid == host);
    printf("%s\n", hosts[0].hi_arch);
    say("it", 2, hosts[0].hi_speed, hosts[0].hi_dsig);
    say("is there", 2, pvm_mstat(hosts[0].hi_name), pvm_mstat("nohost"));
    say("without a name", 3, pvm_mstat(""), pvm_export(""), pvm_unexport(""));
    say("kinds", 2, pvm_archcode(hosts[0].hi_arch), pvm_archcode("NOARCH"));
    say("clocks", 2, pvm_hostsync(host, &clock, &delta), pvm_hostsync(NO_HOST, &clock, &delta));
    say("hosts of nonsense", 2, pvm_tidtohost(0), pvm_tidtohost(-1));
    say("tasks of a host", 1, pvm_tasks(host, &count, &tasks));
    say("tasks of no host", 1, pvm_tasks(NO_HOST, &count, &tasks));
    say("me", 1, pvm_tasks(me, &count, &tasks));
    say("I am", 5, count, tasks[0].ti_tid == me, tasks[0].ti_ptid, tasks[0].ti_host == host, tasks[0].ti_flag);
    printf("[%s]\n", tasks[0].ti_a_out);
    say("siblings", 1, pvm_siblings(&siblings));
    say("I am one", 1, siblings[0] == me);
    say("descriptors", 1, pvm_getfds(&files));
    say("begin another", 1, pvm_start_pvmd(0, NULL, 1));
    say("handlers", 2, pvm_delmhf(-1), pvm_delmhf(12345));
    printf("%s\n", pvm_version());
}

int main(int argc, char **argv)
{
    me = pvm_mytid();
    self = argv[0];
    if (argc > 1) {
        pvm_recv(-1, -1);
        pvm_exit();
        return EXIT_SUCCESS;
    }
    say("me", 2, me > 0, pvm_parent());
    pvm_setopt(PvmAutoErr, 0);
    options();
    contexts();
    spawning();
    ends();
    messages();
    at_once();
    mailboxes();
    machine();
    say("exit", 1, pvm_exit());
    say("and again", 1, pvm_mytid() != me);
    say("still", 1, pvm_parent());
    pvm_exit();
    return EXIT_SUCCESS;
}
