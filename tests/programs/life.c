/* Calls outside of a job's life, and initializations that fail. The program calls rg_init itself. */
#include "check.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Makes every kind of call while there is no job. */
static void all_refused(void)
{
    char byte = 0;
    int number;
    rg_request request = RG_REQUEST_NULL;
    rg_group group;
    void *block;
    CHECK(!rg_initialized());
    FAILS(rg_send(&byte, 1, 0, 0, RG_WORLD), RG_ERR_STATE, "rg_init");
    FAILS(rg_ssend(&byte, 1, 0, 0, RG_WORLD), RG_ERR_STATE, "");
    FAILS(rg_recv(&byte, 1, 0, 0, RG_WORLD, NULL), RG_ERR_STATE, "");
    FAILS(rg_isend(&byte, 1, 0, 0, RG_WORLD, &request), RG_ERR_STATE, "");
    FAILS(rg_irecv(&byte, 1, 0, 0, RG_WORLD, &request), RG_ERR_STATE, "");
    FAILS(rg_probe(0, 0, RG_WORLD, NULL), RG_ERR_STATE, "");
    FAILS(rg_iprobe(0, 0, RG_WORLD, &number, NULL), RG_ERR_STATE, "");
    FAILS(rg_rank(RG_WORLD), RG_ERR_STATE, "");
    FAILS(rg_size(RG_WORLD), RG_ERR_STATE, "");
    FAILS(rg_tid(), RG_ERR_STATE, "");
    FAILS(rg_barrier(RG_WORLD), RG_ERR_STATE, "");
    FAILS(rg_broadcast(&byte, 1, 0, RG_WORLD), RG_ERR_STATE, "");
    FAILS(rg_ibarrier(RG_WORLD, &request), RG_ERR_STATE, "");
    FAILS(rg_group_dup(RG_WORLD, &group), RG_ERR_STATE, "");
    FAILS(rg_group_shrink(RG_WORLD, &group), RG_ERR_STATE, "");
    FAILS(rg_group_revoke(RG_WORLD), RG_ERR_STATE, "");
    FAILS(rg_agree(&number, RG_WORLD), RG_ERR_STATE, "");
    FAILS(rg_loan(8, &block), RG_ERR_STATE, "");
    FAILS(rg_progress(), RG_ERR_STATE, "");
    FAILS(rg_fd(&number), RG_ERR_STATE, "");
    FAILS(rg_clear_fd(), RG_ERR_STATE, "");
    FAILS(rg_raise_fd(), RG_ERR_STATE, "");
    FAILS(rg_finalize(), RG_ERR_STATE, "");
    CHECK(strlen(rg_version()) > 0 && strlen(rg_strerror(RG_ERR_STATE)) > 0);
}

static void outside(void)
{
    all_refused();
    OK(rg_init());
    OK(rg_init());
    CHECK(rg_initialized() == 1);
    me = rg_rank(RG_WORLD);
    OK(rg_barrier(RG_WORLD));
    OK(rg_finalize());
    all_refused();
}

/* rg_init must fail with the given code and text, and no other call works. */
static void refused(void)
{
    CHECK(arg_count == 2);
    int code = rg_init();
    if (code != atoi(args[0]) || strstr(rg_last_error(), args[1]) == NULL)
        FAILED("rg_init gave %d: %s", code, code ? rg_last_error() : "nothing wrong");
    CHECK(strlen(rg_last_error()) > 30);
    all_refused();
}

/* Joining the job of this name must fail for the given reason, and no other call works. */
static void enter_refused(void)
{
    CHECK(arg_count == 2);
    FAILS(rg_enter(args[0], 0), RG_ERR_LAUNCHER, args[1]);
    all_refused();
}

static void alone(void)
{
    OK(rg_init());
    CHECK(rg_rank(RG_WORLD) == 0 && rg_size(RG_WORLD) == 1);
    int value = 3, sum = 0;
    OK(rg_allreduce(&value, &sum, 1, RG_INT32, RG_SUM, RG_WORLD));
    CHECK(sum == 3);
    OK(rg_barrier(RG_WORLD));
    OK(rg_send(&value, sizeof value, 0, 1, RG_WORLD));
    OK(rg_recv(&sum, sizeof sum, 0, 1, RG_WORLD, NULL));
    OK(rg_finalize());
}

/* A program that a task starts inherits the task's environment. It must not become that task, but a job of its own. */
static void parent(void)
{
    OK(rg_init());
    me = rg_rank(RG_WORLD);
    OK(rg_barrier(RG_WORLD));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        execl("/proc/self/exe", "life", "alone", (char *)NULL);
        _exit(9);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    OK(rg_barrier(RG_WORLD));
    OK(rg_finalize());
}

/* Returns the size of the job's memory, which is the only descriptor of its kind. */
static off_t size_of_job(void)
{
    off_t size = -1;
    for (int fd = 3; fd < 100; fd++) {
        char path[40], name[100] = "";
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        struct stat stat;
        if (readlink(path, name, sizeof name - 1) > 0 && strstr(name, "memfd:regatta") != NULL) {
            CHECK(fstat(fd, &stat) == 0);
            size = stat.st_size;
        }
    }
    CHECK(size > 0);
    return size;
}

/* Groups are created and freed, and reuse the memory of freed groups. The members free them in any order. */
static void groups(void)
{
    CHECK(arg_count == 1);
    OK(rg_init());
    me = rg_rank(RG_WORLD);
    int size = rg_size(RG_WORLD), rounds = atoi(args[0]);
    off_t before = 0;
    rg_group last = {-1};
    for (int round = 0; round < rounds; round++) {
        rg_group group;
        OK(rg_group_dup(RG_WORLD, &group));
        /* Half of the time a member is still in the previous group when others use the next. */
        bool late = round % 2 == 0 && round / 2 % size == me;
        if (last.id >= 0)
            OK(rg_group_free(last));
        int mine = round + me, sum = 0;
        OK(rg_allreduce(&mine, &sum, 1, RG_INT32, RG_SUM, group));
        CHECK(sum == size * round + size * (size - 1) / 2);
        OK(rg_barrier(group));
        last = late ? group : (rg_group){-1};
        if (!late)
            OK(rg_group_free(group));
        if (round == 20)
            before = size_of_job();
    }
    OK(rg_barrier(RG_WORLD));
    if (size_of_job() != before)
        FAILED("%ld bytes more after %d groups", (long)(size_of_job() - before), rounds);
    OK(rg_finalize());
}

static void end_of_child(int signal)
{
    (void)signal;
    _exit(41);
}

static int outcome_of(pid_t child)
{
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* In a forked child every call fails, and the child ends like any program. */
static void add(const void *from, void *into, size_t count, void *unused)
{
    (void)from, (void)into, (void)count, (void)unused;
}

/* Calls that do not need the engine must fail in the child, too. */
static void refused_without_engine(void)
{
    rg_request request = RG_REQUEST_NULL;
    rg_op op;
    int number;
    FAILS(rg_wait(&request, NULL), RG_ERR_STATE, "fork");
    FAILS(rg_test(&request, &number, NULL), RG_ERR_STATE, "fork");
    FAILS(rg_waitall(0, NULL, NULL), RG_ERR_STATE, "fork");
    FAILS(rg_waitany(1, &request, &number, NULL), RG_ERR_STATE, "fork");
    FAILS(rg_cancel(request, &number), RG_ERR_STATE, "fork");
    FAILS(rg_loan_free(NULL), RG_ERR_STATE, "fork");
    FAILS(rg_op_create(add, NULL, 1, &op), RG_ERR_STATE, "fork");
}

static void fork_one(void)
{
    pid_t child = fork();
    if (child == 0) {
        all_refused();
        refused_without_engine();
        FAILS(rg_init(), RG_ERR_STATE, "fork");
        all_refused();
        pid_t grandchild = fork();
        if (grandchild == 0) {
            all_refused();
            exit(42);
        }
        CHECK(outcome_of(grandchild) == 42);
        exit(42);
    }
    CHECK(outcome_of(child) == 42);
}

static void one_message(int number)
{
    int theirs = -1;
    OK(rg_sendrecv(&number, sizeof number, 1 - me, 5, &theirs, sizeof theirs, 1 - me, 5, RG_WORLD,
                   NULL));
    CHECK(theirs == number);
    OK(rg_barrier(RG_WORLD));
}

static void *wait_for_message(void *number)
{
    OK(rg_recv(number, sizeof(int), me, 6, RG_WORLD, NULL));
    return NULL;
}

/* Tasks that fork go on normally, with one thread and with two. */
static void forked(void)
{
    OK(rg_init());
    me = rg_rank(RG_WORLD);
    one_message(1);
    fork_one();
    one_message(2);
    int number = 3, got = 0;
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, wait_for_message, &got) == 0);
    for (int i = 0; i < 20; i++)
        fork_one();
    OK(rg_send(&number, sizeof number, me, 6, RG_WORLD));
    CHECK(pthread_join(thread, NULL) == 0 && got == 3);
    fork_one();
    one_message(3);

    /* The child is created without the C library's fork, and has a pointer into the job's memory. */
    volatile char *block;
    OK(rg_loan(100, (void **)&block));
    block[0] = 7;
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        signal(SIGSEGV, end_of_child);
        block[0] = 8;
        _exit(9);
    }
    CHECK(outcome_of(child) == 41 && block[0] == 7);
    OK(rg_loan_free((void *)block));
    one_message(4);
    OK(rg_finalize());

    /* After finalization there is nothing left to protect. */
    child = fork();
    if (child == 0) {
        all_refused();
        _exit(42);
    }
    CHECK(outcome_of(child) == 42);
}

static void compute(double seconds)
{
    double end = rg_time() + seconds;
    while (rg_time() < end)
        ;
}

/*
 * last-sends WAY BYTES SECONDS: task 0 sends more than any ring holds, and leaves as soon as it may. Task 1 computes
 * for SECONDS before its first receive, and for a short time after each message.
 */
static void last_sends(void)
{
    enum { MESSAGE_COUNT = 200 };
    OK(rg_init());
    me = rg_rank(RG_WORLD);
    CHECK(arg_count == 3);
    const char *way = args[0];
    size_t length = strtoul(args[1], NULL, 10);
    unsigned char *bytes = malloc(length);
    CHECK(bytes != NULL);
    if (me == 1)
        compute(atof(args[2]));
    for (int i = 0; i < MESSAGE_COUNT; i++) {
        unsigned char mark = (unsigned char)(i * 7 + 1);
        if (me == 1) {
            rg_status status;
            OK(rg_recv(bytes, length, 0, 1, RG_WORLD, &status));
            CHECK(status.length == length && bytes[0] == mark && bytes[length - 1] == mark);
            compute(0.0003);
        } else if (strcmp(way, "loan") == 0) {
            void *block;
            OK(rg_loan(length, &block));
            memset(block, mark, length);
            OK(rg_loan_send(block, length, 1, 1, RG_WORLD));
        } else {
            memset(bytes, mark, length);
            if (strcmp(way, "isend") == 0) {
                rg_request request;
                OK(rg_isend(bytes, length, 1, 1, RG_WORLD, &request));
                OK(rg_wait(&request, NULL));
            } else if (strcmp(way, "bsend") == 0) {
                OK(rg_bsend(bytes, length, 1, 1, RG_WORLD));
            } else {
                OK(rg_send(bytes, length, 1, 1, RG_WORLD));
            }
        }
    }
    free(bytes);
    OK(rg_finalize());
}

static double processor_time(void)
{
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/*
 * child-that-stays: task 0 has communicated with tasks 1 and 2, which are on other hosts, and forks a child that
 * inherits its descriptors. Task 1 leaves, and task 0 sleeps until task 2 sends a message.
 */
static void child_that_stays(void)
{
    if (me != 0) {
        OK(rg_sendrecv(NULL, 0, 0, 1, NULL, 0, 0, 2, RG_WORLD, NULL));
        if (me == 1)
            return;
        FAILS(rg_recv(NULL, 0, 1, 9, RG_WORLD, NULL), RG_ERR_LEFT, "task 1");
        doze(2); /* the time during which task 0 must be idle */
        OK(rg_send(NULL, 0, 0, 3, RG_WORLD));
        return;
    }
    OK(rg_recv(NULL, 0, 1, 1, RG_WORLD, NULL));
    OK(rg_recv(NULL, 0, 2, 1, RG_WORLD, NULL));
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    OK(rg_send(NULL, 0, 1, 2, RG_WORLD));
    OK(rg_send(NULL, 0, 2, 2, RG_WORLD));
    double before = processor_time(), start = rg_time();
    OK(rg_recv(NULL, 0, 2, 3, RG_WORLD, NULL));
    double used = processor_time() - before, took = rg_time() - start;
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    if (used > 0.05 * took)
        FAILED("used %.0f ms of %.0f while it waited", used * 1e3, took * 1e3);
}

/*
 * late-loan HOW: task 0 sends more than the buffer of task 1 holds, then a loan, and ends. Task 1 posts no receive
 * before it can know that.
 */
static void late_loan(void)
{
    enum { MESSAGE_COUNT = 100, LENGTH = 1000 };
    static unsigned char bytes[LENGTH];
    rg_status status;
    bool dies = arg_count == 1 && strcmp(args[0], "dies") == 0;
    if (me == 0) {
        void *block;
        for (int i = 0; i < MESSAGE_COUNT; i++) {
            paint(bytes, LENGTH, (uint64_t)i);
            OK(rg_send(bytes, LENGTH, 1, 1, RG_WORLD));
        }
        OK(rg_loan(LENGTH, &block));
        paint(block, LENGTH, MESSAGE_COUNT);
        OK(rg_loan_send(block, LENGTH, 1, 2, RG_WORLD));
        OK(rg_send("after", 6, 1, 3, RG_WORLD));
        if (dies)
            raise(SIGKILL);
        return;
    }
    int gone = dies ? RG_ERR_DEAD : RG_ERR_LEFT;
    if (me == 2) {
        FAILS(rg_recv(bytes, 1, 0, 9, RG_WORLD, &status), gone, "task 0");
        OK(rg_send("go", 3, 1, 4, RG_WORLD));
        return;
    }
    OK(rg_recv(bytes, 3, 2, 4, RG_WORLD, &status));
    OK(rg_progress());
    for (int i = 0; i < MESSAGE_COUNT; i++) {
        OK(rg_recv(bytes, LENGTH, 0, 1, RG_WORLD, &status));
        CHECK(unpainted(bytes, LENGTH, (uint64_t)i) == LENGTH);
    }
    OK(rg_recv(bytes, LENGTH, 0, 2, RG_WORLD, &status));
    CHECK(status.length == LENGTH && unpainted(bytes, LENGTH, MESSAGE_COUNT) == LENGTH);
    OK(rg_recv(bytes, LENGTH, 0, 3, RG_WORLD, &status));
    CHECK(strcmp((char *)bytes, "after") == 0);
    FAILS(rg_recv(bytes, LENGTH, 0, 3, RG_WORLD, &status), gone, "task 0");
}

/* abort CODE WHO: task WHO (each task if -1) aborts the job while the others wait. */
static void ends_all(void)
{
    int code = atoi(args[0]), who = atoi(args[1]);
    FAILS(rg_abort(code), RG_ERR_STATE, "rg_init");
    OK(rg_init());
    me = rg_rank(RG_WORLD);
    if (me == who || who < 0) {
        rg_abort(code);
        FAILED("it returned");
    }
    rg_barrier(RG_WORLD);
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"outside", outside, true}, {"refused", refused, true}, {"enter-refused", enter_refused, true},
        {"alone", alone, true},
        {"parent", parent, true},   {"forked", forked, true},
        {"groups", groups, true},   {"last-sends", last_sends, true},
        {"late-loan", late_loan, false},
        {"child-that-stays", child_that_stays, false},
        {"abort", ends_all, true},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
