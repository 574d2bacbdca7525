/*
 * nx.h: the C interface of Intel's NX (iPSC/2, iPSC/860, Touchstone Delta, Paragon), as Regatta has it.
 *
 * GRAMMAR
 *
  *  Numbers    All integers are `long`, including vectors (gi...) and the information arrays. A vector of `int` does not
 *             fit on a 64-bit machine.
 *  Processes  A process has a node (0 .. numnodes() - 1) and a pid, which the Paragon calls ptype. Node -1 stands for all
  *             nodes but the caller's. The host has the number that follows the last node's.
 *  Types      A message has a type: 0 .. 999999999 for programs, FORCE_TYPE .. 1999999999 for force types. A receive
  *             selects by a type, by -1 (any type that is not a force type), or by a mask: a negative number whose bits 0 .. 29
 *             select these types and whose bit 30 selects all larger types that are not force types.
 *  Lengths    are in bytes; those of global operations are in elements.
 *  c... i...  An operation whose name begins with c is complete when the call returns. One that begins with i only starts
 *             the operation and returns an id: the program's memory is in use until msgwait or msgdone has reported that
 *             the operation with this id is complete.
 *  Errors     A failing call by its plain name prints the error and ends the program. The same call with an underscore
 *             before its name sets errno (EQ... below) and returns -1. Calls that begin with nx_ have one name: they set
 *             errno and return -1.
 *
 * The page docs/nx.md says how certain each call is.
 */
#ifndef REGATTA_NX_H
#define REGATTA_NX_H

#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FORCE_TYPE 0x40000000
#define INVALID_PTYPE (-1)
#define HOST myhost()
#define HWHZ 10000000

/* Functions of the program may be declared with any arguments. */
#ifdef __cplusplus
#define NX_ANY_ARGUMENTS_ ...
#else
#define NX_ANY_ARGUMENTS_
#endif

/* ---- values of errno ----------------------------------------------------------------------- */

#define EQDRVERR 150  /* an error of Regatta or the system */
#define EQPBUF 151    /* no buffer, or an invalid one */
#define EQBLEN 152    /* the buffer is longer than its memory */
#define EQLEN 153     /* a negative length, or a result longer than its buffer */
#define EQTIME 154    /* timeout */
#define EQMSGLONG 155 /* the message is longer than the buffer; it can still be received */
#define EQPID 156     /* invalid pid */
#define EQNODE 157    /* there is no such node */
#define EQTYPE 158    /* invalid type */
#define EQMID 159     /* no started operation has this id */
#define EQHND 160     /* there is no handler */
#define EQNOPROC 161  /* no more processes can be started */
#define EQUSEPID 162  /* another process has this pid */
#define EQNOACT 163   /* there is no such process, or it is gone */
#define EQBADFIL 164  /* the file cannot be executed */
#define EQPARAM 165   /* an argument is not valid */
#define EQPFIL 166    /* the name of the file is missing */
#define EQPCNODE 167  /* the pointer for the node is NULL */
#define EQPCPID 168   /* the pointer for the pid is NULL */
#define EQPCCODE 169  /* the pointer for the code is NULL */
#define EQPRIV 170    /* the call is only for hosts, or only for nodes */
#define EQMEM 171     /* memory is used up, or senders wait for each other in a cycle */
#define EQNOMID 174   /* 65535 messages are pending */
#define EQSET 175     /* the pid is already set */
#define EQNOSET 176   /* the pid has not been set */
#define EQCUBEEXISTS 178   /* a cube with processes exists already */
#define EQCUBENOTEXIST 179 /* there is no such cube */
#define ENFPS 210 /* the nodes have different positions in the file */
#define EMIXIO 211 /* the nodes make different calls on the file */
#define EIMODE 212 /* there is no such mode */
#define ERDEOF 219 /* end of file */
#define EAEXIST 220     /* an application exists already */
#define EANOEXIST 221   /* there is no such application */
#define EPINVALPART 222 /* there is no such partition, or the name is invalid */
#define EPPARTEXIST 223 /* such a partition exists already */
#define EPALLOCERR 224  /* the partition has fewer nodes */
#define EPINVALPRI 225  /* invalid priority */
#define EPNOTEMPTY 226  /* the partition is not empty */
#define EPACCES 227     /* this partition is the whole job and cannot be changed */
#define EPBADNODE 228   /* the partition has no such node */

/* ---- nodes and pids ------------------------------------------------------------------------ */

long mynode(void);
long numnodes(void);
long mypid(void);
long myptype(void);
void setptype(long ptype);
long myhost(void);
long nodedim(void);
long mypart(long *rows, long *columns);

long _mynode(void);
long _numnodes(void);
long _mypid(void);
long _myptype(void);
long _setptype(long ptype);
long _myhost(void);
long _nodedim(void);
long _mypart(long *rows, long *columns);

/* ---- messages ------------------------------------------------------------------------------ */

void csend(long type, const void *buf, long count, long node, long ptype);
void crecv(long typesel, void *buf, long count);
/* Returns the length of the received message. */
long csendrecv(long type, const void *sbuf, long scount, long node, long ptype, long typesel, void *rbuf,
               long rcount);
void gsendx(long type, const void *buf, long count, const long nodes[], long number);

/* Return an id for msgwait, msgdone and similar calls. */
long isend(long type, const void *buf, long count, long node, long ptype);
long irecv(long typesel, void *buf, long count);
long isendrecv(long type, const void *sbuf, long scount, long node, long ptype, long typesel, void *rbuf,
               long rcount);

/* Also select by node and pid, -1 for any, and describe the message in info: type, length, node, ptype. */
void crecvx(long typesel, void *buf, long count, long nodesel, long ptypesel, long info[8]);
long irecvx(long typesel, void *buf, long count, long nodesel, long ptypesel, long info[8]);
void cprobex(long typesel, long nodesel, long ptypesel, long info[8]);
long iprobex(long typesel, long nodesel, long ptypesel, long info[8]);

/* Waits until the operation is complete, and releases the id. */
void msgwait(long mid);
/* Returns 1 and releases the id if the operation is complete, otherwise 0. */
long msgdone(long mid);
void msgcancel(long mid);
/* Releases the id; the operation continues. */
void msgignore(long mid);
/* Returns one id that replaces both ids; -1 stands for no operation. */
long msgmerge(long mid1, long mid2);

void cprobe(long typesel);
long iprobe(long typesel);
void flushmsg(long typesel, long nodesel, long ptypesel);

long _csend(long type, const void *buf, long count, long node, long ptype);
long _crecv(long typesel, void *buf, long count);
long _csendrecv(long type, const void *sbuf, long scount, long node, long ptype, long typesel, void *rbuf,
                long rcount);
long _gsendx(long type, const void *buf, long count, const long nodes[], long number);
long _isend(long type, const void *buf, long count, long node, long ptype);
long _irecv(long typesel, void *buf, long count);
long _isendrecv(long type, const void *sbuf, long scount, long node, long ptype, long typesel, void *rbuf,
                long rcount);
long _crecvx(long typesel, void *buf, long count, long nodesel, long ptypesel, long info[8]);
long _irecvx(long typesel, void *buf, long count, long nodesel, long ptypesel, long info[8]);
long _cprobex(long typesel, long nodesel, long ptypesel, long info[8]);
long _iprobex(long typesel, long nodesel, long ptypesel, long info[8]);
long _msgwait(long mid);
long _msgdone(long mid);
long _msgcancel(long mid);
long _msgignore(long mid);
long _msgmerge(long mid1, long mid2);
long _cprobe(long typesel);
long _iprobe(long typesel);
long _flushmsg(long typesel, long nodesel, long ptypesel);

/* ---- handlers -------------------------------------------------------------------------------- */

/* These return at once. When the message has arrived, or its buffer may be used again, the handler runs once, as an
 * interrupt of the program. Its arguments are type, count, node and ptype, and for the ..x forms also hparam; all are
 * long. */
void hrecv(long typesel, void *buf, long count, void (*handler)(NX_ANY_ARGUMENTS_));
void hsend(long type, const void *buf, long count, long node, long ptype, void (*handler)(NX_ANY_ARGUMENTS_));
/* The handler gets the values of the received message. */
void hsendrecv(long type, const void *sbuf, long scount, long node, long ptype, long typesel, void *rbuf,
               long rcount, void (*handler)(NX_ANY_ARGUMENTS_));
void hrecvx(long typesel, void *buf, long count, long nodesel, long ptypesel,
            void (*xhandler)(NX_ANY_ARGUMENTS_), long hparam);
void hsendx(long type, const void *buf, long count, long node, long ptype, void (*xhandler)(NX_ANY_ARGUMENTS_),
            long hparam);
/* 1 blocks handlers. 0 unblocks them; pending handlers run before the call returns. Returns the previous state. */
long masktrap(long state);

long _hrecv(long typesel, void *buf, long count, void (*handler)(NX_ANY_ARGUMENTS_));
long _hsend(long type, const void *buf, long count, long node, long ptype, void (*handler)(NX_ANY_ARGUMENTS_));
long _hsendrecv(long type, const void *sbuf, long scount, long node, long ptype, long typesel, void *rbuf,
                long rcount, void (*handler)(NX_ANY_ARGUMENTS_));
long _hrecvx(long typesel, void *buf, long count, long nodesel, long ptypesel,
             void (*xhandler)(NX_ANY_ARGUMENTS_), long hparam);
long _hsendx(long type, const void *buf, long count, long node, long ptype,
             void (*xhandler)(NX_ANY_ARGUMENTS_), long hparam);
long _masktrap(long state);

/* ---- the last message that was received or probed ------------------------------------------- */

/* Information about a message. Written by calls without an info argument; may be passed to calls that have one. */
extern long msginfo[8];

long infocount(void);
long infonode(void);
long infopid(void);
long infoptype(void);
long infotype(void);

long _infocount(void);
long _infonode(void);
long _infopid(void);
long _infoptype(void);
long _infotype(void);

/* ---- global operations ----------------------------------------------------------------------- */

/* Every node calls these; x becomes the result on each node. work is not used, and may be NULL. */
void gsync(void);

void gdsum(double x[], long n, double work[]);
void gdprod(double x[], long n, double work[]);
void gdhigh(double x[], long n, double work[]);
void gdlow(double x[], long n, double work[]);
void gssum(float x[], long n, float work[]);
void gsprod(float x[], long n, float work[]);
void gshigh(float x[], long n, float work[]);
void gslow(float x[], long n, float work[]);
void gisum(long x[], long n, long work[]);
void giprod(long x[], long n, long work[]);
void gihigh(long x[], long n, long work[]);
void gilow(long x[], long n, long work[]);
/* bitwise */
void giand(long x[], long n, long work[]);
void gior(long x[], long n, long work[]);
void gixor(long x[], long n, long work[]);
/* logical */
void gland(long x[], long n, long work[]);
void glor(long x[], long n, long work[]);
void glxor(long x[], long n, long work[]);

/* function: a commutative and associative function of two vectors, such as `long f(double *a, double *b)`, which combines
 * the second vector into the first. */
void gopf(void *x, long xlen, void *work, long (*function)(NX_ANY_ARGUMENTS_));

/* y becomes the concatenation of x of all nodes, in their order. *ncnt is its length. */
void gcol(const void *x, long xlen, void *y, long ylen, long *ncnt);
/* xlens: the lengths of all nodes' x, the same on each node. */
void gcolx(const void *x, const long xlens[], void *y);

long _gsync(void);
long _gdsum(double x[], long n, double work[]);
long _gdprod(double x[], long n, double work[]);
long _gdhigh(double x[], long n, double work[]);
long _gdlow(double x[], long n, double work[]);
long _gssum(float x[], long n, float work[]);
long _gsprod(float x[], long n, float work[]);
long _gshigh(float x[], long n, float work[]);
long _gslow(float x[], long n, float work[]);
long _gisum(long x[], long n, long work[]);
long _giprod(long x[], long n, long work[]);
long _gihigh(long x[], long n, long work[]);
long _gilow(long x[], long n, long work[]);
long _giand(long x[], long n, long work[]);
long _gior(long x[], long n, long work[]);
long _gixor(long x[], long n, long work[]);
long _gland(long x[], long n, long work[]);
long _glor(long x[], long n, long work[]);
long _glxor(long x[], long n, long work[]);
long _gopf(void *x, long xlen, void *work, long (*function)(NX_ANY_ARGUMENTS_));
long _gcol(const void *x, long xlen, void *y, long ylen, long *ncnt);
long _gcolx(const void *x, const long xlens[], void *y);

/* ---- hosts ------------------------------------------------------------------------------------ */

/* A host is a program that is started by itself and loads others. -1 as node or pid means all. */

/* Size of a cube's name, including the NUL. */
#define NAMELEN 16

/* Sets the pid of the host. Must be called before any message. */
void setpid(long pid);
/* type: a number of nodes, or d and a dimension: "8", "d3". Without a cube the number of nodes is that in the variable
 * NX_DFLT_SIZE, or the number of cores. */
void getcube(const char *name, const char *type, const char *srm, long keep);
void attachcube(const char *name);
/* Kills the processes on the cube. */
void relcube(const char *name);
long load(const char *file, long node, long pid);
/* On a node: kills processes with the caller's own pid, including the caller if it is selected. */
void killcube(long node, long pid);
void killproc(long node, long pid);
/* Waits until these processes have ended. */
void waitall(long node, long pid);
/* Waits until one of these processes has ended, and gives its exit status, or minus the signal that ended it. */
void waitone(long node, long pid, long *cnode, long *cpid, long *ccode);

long _setpid(long pid);
long _getcube(const char *name, const char *type, const char *srm, long keep);
long _attachcube(const char *name);
long _relcube(const char *name);
long _load(const char *file, long node, long pid);
long _killcube(long node, long pid);
long _killproc(long node, long pid);
long _waitall(long node, long pid);
long _waitone(long node, long pid, long *cnode, long *cpid, long *ccode);

/* ---- applications ------------------------------------------------------------------------------ */

/* A program that is started by itself begins an application of some nodes, and starts programs there, or itself again. It is
 * the host of its nodes, and sets its own ptype by setptype. */

/* A list of node numbers, in memory that the program frees. */
typedef long *nx_nodes_t;

/* Begin an application, and return its number of nodes. size 0: the size of the partition, or the value of the variable
 * NX_DFLT_SIZE, or the number of cores. Options on the command line (-sz NODES, -sz ROWSxCOLUMNS, -pn PARTITION, and others
 * without a meaning here) override the arguments and are removed from argc and argv, which may be NULL. argc points to an int
 * or a long. */
long nx_initve(const char *partition, long size, const char *account, void *argc, char *argv[]);
long nx_initve_rect(const char *partition, long anchor, long rows, long columns, const char *account, void *argc,
                    char *argv[]);
/* Attributes, each followed by its value, and NX_ATTR_END at the end. */
long nx_initve_attr(const char *partition, void *argc, char *argv[], ...);

/* Start a program on these nodes; the number -1 stands for all nodes. Return the number of processes. pids: becomes the
 * system's process ids on their hosts; may be NULL. argv[0] is the program's name; envp is added to the environment. */
long nx_load(const long nodes[], long number, long ptype, long pids[], const char *path);
long nx_loadve(const long nodes[], long number, long ptype, long pids[], const char *path, char *const argv[],
               char *const envp[]);
/* Start this program on these nodes, from its beginning, with the same arguments. In the new processes nx_initve joins the
 * application, and this call returns 0. */
long nx_nfork(const long nodes[], long number, long ptype, long pids[]);
/* Waits until all started processes have ended. wait and waitpid do not know these processes. */
long nx_waitall(void);
/* The priority, 0 to 10, is checked and has no effect. group: 0, or the caller's own. */
long nx_pri(long group, long priority);

long nx_app_rect(long *rows, long *columns);
long nx_app_nodes(pid_t group, nx_nodes_t *nodes, unsigned long *number);
/* A job has no such nodes. */
long nx_empty_nodes(nx_nodes_t *nodes, unsigned long *number);
long nx_failed_nodes(nx_nodes_t *nodes, unsigned long *number);
/* Prints a text and what errno means on standard error. */
void nx_perror(const char *text);

/* ---- partitions -------------------------------------------------------------------------------- */

/* The job is the partition .compute. Other partitions are known only to the program that makes them, as numbers of nodes: an
 * application in one has at most that many nodes. No nodes are reserved for them, and their settings are only stored. */

#define NX_ATTR_END 0
#define NX_ATTR_SZ 101      /* number of nodes */
#define NX_ATTR_RECT 102    /* long[2]: rows and columns */
#define NX_ATTR_MAP 103     /* long[]: their numbers, NX_ATTR_SZ of them */
#define NX_ATTR_SCHED 104   /* NX_STD, NX_GANG or NX_SPS */
#define NX_ATTR_EPL 105     /* the highest priority, 0 to 10 */
#define NX_ATTR_RQ 106      /* length of a turn, in milliseconds */
#define NX_ATTR_MOD 107     /* permissions */
/* These have no effect here. */
#define NX_ATTR_PRI 108     /* the priority of an application */
#define NX_ATTR_ANCHOR 109  /* the first node of a rectangle */
#define NX_ATTR_RELAXED 110 /* nodes need not be contiguous */
#define NX_ATTR_SEL 111     /* char *: types of nodes */

#define NX_STD 1
#define NX_GANG 2
#define NX_SPS 3

/* Return the number of nodes of the partition. */
long nx_mkpart(const char *partition, long size, long type);
long nx_mkpart_rect(const char *partition, long rows, long columns, long type);
long nx_mkpart_map(const char *partition, long number, const long nodes[], long type);
long nx_mkpart_attr(const char *partition, ...);
/* force: 1 ends the application in the partition. recursive: 1 also removes the partitions inside it. */
long nx_rmpart(const char *partition, long force, long recursive);

long nx_chpart_epl(const char *partition, long priority);
long nx_chpart_mod(const char *partition, long mode);
long nx_chpart_name(const char *partition, const char *name);
long nx_chpart_owner(const char *partition, long owner, long group);
long nx_chpart_rq(const char *partition, long milliseconds);
long nx_chpart_sched(const char *partition, long type);

typedef struct {
    long uid, gid, access;
    long sched;
        long rq;  /* length of a turn, in milliseconds */
    long epl; /* the highest priority */
    long nodes;
    long mesh_x, mesh_y; /* rows and columns of a rectangle; 0 if it is not a rectangle */
    long enclose_mesh_x, enclose_mesh_y;
} nx_part_info_t;

#define NX_APPLICATION 0
#define NX_PARTITION 1

typedef struct {
    long object_type; /* NX_APPLICATION or NX_PARTITION */
    long object_id;   /* the application's process group, or the partition's index in the list */
    long uid, gid;
    long size;
    long priority;
    long rollin_quantum;
    long active;
} nx_pspart_t;

long nx_part_attr(const char *partition, nx_part_info_t *attributes);
/* Node numbers in the parent partition. */
long nx_part_nodes(const char *partition, nx_nodes_t *nodes, unsigned long *number);
/* Returns a list of the contents of a partition, which the program frees. */
long nx_pspart(const char *partition, nx_pspart_t **list, unsigned long *number);

/* ---- 64-bit numbers --------------------------------------------------------------------------- */

/* Each half has 32 bits, even where long has more. */
struct s_size {
    long slow;
    long shigh;
};
typedef struct s_size esize_t;

esize_t eadd(esize_t a, esize_t b);
esize_t esub(esize_t a, esize_t b);
esize_t emul(esize_t a, long b);
long ediv(esize_t a, long b);
long emod(esize_t a, long b);
/* -1, 0 or 1 */
long ecmp(esize_t a, esize_t b);
void etos(esize_t number, char *text);
esize_t stoe(const char *text);

esize_t _eadd(esize_t a, esize_t b);
esize_t _esub(esize_t a, esize_t b);
esize_t _emul(esize_t a, long b);
long _ediv(esize_t a, long b);
long _emod(esize_t a, long b);
long _ecmp(esize_t a, esize_t b);
long _etos(esize_t number, char *text);
esize_t _stoe(const char *text);

/* ---- files ------------------------------------------------------------------------------------- */

/* The modes in which nodes share a file. Every opened file starts in M_UNIX. */
#define M_UNIX 0   /* a position for each node */
#define M_LOG 1    /* one position, first come, first served */
#define M_SYNC 2   /* one position; all nodes take part, in order of node number, each with its own length */
#define M_RECORD 3 /* all nodes take part, in order of node number, all with the same length */
#define M_GLOBAL 4 /* all nodes make the same call, which is done once */
#define M_ASYNC 5  /* like M_UNIX, without any order */

#define SIZE_SET 0
#define SIZE_CUR 1
#define SIZE_END 2

/* These two are collective. */
int gopen(const char *path, int oflag, int iomode, mode_t mode);
void setiomode(int fd, int iomode);
long iomode(int fd);

void cread(int fd, void *buf, unsigned int count);
void cwrite(int fd, const void *buf, unsigned int count);
/* Return an id for iowait or iodone. */
long iread(int fd, void *buf, unsigned int count);
long iwrite(int fd, const void *buf, unsigned int count);
void iowait(long id);
long iodone(long id);
/* Scattered memory: one read or write for all parts. */
void creadv(int fd, const struct iovec iov[], int iovcnt);
void cwritev(int fd, const struct iovec iov[], int iovcnt);
long ireadv(int fd, const struct iovec iov[], int iovcnt);
long iwritev(int fd, const struct iovec iov[], int iovcnt);

long iseof(int fd);
esize_t eseek(int fd, esize_t offset, int whence);
/* Make a file at least this long; return its size. */
long lsize(int fd, long offset, int whence);
esize_t esize(int fd, esize_t offset, int whence);
long restrictvol(int fd, int number, const int volumes[]);

int _gopen(const char *path, int oflag, int iomode, mode_t mode);
long _setiomode(int fd, int iomode);
long _iomode(int fd);
/* Return the number of bytes. */
long _cread(int fd, void *buf, unsigned int count);
long _cwrite(int fd, const void *buf, unsigned int count);
long _iread(int fd, void *buf, unsigned int count);
long _iwrite(int fd, const void *buf, unsigned int count);
long _creadv(int fd, const struct iovec iov[], int iovcnt);
long _cwritev(int fd, const struct iovec iov[], int iovcnt);
long _ireadv(int fd, const struct iovec iov[], int iovcnt);
long _iwritev(int fd, const struct iovec iov[], int iovcnt);
long _iowait(long id);
long _iodone(long id);
long _iseof(int fd);
esize_t _eseek(int fd, esize_t offset, int whence);
long _lsize(int fd, long offset, int whence);
esize_t _esize(int fd, esize_t offset, int whence);
long _restrictvol(int fd, int number, const int volumes[]);

/* ---- clocks and others ------------------------------------------------------------------------ */

double dclock(void);        /* seconds */
unsigned long mclock(void); /* milliseconds */
void hwclock(esize_t *ticks);
void flick(void);
void led(long on);
long gray(long i);
long ginv(long j);

double _dclock(void);
unsigned long _mclock(void);
long _hwclock(esize_t *ticks);
long _flick(void);
long _led(long on);
long _gray(long i);
long _ginv(long j);

#ifdef __cplusplus
}
#endif
#endif
