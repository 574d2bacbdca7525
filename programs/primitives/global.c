/* global-sum, global-product, global-max: a vector of doubles is reduced over all tasks, and all get the result. The
 * vectors hold integers, and in products all tasks but one hold 2, so the expected result is exact in any order of
 * reduction. */
#ifdef ENV_REDUCES_IN_PLACE
#define GLOBAL_OUT payload_a
#else
#define GLOBAL_OUT payload_b
#endif

static inline size_t global_step(size_t count)
{
    return payload_whole || count < 2 ? 1 : count - 1;
}

static inline void global_expect(const double *out, size_t count, double each)
{
    for (size_t k = 0; k < count; k += global_step(count))
        if (__builtin_expect(out[k] != each, 0))
            payload_wrong(count * sizeof(double), payload_turn);
}

static inline void global_give(double *in, size_t count, double mine)
{
    for (size_t k = 0; k < count; k += global_step(count))
        in[k] = mine;
}

static void global_sum(size_t bytes, long n)
{
    double *in = (double *)payload_a, *out = (double *)GLOBAL_OUT;
    size_t count = bytes / sizeof(double);
    double ranks = tasks * (tasks - 1) / 2.0;
    for (long i = 0; i < n; i++) {
        double turn = (double)(++payload_turn % 4096);
        global_give(in, count, turn + me);
        env_sum(in, out, count);
        global_expect(out, count, tasks * turn + ranks);
    }
}

/* One task's factor changes from turn to turn; all others are 2. */
static void global_product(size_t bytes, long n)
{
    double *in = (double *)payload_a, *out = (double *)GLOBAL_OUT, others = 1;
    size_t count = bytes / sizeof(double);
    for (int r = 1; r < tasks; r++)
        others *= 2;
    for (long i = 0; i < n; i++) {
        double turn = (double)(++payload_turn % 4096 + 1);
        global_give(in, count, (int)(payload_turn % (uint32_t)tasks) == me ? turn : 2);
        env_product(in, out, count);
        global_expect(out, count, others * turn);
    }
}

static void global_max(size_t bytes, long n)
{
    double *in = (double *)payload_a, *out = (double *)GLOBAL_OUT;
    size_t count = bytes / sizeof(double);
    for (long i = 0; i < n; i++) {
        double turn = (double)(++payload_turn % 4096);
        global_give(in, count, turn + me);
        env_max(in, out, count);
        global_expect(out, count, turn + tasks - 1);
    }
}

OPERATION(global_sum, .name = "global-sum", .run = global_sum, .parts = 1, .unit = 8)
OPERATION(global_product, .name = "global-product", .run = global_product, .parts = 1, .unit = 8)
OPERATION(global_max, .name = "global-max", .run = global_max, .parts = 1, .unit = 8)
