/* Further collectives: reduce, gather, scatter, scan, reduce-scatter; and the expression of each by others
 * (...-by-...), with which the guidelines compare them. The root changes each time. barrier-started, broadcast-started,
 * global-sum-started: non-blocking collectives, started and waited for.
 *
 * The vectors of sums hold integers, so any order of summation gives the same result. */
#ifdef ENV_MORE_COLLECTIVES

static inline int rooted_next(void)
{
    payload_turn++;
    return (int)(payload_turn % (uint32_t)tasks);
}

static inline double rooted_turn(void)
{
    return (double)(payload_turn % 4096);
}

/* Returns the sum over all tasks if each gives the turn plus its rank. */
static inline double rooted_total(void)
{
    return tasks * rooted_turn() + tasks * (tasks - 1) / 2.0;
}

static void reduce(size_t bytes, long n)
{
    double *in = (double *)payload_a, *out = (double *)payload_b;
    size_t count = bytes / sizeof *in;
    for (long i = 0; i < n; i++) {
        int root = rooted_next();
        global_give(in, count, rooted_turn() + me);
        env_reduce(in, out, count, root);
        if (me == root)
            global_expect(out, count, rooted_total());
    }
}

/* Expresses a global sum by a reduction to one task and a broadcast. */
static void global_sum_by_reduce(size_t bytes, long n)
{
    double *in = (double *)payload_a, *out = (double *)payload_b;
    size_t count = bytes / sizeof *in;
    for (long i = 0; i < n; i++) {
        payload_turn++;
        global_give(in, count, rooted_turn() + me);
        env_reduce(in, out, count, 0);
        env_broadcast(out, bytes, 0);
        global_expect(out, count, rooted_total());
    }
}

static inline uint32_t rooted_stamp(int task)
{
    return payload_turn * 64 + (uint32_t)task;
}

static inline void rooted_check_blocks(const char *blocks, size_t bytes)
{
    for (int r = 0; r < tasks; r++)
        payload_check(blocks + (size_t)r * bytes, bytes, rooted_stamp(r));
}

static void gather(size_t bytes, long n)
{
    for (long i = 0; i < n; i++) {
        int root = rooted_next();
        payload_mark(payload_a, bytes, rooted_stamp(me));
        env_gather(payload_a, bytes, payload_b, root);
        if (me == root)
            rooted_check_blocks(payload_b, bytes);
    }
}

static void concatenation_by_gather(size_t bytes, long n)
{
    for (long i = 0; i < n; i++) {
        payload_turn++;
        payload_mark(payload_a, bytes, rooted_stamp(me));
        env_gather(payload_a, bytes, payload_b, 0);
        env_broadcast(payload_b, bytes * (size_t)tasks, 0);
        rooted_check_blocks(payload_b, bytes);
    }
}

static inline void scatter_mark(size_t bytes, int root)
{
    for (int r = 0; me == root && r < tasks; r++)
        payload_mark(payload_a + (size_t)r * bytes, bytes, rooted_stamp(r));
}

static void scatter(size_t bytes, long n)
{
    for (long i = 0; i < n; i++) {
        int root = rooted_next();
        scatter_mark(bytes, root);
        env_scatter(payload_a, payload_b, bytes, root);
        payload_check(payload_b, bytes, rooted_stamp(me));
    }
}

/* Expresses a scatter by a broadcast of all blocks. Each task checks only its own. */
static void scatter_by_broadcast(size_t bytes, long n)
{
    for (long i = 0; i < n; i++) {
        int root = rooted_next();
        scatter_mark(bytes, root);
        env_broadcast(payload_a, bytes * (size_t)tasks, root);
        payload_check(payload_a + (size_t)me * bytes, bytes, rooted_stamp(me));
    }
}

/* Expresses a broadcast by a scatter and a concatenation of one block for each task; the remainder is broadcast. */
static void broadcast_by_scatter(size_t bytes, long n)
{
    size_t block = bytes / (size_t)tasks, rest = bytes % (size_t)tasks;
    int root = (int)(payload_turn % (uint32_t)tasks);
    for (long i = 0; i < n; i++) {
        payload_turn++;
        if (me == root)
            payload_mark(payload_a, bytes, payload_turn);
        env_scatter(payload_a, payload_b + (size_t)me * block, block, root);
        env_concatenation(payload_b + (size_t)me * block, block, payload_a);
        if (rest)
            env_broadcast(payload_a + block * (size_t)tasks, rest, root);
        payload_check(payload_a, bytes, payload_turn);
        root = root + 1 == tasks ? 0 : root + 1;
    }
}

static inline double scan_total(void)
{
    return (me + 1) * rooted_turn() + me * (me + 1) / 2.0;
}

static void scan(size_t bytes, long n)
{
    double *in = (double *)payload_a, *out = (double *)payload_b;
    size_t count = bytes / sizeof *in;
    for (long i = 0; i < n; i++) {
        payload_turn++;
        global_give(in, count, rooted_turn() + me);
        env_scan(in, out, count);
        global_expect(out, count, scan_total());
    }
}

/* Expresses a scan by a concatenation. Each task adds the vectors of the tasks up to itself. */
static void scan_by_concatenation(size_t bytes, long n)
{
    double *in = (double *)payload_a, *all = (double *)payload_b;
    size_t count = bytes / sizeof *in;
    for (long i = 0; i < n; i++) {
        payload_turn++;
        global_give(in, count, rooted_turn() + me);
        env_concatenation(in, bytes, all);
        for (int r = 1; r <= me; r++)
            for (size_t k = 0; k < count; k++)
                all[k] += all[(size_t)r * count + k];
        global_expect(all, count, scan_total());
    }
}

/* Returns the number of doubles of one task's part of the vector. */
static inline size_t part_of(size_t bytes)
{
    return bytes / sizeof(double) / (size_t)tasks;
}

static void reduce_scatter(size_t bytes, long n)
{
    double *in = (double *)payload_a, *out = (double *)payload_b;
    size_t count = part_of(bytes);
    for (long i = 0; i < n; i++) {
        payload_turn++;
        for (int r = 0; r < tasks; r++)
            global_give(in + (size_t)r * count, count, rooted_turn() + me);
        env_reduce_scatter(in, out, count);
        global_expect(out, count, rooted_total());
    }
}

static void reduce_scatter_by_reduce(size_t bytes, long n)
{
    double *in = (double *)payload_a, *out = (double *)payload_b;
    size_t count = part_of(bytes);
    for (long i = 0; i < n; i++) {
        payload_turn++;
        for (int r = 0; r < tasks; r++)
            global_give(in + (size_t)r * count, count, rooted_turn() + me);
        env_reduce(in, out, count * (size_t)tasks, 0);
        env_scatter(out, in, count * sizeof *in, 0);
        global_expect(in, count, rooted_total());
    }
}

static void barrier_started(size_t bytes, long n)
{
    (void)bytes;
    for (long i = 0; i < n; i++) {
        env_request request = env_ibarrier();
        env_waitall(1, &request);
    }
}

static void broadcast_started(size_t bytes, long n)
{
    int root = (int)(payload_turn % (uint32_t)tasks);
    for (long i = 0; i < n; i++) {
        payload_turn++;
        if (me == root)
            payload_mark(payload_a, bytes, payload_turn);
        env_request request = env_ibroadcast(payload_a, bytes, root);
        env_waitall(1, &request);
        payload_check(payload_a, bytes, payload_turn);
        root = root + 1 == tasks ? 0 : root + 1;
    }
}

static void global_sum_started(size_t bytes, long n)
{
    double *in = (double *)payload_a, *out = (double *)payload_b;
    size_t count = bytes / sizeof *in;
    for (long i = 0; i < n; i++) {
        payload_turn++;
        global_give(in, count, rooted_turn() + me);
        env_request request = env_isum(in, out, count);
        env_waitall(1, &request);
        global_expect(out, count, rooted_total());
    }
}

OPERATION(reduce, .name = "reduce", .run = reduce, .parts = 1, .unit = 8)
OPERATION(global_sum_by_reduce, .name = "global-sum-by-reduce", .run = global_sum_by_reduce, .parts = 1, .unit = 8)
OPERATION(gather, .name = "gather", .run = gather, .parts = 1, .unit = 1, .all_to_all = 1)
OPERATION(concatenation_by_gather, .name = "concatenation-by-gather", .run = concatenation_by_gather, .parts = 1, .unit = 1, .all_to_all = 1)
OPERATION(scatter, .name = "scatter", .run = scatter, .parts = 1, .unit = 1, .all_to_all = 1)
OPERATION(scatter_by_broadcast, .name = "scatter-by-broadcast", .run = scatter_by_broadcast, .parts = 1, .unit = 1, .all_to_all = 1)
OPERATION(broadcast_by_scatter, .name = "broadcast-by-scatter", .run = broadcast_by_scatter, .parts = 1, .unit = 1)
OPERATION(scan, .name = "scan", .run = scan, .parts = 1, .unit = 8)
OPERATION(scan_by_concatenation, .name = "scan-by-concatenation", .run = scan_by_concatenation, .parts = 1, .unit = 8, .all_to_all = 1)
OPERATION(reduce_scatter, .name = "reduce-scatter", .run = reduce_scatter, .parts = 1, .unit = 8)
OPERATION(reduce_scatter_by_reduce, .name = "reduce-scatter-by-reduce", .run = reduce_scatter_by_reduce, .parts = 1, .unit = 8)
OPERATION(barrier_started, .name = "barrier-started", .run = barrier_started, .parts = 1)
OPERATION(broadcast_started, .name = "broadcast-started", .run = broadcast_started, .parts = 1, .unit = 1)
OPERATION(global_sum_started, .name = "global-sum-started", .run = global_sum_started, .parts = 1, .unit = 8)
#endif
