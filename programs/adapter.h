/*
 * adapter.h: the functions that the programs of the race need from a message-passing environment.
 *
 * A program includes this file and is compiled once for each environment with
 *     -DADAPTER='"adapters/mpi.c"'
 * The adapter is included, not linked, so that its functions can be inlined and cost nothing: only the library below
 * them is measured. An adapter defines the type env_request and all functions declared here. None of them returns an
 * error: when a library call fails, env_fail ends the program with a message on stderr and exit status 1.
 *
 * Ranks are 0 .. env_size() - 1, one for each task. Receives always name their source, tag and exact length. A buffer
 * belongs to the environment from env_isend or env_irecv until env_waitall.
 */
#ifndef ADAPTER_H
#define ADAPTER_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A program may leave functions of its adapter unused. */
#define ENV_UNUSED __attribute__((unused))

static inline _Noreturn void env_fail(const char *call, const char *reason)
{
    fprintf(stderr, "%s failed: %s\n", call, reason);
    fflush(NULL);
    _exit(1);
}

/* Returns the number of tasks that the driver asked for, for environments whose launcher does not pass it on. */
ENV_UNUSED static int env_tasks_wanted(void)
{
    const char *text = getenv("RACE_TASKS");
    int tasks = text ? atoi(text) : 1;
    return tasks > 0 ? tasks : 1;
}

/* How the elements of a message are packed, and their type. */
enum env_encoding { ENV_DEFAULT, ENV_RAW, ENV_IN_PLACE };
enum env_type { ENV_BYTE, ENV_INT, ENV_FLOAT, ENV_DOUBLE };

/* Writes the path of this program's executable to `path`, for environments that start further tasks of it. */
ENV_UNUSED static void env_program(char *path, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", path, size - 1);
    if (length < 0)
        env_fail("readlink", "cannot tell the program's own path");
    path[length] = 0;
}

/* Pins each task to a processor of its own, as launchers do. Does nothing if there are fewer processors than tasks. */
ENV_UNUSED static void env_pin_apart(int rank, int tasks)
{
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || tasks > CPU_COUNT(&allowed))
        return;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &allowed) && rank-- == 0) {
            CPU_ZERO(&one);
            CPU_SET(i, &one);
            sched_setaffinity(0, sizeof one, &one);
            return;
        }
}

#ifndef ADAPTER
#error "compile with -DADAPTER='\"adapters/NAME.c\"'"
#endif
#include ADAPTER

/* Joins the job; in environments without a launcher, also starts the other tasks. */
static inline void env_init(int *argc, char ***argv);
/* Leaves the job. The process continues but must make no other call of the environment. */
static inline void env_finalize(void);
static inline int env_rank(void);
static inline int env_size(void);
/* Write the library's own description of its version and of the path of messages: one line, or "" if it has none. */
static inline void env_version(char *text, size_t size);
static inline void env_path(char *text, size_t size);

static inline void env_send(const void *buf, size_t bytes, int to, int tag);
static inline void env_recv(void *buf, size_t bytes, int from, int tag);
static inline env_request env_isend(const void *buf, size_t bytes, int to, int tag);
static inline env_request env_irecv(void *buf, size_t bytes, int from, int tag);
static inline void env_waitall(int n, env_request *requests);

static inline void env_barrier(void);
static inline void env_broadcast(void *buf, size_t bytes, int root);
/* Combine vectors of all tasks element by element; every task gets the result. An adapter whose library can reduce only
 * in place defines ENV_REDUCES_IN_PLACE: programs then pass the same vector as `in` and `out`. */
static inline void env_sum(const double *in, double *out, size_t count);
static inline void env_product(const double *in, double *out, size_t count);
static inline void env_max(const double *in, double *out, size_t count);
/* Gathers `bytes` bytes from each task into `out`, in rank order, at all tasks. */
static inline void env_concatenation(const void *in, size_t bytes, void *out);
/* Sends block r of `in` to task r and receives block r of `out` from task r; each block is `bytes` bytes long. */
static inline void env_complete_exchange(const void *in, size_t bytes, void *out);

/* The two tasks of a pair send to each other at the same time. An adapter whose library has a call for this defines
 * ENV_EXCHANGES. */
#ifdef ENV_EXCHANGES
static inline void env_exchange(const void *out, void *in, size_t bytes, int peer, int tag);
#else
static inline void env_exchange(const void *out, void *in, size_t bytes, int peer, int tag)
{
    env_request requests[2];
    requests[0] = env_irecv(in, bytes, peer, tag);
    requests[1] = env_isend(out, bytes, peer, tag);
    env_waitall(2, requests);
}
#endif

/* An adapter defines ENV_BUFFERS if its sends of any length return without waiting for the receive, and ENV_IN_ORDER if
 * messages are received in the order in which they were sent, whatever their tags. */

/* Messages of other elements than bytes, with ENV_TYPES. An exchange starts a send and a receive and waits for both. */
#ifdef ENV_TYPES
static inline void env_type_send(enum env_type type, const void *buf, size_t bytes, int to, int tag);
static inline void env_type_recv(enum env_type type, void *buf, size_t bytes, int from, int tag);
static inline void env_type_exchange(enum env_type type, const void *out, void *in, size_t bytes, int peer, int tag);
#endif

/* An exchange in one call of the library, with ENV_SENDRECV. Without ENV_TYPES, only of bytes. */
#ifdef ENV_SENDRECV
static inline void env_sendrecv(enum env_type type, const void *out, void *in, size_t bytes, int peer, int tag);
#endif

/* Vectors: words of 4 bytes whose starts are `stride` bytes apart. An adapter whose library sends them without packing
 * defines ENV_VECTORS. For other adapters they are packed and unpacked here. */
enum { ENV_WORD = 4 };
#ifdef ENV_VECTORS
static inline void env_vector_send(const void *buf, size_t stride, size_t words, int to, int tag);
static inline void env_vector_recv(void *buf, size_t stride, size_t words, int from, int tag);
static inline void env_vector_exchange(const void *out, void *in, size_t stride, size_t words, int peer, int tag);
#else
/* Returns the buffer for packed vectors that are sent or, with `in`, received. It is enlarged to `bytes` bytes if
 * necessary. */
static char *env_vector_room(int in, size_t bytes)
{
    static char *rooms[2];
    static size_t sizes[2];
    if (__builtin_expect(bytes > sizes[in], 0)) {
        rooms[in] = realloc(rooms[in], bytes);
        if (!rooms[in])
            env_fail("realloc", "no memory for a packed vector");
        sizes[in] = bytes;
    }
    return rooms[in];
}

static inline char *env_vector_pack(const char *buf, size_t stride, size_t words)
{
    char *packed = env_vector_room(0, words * ENV_WORD);
    for (size_t k = 0; k < words; k++)
        memcpy(packed + k * ENV_WORD, buf + k * stride, ENV_WORD);
    return packed;
}

static inline void env_vector_unpack(const char *packed, char *buf, size_t stride, size_t words)
{
    for (size_t k = 0; k < words; k++)
        memcpy(buf + k * stride, packed + k * ENV_WORD, ENV_WORD);
}

static inline void env_vector_send(const void *buf, size_t stride, size_t words, int to, int tag)
{
    env_send(env_vector_pack(buf, stride, words), words * ENV_WORD, to, tag);
}

static inline void env_vector_recv(void *buf, size_t stride, size_t words, int from, int tag)
{
    char *packed = env_vector_room(1, words * ENV_WORD);
    env_recv(packed, words * ENV_WORD, from, tag);
    env_vector_unpack(packed, buf, stride, words);
}

static inline void env_vector_exchange(const void *out, void *in, size_t stride, size_t words, int peer, int tag)
{
    char *packed = env_vector_room(1, words * ENV_WORD);
    env_exchange(env_vector_pack(out, stride, words), packed, words * ENV_WORD, peer, tag);
    env_vector_unpack(packed, in, stride, words);
}
#endif

/* One-sided access to the memory of other tasks, with ENV_WINDOWS. All tasks call env_window with the same size. It
 * returns the task's own memory, and frees that of the call before if its size was another. A transfer is complete at
 * the target when its call returns. */
#ifdef ENV_WINDOWS
static inline void *env_window(size_t bytes);
static inline void env_window_sync(void);
static inline void env_put(const void *from, size_t bytes, int to);
static inline void env_get(void *into, size_t bytes, int from);
static inline void env_accumulate(const double *from, size_t count, int to);
/* Adds one to the integer at the start of a task's memory. Returns its value before that. */
static inline int64_t env_fetch_add(int to);
#endif

/* Blocks of eight bytes: every second one of an array is sent, with ENV_BLOCKS. */
#ifdef ENV_BLOCKS
static inline void env_blocks_send(const void *buf, size_t number, int to, int tag);
static inline void env_blocks_recv(void *buf, size_t number, int from, int tag);
#endif

/* Further collectives, with ENV_MORE_COLLECTIVES: reduce, scan and reduce-scatter of sums of doubles, gather and
 * scatter of blocks, and non-blocking collectives. In a reduce-scatter, `count` is the number of elements of one task's
 * part. */
#ifdef ENV_MORE_COLLECTIVES
static inline void env_reduce(const double *in, double *out, size_t count, int root);
static inline void env_scan(const double *in, double *out, size_t count);
static inline void env_reduce_scatter(const double *in, double *out, size_t count);
static inline void env_gather(const void *in, size_t bytes, void *out, int root);
static inline void env_scatter(const void *in, void *out, size_t bytes, int root);
static inline env_request env_ibarrier(void);
static inline env_request env_ibroadcast(void *buf, size_t bytes, int root);
static inline env_request env_isum(const double *in, double *out, size_t count);
#endif

/* Messages of several threads at the same time, with ENV_THREADS. The messages of one thread never match those of
 * another. All tasks call env_threads first. A program that uses threads has an argument that contains `-threads` when
 * it calls env_init. */
#ifdef ENV_THREADS
static inline void env_threads(int number);
static inline env_request env_thread_isend(int thread, const void *buf, size_t bytes, int to, int tag);
static inline env_request env_thread_irecv(int thread, void *buf, size_t bytes, int from, int tag);
#endif

/* A host program and its nodes, with ENV_HOSTS. The host has rank 0, the nodes 1 .. env_host_size() - 1;
 * env_tasks_wanted() counts the host. */
#ifdef ENV_HOSTS
/* Called in place of env_init. On the host it starts the nodes, which run this program too. If the library starts nodes
 * without arguments, this call gives them those of the host. */
static inline void env_host_init(int *argc, char ***argv);
static inline int env_host_rank(void);
static inline int env_host_size(void);
static inline void env_host_send(const void *buf, size_t bytes, int to, int tag);
static inline void env_host_recv(void *buf, size_t bytes, int from, int tag);
static inline void env_host_exchange(const void *out, void *in, size_t bytes, int peer, int tag);
/* Broadcasts from the host to all nodes; the host and all nodes call it. */
static inline void env_host_broadcast(void *buf, size_t bytes);
#endif

/* Packed messages, with ENV_PACKS. An adapter also defines ENV_PACKS_TYPES if it can pack other elements than bytes,
 * and ENV_PACKS_DEFAULT if it has an encoding that every machine can read. */
#ifdef ENV_PACKS
/* Pack `bytes` bytes of elements and send them; receive such a message and unpack it. */
static inline void env_pack_send(enum env_encoding encoding, enum env_type type, const void *buf, size_t bytes, int to,
                                 int tag);
static inline void env_recv_unpack(enum env_encoding encoding, enum env_type type, void *buf, size_t bytes, int from,
                                   int tag);
/* Receives what env_send sends, polling until it has arrived. */
static inline void env_poll(void *buf, size_t bytes, int from, int tag);
#endif

/* Tasks started and ended at run time. An adapter defines ENV_SPAWNS if its library starts tasks, and ENV_WATCHES if
 * the library also reports their ends. Functions whose macro is not defined are not called. */
#ifdef ENV_SPAWNS
/* Called in place of env_init: joins as a job of one task, or as a task that env_spawn has started. */
static inline void env_join(int *argc, char ***argv);
/* Starts `count` tasks of this program with one argument. They become the children first .. first + count - 1, where
 * `first` is the number of tasks that this task started before. */
static inline void env_spawn(int count, char *argument);
/* Receive from a child; in a child, send to the parent or receive from it. */
static inline void env_hear(void *buf, size_t bytes, int child);
static inline void env_answer(const void *buf, size_t bytes);
static inline void env_obey(void *buf, size_t bytes);
#endif
#ifdef ENV_WATCHES
/* Requests a notification of the end of a child; waits for the next notification and returns the child that it is
 * about. */
static inline void env_watch(int child);
static inline int env_await_end(void);
#endif

#endif
