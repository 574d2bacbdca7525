/*
 * Receives of exactly the message that a probe has found (matched probes), and tests that leave the request as it is
 * (rg_look).
 */
#include "check.h"

#include <pthread.h>

enum { LARGE = 3 << 20, MESSAGES = 4000, THREADS = 3 };

static unsigned char large[LARGE];

/*
 * A message found by a matched probe is invisible to other calls, whatever its length; later messages are received
 * before it.
 */
static void once(void)
{
    const size_t lengths[] = {0, 8, 300, 40000, LARGE};
    for (int i = 0; i < 5; i++) {
        size_t len = lengths[i];
        unsigned char last = 0;
        if (me != 0) {
            paint(large, len, (uint64_t)i);
            OK(rg_ssend(large, len, 0, 5, RG_WORLD));
            OK(rg_send(&last, 1, 0, 6, RG_WORLD));
            continue;
        }
        rg_message message, none;
        rg_status status;
        int found = 1;
        OK(rg_mprobe(RG_ANY, 5, RG_WORLD, &message, &status));
        CHECK(status.source == 1 && status.tag == 5 && status.length == len && message.id != 0);
        OK(rg_iprobe(1, 5, RG_WORLD, &found, NULL));
        CHECK(!found);
        OK(rg_improbe(RG_ANY, 5, RG_WORLD, &found, &none, NULL));
        CHECK(!found && none.id == RG_MESSAGE_NULL.id);
        rg_message copy = message;
        if (i % 2 == 0) {
            OK(rg_mrecv(&message, large, LARGE, &status));
        } else {
            /* Every second byte of a buffer of twice the size, in two views. */
            static unsigned char wide[2 * LARGE];
            rg_view views[] = {{wide, 1, len / 2, 2}, {wide + 2 * (len / 2), 1, len - len / 2, 2}};
            rg_request request;
            OK(rg_imrecvv(&message, views, 2, &request));
            OK(rg_wait(&request, &status));
            for (size_t at = 0; at < len; at++)
                large[at] = wide[2 * at];
        }
        CHECK(status.source == 1 && status.tag == 5 && status.length == len && message.id == 0);
        CHECK(unpainted(large, len, (uint64_t)i) == len);
        FAILS(rg_mrecv(&message, large, LARGE, NULL), RG_ERR_HANDLE, "message");
        FAILS(rg_mrecv(&copy, large, LARGE, NULL), RG_ERR_HANDLE, "message");
        OK(rg_recv(&last, 1, 1, 6, RG_WORLD, NULL));
    }
}

/*
 * Invalid arguments leave the message where it is; a message that does not fit is truncated; a matched receive of no
 * task's message is empty.
 */
static void arguments(void)
{
    rg_message message = RG_MESSAGE_NULL;
    rg_status status;
    rg_request request;
    char text[8] = {0};
    if (me != 0) {
        OK(rg_send("0123456789", 10, 0, 1, RG_WORLD));
        OK(rg_send("never received", 15, 0, 2, RG_WORLD));
        return;
    }
    FAILS(rg_mrecv(&message, text, 8, NULL), RG_ERR_HANDLE, "message");
    FAILS(rg_mprobe(1, 1, RG_WORLD, NULL, NULL), RG_ERR_ARGUMENT, "message");
    FAILS(rg_mprobe(99, 1, RG_WORLD, &message, NULL), RG_ERR_TASK, "99");
    OK(rg_mprobe(1, 1, RG_WORLD, &message, NULL));
    FAILS(rg_mrecv(&message, NULL, 8, NULL), RG_ERR_ARGUMENT, "NULL");
    FAILS(rg_imrecv(&message, text, 8, NULL), RG_ERR_ARGUMENT, "request");
    CHECK(message.id != 0);
    FAILS(rg_mrecv(&message, text, 8, &status), RG_ERR_TRUNCATED, "10");
    CHECK(message.id == 0 && status.length == 10 && memcmp(text, "01234567", 8) == 0);
    OK(rg_mprobe(RG_NONE, 1, RG_WORLD, &message, &status));
    CHECK(message.id == RG_MESSAGE_NONE.id && status.source == RG_NONE && status.length == 0);
    OK(rg_imrecv(&message, text, 8, &request));
    OK(rg_wait(&request, &status));
    CHECK(status.source == RG_NONE && status.length == 0 && message.id == 0);
    /* Never received; it is dropped at the end. */
    OK(rg_mprobe(1, RG_ANY, RG_WORLD, &message, &status));
    CHECK(status.tag == 2 && status.length == 15);
}

/* Threads that probe for any message must each receive the message whose length they were told. */
static int received;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t came = PTHREAD_COND_INITIALIZER;

static void *receiver(void *argument)
{
    unsigned char bytes[512];
    for (;;) {
        rg_message message;
        rg_status seen, got;
        OK(rg_mprobe(RG_ANY, RG_ANY, RG_WORLD, &message, &seen));
        CHECK(seen.length <= sizeof bytes);
        OK(rg_mrecv(&message, bytes, seen.length, &got));
        CHECK(got.length == seen.length && got.source == seen.source && got.tag == seen.tag);
        if (seen.tag == 1)
            return argument;
        CHECK(unpainted(bytes, seen.length, seen.length) == seen.length);
        pthread_mutex_lock(&lock);
        received++;
        pthread_cond_signal(&came);
        pthread_mutex_unlock(&lock);
    }
}

static void threads(void)
{
    if (me != 0) {
        unsigned char bytes[512];
        for (size_t i = 0; i < MESSAGES; i++) {
            paint(bytes, i % 512, i % 512);
            OK(rg_send(bytes, i % 512, 0, 0, RG_WORLD));
        }
        /* RG_ANY does not wait for a task that has left, so this task stays. */
        OK(rg_barrier(RG_WORLD));
        return;
    }
    pthread_t ids[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&ids[i], NULL, receiver, NULL) == 0);
    /* This task's messages to itself are not ordered with those of other tasks. */
    pthread_mutex_lock(&lock);
    while (received < MESSAGES * (size - 1))
        pthread_cond_wait(&came, &lock);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < THREADS; i++)
        OK(rg_send(NULL, 0, 0, 1, RG_WORLD));
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(ids[i], NULL) == 0);
    OK(rg_barrier(RG_WORLD));
    CHECK(received == MESSAGES * (size - 1));
}

/* The sender is killed between the probe and the receive, when most of its message is not yet sent. */
static void death(void)
{
    size_t len = (size_t)64 << 20;
    unsigned char *bytes = need(len);
    rg_message small, message;
    rg_status status;
    if (me != 0) {
        OK(rg_send("here", 4, 0, 1, RG_WORLD));
        rg_send(bytes, len, 0, 2, RG_WORLD);
        pause();
    }
    OK(rg_mprobe(1, 1, RG_WORLD, &small, NULL));
    OK(rg_mprobe(1, 2, RG_WORLD, &message, &status));
    CHECK(status.length == len);
    OK(rg_kill(1));
    FAILS(rg_recv(bytes, 1, 1, 3, RG_WORLD, NULL), RG_ERR_DEAD, "task 1 ");
    FAILS(rg_mrecv(&message, bytes, len, &status), RG_ERR_DEAD, "task 1 ");
    CHECK(message.id == 0 && status.error == RG_ERR_DEAD);
    /* This message had arrived completely. */
    OK(rg_mrecv(&small, bytes, len, &status));
    CHECK(status.length == 4 && memcmp(bytes, "here", 4) == 0);
    free(bytes);
}

/* rg_look reports what a wait would, any number of times. */
static void look(void)
{
    rg_status seen, got;
    int done = 1;
    char text[4];
    OK(rg_look(RG_REQUEST_NULL, &done, &seen));
    CHECK(done == 1 && seen.source == RG_NONE);
    if (me != 0) {
        OK(rg_recv(text, 0, 0, 1, RG_WORLD, NULL));
        OK(rg_send("longer", 6, 0, 2, RG_WORLD));
        return;
    }
    rg_request request, sent, stale;
    OK(rg_irecv(text, sizeof text, 1, 2, RG_WORLD, &request));
    OK(rg_look(request, &done, &seen));
    CHECK(!done);
    FAILS(rg_look(request, NULL, NULL), RG_ERR_ARGUMENT, "done");
    OK(rg_isend(NULL, 0, 1, 1, RG_WORLD, &sent));
    do
        OK(rg_look(sent, &done, NULL));
    while (!done);
    OK(rg_wait(&sent, NULL));
    int result;
    do
        result = rg_look(request, &done, &seen);
    while (!done);
    CHECK(result == RG_ERR_TRUNCATED && seen.error == result && seen.length == 6);
    FAILS(rg_look(request, &done, &got), RG_ERR_TRUNCATED, "6");
    CHECK(done && memcmp(&seen, &got, sizeof seen) == 0);
    stale = request;
    FAILS(rg_wait(&request, &got), RG_ERR_TRUNCATED, "6");
    CHECK(memcmp(&seen, &got, sizeof seen) == 0);
    FAILS(rg_look(stale, &done, NULL), RG_ERR_HANDLE, "request");
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"once", once, false},   {"arguments", arguments, false}, {"threads", threads, false},
        {"death", death, false}, {"look", look, false},           {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
