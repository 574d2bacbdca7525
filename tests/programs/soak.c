/*
 * A fleet under fire: workers on all hosts send each other numbered messages of all sizes with checksums, and pass a
 * token round, while the driver kills workers, stops them for a while, cuts hosts off and adds new ones. No message
 * between living workers may be lost, duplicated, reordered or damaged, and no living worker may be reported dead.
 *
 *   soak captain SECONDS WORKERS SEED    started as one task; spawns WORKERS on each host, and replaces those that end
 *   soak worker SEED                     a spawned worker (soak_worker.c)
 *
 * The captain maintains the roster of living workers. A worker sends to the workers on its roster, and counts for each
 * of them what it has sent and received. A worker that gets the error that another one is gone reports that to the
 * captain, which finally compares the reports with the workers that have ended. At the end, all tell each other how
 * many messages they have sent; a living worker must have received as many.
 */
#include "soak.h"

/* Sends the roster of living workers to all of them. */
static void tell_all(int what)
{
    static int order[MAX_TASKS + 1];
    int n = 1;
    for (int tid = 0; tid < ids_given; tid++)
        if (crewmen[tid].host >= 0)
            order[n++] = tid;
    order[0] = n > 1 ? order[1] : RG_NONE;
    for (int i = 1; i < n; i++) {
        int code = crewmen[order[i]].done ? RG_OK : rg_send(order, (size_t)n * sizeof *order, order[i], what, ORDERS);
        if (code != RG_OK && !is_gone(code))
            give_up("rg_send of a roster");
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

/* Takes one message, if there is one. Returns whether the roster has changed. */
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
        crewmen[status.source].done = true;
        add(&said.result);
        return false;
    case ACCUSED:
        take_accusation(&said.accusation);
        return false;
    default: return take_event(status.tag, &said.event, 0);
    }
}

/* Takes all messages that have arrived, so that one roster answers them all. */
static bool hear_all(void)
{
    bool changed = false, heard = true;
    while (heard)
        changed |= hear(&heard);
    return changed;
}

static bool some_work(void)
{
    for (int tid = 0; tid < ids_given; tid++)
        if ((is_alive(tid) && !crewmen[tid].done) || owes_word(tid))
            return true;
    return false;
}

static void report(int hosts, int wrongly)
{
    printf("soak: %d workers on %d hosts; %d killed, %d lost with hosts, %d hosts lost, %d added\n", spawned, hosts,
           losses.killed, losses.lost_workers, losses.lost_hosts, losses.added_hosts);
    printf("soak: %llu messages of %llu bytes in all, %llu rounds of the token\n", (unsigned long long)total.received,
           (unsigned long long)total.bytes, (unsigned long long)total.rounds);
    printf("soak:");
    for (int way = 0; way < ALL_WAYS; way++)
        printf(" %s %llu", names_of_ways[way], (unsigned long long)total.ways[way]);
    printf("\nsoak: lost %llu, doubled %llu, out of order %llu, damaged %llu, ended without a cause %d, wrongly called dead %d\n",
           (unsigned long long)total.lost, (unsigned long long)total.doubled, (unsigned long long)total.disordered,
           (unsigned long long)total.damaged, losses.failures, wrongly);
}

static int captain(const char *program, int seconds, int per_host, const char *seed)
{
    rg_host hosts[MAX_HOSTS];
    int n;
    OK(rg_hosts(hosts, MAX_HOSTS, &n));
    begin_captain();
    double end = rg_time() + seconds, again = 0;
    bool changed = true;
    for (; rg_time() < end; changed = hear_all()) {
        /* Also sent from time to time when nothing has changed: a worker gives up if it receives nothing for long. */
        if (changed || rg_time() > again) {
            start_missing(program, per_host, seed);
            tell_all(ROSTER);
            again = rg_time() + STALL_SECONDS / 4;
        }
        await_word(end < again ? end : again);
    }
    tell_all(STOP);
    for (alarm(STALL_SECONDS); some_work(); await_word(rg_time() + STALL_SECONDS))
        if (hear_all())
            tell_all(STOP);
    int wrongly = count_wrongly_called();
    report(n, wrongly);
    return total.lost + total.doubled + total.disordered + total.damaged + (uint64_t)(losses.failures + wrongly) > 0;
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
