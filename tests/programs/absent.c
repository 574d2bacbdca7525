/*
 * Tasks that make no calls ("stay away"). A message that a task sends to another host before it stays away arrives all
 * the same, even if the connection did not exist yet when the call returned. A task that sends to a task that stays
 * away, without waiting for the receive, is not delayed.
 */
#include "check.h"
#include <time.h>

static void wake(int signal) { (void)signal; }

/* Makes no calls until a signal arrives. */
static void stay_away(void)
{
    sigset_t none;
    sigemptyset(&none);
    sigsuspend(&none);
}

static void block(void)
{
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    CHECK(sigprocmask(SIG_BLOCK, &one, NULL) == 0);
    CHECK(signal(SIGUSR1, wake) != SIG_ERR);
}

static void first_word(void)
{
    int word = 42, heard = 0;
    if (me == 0) {
        OK(rg_send(&word, sizeof word, size - 1, 1, RG_WORLD));
        stay_away();
        OK(rg_recv(&heard, sizeof heard, size - 1, 2, RG_WORLD, NULL));
        CHECK(heard == 43);
    } else if (me == size - 1) {
        OK(rg_recv(&heard, sizeof heard, 0, 1, RG_WORLD, NULL));
        CHECK(heard == 42);
        heard = 43;
        OK(rg_send(&heard, sizeof heard, 0, 2, RG_WORLD));
        OK(rg_signal(0, SIGUSR1));
    }
}

static void after_a_barrier(void)
{
    OK(rg_barrier(RG_WORLD));
    if (me == 0)
        stay_away();
    else if (me == size - 1)
        OK(rg_signal(0, SIGUSR1));
}

/* All send to each other at once; then all but the last stay away. It must receive every message. */
static void crossed_words(void)
{
    int word = me, heard = -1;
    for (int to = 0; to < size; to++)
        if (to != me)
            OK(rg_send(&word, sizeof word, to, 1, RG_WORLD));
    if (me != size - 1) {
        stay_away();
    } else {
        for (int from = 0; from < me; from++) {
            OK(rg_recv(&heard, sizeof heard, from, 1, RG_WORLD, NULL));
            CHECK(heard == from);
        }
        for (int to = 0; to < me; to++)
            OK(rg_signal(to, SIGUSR1));
        return;
    }
    for (int from = 0; from < size; from++)
        if (from != me) {
            OK(rg_recv(&heard, sizeof heard, from, 1, RG_WORLD, NULL));
            CHECK(heard == from);
        }
}

/* The receiver stays away as well, just after it was called, for longer than a caller waits for the answer. */
static void both_away(void)
{
    int word = 42, heard = 0, found;
    if (me == 0) {
        OK(rg_send(&word, sizeof word, 1, 1, RG_WORLD));
        stay_away();
    } else {
        be_away(0.2);
        OK(rg_iprobe(0, 1, RG_WORLD, &found, NULL));
        be_away(3);
        OK(rg_recv(&heard, sizeof heard, 0, 1, RG_WORLD, NULL));
        CHECK(heard == 42);
        OK(rg_signal(0, SIGUSR1));
    }
}

/* A task waits for another that stays away and that it has just called. The wait must not use a core. */
static void patience(void)
{
    enum { AWAY = 2 };
    int word = 42, heard = 0;
    if (me == 0) {
        OK(rg_send(&word, sizeof word, 1, 1, RG_WORLD));
        clock_t before = clock();
        double start = rg_time();
        OK(rg_recv(&heard, sizeof heard, 1, 2, RG_WORLD, NULL));
        double used = (double)(clock() - before) / CLOCKS_PER_SEC;
        CHECK(heard == 42 && used < 0.25 * (rg_time() - start));
    } else {
        be_away(AWAY);
        OK(rg_recv(&heard, sizeof heard, 0, 1, RG_WORLD, NULL));
        OK(rg_send(&heard, sizeof heard, 0, 2, RG_WORLD));
    }
}

#define MESSAGE_BYTES ((size_t)4 << 20)
#define PIECE_BYTES ((size_t)4096)
static unsigned char words[MESSAGE_BYTES], heard[MESSAGE_BYTES];

static void paint_words(int seed)
{
    for (size_t i = 0; i < MESSAGE_BYTES; i++)
        words[i] = (unsigned char)(i * 7 + i / PIECE_BYTES + (size_t)seed);
}

static void say(int seed, bool in_pieces)
{
    paint_words(seed);
    if (in_pieces) {
        /* Sends the even pieces first. */
        rg_view views[] = {{words, PIECE_BYTES, MESSAGE_BYTES / PIECE_BYTES / 2, 2 * PIECE_BYTES}, {words + PIECE_BYTES, PIECE_BYTES, MESSAGE_BYTES / PIECE_BYTES / 2, 2 * PIECE_BYTES}};
        OK(rg_bsendv(views, 2, 1, seed, RG_WORLD));
    } else {
        OK(rg_bsend(words, MESSAGE_BYTES, 1, seed, RG_WORLD));
    }
    /* The send is complete, so the memory may be changed. */
    memset(words, 0, MESSAGE_BYTES);
}

static void check_heard(int seed, bool in_pieces)
{
    paint_words(seed);
    for (size_t i = 0; i < MESSAGE_BYTES; i += PIECE_BYTES) {
        size_t half = MESSAGE_BYTES / 2, at = !in_pieces ? i : i < half ? 2 * i : 2 * (i - half) + PIECE_BYTES;
        if (memcmp(heard + i, words + at, PIECE_BYTES) != 0)
            FAILED("message %d is wrong from byte %zu on", seed, i);
    }
}

/* Task 1 stays away either before it has checked for messages, or after it has begun to receive the first. */
static void long_words(void)
{
    bool has_begun = arg_count > 0;
    if (me == 0) {
        if (has_begun)
            OK(rg_recv(NULL, 0, 1, 9, RG_WORLD, NULL));
        for (int seed = 0; seed < 4; seed++)
            say(seed, seed % 2 == 1);
        OK(rg_signal(1, SIGUSR1));
    } else {
        rg_request request = RG_REQUEST_NULL;
        if (has_begun) {
            OK(rg_irecv(heard, MESSAGE_BYTES, 0, 0, RG_WORLD, &request));
            OK(rg_send(NULL, 0, 0, 9, RG_WORLD));
            /* Waits until the front of the message has arrived. */
            for (bool any = false; !any;) {
                int done;
                OK(rg_test(&request, &done, NULL));
                any = done || heard[1] != 0;
            }
        }
        stay_away();
        for (int seed = 0; seed < 4; seed++) {
            if (seed == 0 && has_begun)
                OK(rg_wait(&request, NULL));
            else
                OK(rg_recv(heard, MESSAGE_BYTES, 0, seed, RG_WORLD, NULL));
            check_heard(seed, seed % 2 == 1);
        }
    }
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"first-word", first_word, false},
        {"after-a-barrier", after_a_barrier, false},
        {"crossed-words", crossed_words, false},
        {"both-away", both_away, false},
        {"patience", patience, false},
        {"long-words", long_words, false},
        {NULL, NULL, false},
    };
    block();
    return check_main(argc, argv, scenarios);
}
