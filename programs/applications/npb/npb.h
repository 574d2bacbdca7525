/* npb.h: what the five kernels of the NAS parallel benchmarks share: random numbers, verification, output.
 *
 * The kernels are described in D. Bailey et al., "The NAS Parallel Benchmarks", RNR-91-002 (1991, revised as RNR-94-007), and their problem
 * classes and verification values in the reports of NPB 2 and 3. The programs here were written from these descriptions.
 *
 * Each kernel is a header, KERNEL.h, with the whole computation and its decomposition. It declares the few
 * communication functions that it needs as static functions. INTERFACE/KERNEL.c defines them with one interface, and a
 * main function that joins and leaves. */
#ifndef NPB_H
#define NPB_H

#include "../clock.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

/* Random numbers: x' = a x mod 2^46 with a = 5^13; the number is x / 2^46, between 0 and 1. */
#define NPB_MULTIPLIER UINT64_C(1220703125)
#define NPB_SEED UINT64_C(314159265)
#define NPB_MODULUS_BITS 46

/* Returns the product modulo 2^46. Products wrap modulo 2^64, a multiple of that, so the result is exact. */
static inline uint64_t npb_times(uint64_t a, uint64_t b)
{
    return a * b & ((UINT64_C(1) << NPB_MODULUS_BITS) - 1);
}

/* Returns the multiplier to the power n, with which a task skips n random numbers. */
static inline uint64_t npb_power(uint64_t n)
{
    uint64_t result = 1;
    for (uint64_t square = NPB_MULTIPLIER; n; n >>= 1, square = npb_times(square, square))
        if (n & 1)
            result = npb_times(result, square);
    return result;
}

/* Advances the state and returns its number. */
static inline double npb_random(uint64_t *state)
{
    *state = npb_times(*state, NPB_MULTIPLIER);
    return (double)*state * 0x1p-46;
}

/* Returns whether a value equals the published one within a relative error. */
static inline int npb_equal(double value, double published, double tolerance)
{
    return fabs(value - published) <= tolerance * fabs(published);
}

/* Returns the class named on the command line, or S if none is named. */
static inline char npb_class(int argc, char **argv)
{
    if (argc < 2)
        return 'S';
    if (strlen(argv[1]) != 1 || !strchr("SWAB", argv[1][0]))
        refuse("npb", "the class must be one of S, W, A, B");
    return argv[1][0];
}

/* At task 0, prints the result line of a run. Returns the exit status. `operations` is the number of operations as the
 * report counts them. */
static inline int npb_tell(const char *kernel, char class, int rank, int size, int verified, double seconds, double operations)
{
    if (rank == 0) {
        printf("npb-%s class %c, %d tasks: %s, %.6f s, %.2f Mop/s, %.6f s in communications\n", kernel, class, size,
               verified ? "verified" : "NOT VERIFIED", seconds, operations / seconds * 1e-6, seconds_communicating);
        fflush(stdout);
    }
    return !verified;
}

#endif
