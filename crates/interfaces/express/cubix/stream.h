/* A stream of Cubix: a C FILE over functions of this library (fopencookie), which handle its mode. */
#ifndef REGATTA_CUBIX_STREAM_H
#define REGATTA_CUBIX_STREAM_H

#define _GNU_SOURCE
#define REGATTA_CUBIX_INSIDE
#include <cubix.h>
#include <regatta.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum mode { SINGLE, MULTI, ASYNC };

struct stream {
    struct stream *next;
    FILE *file;
    enum mode mode;
    int fd; /* at node 0, and in async mode at each node; otherwise -1 */
    bool reads, writes, standard;
    char *path; /* for other nodes to open, with these flags */
    int flags;
    /* Data written in multi mode and not flushed yet. */
    char *pending;
    size_t used, room;
    /* Which nodes can write to the file directly, by number, once that is known; and this node's descriptor for it, or -1. */
    unsigned char *writers;
    int own;
    /* The errno of this node's last part, which was not reported to the other nodes yet. */
    int failed;
    /* Data read from the file and not yet given to the program. */
    char *ahead;
    size_t from, to;
    /* The FILE's buffer is being emptied, or the FILE must see an end of file: reads give nothing. */
    bool dry;
};

/* Internal to this library. */
#pragma GCC visibility push(hidden)

/* stream.c */
int cubix_node(void); /* returns this node's number, or -1 if the program is no node; the reason was printed */
int cubix_nodes(void);
int cubix_failed(int code); /* prints an error of Regatta; returns -1 and sets errno */
/* Ends the program: the other nodes wait for this node, and get an error that it is gone. */
_Noreturn void cubix_give_up(const char *why);
struct stream *cubix_find(FILE *file);
struct stream *cubix_first(void);
struct stream *cubix_make(int fd, bool reads, bool writes, bool appends);
void cubix_forget(struct stream *stream);

/* output.c */
int cubix_write_all(int fd, const char *bytes, size_t len);
int cubix_keep(struct stream *stream, const char *bytes, size_t len);
/* Writes the data of all nodes, in the order of the nodes. When it returns, this node has written its part; with `wait` all nodes have written theirs.
 * Without `wait`, failures of other nodes are reported by the next call. */
int cubix_flush_together(struct stream *stream, bool wait);
/* Like fflush, for one stream. */
int cubix_flush_one(FILE *file, bool wait);
void cubix_drop_pending(struct stream *stream);
/* Return the length of the next piece of the kept data, and release a written piece: its pages go back to the kernel, which can reuse them for the
 * next piece of the file. That is faster than new pages. */
size_t cubix_piece(const struct stream *stream, size_t from);
void cubix_give_back(const struct stream *stream, size_t from, size_t len);

/* parts.c */
/* Where each node's part of a flush is written; all nodes know this. */
struct parts {
    off64_t at; /* position in the file; negative: node 0 writes all parts, at its current position */
    size_t *lens, *offsets, whole;
};

int cubix_write_apart(struct stream *stream, const struct parts *parts);

/* input.c */
ssize_t cubix_take(struct stream *stream, char *to, size_t len);
ssize_t cubix_read_together(struct stream *stream, char *to, size_t len);
int cubix_save_rest(struct stream *stream);

#pragma GCC visibility pop

#endif
