/* One frame for all hosts, against a frame or a TCP message for each: a prototype without encryption, requests and losses.
 *
 * frames BOARD RANK OPERATION WAY WAIT ROUNDS, once on each of 8 hosts (measure.sh makes them). BOARD is a file that all map: there they meet
 * before and after a run, and rank 0 prints the time of a round.
 *
 * broadcast: from each host in turn to all others, BYTES bytes; the next root must have heard the one before, as in the race. By tcp and frames
 * a message for each host, in a binomial tree (tcp, frames) or all from the root (-star); by multicast one frame from the root.
 * barrier: in three rounds a host tells the one 1, 2, 4 further on, as Regatta does (-spread); or all tell host 0, which releases all, by a
 * message for each (tcp, frames) or one frame for all (tcp-multicast: told by TCP; multicast: told by frames).
 * WAIT: sleep, in the kernel until a socket can be read; waiter, as tasks of Regatta sleep; spin, with yields. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { HOSTS = 8, BYTES = 64, HEAD = 14, SIZE = HEAD + 2 + BYTES + 42, TYPE = 0x88b5, PLACE = 2048, PLACES = 128 };

struct board {
    _Atomic int met[8];
    unsigned char mac[HOSTS][6];
    _Atomic int lost;
};

static struct board *board;
static int me, packet, events, tcp[HOSTS];
static char *ring;
static int at;
static long heard[HOSTS], wanted[HOSTS];
static int spins, has_waiter;

static void fail(int line)
{
    fprintf(stderr, "host %d, line %d: %s\n", me, line, strerror(errno));
    exit(1);
}

#define CHECK(call) do { if ((call) < 0) fail(__LINE__); } while (0)

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static void meet(int place)
{
    atomic_fetch_add(&board->met[place], 1);
    while (atomic_load(&board->met[place]) < HOSTS)
        usleep(100);
}

static void open_packet(void)
{
    /* Our type only; and of multicast frames not our own. */
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TYPE, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0xffff), BPF_STMT(BPF_RET | BPF_K, 0)};
    struct sock_fprog filter = {4, code};
    struct tpacket_req places = {4096, PLACES * PLACE / 4096, PLACE, PLACES};
    struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_protocol = htons(TYPE)};
    struct packet_mreq group = {.mr_type = PACKET_MR_MULTICAST, .mr_alen = 6, .mr_address = {3, 0, 0x52, 0x47, 0x54, 1}};
    struct ifreq name = {.ifr_name = "eth0"};
    int version = TPACKET_V2, one = 1;
    CHECK(packet = socket(AF_PACKET, SOCK_RAW, 0));
    CHECK(ioctl(packet, SIOCGIFHWADDR, &name));
    memcpy(board->mac[me], name.ifr_hwaddr.sa_data, 6);
    to.sll_ifindex = group.mr_ifindex = if_nametoindex("eth0");
    CHECK(setsockopt(packet, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter));
    CHECK(setsockopt(packet, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one));
    CHECK(setsockopt(packet, SOL_PACKET, PACKET_VERSION, &version, sizeof version));
    CHECK(setsockopt(packet, SOL_PACKET, PACKET_RX_RING, &places, sizeof places));
    ring = mmap(NULL, PLACES * PLACE, PROT_READ | PROT_WRITE, MAP_SHARED, packet, 0);
    CHECK(bind(packet, (struct sockaddr *)&to, sizeof to));
    CHECK(setsockopt(packet, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &group, sizeof group));
}

static void watch(int socket, int number)
{
    struct epoll_event event = {EPOLLIN, {.u32 = number}};
    CHECK(epoll_ctl(events, EPOLL_CTL_ADD, socket, &event));
}

/* A connection between each two. */
static void open_tcp(void)
{
    int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(5000)};
    CHECK(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one));
    CHECK(bind(listener, (struct sockaddr *)&address, sizeof address));
    CHECK(listen(listener, HOSTS));
    meet(0);
    for (int peer = 0; peer < me; peer++) {
        char text[20], mine = me;
        snprintf(text, sizeof text, "10.78.0.%d", peer + 1);
        address.sin_addr.s_addr = inet_addr(text);
        CHECK(tcp[peer] = socket(AF_INET, SOCK_STREAM, 0));
        CHECK(connect(tcp[peer], (struct sockaddr *)&address, sizeof address));
        CHECK(write(tcp[peer], &mine, 1));
    }
    for (int more = me + 1; more < HOSTS; more++) {
        char peer;
        int socket = accept(listener, NULL, NULL);
        CHECK(socket);
        CHECK(read(socket, &peer, 1) - 1);
        tcp[(int)peer] = socket;
    }
    for (int peer = 0; peer < HOSTS; peer++)
        if (peer != me) {
            CHECK(setsockopt(tcp[peer], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one));
            fcntl(tcp[peer], F_SETFL, O_NONBLOCK);
            watch(tcp[peer], peer);
        }
}

static void send_frame(int peer)
{
    unsigned char frame[SIZE] = {3, 0, 0x52, 0x47, 0x54, 1};
    if (peer >= 0)
        memcpy(frame, board->mac[peer], 6);
    memcpy(frame + 6, board->mac[me], 6);
    frame[12] = TYPE >> 8, frame[13] = TYPE & 255, frame[14] = me;
    CHECK(send(packet, frame, SIZE, 0));
}

static void send_tcp(int peer)
{
    char message[BYTES] = {0};
    CHECK(send(tcp[peer], message, BYTES, 0));
}

static int look_at_ring(void)
{
    int any = 0;
    for (;;) {
        struct tpacket2_hdr *head = (void *)(ring + at * PLACE);
        if (!(__atomic_load_n(&head->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
            return any;
        if (head->tp_status & TP_STATUS_LOSING)
            board->lost = 1;
        heard[((unsigned char *)head)[head->tp_mac + HEAD]]++;
        __atomic_store_n(&head->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
        at = (at + 1) % PLACES;
        any = 1;
    }
}

/* Takes what has come, and first waits so many milliseconds for it; whether something had. */
static int look_at_all(int limit)
{
    static long partial[HOSTS];
    struct epoll_event come[HOSTS + 1];
    int count = epoll_wait(events, come, HOSTS + 1, limit);
    CHECK(count);
    for (int i = 0; i < count; i++) {
        char bytes[4096];
        int from = come[i].data.u32;
        if (from == HOSTS)
            continue;
        ssize_t n = recv(tcp[from], bytes, sizeof bytes, 0);
        if (n > 0)
            partial[from] += n;
        heard[from] += partial[from] / BYTES;
        partial[from] %= BYTES;
    }
    return count > 0;
}

/* As Regatta sleeps: on a word in memory, which a thread changes that waits for the sockets meanwhile. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int armed;
static _Atomic int bell;

static void *waiter(void *nothing)
{
    for (;;) {
        struct pollfd all = {events, POLLIN, 0};
        pthread_mutex_lock(&lock);
        while (!armed)
            pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
        poll(&all, 1, -1);
        pthread_mutex_lock(&lock);
        armed = 0;
        pthread_mutex_unlock(&lock);
        atomic_fetch_add(&bell, 1);
        syscall(SYS_futex, &bell, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
    return nothing;
}

static void sleep_on_bell(int peer)
{
    struct timespec limit = {5, 0};
    int seen = atomic_load(&bell);
    pthread_mutex_lock(&lock);
    if (!armed)
        pthread_cond_signal(&changed);
    armed = 1;
    pthread_mutex_unlock(&lock);
    look_at_all(0);
    look_at_ring();
    if (heard[peer] < wanted[peer] && syscall(SYS_futex, &bell, FUTEX_WAIT, seen, &limit, NULL, 0) < 0 && errno == ETIMEDOUT)
        fail(__LINE__);
}

/* Waits until `peer` has said something more. */
static void await(int peer)
{
    wanted[peer]++;
    while (look_at_ring(), heard[peer] < wanted[peer]) {
        int some = look_at_all(spins || has_waiter ? 0 : 5000);
        look_at_ring();
        if (heard[peer] >= wanted[peer])
            return;
        if (has_waiter)
            sleep_on_bell(peer);
        else if (spins && !some)
            sched_yield();
        else if (!some)
            fail(__LINE__);
    }
}

static void tell(int peer, int by_tcp)
{
    by_tcp ? send_tcp(peer) : send_frame(peer);
}

static void broadcast(int root, int by_tcp, int by_one, int star)
{
    int place = (me + HOSTS - root) % HOSTS, bit = 1;
    if (me == root && by_one)
        send_frame(-1);
    for (int after = 1; me == root && star && after < HOSTS; after++)
        tell((me + after) % HOSTS, by_tcp);
    if (me != root && (by_one || star))
        await(root);
    if (by_one || star)
        return;
    if (place)
        await(((place & (place - 1)) + root) % HOSTS);
    while (bit < HOSTS && !(place & bit))
        bit *= 2;
    for (bit /= 2; bit; bit /= 2)
        if (place + bit < HOSTS)
            tell((place + bit + root) % HOSTS, by_tcp);
}

static void barrier(int by_tcp, int by_one, int spread)
{
    if (spread) {
        for (int distance = 1; distance < HOSTS; distance *= 2) {
            tell((me + distance) % HOSTS, by_tcp);
            await((me + HOSTS - distance) % HOSTS);
        }
        return;
    }
    if (me) {
        tell(0, by_tcp);
        await(0);
        return;
    }
    for (int peer = 1; peer < HOSTS; peer++)
        await(peer);
    if (by_one)
        send_frame(-1);
    for (int peer = 1; peer < HOSTS && !by_one; peer++)
        tell(peer, by_tcp);
}

int main(int count, char **words)
{
    if (count < 7)
        return 2;
    me = atoi(words[2]);
    int file = open(words[1], O_RDWR);
    CHECK(file);
    board = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    const char *way = words[4];
    int is_barrier = !strcmp(words[3], "barrier");
    int by_tcp = !strncmp(way, "tcp", 3), by_one = strstr(way, "multi") != NULL, spread = strstr(way, "spread") != NULL,
        star = strstr(way, "star") != NULL;
    spins = !strcmp(words[5], "spin");
    has_waiter = !strcmp(words[5], "waiter");
    long rounds = atol(words[6]);
    CHECK(events = epoll_create1(0));
    open_packet();
    watch(packet, HOSTS);
    open_tcp();
    if (has_waiter) {
        pthread_t thread;
        pthread_create(&thread, NULL, waiter, NULL);
    }
    meet(1);
    for (long i = 0; i < 200 + rounds; i++) {
        static double begin;
        if (i == 200)
            begin = now();
        if (is_barrier)
            barrier(by_tcp, by_one, spread);
        else
            broadcast(i % HOSTS, by_tcp, by_one, star);
        if (i + 1 == 200 + rounds && me == 0)
            printf("%s,%s,%s,%.2f%s\n", words[3], way, words[5], (now() - begin) / rounds, board->lost ? ",lost" : "");
    }
    meet(2);
    return 0;
}
