/* global-sum, global-max: a vector of doubles is combined over all tasks, the result at all. The
 * vectors hold whole numbers, so the expected result is exact in any order of combination. */
static void global_expect(const double *out, size_t count, double each)
{
    size_t step = payload_whole || count < 2 ? 1 : count - 1;
    for (size_t k = 0; k < count; k += step)
        if (__builtin_expect(out[k] != each, 0))
            payload_wrong(count * sizeof(double), payload_turn);
}

static void global_give(double *in, size_t count)
{
    double mine = (double)(++payload_turn % 4096) + me;
    size_t step = payload_whole || count < 2 ? 1 : count - 1;
    for (size_t k = 0; k < count; k += step)
        in[k] = mine;
}

static void global_sum(size_t bytes, long n)
{
    double *in = (double *)payload_a, *out = (double *)payload_b;
    size_t count = bytes / sizeof(double);
    double ranks = tasks * (tasks - 1) / 2.0;
    for (long i = 0; i < n; i++) {
        global_give(in, count);
        env_sum(in, out, count);
        global_expect(out, count, tasks * (double)(payload_turn % 4096) + ranks);
    }
}

static void global_max(size_t bytes, long n)
{
    double *in = (double *)payload_a, *out = (double *)payload_b;
    size_t count = bytes / sizeof(double);
    for (long i = 0; i < n; i++) {
        global_give(in, count);
        env_max(in, out, count);
        global_expect(out, count, (double)(payload_turn % 4096) + tasks - 1);
    }
}
