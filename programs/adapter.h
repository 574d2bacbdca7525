/*
 * adapter.h: what the programs of the race ask of a message-passing environment.
 *
 * A program includes this file and is compiled once per environment with
 *     -DADAPTER='"adapters/mpi.c"'
 * The adapter is included, not linked, so that its functions can be inlined and cost nothing: what
 * is measured is the library below them. An adapter defines the type env_request and all functions
 * declared here. None of them returns an error: a failing library call ends the program with a
 * sentence on stderr and exit status 1 (env_fail).
 *
 * Ranks are 0 .. env_size() - 1, one task each. Receives always name their source, tag and exact
 * length. Buffers belong to the environment from env_isend or env_irecv until env_waitall.
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

/* A program need not use every function. */
#define ENV_UNUSED __attribute__((unused))

static inline _Noreturn void env_fail(const char *call, const char *reason)
{
    fprintf(stderr, "%s failed: %s\n", call, reason);
    fflush(NULL);
    _exit(1);
}

/* Tasks the driver asked for, for environments whose launcher does not tell. */
ENV_UNUSED static int env_tasks_wanted(void)
{
    const char *text = getenv("RACE_TASKS");
    int tasks = text ? atoi(text) : 1;
    return tasks > 0 ? tasks : 1;
}

/* How a message is packed, and what its elements are. */
enum env_encoding { ENV_DEFAULT, ENV_RAW, ENV_IN_PLACE };
enum env_type { ENV_BYTE, ENV_INT, ENV_FLOAT, ENV_DOUBLE };

/* The file of this program, for environments that start further tasks of it. */
ENV_UNUSED static void env_program(char *path, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", path, size - 1);
    if (length < 0)
        env_fail("readlink", "cannot tell the program's own path");
    path[length] = 0;
}

/* Tasks on processors of their own when there are enough, as launchers do. */
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

/* Join; in the environments without a launcher also start the other tasks. */
static inline void env_init(int *argc, char ***argv);
/* Leave. The process goes on; no other call may follow. */
static inline void env_finalize(void);
static inline int env_rank(void);
static inline int env_size(void);
/* The library's own words about its version and the path of messages; one line, "" if it has none. */
static inline void env_version(char *text, size_t size);
static inline void env_path(char *text, size_t size);

static inline void env_send(const void *buf, size_t bytes, int to, int tag);
static inline void env_recv(void *buf, size_t bytes, int from, int tag);
static inline env_request env_isend(const void *buf, size_t bytes, int to, int tag);
static inline env_request env_irecv(void *buf, size_t bytes, int from, int tag);
static inline void env_waitall(int n, env_request *requests);

static inline void env_barrier(void);
static inline void env_broadcast(void *buf, size_t bytes, int root);
/* Element by element over all tasks, the result at all of them. An adapter whose library has reductions in place only defines
 * ENV_REDUCES_IN_PLACE: operations then give it one vector as both. */
static inline void env_sum(const double *in, double *out, size_t count);
static inline void env_product(const double *in, double *out, size_t count);
static inline void env_max(const double *in, double *out, size_t count);
/* out gets `bytes` bytes from each task, in rank order. */
static inline void env_concatenation(const void *in, size_t bytes, void *out);
/* Block r of in goes to task r; block r of out comes from task r; `bytes` bytes each. */
static inline void env_complete_exchange(const void *in, size_t bytes, void *out);

/* The two tasks of a pair send to each other at the same time. An adapter whose library has a call for that defines
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

/* An adapter whose sends do not wait for their receives, of whatever length, defines ENV_BUFFERS; one that takes messages in the order in
 * which they were sent, whatever their tags, ENV_IN_ORDER. */

/* Messages of other elements than bytes, with ENV_TYPES. An exchange of them is started and then waited for. */
#ifdef ENV_TYPES
static inline void env_type_send(enum env_type type, const void *buf, size_t bytes, int to, int tag);
static inline void env_type_recv(enum env_type type, void *buf, size_t bytes, int from, int tag);
static inline void env_type_exchange(enum env_type type, const void *out, void *in, size_t bytes, int peer, int tag);
#endif

/* An exchange as one call, with ENV_SENDRECV; of bytes only, unless the adapter has ENV_TYPES. */
#ifdef ENV_SENDRECV
static inline void env_sendrecv(enum env_type type, const void *out, void *in, size_t bytes, int peer, int tag);
#endif

/* Vectors: words of 4 bytes, each `stride` bytes behind the one before. An adapter whose library sends them from where they lie
 * defines ENV_VECTORS. For the others they are packed and unpacked here. */
enum { ENV_WORD = 4 };
#ifdef ENV_VECTORS
static inline void env_vector_send(const void *buf, size_t stride, size_t words, int to, int tag);
static inline void env_vector_recv(void *buf, size_t stride, size_t words, int from, int tag);
static inline void env_vector_exchange(const void *out, void *in, size_t stride, size_t words, int peer, int tag);
#else
/* Room for a packed vector on its way out, and for one on its way in. */
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

/* Memory that another task reaches, with ENV_WINDOWS. All tasks call env_window with one size. It gives a task its own memory, and frees what the
 * call before gave, if that was of another size. A transfer is complete at the target when its call returns. */
#ifdef ENV_WINDOWS
static inline void *env_window(size_t bytes);
static inline void env_window_sync(void);
static inline void env_put(const void *from, size_t bytes, int to);
static inline void env_get(void *into, size_t bytes, int from);
static inline void env_accumulate(const double *from, size_t count, int to);
/* Adds one to the integer at the start of a task's memory; what it was. */
static inline int64_t env_fetch_add(int to);
#endif

/* Blocks of eight bytes, every second one of an array, with ENV_BLOCKS. */
#ifdef ENV_BLOCKS
static inline void env_blocks_send(const void *buf, size_t number, int to, int tag);
static inline void env_blocks_recv(void *buf, size_t number, int from, int tag);
#endif

/* Collectives beyond those of all adapters, with ENV_MORE_COLLECTIVES: sums of doubles at one task, up to each task, and in parts; blocks to and
 * from one task; and collectives that are started. `count` of a reduce-scatter is that of one task's part. */
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

/* Messages of several threads at once, with ENV_THREADS: each thread's apart from the others'. Begun by env_threads, in all tasks; a program that
 * wants them has an argument with `-threads` in it when it calls env_init. */
#ifdef ENV_THREADS
static inline void env_threads(int number);
static inline env_request env_thread_isend(int thread, const void *buf, size_t bytes, int to, int tag);
static inline env_request env_thread_irecv(int thread, void *buf, size_t bytes, int from, int tag);
#endif

/* A host program and its nodes. An adapter that knows them defines ENV_HOSTS. The host is rank 0, and the nodes are 1 ..
 * env_host_size() - 1; env_tasks_wanted() counts the host. */
#ifdef ENV_HOSTS
/* In place of env_init: on the host starts the nodes, which run this program too. If the library starts them without arguments, they
 * get the host's here. */
static inline void env_host_init(int *argc, char ***argv);
static inline int env_host_rank(void);
static inline int env_host_size(void);
static inline void env_host_send(const void *buf, size_t bytes, int to, int tag);
static inline void env_host_recv(void *buf, size_t bytes, int from, int tag);
static inline void env_host_exchange(const void *out, void *in, size_t bytes, int peer, int tag);
/* From the host to all nodes; all of them call it. */
static inline void env_host_broadcast(void *buf, size_t bytes);
#endif

/* Packed messages. An adapter that knows them defines ENV_PACKS, with ENV_PACKS_TYPES if it knows elements other than bytes,
 * with ENV_PACKS_DEFAULT if it knows the encoding that every machine can read. */
#ifdef ENV_PACKS
/* Make a message of so many bytes of elements and send it; receive it and take the elements out. */
static inline void env_pack_send(enum env_encoding encoding, enum env_type type, const void *buf, size_t bytes, int to,
                                 int tag);
static inline void env_recv_unpack(enum env_encoding encoding, enum env_type type, void *buf, size_t bytes, int from,
                                   int tag);
/* Receive what env_send sends, asking again and again whether it is there. */
static inline void env_poll(void *buf, size_t bytes, int from, int tag);
#endif

/* Tasks that come and go. An adapter defines ENV_SPAWNS if its library starts tasks, and ENV_WATCHES if
 * it also tells of their ends; what it does not define is not called. */
#ifdef ENV_SPAWNS
/* Join in place of env_init: as a job of one task, or in a task that env_spawn has started. */
static inline void env_join(int *argc, char ***argv);
/* Start `count` tasks of this program with one argument. They are children first .. first + count - 1,
 * where `first` is how many this task has started before. */
static inline void env_spawn(int count, char *argument);
/* Receive from a child; in a child, send to or receive from the task that started it. */
static inline void env_hear(void *buf, size_t bytes, int child);
static inline void env_answer(const void *buf, size_t bytes);
static inline void env_obey(void *buf, size_t bytes);
#endif
#ifdef ENV_WATCHES
/* Ask to be told of the end of a child; wait for the next such event, and tell whose it was. */
static inline void env_watch(int child);
static inline int env_await_end(void);
#endif

#endif
