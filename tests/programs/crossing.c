/*
 * crossing: two tasks send each other large messages with sends that do not wait, and only then receive. Each must get
 * what was sent, even if the sender overwrites its memory at once. That must take about as long as an exchange in one
 * call.
 */
#include "check.h"

enum { SAMPLES = 15, BATCHES = 8, TAG = 4, MAX_RATIO = 4 };

static const size_t lengths[] = {100 << 10, (256 << 10) + 24, 1 << 20, 3 << 20};

static unsigned char *out, *in;

static void cross(size_t len)
{
    OK(rg_bsend(out, len, 1 - me, TAG, RG_WORLD));
    OK(rg_recv(in, len, 1 - me, TAG, RG_WORLD, NULL));
}

static void exchange(size_t len)
{
    OK(rg_sendrecv(out, len, 1 - me, TAG, in, len, 1 - me, TAG, RG_WORLD, NULL));
}

static unsigned char byte_of(int task, int round, size_t at)
{
    return (unsigned char)(at * 7 + at / 4096 + (size_t)(round * 3 + task));
}

static void whole(void)
{
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int round = 0; round < 2 * SAMPLES; round++) {
            size_t len = lengths[i];
            for (size_t at = 0; at < len; at++)
                out[at] = byte_of(me, round, at);
            OK(rg_bsend(out, len, 1 - me, TAG, RG_WORLD));
            memset(out, 0, len);
            OK(rg_recv(in, len, 1 - me, TAG, RG_WORLD, NULL));
            for (size_t at = 0; at < len; at++)
                if (in[at] != byte_of(1 - me, round, at))
                    FAILED("byte %zu of %zu in round %d is another one", at, len, round);
        }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns the median time of one pass, in seconds. */
static double median(void (*pass)(size_t), size_t len)
{
    double took[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) {
        double begun = rg_time();
        pass(len);
        took[i] = rg_time() - begun;
    }
    qsort(took, SAMPLES, sizeof *took, ascending);
    return took[SAMPLES / 2];
}

static void soon(void)
{
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        double crossing = 1e9, exchanging = 1e9;
        for (int batch = 0; batch < BATCHES; batch++) {
            double one = median(cross, lengths[i]), other = median(exchange, lengths[i]);
            crossing = one < crossing ? one : crossing;
            exchanging = other < exchanging ? other : exchanging;
        }
        if (me == 0)
            printf("%zu bytes: crossing %.1f us, exchanged %.1f us\n", lengths[i], crossing * 1e6, exchanging * 1e6);
        CHECK(crossing <= MAX_RATIO * exchanging);
    }
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"whole", whole, false},
        {"soon", soon, false},
        {NULL, NULL, false},
    };
    size_t longest = lengths[sizeof lengths / sizeof *lengths - 1];
    out = malloc(longest);
    in = malloc(longest);
    CHECK(out && in);
    memset(out, 1, longest);
    memset(in, 1, longest);
    return check_main(argc, argv, scenarios);
}
