/* scene.h: what a scene is made of, in the form in which tasks send it to each other.
 *
 * Primitives are curved surfaces over two parameters, u and v, of 0 to 1. A piece is a part of a primitive, so at first the whole of it. Pieces
 * are split, sent and rendered; the scene, which is the rest, is known to all tasks. */
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
    PIECE_RANGE = 6, /* numbers of every piece, before those of its shape */
    MAX_SHAPE_NUMBERS = 48
};

/* The whole of a primitive. Shares are whole numbers, which a double has exactly up to here. */
#define WHOLE 0x1p52

/* The shapes, and how many numbers describe one. */
enum shape { QUAD, PATCH, SPHERE, CONE, TORUS, FLAKE, SHAPES };
static const int shape_numbers[SHAPES] = {
    [QUAD] = 12, /* corners at (u, v) = (0, 0), (1, 0), (0, 1), (1, 1) */
    [PATCH] = 48, /* 16 control points of a bicubic Bezier patch, four for each of four v */
    [SPHERE] = 12, /* the transformation of the sphere of radius 1 */
    [CONE] = 15, /* a transformation, the radii at the bottom and at the top, the height; a cylinder or a disk, too */
    [TORUS] = 14, /* a transformation, the radius, the radius of the tube */
    [FLAKE] = 13, /* the transformation of a sphere of radius 1, how many generations of smaller ones are on it: a procedural primitive */
};

/* LARGE_...: to be split, along u or along v. SMALL: one grid of micropolygons. GONE: seen nowhere, so there is nothing left to do. */
enum state { LARGE_U, LARGE_V, SMALL, GONE };

struct piece {
    int primitive, material, shape, state;
    int left, top, right, bottom; /* the first and last tiles that it may be seen in, from 0, across and down */
    /* Its place and its share in the primitive: the shares of all pieces add up to WHOLE, and no two pieces have the same place. */
    double first, share;
    double u[2], v[2]; /* its part of the parameters */
    double numbers[MAX_SHAPE_NUMBERS]; /* those of the shape */
};

enum shader { PLAIN, CHECKER, MARBLE, WOOD, BANDS, LAND, SHADERS };
enum relief { EVEN, BUMPS, MOUNTAINS, TWIST };

struct material {
    struct vec colour, second;
    double scale; /* of the pattern: units of length to one of it */
    double specular, gloss, mirror, opacity;
    double height, relief_scale; /* of the displacement; for TWIST, turns */
};

struct light {
    struct vec place; /* of a sun, its direction */
    struct vec colour;
    double lamp; /* 1: it is at a place, 0: far away */
    double softness; /* of shadows: their blur at a distance of 1 */
};

struct caster {
    struct vec centre;
    double radius;
};

/* All that tasks know of a scene, first the whole numbers, then the others. Of both there are only ints and doubles. */
struct scene {
    struct scene_ints {
        int valid; /* 0: there is no scene to render */
        int width, height, samples; /* samples across a pixel */
        int primitives, materials, lights, casters;
        int shader[MAX_MATERIALS], relief[MAX_MATERIALS];
    } ints;
    struct scene_numbers {
        struct vec eye, right, up, ahead; /* the camera */
        double focal; /* pixels, for a surface at a distance of 1 */
        double rate; /* the area of a micropolygon in pixels */
        struct vec horizon, zenith, ground, fog;
        double fog_distance; /* 0: none */
        double clouds; /* part of the sky, 0 to 1 */
        struct material materials[MAX_MATERIALS];
        struct light lights[MAX_LIGHTS];
        struct caster casters[MAX_CASTERS];
    } numbers;
};

enum { SCENE_INTS = sizeof(struct scene_ints) / sizeof(int), SCENE_NUMBERS = sizeof(struct scene_numbers) / sizeof(double) };

/* Returns memory for more elements than `*room`, which becomes their number, with what was there; or ends the program. */
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
