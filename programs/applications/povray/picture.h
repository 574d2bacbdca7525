/* picture.h: a picture and its tiles. */
#ifndef POVRAY_PICTURE_H
#define POVRAY_PICTURE_H

#include "../clock.h"
#include <limits.h>

enum { BLOCK_EDGE = 16 }; /* pixels: edge of POV-Ray's blocks, and of the grid along which tiles are cut */

struct picture {
    int width, height; /* pixels */
    int tells;         /* whether each rendering is reported on standard output */
    char scene[PATH_MAX];
};

struct tile {
    int number;              /* set by the master; or TILE_NONE, TILE_END */
    int x, y, width, height; /* pixels */
};

#endif
