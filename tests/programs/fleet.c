/*
 * The captain of a fleet, which starts workers on all hosts and is notified of their ends; and all ways to send and
 * receive.
 */
#include "fleet.h"
#include <fcntl.h>
#include <poll.h>

#define TEXT_OF_WAY(name) #name,
const char *const names_of_ways[ALL_WAYS] = {WAYS(TEXT_OF_WAY)};

uint64_t dice;
struct crewman crewmen[MAX_TASKS];
int ids_given, spawned;
struct losses losses;

/* ---- messages ---- */

size_t length_of(uint64_t random, size_t head)
{
    static const size_t edges[] = {48, 64, 4096, 8192, 16 << 10, 20 << 10, 32 << 10, 64 << 10, 70 << 10, 128 << 10, 256 << 10};
    uint64_t what = random % 128, more = hash(random);
    size_t length;
    if (what < 64)
        return more % 256;
    if (what < 104) {
        length = edges[more % (sizeof edges / sizeof *edges)] + hash(more) % 33 - 16;
        return length < head ? 0 : length - head;
    }
    if (what < 124)
        return (16 << 10) + more % (54 << 10);
    return more % (what < 127 ? 1 << 20 : MAX_LENGTH);
}

int views_of(char *bytes, size_t length, rg_view views[3])
{
    size_t front = length / 3, piece = 1 + length % 61, pieces = (length - front) / piece;
    views[0] = (rg_view){bytes, front, 1, 0};
    views[1] = (rg_view){bytes + front, piece, pieces, (ptrdiff_t)piece};
    views[2] = (rg_view){bytes + front + piece * pieces, length - front - piece * pieces, 1, 0};
    return 3;
}

static int send_loan(const char *bytes, size_t length, int to, int tag, rg_group group)
{
    void *block;
    int code = rg_loan(length, &block);
    if (code == RG_ERR_MEMORY)
        return rg_bsend(bytes, length, to, tag, group);
    OK(code);
    memcpy(block, bytes, length);
    code = rg_loan_send(block, length, to, tag, group);
    if (code != RG_OK)
        rg_loan_free(block);
    return code;
}

int send_by(enum way way, char *bytes, size_t length, int to, int tag, rg_group group, rg_request *request)
{
    rg_view views[3];
    int n = views_of(bytes, length, views);
    switch (way) {
    case SEND: return rg_send(bytes, length, to, tag, group);
    case SSEND: return rg_ssend(bytes, length, to, tag, group);
    case SENDV: return rg_sendv(views, n, to, tag, group);
    case BSEND: return rg_bsend(bytes, length, to, tag, group);
    case BSENDV: return rg_bsendv(views, n, to, tag, group);
    case LOAN: return send_loan(bytes, length, to, tag, group);
    case ISSEND: return rg_issend(bytes, length, to, tag, group, request);
    case ISENDV: return rg_isendv(views, n, to, tag, group, request);
    default: return rg_isend(bytes, length, to, tag, group, request);
    }
}

int receive_by(enum way way, char *bytes, size_t length, int from, int tag, rg_group group, rg_status *status)
{
    rg_view views[3];
    void *block = NULL;
    int code;
    switch (way) {
    case RECVV: return rg_recvv(views, views_of(bytes, length, views), from, tag, group, status);
    case RECV_WITHIN: return rg_recv_within(bytes, length, from, tag, group, STALL_SECONDS, status);
    case LOAN_RECV:
        code = rg_loan_recv(&block, from, tag, group, status);
        if (code == RG_OK) {
            memcpy(bytes, block, status->length < length ? status->length : length);
            OK(rg_loan_free(block));
        }
        return code;
    default: return rg_recv(bytes, length, from, tag, group, status);
    }
}

/* ---- captain ---- */

/*
 * The driver that inflicts the faults waits for the beginning (tests/src/network.rs). Without its file, nothing waits.
 */
static void say_that_it_begins(void)
{
    int file = open("/run/begun", O_WRONLY);
    if (file >= 0 && (write(file, "\n", 1) != 1 || close(file) != 0))
        give_up("the file that tells of the beginning");
}

void begin_captain(void)
{
    rg_host hosts[MAX_HOSTS];
    int n;
    for (int tid = 0; tid < MAX_TASKS; tid++)
        crewmen[tid].host = -1;
    OK(rg_hosts(hosts, MAX_HOSTS, &n));
    for (int i = 0; i < n && i < MAX_HOSTS; i++)
        OK(rg_notify(RG_HOST_LOST, hosts[i].host, LOST, ORDERS, NULL));
    OK(rg_notify(RG_HOST_ADDED, 0, ADDED, ORDERS, NULL));
    say_that_it_begins();
}

static int living(int host)
{
    int n = 0;
    for (int tid = 0; tid < ids_given; tid++)
        n += crewmen[tid].host == host;
    return n;
}

void start_workers(const char *program, const char *host, int missing, const char *seed)
{
    int tids[missing], started = 0;
    char *const arguments[] = {"worker", (char *)seed, NULL};
    rg_spawn_options options = {.host = host};
    int code = rg_spawn(program, arguments, &options, missing, tids, &started);
    if (code != RG_OK)
        printf("spawn on %s: %s\n", host == NULL ? "any host" : host, rg_last_error());
    for (int k = 0; k < started; k++) {
        if (tids[k] >= MAX_TASKS)
            give_up("more tasks than the captain counts");
        ids_given = tids[k] >= ids_given ? tids[k] + 1 : ids_given;
        crewmen[tids[k]].host = rg_host_of(tids[k]);
        OK(rg_notify(RG_TASK_EXIT, tids[k], EXIT, ORDERS, NULL));
        spawned++;
    }
}

void start_missing(const char *program, int per_host, const char *seed)
{
    rg_host hosts[MAX_HOSTS];
    int n;
    OK(rg_hosts(hosts, MAX_HOSTS, &n));
    if (spawned == 0)
        start_workers(program, NULL, per_host * n, seed);
    for (int i = 0; i < n && i < MAX_HOSTS; i++) {
        int missing = hosts[i].alive ? per_host - living(hosts[i].host) : 0;
        if (missing > 0)
            start_workers(program, hosts[i].name, missing, seed);
    }
}

bool is_alive(int tid) { return crewmen[tid].host >= 0; }
bool owes_word(int tid) { return crewmen[tid].owes_word && !crewmen[tid].done && !crewmen[tid].has_left; }

static void ended(const rg_event *event, int own_signal)
{
    struct crewman *one = &crewmen[event->tid];
    if (one->host < 0)
        return;
    one->host = -1;
    one->was_killed = event->how != RG_BY_EXIT || event->value != 0;
    if (one->done)
        return;
    if (event->how == RG_BY_HOST) {
        losses.lost_workers++;
    } else if (event->how == RG_BY_SIGNAL && event->value == 9) {
        losses.killed++;
    } else if (event->how == RG_BY_SIGNAL && event->value == own_signal) {
        losses.by_themselves++;
    } else if (event->how == RG_BY_EXIT && event->value == 0) {
        /* Its last report may still be in transit, because events arrive on another path. */
        one->owes_word = !one->has_left;
    } else {
        losses.failures++;
        printf("FAIL worker %d on host %s ended: how %d, value %d\n", event->tid, event->name, event->how, event->value);
    }
}

bool take_event(int tag, const rg_event *event, int own_signal)
{
    switch (tag) {
    case EXIT: ended(event, own_signal); return true;
    case LOST:
        losses.lost_hosts++;
        printf("lost host %s\n", event->name);
        return true;
    case ADDED:
        losses.added_hosts++;
        OK(rg_notify(RG_HOST_LOST, event->host, LOST, ORDERS, NULL));
        return true;
    default: return false;
    }
}

void take_accusation(const struct accusation *accusation)
{
    struct crewman *one = &crewmen[accusation->tid];
    if (!one->is_called_dead && !one->is_called_left && !one->is_called_gone)
        one->first = *accusation;
    one->is_called_dead |= accusation->code == RG_ERR_DEAD;
    one->is_called_left |= accusation->code == RG_ERR_LEFT;
    one->is_called_gone |= !is_gone(accusation->code);
}

void await_word(double until)
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

int count_wrongly_called(void)
{
    int n = 0;
    for (int tid = 0; tid < ids_given; tid++) {
        const struct crewman *one = &crewmen[tid];
        bool killed = one->host < 0 && one->was_killed, left = one->has_left || one->done;
        const char *wrong = NULL;
        if (one->is_called_dead && !killed)
            wrong = "was called dead while it lived";
        else if (one->is_called_left && !left)
            wrong = "was said to have left, which it has not";
        else if (one->is_called_gone && !killed && !left)
            wrong = "was left out while it lived";
        else if (owes_word(tid))
            wrong = "ended without a word";
        if (wrong != NULL)
            printf("FAIL worker %d %s%s: %d: %s\n", tid, wrong, left ? ", and has left" : "", one->first.code, one->first.said);
        n += wrong != NULL;
    }
    return n;
}
