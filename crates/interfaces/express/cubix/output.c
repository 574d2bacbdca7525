/* Output of nodes, of each by itself or of all together. */
#include "stream.h"

int cubix_write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t done = write(fd, bytes, len);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -1;
        bytes += done;
        len -= (size_t)done;
    }
    return 0;
}

/* Until the nodes flush. */
int cubix_keep(struct stream *stream, const char *bytes, size_t len)
{
    if (stream->room - stream->used < len) {
        size_t room = (stream->used + len) * 2;
        char *more = realloc(stream->pending, room);
        if (!more)
            return -1;
        stream->pending = more;
        stream->room = room;
    }
    memcpy(stream->pending + stream->used, bytes, len);
    stream->used += len;
    return 0;
}

/* At node 0: what each node has, in their order. */
static int write_parts(struct stream *stream, const size_t *lens, size_t *offsets)
{
    size_t whole = 0;
    int failed = 0;

    for (int node = 0; node < cubix_nodes(); node++) {
        offsets[node] = whole;
        if (__builtin_add_overflow(whole, lens[node], &whole))
            cubix_give_up("nodes say that they have written more than there can be");
    }
    char *all = malloc(whole ? whole : 1);
    if (!all)
        cubix_give_up("there is no memory for what the nodes have written");
    int code = rg_gatherv(stream->pending, stream->used, all, lens, offsets, 0, RG_WORLD);
    if (code != RG_OK)
        failed = (cubix_failed(code), EIO);
    else if (cubix_write_all(stream->fd, all, whole) != 0)
        failed = errno;
    free(all);
    return failed;
}

int cubix_flush_together(struct stream *stream)
{
    int me = cubix_node(), failed = 0, code;
    size_t count = (size_t)cubix_nodes(), *lens = NULL;

    if (me < 0)
        return -1;
    if (me == 0) {
        lens = calloc(2 * count, sizeof *lens);
        if (!lens)
            cubix_give_up("there is no memory");
    }
    code = rg_gather(&stream->used, sizeof stream->used, lens, 0, RG_WORLD);
    if (code == RG_OK && me == 0)
        failed = write_parts(stream, lens, lens + count);
    else if (code == RG_OK)
        code = rg_gatherv(stream->pending, stream->used, NULL, NULL, NULL, 0, RG_WORLD);
    free(lens);
    stream->used = 0;
    if (code == RG_OK)
        code = rg_broadcast(&failed, sizeof failed, 0, RG_WORLD);
    if (code != RG_OK)
        return cubix_failed(code);
    return failed ? (errno = failed, -1) : 0;
}
