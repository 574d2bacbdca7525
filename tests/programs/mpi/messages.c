/* Messages in all send modes, and all ways to complete them. */
#include "mpi_check.h"

#include <pthread.h>

static int peer(void)
{
    return size - 1 - me;
}

/* Every send mode, blocking and nonblocking, is received with its status. */
static void modes(void)
{
    char room[4096];
    SUCCEEDS(MPI_Buffer_attach(room, sizeof room));
    for (int mode = 0; mode < 8; mode++) {
        long value = mode * 1000 + me;
        MPI_Request request = MPI_REQUEST_NULL;
        if (me == 0) {
            /* A ready send must find its receive posted. */
            SUCCEEDS(MPI_Recv(NULL, 0, MPI_BYTE, 1, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            switch (mode) {
            case 0: SUCCEEDS(MPI_Send(&value, 1, MPI_LONG, 1, mode, MPI_COMM_WORLD)); break;
            case 1: SUCCEEDS(MPI_Ssend(&value, 1, MPI_LONG, 1, mode, MPI_COMM_WORLD)); break;
            case 2: SUCCEEDS(MPI_Rsend(&value, 1, MPI_LONG, 1, mode, MPI_COMM_WORLD)); break;
            case 3: SUCCEEDS(MPI_Bsend(&value, 1, MPI_LONG, 1, mode, MPI_COMM_WORLD)); break;
            case 4: SUCCEEDS(MPI_Isend(&value, 1, MPI_LONG, 1, mode, MPI_COMM_WORLD, &request)); break;
            case 5: SUCCEEDS(MPI_Issend(&value, 1, MPI_LONG, 1, mode, MPI_COMM_WORLD, &request)); break;
            case 6: SUCCEEDS(MPI_Irsend(&value, 1, MPI_LONG, 1, mode, MPI_COMM_WORLD, &request)); break;
            case 7: SUCCEEDS(MPI_Ibsend(&value, 1, MPI_LONG, 1, mode, MPI_COMM_WORLD, &request)); break;
            }
            SUCCEEDS(MPI_Wait(&request, MPI_STATUS_IGNORE));
        } else {
            long got = -1;
            MPI_Status status;
            SUCCEEDS(MPI_Irecv(&got, 1, MPI_LONG, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request));
            SUCCEEDS(MPI_Send(NULL, 0, MPI_BYTE, 0, 99, MPI_COMM_WORLD));
            SUCCEEDS(MPI_Wait(&request, &status));
            int count = -1;
            SUCCEEDS(MPI_Get_count(&status, MPI_LONG, &count));
            CHECK(got == mode * 1000 && status.MPI_SOURCE == 0 && status.MPI_TAG == mode && count == 1);
            SUCCEEDS(MPI_Get_count(&status, MPI_BYTE, &count));
            CHECK(count == (int)sizeof got);
        }
    }
    void *address = NULL;
    int length = -1;
    SUCCEEDS(MPI_Buffer_detach(&address, &length));
    CHECK(address == room && length == (int)sizeof room);
    FAILS(MPI_ERR_BUFFER, MPI_Buffer_detach(&address, &length));
    FAILS(MPI_ERR_BUFFER, MPI_Bsend(&length, 1, MPI_INT, peer(), 0, MPI_COMM_WORLD));
}

enum { MESSAGE_COUNT = 100 };

static void begin_many(int *sent, int *got, MPI_Request *requests)
{
    for (int i = 0; i < MESSAGE_COUNT; i++) {
        sent[i] = me * MESSAGE_COUNT + i;
        got[i] = -1;
        SUCCEEDS(MPI_Irecv(&got[i], 1, MPI_INT, peer(), i, MPI_COMM_WORLD, &requests[i]));
    }
    for (int i = MESSAGE_COUNT; i-- > 0;)
        SUCCEEDS(MPI_Isend(&sent[i], 1, MPI_INT, peer(), i, MPI_COMM_WORLD, &requests[MESSAGE_COUNT + i]));
}

static void check_many(const int *got, const MPI_Request *requests)
{
    for (int i = 0; i < MESSAGE_COUNT; i++)
        CHECK(got[i] == peer() * MESSAGE_COUNT + i);
    for (int i = 0; i < 2 * MESSAGE_COUNT; i++)
        CHECK(requests[i] == MPI_REQUEST_NULL);
}

/* All ways to wait for several requests, and to test them. */
static void completion(void)
{
    static int sent[MESSAGE_COUNT], got[MESSAGE_COUNT], indices[2 * MESSAGE_COUNT];
    static MPI_Request requests[2 * MESSAGE_COUNT];
    static MPI_Status statuses[2 * MESSAGE_COUNT];
    int flag = 0, index = -1, count = 0;

    begin_many(sent, got, requests);
    SUCCEEDS(MPI_Waitall(2 * MESSAGE_COUNT, requests, statuses));
    check_many(got, requests);
    for (int i = 0; i < MESSAGE_COUNT; i++)
        CHECK(statuses[i].MPI_SOURCE == peer() && statuses[i].MPI_TAG == i);

    begin_many(sent, got, requests);
    for (int i = 0; i < 2 * MESSAGE_COUNT; i++) {
        MPI_Status status;
        SUCCEEDS(MPI_Waitany(2 * MESSAGE_COUNT, requests, &index, &status));
        CHECK(index >= 0 && index < 2 * MESSAGE_COUNT && requests[index] == MPI_REQUEST_NULL);
        CHECK(index >= MESSAGE_COUNT || status.MPI_TAG == index);
    }
    check_many(got, requests);
    SUCCEEDS(MPI_Waitany(2 * MESSAGE_COUNT, requests, &index, MPI_STATUS_IGNORE));
    CHECK(index == MPI_UNDEFINED);

    begin_many(sent, got, requests);
    for (int left = 2 * MESSAGE_COUNT; left > 0; left -= count) {
        SUCCEEDS(MPI_Waitsome(2 * MESSAGE_COUNT, requests, &count, indices, statuses));
        CHECK(count > 0);
        for (int i = 0; i < count; i++)
            CHECK(indices[i] >= MESSAGE_COUNT || statuses[i].MPI_TAG == indices[i]);
    }
    check_many(got, requests);
    SUCCEEDS(MPI_Waitsome(2 * MESSAGE_COUNT, requests, &count, indices, statuses));
    CHECK(count == MPI_UNDEFINED);

    begin_many(sent, got, requests);
    for (flag = 0; !flag;)
        SUCCEEDS(MPI_Testall(2 * MESSAGE_COUNT, requests, &flag, MPI_STATUSES_IGNORE));
    check_many(got, requests);

    begin_many(sent, got, requests);
    for (int left = 2 * MESSAGE_COUNT; left > 0; left -= count) {
        SUCCEEDS(MPI_Testsome(2 * MESSAGE_COUNT, requests, &count, indices, MPI_STATUSES_IGNORE));
        CHECK(count >= 0);
    }
    check_many(got, requests);

    begin_many(sent, got, requests);
    for (int left = 2 * MESSAGE_COUNT; left > 0;) {
        SUCCEEDS(MPI_Testany(2 * MESSAGE_COUNT, requests, &index, &flag, MPI_STATUS_IGNORE));
        left -= flag != 0;
    }
    check_many(got, requests);
    SUCCEEDS(MPI_Testany(2 * MESSAGE_COUNT, requests, &index, &flag, MPI_STATUS_IGNORE));
    CHECK(flag && index == MPI_UNDEFINED);

    begin_many(sent, got, requests);
    for (int i = 0; i < 2 * MESSAGE_COUNT; i++) {
        MPI_Status status;
        for (flag = 0; !flag;)
            SUCCEEDS(MPI_Request_get_status(requests[i], &flag, &status));
        CHECK(requests[i] != MPI_REQUEST_NULL);
        CHECK(i >= MESSAGE_COUNT || status.MPI_TAG == i);
        for (flag = 0; !flag;)
            SUCCEEDS(MPI_Test(&requests[i], &flag, &status));
    }
    check_many(got, requests);
}

/* Persistent requests are started repeatedly. */
static void persistent(void)
{
    int sent = 0, got = -1, flag = 0;
    MPI_Request requests[2];
    SUCCEEDS(MPI_Recv_init(&got, 1, MPI_INT, peer(), 5, MPI_COMM_WORLD, &requests[0]));
    SUCCEEDS(MPI_Send_init(&sent, 1, MPI_INT, peer(), 5, MPI_COMM_WORLD, &requests[1]));
    /* An inactive request counts as complete. */
    SUCCEEDS(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    SUCCEEDS(MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE));
    CHECK(flag && requests[0] != MPI_REQUEST_NULL);
    for (int i = 0; i < 50; i++) {
        sent = i * 10 + me;
        SUCCEEDS(MPI_Startall(2, requests));
        FAILS(MPI_ERR_REQUEST, MPI_Start(&requests[0]));
        if (i % 2) {
            SUCCEEDS(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        } else {
            int index;
            SUCCEEDS(MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE));
            SUCCEEDS(MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE));
            SUCCEEDS(MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE));
            CHECK(index == MPI_UNDEFINED);
        }
        CHECK(got == i * 10 + peer() && requests[0] != MPI_REQUEST_NULL);
    }
    SUCCEEDS(MPI_Request_free(&requests[0]));
    SUCCEEDS(MPI_Request_free(&requests[1]));
    CHECK(requests[0] == MPI_REQUEST_NULL);
}

/* Probes see a message, and matched probes take it. */
static void probes(void)
{
    MPI_Status status;
    MPI_Message message;
    int flag, count, got[3] = {0};
    if (me == 0) {
        int values[3] = {7, 8, 9};
        for (int tag = 1; tag <= 4; tag++)
            SUCCEEDS(MPI_Send(values, 3, MPI_INT, 1, tag, MPI_COMM_WORLD));
        return;
    }
    SUCCEEDS(MPI_Probe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
    CHECK(status.MPI_TAG == 1);
    SUCCEEDS(MPI_Get_count(&status, MPI_INT, &count));
    CHECK(count == 3);
    SUCCEEDS(MPI_Mprobe(0, 1, MPI_COMM_WORLD, &message, &status));
    SUCCEEDS(MPI_Mrecv(got, 3, MPI_INT, &message, &status));
    CHECK(message == MPI_MESSAGE_NULL && got[2] == 9 && status.MPI_TAG == 1);
    for (flag = 0; !flag;)
        SUCCEEDS(MPI_Improbe(0, 3, MPI_COMM_WORLD, &flag, &message, &status));
    MPI_Request request;
    SUCCEEDS(MPI_Imrecv(got, 3, MPI_INT, &message, &request));
    SUCCEEDS(MPI_Wait(&request, &status));
    CHECK(status.MPI_TAG == 3);
    for (flag = 0; !flag;)
        SUCCEEDS(MPI_Iprobe(MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_Recv(got, 3, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_Recv(got, 3, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &message, &status));
    CHECK(message == MPI_MESSAGE_NO_PROC);
    SUCCEEDS(MPI_Mrecv(got, 3, MPI_INT, &message, &status));
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
    FAILS(MPI_ERR_REQUEST, MPI_Mrecv(got, 3, MPI_INT, &message, &status));
}

/* Exchanges, in place or not, blocking or not. */
static void exchanges(void)
{
    int sent = me, got = -1;
    MPI_Status status;
    MPI_Request request;
    SUCCEEDS(MPI_Sendrecv(&sent, 1, MPI_INT, peer(), 1, &got, 1, MPI_INT, peer(), 1, MPI_COMM_WORLD, &status));
    CHECK(got == peer() && status.MPI_SOURCE == peer());
    SUCCEEDS(MPI_Sendrecv_replace(&sent, 1, MPI_INT, peer(), 2, peer(), 2, MPI_COMM_WORLD, &status));
    CHECK(sent == peer());
    SUCCEEDS(MPI_Isendrecv(&me, 1, MPI_INT, peer(), 3, &got, 1, MPI_INT, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &request));
    SUCCEEDS(MPI_Wait(&request, &status));
    CHECK(got == peer() && status.MPI_SOURCE == peer() && status.MPI_TAG == 3);
    static int many[1 << 16];
    for (int i = 0; i < 1 << 16; i++)
        many[i] = me + i;
    SUCCEEDS(MPI_Isendrecv_replace(many, 1 << 16, MPI_INT, peer(), 4, peer(), 4, MPI_COMM_WORLD, &request));
    SUCCEEDS(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int i = 0; i < 1 << 16; i++)
        CHECK(many[i] == peer() + i);
    SUCCEEDS(MPI_Sendrecv(&sent, 1, MPI_INT, MPI_PROC_NULL, 1, &got, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status));
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
}

static int queried, freed, cancelled;

static int query(void *extra, MPI_Status *status)
{
    CHECK(extra == &queried);
    queried++;
    MPI_Status_set_elements(status, MPI_INT, 5);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = 3;
    status->MPI_TAG = 4;
    return MPI_SUCCESS;
}

static int release(void *extra)
{
    CHECK(extra == &queried);
    freed++;
    return MPI_SUCCESS;
}

static int give_up(void *extra, int complete)
{
    CHECK(extra == &queried && !complete);
    cancelled++;
    return MPI_SUCCESS;
}

static void *complete_it(void *request)
{
    SUCCEEDS(MPI_Grequest_complete(*(MPI_Request *)request));
    return NULL;
}

/* Generalized requests, completed by another thread while one waits. */
static void generalized(void)
{
    MPI_Request request, copy;
    MPI_Status status;
    int flag = 1;
    SUCCEEDS(MPI_Grequest_start(query, release, give_up, &queried, &request));
    SUCCEEDS(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
    SUCCEEDS(MPI_Cancel(&request));
    CHECK(cancelled == 1);
    copy = request;
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, complete_it, &copy) == 0);
    SUCCEEDS(MPI_Wait(&request, &status));
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(request == MPI_REQUEST_NULL && queried == 1 && freed == 1 && status.MPI_SOURCE == 3 && status.MPI_TAG == 4);
    int count = -1;
    SUCCEEDS(MPI_Get_count(&status, MPI_INT, &count));
    CHECK(count == 5);
    FAILS(MPI_ERR_REQUEST, MPI_Grequest_complete(copy));
}

/* A receive that has not matched can be cancelled; one that is freed still gets its message. */
static void given_up(void)
{
    int got = -1, flag = 0;
    MPI_Request request;
    MPI_Status status;
    SUCCEEDS(MPI_Irecv(&got, 1, MPI_INT, peer(), 77, MPI_COMM_WORLD, &request));
    SUCCEEDS(MPI_Cancel(&request));
    SUCCEEDS(MPI_Wait(&request, &status));
    SUCCEEDS(MPI_Test_cancelled(&status, &flag));
    CHECK(flag);
    SUCCEEDS(MPI_Isend(&me, 1, MPI_INT, peer(), 78, MPI_COMM_WORLD, &request));
    SUCCEEDS(MPI_Request_free(&request));
    SUCCEEDS(MPI_Recv(&got, 1, MPI_INT, peer(), 78, MPI_COMM_WORLD, &status));
    CHECK(got == peer());
    SUCCEEDS(MPI_Test_cancelled(&status, &flag));
    CHECK(!flag);
    /* MPI_Request_get_status reports that a send was cancelled. */
    SUCCEEDS(MPI_Issend(NULL, 0, MPI_BYTE, me, 81, MPI_COMM_WORLD, &request));
    SUCCEEDS(MPI_Probe(me, 81, MPI_COMM_WORLD, &status));
    SUCCEEDS(MPI_Cancel(&request));
    SUCCEEDS(MPI_Request_get_status(request, &flag, &status));
    CHECK(flag);
    SUCCEEDS(MPI_Test_cancelled(&status, &flag));
    CHECK(flag);
    SUCCEEDS(MPI_Request_free(&request));
    /* A complete request stays complete. */
    static char buffer[sizeof(int) + MPI_BSEND_OVERHEAD];
    SUCCEEDS(MPI_Buffer_attach(buffer, sizeof buffer));
    SUCCEEDS(MPI_Ibsend(&me, 1, MPI_INT, peer(), 79, MPI_COMM_WORLD, &request));
    SUCCEEDS(MPI_Cancel(&request));
    SUCCEEDS(MPI_Wait(&request, &status));
    SUCCEEDS(MPI_Test_cancelled(&status, &flag));
    CHECK(!flag);
    SUCCEEDS(MPI_Recv(&got, 1, MPI_INT, peer(), 79, MPI_COMM_WORLD, &status));
    CHECK(got == peer());
    void *detached;
    SUCCEEDS(MPI_Buffer_detach(&detached, &got));
    SUCCEEDS(MPI_Recv_init(&got, 1, MPI_INT, me, 80, MPI_COMM_WORLD, &request));
    SUCCEEDS(MPI_Start(&request));
    SUCCEEDS(MPI_Send(&me, 1, MPI_INT, me, 80, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Request_get_status(request, &flag, &status));
    CHECK(flag);
    SUCCEEDS(MPI_Cancel(&request));
    SUCCEEDS(MPI_Wait(&request, &status));
    SUCCEEDS(MPI_Test_cancelled(&status, &flag));
    CHECK(!flag && got == me);
    SUCCEEDS(MPI_Request_free(&request));
}

/* Invalid arguments have the standard's error classes, and nothing is sent. */
static void mistakes(void)
{
    int value = 0, flag = 0;
    MPI_Request request = MPI_REQUEST_NULL, made_up = (MPI_Request)0x123456;
    MPI_Status status;
    FAILS(MPI_ERR_RANK, MPI_Send(&value, 1, MPI_INT, size, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_RANK, MPI_Send(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_RANK, MPI_Irecv(&value, 1, MPI_INT, -7, 0, MPI_COMM_WORLD, &request));
    FAILS(MPI_ERR_TAG, MPI_Send(&value, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD));
    FAILS(MPI_ERR_TAG, MPI_Recv(&value, 1, MPI_INT, 0, -5, MPI_COMM_WORLD, &status));
    FAILS(MPI_ERR_COUNT, MPI_Send(&value, -1, MPI_INT, 0, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_TYPE, MPI_Send(&value, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Send(NULL, 0, MPI_DATATYPE_NULL, me, 7, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Recv(NULL, 0, MPI_DATATYPE_NULL, me, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_TYPE, MPI_Send(&value, 1, (MPI_Datatype)0x7777777, 0, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_COMM, MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_NULL));
    FAILS(MPI_ERR_COMM, MPI_Send(&value, 1, MPI_INT, 0, 0, (MPI_Comm)0x8123456));
    FAILS(MPI_ERR_BUFFER, MPI_Send(NULL, 1, MPI_INT, 0, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_REQUEST, MPI_Wait(&made_up, &status));
    FAILS(MPI_ERR_REQUEST, MPI_Test(&made_up, &flag, &status));
    FAILS(MPI_ERR_REQUEST, MPI_Start(&request));
    FAILS(MPI_ERR_COUNT, MPI_Waitall(-1, &request, &status));
    FAILS(MPI_ERR_ARG, MPI_Test(&request, NULL, &status));
    SUCCEEDS(MPI_Irecv(&value, 1, MPI_INT, me, 6, MPI_COMM_WORLD, &request));
    made_up = request;
    SUCCEEDS(MPI_Send(&flag, 1, MPI_INT, me, 6, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Wait(&request, &status));
    FAILS(MPI_ERR_REQUEST, MPI_Wait(&made_up, &status));
    /* The message is longer than the buffer: the front is kept. */
    int two[2] = {1, 2}, one = 0;
    SUCCEEDS(MPI_Isend(two, 2, MPI_INT, me, 6, MPI_COMM_WORLD, &request));
    FAILS(MPI_ERR_TRUNCATE, MPI_Recv(&one, 1, MPI_INT, me, 6, MPI_COMM_WORLD, &status));
    CHECK(one == 1);
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    SUCCEEDS(MPI_Error_string(MPI_ERR_TRUNCATE, text, &length));
    CHECK(strstr(text, "MPI_Recv") != NULL && length == (int)strlen(text));
    SUCCEEDS(MPI_Wait(&request, &status));
    /* Each status has its own error. */
    MPI_Request both[2];
    MPI_Status statuses[2];
    SUCCEEDS(MPI_Irecv(&one, 1, MPI_INT, me, 7, MPI_COMM_WORLD, &both[0]));
    SUCCEEDS(MPI_Isend(two, 2, MPI_INT, me, 7, MPI_COMM_WORLD, &both[1]));
    FAILS(MPI_ERR_IN_STATUS, MPI_Waitall(2, both, statuses));
    CHECK(statuses[0].MPI_ERROR == MPI_ERR_TRUNCATE && statuses[1].MPI_ERROR == MPI_SUCCESS);
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"modes", modes},           {"completion", completion},   {"persistent", persistent},
        {"probes", probes},         {"exchanges", exchanges},     {"generalized", generalized},
        {"given_up", given_up},     {"mistakes", mistakes},       {NULL, NULL},
    };
    return play(argc, argv, scenarios);
}
