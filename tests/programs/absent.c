/*
 * Tasks that make no calls. One says something to another host and stays away: what it has said arrives all the same,
 * although the connection was not there yet when its call was over. And whoever says something to one that stays away, without
 * waiting for it, does not wait.
 */
#include "check.h"
#include <time.h>

static void wake(int signal) { (void)signal; }

/* Until somebody sends a signal. */
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

/* To each other at once, and then all are away but one. */
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

/* The other one is away as well, longer than anybody waits for the answer to a call, when it has just been called. */
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

/* A task that waits for one that is away, and has just been called, uses no core for that. */
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

#define LONG ((size_t)4 << 20)
#define PIECE ((size_t)4096)
static unsigned char words[LONG], heard[LONG];

static void paint_words(int seed)
{
    for (size_t i = 0; i < LONG; i++)
        words[i] = (unsigned char)(i * 7 + i / PIECE + (size_t)seed);
}

static void say(int seed, bool in_pieces)
{
    paint_words(seed);
    if (in_pieces) {
        /* Every other piece first. */
        rg_view views[] = {{words, PIECE, LONG / PIECE / 2, 2 * PIECE}, {words + PIECE, PIECE, LONG / PIECE / 2, 2 * PIECE}};
        OK(rg_bsendv(views, 2, 1, seed, RG_WORLD));
    } else {
        OK(rg_bsend(words, LONG, 1, seed, RG_WORLD));
    }
    /* It is ours again. */
    memset(words, 0, LONG);
}

static void check_heard(int seed, bool in_pieces)
{
    paint_words(seed);
    for (size_t i = 0; i < LONG; i += PIECE) {
        size_t half = LONG / 2, at = !in_pieces ? i : i < half ? 2 * i : 2 * (i - half) + PIECE;
        if (memcmp(heard + i, words + at, PIECE) != 0)
            FAILED("message %d is wrong from byte %zu on", seed, i);
    }
}

/* Task 1 stays away before it has looked, or after it has begun to receive the first. */
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
            OK(rg_irecv(heard, LONG, 0, 0, RG_WORLD, &request));
            OK(rg_send(NULL, 0, 0, 9, RG_WORLD));
            /* Its front is here. */
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
                OK(rg_recv(heard, LONG, 0, seed, RG_WORLD, NULL));
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
