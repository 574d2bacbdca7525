/* tiles.h: how the master cuts the picture into tiles, by what they cost.
 *
 * The picture begins as one part. Whenever a worker is free, the part that is likely to cost most is cut into halves of equal cost until what
 * is left is small enough. Tiles that have been rendered tell what a place costs, the near ones above all: so tiles are small
 * where rays go a long way, and large in the sky. They become smaller as less is left, so that all workers end at about the same time.
 *
 * There is no pilot calculation at a low resolution: it tells what a whole picture costs and not where, unless each part has a pilot of its own,
 * and 16 of these cost as much as 16 tiles more. */
#ifndef POVRAY_TILES_H
#define POVRAY_TILES_H

#include "picture.h"
#include <math.h>

/* A tile is a part of what is left: that is divided by one of these numbers, and by the number of workers. */
enum {
    PARTS = 3,       /* of the cost */
    FIRST_PARTS = 8, /* of the pixels, before anything is known of costs */
    AREA_PARTS = 4   /* of the picture: a tile has no more, since what it costs is a guess */
};

/* Tiles are not cut below this, in processor seconds: a POV-Ray uses about 0.03 s before it renders. */
#define MIN_TILE_SECONDS 0.4

/* A place far from all tiles is taken for so many times as costly as the mean, since to find late that it is costly is worse than to cut it
 * for nothing. This counts as much as a tile some two blocks away. */
#define UNKNOWN_COST 2
#define UNKNOWN_WEIGHT 0.1

struct part {
    int x, y, width, height; /* pixels; the corner is one of POV-Ray's blocks */
    int worker;              /* who renders it; NOBODY */
    int number;              /* of the tile, if somebody renders it */
    int failures;            /* how often it has been lost or could not be rendered */
};

enum { NOBODY = -1 };

struct tiling {
    const struct picture *picture;
    struct part *parts; /* of the picture that are not done */
    int count, room;
    int columns, rows; /* of blocks */
    double *cost;      /* of each block: weighted sum of what tiles cost for a pixel */
    double *weight;    /* of each block: sum of the weights */
    int tiles;         /* that have been handed out */
    long pixels_done;
    double seconds_done; /* of processor time */
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

/* Learns what a tile has cost: for each block it counts the more the nearer it is. */
static void learn(struct tiling *t, const struct part *p, double seconds)
{
    double x = p->x + p->width / 2.0, y = p->y + p->height / 2.0, pixel = seconds / area_of(p);
    for (int row = 0; row < t->rows; row++)
        for (int column = 0; column < t->columns; column++) {
            /* From the border of the tile on: inside of it nobody asks. */
            double dx = fmax(fabs((column + 0.5) * BLOCK_EDGE - x) - p->width / 2.0, 0) / BLOCK_EDGE;
            double dy = fmax(fabs((row + 0.5) * BLOCK_EDGE - y) - p->height / 2.0, 0) / BLOCK_EDGE;
            double weight = 1 / (1 + (dx * dx + dy * dy) * (dx * dx + dy * dy));
            t->cost[row * t->columns + column] += weight * pixel;
            t->weight[row * t->columns + column] += weight;
        }
}

/* Returns what a part is likely to cost: processor seconds, or before anything is known, pixels. */
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

/* Cuts a part across its longer side, into halves that cost about the same; returns whether it can be cut. */
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

/* Takes the next tile for a worker, one of so many. Returns it, or nothing if all are taken. */
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
        t->parts[t->count++] = second; /* there is room for every block as a part */
    }
    next->worker = worker;
    next->number = t->tiles++;
    return next;
}

/* Returns how many parts are with a worker, or with nobody. */
static int tiles_at(const struct tiling *t, int worker)
{
    int count = 0;
    for (const struct part *p = t->parts; p < t->parts + t->count; p++)
        count += p->worker == worker;
    return count;
}

/* Returns the part that is rendered under this number, or nothing. */
static struct part *part_of(struct tiling *t, int number)
{
    for (struct part *p = t->parts; p < t->parts + t->count; p++)
        if (p->worker != NOBODY && p->number == number)
            return p;
    return NULL;
}

/* Takes a part out, which has been rendered. */
static void tile_is_done(struct tiling *t, struct part *p, double seconds)
{
    learn(t, p, seconds);
    t->seconds_done += seconds;
    t->pixels_done += (long)p->width * p->height;
    *p = t->parts[--t->count];
}

#endif
