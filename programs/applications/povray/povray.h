/* povray.h: a farm for POV-Ray. A master hands out tiles of the picture (tiles.h), workers have POV-Ray render them (render.h) and send the
 * pixels back, and the master puts the picture together.
 *
 * A worker renders two tiles at a time: a POV-Ray sleeps for a third of a second before it renders and as long afterwards, and meanwhile the
 * other one has the processor. The master waits for messages and uses none, so two workers keep two processors busy.
 *
 * The master owes each worker so many tiles in the beginning, and one for each result; if there is none left it says so. When a tile is lost,
 * because a worker or its POV-Ray has died, it is handed out again, and goes to a worker that has been told that there is none as well.
 * Where the interface can start tasks, another worker takes the place of a dead one.
 *
 * The scene has to be on all hosts, under the same path. In the end, when the clock has stopped, the picture is compared pixel by pixel with
 * one run of POV-Ray. */
#ifndef POVRAY_POVRAY_H
#define POVRAY_POVRAY_H

#include "program.h"
#include "tiles.h"
#include <stddef.h>

enum {
    TILES_AT_A_TIME = 2, /* of one worker */
    MAX_WORKERS = 256,
    MAX_FAILURES = 3,     /* of one tile: then the farm gives up */
    MAX_REPLACEMENTS = 8, /* of one worker */
    TILE_NONE = -1,       /* numbers in place of a tile's: there is none left for now */
    TILE_END = -2         /* the picture is done */
};

/* A worker sends this back. */
struct result {
    int number;      /* of the tile */
    int pixel_bytes; /* 0 if it could not be rendered */
    double seconds;  /* of processor time */
    char failure[FAILURE_BYTES];
    unsigned char pixels[];
};

/* Returns the length of a result as one piece of memory. */
static inline size_t result_bytes(int pixel_bytes)
{
    return offsetof(struct result, pixels) + (size_t)pixel_bytes;
}

/* An interface defines this for the master. Workers count from 0. */

/* Sends a tile to a worker; nothing happens if that is dead. */
static void send_tile(int worker, const struct tile *tile);
/* Waits for a result with at most so many bytes of pixels, or for the death of a worker. Returns whether it is a result. */
static int hear(struct result *result, int max_pixel_bytes, int *worker);
/* Starts another worker in the place of a dead one; returns whether there is one. */
static int replace_worker(int worker, const struct picture *picture);

/* An interface defines this for workers. */

/* Returns whether a tile has come. */
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
            continue; /* a signal */
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

/* Renders what the master sends until that says that the picture is done; returns the exit status of the program. */
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
    int workers, lives[MAX_WORKERS]; /* how often each may still be replaced; -1: it is dead */
    int idle[MAX_WORKERS];           /* tiles that each could render besides those it has */
    int again;                       /* tiles that were handed out again */
    int gives_up;
};

/* Sends a worker its next tile, or word that there is none. */
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

/* Has a tile rendered again, by whoever has nothing to do; gives up if it has been lost too often. */
static void hand_out_again(struct farm *f, struct part *p, const char *failure)
{
    f->again++;
    p->worker = NOBODY;
    if (++p->failures >= MAX_FAILURES && !f->gives_up) {
        fprintf(stderr, "povray: a tile could not be rendered %d times, so there will be no picture. %s\n", MAX_FAILURES, failure);
        f->gives_up = 1;
    }
}

/* Gives workers that have been told that there was no tile those that have come back. */
static void feed_idle(struct farm *f)
{
    for (int k = 0; k < f->workers; k++)
        while (f->lives[k] >= 0 && f->idle[k] > 0 && !f->gives_up && tiles_at(&f->tiling, NOBODY) > 0) {
            f->idle[k]--;
            hand_out(f, k);
        }
}

/* Puts the pixels of a tile into the picture. */
static void take_result(struct farm *f, int worker, const struct result *result)
{
    struct part *p = part_of(&f->tiling, result->number);
    if (!p || p->worker != worker || f->lives[worker] < 0)
        return; /* of a worker that was taken for dead: its tile is somebody else's now */
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

/* Hands out again what a dead worker had, and has another one take its place. */
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
        fprintf(stderr, "povray: no worker is left, so there will be no picture\n");
        f->gives_up = 1;
    }
}

/* Returns whether all is over: the picture is done, or no worker has a tile of one that is given up. */
static int is_over(const struct farm *f)
{
    if (f->tiling.pixels_done == (long)f->tiling.picture->width * f->tiling.picture->height)
        return 1;
    return f->gives_up && tiles_at(&f->tiling, NOBODY) == f->tiling.count;
}

/* Has the picture rendered by the workers. */
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

/* Fills in the arguments of a worker that is started later. */
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

/* Runs the program as the master of so many workers; returns its exit status. */
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
