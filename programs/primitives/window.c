/* One-sided operations: task 0 accesses the memory of task 1, which meanwhile waits in a barrier.
 *
 * put-flush, get-flush, accumulate-flush: one transfer, and the flush that completes it at the target. fetch-add:
 * fetches an integer and adds one to it, and flushes. The target is passive: all transfers are in one epoch of locks,
 * which lasts as long as the memory.
 *
 * A batch ends when task 1 has checked its memory, so no task writes to it during the check. */
#ifdef ENV_WINDOWS

/* Makes what was written into windows visible to all tasks. */
static void window_meet(void)
{
    env_window_sync();
    env_barrier();
    env_window_sync();
}

static void put_flush(size_t bytes, long n)
{
    char *memory = env_window(bytes);
    uint32_t last = payload_turn + (uint32_t)n;
    for (long i = 0; me == 0 && i < n; i++) {
        payload_mark(payload_a, bytes, ++payload_turn);
        env_put(payload_a, bytes, 1);
    }
    window_meet();
    payload_turn = last;
    if (me == 1)
        payload_check(memory, bytes, payload_turn);
    env_barrier();
}

static void get_flush(size_t bytes, long n)
{
    char *memory = env_window(bytes);
    uint32_t stamp = payload_turn + 1;
    if (me == 1)
        payload_mark(memory, bytes, stamp);
    payload_mark(payload_b, bytes, 0);
    window_meet();
    for (long i = 0; me == 0 && i < n; i++) {
        env_get(payload_b, bytes, 1);
        payload_check(payload_b, bytes, stamp);
    }
    payload_turn += (uint32_t)n;
    env_barrier();
}

/* Each accumulate adds one to the sums at the target. */
static void accumulate_flush(size_t bytes, long n)
{
    double *sums = (double *)env_window(bytes), *ones = (double *)payload_a;
    size_t count = bytes / sizeof *sums;
    for (size_t k = 0; k < count; k++) {
        ones[k] = 1;
        if (me == 1)
            sums[k] = 0;
    }
    window_meet();
    for (long i = 0; me == 0 && i < n; i++)
        env_accumulate(ones, count, 1);
    window_meet();
    payload_turn += (uint32_t)n;
    for (size_t k = 0; me == 1 && k < count; k++)
        if (sums[k] != (double)n)
            payload_wrong(bytes, payload_turn);
    env_barrier();
}

static void fetch_add(size_t bytes, long n)
{
    int64_t *memory = (int64_t *)env_window(bytes);
    if (me == 1)
        *memory = 0;
    window_meet();
    for (long i = 0; me == 0 && i < n; i++)
        if (env_fetch_add(1) != i)
            payload_wrong(bytes, payload_turn);
    window_meet();
    payload_turn += (uint32_t)n;
    if (me == 1 && *memory != n)
        payload_wrong(bytes, payload_turn);
    env_barrier();
}

OPERATION(put_flush, .name = "put-flush", .run = put_flush, .parts = 1, .unit = 1, .pairs = 2)
OPERATION(get_flush, .name = "get-flush", .run = get_flush, .parts = 1, .unit = 1, .pairs = 2)
OPERATION(accumulate_flush, .name = "accumulate-flush", .run = accumulate_flush, .parts = 1, .unit = 8, .pairs = 2)
OPERATION(fetch_add, .name = "fetch-add", .run = fetch_add, .parts = 1, .unit = 8, .pairs = 2)
#endif
