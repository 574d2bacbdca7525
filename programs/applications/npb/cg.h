/* cg.h: conjugate gradient. The smallest eigenvalue of a large sparse matrix is estimated by the inverse power method, in which each step
 * solves a linear system by 25 iterations of conjugate gradients.
 *
 * The rows of the matrix are distributed over the tasks. Each iteration needs two dot products and, at every task, the
 * whole search direction, of which each task has computed its part. Any number of tasks will do. */
#ifndef CG_H
#define CG_H

#include "npb.h"

/* Sums the values of all tasks element by element; all tasks get the result. */
static void sum_of_all(double *values, int count);
/* Completes a vector of which each task has its own part: the part of task r is counts[r] elements from starts[r] on.
 * */
static void gather_parts(double *vector, const int *counts, const int *starts);

enum { CG_INNER = 25 };
#define CG_CONDITION 0.1

static const struct cg_class {
    char name;
    int order, nonzeros, steps;
    double shift, zeta;
} cg_classes[] = {
    {'S', 1400, 7, 15, 10, 8.5971775078648},
    {'W', 7000, 8, 15, 12, 10.362595087124},
    {'A', 14000, 11, 15, 20, 17.130235054029},
    {'B', 75000, 13, 75, 60, 22.712745482631},
};

/* This task's rows of the matrix, and vectors. */
struct cg {
    const struct cg_class *class;
    int rank, size, first, rows;
    int *counts, *starts; /* number and first one of the rows of each task */
    long *row; /* elements row[i] .. row[i + 1] - 1 are those of row first + i */
    int *column;
    double *value;
    double *whole; /* a vector whose parts of all tasks are needed */
    double *x, *z, *p, *q, *r; /* this task's parts */
};

/* A sparse random vector. */
struct cg_vector {
    int count;
    int *index;
    double *value;
};

/* Draws the vector of row `row`: as many random elements as the class has nonzeros, and 0.5 at the row itself. */
static void cg_draw(const struct cg_class *class, int row, uint64_t *state, struct cg_vector *vector)
{
    int power = 1;
    while (power < class->order)
        power *= 2;
    vector->count = 0;
    while (vector->count < class->nonzeros) {
        double value = npb_random(state);
        int index = (int)(npb_random(state) * power), known = index >= class->order;
        for (int k = 0; k < vector->count; k++)
            known |= vector->index[k] == index;
        if (!known) {
            vector->index[vector->count] = index;
            vector->value[vector->count++] = value;
        }
    }
    int at = 0;
    while (at < vector->count && vector->index[at] != row)
        at++;
    vector->index[at] = row;
    vector->value[at] = 0.5;
    vector->count += at == vector->count;
}

/* One of the products that a row is the sum of: element `element` of vector `vector` times all elements of that vector.
 * */
struct cg_product {
    int vector, element;
};

/* Adds the products of one row, and appends the row to the matrix. For each column, `place` has the last row in which
 * it occurred and its index there. */
static void cg_row(struct cg *cg, int row, const struct cg_vector *vectors, const double *scale, const struct cg_product *products,
                   long count, long (*place)[2])
{
    long start = cg->row[row - cg->first], end = start;
    for (long k = 0; k < count; k++) {
        const struct cg_vector *vector = &vectors[products[k].vector];
        double factor = scale[products[k].vector] * vector->value[products[k].element];
        for (int e = 0; e < vector->count; e++) {
            int column = vector->index[e];
            double value = vector->value[e] * factor;
            if (column == row && products[k].vector == row)
                value += CG_CONDITION - cg->class->shift;
            if (place[column][0] != row) {
                place[column][0] = row;
                place[column][1] = end;
                cg->column[end] = column;
                cg->value[end++] = 0;
            }
            cg->value[place[column][1]] += value;
        }
    }
    cg->row[row - cg->first + 1] = end;
}

/* Makes this task's rows of the matrix: the sum over all rows of the outer product of the row's vector with itself,
 * scaled so that the condition number is about 1 / CG_CONDITION, minus a multiple of the identity. */
static void cg_make(struct cg *cg)
{
    int order = cg->class->order, room = cg->class->nonzeros + 1;
    struct cg_vector *vectors = zeroed_memory((size_t)order, sizeof *vectors);
    int *indices = zeroed_memory((size_t)order * (size_t)room, sizeof *indices);
    double *values = zeroed_memory((size_t)order * (size_t)room, sizeof *values), *scale = zeroed_memory((size_t)order, sizeof *scale);
    uint64_t state = NPB_SEED;
    npb_random(&state); /* the benchmark draws one number that it does not use */
    double ratio = pow(CG_CONDITION, 1.0 / order), size = 1;
    long *starts = zeroed_memory((size_t)cg->rows + 2, sizeof *starts), elements = 0;
    for (int v = 0; v < order; v++, size *= ratio) {
        vectors[v] = (struct cg_vector){0, indices + (size_t)v * (size_t)room, values + (size_t)v * (size_t)room};
        cg_draw(cg->class, v, &state, &vectors[v]);
        scale[v] = size;
        for (int e = 0; e < vectors[v].count; e++) {
            int row = vectors[v].index[e] - cg->first;
            if (row >= 0 && row < cg->rows) {
                starts[row + 2]++;
                elements += vectors[v].count;
            }
        }
    }
    for (int row = 0; row < cg->rows; row++)
        starts[row + 2] += starts[row + 1];
    struct cg_product *products = zeroed_memory((size_t)starts[cg->rows + 1], sizeof *products);
    for (int v = 0; v < order; v++)
        for (int e = 0; e < vectors[v].count; e++) {
            int row = vectors[v].index[e] - cg->first;
            if (row >= 0 && row < cg->rows)
                products[starts[row + 1]++] = (struct cg_product){v, e};
        }
    cg->row = zeroed_memory((size_t)cg->rows + 1, sizeof *cg->row);
    cg->column = zeroed_memory((size_t)elements, sizeof *cg->column);
    cg->value = zeroed_memory((size_t)elements, sizeof *cg->value);
    long (*place)[2] = zeroed_memory((size_t)order, sizeof *place);
    for (int column = 0; column < order; column++)
        place[column][0] = -1;
    for (int row = 0; row < cg->rows; row++)
        cg_row(cg, cg->first + row, vectors, scale, products + starts[row], starts[row + 1] - starts[row], place);
    free(place);
    free(products);
    free(starts);
    free(scale);
    free(values);
    free(indices);
    free(vectors);
}

/* Computes out = this task's rows of the matrix times a vector, of which this task has its part in `part`. */
static void cg_multiply(struct cg *cg, const double *part, double *out)
{
    memcpy(cg->whole + cg->first, part, (size_t)cg->rows * sizeof *part);
    COMMUNICATE(gather_parts(cg->whole, cg->counts, cg->starts));
    for (int i = 0; i < cg->rows; i++) {
        double sum = 0;
        for (long k = cg->row[i]; k < cg->row[i + 1]; k++)
            sum += cg->value[k] * cg->whole[cg->column[k]];
        out[i] = sum;
    }
}

/* Returns the dot product of this task's parts. */
static double cg_dot(const struct cg *cg, const double *a, const double *b)
{
    double sum = 0;
    for (int i = 0; i < cg->rows; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Returns the dot product of all parts. */
static double cg_dot_of_all(const struct cg *cg, const double *a, const double *b)
{
    double sum = cg_dot(cg, a, b);
    COMMUNICATE(sum_of_all(&sum, 1));
    return sum;
}

/* Solves A z = x approximately. */
static void cg_solve(struct cg *cg)
{
    size_t bytes = (size_t)cg->rows * sizeof(double);
    memset(cg->z, 0, bytes);
    memcpy(cg->r, cg->x, bytes);
    memcpy(cg->p, cg->x, bytes);
    double rho = cg_dot_of_all(cg, cg->r, cg->r);
    for (int iteration = 0; iteration < CG_INNER; iteration++) {
        cg_multiply(cg, cg->p, cg->q);
        double alpha = rho / cg_dot_of_all(cg, cg->p, cg->q), before = rho;
        for (int i = 0; i < cg->rows; i++) {
            cg->z[i] += alpha * cg->p[i];
            cg->r[i] -= alpha * cg->q[i];
        }
        rho = cg_dot_of_all(cg, cg->r, cg->r);
        double beta = rho / before;
        for (int i = 0; i < cg->rows; i++)
            cg->p[i] = cg->r[i] + beta * cg->p[i];
    }
}

/* Performs one step of the power method. Returns the estimate of the eigenvalue. */
static double cg_step(struct cg *cg)
{
    cg_solve(cg);
    /* The residual, which the benchmark computes and prints too. */
    cg_multiply(cg, cg->z, cg->q);
    double sums[3] = {cg_dot(cg, cg->x, cg->z), cg_dot(cg, cg->z, cg->z), 0};
    for (int i = 0; i < cg->rows; i++)
        sums[2] += (cg->x[i] - cg->q[i]) * (cg->x[i] - cg->q[i]);
    COMMUNICATE(sum_of_all(sums, 3));
    double length = sqrt(sums[1]);
    for (int i = 0; i < cg->rows; i++)
        cg->x[i] = cg->z[i] / length;
    return cg->class->shift + 1 / sums[0];
}

static void cg_begin(struct cg *cg)
{
    for (int i = 0; i < cg->rows; i++)
        cg->x[i] = 1;
}

/* Runs the kernel as one of `size` tasks. Returns the exit status of the program. */
static int cg(char name, int rank, int size)
{
    const struct cg_class *class = cg_classes;
    while (class->name != name)
        class++;
    int order = class->order;
    if (size > order)
        refuse("npb-cg", "more tasks than rows");
    struct cg cg = {.class = class, .rank = rank, .size = size};
    cg.counts = zeroed_memory(2 * (size_t)size, sizeof *cg.counts);
    cg.starts = cg.counts + size;
    for (int r = 0; r < size; r++) {
        cg.starts[r] = (int)first_of(order, r, size);
        cg.counts[r] = (int)first_of(order, r + 1, size) - cg.starts[r];
    }
    cg.first = cg.starts[rank];
    cg.rows = cg.counts[rank];
    cg.whole = zeroed_memory((size_t)order, sizeof(double));
    double **vectors[] = {&cg.x, &cg.z, &cg.p, &cg.q, &cg.r};
    for (int v = 0; v < 5; v++)
        *vectors[v] = zeroed_memory((size_t)cg.rows, sizeof(double));
    cg_make(&cg);

    cg_begin(&cg);
    cg_step(&cg); /* warm-up */
    cg_begin(&cg);
    seconds_communicating = 0;
    double zeta = 0, start = clock_seconds();
    for (int step = 0; step < class->steps; step++)
        zeta = cg_step(&cg);
    double seconds = clock_seconds() - start;

    double products = class->nonzeros * (class->nonzeros + 1);
    double operations = 2.0 * class->steps * order * (3 + products + CG_INNER * (5 + products) + 3);
    return npb_tell("cg", name, rank, size, npb_equal(zeta, class->zeta, 1e-10), seconds, operations);
}

#endif
