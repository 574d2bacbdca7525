/* nbody.h: bodies that attract each other, by the direct O(N^2) algorithm, on a ring of tasks.
 *
 * Each task owns some of the bodies. Copies of them travel round the ring: in each of `size` turns a task adds the
 * attraction of the copies it has to the forces on its own bodies, and passes the copies on. Time steps are leapfrogs,
 * which conserve energy. */
#ifndef NBODY_H
#define NBODY_H

#include "../clock.h"
#include <math.h>
#include <string.h>

/* Sums the values of all tasks element by element; all tasks get the result. */
static void sum_of_all(double *values, int count);
/* Sends `bytes` bytes to the next task of the ring and receives up to `room` bytes from the one before into `in`. The
 * first task follows the last. */
static void pass_on(const void *out, int bytes, void *in, int room);

#define NBODY_SOFTENING 1e-4 /* squared length added to squared distances, so that the force stays finite */
#define NBODY_STEP 1e-3

struct nbody_copy {
    double position[3], mass;
};

struct nbody {
    int bodies, rank, size, first, count, room; /* this task has bodies first .. first + count - 1, no task more than `room` */
    struct nbody_copy *own, *here, *coming;
    double (*velocity)[3], (*force)[3]; /* force on a unit of mass */
};

static int nbody_count(const struct nbody *n, int task)
{
    return (int)(first_of(n->bodies, task + 1, n->size) - first_of(n->bodies, task, n->size));
}

/* Returns a number between 0 and 1 for a body and an axis. */
static double nbody_number(int body, int axis)
{
    double x = sin(12.9898 * (body + 1) + 78.233 * (axis + 1)) * 43758.5453;
    return x - floor(x);
}

/* Sets up bodies of equal masses in a cube, which rotate slowly around its centre. */
static void nbody_begin(struct nbody *n)
{
    n->first = (int)first_of(n->bodies, n->rank, n->size);
    n->count = nbody_count(n, n->rank);
    for (int task = 0; task < n->size; task++)
        n->room = nbody_count(n, task) > n->room ? nbody_count(n, task) : n->room;
    struct nbody_copy **copies[] = {&n->own, &n->here, &n->coming};
    for (int k = 0; k < 3; k++)
        *copies[k] = zeroed_memory((size_t)n->room, sizeof(struct nbody_copy));
    n->velocity = zeroed_memory((size_t)n->room, sizeof *n->velocity);
    n->force = zeroed_memory((size_t)n->room, sizeof *n->force);
    for (int i = 0; i < n->count; i++) {
        for (int axis = 0; axis < 3; axis++)
            n->own[i].position[axis] = nbody_number(n->first + i, axis) - 0.5;
        n->own[i].mass = 1.0 / n->bodies;
        n->velocity[i][0] = -0.5 * n->own[i].position[1];
        n->velocity[i][1] = 0.5 * n->own[i].position[0];
    }
}

/* Adds the attraction of `count` copies. Returns twice their part of the potential energy. A body does not attract
 * itself, because its distance is 0. */
static double nbody_attract(struct nbody *n, const struct nbody_copy *copies, int count)
{
    double energy = 0;
    for (int i = 0; i < n->count; i++) {
        const double *me = n->own[i].position;
        double fx = 0, fy = 0, fz = 0, potential = 0;
        for (int j = 0; j < count; j++) {
            double x = copies[j].position[0] - me[0], y = copies[j].position[1] - me[1], z = copies[j].position[2] - me[2];
            double inverse = 1 / sqrt(x * x + y * y + z * z + NBODY_SOFTENING), pull = copies[j].mass * inverse;
            potential += pull;
            pull *= inverse * inverse;
            fx += pull * x;
            fy += pull * y;
            fz += pull * z;
        }
        n->force[i][0] += fx;
        n->force[i][1] += fy;
        n->force[i][2] += fz;
        energy -= n->own[i].mass * potential;
    }
    return energy;
}

/* Computes all forces. Returns twice this task's part of the potential energy. */
static double nbody_forces(struct nbody *n)
{
    memset(n->force, 0, (size_t)n->room * sizeof *n->force);
    memcpy(n->here, n->own, (size_t)n->count * sizeof *n->own);
    double energy = 0;
    for (int turn = 0; turn < n->size; turn++) {
        int owner = (n->rank + n->size - turn) % n->size, count = nbody_count(n, owner);
        energy += nbody_attract(n, n->here, count);
        if (turn + 1 < n->size) {
            COMMUNICATE(pass_on(n->here, count * (int)sizeof *n->here, n->coming, n->room * (int)sizeof *n->coming));
            struct nbody_copy *swap = n->here;
            n->here = n->coming;
            n->coming = swap;
        }
    }
    return energy;
}

/* Advances velocities by half a step and, with `moves`, positions by a step. */
static void nbody_push(struct nbody *n, int moves)
{
    for (int i = 0; i < n->count; i++)
        for (int axis = 0; axis < 3; axis++) {
            n->velocity[i][axis] += 0.5 * NBODY_STEP * n->force[i][axis];
            if (moves)
                n->own[i].position[axis] += NBODY_STEP * n->velocity[i][axis];
        }
}

/* Sums energy and momentum of all bodies, the energy first. `potential` is twice this task's part. */
static void nbody_totals(struct nbody *n, double potential, double totals[4])
{
    memset(totals, 0, 4 * sizeof *totals);
    totals[0] = potential / 2;
    for (int i = 0; i < n->count; i++)
        for (int axis = 0; axis < 3; axis++) {
            totals[0] += 0.5 * n->own[i].mass * n->velocity[i][axis] * n->velocity[i][axis];
            totals[1 + axis] += n->own[i].mass * n->velocity[i][axis];
        }
    sum_of_all(totals, 4);
}

/* Runs `nbody BODIES STEPS` as one of `size` tasks. Returns the exit status of the program, which is 0 only if energy
 * and momentum were conserved. */
static int nbody(int argc, char **argv, int rank, int size)
{
    struct nbody n = {.bodies = argc > 1 ? atoi(argv[1]) : 512, .rank = rank, .size = size};
    int steps = argc > 2 ? atoi(argv[2]) : 10;
    if (n.bodies < 2 || n.bodies > 1 << 20 || steps < 1)
        refuse("nbody", "the number of bodies must be 2 to 1048576, the number of steps at least 1");
    nbody_begin(&n);
    double before[4], after[4], potential = nbody_forces(&n);
    nbody_totals(&n, potential, before);

    seconds_communicating = 0;
    double start = clock_seconds();
    for (int step = 0; step < steps; step++) {
        nbody_push(&n, 1);
        potential = nbody_forces(&n);
        nbody_push(&n, 0);
    }
    double seconds = clock_seconds() - start, communicating = seconds_communicating;
    nbody_totals(&n, potential, after);
    double drift = fabs(after[0] / before[0] - 1), momentum = 0;
    for (int axis = 1; axis < 4; axis++)
        momentum = fmax(momentum, fabs(after[axis] - before[axis]));
    int verified = drift < 1e-4 && momentum < 1e-12;
    if (rank == 0) {
        printf("nbody, %d bodies, %d steps, %d tasks: %s, %.6f s, energy %.9f, %.6f s in communications\n", n.bodies, steps, size,
               verified ? "verified" : "NOT VERIFIED", seconds, after[0], communicating);
        fflush(stdout);
    }
    return !verified;
}

#endif
