/* ft.h: a partial differential equation in three dimensions solved by Fourier transforms. For each time step the
 * transform of a random field is multiplied by a factor and transformed back, and a checksum of the result is taken.
 *
 * Fields are distributed over the tasks by planes: along z while x and y are transformed, along y while z is. Between
 * these, each task sends each other task a part of its field, a transposition. The number of tasks must divide both
 * lengths. */
#ifndef FT_H
#define FT_H

#include "npb.h"
#include <complex.h>

/* Sums the values of all tasks element by element; all tasks get the result. */
static void sum_of_all(double *values, int count);
/* Sends a block of `bytes` bytes to each task and receives one from each. The blocks of task r are at r * bytes. */
static void trade_blocks(const void *out, void *in, size_t bytes);

typedef double complex ft_number;

enum { FT_LINES = 8, FT_SAMPLES = 1024, FT_STEPS = 20 };
#define FT_ALPHA 1e-6

static const struct ft_class {
    char name;
    int nx, ny, nz, steps;
    double sums[FT_STEPS][2];
} ft_classes[] = {
    {'S', 64, 64, 64, 6,
     {{5.546087004964e+02, 4.845363331978e+02}, {5.546385409189e+02, 4.865304269511e+02},
      {5.546148406171e+02, 4.883910722336e+02}, {5.545423607415e+02, 4.901273169046e+02},
      {5.544255039624e+02, 4.917475857993e+02}, {5.542683411902e+02, 4.932597244941e+02}}},
    {'W', 128, 128, 32, 6,
     {{5.673612178944e+02, 5.293246849175e+02}, {5.631436885271e+02, 5.282149986629e+02},
      {5.594024089970e+02, 5.270996558037e+02}, {5.560698047020e+02, 5.260027904925e+02},
      {5.530898991250e+02, 5.249400845633e+02}, {5.504159734538e+02, 5.239212247086e+02}}},
    {'A', 256, 256, 128, 6,
     {{5.046735008193e+02, 5.114047905510e+02}, {5.059412319734e+02, 5.098809666433e+02},
      {5.069376896287e+02, 5.098144042213e+02}, {5.077892868474e+02, 5.101336130759e+02},
      {5.085233095391e+02, 5.104914655194e+02}, {5.091487099959e+02, 5.107917842803e+02}}},
    {'B', 512, 256, 256, 20,
     {{5.177643571579e+02, 5.077803458597e+02}, {5.154521291263e+02, 5.088249431599e+02},
      {5.146409228649e+02, 5.096208912659e+02}, {5.142378756213e+02, 5.101023387619e+02},
      {5.139626667737e+02, 5.103976610617e+02}, {5.137423460082e+02, 5.105948019802e+02},
      {5.135547056878e+02, 5.107404165783e+02}, {5.133910925466e+02, 5.108576573661e+02},
      {5.132470705390e+02, 5.109577278523e+02}, {5.131197729984e+02, 5.110460304483e+02},
      {5.130070319283e+02, 5.111252433800e+02}, {5.129070537032e+02, 5.111968077718e+02},
      {5.128182883502e+02, 5.112616233064e+02}, {5.127393733383e+02, 5.113203605551e+02},
      {5.126691062020e+02, 5.113735928093e+02}, {5.126064276004e+02, 5.114218460548e+02},
      {5.125504076570e+02, 5.114656139760e+02}, {5.125002331720e+02, 5.115053595966e+02},
      {5.124551951846e+02, 5.115415130407e+02}, {5.124146770029e+02, 5.115744692211e+02}}},
};

/* A task's part of the fields. */
struct ft {
    const struct ft_class *class;
    int rank, size, planes, rows; /* planes along z and rows along y of this task */
    size_t elements;
    ft_number *field, *spectrum, *work; /* fields; x varies fastest, then y, then z */
    double *factor; /* of a time step, for each element of the spectrum */
    ft_number *roots; /* of unity: as many as the longest edge */
    int longest;
    ft_number *lines[2]; /* two buffers of FT_LINES interleaved lines */
};

/* Transforms FT_LINES interleaved lines of `n` numbers in lines[0]. Returns the buffer with the result. This is
 * Stockham's algorithm: every pass halves the length of the transforms and leaves them in order. */
static ft_number *ft_lines(struct ft *ft, int n, int inverse)
{
    ft_number *from = ft->lines[0], *to = ft->lines[1];
    for (int length = n, copies = 1; length > 1; length /= 2, copies *= 2) {
        int half = length / 2, stride = ft->longest / length;
        for (int j = 0; j < half; j++) {
            ft_number root = ft->roots[j * stride];
            double re = creal(root), im = inverse ? -cimag(root) : cimag(root);
            const double *a = (const double *)(from + (size_t)j * (size_t)copies * FT_LINES);
            const double *b = (const double *)(from + (size_t)(j + half) * (size_t)copies * FT_LINES);
            double *sum = (double *)(to + (size_t)(2 * j) * (size_t)copies * FT_LINES);
            double *difference = sum + 2 * (size_t)copies * FT_LINES;
            for (size_t i = 0; i < 2 * (size_t)copies * FT_LINES; i += 2) {
                double dr = a[i] - b[i], di = a[i + 1] - b[i + 1];
                sum[i] = a[i] + b[i];
                sum[i + 1] = a[i + 1] + b[i + 1];
                difference[i] = dr * re - di * im;
                difference[i + 1] = dr * im + di * re;
            }
        }
        ft_number *swap = from;
        from = to;
        to = swap;
    }
    return from;
}

/* Transforms `count` lines in place. Line l begins at l * apart; its numbers are `step` elements apart. */
static void ft_transform(struct ft *ft, ft_number *grid, int n, size_t step, int count, size_t apart, int inverse)
{
    for (int first = 0; first < count; first += FT_LINES) {
        ft_number *some = grid + (size_t)first * apart;
        for (int i = 0; i < n; i++)
            for (int l = 0; l < FT_LINES; l++)
                ft->lines[0][i * FT_LINES + l] = some[(size_t)l * apart + (size_t)i * step];
        const ft_number *done = ft_lines(ft, n, inverse);
        for (int i = 0; i < n; i++)
            for (int l = 0; l < FT_LINES; l++)
                some[(size_t)l * apart + (size_t)i * step] = done[i * FT_LINES + l];
    }
}

/* Transforms this task's planes along z in x and y. */
static void ft_planes(struct ft *ft, ft_number *grid, int inverse)
{
    int nx = ft->class->nx, ny = ft->class->ny;
    for (int plane = 0; plane < ft->planes; plane++) {
        ft_number *here = grid + (size_t)plane * (size_t)nx * (size_t)ny;
        ft_transform(ft, here, nx, 1, ny, (size_t)nx, inverse);
        ft_transform(ft, here, ny, (size_t)nx, nx, 1, inverse);
    }
}

/* Transforms this task's rows along y in z. */
static void ft_depths(struct ft *ft, ft_number *grid, int inverse)
{
    size_t plane = (size_t)ft->rows * (size_t)ft->class->nx;
    ft_transform(ft, grid, ft->class->nz, plane, (int)plane, 1, inverse);
}

/* Redistributes planes along z in `field` to planes along y in `spectrum`. */
static void ft_deal_rows(struct ft *ft)
{
    size_t run = (size_t)ft->rows * (size_t)ft->class->nx, block = run * (size_t)ft->planes;
    for (int task = 0; task < ft->size; task++)
        for (int plane = 0; plane < ft->planes; plane++)
            memcpy(ft->work + (size_t)task * block + (size_t)plane * run,
                   ft->field + ((size_t)plane * (size_t)ft->size + (size_t)task) * run, run * sizeof(ft_number));
    COMMUNICATE(trade_blocks(ft->work, ft->spectrum, block * sizeof(ft_number)));
}

/* Redistributes planes along y in `work` to planes along z in `field`. The contents of `room` are lost. */
static void ft_deal_planes(struct ft *ft, ft_number *room)
{
    size_t run = (size_t)ft->rows * (size_t)ft->class->nx, block = run * (size_t)ft->planes;
    COMMUNICATE(trade_blocks(ft->work, room, block * sizeof(ft_number)));
    for (int task = 0; task < ft->size; task++)
        for (int plane = 0; plane < ft->planes; plane++)
            memcpy(ft->field + ((size_t)plane * (size_t)ft->size + (size_t)task) * run,
                   room + (size_t)task * block + (size_t)plane * run, run * sizeof(ft_number));
}

/* Returns the wave number of an index: indices of the upper half stand for negative numbers. */
static double ft_wave(int index, int n)
{
    return index < n / 2 ? index : index - n;
}

static void ft_make_factors(struct ft *ft)
{
    const struct ft_class *class = ft->class;
    size_t at = 0;
    for (int z = 0; z < class->nz; z++)
        for (int row = 0; row < ft->rows; row++)
            for (int x = 0; x < class->nx; x++) {
                double kx = ft_wave(x, class->nx), ky = ft_wave(ft->rank * ft->rows + row, class->ny), kz = ft_wave(z, class->nz);
                ft->factor[at++] = exp(-4 * FT_ALPHA * M_PI * M_PI * (kx * kx + ky * ky + kz * kz));
            }
}

static void ft_make_roots(struct ft *ft)
{
    for (int k = 0; k < ft->longest; k++)
        ft->roots[k] = cexp(2 * M_PI * I * k / ft->longest);
}

/* Draws the random numbers of this task's planes of the field. */
static void ft_draw(struct ft *ft)
{
    uint64_t state = npb_times(NPB_SEED, npb_power(2 * (uint64_t)ft->elements * (uint64_t)ft->rank));
    for (size_t k = 0; k < ft->elements; k++) {
        double re = npb_random(&state);
        ft->field[k] = re + I * npb_random(&state);
    }
}

/* Performs one time step. The field, transformed back, is in `field`. */
static void ft_step(struct ft *ft, ft_number *room)
{
    for (size_t k = 0; k < ft->elements; k++)
        ft->work[k] = ft->spectrum[k] *= ft->factor[k];
    ft_depths(ft, ft->work, 1);
    ft_deal_planes(ft, room);
    ft_planes(ft, ft->field, 1);
}

/* Sums 1024 numbers from all over the field. */
static ft_number ft_checksum(struct ft *ft)
{
    const struct ft_class *class = ft->class;
    double sum[2] = {0, 0};
    for (int k = 1; k <= FT_SAMPLES; k++) {
        int x = k % class->nx, y = 3 * k % class->ny, plane = 5 * k % class->nz - ft->rank * ft->planes;
        if (plane < 0 || plane >= ft->planes)
            continue;
        ft_number number = ft->field[((size_t)plane * (size_t)class->ny + (size_t)y) * (size_t)class->nx + (size_t)x];
        sum[0] += creal(number);
        sum[1] += cimag(number);
    }
    COMMUNICATE(sum_of_all(sum, 2));
    return (sum[0] + I * sum[1]) / ((double)class->nx * class->ny * class->nz);
}

/* Runs from the random field to the last checksum. Returns how many checksums equal the published ones. */
static int ft_solve(struct ft *ft, ft_number *room, int steps)
{
    int right = 0;
    ft_draw(ft);
    ft_planes(ft, ft->field, 0);
    ft_deal_rows(ft);
    ft_depths(ft, ft->spectrum, 0);
    for (int step = 0; step < steps; step++) {
        ft_step(ft, room);
        ft_number sum = ft_checksum(ft);
        const double *published = ft->class->sums[step];
        right += npb_equal(creal(sum), published[0], 1e-12) && npb_equal(cimag(sum), published[1], 1e-12);
    }
    return right;
}

/* Runs the kernel as one of `size` tasks. Returns the exit status of the program. */
static int ft(char name, int rank, int size)
{
    const struct ft_class *class = ft_classes;
    while (class->name != name)
        class++;
    if (class->ny % size != 0 || class->nz % size != 0)
        refuse("npb-ft", "the number of tasks must be a power of two, not above the shorter edge");
    struct ft ft = {.class = class, .rank = rank, .size = size, .planes = class->nz / size, .rows = class->ny / size};
    ft.elements = (size_t)ft.planes * (size_t)class->nx * (size_t)class->ny;
    ft.longest = class->nx > class->nz ? class->nx : class->nz;
    ft.field = zeroed_memory(ft.elements, sizeof(ft_number));
    ft.spectrum = zeroed_memory(ft.elements, sizeof(ft_number));
    ft.work = zeroed_memory(ft.elements, sizeof(ft_number));
    ft.factor = zeroed_memory(ft.elements, sizeof(double));
    ft.roots = zeroed_memory((size_t)ft.longest, sizeof(ft_number));
    for (int k = 0; k < 2; k++)
        ft.lines[k] = zeroed_memory((size_t)ft.longest * FT_LINES, sizeof(ft_number));
    ft_number *room = zeroed_memory(ft.elements, sizeof(ft_number));

    ft_make_roots(&ft);
    ft_make_factors(&ft);
    ft_solve(&ft, room, 1); /* warm-up */
    seconds_communicating = 0;
    double start = clock_seconds();
    ft_make_factors(&ft);
    int right = ft_solve(&ft, room, class->steps);
    double seconds = clock_seconds() - start, points = (double)class->nx * class->ny * class->nz;
    double operations = points * (14.8157 + 7.19641 * log(points) + (5.23518 + 7.21113 * log(points)) * class->steps);
    return npb_tell("ft", name, rank, size, right == class->steps, seconds, operations);
}

#endif
