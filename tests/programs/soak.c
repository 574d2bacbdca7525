/*
 * A fleet under fire: workers on all hosts send each other numbered, sealed messages of all sizes, and pass a token
 * round, while somebody outside kills workers, stops them for a while, cuts hosts off and brings new ones. Nothing may
 * get lost between two that live, nothing may come twice, out of order or damaged, and nobody who lives may be called dead.
 *
 *   soak captain SECONDS WORKERS SEED    started as one task; spawns WORKERS on each host, and others for those that end
 *   soak worker SEED                     what it spawns (soak_worker.c)
 *
 * The captain keeps the roster: who lives, newest first told of it. A worker sends to whoever is on its roster, and
 * counts for each other worker what it has sent and received. A worker to which a call says that another is gone tells the
 * captain, which compares that in the end with who has ended. At the end all say how many messages they have sent to
 * each; whoever lives must have received as many.
 */
#include "soak.h"
#include <poll.h>

/* ---- captain -------------------------------------------------------------------------------- */

static struct {
    int host; /* where it runs, or -1: it does not */
    bool done;
    bool accused; /* somebody has been told that it is dead */
} crewman[MOST_TASKS];
static int most; /* ids from here on have not been given */
static int killed, lost_hosts, lost_workers, added_hosts, spawned, failures;

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

/* Starts some on this host, or wherever there is room. */
static int start_workers(const char *program, const char *host, int missing, const char *seed)
{
    int tids[missing], started = 0;
    char *const arguments[] = {"worker", (char *)seed, NULL};
    rg_spawn_options options = {.host = host};
    int code = rg_spawn(program, arguments, &options, missing, tids, &started);
    if (code != RG_OK)
        printf("spawn on %s: %s\n", host == NULL ? "any host" : host, rg_last_error());
    for (int k = 0; k < started; k++) {
        if (tids[k] >= MOST_TASKS)
            give_up("more tasks than the soak counts");
        most = tids[k] >= most ? tids[k] + 1 : most;
        crewman[tids[k]].host = rg_host_of(tids[k]);
        OK(rg_notify(RG_TASK_EXIT, tids[k], EXIT, ORDERS, NULL));
        spawned++;
    }
    return started;
}

/* Starts what is missing on each host. The first are started together, so that they have one world, on all hosts. */
static void man(const char *program, int per_host, const char *seed)
{
    rg_host hosts[64];
    int n;
    OK(rg_hosts(hosts, 64, &n));
    if (spawned == 0)
        start_workers(program, NULL, per_host * n, seed);
    for (int i = 0; i < n && i < 64; i++) {
        int missing = hosts[i].alive ? per_host - living(hosts[i].host) : 0;
        if (missing > 0)
            start_workers(program, hosts[i].name, missing, seed);
    }
}

static void ended(const rg_event *event)
{
    if (crewman[event->tid].host < 0)
        return;
    crewman[event->tid].host = -1;
    if (crewman[event->tid].done)
        return;
    if (event->how == RG_BY_HOST) {
        lost_workers++;
    } else if (event->how == RG_BY_SIGNAL && event->value == 9) {
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

/* Waits until something may have come, or it is time. */
static void await_word(double until)
{
    int fd, found;
    OK(rg_fd(&fd));
    for (;;) {
        OK(rg_clear_fd());
        OK(rg_iprobe(RG_ANY, RG_ANY, ORDERS, &found, NULL));
        double left = until - rg_time();
        if (found || left <= 0)
            return;
        struct pollfd one = {fd, POLLIN, 0};
        poll(&one, 1, (int)(left * 1000) + 1);
    }
}

/* Takes one message, if there is one. True: the roster has changed. */
static bool hear(bool *heard)
{
    union {
        rg_event event;
        struct result result;
        struct accusation accusation;
    } said;
    int found;
    rg_status status;
    OK(rg_iprobe(RG_ANY, RG_ANY, ORDERS, &found, &status));
    *heard = found;
    if (!found)
        return false;
    OK(rg_recv(&said, sizeof said, status.source, status.tag, ORDERS, &status));
    switch (status.tag) {
    case RESULT:
        crewman[status.source].done = true;
        add(&said.result);
        return false;
    case ACCUSED:
        if (said.accusation.code == RG_ERR_DEAD)
            crewman[said.accusation.tid].accused = true;
        return false;
    case EXIT: ended(&said.event); return true;
    case LOST:
        lost_hosts++;
        printf("lost host %s\n", said.event.name);
        return true;
    default:
        added_hosts++;
        OK(rg_notify(RG_HOST_LOST, said.event.host, LOST, ORDERS, NULL));
        return true;
    }
}

/* Takes all that has come: what comes together is answered together. */
static bool hear_all(void)
{
    bool changed = false, heard = true;
    while (heard)
        changed |= hear(&heard);
    return changed;
}

/* Workers that others were told to be dead, though they have not died. */
static int wrongly_accused(void)
{
    int n = 0;
    for (int tid = 0; tid < most; tid++) {
        if (!crewman[tid].accused || (crewman[tid].host < 0 && !crewman[tid].done))
            continue;
        printf("FAIL worker %d was called dead while it lived\n", tid);
        n++;
    }
    return n;
}

static bool some_work(void)
{
    for (int tid = 0; tid < most; tid++)
        if (crewman[tid].host >= 0 && !crewman[tid].done)
            return true;
    return false;
}

static void report(int hosts, int wrongly)
{
    static const char *const names[] = {
#define TEXT_OF_WAY(name) #name,
        WAYS(TEXT_OF_WAY)};
    printf("soak: %d workers on %d hosts; %d killed, %d lost with hosts, %d hosts lost, %d added\n", spawned, hosts, killed,
           lost_workers, lost_hosts, added_hosts);
    printf("soak: %llu messages of %llu bytes in all, %llu rounds of the token\n", (unsigned long long)total.received,
           (unsigned long long)total.bytes, (unsigned long long)total.rounds);
    printf("soak:");
    for (int way = 0; way < ALL_WAYS; way++)
        printf(" %s %llu", names[way], (unsigned long long)total.ways[way]);
    printf("\nsoak: lost %llu, doubled %llu, out of order %llu, damaged %llu, ended without a cause %d, wrongly called dead %d\n",
           (unsigned long long)total.lost, (unsigned long long)total.doubled, (unsigned long long)total.disordered,
           (unsigned long long)total.damaged, failures, wrongly);
}

static int captain(const char *program, int seconds, int per_host, const char *seed)
{
    rg_host hosts[64];
    int n;
    for (int tid = 0; tid < MOST_TASKS; tid++)
        crewman[tid].host = -1;
    OK(rg_hosts(hosts, 64, &n));
    for (int i = 0; i < n && i < 64; i++)
        OK(rg_notify(RG_HOST_LOST, hosts[i].host, LOST, ORDERS, NULL));
    OK(rg_notify(RG_HOST_ADDED, 0, ADDED, ORDERS, NULL));
    double end = rg_time() + seconds, again = 0;
    bool changed = true;
    for (; rg_time() < end; changed = hear_all()) {
        /* Now and then also when nothing has changed: a worker that hears nothing for long gives up. */
        if (changed || rg_time() > again) {
            man(program, per_host, seed);
            tell_all(ROSTER);
            again = rg_time() + PATIENCE / 4;
        }
        await_word(end < again ? end : again);
    }
    tell_all(STOP);
    for (alarm(PATIENCE); some_work(); await_word(rg_time() + PATIENCE))
        if (hear_all())
            tell_all(STOP);
    int wrongly = wrongly_accused();
    report(n, wrongly);
    return total.lost + total.doubled + total.disordered + total.damaged + (uint64_t)(failures + wrongly) > 0;
}

int main(int argc, char **argv)
{
    OK(rg_init());
    int status = 2;
    if (argc == 5 && strcmp(argv[1], "captain") == 0)
        status = captain(argv[0], atoi(argv[2]), atoi(argv[3]), argv[4]);
    else if (argc == 3 && strcmp(argv[1], "worker") == 0)
        status = worker(strtoull(argv[2], NULL, 10));
    else
        fprintf(stderr, "usage: %s captain SECONDS WORKERS SEED\n", argv[0]);
    OK(rg_finalize());
    return status;
}
