/* md.h: molecular dynamics of particles with a Lennard-Jones potential, on a ring of tasks.
 *
 * A cube with periodic boundaries is cut into slabs, one for each task. In each step a task sends the particles that
 * have left its slab to its neighbours, and the positions of those near a border to the neighbour there: the
 * communication of Gromacs as it is described by M. Maniezzo and A. Sanna, "A Deep Evaluation of Design Issues and
 * Performances of PVM, MPICH and mpiGAMMA Libraries". Lengths, masses and energies are in the units of the potential.
 * */
#ifndef MD_H
#define MD_H

#include "../clock.h"
#include <math.h>
#include <string.h>

/* Sums the values of all tasks element by element; all tasks get the result. */
static void sum_of_all(double *values, int count);
/* Sends one vector to the task before this one and one to the task after it, and receives a vector of at most `room`
 * numbers from each. The first task follows the last. A vector begins with its length, the length included. */
static void trade_neighbours(const double *to_before, const double *to_behind, double *from_before, double *from_behind, int room);

#define MD_DENSITY 0.8442
#define MD_TEMPERATURE 1.44
#define MD_CUTOFF 2.5
#define MD_STEP 0.002

struct md_particle {
    double position[3], velocity[3], force[3];
};

/* Linked lists of the particles in cells that are at least as wide as the cutoff: the first of each cell, and the next
 * one of each particle. */
struct md_cells {
    int across, along; /* cells of a slab in x, with one of ghosts on either side; cells of the cube in y and in z */
    int *first, *next;
};

struct md {
    int rank, size, count, room; /* `own` has `count` particles, and room for `room`; `all` for three times as many */
    double edge, low, width; /* edge of the cube; lower border of this slab in x, and its width */
    struct md_particle *own;
    double (*all)[3]; /* positions of own particles, followed by those of ghosts */
    int positions;
    struct md_cells cells;
    double *out[2], *in[2];
    double shift; /* added to the potential so that it is 0 at the cutoff */
};

enum { MD_MIGRANT = 6, MD_GHOST = 3 };

/* ---- the beginning ------------------------------------------------------------------------------- */

/* Returns a number between -0.5 and 0.5 for a site of the lattice and an axis. */
static double md_number(int place, int axis)
{
    double x = sin(12.9898 * (place + 1) + 78.233 * (axis + 1)) * 43758.5453;
    return x - floor(x) - 0.5;
}

static void md_place(struct md *md, int place, const int cell[3], const double offset[3], double constant)
{
    struct md_particle particle = {.force = {0}};
    for (int axis = 0; axis < 3; axis++) {
        particle.position[axis] = (cell[axis] + offset[axis]) * constant;
        particle.velocity[axis] = md_number(place, axis);
    }
    if (particle.position[0] >= md->low && particle.position[0] < md->low + md->width)
        md->own[md->count++] = particle;
}

/* Puts particles on a face-centred cubic lattice: one at a corner of each cell and three in the middle of its faces. */
static void md_lattice(struct md *md, int cells)
{
    static const double corners[4][3] = {{0.25, 0.25, 0.25}, {0.75, 0.75, 0.25}, {0.75, 0.25, 0.75}, {0.25, 0.75, 0.75}};
    double constant = md->edge / cells;
    int place = 0, cell[3];
    for (cell[0] = 0; cell[0] < cells; cell[0]++)
        for (cell[1] = 0; cell[1] < cells; cell[1]++)
            for (cell[2] = 0; cell[2] < cells; cell[2]++)
                for (int corner = 0; corner < 4; corner++)
                    md_place(md, place++, cell, corners[corner], constant);
}

/* Subtracts the mean velocity of all particles and scales velocities to the temperature. */
static void md_warm(struct md *md)
{
    double sums[5] = {0};
    for (int i = 0; i < md->count; i++)
        for (int axis = 0; axis < 3; axis++)
            sums[axis] += md->own[i].velocity[axis];
    sums[3] = md->count;
    sum_of_all(sums, 4);
    for (int i = 0; i < md->count; i++)
        for (int axis = 0; axis < 3; axis++) {
            md->own[i].velocity[axis] -= sums[axis] / sums[3];
            sums[4] += md->own[i].velocity[axis] * md->own[i].velocity[axis];
        }
    sum_of_all(sums + 4, 1);
    double factor = sqrt(3 * sums[3] * MD_TEMPERATURE / sums[4]);
    for (int i = 0; i < md->count; i++)
        for (int axis = 0; axis < 3; axis++)
            md->own[i].velocity[axis] *= factor;
}

static void md_begin(struct md *md, int cells)
{
    md->edge = cells * cbrt(4 / MD_DENSITY);
    md->width = md->edge / md->size;
    md->low = md->rank * md->width;
    if (md->width < MD_CUTOFF)
        refuse("md", "slabs are narrower than the cutoff: fewer tasks, or a larger cube");
    int particles = 4 * cells * cells * cells;
    md->room = 2 * (particles / md->size) + 8 * cells * cells;
    md->own = zeroed_memory((size_t)md->room, sizeof *md->own);
    md->all = zeroed_memory(3 * (size_t)md->room, sizeof *md->all);
    md->cells.across = (int)(md->width / MD_CUTOFF) + 2;
    md->cells.along = (int)(md->edge / MD_CUTOFF);
    md->cells.first = zeroed_memory((size_t)(md->cells.across * md->cells.along * md->cells.along), sizeof(int));
    md->cells.next = zeroed_memory(3 * (size_t)md->room, sizeof(int));
    for (int side = 0; side < 2; side++) {
        md->out[side] = zeroed_memory((size_t)(MD_MIGRANT * md->room + 1), sizeof(double));
        md->in[side] = zeroed_memory((size_t)(MD_MIGRANT * md->room + 1), sizeof(double));
    }
    double inverse = pow(MD_CUTOFF, -6);
    md->shift = 4 * (inverse * inverse - inverse);
    md_lattice(md, cells);
    md_warm(md);
}

/* ---- neighbours ---------------------------------------------------------------------------------- */

/* Appends numbers to a vector that begins with its length. */
static void md_append(double *vector, const double *numbers, int count)
{
    memcpy(vector + (int)vector[0], numbers, (size_t)count * sizeof *numbers);
    vector[0] += count;
}

/* Exchanges the vectors in `out` with both neighbours. */
static void md_trade(struct md *md)
{
    int room = MD_MIGRANT * md->room + 1;
    if (md->size == 1) {
        memcpy(md->in[1], md->out[0], (size_t)md->out[0][0] * sizeof(double));
        memcpy(md->in[0], md->out[1], (size_t)md->out[1][0] * sizeof(double));
    } else {
        COMMUNICATE(trade_neighbours(md->out[0], md->out[1], md->in[0], md->in[1], room));
    }
}

/* Returns x in the coordinates of the neighbour on a side, which is at the other end of the cube if this task's slab is
 * at its border. */
static double md_across(const struct md *md, double x, int side)
{
    if (side == 0 && md->rank == 0)
        return x + md->edge;
    return side == 1 && md->rank == md->size - 1 ? x - md->edge : x;
}

/* Sends particles that have left the slab to the neighbours, and receives theirs. */
static void md_migrate(struct md *md)
{
    md->out[0][0] = md->out[1][0] = 1;
    for (int i = 0; i < md->count; i++) {
        struct md_particle *p = &md->own[i];
        for (int axis = 1; axis < 3; axis++)
            p->position[axis] -= md->edge * floor(p->position[axis] / md->edge);
        if (p->position[0] >= md->low && p->position[0] < md->low + md->width)
            continue;
        int side = p->position[0] >= md->low;
        p->position[0] = md_across(md, p->position[0], side);
        md_append(md->out[side], p->position, 3);
        md_append(md->out[side], p->velocity, 3);
        *p = md->own[--md->count];
        i--;
    }
    md_trade(md);
    for (int side = 0; side < 2; side++)
        for (int at = 1; at < (int)md->in[side][0]; at += MD_MIGRANT) {
            struct md_particle *p = &md->own[md->count++];
            memcpy(p->position, md->in[side] + at, sizeof p->position);
            memcpy(p->velocity, md->in[side] + at + 3, sizeof p->velocity);
        }
}

/* Sends the positions of particles near a border to the neighbour there, and receives those of its particles: ghosts.
 * */
static void md_ghosts(struct md *md)
{
    md->out[0][0] = md->out[1][0] = 1;
    md->positions = 0;
    for (int i = 0; i < md->count; i++) {
        const double *position = md->own[i].position;
        memcpy(md->all[md->positions++], position, sizeof *md->all);
        for (int side = 0; side < 2; side++) {
            double distance = side ? md->low + md->width - position[0] : position[0] - md->low;
            double copy[MD_GHOST] = {md_across(md, position[0], side), position[1], position[2]};
            if (distance < MD_CUTOFF)
                md_append(md->out[side], copy, MD_GHOST);
        }
    }
    md_trade(md);
    for (int side = 0; side < 2; side++)
        for (int at = 1; at < (int)md->in[side][0]; at += MD_GHOST)
            memcpy(md->all[md->positions++], md->in[side] + at, sizeof *md->all);
}

/* ---- forces ---------------------------------------------------------------------------------------- */

/* Returns the number of the cell that contains a position along one axis. */
static int md_cell(double from, double width, int cells)
{
    int cell = (int)floor(from / width * cells);
    return cell < 0 ? 0 : cell >= cells ? cells - 1 : cell;
}

static void md_sort(struct md *md)
{
    struct md_cells *cells = &md->cells;
    int inner = cells->across - 2, along = cells->along;
    for (int k = 0; k < cells->across * along * along; k++)
        cells->first[k] = -1;
    for (int i = 0; i < md->positions; i++) {
        const double *p = md->all[i];
        double x = p[0] - md->low;
        int cx = x < 0 ? 0 : x >= md->width ? inner + 1 : 1 + md_cell(x, md->width, inner);
        int cell = (cx * along + md_cell(p[1], md->edge, along)) * along + md_cell(p[2], md->edge, along);
        cells->next[i] = cells->first[cell];
        cells->first[cell] = i;
    }
}

/* Adds the force of another particle. Returns the energy of the pair. */
static double md_pair(const struct md *md, struct md_particle *p, const double *other)
{
    double distance[3], square = 0;
    for (int axis = 0; axis < 3; axis++) {
        distance[axis] = p->position[axis] - other[axis];
        if (axis > 0)
            distance[axis] -= md->edge * rint(distance[axis] / md->edge);
        square += distance[axis] * distance[axis];
    }
    if (square >= MD_CUTOFF * MD_CUTOFF)
        return 0;
    double inverse = 1 / square, sixth = inverse * inverse * inverse;
    double push = 24 * inverse * sixth * (2 * sixth - 1);
    for (int axis = 0; axis < 3; axis++)
        p->force[axis] += push * distance[axis];
    return 4 * (sixth * sixth - sixth) - md->shift;
}

/* Computes the forces on this task's particles. Returns twice their part of the potential energy. */
static double md_forces(struct md *md)
{
    const struct md_cells *cells = &md->cells;
    int inner = cells->across - 2, along = cells->along;
    double energy = 0;
    md_sort(md);
    for (int i = 0; i < md->count; i++) {
        struct md_particle *p = &md->own[i];
        memset(p->force, 0, sizeof p->force);
        int x = 1 + md_cell(p->position[0] - md->low, md->width, inner), y = md_cell(p->position[1], md->edge, along),
            z = md_cell(p->position[2], md->edge, along);
        /* With fewer than three cells in a row, the cell before is also the cell after, so all cells are visited once.
         * */
        int from = along < 3 ? 0 : -1, to = along < 3 ? along - 1 : 1;
        for (int dx = -1; dx <= 1; dx++)
            for (int dy = from; dy <= to; dy++)
                for (int dz = from; dz <= to; dz++) {
                    int cell = ((x + dx) * along + (y + dy + along) % along) * along + (z + dz + along) % along;
                    for (int j = cells->first[cell]; j >= 0; j = cells->next[j])
                        if (j != i)
                            energy += md_pair(md, p, md->all[j]);
                }
    }
    return energy;
}

/* ---- steps ------------------------------------------------------------------------------------------- */

static void md_push(struct md *md, int moves)
{
    for (int i = 0; i < md->count; i++)
        for (int axis = 0; axis < 3; axis++) {
            struct md_particle *p = &md->own[i];
            p->velocity[axis] += 0.5 * MD_STEP * p->force[axis];
            if (moves)
                p->position[axis] += MD_STEP * p->velocity[axis];
        }
}

/* Performs one step. Returns twice this task's part of the potential energy. */
static double md_step(struct md *md)
{
    md_push(md, 1);
    md_migrate(md);
    md_ghosts(md);
    double potential = md_forces(md);
    md_push(md, 0);
    return potential;
}

/* Sums the energy of all particles, and counts them. */
static void md_totals(struct md *md, double potential, double totals[2])
{
    totals[0] = potential / 2;
    totals[1] = md->count;
    for (int i = 0; i < md->count; i++)
        for (int axis = 0; axis < 3; axis++)
            totals[0] += 0.5 * md->own[i].velocity[axis] * md->own[i].velocity[axis];
    sum_of_all(totals, 2);
}

/* Runs `md CELLS STEPS` as one of `size` tasks, with 4 CELLS^3 particles. Returns the exit status of the program, which
 * is 0 only if no particle was lost and energy was conserved. */
static int md(int argc, char **argv, int rank, int size)
{
    struct md md = {.rank = rank, .size = size};
    int cells = argc > 1 ? atoi(argv[1]) : 8, steps = argc > 2 ? atoi(argv[2]) : 50;
    if (cells < 4 || cells > 100 || steps < 1)
        refuse("md", "the cube must have 4 to 100 cells along an edge, and there must be at least one step");
    md_begin(&md, cells);
    md_ghosts(&md);
    double before[2], after[2], potential = md_forces(&md);
    md_totals(&md, potential, before);

    seconds_communicating = 0;
    double start = clock_seconds();
    for (int step = 0; step < steps; step++)
        potential = md_step(&md);
    double seconds = clock_seconds() - start, communicating = seconds_communicating;
    md_totals(&md, potential, after);
    double drift = fabs(after[0] - before[0]) / before[1];
    int verified = after[1] == 4.0 * cells * cells * cells && before[1] == after[1] && drift < 2e-3;
    if (rank == 0) {
        printf("md, %.0f particles, %d steps, %d tasks: %s, %.6f s, energy %.6f, drift %.2e, %.6f s in communications\n", after[1],
               steps, size, verified ? "verified" : "NOT VERIFIED", seconds, after[0] / after[1], drift, communicating);
        fflush(stdout);
    }
    return !verified;
}

#endif
