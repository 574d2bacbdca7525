/*
 * How the POV-Ray farm divides a picture (programs/applications/povray/tiles.h), simulated with workers that take as
 * long as an invented cost function says: a cheap sky, a sea, and a few spots with most of the cost.
 */
#include "../../programs/applications/povray/tiles.h"

#define CHECK(holds)                                                        \
    do {                                                                    \
        if (!(holds)) {                                                     \
            printf("FAIL line %d: %s\n", __LINE__, #holds);                 \
            return 1;                                                       \
        }                                                                   \
    } while (0)

enum { MAX_WORKERS = 32 };

/* Returns the processor seconds of a pixel. */
static double cost_at(const struct picture *picture, int x, int y)
{
    double u = (double)x / picture->width, v = (double)y / picture->height;
    if (v < 0.35)
        return 1e-5;
    return hypot(u - 0.65, v - 0.8) < 0.15 ? 8e-4 : 1e-4;
}

static double true_cost(const struct picture *picture, const struct part *p)
{
    double cost = 0;
    for (int y = p->y; y < p->y + p->height; y++)
        for (int x = p->x; x < p->x + p->width; x++)
            cost += cost_at(picture, x, y);
    return cost;
}

static int is_grid(int at, int end)
{
    return at % BLOCK_EDGE == 0 || at == end;
}

/* Simulates a farm of workers that render one tile at a time. */
static int play(struct picture picture, int workers)
{
    struct tiling t = {0};
    tiling_begin(&t, &picture);
    char *covered = zeroed_memory((size_t)picture.width * (size_t)picture.height, 1);
    int number[MAX_WORKERS], tiles[2] = {0};
    double ends[MAX_WORKERS] = {0}, seconds[MAX_WORKERS] = {0}, area[2] = {0}, last = 0, work = 0;
    for (int k = 0; k < workers; k++)
        number[k] = -1;
    for (;;) {
        /* The worker that is done first takes the next tile. */
        int next = -1;
        for (int k = 0; k < workers; k++)
            if (ends[k] < 1e9 && (next < 0 || ends[k] < ends[next]))
                next = k;
        if (next < 0)
            break;
        if (number[next] >= 0) {
            struct part *done = part_of(&t, number[next]);
            CHECK(done);
            tile_is_done(&t, done, seconds[next]);
            last = ends[next];
        }
        const struct part *p = next_tile(&t, next, workers);
        number[next] = p ? p->number : -1;
        if (!p) {
            ends[next] = 1e9;
            continue;
        }
        CHECK(p->width > 0 && p->height > 0);
        CHECK(is_grid(p->x, -1) && is_grid(p->y, -1) && is_grid(p->x + p->width, picture.width) && is_grid(p->y + p->height, picture.height));
        for (int y = p->y; y < p->y + p->height; y++)
            for (int x = p->x; x < p->x + p->width; x++)
                CHECK(covered[y * picture.width + x]++ == 0);
        seconds[next] = true_cost(&picture, p);
        work += seconds[next];
        CHECK(tiles_at(&t, next) == 1);
        int costly = seconds[next] / area_of(p) > 3e-4;
        tiles[costly]++;
        area[costly] += area_of(p);
        ends[next] += 0.03 + seconds[next];
    }
    CHECK(t.pixels_done == (long)picture.width * picture.height && t.count == 0);
    printf("%dx%d, %d workers: %d tiles, of %.0f pixels, and of %.0f where they cost most; %.3f of the least time\n", picture.width, picture.height,
           workers, t.tiles, tiles[0] ? area[0] / tiles[0] : 0, tiles[1] ? area[1] / tiles[1] : 0, last * workers / work);
    /* In a long run, the wait for the last tile must be short. */
    if (workers <= 4 && work / workers > 20)
        CHECK(last * workers < 1.1 * work);
    tiling_end(&t);
    free(covered);
    return 0;
}

/*
 * Where rays are known to cost a hundred times as much, tiles must be smaller; and they must become smaller towards the
 * end.
 */
static int learned(void)
{
    struct picture picture = {.width = 800, .height = 600};
    struct part sky = {.width = 800, .height = 304}, sea = {.y = 304, .width = 800, .height = 296};
    struct tiling t = {0};
    tiling_begin(&t, &picture);
    learn(&t, &sky, 1);
    learn(&t, &sea, 100);
    t.seconds_done = 101;
    t.pixels_done = 800 * 600; /* as if they had been rendered, so that the mean cost is known, too */
    int tiles[2] = {0};
    double area[2] = {0}, first = 0, last = 0;
    for (const struct part *p = next_tile(&t, 0, 2); p; p = next_tile(&t, 0, 2)) {
        int costly = p->y >= sea.y;
        tiles[costly]++;
        area[costly] += area_of(p);
        last = cost_of(&t, p);
        first = first > 0 ? first : last;
    }
    printf("%d tiles of the sky, %d of the sea; the first costs %.2f s, the last %.2f s\n", tiles[0], tiles[1], first, last);
    CHECK(tiles[0] > 0 && tiles[1] > 0);
    CHECK(area[0] / tiles[0] > 3 * area[1] / tiles[1]);
    CHECK(last < first / 10);
    tiling_end(&t);
    return 0;
}

int main(void)
{
    if (learned())
        return 1;
    int sizes[][2] = {{800, 600}, {1024, 768}, {400, 300}, {161, 17}, {16, 16}, {1, 1}}, many[] = {1, 2, 4, 8, 32};
    for (int s = 0; s < 6; s++)
        for (int m = 0; m < 5; m++)
            if (play((struct picture){.width = sizes[s][0], .height = sizes[s][1]}, many[m]))
                return 1;
    return 0;
}
