/*
 * Chaos: crews of workers on all hosts use groups in many ways, while the driver kills workers and hosts, cuts links
 * and stops processes, and workers revoke their groups, leave, and end themselves. The survivors shrink their group and
 * go on, and new workers are started for those that have ended.
 *
 *   chaos captain SECONDS WORKERS SEED    started as one task; spawns WORKERS on each host, and replaces those that end
 *   chaos worker SEED                     a spawned worker (chaos_worker.c)
 *
 * The captain is never killed. It compares the reports of all members of a crew:
 *
 * - a task that was reported dead has died, a task that was reported to have left has left, and a task that is missing
 *   in a shrunk group has done one of both;
 * - all members that complete an epoch have had the same agreements in it, and the same members after it;
 * - a group that was found revoked has been revoked by a member that reports so, or a member that could have done it
 *   has died or left.
 *
 * From time to time all members of a crew wait for the captain, which then has the newly started workers make a group
 * with them.
 */
#include "chaos.h"

enum { KEPT_EPOCHS = 256 };

const char *const names_of_classes[ALL_CLASSES] = {
#define TEXT_OF_CLASS(name) #name,
    CLASSES(TEXT_OF_CLASS)};

/* What the members of an epoch have reported. */
static struct epoch {
    struct report first; /* of the member that has reported first; has_revoked and has_found collect those of all members */
    int reports;
} epochs[KEPT_EPOCHS];
static int next_epoch;

/* The crew, and the members whose message is awaited. */
static enum { NONE, IN_MAKING, AT_WORK } state;
static struct crew crew;
static bool is_awaited[MAX_TASKS], is_free[MAX_TASKS];
static bool has_refused;
static int mistakes, groups_made, groups_not_made, largest = 0;
static struct count total;
static uint64_t revoked_epochs, shrunk_epochs;

/* ---- comparing ---- */

static void mistaken(const char *what, int tid, uint64_t epoch)
{
    printf("FAIL worker %d: %s (epoch %016llx)\n", tid, what, (unsigned long long)epoch);
    mistakes++;
}

static bool is_same(const struct crew *one, const struct crew *other)
{
    return one->epoch == other->epoch && one->n == other->n && memcmp(one->tids, other->tids, (size_t)one->n * sizeof *one->tids) == 0;
}

static bool is_in(int tid, const struct crew *all)
{
    for (int i = 0; i < all->n; i++)
        if (all->tids[i] == tid)
            return true;
    return false;
}

static struct epoch *find_epoch(uint64_t number)
{
    for (int i = 0; i < KEPT_EPOCHS; i++)
        if (epochs[i].reports > 0 && epochs[i].first.before.epoch == number)
            return &epochs[i];
    return NULL;
}

/*
 * Checks an epoch about which no more reports can arrive: if a group was revoked, one of its members must have revoked
 * it.
 */
static void close_epoch(struct epoch *epoch)
{
    const struct report *all = &epoch->first;
    bool is_anybody_gone = epoch->reports < all->before.n;
    if (epoch->reports > 0 && (all->has_found & ~all->has_revoked) && !is_anybody_gone)
        mistaken("a group is revoked, and none of its members has done it", all->before.tids[0], all->before.epoch);
    revoked_epochs += epoch->reports > 0 && all->has_revoked;
    shrunk_epochs += epoch->reports > 0 && all->after.n < all->before.n;
    epoch->reports = 0;
}

static void begin_epoch(const struct report *report)
{
    struct epoch *epoch = &epochs[next_epoch++ % KEPT_EPOCHS];
    close_epoch(epoch);
    *epoch = (struct epoch){.first = *report, .reports = 1};
    for (int i = 0; i < report->before.n; i++) {
        struct accusation word = {.tid = report->before.tids[i]};
        if (!is_in(word.tid, &report->after))
            take_accusation(&word);
    }
}

static void add(const struct count *one)
{
    const uint64_t *from = (const uint64_t *)one;
    uint64_t *to = (uint64_t *)&total;
    for (size_t i = 0; i < sizeof total / sizeof *to; i++)
        to[i] += from[i];
}

static void compare(int tid, const struct report *report)
{
    struct epoch *epoch = find_epoch(report->before.epoch);
    add(&report->count);
    if (!is_in(tid, &report->before) || !is_in(tid, &report->after))
        mistaken("it is none of its group", tid, report->before.epoch);
    if (epoch == NULL) {
        begin_epoch(report);
        return;
    }
    struct report *first = &epoch->first;
    if (!is_same(&report->before, &first->before) || !is_same(&report->after, &first->after))
        mistaken("it has other members in its group than others have", tid, report->before.epoch);
    if (report->agreements != first->agreements || report->history != first->history)
        mistaken("it has had other agreements than others have", tid, report->before.epoch);
    first->has_revoked |= report->has_revoked;
    first->has_found |= report->has_found;
    epoch->reports++;
}

/* ---- the crew ---- */

static bool is_living_member(int i) { return is_alive(crew.tids[i]) && !crewmen[crew.tids[i]].has_left; }

static void tell(int tid, int what)
{
    int code = rg_send(&crew, sizeof crew, tid, what, ORDERS);
    if (code != RG_OK && !is_gone(code))
        give_up("rg_send of an order");
}

static void tell_crew(int what)
{
    for (int i = 0; i < crew.n; i++) {
        is_awaited[crew.tids[i]] = what != STOP;
        if (is_living_member(i))
            tell(crew.tids[i], what);
    }
}

static bool is_anybody_awaited(void)
{
    for (int i = 0; i < crew.n; i++)
        if (is_awaited[crew.tids[i]] && is_living_member(i))
            return true;
    return false;
}

/* Determines, together with the epoch's number, which rounds are played in it. */
static uint64_t seed_of_run;

/* Tells the living members of the crew, and the workers that were started since, to make a group. */
static void have_group_made(void)
{
    static uint64_t number;
    struct crew next = {.epoch = hash(seed_of_run ^ hash(0xc7a05 + number))};
    for (int i = 0; i < crew.n; i++)
        if (is_living_member(i))
            next.tids[next.n++] = crew.tids[i];
    for (int tid = 0; tid < ids_given && next.n < MAX_MEMBERS; tid++)
        if (is_free[tid] && is_alive(tid)) {
            next.tids[next.n++] = tid;
            is_free[tid] = false;
        }
    crew = next;
    has_refused = false;
    state = crew.n > 0 ? IN_MAKING : NONE;
    if (crew.n > 0)
        tell_crew(number == 0 || IS_OVER_MPI ? MAKE_FIRST : MAKE);
    number++;
}

static int count_free(bool also_coming)
{
    int n = 0;
    for (int tid = 0; tid < ids_given; tid++)
        n += is_alive(tid) && (is_free[tid] || (also_coming && !is_in(tid, &crew)));
    return n;
}

/* Goes on when all awaited messages have arrived. */
static void go_on(bool is_late)
{
    if (state == NONE ? count_free(false) < count_free(true) : is_anybody_awaited())
        return;
    if (is_late || (IS_OVER_MPI && state == AT_WORK && crew.n <= largest / 2)) {
        tell_crew(STOP);
        crew.n = 0;
        state = NONE;
    } else if (state == IN_MAKING && !has_refused) {
        groups_made++;
        largest = crew.n > largest ? crew.n : largest;
        state = AT_WORK;
        tell_crew(GO_ON);
    } else if (state == AT_WORK && count_free(false) == 0) {
        tell_crew(GO_ON);
    } else {
        groups_not_made += state == IN_MAKING;
        have_group_made();
    }
}

static void take_ready(int tid, const struct crew *its)
{
    /* A report of an epoch that is over for the others is from a task that has ended since. */
    if (!is_alive(tid))
        return;
    for (int i = 0; i < its->n; i++)
        is_awaited[its->tids[i]] |= !is_in(its->tids[i], &crew);
    crew = *its;
    is_awaited[tid] = false;
}

/* Starts workers for those that have ended. Over MPI, starts a whole crew when the last worker has ended. */
static void start_more(const char *program, int per_host, const char *seed)
{
    if (!IS_OVER_MPI) {
        start_missing(program, per_host, seed);
        return;
    }
    rg_host hosts[MAX_HOSTS];
    int n, living = 0;
    for (int tid = 0; tid < ids_given; tid++)
        if (is_alive(tid))
            return;
    OK(rg_hosts(hosts, MAX_HOSTS, &n));
    for (int i = 0; i < n && i < MAX_HOSTS; i++)
        living += hosts[i].alive;
    start_workers(program, NULL, per_host * living, seed);
}

/* Takes one message, if there is one. Returns whether a worker has arrived or ended. */
static bool hear(bool *heard)
{
    static union {
        rg_event event;
        struct accusation accusation;
        struct report report;
        struct crew crew;
        struct count count;
        int code;
    } said;
    int found;
    rg_status status;
    OK(rg_iprobe(RG_ANY, RG_ANY, ORDERS, &found, &status));
    *heard = found;
    if (!found)
        return false;
    OK(rg_recv(&said, sizeof said, status.source, status.tag, ORDERS, &status));
    int tid = status.source;
    switch (status.tag) {
    case ACCUSED: take_accusation(&said.accusation); return false;
    case JOINED: is_free[tid] = true; return false;
    case REPORT: compare(tid, &said.report); return false;
    case READY: take_ready(tid, &said.crew); return false;
    case MADE:
        has_refused |= said.code != RG_OK;
        is_awaited[tid] = false;
        return false;
    case LEAVING:
        crewmen[tid].has_left = true;
        add(&said.count);
        return false;
    case RESULT:
        crewmen[tid].done = true;
        add(&said.count);
        return false;
    default: return take_event(status.tag, &said.event, OWN_SIGNAL);
    }
}

static bool hear_all(void)
{
    bool changed = false, heard = true;
    while (heard) {
        changed |= hear(&heard);
        alarm(2 * STALL_SECONDS);
    }
    return changed;
}

/* At the end of the run, tells workers that are not in the crew to end as soon as they report. */
static bool stop_all(void)
{
    bool is_any = false;
    for (int tid = 0; tid < ids_given; tid++) {
        if (is_free[tid] && is_alive(tid))
            tell(tid, STOP);
        is_free[tid] = false;
        is_any |= (is_alive(tid) && !crewmen[tid].done && !crewmen[tid].has_left) || owes_word(tid);
    }
    return is_any;
}

static void report(int hosts, int wrongly)
{
    printf("chaos: %d workers on %d hosts; %d killed, %d lost with hosts, %d ended themselves, %d hosts lost, %d added\n", spawned, hosts, losses.killed,
           losses.lost_workers, losses.by_themselves, losses.lost_hosts, losses.added_hosts);
    printf("chaos: %d groups of up to %d made of workers that come, %d not made; summed over all workers %llu epochs, %llu revocations, %llu shrinks, %llu agreements\n", groups_made,
           largest, groups_not_made, (unsigned long long)total.epochs, (unsigned long long)total.revokes, (unsigned long long)total.shrinks,
           (unsigned long long)total.agreements);
    printf("chaos: %d epochs, %llu of them revoked, %llu shrunk; %llu bytes checked\nchaos: rounds:", next_epoch, (unsigned long long)revoked_epochs,
           (unsigned long long)shrunk_epochs, (unsigned long long)total.bytes);
    for (int kind = 0; kind < ALL_KINDS; kind++)
        printf(" %s %llu", names_of_kinds[kind], (unsigned long long)total.kinds[kind]);
    printf("\nchaos: operations by their ends:");
    for (int class = 0; class < ALL_CLASSES; class++)
        printf(" %s %llu", names_of_classes[class], (unsigned long long)total.classes[class]);
    printf("\nchaos: mistakes %d, ended without a cause %d, wrongly called dead or left %d\n", mistakes, losses.failures, wrongly);
}

static int captain(const char *program, int seconds, int per_host, const char *seed)
{
    seed_of_run = strtoull(seed, NULL, 10);
    double end = rg_time() + seconds;
    bool changed = true, is_late = false;
    int hosts;
    OK(rg_hosts(NULL, 0, &hosts));
    begin_captain();
    while (!is_late || state != NONE || stop_all()) {
        is_late |= rg_time() >= end || losses.failures + mistakes > 0;
        if (changed && !is_late)
            start_more(program, per_host, seed);
        go_on(is_late);
        await_word(is_late ? rg_time() + STALL_SECONDS : end);
        changed = hear_all();
    }
    for (int i = 0; i < KEPT_EPOCHS; i++)
        close_epoch(&epochs[i]);
    int wrongly = count_wrongly_called();
    report(hosts, wrongly);
    return mistakes + losses.failures + wrongly > 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "worker") == 0)
        return worker(strtoull(argv[2], NULL, 10));
    if (argc != 5 || strcmp(argv[1], "captain") != 0) {
        fprintf(stderr, "usage: %s captain SECONDS WORKERS SEED\n", argv[0]);
        return 2;
    }
    OK(rg_init());
    int status = captain(argv[0], atoi(argv[2]), atoi(argv[3]), argv[4]);
    OK(rg_finalize());
    return status;
}
