/* The streams, and the callbacks of their FILEs. */
#include "stream.h"

#include <express.h>
#include <fcntl.h>
#include <stdio_ext.h>

static struct stream *streams;
static int node = -1, nodes;
/* The nodes are leaving: from now on each works on its own. */
static bool ended;

/* Flushes pending multi output when all nodes end, before they leave. */
static void at_end(void)
{
    for (struct stream *stream = streams; stream; stream = stream->next)
        if (stream->writes)
            cubix_flush_one(stream->file, true);
    ended = true;
}

int cubix_node(void)
{
    struct nodenv env;

    if (node >= 0)
        return node;
    if (exparam(&env) != 0)
        return errno = EIO, -1;
    node = env.procnum;
    nodes = env.nprocs;
    atexit(at_end);
    return node;
}

int cubix_nodes(void) { return nodes; }

int cubix_failed(int code)
{
    (void)code;
    fprintf(stderr, "cubix: node %d: %s\n", node, rg_last_error());
    return errno = EIO, -1;
}

void cubix_give_up(const char *why)
{
    fprintf(stderr, "cubix: node %d: %s\n", node, why);
    abort();
}

struct stream *cubix_find(FILE *file)
{
    for (struct stream *stream = streams; stream; stream = stream->next)
        if (stream->file == file)
            return stream;
    return NULL;
}

struct stream *cubix_first(void) { return streams; }

static ssize_t on_read(void *cookie, char *to, size_t len)
{
    struct stream *stream = cookie;

    if (stream->dry || ended)
        return 0;
    if (cubix_node() < 0)
        return -1;
    /* Show the prompt before waiting for the terminal. */
    if (stream->fd == STDIN_FILENO)
        fflush(stdout);
    switch (stream->mode) {
    case SINGLE: return cubix_read_together(stream, to, len);
    case ASYNC: return cubix_take(stream, to, len);
    default: return errno = EINVAL, -1;
    }
}

/* Returns 0 on failure, as fopencookie requires. */
static ssize_t on_write(void *cookie, const char *bytes, size_t len)
{
    struct stream *stream = cookie;
    int me = cubix_node(), code = 0;

    if (me < 0)
        return 0;
    if (stream->mode == MULTI)
        code = cubix_keep(stream, bytes, len);
    else if (stream->mode == ASYNC || me == 0)
        code = cubix_write_all(stream->fd, bytes, len);
    return code == 0 ? (ssize_t)len : 0;
}

static int on_seek(void *cookie, off64_t *offset, int whence)
{
    struct stream *stream = cookie;
    int me = cubix_node();
    struct {
        off64_t at;
        int error;
    } end = {-1, 0};

    if (me < 0 || (stream->mode == MULTI && !ended && cubix_flush_together(stream, true) != 0))
        return -1;
    if (ended && me != 0)
        return errno = ESPIPE, -1;
    if (stream->mode == ASYNC || me == 0) {
        /* The file's position is behind the bytes that were read ahead. */
        off64_t ahead = whence == SEEK_CUR ? (off64_t)(stream->to - stream->from) : 0;
        end.at = lseek64(stream->fd, *offset - ahead, whence);
        end.error = errno;
        if (end.at >= 0)
            stream->from = stream->to = 0;
    }
    if (stream->mode != ASYNC && !ended) {
        int code = rg_broadcast(&end, sizeof end, 0, RG_WORLD);
        if (code != RG_OK)
            return cubix_failed(code);
    }
    if (end.at < 0)
        return errno = end.error, -1;
    *offset = end.at;
    return 0;
}

static int on_close(void *cookie)
{
    cubix_forget(cookie);
    return 0;
}

struct stream *cubix_make(int fd, bool reads, bool writes, bool appends)
{
    struct stream *stream = calloc(1, sizeof *stream);
    cookie_io_functions_t functions = {reads ? on_read : NULL, writes ? on_write : NULL, on_seek, on_close};
    const char *mode = appends ? (reads ? "a+" : "a") : reads && writes ? "r+" : reads ? "r" : "w";

    if (!stream)
        return NULL;
    stream->fd = fd;
    stream->own = -1;
    stream->reads = reads;
    stream->writes = writes;
    stream->file = fopencookie(stream, mode, functions);
    if (!stream->file)
        return free(stream), NULL;
    stream->next = streams;
    streams = stream;
    return stream;
}

void cubix_forget(struct stream *stream)
{
    struct stream **place = &streams;

    while (*place && *place != stream)
        place = &(*place)->next;
    if (*place)
        *place = stream->next;
    if (stream->fd > STDERR_FILENO)
        close(stream->fd);
    if (stream->own >= 0)
        close(stream->own);
    free(stream->writers);
    free(stream->path);
    cubix_drop_pending(stream);
    free(stream->ahead);
    free(stream);
}

/* If the program has only printed and made no other call, makes it a node before C's stdio flushes its buffers. */
static void before_end(void)
{
    if (node < 0 && __fpending(stdout) > 0)
        cubix_node();
}

/* Replaces C's stdin and stdout before the program begins. */
__attribute__((constructor)) static void replace(void)
{
    struct stream *in = cubix_make(STDIN_FILENO, true, false, false), *out = cubix_make(STDOUT_FILENO, false, true, false);

    if (!in || !out)
        return;
    in->standard = out->standard = true;
    setvbuf(out->file, NULL, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, BUFSIZ);
    stdin = in->file;
    stdout = out->file;
    atexit(before_end);
}
