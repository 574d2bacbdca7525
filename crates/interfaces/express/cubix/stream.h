/* A stream of Cubix: a FILE of C's over functions of this library (fopencookie), which know its mode. */
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
    int fd; /* of node 0, and in async mode of each node; or -1 */
    bool reads, writes, standard;
    char *path; /* to be opened by other nodes, with these flags */
    int flags;
    /* Written in multi mode, and not flushed. */
    char *pending;
    size_t used, room;
    /* Nodes that can write into the file themselves, by number, when that is known; and how this node does it, or -1. */
    unsigned char *writers;
    int own;
    /* An error of C's of this node's last part, which the others have not been told. */
    int failed;
    /* Read from the file, and not given to the program. */
    char *ahead;
    size_t from, to;
    /* The FILE is being emptied, or is to see an end: it gets nothing. */
    bool dry;
};

/* Of this library only. */
#pragma GCC visibility push(hidden)

/* stream.c */
int cubix_node(void); /* -1: this is no node; the reason was told */
int cubix_nodes(void);
int cubix_failed(int code); /* tells of an error of Regatta's; returns -1 with errno */
/* Ends the program: the others wait for this node, and hear that it is gone. */
_Noreturn void cubix_give_up(const char *why);
struct stream *cubix_find(FILE *file);
struct stream *cubix_first(void);
struct stream *cubix_make(int fd, bool reads, bool writes, bool appends);
void cubix_forget(struct stream *stream);

/* output.c */
int cubix_write_all(int fd, const char *bytes, size_t len);
int cubix_keep(struct stream *stream, const char *bytes, size_t len);
/* Writes what all nodes have, in their order. Each has written its own part then, and all have if they `wait`; failures of others that this node has not
 * waited for are told by the next one. */
int cubix_flush_together(struct stream *stream, bool wait);
/* As fflush, of one stream. */
int cubix_flush_one(FILE *file, bool wait);
void cubix_drop_pending(struct stream *stream);
/* Length of the next piece of what was kept, and what is done with a piece that has been written: its memory goes back to the kernel, for which that is
 * quicker to write the next one to than memory that is new. */
size_t cubix_piece(const struct stream *stream, size_t from);
void cubix_give_back(const struct stream *stream, size_t from, size_t len);

/* parts.c */
/* Where each node's part of a flush goes: all nodes know. */
struct parts {
    off64_t at; /* in the file; negative: node 0 writes all of it, where it is */
    size_t *lens, *offsets, whole;
};

int cubix_write_apart(struct stream *stream, const struct parts *parts);

/* input.c */
ssize_t cubix_take(struct stream *stream, char *to, size_t len);
ssize_t cubix_read_together(struct stream *stream, char *to, size_t len);
int cubix_save_rest(struct stream *stream);

#pragma GCC visibility pop

#endif
