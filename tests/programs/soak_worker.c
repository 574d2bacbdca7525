/*
 * A worker of the soak: sends numbered messages with checksums to the others in every way that Regatta has, and
 * receives and completes in every way, chosen at random.
 *
 * A receiver counts the messages of each sender. All have the same context, so they arrive in the order of the sending
 * calls, whatever the calls are. Several receives may be posted at once; they are checked in the order of posting.
 *
 * Only a worker with a smaller number waits in a sending call for one with a larger number. Waiting senders therefore
 * never form a circle, and an error that reports one is wrong.
 */
#include "soak.h"
#include <poll.h>

struct letter {
    uint32_t from, number; /* number: how many messages preceded it from this sender to this receiver */
    uint32_t kind;         /* FREIGHT, TOKEN or LAST */
    uint32_t length;       /* of the following body */
    uint64_t seal;         /* checksum of the body */
};
enum { FREIGHT = 1, TOKEN, LAST };

enum { SENDS = 4, RECEIVES = 3, AHEAD = 512 << 10 };
#define MAX_LETTER_BYTES (sizeof(struct letter) + MAX_LENGTH)

/* A request in progress. If a callback is to complete it, `request` is null, and `called` is set by the callback. */
struct slot {
    rg_request request;
    bool busy, by_call, called;
    rg_status status;
    int to; /* destination of a send */
    char *bytes;
};

static struct result count;
static struct slot sendings[SENDS + 1]; /* the last one is for the token */
/* Receives: a circular list of `posted` slots; `first` is the oldest. */
static struct slot receivings[RECEIVES];
static int first, posted;
static struct slot orders, sums;
static int order[MAX_TASKS];
static uint32_t sent_to[MAX_TASKS], received_from[MAX_TASKS];
static size_t ahead[MAX_TASKS]; /* bytes sent to each task that it has not received yet */
static double ahead_since[MAX_TASKS];
static int roster[MAX_TASKS], crew; /* the other workers, and their number */
static bool heard_last[MAX_TASKS], said_last[MAX_TASKS], accused[MAX_TASKS];
static bool stopping, token, has_world;
static int captain, fd;

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

/* Stops sending to a task. If a worker reports that to the captain, it must be true. */
static void forget(int tid, int code)
{
    for (int i = 0; i < crew; i++)
        if (roster[i] == tid)
            roster[i--] = roster[--crew];
    if (!accused[tid]) {
        struct accusation word = {.tid = tid, .code = code};
        snprintf(word.said, sizeof word.said, "%.190s", rg_last_error());
        accused[tid] = true;
        OK(rg_bsend(&word, sizeof word, captain, ACCUSED, ORDERS));
    }
}

/* ---- sending -------------------------------------------------------------------------------- */

static void write_letter(char *bytes, int to, uint32_t kind, size_t length)
{
    struct letter *letter = (struct letter *)bytes;
    char *body = bytes + sizeof *letter;
    uint64_t word = roll();
    for (size_t at = 0; at < length; at += 8, word = word * 5 + 1)
        memcpy(body + at, &word, length - at < 8 ? length - at : 8);
    *letter = (struct letter){(uint32_t)rg_tid(), sent_to[to], kind, (uint32_t)length, 0};
    letter->seal = seal_of(body, length, letter->from, letter->number);
}

static void on_called(const rg_status *status, void *arg)
{
    struct slot *slot = arg;
    slot->status = *status;
    slot->called = true;
}

static void by_callback(struct slot *slot, enum way way)
{
    slot->by_call = true;
    slot->called = false;
    OK(rg_on_complete(&slot->request, on_called, slot));
    slot->request = RG_REQUEST_NULL;
    count.ways[way]++;
}

/*
 * Returns whether this many more bytes may be sent to a task before it receives the previous ones. Unreceived messages
 * use this task's memory.
 */
static bool may_go_ahead(int to, size_t length)
{
    if (rg_time() - ahead_since[to] > 0.25) {
        ahead_since[to] = rg_time();
        ahead[to] = 0;
    }
    ahead[to] += length;
    return ahead[to] <= AHEAD;
}

static enum way some_way(int to, size_t length)
{
    static const enum way started[] = {ISEND, ISEND, ISSEND, ISENDV};
    static const enum way waiting[] = {SEND, SSEND, SENDV};
    static const enum way buffered[] = {BSEND, BSENDV, LOAN};
    if (one_in(4) && may_go_ahead(to, length))
        return buffered[roll() % 3];
    if (one_in(3) && to > rg_tid() && !stopping)
        return waiting[roll() % 3];
    return started[roll() % 4];
}

static bool start(struct slot *slot, int to, uint32_t kind, size_t length)
{
    write_letter(slot->bytes, to, kind, length);
    length += sizeof(struct letter);
    enum way way = some_way(to, length);
    int code = send_by(way, slot->bytes, length, to, (int)kind, TRAFFIC, &slot->request);
    if (is_gone(code)) {
        forget(to, code);
        return false;
    }
    if (code != RG_OK)
        give_up("a send");
    slot->busy = is_started(way);
    slot->by_call = false;
    slot->to = to;
    if (slot->busy && one_in(8))
        by_callback(slot, CALLED_SEND);
    sent_to[to]++;
    count.sent++;
    count.ways[way]++;
    return true;
}

static int successor(void)
{
    int me = rg_tid(), next = -1, lowest = -1;
    for (int i = 0; i < crew; i++) {
        if (lowest < 0 || roster[i] < lowest)
            lowest = roster[i];
        if (roster[i] > me && (next < 0 || roster[i] < next))
            next = roster[i];
    }
    return next < 0 ? lowest : next;
}

/* Returns the number of tasks that have not got this worker's last message yet. */
static int untold(void)
{
    for (int i = 0; i < crew; i++)
        if (!said_last[roster[i]])
            return roster[i];
    return RG_NONE;
}

/* Keeps some sends in progress; at the end, sends one last message to each task. */
static void send_some(void)
{
    for (int i = 0; i < SENDS && crew > 0; i++) {
        if (sendings[i].busy)
            continue;
        if (!stopping) {
            start(&sendings[i], roster[roll() % (uint64_t)crew], FREIGHT, length_of(roll(), sizeof(struct letter)));
        } else if (untold() != RG_NONE) {
            int to = untold();
            said_last[to] = start(&sendings[i], to, LAST, 0);
        }
    }
    struct slot *carrier = &sendings[SENDS];
    if (token && !stopping && crew > 0 && !carrier->busy) {
        token = !start(carrier, successor(), TOKEN, 64);
        count.rounds += !token;
    }
}

static void sent(int i, int code)
{
    sendings[i].busy = false;
    if (is_gone(code)) {
        token |= i == SENDS;
        forget(sendings[i].to, code);
    } else if (code != RG_OK) {
        give_up("a send that was started");
    }
}

/* ---- receiving ------------------------------------------------------------------------------ */

/*
 * Prints where a message differs from what its sender wrote. Each word of a body follows from the previous one
 * (write_letter).
 */
static void print_damage(const char *bytes, const rg_status *status)
{
    const struct letter *letter = (const struct letter *)bytes;
    const char *body = bytes + sizeof *letter;
    size_t length = status->length < sizeof *letter ? 0 : status->length - sizeof *letter, wrong = 0, first_wrong = 0, last_wrong = 0;
    uint64_t word = 0, last = 0;
    for (size_t at = 0; at + 8 <= length; at += 8, last = word) {
        memcpy(&word, body + at, 8);
        if (at == 0 || word == last * 5 + 1)
            continue;
        first_wrong = wrong++ == 0 ? at : first_wrong;
        last_wrong = at;
    }
    printf("FAIL task %d: a damaged message of task %d, tag %d, %llu bytes, number %u expected; its head says task %u, number %u, kind %u, "
           "%u bytes; %zu words of its body do not follow from the one before, from byte %zu to byte %zu\n",
           rg_tid(), status->source, status->tag, (unsigned long long)status->length, received_from[status->source], letter->from,
           letter->number, letter->kind, letter->length, wrong, first_wrong, last_wrong);
}

static void look_at(const char *bytes, const rg_status *status)
{
    const struct letter *letter = (const struct letter *)bytes;
    const char *body = bytes + sizeof *letter;
    int from = status->source;
    if (status->length < sizeof *letter || status->length - sizeof *letter != letter->length ||
        letter->from != (uint32_t)from || letter->kind != (uint32_t)status->tag ||
        seal_of(body, letter->length, letter->from, letter->number) != letter->seal) {
        print_damage(bytes, status);
        count.damaged++;
        return;
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
    token |= letter->kind == TOKEN;
}

static void arrived(const char *bytes, int code, const rg_status *status)
{
    if (code == RG_OK)
        look_at(bytes, status);
    else if (is_gone(code) && status->source >= 0)
        received_from[status->source]++; /* its sender was killed while sending it */
    else
        give_up("a receive");
}

/* Receives one message that has arrived, with one of the blocking calls. */
static void receive_found(const rg_status *found)
{
    char *bytes = receivings[0].bytes;
    rg_status status = {.source = found->source};
    enum way way = (enum way[]){RECV, RECVV, RECV_WITHIN, LOAN_RECV}[roll() % 4];
    count.ways[way]++;
    int code = receive_by(way, bytes, found->length, found->source, found->tag, TRAFFIC, &status);
    arrived(bytes, code, &status);
}

/* Posts receives, some of which complete at once, or probes for messages. Returns whether a message has arrived. */
static bool receive_some(void)
{
    bool any = false;
    int found = 1;
    if (posted > 0)
        return false;
    while (found && one_in(2)) {
        rg_status status;
        OK(rg_iprobe(RG_ANY, RG_ANY, TRAFFIC, &found, &status));
        if (found)
            receive_found(&status);
        any |= found;
    }
    if (one_in(8)) {
        /* Waits a short time for the next message. */
        rg_status status = {.source = RG_NONE};
        int code = rg_recv_within(receivings[0].bytes, MAX_LETTER_BYTES, RG_ANY, RG_ANY, TRAFFIC, (double)(roll() % 3) * 1e-3, &status);
        count.ways[RECV_WITHIN]++;
        if (code != RG_ERR_NOTHING)
            arrived(receivings[0].bytes, code, &status);
        any |= code != RG_ERR_NOTHING;
    }
    first = 0;
    posted = 1 + (int)(roll() % RECEIVES);
    for (int i = 0; i < posted; i++) {
        struct slot *slot = &receivings[i];
        rg_view views[3];
        bool strided = one_in(3);
        slot->busy = true;
        slot->by_call = false;
        if (strided)
            OK(rg_irecvv(views, views_of(slot->bytes, MAX_LETTER_BYTES, views), RG_ANY, RG_ANY, TRAFFIC, &slot->request));
        else
            OK(rg_irecv(slot->bytes, MAX_LETTER_BYTES, RG_ANY, RG_ANY, TRAFFIC, &slot->request));
        count.ways[strided ? IRECVV : IRECV]++;
        if (one_in(4))
            by_callback(slot, CALLED_RECV);
    }
    return any;
}

/* Takes the complete receives, in the order of posting. */
static void take_received(void)
{
    for (; posted > 0 && !receivings[first].busy; first++, posted--)
        arrived(receivings[first].bytes, receivings[first].status.error, &receivings[first].status);
}

/* ---- orders, and sums ----------------------------------------------------------------------- */

static void take_roster(const int *tids, int n)
{
    crew = 0;
    for (int i = 0; i < n; i++)
        if (tids[i] != rg_tid() && tids[i] < MAX_TASKS && !accused[tids[i]])
            roster[crew++] = tids[i];
}

static void listen_to_captain(void)
{
    alarm(STALL_SECONDS);
    OK(rg_irecv(order, sizeof order, captain, RG_ANY, ORDERS, &orders.request));
    orders.busy = true;
}

static void ordered(int code, const rg_status *status)
{
    if (code != RG_OK)
        give_up("the captain is gone");
    /* A roster's first word is the worker that must start a new token, because the old one may be lost. */
    take_roster(order + 1, (int)(status->length / sizeof *order) - 1);
    token |= status->tag == ROSTER && order[0] == rg_tid();
    stopping |= status->tag == STOP;
    listen_to_captain();
}

/* Tasks that were started together repeat a sum until one of them is gone or must stop. */
static int64_t addends[2], totals[2];

static void add_up(void)
{
    addends[0] = 1;
    addends[1] = stopping;
    int code = rg_iallreduce(addends, totals, 2, RG_INT64, RG_SUM, RG_WORLD, &sums.request);
    sums.busy = has_world = code == RG_OK;
    if (code != RG_OK && !is_gone(code))
        give_up("rg_iallreduce");
}

static void added_up(int code)
{
    sums.busy = false;
    has_world = code == RG_OK && totals[1] == 0;
    if (code != RG_OK && !is_gone(code))
        give_up("a sum");
    if (code != RG_OK)
        return;
    count.damaged += totals[0] != rg_size(RG_WORLD);
    count.ways[COLLECTIVE]++;
}

/* ---- completing ----------------------------------------------------------------------------- */

enum { RECEIVING = SENDS + 1, ORDER = RECEIVING + RECEIVES, SUM, ALL };

static struct slot *slot_of(int i)
{
    return i < RECEIVING ? &sendings[i] : i < ORDER ? &receivings[i - RECEIVING] : i == ORDER ? &orders : &sums;
}

static void completed(int i, int code, const rg_status *status)
{
    struct slot *slot = slot_of(i);
    slot->request = RG_REQUEST_NULL;
    slot->busy = false;
    if (i < RECEIVING) {
        sent(i, code);
    } else if (i < ORDER) {
        slot->status = *status;
        slot->status.error = code;
    } else if (i == ORDER) {
        ordered(code, status);
    } else {
        added_up(code);
    }
}

/* Handles the requests whose callbacks have run. */
static bool take_called(void)
{
    bool any = false;
    for (int i = 0; i < ORDER; i++) {
        struct slot *slot = slot_of(i);
        if (slot->busy && slot->by_call && slot->called) {
            rg_status status = slot->status;
            completed(i, status.error, &status);
            any = true;
        }
    }
    return any;
}

static int gather(rg_request requests[ALL])
{
    int calls = 0;
    for (int i = 0; i < ALL; i++) {
        const struct slot *slot = slot_of(i);
        requests[i] = slot->busy && !slot->by_call ? slot->request : RG_REQUEST_NULL;
        calls += slot->busy && slot->by_call;
    }
    return calls;
}

/* Tests each request. Returns whether some are complete. */
static bool test_each(void)
{
    bool any = false;
    OK(rg_progress());
    for (int i = 0; i < ALL; i++) {
        struct slot *slot = slot_of(i);
        rg_status status = {.source = RG_NONE};
        int done = 0;
        if (!slot->busy || slot->by_call)
            continue;
        int code = rg_test(&slot->request, &done, &status);
        if (done)
            completed(i, code, &status);
        else
            OK(code);
        any |= done;
    }
    return take_called() || any;
}

/* The other requests are tested when the descriptor is readable. */
static void await_by_fd(void)
{
    count.ways[TEST_BY_FD]++;
    for (;;) {
        OK(rg_clear_fd());
        if (test_each())
            return;
        struct pollfd one = {fd, POLLIN, 0};
        poll(&one, 1, -1);
    }
}

static void complete_some(void)
{
    rg_request requests[ALL];
    rg_status status = {.source = RG_NONE};
    int calls = gather(requests), which = -1, done = 1, code;
    /* A call that waits for requests does not return when a callback has run. */
    if (calls > 0 || one_in(3)) {
        await_by_fd();
    } else if (one_in(3)) {
        count.ways[TESTANY]++;
        code = rg_testany(ALL, requests, &which, &done, &status);
        if (done && which >= 0)
            completed(which, code, &status);
        else
            OK(code);
    } else {
        count.ways[WAITANY]++;
        code = rg_waitany(ALL, requests, &which, &status);
        if (which < 0)
            give_up("rg_waitany");
        completed(which, code, &status);
    }
    take_called();
    take_received();
}

static bool all_have_spoken(void)
{
    for (int i = 0; i <= SENDS; i++)
        if (sendings[i].busy)
            return false;
    for (int i = 0; i < crew; i++)
        if (!heard_last[roster[i]])
            return false;
    return untold() == RG_NONE && !has_world;
}

int worker(uint64_t seed)
{
    captain = rg_parent();
    dice = hash(seed ^ (uint64_t)rg_tid() << 32);
    printf("worker %d pid %d\n", rg_tid(), getpid());
    fflush(stdout);
    for (int i = 0; i < RECEIVING + RECEIVES; i++) {
        slot_of(i)->bytes = malloc(MAX_LETTER_BYTES);
        if (slot_of(i)->bytes == NULL)
            give_up("malloc");
    }
    OK(rg_fd(&fd));
    listen_to_captain();
    has_world = rg_size(RG_WORLD) > 1;
    while (!stopping || !all_have_spoken()) {
        send_some();
        if (has_world && !sums.busy && (stopping || one_in(8)))
            add_up();
        if (!receive_some())
            complete_some();
    }
    OK(rg_send(&count, sizeof count, captain, RESULT, ORDERS));
    return 0;
}
