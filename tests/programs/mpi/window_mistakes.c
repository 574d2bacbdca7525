/*
 * Collective calls on windows that fail at one process: its argument is invalid, it has an open epoch, or a resource is
 * missing. No process may hang.
 */
#define _GNU_SOURCE
#include "mpi_check.h"
#include "failing.h"

#include <regatta.h>

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* Library calls that can be made to fail in this process. */
int memfd_create(const char *name, unsigned flags)
{
    int (*call)(const char *, unsigned) = dlsym(RTLD_NEXT, "memfd_create");
    if (!fails("memfd_create"))
        return call(name, flags);
    errno = EMFILE;
    return -1;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*begin)(void *), void *argument)
{
    int (*call)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
    return fails("pthread_create") ? EAGAIN : call(thread, attributes, begin, argument);
}

/* Fails after the message has arrived, so that it is lost. */
int rg_mrecv(rg_message *message, void *buf, size_t capacity, rg_status *status)
{
    int (*call)(rg_message *, void *, size_t, rg_status *) = dlsym(RTLD_NEXT, "rg_mrecv");
    int code = call(message, buf, capacity, status);
    return fails("rg_mrecv") ? RG_ERR_MEMORY : code;
}

enum { N = 64 };

/* Makes a window of N longs in each process. */
static MPI_Win fresh_window(long **memory)
{
    MPI_Win win = MPI_WIN_NULL;
    MPI_Aint bytes = N * sizeof(long);
    SUCCEEDS(MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, memory, &win));
    SUCCEEDS(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    return win;
}

/* Checks that windows can still be made on the communicator. */
static void goes_on(void)
{
    long *memory, given = 7 + me;
    MPI_Win win = fresh_window(&memory);
    SUCCEEDS(MPI_Win_fence(0, win));
    SUCCEEDS(MPI_Put(&given, 1, MPI_LONG, (me + 1) % size, 3, 1, MPI_LONG, win));
    SUCCEEDS(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK(memory[3] == 7 + (me + size - 1) % size);
    SUCCEEDS(MPI_Win_free(&win));
}

/* All processes get the error of an invalid argument at the last process. */
static void arguments(void)
{
    int wrong = me == size - 1;
    long own[N];
    void *base;
    MPI_Win win = MPI_WIN_NULL;
    FAILS(MPI_ERR_SIZE, MPI_Win_create(own, wrong ? -1 : 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    FAILS(MPI_ERR_DISP, MPI_Win_create(own, 8, wrong ? 0 : 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    FAILS(MPI_ERR_BASE, MPI_Win_create(wrong ? NULL : own, 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    FAILS(MPI_ERR_ARG, MPI_Win_create(own, 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, wrong ? NULL : &win));
    FAILS(MPI_ERR_ARG, MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, wrong ? NULL : &base, &win));
    FAILS(MPI_ERR_SIZE, MPI_Win_allocate_shared(wrong ? -1 : 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    FAILS(MPI_ERR_ARG, MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, wrong ? NULL : &win));
    CHECK(win == MPI_WIN_NULL);
    goes_on();
}

/*
 * Returns whether this process creates the shared memory of the last process's host, which is done by the first process
 * of a host.
 */
static int makes_memory_of_last(void)
{
    MPI_Comm host;
    int rank, last = me == size - 1, has_last;
    SUCCEEDS(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
    SUCCEEDS(MPI_Comm_rank(host, &rank));
    SUCCEEDS(MPI_Allreduce(&last, &has_last, 1, MPI_INT, MPI_MAX, host));
    SUCCEEDS(MPI_Comm_free(&host));
    return rank == 0 && has_last;
}

/* Returns the size of this process's address space in bytes. */
static rlim_t addresses(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%ld", &pages) == 1);
    fclose(file);
    return (rlim_t)pages * 4096;
}

/* Memory is missing on one host, or at one process. */
static void memory(void)
{
    int last = me == size - 1, makes = makes_memory_of_last();
    long own[N];
    void *base;
    MPI_Win win = MPI_WIN_NULL;
    FAILS(MPI_ERR_NO_MEM, MPI_Win_allocate(last ? (MPI_Aint)1 << 60 : 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    /* Two of these together exceed the address space. */
    int code = MPI_Win_allocate(me >= size / 2 ? INT64_MAX : 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    CHECK(class_of(code) == (size >= 4 ? MPI_ERR_SIZE : MPI_ERR_NO_MEM));
    code = MPI_Win_allocate_shared(last ? (MPI_Aint)1 << 60 : 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    CHECK(class_of(code) == MPI_ERR_NO_MEM || class_of(code) == MPI_ERR_RMA_SHARED);
    /* A single process shares memory with no other. */
    if (size > 1) {
        FAILS(MPI_ERR_NO_MEM, MPI_Win_allocate(last ? (MPI_Aint)1 << 45 : 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
        failing = makes ? "memfd_create" : "";
        FAILS(MPI_ERR_NO_MEM, MPI_Win_create(own, 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        FAILS(MPI_ERR_NO_MEM, MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        failing = "";
    }
    goes_on();
    /* The last process can map neither the common memory nor its own. */
    struct rlimit before, limit;
    CHECK(getrlimit(RLIMIT_AS, &before) == 0);
    limit = before;
    limit.rlim_cur = addresses() + (128 << 20);
    CHECK(!last || setrlimit(RLIMIT_AS, &limit) == 0);
    FAILS(MPI_ERR_NO_MEM, MPI_Win_allocate(256 << 20, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    CHECK(!last || setrlimit(RLIMIT_AS, &before) == 0);
    CHECK(win == MPI_WIN_NULL);
    goes_on();
}

/* The last process gets no thread to serve requests of other hosts for its memory. */
static void service(void)
{
    void *base;
    MPI_Win win = MPI_WIN_NULL;
    goes_on();
    failing = me == size - 1 ? "pthread_create" : "";
    FAILS(MPI_ERR_OTHER, MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    failing = "";
    CHECK(win == MPI_WIN_NULL);
    goes_on();
}

/*
 * The last process, on another host, cannot receive requests for a while: their origins get errors, and later requests
 * are served.
 */
static void unreceived(void)
{
    int last = size - 1;
    long *memory, value = 0;
    MPI_Win win = fresh_window(&memory);
    memory[0] = 40 + me;
    SUCCEEDS(MPI_Win_lock_all(0, win));
    /* All have got their lock. */
    SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
    if (me == last)
        failing = "rg_mrecv";
    SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
    if (me == 0) {
        FAILS(MPI_ERR_NO_MEM, MPI_Get(&value, 1, MPI_LONG, last, 0, 1, MPI_LONG, win));
        SUCCEEDS(MPI_Put(&value, 1, MPI_LONG, last, 0, 1, MPI_LONG, win));
        FAILS(MPI_ERR_NO_MEM, MPI_Win_flush(last, win));
    }
    SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
    failing = "";
    SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
    if (me == 0) {
        FAILS(MPI_ERR_NO_MEM, (MPI_Put(&value, 1, MPI_LONG, last, 1, 1, MPI_LONG, win), MPI_Win_flush(last, win)));
        SUCCEEDS(MPI_Get(&value, 1, MPI_LONG, last, 0, 1, MPI_LONG, win));
        CHECK(value == 40 + last);
    }
    SUCCEEDS(MPI_Win_unlock_all(win));
    SUCCEEDS(MPI_Win_free(&win));
}

static int keeps;

static int delete_or_not(MPI_Win win, int key, void *value, void *extra)
{
    (void)win, (void)key, (void)value, (void)extra;
    return keeps ? MPI_ERR_OTHER : MPI_SUCCESS;
}

/* The window stays while the last process has an open epoch, or an attribute that must not be deleted. */
static void ending(void)
{
    int last = me == size - 1, key;
    long *memory;
    MPI_Win win = fresh_window(&memory);
    if (last)
        SUCCEEDS(MPI_Win_lock(MPI_LOCK_SHARED, me, 0, win));
    OF_LAST(MPI_ERR_RMA_SYNC, MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_free(&win));
    CHECK(win != MPI_WIN_NULL);
    if (last)
        SUCCEEDS(MPI_Win_unlock(me, win));
    OF_LAST(MPI_ERR_ASSERT, MPI_Win_fence(last ? MPI_MODE_NOCHECK : 0, win));
    SUCCEEDS(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    SUCCEEDS(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, delete_or_not, &key, NULL));
    SUCCEEDS(MPI_Win_set_attr(win, key, &key));
    keeps = last;
    FAILS(MPI_ERR_OTHER, MPI_Win_free(&win));
    CHECK(win != MPI_WIN_NULL);
    keeps = 0;
    SUCCEEDS(MPI_Win_free(&win));
    CHECK(win == MPI_WIN_NULL);
    SUCCEEDS(MPI_Win_free_keyval(&key));
}

/*
 * Process 0 has no memory for what the last process, on another host, puts to it. The last process gets the error at
 * the end of its epoch, and the others do not wait.
 */
static void displaced(void)
{
    enum { NOWHERE = 16 };
    int last = size - 1, other = me == 0 ? last : 0;
    long value = 5;
    MPI_Win win;
    MPI_Group all, peer;
    SUCCEEDS(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    SUCCEEDS(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    SUCCEEDS(MPI_Win_fence(0, win));
    if (me == last)
        SUCCEEDS(MPI_Put(&value, 1, MPI_LONG, 0, NOWHERE, 1, MPI_LONG, win));
    OF_LAST(MPI_ERR_RMA_RANGE, MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    SUCCEEDS(MPI_Comm_group(MPI_COMM_WORLD, &all));
    SUCCEEDS(MPI_Group_incl(all, 1, &other, &peer));
    if (me == 0) {
        SUCCEEDS(MPI_Win_post(peer, 0, win));
        SUCCEEDS(MPI_Win_wait(win));
    } else if (me == last) {
        SUCCEEDS(MPI_Win_start(peer, 0, win));
        SUCCEEDS(MPI_Put(&value, 1, MPI_LONG, 0, NOWHERE, 1, MPI_LONG, win));
        FAILS(MPI_ERR_RMA_RANGE, MPI_Win_complete(win));
    }
    SUCCEEDS(MPI_Group_free(&peer));
    SUCCEEDS(MPI_Group_free(&all));
    SUCCEEDS(MPI_Win_free(&win));
}

/*
 * Process 0 cannot begin an epoch with two targets, of which the last one has died: the other one does not wait for it.
 */
static void absent(void)
{
    int targets[2] = {1, size - 1}, origin = 0;
    long *memory;
    MPI_Win win = fresh_window(&memory);
    MPI_Group all, group;
    SUCCEEDS(MPI_Comm_group(MPI_COMM_WORLD, &all));
    if (me == size - 1)
        raise(SIGKILL);
    if (me == 0) {
        SUCCEEDS(MPI_Group_incl(all, 2, targets, &group));
        FAILS(MPIX_ERR_PROC_FAILED, MPI_Win_start(group, 0, win));
        SUCCEEDS(MPI_Group_free(&group));
    } else {
        SUCCEEDS(MPI_Group_incl(all, 1, &origin, &group));
        SUCCEEDS(MPI_Win_post(group, 0, win));
        SUCCEEDS(MPI_Win_wait(win));
        SUCCEEDS(MPI_Group_free(&group));
    }
    SUCCEEDS(MPI_Group_free(&all));
    FAILS(MPIX_ERR_PROC_FAILED, MPI_Win_free(&win));
    CHECK(win == MPI_WIN_NULL);
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"arguments", arguments}, {"memory", memory}, {"service", service}, {"unreceived", unreceived}, {"ending", ending},
        {"displaced", displaced}, {"absent", absent}, {NULL, NULL}};
    return play(argc, argv, scenarios);
}
