/* mg.h: multigrid. V-cycles approximate the solution of a Poisson equation on a cube with periodic boundaries, whose
 * right side is ten charges of each sign.
 *
 * Grids are distributed over the tasks by planes. A task needs the plane before its own and the plane after them: its
 * ghosts. Coarse grids of which a task would have less than two planes are held whole by every task, and every task
 * computes the same there. */
#ifndef MG_H
#define MG_H

#include "npb.h"

/* Sums the values of all tasks element by element; all tasks get the result. */
static void sum_of_all(double *values, int count);
/* Exchanges planes of `count` numbers: `last` goes to the next task and becomes its `ghost_before`, `first` goes to the
 * task before and becomes its `ghost_behind`. The first task follows the last. */
static void trade_planes(const double *first, const double *last, double *ghost_before, double *ghost_behind, int count);
/* Completes a vector of which each task has `count` elements; those of task r begin at r * count. */
static void gather_parts(double *vector, int count);

enum { MG_LEVELS = 9, MG_CHARGES = 10, MG_SMALLEST_SPLIT = 16 };

static const struct mg_class {
    char name;
    int level, cycles; /* the length of an edge is 2 to the power `level` */
    double norm;
    double smoother[3];
} mg_classes[] = {
    {'S', 5, 4, 0.5307707005734e-04, {-3.0 / 8, 1.0 / 32, -1.0 / 64}},
    {'W', 7, 4, 0.6467329375339e-05, {-3.0 / 8, 1.0 / 32, -1.0 / 64}},
    {'A', 8, 4, 0.2433365309069e-05, {-3.0 / 8, 1.0 / 32, -1.0 / 64}},
    {'B', 8, 20, 0.1800564401355e-05, {-3.0 / 17, 1.0 / 33, -1.0 / 61}},
};

/* A task's part of a grid of `edge` planes with `edge` rows each. Planes 1 to `planes`, and rows and elements 1 to
 * `edge`, are its own; ghosts surround them. Plane 1 is plane `first` of the cube, counted from 1. */
struct mg_level {
    int edge, planes, first, split;
    size_t plane; /* elements in a plane, with ghosts */
    double *u, *r;
};

struct mg {
    const struct mg_class *class;
    int rank, size;
    double *v; /* right side, on the finest grid */
    double *row1, *row2; /* sums of neighbours for each element of a row */
    struct mg_level levels[MG_LEVELS + 1];
};

/* Updates the ghosts of a grid. */
static void mg_ghosts(const struct mg_level *level, double *grid)
{
    int edge = level->edge;
    size_t width = (size_t)edge + 2, plane = level->plane;
    for (int k = 1; k <= level->planes; k++) {
        double *here = grid + (size_t)k * plane;
        for (int j = 1; j <= edge; j++) {
            double *row = here + (size_t)j * width;
            row[0] = row[edge];
            row[edge + 1] = row[1];
        }
        memcpy(here, here + (size_t)edge * width, width * sizeof *grid);
        memcpy(here + ((size_t)edge + 1) * width, here + width, width * sizeof *grid);
    }
    double *first = grid + plane, *last = grid + (size_t)level->planes * plane;
    if (level->split) {
        COMMUNICATE(trade_planes(first, last, grid, last + plane, (int)plane));
    } else {
        memcpy(grid, last, plane * sizeof *grid);
        memcpy(last + plane, first, plane * sizeof *grid);
    }
}

/* Sums the neighbours, across the row, of each element of a row: in `row1` the four that share a face with it, in
 * `row2` the four that share an edge. */
static void mg_neighbours(const struct mg *mg, const double *row, size_t width, size_t plane)
{
    const double *up = row - width, *down = row + width, *before = row - plane, *behind = row + plane;
    for (size_t i = 0; i < width; i++) {
        mg->row1[i] = up[i] + down[i] + before[i] + behind[i];
        mg->row2[i] = before[i - width] + before[i + width] + behind[i - width] + behind[i + width];
    }
}

/* Computes r = v - A u. */
static void mg_residual(struct mg *mg, int number, const double *v)
{
    struct mg_level *level = &mg->levels[number];
    size_t width = (size_t)level->edge + 2;
    const double a0 = -8.0 / 3, a2 = 1.0 / 6, a3 = 1.0 / 12;
    for (int k = 1; k <= level->planes; k++)
        for (int j = 1; j <= level->edge; j++) {
            size_t at = (size_t)k * level->plane + (size_t)j * width;
            const double *u = level->u + at, *right = v + at, *n1 = mg->row1, *n2 = mg->row2;
            double *r = level->r + at;
            mg_neighbours(mg, u, width, level->plane);
            for (int i = 1; i <= level->edge; i++)
                r[i] = right[i] - a0 * u[i] - a2 * (n2[i] + n1[i - 1] + n1[i + 1]) - a3 * (n2[i - 1] + n2[i + 1]);
        }
    mg_ghosts(level, level->r);
}

/* Computes u = u + S r. */
static void mg_smooth(struct mg *mg, int number)
{
    struct mg_level *level = &mg->levels[number];
    size_t width = (size_t)level->edge + 2;
    const double *c = mg->class->smoother;
    for (int k = 1; k <= level->planes; k++)
        for (int j = 1; j <= level->edge; j++) {
            size_t at = (size_t)k * level->plane + (size_t)j * width;
            const double *r = level->r + at, *n1 = mg->row1, *n2 = mg->row2;
            double *u = level->u + at;
            mg_neighbours(mg, r, width, level->plane);
            for (int i = 1; i <= level->edge; i++)
                u[i] += c[0] * r[i] + c[1] * (r[i - 1] + r[i + 1] + n1[i]) + c[2] * (n2[i] + n1[i - 1] + n1[i + 1]);
        }
    mg_ghosts(level, level->u);
}

/* Restricts the residual of a grid to the next coarser one. */
static void mg_restrict(struct mg *mg, int number)
{
    struct mg_level *fine = &mg->levels[number], *coarse = &mg->levels[number - 1];
    size_t width = (size_t)fine->edge + 2, narrow = (size_t)coarse->edge + 2;
    /* If only the finer grid is split, this task computes its planes of the coarser one and receives the others from
     * the other tasks. */
    int gathers = fine->split && !coarse->split, planes = fine->planes / 2, offset = gathers ? fine->first / 2 : 0;
    for (int k = 1; k <= planes; k++)
        for (int j = 1; j <= coarse->edge; j++) {
            const double *r = fine->r + 2 * (size_t)k * fine->plane + 2 * (size_t)j * width;
            double *s = coarse->r + (size_t)(k + offset) * coarse->plane + (size_t)j * narrow;
            mg_neighbours(mg, r, width, fine->plane);
            for (int i = 1; i <= coarse->edge; i++) {
                int at = 2 * i;
                s[i] = 0.5 * r[at] + 0.25 * (r[at - 1] + r[at + 1] + mg->row1[at]) +
                       0.125 * (mg->row1[at - 1] + mg->row1[at + 1] + mg->row2[at]) +
                       0.0625 * (mg->row2[at - 1] + mg->row2[at + 1]);
            }
        }
    if (gathers)
        COMMUNICATE(gather_parts(coarse->r + coarse->plane, planes * (int)coarse->plane));
    mg_ghosts(coarse, coarse->r);
}

/* Adds the interpolated solution of a grid to that of the next finer one, ghosts included. */
static void mg_interpolate(struct mg *mg, int number)
{
    struct mg_level *coarse = &mg->levels[number], *fine = &mg->levels[number + 1];
    size_t width = (size_t)fine->edge + 2, narrow = (size_t)coarse->edge + 2;
    int offset = fine->split && !coarse->split ? fine->first / 2 : 0;
    for (int k = 0; k <= fine->planes / 2; k++)
        for (int j = 0; j <= coarse->edge; j++) {
            const double *z = coarse->u + (size_t)(k + offset) * coarse->plane + (size_t)j * narrow;
            const double *below = z + narrow, *behind = z + coarse->plane, *both = behind + narrow;
            double *u = fine->u + 2 * (size_t)k * fine->plane + 2 * (size_t)j * width;
            for (int i = 0; i <= coarse->edge; i++) {
                double here[4] = {z[i], z[i] + below[i], z[i] + behind[i], z[i] + below[i] + behind[i] + both[i]};
                double next[4] = {z[i + 1], z[i + 1] + below[i + 1], z[i + 1] + behind[i + 1],
                                  z[i + 1] + below[i + 1] + behind[i + 1] + both[i + 1]};
                double *parts[4] = {u, u + width, u + fine->plane, u + fine->plane + width};
                const double weights[4] = {1, 0.5, 0.5, 0.25};
                for (int part = 0; part < 4; part++) {
                    parts[part][2 * i] += weights[part] * here[part];
                    parts[part][2 * i + 1] += 0.5 * weights[part] * (here[part] + next[part]);
                }
            }
        }
}

static void mg_clear(const struct mg_level *level)
{
    memset(level->u, 0, ((size_t)level->planes + 2) * level->plane * sizeof *level->u);
}

/* Performs one V-cycle: down to the coarsest grid, and up again. */
static void mg_cycle(struct mg *mg)
{
    int top = mg->class->level;
    for (int k = top; k > 1; k--)
        mg_restrict(mg, k);
    mg_clear(&mg->levels[1]);
    mg_smooth(mg, 1);
    for (int k = 2; k < top; k++) {
        mg_clear(&mg->levels[k]);
        mg_interpolate(mg, k - 1);
        mg_residual(mg, k, mg->levels[k].r);
        mg_smooth(mg, k);
    }
    mg_interpolate(mg, top - 1);
    mg_residual(mg, top, mg->v);
    mg_smooth(mg, top);
}

/* Returns the root mean square of the residual on the finest grid. */
static double mg_norm(const struct mg *mg)
{
    const struct mg_level *level = &mg->levels[mg->class->level];
    size_t width = (size_t)level->edge + 2;
    double sum = 0;
    for (int k = 1; k <= level->planes; k++)
        for (int j = 1; j <= level->edge; j++)
            for (int i = 1; i <= level->edge; i++) {
                double r = level->r[(size_t)k * level->plane + (size_t)j * width + (size_t)i];
                sum += r * r;
            }
    COMMUNICATE(sum_of_all(&sum, 1));
    return sqrt(sum / pow(level->edge, 3));
}

/* The most extreme numbers found so far for charges of one sign, largest first, and their positions. */
struct mg_extremes {
    double number[MG_CHARGES];
    long at[MG_CHARGES];
};

/* Inserts a number if it is one of the largest. */
static void mg_keep(struct mg_extremes *extremes, double number, long at)
{
    if (number <= extremes->number[MG_CHARGES - 1])
        return;
    int place = MG_CHARGES - 1;
    for (; place > 0 && extremes->number[place - 1] < number; place--) {
        extremes->number[place] = extremes->number[place - 1];
        extremes->at[place] = extremes->at[place - 1];
    }
    extremes->number[place] = number;
    extremes->at[place] = at;
}

/* Sets the charges: of random numbers all over the cube, the ten largest become 1 and the ten smallest -1. Every task
 * draws all numbers; this is not timed. */
static void mg_charge(struct mg *mg)
{
    const struct mg_level *level = &mg->levels[mg->class->level];
    struct mg_extremes large, small;
    for (int k = 0; k < MG_CHARGES; k++)
        large.number[k] = small.number[k] = -2;
    uint64_t state = NPB_SEED;
    long edge = level->edge;
    for (long at = 0; at < edge * edge * edge; at++) {
        double number = npb_random(&state);
        mg_keep(&large, number, at);
        mg_keep(&small, -number, at);
    }
    for (int k = 0; k < 2 * MG_CHARGES; k++) {
        long at = k < MG_CHARGES ? large.at[k] : small.at[k - MG_CHARGES];
        long plane = at / (edge * edge) + 1 - (level->first - 1), row = at / edge % edge + 1, i = at % edge + 1;
        if (plane >= 1 && plane <= level->planes)
            mg->v[(size_t)plane * level->plane + (size_t)(row * (edge + 2) + i)] = k < MG_CHARGES ? 1 : -1;
    }
    mg_ghosts(level, mg->v);
}

/* Allocates the grids. A grid is split if every task gets at least two of its planes. */
static void mg_make(struct mg *mg)
{
    for (int k = 1; k <= mg->class->level; k++) {
        struct mg_level *level = &mg->levels[k];
        level->edge = 1 << k;
        level->split = level->edge >= 2 * mg->size && level->edge >= MG_SMALLEST_SPLIT && mg->size > 1;
        level->planes = level->split ? level->edge / mg->size : level->edge;
        level->first = level->split ? mg->rank * level->planes + 1 : 1;
        level->plane = ((size_t)level->edge + 2) * ((size_t)level->edge + 2);
        size_t elements = ((size_t)level->planes + 2) * level->plane;
        level->u = zeroed_memory(elements, sizeof(double));
        level->r = zeroed_memory(elements, sizeof(double));
        if (k == mg->class->level) {
            mg->v = zeroed_memory(elements, sizeof(double));
            mg->row1 = zeroed_memory((size_t)level->edge + 2, sizeof(double));
            mg->row2 = zeroed_memory((size_t)level->edge + 2, sizeof(double));
        }
    }
}

/* Runs the kernel as one of `size` tasks. Returns the exit status of the program. */
static int mg(char name, int rank, int size)
{
    const struct mg_class *class = mg_classes;
    while (class->name != name)
        class++;
    int edge = 1 << class->level;
    if (edge % size != 0 || 2 * size > edge)
        refuse("npb-mg", "the number of tasks must be a power of two, and each task needs at least two planes");
    struct mg mg = {.class = class, .rank = rank, .size = size};
    mg_make(&mg);
    mg_charge(&mg);
    mg_residual(&mg, class->level, mg.v);
    mg_cycle(&mg); /* warm-up */
    mg_clear(&mg.levels[class->level]);
    mg_norm(&mg);

    seconds_communicating = 0;
    double start = clock_seconds();
    mg_residual(&mg, class->level, mg.v);
    for (int cycle = 0; cycle < class->cycles; cycle++) {
        mg_cycle(&mg);
        mg_residual(&mg, class->level, mg.v);
    }
    double norm = mg_norm(&mg), seconds = clock_seconds() - start;
    return npb_tell("mg", name, rank, size, npb_equal(norm, class->norm, 1e-8), seconds,
                    58.0 * class->cycles * pow(edge, 3));
}

#endif
