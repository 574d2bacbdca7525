/*
 * Partitioned messages: with equal and different partitions on both sides, in any order, by several threads; layouts;
 * matching order; invalid arguments. And other things about requests: handles as integers, buffers of sessions.
 */
#include "mpi_check.h"

#include <pthread.h>

#define TOTAL 5040

static int values[TOTAL], copy[TOTAL];

static void fill(int *to, int round)
{
    for (int i = 0; i < TOTAL; i++)
        to[i] = i * 7 + round;
}

static void hold(const int *of, int from, int count, int round)
{
    for (int i = from; i < from + count; i++)
        CHECK(of[i] == i * 7 + round);
}

static MPI_Request begin_send(int partitions, int dest, int tag)
{
    MPI_Request request;
    SUCCEEDS(MPI_Psend_init(values, partitions, TOTAL / partitions, MPI_INT, dest, tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                            &request));
    return request;
}

static MPI_Request begin_receive(int *to, int partitions, int source, int tag)
{
    MPI_Request request;
    SUCCEEDS(MPI_Precv_init(to, partitions, TOTAL / partitions, MPI_INT, source, tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                            &request));
    return request;
}

static void send_all(MPI_Request request, int partitions)
{
    int list[TOTAL], first = partitions / 3;
    for (int i = 0; i < first; i++)
        list[i] = first - 1 - i;
    SUCCEEDS(MPI_Pready_list(first, list, request));
    for (int i = partitions - 1; i > first; i--)
        SUCCEEDS(MPI_Pready(i, request));
    SUCCEEDS(MPI_Pready_range(first, first, request));
}

static void sizes(void)
{
    static const int counts[][2] = {{1, 1}, {8, 8}, {1, 16}, {16, 1}, {12, 18}, {720, 5}, {7, 48}};
    int left = (me + size - 1) % size, right = (me + 1) % size;
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        int mine = counts[k][0], theirs = counts[k][1], each = TOTAL / theirs;
        MPI_Request requests[2] = {begin_receive(copy, theirs, left, 3), begin_send(mine, right, 3)};
        for (int round = 0; round < 3; round++) {
            fill(values, round);
            memset(copy, 0, sizeof copy);
            SUCCEEDS(MPI_Startall(2, requests));
            send_all(requests[1], mine);
            if (round == 0) {
                for (int part = 0, there; part < theirs; part++) {
                    do
                        SUCCEEDS(MPI_Parrived(requests[0], part, &there));
                    while (!there);
                    hold(copy, part * each, each, round);
                }
                int flag;
                MPI_Status status;
                SUCCEEDS(MPI_Test(&requests[0], &flag, &status));
                CHECK(flag);
                MPI_Count count;
                SUCCEEDS(MPI_Get_count_c(&status, MPI_INT, &count));
                CHECK(count == TOTAL && status.MPI_SOURCE == left && status.MPI_TAG == 3);
            }
            SUCCEEDS(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
            hold(copy, 0, TOTAL, round);
            int there = 0;
            SUCCEEDS(MPI_Parrived(requests[0], 0, &there));
            CHECK(there);
        }
        SUCCEEDS(MPI_Request_free(&requests[0]));
        SUCCEEDS(MPI_Request_free(&requests[1]));
        CHECK(requests[0] == MPI_REQUEST_NULL);
    }
}

/* The first send that is initialized matches the first receive, even if it is never started. */
static void order(void)
{
    int left = (me + size - 1) % size, right = (me + 1) % size;
    MPI_Request sends[3], receives[3];
    static int into[3][TOTAL];
    for (int i = 0; i < 3; i++)
        sends[i] = begin_send(1 + i, right, 5);
    for (int i = 0; i < 3; i++)
        receives[i] = begin_receive(into[i], 4, left, 5);
    SUCCEEDS(MPI_Request_free(&sends[0]));
    SUCCEEDS(MPI_Request_free(&receives[0]));
    fill(values, 9);
    for (int i = 2; i > 0; i--) {
        SUCCEEDS(MPI_Start(&receives[i]));
        SUCCEEDS(MPI_Start(&sends[i]));
        SUCCEEDS(MPI_Pready_range(0, i, sends[i]));
        SUCCEEDS(MPI_Wait(&sends[i], MPI_STATUS_IGNORE));
        SUCCEEDS(MPI_Wait(&receives[i], MPI_STATUS_IGNORE));
        hold(into[i], 0, TOTAL, 9);
        SUCCEEDS(MPI_Request_free(&sends[i]));
        SUCCEEDS(MPI_Request_free(&receives[i]));
    }
    MPI_Request nobody[2];
    SUCCEEDS(MPI_Psend_init(values, 2, 3, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &nobody[0]));
    SUCCEEDS(MPI_Precv_init(copy, 2, 3, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &nobody[1]));
    SUCCEEDS(MPI_Startall(2, nobody));
    SUCCEEDS(MPI_Pready_range(0, 1, nobody[0]));
    MPI_Status statuses[2];
    SUCCEEDS(MPI_Waitall(2, nobody, statuses));
    CHECK(statuses[1].MPI_SOURCE == MPI_PROC_NULL);
    SUCCEEDS(MPI_Request_free(&nobody[0]));
    SUCCEEDS(MPI_Request_free(&nobody[1]));
}

/*
 * Zero partitions are allowed: such a message is complete when it is started, whatever the partitions of the other
 * side.
 */
static void empty(void)
{
    int left = (me + size - 1) % size, right = (me + 1) % size, flag = 0;
    for (int theirs = 0; theirs < 3; theirs++) {
        MPI_Request requests[2];
        MPI_Status statuses[2];
        SUCCEEDS(MPI_Psend_init(values, 0, 7, MPI_INT, right, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
        SUCCEEDS(MPI_Precv_init(copy, theirs, 0, MPI_INT, left, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
        for (int round = 0; round < 3; round++) {
            int count = -1;
            SUCCEEDS(MPI_Startall(2, requests));
            FAILS(MPI_ERR_ARG, MPI_Pready(0, requests[0]));
            FAILS(MPI_ERR_ARG, MPI_Parrived(requests[1], theirs, &flag));
            SUCCEEDS(MPI_Waitall(2, requests, statuses));
            SUCCEEDS(MPI_Get_count(&statuses[1], MPI_INT, &count));
            CHECK(count == 0);
        }
        SUCCEEDS(MPI_Request_free(&requests[0]));
        SUCCEEDS(MPI_Request_free(&requests[1]));
    }
}

/* Every second integer of the sender goes to pairs at the receiver. */
static void layouts(void)
{
    MPI_Datatype sparse, pairs, half;
    SUCCEEDS(MPI_Type_vector(6, 1, 2, MPI_INT, &half));
    SUCCEEDS(MPI_Type_create_resized(half, 0, 12 * sizeof(int), &sparse));
    SUCCEEDS(MPI_Type_commit(&sparse));
    SUCCEEDS(MPI_Type_free(&half));
    SUCCEEDS(MPI_Type_vector(2, 2, 3, MPI_INT, &half));
    SUCCEEDS(MPI_Type_create_resized(half, 0, 6 * sizeof(int), &pairs));
    SUCCEEDS(MPI_Type_commit(&pairs));
    SUCCEEDS(MPI_Type_free(&half));
    int left = (me + size - 1) % size, right = (me + 1) % size;
    MPI_Request requests[2];
    SUCCEEDS(MPI_Psend_init(values, 10, 2, sparse, right, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    SUCCEEDS(MPI_Precv_init(copy, 6, 5, pairs, left, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    SUCCEEDS(MPI_Type_free(&sparse));
    SUCCEEDS(MPI_Type_free(&pairs));
    for (int round = 0; round < 2; round++) {
        fill(values, round);
        memset(copy, -1, sizeof copy);
        SUCCEEDS(MPI_Startall(2, requests));
        for (int i = 9; i >= 0; i--)
            SUCCEEDS(MPI_Pready(i, requests[0]));
        SUCCEEDS(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        for (int i = 0, next = 0; i < 180; i++)
            CHECK(copy[i] == (i % 3 == 2 ? -1 : 2 * next++ * 7 + round));
    }
    SUCCEEDS(MPI_Request_free(&requests[0]));
    SUCCEEDS(MPI_Request_free(&requests[1]));
}

struct share {
    MPI_Request request;
    int from;
};

static void *declare(void *argument)
{
    struct share *share = argument;
    for (int i = share->from; i < 40; i += 4)
        SUCCEEDS(MPI_Pready(i, share->request));
    return NULL;
}

/* Threads mark partitions as ready, while this one already waits. */
static void threads(void)
{
    int left = (me + size - 1) % size, right = (me + 1) % size;
    MPI_Request requests[2] = {begin_send(40, right, 8), begin_receive(copy, 20, left, 8)};
    for (int round = 0; round < 5; round++) {
        fill(values, round);
        SUCCEEDS(MPI_Startall(2, requests));
        pthread_t all[4];
        struct share shares[4];
        for (int i = 0; i < 4; i++) {
            shares[i] = (struct share){requests[0], i};
            CHECK(pthread_create(&all[i], NULL, declare, &shares[i]) == 0);
        }
        SUCCEEDS(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        for (int i = 0; i < 4; i++)
            CHECK(pthread_join(all[i], NULL) == 0);
        hold(copy, 0, TOTAL, round);
    }
    SUCCEEDS(MPI_Request_free(&requests[0]));
    SUCCEEDS(MPI_Request_free(&requests[1]));
}

static void mistakes(void)
{
    MPI_Request request = MPI_REQUEST_NULL, other;
    int flag, list[] = {0, 9};
#define SEND(parts, count, type, dest, tag, comm)                                                                        \
    MPI_Psend_init(values, parts, count, type, dest, tag, comm, MPI_INFO_NULL, &request)
#define RECEIVE(parts, count, type, source, tag, comm)                                                                   \
    MPI_Precv_init(copy, parts, count, type, source, tag, comm, MPI_INFO_NULL, &request)
    FAILS(MPI_ERR_ARG, SEND(-1, 1, MPI_INT, 0, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_ARG, RECEIVE(-1, 1, MPI_INT, 0, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_COUNT, SEND(1, -1, MPI_INT, 0, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_TYPE, SEND(1, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_RANK, SEND(1, 1, MPI_INT, size, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_RANK, RECEIVE(1, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_TAG, SEND(1, 1, MPI_INT, 0, -5, MPI_COMM_WORLD));
    FAILS(MPI_ERR_TAG, RECEIVE(1, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD));
    FAILS(MPI_ERR_COMM, SEND(1, 1, MPI_INT, 0, 0, MPI_COMM_NULL));
    FAILS(MPI_ERR_BUFFER, MPI_Psend_init(NULL, 1, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    FAILS(MPI_ERR_ARG, MPI_Psend_init(values, 1, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, NULL));

    SUCCEEDS(SEND(2, 1, MPI_INT, me, 4, MPI_COMM_WORLD));
    other = request;
    SUCCEEDS(RECEIVE(1, 2, MPI_INT, me, 4, MPI_COMM_WORLD));
    FAILS(MPI_ERR_REQUEST, MPI_Pready(0, other));
    SUCCEEDS(MPI_Start(&other));
    SUCCEEDS(MPI_Start(&request));
    FAILS(MPI_ERR_REQUEST, MPI_Start(&other));
    FAILS(MPI_ERR_ARG, MPI_Pready(2, other));
    FAILS(MPI_ERR_ARG, MPI_Pready(-1, other));
    FAILS(MPI_ERR_ARG, MPI_Pready_range(1, 0, other));
    FAILS(MPI_ERR_ARG, MPI_Pready_list(2, list, other));
    FAILS(MPI_ERR_ARG, MPI_Pready_list(-1, list, other));
    SUCCEEDS(MPI_Pready(0, other));
    FAILS(MPI_ERR_ARG, MPI_Pready(0, other));
    FAILS(MPI_ERR_REQUEST, MPI_Pready(0, request));
    FAILS(MPI_ERR_ARG, MPI_Parrived(request, 1, &flag));
    FAILS(MPI_ERR_REQUEST, MPI_Parrived(other, 0, &flag));
    SUCCEEDS(MPI_Pready(1, other));
    SUCCEEDS(MPI_Wait(&request, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_Wait(&other, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_Request_free(&request));
    SUCCEEDS(MPI_Request_free(&other));
    FAILS(MPI_ERR_REQUEST, MPI_Pready(0, MPI_REQUEST_NULL));
    SUCCEEDS(MPI_Parrived(MPI_REQUEST_NULL, 0, &flag));
    CHECK(flag);

    /* A receive that is too short returns an error; nothing is written behind its buffer. */
    SUCCEEDS(SEND(2, 4, MPI_INT, me, 4, MPI_COMM_WORLD));
    other = request;
    copy[6] = 77;
    SUCCEEDS(RECEIVE(3, 2, MPI_INT, me, 4, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Start(&other));
    SUCCEEDS(MPI_Start(&request));
    SUCCEEDS(MPI_Pready_range(0, 1, other));
    FAILS(MPI_ERR_TRUNCATE, MPI_Wait(&request, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_Wait(&other, MPI_STATUS_IGNORE));
    CHECK(copy[6] == 77);
    SUCCEEDS(MPI_Request_free(&request));
    SUCCEEDS(MPI_Request_free(&other));
    SUCCEEDS(MPI_Irecv(copy, 1, MPI_INT, me, 0, MPI_COMM_WORLD, &request));
    FAILS(MPI_ERR_REQUEST, MPI_Parrived(request, 0, &flag));
    FAILS(MPI_ERR_REQUEST, MPI_Pready(0, request));
    CHECK(MPI_Request_fromint(MPI_Request_toint(request)) == request);
    SUCCEEDS(MPI_Send(values, 1, MPI_INT, me, 0, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(MPI_Request_fromint(MPI_Request_toint(MPI_REQUEST_NULL)) == MPI_REQUEST_NULL);
    CHECK(MPI_Message_fromint(MPI_Message_toint(MPI_MESSAGE_NO_PROC)) == MPI_MESSAGE_NO_PROC);
}

static void session_buffers(void)
{
    MPI_Session session;
    static char memory[4096];
    void *got;
    int length;
    MPI_Request request;
    SUCCEEDS(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    FAILS(MPI_ERR_BUFFER, MPI_Session_detach_buffer(session, &got, &length));
    SUCCEEDS(MPI_Session_attach_buffer(session, memory, sizeof memory));
    FAILS(MPI_ERR_BUFFER, MPI_Session_attach_buffer(session, memory, sizeof memory));
    SUCCEEDS(MPI_Bsend(values, 4, MPI_INT, 0, 1, MPI_COMM_SELF));
    SUCCEEDS(MPI_Recv(copy, 4, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_Session_flush_buffer(session));
    SUCCEEDS(MPI_Session_iflush_buffer(session, &request));
    SUCCEEDS(MPI_Wait(&request, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_Session_detach_buffer(session, &got, &length));
    CHECK(got == (void *)memory && length == (int)sizeof memory);
    SUCCEEDS(MPI_Session_finalize(&session));
    FAILS(MPI_ERR_SESSION, MPI_Session_flush_buffer(MPI_SESSION_NULL));
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"empty", empty},     {"sizes", sizes},     {"order", order},       {"layouts", layouts},
        {"threads", threads}, {"mistakes", mistakes}, {"session_buffers", session_buffers},
        {NULL, NULL},
    };
    return play(argc, argv, scenarios);
}
