/* Input of nodes, of each on its own or of all together. When they read together, node 0 reads the file. */
#include "stream.h"

enum { AHEAD = 65536 };

/* Reads ahead in the file. Returns the number of bytes, 0 at the end of the file, or -1. */
static ssize_t fill(struct stream *stream)
{
    ssize_t got;

    if (!stream->ahead && !(stream->ahead = malloc(AHEAD)))
        return -1;
    do
        got = read(stream->fd, stream->ahead, AHEAD);
    while (got < 0 && errno == EINTR);
    stream->from = 0;
    stream->to = got > 0 ? (size_t)got : 0;
    return got;
}

/* Takes bytes from this node's read-ahead buffer, after filling it if it is empty. */
ssize_t cubix_take(struct stream *stream, char *to, size_t len)
{
    if (stream->from == stream->to) {
        ssize_t got = fill(stream);
        if (got <= 0)
            return got;
    }
    size_t there = stream->to - stream->from, part = there < len ? there : len;
    memcpy(to, stream->ahead + stream->from, part);
    stream->from += part;
    return (ssize_t)part;
}

/* Reads bytes at node 0 and broadcasts them to all nodes. */
ssize_t cubix_read_together(struct stream *stream, char *to, size_t len)
{
    struct {
        ssize_t got;
        int error;
    } end = {0, 0};

    if (cubix_node() == 0) {
        end.got = cubix_take(stream, to, len);
        end.error = errno;
    }
    int code = rg_broadcast(&end, sizeof end, 0, RG_WORLD);
    if (code == RG_OK && end.got > (ssize_t)len)
        cubix_give_up("node 0 sent more data than was requested");
    if (code == RG_OK && end.got > 0)
        code = rg_broadcast(to, (size_t)end.got, 0, RG_WORLD);
    if (code != RG_OK)
        return cubix_failed(code);
    return end.got < 0 ? (errno = end.error, -1) : end.got;
}

/* Puts the bytes that are in the FILE's buffer back in front of the read-ahead buffer. */
int cubix_save_rest(struct stream *stream)
{
    char *all = malloc(2 * AHEAD + BUFSIZ);
    size_t used = 0;
    int byte;

    if (!all)
        return -1;
    stream->dry = true;
    while (used < AHEAD + BUFSIZ && (byte = getc_unlocked(stream->file)) != EOF)
        all[used++] = (char)byte;
    clearerr(stream->file);
    stream->dry = false;
    if (stream->to > stream->from)
        memcpy(all + used, stream->ahead + stream->from, stream->to - stream->from);
    used += stream->to - stream->from;
    free(stream->ahead);
    stream->ahead = all;
    stream->from = 0;
    stream->to = used;
    return 0;
}

/* Reads `len` bytes or, if `line`, a line of at most `len` bytes; fewer at the end of the file. */
static size_t piece(struct stream *stream, char *to, size_t len, bool line)
{
    size_t used = 0;

    while (used < len) {
        size_t want = line ? 1 : len - used;
        ssize_t got = cubix_take(stream, to + used, want);
        if (got <= 0)
            break;
        used += (size_t)got;
        if (line && to[used - 1] == '\n')
            break;
    }
    return used;
}

/* At node 0: reads the piece of each node, in order, and scatters them. */
static int pieces(struct stream *stream, size_t *wants, size_t *offsets, char *to, bool line)
{
    int count = cubix_nodes();
    size_t whole = 0, used = 0;

    for (int node = 0; node < count; node++)
        if (__builtin_add_overflow(whole, wants[node], &whole))
            cubix_give_up("nodes request more data than is possible");
    char *all = malloc(whole ? whole : 1);
    if (!all)
        cubix_give_up("out of memory for the input of the nodes");
    for (int node = 0; node < count; node++) {
        offsets[node] = used;
        wants[node] = piece(stream, all + used, wants[node], line);
        used += wants[node];
    }
    size_t mine = wants[0];
    int code = rg_scatter(wants, (void *)RG_IN_PLACE, sizeof *wants, 0, RG_WORLD);
    if (code == RG_OK)
        code = rg_scatterv(all, wants, offsets, to, mine, 0, RG_WORLD);
    free(all);
    return code;
}

/* Gives each node the next piece of the file, collectively. Returns its length, or -1. */
static ssize_t read_in_turn(struct stream *stream, char *to, size_t want, bool line)
{
    int me = cubix_node(), code;
    size_t count = (size_t)cubix_nodes(), *wants = NULL, got = 0;

    if (me < 0)
        return -1;
    if (me == 0 && !(wants = calloc(2 * count, sizeof *wants)))
        cubix_give_up("out of memory");
    code = rg_gather(&want, sizeof want, wants, 0, RG_WORLD);
    if (code == RG_OK && me == 0) {
        code = pieces(stream, wants, wants + count, to, line);
        got = wants[0];
    } else if (code == RG_OK) {
        code = rg_scatter(NULL, &got, sizeof got, 0, RG_WORLD);
        if (code == RG_OK && got > want)
            cubix_give_up("node 0 sent more data than was requested");
        if (code == RG_OK)
            code = rg_scatterv(NULL, NULL, NULL, to, got, 0, RG_WORLD);
    }
    free(wants);
    if (code != RG_OK)
        return cubix_failed(code);
    return (ssize_t)got;
}

/* Sets the FILE's end-of-file indicator. */
static void end(struct stream *stream)
{
    stream->dry = true;
    (void)getc_unlocked(stream->file);
    stream->dry = false;
}

size_t cubix_fread(void *buf, size_t size, size_t items, FILE *file)
{
    struct stream *stream = cubix_find(file);

    if (!stream || stream->mode != MULTI || !stream->reads || size == 0)
        return fread(buf, size, items, file);
    ssize_t got = read_in_turn(stream, buf, size * items, false);
    if (got < 0)
        return 0;
    if ((size_t)got < size * items)
        end(stream);
    return (size_t)got / size;
}

char *cubix_fgets(char *buf, int size, FILE *file)
{
    struct stream *stream = cubix_find(file);

    if (!stream || stream->mode != MULTI || !stream->reads || size < 2)
        return fgets(buf, size, file);
    ssize_t got = read_in_turn(stream, buf, (size_t)size - 1, true);
    if (got >= 0)
        buf[got] = 0;
    if (got == 0)
        end(stream);
    return got > 0 ? buf : NULL;
}
