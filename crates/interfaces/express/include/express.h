/*
 * express.h: the C interface of ParaSoft's Express, as Regatta has it.
 *
  * No original header of Express could be found. docs/express.md says for each call what is attested, what follows from that,
 * and what is reconstructed.
 *
 * Nodes are numbered from 0. Programs name a node and a type of messages by the addresses of numbers; where a call reads
 * a message, they may be DONTCARE, and then become the node and the type of the message that was read. A call that fails prints the reason on
 * standard error and returns -1. One thread at a time may be in a call.
 */
#ifndef REGATTA_EXPRESS_H
#define REGATTA_EXPRESS_H

#ifdef __cplusplus
extern "C" {
#endif

#define DONTCARE (-1) /* any node, any type */
#define NONODE (-2)   /* no neighbour: writes to it do nothing, and reads from it give 0 bytes */
#define HOST (-3)     /* the host program */
#define ALLNODES (-4) /* in place of a number of nodes: all nodes, ignoring the list */
#define ALLPROCS (-5) /* in place of a number of nodes: all nodes and the host program */
#define NULLPTR ((void *)0)

/* Functions of the program. A combiner, func(p1, p2, size), combines the item at p2 into that at p1. A handler, func(src, type, len),
 * reads the message with these values. Programs declare the pointers with the type of their items. */
#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ > 201710L)
typedef int (*excombiner)(void *p1, void *p2, int size);
typedef int (*exhandler)(int *src, int *type, int len);
#else
typedef int (*excombiner)();
typedef int (*exhandler)();
#endif

/* ---- a program and its nodes ----------------------------------------------------------------- */

struct nodenv {
    int procnum; /* number of this node, from 0 */
    int nprocs;  /* number of nodes */
    int host;    /* the number of the host program: HOST */
    int taskid;  /* id of the Regatta task */
};

int exinit(void);
int exparam(struct nodenv *environment);

/* ---- messages -------------------------------------------------------------------------------- */

/* Return the number of bytes written or read. */
int exwrite(const void *buf, int len, const int *dest, const int *type);
int exread(void *buf, int len, int *src, int *type);
/* Writes obuf, then reads ibuf; returns the number of bytes read. */
int exchange(void *ibuf, int ilen, int *src, int *itype, const void *obuf, int olen, const int *dest,
             const int *otype);
/* Return the length of the message that exread would read, or -1 if none has arrived. */
int extest(int *src, int *type);
int exprobe(int *src, int *type);

/* Items of `size` bytes; consecutive items start `offset` bytes apart. */
int exvwrite(const void *buf, int size, int offset, int items, const int *dest, const int *type);
int exvread(void *buf, int size, int offset, int items, int *src, int *type);
int exvchange(void *ibuf, int isize, int ioffset, int iitems, int *src, int *itype, const void *obuf,
              int osize, int ooffset, int oitems, const int *dest, const int *otype);

/* Start the operation and return at once. *status is EXPENDING until the buffer belongs to the program again, then the length of the
 * message, or EXFAILED. It changes in later calls of this library, which then also set *src and *type. */
#define EXPENDING (-1)
#define EXFAILED (-2)
int exsend(const void *buf, int len, const int *dest, const int *type, int *status);
int exreceive(void *buf, int len, int *src, int *type, int *status);
/* Waits until *status has changed, and returns it. An addition of Regatta. */
int exwait(int *status);

/* Registers func, which is called for each message of this node and type from within calls of this library. NULLPTR for the same node and
 * type removes it. The part of a message that func has not read when it returns is discarded. */
int exhandle(exhandler func, const int *src, const int *type);

/* ---- all nodes, or a list of them ------------------------------------------------------------- */

/* Every node of the list calls these, all in the same order. */
int exbroadcast(void *buf, int origin, int len, int nnodes, const int *nodelist, const int *type);
int excombine(void *buf, excombiner func, int size, int items, int nnodes, const int *nodelist,
              const int *type);
/* sizes, if it is not NULLPTR, has an entry for each node of the list. Returns the total length. */
int exconcat(const void *mybuf, int mylen, void *buf, int buflen, int *sizes, int nnodes,
             const int *nodelist, const int *type);
int exsync(void);

/* ---- semaphores: counts that all nodes share ------------------------------------------------- */

/* A semaphore is named by a number from 0 on, and its count is initially 0. A positive `change` is added to the count; -1 waits until the count is
 * above 0, and subtracts one; 0 changes nothing. Returns 0, or for a change of 0 the count. */
int exsemaphore(int semaphore, int change);

/* ---- host programs ------------------------------------------------------------------------------ */

/* Called by the program that becomes HOST. The device and the first node have no effect; exopen returns a number for the nodes. */
int exopen(const char *device, int nprocs, int first);
/* Starts a program on all of these nodes; from then on the host program can exchange messages with them. */
int exload(int nodes, const char *program);
/* A loaded program runs at once: these only check that there is one. */
int exstart(int nodes, int node);
int exmain(int nodes, int node);
/* Releases the nodes. A program that still runs on them may go on running. */
int exclose(int nodes);

/* ---- grids of nodes, and the parts of a domain ------------------------------------------------- */

/* nprocs: number of nodes along each dimension. Node 0 is at the origin, and the first coordinate varies fastest. */
int exgridinit(int ndim, const int *nprocs);
/* For each dimension: 1 closes it to a ring, 0 opens it. Initially all are open. */
int exgridbc(const int *periodic);
int exgridcoord(int node, int *coord);
/* Returns a node, or NONODE outside of the grid. */
int exgridproc(const int *coord);
int exgridnode(int node, int dim, int dist);
/* Along each dimension: the number of points of the domain that belong to the node, and the first of them. */
int exgridsize(int node, const int *global, int *local, int *start);
/* Computes a good shape for this number of nodes. */
int exgridsplit(int nprocs, int ndim, int *nums);

#ifdef __cplusplus
}
#endif
#endif
