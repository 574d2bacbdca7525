/*
 * Tasks start and end, one after the other, and communicate with tasks that stay. Whatever they do, the job's memory
 * must not grow.
 */
#include "spawn.h"

enum { WORDS = 7, BULK = 8, LOAN = 9, LARGE = 1 << 20, LENT = 100000 };

static bool does(char what)
{
    return strchr(args[0], what) != NULL;
}

static char *buffer(void)
{
    static char bytes[LARGE];
    return bytes;
}

static void lend_to(int tid)
{
    void *block;
    OK(rg_loan(LENT, &block));
    memset(block, 'x', LENT);
    OK(rg_loan_send(block, LENT, tid, LOAN, RG_ALL));
}

static void take_loan(int tid)
{
    void *block;
    rg_status status;
    OK(rg_loan_recv(&block, tid, LOAN, RG_ALL, &status));
    CHECK(status.length == LENT && ((char *)block)[LENT - 1] == 'x');
    OK(rg_loan_free(block));
}

/*
 * s: sends a message; r: receives one; l, k: the same with a loan; b, c: the same with a large message; d: dies while
 * it sends a large message; u: dies without receiving a loan that is in transit to it; p: communicates with the
 * previous child.
 */
static void as_passer(void)
{
    int word = 5;
    rg_request request;
    if (does('s'))
        OK(rg_send(&word, sizeof word, rg_parent(), WORDS, RG_ALL));
    if (does('r'))
        OK(rg_recv(&word, sizeof word, rg_parent(), WORDS, RG_ALL, NULL));
    if (does('l'))
        lend_to(rg_parent());
    if (does('k'))
        take_loan(rg_parent());
    if (does('b'))
        OK(rg_send(buffer(), LARGE, rg_parent(), BULK, RG_ALL));
    if (does('c'))
        OK(rg_recv(buffer(), LARGE, rg_parent(), BULK, RG_ALL, NULL));
    if (does('p')) {
        int other;
        OK(rg_recv(&other, sizeof other, rg_parent(), GREETING, RG_ALL, NULL));
        OK(rg_send(&word, sizeof word, other, WORDS, RG_ALL));
        OK(rg_recv(&word, sizeof word, other, WORDS, RG_ALL, NULL));
    }
    if (does('d')) {
        /* The parent watches it by then, so its death counts as no failure. */
        OK(rg_recv(NULL, 0, rg_parent(), GREETING, RG_ALL, NULL));
        OK(rg_isend(buffer(), LARGE, rg_parent(), BULK, RG_ALL, &request));
        raise(SIGKILL);
    }
    if (does('u')) {
        OK(rg_probe(rg_parent(), LOAN, RG_ALL, NULL));
        raise(SIGKILL);
    }
}

static void one_round(int children)
{
    int tids[2], word = 3, watch;
    for (int i = 0; i < children; i++)
        start("as-passer", args[0], 1, &tids[i]);
    for (int i = 0; i < children; i++) {
        OK(rg_notify(RG_TASK_EXIT, tids[i], EVENT, RG_ALL, &watch));
        if (does('r'))
            OK(rg_send(&word, sizeof word, tids[i], WORDS, RG_ALL));
        if (does('k') || does('u'))
            lend_to(tids[i]);
        if (does('c'))
            OK(rg_send(buffer(), LARGE, tids[i], BULK, RG_ALL));
        if (does('s'))
            OK(rg_recv(&word, sizeof word, tids[i], WORDS, RG_ALL, NULL));
        if (does('l'))
            take_loan(tids[i]);
        if (does('b'))
            OK(rg_recv(buffer(), LARGE, tids[i], BULK, RG_ALL, NULL));
        if (does('p'))
            OK(rg_send(&tids[1 - i], sizeof(int), tids[i], GREETING, RG_ALL));
        if (does('d'))
            OK(rg_send(NULL, 0, tids[i], GREETING, RG_ALL));
        if (does('d'))
            CHECK(rg_recv(buffer(), LARGE, tids[i], BULK, RG_ALL, NULL) != RG_OK);
    }
    for (int i = 0; i < children; i++)
        next_event();
}

static void passers(void)
{
    int rounds = atoi(args[1]);
    long early = 0;
    for (int i = 0; i < rounds; i++) {
        one_round(does('p') ? 2 : 1);
        if (i == rounds / 4)
            early = segment_bytes();
    }
    printf("memory %ld KiB then %ld KiB\n", early >> 10, segment_bytes() >> 10);
    /* Allows for an entry in the task table per task, and one step by which memory grows. */
    CHECK(segment_bytes() - early <= rounds * 512L + (1 << 20));
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"as-passer", as_passer, false},
        {"passers", passers, false},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
