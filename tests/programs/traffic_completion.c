/*
 * All ways to complete requests that the header offers, and the cost of waiting.
 */
#include "check.h"
#include <poll.h>
#include <sys/resource.h>
#include <time.h>

/* Nesting depth of Regatta calls in this thread. */
static _Thread_local int inside;
#define IN(call) (inside++, check_returned = (call), inside--, check_returned)
static _Thread_local int check_returned;

/* ---- callbacks ------------------------------------------------------------------------------ */

enum { CHAIN = 3000, WINDOW = 8 };

static struct note {
    int calls;
    bool is_send;
    uint32_t value;
    uint32_t due; /* the message it must get, because receives get their messages in order */
} notes[2 * CHAIN];
static int noted, posted_notes, sent_notes, received_notes;
static bool setting; /* inside rg_on_complete itself */

static void told(const rg_status *status, void *arg);

static void note_request(rg_request *request, struct note *note)
{
    setting = true;
    OK(IN(rg_on_complete(request, told, note)));
    setting = false;
    CHECK(request->id == 0);
}

static struct note *new_note(bool is_send)
{
    struct note *note = &notes[noted++];
    note->is_send = is_send;
    return note;
}

static void post_next(void)
{
    struct note *note = new_note(false);
    rg_request request;
    note->due = (uint32_t)posted_notes++;
    OK(IN(rg_irecv(&note->value, sizeof note->value, (me + size - 1) % size, 1, RG_WORLD, &request)));
    note_request(&request, note);
}

static void send_next(void)
{
    struct note *note = new_note(true);
    rg_request request;
    note->value = (uint32_t)sent_notes++;
    int next = (me + 1) % size;
    if (note->value % 3 == 0)
        OK(IN(rg_issend(&note->value, sizeof note->value, next, 1, RG_WORLD, &request)));
    else
        OK(IN(rg_isend(&note->value, sizeof note->value, next, 1, RG_WORLD, &request)));
    note_request(&request, note);
}

/* Answers each message that arrives by posting one more receive and one more send. */
static void told(const rg_status *status, void *arg)
{
    struct note *note = arg;
    CHECK(inside > 0 && !setting);
    CHECK(++note->calls == 1);
    CHECK(status->error == RG_OK);
    if (note->is_send)
        return;
    CHECK(status->source == (me + size - 1) % size && status->tag == 1);
    CHECK(status->length == sizeof note->value && note->value == note->due);
    received_notes++;
    if (posted_notes < CHAIN)
        post_next();
    if (sent_notes < CHAIN)
        send_next();
}

static void callbacks(void)
{
    for (int i = 0; i < WINDOW; i++)
        post_next();
    for (int i = 0; i < WINDOW; i++)
        send_next();
    /* Callbacks also run inside calls that wait for something else. */
    while (received_notes < CHAIN / 2)
        OK(IN(rg_progress()));
    int token = me;
    rg_request request;
    OK(IN(rg_irecv(&token, sizeof token, (me + size - 1) % size, 2, RG_WORLD, &request)));
    OK(IN(rg_ssend(&me, sizeof me, (me + 1) % size, 2, RG_WORLD)));
    OK(IN(rg_wait(&request, NULL)));
    while (received_notes < CHAIN || sent_notes < CHAIN)
        OK(IN(rg_progress()));
    OK(IN(rg_barrier(RG_WORLD)));
    OK(IN(rg_progress()));
    CHECK(noted == 2 * CHAIN && received_notes == CHAIN);
    for (int i = 0; i < noted; i++)
        CHECK(notes[i].calls == 1);
}

static int waited_for;

static void told_once(const rg_status *status, void *arg)
{
    (void)status;
    (void)arg;
    waited_for++;
}

/* Callbacks run inside calls that have nothing to wait for. */
static void callback_beside(void)
{
    enum { MESSAGE_COUNT = 1000 };
    for (int way = 0; way < 4; way++) {
        int value = me, got = -1, rounds = 0, found;
        rg_request request, sent, received;
        rg_status status;
        waited_for = 0;
        OK(rg_irecv(&got, sizeof got, me, 3, RG_WORLD, &request));
        OK(rg_on_complete(&request, told_once, NULL));
        OK(rg_send(&value, sizeof value, me, 3, RG_WORLD));
        for (; !waited_for && rounds < MESSAGE_COUNT; rounds++) {
            if (way == 3) {
                OK(rg_iprobe(RG_ANY, 5, RG_WORLD, &found, NULL));
                continue;
            }
            OK(rg_isend(&value, sizeof value, me, 4, RG_WORLD, &sent));
            if (way == 2) {
                OK(rg_recv(&got, sizeof got, me, 4, RG_WORLD, NULL));
            } else {
                OK(rg_irecv(&got, sizeof got, me, 4, RG_WORLD, &received));
                OK(rg_wait(&received, way ? NULL : &status));
            }
            OK(rg_waitall(1, &sent, way ? NULL : &status));
        }
        CHECK(waited_for == 1);
    }
}

/* ---- the descriptor -------------------------------------------------------------------------- */

static void pause_for(long nanoseconds)
{
    struct timespec time = {0, nanoseconds};
    ppoll(NULL, 0, &time, NULL);
}

/* No message is overlooked before sleeping on the descriptor, whatever the sender's timing. */
static void descriptor(void)
{
    enum { ROUNDS = 10000 };
    static unsigned char block[20000];
    uint64_t state = 99;
    if (me == 1) {
        for (int i = 0; i < ROUNDS; i++) {
            size_t len = next_random(&state) % 50 ? 8 : sizeof block;
            uint64_t wait = next_random(&state) % 4;
            if (wait == 3)
                pause_for((long)(next_random(&state) % 100000));
            for (volatile uint64_t spin = next_random(&state) % (wait * 2000 + 1); spin > 0;)
                spin = spin - 1;
            paint(block, len, (uint64_t)i);
            if (next_random(&state) % 8)
                OK(rg_send(block, len, 0, 1, RG_WORLD));
            else
                OK(rg_ssend(block, len, 0, 1, RG_WORLD));
            OK(rg_recv(NULL, 0, 0, 2, RG_WORLD, NULL));
        }
        return;
    }
    int fd = -1, again = -1;
    OK(rg_fd(&fd));
    OK(rg_fd(&again));
    CHECK(fd >= 0 && fd == again);
    for (int i = 0; i < ROUNDS; i++) {
        rg_request request;
        OK(rg_irecv(block, sizeof block, 1, 1, RG_WORLD, &request));
        await_by_fd(fd, &request);
        CHECK(unpainted(block, 8, (uint64_t)i) == 8);
        OK(rg_send(NULL, 0, 1, 2, RG_WORLD));
    }
}

/*
 * The same holds if several requests are tested in turn: testing the second may receive the message for the first,
 * which was tested just before.
 */
static void descriptor_of_several(void)
{
    enum { ROUNDS = 30000, TAGS = 3 };
    uint64_t state = 7;
    if (me == 1) {
        for (int i = 0; i < ROUNDS; i++) {
            for (volatile uint64_t spin = next_random(&state) % 3000; spin > 0;)
                spin = spin - 1;
            OK(rg_send(&i, sizeof i, 0, (int)(next_random(&state) % TAGS), RG_WORLD));
            OK(rg_recv(NULL, 0, 0, TAGS, RG_WORLD, NULL));
        }
        return;
    }
    int fd = -1;
    OK(rg_fd(&fd));
    for (int i = 0; i < ROUNDS; i++) {
        int found = -1, got;
        for (;;) {
            OK(rg_clear_fd());
            for (int tag = 0; tag < TAGS && found < 0; tag++) {
                int flag = 0;
                OK(rg_iprobe(1, tag, RG_WORLD, &flag, NULL));
                found = flag ? tag : -1;
            }
            if (found >= 0)
                break;
            struct pollfd one = {fd, POLLIN, 0};
            check_line = __LINE__;
            if (poll(&one, 1, 10000) != 1)
                FAILED("round %d: the descriptor was not readable in 10 s", i);
        }
        OK(rg_recv(&got, sizeof got, 1, found, RG_WORLD, NULL));
        CHECK(got == i);
        OK(rg_send(NULL, 0, 1, TAGS, RG_WORLD));
    }
}

/* ---- cancelling ------------------------------------------------------------------------------ */

/* Receives are cancelled while messages arrive: each message must go to exactly one receive. */
static void cancelling(void)
{
    enum { COUNT = 4000, OPEN = 16, LARGE = 30000 };
    static unsigned char blocks[OPEN][LARGE];
    uint64_t state = 5;
    rg_request requests[OPEN];
    rg_status status;
    if (me == 1) {
        for (uint64_t i = 0; i < COUNT; i++) {
            size_t len = i % 7 == 0 ? LARGE : 16;
            paint(blocks[0], len, i);
            memcpy(blocks[0], &i, sizeof i);
            OK(rg_send(blocks[0], len, 0, 1, RG_WORLD));
            if (i % 64 == 0)
                pause_for((long)(next_random(&state) % 100000));
        }
        OK(rg_recv(NULL, 0, 0, 2, RG_WORLD, NULL));
        return;
    }
    uint64_t next = 0, taken_back = 0;
    while (next < COUNT) {
        for (int i = 0; i < OPEN; i++) {
            memset(blocks[i], 0xcc, 64);
            OK(rg_irecv(blocks[i], LARGE, RG_ANY, 1, RG_WORLD, &requests[i]));
        }
        bool cancelled[OPEN] = {false};
        for (int look = 0; look < OPEN; look++) {
            int which = (int)(next_random(&state) % OPEN), done = 0;
            if (cancelled[which])
                continue;
            OK(rg_cancel(requests[which], &done));
            cancelled[which] = done;
            if (next_random(&state) % 4 == 0)
                OK(rg_progress());
        }
        for (int i = 0; i < OPEN; i++) {
            int done = 0;
            /* Receives for which no message is left are cancelled at the end. */
            if (!cancelled[i]) {
                OK(rg_cancel(requests[i], &done));
                cancelled[i] = done;
            }
            int code = rg_wait(&requests[i], &status);
            CHECK(code == status.error);
            if (cancelled[i]) {
                CHECK(code == RG_ERR_CANCELLED);
                for (int at = 0; at < 64; at++)
                    CHECK(blocks[i][at] == 0xcc);
                taken_back++;
                continue;
            }
            CHECK(code == RG_OK);
            uint64_t number;
            memcpy(&number, blocks[i], sizeof number);
            if (number != next)
                FAILED("message %llu came when %llu was due", (unsigned long long)number,
                       (unsigned long long)next);
            size_t len = number % 7 == 0 ? LARGE : 16;
            CHECK(status.length == len);
            unsigned char *should = need(len);
            paint(should, len, number);
            memcpy(should, &number, sizeof number);
            CHECK(memcmp(blocks[i], should, len) == 0);
            free(should);
            next++;
        }
    }
    CHECK(taken_back > 0 && next == COUNT);
    OK(rg_send(NULL, 0, 1, 2, RG_WORLD));
}

/* ---- probing --------------------------------------------------------------------------------- */

static void probing(void)
{
    enum { COUNT = 3000 };
    uint64_t state = 8;
    if (me != 0) {
        for (int i = 0; i < COUNT; i++) {
            size_t len = next_random(&state) % (i % 20 == 0 ? 100000 : 3000);
            unsigned char *bytes = need(len);
            paint(bytes, len, (uint64_t)(me * COUNT + i));
            OK(rg_send(bytes, len, 0, i, RG_WORLD));
            free(bytes);
        }
        return;
    }
    int *next = calloc((size_t)size, sizeof *next);
    for (int i = 0; i < COUNT * (size - 1); i++) {
        rg_status seen, again, status;
        int found = 0;
        OK(rg_probe(RG_ANY, RG_ANY, RG_WORLD, &seen));
        OK(rg_iprobe(seen.source, seen.tag, RG_WORLD, &found, &again));
        CHECK(found && again.source == seen.source && again.length == seen.length);
        unsigned char *bytes = need(seen.length);
        OK(rg_recv(bytes, seen.length, seen.source, seen.tag, RG_WORLD, &status));
        CHECK(status.length == seen.length && status.tag == next[seen.source]);
        uint64_t seed = (uint64_t)(seen.source * COUNT + status.tag);
        CHECK(unpainted(bytes, seen.length, seed) == seen.length);
        next[seen.source]++;
        free(bytes);
    }
    free(next);
}

/* ---- idle ------------------------------------------------------------------------------------ */

static double processor_time(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

/* Returns how often threads of this process have blocked. */
static long sleeps(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw;
}

static void blocked_in(int way, rg_group pair, int fd)
{
    rg_request requests[2];
    int at;
    OK(rg_irecv(NULL, 0, 0, 7, RG_WORLD, &requests[0]));
    requests[1] = RG_REQUEST_NULL;
    switch (way) {
    case 0: OK(rg_recv(NULL, 0, 0, 1, RG_WORLD, NULL)); break;
    case 1: OK(rg_waitall(1, requests, NULL)); return;
    case 2: OK(rg_barrier(pair)); break;
    case 3: await_by_fd(fd, &requests[0]); return;
    case 4: OK(rg_probe(RG_ANY, 1, RG_WORLD, NULL)); break;
    case 5: OK(rg_ssend(NULL, 0, 0, 3, RG_WORLD)); break;
    case 6: OK(rg_waitany(2, requests, &at, NULL)); return;
    default: OK(rg_allreduce(RG_IN_PLACE, &at, 0, RG_INT32, RG_SUM, pair)); break;
    }
    OK(rg_wait(&requests[0], NULL));
}

/* The descriptor becomes readable when there is something new, not because requests were tested. */
static void undisturbed(void)
{
    int fd = -1;
    OK(rg_fd(&fd));
    struct pollfd readable = {fd, POLLIN, 0};
    do {
        OK(rg_clear_fd());
        OK(rg_progress());
    } while (poll(&readable, 1, 100) == 1);
    CHECK(poll(&readable, 1, 1700) == 0);
}

/*
 * Every other task blocks for 2 s in a different call, and must hardly use its core. It wakes a few times per second;
 * the time that a virtual machine needs to resume counts as the task's time, 1 to 4 ms on some.
 */
static void idle(void)
{
    int fd = -1, first = arg_count > 0 ? atoi(args[0]) : 0;
    OK(rg_fd(&fd));
    rg_group pairs[8];
    CHECK(size <= 9);
    for (int other = 1; other < size; other++) {
        int ranks[2] = {0, other};
        if (me == 0 || me == other)
            OK(rg_group_select(RG_WORLD, 2, ranks, &pairs[other - 1]));
    }
    OK(rg_barrier(RG_WORLD));
    double before = processor_time(), start = rg_time();
    long slept = sleeps();
    if (me != 0) {
        int way = (first + me - 1) % 8;
        blocked_in(way, pairs[me - 1], fd);
        double used = processor_time() - before, took = rg_time() - start;
        slept = sleeps() - slept;
        if (used > 0.03 * took || slept > 40 || took < 1.9)
            FAILED("used %.1f ms of %.0f and slept %ld times, blocked in way %d", used * 1e3, took * 1e3, slept, way);
        return;
    }
    doze(2); /* the time during which the others must be idle */
    for (int other = 1; other < size; other++) {
        int way = (first + other - 1) % 8;
        if (way == 0 || way == 4)
            OK(rg_send(NULL, 0, other, 1, RG_WORLD));
        else if (way == 2)
            OK(rg_barrier(pairs[other - 1]));
        else if (way == 5)
            OK(rg_recv(NULL, 0, other, 3, RG_WORLD, NULL));
        else if (way == 7)
            OK(rg_allreduce(RG_IN_PLACE, &fd, 0, RG_INT32, RG_SUM, pairs[other - 1]));
        OK(rg_send(NULL, 0, other, 7, RG_WORLD));
    }
    /* Messages that were only probed. */
    double used = processor_time() - before;
    CHECK(used < 0.2);
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"callbacks", callbacks, false},
        {"callback-beside", callback_beside, false},
        {"descriptor", descriptor, false},
        {"descriptor-of-several", descriptor_of_several, false},
        {"cancelling", cancelling, false},
        {"probing", probing, false},
        {"idle", idle, false},
        {"undisturbed", undisturbed, false},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
