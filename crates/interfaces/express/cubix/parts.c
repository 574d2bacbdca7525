/* Nodes that have access to the same file as node 0 write their own parts. The others send theirs to node 0. */
#include "stream.h"

#include <fcntl.h>
#include <sys/stat.h>

/* Identifies a file within a running system: by device, inode and boot id. */
struct identity {
    dev_t device;
    ino_t file;
    char system[40];
};

static struct identity identify(int fd)
{
    struct identity found;
    struct stat file;

    memset(&found, 0, sizeof found);
    int id = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (id < 0)
        return found;
    if (read(id, found.system, sizeof found.system - 1) > 0 && fstat(fd, &file) == 0) {
        found.device = file.st_dev;
        found.file = file.st_ino;
    }
    close(id);
    return found;
}

/* Opens the file, if it is the same as node 0's. */
static int open_own(const struct stream *stream, const struct identity *wanted)
{
    int fd = open(stream->path, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return -1;
    struct identity mine = identify(fd);
    if (wanted->system[0] == 0 || memcmp(&mine, wanted, sizeof mine) != 0)
        return close(fd), -1;
    return fd;
}

/* Lets all nodes know which of them can write to the file. Called once for each stream. */
static int ask(struct stream *stream)
{
    struct identity wanted;
    unsigned char able = 1;

    memset(&wanted, 0, sizeof wanted);
    stream->writers = calloc((size_t)cubix_nodes(), 1);
    if (!stream->writers)
        cubix_give_up("out of memory");
    if (cubix_node() == 0)
        wanted = identify(stream->fd);
    int code = rg_broadcast(&wanted, sizeof wanted, 0, RG_WORLD);
    if (code == RG_OK && cubix_node() != 0) {
        stream->own = open_own(stream, &wanted);
        able = stream->own >= 0;
    }
    if (code == RG_OK)
        code = rg_allgather(&able, 1, stream->writers, RG_WORLD);
    return code == RG_OK ? 0 : cubix_failed(code);
}

/* Writes bytes at an offset. Returns 0 or an errno value. */
static int write_part(int fd, const char *bytes, size_t len, off64_t at)
{
    while (len > 0) {
        ssize_t done = pwrite64(fd, bytes, len, at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return errno;
        bytes += done;
        at += done;
        len -= (size_t)done;
    }
    return 0;
}

/* Writes what this node has kept piece by piece, and gives each piece's memory back, because otherwise the kernel would
 * need twice the memory. Returns 0 or an errno value. */
static int write_own(const struct stream *stream, int fd, off64_t at)
{
    int failed = 0;

    for (size_t from = 0, len; from < stream->used && !failed; from += len) {
        len = cubix_piece(stream, from);
        failed = write_part(fd, stream->pending + from, len, at + (off64_t)from);
        cubix_give_back(stream, from, len);
    }
    return failed;
}

/* At node 0: gathers and writes the parts of nodes that cannot write themselves. Returns 0 or an errno value. */
static int write_for_others(const struct stream *stream, const struct parts *parts)
{
    size_t count = (size_t)cubix_nodes(), *lens = calloc(2 * count, sizeof *lens), whole = 0;
    int failed = 0;

    if (!lens)
        cubix_give_up("out of memory");
    for (size_t node = 0; node < count; node++) {
        lens[node] = stream->writers[node] ? 0 : parts->lens[node];
        lens[count + node] = whole;
        whole += lens[node];
    }
    char *all = malloc(whole ? whole : 1);
    if (!all)
        cubix_give_up("out of memory for the output of the nodes");
    int code = rg_gatherv(NULL, 0, all, lens, lens + count, 0, RG_WORLD);
    if (code != RG_OK)
        failed = (cubix_failed(code), EIO);
    for (size_t node = 0; node < count && !failed; node++)
        failed = write_part(stream->fd, all + lens[count + node], lens[node], parts->at + (off64_t)parts->offsets[node]);
    free(all);
    free(lens);
    return failed;
}

/* Writes this node's part, or sends it to node 0. Returns 0 or an errno value of this node. */
int cubix_write_apart(struct stream *stream, const struct parts *parts)
{
    int me = cubix_node(), failed = 0;

    if (!stream->writers && ask(stream) != 0)
        return EIO;
    if (stream->writers[me])
        failed = write_own(stream, me == 0 ? stream->fd : stream->own, parts->at + (off64_t)parts->offsets[me]);
    if (memchr(stream->writers, 0, (size_t)cubix_nodes())) {
        if (me == 0) {
            int others = write_for_others(stream, parts);
            failed = failed ? failed : others;
        } else {
            int code = rg_gatherv(stream->pending, stream->writers[me] ? 0 : stream->used, NULL, NULL, NULL, 0, RG_WORLD);
            failed = code == RG_OK ? failed : (cubix_failed(code), EIO);
        }
    }
    if (me == 0 && lseek64(stream->fd, parts->at + (off64_t)parts->whole, SEEK_SET) < 0)
        failed = failed ? failed : errno;
    return failed;
}
