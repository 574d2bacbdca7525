/* tiles.h: how the master cuts the picture into tiles, according to their cost.
 *
 * The picture begins as one part. Whenever a worker is free, the part with the highest expected cost is cut into halves
 * of equal cost until one is small enough. The costs of finished tiles predict those of the blocks around them, near
 * tiles counting most: so tiles are small where rays travel far, and large in the sky. Tiles become smaller as less is
 * left, so that all workers end at about the same time.
 *
 * There is no pilot calculation at a low resolution: it would give the cost of the whole picture but not of its parts,
 * unless each part had its own, and 16 pilot calculations cost as much as 16 more tiles. */
#ifndef POVRAY_TILES_H
#define POVRAY_TILES_H

#include "picture.h"
#include <math.h>

/* The size of a tile is what is left, divided by the number of workers and by one of these numbers. */
enum {
    PARTS = 3,       /* for the cost */
    FIRST_PARTS = 8, /* for the pixels, while no costs are known */
    AREA_PARTS = 4   /* for the area of the picture: the upper limit of a tile, since its cost is an estimate */
};

/* Tiles below this cost, in processor seconds, are not cut: POV-Ray uses about 0.03 s before it renders. */
#define MIN_TILE_SECONDS 0.4

/* A block far from all finished tiles is assumed to cost UNKNOWN_COST times the mean, since finding out late that it is
 * expensive is worse than cutting it without need. UNKNOWN_WEIGHT is the weight of this assumption: that of a tile some
 * two blocks away. */
#define UNKNOWN_COST 2
#define UNKNOWN_WEIGHT 0.1

struct part {
    int x, y, width, height; /* pixels; the corner is that of one of POV-Ray's blocks */
    int worker;              /* the worker that renders it, or NOBODY */
    int number;              /* number of the tile, if a worker renders it */
    int failures;            /* how often it was lost or could not be rendered */
};

enum { NOBODY = -1 };

struct tiling {
    const struct picture *picture;
    struct part *parts; /* parts of the picture that are not done */
    int count, room;
    int columns, rows; /* number of columns and rows of blocks */
    double *cost;      /* for each block, the weighted sum of the costs per pixel of tiles */
    double *weight;    /* for each block, the sum of the weights */
    int tiles;         /* number of tiles handed out */
    long pixels_done;
    double seconds_done; /* processor time, in seconds */
};

static void tiling_begin(struct tiling *t, const struct picture *picture)
{
    t->picture = picture;
    t->columns = (picture->width + BLOCK_EDGE - 1) / BLOCK_EDGE;
    t->rows = (picture->height + BLOCK_EDGE - 1) / BLOCK_EDGE;
    t->room = t->columns * t->rows;
    t->parts = zeroed_memory((size_t)t->room, sizeof *t->parts);
    t->cost = zeroed_memory((size_t)t->room, sizeof *t->cost);
    t->weight = zeroed_memory((size_t)t->room, sizeof *t->weight);
    t->parts[t->count++] = (struct part){.width = picture->width, .height = picture->height, .worker = NOBODY};
}

static void tiling_end(struct tiling *t)
{
    free(t->parts);
    free(t->cost);
    free(t->weight);
}

static int is_known(const struct tiling *t)
{
    return t->weight[0] > 0;
}

static double area_of(const struct part *p)
{
    return (double)p->width * p->height;
}

/* Adds the cost of a tile to all blocks, with a weight that falls with their distance from it. */
static void learn(struct tiling *t, const struct part *p, double seconds)
{
    double x = p->x + p->width / 2.0, y = p->y + p->height / 2.0, pixel = seconds / area_of(p);
    for (int row = 0; row < t->rows; row++)
        for (int column = 0; column < t->columns; column++) {
            /* The distance is measured from the border of the tile: blocks inside are never looked up again. */
            double dx = fmax(fabs((column + 0.5) * BLOCK_EDGE - x) - p->width / 2.0, 0) / BLOCK_EDGE;
            double dy = fmax(fabs((row + 0.5) * BLOCK_EDGE - y) - p->height / 2.0, 0) / BLOCK_EDGE;
            double weight = 1 / (1 + (dx * dx + dy * dy) * (dx * dx + dy * dy));
            t->cost[row * t->columns + column] += weight * pixel;
            t->weight[row * t->columns + column] += weight;
        }
}

/* Returns the expected cost of a part in processor seconds, or in pixels while no cost is known. */
static double cost_of(const struct tiling *t, const struct part *p)
{
    double cost = 0, unknown = is_known(t) ? UNKNOWN_WEIGHT * UNKNOWN_COST * t->seconds_done / (double)t->pixels_done : 1;
    for (int y = p->y; y < p->y + p->height; y += BLOCK_EDGE)
        for (int x = p->x; x < p->x + p->width; x += BLOCK_EDGE) {
            int block = y / BLOCK_EDGE * t->columns + x / BLOCK_EDGE;
            struct part one = {.width = p->x + p->width - x, .height = p->y + p->height - y};
            one.width = one.width > BLOCK_EDGE ? BLOCK_EDGE : one.width;
            one.height = one.height > BLOCK_EDGE ? BLOCK_EDGE : one.height;
            cost += area_of(&one) * (t->cost[block] + unknown) / (t->weight[block] + UNKNOWN_WEIGHT);
        }
    return cost;
}

/* Cuts a part across its longer side into halves of about equal cost. Returns whether it can be cut. */
static int cut(const struct tiling *t, const struct part *p, struct part *first, struct part *second)
{
    int across = p->width >= p->height, longer = across ? p->width : p->height, best = 0;
    double whole = cost_of(t, p), least = whole;
    for (int at = BLOCK_EDGE; at < longer; at += BLOCK_EDGE) {
        struct part half = *p;
        *(across ? &half.width : &half.height) = at;
        double difference = fabs(whole - 2 * cost_of(t, &half));
        if (!best || difference < least) {
            best = at;
            least = difference;
        }
    }
    *first = *second = *p;
    *(across ? &first->width : &first->height) = best;
    *(across ? &second->width : &second->height) = longer - best;
    *(across ? &second->x : &second->y) += best;
    return best > 0;
}

/* Assigns the next tile to a worker, one of `workers`. Returns it, or NULL if all are assigned. */
static struct part *next_tile(struct tiling *t, int worker, int workers)
{
    double left = 0, most = -1;
    struct part *next = NULL;
    for (struct part *p = t->parts; p < t->parts + t->count; p++) {
        if (p->worker != NOBODY)
            continue;
        double cost = cost_of(t, p);
        left += cost;
        if (cost > most) {
            most = cost;
            next = p;
        }
    }
    if (!next)
        return NULL;
    double cost = is_known(t) ? fmax(left / PARTS / workers, MIN_TILE_SECONDS) : left / FIRST_PARTS / workers;
    double area = (double)t->picture->width * t->picture->height / AREA_PARTS / workers;
    struct part first, second;
    while ((cost_of(t, next) > 1.5 * cost || area_of(next) > 1.5 * area) && cut(t, next, &first, &second)) {
        *next = first;
        t->parts[t->count++] = second; /* there is room for as many parts as there are blocks */
    }
    next->worker = worker;
    next->number = t->tiles++;
    return next;
}

/* Returns how many parts are assigned to a worker, or to NOBODY. */
static int tiles_at(const struct tiling *t, int worker)
{
    int count = 0;
    for (const struct part *p = t->parts; p < t->parts + t->count; p++)
        count += p->worker == worker;
    return count;
}

/* Returns the part that is rendered under this number, or NULL. */
static struct part *part_of(struct tiling *t, int number)
{
    for (struct part *p = t->parts; p < t->parts + t->count; p++)
        if (p->worker != NOBODY && p->number == number)
            return p;
    return NULL;
}

/* Records the cost of a rendered part and removes it. */
static void tile_is_done(struct tiling *t, struct part *p, double seconds)
{
    learn(t, p, seconds);
    t->seconds_done += seconds;
    t->pixels_done += (long)p->width * p->height;
    *p = t->parts[--t->count];
}

#endif
