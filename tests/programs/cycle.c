/*
 * Senders that wait for each other in a circle. With a small REGATTA_BUFFER, all of them get an error that names the
 * tasks of the circle, and the message of the failed blocking send is not delivered. With the default buffer, the same
 * program completes.
 *
 *     PROGRAM SCENARIO cycle|fine
 */
#include "check.h"

static bool expects_cycle(void) { return arg_count > 0 && strcmp(args[0], "cycle") == 0; }

/*
 * Every task sends `count` messages of `len` bytes to the next task before any of them receives. Kinds: b blocking, s
 * synchronous, i nonblocking and waited for together, a nonblocking and waited for one by one, m the first task as i
 * and the others as b.
 */
static int kind_of(int kind, int rank) { return kind == 'm' ? rank == 0 ? 'i' : 'b' : kind; }

static void ring_of(size_t len, int count, int all)
{
    int kind = kind_of(all, me);
    bool starts = kind == 'i' || kind == 'a';
    int next = (me + 1) % size, before = (me + size - 1) % size, code = RG_OK, sent = 0;
    unsigned char *bytes = need(len);
    paint(bytes, len, (uint64_t)me);
    rg_request *requests = need(sizeof *requests * (size_t)count);
    for (; sent < count && code == RG_OK; sent += code == RG_OK) {
        if (kind == 's')
            code = rg_ssend(bytes, len, next, 1, RG_WORLD);
        else if (starts)
            code = rg_isend(bytes, len, next, 1, RG_WORLD, &requests[sent]);
        else
            code = rg_send(bytes, len, next, 1, RG_WORLD);
    }
    if (kind == 'i' && code == RG_OK)
        code = rg_waitall(count, requests, NULL);
    for (int at = 0; kind == 'a' && code == RG_OK && at >= 0;)
        code = rg_waitany(count, requests, &at, NULL);
    printf("got %d %d %s\n", me, code, code ? rg_last_error() : "nothing wrong");
    if (expects_cycle()) {
        CHECK(code == RG_ERR_CYCLE);
        CHECK(strstr(rg_last_error(), "in a cycle") != NULL);
        for (int rank = 0; rank < size; rank++) {
            char name[20];
            snprintf(name, sizeof name, "task %d ", rank);
            CHECK(strstr(rg_last_error(), name) != NULL);
        }
    } else {
        CHECK(code == RG_OK);
    }
    if (!expects_cycle()) {
        for (int i = 0; i < count; i++) {
            rg_status status;
            memset(bytes, 0, len);
            OK(rg_recv(bytes, len, before, 1, RG_WORLD, &status));
            CHECK(status.length == len && unpainted(bytes, len, (uint64_t)before) == len);
        }
    }
    /*
     * No data is lost: what was sent arrives in order, followed by a message with the number of sends that succeeded. A
     * send that was refused has sent nothing; a nonblocking one may have.
     */
    int got = -1, arrived = 0;
    unsigned char *inbox = need(len);
    rg_request word;
    rg_status status;
    OK(rg_isend(&sent, sizeof sent, next, 2, RG_WORLD, &word));
    for (;; arrived++) {
        OK(rg_probe(before, RG_ANY, RG_WORLD, &status));
        if (status.tag == 2)
            break;
        CHECK(status.tag == 1 && status.length == len);
        memset(inbox, 0, len);
        OK(rg_recv(inbox, len, before, 1, RG_WORLD, &status));
        CHECK(unpainted(inbox, len, (uint64_t)before) == len);
    }
    OK(rg_recv(&got, sizeof got, before, 2, RG_WORLD, &status));
    OK(rg_wait(&word, NULL));
    if (starts)
        OK(rg_waitall(sent, requests, NULL));
    bool refused = kind_of(all, before) == 'b' || kind_of(all, before) == 's';
    if (expects_cycle() && refused && arrived != got)
        FAILED("%d messages arrived of %d sent", arrived, got);
    free(inbox);
    free(bytes);
    free(requests);
}

/*
 * The buffers are full of small messages. Each task then sends a large message, longer than a pipe, behind small ones
 * that have found no room.
 */
static void behind_small(void)
{
    enum { SMALL_MESSAGES = 70, LONG_BYTES = 1500000 };
    unsigned char *bytes = need(LONG_BYTES);
    int next = (me + 1) % size, before = (me + size - 1) % size;
    rg_status status;
    for (int i = 0; i < SMALL_MESSAGES; i++)
        OK(rg_send(bytes, 1000, next, 1, RG_WORLD));
    FAILS(rg_send(bytes, LONG_BYTES, next, 2, RG_WORLD), RG_ERR_CYCLE, "in a cycle");
    printf("got %d %s\n", me, rg_last_error());
    for (int i = 0; i < SMALL_MESSAGES; i++)
        OK(rg_recv(bytes, LONG_BYTES, before, 1, RG_WORLD, NULL));
    OK(rg_send(&me, sizeof me, next, 3, RG_WORLD));
    OK(rg_probe(before, RG_ANY, RG_WORLD, &status));
    CHECK(status.tag == 3);
    OK(rg_recv(bytes, LONG_BYTES, before, 3, RG_WORLD, NULL));
    free(bytes);
}

/* Task 0 broadcasts and task 1 sends, so both are blocked senders. A message that task 0 has not received keeps the broadcast from the fast path. */
static void broadcast(void)
{
    enum { MESSAGE_BYTES = 20000000 };
    unsigned char *bytes = need(MESSAGE_BYTES);
    paint(bytes, MESSAGE_BYTES, (uint64_t)me);
    if (me == 1)
        OK(rg_send(bytes, 1, 0, 1, RG_WORLD));
    else
        OK(rg_probe(1, 1, RG_WORLD, NULL));
    if (me == 0)
        FAILS(rg_broadcast(bytes, MESSAGE_BYTES, 0, RG_WORLD), RG_ERR_CYCLE, "in a cycle");
    else
        FAILS(rg_send(bytes, MESSAGE_BYTES, 0, 2, RG_WORLD), RG_ERR_CYCLE, "in a cycle");
    printf("got %d %s\n", me, rg_last_error());
    if (me == 0)
        OK(rg_recv(bytes, 1, 1, 1, RG_WORLD, NULL));
    free(bytes);
}

static void large(void) { ring_of(4 << 20, 3, 'b'); }
static void many(void) { ring_of(1000, 20000, 'b'); }
static void tiny(void) { ring_of(8, 100000, 'b'); }
static void started(void) { ring_of(4 << 20, 3, 'i'); }
static void any_of_started(void) { ring_of(4 << 20, 3, 'a'); }
static void mixed(void) { ring_of(4 << 20, 3, 'm'); }
static void synchronous(void) { ring_of(100, 1, 's'); }
static void synchronous_large(void) { ring_of(1 << 20, 1, 's'); }
static void synchronous_empty(void) { ring_of(0, 1, 's'); }

/* A task's messages to itself use the same buffer. */
static void itself(void)
{
    size_t len = 1 << 16;
    unsigned char *bytes = need(len);
    int code = RG_OK, sent = 0;
    for (; code == RG_OK && sent < 100; sent += code == RG_OK) {
        paint(bytes, len, (uint64_t)sent);
        code = rg_send(bytes, len, me, 1, RG_WORLD);
    }
    if (expects_cycle())
        CHECK(code == RG_ERR_CYCLE && strstr(rg_last_error(), "task ") != NULL && sent < 100);
    else
        CHECK(code == RG_OK && sent == 100);
    for (int i = 0; i < sent; i++) {
        OK(rg_recv(bytes, len, me, 1, RG_WORLD, NULL));
        CHECK(unpainted(bytes, len, (uint64_t)i) == len);
    }
    OK(rg_send(bytes, 100, me, 1, RG_WORLD));
    OK(rg_recv(bytes, len, me, 1, RG_WORLD, NULL));
}

/* A synchronous send to itself, which will never be received. */
static void itself_synchronous(void)
{
    char byte = 1;
    FAILS(rg_ssend(&byte, 1, me, 1, RG_WORLD), RG_ERR_CYCLE, "cycle");
}

/* A slow receiver is not a cycle: rank 0 is only busy for a while. */
static void slow_receiver(void)
{
    size_t len = 1 << 20;
    unsigned char *bytes = need(len);
    if (me == 0) {
        be_away(0.5);
        for (int i = 0; i < 8 * (size - 1); i++)
            OK(rg_recv(bytes, len, RG_ANY, 1, RG_WORLD, NULL));
    } else {
        for (int i = 0; i < 8; i++)
            OK(rg_send(bytes, len, 0, 1, RG_WORLD));
    }
    OK(rg_barrier(RG_WORLD));
}

/*
 * Each task has a large message pending that is received only at the end, so its queue is blocked. In turn, each task
 * is blocked in a send for long while the next one is away. In the end every task has waited for the next, but never
 * all at the same time, so there is no cycle.
 */
static void in_turn(void)
{
    size_t len = 4 << 20;
    unsigned char *bytes = need(len), *held = need(len);
    int next = (me + 1) % size, before = (me + size - 1) % size;
    rg_request offered;
    paint(held, len, 1);
    OK(rg_isend(held, len, next, 9, RG_WORLD, &offered));
    for (int turn = 0; turn < 3 * size; turn++) {
        if (turn % size == me)
            OK(rg_send(bytes, len, next, 1, RG_WORLD));
        if (turn % size == before) {
            be_away(0.3);
            OK(rg_recv(bytes, len, before, 1, RG_WORLD, NULL));
        }
    }
    OK(rg_recv(bytes, len, before, 9, RG_WORLD, NULL));
    CHECK(unpainted(bytes, len, 1) == len);
    OK(rg_wait(&offered, NULL));
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"broadcast", broadcast, false},
        {"large", large, false},
        {"many", many, false},
        {"behind-small", behind_small, false},
        {"tiny", tiny, false},
        {"started", started, false},
        {"any-of-started", any_of_started, false},
        {"mixed", mixed, false},
        {"synchronous", synchronous, false},
        {"synchronous-large", synchronous_large, false},
        {"synchronous-empty", synchronous_empty, false},
        {"itself", itself, false},
        {"itself-synchronous", itself_synchronous, false},
        {"slow-receiver", slow_receiver, false},
        {"in-turn", in_turn, false},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
