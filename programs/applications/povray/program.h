/* program.h: what the farms and the single run share: the arguments, the comparison with one run of POV-Ray, the result
 * line. */
#ifndef POVRAY_PROGRAM_H
#define POVRAY_PROGRAM_H

#include "render.h"

/* Renders the whole picture with one POV-Ray of `threads` threads. Returns its pixels, which the caller frees, or NULL
 * if it fails. */
static unsigned char *render_whole(const struct picture *picture, int threads)
{
    struct rendering r = {0};
    struct tile all = {.width = picture->width, .height = picture->height};
    rendering_begin(&r, picture, all, threads);
    while (!rendering_read(&r, picture))
        ;
    unsigned char *pixels = NULL;
    if (r.failure[0]) {
        fprintf(stderr, "povray: %s\n", r.failure);
    } else {
        pixels = zeroed_memory((size_t)picture->width * (size_t)picture->height, 3);
        rendering_pixels(&r, picture, pixels);
    }
    free(r.data);
    return pixels;
}

/* Compares a picture with one run of POV-Ray on all processors. Returns whether they are equal. */
static int verify(const struct picture *picture, const unsigned char *pixels)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN), different = 0;
    unsigned char *whole = render_whole(picture, processors > 0 ? (int)processors : 1);
    if (!whole)
        return 0;
    for (long k = 0; k < (long)picture->width * picture->height; k++)
        if (memcmp(pixels + 3 * k, whole + 3 * k, 3) != 0 && different++ == 0)
            fprintf(stderr, "povray: the pixel %ld,%ld is not that of one run\n", k % picture->width, k / picture->width);
    if (different)
        fprintf(stderr, "povray: %ld pixels are not those of one run\n", different);
    free(whole);
    return different == 0;
}

/* Returns a checksum of a picture: FNV-1a of its bytes. */
static unsigned checksum(const struct picture *picture, const unsigned char *pixels)
{
    unsigned sum = 2166136261U;
    for (long k = 0; k < (long)picture->width * picture->height * 3; k++)
        sum = (sum ^ pixels[k]) * 16777619U;
    return sum;
}

/* Writes a picture to a file in PPM format. */
static void write_picture(const struct picture *picture, const unsigned char *pixels, const char *path)
{
    size_t bytes = (size_t)picture->width * (size_t)picture->height * 3;
    FILE *file = fopen(path, "wb");
    if (!file || fprintf(file, "P6\n%d %d\n255\n", picture->width, picture->height) < 0 || fwrite(pixels, 1, bytes, file) != bytes ||
        fclose(file) != 0) {
        fprintf(stderr, "povray: the picture cannot be written to %s: %s\n", path, strerror(errno));
        exit(1);
    }
}

/* Prints the result line of a run, and writes the picture if `path` is given. Returns the exit status. */
static int tell(const struct picture *picture, const unsigned char *pixels, const char *path, int tasks, double seconds, int tiles, int again)
{
    if (path)
        write_picture(picture, pixels, path);
    int verified = verify(picture, pixels);
    printf("povray, %dx%d, %d tasks: %s, %.6f s, checksum %08x, %d tiles, %d rendered again\n", picture->width, picture->height, tasks,
           verified ? "verified" : "NOT VERIFIED", seconds, checksum(picture, pixels), tiles, again);
    fflush(stdout);
    return !verified;
}

/* Reads the arguments [-v] SCENE [WIDTH HEIGHT [FILE]] of the program. Returns the file's name, or NULL if none is
 * given. */
static const char *arguments(int argc, char **argv, struct picture *picture)
{
    *picture = (struct picture){.width = 400, .height = 300, .tells = argc > 1 && strcmp(argv[1], "-v") == 0};
    argv += picture->tells;
    argc -= picture->tells;
    if (argc < 2 || argc == 3 || argc > 5)
        refuse("povray", "the arguments are: [-v] SCENE [WIDTH HEIGHT [FILE]]; -v reports each tile, the picture is written to FILE (PPM)");
    if (argc > 3) {
        picture->width = atoi(argv[2]);
        picture->height = atoi(argv[3]);
    }
    if (picture->width < 1 || picture->width > 8192 || picture->height < 1 || picture->height > 8192)
        refuse("povray", "width and height must be 1 to 8192 pixels");
    if (!realpath(argv[1], picture->scene)) {
        fprintf(stderr, "povray: the scene %s cannot be found: %s\n", argv[1], strerror(errno));
        exit(2);
    }
    if (strchr(picture->scene, '"'))
        refuse("povray", "POV-Ray cannot read a scene with a quotation mark in its path");
    return argc > 4 ? argv[4] : NULL;
}

#endif
