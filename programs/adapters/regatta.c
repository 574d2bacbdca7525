/* Adapter to Regatta's own C interface. */
#include <regatta.h>

typedef rg_request env_request;

static inline void env_check(int code, const char *call)
{
    if (__builtin_expect(code < 0, 0))
        env_fail(call, rg_last_error());
}

static inline void env_init(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    env_check(rg_init(), "rg_init");
}

static inline void env_finalize(void)
{
    env_check(rg_finalize(), "rg_finalize");
}

static inline int env_rank(void)
{
    int rank = rg_rank(RG_WORLD);
    env_check(rank, "rg_rank");
    return rank;
}

static inline int env_size(void)
{
    int size = rg_size(RG_WORLD);
    env_check(size, "rg_size");
    return size;
}

static inline void env_version(char *text, size_t size)
{
    snprintf(text, size, "%s", rg_version());
}

static inline void env_path(char *text, size_t size)
{
    text[0] = 0;
    if (env_size() > 1)
        env_check(rg_path(RG_WORLD, env_rank() ^ 1, text, size), "rg_path");
    for (char *c = text; *c; c++)
        if (*c == '\n')
            *c = ' ';
}

static inline void env_send(const void *buf, size_t bytes, int to, int tag)
{
    env_check(rg_send(buf, bytes, to, tag, RG_WORLD), "rg_send");
}

static inline void env_recv(void *buf, size_t bytes, int from, int tag)
{
    env_check(rg_recv(buf, bytes, from, tag, RG_WORLD, NULL), "rg_recv");
}

static inline env_request env_isend(const void *buf, size_t bytes, int to, int tag)
{
    env_request request;
    env_check(rg_isend(buf, bytes, to, tag, RG_WORLD, &request), "rg_isend");
    return request;
}

static inline env_request env_irecv(void *buf, size_t bytes, int from, int tag)
{
    env_request request;
    env_check(rg_irecv(buf, bytes, from, tag, RG_WORLD, &request), "rg_irecv");
    return request;
}

static inline void env_waitall(int n, env_request *requests)
{
    env_check(rg_waitall(n, requests, NULL), "rg_waitall");
}

#define ENV_SENDRECV

static inline void env_sendrecv(enum env_type type, const void *out, void *in, size_t bytes, int peer, int tag)
{
    (void)type;
    env_check(rg_sendrecv(out, bytes, peer, tag, in, bytes, peer, tag, RG_WORLD, NULL), "rg_sendrecv");
}

static inline void env_barrier(void)
{
    env_check(rg_barrier(RG_WORLD), "rg_barrier");
}

static inline void env_broadcast(void *buf, size_t bytes, int root)
{
    env_check(rg_broadcast(buf, bytes, root, RG_WORLD), "rg_broadcast");
}

static inline void env_sum(const double *in, double *out, size_t count)
{
    env_check(rg_allreduce(in, out, count, RG_DOUBLE, RG_SUM, RG_WORLD), "rg_allreduce");
}

static inline void env_product(const double *in, double *out, size_t count)
{
    env_check(rg_allreduce(in, out, count, RG_DOUBLE, RG_PRODUCT, RG_WORLD), "rg_allreduce");
}

static inline void env_max(const double *in, double *out, size_t count)
{
    env_check(rg_allreduce(in, out, count, RG_DOUBLE, RG_MAX, RG_WORLD), "rg_allreduce");
}

static inline void env_concatenation(const void *in, size_t bytes, void *out)
{
    env_check(rg_allgather(in, bytes, out, RG_WORLD), "rg_allgather");
}

static inline void env_complete_exchange(const void *in, size_t bytes, void *out)
{
    env_check(rg_alltoall(in, bytes, out, RG_WORLD), "rg_alltoall");
}

#define ENV_MORE_COLLECTIVES

static inline void env_reduce(const double *in, double *out, size_t count, int root)
{
    env_check(rg_reduce(in, out, count, RG_DOUBLE, RG_SUM, root, RG_WORLD), "rg_reduce");
}

static inline void env_scan(const double *in, double *out, size_t count)
{
    env_check(rg_scan(in, out, count, RG_DOUBLE, RG_SUM, RG_WORLD), "rg_scan");
}

static inline void env_reduce_scatter(const double *in, double *out, size_t count)
{
    env_check(rg_reduce_scatter_block(in, out, count, RG_DOUBLE, RG_SUM, RG_WORLD), "rg_reduce_scatter_block");
}

static inline void env_gather(const void *in, size_t bytes, void *out, int root)
{
    env_check(rg_gather(in, bytes, out, root, RG_WORLD), "rg_gather");
}

static inline void env_scatter(const void *in, void *out, size_t bytes, int root)
{
    env_check(rg_scatter(in, out, bytes, root, RG_WORLD), "rg_scatter");
}

static inline env_request env_ibarrier(void)
{
    env_request request;
    env_check(rg_ibarrier(RG_WORLD, &request), "rg_ibarrier");
    return request;
}

static inline env_request env_ibroadcast(void *buf, size_t bytes, int root)
{
    env_request request;
    env_check(rg_ibroadcast(buf, bytes, root, RG_WORLD, &request), "rg_ibroadcast");
    return request;
}

static inline env_request env_isum(const double *in, double *out, size_t count)
{
    env_request request;
    env_check(rg_iallreduce(in, out, count, RG_DOUBLE, RG_SUM, RG_WORLD, &request), "rg_iallreduce");
    return request;
}

#define ENV_VECTORS

static inline rg_view env_view(const void *buf, size_t stride, size_t words)
{
    return (rg_view){(void *)(uintptr_t)buf, 4, words, (ptrdiff_t)stride};
}

static inline void env_vector_send(const void *buf, size_t stride, size_t words, int to, int tag)
{
    rg_view view = env_view(buf, stride, words);
    env_check(rg_sendv(&view, 1, to, tag, RG_WORLD), "rg_sendv");
}

static inline void env_vector_recv(void *buf, size_t stride, size_t words, int from, int tag)
{
    rg_view view = env_view(buf, stride, words);
    env_check(rg_recvv(&view, 1, from, tag, RG_WORLD, NULL), "rg_recvv");
}

static inline void env_vector_exchange(const void *out, void *in, size_t stride, size_t words, int peer, int tag)
{
    rg_view from = env_view(out, stride, words), to = env_view(in, stride, words);
    env_request requests[2];
    env_check(rg_irecvv(&to, 1, peer, tag, RG_WORLD, &requests[0]), "rg_irecvv");
    env_check(rg_isendv(&from, 1, peer, tag, RG_WORLD, &requests[1]), "rg_isendv");
    env_waitall(2, requests);
}

/* Nothing is packed here: bytes are sent from the buffer. */
#define ENV_PACKS

static inline void env_pack_send(enum env_encoding encoding, enum env_type type, const void *buf, size_t bytes, int to,
                                 int tag)
{
    (void)encoding;
    (void)type;
    env_send(buf, bytes, to, tag);
}

static inline void env_recv_unpack(enum env_encoding encoding, enum env_type type, void *buf, size_t bytes, int from,
                                   int tag)
{
    (void)encoding;
    (void)type;
    env_recv(buf, bytes, from, tag);
}

static inline void env_poll(void *buf, size_t bytes, int from, int tag)
{
    env_request request = env_irecv(buf, bytes, from, tag);
    for (int done = 0; !done;)
        env_check(rg_test(&request, &done, NULL), "rg_test");
}

#define ENV_SPAWNS
#define ENV_WATCHES
enum { TAG_ANSWER = 1, TAG_ORDER = 2, TAG_END = 3, MAX_CHILDREN = 4096 };

static int env_children[MAX_CHILDREN], env_started;

static inline void env_join(int *argc, char ***argv)
{
    env_init(argc, argv);
}

static inline void env_spawn(int count, char *argument)
{
    char path[4096], *arguments[] = {argument, NULL};
    env_program(path, sizeof path);
    if (count > MAX_CHILDREN - env_started)
        env_fail("rg_spawn", "this program keeps at most 4096 ids");
    env_check(rg_spawn(path, arguments, NULL, count, env_children + env_started, NULL), "rg_spawn");
    env_started += count;
}

static inline void env_hear(void *buf, size_t bytes, int child)
{
    env_check(rg_recv(buf, bytes, env_children[child], TAG_ANSWER, RG_ALL, NULL), "rg_recv");
}

static inline void env_answer(const void *buf, size_t bytes)
{
    env_check(rg_send(buf, bytes, rg_parent(), TAG_ANSWER, RG_ALL), "rg_send");
}

static inline void env_obey(void *buf, size_t bytes)
{
    env_check(rg_recv(buf, bytes, rg_parent(), TAG_ORDER, RG_ALL, NULL), "rg_recv");
}

static inline void env_watch(int child)
{
    env_check(rg_notify(RG_TASK_EXIT, env_children[child], TAG_END, RG_ALL, NULL), "rg_notify");
}

static inline int env_await_end(void)
{
    rg_event event;
    env_check(rg_recv(&event, sizeof event, RG_ANY, TAG_END, RG_ALL, NULL), "rg_recv");
    for (int child = 0; child < env_started; child++)
        if (event.kind == RG_TASK_EXIT && event.how == RG_BY_SIGNAL && event.tid == env_children[child])
            return child;
    env_fail("rg_notify", "an event that is not the end of a child by a signal");
}

#define ENV_HOSTS

/* The group of the host and its nodes, in this order. */
static rg_group env_hosted;

static inline void env_host_init(int *argc, char ***argv)
{
    int nodes = env_tasks_wanted() - 1, parent;
    char path[4096];
    env_init(argc, argv);
    int *members = calloc((size_t)nodes + 1, sizeof *members);
    if (!members)
        env_fail("calloc", "no memory");
    parent = rg_parent();
    if (parent == RG_NONE) {
        env_program(path, sizeof path);
        members[0] = rg_tid();
        env_check(rg_spawn(path, *argv + 1, NULL, nodes, members + 1, NULL), "rg_spawn");
    } else {
        members[0] = parent;
        for (int r = 0; r < nodes; r++)
            members[r + 1] = rg_tid_of(RG_WORLD, r);
    }
    env_check(rg_group_select(RG_ALL, nodes + 1, members, &env_hosted), "rg_group_select");
    free(members);
}

static inline int env_host_rank(void)
{
    return rg_rank(env_hosted);
}

static inline int env_host_size(void)
{
    return rg_size(env_hosted);
}

static inline void env_host_send(const void *buf, size_t bytes, int to, int tag)
{
    env_check(rg_send(buf, bytes, to, tag, env_hosted), "rg_send");
}

static inline void env_host_recv(void *buf, size_t bytes, int from, int tag)
{
    env_check(rg_recv(buf, bytes, from, tag, env_hosted, NULL), "rg_recv");
}

static inline void env_host_exchange(const void *out, void *in, size_t bytes, int peer, int tag)
{
    env_request requests[2];
    env_check(rg_irecv(in, bytes, peer, tag, env_hosted, &requests[0]), "rg_irecv");
    env_check(rg_isend(out, bytes, peer, tag, env_hosted, &requests[1]), "rg_isend");
    env_waitall(2, requests);
}

static inline void env_host_broadcast(void *buf, size_t bytes)
{
    env_check(rg_broadcast(buf, bytes, 0, env_hosted), "rg_broadcast");
}
