/* povray.h: a farm for POV-Ray. A master hands out tiles of the picture (tiles.h); workers have POV-Ray render them
 * (render.h) and send the pixels back; the master assembles the picture.
 *
 * A worker renders two tiles at a time: each POV-Ray sleeps for a third of a second before it renders and for as long
 * afterwards, and meanwhile the other one has the processor. The master waits for messages without using a processor,
 * so two workers keep two processors busy.
 *
 * The master answers each worker's start with TILES_AT_A_TIME tiles, and each result with one; if no tile is left, it
 * sends TILE_NONE instead. A tile that is lost because its worker or its POV-Ray has died is handed out again, also to
 * a worker that was sent TILE_NONE. If the interface can start tasks, another worker replaces a dead one.
 *
 * The scene must be on all hosts, under the same path. After the clock has stopped, the picture is compared pixel by
 * pixel with one run of POV-Ray. */
#ifndef POVRAY_POVRAY_H
#define POVRAY_POVRAY_H

#include "program.h"
#include "tiles.h"
#include <stddef.h>

enum {
    TILES_AT_A_TIME = 2, /* for one worker */
    MAX_WORKERS = 256,
    MAX_FAILURES = 3,     /* for one tile, after which the farm gives up */
    MAX_REPLACEMENTS = 8, /* for one worker */
    TILE_NONE = -1,       /* sent in place of a tile's number: none is left for now */
    TILE_END = -2         /* the same: the picture is done */
};

/* The answer of a worker to a tile. */
struct result {
    int number;      /* number of the tile */
    int pixel_bytes; /* 0 if the tile could not be rendered */
    double seconds;  /* processor time in seconds */
    char failure[FAILURE_BYTES];
    unsigned char pixels[];
};

/* Returns the size of a result in bytes. */
static inline size_t result_bytes(int pixel_bytes)
{
    return offsetof(struct result, pixels) + (size_t)pixel_bytes;
}

/* The functions that an interface defines for the master. Workers count from 0. */

/* Sends a tile to a worker. Does nothing if the worker is dead. */
static void send_tile(int worker, const struct tile *tile);
/* Waits for a result with at most `max_pixel_bytes` bytes of pixels, or for the death of a worker. Returns whether it
 * is a result. */
static int hear(struct result *result, int max_pixel_bytes, int *worker);
/* Starts another worker in place of a dead one. Returns whether it was started. */
static int replace_worker(int worker, const struct picture *picture);

/* The functions that an interface defines for workers. */

/* Returns whether a tile has arrived. */
static int tile_waits(void);
static void receive_tile(struct tile *tile);
static void send_result(const struct result *result);

/* ---- the worker ------------------------------------------------------------------------------ */

/* Waits until one of the renderings has ended, and returns it. */
static struct rendering *await_rendering(struct rendering *all, const struct picture *picture)
{
    for (;;) {
        struct pollfd outputs[TILES_AT_A_TIME];
        for (int k = 0; k < TILES_AT_A_TIME; k++)
            outputs[k] = (struct pollfd){.fd = all[k].process ? all[k].output : -1, .events = POLLIN};
        if (poll(outputs, TILES_AT_A_TIME, -1) < 0)
            continue; /* interrupted by a signal */
        for (int k = 0; k < TILES_AT_A_TIME; k++)
            if (outputs[k].revents && rendering_read(&all[k], picture))
                return &all[k];
    }
}

static void send_rendering(const struct rendering *r, const struct picture *picture, struct result *result)
{
    result->number = r->tile.number;
    result->seconds = r->seconds;
    result->pixel_bytes = r->failure[0] ? 0 : r->tile.width * r->tile.height * 3;
    memcpy(result->failure, r->failure, sizeof result->failure);
    if (result->pixel_bytes)
        rendering_pixels(r, picture, result->pixels);
    send_result(result);
}

/* Renders the tiles that the master sends until it receives TILE_END. Returns the exit status of the program. */
static int worker(const struct picture *picture)
{
    struct rendering all[TILES_AT_A_TIME] = {0};
    struct result *result = zeroed_memory(1, result_bytes(picture->width * picture->height * 3));
    int running = 0, owed = TILES_AT_A_TIME;
    struct tile tile = {.number = TILE_NONE};
    while (tile.number != TILE_END) {
        if (running < TILES_AT_A_TIME && (owed > 0 || running == 0 || tile_waits())) {
            receive_tile(&tile);
            owed -= owed > 0;
            if (tile.number >= 0) {
                int k = 0;
                while (all[k].process)
                    k++;
                rendering_begin(&all[k], picture, tile, 1);
                running++;
            }
        } else {
            send_rendering(await_rendering(all, picture), picture, result);
            running--;
            owed++;
        }
    }
    for (int k = 0; k < TILES_AT_A_TIME; k++)
        free(all[k].data);
    free(result);
    return 0;
}

/* ---- the master ------------------------------------------------------------------------------ */

struct farm {
    struct tiling tiling;
    unsigned char *pixels;
    int workers, lives[MAX_WORKERS]; /* for each, how often it may still be replaced, or -1 if it is dead */
    int idle[MAX_WORKERS];           /* tiles that each could render in addition to those it has */
    int again;                       /* number of tiles handed out again */
    int gives_up;
};

/* Sends a worker its next tile, or TILE_NONE if none is left. */
static void hand_out(struct farm *f, int worker)
{
    int alive = 0;
    for (int k = 0; k < f->workers; k++)
        alive += f->lives[k] >= 0;
    const struct part *p = f->gives_up ? NULL : next_tile(&f->tiling, worker, alive);
    struct tile tile = {.number = TILE_NONE};
    if (p)
        tile = (struct tile){p->number, p->x, p->y, p->width, p->height};
    else
        f->idle[worker]++;
    send_tile(worker, &tile);
}

/* Marks a tile to be rendered again by the next idle worker. Gives up if it has been lost too often. */
static void hand_out_again(struct farm *f, struct part *p, const char *failure)
{
    f->again++;
    p->worker = NOBODY;
    if (++p->failures >= MAX_FAILURES && !f->gives_up) {
        fprintf(stderr, "povray: a tile failed %d times, so the picture cannot be rendered. %s\n", MAX_FAILURES, failure);
        f->gives_up = 1;
    }
}

/* Sends tiles that were lost to workers that were sent TILE_NONE before. */
static void feed_idle(struct farm *f)
{
    for (int k = 0; k < f->workers; k++)
        while (f->lives[k] >= 0 && f->idle[k] > 0 && !f->gives_up && tiles_at(&f->tiling, NOBODY) > 0) {
            f->idle[k]--;
            hand_out(f, k);
        }
}

/* Copies the pixels of a result into the picture, and sends its worker the next tile. */
static void take_result(struct farm *f, int worker, const struct result *result)
{
    struct part *p = part_of(&f->tiling, result->number);
    if (!p || p->worker != worker || f->lives[worker] < 0)
        return; /* from a worker that was declared dead: the tile is to be rendered by another one */
    size_t row = (size_t)p->width * 3;
    if (result->pixel_bytes == 0) {
        hand_out_again(f, p, result->failure);
    } else {
        for (int y = 0; y < p->height; y++)
            memcpy(f->pixels + ((size_t)(p->y + y) * (size_t)f->tiling.picture->width + (size_t)p->x) * 3, result->pixels + (size_t)y * row, row);
        tile_is_done(&f->tiling, p, result->seconds);
    }
    hand_out(f, worker);
    feed_idle(f);
}

/* Hands out the tiles of a dead worker again, and replaces the worker if possible. */
static void lose_worker(struct farm *f, int worker)
{
    int before = f->again;
    for (struct part *p = f->tiling.parts; p < f->tiling.parts + f->tiling.count; p++)
        if (p->worker == worker)
            hand_out_again(f, p, "The workers that had it have died.");
    f->idle[worker] = 0;
    int replaced = !f->gives_up && f->lives[worker] > 0 && replace_worker(worker, f->tiling.picture);
    f->lives[worker] = replaced ? f->lives[worker] - 1 : -1;
    printf("povray: worker %d has died; %d tiles are rendered again; %s\n", worker, f->again - before,
           replaced ? "another worker takes its place" : "it is not replaced");
    fflush(stdout);
    for (int k = 0; replaced && k < TILES_AT_A_TIME; k++)
        hand_out(f, worker);
    feed_idle(f);
    int alive = 0;
    for (int k = 0; k < f->workers; k++)
        alive += f->lives[k] >= 0;
    if (!alive && !f->gives_up) {
        fprintf(stderr, "povray: no worker is left, so the picture cannot be rendered\n");
        f->gives_up = 1;
    }
}

/* Returns whether the farm has ended: the picture is done, or the farm has given up and no worker has a tile. */
static int is_over(const struct farm *f)
{
    if (f->tiling.pixels_done == (long)f->tiling.picture->width * f->tiling.picture->height)
        return 1;
    return f->gives_up && tiles_at(&f->tiling, NOBODY) == f->tiling.count;
}

/* Has the workers render the picture. */
static void farm_run(struct farm *f)
{
    const struct picture *picture = f->tiling.picture;
    int most = picture->width * picture->height * 3, from;
    struct result *result = zeroed_memory(1, result_bytes(most));
    for (int k = 0; k < f->workers; k++)
        f->lives[k] = MAX_REPLACEMENTS;
    for (int turn = 0; turn < TILES_AT_A_TIME; turn++)
        for (int k = 0; k < f->workers; k++)
            hand_out(f, k);
    while (!is_over(f)) {
        if (hear(result, most, &from))
            take_result(f, from, result);
        else if (f->lives[from] >= 0)
            lose_worker(f, from);
    }
    struct tile end = {.number = TILE_END};
    for (int k = 0; k < f->workers; k++)
        if (f->lives[k] >= 0)
            send_tile(k, &end);
    free(result);
}

/* ---- the program ------------------------------------------------------------------------------ */

/* Fills in the arguments of a worker that is started at run time. */
static inline void arguments_of_worker(const struct picture *picture, char numbers[2][16], char *argv[5])
{
    static char tells[] = "-v";
    int count = 0;
    if (picture->tells)
        argv[count++] = tells;
    argv[count++] = (char *)picture->scene;
    snprintf(numbers[0], sizeof numbers[0], "%d", picture->width);
    snprintf(numbers[1], sizeof numbers[1], "%d", picture->height);
    argv[count++] = numbers[0];
    argv[count++] = numbers[1];
    argv[count] = NULL;
}

/* Runs the program as the master of `workers` workers. Returns its exit status. */
static int master(const struct picture *picture, const char *path, int workers)
{
    if (workers < 1 || workers > MAX_WORKERS)
        refuse("povray", "2 to 257 tasks are needed: a master and its workers");
    static struct farm f;
    f.workers = workers;
    f.pixels = zeroed_memory((size_t)picture->width * (size_t)picture->height, 3);
    tiling_begin(&f.tiling, picture);
    double start = clock_seconds();
    farm_run(&f);
    double seconds = clock_seconds() - start;
    int status = f.gives_up ? 1 : tell(picture, f.pixels, path, workers + 1, seconds, f.tiling.tiles, f.again);
    tiling_end(&f.tiling);
    free(f.pixels);
    return status;
}

#endif
