/* Invalid arguments: each returns an error with a text, and changes nothing. Two tasks. */
#include "check.h"

#include <limits.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define ABSURD ((size_t)-1)
#define TOO_LONG ((size_t)PTRDIFF_MAX + 1)

static int peer(void) { return 1 - me; }

/* After a refused call, a message must go through normally. */
static void still_works(void)
{
    int mine = 4711 + me, theirs = -1;
    rg_status status;
    OK(rg_sendrecv(&mine, sizeof mine, peer(), 77, &theirs, sizeof theirs, peer(), 77, RG_WORLD,
                   &status));
    CHECK(theirs == 4711 + peer() && status.length == sizeof theirs && status.tag == 77);
    int found = 1;
    OK(rg_iprobe(RG_ANY, RG_ANY, RG_WORLD, &found, NULL));
    CHECK(!found);
    OK(rg_barrier(RG_WORLD));
}

static void ranks(void)
{
    char byte = 0;
    rg_request request = {5};
    rg_status status;
    const int bad[] = {2, 3, -3, 1000000, INT_MAX, INT_MIN, RG_ANY};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        FAILS(rg_send(&byte, 1, bad[i], 0, RG_WORLD), RG_ERR_TASK, "no task with rank");
        FAILS(rg_ssend(&byte, 1, bad[i], 0, RG_WORLD), RG_ERR_TASK, "no task");
        FAILS(rg_rsend(&byte, 1, bad[i], 0, RG_WORLD), RG_ERR_TASK, "no task");
        FAILS(rg_isend(&byte, 1, bad[i], 0, RG_WORLD, &request), RG_ERR_TASK, "no task");
        FAILS(rg_issend(&byte, 1, bad[i], 0, RG_WORLD, &request), RG_ERR_TASK, "no task");
        CHECK(request.id == 5);
        if (bad[i] == RG_ANY)
            continue;
        FAILS(rg_recv(&byte, 1, bad[i], 0, RG_WORLD, &status), RG_ERR_TASK, "no task");
        FAILS(rg_irecv(&byte, 1, bad[i], 0, RG_WORLD, &request), RG_ERR_TASK, "no task");
        FAILS(rg_probe(bad[i], 0, RG_WORLD, &status), RG_ERR_TASK, "no task");
        int found;
        FAILS(rg_iprobe(bad[i], 0, RG_WORLD, &found, &status), RG_ERR_TASK, "no task");
        FAILS(rg_tid_of(RG_WORLD, bad[i]), RG_ERR_TASK, "no task");
        char text[10];
        FAILS(rg_path(RG_WORLD, bad[i], text, sizeof text), RG_ERR_TASK, "no task");
        FAILS(rg_broadcast(&byte, 1, bad[i], RG_WORLD), RG_ERR_TASK, "no task");
        FAILS(rg_reduce(&byte, &byte, 1, RG_INT8, RG_SUM, bad[i], RG_WORLD), RG_ERR_TASK, "no task");
        FAILS(rg_gather(&byte, 1, &byte, bad[i], RG_WORLD), RG_ERR_TASK, "no task");
        FAILS(rg_scatter(&byte, &byte, 1, bad[i], RG_WORLD), RG_ERR_TASK, "no task");
        FAILS(rg_ibroadcast(&byte, 1, bad[i], RG_WORLD, &request), RG_ERR_TASK, "no task");
    }
    CHECK(request.id == 5);
    still_works();
}

static void tids(void)
{
    int mine = rg_tid();
    CHECK(mine >= 0 && rg_rank_of(RG_WORLD, mine) == me && rg_tid_of(RG_WORLD, me) == mine);
    const int bad[] = {size, size + 1, -1, -2, mine + 100, INT_MAX, INT_MIN};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        FAILS(rg_rank_of(RG_WORLD, bad[i]), RG_ERR_TASK, "no task");
    still_works();
}

/* Both tasks make a combined call of which only the receive part is invalid: nothing may have been sent. */
static void half_wrong(void)
{
    char byte = 1, got = 0;
    FAILS(rg_sendrecv(&byte, 1, peer(), 3, &got, 1, 99, 3, RG_WORLD, NULL), RG_ERR_TASK, "no task");
    FAILS(rg_sendrecv(&byte, 1, peer(), 3, &got, 1, peer(), -7, RG_WORLD, NULL), RG_ERR_TAG, "tag");
    FAILS(rg_sendrecv(&byte, 1, peer(), 3, NULL, 1, peer(), 3, RG_WORLD, NULL), RG_ERR_ARGUMENT,
          "NULL");
    OK(rg_barrier(RG_WORLD));
    still_works();
}

static void lengths(void)
{
    char byte = 0;
    rg_request request = {5};
    const size_t bad[] = {ABSURD, TOO_LONG, ABSURD - 7};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        size_t n = bad[i];
        FAILS(rg_send(&byte, n, peer(), 0, RG_WORLD), RG_ERR_ARGUMENT, "length");
        FAILS(rg_ssend(&byte, n, peer(), 0, RG_WORLD), RG_ERR_ARGUMENT, "length");
        FAILS(rg_isend(&byte, n, peer(), 0, RG_WORLD, &request), RG_ERR_ARGUMENT, "length");
        FAILS(rg_recv(&byte, n, peer(), 0, RG_WORLD, NULL), RG_ERR_ARGUMENT, "length");
        FAILS(rg_irecv(&byte, n, peer(), 0, RG_WORLD, &request), RG_ERR_ARGUMENT, "length");
        FAILS(rg_sendrecv(&byte, n, peer(), 0, &byte, 1, peer(), 0, RG_WORLD, NULL),
              RG_ERR_ARGUMENT, "length");
        FAILS(rg_broadcast(&byte, n, 0, RG_WORLD), RG_ERR_ARGUMENT, "length");
        FAILS(rg_allgather(&byte, n, &byte, RG_WORLD), RG_ERR_ARGUMENT, "");
        FAILS(rg_alltoall(&byte, n, &byte, RG_WORLD), RG_ERR_ARGUMENT, "");
        FAILS(rg_allreduce(&byte, &byte, n, RG_DOUBLE, RG_SUM, RG_WORLD), RG_ERR_ARGUMENT, "");
        FAILS(rg_scan(&byte, &byte, n, RG_INT32, RG_SUM, RG_WORLD), RG_ERR_ARGUMENT, "");
        void *block = &byte;
        int code = rg_loan(n, &block);
        CHECK((code == RG_ERR_MEMORY || code == RG_ERR_ARGUMENT) && block == &byte);
        rg_view view = {&byte, n, 1, 0};
        FAILS(rg_sendv(&view, 1, peer(), 0, RG_WORLD), RG_ERR_ARGUMENT, "length");
        rg_view many = {&byte, 16, n, 16};
        FAILS(rg_sendv(&many, 1, peer(), 0, RG_WORLD), RG_ERR_ARGUMENT, "length");
        rg_view two[2] = {{&byte, PTRDIFF_MAX, 1, 1}, {&byte, PTRDIFF_MAX, 1, 1}};
        FAILS(rg_recvv(two, 2, peer(), 0, RG_WORLD, NULL), RG_ERR_ARGUMENT, "");
    }
    FAILS(rg_sendv(NULL, 1, peer(), 0, RG_WORLD), RG_ERR_ARGUMENT, "NULL");
    FAILS(rg_sendv(NULL, -1, peer(), 0, RG_WORLD), RG_ERR_ARGUMENT, "negative");
    size_t lens[2] = {1, 1}, far[2] = {0, ABSURD};
    FAILS(rg_allgatherv(&byte, 1, &byte, lens, far, RG_WORLD), RG_ERR_ARGUMENT, "");
    FAILS(rg_alltoallv(&byte, lens, far, &byte, lens, far, RG_WORLD), RG_ERR_ARGUMENT, "");
    CHECK(request.id == 5);
    still_works();
}

/* A shared block can be opened only by the task it is shared with, up to its length, and until it is closed. */
static void shared_loans(void)
{
    uint64_t name = 0, other = 0;
    char byte = 0, *block = NULL;
    const void *seen = NULL;
    rg_status status;

    FAILS(rg_loan_share(&byte, 0, RG_WORLD, &name), RG_ERR_ARGUMENT, "loan");
    OK(rg_loan(100, (void **)&block));
    FAILS(rg_loan_share(block, 0, RG_WORLD, NULL), RG_ERR_ARGUMENT, "NULL");
    FAILS(rg_loan_share(block, 99, RG_WORLD, &name), RG_ERR_TASK, "no task");
    strcpy(block, "read this");
    OK(rg_loan_share(block, me, RG_WORLD, &name));
    OK(rg_loan_share(block, peer(), RG_WORLD, &other));
    FAILS(rg_loan_open(other, 10, &seen), RG_ERR_ARGUMENT, "may not read");
    FAILS(rg_loan_open(name, (size_t)1 << 20, &seen), RG_ERR_ARGUMENT, "may not read");
    FAILS(rg_loan_open(name ^ (uint64_t)1 << 50, 10, &seen), RG_ERR_ARGUMENT, "");
    FAILS(rg_loan_open(name, 10, NULL), RG_ERR_ARGUMENT, "NULL");
    OK(rg_loan_open(name, 10, &seen));
    CHECK(strcmp(seen, "read this") == 0);
    /* A block that others may read is sent as a copy. */
    OK(rg_loan_send(block, 10, me, 5, RG_WORLD));
    OK(rg_loan_recv((void **)&block, me, 5, RG_WORLD, &status));
    CHECK((const void *)block != seen && strcmp(block, "read this") == 0);
    OK(rg_loan_free(block));
    OK(rg_loan_close(name));
    OK(rg_loan_close(name));
    OK(rg_loan_close(UINT64_MAX));
    OK(rg_loan_close(other));
    FAILS(rg_loan_open(name, 10, &seen), RG_ERR_ARGUMENT, "");
}

static void nulls(void)
{
    char byte = 0;
    FAILS(rg_send(NULL, 1, peer(), 0, RG_WORLD), RG_ERR_ARGUMENT, "NULL");
    FAILS(rg_recv(NULL, 1, peer(), 0, RG_WORLD, NULL), RG_ERR_ARGUMENT, "NULL");
    FAILS(rg_isend(&byte, 1, peer(), 0, RG_WORLD, NULL), RG_ERR_ARGUMENT, "request is NULL");
    FAILS(rg_irecv(&byte, 1, peer(), 0, RG_WORLD, NULL), RG_ERR_ARGUMENT, "request is NULL");
    FAILS(rg_wait(NULL, NULL), RG_ERR_ARGUMENT, "NULL");
    FAILS(rg_test(NULL, NULL, NULL), RG_ERR_ARGUMENT, "NULL");
    FAILS(rg_waitall(2, NULL, NULL), RG_ERR_ARGUMENT, "NULL");
    FAILS(rg_waitall(-2, NULL, NULL), RG_ERR_ARGUMENT, "negative");
    FAILS(rg_waitany(1, NULL, NULL, NULL), RG_ERR_ARGUMENT, "NULL");
    FAILS(rg_testany(-1, NULL, NULL, NULL, NULL), RG_ERR_ARGUMENT, "negative");
    FAILS(rg_broadcast(NULL, 1, 0, RG_WORLD), RG_ERR_ARGUMENT, "NULL");
    FAILS(rg_allreduce(&byte, NULL, 1, RG_INT8, RG_SUM, RG_WORLD), RG_ERR_ARGUMENT, "NULL");
    FAILS(rg_allreduce(NULL, &byte, 1, RG_INT8, RG_SUM, RG_WORLD), RG_ERR_ARGUMENT, "NULL");
    FAILS(rg_allgatherv(&byte, 1, &byte, NULL, NULL, RG_WORLD), RG_ERR_ARGUMENT, "NULL");
    FAILS(rg_ibarrier(RG_WORLD, NULL), RG_ERR_ARGUMENT, "NULL");
    FAILS(rg_op_create(NULL, NULL, 0, NULL), RG_ERR_ARGUMENT, "NULL");
    FAILS(rg_loan(8, NULL), RG_ERR_ARGUMENT, "NULL");
    FAILS(rg_fd(NULL), RG_ERR_ARGUMENT, "NULL");
    FAILS(rg_path(RG_WORLD, me, NULL, 10), RG_ERR_ARGUMENT, "NULL");
    FAILS(rg_group_select(RG_WORLD, 1, NULL, NULL), RG_ERR_ARGUMENT, "");
    FAILS(rg_loan_send(&byte, 1, peer(), 0, RG_WORLD), RG_ERR_ARGUMENT, "loan");
    FAILS(rg_loan_free(&byte), RG_ERR_ARGUMENT, "loan");
    OK(rg_loan_free(NULL));
    shared_loans();
    /* Output arguments that may be NULL. */
    OK(rg_send(NULL, 0, peer(), 0, RG_WORLD));
    OK(rg_recv(NULL, 0, peer(), 0, RG_WORLD, NULL));
    rg_request request = RG_REQUEST_NULL;
    OK(rg_wait(&request, NULL));
    OK(rg_send(&byte, 1, RG_NONE, 0, RG_WORLD));
    rg_status status;
    OK(rg_recv(&byte, 1, RG_NONE, 0, RG_WORLD, &status));
    CHECK(status.source == RG_NONE && status.length == 0);
    still_works();
}

static void tags(void)
{
    char byte = 0;
    rg_request request;
    const int bad[] = {-1, -2, -100, INT_MIN};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        FAILS(rg_send(&byte, 1, peer(), bad[i], RG_WORLD), RG_ERR_TAG, "tags are 0 to");
        FAILS(rg_isend(&byte, 1, peer(), bad[i], RG_WORLD, &request), RG_ERR_TAG, "tag");
        FAILS(rg_ssend(&byte, 1, peer(), bad[i], RG_WORLD), RG_ERR_TAG, "tag");
        if (bad[i] == RG_ANY)
            continue;
        FAILS(rg_recv(&byte, 1, peer(), bad[i], RG_WORLD, NULL), RG_ERR_TAG, "tag");
        FAILS(rg_irecv(&byte, 1, peer(), bad[i], RG_WORLD, &request), RG_ERR_TAG, "tag");
        FAILS(rg_probe(peer(), bad[i], RG_WORLD, NULL), RG_ERR_TAG, "tag");
    }
    rg_status status;
    OK(rg_send(&byte, 1, peer(), INT_MAX, RG_WORLD));
    OK(rg_recv(&byte, 1, peer(), INT_MAX, RG_WORLD, &status));
    CHECK(status.tag == INT_MAX);
    still_works();
}

/*
 * A message that is too long is truncated: the front is kept, the full length is reported, and the next message is
 * intact. Small, eager and large messages.
 */
static void truncation(void)
{
    const size_t lens[] = {9, 48, 49, 1000, 8192, 8193, 65536, 300000, 5000000};
    for (size_t i = 0; i < sizeof lens / sizeof *lens; i++)
        for (int late = 0; late < 2; late++) {
            size_t len = lens[i], keep = len / 2;
            unsigned char *bytes = need(len), next = 0;
            if (me == 0) {
                paint(bytes, len, i);
                if (!late)
                    OK(rg_barrier(RG_WORLD));
                rg_request both[2];
                OK(rg_isend(bytes, len, 1, 5, RG_WORLD, &both[0]));
                next = 42;
                OK(rg_isend(&next, 1, 1, 5, RG_WORLD, &both[1]));
                if (late)
                    OK(rg_barrier(RG_WORLD));
                OK(rg_waitall(2, both, NULL));
            } else {
                rg_status status;
                rg_request request;
                memset(bytes, 0xee, len);
                if (late) {
                    OK(rg_barrier(RG_WORLD));
                    FAILS(rg_recv(bytes, keep, 0, 5, RG_WORLD, &status), RG_ERR_TRUNCATED,
                          "bytes were kept");
                } else {
                    OK(rg_irecv(bytes, keep, 0, 5, RG_WORLD, &request));
                    OK(rg_barrier(RG_WORLD));
                    FAILS(rg_wait(&request, &status), RG_ERR_TRUNCATED, "bytes were kept");
                    CHECK(request.id == 0);
                }
                CHECK(status.length == len && status.error == RG_ERR_TRUNCATED);
                CHECK(status.source == 0 && status.tag == 5);
                CHECK(unpainted(bytes, keep, i) == keep);
                for (size_t at = keep; at < len; at++)
                    CHECK(bytes[at] == 0xee);
                OK(rg_recv(&next, 1, 0, 5, RG_WORLD, &status));
                CHECK(next == 42 && status.length == 1 && status.error == RG_OK);
            }
            free(bytes);
        }
    still_works();
}

static void twice(const void *in, void *inout, size_t count, void *arg)
{
    (void)in, (void)inout, (void)count, (void)arg;
}

static void handles(void)
{
    int value = 1, done = 7, index = 7, cancelled = 7;
    rg_request made_up[] = {{1}, {2}, {77}, {1u << 31}, {(uint64_t)1 << 40}, {(uint64_t)1 << 62},
                            {UINT64_MAX}, {UINT64_MAX - 1}, {((uint64_t)1 << 63) + 5}};
    for (size_t i = 0; i < sizeof made_up / sizeof *made_up; i++) {
        rg_request before = made_up[i];
        FAILS(rg_wait(&made_up[i], NULL), RG_ERR_HANDLE, "not valid");
        FAILS(rg_test(&made_up[i], &done, NULL), RG_ERR_HANDLE, "not valid");
        FAILS(rg_waitall(1, &made_up[i], NULL), RG_ERR_HANDLE, "not valid");
        FAILS(rg_waitany(1, &made_up[i], &index, NULL), RG_ERR_HANDLE, "not valid");
        FAILS(rg_testany(1, &made_up[i], &index, &done, NULL), RG_ERR_HANDLE, "not valid");
        FAILS(rg_testall(1, &made_up[i], &done, NULL), RG_ERR_HANDLE, "not valid");
        FAILS(rg_cancel(made_up[i], &cancelled), RG_ERR_HANDLE, "not valid");
        CHECK(made_up[i].id == before.id);
    }
    /* A copy of a completed request. */
    rg_request request, copy;
    OK(rg_irecv(&value, sizeof value, me, 9, RG_WORLD, &request));
    copy = request;
    OK(rg_send(&value, sizeof value, me, 9, RG_WORLD));
    OK(rg_wait(&request, NULL));
    CHECK(request.id == 0);
    FAILS(rg_wait(&copy, NULL), RG_ERR_HANDLE, "not valid");
    /* The slot is reused; the old handle stays invalid. */
    OK(rg_irecv(&value, sizeof value, me, 9, RG_WORLD, &request));
    CHECK(request.id != copy.id);
    FAILS(rg_wait(&copy, NULL), RG_ERR_HANDLE, "not valid");
    OK(rg_cancel(request, &cancelled));
    CHECK(cancelled == 1);
    FAILS(rg_wait(&request, NULL), RG_ERR_CANCELLED, "cancelled");

    /* Sends that were complete at once share a request that never becomes stale. */
    rg_request sends[3];
    rg_status status = {7, 7, 7, 7, 7};
    for (int i = 0; i < 3; i++) {
        OK(rg_isend(&value, sizeof value, i == 2 ? RG_NONE : peer(), 8, RG_WORLD, &sends[i]));
        CHECK(sends[i].id == RG_REQUEST_COMPLETE.id);
    }
    copy = sends[0];
    OK(rg_wait(&sends[0], &status));
    CHECK(sends[0].id == 0 && status.source == RG_NONE && status.length == 0 && status.error == RG_OK);
    OK(rg_cancel(copy, &cancelled));
    CHECK(cancelled == 0);
    OK(rg_look(copy, &done, &status));
    CHECK(done == 1 && copy.id == RG_REQUEST_COMPLETE.id);
    OK(rg_testall(1, &copy, &done, &status));
    CHECK(done == 1 && copy.id == 0);
    OK(rg_waitany(3, sends, &index, NULL));
    CHECK(index == 1 && sends[1].id == 0);
    OK(rg_waitall(3, sends, NULL));
    CHECK(sends[2].id == 0);
    for (int i = 0; i < 2; i++)
        OK(rg_recv(&value, sizeof value, peer(), 8, RG_WORLD, NULL));

    const rg_group groups[] = {{-1}, {1}, {2}, {12345}, {0x3fffffff}, {INT_MIN}, {32768}};
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        rg_group out = {-9};
        FAILS(rg_send(&value, 4, 0, 0, groups[i]), RG_ERR_HANDLE, "group");
        FAILS(rg_recv(&value, 4, 0, 0, groups[i], NULL), RG_ERR_HANDLE, "group");
        FAILS(rg_recv(&value, 4, RG_ANY, RG_ANY, groups[i], NULL), RG_ERR_HANDLE, "group");
        FAILS(rg_rank(groups[i]), RG_ERR_HANDLE, "group");
        FAILS(rg_size(groups[i]), RG_ERR_HANDLE, "group");
        FAILS(rg_barrier(groups[i]), RG_ERR_HANDLE, "group");
        FAILS(rg_allreduce(&value, &value, 1, RG_INT32, RG_SUM, groups[i]), RG_ERR_HANDLE, "group");
        FAILS(rg_broadcast(&value, 4, 0, groups[i]), RG_ERR_HANDLE, "group");
        FAILS(rg_ibarrier(groups[i], &request), RG_ERR_HANDLE, "group");
        FAILS(rg_group_dup(groups[i], &out), RG_ERR_HANDLE, "group");
        FAILS(rg_group_free(groups[i]), RG_ERR_HANDLE, "group");
        FAILS(rg_group_shrink(groups[i], &out), RG_ERR_HANDLE, "group");
        FAILS(rg_acknowledge_dead(groups[i], NULL), RG_ERR_HANDLE, "group");
        FAILS(rg_group_revoke(groups[i]), RG_ERR_HANDLE, "group");
        FAILS(rg_group_is_revoked(groups[i]), RG_ERR_HANDLE, "group");
        FAILS(rg_group_tie(groups[i], RG_WORLD), RG_ERR_HANDLE, "group");
        FAILS(rg_group_tie(RG_WORLD, groups[i]), RG_ERR_HANDLE, "group");
        FAILS(rg_group_tolerate_left(groups[i], 0), RG_ERR_HANDLE, "group");
        FAILS(rg_agree(&value, groups[i]), RG_ERR_HANDLE, "group");
        FAILS(rg_iagree(&value, groups[i], &request), RG_ERR_HANDLE, "group");
        CHECK(out.id == -9);
    }
    FAILS(rg_group_free(RG_WORLD), RG_ERR_ARGUMENT, "world");
    FAILS(rg_group_revoke(RG_ALL), RG_ERR_ARGUMENT, "rg_group_select");
    FAILS(rg_agree(&value, RG_ALL), RG_ERR_ARGUMENT, "rg_group_select");
    FAILS(rg_group_tolerate_left(RG_ALL, 0), RG_ERR_ARGUMENT, "rg_group_select");
    FAILS(rg_agree(NULL, RG_WORLD), RG_ERR_ARGUMENT, "flag");
    FAILS(rg_iagree(&value, RG_WORLD, NULL), RG_ERR_ARGUMENT, "request");
    rg_group group, old;
    OK(rg_group_dup(RG_WORLD, &group));
    old = group;
    OK(rg_group_free(group));
    FAILS(rg_barrier(old), RG_ERR_HANDLE, "group");
    OK(rg_group_dup(RG_WORLD, &group));
    CHECK(group.id != old.id);
    FAILS(rg_barrier(old), RG_ERR_HANDLE, "group");
    OK(rg_barrier(group));
    OK(rg_group_free(group));

    const rg_op ops[] = {{0}, {-1}, {11}, {99}, {100}, {5000}, {INT_MAX}, {INT_MIN}};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        int out = 3;
        FAILS(rg_allreduce(&value, &out, 1, RG_INT32, ops[i], RG_WORLD), RG_ERR_HANDLE, "operator");
        FAILS(rg_op_free(ops[i]), RG_ERR_HANDLE, "operator");
        CHECK(out == 3);
    }
    rg_op op;
    OK(rg_op_create(twice, NULL, 1, &op));
    OK(rg_op_free(op));
    FAILS(rg_op_free(op), RG_ERR_HANDLE, "operator");
    FAILS(rg_allreduce(&value, &value, 1, RG_INT32, op, RG_WORLD), RG_ERR_HANDLE, "operator");
    /* The slot is reused, and the old handle is still stale. */
    rg_op again;
    OK(rg_op_create(twice, NULL, 1, &again));
    FAILS(rg_op_free(op), RG_ERR_HANDLE, "operator");
    OK(rg_op_free(again));
    still_works();
}

/* Returns the size of this process's address space in bytes. */
static size_t address_space(void)
{
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%zu", &pages) == 1);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void *large(size_t len)
{
    void *block = mmap(NULL, len, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(block != MAP_FAILED);
    return block;
}

/* No address space is left for the memory that a call needs besides its buffers. */
static void refused(void)
{
    enum { VIEWS = 8 << 20, REQUESTS = 16 << 20 };
    const size_t len = (size_t)150 << 20;
    char *one = large(len), *two = large(len);
    rg_view *views = large(VIEWS * sizeof *views);
    rg_request *requests = large(REQUESTS * sizeof *requests), sent;
    rg_group groups[4];
    for (int i = 0; i < 4; i++)
        OK(rg_group_dup(RG_WORLD, &groups[i]));
    still_works();
    struct rlimit limit = {address_space() + (32 << 20), RLIM_INFINITY};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);

    FAILS(rg_send(one, len, me, 1, RG_WORLD), RG_ERR_MEMORY, "no memory for");
    FAILS(rg_isend(one, len, me, 1, RG_WORLD, &sent), RG_ERR_MEMORY, "no memory for");
    FAILS(rg_sendv(views, VIEWS, peer(), 1, RG_WORLD), RG_ERR_MEMORY, "no memory for");
    /* rg_waitany needs no list of the requests. */
    int index;
    OK(rg_waitany(REQUESTS, requests, &index, NULL));
    CHECK(index == -1);
    still_works();

    /* In these calls one member or all members need extra memory; none may hang. */
    FAILS(rg_scan(RG_IN_PLACE, one, len / 8, RG_INT64, RG_SUM, groups[0]), RG_ERR_MEMORY,
          "no memory");
    FAILS(rg_reduce(me == 0 ? RG_IN_PLACE : one, one, len, RG_INT8, RG_SUM, 0, groups[1]),
          RG_ERR_MEMORY, "no memory");
    rg_op op;
    OK(rg_op_create(twice, NULL, 0, &op));
    FAILS(rg_allreduce(one, two, len, RG_INT8, op, groups[2]), RG_ERR_MEMORY, "no memory");
    rg_request request;
    int code = rg_iscan(one, two, len, RG_INT8, op, groups[3], &request);
    if (code == RG_OK)
        code = rg_wait(&request, NULL);
    CHECK(code == RG_ERR_MEMORY && strstr(rg_last_error(), "no memory") != NULL);
    still_works();

    /* A large message is not received early, but arrives all the same. */
    char byte = 0;
    if (me == 0) {
        OK(rg_isend(one, len, 1, 3, RG_WORLD, &sent));
        for (double start = rg_time(); rg_time() < start + 0.05;)
            OK(rg_progress());
        OK(rg_send(&byte, 1, 1, 4, RG_WORLD));
        OK(rg_wait(&sent, NULL));
    } else {
        OK(rg_recv(&byte, 1, 0, 4, RG_WORLD, NULL));
        rg_status status;
        OK(rg_recv(one, len, 0, 3, RG_WORLD, &status));
        CHECK(status.length == len);
    }
    still_works();
}

static void types(void)
{
    double in = 1, out = 2;
    FAILS(rg_allreduce(&in, &out, 1, (rg_type)0, RG_SUM, RG_WORLD), RG_ERR_ARGUMENT, "type");
    FAILS(rg_allreduce(&in, &out, 1, (rg_type)12, RG_SUM, RG_WORLD), RG_ERR_ARGUMENT, "type");
    FAILS(rg_allreduce(&in, &out, 1, RG_BYTES(0), RG_SUM, RG_WORLD), RG_ERR_ARGUMENT, "type");
    FAILS(rg_allreduce(&in, &out, 1, RG_DOUBLE, RG_BXOR, RG_WORLD), RG_ERR_ARGUMENT, "defined");
    FAILS(rg_allreduce(&in, &out, 1, RG_BYTES(8), RG_SUM, RG_WORLD), RG_ERR_ARGUMENT, "defined");
    CHECK(out == 2);
    rg_group group;
    int one = 0, same[2] = {0, 0}, far[2] = {0, 9};
    FAILS(rg_group_select(RG_WORLD, 0, &one, &group), RG_ERR_ARGUMENT, "at least one");
    FAILS(rg_group_select(RG_WORLD, 2, same, &group), RG_ERR_ARGUMENT, "twice");
    FAILS(rg_group_select(RG_WORLD, 2, far, &group), RG_ERR_TASK, "no task");
    int other = peer();
    FAILS(rg_group_select(RG_WORLD, 1, &other, &group), RG_ERR_ARGUMENT, "not in the new group");
    FAILS(rg_group_split(RG_WORLD, -5, 0, &group), RG_ERR_ARGUMENT, "colour");
    CHECK(strlen(rg_strerror(0)) > 0 && strlen(rg_strerror(-99999)) > 0);
    CHECK(strlen(rg_strerror(INT_MIN)) > 0 && strlen(rg_strerror(INT_MAX)) > 0);
    for (int code = -17; code < 0; code++)
        CHECK(strlen(rg_strerror(code)) > 10);
    still_works();
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"ranks", ranks, false},         {"tids", tids, false},
        {"half-wrong", half_wrong, false}, {"lengths", lengths, false},
        {"nulls", nulls, false},         {"tags", tags, false},
        {"truncation", truncation, false}, {"handles", handles, false},
        {"refused", refused, false}, {"types", types, false},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
