/*
 * Adapter to ParaSoft's Express, written as its users wrote programs: exread and exwrite with a node and a type,
 * exchange, vectors sent without packing, and one combine call for which the program supplies the function.
 *
 * A write of Express does not wait for its read, so env_isend is a write. env_waitall carries out the receives of
 * env_irecv. Express has no alltoall: each block is a message.
 */
#include <express.h>
#include <regatta.h>

enum { TYPE = 1000, ARGUMENTS = 8192 };

static struct nodenv env_node;

typedef struct {
    void *buf; /* NULL: done */
    size_t bytes;
    int from, tag;
} env_request;

/* Ends the program if `code` is negative. The library has written the reason to standard error. */
static inline void env_check(int code, const char *call)
{
    if (__builtin_expect(code < 0, 0))
        env_fail(call, "see above");
}

static inline void env_init(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    env_check(exinit(), "exinit");
    env_check(exparam(&env_node), "exparam");
}

/* Does nothing: the library leaves the job when the program ends. */
static inline void env_finalize(void)
{
}

static inline int env_rank(void)
{
    return env_node.procnum;
}

static inline int env_size(void)
{
    return env_node.nprocs;
}

static inline void env_version(char *text, size_t size)
{
    snprintf(text, size, "Express on Regatta (%s)", rg_version());
}

static inline void env_path(char *text, size_t size)
{
    text[0] = 0;
    if (env_node.nprocs > 1)
        rg_path(RG_WORLD, env_node.procnum ^ 1, text, size);
    for (char *c = text; *c; c++)
        if (*c == '\n')
            *c = ' ';
}

static inline void env_send(const void *buf, size_t bytes, int to, int tag)
{
    env_check(exwrite(buf, (int)bytes, &to, &tag), "exwrite");
}

static inline void env_recv(void *buf, size_t bytes, int from, int tag)
{
    env_check(exread(buf, (int)bytes, &from, &tag), "exread");
}

#define ENV_BUFFERS

static inline env_request env_isend(const void *buf, size_t bytes, int to, int tag)
{
    env_send(buf, bytes, to, tag);
    return (env_request){NULL, 0, 0, 0};
}

static inline env_request env_irecv(void *buf, size_t bytes, int from, int tag)
{
    return (env_request){buf, bytes, from, tag};
}

static inline void env_waitall(int n, env_request *requests)
{
    for (int i = 0; i < n; i++)
        if (requests[i].buf)
            env_recv(requests[i].buf, requests[i].bytes, requests[i].from, requests[i].tag);
}

#define ENV_EXCHANGES

static inline void env_exchange(const void *out, void *in, size_t bytes, int peer, int tag)
{
    int src = peer, type = tag;
    env_check(exchange(in, (int)bytes, &src, &type, out, (int)bytes, &peer, &tag), "exchange");
}

static inline void env_barrier(void)
{
    env_check(exsync(), "exsync");
}

static inline void env_broadcast(void *buf, size_t bytes, int root)
{
    int type = TYPE;
    env_check(exbroadcast(buf, root, (int)bytes, ALLNODES, NULLPTR, &type), "exbroadcast");
}

/* The combining functions, which a program of Express supplies. A whole vector is one item, so the library calls the
 * function once for each node's vector, not once for each element. */
static int env_add(void *one, void *other, int size)
{
    double *to = one;
    const double *from = other;
    for (size_t k = 0; k < (size_t)size / sizeof *to; k++)
        to[k] += from[k];
    return 0;
}

static int env_multiply(void *one, void *other, int size)
{
    double *to = one;
    const double *from = other;
    for (size_t k = 0; k < (size_t)size / sizeof *to; k++)
        to[k] *= from[k];
    return 0;
}

static int env_larger(void *one, void *other, int size)
{
    double *to = one;
    const double *from = other;
    for (size_t k = 0; k < (size_t)size / sizeof *to; k++)
        to[k] = from[k] > to[k] ? from[k] : to[k];
    return 0;
}

#define ENV_REDUCES_IN_PLACE

static inline void env_combine(double *vector, excombiner function, size_t count)
{
    int type = TYPE;
    env_check(excombine(vector, function, (int)(count * sizeof *vector), 1, ALLNODES, NULLPTR, &type), "excombine");
}

static inline void env_sum(const double *in, double *out, size_t count)
{
    (void)in;
    env_combine(out, env_add, count);
}

static inline void env_product(const double *in, double *out, size_t count)
{
    (void)in;
    env_combine(out, env_multiply, count);
}

static inline void env_max(const double *in, double *out, size_t count)
{
    (void)in;
    env_combine(out, env_larger, count);
}

static inline void env_concatenation(const void *in, size_t bytes, void *out)
{
    int type = TYPE, room = (int)bytes * env_node.nprocs;
    env_check(exconcat(in, (int)bytes, out, room, NULLPTR, ALLNODES, NULLPTR, &type), "exconcat");
}

static inline void env_complete_exchange(const void *in, size_t bytes, void *out)
{
    int size = env_node.nprocs, me = env_node.procnum;
    memcpy((char *)out + (size_t)me * bytes, (const char *)in + (size_t)me * bytes, bytes);
    for (int d = 1; d < size; d++) {
        int to = (me + d) % size;
        env_send((const char *)in + (size_t)to * bytes, bytes, to, TYPE);
    }
    for (int d = 1; d < size; d++) {
        int from = (me + size - d) % size;
        env_recv((char *)out + (size_t)from * bytes, bytes, from, TYPE);
    }
}

#define ENV_VECTORS

static inline void env_vector_send(const void *buf, size_t stride, size_t words, int to, int tag)
{
    env_check(exvwrite(buf, 4, (int)stride, (int)words, &to, &tag), "exvwrite");
}

static inline void env_vector_recv(void *buf, size_t stride, size_t words, int from, int tag)
{
    env_check(exvread(buf, 4, (int)stride, (int)words, &from, &tag), "exvread");
}

static inline void env_vector_exchange(const void *out, void *in, size_t stride, size_t words, int peer, int tag)
{
    int src = peer, type = tag;
    env_check(exvchange(in, 4, (int)stride, (int)words, &src, &type, out, 4, (int)stride, (int)words, &peer, &tag),
              "exvchange");
}

#define ENV_HOSTS

/* Sends the host's arguments to the nodes as one text, because nodes are loaded without arguments. */
static void env_send_arguments(char **argv)
{
    char text[ARGUMENTS];
    size_t length = 0;
    for (; *argv; argv++) {
        size_t more = strlen(*argv) + 1;
        if (more > sizeof text - length)
            env_fail("exwrite", "the arguments are too long");
        memcpy(text + length, *argv, more);
        length += more;
    }
    for (int node = 0; node < env_node.nprocs; node++)
        env_send(text, length, node, TYPE);
}

static void env_receive_arguments(int *argc, char ***argv)
{
    static char text[ARGUMENTS], *words[ARGUMENTS / 2 + 1];
    int host = HOST, type = TYPE, length = exread(text, sizeof text - 1, &host, &type);
    env_check(length, "exread");
    *argc = 0;
    for (char *word = text; word < text + length && *argc < ARGUMENTS / 2; word += strlen(word) + 1)
        words[(*argc)++] = word;
    *argv = words;
}

static inline void env_host_init(int *argc, char ***argv)
{
    char path[4096];
    if (*argc > 1) {
        int nodes = exopen("/dev/race", env_tasks_wanted() - 1, DONTCARE);
        env_check(nodes, "exopen");
        env_program(path, sizeof path);
        env_check(exload(nodes, path), "exload");
        env_check(exparam(&env_node), "exparam");
        env_send_arguments(*argv);
    } else {
        env_check(exparam(&env_node), "exparam");
        env_receive_arguments(argc, argv);
    }
}

static inline int env_host_rank(void)
{
    return env_node.procnum == HOST ? 0 : env_node.procnum + 1;
}

static inline int env_host_size(void)
{
    return env_node.nprocs + 1;
}

/* Returns the node number of a rank. */
static inline int env_host_node(int rank)
{
    return rank == 0 ? HOST : rank - 1;
}

static inline void env_host_send(const void *buf, size_t bytes, int to, int tag)
{
    env_send(buf, bytes, env_host_node(to), tag);
}

static inline void env_host_recv(void *buf, size_t bytes, int from, int tag)
{
    env_recv(buf, bytes, env_host_node(from), tag);
}

static inline void env_host_exchange(const void *out, void *in, size_t bytes, int peer, int tag)
{
    env_exchange(out, in, bytes, env_host_node(peer), tag);
}

static inline void env_host_broadcast(void *buf, size_t bytes)
{
    int type = TYPE;
    env_check(exbroadcast(buf, HOST, (int)bytes, ALLNODES, NULLPTR, &type), "exbroadcast");
}
