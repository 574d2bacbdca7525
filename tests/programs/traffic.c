/*
 * Random traffic, planned from a seed that all tasks share.
 *
 *     PROGRAM random SEED ROUNDS
 *
 * A round is a plan: messages in one global order, each with its source, destination, context, tag, length and ways to
 * send and to receive it. Every task does its part in that order, so no mix of blocking calls can deadlock. The
 * exception is a synchronous send: it must not wait for a receive that may take a later message of another task, so it
 * is nonblocking in that case. A destination has one rule per context and round that says which of source and tag its
 * receives leave open. That divides its messages into classes, with as many receives as messages in each. A receive may
 * get any message of its class, except that those of one source arrive in order. So a receive's source determines which
 * message it must be, and each must arrive exactly once. A barrier ends the round.
 */
#include "check.h"
#include <sched.h>

enum { TAGS = 12, CONTEXTS = 4, MESSAGES = 260, MAX_BYTES = 3 << 20 };
enum discipline { EXACT, ANY_SOURCE, ANY_TAG, ANY_BOTH, MASKED, ANY_MASKED, DISCIPLINES };
enum sending { SEND, SSEND, RSEND, ISEND, ISSEND, SENDV, ISENDV, LOAN, SENDINGS };
enum receiving { RECV, IRECV, RECVV, IRECVV, PROBED, PEEKED, LENT, RECEIVINGS };

struct message {
    int from, to, context, tag;
    size_t len;
    enum sending sending;
    enum receiving receiving;
    bool started;         /* the receive is posted before the send, for a message to itself */
    bool short_of_room;   /* the receive's buffer is too small for the longest message of its class */
    uint64_t paint, dice; /* seeds of its content and of further choices */
    bool received;
    uint64_t number; /* its index among those with the same source, destination and context */
};

/* A random memory layout: n views of one allocation, whose gaps must not be changed. */
struct layout {
    unsigned char *memory;
    size_t all;
    rg_view views[3];
    int n;
};

/* A send or receive in progress, or a completed receive. */
struct act {
    rg_request request;
    rg_status status;
    int code, message;
    size_t capacity;
    struct layout layout;
    unsigned char *block; /* from rg_loan_recv */
    bool is_receive;
};

static struct message plan[MESSAGES];
static struct act acts[2 * MESSAGES];
static int acted;
static rg_group groups[CONTEXTS];
static enum discipline disciplines[CONTEXTS][16];
static int masks[CONTEXTS][16];
static uint64_t seed;

static uint64_t die(uint64_t *state, uint64_t sides) { return next_random(state) % sides; }

/* Returns a task's rank in a context: world, a duplicate, the world in reverse order, or every second task. */
static int rank_in(int context, int task)
{
    return context == 2 ? size - 1 - task : context == 3 ? task / 2 : task;
}
static int task_of(int context, int rank)
{
    return context == 2 ? size - 1 - rank : context == 3 ? 2 * rank + me % 2 : rank;
}

static size_t some_length(uint64_t *state)
{
    static const size_t edges[] = {8, 24, 48, 56, 64, 1 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10,
                                   64 << 10, 128 << 10, 256 << 10};
    switch (die(state, 16)) {
    case 0:
        return 0;
    case 1: /* large, but seldom the largest */
        return die(state, 5) ? die(state, 1 << 20) : die(state, MAX_BYTES);
    case 2:
    case 3:
        return die(state, 64 << 10);
    case 4:
    case 5:
    case 6:
    case 7:
    case 8:
        return edges[die(state, sizeof edges / sizeof *edges)] + die(state, 3) - 1;
    default:
        return die(state, (uint64_t)2 << die(state, 13));
    }
}

static void make_plan(void)
{
    static const int tags[TAGS] = {0, 1, 2, 3, 4, 5, 6, 7, 0x10000, 0x10001, 0x40000000, 0x7fffffff};
    static uint64_t numbers[CONTEXTS][16][16];
    uint64_t state = seed;
    memset(numbers, 0, sizeof numbers);
    int few = 1 + (int)die(&state, TAGS);
    for (int context = 0; context < CONTEXTS; context++)
        for (int task = 0; task < size; task++) {
            disciplines[context][task] = (enum discipline)die(&state, DISCIPLINES);
            masks[context][task] = (int)(next_random(&state) & 0x40010007);
        }
    for (int i = 0; i < MESSAGES; i++) {
        struct message *m = &plan[i];
        m->context = (int)die(&state, CONTEXTS);
        m->from = (int)die(&state, (uint64_t)size);
        /* Bursts: often the same pair as before. */
        if (i > 0 && die(&state, 3) == 0) {
            m->context = plan[i - 1].context;
            m->from = plan[i - 1].from;
            m->to = plan[i - 1].to;
        } else if (m->context == 3) {
            uint64_t peers = (uint64_t)(size - m->from % 2 + 1) / 2;
            m->to = 2 * (int)die(&state, peers) + m->from % 2;
        } else {
            m->to = (int)die(&state, (uint64_t)size);
        }
        m->tag = tags[die(&state, (uint64_t)few)];
        m->len = some_length(&state);
        m->sending = (enum sending)die(&state, SENDINGS);
        enum discipline discipline = disciplines[m->context][m->to];
        bool one_source = discipline == EXACT || discipline == ANY_TAG || discipline == MASKED;
        if (m->sending == SSEND && (m->to == m->from || !one_source))
            m->sending = ISSEND;
        m->receiving = (enum receiving)die(&state, RECEIVINGS);
        m->started = m->receiving == IRECV || m->receiving == IRECVV;
        m->started = m->started && die(&state, 2);
        m->short_of_room = die(&state, 12) == 0;
        m->paint = next_random(&state);
        m->dice = next_random(&state);
        m->received = false;
        m->number = numbers[m->context][m->from][m->to]++;
    }
}

static enum discipline discipline_of(const struct message *m) { return disciplines[m->context][m->to]; }
static int mask_of(const struct message *m) { return masks[m->context][m->to]; }

/* Returns whether a receive that matches one message may match the other. */
static bool same_class(const struct message *a, const struct message *b)
{
    if (a->to != b->to || a->context != b->context)
        return false;
    bool source = a->from == b->from, tag = a->tag == b->tag;
    bool part = ((a->tag ^ b->tag) & mask_of(a)) == 0;
    switch (discipline_of(a)) {
    case EXACT: return source && tag;
    case ANY_SOURCE: return tag;
    case ANY_TAG: return source;
    case ANY_BOTH: return true;
    case MASKED: return source && part;
    default: return part;
    }
}

static struct layout make_layout(size_t len, bool strided, uint64_t dice)
{
    struct layout layout = {.n = 1};
    if (!strided) {
        layout.all = len;
        layout.memory = need(len);
        layout.views[0] = (rg_view){layout.memory, len, 1, (ptrdiff_t)len};
        return layout;
    }
    /* A first block; many small blocks, with gaps or backwards; the rest in one block. */
    size_t first = len ? die(&dice, len + 1) : 0;
    size_t block = 1 + die(&dice, die(&dice, 2) ? 9 : 3000), count = (len - first) / block;
    size_t gap = die(&dice, 2) ? die(&dice, 20) : 0, rest = len - first - block * count;
    bool backwards = die(&dice, 3) == 0;
    size_t middle = count ? count * (block + gap) : 0;
    layout.all = first + middle + rest + 3;
    layout.memory = need(layout.all);
    unsigned char *at = layout.memory + 1;
    layout.views[0] = (rg_view){at, first, 1, 0};
    at += first;
    ptrdiff_t stride = (ptrdiff_t)(block + gap);
    layout.views[1] = (rg_view){backwards && count ? at + (count - 1) * (block + gap) : at, block, count,
                                backwards ? -stride : stride};
    layout.views[2] = (rg_view){at + middle + 1, rest, 1, 0};
    layout.n = 3;
    return layout;
}

/* Copies between this layout and one contiguous block. */
static void move(const struct layout *layout, unsigned char *block, size_t len, bool out)
{
    for (int v = 0; v < layout->n; v++)
        for (size_t k = 0; k < layout->views[v].count && len > 0; k++) {
            unsigned char *at = (unsigned char *)layout->views[v].base + (ptrdiff_t)k * layout->views[v].stride;
            size_t n = layout->views[v].block < len ? layout->views[v].block : len;
            if (out)
                memcpy(block, at, n);
            else
                memcpy(at, block, n);
            block += n;
            len -= n;
        }
}

/* Paints the message, and writes its identification to the front if there is room. */
static void write_message(const struct message *m, unsigned char *block)
{
    uint64_t head[2] = {(uint64_t)m->from << 32 | (uint64_t)m->context, m->number};
    paint(block, m->len, m->paint);
    if (m->len >= sizeof head)
        memcpy(block, head, sizeof head);
}

static void start_send(int index)
{
    const struct message *m = &plan[index];
    rg_group group = groups[m->context];
    int to = rank_in(m->context, m->to);
    struct act *act = &acts[acted];
    *act = (struct act){.message = index};
    act->layout = make_layout(m->len, m->sending == SENDV || m->sending == ISENDV, m->dice);
    unsigned char *block = need(m->len);
    write_message(m, block);
    move(&act->layout, block, m->len, false);
    const unsigned char *bytes = act->layout.memory;
    switch (m->sending) {
    case SEND: OK(rg_send(bytes, m->len, to, m->tag, group)); break;
    case SSEND: OK(rg_ssend(bytes, m->len, to, m->tag, group)); break;
    case RSEND: OK(rg_rsend(bytes, m->len, to, m->tag, group)); break;
    case ISEND: OK(rg_isend(bytes, m->len, to, m->tag, group, &act->request)); break;
    case ISSEND: OK(rg_issend(bytes, m->len, to, m->tag, group, &act->request)); break;
    case SENDV: OK(rg_sendv(act->layout.views, act->layout.n, to, m->tag, group)); break;
    case ISENDV:
        OK(rg_isendv(act->layout.views, act->layout.n, to, m->tag, group, &act->request));
        break;
    default: {
        void *lent;
        OK(rg_loan(m->len, &lent));
        memcpy(lent, block, m->len);
        OK(rg_loan_send(lent, m->len, to, m->tag, group));
    }
    }
    free(block);
    if (act->request.id != 0) {
        acted++;
    } else {
        free(act->layout.memory);
    }
}

static void start_receive(int index)
{
    const struct message *m = &plan[index];
    rg_group group = groups[m->context];
    enum discipline discipline = discipline_of(m);
    bool open_source = discipline == ANY_SOURCE || discipline == ANY_BOTH || discipline == ANY_MASKED;
    bool masked = discipline == MASKED || discipline == ANY_MASKED;
    int from = open_source ? RG_ANY : rank_in(m->context, m->from);
    int tag = discipline == ANY_TAG || discipline == ANY_BOTH ? RG_ANY : m->tag;
    enum receiving receiving = m->receiving;
    if (masked)
        receiving = receiving == IRECV || receiving == IRECVV ? IRECV : RECV;
    struct act *act = &acts[acted++];
    *act = (struct act){.message = index, .is_receive = true};
    for (int i = 0; i < MESSAGES; i++)
        if (same_class(m, &plan[i]) && plan[i].len > act->capacity)
            act->capacity = plan[i].len;
    if (m->short_of_room)
        act->capacity = m->dice % (act->capacity + 1);
    if (receiving == PROBED || receiving == PEEKED) {
        int found = receiving == PROBED;
        if (found)
            OK(rg_probe(from, tag, group, &act->status));
        for (; !found; sched_yield())
            OK(rg_iprobe(from, tag, group, &found, &act->status));
        from = act->status.source;
        tag = act->status.tag;
        act->capacity = act->status.length;
    }
    act->layout = make_layout(act->capacity, receiving == RECVV || receiving == IRECVV, m->dice);
    memset(act->layout.memory, 0xee, act->layout.all);
    void *bytes = act->layout.memory;
    size_t room = act->capacity;
    check_line = __LINE__;
    if (receiving == LENT) {
        void *block = NULL;
        act->code = rg_loan_recv(&block, from, tag, group, &act->status);
        act->capacity = act->status.length;
        act->block = block;
    } else if (masked && receiving == RECV) {
        act->code = rg_recv_masked(bytes, room, from, tag, mask_of(m), group, &act->status);
    } else if (masked) {
        OK(rg_irecv_masked(bytes, room, from, tag, mask_of(m), group, &act->request));
    } else if (receiving == RECVV) {
        act->code = rg_recvv(act->layout.views, act->layout.n, from, tag, group, &act->status);
    } else if (receiving == IRECV) {
        OK(rg_irecv(bytes, room, from, tag, group, &act->request));
    } else if (receiving == IRECVV) {
        OK(rg_irecvv(act->layout.views, act->layout.n, from, tag, group, &act->request));
    } else {
        act->code = rg_recv(bytes, room, from, tag, group, &act->status);
    }
}

/* Determines which message a receive has got. Called in the order in which the receives were posted. */
static void judge(struct act *act)
{
    const struct message *asked = &plan[act->message];
    struct message *got = NULL;
    CHECK(act->code == RG_OK || act->code == RG_ERR_TRUNCATED);
    int from = task_of(asked->context, act->status.source);
    for (int i = 0; i < MESSAGES && got == NULL; i++)
        if (same_class(asked, &plan[i]) && plan[i].from == from && !plan[i].received)
            got = &plan[i];
    if (got == NULL)
        FAILED("one more message from task %d than it has sent", from);
    got->received = true;
    size_t kept = got->len < act->capacity ? got->len : act->capacity;
    unsigned char *is = need(kept), *should = need(got->len);
    write_message(got, should);
    if (act->block == NULL)
        move(&act->layout, is, kept, true);
    else
        memcpy(is, act->block, kept);
    size_t wrong = 0;
    while (wrong < kept && is[wrong] == should[wrong])
        wrong++;
    uint64_t head[2] = {0, 0};
    if (kept >= sizeof head)
        memcpy(head, is, sizeof head);
    if (act->status.tag != got->tag || act->status.length != got->len || wrong < kept ||
        (act->code == RG_ERR_TRUNCATED) != (got->len > act->capacity))
        FAILED("message %d, number %llu from task %d in context %d, sent by %d, received by %d: tag %d "
               "and not %d, length %zu and not %zu, code %d with room for %zu, right up to byte %zu of "
               "%zu; says it is number %llu from task %llu",
               (int)(got - plan), (unsigned long long)got->number, from, got->context,
               (int)got->sending, (int)asked->receiving, act->status.tag, got->tag,
               act->status.length, got->len, act->code, act->capacity, wrong, kept,
               (unsigned long long)head[1], (unsigned long long)(head[0] >> 32));
    /* Nothing may have been written outside of the message. */
    if (act->block == NULL) {
        memset(is, 0xee, kept);
        move(&act->layout, is, kept, false);
        for (size_t i = 0; i < act->layout.all; i++)
            CHECK(act->layout.memory[i] == 0xee);
    } else {
        OK(rg_loan_free(act->block));
    }
    free(is);
    free(should);
}

static void finished(struct act *act, int code, const rg_status *status)
{
    act->code = code;
    act->status = *status;
    if (!act->is_receive)
        CHECK(code == RG_OK);
    else
        CHECK(code == status->error);
}

/* Tests one of the requests in progress, or all of them. */
static void look(uint64_t *dice)
{
    if (acted == 0)
        return;
    rg_status status;
    struct act *act = &acts[die(dice, (uint64_t)acted)];
    int done = 0, at = -1;
    if (die(dice, 2)) {
        if (act->request.id == 0)
            return;
        int code = rg_test(&act->request, &done, &status);
        CHECK(done == (act->request.id == 0));
        if (done)
            finished(act, code, &status);
        return;
    }
    rg_request open[2 * MESSAGES];
    for (int i = 0; i < acted; i++)
        open[i] = acts[i].request;
    int code = rg_testany(acted, open, &at, &done, &status);
    if (done && at >= 0) {
        CHECK(open[at].id == 0);
        acts[at].request = open[at];
        finished(&acts[at], code, &status);
    }
}

/* Waits for all requests: together, one by one in any order, or for any. */
static void end_round(uint64_t *dice)
{
    static rg_request open[2 * MESSAGES];
    static rg_status statuses[2 * MESSAGES];
    uint64_t way = die(dice, 4);
    int done = 0, at = 0;
    for (int i = 0; i < acted; i++)
        open[i] = acts[i].request;
    if (way == 0) {
        rg_waitall(acted, open, statuses);
    } else if (way == 1) {
        while (!done)
            rg_testall(acted, open, &done, statuses);
    } else if (way == 2) {
        for (int i = acted - 1; i >= 0; i--)
            rg_wait(&open[i], &statuses[i]);
    } else {
        rg_status status;
        for (;;) {
            rg_waitany(acted, open, &at, &status);
            if (at < 0)
                break;
            statuses[at] = status;
        }
    }
    for (int i = 0; i < acted; i++) {
        CHECK(open[i].id == 0);
        if (acts[i].request.id != 0)
            finished(&acts[i], statuses[i].error, &statuses[i]);
    }
    for (int i = 0; i < acted; i++) {
        if (acts[i].is_receive)
            judge(&acts[i]);
        free(acts[i].layout.memory);
    }
    for (int i = 0; i < MESSAGES; i++)
        CHECK(plan[i].received == (plan[i].to == me));
    acted = 0;
}

static void play_round(void)
{
    static char name[60];
    snprintf(name, sizeof name, "TRAFFIC_SEED=%llu random", (unsigned long long)seed);
    check_scenario = name;
    check_patience(getenv("TRAFFIC_PATIENCE") ? (unsigned)atoi(getenv("TRAFFIC_PATIENCE")) : 150);
    make_plan();
    uint64_t dice = seed + (uint64_t)me * 77;
    for (int i = 0; i < MESSAGES; i++) {
        const struct message *m = &plan[i];
        bool first = m->to == me && m->from == me && m->started;
        if (first)
            start_receive(i);
        if (m->from == me)
            start_send(i);
        if (m->to == me && !first)
            start_receive(i);
        if (die(&dice, 4) == 0)
            look(&dice);
    }
    end_round(&dice);
    OK(rg_barrier(RG_WORLD));
}

static void random_traffic(void)
{
    const char *given = getenv("TRAFFIC_SEED");
    CHECK(arg_count == 2 && size <= 16);
    seed = strtoull(given ? given : args[0], NULL, 0);
    groups[0] = RG_WORLD;
    OK(rg_group_dup(RG_WORLD, &groups[1]));
    OK(rg_group_split(RG_WORLD, 0, -me, &groups[2]));
    OK(rg_group_split(RG_WORLD, me % 2, 0, &groups[3]));
    for (int context = 0; context < CONTEXTS; context++)
        CHECK(rg_rank(groups[context]) == rank_in(context, me));
    for (int rounds = atoi(args[1]); rounds > 0; rounds--, seed++)
        play_round();
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {{"random", random_traffic, false}, {NULL, NULL, false}};
    return check_main(argc, argv, scenarios);
}
