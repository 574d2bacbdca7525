/* Grids of Express: neighbours exchange along each dimension, periodic and not; the parts cover a domain. */
#include "express_check.h"

/* Every node sends its number to its neighbour in this direction. */
static void shift(int dim, int dist, bool closed, const int *nums, const int *coord)
{
    int to = exgridnode(me, dim, dist), from = exgridnode(me, dim, -dist), type = dim, got = -1;
    int at = coord[dim] - dist;

    CHECK(to >= 0 || to == NONODE);
    int bytes = exchange(&got, sizeof got, &from, &type, &me, sizeof me, &to, &type);
    if (!closed && (at < 0 || at >= nums[dim])) {
        CHECK(bytes == 0 && got == -1);
        return;
    }
    CHECK(bytes == sizeof got);
    int theirs[3] = {0, 0, 0};
    CHECK(exgridcoord(got, theirs) == 0);
    for (int other = 0; other < 3; other++)
        CHECK(theirs[other] == (other == dim ? (at + nums[dim]) % nums[dim] : coord[other]));
}

static void grids(void)
{
    int nums[3] = {0}, coord[3], closed[3];

    begin();
    CHECK(exgridsplit(size, 3, nums) == 0 && nums[0] * nums[1] * nums[2] == size);
    CHECK(exgridinit(3, nums) == 0);
    CHECK(exgridcoord(me, coord) == 0);
    CHECK(coord[0] + nums[0] * (coord[1] + nums[1] * coord[2]) == me && exgridproc(coord) == me);
    for (int which = 0; which < 8; which++) {
        for (int dim = 0; dim < 3; dim++)
            closed[dim] = which >> dim & 1;
        CHECK(exgridbc(closed) == 0);
        for (int dim = 0; dim < 3; dim++) {
            shift(dim, 1, closed[dim], nums, coord);
            shift(dim, -1, closed[dim], nums, coord);
        }
    }
    CHECK(exsync() == 0);
}

static int add(int *one, const int *other, int bytes)
{
    (void)bytes;
    *one += *other;
    return 0;
}

/* Each point of the domain belongs to exactly one node. */
static void domains(void)
{
    int nums[2], global[2] = {13, 5}, local[2], start[2], points[13 * 5] = {0};

    begin();
    CHECK(exgridsplit(size, 2, nums) == 0 && exgridinit(2, nums) == 0);
    CHECK(exgridsize(me, global, local, start) == 0);
    for (int y = start[1]; y < start[1] + local[1]; y++)
        for (int x = start[0]; x < start[0] + local[0]; x++)
            points[y * 13 + x]++;
    CHECK(excombine(points, add, sizeof *points, 13 * 5, ALLNODES, NULLPTR, &size) == 0);
    for (int i = 0; i < 13 * 5; i++)
        CHECK(points[i] == 1);
}

static void nonsense(void)
{
    int nums[2] = {1, 1}, coord[2], negative[2] = {1, -1};

    begin();
    CHECK(exgridnode(0, 0, 1) == -1 && exgridcoord(0, coord) == -1);
    CHECK(exgridinit(0, nums) == -1 && exgridinit(2, NULLPTR) == -1 && exgridinit(2, negative) == -1);
    nums[0] = size + 1;
    CHECK(exgridinit(2, nums) == -1);
    nums[0] = 1;
    CHECK(exgridinit(2, nums) == 0);
    CHECK(exgridcoord(1, coord) == -1 && exgridcoord(-1, coord) == -1 && exgridcoord(0, NULLPTR) == -1);
    CHECK(exgridnode(0, 2, 1) == -1 && exgridnode(0, 0, 1) == NONODE);
    CHECK(exgridsize(0, negative, coord, coord) == -1);
    CHECK(exgridproc(negative) == NONODE && exgridsplit(0, 1, coord) == -1);
}

static const struct scenario scenarios[] = {
    {"grids", grids, true}, {"domains", domains, true}, {"nonsense", nonsense, true}, {NULL, NULL, false}};

int main(int argc, char **argv)
{
    return check_main(argc, argv, scenarios);
}
