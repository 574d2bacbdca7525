/*
 * The rules of the hot paths, enforced by counting.
 *
 *     PROGRAM SCENARIO alloc|calls
 *
 * A scenario runs one path in batches until one batch costs no more than the rule allows in every task. The cheapest
 * batch is what the path costs, because other activity of the machine can only add to it (a task that gets no answer
 * yields and sleeps, as it should; a message that is not awaited yet is stored). `calls` counts allocations and system
 * calls, and is for jobs in which every task has a core; `alloc` counts allocations only.
 */
#include "count.h"

#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum {
    ROUNDS = 100,   /* per batch */
    SLOW = 100,     /* per batch if tasks share cores and a round may take milliseconds */
    BATCHES = 10,   /* minimum number that is counted; four uncounted ones precede them */
    MAX_CALLS = 1, /* per batch: one call in a hundred rounds */
    MAX_SECONDS = 15,  /* time limit for one batch to keep the rule */
    FIRST = 40,     /* messages of nearly a page each, so the memory between two tasks is used up more than once */
    MAX_FAULTS = 10,/* page faults allowed for all of these together, including the program's own */
};

static unsigned char bytes[8192], room[8192];
static int other;

/* ---- the paths: one round each ----------------------------------------------------------------- */

static void ping(size_t len)
{
    if (me == 0)
        OK(rg_send(bytes, len, other, 1, RG_WORLD));
    OK(rg_recv(room, len, other, 1, RG_WORLD, NULL));
    if (me == 1)
        OK(rg_send(bytes, len, other, 1, RG_WORLD));
}

static void ping_8(void) { ping(8); }
static void ping_48(void) { ping(48); }
static void ping_1024(void) { ping(1024); }
static void ping_8192(void) { ping(8192); }

static void started(void)
{
    rg_request receive, send;
    OK(rg_irecv(room, 8, other, 1, RG_WORLD, &receive));
    OK(rg_isend(bytes, 8, other, 1, RG_WORLD, &send));
    OK(rg_wait(&send, NULL));
    OK(rg_wait(&receive, NULL));
}

static void sendrecv(void)
{
    OK(rg_sendrecv(bytes, 8, other, 1, room, 8, other, 1, RG_WORLD, NULL));
}

static void barrier(void) { OK(rg_barrier(RG_WORLD)); }

static void allreduce(void)
{
    double in = me, out = 0;
    OK(rg_allreduce(&in, &out, 1, RG_DOUBLE, RG_SUM, RG_WORLD));
    CHECK(out == size * (size - 1) / 2);
}

/* Of two tasks, these take no message that waits, and no list of steps. */
static void rooted(void)
{
    static double in[2], out[4];
    OK(rg_reduce(in, out, 2, RG_DOUBLE, RG_SUM, 0, RG_WORLD));
    OK(rg_gather(in, sizeof in, out, 1, RG_WORLD));
    OK(rg_scatter(out, in, sizeof in, 0, RG_WORLD));
    OK(rg_broadcast(in, sizeof in, 1, RG_WORLD));
}

static void prefixes(void)
{
    static double in[2], out[2];
    OK(rg_scan(in, out, 2, RG_DOUBLE, RG_SUM, RG_WORLD));
    OK(rg_exscan(in, out, 2, RG_DOUBLE, RG_SUM, RG_WORLD));
    OK(rg_reduce_scatter_block(in, out, 1, RG_DOUBLE, RG_SUM, RG_WORLD));
}

static void loan(void)
{
    void *block;
    for (int turn = 0; turn < 2; turn++)
        if (turn == me) {
            OK(rg_loan(4096, &block));
            memset(block, turn, 64);
            OK(rg_loan_send(block, 4096, other, 1, RG_WORLD));
        } else {
            OK(rg_loan_recv(&block, other, 1, RG_WORLD, NULL));
            OK(rg_loan_free(block));
        }
}

static void self_message(void)
{
    OK(rg_send(bytes, 8, me, 1, RG_WORLD));
    OK(rg_recv(room, 8, me, 1, RG_WORLD, NULL));
}

static rg_request never;

static void incomplete(void)
{
    int done;
    OK(rg_test(&never, &done, NULL));
    CHECK(!done);
}

/* ---- the rules ---------------------------------------------------------------------------------- */

static int rounds = SLOW;

static struct counts batch_of(void (*round)(void))
{
    struct counts before = counts;
    for (int i = 0; i < rounds; i++)
        round();
    return (struct counts){.allocations = counts.allocations - before.allocations,
                           .calls = counts.calls - before.calls};
}

static void begin_counting(void)
{
    CHECK(arg_count == 1);
    if (strcmp(args[0], "calls") == 0) {
        count_calls();
        rounds = ROUNDS;
    }
}

static void cost_nothing(const char *path, void (*round)(void))
{
    other = size == 1 ? 0 : me ^ 1;
    begin_counting();
    for (int batch = 0; batch < 4; batch++)
        batch_of(round);
    struct counts best = {.allocations = -1ul, .calls = -1ul};
    double end = rg_time() + MAX_SECONDS;
    for (int batch = 1;; batch++) {
        struct counts now = batch_of(round);
        best.allocations = now.allocations < best.allocations ? now.allocations : best.allocations;
        best.calls = now.calls < best.calls ? now.calls : best.calls;
        int broken = best.allocations > 0 || best.calls > MAX_CALLS, late = rg_time() > end;
        /* All go on, or none. */
        int told[] = {broken || batch < BATCHES, late}, all[2];
        OK(rg_allreduce(told, all, 2, RG_INT32, RG_MAX, RG_WORLD));
        if (all[0] && !all[1])
            continue;
        if (broken)
            FAILED("%d rounds of %s make %lu allocations and %lu system calls at best", rounds, path,
                   best.allocations, best.calls);
        return;
    }
}

/* Does what no fast path may do, so that the counters must show it. */
static void allocate_and_call(void)
{
    void *volatile block = malloc(8);
    free(block);
    CHECK(syscall(SYS_getppid) > 0);
}

static void broken(void)
{
    begin_counting();
    struct counts seen = batch_of(allocate_and_call);
    CHECK(seen.allocations == 2ul * (unsigned)rounds);
    CHECK(seen.calls == (rounds == ROUNDS ? ROUNDS : 0));
}

#define PATH(name)                        \
    static void name##_path(void)         \
    {                                     \
        cost_nothing(#name, name);        \
    }
PATH(ping_8)
PATH(ping_48)
PATH(ping_1024)
PATH(ping_8192)
PATH(started)
PATH(sendrecv)
PATH(barrier)
PATH(allreduce)
PATH(rooted)
PATH(prefixes)
PATH(loan)
PATH(self_message)

static void incomplete_path(void)
{
    int cancelled;
    OK(rg_irecv(room, 8, other, 2, RG_WORLD, &never));
    cost_nothing("rg_test", incomplete);
    OK(rg_cancel(never, &cancelled));
    FAILS(rg_wait(&never, NULL), RG_ERR_CANCELLED, "cancelled");
}

/* Checks that no atomic read-modify-write, full fence or system call was executed. */
static void held(const char *what, unsigned long messages)
{
    if (counts.steps < messages * 50)
        FAILED("%s: only %lu instructions were seen", what, counts.steps);
    if (counts.locks > 0)
        FAILED("%s: %lu locked instructions, fences or system calls in %lu messages", what,
               counts.locks, messages);
}

enum { BURST = 5 };

static void send_burst(int to)
{
    for (int i = 0; i < BURST; i++)
        OK(rg_send(bytes, 8, to, 3, RG_WORLD));
}

static void receive_burst(int from)
{
    for (int i = 0; i < BURST; i++)
        OK(rg_recv(room, 8, from, 3, RG_WORLD, NULL));
}

static void stepped(void (*burst)(int), int with, const char *what)
{
    burst(with); /* what happens only at the first message */
    start_steps();
    burst(with);
    stop_steps();
    held(what, BURST);
}

/* Returns whether the kernel has membarrier. Without it, senders must execute a fence (see the doorbell). */
static bool has_membarrier(void)
{
    long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    return commands > 0 && commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED;
}

/* Task 1 waits in sigwait and not in Regatta, so task 0 need not wake it. */
static void locks(void)
{
    if (!has_membarrier()) {
        printf("this kernel has no membarrier, so every message needs a fence\n");
        return;
    }
    sigset_t word;
    int pid = getpid(), got;
    sigemptyset(&word);
    sigaddset(&word, SIGUSR1);
    sigprocmask(SIG_BLOCK, &word, NULL);
    if (me == 1) {
        OK(rg_send(&pid, sizeof pid, 0, 1, RG_WORLD));
        CHECK(sigwait(&word, &got) == 0);
        stepped(receive_burst, 0, "rg_recv");
        OK(rg_recv(room, 0, 0, 4, RG_WORLD, NULL));
    } else {
        /* Checks first that the counter detects a locked instruction. */
        static int counter;
        start_steps();
        __atomic_fetch_add(&counter, 1, __ATOMIC_SEQ_CST);
        __atomic_exchange_n(&counter, 1, __ATOMIC_SEQ_CST);
        stop_steps();
        if (counts.locks != 2)
            FAILED("of 2 locked instructions %lu were seen", counts.locks);
        OK(rg_recv(&pid, sizeof pid, 1, 1, RG_WORLD, NULL));
        stepped(send_burst, 1, "rg_send");
        CHECK(kill(pid, SIGUSR1) == 0);
        /* Messages to itself. */
        send_burst(0);
        receive_burst(0);
        start_steps();
        send_burst(0);
        receive_burst(0);
        stop_steps();
        held("a message to oneself", 2 * BURST);
        OK(rg_send(NULL, 0, 1, 4, RG_WORLD));
    }
}

static long faults(void)
{
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    return usage.ru_minflt;
}

/* Returns whether many pages can be mapped in one call (Linux 5.14 and later). */
static bool maps_at_once(void)
{
    enum { POPULATE_WRITE = 23 };
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    return madvise(page, 4096, POPULATE_WRITE) == 0;
}

/* Sends this many messages each way in a row, in different memory each. None is stored before it is received. */
static void stream_of(int messages, size_t len)
{
    for (int from = 0; from < 2; from++)
        for (int i = 0; i < messages; i++) {
            if (me == from)
                OK(rg_send(bytes, len, other, 1, RG_WORLD));
            else
                OK(rg_recv(room, len, other, 1, RG_WORLD, NULL));
            OK(rg_barrier(RG_WORLD));
        }
}

/* Executes all code that a message needs once before counting, including sleeping and waking, so that it is mapped. */
static void run_through(void)
{
    for (int i = 0; i < 4; i++) {
        if (me == i % 2)
            doze(0.02);
        stream_of(2, i < 2 ? 8 : 4000);
    }
}

/* The first messages of a job must not cause a page fault for each page. */
static void first_messages(void)
{
    other = 1 - me;
    if (!maps_at_once()) {
        skip("this kernel maps pages one by one only");
        return;
    }
    memset(bytes, 1, sizeof bytes);
    memset(room, 1, sizeof room);
    run_through();
    long before = faults();
    stream_of(FIRST, 4000);
    long found = faults() - before;
    if (found > MAX_FAULTS)
        FAILED("%ld page faults in the first %d messages", found, FIRST);
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"ping-8", ping_8_path, false},       {"ping-48", ping_48_path, false},
        {"ping-1024", ping_1024_path, false}, {"ping-8192", ping_8192_path, false},
        {"started", started_path, false},     {"sendrecv", sendrecv_path, false},
        {"barrier", barrier_path, false},     {"allreduce", allreduce_path, false},
        {"rooted", rooted_path, false},       {"prefixes", prefixes_path, false},
        {"loan", loan_path, false},           {"self", self_message_path, false},
        {"incomplete", incomplete_path, false}, {"locks", locks, false},
        {"broken", broken, false},               {"first-messages", first_messages, false},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
