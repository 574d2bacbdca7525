/*
 * The rounds of the chaos run. All members of a group play them in the same order. Everything that must be the same for
 * all follows from a random number of the round; how each member sends, receives and waits is its own choice. Contents
 * follow from the round, too, so each receiver knows what it must get.
 *
 * In calls that wait for the receiver, a member sends only to higher ranks. Waiting senders therefore never form a
 * circle, and RG_ERR_CYCLE is a failure.
 */
#include "chaos.h"

enum { MAX_STRAYS = 6, MAX_PART = 48 << 10, STRAY_ROOM = 300 << 10 };

const char *const names_of_kinds[ALL_KINDS] = {
#define TEXT_OF_KIND(name) #name,
    KINDS(TEXT_OF_KIND)};

static char *given, *got; /* sent and received data: MAX_MEMBERS parts, or one long message */
static int makings;       /* number of groups made in this epoch */

/* Operations without a matching operation. */
static struct stray {
    rg_request request;
    struct area *area;
    int peer; /* the task it names, or RG_NONE */
    char *bytes;
} strays[MAX_STRAYS];
static int stray_count;

void start_rounds(void)
{
    given = malloc((size_t)MAX_MEMBERS * MAX_PART + MAX_LENGTH);
    got = malloc((size_t)MAX_MEMBERS * MAX_PART + MAX_LENGTH);
    for (int i = 0; i < MAX_STRAYS; i++)
        strays[i].bytes = calloc(1, STRAY_ROOM);
    if (given == NULL || got == NULL || strays[MAX_STRAYS - 1].bytes == NULL)
        give_up("malloc");
}

/* ---- contents ---- */

static uint64_t word_of(uint64_t seed, size_t at) { return hash(seed) + at * 0x9e3779b97f4a7c15u; }

static void fill(char *bytes, size_t length, uint64_t seed)
{
    for (size_t at = 0; at < length; at += 8) {
        uint64_t word = word_of(seed, at);
        memcpy(bytes + at, &word, length - at < 8 ? length - at : 8);
    }
}

static void check(const char *bytes, size_t length, uint64_t seed)
{
    for (size_t at = 0; at < length; at += 8) {
        uint64_t word = word_of(seed, at);
        if (memcmp(bytes + at, &word, length - at < 8 ? length - at : 8) != 0)
            wrong("byte %zu or one after it of %zu is damaged", at, length);
    }
    count.bytes += length;
}

/* Returns the seed of a message from one member to another, or to all. */
static uint64_t seed_of(uint64_t random, int from, int to) { return random ^ (uint64_t)(from + 1) << 48 ^ (uint64_t)(to + 1) << 32; }
static size_t part_of(uint64_t random, int from, int to)
{
    size_t length = length_of(hash(seed_of(random, from, to)), 0);
    return length < MAX_PART ? length : length % MAX_PART;
}

static void check_received(const rg_status *status, int from, int tag, size_t length)
{
    if (status->source != from || status->tag != tag || status->length != length)
        wrong("%zu bytes from %d with tag %d, where %zu from %d with tag %d were to come", status->length, status->source, status->tag, length, from, tag);
}

/* ---- messages ---- */

static enum way some_way(const struct area *area, int to)
{
    static const enum way ways[] = {ISEND, ISSEND, ISENDV, BSEND, BSENDV, LOAN, SEND, SSEND, SENDV};
    return ways[roll() % (to > area->me ? 9 : 6)];
}

/* Sends in a random way. Returns whether it succeeded so far; *request must then be waited for unless it is null. */
static bool give(struct area *area, char *bytes, size_t length, int to, int tag, rg_request *request)
{
    enum way way = some_way(area, to);
    *request = RG_REQUEST_NULL;
    return judge(area, send_by(way, bytes, length, to, tag, area->group, request), area->tids[to], !is_started(way));
}

/* Receives the message of a member in a random way. */
static bool take(struct area *area, char *bytes, size_t length, int from, int tag)
{
    static const enum way ways[] = {RECV, RECVV, RECV_WITHIN, LOAN_RECV};
    rg_status status;
    if (one_in(4)) {
        rg_message message;
        if (!judge(area, rg_mprobe(from, tag, area->group, &message, &status), area->tids[from], false))
            return false;
        maybe();
        if (!judge(area, rg_mrecv(&message, bytes, length, &status), area->tids[from], true))
            return false;
    } else if (!judge(area, receive_by(ways[roll() % 4], bytes, length, from, tag, area->group, &status), area->tids[from], false)) {
        return false;
    }
    check_received(&status, from, tag, length);
    return true;
}

/* Each member sends to the one that is some ranks ahead, and receives from the one that is as many ranks behind. */
static void ring(struct area *area, uint64_t random, int tag)
{
    if (area->n == 1)
        return;
    int shift = 1 + (int)(random % (uint64_t)(area->n - 1)), to = (area->me + shift) % area->n, from = (area->me + area->n - shift) % area->n;
    size_t out = length_of(hash(random + (uint64_t)area->me), 0), in = length_of(hash(random + (uint64_t)from), 0);
    bool posts = one_in(2), is_received;
    rg_request receiving = RG_REQUEST_NULL, sending;
    rg_status status;
    fill(given, out, seed_of(random, area->me, to));
    if (posts && !judge(area, rg_irecv(got, in, from, tag, area->group, &receiving), area->tids[from], false))
        return;
    bool is_sent = give(area, given, out, to, tag, &sending);
    maybe();
    if (posts) {
        is_received = finish(area, &receiving, area->tids[from], &status);
        if (is_received)
            check_received(&status, from, tag, in);
    } else {
        is_received = is_sent && !has_failed && take(area, got, in, from, tag);
    }
    if (is_received)
        check(got, in, seed_of(random, from, area->me));
    if (is_sent)
        finish(area, &sending, area->tids[to], NULL);
}

/* Pairs of members exchange messages in one call. */
static void pairs(struct area *area, uint64_t random, int tag)
{
    int other = (int)(random % (uint64_t)area->n) - area->me;
    other += other < 0 ? area->n : 0;
    size_t out = length_of(hash(random + (uint64_t)area->me), 0), in = length_of(hash(random + (uint64_t)other), 0);
    rg_status status;
    fill(given, out, seed_of(random, area->me, other));
    int code = rg_sendrecv(given, out, other, tag, got, in, other, tag, area->group, &status);
    if (!judge(area, code, area->tids[other], false))
        return;
    check_received(&status, other, tag, in);
    check(got, in, seed_of(random, other, area->me));
}

/* One member receives from all, in the order of arrival. */
static void fan_in(struct area *area, uint64_t random, int tag)
{
    int root = (int)(random % (uint64_t)area->n);
    if (area->me != root) {
        rg_request request;
        size_t length = part_of(random, area->me, root);
        fill(given, length, seed_of(random, area->me, root));
        if (give(area, given, length, root, tag, &request))
            finish(area, &request, area->tids[root], NULL);
        return;
    }
    bool has_come[MAX_MEMBERS] = {false};
    for (int i = 1; i < area->n; i++) {
        rg_status status;
        if (!judge(area, rg_recv(got, MAX_PART, RG_ANY, tag, area->group, &status), RG_NONE, false))
            return;
        int from = status.source;
        if (from < 0 || from >= area->n || has_come[from] || from == root)
            wrong("a message comes from rank %d of %d", from, area->n);
        check_received(&status, from, tag, part_of(random, from, root));
        check(got, status.length, seed_of(random, from, root));
        has_come[from] = true;
    }
}

/* All send to all, and complete the requests in any order. */
static void mesh(struct area *area, uint64_t random, int tag)
{
    rg_request requests[2 * MAX_MEMBERS];
    int n = area->n;
    for (int i = 0; i < 2 * n; i++)
        requests[i] = RG_REQUEST_NULL;
    for (int i = 0; i < n && !has_failed; i++) {
        int from = (area->me + n - i) % n;
        judge(area, rg_irecv(got + (size_t)from * MAX_PART, MAX_PART, from, tag, area->group, &requests[from]), area->tids[from], false);
    }
    for (int i = 0; i < n && !has_failed; i++) {
        int to = (area->me + i) % n;
        char *bytes = given + (size_t)to * MAX_PART;
        size_t length = part_of(random, area->me, to);
        fill(bytes, length, seed_of(random, area->me, to));
        give(area, bytes, length, to, tag, &requests[n + to]);
    }
    maybe();
    for (bool any = one_in(2);; ) {
        int at = -1;
        rg_status status;
        int code = RG_OK;
        if (any) {
            code = rg_waitany(2 * n, requests, &at, &status);
        } else {
            for (int i = 0; i < 2 * n && at < 0; i++)
                at = requests[i].id != RG_REQUEST_NULL.id ? i : at;
            code = at < 0 ? RG_OK : rg_wait(&requests[at], &status);
        }
        if (at < 0)
            break;
        if (judge(area, code, area->tids[at % n], true) && at < n) {
            check_received(&status, at, tag, part_of(random, at, area->me));
            check(got + (size_t)at * MAX_PART, status.length, seed_of(random, at, area->me));
        }
    }
}

/* Starts an operation that no member matches. It ends with the epoch. */
static void stray(struct area *area)
{
    if (stray_count == MAX_STRAYS || area->n == 1)
        return;
    struct stray *one = &strays[stray_count];
    int rank = (area->me + 1 + (int)(roll() % (uint64_t)(area->n - 1))) % area->n, code;
    /* Stray sends and stray receives have different tags, so they never match. */
    int sends = 0x7ffffe00 + stray_count, receives = 0x7fffff00 + stray_count;
    one->area = area;
    one->peer = area->tids[rank];
    switch (roll() % 5) {
    case 0: code = rg_irecv(one->bytes, 100, rank, receives, area->group, &one->request); break;
    case 1:
        one->peer = RG_NONE;
        code = rg_irecv(one->bytes, 100, RG_ANY, receives, area->group, &one->request);
        break;
    case 2: code = rg_isend(one->bytes, roll() % 100, rank, sends, area->group, &one->request); break;
    case 3: code = rg_issend(one->bytes, roll() % 100, rank, sends, area->group, &one->request); break;
    default: code = rg_isend(one->bytes, STRAY_ROOM, rank, sends, area->group, &one->request);
    }
    stray_count += judge(area, code, one->peer, false);
}

void end_strays(bool is_revoked)
{
    for (; stray_count > 0; stray_count--) {
        struct stray *one = &strays[stray_count - 1];
        if (!is_revoked)
            OK(rg_cancel(one->request, NULL));
        int code = rg_wait(&one->request, NULL);
        if (!is_revoked && code == RG_ERR_CANCELLED)
            count.classes[CLASS_CANCELLED]++;
        else
            judge(one->area, code, one->peer, true);
    }
}

/* ---- groups ---- */

static void end_strays_of(const struct area *area)
{
    bool has_any = false;
    for (int i = 0; i < stray_count; i++)
        has_any |= strays[i].area == area;
    if (has_any)
        end_strays(false);
}

static void drop(struct area *area)
{
    if (area->is_here)
        OK(rg_group_free(area->group));
    area->is_here = false;
}

void free_subgroups(void)
{
    for (int i = 0; i < MAX_SUBGROUPS; i++)
        drop(&subgroups[i]);
    makings = 0;
}

/* Chooses the ranks of the members of a new group. Returns their number, or 0 if this worker is not one of them. */
static int choose_members(uint64_t random, int ranks[MAX_MEMBERS])
{
    int n = 0;
    bool is_member = false;
    for (int i = 0; i < main_area.n; i++) {
        if (hash(random + (uint64_t)i) % 3 == 0)
            continue;
        ranks[n++] = i;
        is_member |= i == main_area.me;
    }
    return is_member ? n : 0;
}

/* Makes a group from the crew's own. Either all members agree that all have it, or it is tied to the crew's group. */
static void make(uint64_t random)
{
    struct area *area = &subgroups[makings % MAX_SUBGROUPS];
    rg_group made = {-1};
    rg_request request;
    int code = RG_OK, n, ranks[MAX_MEMBERS];
    bool is_tied = !IS_OVER_MPI && hash(random ^ 1) % 2;
    end_strays_of(area);
    drop(area);
    if (has_failed)
        return;
    uint64_t bit = UINT64_C(2) << makings++ % 62;
    switch (random % 4) {
    case 0: code = rg_group_dup(main_area.group, &made); break;
    case 1:
        code = rg_igroup_dup(main_area.group, &made, &request);
        maybe();
        code = code == RG_OK ? rg_wait(&request, NULL) : code;
        break;
    case 2: code = rg_group_split(main_area.group, (int)(hash(random + (uint64_t)main_area.me) % 2), (int)(roll() % 10), &made); break;
    default:
        n = choose_members(random, ranks);
        if (n > 0)
            code = rg_group_select_tagged(main_area.group, n, ranks, (int)(random >> 40), &made);
    }
    /* A call that failed may have begun before this worker revoked the group. */
    bool went_well = judge(&main_area, code, RG_NONE, true);
    if (went_well && made.id != -1) {
        *area = (struct area){.group = made, .n = rg_size(made), .me = rg_rank(made), .is_here = true, .is_tied = is_tied, .bit = bit};
        for (int i = 0; i < area->n; i++)
            area->tids[i] = rg_tid_of(made, i);
        if (is_tied)
            OK(rg_group_tie(main_area.group, made));
    }
    if (!is_tied)
        has_failed |= !all_are_fine(went_well && !has_failed);
}

/* ---- collectives ---- */

static int64_t value_of(uint64_t random, int rank, size_t i) { return (int64_t)(hash(random + (uint64_t)rank * 0x10001 + i) % 100000); }

/* Fills in the elements of one member, or the sums over the members before this rank. */
static void values_of(int64_t *values, size_t n, uint64_t random, int from, int before)
{
    for (size_t i = 0; i < n; i++) {
        values[i] = 0;
        for (int rank = from; rank < before; rank++)
            values[i] += value_of(random, rank, i);
    }
}

static void check_sums(size_t n, uint64_t random, size_t first, int before)
{
    const int64_t *values = (const int64_t *)got;
    for (size_t i = 0; i < n; i++) {
        int64_t sum = 0;
        for (int rank = 0; rank < before; rank++)
            sum += value_of(random, rank, first + i);
        if (values[i] != sum)
            wrong("element %zu of %zu is %lld, and not %lld", i, n, (long long)values[i], (long long)sum);
    }
    count.bytes += n * sizeof *values;
}

static rg_request request_of_collective;

static int waited(int code)
{
    if (code != RG_OK)
        return code;
    maybe();
    return rg_wait(&request_of_collective, NULL);
}

/* Calls the blocking or the nonblocking form, the same for all members. */
#define EITHER(random, name, ...) \
    (hash((random) ^ 7) % 2 ? rg_##name(__VA_ARGS__) : waited(rg_i##name(__VA_ARGS__, &request_of_collective)))

static void reduce(struct area *area, uint64_t random, int root)
{
    size_t n = part_of(random, 0, 0) / sizeof(int64_t), counts[MAX_MEMBERS], first = 0, all = 0;
    int64_t *values = (int64_t *)given;
    rg_group group = area->group;
    values_of(values, n, random, area->me, area->me + 1);
    switch (hash(random) % 5) {
    case 0:
        if (judge(area, EITHER(random, allreduce, values, got, n, RG_INT64, RG_SUM, group), RG_NONE, true))
            check_sums(n, random, 0, area->n);
        break;
    case 1:
        if (judge(area, EITHER(random, reduce, values, got, n, RG_INT64, RG_SUM, root, group), RG_NONE, true) && area->me == root)
            check_sums(n, random, 0, area->n);
        break;
    case 2:
        if (judge(area, EITHER(random, scan, values, got, n, RG_INT64, RG_SUM, group), RG_NONE, true))
            check_sums(n, random, 0, area->me + 1);
        break;
    case 3:
        if (judge(area, EITHER(random, exscan, values, got, n, RG_INT64, RG_SUM, group), RG_NONE, true) && area->me > 0)
            check_sums(n, random, 0, area->me);
        break;
    default:
        for (int i = 0; i < area->n; i++) {
            counts[i] = hash(random + (uint64_t)i) % 40;
            first += i < area->me ? counts[i] : 0;
            all += counts[i];
        }
        values_of(values, all, random, area->me, area->me + 1);
        if (judge(area, EITHER(random, reduce_scatter, values, got, counts, RG_INT64, RG_SUM, group), RG_NONE, true))
            check_sums(counts[area->me], random, first, area->n);
    }
}

/* Checks the parts of all members, which lie side by side. */
static void check_parts(const struct area *area, uint64_t random, size_t length, int to)
{
    for (int from = 0; from < area->n; from++)
        check(got + (size_t)from * length, length, seed_of(random, from, to));
}

static void move(struct area *area, uint64_t random, int root)
{
    size_t length = part_of(random, 0, 0), lens[MAX_MEMBERS], offsets[MAX_MEMBERS];
    rg_group group = area->group;
    int me = area->me, n = area->n;
    for (int i = 0; i < n; i++) {
        lens[i] = part_of(random, i, root);
        offsets[i] = i == 0 ? 0 : offsets[i - 1] + lens[i - 1];
    }
    switch (hash(random) % 5) {
    case 0:
        fill(given, length, seed_of(random, me, root));
        if (judge(area, EITHER(random, gather, given, length, got, root, group), RG_NONE, true) && me == root)
            check_parts(area, random, length, root);
        break;
    case 1:
        for (int to = 0; to < n && me == root; to++)
            fill(given + (size_t)to * length, length, seed_of(random, root, to));
        if (judge(area, EITHER(random, scatter, given, got, length, root, group), RG_NONE, true))
            check(got, length, seed_of(random, root, me));
        break;
    case 2:
        fill(given, length, seed_of(random, me, root));
        if (judge(area, EITHER(random, allgather, given, length, got, group), RG_NONE, true))
            check_parts(area, random, length, root);
        break;
    case 3:
        fill(given, lens[me], seed_of(random, me, root));
        if (!judge(area, EITHER(random, allgatherv, given, lens[me], got, lens, offsets, group), RG_NONE, true))
            break;
        for (int from = 0; from < n; from++)
            check(got + offsets[from], lens[from], seed_of(random, from, root));
        break;
    default:
        for (int to = 0; to < n; to++)
            fill(given + (size_t)to * length, length, seed_of(random, me, to));
        if (judge(area, EITHER(random, alltoall, given, length, got, group), RG_NONE, true))
            check_parts(area, random, length, me);
    }
}

static void collective(struct area *area, uint64_t random)
{
    int root = (int)(hash(random ^ 2) % (uint64_t)area->n);
    size_t length = length_of(hash(random ^ 3), 0);
    switch (hash(random ^ 4) % 4) {
    case 0: judge(area, EITHER(random, barrier, area->group), RG_NONE, true); break;
    case 1:
        if (area->me == root)
            fill(got, length, random);
        if (judge(area, EITHER(random, broadcast, got, length, root, area->group), RG_NONE, true))
            check(got, length, random);
        break;
    case 2: reduce(area, hash(random ^ 5), root); break;
    default: move(area, hash(random ^ 6), root);
    }
}

/* ---- */

void play_round(uint64_t random, int tag)
{
    enum kind kind = random % ALL_KINDS;
    int at = (int)(hash(random ^ 8) % (2 * MAX_SUBGROUPS));
    struct area *area = at < MAX_SUBGROUPS && kind != RING_ROUND ? &subgroups[at] : &main_area;
    random = hash(random ^ 9);
    if (kind != MAKING_ROUND && kind != AGREEING_ROUND && !area->is_here)
        return;
    switch (kind) {
    case RING_ROUND: ring(area, random, tag); break;
    case PAIRS_ROUND: pairs(area, random, tag); break;
    case FAN_IN_ROUND: fan_in(area, random, tag); break;
    case MESH_ROUND: mesh(area, random, tag); break;
    case STRAY_ROUND: stray(area); break;
    case MAKING_ROUND: make(random); break;
    case AGREEING_ROUND: has_failed |= !all_are_fine(true); break;
    default: collective(area, random);
    }
}
