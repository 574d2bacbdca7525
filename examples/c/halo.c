/* halo: a grid of numbers is divided into tiles, one per task. In every sweep each number becomes
 * the mean of its four neighbours. For that, each task needs the edges of the adjacent tiles: its
 * halo.
 *
 * The grid starts as u(x, y) = 3x + 5y, where every number already is the mean of its neighbours.
 * So no number changes, unless a halo is wrong. */
#include <math.h>
#include <regatta.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 6, COLUMNS = 4, WIDTH = COLUMNS + 2, SWEEPS = 10 };
typedef double tile[ROWS + 2][WIDTH]; /* with a halo of width 1 */

static void check(int code)
{
    if (code < 0) {
        fprintf(stderr, "halo: %s\n", rg_last_error());
        exit(1);
    }
}

int main(void)
{
    check(rg_init());
    int rank = rg_rank(RG_WORLD), size = rg_size(RG_WORLD);

    /* Arranges the tiles in a grid that is as square as the number of tasks allows. */
    int down = 1;
    for (int n = 1; n * n <= size; n++)
        down = size % n == 0 ? n : down;
    int across = size / down, row = rank / across, column = rank % across;

    /* A halo is unknown (NAN) where it belongs to another tile, else given. */
    int above = row > 0 ? rank - across : RG_NONE, below = row < down - 1 ? rank + across : RG_NONE;
    int left = column > 0 ? rank - 1 : RG_NONE, right = column < across - 1 ? rank + 1 : RG_NONE;
    tile u, next;
    for (int i = 0; i < ROWS + 2; i++)
        for (int j = 0; j < WIDTH; j++) {
            int unknown = (i == 0 && above >= 0) || (i == ROWS + 1 && below >= 0) ||
                          (j == 0 && left >= 0) || (j == WIDTH - 1 && right >= 0);
            u[i][j] = unknown ? NAN : 3.0 * (column * COLUMNS + j) + 5.0 * (row * ROWS + i);
        }

    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        /* A row is one block; a column is ROWS blocks of one number, one row apart. */
        const size_t one = sizeof(double), line = sizeof u[0];
        int peers[4] = {above, below, left, right};
        rg_view edges[4] = {{&u[1][1], COLUMNS * one, 1, 0}, {&u[ROWS][1], COLUMNS * one, 1, 0},
                            {&u[1][1], one, ROWS, line}, {&u[1][COLUMNS], one, ROWS, line}};
        rg_view halos[4] = {{&u[0][1], COLUMNS * one, 1, 0}, {&u[ROWS + 1][1], COLUMNS * one, 1, 0},
                            {&u[1][0], one, ROWS, line}, {&u[1][WIDTH - 1], one, ROWS, line}};
        rg_request requests[8];
        for (int k = 0; k < 4; k++) {
            check(rg_irecvv(&halos[k], 1, peers[k], sweep, RG_WORLD, &requests[k]));
            check(rg_isendv(&edges[k], 1, peers[k], sweep, RG_WORLD, &requests[4 + k]));
        }
        check(rg_waitall(8, requests, NULL));
        memcpy(next, u, sizeof u);
        for (int i = 1; i <= ROWS; i++)
            for (int j = 1; j <= COLUMNS; j++)
                next[i][j] = (u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1]) / 4;
        memcpy(u, next, sizeof u);
    }

    double sum = 0, expected = 0;
    for (int i = 1; i <= ROWS; i++)
        for (int j = 1; j <= COLUMNS; j++) {
            sum += u[i][j];
            expected += 3.0 * (column * COLUMNS + j) + 5.0 * (row * ROWS + i);
        }
    printf("tile (%d, %d) of %d x %d has the sum %.1f\n", row, column, down, across, sum);
    check(rg_finalize());
    return !(sum == expected); /* also fails if the sum is not a number */
}
