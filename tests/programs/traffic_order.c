/*
 * Order and fairness: messages of one task never overtake each other, whatever their sizes and layouts; a receive from
 * any source neglects none of many senders; and each of many identical receives gets its message.
 */
#include "check.h"

enum { TURNS = 12, CYCLES = 25, FLOOD_TAG = 1, STOP_TAG = 2, LAST_TAG = 3 };

/* One turn: small after large, large after small, strided after contiguous, at the size limits of every path. */
static const size_t lengths[TURNS] = {8, 300000, 0, 49, 8193, 48, 1 << 20, 8192, 8191, 262144, 262145, 1};

static void send_turn(int turn, int number, rg_request *request)
{
    size_t len = lengths[turn];
    static unsigned char block[2 << 20];
    OK(rg_wait(request, NULL)); /* of the previous turn, so that the block may be reused */
    if (turn % 3 == 2 && len % 2 == 0 && len > 0) {
        /* Every second piece of a few bytes, so that the message is sent in pieces. */
        unsigned char *dense = need(len);
        size_t piece = len % 4 == 0 ? 4 : 2;
        paint(dense, len, (uint64_t)number);
        for (size_t at = 0; at < len; at += piece)
            memcpy(block + 2 * at, dense + at, piece);
        free(dense);
        rg_view view = {block, piece, len / piece, 2 * (ptrdiff_t)piece};
        OK(rg_isendv(&view, 1, 0, 5, RG_WORLD, request));
        return;
    }
    paint(block, len, (uint64_t)number);
    if (turn % 4 == 1)
        OK(rg_issend(block, len, 0, 5, RG_WORLD, request));
    else
        OK(rg_isend(block, len, 0, 5, RG_WORLD, request));
}

/* Receives are posted early, late, and from any source: each task's messages must arrive in order. */
static void overtaking(void)
{
    enum { ALL = TURNS * CYCLES, WINDOW = 5 };
    if (me != 0) {
        rg_request request = RG_REQUEST_NULL;
        for (int i = 0; i < ALL; i++)
            send_turn(i % TURNS, i, &request);
        OK(rg_wait(&request, NULL));
        return;
    }
    int *next = calloc((size_t)size, sizeof *next), open = 0, left = ALL * (size - 1), posted = 0;
    rg_request requests[WINDOW];
    unsigned char *buffers[WINDOW];
    for (int i = 0; i < WINDOW; i++)
        buffers[i] = need(1 << 20);
    for (int taken = 0; taken < left; taken++) {
        /* Posts a few receives in advance, then none for a while, and so on. */
        while (open < WINDOW && posted < left && (taken / 40 % 2 == 0 || open == 0)) {
            int slot = posted++ % WINDOW;
            open++;
            OK(rg_irecv(buffers[slot], 1 << 20, RG_ANY, 5, RG_WORLD, &requests[slot]));
        }
        rg_status status;
        int slot = taken % WINDOW;
        OK(rg_wait(&requests[slot], &status));
        open--;
        int number = next[status.source]++;
        size_t len = lengths[number % TURNS];
        if (status.length != len || unpainted(buffers[slot], len, (uint64_t)number) != len)
            FAILED("not message %d of task %d: length %zu", number, status.source, status.length);
    }
    for (int task = 1; task < size; task++)
        CHECK(next[task] == ALL);
    for (int i = 0; i < WINDOW; i++)
        free(buffers[i]);
    free(next);
}

/* All other tasks send without end. Each of them must be received from again and again. */
static void fairness(void)
{
    static unsigned char block[4096];
    int round = 0, found = 0;
    if (me != 0) {
        for (; !found; round++) {
            memcpy(block, &round, sizeof round);
            OK(rg_send(block, sizeof block, 0, FLOOD_TAG, RG_WORLD));
            OK(rg_iprobe(0, STOP_TAG, RG_WORLD, &found, NULL));
        }
        OK(rg_recv(NULL, 0, 0, STOP_TAG, RG_WORLD, NULL));
        OK(rg_send(&round, sizeof round, 0, LAST_TAG, RG_WORLD));
        return;
    }
    enum { OFTEN = 100 };
    int *heard = calloc((size_t)size, sizeof *heard), satisfied = 1, last = 0;
    rg_status status;
    long received = 0;
    for (; satisfied < size; received++) {
        OK(rg_recv(block, sizeof block, RG_ANY, FLOOD_TAG, RG_WORLD, &status));
        memcpy(&round, block, sizeof round);
        CHECK(round == heard[status.source]);
        satisfied += ++heard[status.source] == OFTEN;
        if (received > 2000000)
            FAILED("after %ld messages only %d of %d senders were heard %d times", received,
                   satisfied - 1, size - 1, OFTEN);
    }
    for (int task = 1; task < size; task++)
        OK(rg_send(NULL, 0, task, STOP_TAG, RG_WORLD));
    while (last < size - 1) {
        OK(rg_recv(block, sizeof block, RG_ANY, RG_ANY, RG_WORLD, &status));
        memcpy(&round, block, sizeof round);
        CHECK(round == heard[status.source]);
        heard[status.source]++;
        last += status.tag == LAST_TAG;
    }
    free(heard);
}

/* One task's messages fill the buffer of a task that waits for another's message, which must still arrive. */
static void flooded(void)
{
    enum { COUNT = 200 };
    static unsigned char block[4096];
    CHECK(size == 3);
    if (me == 1) {
        for (int i = 0; i < COUNT; i++)
            OK(rg_send(block, sizeof block, 0, 1, RG_WORLD));
    } else if (me == 2) {
        be_away(0.3); /* after task 1 has filled the buffer */
        OK(rg_send(block, 1, 0, 2, RG_WORLD));
    } else {
        rg_status status;
        OK(rg_recv(block, sizeof block, 2, 2, RG_WORLD, &status));
        CHECK(status.source == 2 && status.length == 1);
        for (int i = 0; i < COUNT; i++)
            OK(rg_recv(block, sizeof block, 1, 1, RG_WORLD, NULL));
    }
}

/*
 * crowded HOW: messages that need no buffer space for their bytes (loans, or empty synchronous ones), as many as a task
 * accepts.
 */
static void crowded(void)
{
    enum { MAX_MESSAGES = 4096, COUNT = MAX_MESSAGES + 100 };
    static rg_request requests[COUNT];
    bool lent = arg_count == 1 && strcmp(args[0], "loans") == 0;
    if (me == 1) {
        for (int i = 0; i < COUNT; i++) {
            void *block;
            if (!lent) {
                OK(rg_issend(NULL, 0, 0, 1, RG_WORLD, &requests[i]));
                continue;
            }
            OK(rg_loan(8, &block));
            OK(rg_loan_send(block, 8, 0, 1, RG_WORLD));
        }
        rg_request last;
        OK(rg_isend(NULL, 0, 0, 2, RG_WORLD, &last));
        OK(rg_wait(&last, NULL));
        for (int i = 0; i < COUNT && !lent; i++)
            OK(rg_wait(&requests[i], NULL));
    } else {
        FAILS(rg_recv(NULL, 0, 1, 2, RG_WORLD, NULL), RG_ERR_MEMORY, "4096 messages wait for receives");
        char bytes[8];
        for (int i = 0; i < COUNT; i++)
            OK(rg_recv(bytes, sizeof bytes, 1, 1, RG_WORLD, NULL));
        OK(rg_recv(NULL, 0, 1, 2, RG_WORLD, NULL));
    }
}

/* Unusual strides: overlapping reads, backwards, no blocks, blocks of one byte. */
static void odd_strides(void)
{
    enum { ROOM = 1 << 16 };
    unsigned char *memory = need(ROOM), *inbox = need(ROOM), *expected = need(ROOM);
    uint64_t state = 4711;
    for (int round = 0; round < 1500; round++) {
        rg_view view;
        view.block = next_random(&state) % 41;
        view.count = next_random(&state) % 701;
        view.stride = (ptrdiff_t)(next_random(&state) % 161) - 80;
        if (round % 10 == 0)
            view.stride = 0;
        view.base = memory + ROOM / 2;
        if (view.count > 300 && (view.stride > 80 || view.stride < -80))
            view.count = 300;
        ptrdiff_t reach = (ptrdiff_t)view.count * view.stride;
        if (reach > ROOM / 2 - 64 || reach < -ROOM / 2)
            view.count = 100;
        size_t len = view.block * view.count;
        paint(memory, ROOM, (uint64_t)round);
        for (size_t k = 0; k < view.count; k++)
            memcpy(expected + k * view.block, (unsigned char *)view.base + (ptrdiff_t)k * view.stride,
                   view.block);
        if (me == 0) {
            OK(rg_sendv(&view, 1, size - 1, 1, RG_WORLD));
        }
        if (me == size - 1) {
            rg_status status;
            OK(rg_recv(inbox, ROOM, 0, 1, RG_WORLD, &status));
            CHECK(status.length == len && memcmp(inbox, expected, len) == 0);
        }
    }
    free(memory);
    free(inbox);
    free(expected);
}

/* ---- identical receives ------------------------------------------------------------------------ */

enum { MAX_MESSAGES = 150, MAX_BYTES = 200, NOTHING = 1 << 30 };

struct planned {
    int tag;
    size_t len, room;
    bool from_anybody;
};

/*
 * Long runs with one tag, of messages that fit into a ring line; a few longer ones, and a few that do not fit into
 * their receive buffers.
 */
static int plan_alike(uint64_t *state, struct planned *plan)
{
    static const size_t lens[] = {0, 1, 8, 8, 8, 8, 16, 31, 40, 47, 48, 49, MAX_BYTES};
    int count = 1 + (int)(next_random(state) % MAX_MESSAGES), tag = 1;
    for (int i = 0; i < count; i++) {
        if (next_random(state) % 16 == 0)
            tag = 3 - tag;
        size_t len = lens[next_random(state) % (sizeof lens / sizeof *lens)];
        plan[i] = (struct planned){tag, len, len + next_random(state) % 9, next_random(state) % 24 == 0};
        if (next_random(state) % 24 == 0)
            plan[i].room = len / 2;
    }
    return count;
}

/* Waits for the next of all receives, and checks that each has got its message. */
static void finish_alike(uint64_t *state, int n, rg_request *requests, const int *which, const struct planned *plan,
                         unsigned char (*inbox)[MAX_BYTES + 16], int round)
{
    rg_status statuses[MAX_MESSAGES * 2];
    bool told = next_random(state) % 2;
    int code = rg_waitall(n, requests, told ? statuses : NULL), wanted = RG_OK;
    for (int k = 0; k < n; k++) {
        CHECK(requests[k].id == 0);
        if (which[k] == NOTHING) {
            CHECK(!told || (statuses[k].error == RG_OK && statuses[k].length == 0));
            continue;
        }
        const struct planned *one = &plan[which[k]];
        size_t kept = one->len < one->room ? one->len : one->room;
        int error = one->len > one->room ? RG_ERR_TRUNCATED : RG_OK;
        wanted = wanted == RG_OK ? error : wanted;
        if (unpainted(inbox[which[k]], kept, (uint64_t)(round * MAX_MESSAGES + which[k])) != kept)
            FAILED("round %d: receive %d of tag %d has not got its message of %zu bytes", round, which[k], one->tag, one->len);
        for (size_t at = one->room; at < MAX_BYTES + 16; at++)
            CHECK(inbox[which[k]][at] == 0xee);
        if (told)
            CHECK(statuses[k].source == 1 && statuses[k].tag == one->tag && statuses[k].length == one->len && statuses[k].error == error);
    }
    CHECK(code == wanted);
}

/*
 * Many receives of one source and tag, waited for at once: in order, or partly in another order, mixed with null
 * requests and sends.
 */
static void alike(void)
{
    enum { ROUNDS = 3000 };
    static struct planned plan[MAX_MESSAGES];
    static unsigned char inbox[MAX_MESSAGES][MAX_BYTES + 16], block[MAX_BYTES];
    uint64_t state = 11, own = 12;
    for (int round = 0; me < 2 && round < ROUNDS; round++) {
        int count = plan_alike(&state, plan);
        if (me == 1) {
            for (int i = 0; i < count; i++) {
                paint(block, plan[i].len, (uint64_t)(round * MAX_MESSAGES + i));
                OK(rg_send(block, plan[i].len, 0, plan[i].tag, RG_WORLD));
            }
            OK(rg_recv(NULL, 0, 0, 4, RG_WORLD, NULL));
            continue;
        }
        rg_request requests[2 * MAX_MESSAGES];
        int which[2 * MAX_MESSAGES], n = 0;
        memset(inbox, 0xee, sizeof inbox);
        for (int i = 0; i < count; i++) {
            OK(rg_irecv(inbox[i], plan[i].room, plan[i].from_anybody ? RG_ANY : 1, plan[i].tag, RG_WORLD, &requests[n]));
            which[n++] = i;
            if (next_random(&own) % 16 == 0) {
                requests[n] = RG_REQUEST_NULL;
                which[n++] = NOTHING;
            }
        }
        /* Sometimes waits for the second half first, and finally for one send among the others. */
        int first = next_random(&own) % 3 == 0 ? (int)(next_random(&own) % (uint64_t)n) : 0;
        finish_alike(&own, n - first, requests + first, which + first, plan, inbox, round);
        OK(rg_isend(NULL, 0, 1, 4, RG_WORLD, &requests[first]));
        which[first] = NOTHING;
        finish_alike(&own, first + 1, requests, which, plan, inbox, round);
    }
}

/*
 * A queued message counts as passed over (and rg_recv_passed may receive it) only once a posted receive has got a later
 * one.
 */
static void passed_over(void)
{
    enum { ROUNDS = 200 };
    for (int round = 0; round < ROUNDS && me < 2; round++) {
        int value = round;
        if (me == 1) {
            OK(rg_send(&value, sizeof value, 0, 1, RG_WORLD));
            OK(rg_recv(NULL, 0, 0, 3, RG_WORLD, NULL));
            OK(rg_send(&value, sizeof value, 0, 2, RG_WORLD));
            continue;
        }
        rg_request requests[2] = {RG_REQUEST_NULL, RG_REQUEST_NULL};
        value = -1;
        OK(rg_irecv(&value, sizeof value, 1, 2, RG_WORLD, &requests[0]));
        OK(rg_probe(1, 1, RG_WORLD, NULL));
        CHECK(rg_recv_passed(&value, sizeof value, 1, 1, RG_WORLD, NULL) == RG_ERR_NOTHING);
        OK(rg_send(NULL, 0, 1, 3, RG_WORLD));
        if (round % 2)
            OK(rg_wait(&requests[0], NULL));
        else
            OK(rg_waitall(2, requests, NULL));
        CHECK(value == round);
        value = -1;
        OK(rg_recv_passed(&value, sizeof value, 1, 1, RG_WORLD, NULL));
        CHECK(value == round);
    }
}

/* Small messages are sent although their receiver makes no calls meanwhile. A file tells it that all have been sent. */
static void burst(void)
{
    enum { COUNT = 200 };
    char path[64];
    snprintf(path, sizeof path, "/tmp/regatta-burst-%d", (int)getppid());
    OK(rg_barrier(RG_WORLD));
    if (me == 0) {
        for (int i = 0; i < COUNT; i++)
            OK(rg_send(&i, sizeof i, 1, 1, RG_WORLD));
        FILE *word = fopen(path, "w");
        CHECK(word != NULL && fclose(word) == 0);
        return;
    }
    while (access(path, F_OK) != 0)
        poll(NULL, 0, 1);
    CHECK(unlink(path) == 0);
    for (int i = 0, got; i < COUNT; i++) {
        OK(rg_recv(&got, sizeof got, 0, 1, RG_WORLD, NULL));
        CHECK(got == i);
    }
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"overtaking", overtaking, false},
        {"fairness", fairness, false},
        {"flooded", flooded, false},
        {"crowded", crowded, false},
        {"odd-strides", odd_strides, false},
        {"alike", alike, false},
        {"passed-over", passed_over, false},
        {"burst", burst, false},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
