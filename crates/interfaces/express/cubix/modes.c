/* Opening, flushing and closing streams, and changing their modes. */
#include "stream.h"

#include <fcntl.h>

/* Converts the mode of fopen to flags of open(). Returns -1 if it is invalid. */
static int flags_of(const char *mode)
{
    bool both = strchr(mode, '+') != NULL;
    int access = both ? O_RDWR : *mode == 'r' ? O_RDONLY : O_WRONLY, rest;

    switch (*mode) {
    case 'r': rest = 0; break;
    case 'w': rest = O_CREAT | O_TRUNC; break;
    case 'a': rest = O_CREAT | O_APPEND; break;
    default: return errno = EINVAL, -1;
    }
    return access | rest | (strchr(mode, 'x') ? O_EXCL : 0) | O_CLOEXEC;
}

FILE *cubix_fopen(const char *path, const char *mode)
{
    int me = cubix_node(), flags = flags_of(mode), fd = -1, error = 0;

    if (me < 0 || flags < 0)
        return NULL;
    if (me == 0) {
        fd = open(path, flags, 0666);
        error = fd < 0 ? errno : 0;
    }
    int code = rg_broadcast(&error, sizeof error, 0, RG_WORLD);
    if (code != RG_OK)
        error = (cubix_failed(code), EIO);
    int access = flags & O_ACCMODE;
    struct stream *stream = NULL;
    if (error == 0)
        stream = cubix_make(fd, access != O_WRONLY, access != O_RDONLY, (flags & O_APPEND) != 0);
    if (!stream) {
        if (fd >= 0)
            close(fd);
        return errno = error ? error : ENOMEM, NULL;
    }
    stream->path = strdup(path);
    stream->flags = flags & ~(O_TRUNC | O_EXCL | O_CREAT);
    return stream->file;
}

int cubix_flush_one(FILE *file, bool wait)
{
    struct stream *stream = cubix_find(file);
    int code = fflush(file) != 0 ? EOF : 0;

    if (stream && stream->mode == MULTI && stream->writes && cubix_flush_together(stream, wait) != 0)
        code = EOF;
    return code;
}

int cubix_fflush(FILE *file)
{
    int code = 0;

    if (file)
        return cubix_flush_one(file, false);
    for (struct stream *stream = cubix_first(); stream; stream = stream->next)
        if (stream->writes && cubix_flush_one(stream->file, false) != 0)
            code = EOF;
    return fflush(stderr) != 0 ? EOF : code;
}

int cubix_fclose(FILE *file)
{
    struct stream *stream = cubix_find(file);
    int code = stream && stream->writes ? cubix_flush_one(file, true) : 0;

    return fclose(file) != 0 ? EOF : code;
}

/* Opens the file on each node, at node 0's position. */
static int open_apart(struct stream *stream)
{
    struct {
        off64_t at;
        int error;
    } begin = {-1, 0};

    if (stream->standard)
        return 0;
    if (cubix_node() == 0)
        begin.at = lseek64(stream->fd, 0, SEEK_CUR) - (off64_t)(stream->to - stream->from);
    int code = rg_broadcast(&begin, sizeof begin, 0, RG_WORLD);
    if (code != RG_OK)
        return cubix_failed(code);
    if (cubix_node() == 0)
        return 0;
    if (stream->fd < 0)
        stream->fd = open(stream->path, stream->flags, 0666);
    if (stream->fd < 0)
        return -1;
    stream->from = stream->to = 0;
    if (begin.at >= 0)
        (void)lseek64(stream->fd, begin.at, SEEK_SET);
    return 0;
}

static int change(FILE *file, enum mode mode)
{
    struct stream *stream = cubix_find(file);

    if (!stream)
        return errno = EINVAL, EOF;
    if (cubix_node() < 0 || (stream->writes && cubix_flush_one(file, true) != 0))
        return EOF;
    if (stream->mode == mode)
        return 0;
    if (stream->reads && cubix_save_rest(stream) != 0)
        return EOF;
    if (mode == ASYNC && open_apart(stream) != 0)
        return EOF;
    stream->mode = mode;
    return 0;
}

int fsingl(FILE *stream) { return change(stream, SINGLE); }
int fsingle(FILE *stream) { return change(stream, SINGLE); }
int fmulti(FILE *stream) { return change(stream, MULTI); }
int fasync(FILE *stream) { return change(stream, ASYNC); }

int ismulti(FILE *file)
{
    struct stream *stream = cubix_find(file);

    return stream && stream->mode == MULTI;
}
