/*
 * cros.h: CrOS III, the crystalline system of the Caltech hypercubes, as Regatta has it.
 *
  * Everything here is reconstructed, since no header could be found; docs/express.md lists each call. A program runs on 2^doc nodes, which are
 * started together. Channel i leads to the node whose number differs in bit i, and is named by the mask 1 << i. With a mask without a channel
 * nothing is read or written. A call that fails prints the reason on standard error and returns -1. Do not link this together with libraries that
 * have the same names, such as that of NX.
 */
#ifndef REGATTA_CROS_H
#define REGATTA_CROS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Combines the item at p2 into that at p1. Programs declare the pointers with the type of their items. */
#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ > 201710L)
typedef int (*croscombiner)(void *p1, void *p2, int size);
#else
typedef int (*croscombiner)();
#endif

struct cubenv {
    int doc;      /* the dimension of the cube */
    int procnum;  /* number of this node, from 0 */
    int nproc;    /* number of nodes */
    int cpmask;   /* the channel to the host program, if another task has started this one */
    int cubemask; /* all channels to nodes */
};

int cparam(struct cubenv *environment);

/* Return the number of bytes written or read. A read is from one channel, and forwards the message to the channels in `forward`. */
int cwrite(const void *buf, int channels, int len);
int cread(void *buf, int channel, int forward, int len);
int cshift(void *ibuf, int ichannel, int ilen, const void *obuf, int ochannels, int olen);
/* Items of `size` bytes; consecutive items start `offset` bytes apart. */
int vwrite(const void *buf, int channels, int size, int offset, int items);
int vread(void *buf, int channel, int forward, int size, int offset, int items);
int vshift(void *ibuf, int ichannel, int isize, int ioffset, int iitems, const void *obuf, int ochannels,
           int osize, int ooffset, int oitems);

/* All nodes call these in the same order; a broadcast is called by the nodes to which its channels lead. */
int broadcast(void *buf, int src, int channels, int len);
int combine(void *buf, croscombiner func, int size, int items);
int concat(const void *mybuf, int mylen, void *buf, int buflen, int *sizes);

/* A grid of rings, each of a power of two of nodes. gridchan returns the channel to a neighbour, in direction dir (up or down). */
int gridinit(int ndim, const int *num);
int gridcoord(int node, int *coord);
int gridproc(const int *coord);
int gridchan(int node, int dim, int dir);

/* The crystal router. The buffer has records, each a crystal_head and `len` bytes, padded to a multiple of 8. The call sends them to their nodes
 * and replaces them by the records for this node, each with its sender and sorted by it. Returns the number of bytes of these records. */
struct crystal_head {
    int node;
    int len;
};
int crystal_router(void *buf, int len, int room);

#ifdef __cplusplus
}
#endif
#endif
