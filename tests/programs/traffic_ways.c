/*
 * Two tasks send to each other in every way, and complete in every way.
 *
 *     PROGRAM pairs SEND RECEIVE LENGTH COUNT [both]
 *     PROGRAM mixed SEED BATCHES
 *     PROGRAM to-and-fro COUNT
 *     PROGRAM while-there FILE PIPE
 *     PROGRAM path
 *
 * `pairs` sends COUNT messages of LENGTH bytes one way, or both ways at once. SEND and RECEIVE are one letter each: b
 * for a blocking call, w for a request and rg_wait, p for a request, rg_test and the descriptor; SEND may be q, eight
 * requests at a time.
 *
 * `mixed` plays batches that both tasks draw from the seed: one way, the other, or both at once. If both, all receives
 * are posted before anything is sent, so that no blocking send waits for another.
 *
 * `to-and-fro` sends COUNT messages of 8 bytes each way. An encrypted connection changes its keys after 8 388 608
 * records, and each message is one record, so 8 500 000 messages include a change. `while-there` does it until the
 * first task finds that FILE is gone, and opens PIPE when the first messages have arrived. `path` prints which path
 * each task's messages take.
 */
#include "check.h"

#include <inttypes.h>

enum { OPEN = 8, MAX_IN_BATCH = 40, MAX_BYTES = 200000 };

/* ---- one pair of ways ------------------------------------------------------------------------ */

static int fd = -1;

static void complete_by(char way, rg_request *request)
{
    if (way == 'p')
        await_by_fd(fd, request);
    else
        OK(rg_wait(request, NULL));
}

static void send_all(char way, size_t len, int count)
{
    unsigned char *bytes = need(len);
    rg_request open[OPEN] = {{0}};
    paint(bytes, len, 1);
    for (int i = 0; i < count; i++) {
        rg_request *request = &open[i % OPEN];
        if (way == 'b') {
            OK(rg_send(bytes, len, 1 - me, 1, RG_WORLD));
            continue;
        }
        if (request->id != 0)
            OK(rg_wait(request, NULL));
        OK(rg_isend(bytes, len, 1 - me, 1, RG_WORLD, request));
        if (way != 'q')
            complete_by(way, request);
    }
    OK(rg_waitall(OPEN, open, NULL));
    free(bytes);
}

static void receive_all(char way, size_t len, int count)
{
    unsigned char *bytes = need(len);
    for (int i = 0; i < count; i++) {
        /* Not each time, so that the sender gets ahead. */
        bool look = i % 50 == 0;
        if (look)
            memset(bytes, 0, len);
        if (way == 'b') {
            OK(rg_recv(bytes, len, 1 - me, 1, RG_WORLD, NULL));
        } else {
            rg_request request;
            OK(rg_irecv(bytes, len, 1 - me, 1, RG_WORLD, &request));
            complete_by(way, &request);
        }
        if (look && unpainted(bytes, len, 1) != len)
            FAILED("message %d is damaged", i);
    }
    free(bytes);
}

/* Both ways at once: one receive and one send are pending, and each is replaced when it is complete. */
static void both_at_once(char way, size_t len, int count)
{
    unsigned char *out = need(len), *in = need(len);
    paint(out, len, 1);
    for (int i = 0; i < count; i++) {
        rg_request receive, send;
        OK(rg_irecv(in, len, 1 - me, 1, RG_WORLD, &receive));
        if (way == 'b') {
            OK(rg_send(out, len, 1 - me, 1, RG_WORLD));
        } else {
            OK(rg_isend(out, len, 1 - me, 1, RG_WORLD, &send));
            complete_by(way, &send);
        }
        complete_by(way, &receive);
        if (unpainted(in, len, 1) != len)
            FAILED("message %d is damaged", i);
    }
    free(out);
    free(in);
}

static void pairs(void)
{
    CHECK(arg_count >= 4 && size == 2);
    size_t len = (size_t)atol(args[2]);
    int count = atoi(args[3]);
    OK(rg_fd(&fd));
    if (arg_count > 4)
        both_at_once(args[me][0], len, count);
    else if (me == 0)
        send_all(args[0][0], len, count);
    else
        receive_all(args[1][0], len, count);
    OK(rg_barrier(RG_WORLD));
}

/* ---- a mix ----------------------------------------------------------------------------------- */

enum sending { SEND, SSEND, BSEND, SENDV, LOAN, ISEND, ISSEND, ISENDV, SENDINGS };
enum receiving { IRECV, IRECVV, RECV, RECVV, LENT, RECEIVINGS };
enum completing { WAIT, TEST, POLL, COMPLETINGS };

struct message {
    size_t len;
    uint64_t paint;
    enum sending sending;
    enum receiving receiving;
    enum completing sent, received;
    bool later; /* its send is completed at the end of the batch */
};

/* A request in progress, with its memory: every second block of 16 bytes if it is strided. */
struct act {
    rg_request request;
    unsigned char *bytes, *apart;
    const struct message *message;
};

static size_t some_length(uint64_t *state)
{
    switch (next_random(state) % 8) {
    case 0: return next_random(state) % 64;
    case 1: return next_random(state) % 16384;
    case 2: return 16384 - 4 + next_random(state) % 9;
    case 3: return 65536 - 4 + next_random(state) % 9;
    case 4: return next_random(state) % MAX_BYTES;
    default: return 16385 + next_random(state) % 49152;
    }
}

static struct message draw(uint64_t *state, bool posted)
{
    struct message message = {
        .len = some_length(state) & ~(size_t)15,
        .paint = next_random(state),
        .sending = (enum sending)(next_random(state) % SENDINGS),
        .receiving = (enum receiving)(next_random(state) % (posted ? RECV : RECEIVINGS)),
        .sent = (enum completing)(next_random(state) % COMPLETINGS),
        .received = (enum completing)(next_random(state) % COMPLETINGS),
        .later = next_random(state) % 2 == 0,
    };
    /* This case needs a message that was sent as a loan, because rg_loan_recv takes no other. */
    if (message.receiving == LENT)
        message.sending = LOAN;
    return message;
}

static rg_view every_second(unsigned char *apart, size_t len)
{
    return (rg_view){.base = apart, .block = 16, .count = len / 16, .stride = 32};
}

static void complete(enum completing way, rg_request *request)
{
    int done = 0;
    switch (way) {
    case WAIT: OK(rg_wait(request, NULL)); break;
    case TEST:
        while (!done)
            OK(rg_test(request, &done, NULL));
        break;
    default: await_by_fd(fd, request); break;
    }
}

static void start_send(struct act *act, const struct message *message)
{
    size_t len = message->len;
    int to = 1 - me;
    *act = (struct act){.message = message, .bytes = need(len)};
    paint(act->bytes, len, message->paint);
    if (message->sending == SENDV || message->sending == ISENDV) {
        act->apart = need(2 * len);
        for (size_t at = 0; at < len; at += 16)
            memcpy(act->apart + 2 * at, act->bytes + at, 16);
    }
    rg_view view = every_second(act->apart, len);
    void *block;
    switch (message->sending) {
    case SEND: OK(rg_send(act->bytes, len, to, 1, RG_WORLD)); break;
    case SSEND: OK(rg_ssend(act->bytes, len, to, 1, RG_WORLD)); break;
    case BSEND: OK(rg_bsend(act->bytes, len, to, 1, RG_WORLD)); break;
    case SENDV: OK(rg_sendv(&view, 1, to, 1, RG_WORLD)); break;
    case ISEND: OK(rg_isend(act->bytes, len, to, 1, RG_WORLD, &act->request)); break;
    case ISSEND: OK(rg_issend(act->bytes, len, to, 1, RG_WORLD, &act->request)); break;
    case ISENDV: OK(rg_isendv(&view, 1, to, 1, RG_WORLD, &act->request)); break;
    default:
        OK(rg_loan(len, &block));
        memcpy(block, act->bytes, len);
        OK(rg_loan_send(block, len, to, 1, RG_WORLD));
        break;
    }
    if (act->request.id != 0 && !message->later)
        complete(message->sent, &act->request);
}

static void end_send(struct act *act)
{
    if (act->request.id != 0)
        complete(act->message->sent, &act->request);
    free(act->bytes);
    free(act->apart);
}

static void check_bytes(const struct act *act, const unsigned char *bytes)
{
    if (unpainted(bytes, act->message->len, act->message->paint) != act->message->len)
        FAILED("a message of %zu bytes is damaged", act->message->len);
}

static void start_receive(struct act *act, const struct message *message)
{
    size_t len = message->len;
    int from = 1 - me;
    *act = (struct act){.message = message, .bytes = need(len), .apart = need(2 * len)};
    rg_view view = every_second(act->apart, len);
    void *block;
    switch (message->receiving) {
    case RECV: OK(rg_recv(act->bytes, len, from, 1, RG_WORLD, NULL)); break;
    case RECVV: OK(rg_recvv(&view, 1, from, 1, RG_WORLD, NULL)); break;
    case IRECV: OK(rg_irecv(act->bytes, len, from, 1, RG_WORLD, &act->request)); break;
    case IRECVV: OK(rg_irecvv(&view, 1, from, 1, RG_WORLD, &act->request)); break;
    default:
        OK(rg_loan_recv(&block, from, 1, RG_WORLD, NULL));
        memcpy(act->bytes, block, len);
        OK(rg_loan_free(block));
        break;
    }
}

static void end_receive(struct act *act)
{
    size_t len = act->message->len;
    if (act->request.id != 0)
        complete(act->message->received, &act->request);
    if (act->message->receiving == RECVV || act->message->receiving == IRECVV)
        for (size_t at = 0; at < len; at += 16)
            memcpy(act->bytes + at, act->apart + 2 * at, 16);
    check_bytes(act, act->bytes);
    free(act->bytes);
    free(act->apart);
}

static void play(uint64_t *state)
{
    static struct message plan[2][MAX_IN_BATCH];
    struct act sends[MAX_IN_BATCH], receives[MAX_IN_BATCH];
    int direction = (int)(next_random(state) % 3), counts[2];
    for (int task = 0; task < 2; task++) {
        counts[task] = 1 + (int)(next_random(state) % MAX_IN_BATCH);
        for (int i = 0; i < MAX_IN_BATCH; i++)
            plan[task][i] = draw(state, direction == 2);
        if (direction == 1 - task)
            counts[task] = 0;
    }
    for (int i = 0; i < counts[1 - me]; i++) {
        start_receive(&receives[i], &plan[1 - me][i]);
        if (direction != 2 && plan[1 - me][i].later)
            end_receive(&receives[i]);
    }
    for (int i = 0; i < counts[me]; i++)
        start_send(&sends[i], &plan[me][i]);
    for (int i = 0; i < counts[me]; i++)
        end_send(&sends[i]);
    for (int i = 0; i < counts[1 - me]; i++)
        if (direction == 2 || !plan[1 - me][i].later)
            end_receive(&receives[i]);
}

static void mixed(void)
{
    CHECK(arg_count == 2 && size == 2);
    uint64_t seed = strtoull(args[0], NULL, 10);
    if (me == 0)
        printf("seed %llu\n", (unsigned long long)seed);
    OK(rg_fd(&fd));
    for (int left = atoi(args[1]); left > 0; left--) {
        uint64_t state = seed++;
        play(&state);
    }
    OK(rg_barrier(RG_WORLD));
}

/* ---- many ------------------------------------------------------------------------------------ */

enum { AT_A_TIME = 50 };

/* Sends this many messages each way, numbered from `first`. */
static void some_each_way(uint64_t first)
{
    check_patience(75);
    for (uint64_t i = first; i < first + AT_A_TIME; i++)
        OK(rg_send(&i, sizeof i, 1 - me, 1, RG_WORLD));
    for (uint64_t i = first; i < first + AT_A_TIME; i++) {
        uint64_t got = ~i;
        OK(rg_recv(&got, sizeof got, 1 - me, 1, RG_WORLD, NULL));
        CHECK(got == i);
    }
}

static void say_how_many(uint64_t count)
{
    if (me == 0)
        printf("%" PRIu64 " messages each way, and all arrived in their order\n", count);
}

static void to_and_fro(void)
{
    CHECK(arg_count == 1 && size == 2);
    uint64_t count = strtoull(args[0], NULL, 10), done = 0;
    for (; done < count; done += AT_A_TIME)
        some_each_way(done);
    say_how_many(done);
}

static void while_there(void)
{
    CHECK(arg_count == 2 && size == 2);
    uint64_t done = 0;
    for (bool more = true; more; done += AT_A_TIME) {
        some_each_way(done);
        if (me == 0 && done == 0) {
            FILE *begun = fopen(args[1], "w");
            CHECK(begun != NULL && fclose(begun) == 0);
        }
        more = access(args[0], F_OK) == 0;
        OK(rg_broadcast(&more, sizeof more, 0, RG_WORLD));
    }
    say_how_many(done);
}

static void path(void)
{
    char text[400];
    CHECK(size == 2);
    OK(rg_path(RG_WORLD, 1 - me, text, sizeof text));
    printf("path of %d: %s\n", me, text);
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"pairs", pairs, false},
        {"mixed", mixed, false},
        {"to-and-fro", to_and_fro, false},
        {"while-there", while_there, false},
        {"path", path, false},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
