/*
 * cros.h: CrOS III, the crystalline system of the Caltech hypercubes, as Regatta has it.
 *
 * All of it is reconstructed: no header could be found, and docs/express.md says so of each call. A program is of 2^doc nodes, which are
 * started together. Channel i leads to the node whose number differs in bit i, and is named by the mask 1 << i; a mask of no channel is nobody, so
 * nothing is read or written. A call returns -1 when it has failed, and has said why on standard error. Not to be linked beside libraries that
 * have the same names, such as that of NX.
 */
#ifndef REGATTA_CROS_H
#define REGATTA_CROS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Combines the item at p2 into that at p1. Programs declare what they point to as what it is. */
#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ > 201710L)
typedef int (*croscombiner)(void *p1, void *p2, int size);
#else
typedef int (*croscombiner)();
#endif

struct cubenv {
    int doc;      /* the dimension of the cube */
    int procnum;  /* which node this is, from 0 */
    int nproc;    /* how many there are */
    int cpmask;   /* the channel to the host program, if tasks have started this one */
    int cubemask; /* all channels to nodes */
};

int cparam(struct cubenv *environment);

/* Return how many bytes were written or read. A read is from one channel, and writes what came to those of `forward`. */
int cwrite(const void *buf, int channels, int len);
int cread(void *buf, int channel, int forward, int len);
int cshift(void *ibuf, int ichannel, int ilen, const void *obuf, int ochannels, int olen);
/* Items of `size` bytes, the first bytes of two of them `offset` bytes apart. */
int vwrite(const void *buf, int channels, int size, int offset, int items);
int vread(void *buf, int channel, int forward, int size, int offset, int items);
int vshift(void *ibuf, int ichannel, int isize, int ioffset, int iitems, const void *obuf, int ochannels,
           int osize, int ooffset, int oitems);

/* All nodes call these in the same order; a broadcast those that its channels lead to. */
int broadcast(void *buf, int src, int channels, int len);
int combine(void *buf, croscombiner func, int size, int items);
int concat(const void *mybuf, int mylen, void *buf, int buflen, int *sizes);

/* A grid of rings of which each has a power of two of nodes. gridchan gives the channel to a neighbour, dir up or down. */
int gridinit(int ndim, const int *num);
int gridcoord(int node, int *coord);
int gridproc(const int *coord);
int gridchan(int node, int dim, int dir);

/* The crystal router: the buffer has records, each a crystal_head and `len` bytes, filled up to a multiple of 8. They go to their nodes, and those
 * for this node take their place, each with its sender, ordered by it. Returns how many bytes they are. */
struct crystal_head {
    int node;
    int len;
};
int crystal_router(void *buf, int len, int room);

#ifdef __cplusplus
}
#endif
#endif
