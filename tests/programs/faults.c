/*
 * Faults around a job: a task overwrites the shared memory, memory and descriptors run out, the kernel refuses what it
 * had allowed. Each must result in an error with a text, and never in a hang, a crash, or the end of other tasks.
 *
 * A survivor prints "got RANK CODE TEXT" when its work ends with an error, "done RANK" when all went well.
 */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#define LARGE ((size_t)300000)

/* ---- the work of all tasks --------------------------------------------------------------------- */

static unsigned char out[8 * LARGE], in[8 * LARGE];

/*
 * Does one round of all kinds of calls with all tasks, and returns the first error. Checks the received bytes if
 * `trusted`.
 */
static int round_of_all(int round, bool trusted)
{
    int code, next = (me + 1) % size, before = (me + size - 1) % size;
    const size_t lengths[] = {8, 2000, LARGE};
    for (int i = 0; i < 3; i++) {
        size_t len = lengths[i];
        if (trusted)
            paint(out, len, (uint64_t)(round * 64 + me));
        code = rg_sendrecv(out, len, next, round & 0xff, in, len, before, round & 0xff, RG_WORLD, NULL);
        if (code != RG_OK)
            return code;
        if (trusted)
            CHECK(unpainted(in, len, (uint64_t)(round * 64 + before)) == len);
    }
    int64_t one = 1, sum = 0;
    code = rg_allreduce(&one, &sum, 1, RG_INT64, RG_SUM, RG_WORLD);
    if (code == RG_OK && trusted)
        CHECK(sum == size);
    if (code == RG_OK)
        code = rg_barrier(RG_WORLD);
    if (code == RG_OK)
        code = rg_broadcast(out, LARGE, round % size, RG_WORLD);
    return code;
}

static void prepare(void)
{
    CHECK(size <= 8);
    memset(out, 1, sizeof out);
}

static void report(int code)
{
    if (code == RG_OK) {
        printf("done %d\n", me);
        return;
    }
    CHECK(code < 0 && rg_last_error()[0] != 0);
    printf("got %d %d %s\n", me, code, rg_last_error());
}

/*
 * All kinds of traffic, correct to the last byte. Where memory may be short, the first error that reports it ends the
 * work of all tasks.
 */
static void work(void)
{
    prepare();
    bool may_fail = arg_count > 0;
    int code = RG_OK;
    for (int round = 0; round < 10 && code == RG_OK; round++)
        code = round_of_all(round, true);
    if (code != RG_OK && !may_fail)
        FAILED("work ended with %d (%s)", code, rg_last_error());
    report(code);
}

/* Takes all memory there is; then everything else must still work. */
static void hoard(void)
{
    enum { MAX_BLOCKS = 4096 };
    static void *blocks[MAX_BLOCKS];
    prepare();
    OK(round_of_all(0, true));
    /* Tasks that have not communicated in that round (which depends on their timing) get a ring here. */
    for (int d = 1; d < size; d++)
        OK(rg_sendrecv(NULL, 0, (me + d) % size, 77, NULL, 0, (me + size - d) % size, 77, RG_WORLD, NULL));
    /* More large messages are in progress at once than in any later round, so later rounds need no new pipes. */
    rg_request requests[8];
    for (int d = 1; d < size; d++)
        OK(rg_isend(out, LARGE, (me + d) % size, 78, RG_WORLD, &requests[d - 1]));
    OK(rg_barrier(RG_WORLD));
    for (int d = 1; d < size; d++)
        OK(rg_recv(in, LARGE, (me + d) % size, 78, RG_WORLD, NULL));
    OK(rg_waitall(size - 1, requests, NULL));
    int n = 0, code = RG_OK;
    if (me == 0) {
        while (n < MAX_BLOCKS && (code = rg_loan((size_t)1 << 20, &blocks[n])) == RG_OK)
            memset(blocks[n++], 7, (size_t)1 << 20);
        CHECK(code == RG_ERR_MEMORY);
        report(code);
    }
    OK(rg_barrier(RG_WORLD));
    for (int round = 1; round < 5; round++)
        OK(round_of_all(round, true));
    while (n > 0)
        OK(rg_loan_free(blocks[--n]));
    printf("went on %d\n", me);
}

/* Calls rg_init under the limits, before any other call. */
static void starting(void)
{
    int code = rg_init();
    if (code != RG_OK)
        return report(code);
    me = rg_rank(RG_WORLD);
    size = rg_size(RG_WORLD);
    work();
    OK(rg_finalize());
}

/* ---- a neighbour that corrupts the shared memory ----------------------------------------------- */

static struct {
    unsigned char *bytes;
    size_t size, table, slot, buffer;
} job;

static uint32_t word_at(size_t at) { return *(volatile uint32_t *)(job.bytes + at); }

/* Finds the parts of the memory: the task table by the pids in it, the world's collective buffer behind it. */
static void survey(void)
{
    int version, fd, rank, tasks, pids[64], pid = (int)getpid();
    CHECK(sscanf(getenv("REGATTA_JOB"), "%d:%d:%d:%d", &version, &fd, &rank, &tasks) == 4);
    OK(rg_allgather(&pid, sizeof pid, pids, RG_WORLD));
    struct stat stat;
    CHECK(fstat(fd, &stat) == 0);
    job.size = (size_t)stat.st_size;
    job.bytes = mmap(NULL, job.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(job.bytes != MAP_FAILED);
    size_t place[2] = {0, 0};
    for (int i = 0; i < 2; i++)
        for (size_t at = 0; at < 16384 && place[i] == 0; at += 64)
            if (word_at(at) == 1 && word_at(at + 4) == (uint32_t)pids[i])
                place[i] = at;
    CHECK(place[0] != 0 && place[1] > place[0]);
    job.table = place[0];
    job.slot = place[1] - place[0];
    /* The table has room for the maximum number of tasks. */
    job.buffer = (job.table + job.slot * 65536 + 127) & ~(size_t)127;
}

static uint64_t dice;

static size_t below(size_t n) { return (size_t)(next_random(&dice) % n); }

static void scribble(size_t from, size_t len)
{
    *(volatile uint64_t *)(job.bytes + from + below(len / 8) * 8) = next_random(&dice);
}

/*
 * A ring's first word holds source and destination, 20 bits each; bit 42 says that the ring is in use. Its lines begin
 * after 128 bytes.
 */
static uint32_t source_of(size_t page) { return word_at(page) & 0xfffff; }
static uint32_t destination_of(size_t page) { return (word_at(page) >> 20 | word_at(page + 4) << 12) & 0xfffff; }

static bool is_ring(size_t page)
{
    bool used = word_at(page + 4) >> 10 & 1;
    return used && source_of(page) < (uint32_t)size && destination_of(page) < (uint32_t)size && source_of(page) != destination_of(page);
}

static size_t data(void) { return (job.buffer + (size_t)size * (9 * 64 + 8 * 4096) + 4095) & ~(size_t)4095; }

static void over_rings(void)
{
    size_t page = data() + below((job.size - data()) / 4096) * 4096;
    const size_t lines = 256 * 64;
    if (is_ring(page) && source_of(page) == (uint32_t)me && page + 128 + lines <= job.size)
        scribble(page + 128, lines);
}

static void over_pipes(void)
{
    size_t page = data() + below((job.size - data()) / 4096) * 4096;
    if (!is_ring(page))
        *(volatile uint64_t *)(job.bytes + page + 128 * below(4)) = next_random(&dice);
}

static void over_buffer(void) { scribble(job.buffer, (size_t)size * 9 * 64); }
static void over_table(void) { scribble(job.table, job.slot * (size_t)size); }
static void over_everything(void) { scribble(0, below(2) ? 8192 : job.size); }

static void *scribbling(void *what)
{
    void (*over)(void) = *(void (**)(void))what;
    /*
     * Others may notice the corruption only later, or never, so this task is killed after a while to end their waiting.
     */
    struct sigevent end_of_it = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    const struct itimerspec life = {.it_value = {1, 500000000}};
    timer_t timer;
    CHECK(timer_create(CLOCK_MONOTONIC, &end_of_it, &timer) == 0);
    CHECK(timer_settime(timer, 0, &life, NULL) == 0);
    for (double end = rg_time() + 0.2; rg_time() < end;)
        for (int i = 0; i < 50; i++)
            over();
    for (;;)
        pause();
}

/* The last task overwrites a part of the memory while all are at work, and then dies. */
static void scribbler(void)
{
    static void (*over)(void);
    prepare();
    dice = strtoull(args[1], NULL, 10);
    const char *where = args[0];
    over = strcmp(where, "rings") == 0    ? over_rings
           : strcmp(where, "pipes") == 0  ? over_pipes
           : strcmp(where, "buffer") == 0 ? over_buffer
           : strcmp(where, "table") == 0  ? over_table
                                         : over_everything;
    int code = RG_OK, round = 0;
    for (; round < 3; round++)
        OK(round_of_all(round, true));
    survey();
    /* All went well until now, and all tasks know that. */
    pthread_t thread;
    if (me == size - 1) {
        for (int rank = 0; rank < me; rank++)
            OK(rg_recv(NULL, 0, rank, 1000, RG_WORLD, NULL));
        CHECK(pthread_create(&thread, NULL, scribbling, &over) == 0);
    } else {
        OK(rg_send(NULL, 0, size - 1, 1000, RG_WORLD));
    }
    while (code == RG_OK)
        code = round_of_all(round++, false);
    report(code);
    if (me == size - 1)
        kill(getpid(), SIGKILL);
}

/* ---- a kernel that refuses the single copy ------------------------------------------------------- */

static void refuse(int with)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)with),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static int error_named(const char *name) { return strcmp(name, "ENOSYS") == 0 ? ENOSYS : EPERM; }

/* Runs the given program with the single copy refused. */
static void inside(void)
{
    refuse(error_named(args[0]));
    execv(args[1], args + 1);
    FAILED("cannot start %s", args[1]);
}

static pthread_t first;

/* Waits until the kernel shows that the first thread has exited. */
static void await_end_of_first(void)
{
    char stat[200];
    CHECK(pthread_join(first, NULL) == 0);
    do {
        int fd = open("/proc/self/stat", O_RDONLY);
        ssize_t got = read(fd, stat, sizeof stat - 1);
        CHECK(got > 0 && close(fd) == 0);
        stat[got] = 0;
    } while (strstr(stat, ") Z ") == NULL);
}

/*
 * Task 1 checks for a message whose sender makes no calls: the only case in which the receiver copies from the sender's
 * memory. Without that single copy, the message arrives when its sender goes on. Prints which was the case.
 */
static void look_while_away(void)
{
    size_t len = 4 << 20;
    unsigned char *bytes = need(len);
    const char *when = args[0];
    bool late = strcmp(when, "late") == 0;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    if (strcmp(when, "early") == 0)
        refuse(error_named(args[1]));
    OK(rg_init());
    me = rg_rank(RG_WORLD);
    size = rg_size(RG_WORLD);
    int pid = (int)getpid(), pids[64];
    OK(rg_allgather(&pid, sizeof pid, pids, RG_WORLD));
    char path[400];
    OK(rg_path(RG_WORLD, 1 - me, path, sizeof path));
    bool allowed = strstr(path, "no single copy") == NULL;
    if (late)
        refuse(error_named(args[1]));
    if (strcmp(when, "left") == 0 && me == 0)
        await_end_of_first();
    rg_request request;
    for (int round = 0; round < 4; round++) {
        if (me == 0) {
            int signal;
            paint(bytes, len, (uint64_t)round);
            OK(rg_isend(bytes, len, 1, 0, RG_WORLD, &request));
            CHECK(sigwait(&set, &signal) == 0);
            OK(rg_wait(&request, NULL));
            OK(rg_barrier(RG_WORLD));
            continue;
        }
        memset(bytes, 0, len);
        OK(rg_probe(0, 0, RG_WORLD, NULL));
        OK(rg_irecv(bytes, len, 0, 0, RG_WORLD, &request));
        int done = 0;
        for (int look = 0; look < 20000 && !done; look++)
            OK(rg_test(&request, &done, NULL));
        CHECK(kill(pids[0], SIGUSR1) == 0);
        if (!done)
            OK(rg_wait(&request, NULL));
        CHECK(unpainted(bytes, len, (uint64_t)round) == len);
        printf("round %d allowed %d pulled %d\n", round, allowed, done);
        OK(rg_barrier(RG_WORLD));
    }
    OK(rg_finalize());
}

static void *go_on_without_first(void *unused)
{
    look_while_away();
    return unused;
}

/* away left: the first thread exits, and another thread does all of this. */
static void away(void)
{
    pthread_t other;
    if (strcmp(args[0], "left") != 0)
        return look_while_away();
    first = pthread_self();
    CHECK(pthread_create(&other, NULL, go_on_without_first, NULL) == 0);
    pthread_exit(NULL);
}

/* A message is still in transit when its sender leaves and reuses the memory. */
static void leaves_early(void)
{
    size_t len = 4 << 20;
    unsigned char *bytes = need(len);
    rg_request request;
    if (me == 0) {
        memset(bytes, 1, len);
        OK(rg_isend(bytes, len, 1, 0, RG_WORLD, &request));
        OK(rg_send(bytes, 1, 1, 1, RG_WORLD));
        OK(rg_finalize());
        memset(bytes, 2, len);
        free(bytes);
        exit(0);
    }
    OK(rg_recv(bytes, 1, 0, 1, RG_WORLD, NULL));
    FAILS(rg_recv(bytes, len, 0, 0, RG_WORLD, NULL), RG_ERR_LEFT, "task 0 ");
}

/* ---- no descriptors between two hosts --------------------------------------------------------- */

static int hoarded[512], hoarded_count;

/* Opens files until no descriptor is left. */
static void hoard_descriptors(void)
{
    struct rlimit few;
    CHECK(getrlimit(RLIMIT_NOFILE, &few) == 0);
    few.rlim_cur = 200;
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    int file;
    while ((file = open("/dev/null", O_RDONLY)) >= 0)
        hoarded[hoarded_count++] = file;
    CHECK(errno == EMFILE && hoarded_count > 0);
}

static void give_descriptors_back(void)
{
    while (hoarded_count > 0)
        close(hoarded[--hoarded_count]);
}

/* Sends a message each way. */
static void exchange(void)
{
    int word = me, other = -1;
    OK(rg_sendrecv(&word, sizeof word, 1 - me, 5, &other, sizeof other, 1 - me, 5, RG_WORLD, NULL));
    CHECK(other == 1 - me);
}

/* The call that needs the first connection returns the error, and may be repeated. */
static void caller_without_descriptors(void)
{
    int word = 7;
    rg_request request;
    if (me == 0) {
        hoard_descriptors();
        FAILS(rg_send(&word, sizeof word, 1, 1, RG_WORLD), RG_ERR_SYSTEM, "no free file descriptor");
        FAILS(rg_isend(in, sizeof in, 1, 1, RG_WORLD, &request), RG_ERR_SYSTEM, "ulimit -n");
        give_descriptors_back();
        word = 8;
        OK(rg_send(&word, sizeof word, 1, 1, RG_WORLD));
    } else {
        OK(rg_recv(&word, sizeof word, 0, 1, RG_WORLD, NULL));
        CHECK(word == 8);
    }
    exchange();
}

/* Both tasks get an error that says what is missing, and where. */
static void called_without_descriptors(void)
{
    int word = 7;
    if (me == 1) {
        hoard_descriptors();
        FAILS(rg_recv(&word, sizeof word, 0, 1, RG_WORLD, NULL), RG_ERR_DEAD, "no free file descriptor");
        give_descriptors_back();
        /* Waits: if this task left at once, the other might see only that it has left, not what was missing. */
        OK(rg_get("heard", 0, RG_AWAIT, &word, sizeof word, NULL, NULL));
    } else {
        OK(rg_send(&word, sizeof word, 1, 1, RG_WORLD));
        FAILS(rg_recv(&word, sizeof word, 1, 1, RG_WORLD, NULL), RG_ERR_DEAD,
              "cannot accept the connection of this task");
        CHECK(strstr(rg_last_error(), "no free file descriptor or memory") != NULL);
        OK(rg_put("heard", &word, sizeof word, 0, RG_PERSISTENT, NULL));
    }
}

/* The accepting task gets descriptors again in time: no message is lost. */
static void called_has_descriptors_again(void)
{
    int word = 7, there = 0;
    if (me == 1) {
        hoard_descriptors();
        for (int i = 0; i < 100000; i++)
            OK(rg_iprobe(0, 1, RG_WORLD, &there, NULL));
        CHECK(!there);
        give_descriptors_back();
        OK(rg_recv(&word, sizeof word, 0, 1, RG_WORLD, NULL));
        CHECK(word == 8);
    } else {
        word = 8;
        OK(rg_send(&word, sizeof word, 1, 1, RG_WORLD));
    }
    exchange();
}

/* Closes the connections of this task. */
static int cut_connections(void)
{
    int cut = 0;
    for (int fd = 3; fd < 200; fd++) {
        struct sockaddr_storage peer;
        socklen_t length = sizeof peer;
        bool is_connected = getpeername(fd, (struct sockaddr *)&peer, &length) == 0;
        if (is_connected && (peer.ss_family == AF_INET || peer.ss_family == AF_INET6))
            cut += shutdown(fd, SHUT_RDWR) == 0;
    }
    return cut;
}

/*
 * A connection breaks while neither task has a free descriptor. It is reopened with the descriptor that it had itself.
 */
static void broken_without_descriptors(void)
{
    exchange();
    hoard_descriptors();
    for (int round = 0; round < 20; round++) {
        if (round % 2 == me)
            CHECK(cut_connections() > 0);
        exchange();
    }
    give_descriptors_back();
}

/* The library's own messages are sent as soon as there is a descriptor. None is dropped, so no task waits in vain. */
static void making_without_descriptors(void)
{
    rg_group copy;
    rg_request request;
    int done = 0, sum = 0, one = 1;
    if (me == 0)
        hoard_descriptors();
    OK(rg_igroup_dup(RG_WORLD, &copy, &request));
    if (me == 0) {
        for (int i = 0; i < 1000; i++)
            OK(rg_test(&request, &done, NULL));
        CHECK(!done);
        give_descriptors_back();
    }
    OK(rg_wait(&request, NULL));
    OK(rg_allreduce(&one, &sum, 1, RG_INT32, RG_SUM, copy));
    CHECK(sum == 2);
    OK(rg_group_free(copy));
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"broken-without-descriptors", broken_without_descriptors, false},
        {"caller-without-descriptors", caller_without_descriptors, false},
        {"making-without-descriptors", making_without_descriptors, false},
        {"called-without-descriptors", called_without_descriptors, false},
        {"called-has-descriptors-again", called_has_descriptors_again, false},
        {"work", work, false},
        {"hoard", hoard, false},
        {"starting", starting, true},
        {"scribbler", scribbler, false},
        {"inside", inside, true},
        {"away", away, true},
        {"leaves-early", leaves_early, false},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
