/*
 * Adapter to PVM 3.4, tuned as a PVM user would: direct task-to-task route, pvm_psend and pvm_precv (one call each,
 * data neither packed nor converted), and group functions for collectives where PVM has them. With
 * RACE_PVM_ROUTE=daemon the adapter does not ask for direct routes, and messages take PVM's default route through the
 * daemons.
 *
 * PVM has no call for allgather, alltoall, or a reduction whose result all tasks get: these are a gather, or sends, and
 * a broadcast. PVM has no non-blocking receive either: env_waitall carries out the receives of env_irecv.
 */
#include <dlfcn.h>
#include <pvm3.h>

enum { TAG_START = 100, TAG_GROUP = 101, MAX_TASKS = 256 };

static const char env_group[] = "race";
static int env_my_rank, env_my_size, env_tids[MAX_TASKS];
/* 1 if the tasks are a host and its nodes, which form no group. */
static int env_hosted;

typedef struct {
    void *buf; /* NULL: done */
    size_t bytes;
    int from, tag;
} env_request;

static inline void env_check(int code, const char *call)
{
    if (__builtin_expect(code < 0, 0)) {
        char reason[64];
        snprintf(reason, sizeof reason, "PVM error %d", code);
        env_fail(call, reason);
    }
}

static inline void env_send(const void *buf, size_t bytes, int to, int tag)
{
    env_check(pvm_psend(env_tids[to], tag, (char *)(uintptr_t)buf, (int)bytes, PVM_BYTE), "pvm_psend");
}

static inline void env_recv(void *buf, size_t bytes, int from, int tag)
{
    env_check(pvm_precv(env_tids[from], tag, buf, (int)bytes, PVM_BYTE, NULL, NULL, NULL), "pvm_precv");
}

#define ENV_BUFFERS

/* Returns whether messages are to go through the daemons. */
static int env_by_daemon(void)
{
    const char *route = getenv("RACE_PVM_ROUTE");
    return route && !strcmp(route, "daemon");
}

static inline void env_choose_route(void)
{
    if (!env_by_daemon())
        pvm_setopt(PvmRoute, PvmRouteDirect);
}

/* Writes the name of host `number` in RACE_HOSTS (words NAME=...) to `name`. Returns the number of hosts. */
static int env_host(int number, char *name, size_t size)
{
    const char *text = getenv("RACE_HOSTS");
    int hosts = 0;
    while (text && *text) {
        size_t length = strcspn(text, " "), stop = strcspn(text, "=");
        if (hosts++ == number)
            snprintf(name, size, "%.*s", (int)stop, text);
        text += length + (text[length] == ' ');
    }
    return hosts;
}

/* Waits until all hosts have joined: the daemons of other hosts join while the first tasks start. */
static void env_await_hosts(int wanted)
{
    struct pvmhostinfo *info;
    int hosts = 0, formats;
    for (int looks = 0; looks < 1000; looks++) {
        env_check(pvm_config(&hosts, &formats, &info), "pvm_config");
        if (hosts >= wanted)
            return;
        usleep(10000);
    }
    env_fail("pvm_config", "not all hosts have joined the virtual machine");
}

/* Starts the other tasks. Ranks are assigned to hosts in blocks. */
static void env_spawn_on_hosts(char *path, char **argv, int hosts)
{
    int per_host = (env_my_size + hosts - 1) / hosts;
    env_await_hosts(hosts);
    for (int r = 1; r < env_my_size;) {
        char name[64] = "";
        int end = (r / per_host + 1) * per_host, n = (end < env_my_size ? end : env_my_size) - r;
        env_host(r / per_host, name, sizeof name);
        if (pvm_spawn(path, argv + 1, PvmTaskHost, name, n, env_tids + r) != n)
            env_fail("pvm_spawn", "not all tasks could be started");
        r += n;
    }
}

static void env_start_others(char **argv)
{
    char path[4096];
    env_program(path, sizeof path);
    env_my_size = env_tasks_wanted();
    if (env_my_size > MAX_TASKS)
        env_fail("pvm", "at most 256 tasks");
    env_tids[0] = pvm_mytid();
    int hosts = env_host(-1, NULL, 0);
    if (hosts > 1)
        env_spawn_on_hosts(path, argv, hosts);
    else if (env_my_size > 1 &&
             pvm_spawn(path, argv + 1, PvmTaskDefault, "", env_my_size - 1, env_tids + 1) != env_my_size - 1)
        env_fail("pvm_spawn", "not all tasks could be started");
    for (int r = 1; r < env_my_size; r++) {
        int header[2] = {r, env_my_size};
        env_check(pvm_psend(env_tids[r], TAG_START, header, sizeof header, PVM_BYTE), "pvm_psend");
        env_check(pvm_psend(env_tids[r], TAG_START, env_tids, sizeof env_tids, PVM_BYTE), "pvm_psend");
    }
}

static void env_hear_from_parent(int parent)
{
    int header[2];
    env_check(pvm_precv(parent, TAG_START, header, sizeof header, PVM_BYTE, NULL, NULL, NULL), "pvm_precv");
    env_check(pvm_precv(parent, TAG_START, env_tids, sizeof env_tids, PVM_BYTE, NULL, NULL, NULL), "pvm_precv");
    env_my_rank = header[0];
    env_my_size = header[1];
}

/* Joins the group in rank order, so that a task's instance number is its rank. */
static void env_join_group(void)
{
    char turn = 0;
    if (env_my_rank > 0)
        env_recv(&turn, 1, env_my_rank - 1, TAG_GROUP);
    if (pvm_joingroup((char *)(uintptr_t)env_group) != env_my_rank)
        env_fail("pvm_joingroup", "another job uses the group \"race\" in this virtual machine");
    if (env_my_rank + 1 < env_my_size)
        env_send(&turn, 1, env_my_rank + 1, TAG_GROUP);
    env_check(pvm_barrier((char *)(uintptr_t)env_group, env_my_size), "pvm_barrier");
    /* The members of a frozen group keep its list, so no call needs the group server. */
    env_check(pvm_freezegroup((char *)(uintptr_t)env_group, env_my_size), "pvm_freezegroup");
}

static void env_start(char **argv)
{
    env_check(pvm_mytid(), "pvm_mytid (is a PVM daemon running?)");
    env_choose_route();
    int parent = pvm_parent();
    if (parent > 0)
        env_hear_from_parent(parent);
    else
        env_start_others(argv);
    env_pin_apart(env_my_rank, env_my_size);
}

static inline void env_init(int *argc, char ***argv)
{
    (void)argc;
    env_start(*argv);
    if (env_my_size > 1)
        env_join_group();
}

static inline void env_finalize(void)
{
    if (env_my_size > 1 && !env_hosted) {
        env_check(pvm_barrier((char *)(uintptr_t)env_group, env_my_size), "pvm_barrier");
        pvm_lvgroup((char *)(uintptr_t)env_group);
    }
    pvm_exit();
}

static inline int env_rank(void)
{
    return env_my_rank;
}

static inline int env_size(void)
{
    return env_my_size;
}

/* Returns the version of Regatta if this program runs on Regatta's PVM library, or NULL on another PVM. */
static const char *env_regatta(void)
{
    const char *(*version)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "rg_version");
    return version ? version() : NULL;
}

static inline void env_version(char *text, size_t size)
{
    const char *regatta = env_regatta();
    snprintf(text, size, "PVM %s%s%s%s", pvm_version(), regatta ? " on Regatta (" : "", regatta ? regatta : "",
             regatta ? ")" : "");
}

static inline void env_path(char *text, size_t size)
{
    const char *of_pvm = env_by_daemon() ? "through the daemons" : "direct route (a socket per pair of tasks)";
    snprintf(text, size, "%s", env_regatta() ? "Regatta's own" : of_pvm);
}

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

/* Elements with PVM's types. */
#define ENV_TYPES

static inline int env_type_of(enum env_type type)
{
    static const int types[] = {PVM_BYTE, PVM_INT, PVM_FLOAT, PVM_DOUBLE};
    return types[type];
}

static inline int env_elements(enum env_type type, size_t bytes)
{
    static const size_t sizes[] = {1, sizeof(int), sizeof(float), sizeof(double)};
    return (int)(bytes / sizes[type]);
}

static inline void env_type_send(enum env_type type, const void *buf, size_t bytes, int to, int tag)
{
    int count = env_elements(type, bytes);
    env_check(pvm_psend(env_tids[to], tag, (char *)(uintptr_t)buf, count, env_type_of(type)), "pvm_psend");
}

static inline void env_type_recv(enum env_type type, void *buf, size_t bytes, int from, int tag)
{
    int count = env_elements(type, bytes);
    env_check(pvm_precv(env_tids[from], tag, buf, count, env_type_of(type), NULL, NULL, NULL), "pvm_precv");
}

static inline void env_type_exchange(enum env_type type, const void *out, void *in, size_t bytes, int peer, int tag)
{
    env_type_send(type, out, bytes, peer, tag);
    env_type_recv(type, in, bytes, peer, tag);
}

static inline void env_barrier(void)
{
    if (env_my_size > 1)
        env_check(pvm_barrier((char *)(uintptr_t)env_group, env_my_size), "pvm_barrier");
}

/* Broadcasts along a binomial tree over direct routes. */
static void env_broadcast_tree(void *buf, size_t bytes, int root)
{
    int size = env_my_size, place = (env_my_rank + size - root) % size, bit = 1;
    while (bit < size && !(place & bit))
        bit <<= 1;
    if (place)
        env_recv(buf, bytes, (place - bit + root) % size, TAG_GROUP);
    for (bit >>= 1; bit; bit >>= 1)
        if (place + bit < size)
            env_send(buf, bytes, (place + bit + root) % size, TAG_GROUP);
}

/* Broadcasts. The group call, which goes through the daemon, was faster from 32 tasks on (270 us against 700 us on 2
 * processors), sends along a tree with fewer tasks (25 us against 40 us with 4 tasks). */
static inline void env_broadcast(void *buf, size_t bytes, int root)
{
    if (env_my_size <= 8) {
        env_broadcast_tree(buf, bytes, root);
    } else if (env_my_rank == root) {
        pvm_initsend(PvmDataInPlace);
        env_check(pvm_pkbyte(buf, (int)bytes, 1), "pvm_pkbyte");
        env_check(pvm_bcast((char *)(uintptr_t)env_group, TAG_GROUP), "pvm_bcast");
    } else {
        env_recv(buf, bytes, root, TAG_GROUP);
    }
}

static inline void env_reduce_to_all(void (*combine)(int *, void *, void *, int *, int *), const double *in,
                                     double *out, size_t count)
{
    memcpy(out, in, count * sizeof(double));
    if (env_my_size == 1)
        return;
    env_check(pvm_reduce(combine, out, (int)count, PVM_DOUBLE, TAG_GROUP, (char *)(uintptr_t)env_group, 0),
              "pvm_reduce");
    env_broadcast_tree(out, count * sizeof(double), 0);
}

static inline void env_sum(const double *in, double *out, size_t count)
{
    env_reduce_to_all(PvmSum, in, out, count);
}

static inline void env_product(const double *in, double *out, size_t count)
{
    env_reduce_to_all(PvmProduct, in, out, count);
}

static inline void env_max(const double *in, double *out, size_t count)
{
    env_reduce_to_all(PvmMax, in, out, count);
}

static inline void env_concatenation(const void *in, size_t bytes, void *out)
{
    if (env_my_size == 1) {
        memcpy(out, in, bytes);
        return;
    }
    env_check(pvm_gather(out, (void *)(uintptr_t)in, (int)bytes, PVM_BYTE, TAG_GROUP,
                         (char *)(uintptr_t)env_group, 0),
              "pvm_gather");
    env_broadcast_tree(out, bytes * (size_t)env_my_size, 0);
}

static inline void env_complete_exchange(const void *in, size_t bytes, void *out)
{
    int size = env_my_size;
    memcpy((char *)out + (size_t)env_my_rank * bytes, (const char *)in + (size_t)env_my_rank * bytes, bytes);
    for (int d = 1; d < size; d++) {
        int to = (env_my_rank + d) % size, from = (env_my_rank + size - d) % size;
        env_send((const char *)in + (size_t)to * bytes, bytes, to, TAG_GROUP);
        env_recv((char *)out + (size_t)from * bytes, bytes, from, TAG_GROUP);
    }
}

#define ENV_VECTORS

/* Sends a vector that PVM packs: it takes words at the given stride. */
static inline void env_vector_send(const void *buf, size_t stride, size_t words, int to, int tag)
{
    int apart = (int)(stride / sizeof(int));
    env_check(pvm_initsend(PvmDataRaw), "pvm_initsend");
    env_check(pvm_pkint((int *)(uintptr_t)buf, (int)words, apart), "pvm_pkint");
    env_check(pvm_send(env_tids[to], tag), "pvm_send");
}

static inline void env_vector_recv(void *buf, size_t stride, size_t words, int from, int tag)
{
    env_check(pvm_recv(env_tids[from], tag), "pvm_recv");
    env_check(pvm_upkint(buf, (int)words, (int)(stride / sizeof(int))), "pvm_upkint");
}

static inline void env_vector_exchange(const void *out, void *in, size_t stride, size_t words, int peer, int tag)
{
    env_vector_send(out, stride, words, peer, tag);
    env_vector_recv(in, stride, words, peer, tag);
}

/* The task that was not spawned is the host. */
#define ENV_HOSTS

static inline void env_host_init(int *argc, char ***argv)
{
    (void)argc;
    env_hosted = 1;
    env_start(*argv);
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
    env_send(out, bytes, peer, tag);
    env_recv(in, bytes, peer, tag);
}

static inline void env_host_broadcast(void *buf, size_t bytes)
{
    if (env_my_rank != 0) {
        env_recv(buf, bytes, 0, TAG_GROUP);
        return;
    }
    env_check(pvm_initsend(PvmDataInPlace), "pvm_initsend");
    env_check(pvm_pkbyte(buf, (int)bytes, 1), "pvm_pkbyte");
    env_check(pvm_mcast(env_tids + 1, env_my_size - 1, TAG_GROUP), "pvm_mcast");
}

#define ENV_PACKS
#define ENV_PACKS_TYPES
#define ENV_PACKS_DEFAULT

static inline void env_pack_send(enum env_encoding encoding, enum env_type type, const void *buf, size_t bytes, int to,
                                 int tag)
{
    static const int encodings[] = {PvmDataDefault, PvmDataRaw, PvmDataInPlace};
    void *data = (void *)(uintptr_t)buf;
    env_check(pvm_initsend(encodings[encoding]), "pvm_initsend");
    switch (type) {
    case ENV_BYTE:
        env_check(pvm_pkbyte(data, (int)bytes, 1), "pvm_pkbyte");
        break;
    case ENV_INT:
        env_check(pvm_pkint(data, env_elements(type, bytes), 1), "pvm_pkint");
        break;
    case ENV_FLOAT:
        env_check(pvm_pkfloat(data, env_elements(type, bytes), 1), "pvm_pkfloat");
        break;
    case ENV_DOUBLE:
        env_check(pvm_pkdouble(data, env_elements(type, bytes), 1), "pvm_pkdouble");
        break;
    }
    env_check(pvm_send(env_tids[to], tag), "pvm_send");
}

static inline void env_unpack(enum env_type type, void *buf, size_t bytes)
{
    switch (type) {
    case ENV_BYTE:
        env_check(pvm_upkbyte(buf, (int)bytes, 1), "pvm_upkbyte");
        break;
    case ENV_INT:
        env_check(pvm_upkint(buf, env_elements(type, bytes), 1), "pvm_upkint");
        break;
    case ENV_FLOAT:
        env_check(pvm_upkfloat(buf, env_elements(type, bytes), 1), "pvm_upkfloat");
        break;
    case ENV_DOUBLE:
        env_check(pvm_upkdouble(buf, env_elements(type, bytes), 1), "pvm_upkdouble");
        break;
    }
}

static inline void env_recv_unpack(enum env_encoding encoding, enum env_type type, void *buf, size_t bytes, int from,
                                   int tag)
{
    (void)encoding;
    env_check(pvm_recv(env_tids[from], tag), "pvm_recv");
    env_unpack(type, buf, bytes);
}

static inline void env_poll(void *buf, size_t bytes, int from, int tag)
{
    int message;
    do {
        message = pvm_nrecv(env_tids[from], tag);
        env_check(message, "pvm_nrecv");
    } while (message == 0);
    env_unpack(ENV_BYTE, buf, bytes);
}

#define ENV_SPAWNS
#define ENV_WATCHES
enum { TAG_ANSWER = 102, TAG_ORDER = 103, TAG_END = 104, MAX_CHILDREN = 4096 };

static int env_children[MAX_CHILDREN], env_started;

static inline void env_join(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    env_check(pvm_mytid(), "pvm_mytid (is a PVM daemon running?)");
    env_choose_route();
    env_my_size = 1;
}

static inline void env_spawn(int count, char *argument)
{
    char path[4096], *arguments[] = {argument, NULL};
    env_program(path, sizeof path);
    if (count > MAX_CHILDREN - env_started)
        env_fail("pvm_spawn", "this program keeps at most 4096 ids");
    if (pvm_spawn(path, arguments, PvmTaskDefault, "", count, env_children + env_started) != count)
        env_fail("pvm_spawn", "not all tasks could be started");
    env_started += count;
}

static inline void env_hear(void *buf, size_t bytes, int child)
{
    env_check(pvm_precv(env_children[child], TAG_ANSWER, buf, (int)bytes, PVM_BYTE, NULL, NULL, NULL), "pvm_precv");
}

static inline void env_answer(const void *buf, size_t bytes)
{
    env_check(pvm_psend(pvm_parent(), TAG_ANSWER, (char *)(uintptr_t)buf, (int)bytes, PVM_BYTE), "pvm_psend");
}

static inline void env_obey(void *buf, size_t bytes)
{
    env_check(pvm_precv(pvm_parent(), TAG_ORDER, buf, (int)bytes, PVM_BYTE, NULL, NULL, NULL), "pvm_precv");
}

static inline void env_watch(int child)
{
    env_check(pvm_notify(PvmTaskExit, TAG_END, 1, env_children + child), "pvm_notify");
}

static inline int env_await_end(void)
{
    int tid = 0;
    env_check(pvm_recv(-1, TAG_END), "pvm_recv");
    env_check(pvm_upkint(&tid, 1, 1), "pvm_upkint");
    for (int child = 0; child < env_started; child++)
        if (tid == env_children[child])
            return child;
    env_fail("pvm_notify", "an event that is not the end of a child");
}
