/*
 * Very many and very large messages: matching must not slow down with the number of waiting receives and messages, and
 * a message of 1 GiB must work like any other.
 *
 * Times per match are compared within one run: the best of a few attempts with 1 000 and with 100 000, in turns. Other
 * programs can only increase a time, so a slow attempt is repeated; matching that is slow by itself is slow in every
 * attempt.
 */
#include "check.h"

enum { MESSAGE_COUNT = 1000, LARGER_COUNT = 100000, ATTEMPTS = 3, GO = 0x7ffffff0, DONE = 0x7ffffff1, MAX_SLOWDOWN = 4, MAX_SECONDS = 60 };

static rg_request requests[LARGER_COUNT];
static uint32_t values[LARGER_COUNT];

static void tell(int tag) { OK(rg_send(NULL, 0, 1 - me, tag, RG_WORLD)); }
static void hear(int tag) { OK(rg_recv(NULL, 0, 1 - me, tag, RG_WORLD, NULL)); }

/* Posts receives with n tags; the messages arrive in the opposite order. Returns the time in seconds. */
static double match_posted(int n)
{
    if (me == 0) {
        for (int i = 0; i < n; i++)
            OK(rg_irecv(&values[i], sizeof *values, 1, i, RG_WORLD, &requests[i]));
        tell(GO);
        double start = rg_time();
        OK(rg_waitall(n, requests, NULL));
        double took = rg_time() - start;
        for (int i = 0; i < n; i++)
            CHECK(values[i] == (uint32_t)i * 3 + 1);
        tell(DONE);
        return took;
    }
    hear(GO);
    for (int i = n - 1; i >= 0; i--) {
        uint32_t value = (uint32_t)i * 3 + 1;
        OK(rg_send(&value, sizeof value, 0, i, RG_WORLD));
    }
    hear(DONE);
    return 0;
}

/* n messages are queued, and received in the opposite order. Returns the time in seconds. */
static double match_unexpected(int n)
{
    if (me == 1) {
        for (int i = 0; i < n; i++) {
            uint32_t value = (uint32_t)i * 3 + 1;
            OK(rg_send(&value, sizeof value, 0, i, RG_WORLD));
        }
        tell(GO);
        hear(DONE);
        return 0;
    }
    hear(GO);
    double start = rg_time();
    for (int i = n - 1; i >= 0; i--)
        OK(rg_recv(&values[i], sizeof *values, 1, i, RG_WORLD, NULL));
    double took = rg_time() - start;
    for (int i = 0; i < n; i++)
        CHECK(values[i] == (uint32_t)i * 3 + 1);
    tell(DONE);
    return took;
}

/*
 * Exchanges questions and answers while n messages are queued. If queued messages were in the way, every question would
 * take longer; on a busy machine most do, so the shortest time counts. Two tasks that share their cores with others may
 * be scheduled badly for many time slices, so the questions go on that long.
 */
static double ask(int n, bool any)
{
    enum { QUESTIONS = 2000 };
    const double turns = 0.2;
    double quickest = 1e9;
    if (me == 1) {
        for (int i = 0; i < n; i++)
            OK(rg_send(&i, sizeof i, 0, 1, RG_WORLD));
        tell(GO);
        for (int more = 1; more;) {
            OK(rg_recv(&more, sizeof more, 0, 3, RG_WORLD, NULL));
            tell(2);
        }
        hear(DONE);
        return 0;
    }
    hear(GO);
    double end = rg_time() + turns;
    for (int i = 1, more = 1; more; i++) {
        more = i < QUESTIONS || rg_time() < end;
        double start = rg_time();
        rg_request answer;
        OK(rg_irecv(NULL, 0, any ? RG_ANY : 1, 2, RG_WORLD, &answer));
        OK(rg_send(&more, sizeof more, 1, 3, RG_WORLD));
        OK(rg_wait(&answer, NULL));
        double took = rg_time() - start;
        quickest = took < quickest ? took : quickest;
    }
    for (int i = 0; i < n; i++) {
        OK(rg_recv(&values[0], sizeof *values, 1, 1, RG_WORLD, NULL));
        CHECK(values[0] == (uint32_t)i);
    }
    tell(DONE);
    return quickest * n;
}

static double ask_one(int n) { return ask(n, false); }
static double ask_any(int n) { return ask(n, true); }

/* Takes the minimum of both tasks' times at task 0, so that both tasks come to the same verdict. */
static void least(double *best, double attempt)
{
    if (attempt < *best)
        *best = attempt;
    OK(rg_broadcast(best, sizeof *best, 0, RG_WORLD));
}

static void compare(double (*match)(int))
{
    double quick = 1e9, slow = 1e9, end = rg_time() + MAX_SECONDS;
    check_patience(MAX_SECONDS + 60);
    for (int attempt = 1, late = 0; attempt <= ATTEMPTS || (slow > MAX_SLOWDOWN * quick && !late); attempt++) {
        double sum = 0;
        for (int again = 0; again < 5; again++)
            sum += match(MESSAGE_COUNT);
        least(&quick, sum / 5 / MESSAGE_COUNT);
        least(&slow, match(LARGER_COUNT) / LARGER_COUNT);
        late = rg_time() > end;
        OK(rg_broadcast(&late, sizeof late, 0, RG_WORLD));
    }
    if (me == 0)
        printf("each %.0f ns with %d, %.0f ns with %d\n", quick * 1e9, MESSAGE_COUNT, slow * 1e9, LARGER_COUNT);
    CHECK(slow <= MAX_SLOWDOWN * quick);
}

static void posted(void) { compare(match_posted); }
static void unexpected(void) { compare(match_unexpected); }
static void asked(void) { compare(ask_one); }
static void asked_any(void) { compare(ask_any); }

/* 100 000 synchronous sends in progress at once, matched in the opposite order. */
static void started(void)
{
    enum { N = 10000 };
    check_patience(100);
    if (me == 0) {
        for (int i = 0; i < N; i++) {
            values[i] = (uint32_t)i;
            OK(rg_issend(&values[i], sizeof *values, 1, i, RG_WORLD, &requests[i]));
        }
        tell(GO);
        OK(rg_waitall(N, requests, NULL));
    } else {
        hear(GO);
        for (int i = N - 1; i >= 0; i--) {
            uint32_t value;
            OK(rg_recv(&value, sizeof value, 0, i, RG_WORLD, NULL));
            CHECK(value == (uint32_t)i);
        }
    }
}

static size_t free_memory(void)
{
    char line[200];
    unsigned long long kib = 0;
    FILE *info = fopen("/proc/meminfo", "r");
    CHECK(info != NULL);
    while (fgets(line, sizeof line, info) && sscanf(line, "MemAvailable: %llu", &kib) != 1)
        ;
    fclose(info);
    return (size_t)kib << 10;
}

/* Fills words with their indices: painting byte by byte would take longer than the message. */
static void fill_words(uint64_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        words[i] = i * 0x9e3779b97f4a7c15u;
}
static void check_words(const uint64_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (words[i] != i * 0x9e3779b97f4a7c15u)
            FAILED("wrong from byte %zu on", i * 8);
}

static void huge(void)
{
    const size_t len = (size_t)1 << 30;
    int too_small = me == 0 && free_memory() < (size_t)4 << 30;
    OK(rg_broadcast(&too_small, sizeof too_small, 0, RG_WORLD));
    if (too_small) {
        if (me == 0)
            skip("a message of 1 GiB needs 4 GiB of free memory");
        return;
    }
    check_patience(170);
    rg_status status;
    uint64_t *bytes = need(len);
    if (me == size - 1) {
        fill_words(bytes, len / 8);
        OK(rg_send(bytes, len, 0, 1, RG_WORLD));
    }
    if (size > 1 && me == 0) {
        OK(rg_recv(bytes, len, 1, 1, RG_WORLD, &status));
        CHECK(status.length == len);
        check_words(bytes, len / 8);
    }
    free(bytes);
}

/* A send to itself needs a posted receive, because the buffer is too small. */
static void huge_to_oneself(void)
{
    const size_t len = (size_t)1 << 30;
    if (free_memory() < (size_t)4 << 30) {
        skip("a message of 1 GiB to oneself needs 4 GiB of free memory");
        return;
    }
    check_patience(170);
    rg_status status;
    rg_request request;
    uint64_t *bytes = need(len), *copy = need(len);
    fill_words(bytes, len / 8);
    OK(rg_irecv(copy, len, me, 1, RG_WORLD, &request));
    OK(rg_send(bytes, len, me, 1, RG_WORLD));
    OK(rg_wait(&request, &status));
    CHECK(status.length == len && status.source == me);
    check_words(copy, len / 8);
    FAILS(rg_send(bytes, len, me, 1, RG_WORLD), RG_ERR_CYCLE, "cycle");
    free(bytes);
    free(copy);
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"posted", posted, false},
        {"unexpected", unexpected, false},
        {"asked", asked, false},
        {"asked-any", asked_any, false},
        {"started", started, false},
        {"huge", huge, false},
        {"huge-to-oneself", huge_to_oneself, false},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
