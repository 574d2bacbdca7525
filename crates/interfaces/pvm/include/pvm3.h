/*
 * pvm3.h: the C interface of PVM 3.4, as Regatta has it.
 *
  * Names, values and signatures are those of PVM 3.4.6, so that its programs compile and object files
 * compiled with its header are compatible. PVM's manual describes each function; docs/pvm.md lists
 * the differences of Regatta.
 */
#ifndef _PVM3_H_
#define _PVM3_H_

#include <sys/time.h>

#define PVM_VER "3.4.6"
#define PVM_MAJOR_VERSION 3
#define PVM_MINOR_VERSION 4
#define PVM_PATCH_VERSION 6

/* ---- encodings of messages: pvm_initsend, pvm_mkbuf ----------------------------------------- */

#define PvmDataDefault 0 /* XDR */
#define PvmDataRaw 1     /* as in memory */
#define PvmDataInPlace 2 /* not copied until it is sent */
#define PvmDataFoo PvmDataDefault
#define PvmDataTrace 4 /* for tracers: each item with its type */

/* ---- pvm_spawn: where and how ---------------------------------------------------------------- */

#define PvmTaskDefault 0
#define PvmTaskHost 1       /* on the named host */
#define PvmTaskArch 2       /* on hosts of the named architecture */
#define PvmTaskDebug 4      /* under a debugger */
#define PvmTaskTrace 8      /* with events for a tracer */
#define PvmMppFront 16      /* on the front end of a machine that has one */
#define PvmHostCompl 32     /* on all hosts but the named ones */
#define PvmNoSpawnParent 64 /* the tasks have no parent */

/* ---- kinds of pvm_notify ----------------------------------------------------------------------- */

#define PvmTaskExit 1       /* a task ends */
#define PvmHostDelete 2     /* a host is lost or deleted */
#define PvmHostAdd 3        /* hosts are added */
#define PvmRouteAdd 4       /* a direct route to a task is opened */
#define PvmRouteDelete 5    /* a direct route to a task is closed */
#define PvmNotifyCancel 256 /* added to a kind: cancel the notification */

/* ---- pvm_setopt, pvm_getopt ------------------------------------------------------------------- */

#define PvmRoute 1       /* the route of messages */
#define PvmDontRoute 1   /* for PvmRoute: never direct */
#define PvmAllowDirect 2 /* for PvmRoute: direct if the other task requests it */
#define PvmRouteDirect 3 /* for PvmRoute: direct */
#define PvmDebugMask 2
#define PvmAutoErr 3     /* failing calls: 0 silent, 1 a line, 2 exit, 3 abort */
#define PvmOutputTid 4   /* the task that gets the output of children */
#define PvmOutputCode 5  /* the tag of these messages */
#define PvmTraceTid 6    /* the task that gets the events of children */
#define PvmTraceCode 7   /* the tag of these messages */
#define PvmTraceBuffer 8 /* number of bytes of events that are buffered */
#define PvmTraceOptions 9
#define PvmTraceFull 1  /* for PvmTraceOptions: complete events */
#define PvmTraceTime 2  /* for PvmTraceOptions: only the time of calls */
#define PvmTraceCount 3 /* for PvmTraceOptions: only the number of calls */
#define PvmFragSize 10  /* bytes of a piece of a message */
#define PvmResvTids 11  /* allow reserved tids and tags */
#define PvmSelfOutputTid 12 /* from here to 17: the same for this task itself */
#define PvmSelfOutputCode 13
#define PvmSelfTraceTid 14
#define PvmSelfTraceCode 15
#define PvmSelfTraceBuffer 16
#define PvmSelfTraceOptions 17
#define PvmShowTids 18 /* pvm_catchout writes the tid before each line */
#define PvmPollType 19 /* how to wait in shared memory */
#define PvmPollConstant 1
#define PvmPollSleep 2
#define PvmPollTime 20
#define PvmOutputContext 21 /* contexts of output and events */
#define PvmTraceContext 22
#define PvmSelfOutputContext 23
#define PvmSelfTraceContext 24
#define PvmNoReset 25 /* a reset does not kill this task */

/* ---- pvm_settmask, pvm_gettmask: the owner of the mask ----------------------------------------- */

#define PvmTaskSelf 0
#define PvmTaskChild 1

/* The initial context of tasks. */
#define PvmBaseContext 0

/* ---- mailboxes: pvm_putinfo, pvm_recvinfo, pvm_delinfo ---------------------------------------- */

#define PvmMboxDefault 0
#define PvmMboxPersistent 1    /* the entry outlives its owner */
#define PvmMboxMultiInstance 2 /* a name may have several entries */
#define PvmMboxOverWritable 4  /* others may replace and delete it */
#define PvmMboxFirstAvail 8    /* the first entry at or after the index */
#define PvmMboxReadAndDelete 16
#define PvmMboxWaitForInfo 32 /* wait until there is an entry */
#define PvmMboxMaxFlag 512

/* An index among the flags of pvm_putinfo; an index that is too large counts as no index. */
#define PvmMboxDirectIndexShift 10
#define PvmMboxMaxDirectIndex ((unsigned)1 << (31 - PvmMboxDirectIndexShift))
#define PvmMboxDirectIndex(index) \
    ((unsigned)(index) >= PvmMboxMaxDirectIndex ? 0 : (int)((unsigned)(index) << PvmMboxDirectIndexShift))
#define PvmMboxDirectIndexOf(flags) \
    (((flags) & ((PvmMboxMaxDirectIndex - 1) << PvmMboxDirectIndexShift)) >> PvmMboxDirectIndexShift)

/* Names under which the system's own tasks are registered. */
#define PVMNORESETCLASS "###_PVM_NO_RESET_###"
#define PVMHOSTERCLASS "###_PVM_HOSTER_###"
#define PVMTASKERCLASS "###_PVM_TASKER_###"
#define PVMTRACERCLASS "###_PVM_TRACER_###"
#define PVMRMCLASS "###_PVM_RM_###"

/* ---- errors ------------------------------------------------------------------------------------ */

#define PvmOk 0
#define PvmBadParam -2      /* an argument is invalid */
#define PvmMismatch -3      /* arguments do not fit together */
#define PvmOverflow -4      /* a value does not fit its encoding */
#define PvmNoData -5        /* end of the message */
#define PvmNoHost -6        /* no such host */
#define PvmNoFile -7        /* no such program */
#define PvmDenied -8        /* not allowed */
#define PvmNoMem -10        /* out of memory */
#define PvmBadMsg -12       /* a message that cannot be decoded here */
#define PvmSysErr -14       /* the virtual machine does not answer */
#define PvmNoBuf -15        /* no current buffer */
#define PvmNoSuchBuf -16    /* no buffer of this number */
#define PvmNullGroup -17    /* the group has no name */
#define PvmDupGroup -18     /* in the group already */
#define PvmNoGroup -19      /* no such group */
#define PvmNotInGroup -20   /* not in the group */
#define PvmNoInst -21       /* the group has no such instance */
#define PvmHostFail -22     /* a host was lost */
#define PvmNoParent -23     /* no parent */
#define PvmNotImpl -24      /* not implemented */
#define PvmDSysErr -25      /* the virtual machine failed */
#define PvmBadVersion -26   /* incompatible versions */
#define PvmOutOfRes -27     /* a resource is used up */
#define PvmDupHost -28      /* the host is already in the machine */
#define PvmCantStart -29    /* the daemon cannot be started on the host */
#define PvmAlready -30      /* already in progress */
#define PvmNoTask -31       /* no such task */
#define PvmNotFound -32     /* no entry has this name */
#define PvmExists -33       /* an entry has this name already */
#define PvmHostrNMstr -34   /* a hoster must run on the first host */
#define PvmParentNotSet -35 /* the parent spawned with PvmNoSpawnParent */
#define PvmIPLoopback -36   /* the first host has a loopback address only */

#define PvmNoEntry PvmNotFound /* the names in PVM 3.3 */
#define PvmDupEntry PvmDenied

/* ---- types of data: pvm_psend, pvm_precv, pvm_reduce, ... -------------------------------------- */

#define PVM_STR 0
#define PVM_BYTE 1
#define PVM_SHORT 2
#define PVM_INT 3
#define PVM_FLOAT 4
#define PVM_CPLX 5
#define PVM_DOUBLE 6
#define PVM_DCPLX 7
#define PVM_LONG 8
#define PVM_USHORT 9
#define PVM_UINT 10
#define PVM_ULONG 11

/* ---- results of calls --------------------------------------------------------------------------- */

struct pvmhostinfo { /* pvm_config */
    int hi_tid;      /* number of the host */
    char *hi_name;
    char *hi_arch;
    int hi_speed; /* the default is 1000 */
    int hi_dsig;  /* signature of its data types */
};

struct pvmtaskinfo { /* pvm_tasks */
    int ti_tid;
    int ti_ptid; /* parent */
    int ti_host; /* number of its host */
    int ti_flag; /* state */
    char *ti_a_out;
    int ti_pid;
};

struct pvmminfo { /* pvm_getminfo, pvm_setminfo */
    int len;
    int ctx;
    int tag;
    int wid; /* a number that distinguishes replies */
    int enc;
    int crc;
    int src;
    int dst;
};

struct pvmmboxinfo { /* pvm_getmboxinfo */
    char *mi_name;
    int mi_nentries; /* length of these three arrays */
    int *mi_indices;
    int *mi_owners;
    int *mi_flags;
};

/* ---- names of temporary files -------------------------------------------------------------------- */

#ifdef NOTMPNAM
#define PVMTMPNAMFUN(x) pvmtmpnam(x)
#define PVMTMPNAMLEN 128
#else
#define PVMTMPNAMFUN(x) tmpnam(x)
#ifdef L_tmpnam
#define PVMTMPNAMLEN L_tmpnam
#else
#define PVMTMPNAMLEN 128
#endif
#endif

/* ---- functions ------------------------------------------------------------------------------------ */

/* Some programs declare their own functions with this macro. */
#undef __ProtoGlarp__
#define __ProtoGlarp__(arguments) arguments

#ifdef __cplusplus
extern "C" {
#endif

/* This task, its family, other tasks */
int pvm_mytid(void);
int pvm_exit(void);
int pvm_parent(void);
int pvm_siblings(int **tids);
int pvm_spawn(char *task, char **argv, int flag, char *where, int ntask, int *tids);
int pvm_kill(int tid);
int pvm_sendsig(int tid, int signum);
int pvm_pstat(int tid);
int pvm_tasks(int where, int *ntask, struct pvmtaskinfo **tasks);
int pvm_tidtohost(int tid);
int pvm_notify(int what, int tag, int count, int *tids);
int pvm_export(char *name);
int pvm_unexport(char *name);
#if defined(EOF) /* if <stdio.h> was included */
int pvm_catchout(FILE *file);
#endif

/* The virtual machine */
int pvm_addhosts(char **hosts, int nhost, int *infos);
int pvm_delhosts(char **hosts, int nhost, int *infos);
int pvm_config(int *nhost, int *narch, struct pvmhostinfo **hosts);
int pvm_mstat(char *host);
int pvm_halt(void);
int pvm_start_pvmd(int argc, char **argv, int block);
int pvm_hostsync(int host, struct timeval *remote, struct timeval *difference);
int pvm_archcode(char *arch);
int pvm_tickle(int narg, int *args, int *nresult, int *results);
char *pvm_version(void);

/* Settings and errors */
int pvm_setopt(int what, int value);
int pvm_getopt(int what);
int pvm_perror(char *what);
char *pvm_strerror(void);
int pvm_getfds(int **fds);

/* Buffers */
int pvm_mkbuf(int encoding);
int pvm_initsend(int encoding);
int pvm_freebuf(int bufid);
int pvm_getsbuf(void);
int pvm_setsbuf(int bufid);
int pvm_getrbuf(void);
int pvm_setrbuf(int bufid);
int pvm_bufinfo(int bufid, int *bytes, int *tag, int *tid);
int pvm_getminfo(int bufid, struct pvmminfo *info);
int pvm_setminfo(int bufid, struct pvmminfo *info);

/* Packing */
int pvm_packf(const char *format, ...);
int pvm_pkbyte(char *items, int count, int stride);
int pvm_pkcplx(float *items, int count, int stride);
int pvm_pkdcplx(double *items, int count, int stride);
int pvm_pkdouble(double *items, int count, int stride);
int pvm_pkfloat(float *items, int count, int stride);
int pvm_pkint(int *items, int count, int stride);
int pvm_pklong(long *items, int count, int stride);
int pvm_pkshort(short *items, int count, int stride);
int pvm_pkstr(char *text);
int pvm_pkuint(unsigned int *items, int count, int stride);
int pvm_pkulong(unsigned long *items, int count, int stride);
int pvm_pkushort(unsigned short *items, int count, int stride);
int pvm_pkmesg(int bufid);
int pvm_pkmesgbody(int bufid);

/* Unpacking */
int pvm_unpackf(const char *format, ...);
int pvm_upkbyte(char *items, int count, int stride);
int pvm_upkcplx(float *items, int count, int stride);
int pvm_upkdcplx(double *items, int count, int stride);
int pvm_upkdouble(double *items, int count, int stride);
int pvm_upkfloat(float *items, int count, int stride);
int pvm_upkint(int *items, int count, int stride);
int pvm_upklong(long *items, int count, int stride);
int pvm_upkshort(short *items, int count, int stride);
int pvm_upkstr(char *text);
int pvm_upkuint(unsigned int *items, int count, int stride);
int pvm_upkulong(unsigned long *items, int count, int stride);
int pvm_upkushort(unsigned short *items, int count, int stride);
int pvm_upkmesg(void);

/* Sending and receiving */
int pvm_send(int tid, int tag);
int pvm_mcast(int *tids, int ntask, int tag);
int pvm_psend(int tid, int tag, void *data, int count, int type);
int pvm_recv(int tid, int tag);
int pvm_nrecv(int tid, int tag);
int pvm_trecv(int tid, int tag, struct timeval *timeout);
int pvm_probe(int tid, int tag);
int pvm_precv(int tid, int tag, void *data, int count, int type, int *from, int *as, int *length);
int (*pvm_recvf(int (*match)(int bufid, int tid, int tag)))(int, int, int);

/* Not in PVM 3.4: typed data from memory to memory, each stride-th item, without a buffer. Can be combined with
 * all other calls; *length is in bytes. */
int pvm_fsend(int tid, int tag, void *data, int count, int stride, int type);
int pvm_frecv(int tid, int tag, void *data, int count, int stride, int type, int *from, int *as, int *length);

/* Contexts, handlers of messages, mailboxes */
int pvm_newcontext(void);
int pvm_setcontext(int context);
int pvm_getcontext(void);
int pvm_freecontext(int context);
int pvm_addmhf(int tid, int tag, int context, int (*handler)(int bufid));
int pvm_delmhf(int handler);
int pvm_putinfo(char *name, int bufid, int flags);
int pvm_recvinfo(char *name, int index, int flags);
int pvm_delinfo(char *name, int index, int flags);
int pvm_getmboxinfo(char *pattern, int *nclass, struct pvmmboxinfo **infos);
int pvm_insert(char *name, int index, int data);
int pvm_lookup(char *name, int index, int *data);
int pvm_delete(char *name, int index);

/* Groups (libgpvm3) */
int pvm_joingroup(char *group);
int pvm_lvgroup(char *group);
int pvm_gsize(char *group);
int pvm_gettid(char *group, int instance);
int pvm_getinst(char *group, int tid);
int pvm_barrier(char *group, int count);
int pvm_bcast(char *group, int tag);
int pvm_freezegroup(char *group, int size);
int pvm_reduce(void (*combine)(int *, void *, void *, int *, int *), void *data, int count, int type,
               int tag, char *group, int root);
int pvm_gather(void *result, void *data, int count, int type, int tag, char *group, int root);
int pvm_scatter(void *result, void *data, int count, int type, int tag, char *group, int root);
void PvmMax(int *type, void *inout, void *in, int *count, int *info);
void PvmMin(int *type, void *inout, void *in, int *count, int *info);
void PvmSum(int *type, void *inout, void *in, int *count, int *info);
void PvmProduct(int *type, void *inout, void *in, int *count, int *info);

/* Tasks that serve the virtual machine */
int pvm_reg_hoster(void);
int pvm_reg_tasker(void);
int pvm_reg_rm(struct pvmhostinfo **hosts);
int pvm_reg_tracer(int tracectx, int tracetag, int outputctx, int outputtag, char *mask, int buffer,
                   int options);
int pvm_getnoresets(int **tids, int *ntids);

/* Helpers */
char *pvmgetrsh(void);
char *pvmgettmp(void);
#ifdef NOTMPNAM
char *pvmtmpnam(char *name);
#endif

#ifdef PVM33COMPAT /* replaced by pvm_getminfo and pvm_setminfo */
int pvm_getmwid(int bufid);
int pvm_setmwid(int bufid, int wid);
#endif

#ifdef __cplusplus
}
#endif

#endif
