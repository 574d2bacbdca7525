/* The buffers that a task keeps, and calls with invalid arguments. */
#include "pvm_course_odd.h"
#include "pvm_course.h"
#include <stdlib.h>
#include <string.h>

enum { KEPT = 4 };

static int kept[KEPT];

static int place_of(int buffer)
{
    for (int at = 0; at < KEPT; at++)
        if (buffer > 0 && kept[at] == buffer)
            return at;
    return -1;
}

int keep(int buffer)
{
    for (int at = 0; at < KEPT; at++)
        if (!kept[at]) {
            kept[at] = buffer;
            return 1;
        }
    return 0;
}

void forget(int buffer)
{
    int at = place_of(buffer);
    if (at >= 0)
        kept[at] = 0;
}

void forget_received(void)
{
    forget(pvm_getrbuf());
}

void forget_all(void)
{
    for (int at = 0; at < KEPT; at++) {
        if (kept[at])
            pvm_freebuf(kept[at]);
        kept[at] = 0;
    }
}

/* Prints a buffer by its index, or an error, or that it is unknown. */
static void say_buffer(int buffer)
{
    if (buffer <= 0)
        say(" %d", buffer);
    else if (place_of(buffer) >= 0)
        say(" b%d", place_of(buffer));
    else
        say(" other");
}

static int some_buffer(uint64_t *state)
{
    static const int odd[] = {0, -1, -77, 1000000, 2000000000};
    if (random_below(state, 5) == 0)
        return odd[random_below(state, 5)];
    return kept[random_below(state, KEPT)];
}

/* Creates, frees, changes and queries buffers. Afterwards the current ones are what they were, or none. */
void local_calls(uint64_t seed)
{
    int sending = pvm_getsbuf(), receiving = pvm_getrbuf(), number = 0;
    for (int calls = 1 + (int)random_below(&seed, 6); calls > 0; calls--) {
        int buffer = some_buffer(&seed), length = -1, tag = -1;
        say(" |");
        switch (random_below(&seed, 10)) {
        case 0:
        case 1:
            buffer = pvm_mkbuf((int)random_below(&seed, 3));
            if (!keep(buffer))
                pvm_freebuf(buffer);
            say(" make");
            break;
        case 2:
            say(" free");
            say_buffer(buffer);
            if (buffer == sending)
                sending = 0;
            if (buffer == receiving)
                receiving = 0;
            say(": %d", pvm_freebuf(buffer));
            say(" and again %d", buffer > 0 && place_of(buffer) >= 0 ? pvm_freebuf(buffer) : 0);
            forget(buffer);
            break;
        case 3:
            say(" set");
            say_buffer(buffer);
            say(":");
            say_buffer(pvm_setsbuf(buffer));
            break;
        case 4:
            say(" set receiving");
            say_buffer(buffer);
            say(":");
            say_buffer(pvm_setrbuf(buffer));
            break;
        case 5:
        case 6:
            say(" pack");
            say(" %d", place_of(pvm_getsbuf()) >= 0 || !pvm_getsbuf() ? pvm_pkint(&number, 1, 1) : 0);
            break;
        case 7:
            say(" unpack");
            say(" %d", place_of(pvm_getrbuf()) >= 0 || !pvm_getrbuf() ? pvm_upkint(&number, 1, 1) : 0);
            break;
        default:
            say(" info");
            say_buffer(buffer);
            say(" %d", pvm_bufinfo(buffer, &length, &tag, NULL));
            say(" %d", length);
        }
        say(" now");
        say_buffer(pvm_getsbuf());
        say_buffer(pvm_getrbuf());
    }
    pvm_setsbuf(sending);
    pvm_setrbuf(receiving);
}

static int some_tid(uint64_t *state)
{
    static const int odd[] = {0, -2, 12345, 0x40eee, 0x800005, INT32_MAX, INT32_MIN, -1000};
    return odd[random_below(state, 8)];
}

static int some_tag(uint64_t *state)
{
    static const int odd[] = {-1, -2, -100, INT32_MIN, INT32_MAX, 0, 7};
    return odd[random_below(state, 7)];
}

static void odd_sends(uint64_t state)
{
    int tid = some_tid(&state), tag = some_tag(&state), number = 3, list[3] = {own_tid, some_tid(&state), tid};
    forget(pvm_getsbuf());
    unsigned what = random_below(&state, 9);
    if (what < 6)
        pvm_initsend((int)random_below(&state, 3));
    switch (what) {
    case 0:
    case 1: say(" send %d %d: %d", tid, tag, pvm_send(tid, tag)); break;
    case 2:
        tag = tag < 0 ? tag : -3;
        say(" send to me %d: %d", tag, pvm_send(own_tid, tag));
        break;
    case 3: say(" mcast %d: %d", tag, pvm_mcast(list, 1 + (int)random_below(&state, 3), tag)); break;
    case 4: say(" mcast of none: %d", pvm_mcast(list, (int)random_below(&state, 3) - 2, 5)); break;
    case 5: say(" bcast: %d", pvm_bcast("no such group", tag)); break;
    case 6: say(" psend %d %d: %d", tid, tag, pvm_psend(tid, tag, (char *)&number, 1, PVM_INT)); break;
    case 7: say(" psend type: %d", pvm_psend(0x40eee, 5, (char *)&number, 1, 12 + (int)random_below(&state, 90))); break;
    default: say(" psend count: %d", pvm_psend(0x40eee, 5, (char *)&number, -1 - (int)random_below(&state, 9), PVM_INT));
    }
}

static void odd_receives(uint64_t state)
{
    static const int tids_[] = {0, -2, -3, 12345, 0x800005, -1000, INT32_MIN, 0x40eee};
    int tid = tids_[random_below(&state, 8)], tag = some_tag(&state), number = 3;
    struct timeval wrong = {random_below(&state, 2) ? -1 : 0, -1 - (int)random_below(&state, 3)};
    forget_received();
    switch (random_below(&state, 4)) {
    case 0: say(" nrecv %d %d: %d", tid, tag, pvm_nrecv(tid, tag)); break;
    case 1: say(" probe %d %d: %d", tid, tag, pvm_probe(tid, tag)); break;
    case 2: say(" precv type: %d", pvm_precv(own_tid, 7777, (char *)&number, 1, 12 + (int)random_below(&state, 90), NULL, NULL, NULL)); break;
    default: say(" trecv %d %d: %d", (int)wrong.tv_sec, (int)wrong.tv_usec, pvm_trecv(own_tid, 7777, &wrong));
    }
}

static void odd_tasks(uint64_t state)
{
    int tid = some_tid(&state), tag = some_tag(&state), count = -1;
    struct pvmtaskinfo *tasks = NULL;
    int list[2] = {own_tid, tid};
    switch (random_below(&state, 12)) {
    case 0: say(" kill %d: %d", tid, pvm_kill(tid)); break;
    case 1: say(" signal %d: %d", tid, pvm_sendsig(tid, 10)); break;
    case 2: say(" signal of nonsense: %d", pvm_sendsig(own_tid, 100 + (int)random_below(&state, 100))); break;
    case 3: say(" pstat %d: %d", tid, pvm_pstat(tid)); break;
    case 4:
        if (tid == 0)
            break;
        say(" tasks %d: %d", tid, pvm_tasks(tid, &count, &tasks));
        break;
    case 5: say(" host of %d: %d", tid, pvm_tidtohost(tid)); break;
    case 6: say(" notify of nothing: %d", pvm_notify(PvmTaskExit, 5, (int)random_below(&state, 2) - 1, list)); break;
    case 7: say(" notify tag: %d", pvm_notify(PvmTaskExit, tag < 0 ? tag : -1, 1, list)); break;
    case 8: say(" notify kind: %d", pvm_notify(6 + (int)random_below(&state, 90), 5, 1, list)); break;
    case 9: say(" notify list: %d", pvm_notify(PvmHostDelete, 5, 1, list)); break;
    case 10: say(" cancel: %d", pvm_notify(PvmTaskExit | PvmNotifyCancel, 4321, 1, list)); break;
    default: say(" option %d: %d", 30 + (int)tag % 100, pvm_setopt(30 + (tag < 0 ? 0 : tag % 100), 1)); break;
    }
}

static void odd_spawns(uint64_t state)
{
    int children[3] = {0};
    switch (random_below(&state, 4)) {
    case 0: say(" spawn none: %d", pvm_spawn("no_such_program", NULL, 0, "", (int)random_below(&state, 3) - 2, children)); break;
    case 1: say(" spawn: %d", pvm_spawn("no_such_program", NULL, 0, "", 2, children)); break;
    case 2: say(" spawn where: %d", pvm_spawn("no_such_program", NULL, PvmTaskHost, "nohost", 2, children)); break;
    default: say(" spawn how: %d", pvm_spawn("no_such_program", NULL, 1024 + PvmTaskArch, "NOARCH", 1, children)); break;
    }
    say(" %d %d", children[0], children[1]);
}

static void odd_buffers(uint64_t state)
{
    int number = 5, before = pvm_setsbuf(0), reading = pvm_setrbuf(0);
    switch (random_below(&state, 8)) {
    case 0: say(" pack into none: %d", pvm_pkint(&number, 1, 1)); break;
    case 1: say(" unpack from none: %d", pvm_upkint(&number, 1, 1)); break;
    case 2: say(" send none: %d", pvm_send(own_tid, 5)); break;
    case 3: say(" make: %d", pvm_mkbuf(3 + 2 * (int)random_below(&state, 9))); break;
    case 4: say(" pack text into none: %d", pvm_pkstr("text")); break;
    case 5: say(" message from none: %d", pvm_upkmesg()); break;
    case 6: say(" mcast none: %d", pvm_mcast(tids, 2, 5)); break;
    default: say(" text from none: %d", pvm_upkstr((char *)&number)); break;
    }
    pvm_setsbuf(before);
    pvm_setrbuf(reading);
}

static void odd_groups(uint64_t state)
{
    static char *names[] = {"nobody", "", NULL};
    char *name = names[random_below(&state, 3)];
    int data[4] = {1, 2, 3, 4}, result[4];
    say(" of %s", name ? name : "NULL");
    switch (random_below(&state, 9)) {
    case 0: say(" leave %d", pvm_lvgroup(name)); break;
    case 1: say(" size %d", pvm_gsize(name)); break;
    case 2: say(" tid %d", pvm_gettid(name, 0)); break;
    case 3: say(" instance %d", pvm_getinst(name, own_tid)); break;
    case 4: say(" barrier %d", pvm_barrier(name, 1)); break;
    case 5: say(" reduce %d", pvm_reduce(PvmSum, data, 4, PVM_INT, 5, name, 0)); break;
    case 6: say(" gather %d", pvm_gather(result, data, 1, PVM_INT, 5, name, 0)); break;
    case 7: say(" scatter %d", pvm_scatter(result, data, 1, PVM_INT, 5, name, 0)); break;
    default: say(" bcast %d", pvm_bcast(name, 5)); break;
    }
}

static void odd_mailboxes(uint64_t state)
{
    static char *names[] = {"nothing", "", NULL};
    char *name = names[random_below(&state, 3)];
    int before = pvm_getsbuf(), value = -1;
    say(" of %s", name ? name : "NULL");
    switch (random_below(&state, 4)) {
    case 0:
        forget_received();
        say(" get %d", pvm_recvinfo(name, (int)random_below(&state, 3) - 1, 0));
        pvm_freebuf(pvm_setrbuf(0));
        break;
    case 1: say(" delete %d", pvm_delinfo(name, (int)random_below(&state, 3) - 1, 0)); break;
    case 2: say(" look up %d", pvm_lookup(name, 0, &value)); break;
    default: say(" delete %d", pvm_delete(name, 0)); break;
    }
    say(" %d", pvm_getsbuf() == before);
}

void odd_call(uint64_t seed)
{
    unsigned what = random_below(&seed, 10);
    uint64_t copy = seed;
    say(" %u (%u %u)", what, random_below(&copy, 8), random_below(&copy, 8));
    switch (what) {
    case 0:
    case 1: odd_sends(seed); break;
    case 2:
    case 3: odd_receives(seed); break;
    case 4:
    case 5: odd_tasks(seed); break;
    case 6: odd_spawns(seed); break;
    case 7: odd_buffers(seed); break;
    case 8: odd_groups(seed); break;
    default: odd_mailboxes(seed); break;
    }
}
