/*
 * Several threads of each task make all kinds of calls at once (two tasks with four threads each, and more).
 */
#include "check.h"
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 4, COUNT = 1500, SHARED_TAG = 1000, ALL_SHARED = THREADS * COUNT };

static rg_group copies[THREADS];
static atomic_int arrived[ALL_SHARED];
static atomic_int shared_left = ALL_SHARED;

static void each_thread(int count, void *(*run)(void *))
{
    pthread_t threads[8];
    static int numbers[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    for (int i = 0; i < count; i++)
        CHECK(pthread_create(&threads[i], NULL, run, &numbers[i]) == 0);
    for (int i = 0; i < count; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

static size_t some_length(uint64_t *state)
{
    uint64_t kind = next_random(state) % 40;
    if (kind == 0)
        return next_random(state) % 300000;
    return kind < 10 ? next_random(state) % 20000 : next_random(state) % 100;
}

/* Exchanges messages with the same thread of the other task. */
static void exchange(int mine, int i, uint64_t *ours, uint64_t *theirs)
{
    int other = 1 - me;
    size_t out = some_length(ours), in = some_length(theirs);
    uint64_t key = (uint64_t)mine * COUNT + (uint64_t)i;
    unsigned char *bytes = need(out), *inbox = need(in + 1);
    rg_request requests[2];
    rg_status status, statuses[2];
    paint(bytes, out, key * 2 + (uint64_t)me);
    switch (i % 5) {
    case 0:
        OK(rg_irecv(inbox, in + 1, other, mine, RG_WORLD, &requests[0]));
        OK(rg_ssend(bytes, out, other, mine, RG_WORLD));
        OK(rg_wait(&requests[0], &status));
        break;
    case 1:
        OK(rg_sendrecv(bytes, out, other, mine, inbox, in + 1, other, mine, RG_WORLD, &status));
        break;
    case 2:
        OK(rg_isend(bytes, out, other, mine, RG_WORLD, &requests[0]));
        OK(rg_probe(other, mine, RG_WORLD, &status));
        CHECK(status.length == in);
        OK(rg_recv(inbox, in + 1, other, mine, RG_WORLD, &status));
        OK(rg_wait(&requests[0], NULL));
        break;
    case 3:
        OK(rg_irecv(inbox, in + 1, RG_ANY, mine, copies[mine], &requests[0]));
        OK(rg_issend(bytes, out, other, mine, copies[mine], &requests[1]));
        OK(rg_waitall(2, requests, statuses));
        status = statuses[0];
        break;
    default: {
        int left = 2, at;
        OK(rg_irecv(inbox, in + 1, other, RG_ANY, copies[mine], &requests[0]));
        OK(rg_isend(bytes, out, other, mine, copies[mine], &requests[1]));
        for (; left > 0; left--) {
            rg_status one;
            OK(rg_waitany(2, requests, &at, &one));
            if (at == 0)
                status = one;
        }
    }
    }
    CHECK(status.source == other && status.tag == mine && status.length == in);
    CHECK(unpainted(inbox, in, key * 2 + (uint64_t)other) == in);
    free(bytes);
    free(inbox);
}

static void *by_tag(void *arg)
{
    int mine = *(int *)arg;
    uint64_t ours = (uint64_t)(mine * 2 + me), theirs = (uint64_t)(mine * 2 + 1 - me);
    for (int i = 0; i < COUNT; i++)
        exchange(mine, i, &ours, &theirs);
    return NULL;
}

/* Any thread takes the next message; each must arrive once. */
static void *by_shared_tag(void *arg)
{
    int mine = *(int *)arg, number;
    rg_status status;
    for (int i = 0; i < COUNT; i++) {
        number = mine * COUNT + i;
        rg_request request;
        OK(rg_isend(&number, sizeof number, 1 - me, SHARED_TAG, RG_WORLD, &request));
        int got = -1;
        if (atomic_fetch_sub(&shared_left, 1) > 0) {
            OK(rg_recv(&got, sizeof got, i % 2 ? RG_ANY : 1 - me, SHARED_TAG, RG_WORLD, &status));
            CHECK(status.length == sizeof got && got >= 0 && got < ALL_SHARED);
            CHECK(atomic_fetch_add(&arrived[got], 1) == 0);
        }
        OK(rg_wait(&request, NULL));
    }
    return NULL;
}

static void make_copies(void)
{
    for (int i = 0; i < THREADS; i++)
        OK(rg_group_dup(RG_WORLD, &copies[i]));
}

static void tags(void)
{
    make_copies();
    each_thread(THREADS, by_tag);
}

static void shared(void)
{
    each_thread(THREADS, by_shared_tag);
    for (int i = 0; i < ALL_SHARED; i++)
        CHECK(arrived[i] == 1);
}

static void *by_either(void *arg)
{
    int number = *(int *)arg;
    return number < THREADS ? by_tag(arg) : by_shared_tag(&(int){number - THREADS});
}

static void both(void)
{
    make_copies();
    each_thread(2 * THREADS, by_either);
    for (int i = 0; i < ALL_SHARED; i++)
        CHECK(arrived[i] == 1);
}

/* One thread waits for a message all the time; others send, receive and do collectives. */
static void *beside_a_waiting_one(void *arg)
{
    int mine = *(int *)arg;
    if (mine == 0) {
        int word = 0;
        OK(rg_recv(&word, sizeof word, 1 - me, 7777, RG_WORLD, NULL));
        CHECK(word == 42);
        return NULL;
    }
    uint64_t ours = (uint64_t)(mine * 2 + me), theirs = (uint64_t)(mine * 2 + 1 - me);
    for (int i = 0; i < COUNT; i++) {
        if (mine == 1) {
            exchange(mine, i, &ours, &theirs);
            continue;
        }
        int64_t values[600], count = i % 600;
        for (int k = 0; k < count; k++)
            values[k] = k + me;
        OK(rg_allreduce(RG_IN_PLACE, values, (size_t)count, RG_INT64, RG_SUM, copies[mine]));
        for (int k = 0; k < count; k++)
            CHECK(values[k] == 2 * k + 1);
        if (i % 10 == 0)
            OK(rg_barrier(copies[mine]));
        if (i % 50 == 0) {
            rg_request request;
            OK(rg_ibroadcast(values, sizeof values, i / 50 % 2, copies[mine], &request));
            OK(rg_wait(&request, NULL));
        }
    }
    if (mine == 2) {
        int word = 42;
        OK(rg_send(&word, sizeof word, 1 - me, 7777, RG_WORLD));
    }
    return NULL;
}

static void listener(void)
{
    make_copies();
    each_thread(THREADS, beside_a_waiting_one);
}

/* Two threads wait in synchronous sends to the other task, and other threads will receive: this is not a circle. */
static void *one_sends_one_receives(void *arg)
{
    int mine = *(int *)arg, word = me;
    if (mine == 0) {
        OK(rg_ssend(&word, sizeof word, 1 - me, 1, RG_WORLD));
        return NULL;
    }
    doze(0.3); /* longer than the detection of a circle takes */
    OK(rg_recv(&word, sizeof word, 1 - me, 1, RG_WORLD, NULL));
    CHECK(word == 1 - me);
    return NULL;
}

static void no_circle(void)
{
    each_thread(2, one_sends_one_receives);
}

enum { LENT = 6000, LENT_TAG = 9 };
static atomic_int lent_left = LENT;

static size_t lent_length(int number)
{
    uint64_t state = (uint64_t)number;
    return sizeof number + some_length(&state) % 3000;
}

/* Threads receive in place, from any source, messages of any length. */
static void *by_loan(void *arg)
{
    (void)arg;
    while (atomic_fetch_sub(&lent_left, 1) > 0) {
        void *block = NULL;
        int number = -1;
        rg_status status;
        OK(rg_loan_recv(&block, RG_ANY, LENT_TAG, RG_WORLD, &status));
        memcpy(&number, block, sizeof number);
        CHECK(number >= 0 && number < LENT && atomic_fetch_add(&arrived[number], 1) == 0);
        CHECK(status.length == lent_length(number));
        unsigned char *rest = (unsigned char *)block + sizeof number;
        size_t len = status.length - sizeof number;
        CHECK(unpainted(rest, len, (uint64_t)number) == len);
        OK(rg_loan_free(block));
    }
    return NULL;
}

/* lent: messages that were not sent as loans are received in place. */
static void lent(void)
{
    if (me == 0) {
        each_thread(THREADS, by_loan);
        return;
    }
    unsigned char bytes[sizeof(int) + 3000];
    for (int number = 0; number < LENT; number++) {
        memcpy(bytes, &number, sizeof number);
        paint(bytes + sizeof number, lent_length(number) - sizeof number, (uint64_t)number);
        OK(rg_send(bytes, lent_length(number), 0, LENT_TAG, RG_WORLD));
    }
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"tags", tags, false},
        {"shared", shared, false},
        {"both", both, false},
        {"listener", listener, false},
        {"no-circle", no_circle, false},
        {"lent", lent, false},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
