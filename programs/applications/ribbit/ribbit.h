/* ribbit.h: a renderer of the REYES kind, by a master and workers, as Ribbit is described by M. Maniezzo and A. Sanna, "A Deep Evaluation of
 * Design Issues and Performances of PVM, MPICH and mpiGAMMA Libraries".
 *
 * Task 0 is the master. It reads the scene, broadcasts what all tasks need to know of it, and hands out work to the
 * others, the workers, one parcel at a time: a worker that has answered gets the next one. The picture is cut into
 * tiles, and each piece of a primitive belongs to those that it may be seen in. There are two kinds of work:
 *
 *   SPLIT   Pieces that are too large for one grid of micropolygons, and whose middle is in this tile. The worker splits
 *           them. Parts outside of the tile are not split further: they go back to the master, which assigns them to
 *           their tiles.
 *   RENDER  All small pieces of a tile, once no large piece is left that might have a part in it. The answer is the
 *           tile's pixels.
 *
 * A parcel is a message of ints, doubles and bytes whose numbers are not known beforehand, because shapes differ. With
 * one task, the master does the work itself, without messages. With more tasks the workers do all of it, so at least
 * three tasks are needed to do two things at a time.
 *
 * The program checks that each tile was rendered once with all its pieces, and that the pieces of each primitive add up
 * to the whole. The picture has the same checksum for any number of tasks. */
#ifndef RIBBIT_H
#define RIBBIT_H

#include "picture.h"
#include "reader.h"
#include "reyes.h"

enum {
    PARCEL_PIECES = 128, /* at most */
    PARCEL_LARGE = 32, /* most large pieces to be split: their parts must fit in the answer */
    PARCEL_HEAD = 5,
    PARCEL_INTS = PARCEL_PIECES * PIECE_INTS,
    PARCEL_NUMBERS = PARCEL_PIECES * (PIECE_RANGE + MAX_SHAPE_NUMBERS),
    PARCEL_BYTES = TILE * TILE * 3,
    MAX_SIDE = 16384, /* pixels */
    MAX_FAULTS_TOLD = 10
};

/* Kinds of parcels. The master sends SPLIT and RENDER as work. A tile with more pieces than fit in a parcel is sent in
 * several, all but the last of the kind RENDER_PART. END is the master's last message. Workers send READY first, PARTS
 * and PIXELS as answers, and TIMES last. */
enum kind { SPLIT, RENDER_PART, RENDER, END, READY, PARTS, PIXELS, TIMES };

/* A message between the master and a worker. */
struct parcel {
    /* The header: PARCEL_HEAD ints. */
    int kind, tile, pieces, numbers, bytes;
    int piece_ints[PARCEL_INTS]; /* PIECE_INTS for each piece */
    double number[PARCEL_NUMBERS]; /* `numbers` are used: for each piece its range and its shape, or other numbers */
    unsigned char byte[PARCEL_BYTES]; /* `bytes` are used: pixels */
};

/* Broadcasts the scene from task 0 to all tasks. */
static void broadcast_scene(struct scene *scene);
/* Sends a parcel to a task. */
static void send_parcel(struct parcel *parcel, int to);
/* Waits for a parcel from any task. Returns its sender. */
static int receive_parcel(struct parcel *parcel);

/* ---- parcels ---------------------------------------------------------------------------------------- */

static void parcel_begin(struct parcel *parcel, enum kind kind, int tile)
{
    parcel->kind = kind;
    parcel->tile = tile;
    parcel->pieces = parcel->numbers = parcel->bytes = 0;
}

/* Returns how many numbers a piece adds to a parcel. A piece that is GONE needs no shape. */
static int piece_numbers(const struct piece *piece)
{
    return PIECE_RANGE + (piece->state == GONE ? 0 : shape_numbers[piece->shape]);
}

static void parcel_add(struct parcel *parcel, const struct piece *piece)
{
    memcpy(parcel->piece_ints + PIECE_INTS * parcel->pieces++, &piece->primitive, PIECE_INTS * sizeof(int));
    memcpy(parcel->number + parcel->numbers, &piece->first, (size_t)piece_numbers(piece) * sizeof(double));
    parcel->numbers += piece_numbers(piece);
}

/* Returns piece `k`, whose numbers begin at `*at`, and moves `*at` to those of the next one. */
static struct piece parcel_piece(const struct parcel *parcel, int k, int *at)
{
    struct piece piece = {0};
    memcpy(&piece.primitive, parcel->piece_ints + PIECE_INTS * k, PIECE_INTS * sizeof(int));
    memcpy(&piece.first, parcel->number + *at, (size_t)piece_numbers(&piece) * sizeof(double));
    *at += piece_numbers(&piece);
    return piece;
}

/* ---- lists of pieces ---------------------------------------------------------------------------------- */

struct list {
    struct piece *piece;
    int count, room;
};

static void list_add(struct list *list, const struct piece *piece)
{
    if (list->count == list->room)
        list->piece = grown_memory(list->piece, &list->room, sizeof *list->piece);
    list->piece[list->count++] = *piece;
}

static void list_free(struct list *list)
{
    free(list->piece);
    *list = (struct list){0};
}

/* Returns a number that is unlikely to be that of another piece. For several pieces the sum is used; both sides of a
 * parcel compute it. */
static double piece_mark(const struct piece *piece)
{
    return floor(noise_number(piece->primitive, (int64_t)piece->first, (int64_t)piece->share) * 0x1p32);
}

/* ---- the work ---------------------------------------------------------------------------------------- */

struct worker {
    const struct scene *scene;
    struct canvas canvas;
    int pieces; /* pieces of the current tile rendered so far */
    double marks; /* sum of their marks */
};

/* Splits the pieces of a parcel. Parts outside of the tile are returned unsplit, and so are all once the answer would
 * be full. */
static void worker_split(struct worker *worker, const struct parcel *work, struct parcel *answer)
{
    static struct piece waiting[PARCEL_PIECES];
    int count = 0, at = 0, across = scene_tiles_across(worker->scene), x = work->tile % across, y = work->tile / across;
    for (int k = 0; k < work->pieces; k++)
        waiting[count++] = parcel_piece(work, k, &at);
    parcel_begin(answer, PARTS, work->tile);
    while (count > 0) {
        struct piece piece = waiting[--count];
        int full = answer->pieces + count + MAX_CHILDREN > PARCEL_PIECES;
        if (is_large(&piece) && is_in_tile(&piece, x, y) && !full)
            count += split(worker->scene, &piece, waiting + count);
        else
            parcel_add(answer, &piece);
    }
}

/* Renders the pieces of a parcel. */
static void worker_render(struct worker *worker, const struct parcel *work)
{
    int across = scene_tiles_across(worker->scene), at = 0;
    if (worker->pieces == 0)
        canvas_begin(&worker->canvas, worker->scene, work->tile % across, work->tile / across);
    for (int k = 0; k < work->pieces; k++) {
        struct piece piece = parcel_piece(work, k, &at);
        render_piece(&worker->canvas, &piece);
        worker->pieces++;
        worker->marks += piece_mark(&piece);
    }
}

/* Does the work of a parcel. Returns whether there is an answer. */
static int worker_do(struct worker *worker, const struct parcel *work, struct parcel *answer)
{
    if (work->kind == SPLIT) {
        worker_split(worker, work, answer);
        return 1;
    }
    worker_render(worker, work);
    if (work->kind == RENDER_PART)
        return 0;
    parcel_begin(answer, PIXELS, work->tile);
    answer->number[answer->numbers++] = worker->pieces;
    answer->number[answer->numbers++] = worker->marks;
    canvas_pixels(&worker->canvas, answer->byte);
    answer->bytes = PARCEL_BYTES;
    worker->pieces = 0;
    worker->marks = 0;
    return 1;
}

/* Does the work of a worker until END arrives. */
static void work(const struct scene *scene)
{
    static struct parcel parcel, answer;
    struct worker worker = {.scene = scene};
    parcel_begin(&answer, READY, 0);
    COMMUNICATE(send_parcel(&answer, 0));
    for (;;) {
        COMMUNICATE(receive_parcel(&parcel));
        if (parcel.kind == END)
            break;
        if (worker_do(&worker, &parcel, &answer))
            COMMUNICATE(send_parcel(&answer, 0));
    }
    canvas_end(&worker.canvas);
    parcel_begin(&answer, TIMES, 0);
    answer.number[answer.numbers++] = seconds_communicating;
    send_parcel(&answer, 0);
}

/* ---- the master -------------------------------------------------------------------------------------- */

struct tile {
    struct list large, small; /* large pieces whose middle is in the tile; all small pieces that may be seen in it */
    int awaited; /* number of large pieces that may be seen in the tile, wherever they are */
    int given, arrived; /* how often it was sent to a worker, and returned by one */
};

struct master {
    const struct scene *scene;
    int size, tiles, done;
    struct tile *tile;
    struct list *given; /* for each worker, the large pieces that it has now */
    double *finished; /* for each primitive, the sum of the shares of its pieces that are small or gone */
    unsigned char *pixels;
    long pieces, bounced; /* number of small pieces, and of pieces returned because they were outside of their tile */
    int faults;
    struct parcel parcel, answer;
    struct worker worker; /* used with one task */
};

static int tile_of(const struct master *m, int x, int y)
{
    return y * scene_tiles_across(m->scene) + x;
}

/* Adds `change` to the number of large pieces of each tile in which a piece may be seen. */
static void master_await(struct master *m, const struct piece *piece, int change)
{
    for (int y = piece->top; y <= piece->bottom; y++)
        for (int x = piece->left; x <= piece->right; x++)
            m->tile[tile_of(m, x, y)].awaited += change;
}

/* Adds a large piece to the tile of its middle, and a small one to all tiles in which it may be seen. */
static void master_file(struct master *m, const struct piece *piece)
{
    if (is_large(piece)) {
        master_await(m, piece, 1);
        list_add(&m->tile[tile_of(m, (piece->left + piece->right) / 2, (piece->top + piece->bottom) / 2)].large, piece);
        return;
    }
    m->finished[piece->primitive] += piece->share;
    m->pieces += piece->state == SMALL;
    for (int y = piece->top; y <= piece->bottom; y++)
        for (int x = piece->left; x <= piece->right; x++)
            list_add(&m->tile[tile_of(m, x, y)].small, piece);
}

/* Counts an error, and prints the first few. */
static void master_fault(struct master *m, const char *what, int which)
{
    if (m->faults++ < MAX_FAULTS_TOLD)
        fprintf(stderr, "ribbit: %s %d\n", what, which);
}

/* Files the parts of the pieces that a worker was given, and checks that their shares add up to those of the pieces. */
static void master_take_parts(struct master *m, int from)
{
    const struct parcel *answer = &m->answer;
    struct list *given = &m->given[from];
    int at = 0, across = scene_tiles_across(m->scene);
    double share = 0;
    for (int k = 0; k < answer->pieces; k++) {
        struct piece piece = parcel_piece(answer, k, &at);
        share += piece.share;
        m->bounced += piece.state != GONE && !is_in_tile(&piece, answer->tile % across, answer->tile / across);
        master_file(m, &piece);
    }
    for (int k = 0; k < given->count; k++) {
        share -= given->piece[k].share;
        master_await(m, &given->piece[k], -1);
    }
    given->count = 0;
    if (share != 0)
        master_fault(m, "not all of the pieces came back from task", from);
}

/* Copies a tile into the picture, and checks that all of its pieces were rendered. */
static void master_take_pixels(struct master *m)
{
    const struct parcel *answer = &m->answer;
    struct tile *tile = &m->tile[answer->tile];
    double marks = 0;
    for (int k = 0; k < tile->small.count; k++)
        marks += piece_mark(&tile->small.piece[k]);
    if (answer->number[0] != tile->small.count || answer->number[1] != marks)
        master_fault(m, "wrong pieces were rendered in tile", answer->tile);
    if (tile->arrived++ > 0)
        master_fault(m, "there are two answers for tile", answer->tile);
    list_free(&tile->small);
    m->done++;

    int width = m->scene->ints.width, across = scene_tiles_across(m->scene);
    int left = answer->tile % across * TILE, top = answer->tile / across * TILE;
    int columns = width - left < TILE ? width - left : TILE;
    for (int y = 0; y < TILE && top + y < m->scene->ints.height; y++)
        memcpy(m->pixels + 3 * ((size_t)(top + y) * (size_t)width + (size_t)left), answer->byte + 3 * y * TILE, (size_t)columns * 3);
}

static void master_take(struct master *m, int from)
{
    if (m->answer.kind == PARTS)
        master_take_parts(m, from);
    else if (m->answer.kind == PIXELS)
        master_take_pixels(m);
}

/* Sends the parcel to a worker, or does its work if there is one task. */
static void master_send(struct master *m, int to)
{
    if (m->size > 1)
        COMMUNICATE(send_parcel(&m->parcel, to));
    else if (worker_do(&m->worker, &m->parcel, &m->answer))
        master_take(m, to);
}

static void master_give_large(struct master *m, struct tile *tile, int to)
{
    struct list *large = &tile->large;
    parcel_begin(&m->parcel, SPLIT, (int)(tile - m->tile));
    while (large->count > 0 && m->parcel.pieces < PARCEL_LARGE) {
        const struct piece *piece = &large->piece[--large->count];
        parcel_add(&m->parcel, piece);
        list_add(&m->given[to], piece);
    }
    master_send(m, to);
}

static void master_give_tile(struct master *m, struct tile *tile, int to)
{
    tile->given++;
    parcel_begin(&m->parcel, RENDER_PART, (int)(tile - m->tile));
    for (int k = 0; k < tile->small.count; k++) {
        if (m->parcel.pieces == PARCEL_PIECES) {
            master_send(m, to);
            parcel_begin(&m->parcel, RENDER_PART, (int)(tile - m->tile));
        }
        parcel_add(&m->parcel, &tile->small.piece[k]);
    }
    m->parcel.kind = RENDER;
    master_send(m, to);
}

/* Gives work to a worker: large pieces first, since tiles wait for them; then the tile with the most pieces that waits
 * for none, so that the last tiles are quick. Returns 0 if there is nothing to do now. */
static int master_give(struct master *m, int to)
{
    struct tile *large = NULL, *full = NULL;
    for (int k = 0; k < m->tiles; k++) {
        struct tile *tile = &m->tile[k];
        if (tile->large.count > (large ? large->large.count : 0))
            large = tile;
        if (tile->awaited == 0 && !tile->given && (!full || tile->small.count > full->small.count))
            full = tile;
    }
    if (large)
        master_give_large(m, large, to);
    else if (full)
        master_give_tile(m, full, to);
    return large || full;
}

static void master_begin(struct master *m, const struct scene *scene, struct piece *pieces, int size)
{
    m->scene = scene;
    m->size = size;
    m->tiles = scene_tiles_across(scene) * scene_tiles_down(scene);
    m->tile = zeroed_memory((size_t)m->tiles, sizeof *m->tile);
    m->given = zeroed_memory((size_t)size, sizeof *m->given);
    m->finished = zeroed_memory((size_t)scene->ints.primitives, sizeof *m->finished);
    m->pixels = zeroed_memory((size_t)scene->ints.width * (size_t)scene->ints.height, 3);
    m->worker.scene = scene;
    for (int k = 0; k < scene->ints.primitives; k++) {
        classify(scene, &pieces[k]);
        master_file(m, &pieces[k]);
    }
}

/* Hands out work until all tiles are done and all workers are idle. The master sends to a worker only when it waits, so
 * no two tasks send to each other at the same time. */
static void master_deal(struct master *m)
{
    int *idle = zeroed_memory((size_t)m->size, sizeof *idle), count = 0;
    while (m->done < m->tiles || count < m->size - 1) {
        int from;
        COMMUNICATE(from = receive_parcel(&m->answer));
        master_take(m, from);
        idle[count++] = from;
        while (count > 0 && master_give(m, idle[count - 1]))
            count--;
    }
    free(idle);
}

/* Ends the workers. Returns the mean time, in seconds, that they spent in communication. */
static double master_end(struct master *m)
{
    double seconds = 0;
    parcel_begin(&m->parcel, END, 0);
    for (int k = 1; k < m->size; k++)
        send_parcel(&m->parcel, k);
    for (int k = 1; k < m->size; k++) {
        receive_parcel(&m->answer);
        seconds += m->answer.number[0] / (m->size - 1);
    }
    return seconds;
}

/* Checks that no primitive is incomplete, and that each tile was rendered once. */
static void master_check(struct master *m)
{
    for (int k = 0; k < m->scene->ints.primitives; k++)
        if (m->finished[k] != WHOLE)
            master_fault(m, "less or more than the whole was made of primitive", k);
    for (int k = 0; k < m->tiles; k++)
        if (m->tile[k].given != 1 || m->tile[k].arrived != 1)
            master_fault(m, "not given once, or not come once: tile", k);
}

static void master_free(struct master *m)
{
    for (int k = 0; k < m->tiles; k++) {
        list_free(&m->tile[k].large);
        list_free(&m->tile[k].small);
    }
    for (int k = 0; k < m->size; k++)
        list_free(&m->given[k]);
    canvas_end(&m->worker.canvas);
    free(m->tile);
    free(m->given);
    free(m->finished);
    free(m->pixels);
}

/* ---- the program ------------------------------------------------------------------------------------- */

/* Reads the arguments and the scene at task 0. Returns the pieces of the scene, or NULL after printing an error. */
static struct piece *read_arguments(int argc, char **argv, struct scene *scene)
{
    scene->ints.width = argc > 2 ? atoi(argv[2]) : 800;
    scene->ints.height = argc > 3 ? atoi(argv[3]) : 600;
    if (argc < 2)
        fprintf(stderr, "ribbit: say which scene: ribbit SCENE [WIDTH HEIGHT [OUT.png]]\n");
    else if (scene->ints.width < 1 || scene->ints.width > MAX_SIDE || scene->ints.height < 1 || scene->ints.height > MAX_SIDE)
        fprintf(stderr, "ribbit: the width and the height of the picture are 1 to %d pixels\n", MAX_SIDE);
    else
        return read_scene(argv[1], scene);
    return NULL;
}

/* Prints the result line, and writes the picture if a file was named. Returns the exit status of the program. */
static int master_report(struct master *m, int argc, char **argv, double seconds, double communicating)
{
    int width = m->scene->ints.width, height = m->scene->ints.height;
    const char *slash = strrchr(argv[1], '/'), *name = slash ? slash + 1 : argv[1];
    uint32_t crc = picture_crc(0, m->pixels, 3 * (size_t)width * (size_t)height);
    printf("ribbit, %s, %d by %d pixels, %d tasks: %s, %.6f s, picture %08x, %d primitives in %ld pieces, %ld bounced, %.6f s in communications\n", name, width,
           height, m->size, m->faults == 0 ? "verified" : "NOT VERIFIED", seconds, (unsigned)crc, m->scene->ints.primitives, m->pieces, m->bounced,
           communicating);
    fflush(stdout);
    if (argc > 4 && !picture_write(argv[4], m->pixels, width, height)) {
        fprintf(stderr, "ribbit: cannot write %s: %s\n", argv[4], strerror(errno));
        return 1;
    }
    return m->faults > 0;
}

/* Renders as the master. Returns the exit status of the program. */
static int render(const struct scene *scene, struct piece *pieces, int size, int argc, char **argv, double start)
{
    struct master *m = zeroed_memory(1, sizeof *m);
    master_begin(m, scene, pieces, size);
    if (size > 1)
        master_deal(m);
    else
        while (master_give(m, 0))
            ;
    double seconds = clock_seconds() - start, communicating = master_end(m);
    master_check(m);
    int status = master_report(m, argc, argv, seconds, communicating);
    master_free(m);
    free(m);
    return status;
}

/* Runs `ribbit SCENE [WIDTH HEIGHT [OUT.png]]` as one of `size` tasks. Returns the exit status of the program. */
static int ribbit(int argc, char **argv, int rank, int size)
{
    static struct scene scene;
    struct piece *pieces = rank == 0 ? read_arguments(argc, argv, &scene) : NULL;
    int status = 0;
    seconds_communicating = 0;
    double start = clock_seconds();
    COMMUNICATE(broadcast_scene(&scene));
    if (!scene.ints.valid)
        status = 2;
    else if (rank > 0)
        work(&scene);
    else
        status = render(&scene, pieces, size, argc, argv, start);
    free(pieces);
    return status;
}

#endif
