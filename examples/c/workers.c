/* workers: task 0 distributes ranges of numbers, and the other tasks count the primes in them. A
 * worker that is done gets the next range, so fast workers do more. Alone, task 0 does all the work
 * itself. */
#include <regatta.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { RANGE = 1, STOP = 2, COUNT = 3 }; /* tags */
enum { LIMIT = 20000, EACH = 500, PRIMES = 2262 };

static void check(int code)
{
    if (code < 0) {
        fprintf(stderr, "workers: %s\n", rg_last_error());
        exit(1);
    }
}

static int64_t primes_from(int64_t from)
{
    int64_t found = 0;
    for (int64_t n = from < 2 ? 2 : from; n < from + EACH; n++) {
        int64_t divisor = 2;
        while (divisor * divisor <= n && n % divisor != 0)
            divisor++;
        found += divisor * divisor > n;
    }
    return found;
}

static int64_t master(int workers)
{
    int64_t next = 0, total = 0;
    if (workers == 0)
        for (; next < LIMIT; next += EACH)
            total += primes_from(next);
    /* Sends each worker its first range, or STOP if there is none left. */
    int busy = 0;
    for (int worker = 1; worker <= workers; worker++, next += EACH) {
        check(rg_send(&next, sizeof next, worker, next < LIMIT ? RANGE : STOP, RG_WORLD));
        busy += next < LIMIT;
    }
    while (busy > 0) {
        int64_t count;
        rg_status status;
        check(rg_recv(&count, sizeof count, RG_ANY, COUNT, RG_WORLD, &status));
        total += count;
        int more = next < LIMIT;
        check(rg_send(&next, sizeof next, status.source, more ? RANGE : STOP, RG_WORLD));
        next += more ? EACH : 0;
        busy -= !more;
    }
    return total;
}

static void worker(void)
{
    for (;;) {
        int64_t from;
        rg_status status;
        check(rg_recv(&from, sizeof from, 0, RG_ANY, RG_WORLD, &status));
        if (status.tag == STOP)
            return;
        int64_t count = primes_from(from);
        check(rg_send(&count, sizeof count, 0, COUNT, RG_WORLD));
    }
}

int main(void)
{
    check(rg_init());
    int64_t total = PRIMES;
    if (rg_rank(RG_WORLD) == 0) {
        total = master(rg_size(RG_WORLD) - 1);
        printf("%lld primes below %d\n", (long long)total, LIMIT);
    } else {
        worker();
    }
    check(rg_finalize());
    return total != PRIMES;
}
