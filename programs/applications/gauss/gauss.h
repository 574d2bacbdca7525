/* gauss.h: Gaussian elimination with partial pivoting, in the three ways of I. Ahmad, "Express versus PVM: A performance comparison" (1997).
 *
 *   row-block         a task has consecutive rows. All tasks search for the pivot; the task that has it broadcasts its row.
 *   column-block      a task has consecutive columns. The column's task finds the pivot alone, and broadcasts the multipliers.
 *   column-scattered  the same with columns assigned cyclically, so that no task runs out of work near the end.
 *
 * Rows are never moved: for each row its step records when it was the pivot. Only the elimination is timed, as in the
 * paper; the substitution after it only checks the answer. */
#ifndef GAUSS_H
#define GAUSS_H

#include "../clock.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

/* A candidate for the pivot: its absolute value, and the task and row that have it. */
struct gauss_pivot {
    double value;
    int32_t task, row;
};

/* Finds the largest candidate of all tasks, or that of the lowest task if several are equal. All tasks get it. */
static void largest_of_all(struct gauss_pivot *pivot);
/* Broadcasts `bytes` bytes from task `from`, which every task knows. */
static void broadcast(void *data, int bytes, int from);

#define GAUSS_SEED UINT64_C(88172645463325252)
#define GAUSS_TOLERANCE 1e-6

/* This task's part of the system of `n` equations. Column n is the right side. */
struct gauss {
    int n, rank, size, scattered;
    int first, count; /* rows or columns of this task */
    double *rows; /* by rows: count rows of n + 1 elements; by columns: count columns of n; starts are `stride` apart */
    size_t stride;
    int *step; /* for each row, the step in which it was the pivot, or -1; by rows, only for this task's rows */
    int *order; /* the row of each step; by columns only */
    double *message; /* the pivot's row, or the number of that row and the multipliers */
};

/* Returns element (row, column) of the matrix: a number between -1 and 1 that depends only on row and column. */
static double gauss_element(int row, int column)
{
    uint64_t x = GAUSS_SEED + (uint64_t)row * UINT64_C(0x9E3779B97F4A7C15) + (uint64_t)column * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return (double)(x >> 11) * 0x1p-52 - 1;
}

/* Returns the right side of a row for the solution whose unknown j is 1 + j mod 3. */
static double gauss_right_side(int n, int row)
{
    double sum = 0;
    for (int j = 0; j < n; j++)
        sum += gauss_element(row, j) * (1 + j % 3);
    return sum;
}

static double gauss_fill(int n, int row, int column)
{
    return column == n ? gauss_right_side(n, row) : gauss_element(row, column);
}

/* Returns the distance, in elements, between the starts of rows or columns of `elements` elements. It is a multiple of
 * the cache line but not of a page, since otherwise the same elements of all rows would share a few sets of the cache.
 * */
static size_t gauss_stride(int elements)
{
    size_t stride = ((size_t)elements + 7) / 8 * 8;
    return stride % 512 ? stride : stride + 8;
}

/* ---- by rows --------------------------------------------------------------------------------- */

static void gauss_rows_begin(struct gauss *g)
{
    g->first = (int)first_of(g->n, g->rank, g->size);
    g->count = (int)first_of(g->n, g->rank + 1, g->size) - g->first;
    g->stride = gauss_stride(g->n + 1);
    g->rows = zeroed_memory((size_t)g->count * g->stride, sizeof(double));
    g->step = zeroed_memory((size_t)g->count, sizeof *g->step);
    for (int i = 0; i < g->count; i++) {
        g->step[i] = -1;
        for (int j = 0; j <= g->n; j++)
            g->rows[(size_t)i * g->stride + (size_t)j] = gauss_fill(g->n, g->first + i, j);
    }
}

static void gauss_rows_eliminate(struct gauss *g)
{
    size_t stride = g->stride;
    for (int k = 0; k < g->n; k++) {
        struct gauss_pivot pivot = {-1, g->rank, -1};
        for (int i = 0; i < g->count; i++) {
            double value = fabs(g->rows[(size_t)i * stride + (size_t)k]);
            if (g->step[i] < 0 && value > pivot.value)
                pivot = (struct gauss_pivot){value, g->rank, i};
        }
        COMMUNICATE(largest_of_all(&pivot));
        double *row = g->message;
        if (pivot.task == g->rank) {
            g->step[pivot.row] = k;
            row = g->rows + (size_t)pivot.row * stride;
        }
        COMMUNICATE(broadcast(row + k, (g->n + 1 - k) * (int)sizeof *row, pivot.task));
        for (int i = 0; i < g->count; i++) {
            if (g->step[i] >= 0)
                continue;
            double *own = g->rows + (size_t)i * stride, factor = own[k] / row[k];
            for (int j = k; j <= g->n; j++)
                own[j] -= factor * row[j];
        }
    }
}

/* Substitutes from the last unknown to the first. The task that has the row of a step computes its unknown. Returns the
 * largest error. */
static double gauss_rows_error(struct gauss *g)
{
    size_t stride = g->stride;
    double *x = zeroed_memory((size_t)g->n, sizeof *x), error = 0;
    for (int k = g->n - 1; k >= 0; k--) {
        struct gauss_pivot owner = {-1, g->rank, -1};
        for (int i = 0; i < g->count; i++)
            if (g->step[i] == k)
                owner = (struct gauss_pivot){1, g->rank, i};
        int mine = owner.row;
        largest_of_all(&owner);
        if (owner.task == g->rank) {
            const double *row = g->rows + (size_t)mine * stride;
            double sum = row[g->n];
            for (int j = k + 1; j < g->n; j++)
                sum -= row[j] * x[j];
            x[k] = sum / row[k];
        }
        broadcast(x + k, sizeof *x, owner.task);
        error = fmax(error, fabs(x[k] - (1 + k % 3)));
    }
    free(x);
    return error;
}

/* ---- by columns -------------------------------------------------------------------------------- */

/* Returns the task that owns a column. */
static int gauss_owner(const struct gauss *g, int column)
{
    if (g->scattered)
        return column % g->size;
    int task = (int)((long)column * g->size / (g->n + 1));
    while (first_of(g->n + 1, task + 1, g->size) <= column)
        task++;
    return task;
}

/* Returns the number of this task's column with index `place`. */
static int gauss_column(const struct gauss *g, int place)
{
    return g->scattered ? g->rank + place * g->size : g->first + place;
}

/* Returns the elements of a column of this task. */
static double *gauss_own(const struct gauss *g, int column)
{
    int place = g->scattered ? column / g->size : column - g->first;
    return g->rows + (size_t)place * g->stride;
}

static void gauss_columns_begin(struct gauss *g)
{
    int columns = g->n + 1;
    g->first = (int)first_of(columns, g->rank, g->size);
    g->count = g->scattered ? (columns - g->rank + g->size - 1) / g->size : (int)first_of(columns, g->rank + 1, g->size) - g->first;
    g->stride = gauss_stride(g->n);
    g->rows = zeroed_memory((size_t)g->count * g->stride, sizeof(double));
    g->step = zeroed_memory((size_t)g->n, sizeof *g->step);
    g->order = zeroed_memory((size_t)g->n, sizeof *g->order);
    for (int i = 0; i < g->n; i++)
        g->step[i] = -1;
    for (int place = 0; place < g->count; place++)
        for (int i = 0; i < g->n; i++)
            g->rows[(size_t)place * g->stride + (size_t)i] = gauss_fill(g->n, i, gauss_column(g, place));
}

/* Finds the pivot of a column; writes its row to message[0] and the multipliers of all rows after it. */
static void gauss_multipliers(struct gauss *g, int column)
{
    double *own = gauss_own(g, column), *multiplier = g->message + 1;
    int pivot = -1;
    for (int i = 0; i < g->n; i++)
        if (g->step[i] < 0 && (pivot < 0 || fabs(own[i]) > fabs(own[pivot])))
            pivot = i;
    g->message[0] = pivot;
    for (int i = 0; i < g->n; i++)
        multiplier[i] = g->step[i] < 0 && i != pivot ? own[i] / own[pivot] : 0;
}

static void gauss_columns_eliminate(struct gauss *g)
{
    for (int k = 0; k < g->n; k++) {
        int owner = gauss_owner(g, k);
        if (owner == g->rank)
            gauss_multipliers(g, k);
        COMMUNICATE(broadcast(g->message, (g->n + 1) * (int)sizeof *g->message, owner));
        int pivot = (int)g->message[0];
        const double *multiplier = g->message + 1;
        g->step[pivot] = k;
        g->order[k] = pivot;
        for (int place = 0; place < g->count; place++) {
            if (gauss_column(g, place) < k)
                continue;
            double *own = g->rows + (size_t)place * g->stride, factor = own[pivot];
            for (int i = 0; i < g->n; i++)
                own[i] -= multiplier[i] * factor;
        }
    }
}

/* Substitutes from the last unknown to the first. For each, the right side is broadcast by the task that changed it
 * last. Returns the largest error. */
static double gauss_columns_error(struct gauss *g)
{
    double *right = zeroed_memory((size_t)g->n, sizeof *right), error = 0;
    int from = gauss_owner(g, g->n);
    if (from == g->rank)
        memcpy(right, gauss_own(g, g->n), (size_t)g->n * sizeof *right);
    for (int k = g->n - 1; k >= 0; k--) {
        broadcast(right, g->n * (int)sizeof *right, from);
        from = gauss_owner(g, k);
        double x = 0;
        if (from == g->rank) {
            const double *own = gauss_own(g, k);
            x = right[g->order[k]] / own[g->order[k]];
            for (int row = 0; row < k; row++)
                right[g->order[row]] -= x * own[g->order[row]];
        }
        broadcast(&x, sizeof x, from);
        error = fmax(error, fabs(x - (1 + k % 3)));
    }
    free(right);
    return error;
}

/* ---- the program ------------------------------------------------------------------------------- */

/* Runs `gauss WAY UNKNOWNS` as one of `size` tasks. Returns the exit status of the program. */
static int gauss(int argc, char **argv, int rank, int size)
{
    const char *way = argc > 1 ? argv[1] : "row-block";
    struct gauss g = {.n = argc > 2 ? atoi(argv[2]) : 256, .rank = rank, .size = size};
    int by_rows = strcmp(way, "row-block") == 0;
    g.scattered = strcmp(way, "column-scattered") == 0;
    if (!by_rows && !g.scattered && strcmp(way, "column-block") != 0)
        refuse("gauss", "the algorithm must be one of row-block, column-block, column-scattered");
    if (g.n < 1 || g.n > 30000)
        refuse("gauss", "the number of unknowns must be 1 to 30000");
    g.message = zeroed_memory((size_t)g.n + 1, sizeof *g.message);
    if (by_rows)
        gauss_rows_begin(&g);
    else
        gauss_columns_begin(&g);

    struct gauss_pivot nothing = {0, rank, 0};
    largest_of_all(&nothing); /* synchronizes all tasks before the clock starts */
    seconds_communicating = 0;
    double start = clock_seconds();
    if (by_rows)
        gauss_rows_eliminate(&g);
    else
        gauss_columns_eliminate(&g);
    double seconds = clock_seconds() - start, communicating = seconds_communicating;

    double error = by_rows ? gauss_rows_error(&g) : gauss_columns_error(&g);
    int verified = error < GAUSS_TOLERANCE;
    if (rank == 0) {
        printf("gauss-%s, %d unknowns, %d tasks: %s, %.6f s, %.2f Mop/s, %.6f s in communications\n", way, g.n, size,
               verified ? "verified" : "NOT VERIFIED", seconds, 2e-6 / 3 * pow(g.n, 3) / seconds, communicating);
        fflush(stdout);
    }
    return !verified;
}

#endif
