/*
 * regatta.h: the C interface of Regatta, a message-passing environment.
 *
 * GRAMMAR (read this once, then guess the rest)
 *
 *  Names      rg_VERB acts; rg_iVERB starts the same act and returns at once with a request;
 *             rg_VERBv takes views (strided or scattered memory) where rg_VERB takes one block.
 *  Ids        A handle is a struct with one field, passed by value. It owns nothing you can
 *             touch, may be copied freely, and is checked at each use: a stale or made-up handle
 *             is RG_ERR_HANDLE, never a crash.
 *  Errors     Every function that can fail returns an int: 0 (RG_OK) or a negative RG_ERR_ code.
 *             After an error nothing has happened, unless the function says otherwise.
 *             rg_strerror(code) explains the code; rg_last_error() gives this thread's last
 *             error as a sentence with its names and numbers.
 *  Order      where from what: (buffer, length, peer, tag, group, outputs). Outputs come last
 *             and any of them may be NULL when you do not want it.
 *  Units      Lengths, offsets and strides are bytes. Counts are elements. Ranks are ints from 0.
 *  Ownership  A buffer given to a blocking call is yours again when the call returns. A buffer
 *             given to an rg_i call belongs to Regatta until its request is complete: do not read
 *             a receive buffer, do not write a send buffer. Callers own every output object.
 *  Blocking   "Blocks" is said where a call may wait for another task. A blocked task sleeps
 *             when there is nothing to do. All other calls return without waiting.
 *  Threads    Every function may be called by any thread at any time between rg_init and
 *             rg_finalize. Calls of one thread that use one group are ordered; several threads
 *             that enter collectives of one group must agree on an order themselves. No call is a
 *             cancellation point: a thread that is cancelled in one (pthread_cancel) ends at its
 *             first cancellation point after it. Asynchronous cancellation is not supported.
 *             A task ends with the last thread of its program.
 *
 *  Signals    The one function that any signal handler may call is rg_abort. Every other call that
 *             takes the engine gets RG_ERR_STATE if the handler has interrupted a call of its thread
 *             that has it; nothing has happened then. Elsewhere such a call may work, but may meet
 *             the program in malloc, which most calls use. Let a handler note what it has to say,
 *             and say it after the call.
 *
 *  Forks      A child that a task forks is not that task: every call in it is RG_ERR_STATE, and
 *             blocks from rg_loan are not there. It may only exec or end. The task goes on as if
 *             nothing had happened.
 *
 *  A message has a source, a destination, a context (its group), a tag and a length. Two messages
 *  from one task to another in one group never overtake each other. A receive selects exactly by
 *  group, and by source and tag exactly or with RG_ANY, or by tag under a mask.
 */
#ifndef REGATTA_H
#define REGATTA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RG_VERSION_MAJOR 0
#define RG_VERSION_MINOR 1

/* ---- errors ------------------------------------------------------------------------------- */

#define RG_OK 0
#define RG_ERR_ARGUMENT (-1)   /* an argument makes no sense; the last error says which */
#define RG_ERR_STATE (-2)      /* called before rg_init, after rg_finalize, in a forked child, or inside another call (a signal
                                * handler, an operator); or the others took this task for dead (rg_group_shrink, rg_agree) */
#define RG_ERR_TASK (-3)       /* no such task or rank */
#define RG_ERR_TAG (-4)        /* tags are 0 .. 2147483647 */
#define RG_ERR_HANDLE (-5)     /* stale or made-up handle */
#define RG_ERR_TRUNCATED (-6)  /* the message was longer than the buffer; the front was kept */
#define RG_ERR_DEAD (-7)       /* a task this call depends on has died; the last error names it */
#define RG_ERR_LEFT (-8)       /* a task this call depends on has left with rg_finalize */
#define RG_ERR_MEMORY (-9)     /* memory, or a limit on it, is used up */
#define RG_ERR_CYCLE (-10)     /* waiting senders form a cycle, all buffers full; it is named */
#define RG_ERR_CANCELLED (-12) /* the request was cancelled, or the program has ended the wait (rg_on_wait) */
#define RG_ERR_CORRUPT (-13)   /* shared memory holds what no task of this version writes */
#define RG_ERR_LAUNCHER (-14)  /* started by a launcher Regatta cannot speak to, or it has been killed */
#define RG_ERR_VERSION (-15)   /* launcher and library versions do not fit */
#define RG_ERR_SYSTEM (-16)    /* the operating system refused; the last error has its words */
#define RG_ERR_UNSUPPORTED (-17) /* reserved; nothing returns it */
#define RG_ERR_PROGRAM (-18)   /* a program to be started is missing, or cannot be executed */
#define RG_ERR_HOST (-19)      /* no such host in the job */
#define RG_ERR_NAME (-20)      /* nothing has this name */
#define RG_ERR_EXISTS (-21)    /* something has this name already */
#define RG_ERR_DENIED (-22)    /* it belongs to another task */
#define RG_ERR_NOTHING (-23)   /* no message came in that time */
#define RG_ERR_REVOKED (-24)   /* a member has revoked the group */

const char *rg_strerror(int code);  /* static storage; never NULL */
const char *rg_last_error(void);    /* this thread's; valid until its next failing call */
int rg_last_error_task(void);       /* the task that this thread's last error is about, such as the one that has died; RG_NONE: none */
const char *rg_version(void);       /* "regatta 0.1.0 ..." */

/* ---- life --------------------------------------------------------------------------------- */

/* Join the job this process was started in by `regatta run`, or become a world of one. Under Slurm's
 * srun it becomes one of the step's tasks, and blocks until all of them have called this (60 s at most,
 * REGATTA_JOIN_TIMEOUT). Under other launchers it fails with RG_ERR_LAUNCHER and a sentence, unless
 * REGATTA_SINGLETON=allow. A second call does nothing. */
int rg_init(void);
/* Leave. Messages already sent stay readable by their receivers. Requests still open are
 * dropped. Does not wait for others to receive; only if somebody's ring is full does the word that a
 * synchronous message has come wait for room in it, until that task has not looked for 5 s. A started send
 * that was given away (rg_on_complete) goes on until it is complete, or its receiver is gone; a synchronous
 * one whose bytes have all gone is not waited for any more when nothing has moved for 5 s. In a job
 * of several hosts it waits until what was sent to other hosts has arrived there. RG_ERR_CYCLE: it has not
 * left, because those it waits for wait for it; receive, and call it again.
 * RG_ERR_LAUNCHER: the launcher has ended meanwhile; it has left, and what it had to wait for may be lost. */
int rg_finalize(void);
/* With 1: from now on this task may end in any way (_exit, exec) as if it had left with rg_finalize just then, and its end is no failure unless
 * it has a status other than 0 or is that of a signal. Blocks until what it has sent is out of its hands, as rg_finalize does. It stays a task
 * meanwhile, for the others as well, and may call on. With 0 it is to leave again before it ends. For libraries that cannot
 * tell whether their program will come back to them. */
int rg_may_end(int may_end);
/* As rg_init for a task that was started in a job. Any other process enters the job of this name: one that
 * runs by itself, which programs started by hand enter and leave, and which ends when it is told to (rg_halt).
 * With RG_BEGIN it is begun if it is not there; with RG_BEGIN_ONLY that is all that is done, and with RG_LOOK
 * nothing: RG_ERR_LAUNCHER says that it is not there. After rg_finalize
 * it may be entered again, as a new task. A name is made of letters, digits, '.', '-' and '_'. */
#define RG_BEGIN 1
#define RG_BEGIN_ONLY 2
#define RG_LOOK 3
int rg_enter(const char *job, int flags);
/* End the job: all its tasks, this one too. */
int rg_halt(void);
/* As rg_halt, and `regatta run` exits with this status (1 to 255; 0 becomes 1, and of others count the low eight bits), unless a
 * task had failed before. It says which task has called. Does not return, unless this process is no task: RG_ERR_STATE. Nothing is
 * flushed, and no function of atexit is called. A task of srun ends alone, with this status: the others end if srun was told to end
 * them (--kill-on-bad-exit). */
int rg_abort(int code);
int rg_initialized(void); /* 1 between rg_init and rg_finalize, else 0 */

/* ---- who ---------------------------------------------------------------------------------- */

typedef struct {
    int32_t id;
} rg_group;

#ifdef __cplusplus
#define RG_GROUP_(n) (rg_group{n})
#else
#define RG_GROUP_(n) ((rg_group){n})
#endif
/* The tasks that were started together with this one, in rank order: those of one `regatta run`, or
 * of one rg_spawn. */
#define RG_WORLD RG_GROUP_(0)
/* Every task of the job, whoever started it. A task's rank in it is its task id, and its size grows
 * with the job. It is for messages: collectives are for groups whose members are known, so select them
 * (rg_group_select). A receive from RG_ANY in it waits whoever ends: nobody knows who may still come. */
#define RG_ALL RG_CHANNEL(0)
/* As RG_ALL, and apart from it: a message sent in one channel is received in that channel only. A
 * channel is nothing but a number, 0 to 134217727, on which tasks agree; the interfaces have those
 * from there to 536870911. */
#define RG_CHANNEL(n) RG_GROUP_(0x40000000 + (n))

#define RG_ANY (-1)  /* any source, any tag */
#define RG_NONE (-2) /* a peer that is nobody: sends and receives complete at once, empty */

int rg_rank(rg_group group); /* my rank, or a negative error */
int rg_size(rg_group group); /* number of members, or a negative error */
/* Task ids count from 0 in the order in which tasks are started, and are never used twice in a job. */
int rg_tid(void); /* my task id, or an error */
int rg_tid_of(rg_group group, int rank);
int rg_host_of(int tid); /* the number of the host it runs on */
int rg_rank_of(rg_group group, int tid); /* RG_ERR_TASK when not a member */
int rg_parent(void);                     /* task id of who started me; RG_NONE: the launcher */

/* ---- send and receive ---------------------------------------------------------------------- */

typedef struct {
    int32_t source; /* rank of the sender in the group; RG_NONE for an empty operation */
    int32_t tag;
    size_t length; /* bytes of the message, also when it was truncated */
    int32_t error; /* RG_OK or what this operation ended with */
    int32_t reserved;
} rg_status;

typedef struct {
    uint64_t id;
} rg_request;
#ifdef __cplusplus
#define RG_REQUEST_NULL (rg_request{0})
#define RG_REQUEST_COMPLETE (rg_request{UINT64_C(1) << 63})
#else
#define RG_REQUEST_NULL ((rg_request){0})
/* All operations that were complete when they were started, as most small sends are, have this request. It is never stale. */
#define RG_REQUEST_COMPLETE ((rg_request){UINT64_C(1) << 63})
#endif

/* Blocks until the buffer may be reused: at once while Regatta has room to hold the message,
 * else until the receiver takes it. RG_ERR_DEAD: the receiver is known to be dead, from this task's host, or because a call in
 * this group has said so before. */
int rg_send(const void *buf, size_t len, int to, int tag, rg_group group);
/* Synchronous: blocks until the receiver has begun to receive. */
int rg_ssend(const void *buf, size_t len, int to, int tag, rg_group group);
/* Ready: the caller promises that the receive is already posted. Regatta needs no such promise
 * and treats it like rg_send; it is here for interfaces that have it. */
int rg_rsend(const void *buf, size_t len, int to, int tag, rg_group group);
/* Buffered: does not wait for the receiver, however much has been sent. Bytes that find no room are copied, and go
 * during later calls of this task; rg_finalize waits until they have gone. */
int rg_bsend(const void *buf, size_t len, int to, int tag, rg_group group);
/* Blocks until a message arrives. Too long for the buffer: the front is kept, status->length is
 * the whole length, RG_ERR_TRUNCATED. */
int rg_recv(void *buf, size_t capacity, int from, int tag, rg_group group, rg_status *status);
/* Receive a message that fits, waiting so many seconds at most (0: not at all; negative: as long as it takes).
 * RG_ERR_NOTHING: none came. One that does not fit stays where it is: RG_ERR_TRUNCATED, and *status says whose
 * it is, with what tag and how long. */
int rg_recv_within(void *buf, size_t capacity, int from, int tag, rg_group group, double seconds,
                   rg_status *status);
/* As rg_recv_within, of messages that have been passed over, without waiting and without a look for new ones. A message
 * has been passed over when one that came later has been received, or when it had come before the launcher's last answer
 * (rg_spawn, rg_tasks, rg_meet and all others that ask it). For programs that take notice of one message after the
 * other: each call of rg_recv_within(..., RG_ANY, RG_ANY, group, 0, ...) then gives the next one. */
int rg_recv_passed(void *buf, size_t capacity, int from, int tag, rg_group group, rg_status *status);
/* Pass over all messages that have come, as an answer of the launcher's does. */
int rg_pass_over(void);
/* Blocks until both are complete. */
int rg_sendrecv(const void *sbuf, size_t slen, int to, int stag, void *rbuf, size_t rcapacity,
                int from, int rtag, rg_group group, rg_status *status);

int rg_isend(const void *buf, size_t len, int to, int tag, rg_group group, rg_request *request);
int rg_issend(const void *buf, size_t len, int to, int tag, rg_group group, rg_request *request);
int rg_irsend(const void *buf, size_t len, int to, int tag, rg_group group, rg_request *request);
int rg_irecv(void *buf, size_t capacity, int from, int tag, rg_group group, rg_request *request);

/* A receive by tag under a mask takes messages with (message tag & mask) == (tag & mask). */
int rg_recv_masked(void *buf, size_t capacity, int from, int tag, int mask, rg_group group,
                   rg_status *status);
int rg_irecv_masked(void *buf, size_t capacity, int from, int tag, int mask, rg_group group,
                    rg_request *request);

/* Is there a message to receive? rg_probe blocks until there is; rg_iprobe sets *found. */
int rg_probe(int from, int tag, rg_group group, rg_status *status);
int rg_iprobe(int from, int tag, rg_group group, int *found, rg_status *status);

/* A message that a probe has found and taken out of matching: no other receive and no other probe sees it, whichever thread
 * makes it. It waits for its rg_mrecv, and is dropped at rg_finalize. To its sender it is matched; a synchronous send is
 * complete when rg_mrecv begins. */
typedef struct {
    uint64_t id;
} rg_message;
#ifdef __cplusplus
#define RG_MESSAGE_(n) (rg_message{n})
#else
#define RG_MESSAGE_(n) ((rg_message){n})
#endif
#define RG_MESSAGE_NULL RG_MESSAGE_(0)
/* The message of RG_NONE: received at once, it is empty. */
#define RG_MESSAGE_NONE RG_MESSAGE_(UINT64_MAX)

/* As rg_probe and rg_iprobe. *message is RG_MESSAGE_NULL when nothing was found. */
int rg_mprobe(int from, int tag, rg_group group, rg_message *message, rg_status *status);
int rg_improbe(int from, int tag, rg_group group, int *found, rg_message *message,
               rg_status *status);
/* Receive it. rg_mrecv blocks until all of it has come. It is set to RG_MESSAGE_NULL, also after an error of the
 * receive itself (RG_ERR_TRUNCATED, RG_ERR_DEAD when its sender has died before all of it had come); after
 * RG_ERR_ARGUMENT it is still there. RG_MESSAGE_NULL itself is RG_ERR_HANDLE. */
int rg_mrecv(rg_message *message, void *buf, size_t capacity, rg_status *status);
int rg_imrecv(rg_message *message, void *buf, size_t capacity, rg_request *request);
/* Which of these groups has the message that arrived first, of all that wait in them? *index is its place in the list.
 * RG_ERR_NOTHING: none waits. */
int rg_first_arrived(const rg_group *groups, int n, int *index);

/* ---- strided and scattered memory ---------------------------------------------------------- */

/* `count` blocks of `block` bytes; block k starts at (char *)base + k * stride. A message of
 * several views is their concatenation. Layouts of sender and receiver need not agree. */
typedef struct {
    void *base;
    size_t block;
    size_t count;
    ptrdiff_t stride;
} rg_view;

int rg_sendv(const rg_view *views, int n, int to, int tag, rg_group group);
int rg_bsendv(const rg_view *views, int n, int to, int tag, rg_group group);
int rg_recvv(const rg_view *views, int n, int from, int tag, rg_group group, rg_status *status);
int rg_isendv(const rg_view *views, int n, int to, int tag, rg_group group, rg_request *request);
int rg_irecvv(const rg_view *views, int n, int from, int tag, rg_group group, rg_request *request);
int rg_mrecvv(rg_message *message, const rg_view *views, int n, rg_status *status);
int rg_imrecvv(rg_message *message, const rg_view *views, int n, rg_request *request);

/* ---- completion ---------------------------------------------------------------------------- */

/* A completed request is freed and set to RG_REQUEST_NULL; waiting for RG_REQUEST_NULL returns at
 * once. The return value is the operation's own error. After RG_ERR_CYCLE the request is not null: only
 * the wait is over, the send goes on, and its buffer stays in use until the request is completed. */
int rg_wait(rg_request *request, rg_status *status);                            /* blocks */
int rg_test(rg_request *request, int *done, rg_status *status);
/* As rg_test, but a completed request stays: it can be looked at again, and has to be completed still. */
int rg_look(rg_request request, int *done, rg_status *status);
int rg_waitall(int n, rg_request *requests, rg_status *statuses);               /* blocks */
int rg_waitany(int n, rg_request *requests, int *index, rg_status *status);     /* blocks */
int rg_testall(int n, rg_request *requests, int *done, rg_status *statuses);
int rg_testany(int n, rg_request *requests, int *index, int *done, rg_status *status);

/* Call `done` once when the request completes, from inside a later Regatta call of some thread.
 * The request is then freed by Regatta; do not wait for it as well. */
typedef void (*rg_callback)(const rg_status *status, void *arg);
int rg_on_complete(rg_request *request, rg_callback done, void *arg);
/* Cancel a receive that has not matched yet. *cancelled tells; it still must be waited for. A send that is not complete is asked back of its
 * receiver: if no receive has matched it there it completes with RG_ERR_CANCELLED, else as it would have. */
int rg_cancel(rg_request request, int *cancelled);

/* Let the program end waits, as those need whose interpreter handles signals between its instructions. While a call blocks that sends,
 * receives, probes, completes requests or is a collective, its thread calls `asked`: after a signal, and twice a second. With *ends set to
 * other than 0 the call ends with RG_ERR_CANCELLED, and what it was doing is given up; only a request goes on, which is not null then. A
 * collective that is given up is best followed by rg_group_revoke: the other members would wait in vain. `asked` may not call Regatta.
 * NULL: nobody is asked any more. */
typedef void (*rg_asked)(int *ends, void *arg);
int rg_on_wait(rg_asked asked, void *arg);

/* Advance whatever can advance, run callbacks, return. */
int rg_progress(void);
/* A descriptor that is readable when a message may be waiting: put it into poll or epoll, and when
 * it is readable call rg_clear_fd, then rg_test or rg_progress. Belongs to Regatta: do not close.
 * When the launcher has been killed it is readable as well, and rg_clear_fd says RG_ERR_LAUNCHER. */
int rg_fd(int *fd);
int rg_clear_fd(void);
/* Make it readable until the next rg_clear_fd: after a look that has left something. */
int rg_raise_fd(void);

/* ---- loans: messages that are never copied -------------------------------------------------- */

/* Borrow `len` bytes of shared memory, write the message in place, hand it over. The block is
 * yours until rg_loan_send or rg_loan_free; RG_ERR_MEMORY when none is to be had. */
int rg_loan(size_t len, void **block);
/* Does not block. Afterwards the block is the receiver's: do not touch it. */
int rg_loan_send(void *block, size_t len, int to, int tag, rg_group group);
/* Receive a message in place. Any message may be received so; one that was sent from a loan is
 * not copied. The block is yours, to read, write, send on or free. Blocks. */
int rg_loan_recv(void **block, int from, int tag, rg_group group, rg_status *status);
int rg_loan_free(void *block);

/* A block can also be read by others in place while it stays yours: share it with task `to`, and tell it the
 * name and the length in a message. From then on nobody may write what the other is to read; you may read it, share it
 * with further tasks, write behind it, and free it: it is lent again when all have closed it or have ended.
 * RG_ERR_NOTHING: as many tasks read it as can, or too much waits for its readers, or the task is on another
 * host: send a copy. Does not block. */
int rg_loan_share(void *block, int to, rg_group group, uint64_t *name);
/* The block that another task has shared with this one by this name: `len` bytes to read, until rg_loan_close
 * or rg_finalize. */
int rg_loan_open(uint64_t name, size_t len, const void **block);
/* You do not read it any more; or it was you who shared it, and the other will not be told the name. */
int rg_loan_close(uint64_t name);

/* ---- groups --------------------------------------------------------------------------------- */

/* Each of these is a collective: every member of the new group calls it. Blocks. Threads may make groups from different
 * groups at the same time, in any order. */
int rg_group_dup(rg_group group, rg_group *out);
/* Does not block. *out may be used when the request is complete, and not at all if that ends with an error. */
int rg_igroup_dup(rg_group group, rg_group *out, rg_request *request);
/* The members `ranks[0..n)` of `group`, in that order. Only they call. */
int rg_group_select(rg_group group, int n, const int *ranks, rg_group *out);
/* Several threads may do this with one group at the same time if their tags differ; all members of a new group say the same
 * tag. It has nothing to do with the tags of messages. */
int rg_group_select_tagged(rg_group group, int n, const int *ranks, int tag, rg_group *out);
/* Does not block. Makes `groups` groups (1 to 16) of these members at once, which takes no longer than to make one: out[0..groups)
 * may be used when the request is complete, and none of them if that ends with an error. All members make as many. With n 0 and
 * `ranks` NULL all members of `group` call, as rg_igroup_dup, and the tag means nothing. */
int rg_igroup_select(rg_group group, int n, const int *ranks, int tag, int groups, rg_group *out,
                     rg_request *request);
/* Members of `group` with equal `colour`, ordered by (key, rank). Every member of `group` calls;
 * colour RG_NONE joins nothing and gets {-1}. A member that joins and has no place for a group is an error for all. */
int rg_group_split(rg_group group, int colour, int key, rg_group *out);
/* The survivors of `group`, in rank order. Every survivor calls. Of two that have given each other up
 * (--unreachable) one is left out: RG_ERR_STATE. */
int rg_group_shrink(rg_group group, rg_group *out);
/* End all that is done in `group`, by whichever member and wherever it is in that: calls that wait, requests, and calls from now
 * on, with RG_ERR_REVOKED. Only rg_group_shrink, rg_agree and rg_iagree are left, and questions about ranks. One member calls, or several;
 * returns at once. Members that live hear of it whoever dies, in their next call or the one that waits. It cannot be taken back. RG_WORLD can be revoked, RG_ALL cannot. */
int rg_group_revoke(rg_group group);
/* 1: it is revoked, as far as is known here now; 0: it is not. */
int rg_group_is_revoked(rg_group group);
/* From now on both groups are revoked as soon as one is. Of this task alone: every member of both that has tied them hears of both.
 * For libraries with a group of their own beside the program's. */
int rg_group_tie(rg_group group, rg_group other);
/* From now on a member that leaves ends none of my requests for messages of this group: one that depends on it stays pending, can be
 * cancelled, and a receive from RG_ANY can still take what others send, or I do. rg_iprobe and rg_improbe find nothing then. Calls that block fail
 * with RG_ERR_LEFT as soon as it is certain that nothing completes what they wait for. Of this task alone; deaths and collectives are as they
 * were. threads: whether other threads of this task may call as well: then a receive from RG_ANY that another one could answer waits on. For libraries
 * whose standard counts a task that has left as one that is there. */
int rg_group_tolerate_left(rg_group group, int threads);
/* *flag becomes all bits that the flags of all members have in common. Every member that lives calls, in the same order as
 * rg_group_shrink; a group that is revoked will do. All that survive have the same flag and the same return value, whoever dies
 * meanwhile. RG_ERR_DEAD: a member has died which not all had acknowledged (rg_acknowledge_dead) when they called;
 * *flag is agreed on all the same. Of two that have given each other up (--unreachable) one is left out: RG_ERR_STATE. */
int rg_agree(int *flag, rg_group group);
/* Does not block. *flag is read now, and has the result when the request is complete. */
int rg_iagree(int *flag, rg_group group, rg_request *request);
/* Forget a group. Does not wait for the others; the memory they share for it is used again when
 * all members have freed it. */
int rg_group_free(rg_group group);
/* Receives from RG_ANY fail with RG_ERR_DEAD while the group has dead members you have not
 * acknowledged; afterwards they go on among the living. */
int rg_acknowledge_dead(rg_group group, int *dead);
/* The ranks of members that have died, as far as this task knows: by itself, or because a call in this group has said so. As many as
 * there is room for; *count is how many there are. */
int rg_dead(rg_group group, int *ranks, int capacity, int *count);

/* ---- collectives ----------------------------------------------------------------------------- */

typedef enum {
    RG_INT8 = 1, RG_INT16, RG_INT32, RG_INT64,
    RG_UINT8, RG_UINT16, RG_UINT32, RG_UINT64,
    RG_FLOAT, RG_DOUBLE, RG_LONG_DOUBLE
} rg_type;
/* An element of n bytes for user operators. */
#define RG_BYTES(n) ((rg_type)(0x10000 + (n)))

typedef struct {
    int32_t id;
} rg_op;
#ifdef __cplusplus
#define RG_OP_(n) (rg_op{n})
#else
#define RG_OP_(n) ((rg_op){n})
#endif
#define RG_SUM RG_OP_(1)
#define RG_PRODUCT RG_OP_(2)
#define RG_MAX RG_OP_(3)
#define RG_MIN RG_OP_(4)
#define RG_AND RG_OP_(5)  /* logical, integers */
#define RG_OR RG_OP_(6)
#define RG_XOR RG_OP_(7)
#define RG_BAND RG_OP_(8) /* bitwise, integers */
#define RG_BOR RG_OP_(9)
#define RG_BXOR RG_OP_(10)

/* inout[i] = in[i] (op) inout[i] for count elements, `in` coming from the lower ranks. Must be
 * associative. It may not call Regatta. */
typedef void (*rg_combine)(const void *in, void *inout, size_t count, void *arg);
int rg_op_create(rg_combine combine, void *arg, int commutative, rg_op *op);
int rg_op_free(rg_op op);

/* All block (the rg_i forms do not), all are called by every member of the group in the same
 * order. If a member dies, every member that cannot finish gets RG_ERR_DEAD with its name.
 * All members give the same lengths, counts, types and root, unless a call says otherwise.
 * `in` may be RG_IN_PLACE where marked (*): the input is then taken from the output. */
#define RG_IN_PLACE ((const void *)1)

int rg_barrier(rg_group group);
int rg_broadcast(void *buf, size_t len, int root, rg_group group);
int rg_reduce(const void *in /*(*) at root*/, void *out, size_t count, rg_type type, rg_op op,
              int root, rg_group group);
int rg_allreduce(const void *in /*(*)*/, void *out, size_t count, rg_type type, rg_op op,
                 rg_group group);
int rg_scan(const void *in /*(*)*/, void *out, size_t count, rg_type type, rg_op op,
            rg_group group); /* inclusive prefix */
/* Exclusive prefix: of the ranks below this one. The output of rank 0 is left alone, and not looked at. */
int rg_exscan(const void *in /*(*)*/, void *out, size_t count, rg_type type, rg_op op,
              rg_group group);
/* The input has counts[0] elements, then counts[1], and so on, one count per rank, the same at all members; member r gets the
 * counts[r] elements of its part, combined. In place: the whole input is at `out`, and the result comes to its front (what is
 * behind that is left as it was). */
int rg_reduce_scatter(const void *in /*(*)*/, void *out, const size_t *counts, rg_type type,
                      rg_op op, rg_group group);
/* As rg_reduce_scatter, with equal parts: the input has `count` elements for each rank, in rank order, and member r gets the `count`
 * elements of its part, combined. */
int rg_reduce_scatter_block(const void *in /*(*)*/, void *out, size_t count, rg_type type, rg_op op,
                            rg_group group);
/* len: bytes each task contributes or gets. lens, offsets: one per rank, bytes. */
int rg_gather(const void *in /*(*) at root*/, size_t len, void *out, int root, rg_group group);
int rg_gatherv(const void *in /*(*) at root*/, size_t len, void *out, const size_t *lens,
               const size_t *offsets, int root, rg_group group);
int rg_scatter(const void *in, void *out /* RG_IN_PLACE at root */, size_t len, int root,
               rg_group group);
int rg_scatterv(const void *in, const size_t *lens, const size_t *offsets, void *out, size_t len,
                int root, rg_group group);
int rg_allgather(const void *in /*(*)*/, size_t len, void *out, rg_group group);
int rg_allgatherv(const void *in /*(*)*/, size_t len, void *out, const size_t *lens,
                  const size_t *offsets, rg_group group);
int rg_alltoall(const void *in, size_t len, void *out, rg_group group);
int rg_alltoallv(const void *in, const size_t *in_lens, const size_t *in_offsets, void *out,
                 const size_t *out_lens, const size_t *out_offsets, rg_group group);

int rg_ibarrier(rg_group group, rg_request *request);
int rg_ibroadcast(void *buf, size_t len, int root, rg_group group, rg_request *request);
int rg_ireduce(const void *in, void *out, size_t count, rg_type type, rg_op op, int root,
               rg_group group, rg_request *request);
int rg_iallreduce(const void *in, void *out, size_t count, rg_type type, rg_op op,
                  rg_group group, rg_request *request);
int rg_iscan(const void *in, void *out, size_t count, rg_type type, rg_op op, rg_group group,
             rg_request *request);
int rg_iexscan(const void *in, void *out, size_t count, rg_type type, rg_op op, rg_group group,
               rg_request *request);
/* counts may be changed at once. */
int rg_ireduce_scatter(const void *in, void *out, const size_t *counts, rg_type type, rg_op op,
                       rg_group group, rg_request *request);
int rg_ireduce_scatter_block(const void *in, void *out, size_t count, rg_type type, rg_op op,
                             rg_group group, rg_request *request);
int rg_igather(const void *in, size_t len, void *out, int root, rg_group group,
               rg_request *request);
int rg_igatherv(const void *in, size_t len, void *out, const size_t *lens, const size_t *offsets,
                int root, rg_group group, rg_request *request);
int rg_iscatter(const void *in, void *out, size_t len, int root, rg_group group,
                rg_request *request);
int rg_iscatterv(const void *in, const size_t *lens, const size_t *offsets, void *out, size_t len,
                 int root, rg_group group, rg_request *request);
int rg_iallgather(const void *in, size_t len, void *out, rg_group group, rg_request *request);
int rg_iallgatherv(const void *in, size_t len, void *out, const size_t *lens,
                   const size_t *offsets, rg_group group, rg_request *request);
int rg_ialltoall(const void *in, size_t len, void *out, rg_group group, rg_request *request);
int rg_ialltoallv(const void *in, const size_t *in_lens, const size_t *in_offsets, void *out,
                  const size_t *out_lens, const size_t *out_offsets, rg_group group,
                  rg_request *request);

/* ---- tasks that come and go ---------------------------------------------------------------------- */

/* These ask the launcher of the job. They block until it has answered, which takes it a fraction of a
 * millisecond unless it says more. A task that was started by hand starts a launcher for itself. A task of
 * srun has none: RG_ERR_LAUNCHER. */

typedef struct {
    const char *host;               /* name of a host, "." for mine; NULL: where there is room */
    const char *search;             /* directories in which the program is searched for, with ':' between
                                     * them; NULL: those of PATH */
    const char *architecture;       /* such as "x86_64"; only hosts of that kind */
    const char *directory;          /* in which the tasks run; NULL: that of the job */
    const char *const *environment; /* "NAME=value", ..., NULL: added to the job's environment */
    int32_t elsewhere;              /* 1: on any host but `host` (NULL: but mine) */
    int32_t output;                 /* where goes what they write; 0: where goes what I write */
    int32_t output_tag;             /* of the messages with it, and their group */
    rg_group output_group;
    int32_t orphans;                /* 1: I do not want to be their parent in rg_tasks */
    int32_t on_behalf;              /* 1 + the task whose children they are, as if it had started them; 0: mine */
    const char *through; /* start this program, such as a debugger, with the path of the task's as its first
                          * argument; NULL: the task's itself */
    int32_t output_to;    /* 1 + the task to which goes what they write, in place of me; 0: me. RG_ALL or a
                           * channel is the same to it */
    int32_t reserved;
} rg_spawn_options;

#define RG_OUTPUT_JOB 1    /* with the job's output */
#define RG_OUTPUT_LINES 2  /* to me, each line as a message; a long one in pieces */
#define RG_OUTPUT_BLOCKS 3 /* to me, in pieces as it comes */
#define RG_OUTPUT_BIRTHS 16 /* or this to LINES or BLOCKS: a message for each task that is started, too, before all others */

#define RG_OUTPUT_MARK 0x756f4752 /* the first word of a message with output */
#define RG_OUTPUT_MOST 4096

/* The output of a started task, as a message of the spawner to itself with the tag and in the group
 * that the options name; its length is that of the head and the text. In order for each task and
 * stream. The task that asked for it has to receive it: a task waits, as at a full pipe, when a few hundred
 * kilobytes of its host's have not been received. It stops coming when I call rg_finalize or end: the
 * rest then goes with the job's output. */
typedef struct {
    uint32_t mark;
    int32_t tid;
    int32_t stream;            /* 1 or 2: its standard output or standard error; 0: it has been started, and the
                                * text is an int32_t, the task that has done that, or RG_NONE */
    uint32_t length;           /* bytes of text; 0: the stream has ended, nothing more comes */
    char text[RG_OUTPUT_MOST]; /* a line has its newline, unless it was cut or the last */
} rg_output;

/* Start `count` tasks of `program`, found as `regatta run` finds it, with the arguments argv[0], ...,
 * NULL (without the program's name; argv may be NULL). options may be NULL. They are a world of their
 * own; their ids are consecutive. When the call returns they can be sent to, though they may not have
 * called rg_init yet.
 * If some could not be started, the others were: tids[0 .. *started) are ids, the rest of the `count`
 * entries is the RG_ERR_ code of each, and so is the return value.
 * They end when they like; the job ends when its last task has. */
int rg_spawn(const char *program, char *const argv[], const rg_spawn_options *options, int count,
             int *tids, int *started);
/* Send a signal. Only tells whether there is such a task. With signal 0 nothing is sent. */
int rg_signal(int tid, int signal);
/* End a task by SIGKILL. It counts as asked for: no failure of the job. */
int rg_kill(int tid);

typedef struct {
    int32_t tid;
    int32_t parent; /* who started it; RG_NONE: the launcher; itself: somebody who wants to be no parent */
    int32_t host;   /* number of its host */
    int32_t pid;
    char program[240]; /* as it was named, with its end; cut when longer */
} rg_task;

typedef struct {
    int32_t host; /* its number */
    int32_t cores;
    int32_t tasks; /* how many run there */
    int32_t alive;
    char name[64];
    char architecture[32];
    int32_t speed; /* compared to others: 1000, unless something else was said of it */
    int32_t reserved;
} rg_host;

/* The tasks that run, by id: the first `capacity` of them. *count is how many there are. */
int rg_tasks(rg_task *tasks, int capacity, int *count);
int rg_hosts(rg_host *hosts, int capacity, int *count);
/* The time on the host with this number, in microseconds since 1970. It is read there, between call and return. */
int rg_clock(int host, int64_t *microseconds);

/* Have hosts join the job, or leave it; of a job that was entered (rg_enter). A line names a host, and may go on with
 * options, such as "beta lo=joe wd=/scratch sp=500": those of PVM's host files. numbers[i], if not NULL, becomes the
 * number of host i, or the RG_ERR_ code that is the reason why not: RG_ERR_HOST (nobody knows it), RG_ERR_EXISTS (it is
 * of the job), RG_ERR_SYSTEM (it cannot be started). The others are done; the first reason is the return value, and
 * rg_last_error says it in a sentence. Tasks on a host that leaves are ended. Both wait until all is known. If a host's line
 * wants a person to be asked (so=pw, so=ms), that happens at the terminal which is this task's standard input. */
int rg_add_hosts(const char *const *lines, int count, int *numbers);
int rg_remove_hosts(const char *const *names, int count, int *numbers);
/* As rg_add_hosts, for the text of a whole host file; its defaults, and the hosts it only describes, count for hosts that are
 * added later. *added is how many joined. */
int rg_add_host_file(const char *text, int *added);

/* Start the tasks of this host in the launcher's place; of a job that was entered (rg_enter), on the launcher's host. Of
 * each task that is to be started there from now on this task is sent a message, by itself, with this tag in this group:
 * an rg_start. For all others the task has been started then. RG_ERR_EXISTS: another task does it already. */
int rg_start_others(int tag, rg_group group);

#define RG_START_MARK 0x74734752 /* the first word of an rg_start; no message of yours begins with it */

/* The front of the message. Texts follow, each with its end: the file of the program, its arguments (the first is not its
 * name), and NAME=value of its environment. With that in the environment, beside your own, the process becomes the task
 * when it enters the job. */
typedef struct {
    uint32_t mark;
    int32_t tid;
    uint32_t ticket; /* what stands for its process in rg_tasks, until it has entered */
    uint32_t arguments;
    uint32_t environment;
    uint32_t reserved;
} rg_start;

/* A task that this one was to start could not be started, or has ended and was never a task: with this status, as wait
 * tells it. (The end of one that has entered the job is seen anyway.) */
int rg_has_ended(int tid, int status);

/* Start the agents of hosts in the launcher's place, when somebody wants hosts to join (rg_add_hosts); a task on the
 * launcher's host (or RG_ERR_HOST) of a job that was entered. From now on this task is sent a message, by itself, with
 * this tag in this group, whenever hosts are to be started: rg_start_hosts. It is to have each command run by a shell on its
 * host, and to say with rg_hosts_started what each printed: one line, by which the launcher finds the agent that goes on
 * there. How it does that is its affair. RG_ERR_EXISTS: another task does it already. */
int rg_begin_hosting(int tag, rg_group group);
/* Do so no more. Tasks that it was told to start are still its affair. RG_ERR_TASK: it did not. */
int rg_end_hosting(void);

#define RG_HOSTS_MARK 0x6f684752 /* the first word of an rg_start_hosts; no message of yours begins with it */

/* The front of the message. As many numbers follow, int32_t, which the hosts will have, and then texts, each with its end, three
 * for each host: how its line in a host file wants it to be started (so=), or nothing; where: a host, maybe with login@ before
 * it; the command. Nobody else may read the line that it prints: whoever knows it can be the agent's launcher. */
typedef struct {
    uint32_t mark;
    uint32_t request;
    uint32_t hosts;
    uint32_t reserved;
} rg_start_hosts;

/* Reports the result for the hosts of a request: for each its number, 0 or the RG_ERR_ code that is the reason why it was not
 * started, and the line. A host that is not named was not started. RG_ERR_ARGUMENT: nothing was asked, or has been
 * answered, under this number. */
int rg_hosts_started(uint32_t request, int count, const int *hosts, const int *codes, const char *const *lines);

/* The events to be notified of. */
#define RG_TASK_EXIT 1 /* `what` is a task: it has ended */
#define RG_HOST_LOST 2 /* `what` is the number of a host: it is lost, or was given back */
#define RG_HOST_ADDED 3 /* hosts come, again and again until it is cancelled: those that are added to the
                         * virtual machine that the job runs in */
#define RG_TASKS 4 /* tasks come and go, again and again: an event of kind RG_TASKS for each that gets its
                    * number, with who has started it (or RG_NONE) as `value`, and RG_TASK_EXIT for each end */

/* How a task ended. */
#define RG_BY_EXIT 1   /* `value` is its exit status */
#define RG_BY_SIGNAL 2 /* `value` is the signal */
#define RG_BY_HOST 3   /* it was lost with its host, or could not be started */
#define RG_UNKNOWN 4   /* there never was such a task */

#define RG_EVENT_MARK 0x76654752 /* the first word of an event; no message of yours begins with it */

typedef struct {
    uint32_t mark;
    int32_t kind;  /* RG_TASK_EXIT, ... */
    int32_t tid;   /* the task, or -1 */
    int32_t host;  /* the number of the host */
    int32_t how;   /* RG_BY_EXIT, ...; 0 for hosts */
    int32_t value;
    int32_t watch; /* as rg_notify gave it */
    int32_t reserved;
    char name[64]; /* of the host, for RG_HOST_ events; of the program, for RG_TASKS; cut when longer */
} rg_event;

/* Hear of something once (of hosts that come: each time): a message of this task to itself that holds
 * an rg_event, with this tag in this group. So one receive waits for messages and for events. All that has
 * happened already is told at once. The death of a task that a living task watches is no failure of
 * the job: it is the watcher's affair. */
int rg_notify(int kind, int what, int tag, rg_group group, int *watch);
/* *pending is 0 when the event has been sent already; it is then received as any message. */
int rg_notify_cancel(int watch, int *pending);

/* ---- names, mailboxes, named groups -------------------------------------------------------------- */

/* Under a name stand entries, each with an index from 0 on and some bytes. An entry goes with the task
 * that put it, which alone may change it. */
#define RG_PERSISTENT 1   /* it stays until it is deleted, or the job ends */
#define RG_SEVERAL 2      /* a further entry, if all under this name were put so */
#define RG_OVERWRITABLE 4 /* whoever puts, gets or deletes may overwrite or delete it */
#define RG_FIRST 8        /* the first entry from `index` on */
#define RG_TAKE 16        /* delete it, in one with the reading */
#define RG_AWAIT 32       /* wait for it, rather than RG_ERR_NAME */

/* `index` RG_ANY: the next one with RG_SEVERAL, else 0 (with RG_OVERWRITABLE in place of the one there).
 * RG_ERR_EXISTS if there is one, RG_ERR_DENIED if it is another task's. *placed is its index. */
int rg_put(const char *name, const void *value, size_t len, int index, int flags, int *placed);
/* Blocks with RG_AWAIT. *found is the index of what was read, *len its whole length; what does not fit
 * is RG_ERR_TRUNCATED, and an entry that was to be taken is gone. */
int rg_get(const char *name, int index, int flags, void *value, size_t capacity, size_t *len,
           int *found);
/* Add to an entry of 8 bytes, the lowest first, in one step: nobody sees it in between, and whoever ends meanwhile has added or has
 * not. A task that may overwrite it may add. *before is what it was. RG_ERR_NAME if there is none. */
int rg_add(const char *name, int index, int64_t amount, int64_t *before);
int rg_delete(const char *name, int index);

typedef struct {
    int32_t index;
    int32_t owner; /* RG_NONE: has gone */
    int32_t flags;
    uint32_t length;
    char name[112]; /* cut when longer */
} rg_entry;
/* The entries whose names match a pattern, in which * stands for any text. */
int rg_names(const char *pattern, rg_entry *entries, int capacity, int *count);

/* A named group is a list of tasks that they join and leave. The number of a member is the lowest that
 * is free when it joins. A task that ends leaves. */
int rg_join(const char *group, int *number);
int rg_leave(const char *group);
/* tids[n] is member n, or RG_NONE. *count is how many entries there are. Every join and leave that was over before
 * this was called is in it, whichever task made it. */
int rg_members(const char *group, int *tids, int capacity, int *count);
/* Blocks until `count` members have called it. All must say the same count. RG_ANY: as many as there
 * are members. When all of them have met, further calls of all cost no more than a barrier, if they
 * run on one host with the job's launcher, until somebody joins or leaves. */
int rg_meet(const char *group, int count);
/* As rg_meet. If those who met are all the members, *members and tids are as of rg_members, and equal
 * for all of them; else *members is 0. */
int rg_meet_members(const char *group, int count, int *tids, int capacity, int *members);

typedef struct {
    int32_t members; /* how many there are */
    int32_t waiting; /* how many of them wait in rg_meet */
    int32_t wanted;  /* for so many; 0: nobody waits */
    int32_t reserved;
    char name[112]; /* cut when longer */
} rg_named_group;
/* All named groups, by name. */
int rg_named_groups(rg_named_group *groups, int capacity, int *count);
/* The tasks that wait in rg_meet, in the order in which they have come. */
int rg_waiting(const char *group, int *tids, int capacity, int *count);

/* ---- settings and insight ---------------------------------------------------------------------- */

/* Seconds since some moment in the past, the same for all tasks of a host. */
double rg_time(void);
/* Which path messages to `rank` take and why, as text of at most `size` bytes with its end. */
int rg_path(rg_group group, int rank, char *text, size_t size);

/* For `regatta profile`. In a task that is not profiled these do nothing and return RG_OK. Names are text of
 * at most 63 bytes, and 128 of them are told apart. */
/* Something has happened now. */
int rg_mark(const char *name);
/* Something begins (1) or ends (0): how long it took, and how often it happened, is shown under this name. */
int rg_toggle(const char *name, int on);
/* Record from now on (1), or do not (0). A profile begins with recording. */
int rg_profile(int on);

#ifdef __cplusplus
}
#endif
#endif
