/*
 * The calls of a worker of the chaos run, implemented with MPI (chaos_front.c). The worker's files are compiled a
 * second time with this header, so their groups are communicators. Errors are mapped to the codes that the worker
 * checks: DEAD for MPIX_ERR_PROC_FAILED, REVOKED for MPIX_ERR_REVOKED, and any other class to one that it rejects.
 * Messages with the captain, in channels, use Regatta's own interface.
 */
#ifndef CHAOS_FRONT_H
#define CHAOS_FRONT_H

#include "../fleet.h"

#define OVER_MPI 1

int over_init(void);
int over_finalize(void);
const char *over_last_error(void);

int over_rank(rg_group group);
int over_size(rg_group group);
int over_tid_of(rg_group group, int rank);
int over_rank_of(rg_group group, int tid);

int over_send(const void *buf, size_t len, int to, int tag, rg_group group);
int over_isend(const void *buf, size_t len, int to, int tag, rg_group group, rg_request *request);
int over_issend(const void *buf, size_t len, int to, int tag, rg_group group, rg_request *request);
int over_recv(void *buf, size_t capacity, int from, int tag, rg_group group, rg_status *status);
int over_irecv(void *buf, size_t capacity, int from, int tag, rg_group group, rg_request *request);
int over_sendrecv(const void *sbuf, size_t slen, int to, int stag, void *rbuf, size_t rcapacity, int from, int rtag, rg_group group, rg_status *status);
int over_iprobe(int from, int tag, rg_group group, int *found, rg_status *status);
int over_mprobe(int from, int tag, rg_group group, rg_message *message, rg_status *status);
int over_mrecv(rg_message *message, void *buf, size_t capacity, rg_status *status);
int over_send_by(enum way way, char *bytes, size_t length, int to, int tag, rg_group group, rg_request *request);
int over_receive_by(enum way way, char *bytes, size_t length, int from, int tag, rg_group group, rg_status *status);
int over_wait(rg_request *request, rg_status *status);
int over_waitany(int n, rg_request *requests, int *index, rg_status *status);
int over_cancel(rg_request request, int *cancelled);

int over_group_dup(rg_group group, rg_group *out);
int over_igroup_dup(rg_group group, rg_group *out, rg_request *request);
int over_group_select_tagged(rg_group group, int n, const int *ranks, int tag, rg_group *out);
int over_group_split(rg_group group, int colour, int key, rg_group *out);
int over_group_shrink(rg_group group, rg_group *out);
int over_group_revoke(rg_group group);
int over_group_is_revoked(rg_group group);
int over_group_free(rg_group group);
int over_agree(int *flag, rg_group group);
int over_iagree(int *flag, rg_group group, rg_request *request);
int over_acknowledge_dead(rg_group group, int *dead);

int over_barrier(rg_group group);
int over_ibarrier(rg_group group, rg_request *request);
int over_broadcast(void *buf, size_t len, int root, rg_group group);
int over_ibroadcast(void *buf, size_t len, int root, rg_group group, rg_request *request);
int over_reduce(const void *in, void *out, size_t count, rg_type type, rg_op op, int root, rg_group group);
int over_ireduce(const void *in, void *out, size_t count, rg_type type, rg_op op, int root, rg_group group, rg_request *request);
int over_allreduce(const void *in, void *out, size_t count, rg_type type, rg_op op, rg_group group);
int over_iallreduce(const void *in, void *out, size_t count, rg_type type, rg_op op, rg_group group, rg_request *request);
int over_scan(const void *in, void *out, size_t count, rg_type type, rg_op op, rg_group group);
int over_iscan(const void *in, void *out, size_t count, rg_type type, rg_op op, rg_group group, rg_request *request);
int over_exscan(const void *in, void *out, size_t count, rg_type type, rg_op op, rg_group group);
int over_iexscan(const void *in, void *out, size_t count, rg_type type, rg_op op, rg_group group, rg_request *request);
int over_reduce_scatter(const void *in, void *out, const size_t *counts, rg_type type, rg_op op, rg_group group);
int over_ireduce_scatter(const void *in, void *out, const size_t *counts, rg_type type, rg_op op, rg_group group, rg_request *request);
int over_gather(const void *in, size_t len, void *out, int root, rg_group group);
int over_igather(const void *in, size_t len, void *out, int root, rg_group group, rg_request *request);
int over_scatter(const void *in, void *out, size_t len, int root, rg_group group);
int over_iscatter(const void *in, void *out, size_t len, int root, rg_group group, rg_request *request);
int over_allgather(const void *in, size_t len, void *out, rg_group group);
int over_iallgather(const void *in, size_t len, void *out, rg_group group, rg_request *request);
int over_allgatherv(const void *in, size_t len, void *out, const size_t *lens, const size_t *offsets, rg_group group);
int over_iallgatherv(const void *in, size_t len, void *out, const size_t *lens, const size_t *offsets, rg_group group, rg_request *request);
int over_alltoall(const void *in, size_t len, void *out, rg_group group);
int over_ialltoall(const void *in, size_t len, void *out, rg_group group, rg_request *request);

#ifndef CHAOS_FRONT_ITSELF
#define rg_init over_init
#define rg_finalize over_finalize
#define rg_last_error over_last_error
#define rg_rank over_rank
#define rg_size over_size
#define rg_tid_of over_tid_of
#define rg_rank_of over_rank_of
#define rg_send over_send
#define rg_isend over_isend
#define rg_issend over_issend
#define rg_recv over_recv
#define rg_irecv over_irecv
#define rg_sendrecv over_sendrecv
#define rg_iprobe over_iprobe
#define rg_mprobe over_mprobe
#define rg_mrecv over_mrecv
#define send_by over_send_by
#define receive_by over_receive_by
#define rg_wait over_wait
#define rg_waitany over_waitany
#define rg_cancel over_cancel
#define rg_group_dup over_group_dup
#define rg_igroup_dup over_igroup_dup
#define rg_group_select_tagged over_group_select_tagged
#define rg_group_split over_group_split
#define rg_group_shrink over_group_shrink
#define rg_group_revoke over_group_revoke
#define rg_group_is_revoked over_group_is_revoked
#define rg_group_free over_group_free
#define rg_agree over_agree
#define rg_iagree over_iagree
#define rg_acknowledge_dead over_acknowledge_dead
#define rg_barrier over_barrier
#define rg_ibarrier over_ibarrier
#define rg_broadcast over_broadcast
#define rg_ibroadcast over_ibroadcast
#define rg_reduce over_reduce
#define rg_ireduce over_ireduce
#define rg_allreduce over_allreduce
#define rg_iallreduce over_iallreduce
#define rg_scan over_scan
#define rg_iscan over_iscan
#define rg_exscan over_exscan
#define rg_iexscan over_iexscan
#define rg_reduce_scatter over_reduce_scatter
#define rg_ireduce_scatter over_ireduce_scatter
#define rg_gather over_gather
#define rg_igather over_igather
#define rg_scatter over_scatter
#define rg_iscatter over_iscatter
#define rg_allgather over_allgather
#define rg_iallgather over_iallgather
#define rg_allgatherv over_allgatherv
#define rg_iallgatherv over_iallgatherv
#define rg_alltoall over_alltoall
#define rg_ialltoall over_ialltoall
#endif

#endif
