/* One POV-Ray with one thread, which renders the whole picture, for comparison. */
#include "program.h"

int main(int argc, char **argv)
{
    struct picture picture;
    const char *path = arguments(argc, argv, &picture);
    double start = clock_seconds();
    unsigned char *pixels = render_whole(&picture, 1);
    double seconds = clock_seconds() - start;
    if (!pixels)
        return 1;
    int status = tell(&picture, pixels, path, 1, seconds, 1, 0);
    free(pixels);
    return status;
}
