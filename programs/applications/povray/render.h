/* render.h: one run of POV-Ray 3.7, in a process of its own, which renders a tile of the picture.
 *
 * A tile has exactly the pixels that it has in one run of the whole picture, because of these rules:
 *  - No jitter and no randomness, neither here (-J) nor in the scene. No area lights either: for them POV-Ray carries
 *    state from one block of pixels to the next, and a pixel may then differ by one step of a colour.
 *  - Antialiasing by method 1 decides from a pixel's neighbours whether it needs more rays. POV-Ray renders block by
 *    block (+BS), and counts blocks from the corner of the part that it renders; pixels across the border of a block do
 *    not count like those inside. So a tile starts at a multiple of the block's edge and ends at one, or at the
 *    picture's border: then its blocks are those of the whole picture.
 *  - All other options are the same. The number of threads does not matter, because one thread renders a block.
 * A tile with other borders would differ in some of the pixels there. */
#ifndef POVRAY_RENDER_H
#define POVRAY_RENDER_H

#include "picture.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MAX_HEADER = 4096,  /* most bytes before the pixels of a PPM file, comments included */
    FAILURE_BYTES = 256 /* bytes for the reason why a tile could not be rendered */
};

struct rendering {
    struct tile tile;
    pid_t process;       /* 0: no rendering is running */
    int output;          /* pipe to which POV-Ray writes the picture, with black pixels outside of the tile */
    FILE *words;         /* temporary file with POV-Ray's standard error */
    unsigned char *data; /* the received part of the picture, in PPM format */
    size_t have, room;   /* bytes received, and bytes of `data` */
    double seconds;      /* processor time that it took */
    char failure[FAILURE_BYTES]; /* why there is no picture, or empty if there is one */
};

/* Executes POV-Ray in the child process. Never returns. */
static _Noreturn void render_child(const struct picture *picture, struct tile tile, int threads, pid_t parent, int output, int words)
{
    /* The kernel kills POV-Ray when its worker dies. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    dup2(output, STDOUT_FILENO);
    dup2(words, STDERR_FILENO);
    int null = open("/dev/null", O_RDONLY);
    dup2(null, STDIN_FILENO);

    /* POV-Ray may read files of the current folder and of few others. */
    char folder[PATH_MAX], input[PATH_MAX + 4], options[8][32];
    strcpy(folder, picture->scene);
    char *name = strrchr(folder, '/');
    *name++ = 0;
    sprintf(input, "+I\"%s\"", name); /* POV-Ray splits options at blanks */
    sprintf(options[0], "+W%d", picture->width);
    sprintf(options[1], "+H%d", picture->height);
    sprintf(options[2], "+SC%d", tile.x + 1); /* POV-Ray's columns and rows count from 1 */
    sprintf(options[3], "+EC%d", tile.x + tile.width);
    sprintf(options[4], "+SR%d", tile.y + 1);
    sprintf(options[5], "+ER%d", tile.y + tile.height);
    sprintf(options[6], "+BS%d", BLOCK_EDGE);
    sprintf(options[7], "+WT%d", threads);
    if (chdir(*folder ? folder : "/") == 0)
        execlp("povray", "povray", input, options[0], options[1], options[2], options[3], options[4], options[5], options[6], options[7],
               "+A0.1", "+AM1", "+R3", "-J", "+FP", "+O-", "-D", "-V", "-P", "-C", "-GD", "-GR", "-GS", (char *)NULL);
    fprintf(stderr, "Error: povray cannot be started: %s (install Debian's package povray)\n", strerror(errno));
    _exit(127);
}

/* Starts the rendering of a tile. */
static void rendering_begin(struct rendering *r, const struct picture *picture, struct tile tile, int threads)
{
    int ends[2];
    r->tile = tile;
    r->have = 0;
    r->failure[0] = 0;
    if (!r->data) {
        r->room = MAX_HEADER + (size_t)picture->width * (size_t)picture->height * 3;
        r->data = zeroed_memory(r->room, 1);
    }
    r->words = tmpfile();
    if (!r->words || pipe(ends) != 0)
        refuse("povray", "a pipe or a temporary file cannot be created; check the limit of open files and the folder for temporary files");
    /* No other POV-Ray may keep this pipe open. */
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    fcntl(fileno(r->words), F_SETFD, FD_CLOEXEC);
    fflush(stdout);
    pid_t parent = getpid();
    r->process = fork();
    if (r->process == 0)
        render_child(picture, tile, threads, parent, ends[1], fileno(r->words));
    close(ends[1]);
    r->output = ends[0];
    if (r->process < 0)
        refuse("povray", "no process can be started for POV-Ray; check the limit of processes");
    if (picture->tells) {
        printf("povray: task %d renders %dx%d+%d+%d by process %d\n", (int)parent, tile.width, tile.height, tile.x, tile.y, (int)r->process);
        fflush(stdout);
    }
}

/* Returns the next number of a PPM header and moves `at` to the byte after it, or returns -1 if it is not complete. */
static long header_number(const struct rendering *r, size_t *at)
{
    long number = -1;
    for (; *at < r->have; (*at)++) {
        int c = r->data[*at];
        if (c == '#' && number < 0)
            while (*at < r->have && r->data[*at] != '\n')
                (*at)++;
        else if (c >= '0' && c <= '9' && number < 1000000)
            number = (number < 0 ? 0 : 10 * number) + c - '0';
        else if (number >= 0)
            return number;
    }
    return -1;
}

/* Returns the index of the first pixel in the data if all pixels have been received; 0 if not, or if the data are not
 * such a picture. */
static size_t first_pixel(const struct rendering *r, const struct picture *picture)
{
    size_t at = 2;
    if (r->have < 2 || memcmp(r->data, "P6", 2) != 0 || header_number(r, &at) != picture->width ||
        header_number(r, &at) != picture->height || header_number(r, &at) != 255)
        return 0;
    at++;
    return r->have - at >= (size_t)picture->width * (size_t)picture->height * 3 ? at : 0;
}

/* Sets the reason why POV-Ray has ended without a picture: its error output from "Error:" on, which it breaks into
 * lines. */
static void tell_failure(struct rendering *r, int status)
{
    char line[FAILURE_BYTES], reason[FAILURE_BYTES / 2] = "";
    size_t length = 0;
    rewind(r->words);
    while (fgets(line, sizeof line, r->words)) {
        if ((length == 0 && !strstr(line, "Error:")) || strncmp(line, "Fatal error", 11) == 0 || strncmp(line, "Render failed", 13) == 0)
            continue;
        length += (size_t)snprintf(reason + length, sizeof reason - length, "%s%.*s", length ? "" : ": ", (int)strcspn(line, "\n"), line);
        if (length >= sizeof reason)
            break;
    }
    snprintf(r->failure, sizeof r->failure, "POV-Ray has ended %s %d at the tile %dx%d+%d+%d%s", WIFSIGNALED(status) ? "by signal" : "with status",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), r->tile.width, r->tile.height, r->tile.x, r->tile.y, reason);
}

/* Kills the process and waits for it: POV-Ray takes a third of a second to end after it has written its picture. */
static void rendering_end(struct rendering *r, int *status)
{
    kill(r->process, SIGKILL);
    while (waitpid(r->process, status, 0) < 0 && errno == EINTR)
        ;
    close(r->output);
    fclose(r->words);
    r->process = 0;
}

/* Reads available data from POV-Ray. Returns whether the rendering has ended, with a picture or with a failure. */
static int rendering_read(struct rendering *r, const struct picture *picture)
{
    ssize_t more = read(r->output, r->data + r->have, r->room - r->have);
    if (more < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    r->have += more > 0 ? (size_t)more : 0;
    int whole = first_pixel(r, picture) > 0, status = 0;
    if (!whole && more > 0)
        return 0;
    clockid_t clock;
    struct timespec used = {0};
    if (clock_getcpuclockid(r->process, &clock) == 0)
        clock_gettime(clock, &used);
    r->seconds = (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
    if (!whole) {
        /* The pipe has ended, could not be read, or its data are not such a picture. */
        siginfo_t info;
        if (more < 0 || r->have == r->room)
            kill(r->process, SIGKILL);
        waitid(P_PID, (id_t)r->process, &info, WEXITED | WNOWAIT);
        status = info.si_code == CLD_EXITED ? info.si_status << 8 : info.si_status;
        tell_failure(r, status);
    }
    rendering_end(r, &status);
    return 1;
}

/* Copies the pixels of the tile row by row, three bytes each. */
static void rendering_pixels(const struct rendering *r, const struct picture *picture, unsigned char *pixels)
{
    const unsigned char *all = r->data + first_pixel(r, picture);
    size_t row = (size_t)r->tile.width * 3;
    for (int y = 0; y < r->tile.height; y++)
        memcpy(pixels + (size_t)y * row, all + ((size_t)(r->tile.y + y) * (size_t)picture->width + (size_t)r->tile.x) * 3, row);
}

#endif
