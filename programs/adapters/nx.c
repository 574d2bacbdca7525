/*
 * Adapter to Intel's NX, written as its users wrote programs: csend and crecv, global operations that overwrite their
 * vector, and node -1 for all other nodes.
 *
 * A receive of NX selects by type alone. So where messages of one type could come from several nodes, the sender's
 * number is part of the type. NX has no vectors of words that are not contiguous (they are packed), and no alltoall:
 * each block is a message.
 */
#include <nx.h>
#include <regatta.h>

enum { PID = 0, HOST_PID = 100, TYPE_BROADCAST = 1000, TYPE_BLOCK = 2000, TYPE_ARGUMENTS = 3000, ARGUMENTS = 8192 };

/* The message id that isend or irecv returns. */
typedef long env_request;

static int env_my_rank, env_my_size;
/* Lengths of the blocks, for gcolx. */
static long *env_lengths;

static inline void env_init(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    env_my_rank = (int)mynode();
    env_my_size = (int)numnodes();
    env_lengths = calloc((size_t)env_my_size, sizeof *env_lengths);
    if (!env_lengths)
        env_fail("calloc", "no memory");
}

/* Does nothing: the library leaves the job when the program ends. */
static inline void env_finalize(void)
{
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
    snprintf(text, size, "NX on Regatta (%s)", rg_version());
}

static inline void env_path(char *text, size_t size)
{
    text[0] = 0;
    if (env_my_size > 1)
        rg_path(RG_WORLD, env_my_rank ^ 1, text, size);
    for (char *c = text; *c; c++)
        if (*c == '\n')
            *c = ' ';
}

static inline void env_send(const void *buf, size_t bytes, int to, int tag)
{
    csend(tag, buf, (long)bytes, to, PID);
}

static inline void env_recv(void *buf, size_t bytes, int from, int tag)
{
    (void)from;
    crecv(tag, buf, (long)bytes);
}

#define ENV_BUFFERS

static inline env_request env_isend(const void *buf, size_t bytes, int to, int tag)
{
    return isend(tag, buf, (long)bytes, to, PID);
}

static inline env_request env_irecv(void *buf, size_t bytes, int from, int tag)
{
    (void)from;
    return irecv(tag, buf, (long)bytes);
}

static inline void env_waitall(int n, env_request *requests)
{
    for (int i = 0; i < n; i++)
        msgwait(requests[i]);
}

#define ENV_EXCHANGES

static inline void env_exchange(const void *out, void *in, size_t bytes, int peer, int tag)
{
    csendrecv(tag, out, (long)bytes, peer, PID, tag, in, (long)bytes);
}

static inline void env_barrier(void)
{
    gsync();
}

static inline void env_broadcast(void *buf, size_t bytes, int root)
{
    if (env_my_rank == root)
        csend(TYPE_BROADCAST + root, buf, (long)bytes, -1, PID);
    else
        crecv(TYPE_BROADCAST + root, buf, (long)bytes);
}

#define ENV_REDUCES_IN_PLACE

/* Returns the work vector of the same length that NX's global operations need. */
static inline double *env_work(size_t count)
{
    static double *work;
    static size_t room;
    if (__builtin_expect(count > room, 0)) {
        work = realloc(work, count * sizeof *work);
        if (!work)
            env_fail("realloc", "no memory for a work vector");
        room = count;
    }
    return work;
}

static inline void env_sum(const double *in, double *out, size_t count)
{
    (void)in;
    gdsum(out, (long)count, env_work(count));
}

static inline void env_product(const double *in, double *out, size_t count)
{
    (void)in;
    gdprod(out, (long)count, env_work(count));
}

static inline void env_max(const double *in, double *out, size_t count)
{
    (void)in;
    gdhigh(out, (long)count, env_work(count));
}

static inline void env_concatenation(const void *in, size_t bytes, void *out)
{
    if (__builtin_expect(env_lengths[0] != (long)bytes, 0))
        for (int r = 0; r < env_my_size; r++)
            env_lengths[r] = (long)bytes;
    gcolx(in, env_lengths, out);
}

static inline void env_complete_exchange(const void *in, size_t bytes, void *out)
{
    int size = env_my_size, me = env_my_rank;
    memcpy((char *)out + (size_t)me * bytes, (const char *)in + (size_t)me * bytes, bytes);
    if (size == 2) {
        csendrecv(TYPE_BLOCK, (const char *)in + (size_t)!me * bytes, (long)bytes, !me, PID, TYPE_BLOCK,
                  (char *)out + (size_t)!me * bytes, (long)bytes);
        return;
    }
    /* All receives are posted first, so no task waits for one sender while the others' blocks are there. */
    env_request receives[size];
    for (int d = 1; d < size; d++) {
        int from = (me + size - d) % size;
        receives[d - 1] = irecv(TYPE_BLOCK + from, (char *)out + (size_t)from * bytes, (long)bytes);
    }
    for (int d = 1; d < size; d++) {
        int to = (me + d) % size;
        csend(TYPE_BLOCK + me, (const char *)in + (size_t)to * bytes, (long)bytes, to, PID);
    }
    env_waitall(size - 1, receives);
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
            env_fail("csend", "the arguments are too long");
        memcpy(text + length, *argv, more);
        length += more;
    }
    csend(TYPE_ARGUMENTS, text, (long)length, -1, PID);
}

static void env_receive_arguments(int *argc, char ***argv)
{
    static char text[ARGUMENTS], *words[ARGUMENTS / 2 + 1];
    crecv(TYPE_ARGUMENTS, text, sizeof text - 1);
    char *end = text + infocount();
    *argc = 0;
    for (char *word = text; word < end && *argc < ARGUMENTS / 2; word += strlen(word) + 1)
        words[(*argc)++] = word;
    *argv = words;
}

/* The host's node number. */
static long env_host_number;

static inline void env_host_init(int *argc, char ***argv)
{
    char path[4096], number[16];
    if (*argc > 1) {
        int nodes = env_tasks_wanted() - 1;
        snprintf(number, sizeof number, "%d", nodes);
        getcube("race", number, NULL, 0);
        setpid(HOST_PID);
        env_program(path, sizeof path);
        load(path, -1, PID);
        env_send_arguments(*argv);
        env_my_rank = 0;
    } else {
        env_my_rank = (int)mynode() + 1;
        env_receive_arguments(argc, argv);
    }
    env_my_size = (int)numnodes() + 1;
    env_host_number = myhost();
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
    if (to == 0)
        csend(tag, buf, (long)bytes, env_host_number, HOST_PID);
    else
        csend(tag, buf, (long)bytes, to - 1, PID);
}

/* Receives a message. A host with several nodes selects the sender with crecvx; it does so only outside the timed part.
 * */
static inline void env_host_recv(void *buf, size_t bytes, int from, int tag)
{
    long info[8];
    if (env_my_rank == 0 && env_my_size > 2)
        crecvx(tag, buf, (long)bytes, from - 1, PID, info);
    else
        crecv(tag, buf, (long)bytes);
}

static inline void env_host_exchange(const void *out, void *in, size_t bytes, int peer, int tag)
{
    long node = peer == 0 ? env_host_number : peer - 1, pid = peer == 0 ? HOST_PID : PID;
    csendrecv(tag, out, (long)bytes, node, pid, tag, in, (long)bytes);
}

static inline void env_host_broadcast(void *buf, size_t bytes)
{
    if (env_my_rank == 0)
        csend(TYPE_BROADCAST, buf, (long)bytes, -1, PID);
    else
        crecv(TYPE_BROADCAST, buf, (long)bytes);
}
