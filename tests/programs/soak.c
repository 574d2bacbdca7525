/*
 * A fleet under fire: workers on all hosts send each other numbered, sealed messages of all sizes, and pass a token
 * round, while somebody outside kills workers, cuts hosts off and brings new ones. Nothing may get lost between two
 * that live, nothing may come twice, out of order or damaged.
 *
 *   soak captain SECONDS WORKERS    started as one task; spawns WORKERS on each host, and others for those that end
 *   soak worker                     what it spawns
 *
 * The captain keeps the roster: who lives, newest first told of it. A worker sends to whoever is on its roster, and
 * counts for each other worker what it has sent and received. At the end all say how many messages they have sent to
 * each; whoever lives must have received as many.
 */
#include <poll.h>
#include <regatta.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ORDERS RG_CHANNEL(1)  /* captain to workers and back, and the captain's events */
#define TRAFFIC RG_CHANNEL(2) /* between workers */

enum { MOST_TASKS = 4096, LONGEST = 1 << 20, SENDS = 4, PATIENCE = 60 };
enum { ROSTER = 1, STOP, RESULT, EXIT, LOST, ADDED };

static void give_up(const char *what)
{
    fprintf(stderr, "FAIL task %d: %s: %s\n", rg_tid(), what, rg_last_error());
    _exit(3);
}

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != RG_OK)                                                                       \
            give_up(#call);                                                                        \
    } while (0)

static uint64_t hash(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static bool is_gone(int code) { return code == RG_ERR_DEAD || code == RG_ERR_LEFT; }

/* ---- worker --------------------------------------------------------------------------------- */

struct letter {
    uint32_t from, number; /* number: how many went before it from this sender to this receiver */
    uint32_t kind;         /* see below */
    uint32_t length;       /* of what follows */
    uint64_t seal;         /* over what follows */
};
enum { FREIGHT = 1, TOKEN, LAST };

/* What a worker reports: everything it has counted. */
struct result {
    uint64_t sent, received, bytes, rounds;
    uint64_t lost, doubled, disordered, damaged;
};

struct sending {
    rg_request request;
    int to;
    char *bytes;
};

static struct result count;
static uint32_t sent_to[MOST_TASKS], received_from[MOST_TASKS];
static int roster[MOST_TASKS], crew; /* the others, and how many */
static bool heard_last[MOST_TASKS], said_last[MOST_TASKS];
static bool stopping;
static uint64_t dice;

static uint64_t roll(void) { return dice = hash(dice); }

static uint64_t seal_of(const char *bytes, size_t length, uint32_t from, uint32_t number)
{
    uint64_t sum = hash((uint64_t)from << 32 | number);
    size_t at = 0;
    for (; at + 8 <= length; at += 8) {
        uint64_t word;
        memcpy(&word, bytes + at, 8);
        sum = (sum ^ word) * 0x9e3779b97f4a7c15u + (sum >> 29);
    }
    for (; at < length; at++)
        sum = (sum ^ (unsigned char)bytes[at]) * 0x100000001b3u;
    return sum;
}

/* Mostly small, sometimes as large as takes several ways through a library. */
static size_t some_length(void)
{
    uint64_t what = roll() % 64;
    size_t most = what < 44 ? 256 : what < 60 ? 16 << 10 : what < 63 ? 256 << 10 : LONGEST;
    return roll() % most;
}

static void forget(int tid)
{
    for (int i = 0; i < crew; i++)
        if (roster[i] == tid)
            roster[i--] = roster[--crew];
}

static bool start(struct sending *sending, int to, uint32_t kind, size_t length)
{
    struct letter *letter = (struct letter *)sending->bytes;
    char *body = sending->bytes + sizeof *letter;
    uint64_t word = roll();
    for (size_t at = 0; at < length; at += 8, word = word * 5 + 1)
        memcpy(body + at, &word, length - at < 8 ? length - at : 8);
    *letter = (struct letter){(uint32_t)rg_tid(), sent_to[to], kind, (uint32_t)length, 0};
    letter->seal = seal_of(body, length, letter->from, letter->number);
    int code = rg_isend(letter, sizeof *letter + length, to, (int)kind, TRAFFIC, &sending->request);
    if (is_gone(code)) {
        forget(to);
        return false;
    }
    if (code != RG_OK)
        give_up("rg_isend");
    sending->to = to;
    sent_to[to]++;
    count.sent++;
    return true;
}

static int successor(void)
{
    int me = rg_tid(), next = -1, first = -1;
    for (int i = 0; i < crew; i++) {
        if (first < 0 || roster[i] < first)
            first = roster[i];
        if (roster[i] > me && (next < 0 || roster[i] < next))
            next = roster[i];
    }
    return next < 0 ? first : next;
}

/* A message has come; true: it was the token. */
static bool look_at(const char *bytes, const rg_status *status)
{
    const struct letter *letter = (const struct letter *)bytes;
    const char *body = bytes + sizeof *letter;
    int from = status->source;
    if (status->length < sizeof *letter || status->length - sizeof *letter != letter->length ||
        letter->from != (uint32_t)from || letter->kind != (uint32_t)status->tag ||
        seal_of(body, letter->length, letter->from, letter->number) != letter->seal) {
        count.damaged++;
        return false;
    }
    uint32_t expected = received_from[from];
    if (letter->number > expected)
        count.lost += letter->number - expected;
    else if (letter->number + 1 == expected)
        count.doubled++;
    else if (letter->number < expected)
        count.disordered++;
    if (letter->number >= expected)
        received_from[from] = letter->number + 1;
    count.received++;
    count.bytes += letter->length;
    heard_last[from] |= letter->kind == LAST;
    return letter->kind == TOKEN;
}

static void take_roster(const int *tids, int n)
{
    crew = 0;
    for (int i = 0; i < n; i++)
        if (tids[i] != rg_tid() && tids[i] < MOST_TASKS)
            roster[crew++] = tids[i];
}

/* Whom this worker has not told its last word yet. */
static int untold(void)
{
    for (int i = 0; i < crew; i++)
        if (!said_last[roster[i]])
            return roster[i];
    return RG_NONE;
}

static bool all_have_spoken(void)
{
    for (int i = 0; i < crew; i++)
        if (!heard_last[roster[i]])
            return false;
    return untold() == RG_NONE;
}

static int worker(void)
{
    static int order[MOST_TASKS];
    static struct letter held[(LONGEST + sizeof(struct letter)) / sizeof(struct letter) + 1];
    struct sending sendings[SENDS + 1];
    enum { ORDER = SENDS + 1, ARRIVAL, ALL };
    int captain = rg_parent();
    bool token = false;
    dice = hash((uint64_t)rg_tid() << 32 | (uint64_t)getpid());
    printf("worker %d pid %d\n", rg_tid(), getpid());
    fflush(stdout);

    rg_request requests[ALL];
    for (int i = 0; i <= SENDS; i++) {
        sendings[i].bytes = malloc(sizeof(struct letter) + LONGEST);
        sendings[i].request = RG_REQUEST_NULL;
        if (sendings[i].bytes == NULL)
            give_up("malloc");
    }
    OK(rg_irecv(order, sizeof order, captain, RG_ANY, ORDERS, &requests[ORDER]));
    OK(rg_irecv(held, sizeof held, RG_ANY, RG_ANY, TRAFFIC, &requests[ARRIVAL]));
    alarm(PATIENCE);
    for (;;) {
        /* Keep some sends under way; in the end, one to each for the last word. */
        for (int i = 0; i < SENDS && crew > 0; i++) {
            if (sendings[i].request.id != 0)
                continue;
            if (!stopping)
                start(&sendings[i], roster[roll() % (uint64_t)crew], FREIGHT, some_length());
            else if (untold() != RG_NONE)
                said_last[untold()] = start(&sendings[i], untold(), LAST, 0);
        }
        if (token && !stopping && crew > 0 && sendings[SENDS].request.id == 0) {
            token = !start(&sendings[SENDS], successor(), TOKEN, 64);
            count.rounds += !token;
        }
        bool idle = true;
        for (int i = 0; i <= SENDS; i++) {
            requests[i] = sendings[i].request;
            idle &= requests[i].id == 0;
        }
        if (stopping && idle && all_have_spoken())
            break;
        int which;
        rg_status status;
        int code = rg_waitany(ALL, requests, &which, &status);
        if (which < 0)
            give_up("rg_waitany");
        if (which <= SENDS) {
            sendings[which].request = RG_REQUEST_NULL;
            if (is_gone(code)) {
                token |= which == SENDS;
                forget(sendings[which].to);
            } else if (code != RG_OK) {
                give_up("a send");
            }
        } else if (which == ARRIVAL) {
            if (code == RG_OK)
                token |= look_at((const char *)held, &status);
            else if (is_gone(code) && status.source >= 0)
                received_from[status.source]++; /* its sender was killed in the middle of it */
            else
                give_up("a receive");
            OK(rg_irecv(held, sizeof held, RG_ANY, RG_ANY, TRAFFIC, &requests[ARRIVAL]));
        } else {
            if (code != RG_OK)
                give_up("the captain is gone");
            int n = (int)(status.length / sizeof *order);
            if (status.tag == ROSTER) {
                /* The first word of a roster: who is to begin a new token, the old one may be lost. */
                take_roster(order + 1, n - 1);
                token |= order[0] == rg_tid();
            } else if (status.tag == STOP) {
                take_roster(order + 1, n - 1);
                stopping = true;
            }
            alarm(PATIENCE);
            OK(rg_irecv(order, sizeof order, captain, RG_ANY, ORDERS, &requests[ORDER]));
        }
    }
    OK(rg_send(&count, sizeof count, captain, RESULT, ORDERS));
    return 0;
}

/* ---- captain -------------------------------------------------------------------------------- */

static struct {
    int host; /* where it runs, or -1: it does not */
    bool done;
} crewman[MOST_TASKS];
static int most; /* ids from here on have not been given */
static int killed, lost_hosts, added_hosts, spawned, failures;

/* Tell all that live who lives. */
static void tell_all(int what)
{
    static int order[MOST_TASKS + 1];
    int n = 1;
    for (int tid = 0; tid < most; tid++)
        if (crewman[tid].host >= 0)
            order[n++] = tid;
    order[0] = n > 1 ? order[1] : RG_NONE;
    for (int i = 1; i < n; i++) {
        int code = crewman[order[i]].done ? RG_OK : rg_send(order, (size_t)n * sizeof *order, order[i], what, ORDERS);
        if (code != RG_OK && !is_gone(code))
            give_up("rg_send of a roster");
    }
}

static int living(int host)
{
    int n = 0;
    for (int tid = 0; tid < most; tid++)
        n += crewman[tid].host == host;
    return n;
}

/* Starts what is missing on each host; true: somebody is new. */
static bool man(const char *program, int per_host)
{
    rg_host hosts[64];
    int n;
    bool new = false;
    OK(rg_hosts(hosts, 64, &n));
    for (int i = 0; i < n && i < 64; i++) {
        int missing = hosts[i].alive ? per_host - living(hosts[i].host) : 0;
        if (missing <= 0)
            continue;
        int tids[missing], started;
        char *const arguments[] = {"worker", NULL};
        rg_spawn_options options = {.host = hosts[i].name};
        int code = rg_spawn(program, arguments, &options, missing, tids, &started);
        if (code != RG_OK)
            printf("spawn on %s: %s\n", hosts[i].name, rg_last_error());
        for (int k = 0; k < started; k++) {
            if (tids[k] >= MOST_TASKS)
                give_up("more tasks than the soak counts");
            most = tids[k] >= most ? tids[k] + 1 : most;
            crewman[tids[k]].host = hosts[i].host;
            OK(rg_notify(RG_TASK_EXIT, tids[k], EXIT, ORDERS, NULL));
            new = true;
            spawned++;
        }
    }
    return new;
}

static void ended(const rg_event *event)
{
    if (crewman[event->tid].host < 0)
        return;
    crewman[event->tid].host = -1;
    if (crewman[event->tid].done)
        return;
    bool by_us = event->how == RG_BY_HOST || (event->how == RG_BY_SIGNAL && event->value == 9);
    if (by_us) {
        killed++;
    } else {
        failures++;
        printf("FAIL worker %d on host %s ended: how %d, value %d\n", event->tid, event->name, event->how, event->value);
    }
}

static struct result total;

static void add(const struct result *one)
{
    const uint64_t *from = (const uint64_t *)one;
    uint64_t *to = (uint64_t *)&total;
    for (size_t i = 0; i < sizeof total / sizeof *to; i++)
        to[i] += from[i];
}

/* Takes one message, if there is one within so many milliseconds. True: the roster has changed. */
static bool hear(int patience)
{
    union {
        rg_event event;
        struct result result;
    } said;
    int fd, found;
    rg_status status;
    OK(rg_fd(&fd));
    OK(rg_iprobe(RG_ANY, RG_ANY, ORDERS, &found, &status));
    if (!found) {
        struct pollfd one = {fd, POLLIN, 0};
        poll(&one, 1, patience);
        OK(rg_clear_fd());
        OK(rg_iprobe(RG_ANY, RG_ANY, ORDERS, &found, &status));
    }
    if (!found)
        return false;
    OK(rg_recv(&said, sizeof said, status.source, status.tag, ORDERS, &status));
    if (status.tag == RESULT) {
        crewman[status.source].done = true;
        add(&said.result);
        return false;
    }
    if (status.tag == EXIT)
        ended(&said.event);
    lost_hosts += status.tag == LOST;
    added_hosts += status.tag == ADDED;
    if (status.tag == ADDED)
        OK(rg_notify(RG_HOST_LOST, said.event.host, LOST, ORDERS, NULL));
    return true;
}

static bool some_work(void)
{
    for (int tid = 0; tid < most; tid++)
        if (crewman[tid].host >= 0 && !crewman[tid].done)
            return true;
    return false;
}

static int captain(const char *program, int seconds, int per_host)
{
    rg_host hosts[64];
    int n;
    for (int tid = 0; tid < MOST_TASKS; tid++)
        crewman[tid].host = -1;
    OK(rg_hosts(hosts, 64, &n));
    for (int i = 0; i < n && i < 64; i++)
        OK(rg_notify(RG_HOST_LOST, hosts[i].host, LOST, ORDERS, NULL));
    OK(rg_notify(RG_HOST_ADDED, 0, ADDED, ORDERS, NULL));
    double end = rg_time() + seconds;
    bool changed = true;
    while (rg_time() < end) {
        if (changed && (man(program, per_host), true))
            tell_all(ROSTER);
        changed = hear(200);
        /* What comes together is answered together. */
        while (hear(0))
            changed = true;
    }
    tell_all(STOP);
    for (alarm(PATIENCE); some_work();)
        if (hear(200))
            tell_all(STOP);
    printf("soak: %d workers on %d hosts; %d killed, %d hosts lost, %d added\n", spawned, n, killed, lost_hosts, added_hosts);
    printf("soak: %llu messages of %llu bytes in all, %llu rounds of the token\n", (unsigned long long)total.received,
           (unsigned long long)total.bytes, (unsigned long long)total.rounds);
    printf("soak: lost %llu, doubled %llu, out of order %llu, damaged %llu, ended without a cause %d\n",
           (unsigned long long)total.lost, (unsigned long long)total.doubled,
           (unsigned long long)total.disordered, (unsigned long long)total.damaged, failures);
    return total.lost + total.doubled + total.disordered + total.damaged + (uint64_t)failures > 0;
}

int main(int argc, char **argv)
{
    OK(rg_init());
    int status = 2;
    if (argc == 4 && strcmp(argv[1], "captain") == 0)
        status = captain(argv[0], atoi(argv[2]), atoi(argv[3]));
    else if (argc == 2 && strcmp(argv[1], "worker") == 0)
        status = worker();
    else
        fprintf(stderr, "usage: %s captain SECONDS WORKERS\n", argv[0]);
    OK(rg_finalize());
    return status;
}
