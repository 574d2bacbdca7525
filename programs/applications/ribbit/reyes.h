/* reyes.h: the renderer, after R. Cook, L. Carpenter and E. Catmull, "The Reyes image rendering architecture" (1987).
 *
 *   bound      Finds where in the picture the piece may be seen. If nowhere, it is dropped.
 *   split      Splits a piece that is too large for one grid of micropolygons into parts.
 *   dice       Turns a small piece into a grid of micropolygons, each about as large as a pixel.
 *   shade      Computes the colours of the corners of micropolygons.
 *   sample     Each pixel has several samples at positions of its own. A sample keeps the surfaces that cover it: the nearest
 *              opaque one, and all others.
 *   composite  Combines the surfaces at a sample into one colour.
 *
 * What happens to a piece does not depend on the task that does it, and a sample does not depend on the order in which
 * pieces arrive: of surfaces at the same distance the one of the lowest primitive is in front, and within a primitive
 * the piece with the lowest position. So the picture is the same for any division of the work. */
#ifndef RIBBIT_REYES_H
#define RIBBIT_REYES_H

#include "shading.h"

enum {
    GRID = 256, /* most micropolygons of a grid */
    GRID_VERTICES = 2 * (GRID + 1), /* most corners of such a grid: that of one row of micropolygons */
    MEASURES = 4 /* parts into which an edge is divided to measure a piece */
};
#define REYES_NEAR_DISTANCE 0.02 /* what is nearer to the eye is not visible */
#define REYES_DILATION_SHARE 0.02 /* part of its height by which a micropolygon is enlarged, so that there are no gaps */
#define REYES_MARGIN_PIXELS 0.1 /* pixels around a piece that the enlargement can reach */
#define REYES_SAME_SURFACE_SHARE 1e-3 /* relative distance within which two samples of a primitive belong to the same surface */
#define REYES_MIN_PARAMETER_SHARE 0x1p-12 /* part of the parameter range below which a piece around the eye is dropped */

/* A position in the picture, in pixels from its upper left corner, and its distance ahead of the eye. */
struct seen {
    double x, y, z;
};

static struct vec camera_point(const struct scene *scene, struct vec p)
{
    const struct scene_numbers *n = &scene->numbers;
    struct vec d = vec_sub(p, n->eye);
    return vec(vec_dot(d, n->right), vec_dot(d, n->up), vec_dot(d, n->ahead));
}

static struct seen project(const struct scene *scene, struct vec p)
{
    struct vec c = camera_point(scene, p);
    double scale = scene->numbers.focal / c.z;
    return (struct seen){scene->ints.width / 2.0 + scale * c.x, scene->ints.height / 2.0 - scale * c.y, c.z};
}

/* ---- bound ----------------------------------------------------------------------------------------- */

struct rectangle {
    double left, top, right, bottom;
};

static const struct rectangle nowhere = {INFINITY, INFINITY, -INFINITY, -INFINITY};

static void rectangle_include(struct rectangle *r, double x, double y)
{
    r->left = fmin(r->left, x);
    r->right = fmax(r->right, x);
    r->top = fmin(r->top, y);
    r->bottom = fmax(r->bottom, y);
}

/* Sets the tiles in which a piece whose picture is within a rectangle may be seen. Returns whether there are any. */
static int bound_tiles(const struct scene *scene, struct piece *piece, struct rectangle r)
{
    int across = scene_tiles_across(scene), down = scene_tiles_down(scene);
    r = (struct rectangle){r.left - REYES_MARGIN_PIXELS, r.top - REYES_MARGIN_PIXELS, r.right + REYES_MARGIN_PIXELS, r.bottom + REYES_MARGIN_PIXELS};
    if (!(r.right >= 0 && r.bottom >= 0 && r.left < scene->ints.width && r.top < scene->ints.height))
        return 0;
    piece->left = (int)clamp(floor(r.left / TILE), 0, across - 1);
    piece->right = (int)clamp(floor(r.right / TILE), 0, across - 1);
    piece->top = (int)clamp(floor(r.top / TILE), 0, down - 1);
    piece->bottom = (int)clamp(floor(r.bottom / TILE), 0, down - 1);
    return 1;
}

/* Returns whether all of these points are, by more than `height`, on the outer side of one of the four planes through the eye and an edge of the
 * picture. Nothing between them is seen then, also if some are behind the eye. */
static int beside_picture(const struct scene *scene, const struct vec *p, int count, double height)
{
    double focal = scene->numbers.focal, half[2] = {scene->ints.width / 2.0 + 1, scene->ints.height / 2.0 + 1};
    for (int plane = 0; plane < 4; plane++) {
        int k = 0, side = plane & 1 ? 1 : -1, vertical = plane >> 1;
        double margin = height * hypot(focal, half[vertical]);
        while (k < count && focal * side * (vertical ? p[k].y : p[k].x) - half[vertical] * p[k].z > margin)
            k++;
        if (k == count)
            return 1;
    }
    return 0;
}

/* Finds the rectangle in which a piece may be seen. Returns 1 on success, 0 if it cannot be seen, and -1 if it
 * surrounds the eye, so that it may be anywhere. */
static int bound(const struct scene *scene, const struct piece *piece, struct rectangle *r)
{
    struct vec hull[MAX_HULL];
    int count = shape_hull(piece, hull);
    double height = scene->numbers.materials[piece->material].height * (scene->ints.relief[piece->material] != EVEN);
    double nearest = INFINITY, farthest = -INFINITY;
    for (int k = 0; k < count; k++) {
        hull[k] = camera_point(scene, hull[k]);
        nearest = fmin(nearest, hull[k].z - height);
        farthest = fmax(farthest, hull[k].z + height);
    }
    if (farthest < REYES_NEAR_DISTANCE || beside_picture(scene, hull, count, height))
        return 0;
    if (nearest < REYES_NEAR_DISTANCE)
        return -1;
    /* The relief can move each point within a cube around it. */
    *r = nowhere;
    for (int k = 0; k < count; k++)
        for (int corner = 0; corner < (height > 0 ? 8 : 1); corner++) {
            double x = hull[k].x + (corner & 1 ? height : -height), y = hull[k].y + (corner & 2 ? height : -height);
            double scale = scene->numbers.focal / (hull[k].z + (corner & 4 ? height : -height));
            rectangle_include(r, scene->ints.width / 2.0 + scale * x, scene->ints.height / 2.0 - scale * y);
        }
    return 1;
}

/* ---- dice ------------------------------------------------------------------------------------------ */

/* The micropolygons of a piece: their numbers along u and along v, and their corners. */
struct grid {
    int along, across;
    double u[GRID_VERTICES], v[GRID_VERTICES];
    struct vec place[GRID_VERTICES];
    struct seen seen[GRID_VERTICES];
};

/* Measures the length of a piece along u and along v: with `pixels` in the picture, without it in the scene. */
static void measure(const struct scene *scene, const struct piece *piece, int pixels, double *along, double *across)
{
    struct vec p[MEASURES + 1][MEASURES + 1];
    for (int j = 0; j <= MEASURES; j++)
        for (int i = 0; i <= MEASURES; i++) {
            double u = piece->u[0] + (piece->u[1] - piece->u[0]) * i / MEASURES, v = piece->v[0] + (piece->v[1] - piece->v[0]) * j / MEASURES;
            p[j][i] = displaced_point(scene, piece, u, v);
            if (pixels) {
                struct seen s = project(scene, p[j][i]);
                p[j][i] = vec(s.x, s.y, 0);
            }
        }
    *along = *across = 0;
    for (int j = 0; j <= MEASURES; j++) {
        double row = 0, column = 0;
        for (int i = 0; i < MEASURES; i++) {
            row += vec_length(vec_sub(p[j][i + 1], p[j][i]));
            column += vec_length(vec_sub(p[i + 1][j], p[i][j]));
        }
        *along = fmax(*along, row);
        *across = fmax(*across, column);
    }
}

/* Finds the numbers of micropolygons of a piece along u and along v. */
static void grid_size(const struct scene *scene, const struct piece *piece, double *along, double *across)
{
    measure(scene, piece, 1, along, across);
    *along = fmax(ceil(*along / sqrt(scene->numbers.rate)), 1);
    *across = fmax(ceil(*across / sqrt(scene->numbers.rate)), 1);
}

static void dice(const struct scene *scene, const struct piece *piece, struct grid *grid)
{
    double along, across;
    grid_size(scene, piece, &along, &across);
    grid->along = (int)along;
    grid->across = (int)across;
    for (int j = 0, k = 0; j <= grid->across; j++)
        for (int i = 0; i <= grid->along; i++, k++) {
            /* The ends are exact, so that they equal those of neighbours. */
            grid->u[k] = i == grid->along ? piece->u[1] : piece->u[0] + (piece->u[1] - piece->u[0]) * i / grid->along;
            grid->v[k] = j == grid->across ? piece->v[1] : piece->v[0] + (piece->v[1] - piece->v[0]) * j / grid->across;
            grid->place[k] = displaced_point(scene, piece, grid->u[k], grid->v[k]);
            grid->seen[k] = project(scene, grid->place[k]);
        }
}

/* ---- split ----------------------------------------------------------------------------------------- */

/* Finds the tiles of a small piece with a relief from its micropolygons, since the bound of a relief is far larger.
 * Returns whether there are any. */
static int bound_grid(const struct scene *scene, struct piece *piece)
{
    struct grid grid;
    struct rectangle r = nowhere;
    dice(scene, piece, &grid);
    for (int k = 0; k < (grid.along + 1) * (grid.across + 1); k++)
        rectangle_include(&r, grid.seen[k].x, grid.seen[k].y);
    return bound_tiles(scene, piece, r);
}

/* Returns the state of a piece and, if it may be seen, sets its tiles. */
static enum state look_at(const struct scene *scene, struct piece *piece)
{
    struct rectangle r;
    double along = 0, across = 0;
    int ahead = bound(scene, piece, &r);
    if (ahead < 0) {
        if (piece->u[1] - piece->u[0] < REYES_MIN_PARAMETER_SHARE && piece->v[1] - piece->v[0] < REYES_MIN_PARAMETER_SHARE)
            return GONE;
        r = (struct rectangle){0, 0, scene->ints.width, scene->ints.height};
    }
    if (ahead == 0 || !bound_tiles(scene, piece, r))
        return GONE;
    if (piece->shape == FLAKE)
        return LARGE_U;
    if (ahead < 0)
        measure(scene, piece, 0, &along, &across);
    else
        grid_size(scene, piece, &along, &across);
    if (ahead < 0 || !(along * across <= GRID))
        return along > across ? LARGE_U : LARGE_V;
    return scene->ints.relief[piece->material] == EVEN || bound_grid(scene, piece) ? SMALL : GONE;
}

/* Sets the state and the tiles of a piece. One that is GONE is in no tile. */
static void classify(const struct scene *scene, struct piece *piece)
{
    piece->state = look_at(scene, piece);
    if (piece->state == GONE) {
        piece->left = piece->top = 0;
        piece->right = piece->bottom = -1;
    }
}

/* Splits a large piece and classifies its parts. Returns their number. */
static int split(const struct scene *scene, const struct piece *piece, struct piece children[MAX_CHILDREN])
{
    int count = shape_split(piece, piece->state == LARGE_U, children);
    for (int k = 0; k < count; k++)
        classify(scene, &children[k]);
    return count;
}

static inline int is_large(const struct piece *piece)
{
    return piece->state == LARGE_U || piece->state == LARGE_V;
}

/* Returns whether a piece may be seen in the tile in column x and row y. */
static inline int is_in_tile(const struct piece *piece, int x, int y)
{
    return x >= piece->left && x <= piece->right && y >= piece->top && y <= piece->bottom;
}

/* ---- sample ---------------------------------------------------------------------------------------- */

/* A surface at a sample. */
struct hit {
    double z, first;
    int primitive, next; /* the next hit of the sample, or -1 */
    struct vec colour;
    double opacity;
};

/* A tile that is being rendered. Its samples are in a grid of cells, one at a random position in each cell. */
struct canvas {
    const struct scene *scene;
    int left, top, across; /* its first cell in the picture, and the number of cells across the tile */
    struct hit *opaque; /* for each cell, the nearest opaque hit; its distance is INFINITY if there is none */
    int *see_through; /* for each cell, the last added of its other hits, or -1 */
    struct hit *hits;
    int count, room;
};

static void canvas_begin(struct canvas *canvas, const struct scene *scene, int x, int y)
{
    canvas->scene = scene;
    canvas->across = TILE * scene->ints.samples;
    canvas->left = x * canvas->across;
    canvas->top = y * canvas->across;
    canvas->count = 0;
    size_t cells = (size_t)canvas->across * (size_t)canvas->across;
    if (!canvas->opaque) {
        canvas->opaque = zeroed_memory(cells, sizeof *canvas->opaque);
        canvas->see_through = zeroed_memory(cells, sizeof *canvas->see_through);
    }
    for (size_t k = 0; k < cells; k++) {
        canvas->opaque[k].z = INFINITY;
        canvas->see_through[k] = -1;
    }
}

static void canvas_end(struct canvas *canvas)
{
    free(canvas->opaque);
    free(canvas->see_through);
    free(canvas->hits);
}

/* Returns the position of the sample of a cell, in pixels. */
static struct seen sample_place(const struct canvas *canvas, int x, int y)
{
    double samples = canvas->scene->ints.samples;
    int64_t column = canvas->left + x, row = canvas->top + y;
    return (struct seen){((double)column + noise_number(column, row, 1)) / samples, ((double)row + noise_number(column, row, 2)) / samples, 0};
}

/* Returns a negative number if a is in front of b, a positive one if it is behind. */
static int hit_order(const struct hit *a, const struct hit *b)
{
    if (a->z != b->z)
        return a->z < b->z ? -1 : 1;
    if (a->primitive != b->primitive)
        return a->primitive < b->primitive ? -1 : 1;
    return a->first < b->first ? -1 : a->first > b->first;
}

static void keep(struct canvas *canvas, int cell, const struct hit *hit)
{
    if (hit->opacity >= 0.999) {
        if (hit_order(hit, &canvas->opaque[cell]) < 0)
            canvas->opaque[cell] = *hit;
        return;
    }
    if (canvas->count == canvas->room)
        canvas->hits = grown_memory(canvas->hits, &canvas->room, sizeof *canvas->hits);
    canvas->hits[canvas->count] = *hit;
    canvas->hits[canvas->count].next = canvas->see_through[cell];
    canvas->see_through[cell] = canvas->count++;
}

/* A micropolygon of a grid with its colours; it is sampled as two triangles. */
struct micropolygon {
    struct seen corner[4];
    struct shade shade[4];
};

/* Computes the weights of a triangle's corners at a point. Returns whether the point is inside. */
static int weigh(const struct seen *a, const struct seen *b, const struct seen *c, struct seen p, double weight[3])
{
    double area = (b->x - a->x) * (c->y - a->y) - (b->y - a->y) * (c->x - a->x);
    if (area == 0)
        return 0;
    weight[0] = ((b->x - p.x) * (c->y - p.y) - (b->y - p.y) * (c->x - p.x)) / area;
    weight[1] = ((c->x - p.x) * (a->y - p.y) - (c->y - p.y) * (a->x - p.x)) / area;
    weight[2] = 1 - weight[0] - weight[1];
    return weight[0] >= -REYES_DILATION_SHARE && weight[1] >= -REYES_DILATION_SHARE && weight[2] >= -REYES_DILATION_SHARE;
}

/* Adds a hit to the sample of a cell if a micropolygon covers it. */
static void sample(struct canvas *canvas, const struct piece *piece, const struct micropolygon *m, int x, int y)
{
    static const int triangles[2][3] = {{0, 1, 2}, {3, 2, 1}};
    struct seen p = sample_place(canvas, x, y);
    for (int k = 0; k < 2; k++) {
        const int *t = triangles[k];
        double weight[3];
        if (!weigh(&m->corner[t[0]], &m->corner[t[1]], &m->corner[t[2]], p, weight))
            continue;
        struct hit hit = {.first = piece->first, .primitive = piece->primitive};
        for (int i = 0; i < 3; i++) {
            hit.z += weight[i] * m->corner[t[i]].z;
            hit.colour = vec_add(hit.colour, weight[i], m->shade[t[i]].colour);
            hit.opacity += weight[i] * m->shade[t[i]].opacity;
        }
        keep(canvas, y * canvas->across + x, &hit);
        return;
    }
}

/* Finds the cells of the tile that a micropolygon may cover: first and last column, first and last row. Returns whether
 * there are any. */
static int covered_cells(const struct canvas *canvas, const struct seen corner[4], int cells[4])
{
    struct rectangle r = nowhere;
    double samples = canvas->scene->ints.samples, last = canvas->across - 1;
    for (int k = 0; k < 4; k++)
        rectangle_include(&r, corner[k].x, corner[k].y);
    double left = floor((r.left - REYES_MARGIN_PIXELS) * samples) - canvas->left, right = floor((r.right + REYES_MARGIN_PIXELS) * samples) - canvas->left;
    double top = floor((r.top - REYES_MARGIN_PIXELS) * samples) - canvas->top, bottom = floor((r.bottom + REYES_MARGIN_PIXELS) * samples) - canvas->top;
    if (!(right >= 0 && left <= last && bottom >= 0 && top <= last))
        return 0;
    cells[0] = (int)fmax(left, 0);
    cells[1] = (int)fmin(right, last);
    cells[2] = (int)fmax(top, 0);
    cells[3] = (int)fmin(bottom, last);
    return 1;
}

/* Dices a small piece, and shades and samples the part of it in the tile. */
static void render_piece(struct canvas *canvas, const struct piece *piece)
{
    struct grid grid;
    struct shade shade[GRID_VERTICES];
    char shaded[GRID_VERTICES] = {0};
    dice(canvas->scene, piece, &grid);
    for (int j = 0; j < grid.across; j++)
        for (int i = 0; i < grid.along; i++) {
            int start = j * (grid.along + 1) + i, at[4] = {start, start + 1, start + grid.along + 1, start + grid.along + 2}, cells[4];
            struct micropolygon m;
            for (int k = 0; k < 4; k++)
                m.corner[k] = grid.seen[at[k]];
            if (!covered_cells(canvas, m.corner, cells))
                continue;
            for (int k = 0; k < 4; k++) {
                if (!shaded[at[k]])
                    shade[at[k]] = shade_point(canvas->scene, piece, grid.place[at[k]], grid.u[at[k]], grid.v[at[k]]);
                shaded[at[k]] = 1;
                m.shade[k] = shade[at[k]];
            }
            for (int y = cells[2]; y <= cells[3]; y++)
                for (int x = cells[0]; x <= cells[1]; x++)
                    sample(canvas, piece, &m, x, y);
        }
}

/* ---- composite -------------------------------------------------------------------------------------- */

/* Returns the next hit of the sample behind the hit `before` and in front of `end`, or -1. Of equal hits, the first
 * added is in front. */
static int hit_behind(const struct canvas *canvas, int cell, int before, const struct hit *end)
{
    int found = -1;
    for (int k = canvas->see_through[cell]; k >= 0; k = canvas->hits[k].next) {
        int order = before < 0 ? 1 : hit_order(&canvas->hits[k], &canvas->hits[before]);
        if (order < 0 || (order == 0 && k <= before) || hit_order(&canvas->hits[k], end) > 0)
            continue;
        /* The chain runs from the last added to the first, so an equal hit found later was added earlier. */
        if (found < 0 || hit_order(&canvas->hits[k], &canvas->hits[found]) <= 0)
            found = k;
    }
    return found;
}

/* Returns the colour of a sample: that of all surfaces in front of the first opaque one, and of that one or of the
 * background `behind`. */
static struct vec composite(const struct canvas *canvas, int cell, struct vec behind)
{
    const struct hit *opaque = &canvas->opaque[cell];
    struct vec colour = vec(0, 0, 0);
    double left = 1, last_z = -INFINITY;
    int last_primitive = -1;
    for (int k = hit_behind(canvas, cell, -1, opaque); k >= 0; k = hit_behind(canvas, cell, k, opaque)) {
        const struct hit *hit = &canvas->hits[k];
        /* Neighbouring micropolygons overlap because they are enlarged; they count once. */
        if (hit->primitive == last_primitive && hit->z - last_z < REYES_SAME_SURFACE_SHARE * hit->z)
            continue;
        last_primitive = hit->primitive;
        last_z = hit->z;
        colour = vec_add(colour, left * hit->opacity, hit->colour);
        left *= 1 - hit->opacity;
    }
    return vec_add(colour, left, opaque->z < INFINITY ? opaque->colour : behind);
}

/* Returns the direction from the eye to a position in the picture, in pixels. */
static struct vec view_direction(const struct scene *scene, double x, double y)
{
    struct vec direction = vec_scaled(scene->numbers.ahead, scene->numbers.focal);
    direction = vec_add(direction, x - scene->ints.width / 2.0, scene->numbers.right);
    return vec_unit(vec_add(direction, scene->ints.height / 2.0 - y, scene->numbers.up));
}

/* Returns an amount of light as film records it, from 0 to 1: dark tones are darkened, and bright ones approach white
 * gradually. */
static double exposed(double light)
{
    double part = 1 - exp(-1.15 * fmax(light, 0));
    return 0.25 * part + 0.75 * part * part * (3 - 2 * part);
}

/* Returns the byte of the picture for a value from 0 to 1, with gamma correction. */
static unsigned char screen_byte(double value)
{
    return (unsigned char)(255 * pow(clamp(value, 0, 1), 1 / 2.2) + 0.5);
}

/* Returns the colour of a pixel of the tile: the mean of its samples. */
static struct vec pixel(const struct canvas *canvas, int x, int y)
{
    int samples = canvas->scene->ints.samples;
    struct vec behind = sky(canvas->scene, view_direction(canvas->scene, (double)canvas->left / samples + x + 0.5, (double)canvas->top / samples + y + 0.5));
    struct vec sum = vec(0, 0, 0);
    for (int k = 0; k < samples * samples; k++) {
        struct vec c = composite(canvas, (y * samples + k / samples) * canvas->across + x * samples + k % samples, behind);
        sum = vec_add(sum, 1, vec(exposed(c.x), exposed(c.y), exposed(c.z)));
    }
    return vec_scaled(sum, 1.0 / (samples * samples));
}

/* Writes all pixels of the tile row by row, three bytes each, also those outside of the picture. */
static void canvas_pixels(const struct canvas *canvas, unsigned char *pixels)
{
    for (int y = 0; y < TILE; y++)
        for (int x = 0; x < TILE; x++) {
            struct vec c = pixel(canvas, x, y);
            *pixels++ = screen_byte(c.x);
            *pixels++ = screen_byte(c.y);
            *pixels++ = screen_byte(c.z);
        }
}

#endif
