/*
 * A task says something to another host and stays away: what it has said arrives all the same, although the connection was
 * not there yet when its call was over.
 */
#include "check.h"

static void wake(int signal) { (void)signal; }

/* Task 0 makes no call until the last task, which has what it waited for, wakes it. */
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

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"first-word", first_word, false},
        {"after-a-barrier", after_a_barrier, false},
        {"crossed-words", crossed_words, false},
        {NULL, NULL, false},
    };
    block();
    return check_main(argc, argv, scenarios);
}
