/* Global operations of NX, Gray codes, clocks. */
#include "nx_check.h"

#include <signal.h>

enum { MAX_ELEMENTS = 5000 };

#define VECTORS(type, letter)                                                           \
    static void letter##_vectors(void)                                                  \
    {                                                                                   \
        begin();                                                                        \
        static type x[MAX_ELEMENTS], work[MAX_ELEMENTS];                                                \
        static const long lengths[] = {0, 1, 3, MAX_ELEMENTS};                                  \
        for (int which = 0; which < 4; which++) {                                       \
            long n = lengths[which];                                                    \
            for (long i = 0; i < n; i++)                                                \
                x[i] = (type)(i % 10 + me);                                             \
            g##letter##sum(x, n, work);                                                 \
            for (long i = 0; i < n; i++)                                                \
                CHECK(x[i] == (type)(size * (i % 10) + size * (size - 1) / 2));         \
            for (long i = 0; i < n; i++)                                                \
                x[i] = (type)(i % 2 ? me + 1 : 1);                                      \
            g##letter##prod(x, n, work);                                                \
            for (long i = 0; i < n; i++)                                                \
                CHECK(x[i] == (type)(i % 2 ? 6 : 1));                                   \
            for (long i = 0; i < n; i++)                                                \
                x[i] = (type)(i % 2 ? me : -me);                                        \
            g##letter##high(x, n, work);                                                \
            for (long i = 0; i < n; i++)                                                \
                CHECK(x[i] == (type)(i % 2 ? size - 1 : 0));                            \
            for (long i = 0; i < n; i++)                                                \
                x[i] = (type)(i % 2 ? me : -me);                                        \
            g##letter##low(x, n, NULL);                                                 \
            for (long i = 0; i < n; i++)                                                \
                CHECK(x[i] == (type)(i % 2 ? 0 : 1 - size));                            \
        }                                                                               \
        x[0] = (type)1;                                                                 \
        CHECK(_g##letter##sum(x, 1, work) == 0 && x[0] == (type)size);                  \
        CHECK(_g##letter##prod(x, 1, work) == 0 && _g##letter##high(x, 1, work) == 0);  \
        CHECK(_g##letter##low(x, 1, work) == 0 && x[0] == (type)(size * size * size));  \
        GIVES(_g##letter##sum(x, -1, work), EQLEN);                                     \
        GIVES(_g##letter##prod(NULL, 1, work), EQPBUF);                                 \
        GIVES(_g##letter##high(x, -2, work), EQLEN);                                    \
        GIVES(_g##letter##low(x, -3, work), EQLEN);                                     \
    }

VECTORS(double, d)
VECTORS(float, s)
VECTORS(long, i)

static void bits(void)
{
    begin();
    long work[4];
#define ALL(call, one, zero, both, ...)                                          \
    do {                                                                         \
        long x[] = {__VA_ARGS__};                                                \
        call(x, 3, work);                                                        \
        CHECK(x[0] == (one) && x[1] == (zero) && x[2] == (both));                \
        long again[] = {__VA_ARGS__};                                            \
        CHECK(_##call(again, 3, work) == 0 && memcmp(x, again, sizeof x) == 0);  \
        GIVES(_##call(x, -1, work), EQLEN);                                      \
    } while (0)
    /* Each node has its own bit, all have bit 4, only node 0 has bit 5. */
    const long own = 1L << me, all = 16, first = me == 0 ? 32 : 0;
    ALL(giand, all, 0, 1L << 40, own | all, own, 1L << 40);
    ALL(gior, 7 | all, 32, 0, own | all, first, 0);
    ALL(gixor, 7 | all, 32, 0, own | all, first, me < 2 ? 9 : 0);
    ALL(gland, 1, 0, 1, own, first, -1);
    ALL(glor, 1, 1, 0, own, first, 0);
    ALL(glxor, 1, 1, 0, own, first, me < 2);
}

static void concatenations(void)
{
    begin();
    int mine[4] = {me, me, me, me}, all[16];
    long count = -1;
    /* Node n has n + 1 numbers. */
    const long own = (me + 1) * (long)sizeof(int), whole = 6 * sizeof(int);
    gcol(mine, own, all, sizeof all, &count);
    CHECK(count == whole);
    static const int expected[] = {0, 1, 1, 2, 2, 2};
    CHECK(memcmp(all, expected, sizeof expected) == 0);
    memset(all, 9, sizeof all);
    long lengths[] = {sizeof(int), 2 * sizeof(int), 3 * sizeof(int)};
    gcolx(mine, lengths, all);
    CHECK(memcmp(all, expected, sizeof expected) == 0);
    CHECK(_gcolx(mine, lengths, all) == 0);
    /* Only one node has no room: it alone gets the error. */
    if (me == 1)
        GIVES(_gcol(mine, own, all, whole - 1, &count), EQLEN);
    else
        CHECK(_gcol(mine, own, all, whole, &count) == 0 && count == whole);
    /* Some nodes contribute nothing. */
    gcol(mine, me == 2 ? 4 : 0, all, sizeof all, &count);
    CHECK(count == 4 && all[0] == 2);
    GIVES(_gcol(mine, -1, all, sizeof all, &count), EQLEN);
    lengths[0] = -1;
    GIVES(_gcolx(mine, lengths, all), EQLEN);
    GIVES(_gcolx(mine, NULL, all), EQPARAM);
    gsync();
}

struct extremes {
    double high, low;
    int where;
};

static long widen(struct extremes *a, struct extremes *b)
{
    if (b->high > a->high)
        a->high = b->high, a->where = b->where;
    if (b->low < a->low)
        a->low = b->low;
    return 0;
}

static void operators(void)
{
    begin();
    for (int round = 0; round < 3; round++) {
        struct extremes x = {me == 1 ? 50 : me, -me, me}, work;
        if (round % 2)
            CHECK(_gopf(&x, sizeof x, &work, widen) == 0);
        else
            gopf(&x, sizeof x, &work, widen);
        CHECK(x.high == 50 && x.low == 1 - size && x.where == 1);
    }
    GIVES(_gopf(&me, sizeof me, NULL, NULL), EQHND);
    GIVES(_gopf(&me, -1, NULL, widen), EQLEN);
    GIVES(_gopf(&me, 1L << 40, NULL, widen), EQLEN);
    CHECK(_gsync() == 0);
}

/* Vectors and lengths may be unaligned, as in a Fortran common block. */
static void anywhere(void)
{
    static char memory[1000];
    double real;
    long number;
    begin();
    real = me + 1;
    memcpy(memory + 5, &real, sizeof real);
    gdsum((double *)(memory + 5), 1, NULL);
    memcpy(&real, memory + 5, sizeof real);
    CHECK(real == size * (size + 1) / 2);
    number = me;
    memcpy(memory + 22, &number, sizeof number);
    gisum((long *)(memory + 22), 1, NULL);
    memcpy(&number, memory + 22, sizeof number);
    CHECK(number == size * (size - 1) / 2);
    for (int node = 0; node < size; node++) {
        number = 3;
        memcpy(memory + 101 + node * sizeof number, &number, sizeof number);
    }
    gcolx("one", (long *)(memory + 101), memory + 500);
    CHECK(memcmp(memory + 500, "oneone", 6) == 0);
    gcol("two", 3, memory + 500, 500, (long *)(memory + 301));
    memcpy(&number, memory + 301, sizeof number);
    CHECK(number == 3 * size);
    number = me;
    memcpy(memory + 401, &number, sizeof number);
    gsendx(1, "three", 5, (long *)(memory + 401), 1);
    crecvx(1, memory, 5, me, -1, (long *)(memory + 601));
    memcpy(&number, memory + 601 + sizeof number, sizeof number);
    CHECK(number == 5);
}

/* The last node dies during the sums. */
static void dies(void)
{
    begin();
    for (int round = 0;; round++) {
        double one = 1;
        if (me == size - 1 && round == 100)
            raise(SIGKILL);
        gdsum(&one, 1, NULL);
        CHECK(one == size);
    }
}

/* No node leaves the barrier before the last has entered it. */
static void barriers(void)
{
    begin();
    for (int round = 0; round < 20; round++) {
        long come = me;
        if (me == round % size) {
            for (int other = 1; other < size; other++)
                crecv(round, &come, sizeof come);
            gsync();
        } else {
            csend(round, &come, sizeof come, round % size, 0);
            gsync();
        }
    }
}

static void clocks(void)
{
    for (long i = 0; i < 300; i++) {
        CHECK(gray(i) == (i ^ i >> 1) && ginv(gray(i)) == i);
        CHECK(_gray(i) == gray(i) && _ginv(i) == ginv(i));
    }
    unsigned long start = mclock(), later;
    double seconds = dclock();
    esize_t ticks, then;
    hwclock(&ticks);
    while ((later = mclock()) < start + 20)
        flick();
    CHECK(dclock() >= seconds + 0.015 && dclock() < seconds + 60 && _dclock() >= seconds);
    CHECK(_mclock() >= later && later < start + 60000);
    CHECK(_hwclock(&then) == 0 && (then.shigh > ticks.shigh || then.slow > ticks.slow));
    GIVES(_hwclock(NULL), EQPARAM);
    led(1);
    CHECK(_led(0) == 0 && _flick() == 0);
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"doubles", d_vectors, true},    {"floats", s_vectors, true},
        {"longs", i_vectors, true},      {"bits", bits, true},
        {"concatenations", concatenations, true}, {"operators", operators, true},
        {"barriers", barriers, true},    {"clocks", clocks, true},
        {"anywhere", anywhere, true},    {"dies", dies, true},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
