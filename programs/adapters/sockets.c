/*
 * Adapter without a library over a network: what TCP allows between tasks on different hosts.
 *
 * env_init forks the tasks, one per host; each enters the network namespace of its host. Each pair of tasks has one
 * connection with TCP_NODELAY; both sides poll it and never sleep. There is no matching, no tag and no header: both
 * sides know the sizes, and messages are received in order. So this is not a usable library; it is the limit that
 * libraries are compared with. Collectives are direct exchanges of every pair, which is the best there is for two
 * tasks.
 *
 * With -DENV_SLEEPS sends and receives block in the kernel instead, as in programs like TTCP; exchanges of started
 * requests are polled even then.
 *
 * RACE_HOSTS names the hosts, as NAME=ADDRESS=PROCESSOR words. An empty name means that there is no namespace to enter.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "processes.h"

/* The port that each task listens on, or 0 if it does not listen yet. Used only at the start. */
struct ports {
    _Atomic uint32_t of[MAX_TASKS];
};

struct host {
    char name[64], address[64];
    int processor;
};

typedef struct {
    char *buf; /* NULL when done */
    size_t bytes;
    int peer, sends;
} env_request;

#ifdef ENV_SLEEPS
enum { ENV_WAIT = 0 };
#else
enum { ENV_WAIT = MSG_DONTWAIT };
#endif

static struct host env_hosts[MAX_TASKS];
static int env_sockets[MAX_TASKS];
static int env_crowded;

static inline void env_pause(void)
{
    if (__builtin_expect(env_crowded, 0))
        sched_yield();
}

static void env_read_hosts(void)
{
    const char *text = getenv("RACE_HOSTS");
    char words[4096], *rest = words;
    int hosts = 0;
    snprintf(words, sizeof words, "%s", text ? text : "");
    for (char *word; (word = strsep(&rest, " ")) != NULL && hosts < MAX_TASKS;) {
        struct host *host = &env_hosts[hosts];
        char *name = strsep(&word, "="), *address = strsep(&word, "=");
        if (!word)
            continue;
        snprintf(host->name, sizeof host->name, "%s", name);
        snprintf(host->address, sizeof host->address, "%s", address);
        host->processor = atoi(word);
        for (int before = 0; before < hosts; before++)
            env_crowded |= env_hosts[before].processor == host->processor;
        hosts++;
    }
    if (hosts != env_my_size)
        env_fail("limit", "RACE_HOSTS must name a host for each task");
}

/* Moves this task to its host's network namespace and processor. */
static void env_enter_host(void)
{
    struct host *host = &env_hosts[env_my_rank];
    char path[128];
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(host->processor, &one);
    sched_setaffinity(0, sizeof one, &one);
    if (!host->name[0])
        return;
    snprintf(path, sizeof path, "/run/netns/%s", host->name);
    int namespace = open(path, O_RDONLY | O_CLOEXEC);
    if (namespace < 0 || setns(namespace, CLONE_NEWNET) != 0)
        env_fail("setns", strerror(errno));
    close(namespace);
}

static void env_ready_socket(int socket, int peer)
{
    int yes = 1;
    if (setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) != 0)
        env_fail("setsockopt", strerror(errno));
    env_sockets[peer] = socket;
}

static void env_connect_all(struct ports *ports)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t length = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    inet_pton(AF_INET, env_hosts[env_my_rank].address, &at.sin_addr);
    if (listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof at) != 0 || listen(listener, MAX_TASKS) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &length) != 0)
        env_fail("listen", strerror(errno));
    atomic_store(&ports->of[env_my_rank], ntohs(at.sin_port));
    for (int peer = 0; peer < env_my_rank; peer++) {
        int32_t rank = env_my_rank;
        uint32_t port;
        while ((port = atomic_load(&ports->of[peer])) == 0)
            sched_yield();
        int one = socket(AF_INET, SOCK_STREAM, 0);
        at.sin_port = htons((uint16_t)port);
        inet_pton(AF_INET, env_hosts[peer].address, &at.sin_addr);
        if (one < 0 || connect(one, (struct sockaddr *)&at, sizeof at) != 0 ||
            send(one, &rank, sizeof rank, MSG_NOSIGNAL) != sizeof rank)
            env_fail("connect", strerror(errno));
        env_ready_socket(one, peer);
    }
    for (int others = env_my_rank + 1; others < env_my_size; others++) {
        int32_t rank = 0;
        int one = accept(listener, NULL, NULL);
        if (one < 0 || recv(one, &rank, sizeof rank, MSG_WAITALL) != sizeof rank || rank <= env_my_rank ||
            rank >= env_my_size)
            env_fail("accept", strerror(errno));
        env_ready_socket(one, rank);
    }
    close(listener);
}

static inline void env_init(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    env_count_tasks();
    env_read_hosts();
    struct ports *ports = mmap(NULL, sizeof *ports, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (ports == MAP_FAILED)
        env_fail("mmap", "no memory");
    env_fork_tasks();
    env_enter_host();
    env_connect_all(ports);
    munmap(ports, sizeof *ports);
}

static inline void env_version(char *text, size_t size)
{
    snprintf(text, size, "TCP sockets, %s, no library", ENV_WAIT ? "polled" : "waited for in the kernel");
}

static inline void env_path(char *text, size_t size)
{
    snprintf(text, size, "TCP between %s and %s", env_hosts[0].address, env_hosts[env_my_size > 1].address);
}

/* Sends or receives as many bytes as possible and returns their number. With `wait` 0 it blocks until there is at least
 * one. */
static inline size_t env_move(int sends, int peer, char *buf, size_t bytes, int wait)
{
    ssize_t n = sends ? send(env_sockets[peer], buf, bytes, wait | MSG_NOSIGNAL)
                      : recv(env_sockets[peer], buf, bytes, wait);
    if (__builtin_expect(n > 0, 1))
        return (size_t)n;
    if (n == 0)
        env_fail("recv", "the other task has ended");
    if (errno != EAGAIN && errno != EINTR)
        env_fail(sends ? "send" : "recv", strerror(errno));
    return 0;
}

static inline void env_transfer(int sends, int peer, char *buf, size_t bytes)
{
    char nothing = 0;
    /* An empty message is sent as one byte, since there are no headers. */
    if (bytes == 0)
        buf = &nothing, bytes = 1;
    for (size_t done = 0; done < bytes;) {
        size_t n = env_move(sends, peer, buf + done, bytes - done, ENV_WAIT);
        done += n;
        if (!n)
            env_pause();
    }
}

#define ENV_IN_ORDER

static inline void env_send(const void *buf, size_t bytes, int to, int tag)
{
    (void)tag;
    env_transfer(1, to, (char *)(uintptr_t)buf, bytes);
}

static inline void env_recv(void *buf, size_t bytes, int from, int tag)
{
    (void)tag;
    env_transfer(0, from, buf, bytes);
}

static char env_nothing;

static inline env_request env_request_of(char *buf, size_t bytes, int peer, int sends)
{
    return (env_request){bytes ? buf : &env_nothing, bytes ? bytes : 1, peer, sends};
}

static inline env_request env_isend(const void *buf, size_t bytes, int to, int tag)
{
    (void)tag;
    return env_request_of((char *)(uintptr_t)buf, bytes, to, 1);
}

static inline env_request env_irecv(void *buf, size_t bytes, int from, int tag)
{
    (void)tag;
    return env_request_of(buf, bytes, from, 0);
}

/* Waits for all requests. Requests to one peer in one direction complete in order, others in any order. */
static inline void env_waitall(int n, env_request *requests)
{
    int first = 0;
    while (first < n) {
        uint64_t blocked[2] = {0, 0}; /* bit masks of peers, for receiving and for sending */
        int moved = 0;
        for (int i = first; i < n; i++) {
            env_request *request = &requests[i];
            uint64_t peer = 1ull << request->peer;
            if (request->buf && !(blocked[request->sends] & peer)) {
                size_t part = env_move(request->sends, request->peer, request->buf, request->bytes, MSG_DONTWAIT);
                request->buf += part;
                request->bytes -= part;
                moved |= part != 0;
                if (!request->bytes)
                    request->buf = NULL;
                else
                    blocked[request->sends] |= peer;
            }
            if (i == first && !request->buf)
                first++;
        }
        if (!moved)
            env_pause();
    }
}

/* Sends block r of `in` (or `in` itself, with stride 0) to task r and receives block r of `out` from it; copies the own
 * block. */
static inline void env_all_pairs(const void *in, size_t stride, size_t bytes, void *out)
{
    env_request requests[2 * MAX_TASKS];
    int n = 0;
    memcpy((char *)out + (size_t)env_my_rank * bytes, (const char *)in + (size_t)env_my_rank * stride, bytes);
    for (int d = 1; d < env_my_size; d++) {
        int to = (env_my_rank + d) % env_my_size, from = (env_my_rank + env_my_size - d) % env_my_size;
        requests[n++] = env_isend((const char *)in + (size_t)to * stride, bytes, to, 0);
        requests[n++] = env_irecv((char *)out + (size_t)from * bytes, bytes, from, 0);
    }
    env_waitall(n, requests);
}

static inline void env_barrier(void)
{
    char mine = 0, all[MAX_TASKS];
    env_all_pairs(&mine, 0, 1, all);
}

static inline void env_broadcast(void *buf, size_t bytes, int root)
{
    env_request requests[MAX_TASKS];
    int n = 0;
    if (env_my_rank != root) {
        env_recv(buf, bytes, root, 0);
        return;
    }
    for (int r = 0; r < env_my_size; r++)
        if (r != root)
            requests[n++] = env_isend(buf, bytes, r, 0);
    env_waitall(n, requests);
}

enum env_operator { ENV_SUM, ENV_PRODUCT, ENV_MAX };

static inline double env_combined(double one, double other, enum env_operator operator)
{
    switch (operator) {
    case ENV_SUM:
        return one + other;
    case ENV_PRODUCT:
        return one * other;
    default:
        return other > one ? other : one;
    }
}

static inline void env_combine(const double *in, double *out, size_t count, enum env_operator operator)
{
    size_t bytes = count * sizeof *in;
    double small[MAX_TASKS], *all = count == 1 ? small : malloc(bytes * (size_t)env_my_size);
    if (!all)
        env_fail("malloc", "no memory");
    env_all_pairs(in, 0, bytes, all);
    memcpy(out, all, bytes);
    for (int r = 1; r < env_my_size; r++)
        for (size_t i = 0; i < count; i++)
            out[i] = env_combined(out[i], all[(size_t)r * count + i], operator);
    if (all != small)
        free(all);
}

static inline void env_sum(const double *in, double *out, size_t count)
{
    env_combine(in, out, count, ENV_SUM);
}

static inline void env_product(const double *in, double *out, size_t count)
{
    env_combine(in, out, count, ENV_PRODUCT);
}

static inline void env_max(const double *in, double *out, size_t count)
{
    env_combine(in, out, count, ENV_MAX);
}

static inline void env_concatenation(const void *in, size_t bytes, void *out)
{
    env_all_pairs(in, 0, bytes, out);
}

static inline void env_complete_exchange(const void *in, size_t bytes, void *out)
{
    env_all_pairs(in, bytes, bytes, out);
}
