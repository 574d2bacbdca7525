/*
 * The calls of a worker of the chaos run, implemented with MPI. A group is the index of a communicator in a list, and a
 * request the index of an MPI request.
 */
#define CHAOS_FRONT_ITSELF
#include "chaos_front.h"
#include <mpi.h>

enum { MAX_COMMUNICATORS = 256, MAX_REQUESTS = 1024, WRONG = -1000 };

/* The first one is MPI_COMM_WORLD's. */
static MPI_Comm comms[MAX_COMMUNICATORS];
static bool is_taken[MAX_COMMUNICATORS];
static struct request {
    MPI_Request request;
    bool is_taken;
    /* For a communicator that is being made: the communicator, and where to store its group. */
    MPI_Comm made;
    rg_group *out;
} requests[MAX_REQUESTS];
static MPI_Message matched;
static _Thread_local char text[MPI_MAX_ERROR_STRING];

static bool is_channel(rg_group group) { return group.id >= RG_ALL.id; }

/* Returns the code of Regatta's interface for the result of an MPI call. */
static int code_of(int code)
{
    int class, length;
    if (code == MPI_SUCCESS)
        return RG_OK;
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    switch (class) {
    case MPIX_ERR_PROC_FAILED: return RG_ERR_DEAD;
    case MPIX_ERR_REVOKED: return RG_ERR_REVOKED;
    default: return WRONG - class;
    }
}

static void must(int code)
{
    if (code_of(code) == RG_OK)
        return;
    fprintf(stderr, "FAIL task %d: class %d: %s\n", rg_tid(), WRONG - code_of(code), text);
    _exit(3);
}

const char *over_last_error(void) { return text; }

static rg_group keep(MPI_Comm comm)
{
    int at = 0;
    while (is_taken[at])
        at++;
    is_taken[at] = true;
    comms[at] = comm;
    must(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    return (rg_group){at};
}

static MPI_Comm comm_of(rg_group group) { return comms[group.id]; }

int over_init(void)
{
    int provided;
    must(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided));
    must(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    must(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0));
    keep(MPI_COMM_WORLD);
    return provided == MPI_THREAD_MULTIPLE ? RG_OK : WRONG;
}

int over_finalize(void) { return code_of(MPI_Finalize()); }

/* ---- who ---- */

int over_rank(rg_group group)
{
    int rank;
    must(MPI_Comm_rank(comm_of(group), &rank));
    return rank;
}

int over_size(rg_group group)
{
    int size;
    must(MPI_Comm_size(comm_of(group), &size));
    return size;
}

/* Returns the rank in one communicator of a process that has this rank in the other. */
static int translate(MPI_Comm from, int rank, MPI_Comm to)
{
    MPI_Group one, other;
    int translated;
    must(MPI_Comm_group(from, &one));
    must(MPI_Comm_group(to, &other));
    must(MPI_Group_translate_ranks(one, 1, &rank, other, &translated));
    must(MPI_Group_free(&one));
    must(MPI_Group_free(&other));
    return translated;
}

int over_tid_of(rg_group group, int rank) { return rg_tid_of(RG_WORLD, translate(comm_of(group), rank, MPI_COMM_WORLD)); }
int over_rank_of(rg_group group, int tid) { return translate(MPI_COMM_WORLD, rg_rank_of(RG_WORLD, tid), comm_of(group)); }

/* ---- requests ---- */

static struct request *new_request(rg_request *request)
{
    uint64_t at = 0;
    while (requests[at].is_taken)
        at++;
    requests[at] = (struct request){.is_taken = true, .request = MPI_REQUEST_NULL};
    request->id = at + 1;
    return &requests[at];
}

/* Returns the code of a call that starts an operation. If it has failed, releases the request. */
static int started(int code, rg_request *request)
{
    if (code != MPI_SUCCESS) {
        requests[request->id - 1].is_taken = false;
        *request = RG_REQUEST_NULL;
    }
    return code_of(code);
}

#define START(request, call) (new_request(request), started(call, request))
#define MPI_OF(its) (&requests[(its)->id - 1].request)

static int any_or(int rank_or_tag, int any) { return rank_or_tag == RG_ANY ? any : rank_or_tag; }

static int completed(int code, const MPI_Status *from, rg_status *to)
{
    int is_cancelled, length;
    must(MPI_Test_cancelled(from, &is_cancelled));
    if (code == MPI_SUCCESS && is_cancelled)
        return RG_ERR_CANCELLED;
    if (code == MPI_SUCCESS && to != NULL) {
        must(MPI_Get_count(from, MPI_BYTE, &length));
        *to = (rg_status){.source = from->MPI_SOURCE, .tag = from->MPI_TAG, .length = (size_t)length};
    }
    return code_of(code);
}

static int ended(rg_request *request, int code, const MPI_Status *from, rg_status *to)
{
    struct request *one = &requests[request->id - 1];
    if (one->request != MPI_REQUEST_NULL) {
        fprintf(stderr, "FAIL task %d: a request is still there after it was waited for: %d\n", rg_tid(), code);
        _exit(3);
    }
    if (one->out != NULL && code == MPI_SUCCESS)
        *one->out = keep(one->made);
    one->is_taken = false;
    *request = RG_REQUEST_NULL;
    return completed(code, from, to);
}

int over_wait(rg_request *request, rg_status *status)
{
    MPI_Status own;
    if (request->id == RG_REQUEST_NULL.id)
        return RG_OK;
    int code = MPI_Wait(MPI_OF(request), &own);
    return ended(request, code, &own, status);
}

int over_waitany(int n, rg_request *all, int *index, rg_status *status)
{
    MPI_Request list[n];
    MPI_Status own;
    for (int i = 0; i < n; i++)
        list[i] = all[i].id == RG_REQUEST_NULL.id ? MPI_REQUEST_NULL : *MPI_OF(&all[i]);
    int code = MPI_Waitany(n, list, index, &own);
    if (*index == MPI_UNDEFINED) {
        *index = -1;
        return code_of(code);
    }
    *MPI_OF(&all[*index]) = list[*index];
    return ended(&all[*index], code, &own, status);
}

int over_cancel(rg_request request, int *cancelled)
{
    (void)cancelled;
    return code_of(MPI_Cancel(MPI_OF(&request)));
}

/* ---- messages ---- */

int over_send(const void *buf, size_t len, int to, int tag, rg_group group)
{
    return is_channel(group) ? rg_send(buf, len, to, tag, group) : code_of(MPI_Send(buf, (int)len, MPI_BYTE, to, tag, comm_of(group)));
}

int over_isend(const void *buf, size_t len, int to, int tag, rg_group group, rg_request *request)
{
    return START(request, MPI_Isend(buf, (int)len, MPI_BYTE, to, tag, comm_of(group), MPI_OF(request)));
}

int over_issend(const void *buf, size_t len, int to, int tag, rg_group group, rg_request *request)
{
    return START(request, MPI_Issend(buf, (int)len, MPI_BYTE, to, tag, comm_of(group), MPI_OF(request)));
}

int over_recv(void *buf, size_t capacity, int from, int tag, rg_group group, rg_status *status)
{
    MPI_Status own;
    if (is_channel(group))
        return rg_recv(buf, capacity, from, tag, group, status);
    int code = MPI_Recv(buf, (int)capacity, MPI_BYTE, any_or(from, MPI_ANY_SOURCE), any_or(tag, MPI_ANY_TAG), comm_of(group), &own);
    return code == MPI_SUCCESS ? completed(code, &own, status) : code_of(code);
}

int over_irecv(void *buf, size_t capacity, int from, int tag, rg_group group, rg_request *request)
{
    return START(request, MPI_Irecv(buf, (int)capacity, MPI_BYTE, any_or(from, MPI_ANY_SOURCE), tag, comm_of(group), MPI_OF(request)));
}

int over_sendrecv(const void *sbuf, size_t slen, int to, int stag, void *rbuf, size_t rcapacity, int from, int rtag, rg_group group, rg_status *status)
{
    MPI_Status own;
    int code = MPI_Sendrecv(sbuf, (int)slen, MPI_BYTE, to, stag, rbuf, (int)rcapacity, MPI_BYTE, from, rtag, comm_of(group), &own);
    return code == MPI_SUCCESS ? completed(code, &own, status) : code_of(code);
}

int over_iprobe(int from, int tag, rg_group group, int *found, rg_status *status)
{
    (void)status;
    return code_of(MPI_Iprobe(from, any_or(tag, MPI_ANY_TAG), comm_of(group), found, MPI_STATUS_IGNORE));
}

int over_mprobe(int from, int tag, rg_group group, rg_message *message, rg_status *status)
{
    MPI_Status own;
    int code = MPI_Mprobe(from, tag, comm_of(group), &matched, &own);
    *message = RG_MESSAGE_(1);
    return code == MPI_SUCCESS ? completed(code, &own, status) : code_of(code);
}

int over_mrecv(rg_message *message, void *buf, size_t capacity, rg_status *status)
{
    MPI_Status own;
    *message = RG_MESSAGE_NULL;
    int code = MPI_Mrecv(buf, (int)capacity, MPI_BYTE, &matched, &own);
    return code == MPI_SUCCESS ? completed(code, &own, status) : code_of(code);
}

/* Returns a datatype of `length` bytes in two adjacent blocks. */
static MPI_Datatype type_of(size_t length)
{
    int front = (int)(length / 3), lens[2] = {front, (int)length - front}, places[2] = {0, front};
    MPI_Datatype type;
    must(MPI_Type_indexed(2, lens, places, MPI_BYTE, &type));
    must(MPI_Type_commit(&type));
    return type;
}

int over_send_by(enum way way, char *bytes, size_t length, int to, int tag, rg_group group, rg_request *request)
{
    MPI_Comm comm = comm_of(group);
    MPI_Datatype type = type_of(length);
    int code, n = (int)length;
    switch (way) {
    case SEND: code = over_send(bytes, length, to, tag, group); break;
    case SSEND: code = code_of(MPI_Ssend(bytes, n, MPI_BYTE, to, tag, comm)); break;
    case SENDV: code = code_of(MPI_Send(bytes, 1, type, to, tag, comm)); break;
    case BSEND:
    case LOAN: code = code_of(MPI_Bsend(bytes, n, MPI_BYTE, to, tag, comm)); break;
    case BSENDV: code = code_of(MPI_Bsend(bytes, 1, type, to, tag, comm)); break;
    case ISSEND: code = over_issend(bytes, length, to, tag, group, request); break;
    case ISENDV: code = START(request, MPI_Isend(bytes, 1, type, to, tag, comm, MPI_OF(request))); break;
    default: code = over_isend(bytes, length, to, tag, group, request);
    }
    must(MPI_Type_free(&type));
    return code;
}

int over_receive_by(enum way way, char *bytes, size_t length, int from, int tag, rg_group group, rg_status *status)
{
    MPI_Comm comm = comm_of(group);
    MPI_Datatype type;
    MPI_Status own;
    int code;
    switch (way) {
    case RECVV:
        type = type_of(length);
        code = MPI_Recv(bytes, 1, type, from, tag, comm, &own);
        must(MPI_Type_free(&type));
        return code == MPI_SUCCESS ? completed(code, &own, status) : code_of(code);
    case LOAN_RECV:
        code = MPI_Probe(from, tag, comm, &own);
        return code == MPI_SUCCESS ? over_recv(bytes, length, from, tag, group, status) : code_of(code);
    default: return over_recv(bytes, length, from, tag, group, status);
    }
}

/* ---- communicators ---- */

static int made(int code, MPI_Comm comm, rg_group *out)
{
    if (code == MPI_SUCCESS)
        *out = comm == MPI_COMM_NULL ? (rg_group){-1} : keep(comm);
    return code_of(code);
}

int over_group_dup(rg_group group, rg_group *out)
{
    MPI_Comm comm;
    int code = MPI_Comm_dup(comm_of(group), &comm);
    return made(code, comm, out);
}

int over_igroup_dup(rg_group group, rg_group *out, rg_request *request)
{
    struct request *one = new_request(request);
    one->out = out;
    return started(MPI_Comm_idup(comm_of(group), &one->made, &one->request), request);
}

int over_group_select_tagged(rg_group group, int n, const int *ranks, int tag, rg_group *out)
{
    MPI_Group all, some;
    MPI_Comm comm;
    /* The new crew consists of the survivors of the old one; some members may have died. */
    if (is_channel(group))
        return over_group_shrink(RG_WORLD, out);
    must(MPI_Comm_group(comm_of(group), &all));
    must(MPI_Group_incl(all, n, ranks, &some));
    int code = MPI_Comm_create_group(comm_of(group), some, tag & 0x7fff, &comm);
    must(MPI_Group_free(&all));
    must(MPI_Group_free(&some));
    return made(code, comm, out);
}

int over_group_split(rg_group group, int colour, int key, rg_group *out)
{
    MPI_Comm comm;
    int code = MPI_Comm_split(comm_of(group), colour, key, &comm);
    return made(code, comm, out);
}

int over_group_shrink(rg_group group, rg_group *out)
{
    MPI_Comm comm;
    int code = MPIX_Comm_shrink(comm_of(group), &comm);
    return made(code, comm, out);
}

int over_group_revoke(rg_group group) { return code_of(MPIX_Comm_revoke(comm_of(group))); }

int over_group_is_revoked(rg_group group)
{
    int is_revoked;
    must(MPIX_Comm_is_revoked(comm_of(group), &is_revoked));
    return is_revoked;
}

int over_group_free(rg_group group)
{
    is_taken[group.id] = false;
    return code_of(MPI_Comm_free(&comms[group.id]));
}

int over_agree(int *flag, rg_group group) { return code_of(MPIX_Comm_agree(comm_of(group), flag)); }
int over_iagree(int *flag, rg_group group, rg_request *request) { return START(request, MPIX_Comm_iagree(comm_of(group), flag, MPI_OF(request))); }
int over_acknowledge_dead(rg_group group, int *dead) { return code_of(MPIX_Comm_ack_failed(comm_of(group), over_size(group), dead)); }

/* ---- collectives ---- */

int over_barrier(rg_group group) { return code_of(MPI_Barrier(comm_of(group))); }
int over_ibarrier(rg_group group, rg_request *request) { return START(request, MPI_Ibarrier(comm_of(group), MPI_OF(request))); }
int over_broadcast(void *buf, size_t len, int root, rg_group group) { return code_of(MPI_Bcast(buf, (int)len, MPI_BYTE, root, comm_of(group))); }
int over_ibroadcast(void *buf, size_t len, int root, rg_group group, rg_request *request)
{
    return START(request, MPI_Ibcast(buf, (int)len, MPI_BYTE, root, comm_of(group), MPI_OF(request)));
}

/* The rounds use only sums of 64-bit integers. */
#define SUMS const void *in, void *out, size_t count, rg_type type, rg_op op
#define SUM_OF in, out, (int)count, MPI_INT64_T, MPI_SUM
#define ARE_SUMS ((void)type, (void)op)
int over_reduce(SUMS, int root, rg_group group) { return ARE_SUMS, code_of(MPI_Reduce(SUM_OF, root, comm_of(group))); }
int over_ireduce(SUMS, int root, rg_group group, rg_request *request) { return ARE_SUMS, START(request, MPI_Ireduce(SUM_OF, root, comm_of(group), MPI_OF(request))); }
int over_allreduce(SUMS, rg_group group) { return ARE_SUMS, code_of(MPI_Allreduce(SUM_OF, comm_of(group))); }
int over_iallreduce(SUMS, rg_group group, rg_request *request) { return ARE_SUMS, START(request, MPI_Iallreduce(SUM_OF, comm_of(group), MPI_OF(request))); }
int over_scan(SUMS, rg_group group) { return ARE_SUMS, code_of(MPI_Scan(SUM_OF, comm_of(group))); }
int over_iscan(SUMS, rg_group group, rg_request *request) { return ARE_SUMS, START(request, MPI_Iscan(SUM_OF, comm_of(group), MPI_OF(request))); }
int over_exscan(SUMS, rg_group group) { return ARE_SUMS, code_of(MPI_Exscan(SUM_OF, comm_of(group))); }
int over_iexscan(SUMS, rg_group group, rg_request *request) { return ARE_SUMS, START(request, MPI_Iexscan(SUM_OF, comm_of(group), MPI_OF(request))); }

/*
 * Counts in MPI's type. A nonblocking call may read them until it is complete; only one such call is in progress at a
 * time.
 */
static int counts[MPI_MAX_PROCESSOR_NAME], places[MPI_MAX_PROCESSOR_NAME];

static void take_counts(rg_group group, const size_t *lens, const size_t *offsets)
{
    for (int i = 0; i < over_size(group); i++) {
        counts[i] = (int)lens[i];
        places[i] = offsets != NULL ? (int)offsets[i] : 0;
    }
}

int over_reduce_scatter(const void *in, void *out, const size_t *lens, rg_type type, rg_op op, rg_group group)
{
    take_counts(group, lens, NULL);
    return ARE_SUMS, code_of(MPI_Reduce_scatter(in, out, counts, MPI_INT64_T, MPI_SUM, comm_of(group)));
}

int over_ireduce_scatter(const void *in, void *out, const size_t *lens, rg_type type, rg_op op, rg_group group, rg_request *request)
{
    take_counts(group, lens, NULL);
    return ARE_SUMS, START(request, MPI_Ireduce_scatter(in, out, counts, MPI_INT64_T, MPI_SUM, comm_of(group), MPI_OF(request)));
}

#define BYTES(bytes, len) bytes, (int)(len), MPI_BYTE
int over_gather(const void *in, size_t len, void *out, int root, rg_group group)
{
    return code_of(MPI_Gather(BYTES(in, len), BYTES(out, len), root, comm_of(group)));
}
int over_igather(const void *in, size_t len, void *out, int root, rg_group group, rg_request *request)
{
    return START(request, MPI_Igather(BYTES(in, len), BYTES(out, len), root, comm_of(group), MPI_OF(request)));
}
int over_scatter(const void *in, void *out, size_t len, int root, rg_group group)
{
    return code_of(MPI_Scatter(BYTES(in, len), BYTES(out, len), root, comm_of(group)));
}
int over_iscatter(const void *in, void *out, size_t len, int root, rg_group group, rg_request *request)
{
    return START(request, MPI_Iscatter(BYTES(in, len), BYTES(out, len), root, comm_of(group), MPI_OF(request)));
}
int over_allgather(const void *in, size_t len, void *out, rg_group group) { return code_of(MPI_Allgather(BYTES(in, len), BYTES(out, len), comm_of(group))); }
int over_iallgather(const void *in, size_t len, void *out, rg_group group, rg_request *request)
{
    return START(request, MPI_Iallgather(BYTES(in, len), BYTES(out, len), comm_of(group), MPI_OF(request)));
}
int over_allgatherv(const void *in, size_t len, void *out, const size_t *lens, const size_t *offsets, rg_group group)
{
    take_counts(group, lens, offsets);
    return code_of(MPI_Allgatherv(BYTES(in, len), out, counts, places, MPI_BYTE, comm_of(group)));
}
int over_iallgatherv(const void *in, size_t len, void *out, const size_t *lens, const size_t *offsets, rg_group group, rg_request *request)
{
    take_counts(group, lens, offsets);
    return START(request, MPI_Iallgatherv(BYTES(in, len), out, counts, places, MPI_BYTE, comm_of(group), MPI_OF(request)));
}
int over_alltoall(const void *in, size_t len, void *out, rg_group group) { return code_of(MPI_Alltoall(BYTES(in, len), BYTES(out, len), comm_of(group))); }
int over_ialltoall(const void *in, size_t len, void *out, rg_group group, rg_request *request)
{
    return START(request, MPI_Ialltoall(BYTES(in, len), BYTES(out, len), comm_of(group), MPI_OF(request)));
}
