/* is.h: integer sort. Keys with a nearly Gaussian distribution are ranked ten times; two of them change each time. Each
 * task receives the keys of a range from all others. */
#ifndef IS_H
#define IS_H

#include "npb.h"

/* Sums the numbers of all tasks element by element; all tasks get the result. */
static void sum_of_all(int *numbers, int count);
/* Exchanges one number with each task: out[r] goes to task r, in[r] comes from it. */
static void trade_numbers(const int *out, int *in);
/* Exchanges keys with each task: counts_out[r] keys from out + starts_out[r] go to task r; counts_in[r] keys of task r
 * are received at in + starts_in[r]. */
static void trade_keys(const int *out, const int *counts_out, const int *starts_out, int *in, const int *counts_in,
                       const int *starts_in);
/* Sends a key to the next task and returns the key that the task before sent; the first task gets `none`. */
static int key_from_before(int key, int none);

enum { IS_BUCKET_BITS = 10, IS_BUCKETS = 1 << IS_BUCKET_BITS, IS_ITERATIONS = 10, IS_TESTS = 5 };

static const struct is_class {
    char name;
    int bits, key_bits; /* number of keys, and number of values they may have, as powers of 2 */
    int tests[IS_TESTS], ranks[IS_TESTS]; /* the keys with these numbers have about these ranks */
    int rising; /* how many, from the first on, rise by one in each iteration; the others fall; unused in class B */
    int shift; /* added to the number of the iteration for this */
} is_classes[] = {
    {'S', 16, 11, {48427, 17148, 23627, 62548, 4431}, {0, 18, 346, 64917, 65463}, 3, 0},
    {'W', 20, 16, {357773, 934767, 875723, 898999, 404505}, {1249, 11698, 1039987, 1043896, 1048018}, 2, -2},
    {'A', 23, 19, {2112377, 662041, 5336171, 3642833, 4250760}, {104, 17523, 123928, 8288932, 8388264}, 3, -1},
    {'B', 25, 21, {41869, 812306, 5102857, 18232239, 26860214}, {33422937, 10244, 59149, 33135281, 99}, 0, 0},
};

/* A task's part of the sort. */
struct is {
    const struct is_class *class;
    int rank, size;
    long first, count; /* number of the first key of this task, and how many it has */
    int *keys;
    int *sorted, *received; /* own keys in the order of their buckets; received keys of this task's range */
    int received_count, received_room;
    int low, high; /* this task's range of keys is low .. high - 1 */
    int *below; /* by key - low: how many received keys are lower; one element more than the range has keys */
    long before; /* number of keys in lower ranges */
    int *counts_out, *starts_out, *counts_in, *starts_in;
};

/* Returns the published rank of test `test` in an iteration. */
static int is_expected(const struct is_class *class, int test, int iteration)
{
    int rises = class->name == 'B' ? test == 1 || test == 2 || test == 4 : test < class->rising;
    /* In class W only the rising ranks are shifted. */
    int shift = class->name == 'W' && !rises ? 0 : class->shift;
    return class->ranks[test] + (rises ? iteration + shift : -(iteration + shift));
}

/* Draws this task's keys. */
static void is_draw(struct is *is)
{
    uint64_t state = npb_times(NPB_SEED, npb_power(4 * (uint64_t)is->first));
    double quarter = ldexp(1, is->class->key_bits - 2);
    for (long k = 0; k < is->count; k++) {
        double sum = npb_random(&state);
        for (int more = 0; more < 3; more++)
            sum += npb_random(&state);
        is->keys[k] = (int)(quarter * sum);
    }
}

/* Assigns buckets to tasks in order, so that each has about the same number of keys. Sets this task's range and the
 * number of keys for each task. */
static void is_deal(struct is *is, const int *mine, const int *all)
{
    int shift = is->class->key_bits - IS_BUCKET_BITS, task = 0, own = 0;
    long dealt = 0, total = 1L << is->class->bits;
    is->low = is->high = -1;
    is->before = 0;
    memset(is->counts_out, 0, (size_t)is->size * sizeof *is->counts_out);
    for (int bucket = 0; bucket < IS_BUCKETS; bucket++) {
        while (task < is->size - 1 && dealt >= first_of(total, task + 1, is->size))
            task++;
        if (task == is->rank) {
            if (is->low < 0) {
                is->low = bucket << shift;
                is->before = dealt;
            }
            is->high = (bucket + 1) << shift;
        }
        is->counts_out[task] += mine[bucket];
        dealt += all[bucket];
    }
    if (is->low < 0)
        is->low = is->high = 0; /* more tasks than buckets with keys */
    for (int r = 0; r < is->size; r++) {
        is->starts_out[r] = own;
        own += is->counts_out[r];
    }
}

/* Sorts this task's keys by bucket. */
static void is_bucket_sort(struct is *is, const int *mine)
{
    int shift = is->class->key_bits - IS_BUCKET_BITS, next[IS_BUCKETS], sum = 0;
    for (int bucket = 0; bucket < IS_BUCKETS; bucket++) {
        next[bucket] = sum;
        sum += mine[bucket];
    }
    for (long k = 0; k < is->count; k++)
        is->sorted[next[is->keys[k] >> shift]++] = is->keys[k];
}

/* Ranks all keys once. Returns how many of the tests in this task's range have the published rank. */
static int is_rank(struct is *is, int iteration)
{
    int shift = is->class->key_bits - IS_BUCKET_BITS;
    /* The elements after the buckets are the keys of the tests, each set by the task that has the key. */
    int mine[IS_BUCKETS + IS_TESTS] = {0}, all[IS_BUCKETS + IS_TESTS];
    if (is->rank == 0) {
        is->keys[iteration] = iteration;
        is->keys[iteration + IS_ITERATIONS] = (1 << is->class->key_bits) - iteration;
    }
    for (int test = 0; test < IS_TESTS; test++) {
        long at = is->class->tests[test] - is->first;
        if (at >= 0 && at < is->count)
            mine[IS_BUCKETS + test] = is->keys[at];
    }
    for (long k = 0; k < is->count; k++)
        mine[is->keys[k] >> shift]++;
    memcpy(all, mine, sizeof all);
    COMMUNICATE(sum_of_all(all, IS_BUCKETS + IS_TESTS));
    is_deal(is, mine, all);
    is_bucket_sort(is, mine);

    COMMUNICATE(trade_numbers(is->counts_out, is->counts_in));
    is->received_count = 0;
    for (int r = 0; r < is->size; r++) {
        is->starts_in[r] = is->received_count;
        is->received_count += is->counts_in[r];
    }
    if (is->received_count > is->received_room) {
        free(is->received);
        is->received_room = is->received_count + is->received_count / 8;
        is->received = zeroed_memory((size_t)is->received_room, sizeof *is->received);
    }
    COMMUNICATE(trade_keys(is->sorted, is->counts_out, is->starts_out, is->received, is->counts_in, is->starts_in));

    int range = is->high - is->low;
    memset(is->below, 0, (size_t)(range + 1) * sizeof *is->below);
    for (int k = 0; k < is->received_count; k++)
        is->below[is->received[k] - is->low + 1]++;
    for (int k = 0; k < range; k++)
        is->below[k + 1] += is->below[k];
    int right = 0;
    for (int test = 0; test < IS_TESTS; test++) {
        int key = all[IS_BUCKETS + test];
        if (key >= is->low && key < is->high)
            right += is->before + is->below[key - is->low] == is_expected(is->class, test, iteration);
    }
    return right;
}

/* Sorts this task's range by the ranks. Returns how many of its keys are out of order. */
static int is_disorder(struct is *is)
{
    int *ordered = zeroed_memory((size_t)is->received_count, sizeof *ordered), disorder = 0;
    int *next = zeroed_memory((size_t)(is->high - is->low) + 1, sizeof *next);
    memcpy(next, is->below, (size_t)(is->high - is->low) * sizeof *next);
    for (int k = 0; k < is->received_count; k++)
        ordered[next[is->received[k] - is->low]++] = is->received[k];
    int last = is->received_count ? ordered[is->received_count - 1] : is->low;
    int before = key_from_before(last, -1);
    for (int k = 0; k < is->received_count; k++) {
        disorder += ordered[k] < before;
        before = ordered[k];
    }
    free(next);
    free(ordered);
    return disorder;
}

/* Runs the kernel as one of `size` tasks. Returns the exit status of the program. */
static int is(char name, int rank, int size)
{
    const struct is_class *class = is_classes;
    while (class->name != name)
        class++;
    long total = 1L << class->bits;
    if (total / size < 2 * IS_ITERATIONS + 1)
        refuse("npb-is", "too many tasks for so few keys");
    struct is is = {.class = class, .rank = rank, .size = size, .first = first_of(total, rank, size)};
    is.count = first_of(total, rank + 1, size) - is.first;
    is.keys = zeroed_memory((size_t)is.count, sizeof *is.keys);
    is.sorted = zeroed_memory((size_t)is.count, sizeof *is.sorted);
    /* is_rank needs one element more than a range has keys. */
    is.below = zeroed_memory(((size_t)1 << class->key_bits) + 2, sizeof *is.below);
    int *numbers = zeroed_memory(4 * (size_t)size, sizeof *numbers);
    is.counts_out = numbers;
    is.starts_out = numbers + size;
    is.counts_in = numbers + 2 * size;
    is.starts_in = numbers + 3 * size;

    is_draw(&is);
    is_rank(&is, 1); /* warm-up */
    int outcome[2] = {0, 0};
    sum_of_all(outcome, 2);
    seconds_communicating = 0;
    double start = clock_seconds();
    for (int iteration = 1; iteration <= IS_ITERATIONS; iteration++)
        outcome[0] += is_rank(&is, iteration);
    double seconds = clock_seconds() - start, communicating = seconds_communicating;

    outcome[1] = is_disorder(&is);
    sum_of_all(outcome, 2);
    seconds_communicating = communicating;
    int verified = outcome[0] == IS_TESTS * IS_ITERATIONS && outcome[1] == 0;
    return npb_tell("is", name, rank, size, verified, seconds, (double)total * IS_ITERATIONS);
}

#endif
