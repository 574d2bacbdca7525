/*
 * express.h: the C interface of ParaSoft's Express, as Regatta has it.
 *
 * No header of Express' own could be found. docs/express.md says of each call what is attested, what follows from that,
 * and what is reconstructed.
 *
 * Nodes are numbered from 0. Programs name a node and a type of messages by the addresses of numbers; where a call reads
 * a message, they may be DONTCARE, and then become the node and the type of the message that was read. A call returns -1 when it has failed,
 * and has said why on standard error. One thread at a time may be in a call.
 */
#ifndef REGATTA_EXPRESS_H
#define REGATTA_EXPRESS_H

#ifdef __cplusplus
extern "C" {
#endif

#define DONTCARE (-1) /* any node, any type */
#define NONODE (-2)   /* a neighbour that is not there: nothing is written to it, and reads from it have 0 bytes */
#define HOST (-3)     /* the host program */
#define ALLNODES (-4) /* in place of a number of nodes: all of them, whatever the list */
#define ALLPROCS (-5) /* likewise: all of them, and the host program */
#define NULLPTR ((void *)0)

/* Functions of a program's: a combiner, func(p1, p2, size), combines the item at p2 into that at p1; a handler, func(src, type, len),
 * reads the message of which it is told. Programs declare what they point to as what it is. */
#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ > 201710L)
typedef int (*excombiner)(void *p1, void *p2, int size);
typedef int (*exhandler)(int *src, int *type, int len);
#else
typedef int (*excombiner)();
typedef int (*exhandler)();
#endif

/* ---- a program and its nodes ----------------------------------------------------------------- */

struct nodenv {
    int procnum; /* which node this is, from 0 */
    int nprocs;  /* how many there are */
    int host;    /* the number of the host program: HOST */
    int taskid;  /* the number of Regatta's task */
};

int exinit(void);
int exparam(struct nodenv *environment);

/* ---- messages -------------------------------------------------------------------------------- */

/* Return how many bytes were written or read. */
int exwrite(const void *buf, int len, const int *dest, const int *type);
int exread(void *buf, int len, int *src, int *type);
/* Write obuf, then read ibuf; returns how many bytes were read. */
int exchange(void *ibuf, int ilen, int *src, int *itype, const void *obuf, int olen, const int *dest,
             const int *otype);
/* How long is the message that exread would read? -1: none has come. */
int extest(int *src, int *type);
int exprobe(int *src, int *type);

/* Items of `size` bytes, the first bytes of two of them `offset` bytes apart. */
int exvwrite(const void *buf, int size, int offset, int items, const int *dest, const int *type);
int exvread(void *buf, int size, int offset, int items, int *src, int *type);
int exvchange(void *ibuf, int isize, int ioffset, int iitems, int *src, int *itype, const void *obuf,
              int osize, int ooffset, int oitems, const int *dest, const int *otype);

/* Begin, and return at once. *status is EXPENDING until the buffer belongs to the program again, then the length of the message,
 * or EXFAILED. It changes in later calls of this library, and src and type then, too. */
#define EXPENDING (-1)
#define EXFAILED (-2)
int exsend(const void *buf, int len, const int *dest, const int *type, int *status);
int exreceive(void *buf, int len, int *src, int *type, int *status);
/* Regatta's own: wait until *status has changed; returns it. */
int exwait(int *status);

/* Have func called for each message of this node and type, from within calls of this library, until NULLPTR is given for the same two.
 * Of what it has not read when it returns nothing is left. */
int exhandle(exhandler func, const int *src, const int *type);

/* ---- all nodes, or a list of them ------------------------------------------------------------- */

/* Every node of the list calls these, all in the same order. */
int exbroadcast(void *buf, int origin, int len, int nnodes, const int *nodelist, const int *type);
int excombine(void *buf, excombiner func, int size, int items, int nnodes, const int *nodelist,
              const int *type);
/* sizes, if it is not NULLPTR, has a place for each node of the list. Returns the length of the whole. */
int exconcat(const void *mybuf, int mylen, void *buf, int buflen, int *sizes, int nnodes,
             const int *nodelist, const int *type);
int exsync(void);

/* ---- counts that all nodes share ------------------------------------------------------------- */

/* A semaphore is named by a number from 0 on, and its count begins with 0. `change` is added to it if it is positive; -1 waits until the count is
 * more than 0, and takes one; 0 changes nothing. Returns 0, or for a change of 0 the count. */
int exsemaphore(int semaphore, int change);

/* ---- a program on the host, beside that of the nodes -------------------------------------------- */

/* Called by the program that is to be HOST. The device and the first node say nothing here; exopen returns a number for the nodes. */
int exopen(const char *device, int nprocs, int first);
/* Start a program on all of them; from then on the host program talks with them. */
int exload(int nodes, const char *program);
/* A loaded program runs: these only look whether there is one. */
int exstart(int nodes, int node);
int exmain(int nodes, int node);
/* Give them back. A program that still runs there ends when it likes. */
int exclose(int nodes);

/* ---- grids of nodes, and the parts of a domain ------------------------------------------------- */

/* nprocs has the number of nodes along each dimension; node 0 is at the origin, and the first coordinate changes fastest. */
int exgridinit(int ndim, const int *nprocs);
/* For each dimension: is it closed to a ring? Until then none is. */
int exgridbc(const int *periodic);
int exgridcoord(int node, int *coord);
/* A node, or NONODE outside of the grid. */
int exgridproc(const int *coord);
int exgridnode(int node, int dim, int dist);
/* Along each dimension: how many points of the domain are the node's, and which is its first. */
int exgridsize(int node, const int *global, int *local, int *start);
/* A good shape for so many nodes. */
int exgridsplit(int nprocs, int ndim, int *nums);

#ifdef __cplusplus
}
#endif
#endif
