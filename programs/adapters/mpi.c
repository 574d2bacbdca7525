/* Adapter to MPI: Open MPI, MPICH, and any other with an mpicc. */
#include <mpi.h>

typedef MPI_Request env_request;

static int env_my_rank, env_my_size;
/* The intercommunicator of MPI_Comm_spawn, between the parent and its children. */
static MPI_Comm env_family = MPI_COMM_NULL;

#define ENV_THREADS

/* MPI's default error handler ends the job with a message, so return codes need no check. Threads are requested only
 * where they are used, because they slow a library down. */
static inline void env_init(int *argc, char ***argv)
{
    int wanted = MPI_THREAD_SINGLE, provided;
    for (int i = 1; i < *argc; i++)
        if (strstr((*argv)[i], "-threads"))
            wanted = MPI_THREAD_MULTIPLE;
    MPI_Init_thread(argc, argv, wanted, &provided);
    if (provided < wanted)
        env_fail("MPI_Init_thread", "this library has no MPI_THREAD_MULTIPLE");
    MPI_Comm_rank(MPI_COMM_WORLD, &env_my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &env_my_size);
}

/* Operations that only MPI has call MPI directly; they free what they keep in functions registered with
 * env_before_finalize. */
#define ENV_MPI
enum { ENV_MAX_EXIT_CALLS = 8 };
static void (*env_last[ENV_MAX_EXIT_CALLS])(void);

/* Registers a function to be called before MPI_Finalize. A function registered twice is called once. */
static void env_before_finalize(void (*last)(void))
{
    for (int i = 0; i < ENV_MAX_EXIT_CALLS; i++) {
        if (env_last[i] == last)
            return;
        if (!env_last[i]) {
            env_last[i] = last;
            return;
        }
    }
    env_fail("env_before_finalize", "there are more functions than it has room for");
}

#define ENV_WINDOWS

static MPI_Win env_memory_window = MPI_WIN_NULL;

static inline void env_window_free(void)
{
    if (env_memory_window == MPI_WIN_NULL)
        return;
    MPI_Win_unlock_all(env_memory_window);
    MPI_Win_free(&env_memory_window);
}

static inline void env_finalize(void)
{
    for (int i = 0; i < ENV_MAX_EXIT_CALLS && env_last[i]; i++)
        env_last[i]();
    env_window_free();
    if (env_family != MPI_COMM_NULL)
        MPI_Comm_disconnect(&env_family);
    MPI_Finalize();
}

static inline int env_rank(void)
{
    return env_my_rank;
}

static inline int env_size(void)
{
    return env_my_size;
}

static inline void env_version(char *text, size_t size)
{
    char whole[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(whole, &length);
    /* MPICH's text has several lines; the first is the version. */
    whole[strcspn(whole, "\n")] = 0;
    snprintf(text, size, "%.*s", (int)size - 1, whole);
}

static inline void env_path(char *text, size_t size)
{
    snprintf(text, size, "%s", "");
}

static inline void env_send(const void *buf, size_t bytes, int to, int tag)
{
    MPI_Send(buf, (int)bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD);
}

static inline void env_recv(void *buf, size_t bytes, int from, int tag)
{
    MPI_Recv(buf, (int)bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static inline env_request env_isend(const void *buf, size_t bytes, int to, int tag)
{
    env_request request;
    MPI_Isend(buf, (int)bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
    return request;
}

static inline env_request env_irecv(void *buf, size_t bytes, int from, int tag)
{
    env_request request;
    MPI_Irecv(buf, (int)bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, &request);
    return request;
}

static inline void env_waitall(int n, env_request *requests)
{
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
}

static inline void env_barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static inline void env_broadcast(void *buf, size_t bytes, int root)
{
    MPI_Bcast(buf, (int)bytes, MPI_BYTE, root, MPI_COMM_WORLD);
}

static inline void env_sum(const double *in, double *out, size_t count)
{
    MPI_Allreduce(in, out, (int)count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static inline void env_product(const double *in, double *out, size_t count)
{
    MPI_Allreduce(in, out, (int)count, MPI_DOUBLE, MPI_PROD, MPI_COMM_WORLD);
}

static inline void env_max(const double *in, double *out, size_t count)
{
    MPI_Allreduce(in, out, (int)count, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

static inline void env_concatenation(const void *in, size_t bytes, void *out)
{
    MPI_Allgather(in, (int)bytes, MPI_BYTE, out, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static inline void env_complete_exchange(const void *in, size_t bytes, void *out)
{
    MPI_Alltoall(in, (int)bytes, MPI_BYTE, out, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
}

#define ENV_MORE_COLLECTIVES

static inline void env_reduce(const double *in, double *out, size_t count, int root)
{
    MPI_Reduce(in, out, (int)count, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
}

static inline void env_scan(const double *in, double *out, size_t count)
{
    MPI_Scan(in, out, (int)count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static inline void env_reduce_scatter(const double *in, double *out, size_t count)
{
    MPI_Reduce_scatter_block(in, out, (int)count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static inline void env_gather(const void *in, size_t bytes, void *out, int root)
{
    MPI_Gather(in, (int)bytes, MPI_BYTE, out, (int)bytes, MPI_BYTE, root, MPI_COMM_WORLD);
}

static inline void env_scatter(const void *in, void *out, size_t bytes, int root)
{
    MPI_Scatter(in, (int)bytes, MPI_BYTE, out, (int)bytes, MPI_BYTE, root, MPI_COMM_WORLD);
}

static inline env_request env_ibarrier(void)
{
    env_request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    return request;
}

static inline env_request env_ibroadcast(void *buf, size_t bytes, int root)
{
    env_request request;
    MPI_Ibcast(buf, (int)bytes, MPI_BYTE, root, MPI_COMM_WORLD, &request);
    return request;
}

static inline env_request env_isum(const double *in, double *out, size_t count)
{
    env_request request;
    MPI_Iallreduce(in, out, (int)count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    return request;
}

#define ENV_VECTORS

/* Returns the type of a vector. All vectors of a measuring point are alike, so their type is created once. */
static inline MPI_Datatype env_vector_type(size_t stride, size_t words)
{
    static MPI_Datatype type = MPI_DATATYPE_NULL;
    static size_t of_stride, of_words;
    if (__builtin_expect(of_stride != stride || of_words != words, 0)) {
        if (type != MPI_DATATYPE_NULL)
            MPI_Type_free(&type);
        MPI_Type_create_hvector((int)words, 1, (MPI_Aint)stride, MPI_INT32_T, &type);
        MPI_Type_commit(&type);
        of_stride = stride;
        of_words = words;
    }
    return type;
}

static inline void env_vector_send(const void *buf, size_t stride, size_t words, int to, int tag)
{
    MPI_Send(buf, 1, env_vector_type(stride, words), to, tag, MPI_COMM_WORLD);
}

static inline void env_vector_recv(void *buf, size_t stride, size_t words, int from, int tag)
{
    MPI_Recv(buf, 1, env_vector_type(stride, words), from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static inline void env_vector_exchange(const void *out, void *in, size_t stride, size_t words, int peer, int tag)
{
    MPI_Datatype type = env_vector_type(stride, words);
    MPI_Request requests[2];
    MPI_Irecv(in, 1, type, peer, tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, 1, type, peer, tag, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static inline void *env_window(size_t bytes)
{
    static void *memory;
    static size_t of;
    if (__builtin_expect(env_memory_window == MPI_WIN_NULL || of != bytes, 0)) {
        env_window_free();
        MPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &env_memory_window);
        MPI_Win_lock_all(MPI_MODE_NOCHECK, env_memory_window);
        of = bytes;
    }
    return memory;
}

static inline void env_window_sync(void)
{
    MPI_Win_sync(env_memory_window);
}

static inline void env_put(const void *from, size_t bytes, int to)
{
    MPI_Put(from, (int)bytes, MPI_BYTE, to, 0, (int)bytes, MPI_BYTE, env_memory_window);
    MPI_Win_flush(to, env_memory_window);
}

static inline void env_get(void *into, size_t bytes, int from)
{
    MPI_Get(into, (int)bytes, MPI_BYTE, from, 0, (int)bytes, MPI_BYTE, env_memory_window);
    MPI_Win_flush(from, env_memory_window);
}

static inline void env_accumulate(const double *from, size_t count, int to)
{
    MPI_Accumulate(from, (int)count, MPI_DOUBLE, to, 0, (int)count, MPI_DOUBLE, MPI_SUM, env_memory_window);
    MPI_Win_flush(to, env_memory_window);
}

static inline int64_t env_fetch_add(int to)
{
    int64_t one = 1, was = -1;
    MPI_Fetch_and_op(&one, &was, MPI_INT64_T, to, 0, MPI_SUM, env_memory_window);
    MPI_Win_flush(to, env_memory_window);
    return was;
}

#define ENV_BLOCKS

static inline MPI_Datatype env_blocks_type(size_t number)
{
    static MPI_Datatype type = MPI_DATATYPE_NULL;
    static size_t of;
    if (__builtin_expect(type == MPI_DATATYPE_NULL || of != number, 0)) {
        if (type != MPI_DATATYPE_NULL)
            MPI_Type_free(&type);
        MPI_Type_vector((int)number, 1, 2, MPI_DOUBLE, &type);
        MPI_Type_commit(&type);
        of = number;
    }
    return type;
}

static inline void env_blocks_send(const void *buf, size_t number, int to, int tag)
{
    MPI_Send(buf, 1, env_blocks_type(number), to, tag, MPI_COMM_WORLD);
}

static inline void env_blocks_recv(void *buf, size_t number, int from, int tag)
{
    MPI_Recv(buf, 1, env_blocks_type(number), from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static MPI_Comm *env_thread_comms;

static inline void env_threads(int number)
{
    env_thread_comms = calloc((size_t)number, sizeof *env_thread_comms);
    if (!env_thread_comms)
        env_fail("calloc", "no memory");
    for (int thread = 0; thread < number; thread++)
        MPI_Comm_dup(MPI_COMM_WORLD, &env_thread_comms[thread]);
}

static inline env_request env_thread_isend(int thread, const void *buf, size_t bytes, int to, int tag)
{
    env_request request;
    MPI_Isend(buf, (int)bytes, MPI_BYTE, to, tag, env_thread_comms[thread], &request);
    return request;
}

static inline env_request env_thread_irecv(int thread, void *buf, size_t bytes, int from, int tag)
{
    env_request request;
    MPI_Irecv(buf, (int)bytes, MPI_BYTE, from, tag, env_thread_comms[thread], &request);
    return request;
}

/* MPI has no host: task 0 takes its part, as in programs written for MPI. */
#define ENV_HOSTS

static inline void env_host_init(int *argc, char ***argv)
{
    env_init(argc, argv);
}

static inline int env_host_rank(void)
{
    return env_my_rank;
}

static inline int env_host_size(void)
{
    return env_my_size;
}

static inline void env_host_send(const void *buf, size_t bytes, int to, int tag)
{
    env_send(buf, bytes, to, tag);
}

static inline void env_host_recv(void *buf, size_t bytes, int from, int tag)
{
    env_recv(buf, bytes, from, tag);
}

static inline void env_host_exchange(const void *out, void *in, size_t bytes, int peer, int tag)
{
    MPI_Request requests[2] = {env_irecv(in, bytes, peer, tag), env_isend(out, bytes, peer, tag)};
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static inline void env_host_broadcast(void *buf, size_t bytes)
{
    env_broadcast(buf, bytes, 0);
}

/* Elements with MPI's datatypes. */
#define ENV_TYPES
#define ENV_SENDRECV

static inline MPI_Datatype env_datatype(enum env_type type)
{
    switch (type) {
    case ENV_INT:
        return MPI_INT;
    case ENV_FLOAT:
        return MPI_FLOAT;
    case ENV_DOUBLE:
        return MPI_DOUBLE;
    default:
        return MPI_BYTE;
    }
}

static inline int env_elements(enum env_type type, size_t bytes)
{
    switch (type) {
    case ENV_INT:
        return (int)(bytes / sizeof(int));
    case ENV_FLOAT:
        return (int)(bytes / sizeof(float));
    case ENV_DOUBLE:
        return (int)(bytes / sizeof(double));
    default:
        return (int)bytes;
    }
}

static inline void env_type_send(enum env_type type, const void *buf, size_t bytes, int to, int tag)
{
    MPI_Send(buf, env_elements(type, bytes), env_datatype(type), to, tag, MPI_COMM_WORLD);
}

static inline void env_type_recv(enum env_type type, void *buf, size_t bytes, int from, int tag)
{
    MPI_Recv(buf, env_elements(type, bytes), env_datatype(type), from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static inline void env_type_exchange(enum env_type type, const void *out, void *in, size_t bytes, int peer, int tag)
{
    int count = env_elements(type, bytes);
    MPI_Request requests[2];
    MPI_Isend(out, count, env_datatype(type), peer, tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(in, count, env_datatype(type), peer, tag, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static inline void env_sendrecv(enum env_type type, const void *out, void *in, size_t bytes, int peer, int tag)
{
    int count = env_elements(type, bytes);
    MPI_Sendrecv(out, count, env_datatype(type), peer, tag, in, count, env_datatype(type), peer, tag, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

/* MPI_Pack corresponds to PVM's raw encoding, external32 to PVM's XDR. Messages that PVM packs in place are sent from
 * the buffer. */
#define ENV_PACKS
#define ENV_PACKS_TYPES
#define ENV_PACKS_DEFAULT

static char *env_packed;
static MPI_Aint env_packed_size;

/* Returns the packed size of `count` elements in bytes, and makes the buffer at least that large. */
static inline MPI_Aint env_pack_room(enum env_encoding encoding, MPI_Datatype datatype, int count)
{
    MPI_Aint size;
    if (encoding == ENV_DEFAULT) {
        MPI_Pack_external_size("external32", count, datatype, &size);
    } else {
        int packed;
        MPI_Pack_size(count, datatype, MPI_COMM_WORLD, &packed);
        size = packed;
    }
    if (__builtin_expect(size > env_packed_size, 0)) {
        env_packed = realloc(env_packed, (size_t)size);
        if (!env_packed)
            env_fail("realloc", "no memory for a packed message");
        env_packed_size = size;
    }
    return size;
}

static inline void env_pack_send(enum env_encoding encoding, enum env_type type, const void *buf, size_t bytes, int to,
                                 int tag)
{
    MPI_Datatype datatype = env_datatype(type);
    int count = env_elements(type, bytes), packed = 0;
    if (encoding == ENV_IN_PLACE) {
        MPI_Send(buf, count, datatype, to, tag, MPI_COMM_WORLD);
        return;
    }
    MPI_Aint room = env_pack_room(encoding, datatype, count);
    if (encoding == ENV_DEFAULT) {
        MPI_Aint position = 0;
        MPI_Pack_external("external32", buf, count, datatype, env_packed, room, &position);
        MPI_Send(env_packed, (int)position, MPI_BYTE, to, tag, MPI_COMM_WORLD);
    } else {
        MPI_Pack(buf, count, datatype, env_packed, (int)room, &packed, MPI_COMM_WORLD);
        MPI_Send(env_packed, packed, MPI_PACKED, to, tag, MPI_COMM_WORLD);
    }
}

static inline void env_recv_unpack(enum env_encoding encoding, enum env_type type, void *buf, size_t bytes, int from,
                                   int tag)
{
    MPI_Datatype datatype = env_datatype(type);
    int count = env_elements(type, bytes), position = 0;
    if (encoding == ENV_IN_PLACE) {
        MPI_Recv(buf, count, datatype, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return;
    }
    MPI_Aint room = env_pack_room(encoding, datatype, count);
    if (encoding == ENV_DEFAULT) {
        MPI_Aint at = 0;
        MPI_Recv(env_packed, (int)room, MPI_BYTE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Unpack_external("external32", env_packed, room, &at, buf, count, datatype);
    } else {
        MPI_Recv(env_packed, (int)room, MPI_PACKED, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Unpack(env_packed, (int)room, &position, buf, count, datatype, MPI_COMM_WORLD);
    }
}

static inline void env_poll(void *buf, size_t bytes, int from, int tag)
{
    MPI_Request request;
    MPI_Irecv(buf, (int)bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, &request);
    for (int done = 0; !done;)
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

/* MPI has no call that reports the end of a task, so there is no ENV_WATCHES. */
#define ENV_SPAWNS
enum { TAG_ANSWER = 1, TAG_ORDER = 2 };

static inline void env_join(int *argc, char ***argv)
{
    env_init(argc, argv);
    MPI_Comm_get_parent(&env_family);
}

static inline void env_spawn(int count, char *argument)
{
    char path[4096], *arguments[] = {argument, NULL};
    env_program(path, sizeof path);
    if (env_family != MPI_COMM_NULL)
        env_fail("MPI_Comm_spawn", "this program starts tasks only once");
    MPI_Comm_spawn(path, arguments, count, MPI_INFO_NULL, 0, MPI_COMM_SELF, &env_family, MPI_ERRCODES_IGNORE);
}

static inline void env_hear(void *buf, size_t bytes, int child)
{
    MPI_Recv(buf, (int)bytes, MPI_BYTE, child, TAG_ANSWER, env_family, MPI_STATUS_IGNORE);
}

static inline void env_answer(const void *buf, size_t bytes)
{
    MPI_Send(buf, (int)bytes, MPI_BYTE, 0, TAG_ANSWER, env_family);
}

static inline void env_obey(void *buf, size_t bytes)
{
    MPI_Recv(buf, (int)bytes, MPI_BYTE, 0, TAG_ORDER, env_family, MPI_STATUS_IGNORE);
}
