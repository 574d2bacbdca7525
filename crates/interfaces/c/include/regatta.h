/*
 * regatta.h: the C interface of Regatta, a message-passing environment.
 *
 * GRAMMAR (read this once, then guess the rest)
 *
 *  Names      rg_VERB acts; rg_iVERB starts the same act and returns at once with a request;
 *             rg_VERBv takes views (strided or scattered memory) where rg_VERB takes one block.
 *  Ids        A handle is a struct with one field, passed by value. It may be copied freely and
 *             is checked at each use: a handle that is freed or was never valid gives RG_ERR_HANDLE, never a crash.
 *  Errors     Every function that can fail returns an int: 0 (RG_OK) or a negative RG_ERR_ code.
 *             A call that fails has had no effect, unless the function says otherwise.
 *             rg_strerror(code) explains the code; rg_last_error() gives this thread's last
 *             error as a sentence with its names and numbers.
 *  Order      Parameters are ordered (buffer, length, peer, tag, group, outputs). Outputs come
 *             last. An output that only informs (status, count) may be NULL; a result that has
 *             to be used (a request, a new group, a flag) may not.
 *  Units      Lengths, offsets and strides are bytes. Counts are elements. Ranks are ints from 0.
 *  Ownership  A buffer given to a blocking call is yours again when the call returns. A buffer
 *             given to an rg_i call belongs to Regatta until its request is complete: do not read
 *             a receive buffer, do not write a send buffer. Callers own every output object.
 *  Blocking   A comment says "Blocks" where the call may wait for another task. A blocked task
 *             sleeps when there is nothing to do. All other calls return without waiting.
 *  Threads    Every function may be called by any thread at any time between rg_init and
 *             rg_finalize. Calls of one thread that use one group are ordered; several threads
 *             that enter collectives of one group must agree on an order themselves. No call is a
 *             cancellation point: a thread cancelled during a call (pthread_cancel) ends at its
 *             first cancellation point after the call. Asynchronous cancellation is not supported.
 *             A task ends when the last thread of its program ends.
 *
 *  Signals    The only function that any signal handler may call is rg_abort. Any other call returns
 *             RG_ERR_STATE, without effect, if the signal interrupted a Regatta call of the same
 *             thread that was holding the engine's lock. Otherwise the call may work, but is unsafe:
 *             most calls use malloc, and the signal may have interrupted malloc. Let a handler set a
 *             flag, and act on the flag outside the handler.
 *
 *  Forks      A child that a task forks is not that task: every call in it returns RG_ERR_STATE, and
 *             blocks from rg_loan are not mapped in it. It may only exec or end. The parent remains
 *             the task and is not affected.
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
#define RG_ERR_ARGUMENT (-1)   /* an argument is not valid; the last error says which */
#define RG_ERR_STATE (-2)      /* called before rg_init, after rg_finalize, in a forked child, or inside another call (from a signal
                                * handler or an operator); or the other members consider this task dead (rg_group_shrink, rg_agree) */
#define RG_ERR_TASK (-3)       /* no such task or rank */
#define RG_ERR_TAG (-4)        /* tags are 0 .. 2147483647 */
#define RG_ERR_HANDLE (-5)     /* the handle was completed, freed, or never valid */
#define RG_ERR_TRUNCATED (-6)  /* the message was longer than the buffer, which holds its first bytes */
#define RG_ERR_DEAD (-7)       /* a task this call depends on has died; the last error names it */
#define RG_ERR_LEFT (-8)       /* a task this call depends on has left with rg_finalize */
#define RG_ERR_MEMORY (-9)     /* memory, or a limit on it, is used up */
#define RG_ERR_CYCLE (-10)     /* waiting senders form a cycle, all buffers full; the last error names its tasks */
#define RG_ERR_CANCELLED (-12) /* the request was cancelled, or the program ended the wait (rg_on_wait) */
#define RG_ERR_CORRUPT (-13)   /* shared memory holds data that no task of this version writes */
#define RG_ERR_LAUNCHER (-14)  /* the launcher is one that Regatta does not support, cannot be reached, or has ended */
#define RG_ERR_VERSION (-15)   /* launcher and library have incompatible versions */
#define RG_ERR_SYSTEM (-16)    /* a system call failed; the last error has the system's message */
#define RG_ERR_UNSUPPORTED (-17) /* reserved; nothing returns it */
#define RG_ERR_PROGRAM (-18)   /* a program to be started is missing, or cannot be executed */
#define RG_ERR_HOST (-19)      /* no such host in the job */
#define RG_ERR_NAME (-20)      /* no entry or named group has this name */
#define RG_ERR_EXISTS (-21)    /* the name, host or role is already taken */
#define RG_ERR_DENIED (-22)    /* the entry belongs to another task */
#define RG_ERR_NOTHING (-23)   /* no message arrived in that time */
#define RG_ERR_REVOKED (-24)   /* a member has revoked the group */

const char *rg_strerror(int code);  /* the code's meaning; static storage, never NULL */
const char *rg_last_error(void);    /* this thread's last error; valid until its next failing call */
int rg_last_error_task(void);       /* id of the task that this thread's last error concerns, such as the one that died; else RG_NONE */
const char *rg_version(void);       /* "regatta 0.1.0 ..." */

/* ---- life --------------------------------------------------------------------------------- */

/* Joins the job in which `regatta run` started this process. A process without a job becomes a world of one.
 * Under Slurm's srun the process becomes one of the step's tasks, and the call blocks until all of them have called
 * rg_init (at most 60 s, or REGATTA_JOIN_TIMEOUT). Under other launchers it fails with RG_ERR_LAUNCHER, unless
 * REGATTA_SINGLETON=allow. A second call does nothing. */
int rg_init(void);
/* Leaves the job. Receivers can still receive messages already sent. Drops requests that are still open.
 * On one host it does not wait for receivers, with these exceptions. If the ring to a task is full, it waits for room for the
 * data of rg_bsend and rg_loan_send, and to acknowledge that task's synchronous messages; for the latter it gives up after 5 s
 * without progress. It waits for started sends that have a completion callback (rg_on_complete) until they complete or their
 * receiver is gone; for a synchronous send whose data has all been sent it gives up after 5 s without progress. In a job of
 * several hosts it waits until everything sent to other hosts has arrived there.
 * RG_ERR_CYCLE: the tasks it waits for are waiting for this task, which has not left; receive, and call rg_finalize again.
 * RG_ERR_LAUNCHER: the launcher has ended; this task has left, and what it was waiting for may be lost. */
int rg_finalize(void);
/* With 1, declares that this task may end at any later time without rg_finalize (_exit, exec): its end then counts as if it
 * had left just now, and is a failure only if it ends by a signal or with a status other than 0. Blocks until its messages are
 * delivered, as rg_finalize does. Until it ends it remains a task, also for the others, and may go on calling Regatta.
 * With 0 this is undone: the task has to call rg_finalize before it ends. For libraries that cannot tell whether their
 * program will call them again. */
int rg_may_end(int may_end);
/* Like rg_init in a process that was started as a task of a job. Any other process enters the resident job of this name:
 * a job that runs by itself, which programs started by hand enter and leave, and which runs until rg_halt.
 * RG_BEGIN starts the job if it does not run, then enters it. RG_BEGIN_ONLY starts it without entering. RG_LOOK does neither and
 * only checks: RG_ERR_LAUNCHER means that it does not run. After rg_finalize a process may enter the job again, as a new
 * task. A name is made of letters, digits, '.', '-' and '_'. */
#define RG_BEGIN 1
#define RG_BEGIN_ONLY 2
#define RG_LOOK 3
int rg_enter(const char *job, int flags);
/* Ends the job and all its tasks, including this one. */
int rg_halt(void);
/* Like rg_halt, and makes `regatta run` exit with this status (its low eight bits; 0 becomes 1), unless a task had failed
 * before; the launcher reports which task called it. Does not return, except with RG_ERR_STATE in a process that is not a
 * task. Flushes nothing and calls no atexit functions. A task of srun ends alone, with this status; whether srun then ends
 * the others depends on its --kill-on-bad-exit. */
int rg_abort(int code);
int rg_initialized(void); /* 1 between rg_init and rg_finalize, otherwise 0 */

/* ---- who ---------------------------------------------------------------------------------- */

typedef struct {
    int32_t id;
} rg_group;

#ifdef __cplusplus
#define RG_GROUP_(n) (rg_group{n})
#else
#define RG_GROUP_(n) ((rg_group){n})
#endif
/* The tasks that were started together with this one, by one `regatta run` or one rg_spawn, in rank order. */
#define RG_WORLD RG_GROUP_(0)
/* Every task of the job. A task's rank in it is its task id, and its size grows with the job. It is for messages only:
 * collectives need a fixed set of members, so make a group of them (rg_group_select). A receive from RG_ANY in it keeps
 * waiting when tasks end, because new tasks may still send. */
#define RG_ALL RG_CHANNEL(0)
/* Like RG_ALL, but separate: a message sent in one channel is received in that channel only. A channel is just a number
 * from 0 to 134217727 on which tasks agree. Numbers from 134217728 to 536870911 are reserved for the other interfaces. */
#define RG_CHANNEL(n) RG_GROUP_(0x40000000 + (n))

#define RG_ANY (-1)  /* any source, any tag */
#define RG_NONE (-2) /* no peer: sends and receives complete at once, empty (MPI_PROC_NULL) */

int rg_rank(rg_group group); /* the caller's rank, or a negative error */
int rg_size(rg_group group); /* number of members, or a negative error */
/* Task ids count from 0 in the order in which tasks are started, and are never used twice in a job. */
int rg_tid(void); /* the caller's task id, or a negative error */
int rg_tid_of(rg_group group, int rank);
int rg_host_of(int tid); /* the number of the host on which this task runs */
int rg_rank_of(rg_group group, int tid); /* RG_ERR_TASK if it is not a member */
int rg_parent(void);                     /* id of the task that started the caller; RG_NONE: the launcher did */

/* ---- send and receive ---------------------------------------------------------------------- */

typedef struct {
    int32_t source; /* rank of the sender in the group; RG_NONE if there was no message */
    int32_t tag;
    size_t length; /* length of the message in bytes, even if it was truncated */
    int32_t error; /* RG_OK, or the error with which this operation ended */
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
/* The request of every operation that was complete when it was started, as most small sends are. It never becomes stale. */
#define RG_REQUEST_COMPLETE ((rg_request){UINT64_C(1) << 63})
#endif

/* Sends a message. Blocks until the buffer may be reused: not at all while Regatta has room to hold the message, otherwise
 * until the receiver takes it. RG_ERR_DEAD: the receiver is known to be dead, because this host knows it or because an
 * earlier call in this group returned that. */
int rg_send(const void *buf, size_t len, int to, int tag, rg_group group);
/* Synchronous send: blocks until the receiver has begun to receive. */
int rg_ssend(const void *buf, size_t len, int to, int tag, rg_group group);
/* Ready send: the caller promises that the receive is already posted. Regatta does not need this promise and treats the
 * call like rg_send; it exists for interfaces that have a ready mode. */
int rg_rsend(const void *buf, size_t len, int to, int tag, rg_group group);
/* Buffered send: never waits for the receiver. Data for which there is no room is copied, and sent during later calls of
 * this task; rg_finalize waits until it has been sent. */
int rg_bsend(const void *buf, size_t len, int to, int tag, rg_group group);
/* Receives a message. Blocks until it has arrived. RG_ERR_TRUNCATED: the message is longer than the buffer, which holds its
 * first bytes; status->length is the length of the message. */
int rg_recv(void *buf, size_t capacity, int from, int tag, rg_group group, rg_status *status);
/* Receives a message that fits into the buffer. Blocks for at most `seconds` (0: does not block; negative: no limit).
 * RG_ERR_NOTHING: no message arrived. RG_ERR_TRUNCATED: the message does not fit and is left in the queue; *status has its
 * source, tag and length. */
int rg_recv_within(void *buf, size_t capacity, int from, int tag, rg_group group, double seconds,
                   rg_status *status);
/* Like rg_recv_within with 0 seconds, but only for messages that were passed over; it does not poll for new ones. A message
 * was passed over if a message that arrived later has been received, or if it had arrived before the launcher's last answer
 * (to rg_spawn, rg_tasks, rg_meet or any other call that asks the launcher). For programs that handle messages strictly one
 * after the other: each call of rg_recv_within(..., RG_ANY, RG_ANY, group, 0, ...) then returns the next message. */
int rg_recv_passed(void *buf, size_t capacity, int from, int tag, rg_group group, rg_status *status);
/* Marks all messages that have arrived as passed over, as an answer of the launcher does. */
int rg_pass_over(void);
/* Sends and receives at the same time. Blocks until both are complete. */
int rg_sendrecv(const void *sbuf, size_t slen, int to, int stag, void *rbuf, size_t rcapacity,
                int from, int rtag, rg_group group, rg_status *status);

int rg_isend(const void *buf, size_t len, int to, int tag, rg_group group, rg_request *request);
int rg_issend(const void *buf, size_t len, int to, int tag, rg_group group, rg_request *request);
int rg_irsend(const void *buf, size_t len, int to, int tag, rg_group group, rg_request *request);
int rg_irecv(void *buf, size_t capacity, int from, int tag, rg_group group, rg_request *request);

/* Receive with a masked tag: match messages with (message tag & mask) == (tag & mask). */
int rg_recv_masked(void *buf, size_t capacity, int from, int tag, int mask, rg_group group,
                   rg_status *status);
int rg_irecv_masked(void *buf, size_t capacity, int from, int tag, int mask, rg_group group,
                    rg_request *request);

/* Check for a message without receiving it. rg_probe blocks until there is one; rg_iprobe sets *found to 1 or 0. */
int rg_probe(int from, int tag, rg_group group, rg_status *status);
int rg_iprobe(int from, int tag, rg_group group, int *found, rg_status *status);

/* A message that a matched probe has found and removed from matching: no other receive or probe of any thread sees it. It
 * waits for its rg_mrecv, and rg_finalize drops it. For its sender the message is matched; a synchronous send completes when
 * rg_mrecv begins. */
typedef struct {
    uint64_t id;
} rg_message;
#ifdef __cplusplus
#define RG_MESSAGE_(n) (rg_message{n})
#else
#define RG_MESSAGE_(n) ((rg_message){n})
#endif
#define RG_MESSAGE_NULL RG_MESSAGE_(0)
/* The empty message that a probe of RG_NONE finds. Receiving it completes at once. */
#define RG_MESSAGE_NONE RG_MESSAGE_(UINT64_MAX)

/* Like rg_probe and rg_iprobe, and remove the message from matching. *message is RG_MESSAGE_NULL if none was found. */
int rg_mprobe(int from, int tag, rg_group group, rg_message *message, rg_status *status);
int rg_improbe(int from, int tag, rg_group group, int *found, rg_message *message,
               rg_status *status);
/* Receive a message that a matched probe has found. rg_mrecv blocks until all of it has arrived. *message becomes
 * RG_MESSAGE_NULL, also if the receive itself fails (RG_ERR_TRUNCATED; RG_ERR_DEAD if the sender died before all of the
 * message had arrived). After RG_ERR_ARGUMENT the message can still be received. RG_MESSAGE_NULL gives RG_ERR_HANDLE. */
int rg_mrecv(rg_message *message, void *buf, size_t capacity, rg_status *status);
int rg_imrecv(rg_message *message, void *buf, size_t capacity, rg_request *request);
/* Finds the message that arrived first among the unreceived messages of these groups. *index is the index of its group in
 * `groups`. RG_ERR_NOTHING: there is no such message. */
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

/* These calls complete requests: a completed request is freed and set to RG_REQUEST_NULL. Waiting for RG_REQUEST_NULL returns
 * at once. The return value is the error of the operation. After RG_ERR_CYCLE the request is not null: only the wait has
 * ended. The send continues, and its buffer stays in use until the request is completed. */
int rg_wait(rg_request *request, rg_status *status);                            /* blocks */
int rg_test(rg_request *request, int *done, rg_status *status);
/* Like rg_test, but does not free a completed request: it still has to be completed by one of the other calls. */
int rg_look(rg_request request, int *done, rg_status *status);
int rg_waitall(int n, rg_request *requests, rg_status *statuses);               /* blocks */
int rg_waitany(int n, rg_request *requests, int *index, rg_status *status);     /* blocks */
int rg_testall(int n, rg_request *requests, int *done, rg_status *statuses);
int rg_testany(int n, rg_request *requests, int *index, int *done, rg_status *status);

/* Makes Regatta call `done` once when the request completes, from inside a later Regatta call of any thread. Regatta takes
 * over the request and frees it: *request becomes RG_REQUEST_NULL. */
typedef void (*rg_callback)(const rg_status *status, void *arg);
int rg_on_complete(rg_request *request, rg_callback done, void *arg);
/* Cancels a receive that has not matched yet. *cancelled says whether it was cancelled; the request must still be completed.
 * For an incomplete send the receiver is asked to return the message: if no receive has matched it, the send completes with
 * RG_ERR_CANCELLED, otherwise normally. */
int rg_cancel(rg_request request, int *cancelled);

/* Registers a function that can end a blocking call. Language interpreters need this, because they handle signals only
 * between instructions. While a send, receive, probe, wait or collective blocks, its thread calls `asked` after each signal
 * and twice a second. If `asked` sets *ends to a value other than 0, the call returns RG_ERR_CANCELLED and its operation is
 * abandoned; requests, however, continue and are not set to RG_REQUEST_NULL. After abandoning a collective it is best to call
 * rg_group_revoke, because the other members would wait for ever. `asked` must not call Regatta. NULL unregisters it. */
typedef void (*rg_asked)(int *ends, void *arg);
int rg_on_wait(rg_asked asked, void *arg);

/* Advances all pending operations and runs callbacks of completed ones, without waiting. */
int rg_progress(void);
/* Returns a file descriptor that becomes readable when a message may have arrived. Use it in poll or epoll; when it is
 * readable call rg_clear_fd, then rg_test or rg_progress. It belongs to Regatta: do not close it.
 * It also becomes readable when the launcher has ended; rg_clear_fd then returns RG_ERR_LAUNCHER. */
int rg_fd(int *fd);
int rg_clear_fd(void);
/* Makes the descriptor readable until the next rg_clear_fd. Call it when you stop polling with messages left over. */
int rg_raise_fd(void);

/* ---- loans: messages that are never copied -------------------------------------------------- */

/* Borrows a block of `len` bytes of shared memory, in which to write a message in place. The block is yours until
 * rg_loan_send or rg_loan_free. RG_ERR_MEMORY: there is no memory for it. */
int rg_loan(size_t len, void **block);
/* Sends the first `len` bytes of a block and hands the block over to the receiver: do not touch it afterwards. Does not block. */
int rg_loan_send(void *block, size_t len, int to, int tag, rg_group group);
/* Receives a message in place. Blocks. Any message can be received this way; one sent with rg_loan_send on the same host is
 * not copied. The block is then yours to read, write, send on or free. */
int rg_loan_recv(void **block, int from, int tag, rg_group group, rg_status *status);
int rg_loan_free(void *block);

/* Shares a block with task `to`, which can then read it in place while it stays yours. Send the name and the length to that
 * task in a message. From then on no task may write the shared part. You may read it, share it with more tasks, write behind
 * the shared part, and free the block: its memory is reused once all readers have closed it or have ended.
 * RG_ERR_NOTHING: the block has the maximum number of readers, too much freed memory waits for its readers, or the task is on
 * another host. Send a copy then. Does not block. */
int rg_loan_share(void *block, int to, rg_group group, uint64_t *name);
/* Opens the block that another task has shared with this one under this name: *block points to `len` readable bytes, valid
 * until rg_loan_close or rg_finalize. */
int rg_loan_open(uint64_t name, size_t len, const void **block);
/* Ends reading of a shared block. The owner also calls this to take back a share whose name it never sent. */
int rg_loan_close(uint64_t name);

/* ---- groups --------------------------------------------------------------------------------- */

/* The functions that make groups are collective: every member of the new group calls them. They block unless they say
 * otherwise. Threads may make groups from different groups at the same time, in any order. */

/* Makes a group with the same members and ranks as `group`. */
int rg_group_dup(rg_group group, rg_group *out);
/* Like rg_group_dup, without blocking. *out may be used once the request has completed without error. */
int rg_igroup_dup(rg_group group, rg_group *out, rg_request *request);
/* Makes a group of the members `ranks[0..n)` of `group`, in that order. Only these members call it. */
int rg_group_select(rg_group group, int n, const int *ranks, rg_group *out);
/* Like rg_group_select, but several threads may call it with the same group at the same time if their tags differ. All members
 * of a new group pass the same tag, which is unrelated to message tags. */
int rg_group_select_tagged(rg_group group, int n, const int *ranks, int tag, rg_group *out);
/* Like rg_group_select_tagged, without blocking, and makes `groups` groups (1 to 16) of the same members at once, in the time
 * that one takes. All members pass the same `groups`. out[0..groups) may be used once the request has completed without error.
 * If n is 0 and `ranks` is NULL, all members of `group` call it, as with rg_igroup_dup, and the tag is ignored. */
int rg_igroup_select(rg_group group, int n, const int *ranks, int tag, int groups, rg_group *out,
                     rg_request *request);
/* Splits `group`: members with equal `colour` (0 or more) make a group, ordered by (key, rank). Every member of `group` calls
 * it. A member with colour RG_NONE joins no group and gets {-1}. If a member has no room for another group, the call fails at
 * all members. */
int rg_group_split(rg_group group, int colour, int key, rg_group *out);
/* Makes a group of the living members of `group`, in rank order. Every living member calls it. If two members have given each
 * other up (--unreachable), one of them is excluded and gets RG_ERR_STATE. */
int rg_group_shrink(rg_group group, rg_group *out);
/* Ends all operations in `group` at every member with RG_ERR_REVOKED: blocked calls, pending requests, and all later calls.
 * Only rg_group_shrink, rg_agree, rg_iagree and queries about ranks still work. One or several members call it; it returns at
 * once. Every living member learns of it in its current or next call, even if the caller dies. It cannot be undone. RG_WORLD
 * can be revoked, RG_ALL and channels cannot. */
int rg_group_revoke(rg_group group);
/* Returns 1 if the caller knows that the group is revoked, otherwise 0. */
int rg_group_is_revoked(rg_group group);
/* Ties two groups: when this task learns that one of them is revoked, the other is revoked, too. This is local to the calling
 * task: a member of both groups learns of both revocations only if it has tied them itself. For libraries that keep a group of
 * their own beside the program's. */
int rg_group_tie(rg_group group, rg_group other);
/* Keeps requests of this task for messages of this group pending when a member leaves: a request that depends on that member
 * can be cancelled, and a receive from RG_ANY can still match messages from other members or from this task. rg_iprobe and
 * rg_improbe then find nothing instead of failing. Blocking calls still fail with RG_ERR_LEFT as soon as it is certain that
 * nothing can complete them. This is local to the calling task; deaths and collectives are not affected. threads: 1 if other
 * threads of this task also call Regatta; then a receive from RG_ANY keeps waiting, since another thread could send the
 * message. For libraries such as MPI, in which a finalized process still counts as present. */
int rg_group_tolerate_left(rg_group group, int threads);
/* Agrees on a flag: *flag becomes the bitwise AND of the flags of all members. Blocks. Every living member calls it, in the
 * same order as rg_group_shrink; the group may be revoked. All members that survive get the same flag and the same return
 * value, even if members die during the call. RG_ERR_DEAD: a member has died, and not all members had acknowledged that
 * (rg_acknowledge_dead) before they called; *flag is agreed on nevertheless. If two members have given each other up
 * (--unreachable), one of them is excluded and gets RG_ERR_STATE. */
int rg_agree(int *flag, rg_group group);
/* Like rg_agree, without blocking. Reads *flag at once, and writes the result there when the request completes. */
int rg_iagree(int *flag, rg_group group, rg_request *request);
/* Frees the caller's handle of a group. Does not wait for the other members; the shared memory of the group is reused once
 * all members have freed it. */
int rg_group_free(rg_group group);
/* Acknowledges all deaths in the group that this task knows of. *dead is the number of dead members. A receive from RG_ANY
 * fails with RG_ERR_DEAD while the group has a dead member that this task has not acknowledged; afterwards it matches
 * messages of the living members. */
int rg_acknowledge_dead(rg_group group, int *dead);
/* Lists the ranks of the dead members that this task knows of, because this host knows it or because an earlier call in this
 * group returned that. Writes at most `capacity` ranks; *count is the number of dead members. */
int rg_dead(rg_group group, int *ranks, int capacity, int *count);

/* ---- collectives ----------------------------------------------------------------------------- */

typedef enum {
    RG_INT8 = 1, RG_INT16, RG_INT32, RG_INT64,
    RG_UINT8, RG_UINT16, RG_UINT32, RG_UINT64,
    RG_FLOAT, RG_DOUBLE, RG_LONG_DOUBLE
} rg_type;
/* An element of n bytes, for user operators. */
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

/* A user operator: sets inout[i] = in[i] (op) inout[i] for `count` elements, where `in` comes from lower ranks than `inout`.
 * It must be associative and must not call Regatta. */
typedef void (*rg_combine)(const void *in, void *inout, size_t count, void *arg);
int rg_op_create(rg_combine combine, void *arg, int commutative, rg_op *op);
int rg_op_free(rg_op op);

/* Every member of the group calls all collectives of the group in the same order. All block, except the rg_i forms. If a
 * member dies, every member that cannot finish gets RG_ERR_DEAD; the last error names the dead member. All members pass the
 * same lengths, counts, types and root, unless a call says otherwise. Where marked (*), `in` may be RG_IN_PLACE: the input
 * is then taken from `out`. */
#define RG_IN_PLACE ((const void *)1)

int rg_barrier(rg_group group);
int rg_broadcast(void *buf, size_t len, int root, rg_group group);
int rg_reduce(const void *in /*(*) at root*/, void *out, size_t count, rg_type type, rg_op op,
              int root, rg_group group);
int rg_allreduce(const void *in /*(*)*/, void *out, size_t count, rg_type type, rg_op op,
                 rg_group group);
int rg_scan(const void *in /*(*)*/, void *out, size_t count, rg_type type, rg_op op,
            rg_group group); /* inclusive prefix */
/* Exclusive prefix: combines the inputs of the lower ranks. `out` is neither read nor written at rank 0. */
int rg_exscan(const void *in /*(*)*/, void *out, size_t count, rg_type type, rg_op op,
              rg_group group);
/* Reduces and scatters: the input consists of counts[0] elements, then counts[1] elements, and so on, one count per rank, the
 * same at all members; member r gets the counts[r] combined elements of its part. In place, the whole input is at `out`; the
 * result is written to the start of `out`, and the rest of `out` keeps its contents. */
int rg_reduce_scatter(const void *in /*(*)*/, void *out, const size_t *counts, rg_type type,
                      rg_op op, rg_group group);
/* Like rg_reduce_scatter, with equal parts: the input has `count` elements for each rank, in rank order, and member r gets
 * the `count` combined elements of its part. */
int rg_reduce_scatter_block(const void *in /*(*)*/, void *out, size_t count, rg_type type, rg_op op,
                            rg_group group);
/* len: number of bytes that each task contributes or gets. lens, offsets: one per rank, in bytes. */
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
/* `counts` may be changed as soon as the call returns. */
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

/* These functions ask the launcher of the job. They block until it has answered, which takes a fraction of a millisecond
 * unless the function says otherwise. A task that was started by hand starts a launcher for itself. A task of srun has no
 * launcher and gets RG_ERR_LAUNCHER. */

typedef struct {
    const char *host;               /* name of a host, "." for the caller's; NULL: the launcher chooses */
    const char *search;             /* directories in which to search for the program, separated by ':';
                                     * NULL: those of PATH */
    const char *architecture;       /* use only hosts of this architecture, such as "x86_64"; NULL: any */
    const char *directory;          /* working directory of the tasks; NULL: that of the job */
    const char *const *environment; /* "NAME=value", ..., NULL: added to the job's environment */
    int32_t elsewhere;              /* 1: on any host except `host` (NULL: except the caller's) */
    int32_t output;                 /* destination of their output: RG_OUTPUT_...; 0: the same as the caller's */
    int32_t output_tag;             /* tag and group of the messages that carry the output */
    rg_group output_group;
    int32_t orphans;                /* 1: the caller is not shown as their parent in rg_tasks */
    int32_t on_behalf;              /* 1 + the id of the task that counts as their parent; 0: the caller */
    const char *through; /* start this program, such as a debugger, with the path of `program` as its first
                          * argument; NULL: start `program` itself */
    int32_t output_to;    /* 1 + the id of the task that receives their output; 0: the caller. For another
                           * task output_group must be a group that both have, such as RG_ALL or a channel */
    int32_t reserved;
} rg_spawn_options;

#define RG_OUTPUT_JOB 1    /* to the job's output */
#define RG_OUTPUT_LINES 2  /* to the caller, each line as a message; a long line in pieces */
#define RG_OUTPUT_BLOCKS 3 /* to the caller, in pieces as it is written */
#define RG_OUTPUT_BIRTHS 16 /* flag, to be OR-ed with LINES or BLOCKS: also send a message for each started task, before its output */

#define RG_OUTPUT_MARK 0x756f4752 /* the first word of a message with output */
#define RG_OUTPUT_MOST 4096

/* A message with output of a started task, which the receiving task gets from itself with the tag and in the group that the
 * options name. The length of the message is that of the fields before `text` plus `length`. Messages are in order for each
 * task and stream. The receiving task has to receive them: a writing task waits, as at a full pipe, while a few hundred
 * kilobytes of its host's output have not been received. When the receiving task calls rg_finalize or ends, the rest goes to
 * the job's output. */
typedef struct {
    uint32_t mark;
    int32_t tid;
    int32_t stream;            /* 1: standard output; 2: standard error; 0: the task was started, and the text is
                                * an int32_t, the id of the task that started it, or RG_NONE */
    uint32_t length;           /* bytes of text; 0: the stream has ended */
    char text[RG_OUTPUT_MOST]; /* a line includes its newline, unless the line was cut or is an unterminated last line */
} rg_output;

/* Starts `count` tasks of `program`, found as `regatta run` finds it, with the arguments argv[0], ..., NULL (without the
 * program's name; argv may be NULL). options may be NULL. The tasks form a world of their own and have consecutive ids. When
 * the call returns, messages can be sent to them, though they may not have called rg_init yet.
 * If some tasks could not be started, the others run: tids[0 .. *started) are ids, each remaining entry is the RG_ERR_ code
 * of a task that could not be started, and the return value is the first of these codes.
 * The started tasks may outlive the caller; the job ends when its last task ends. */
int rg_spawn(const char *program, char *const argv[], const rg_spawn_options *options, int count,
             int *tids, int *started);
/* Sends a signal to a task. The result says only whether the task exists. Signal 0 sends nothing. */
int rg_signal(int tid, int signal);
/* Kills a task with SIGKILL. Its death counts as intended and is no failure of the job. */
int rg_kill(int tid);

typedef struct {
    int32_t tid;
    int32_t parent; /* the task that started it; RG_NONE: the launcher; its own id: started with `orphans` */
    int32_t host;   /* number of the host on which it runs */
    int32_t pid;
    char program[240]; /* program name as given, NUL-terminated; cut if longer */
} rg_task;

typedef struct {
    int32_t host; /* number of the host */
    int32_t cores;
    int32_t tasks; /* number of tasks running there */
    int32_t alive;
    char name[64];
    char architecture[32];
    int32_t speed; /* relative speed: 1000, unless its line in a host file says otherwise (sp=) */
    int32_t reserved;
} rg_host;

/* Lists the running tasks (rg_tasks) or the hosts of the job (rg_hosts), ordered by id or number. Writes at most `capacity`
 * entries; *count is the number of tasks or hosts. */
int rg_tasks(rg_task *tasks, int capacity, int *count);
int rg_hosts(rg_host *hosts, int capacity, int *count);
/* Reads the clock of a host, in microseconds since 1970. The clock is read on that host, between call and return. */
int rg_clock(int host, int64_t *microseconds);

/* Add hosts to a resident job (rg_enter), or remove them. A line names a host, and may go on with options of PVM's host
 * files, such as "beta lo=joe wd=/scratch sp=500". If `numbers` is not NULL, numbers[i] becomes the number of host i, or the
 * RG_ERR_ code that says why it failed: RG_ERR_HOST (unknown host), RG_ERR_EXISTS (already in the job), RG_ERR_SYSTEM (it could
 * not be started). A failure of one host does not affect the others; the first code is the return value, and rg_last_error
 * explains it. Tasks on a removed host are ended. Both block until the result for every host is known. If a host's line asks
 * for a password or a manual start (so=pw, so=ms), the user is asked at the terminal that is the caller's standard input. */
int rg_add_hosts(const char *const *lines, int count, int *numbers);
int rg_remove_hosts(const char *const *names, int count, int *numbers);
/* Like rg_add_hosts, for the text of a whole host file. Its default options, and its lines for hosts that are only described,
 * also apply to hosts that are added later. *added is the number of hosts added. */
int rg_add_host_file(const char *text, int *added);

/* Makes this task start the tasks of this host in place of the launcher. Only in a resident job (rg_enter), on the launcher's
 * host. From now on, for each task to be started there, this task receives a message from itself with this tag in this
 * group: an rg_start. To all other tasks it then already counts as started. RG_ERR_EXISTS: another task does this already. */
int rg_start_others(int tag, rg_group group);

#define RG_START_MARK 0x74734752 /* first word of an rg_start; the program's own messages must not begin with it */

/* The header of the message. NUL-terminated texts follow: the path of the program, its arguments (without the program's name),
 * and its environment as NAME=value. Start the process with these variables added to your environment: it then becomes the
 * task when it enters the job. */
typedef struct {
    uint32_t mark;
    int32_t tid;
    uint32_t ticket; /* stands for its process id in rg_tasks until it has entered the job */
    uint32_t arguments;   /* number of arguments */
    uint32_t environment; /* number of variables */
    uint32_t reserved;
} rg_start;

/* Reports that a task could not be started, or that its process ended before it entered the job. `status` is a wait status.
 * (Regatta itself detects the end of a task that has entered the job.) */
int rg_has_ended(int tid, int status);

/* Makes this task start the agents of hosts in place of the launcher when hosts are added (rg_add_hosts). Only in a resident
 * job (rg_enter), on the launcher's host (otherwise RG_ERR_HOST). From now on this task receives a message from itself with
 * this tag in this group whenever hosts are to be started: an rg_start_hosts. The task has a shell on each host run that
 * host's command, by whatever means it likes, and passes the one line that each command printed to rg_hosts_started: from
 * this line the launcher finds the agent, which keeps running on the host. RG_ERR_EXISTS: another task does this already. */
int rg_begin_hosting(int tag, rg_group group);
/* Ends what rg_begin_hosting began. Requests already received must still be answered (rg_hosts_started). RG_ERR_TASK: this
 * task was not registered. */
int rg_end_hosting(void);

#define RG_HOSTS_MARK 0x6f684752 /* first word of an rg_start_hosts; the program's own messages must not begin with it */

/* The header of the message. The numbers that the hosts will have follow, one int32_t each; then three NUL-terminated texts
 * for each host: the value of so= in its host-file line, or an empty text; the host, optionally as login@host; the command.
 * Keep the line that the command prints secret: any process that knows it can act as the agent's launcher. */
typedef struct {
    uint32_t mark;
    uint32_t request; /* for rg_hosts_started */
    uint32_t hosts;   /* number of hosts */
    uint32_t reserved;
} rg_start_hosts;

/* Reports the result for the hosts of a request: for each host its number, then 0 or the RG_ERR_ code that says why it was
 * not started, and the line that its command printed. A host that is not listed counts as not started. RG_ERR_ARGUMENT: there
 * is no request with this number, or it has already been answered. */
int rg_hosts_started(uint32_t request, int count, const int *hosts, const int *codes, const char *const *lines);

/* Kinds of events, for rg_notify. */
#define RG_TASK_EXIT 1 /* the task `what` has ended */
#define RG_HOST_LOST 2 /* the host with number `what` is lost or was removed */
#define RG_HOST_ADDED 3 /* a host was added to the virtual machine in which the job runs; repeats until
                         * it is cancelled */
#define RG_TASKS 4 /* tasks begin and end; repeats until it is cancelled: an event of kind RG_TASKS for each new task,
                    * with the task that started it (or RG_NONE) as `value`, and RG_TASK_EXIT for each end */

/* How a task ended. */
#define RG_BY_EXIT 1   /* `value` is its exit status */
#define RG_BY_SIGNAL 2 /* `value` is the signal */
#define RG_BY_HOST 3   /* the task was lost with its host, or could not be started */
#define RG_UNKNOWN 4   /* no task ever had this id */

#define RG_EVENT_MARK 0x76654752 /* first word of an event; the program's own messages must not begin with it */

typedef struct {
    uint32_t mark;
    int32_t kind;  /* RG_TASK_EXIT, ... */
    int32_t tid;   /* the task, or -1 */
    int32_t host;  /* the number of the host */
    int32_t how;   /* RG_BY_EXIT, ...; 0 for hosts */
    int32_t value;
    int32_t watch; /* the number that rg_notify returned */
    int32_t reserved;
    char name[64]; /* name of the host (RG_HOST_ events) or of the program (RG_TASKS); cut if longer */
} rg_event;

/* Asks for an event. When it happens, this task receives a message from itself with this tag in this group, which holds an
 * rg_event; so one receive waits for messages and for events. RG_TASK_EXIT and RG_HOST_LOST give one event, RG_HOST_ADDED and
 * RG_TASKS one each time. If the task or host is already gone, the event is sent at once. The death of a task that a living
 * task watches is no failure of the job: the watcher is expected to handle it. */
int rg_notify(int kind, int what, int tag, rg_group group, int *watch);
/* Cancels a watch. *pending is 1 if it was still active, and 0 if its event has already been sent; the event is then received
 * like any other message. */
int rg_notify_cancel(int watch, int *pending);

/* ---- names, mailboxes, named groups -------------------------------------------------------------- */

/* A name has entries, each with an index (0 or more) and a value of bytes. By default an entry is deleted when the task that
 * put it ends, and only that task may change it. */
#define RG_PERSISTENT 1   /* rg_put: the entry stays until it is deleted, or the job ends */
#define RG_SEVERAL 2      /* rg_put: add an entry to those under this name, which must all have been put with this flag */
#define RG_OVERWRITABLE 4 /* rg_put: any task may overwrite or delete the entry */
#define RG_FIRST 8        /* rg_get: the first entry at or after `index` */
#define RG_TAKE 16        /* rg_get: read and delete atomically */
#define RG_AWAIT 32       /* rg_get: wait for the entry instead of failing with RG_ERR_NAME */

/* Puts an entry under a name. `index` RG_ANY: the lowest free index with RG_SEVERAL, otherwise 0 (with RG_OVERWRITABLE an
 * existing entry is replaced). *placed is the index. RG_ERR_EXISTS: with RG_ANY, there is an entry already. RG_ERR_DENIED: the
 * entry to be replaced belongs to another task and is not overwritable. */
int rg_put(const char *name, const void *value, size_t len, int index, int flags, int *placed);
/* Reads an entry. Blocks with RG_AWAIT. *found is its index, *len its length. RG_ERR_TRUNCATED: the value is longer than
 * `capacity`; with RG_TAKE the entry has been deleted nevertheless. */
int rg_get(const char *name, int index, int flags, void *value, size_t capacity, size_t *len,
           int *found);
/* Atomically adds to an 8-byte little-endian entry. If the caller dies during the call, the addition has happened completely
 * or not at all. Allowed to the tasks that may overwrite the entry. *before is the value before the addition. RG_ERR_NAME:
 * there is no such entry. */
int rg_add(const char *name, int index, int64_t amount, int64_t *before);
int rg_delete(const char *name, int index);

typedef struct {
    int32_t index;
    int32_t owner; /* the task that put the entry; RG_NONE: it has ended */
    int32_t flags;
    uint32_t length;
    char name[112]; /* cut if longer */
} rg_entry;
/* Lists the entries whose names match a pattern, in which * stands for any text. Writes at most `capacity` entries; *count
 * is the number of matches. */
int rg_names(const char *pattern, rg_entry *entries, int capacity, int *count);

/* A named group is a list of tasks that join and leave it. A member's number is the lowest free one when it joins. A task
 * leaves all its groups when it ends. */
int rg_join(const char *group, int *number);
int rg_leave(const char *group);
/* Lists the members of a named group: tids[n] is member number n, or RG_NONE if that number is free. *count is the number of
 * entries. The list reflects every join and leave, by any task, that returned before this call. */
int rg_members(const char *group, int *tids, int capacity, int *count);
/* Blocks until `count` members have called it. All must pass the same count; RG_ANY stands for the number of members. Once all
 * members have met, and until a task joins or leaves, further meetings of all members cost no more than a barrier if all run
 * on the launcher's host. */
int rg_meet(const char *group, int count);
/* Like rg_meet. If the tasks that met are all the members, *members and tids are set as *count and tids by rg_members, to the
 * same values at all members; otherwise *members is 0. */
int rg_meet_members(const char *group, int count, int *tids, int capacity, int *members);

typedef struct {
    int32_t members; /* number of members */
    int32_t waiting; /* number of members that wait in rg_meet */
    int32_t wanted;  /* the count that they wait for; 0: no member waits */
    int32_t reserved;
    char name[112]; /* cut if longer */
} rg_named_group;
/* Lists all named groups, ordered by name. Writes at most `capacity` entries; *count is the number of groups. */
int rg_named_groups(rg_named_group *groups, int capacity, int *count);
/* Lists the tasks that wait in rg_meet, in the order in which they called it. */
int rg_waiting(const char *group, int *tids, int capacity, int *count);

/* ---- settings and insight ---------------------------------------------------------------------- */

/* Returns the time in seconds since a moment in the past that is the same for all tasks of a host. */
double rg_time(void);
/* Writes which path messages to `rank` take, and why, as text of at most `size` bytes including the NUL. */
int rg_path(rg_group group, int rank, char *text, size_t size);

/* For `regatta profile`. In a task that is not profiled these functions do nothing and return RG_OK. A name has at most 63
 * bytes, and a task can use 128 different names. */
/* Records that an event of this name has happened now. */
int rg_mark(const char *name);
/* Records the begin (1) or end (0) of an interval. The profile shows the number and the total time of the intervals of this
 * name. */
int rg_toggle(const char *name, int on);
/* Turns recording on (1) or off (0). It is on when the task starts. */
int rg_profile(int on);

#ifdef __cplusplus
}
#endif
#endif
