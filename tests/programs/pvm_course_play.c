/* Carries out a task's steps of a plan, with a line for the result of each. */
#define _GNU_SOURCE
#include "pvm_course.h"
#include "pvm_course_odd.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_SECONDS = 60, VICTIM_TAG = 5000 };

int contexts[CONTEXTS], wire;
static int victims[VICTIMS];
static const char *program_name;
static const struct plan *the_plan;
static int handled_count, handler;
static uint32_t handled_sum;
static int wanted_tag, options_before[30];

static const char *const group_names[GROUPS] = {"first", "second group", "3"};

static struct timeval patience(void)
{
    struct timeval time = {MAX_SECONDS, 0};
    return time;
}

static int context_index(int context)
{
    for (int at = 0; at < CONTEXTS; at++)
        if (contexts[at] == context)
            return at;
    return -1;
}

void say_tid(int tid)
{
    for (int task = 0; task < MAX_TASKS; task++)
        if (tids[task] == tid) {
            say(" #%d", task);
            return;
        }
    for (int at = 0; at < VICTIMS; at++)
        if (tid > 0 && victims[at] == tid) {
            say(" v%d", at);
            return;
        }
    if (tid == pvm_tidtohost(own_tid))
        say(" host");
    else if (tid > 0 && tid & 0x40000000)
        say(" several");
    else if (tid & 0x80000000)
        say(" daemon %x", (unsigned)tid);
    else
        say(" %d", tid);
}

/* Runs a call in the context that the tasks use for themselves. */
static void send_on_wire(int to, int tag, const int *numbers, int count)
{
    int before = pvm_setcontext(wire), none = 0;
    pvm_psend(tids[to], tag, (char *)(count ? numbers : &none), count ? count : 1, PVM_INT);
    pvm_setcontext(before);
}

static void receive_on_wire(int from, int tag, int *numbers, int count)
{
    int before = pvm_setcontext(wire), none;
    pvm_precv(tids[from], tag, (char *)(count ? numbers : &none), count ? count : 1, PVM_INT, NULL, NULL, NULL);
    pvm_setcontext(before);
}

/* Prints a buffer; destination and tag only if it was sent. */
static void describe_some(int buffer, int sent)
{
    int length = -1, tag = -1, from = -1;
    struct pvmminfo info;
    memset(&info, 0, sizeof info);
    int code = pvm_bufinfo(buffer, &length, &tag, &from);
    say(" %d from", code);
    say_tid(from);
    code = pvm_getminfo(buffer, &info);
    say(" length %d info %d %d %x %d", length, code, info.len == length, info.enc, info.wid);
    say_tid(info.src);
    if (!sent)
        return;
    say(" tag %d %d in %d to", tag, info.tag, context_index(info.ctx));
    say_tid(info.dst);
}

static void describe(int buffer)
{
    describe_some(buffer, 1);
}

static void send_step(const struct step *step)
{
    int encoding = step->any_tag, own = step->any_source == 1, buffer = 0, before = 0;
    int to[MAX_TASKS + 1], count = step->count;
    for (int at = 0; at < count; at++)
        to[at] = tids[step->others[at]];
    if (step->how == 2) {
        say(" psend %d", send_single(step->seed, to[0], step->tag));
        return;
    }
    if (own) {
        buffer = pvm_mkbuf(encoding);
        before = pvm_setsbuf(buffer);
        say(" mkbuf %d", buffer > 0);
    } else {
        forget(pvm_getsbuf());
        say(" init %d", pvm_initsend(encoding) > 0);
    }
    pack_script(step->seed, encoding);
    if (step->how == 0)
        say(" send %d", pvm_send(to[0], step->tag));
    else if (step->how == 1)
        say(" mcast %d", pvm_mcast(to, count, step->tag));
    else
        say(" bcast %d", pvm_bcast((char *)group_names[step->group], step->tag));
    describe_some(pvm_getsbuf(), count > (step->how == 1 && step->others[0] == me));
    if (own) {
        say(" back %d", pvm_setsbuf(before) == buffer);
        say(" free %d", pvm_freebuf(buffer));
    }
}

static void again_step(const struct step *step)
{
    say(" send %d", pvm_send(tids[step->other], step->tag));
    describe(pvm_getsbuf());
}

static void forward_step(const struct step *step)
{
    int received = pvm_getrbuf(), before = pvm_setsbuf(received);
    say(" send %d", pvm_send(tids[step->other], step->tag));
    describe(pvm_getsbuf());
    pvm_setsbuf(before);
    say(" %d", pvm_setrbuf(received));
}

/* Receives the message in one of several ways, which frees the previous receive buffer. */
static int receive_some(const struct step *step, int from, int tag)
{
    struct timeval limit = patience();
    int buffer = 0, seen = 0;
    forget_received();
    switch (step->how) {
    case 1:
        while (buffer == 0)
            buffer = pvm_nrecv(from, tag);
        break;
    case 2:
        buffer = pvm_trecv(from, tag, &limit);
        break;
    case 4:
    case 5:
        while (seen == 0)
            seen = pvm_probe(from, tag);
        describe(seen);
        buffer = pvm_recv(from, tag);
        say(" probed %d", buffer == seen);
        break;
    default:
        buffer = pvm_recv(from, tag);
    }
    say(" got %d current %d", buffer > 0 ? 1 : buffer, pvm_getrbuf() == buffer);
    return buffer;
}

static void receive_step(const struct step *step)
{
    const struct message *message = &the_plan->message[step->message];
    int from = step->any_source ? -1 : tids[step->other], tag = step->any_tag ? -1 : step->tag;
    if (message->single && step->how == 3) {
        receive_single(message->script, from, tag);
        return;
    }
    wanted_tag = step->tag;
    int buffer = receive_some(step, from, tag), length = 0;
    if (buffer <= 0)
        return;
    describe(buffer);
    pvm_bufinfo(buffer, &length, NULL, NULL);
    if (message->single)
        unpack_all_numbers(length);
    else
        unpack_script(message->script, message->encoding, step->seed);
    /* The buffer is kept. */
    if (step->how == 6 && keep(buffer)) {
        int none = pvm_setrbuf(0);
        say(" kept %d now %d", none == buffer, pvm_getrbuf());
    }
}

static void look_step(const struct step *step)
{
    struct timeval now = {0, 0}, soon = {0, 1000};
    int from = step->any_source ? -1 : tids[step->other], tag = step->any_tag ? -1 : step->tag;
    forget_received();
    switch (step->how) {
    case 0: say(" nrecv %d", pvm_nrecv(from, tag)); break;
    case 1: say(" probe %d", pvm_probe(from, tag)); break;
    case 2: say(" trecv %d", pvm_trecv(from, tag, &now)); break;
    default: say(" trecv %d", pvm_trecv(from, tag, &soon)); break;
    }
}

static void question_step(const struct step *step)
{
    struct pvmtaskinfo *tasks = NULL;
    int tid = tids[step->other], count = -1, *siblings = NULL;
    switch (step->how % 10) {
    case 0: say(" pstat %d", pvm_pstat(tid)); break;
    case 1:
        say(" tasks %d", pvm_tasks(tid, &count, &tasks));
        say(" %d", count);
        if (count == 1) {
            say_tid(tasks[0].ti_tid);
            say_tid(tasks[0].ti_ptid);
            say_tid(tasks[0].ti_host);
            /* PVM may not know yet of a task that it has just started. */
            enum { CONNECTED = 4 };
            say(" %x %s %d", tasks[0].ti_flag & ~CONNECTED, tasks[0].ti_a_out, tasks[0].ti_pid > 0);
        }
        break;
    case 2:
        count = pvm_siblings(&siblings);
        say(" siblings %d", count);
        for (int at = 0; at < count; at++)
            say_tid(siblings[at]);
        break;
    case 3:
        say(" parent");
        say_tid(pvm_parent());
        break;
    case 4:
        say(" host");
        say_tid(pvm_tidtohost(tid));
        break;
    case 5:
        say(" tid");
        say_tid(pvm_mytid());
        break;
    case 6: say(" context %d", context_index(pvm_getcontext())); break;
    case 7:
        count = pvm_newcontext();
        say(" context %d %d", count > 0, context_index(count));
        /* Freed only once: the number may belong to another task's context by now. */
        say(" %d", pvm_freecontext(count));
        break;
    case 8: say(" signal %d", pvm_sendsig(tid, 0)); break;
    default: {
        struct pvmhostinfo *hosts = NULL;
        int architectures = -1;
        say(" config %d", pvm_config(&count, &architectures, &hosts));
        say(" %d %d", count, architectures);
    }
    }
}

static void context_step(const struct step *step)
{
    say(" was %d", context_index(pvm_setcontext(contexts[step->count])));
}

static void option_step(const struct step *step)
{
    /* Options without side effects. PvmAutoErr and similar ones are covered by other tests. */
    static const int known[] = {PvmRoute, PvmDebugMask, PvmFragSize, PvmSelfTraceTid, PvmSelfTraceCode,
                                PvmPollType, PvmPollTime, PvmTraceTid, PvmTraceCode, PvmOutputCode,
                                PvmOutputContext, PvmTraceContext, PvmSelfTraceContext, PvmShowTids, PvmResvTids};
    static const int values[] = {0, 1, 2, 3, 4, 5, -1, 100, 4096, 1000000, INT32_MAX, INT32_MIN};
    uint64_t state = step->seed;
    int option = known[random_below(&state, 15)], value = values[random_below(&state, 12)];
    if (option == PvmRoute || option == PvmDebugMask || option == PvmSelfTraceTid || option == PvmTraceTid)
        value = value > 0 && value < 5 ? 1 : -value;
    if (option == PvmDebugMask)
        value = 0;
    if (option == PvmRoute && value != PvmDontRoute && value >= 0)
        value = 9;
    say(" %d is %d", option, pvm_getopt(option));
    if (option == PvmResvTids || option == PvmSelfTraceTid || option == PvmTraceTid)
        return;
    say(" set %d: %d", value, pvm_setopt(option, value));
    say(" is %d", pvm_getopt(option));
}

static int by_name(const void *one, const void *other)
{
    const struct pvmmboxinfo *a = one, *b = other;
    return strcmp(a->mi_name, b->mi_name);
}

/* Names are returned in an order that is not fixed, and PVM's group server has one as well. */
static void mailbox_entries(const char *pattern)
{
    struct pvmmboxinfo *classes = NULL;
    int count = -1;
    say(" names like %s %d", pattern, pvm_getmboxinfo((char *)pattern, &count, &classes));
    if (count > 0)
        qsort(classes, (size_t)count, sizeof *classes, by_name);
    for (int i = 0; i < count; i++) {
        if (classes[i].mi_name[0] == '#' || strcmp(classes[i].mi_name, "pvmgs") == 0)
            continue;
        say(" %s:", classes[i].mi_name);
        for (int k = 0; k < classes[i].mi_nentries; k++) {
            say(" %d", classes[i].mi_indices[k]);
            say_tid(classes[i].mi_owners[k]);
            /* On PVM, the requested index is stored above the flags. */
            say(" %x", classes[i].mi_flags[k] & PvmMboxMaxFlag);
        }
    }
}

/* All insertions under the last name request an index. */
static const char *const mailbox_names[] = {"box", "box2", "a name with blanks", "other"};

static void mailbox_put(uint64_t state)
{
    unsigned which = random_below(&state, 4);
    const char *name = mailbox_names[which];
    int flags = 0, number = (int)random_below(&state, 1000), before = pvm_getsbuf();
    if (random_below(&state, 2))
        flags |= PvmMboxMultiInstance;
    if (random_below(&state, 3) == 0)
        flags |= PvmMboxOverWritable;
    if (random_below(&state, 3) == 0)
        flags |= PvmMboxPersistent;
    if (which == 3)
        flags |= PvmMboxMultiInstance | PvmMboxDirectIndex(1 + random_below(&state, 4));
    int buffer = pvm_mkbuf((int)random_below(&state, 2));
    pvm_setsbuf(buffer);
    pvm_pkint(&number, 1, 1);
    pvm_setsbuf(before);
    say(" put %s %x %d: %d", name, flags, number, pvm_putinfo((char *)name, buffer, flags));
    pvm_freebuf(buffer);
}

static void mailbox_get(uint64_t state)
{
    const char *name = mailbox_names[random_below(&state, 4)];
    int index = random_below(&state, 3) ? 0 : (int)random_below(&state, 7) - 1, flags = 0, number = -1;
    if (random_below(&state, 3) == 0)
        flags |= PvmMboxFirstAvail;
    if (random_below(&state, 4) == 0)
        flags |= PvmMboxReadAndDelete;
    forget_received();
    int buffer = pvm_recvinfo((char *)name, index, flags);
    say(" get %s %d %x: %d", name, index, flags, buffer > 0 ? 1 : buffer);
    /* If there was no receive buffer, PVM's own library may report any number. */
    if (buffer <= 0) {
        pvm_freebuf(pvm_setrbuf(0));
        return;
    }
    say(" current %d", pvm_getrbuf() == buffer);
    describe(buffer);
    say(" %d", pvm_upkint(&number, 1, 1));
    say(" %d", number);
}

static void mailbox_step(const struct step *step)
{
    static const char *const patterns[] = {"box", "ox*2", "b?x", "", "other", "a*b"};
    uint64_t state = step->seed;
    const char *name = mailbox_names[random_below(&state, 4)];
    int index = random_below(&state, 3) ? 0 : (int)random_below(&state, 7) - 1, value = -1;
    switch (random_below(&state, 12)) {
    case 0:
    case 1:
    case 2:
    case 3: mailbox_put(state); break;
    case 4:
    case 5:
    case 6: mailbox_get(state); break;
    case 7: say(" delete %s %d: %d", name, index, pvm_delinfo((char *)name, index, 0)); break;
    case 8: mailbox_entries(patterns[random_below(&state, 6)]); break;
    case 9: mailbox_entries("*"); break;
    case 10: say(" insert %s %d: %d", name, index, pvm_insert((char *)name, index, (int)random_below(&state, 99))); break;
    default:
        say(" lookup %s %d: %d", name, index, pvm_lookup((char *)name, index, &value));
        say(" %d", value);
    }
}

static void ask_group_step(const struct step *step)
{
    char *name = (char *)group_names[step->group];
    switch (step->how) {
    case 0:
    case 1: say(" size %d", pvm_gsize(name)); break;
    case 2:
    case 3:
        say(" tid");
        say_tid(pvm_gettid(name, step->count));
        break;
    case 5: say(" instance of nobody %d", pvm_getinst(name, 0x40eee)); break;
    default: say(" instance %d", pvm_getinst(name, tids[step->other])); break;
    }
}

static void reduce_step(const struct step *step)
{
    static void (*const operators[])() = {PvmSum, PvmProduct, PvmMax, PvmMin};
    static const int types[] = {PVM_BYTE, PVM_SHORT, PVM_INT, PVM_LONG, PVM_FLOAT, PVM_DOUBLE, PVM_CPLX, PVM_DCPLX, 77};
    static _Alignas(16) unsigned char data[32768];
    uint64_t state = step->seed;
    unsigned type = random_below(&state, 36) % 9;
    int operator = (int)random_below(&state, 4), count = (int)random_below(&state, random_below(&state, 4) ? 8 : 1500);
    /* If some calls fail and others wait, it is not determined which. */
    if (step->count > 1) {
        type = 1 + type % 7;
        count++;
    }
    int is_real = types[type] == PVM_FLOAT || types[type] == PVM_CPLX;
    state += (uint64_t)step->how;
    for (int at = 0; at < (int)sizeof data / 8; at++) {
        if (type >= 5)
            ((double *)(void *)data)[at] = 1 + random_below(&state, 4);
        else
            ((int64_t *)(void *)data)[at] = (int64_t)random_below(&state, 5);
    }
    for (int at = 0; is_real && at < (int)sizeof data / 4; at++)
        ((float *)(void *)data)[at] = (float)(1 + random_below(&state, 4));
    /* PVM keeps the first of two complex numbers of equal magnitude, so this makes them identical. */
    for (int at = 0; operator > 1 && at + 1 < (int)sizeof data / 8; at += 2) {
        if (types[type] == PVM_DCPLX)
            ((double *)(void *)data)[at + 1] = ((double *)(void *)data)[at];
        else if (types[type] == PVM_CPLX)
            ((float *)(void *)data)[at + 1] = ((float *)(void *)data)[at];
    }
    say(" type %d operator %d count %d:", types[type], operator, count);
    say(" %d", pvm_reduce(operators[operator], data, count, types[type], step->tag, (char *)group_names[step->group], step->other));
    /* Only the root's data is compared: the others' result is undefined. */
    if (step->how == step->other)
        say(" %08x", digest(data, sizeof data));
}

static void gather_step(const struct step *step, int scatter)
{
    static const int types[] = {PVM_BYTE, PVM_SHORT, PVM_INT, PVM_LONG, PVM_FLOAT, PVM_DOUBLE, PVM_CPLX, PVM_DCPLX};
    static _Alignas(16) unsigned char part[8192], whole[MAX_TASKS * 8192];
    uint64_t state = step->seed;
    int type = types[random_below(&state, 8)], count = 1 + (int)random_below(&state, random_below(&state, 4) ? 8 : 500);
    char *name = (char *)group_names[step->group];
    memset(part, step->how + 1, sizeof part);
    memset(whole, 0x11 * (step->how + 1), sizeof whole);
    if (scatter)
        for (size_t at = 0; at < sizeof whole; at++)
            whole[at] = (unsigned char)(at * 7 + (unsigned)step->how);
    /* Restricts values to those that fit into the long that PVM sends. */
    for (size_t at = 0; type == PVM_LONG && at < sizeof whole / 8; at++)
        ((long *)(void *)whole)[at] = (long)at * 3 + step->how;
    for (size_t at = 0; type == PVM_LONG && at < sizeof part / 8; at++)
        ((long *)(void *)part)[at] = (long)at * 5 + step->how;
    say(" type %d count %d:", type, count);
    int code = scatter ? pvm_scatter(part, whole, count, type, step->tag, name, step->other)
                       : pvm_gather(whole, part, count, type, step->tag, name, step->other);
    say(" %d %08x %08x", code, digest(part, sizeof part), digest(whole, sizeof whole));
}

/* Handler of messages. Those of different senders may arrive in any order. */
static int handle(int buffer)
{
    int length = -1, tag = -1, from = -1;
    handled_count++;
    pvm_bufinfo(buffer, &length, &tag, &from);
    int rank = -1;
    for (int task = 0; task < MAX_TASKS; task++)
        if (tids[task] == from)
            rank = task;
    int numbers[3] = {length, tag, rank};
    handled_sum += digest(numbers, sizeof numbers) + (pvm_getrbuf() == buffer) + 2u * (pvm_getsbuf() > 0);
    return 0;
}

static void handle_step(const struct step *step)
{
    handled_count = 0;
    handled_sum = 0;
    handler = pvm_addmhf(-1, step->tag, pvm_getcontext(), handle);
    say(" added %d", handler >= 0);
    if (step->how == 0)
        say(" again %d", pvm_addmhf(-1, step->tag, pvm_getcontext(), handle));
}

static void handled_step(const struct step *step)
{
    forget_received();
    while (handled_count < step->count)
        pvm_nrecv(-1, 7778);
    /* Whether the task had to wait, which frees the receive buffer, depends on timing. */
    pvm_freebuf(pvm_setrbuf(0));
    say(" %d %08x deleted %d", handled_count, handled_sum, pvm_delmhf(handler));
    say(" %d", pvm_delmhf(handler));
}

static int by_number(int buffer, int tid, int tag)
{
    int its_tag = -1, from = -1;
    struct pvmminfo info;
    pvm_getminfo(buffer, &info);
    /* The function is asked about messages of all contexts. */
    if (info.ctx != pvm_getcontext())
        return 0;
    pvm_bufinfo(buffer, NULL, &its_tag, &from);
    return (tid == -1 || tid == from) && (tag == -1 || tag == its_tag);
}

static int by_rank(int buffer, int tid, int tag)
{
    return by_number(buffer, tid, tag) ? 2 : 0;
}

static void choose_step(const struct step *step)
{
    static int (*const functions[])(int, int, int) = {NULL, by_number, by_rank};
    int (*before)(int, int, int) = pvm_recvf(functions[step->how]);
    say(" was ours %d", before == by_number ? 1 : before == by_rank ? 2 : 0);
}

/* Receives meanwhile: a long message to this task that is partly sent goes on only then. */
static void signalled_step(void)
{
    struct timespec moment = {0, 10000000};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    int got = -1;
    while ((got = sigtimedwait(&set, NULL, &moment)) < 0 && (errno == EINTR || errno == EAGAIN))
        pvm_probe(-1, 7778);
    say(" signal %d", got == SIGUSR1);
}

static void bear_step(const struct step *step)
{
    char *arguments[] = {"victim", NULL};
    int count = pvm_spawn((char *)program_name, arguments, PvmTaskDefault, "", step->count, &victims[step->how]);
    say(" spawn %d", count);
}

/* 0: returns from main after pvm_exit; 1: exits; 2: is killed; 3, 4: ends by a signal. */
static void end_step(const struct step *step)
{
    int tid = victims[step->how];
    say(" way %d", step->count);
    if (step->count < 2) {
        int before = pvm_setcontext(contexts[0]);
        say(" psend %d", pvm_psend(tid, VICTIM_TAG, (char *)&step->count, 1, PVM_INT));
        pvm_setcontext(before);
    } else if (step->count == 2) {
        say(" kill %d", pvm_kill(tid));
    } else {
        say(" signal %d", pvm_sendsig(tid, step->count == 3 ? SIGKILL : SIGTERM));
    }
}

static void watch_step(const struct step *step, int cancel)
{
    int what = PvmTaskExit | (cancel ? PvmNotifyCancel : 0);
    say(" notify %d", pvm_notify(what, step->tag, step->count, &victims[step->how]));
}

/* The notifications arrive in any order. */
static void dead_step(const struct step *step)
{
    struct timeval limit = patience();
    int heard[VICTIMS] = {0};
    for (int at = 0; at < step->count; at++) {
        forget_received();
        int tid = -1, buffer = pvm_trecv(-1, step->tag, &limit);
        if (at == 0)
            describe(buffer);
        say(" %d", pvm_upkint(&tid, 1, 1));
        for (int which = 0; which < VICTIMS; which++)
            heard[which] += victims[which] == tid;
    }
    for (int which = step->how; which < step->how + step->count; which++)
        say(" heard %d", heard[which]);
    /* If the request was cancelled, that was reported at once, and the end itself must be awaited. */
    while (step->any_tag && pvm_pstat(victims[step->how]) == PvmOk)
        ;
    for (int which = step->how; step->any_tag && which < step->how + step->count; which++)
        while (pvm_pstat(victims[which]) == PvmOk)
            ;
}

static void ask_dead_step(const struct step *step)
{
    struct pvmtaskinfo *tasks = NULL;
    int tid = victims[step->how], count = -1, number = 5;
    uint64_t state = step->seed;
    switch (random_below(&state, 8)) {
    case 0: say(" pstat %d", pvm_pstat(tid)); break;
    case 1: say(" kill %d", pvm_kill(tid)); break;
    case 2: say(" signal %d", pvm_sendsig(tid, SIGTERM)); break;
    case 3:
        forget(pvm_getsbuf());
        pvm_initsend(PvmDataDefault);
        pvm_pkint(&number, 1, 1);
        say(" send %d", pvm_send(tid, 3));
        break;
    case 4: say(" psend %d", pvm_psend(tid, 3, (char *)&number, 1, PVM_INT)); break;
    case 5:
        say(" tasks %d", pvm_tasks(tid, &count, &tasks));
        say(" %d", count);
        break;
    case 6:
        forget_received();
        say(" nrecv %d", pvm_nrecv(tid, 3));
        break;
    default:
        say(" notify %d", pvm_notify(PvmTaskExit, 4999, 1, &tid));
        struct timeval limit = patience();
        forget_received();
        int buffer = pvm_trecv(-1, 4999, &limit);
        describe(buffer);
        say(" %d", pvm_upkint(&number, 1, 1));
        say(" %d", number == tid);
    }
}

static void tell_step(const struct step *step, int tells)
{
    if (tells)
        send_on_wire(step->other, 8, &victims[step->how], step->count);
    else
        receive_on_wire(step->other, 8, &victims[step->how], step->count);
}

static void play_step(const struct step *step)
{
    switch (step->kind) {
    case SEND: send_step(step); break;
    case AGAIN: again_step(step); break;
    case FORWARD: forward_step(step); break;
    case RECEIVE: receive_step(step); break;
    case LOOK: look_step(step); break;
    case LOCAL: local_calls(step->seed); break;
    case ODD: odd_call(step->seed); break;
    case QUESTION: question_step(step); break;
    case CONTEXT: context_step(step); break;
    case TOKEN: send_on_wire(step->other, 7, NULL, 0); break;
    case AWAIT: receive_on_wire(step->other, 7, NULL, 0); break;
    case MAILBOX: mailbox_step(step); break;
    case OPTION: option_step(step); break;
    case JOIN: say(" %d", pvm_joingroup((char *)group_names[step->group])); break;
    case LEAVE: say(" %d", pvm_lvgroup((char *)group_names[step->group])); break;
    case ASK_GROUP: ask_group_step(step); break;
    case BARRIER: say(" %d", pvm_barrier((char *)group_names[step->group], step->count)); break;
    case FREEZE: say(" %d", pvm_freezegroup((char *)group_names[step->group], step->count)); break;
    case REDUCE: reduce_step(step); break;
    case GATHER: gather_step(step, 0); break;
    case SCATTER:
        /* PVM's own library scatters with a send buffer that it leaves behind. */
        forget(pvm_getsbuf());
        gather_step(step, 1);
        pvm_freebuf(pvm_setsbuf(0));
        break;
    case HANDLE: handle_step(step); break;
    case HANDLED: handled_step(step); break;
    case CHOOSE: choose_step(step); break;
    case SIGNAL: say(" %d", pvm_sendsig(tids[step->other], SIGUSR1)); break;
    case SIGNALLED: signalled_step(); break;
    case BEAR: bear_step(step); break;
    case TELL: tell_step(step, 1); break;
    case TOLD: tell_step(step, 0); break;
    case WATCH: watch_step(step, 0); break;
    case UNWATCH: watch_step(step, 1); break;
    case END: end_step(step); break;
    case DEAD: dead_step(step); break;
    case ASK_DEAD: ask_dead_step(step); break;
    }
}

/* Prepares everything before the first course. */
void prepare(void)
{
    for (int option = 1; option < 30; option++)
        options_before[option] = pvm_getopt(option);
}

/* Removes everything that could affect the next course. */
void clean(void)
{
    static const int changed[] = {PvmRoute, PvmDebugMask, PvmFragSize, PvmSelfTraceCode, PvmPollType, PvmPollTime,
                                  PvmTraceCode, PvmOutputCode, PvmOutputContext, PvmTraceContext,
                                  PvmSelfTraceContext, PvmShowTids};
    for (int group = 0; group < GROUPS; group++)
        pvm_lvgroup((char *)group_names[group]);
    for (int name = 0; name < 4; name++)
        for (int index = 0; index < 12; index++)
            pvm_delinfo((char *)mailbox_names[name], index, 0);
    for (unsigned at = 0; at < sizeof changed / sizeof *changed; at++)
        pvm_setopt(changed[at], options_before[changed[at]]);
    memset(victims, 0, sizeof victims);
}

static int is_about_group(int kind)
{
    return kind >= JOIN && kind <= SCATTER;
}

/* Calls that must not change the current buffers. */
static int keeps_buffers(int kind)
{
    static const int kinds[] = {QUESTION, CONTEXT, TOKEN, OPTION, JOIN, LEAVE, ASK_GROUP, BARRIER, FREEZE,
                                REDUCE, GATHER, SIGNAL, BEAR, TELL, WATCH};
    for (unsigned at = 0; at < sizeof kinds / sizeof *kinds; at++)
        if (kinds[at] == kind)
            return 1;
    return 0;
}

void play(const struct plan *plan, const char *program)
{
    the_plan = plan;
    program_name = program;
    for (int at = 0; at < plan->steps; at++) {
        const struct step *step = &plan->step[at];
        if (step->task != me)
            continue;
        int sending = pvm_getsbuf(), receiving = pvm_getrbuf();
        say("%d %d.%d %s:", me, step->episode, at, name_of(step->kind));
        if (is_about_group(step->kind))
            say(" group %d", step->group);
        play_step(step);
        if (keeps_buffers(step->kind))
            say(" buffers %d %d", pvm_getsbuf() == sending, pvm_getrbuf() == receiving);
        say("\n");
    }
    pvm_recvf(NULL);
    pvm_setcontext(contexts[0]);
    forget_all();
    pvm_freebuf(pvm_setsbuf(0));
    pvm_freebuf(pvm_setrbuf(0));
}
