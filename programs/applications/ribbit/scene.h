/* scene.h: the parts of a scene, in the form in which tasks send them to each other.
 *
 * Primitives are curved surfaces over two parameters, u and v, from 0 to 1. A piece is a part of a primitive, at first
 * the whole. Pieces are split, sent and rendered; the rest of the scene is known to all tasks. */
#ifndef RIBBIT_SCENE_H
#define RIBBIT_SCENE_H

#include "../clock.h"
#include "vector.h"

enum {
    MAX_MATERIALS = 32,
    MAX_LIGHTS = 8,
    MAX_CASTERS = 64, /* balls that cast shadows */
    TILE = 32, /* pixels across a tile of the picture */
    PIECE_INTS = 8,
    PIECE_RANGE = 6, /* numbers of every piece that precede those of its shape */
    MAX_SHAPE_NUMBERS = 48
};

/* Share of a whole primitive. Shares are integers, which a double represents exactly up to this. */
#define WHOLE 0x1p52

/* The shapes, and the number of doubles that describe each. */
enum shape { QUAD, PATCH, SPHERE, CONE, TORUS, FLAKE, SHAPES };
static const int shape_numbers[SHAPES] = {
    [QUAD] = 12, /* corners at (u, v) = (0, 0), (1, 0), (0, 1), (1, 1) */
    [PATCH] = 48, /* 16 control points of a bicubic Bezier patch, four for each of four values of v */
    [SPHERE] = 12, /* the transformation of a sphere of radius 1 */
    [CONE] = 15, /* a transformation, the radii at the bottom and at the top, the height; also for cylinders and disks */
    [TORUS] = 14, /* a transformation, the radius of the ring, the radius of the tube */
    [FLAKE] = 13, /* a procedural primitive: a transformation of the unit sphere, the number of generations of smaller ones on it */
};

/* LARGE_U and LARGE_V: to be split along u or along v. SMALL: fits in one grid of micropolygons. GONE: cannot be seen.
 * */
enum state { LARGE_U, LARGE_V, SMALL, GONE };

struct piece {
    int primitive, material, shape, state;
    int left, top, right, bottom; /* columns and rows of the first and the last tile in which it may be seen */
    /* Its position and its share in the primitive: the shares of all pieces add up to WHOLE, and no two pieces have the
     * same position. */
    double first, share;
    double u[2], v[2]; /* its part of the parameter range */
    double numbers[MAX_SHAPE_NUMBERS]; /* those of the shape */
};

enum shader { PLAIN, CHECKER, MARBLE, WOOD, BANDS, LAND, SHADERS };
enum relief { EVEN, BUMPS, MOUNTAINS, TWIST };

struct material {
    struct vec colour, second;
    double scale; /* of the pattern: length of one period */
    double specular, gloss, mirror, opacity;
    double height, relief_scale; /* of the displacement; for TWIST, number of turns */
};

struct light {
    struct vec place; /* position; for a sun, its direction */
    struct vec colour;
    double lamp; /* 1: at a position, 0: far away */
    double softness; /* width of the blur of shadows at a distance of 1 */
};

struct caster {
    struct vec centre;
    double radius;
};

/* What all tasks know of a scene: first the ints, then the doubles. There are no members of other types. */
struct scene {
    struct scene_ints {
        int valid; /* 0: there is no scene to render */
        int width, height, samples; /* samples across a pixel */
        int primitives, materials, lights, casters;
        int shader[MAX_MATERIALS], relief[MAX_MATERIALS];
    } ints;
    struct scene_numbers {
        struct vec eye, right, up, ahead; /* the camera */
        double focal; /* distance of the picture plane from the eye, in pixels */
        double rate; /* area of a micropolygon in pixels */
        struct vec horizon, zenith, ground, fog;
        double fog_distance; /* 0: there is no fog */
        double clouds; /* covered part of the sky, 0 to 1 */
        struct material materials[MAX_MATERIALS];
        struct light lights[MAX_LIGHTS];
        struct caster casters[MAX_CASTERS];
    } numbers;
};

enum { SCENE_INTS = sizeof(struct scene_ints) / sizeof(int), SCENE_NUMBERS = sizeof(struct scene_numbers) / sizeof(double) };

/* Enlarges `memory` to more elements than `*room`, and sets `*room` to their number. Returns the memory with its old
 * contents, or ends the program. */
static inline void *grown_memory(void *memory, int *room, size_t size)
{
    *room = *room ? 2 * *room : 32;
    memory = realloc(memory, (size_t)*room * size);
    if (!memory) {
        fprintf(stderr, "ribbit: no memory for %d elements of %zu bytes\n", *room, size);
        exit(1);
    }
    return memory;
}

static inline int scene_tiles_across(const struct scene *scene)
{
    return (scene->ints.width + TILE - 1) / TILE;
}

static inline int scene_tiles_down(const struct scene *scene)
{
    return (scene->ints.height + TILE - 1) / TILE;
}

#endif
