/* Pictures of node programs with Plotix: nodes draw parts of one picture, frame by frame. */
#include "express_check.h"

#include <math.h>
#include <plotix.h>

static void start(const char *file)
{
    char path[300];

    begin();
    CHECK(arg_count == 1);
    snprintf(path, sizeof path, "%s/%s", args[0], file);
    CHECK(plotfile(path) == 0);
}

/* Each node draws in an area of its own with all kinds of calls, and all draw the frame around the picture. */
static void picture(void)
{
    char word[20];

    start("picture.svg");
    CHECK(openpl() == 0 && space(0, 0, 100, 100) == 0);
    CHECK(box(0, 0, 100, 100) == 0);
    CHECK(sendplot() == 0);
    double left = 10 * (me + 1);
    CHECK(move(left, 10) == 0 && cont(left, 20) == 0 && cont(left + 1, 30) == 0);
    CHECK(linemod("dotted") == 0 && line(left, 40, left, 50) == 0);
    CHECK(linemod("solid") == 0 && circle(left, 60, 2) == 0 && point(left, 70) == 0);
    CHECK(arc(left, 80, left + 2, 80, left, 82) == 0);
    snprintf(word, sizeof word, "<node %d>", me);
    CHECK(move(left, 90) == 0 && label(word) == 0);
    CHECK(closepl() == 0);
}

/* Nodes that draw the same, and one that draws something else. */
static void same(void)
{
    start("same.svg");
    CHECK(openpl() == 0 && line(0, 0, 1, 1) == 0 && sendplot() == 0);
    if (me == size - 1)
        CHECK(line(0, 1, 1, 0) == 0);
    CHECK(closepl() == 0);
}

/* Each erase ends a frame, unless the frame is empty. */
static void frames(void)
{
    start("frames.png");
    CHECK(openpl() == 0 && erase() == 0 && erase() == 0);
    CHECK(point(0.5, 0.5) == 0 && erase() == 0);
    CHECK(point(0.25, 0.5) == 0 && closepl() == 0);
    /* Another picture, which is empty. */
    start("empty");
    CHECK(openpl() == 0 && closepl() == 0);
}

/* A picture whose file has a name chosen by the user, or the default name. */
static void named(void)
{
    begin();
    CHECK(openpl() == 0 && line(0, 0, 1, 1) == 0 && closepl() == 0);
}

static void nonsense(void)
{
    begin();
    CHECK(move(0, 0) == -1 && erase() == -1 && closepl() == -1 && label("x") == -1 && linemod("solid") == -1);
    CHECK(openpl() == 0 && openpl() == -1);
    CHECK(line(0, 0, NAN, 1) == -1 && cont(INFINITY, 0) == -1);
    CHECK(space(1, 1, 1, 2) == -1 && linemod("wavy") == -1 && label(NULL) == -1 && plotfile(NULL) == -1);
    CHECK(move(1e300, 0) == -1);
    CHECK(plotfile("/no/such/folder/picture.svg") == 0);
    CHECK(closepl() == -1);
    /* The picture is closed all the same. */
    CHECK(closepl() == -1);
}

static void left(void)
{
    begin();
    CHECK(openpl() == 0 && line(0, 0, 1, 1) == 0);
}

/* A node dies before it has contributed its part. */
static void death(void)
{
    begin();
    CHECK(openpl() == 0 && line(0, 0, 1, me) == 0);
    exsync();
    if (me == 1)
        raise(SIGKILL);
    CHECK(closepl() == -1);
}

static const struct scenario scenarios[] = {{"picture", picture, true}, {"same", same, true}, {"frames", frames, true},
                                            {"named", named, true}, {"nonsense", nonsense, true}, {"left", left, true},
                                            {"death", death, true}, {NULL, NULL, false}};

int main(int argc, char **argv)
{
    return check_main(argc, argv, scenarios);
}
