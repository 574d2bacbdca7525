/* Output of nodes, of each on its own or of all together in order of nodes. In the latter case node 0 writes all of it
 * or, if it is large, each node writes its part. */
#include "stream.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

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

/* Reserves a large range of addresses, so that the memory can grow in place. Pages are allocated when they are used. */
static int reserve(struct stream *stream, size_t least)
{
    enum { PROTECTION = PROT_READ | PROT_WRITE, FLAGS = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, LITTLE = 1 << 20 };
    size_t room = (size_t)1 << 36;

    while (room / 2 >= least && room > 1 << 20) {
        void *bytes = mmap(NULL, room, PROTECTION, FLAGS, -1, 0);
        if (bytes != MAP_FAILED) {
            /* Huge pages make it cheaper to allocate a lot of memory. */
            if (room > LITTLE)
                (void)madvise((char *)bytes + LITTLE, room - LITTLE, MADV_HUGEPAGE);
            stream->pending = bytes;
            stream->room = room;
            return 0;
        }
        room /= 2;
    }
    return errno = ENOMEM, -1;
}

static int grow(struct stream *stream, size_t len)
{
    size_t room = (stream->used + len) * 2;

    if (!stream->pending)
        return reserve(stream, len);
    char *more = mremap(stream->pending, stream->room, room, MREMAP_MAYMOVE);
    if (more == MAP_FAILED)
        return -1;
    stream->pending = more;
    stream->room = room;
    return 0;
}

/* Keeps bytes until the nodes flush. */
int cubix_keep(struct stream *stream, const char *bytes, size_t len)
{
    if (stream->room - stream->used < len && grow(stream, len) != 0)
        return -1;
    memcpy(stream->pending + stream->used, bytes, len);
    stream->used += len;
    return 0;
}

/* Bytes of memory that are kept for further output; the rest is given back to the kernel. */
enum { KEPT = 16 << 20 };

static void let_go(struct stream *stream)
{
    if (stream->used > KEPT)
        (void)madvise(stream->pending + KEPT, stream->room - KEPT, MADV_DONTNEED);
    stream->used = 0;
}

/* Size of a huge page: huge pages are given back as a whole. */
enum { PIECE = 2 << 20 };

size_t cubix_piece(const struct stream *stream, size_t from)
{
    size_t piece = PIECE - (size_t)(stream->pending + from) % PIECE, left = stream->used - from;

    return piece < left ? piece : left;
}

void cubix_give_back(const struct stream *stream, size_t from, size_t len)
{
    if (from >= KEPT)
        (void)madvise(stream->pending + from, len, MADV_DONTNEED);
}

void cubix_drop_pending(struct stream *stream)
{
    if (stream->pending)
        munmap(stream->pending, stream->room);
}

/* At node 0: gathers and writes what each node has, in order. Returns 0 or an errno value. */
static int write_all_parts(struct stream *stream, const struct parts *parts)
{
    int failed = 0;
    char *all = malloc(parts->whole ? parts->whole : 1);

    if (!all)
        cubix_give_up("out of memory for the output of the nodes");
    int code = rg_gatherv(stream->pending, stream->used, all, parts->lens, parts->offsets, 0, RG_WORLD);
    if (code != RG_OK)
        failed = (cubix_failed(code), EIO);
    else if (cubix_write_all(stream->fd, all, parts->whole) != 0)
        failed = errno;
    free(all);
    return failed;
}

/* Gathers all parts at node 0, which writes them. Returns 0 or an errno value. */
static int write_at_node_0(struct stream *stream, const struct parts *parts)
{
    int failed = 0, code;

    if (cubix_node() == 0) {
        failed = write_all_parts(stream, parts);
    } else {
        code = rg_gatherv(stream->pending, stream->used, NULL, NULL, NULL, 0, RG_WORLD);
        if (code != RG_OK)
            return cubix_failed(code), EIO;
    }
    code = rg_broadcast(&failed, sizeof failed, 0, RG_WORLD);
    return code == RG_OK ? failed : (cubix_failed(code), EIO);
}

/* From this many bytes on each node writes its part itself. */
enum { MIN_OWN_WRITE_BYTES = 1 << 18 };

/* Returns node 0's position in the file, or -1 if other nodes cannot write their parts. */
static off64_t place_of(const struct stream *stream)
{
    struct stat file;

    if ((stream->flags & O_APPEND) || stream->from != stream->to || !stream->path)
        return -1;
    if (fstat(stream->fd, &file) != 0 || !S_ISREG(file.st_mode))
        return -1;
    return lseek64(stream->fd, 0, SEEK_CUR);
}

/* Lets all nodes know how much each has, and whether their last parts failed. Returns 0 or an errno value. */
static int agree(struct stream *stream, struct parts *parts, size_t count)
{
    struct turn {
        size_t used;
        off64_t at;
        int failed;
    } mine = {stream->used, cubix_node() == 0 ? place_of(stream) : -1, stream->failed}, *turns = calloc(count, sizeof *turns);
    int failed = 0;

    if (!turns)
        cubix_give_up("out of memory");
    int code = rg_allgather(&mine, sizeof mine, turns, RG_WORLD);
    for (size_t node = 0; node < count; node++) {
        parts->lens[node] = turns[node].used;
        parts->offsets[node] = parts->whole;
        if (turns[node].failed)
            failed = turns[node].failed;
        if (__builtin_add_overflow(parts->whole, turns[node].used, &parts->whole))
            cubix_give_up("nodes report that they have written more data than is possible");
    }
    parts->at = parts->whole < MIN_OWN_WRITE_BYTES ? -1 : turns[0].at;
    if (parts->at >= 0 && parts->whole > (size_t)(INT64_MAX - parts->at))
        parts->at = -1;
    free(turns);
    stream->failed = 0;
    return code == RG_OK ? failed : (cubix_failed(code), EIO);
}

/* Flushes what has been kept, once. Returns 0 or an errno value: this node's, or one of an earlier round. */
static int flush_round(struct stream *stream, bool *apart)
{
    size_t count = (size_t)cubix_nodes();
    struct parts parts = {.at = -1, .lens = calloc(2 * count, sizeof *parts.lens)};

    if (!parts.lens)
        cubix_give_up("out of memory");
    parts.offsets = parts.lens + count;
    int before = agree(stream, &parts, count), failed = 0;
    *apart = parts.at >= 0;
    if (*apart)
        failed = stream->failed = cubix_write_apart(stream, &parts);
    else if (parts.whole > 0)
        failed = write_at_node_0(stream, &parts);
    free(parts.lens);
    let_go(stream);
    return failed ? failed : before;
}

int cubix_flush_together(struct stream *stream, bool wait)
{
    bool apart;

    if (cubix_node() < 0)
        return -1;
    int failed = flush_round(stream, &apart), later = 0;
    /* A second round: when it completes, all nodes have written their parts of the first. */
    if (apart && wait)
        later = flush_round(stream, &apart);
    failed = failed ? failed : later;
    return failed ? (errno = failed, -1) : 0;
}
