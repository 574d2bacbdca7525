/*
 * Calls of the last process while the others are in MPI_Finalize. By the standard, the others still exist: nonblocking
 * calls succeed and find nothing; receives take what the process sends to itself, or what a process sends that is not
 * in MPI_Finalize. A call that waits only for messages of processes in MPI_Finalize can never return; this library
 * returns an error. A death is a failure in either case.
 */
#define _GNU_SOURCE
#include "mpi_check.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define TAG 5
/*
 * Time in milliseconds after which a process in MPI_Finalize is assumed to wait there for this one, as in other MPI
 * libraries.
 */
#define FINALIZE_WAIT_MS 500
#define LONG_BYTES (1 << 20)
#ifdef MPIX_ERR_PROC_FAILED
#define PROCESS_FAILED MPIX_ERR_PROC_FAILED
#else
#define PROCESS_FAILED MPI_ERR_UNKNOWN
#endif

static int remaining, *ends;

/* Opens descriptors that show the ends of all processes but the first `count`, which remain. */
static void remain(int count)
{
    int pid = (int)getpid(), *pids = malloc(sizeof(int) * (size_t)size);
    ends = malloc(sizeof(int) * (size_t)size);
    remaining = count;
    SUCCEEDS(MPI_Allgather(&pid, 1, MPI_INT, pids, 1, MPI_INT, MPI_COMM_WORLD));
    for (int i = count; i < size; i++)
        ends[i] = (int)syscall(SYS_pidfd_open, pids[i], 0);
    SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
    free(pids);
}

/* Waits until the others have ended, or are waiting in MPI_Finalize. */
static void see_them_go(void)
{
    for (int i = remaining; i < size; i++) {
        struct pollfd end = {ends[i], POLLIN, 0};
        CHECK(poll(&end, 1, FINALIZE_WAIT_MS) >= 0);
    }
}

/* Returns whether this process stays. All but the first `count` go. */
static int stays(int count)
{
    remain(count);
    if (me >= count)
        return 0;
    see_them_go();
    return 1;
}

/* Returns the two sources to receive from: a process that is gone, and MPI_ANY_SOURCE. */
static const int *sources(void)
{
    static int both[2];
    both[0] = size - 1;
    both[1] = MPI_ANY_SOURCE;
    return both;
}

static void probing_finds_nothing(void)
{
    if (!stays(1))
        return;
    for (int i = 0; i < 2; i++) {
        int flag = 1;
        MPI_Message message;
        for (int look = 0; look < 3; look++) {
            SUCCEEDS(MPI_Iprobe(sources()[i], MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
            CHECK(!flag);
            SUCCEEDS(MPI_Improbe(sources()[i], TAG, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE));
            CHECK(!flag);
        }
    }
}

/* Every call that tests requests must leave this one pending. */
static void find_pending(MPI_Request *request)
{
    int flag = 1, index = 7, count = 7;
    SUCCEEDS(MPI_Test(request, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
    SUCCEEDS(MPI_Testall(1, request, &flag, MPI_STATUSES_IGNORE));
    CHECK(!flag);
    SUCCEEDS(MPI_Testany(1, request, &index, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag && index == MPI_UNDEFINED);
    SUCCEEDS(MPI_Testsome(1, request, &count, &index, MPI_STATUSES_IGNORE));
    CHECK(count == 0);
    SUCCEEDS(MPI_Request_get_status(*request, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag && *request != MPI_REQUEST_NULL);
}

static void end_cancelled(MPI_Request *request)
{
    MPI_Status status;
    int flag = 0;
    SUCCEEDS(MPI_Cancel(request));
    SUCCEEDS(MPI_Wait(request, &status));
    SUCCEEDS(MPI_Test_cancelled(&status, &flag));
    CHECK(flag);
}

static void receives_stay_and_are_cancelled(void)
{
    MPI_Request requests[6];
    static char data[6][LONG_BYTES];
    if (me == 0) {
        for (int i = 0; i < 2; i++) {
            SUCCEEDS(MPI_Irecv(data[i], 4, MPI_CHAR, sources()[i], TAG, MPI_COMM_WORLD, &requests[i]));
            SUCCEEDS(MPI_Recv_init(data[4 + i], LONG_BYTES, MPI_CHAR, sources()[i], TAG, MPI_COMM_WORLD, &requests[4 + i]));
        }
    }
    if (!stays(1))
        return;
    for (int i = 0; i < 2; i++)
        SUCCEEDS(MPI_Irecv(data[2 + i], LONG_BYTES, MPI_CHAR, sources()[i], TAG, MPI_COMM_WORLD, &requests[2 + i]));
    for (int round = 0; round < 2; round++) {
        SUCCEEDS(MPI_Startall(2, requests + 4));
        for (int i = round ? 4 : 0; i < 6; i++)
            find_pending(&requests[i]);
        for (int i = round ? 4 : 0; i < 6; i++)
            end_cancelled(&requests[i]);
    }
    SUCCEEDS(MPI_Request_free(&requests[4]));
    SUCCEEDS(MPI_Request_free(&requests[5]));
    /* This freed request gets no message, and no call refers to it. */
    SUCCEEDS(MPI_Irecv(data[0], 4, MPI_CHAR, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &requests[0]));
    SUCCEEDS(MPI_Request_free(&requests[0]));
}

/* Receives what this process sends to itself, with every kind of receive from any source. */
static void receive_own(int length)
{
    static char out[LONG_BYTES], in[LONG_BYTES];
    MPI_Request receive, send;
    MPI_Status status;
    MPI_Message message;
    for (int way = 0; way < 8; way++) {
        int flag = 0, index = -1;
        memset(out, way + 1, (size_t)length);
        receive = MPI_REQUEST_NULL;
        if (way < 4)
            SUCCEEDS(MPI_Irecv(in, length, MPI_CHAR, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &receive));
        if (way == 1)
            find_pending(&receive);
        SUCCEEDS(MPI_Isend(out, length, MPI_CHAR, me, TAG, MPI_COMM_WORLD, &send));
        switch (way) {
        case 2:
            SUCCEEDS(MPI_Waitany(1, &receive, &index, &status));
            break;
        case 3:
            while (!flag)
                SUCCEEDS(MPI_Test(&receive, &flag, &status));
            break;
        case 4:
            SUCCEEDS(MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
            SUCCEEDS(MPI_Recv(in, length, MPI_CHAR, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &status));
            break;
        case 5:
            SUCCEEDS(MPI_Mprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &message, &status));
            SUCCEEDS(MPI_Mrecv(in, length, MPI_CHAR, &message, &status));
            break;
        case 6:
            while (!flag)
                SUCCEEDS(MPI_Iprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &flag, &status));
            SUCCEEDS(MPI_Recv(in, length, MPI_CHAR, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &status));
            break;
        case 7:
            SUCCEEDS(MPI_Recv(in, length, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
            break;
        default:
            SUCCEEDS(MPI_Wait(&receive, &status));
        }
        SUCCEEDS(MPI_Wait(&send, MPI_STATUS_IGNORE));
        CHECK(status.MPI_SOURCE == me && in[0] == way + 1 && in[length - 1] == way + 1);
    }
    SUCCEEDS(MPI_Sendrecv(out, length, MPI_CHAR, me, TAG, in, length, MPI_CHAR, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &status));
    CHECK(status.MPI_SOURCE == me);
}

static void own_messages_are_received_from_anybody(void)
{
    if (!stays(1))
        return;
    receive_own(4);
    receive_own(LONG_BYTES);
}

/* One thread waits, and another one sends to it meanwhile. */
static int way;

static void *wait_for_own(void *ready)
{
    int got = 0;
    MPI_Status status;
    MPI_Message message;
    CHECK(write(*(int *)ready, "r", 1) == 1);
    if (way == 0)
        SUCCEEDS(MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &status));
    if (way == 1) {
        SUCCEEDS(MPI_Probe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &status));
        SUCCEEDS(MPI_Recv(&got, 1, MPI_INT, status.MPI_SOURCE, TAG, MPI_COMM_WORLD, &status));
    }
    if (way == 2) {
        SUCCEEDS(MPI_Mprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &message, &status));
        SUCCEEDS(MPI_Mrecv(&got, 1, MPI_INT, &message, &status));
    }
    CHECK(got == 42 && status.MPI_SOURCE == me);
    return NULL;
}

static void a_thread_waits_for_another_one(void)
{
    if (!stays(1))
        return;
    for (way = 0; way < 3; way++) {
        int ready[2], one = 42;
        char byte;
        pthread_t thread;
        CHECK(pipe(ready) == 0);
        CHECK(pthread_create(&thread, NULL, wait_for_own, &ready[1]) == 0);
        CHECK(read(ready[0], &byte, 1) == 1);
        /* The other thread most likely waits by now, and has checked for processes that are gone. */
        struct pollfd nothing = {ready[0], POLLIN, 0};
        CHECK(poll(&nothing, 1, 30) == 0);
        SUCCEEDS(MPI_Send(&one, 1, MPI_INT, me, TAG, MPI_COMM_WORLD));
        CHECK(pthread_join(thread, NULL) == 0);
        close(ready[0]);
        close(ready[1]);
    }
}

/* Two processes remain, and the others are gone. */
static void the_living_are_received_from_anybody(void)
{
    if (!stays(2))
        return;
    int out = 40 + me, other = 1 - me;
    for (int i = 0; i < 3; i++) {
        int got = 0, flag;
        MPI_Request receive;
        MPI_Status status;
        if (i)
            SUCCEEDS(MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &receive));
        if (i == 2)
            SUCCEEDS(MPI_Test(&receive, &flag, &status));
        if (i != 2 || !flag) {
            SUCCEEDS(MPI_Send(&out, 1, MPI_INT, other, TAG, MPI_COMM_WORLD));
            if (i)
                SUCCEEDS(MPI_Wait(&receive, &status));
            else
                SUCCEEDS(MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &status));
        } else {
            SUCCEEDS(MPI_Send(&out, 1, MPI_INT, other, TAG, MPI_COMM_WORLD));
        }
        CHECK(got == 40 + other && status.MPI_SOURCE == other);
    }
}

/* Messages sent before MPI_Finalize can be received in every way; after them there is nothing. */
static void what_they_have_sent_is_received(void)
{
    static char data[LONG_BYTES];
    MPI_Request sends[4];
    remain(1);
    if (me) {
        MPI_Datatype apart;
        memset(data, me, sizeof data);
        SUCCEEDS(MPI_Type_vector(LONG_BYTES / 4, 2, 4, MPI_CHAR, &apart));
        SUCCEEDS(MPI_Type_commit(&apart));
        SUCCEEDS(MPI_Isend(data, 1, apart, 0, TAG + 3, MPI_COMM_WORLD, &sends[3]));
        SUCCEEDS(MPI_Request_free(&sends[3]));
        SUCCEEDS(MPI_Type_free(&apart));
        SUCCEEDS(MPI_Isend(data, 8, MPI_CHAR, 0, TAG, MPI_COMM_WORLD, &sends[0]));
        SUCCEEDS(MPI_Request_free(&sends[0]));
        SUCCEEDS(MPI_Isend(data, LONG_BYTES, MPI_CHAR, 0, TAG + 1, MPI_COMM_WORLD, &sends[1]));
        SUCCEEDS(MPI_Request_free(&sends[1]));
        SUCCEEDS(MPI_Isend(data, 8, MPI_CHAR, 0, TAG + 2, MPI_COMM_WORLD, &sends[2]));
        SUCCEEDS(MPI_Request_free(&sends[2]));
        return;
    }
    /* A sender of a long message waits until it is received, so this most likely sees no end. */
    struct pollfd end = {ends[size - 1], POLLIN, 0};
    CHECK(poll(&end, 1, FINALIZE_WAIT_MS) >= 0);
    for (int i = 1; i < size; i++) {
        MPI_Status status;
        SUCCEEDS(MPI_Recv(data, 8, MPI_CHAR, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &status));
        CHECK(data[0] == status.MPI_SOURCE);
    }
    for (int i = 1; i < size; i++) {
        MPI_Status status;
        MPI_Message message;
        int flag = 0;
        SUCCEEDS(MPI_Mprobe(i, TAG + 1, MPI_COMM_WORLD, &message, &status));
        SUCCEEDS(MPI_Mrecv(data, LONG_BYTES, MPI_CHAR, &message, &status));
        CHECK(data[LONG_BYTES - 1] == i);
        while (!flag)
            SUCCEEDS(MPI_Iprobe(i, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status));
        SUCCEEDS(MPI_Recv(data, LONG_BYTES, MPI_CHAR, i, status.MPI_TAG, MPI_COMM_WORLD, &status));
        CHECK(status.MPI_TAG == TAG + 2 || status.MPI_TAG == TAG + 3);
        SUCCEEDS(MPI_Recv(data, LONG_BYTES, MPI_CHAR, i, status.MPI_TAG == TAG + 2 ? TAG + 3 : TAG + 2, MPI_COMM_WORLD, &status));
        SUCCEEDS(MPI_Iprobe(i, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status));
        CHECK(!flag);
    }
}

/* A synchronous message that is never received can be cancelled, before its receiver is gone and afterwards. */
static void sends_that_nobody_receives_are_cancelled(void)
{
    static char data[LONG_BYTES];
    MPI_Request before[2], after[2], live;
    if (me == 0) {
        SUCCEEDS(MPI_Issend(data, 4, MPI_CHAR, size - 1, TAG, MPI_COMM_WORLD, &before[0]));
        SUCCEEDS(MPI_Issend(data, LONG_BYTES, MPI_CHAR, size - 1, TAG, MPI_COMM_WORLD, &before[1]));
        SUCCEEDS(MPI_Issend(data, 4, MPI_CHAR, size - 1, TAG, MPI_COMM_WORLD, &live));
        SUCCEEDS(MPI_Cancel(&live));
    }
    if (!stays(1))
        return;
    MPI_Status status;
    int flag = 0;
    SUCCEEDS(MPI_Wait(&live, &status));
    SUCCEEDS(MPI_Test_cancelled(&status, &flag));
    CHECK(flag);
    SUCCEEDS(MPI_Issend(data, 4, MPI_CHAR, size - 1, TAG, MPI_COMM_WORLD, &after[0]));
    SUCCEEDS(MPI_Issend(data, LONG_BYTES, MPI_CHAR, size - 1, TAG, MPI_COMM_WORLD, &after[1]));
    for (int i = 0; i < 2; i++) {
        find_pending(&before[i]);
        find_pending(&after[i]);
        end_cancelled(&before[i]);
        end_cancelled(&after[i]);
    }
}

/*
 * The remaining processes make communicators among themselves, and spawn processes, although some peers are in
 * MPI_Finalize.
 */
static void the_rest_make_communicators(void)
{
    MPI_Comm later;
    SUCCEEDS(MPI_Comm_dup(MPI_COMM_WORLD, &later));
    if (!stays(2)) {
        SUCCEEDS(MPI_Comm_free(&later));
        return;
    }
    /* The others have freed it, so this waits for no process. */
    SUCCEEDS(MPI_Comm_free(&later));
    MPI_Group world, rest;
    MPI_Comm both, again, halves, alone, merged, listed;
    int ranks[2] = {0, 1}, sum = 0, flag = 1, one = 1;
    SUCCEEDS(MPI_Comm_group(MPI_COMM_WORLD, &world));
    SUCCEEDS(MPI_Group_incl(world, 2, ranks, &rest));
    SUCCEEDS(MPI_Comm_create_group(MPI_COMM_WORLD, rest, TAG, &both));
    SUCCEEDS(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, both));
    CHECK(sum == 2);
    SUCCEEDS(MPI_Comm_dup(both, &again));
    SUCCEEDS(MPI_Comm_split(again, me, 0, &alone));
    SUCCEEDS(MPI_Intercomm_create(alone, 0, MPI_COMM_WORLD, 1 - me, TAG, &halves));
    SUCCEEDS(MPI_Intercomm_merge(halves, me, &merged));
    SUCCEEDS(MPI_Barrier(merged));
    SUCCEEDS(MPI_Comm_create_from_group(rest, "rest", MPI_INFO_NULL, MPI_ERRORS_RETURN, &listed));
    SUCCEEDS(MPI_Barrier(listed));
    SUCCEEDS(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, halves, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
    MPI_Win window;
    int *memory;
    SUCCEEDS(MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, both, &memory, &window));
    SUCCEEDS(MPI_Win_fence(0, window));
    SUCCEEDS(MPI_Put(&me, 1, MPI_INT, 1 - me, 0, 1, MPI_INT, window));
    SUCCEEDS(MPI_Win_fence(0, window));
    CHECK(*memory == 1 - me);
    SUCCEEDS(MPI_Win_free(&window));
    MPI_Comm all[] = {both, again, halves, alone, merged, listed};
    for (int i = 0; i < 6; i++)
        SUCCEEDS(MPI_Comm_free(&all[i]));
    SUCCEEDS(MPI_Group_free(&world));
    SUCCEEDS(MPI_Group_free(&rest));
}

/* Only in this library a call that can never return is an error; other libraries hang. */
static void waiting_for_them_alone_is_an_error(void)
{
    static char data[LONG_BYTES];
    MPI_Request request, two[2];
    MPI_Status status;
    MPI_Message message;
    int index, count, indices[2];
    if (!stays(1))
        return;
    for (int i = 0; i < 2; i++) {
        int from = sources()[i];
        FAILS(PROCESS_FAILED, MPI_Recv(data, 4, MPI_CHAR, from, TAG, MPI_COMM_WORLD, &status));
        FAILS(PROCESS_FAILED, MPI_Probe(from, TAG, MPI_COMM_WORLD, &status));
        FAILS(PROCESS_FAILED, MPI_Mprobe(from, TAG, MPI_COMM_WORLD, &message, &status));
        SUCCEEDS(MPI_Irecv(data, 4, MPI_CHAR, from, TAG, MPI_COMM_WORLD, &request));
        FAILS(PROCESS_FAILED, MPI_Wait(&request, &status));
        SUCCEEDS(MPI_Irecv(data, 4, MPI_CHAR, from, TAG, MPI_COMM_WORLD, &two[0]));
        SUCCEEDS(MPI_Irecv(data, 4, MPI_CHAR, size - 1, TAG, MPI_COMM_WORLD, &two[1]));
        FAILS(PROCESS_FAILED, MPI_Waitany(2, two, &index, &status));
        FAILS(MPI_ERR_IN_STATUS, MPI_Waitsome(2, two, &count, indices, MPI_STATUSES_IGNORE));
        SUCCEEDS(MPI_Irecv(data, 4, MPI_CHAR, from, TAG, MPI_COMM_WORLD, &request));
        FAILS(MPI_ERR_IN_STATUS, MPI_Waitall(1, &request, MPI_STATUSES_IGNORE));
    }
    FAILS(PROCESS_FAILED, MPI_Send(data, 4, MPI_CHAR, size - 1, TAG, MPI_COMM_WORLD));
    FAILS(PROCESS_FAILED, MPI_Ssend(data, LONG_BYTES, MPI_CHAR, size - 1, TAG, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Issend(data, 4, MPI_CHAR, size - 1, TAG, MPI_COMM_WORLD, &request));
    FAILS(PROCESS_FAILED, MPI_Wait(&request, &status));
    /* No error for a call that another message may complete. */
    SUCCEEDS(MPI_Irecv(data, 4, MPI_CHAR, size - 1, TAG, MPI_COMM_WORLD, &two[0]));
    SUCCEEDS(MPI_Irecv(data, 4, MPI_CHAR, me, TAG + 1, MPI_COMM_WORLD, &two[1]));
    SUCCEEDS(MPI_Send(data, 4, MPI_CHAR, me, TAG + 1, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Waitany(2, two, &index, &status));
    CHECK(index == 1);
    end_cancelled(&two[0]);
}

/* As above, but this process already waits when the others leave. */
static void who_waits_when_the_last_one_leaves_has_an_error(void)
{
    int ready = 0, got;
    MPI_Request requests[2];
    /* The last one to leave is told when this process is about to wait. */
    if (me == 1)
        SUCCEEDS(MPI_Recv(&ready, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (me)
        return;
    SUCCEEDS(MPI_Irecv(&got, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD, &requests[0]));
    SUCCEEDS(MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &requests[1]));
    SUCCEEDS(MPI_Send(&ready, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD));
    FAILS(PROCESS_FAILED, MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    FAILS(PROCESS_FAILED, MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
}

/* Waits for any of several sends, short and long, whose receiver leaves meanwhile. */
static void waiting_for_any_send_is_an_error(void)
{
    static char data[2][64 * LONG_BYTES];
    int ready = 0, index;
    if (me == 1)
        SUCCEEDS(MPI_Recv(&ready, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (me)
        return;
    MPI_Request requests[2][2];
    for (int i = 0; i < 2; i++) {
        SUCCEEDS(MPI_Issend(data[i], 4, MPI_CHAR, 1, TAG + 1, MPI_COMM_WORLD, &requests[0][i]));
        SUCCEEDS(MPI_Isend(data[i], 64 * LONG_BYTES, MPI_CHAR, 1, TAG + 2, MPI_COMM_WORLD, &requests[1][i]));
    }
    SUCCEEDS(MPI_Send(&ready, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD));
    for (int kind = 0; kind < 2; kind++) {
        int count, indices[2];
        MPI_Status statuses[2];
        FAILS(PROCESS_FAILED, MPI_Waitany(2, requests[kind], &index, MPI_STATUS_IGNORE));
        CHECK(index == 0 || index == 1);
        CHECK(MPI_Waitsome(2, requests[kind], &count, indices, statuses) == MPI_ERR_IN_STATUS && count == 1);
        CHECK(class_of(statuses[0].MPI_ERROR) == PROCESS_FAILED);
    }
}

/* Dies at the very beginning of MPI_Finalize. */
static int die(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    kill(getpid(), SIGKILL);
    return MPI_SUCCESS;
}

/* A process that died counts as failed, even if it died in MPI_Finalize. */
static void those_that_died_are_failures(void)
{
    MPI_Request requests[2], posted[2];
    static char data[64];
    int flag;
    if (me == 0)
        for (int i = 0; i < 2; i++)
            SUCCEEDS(MPI_Irecv(data + i, 1, MPI_CHAR, sources()[i], TAG, MPI_COMM_WORLD, &posted[i]));
    remain(1);
    if (me) {
        int key;
        SUCCEEDS(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, die, &key, NULL));
        SUCCEEDS(MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL));
        return;
    }
    see_them_go();
    for (int i = 0; i < 2; i++) {
        FAILS(PROCESS_FAILED, MPI_Wait(&posted[i], MPI_STATUS_IGNORE));
        FAILS(PROCESS_FAILED, MPI_Iprobe(sources()[i], TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        FAILS(PROCESS_FAILED, MPI_Recv(data, 1, MPI_CHAR, sources()[i], TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        FAILS(PROCESS_FAILED, MPI_Irecv(data, 1, MPI_CHAR, sources()[i], TAG, MPI_COMM_WORLD, &requests[i]));
    }
}

/* Messages between a spawned process and its parent, when either is in MPI_Finalize. */
static void poll_side(MPI_Comm other)
{
    int flag = 1, got = 0;
    MPI_Message message;
    MPI_Request request;
    MPI_Status status;
    SUCCEEDS(MPI_Comm_set_errhandler(other, MPI_ERRORS_RETURN));
    SUCCEEDS(MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, TAG, other, &status));
    CHECK(got == 3);
    for (int look = 0; look < 3; look++) {
        SUCCEEDS(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, other, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag);
        SUCCEEDS(MPI_Iprobe(0, MPI_ANY_TAG, other, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag);
        SUCCEEDS(MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, other, &flag, &message, MPI_STATUS_IGNORE));
        CHECK(!flag);
    }
    SUCCEEDS(MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, TAG, other, &request));
    find_pending(&request);
    end_cancelled(&request);
}

static char *program;

/* The other side sends its process number, and leaves. */
static void tell_and_leave(MPI_Comm other)
{
    int pid = (int)getpid(), three = 3;
    SUCCEEDS(MPI_Send(&pid, 1, MPI_INT, 0, TAG + 1, other));
    SUCCEEDS(MPI_Send(&three, 1, MPI_INT, 0, TAG, other));
}

static void see_it_go(MPI_Comm other)
{
    int pid;
    SUCCEEDS(MPI_Recv(&pid, 1, MPI_INT, 0, TAG + 1, other, MPI_STATUS_IGNORE));
    struct pollfd end = {(int)syscall(SYS_pidfd_open, pid, 0), POLLIN, 0};
    CHECK(poll(&end, 1, FINALIZE_WAIT_MS) >= 0);
}

static void start(const char *what)
{
    MPI_Comm children;
    char *arguments[] = {(char *)what, NULL};
    SUCCEEDS(MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE));
    if (me)
        return;
    if (strcmp(what, "child-leaves") == 0) {
        see_it_go(children);
        poll_side(children);
    } else {
        tell_and_leave(children);
    }
}

static void children_leave_first(void)
{
    start("child-leaves");
}

static void parents_leave_first(void)
{
    start("child-stays");
}

static int be_started(int argc, char **argv)
{
    MPI_Comm parent;
    SUCCEEDS(MPI_Init(&argc, &argv));
    SUCCEEDS(MPI_Comm_get_parent(&parent));
    if (strcmp(argv[1], "child-leaves") == 0) {
        tell_and_leave(parent);
    } else {
        see_it_go(parent);
        poll_side(parent);
    }
    SUCCEEDS(MPI_Finalize());
    return 0;
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"probe", probing_finds_nothing},
        {"receives", receives_stay_and_are_cancelled},
        {"own", own_messages_are_received_from_anybody},
        {"living", the_living_are_received_from_anybody},
        {"sent", what_they_have_sent_is_received},
        {"sends", sends_that_nobody_receives_are_cancelled},
        {"making", the_rest_make_communicators},
        {"never", waiting_for_them_alone_is_an_error},
        {"last", who_waits_when_the_last_one_leaves_has_an_error},
        {"any", waiting_for_any_send_is_an_error},
        {"died", those_that_died_are_failures},
        {"children", children_leave_first},
        {"parents", parents_leave_first},
        {"thread", a_thread_waits_for_another_one},
        {NULL, NULL},
    };
    int level;
    program = argv[0];
    if (argc > 1 && strncmp(argv[1], "child-", 6) == 0)
        return be_started(argc, argv);
    if (argc > 1 && strcmp(argv[1], "thread") == 0) {
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
        CHECK(level == MPI_THREAD_MULTIPLE);
        return play_initialized(argc, argv, scenarios);
    }
    return play(argc, argv, scenarios);
}
