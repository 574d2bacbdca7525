/*
 * Requests with threads, in sessions, and in a circle of senders. The handle of a plain request stands for the engine's
 * request, whose slot another thread may reuse as soon as it is complete.
 */
#define _GNU_SOURCE
#include "mpi_check.h"

#include <pthread.h>
#include <regatta.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 8, MESSAGES = 16, ROUNDS = 3000, SECONDS = 4 };

static MPI_Comm own[THREADS];
static volatile int over;

static void duplicate(MPI_Comm from, int threads)
{
    for (int thread = 0; thread < threads; thread++) {
        SUCCEEDS(MPI_Comm_dup(from, &own[thread]));
        SUCCEEDS(MPI_Comm_set_errhandler(own[thread], MPI_ERRORS_RETURN));
    }
}

static void run(int threads, void *(*work)(void *))
{
    pthread_t running[THREADS];
    for (long thread = 0; thread < threads; thread++)
        CHECK(pthread_create(&running[thread], NULL, work, (void *)thread) == 0);
    for (int thread = 0; thread < threads; thread++)
        CHECK(pthread_join(running[thread], NULL) == 0);
}

static void drop(int threads)
{
    for (int thread = 0; thread < threads; thread++)
        SUCCEEDS(MPI_Comm_free(&own[thread]));
}

/* ---- many requests of two threads ------------------------------------------------------------ */

static enum { ALL, ALL_IGNORED, ANY, SOME } way;

static void complete(MPI_Request *requests, int count)
{
    MPI_Status statuses[2 * MESSAGES];
    int index, many, indices[2 * MESSAGES];
    switch (way) {
    case ALL:
        SUCCEEDS(MPI_Waitall(count, requests, statuses));
        for (int i = 0; i < MESSAGES; i++)
            CHECK(statuses[i].MPI_SOURCE == 1 - me && statuses[i].MPI_TAG == i);
        break;
    case ALL_IGNORED:
        SUCCEEDS(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE));
        break;
    case ANY:
        for (int i = 0; i < count; i++) {
            SUCCEEDS(MPI_Waitany(count, requests, &index, statuses));
            CHECK(index >= MESSAGES || statuses[0].MPI_TAG == index);
        }
        break;
    case SOME:
        for (int i = 0; i < count; i += many)
            SUCCEEDS(MPI_Waitsome(count, requests, &many, indices, statuses));
        break;
    }
    for (int i = 0; i < count; i++)
        CHECK(requests[i] == MPI_REQUEST_NULL);
}

static void *exchange(void *argument)
{
    MPI_Comm comm = own[(long)argument];
    int in[MESSAGES], out[MESSAGES];
    MPI_Request requests[2 * MESSAGES];
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < MESSAGES; i++)
            SUCCEEDS(MPI_Irecv(&in[i], 1, MPI_INT, 1 - me, i, comm, &requests[i]));
        for (int i = 0; i < MESSAGES; i++) {
            out[i] = round * MESSAGES + i;
            SUCCEEDS(MPI_Isend(&out[i], 1, MPI_INT, 1 - me, i, comm, &requests[MESSAGES + i]));
        }
        complete(requests, 2 * MESSAGES);
        for (int i = 0; i < MESSAGES; i++)
            CHECK(in[i] == round * MESSAGES + i);
    }
    return NULL;
}

static void exchanges(void)
{
    for (way = ALL; way <= SOME; way++) {
        duplicate(MPI_COMM_WORLD, 2);
        run(2, exchange);
        drop(2);
    }
}

/* ---- one request of each of many threads ----------------------------------------------------- */

static int kind;

static void *receive(void *argument)
{
    MPI_Comm comm = own[(long)argument];
    for (int sent = 0; !over; sent++) {
        int got = -1, flag = 0;
        MPI_Request request;
        MPI_Status status;
        SUCCEEDS(MPI_Irecv(&got, 1, MPI_INT, 0, 1, comm, &request));
        SUCCEEDS(MPI_Send(&sent, 1, MPI_INT, 0, 1, comm));
        if (kind == 0)
            SUCCEEDS(MPI_Wait(&request, &status));
        else if (kind == 1)
            SUCCEEDS(MPI_Waitall(1, &request, MPI_STATUSES_IGNORE));
        else if (kind == 2) {
            int index = -1;
            SUCCEEDS(MPI_Waitany(1, &request, &index, &status));
            CHECK(index == 0 && request == MPI_REQUEST_NULL && status.MPI_TAG == 1);
        } else
            while (!flag)
                SUCCEEDS(MPI_Test(&request, &flag, &status));
        CHECK(got == sent);
    }
    return NULL;
}

/* The threads run for some seconds. Most of the time a slot is reused by the same thread. */
static void receive_for_a_while(int threads)
{
    for (kind = 0; kind < 4; kind++) {
        pthread_t running[THREADS];
        over = 0;
        for (long thread = 0; thread < threads; thread++)
            CHECK(pthread_create(&running[thread], NULL, receive, (void *)thread) == 0);
        nanosleep(&(struct timespec){SECONDS, 0}, NULL);
        over = 1;
        for (int thread = 0; thread < threads; thread++)
            CHECK(pthread_join(running[thread], NULL) == 0);
    }
}

static void places(void)
{
    duplicate(MPI_COMM_SELF, THREADS);
    receive_for_a_while(THREADS);
    drop(THREADS);
}

/* ---- a multi-stage operation that another thread takes over -------------------------------------- */

static MPI_Request staged[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
static double parts[4];
static volatile int calls;

enum { PARTS = 7, GO, END, ASK, ANSWER };

/* While it waits, this thread advances all multi-stage operations. */
static void *wait_for_the_end(void *unused)
{
    int end;
    MPI_Request request;
    SUCCEEDS(MPI_Irecv(&end, 1, MPI_INT, 1, END, MPI_COMM_WORLD, &request));
    calls++;
    SUCCEEDS(MPI_Wait(&request, MPI_STATUS_IGNORE));
    return unused;
}

static void *wait_for_parts(void *unused)
{
    int index = -1;
    calls++;
    SUCCEEDS(MPI_Waitany(2, staged, &index, MPI_STATUS_IGNORE));
    CHECK(index == 1 && staged[1] != MPI_REQUEST_NULL);
    for (int k = 0; k < 4; k++)
        CHECK(parts[k] == k + 1);
    if (staged[0] != MPI_REQUEST_NULL) {
        SUCCEEDS(MPI_Send(&index, 1, MPI_INT, 1, ASK, MPI_COMM_WORLD));
        SUCCEEDS(MPI_Wait(&staged[0], MPI_STATUS_IGNORE));
    }
    return unused;
}

/*
 * One thread advances the operation while it sleeps in its wait. Another thread waits for the operation and, if `asks`,
 * for a message as well. That message is sent only when the thread asks for it, which it does after it knows that the
 * operation is complete.
 */
static void take_on(int asks)
{
    int number = 0, answer;
    calls = 0;
    if (me == 0) {
        pthread_t end, some;
        if (asks)
            SUCCEEDS(MPI_Irecv(&answer, 1, MPI_INT, 1, ANSWER, MPI_COMM_WORLD, &staged[0]));
        SUCCEEDS(MPI_Precv_init(parts, 4, 1, MPI_DOUBLE, 1, PARTS, MPI_COMM_WORLD, MPI_INFO_NULL, &staged[1]));
        SUCCEEDS(MPI_Start(&staged[1]));
        CHECK(pthread_create(&end, NULL, wait_for_the_end, NULL) == 0);
        while (calls < 1)
            SUCCEEDS(MPI_Iprobe(1, GO, MPI_COMM_WORLD, &number, MPI_STATUS_IGNORE));
        CHECK(pthread_create(&some, NULL, wait_for_parts, NULL) == 0);
        /* Gives both threads time to wait. If it is too short, the test proves nothing. */
        for (int looks = 0; looks < 200000 || calls < 2; looks++)
            SUCCEEDS(MPI_Iprobe(1, GO, MPI_COMM_WORLD, &number, MPI_STATUS_IGNORE));
        SUCCEEDS(MPI_Send(&number, 1, MPI_INT, 1, GO, MPI_COMM_WORLD));
        CHECK(pthread_join(some, NULL) == 0);
        SUCCEEDS(MPI_Send(&number, 1, MPI_INT, 1, END, MPI_COMM_WORLD));
        CHECK(pthread_join(end, NULL) == 0);
    } else {
        for (int k = 0; k < 4; k++)
            parts[k] = k + 1;
        SUCCEEDS(MPI_Recv(&number, 1, MPI_INT, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        SUCCEEDS(MPI_Psend_init(parts, 4, 1, MPI_DOUBLE, 0, PARTS, MPI_COMM_WORLD, MPI_INFO_NULL, &staged[1]));
        SUCCEEDS(MPI_Start(&staged[1]));
        SUCCEEDS(MPI_Pready_range(0, 3, staged[1]));
        SUCCEEDS(MPI_Wait(&staged[1], MPI_STATUS_IGNORE));
        if (asks) {
            SUCCEEDS(MPI_Recv(&number, 1, MPI_INT, 0, ASK, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            SUCCEEDS(MPI_Send(&number, 1, MPI_INT, 0, ANSWER, MPI_COMM_WORLD));
        }
        SUCCEEDS(MPI_Recv(&number, 1, MPI_INT, 0, END, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        SUCCEEDS(MPI_Send(&number, 1, MPI_INT, 0, END, MPI_COMM_WORLD));
    }
    SUCCEEDS(MPI_Request_free(&staged[1]));
}

static void staged_operation(void)
{
    take_on(0);
    take_on(1);
}

/* ---- an operation that one thread waits for while another one tests it -------------------------- */

static MPI_Request awaited = MPI_REQUEST_NULL, given = MPI_REQUEST_NULL;
static volatile pid_t sleeper;
static int in_any, is_freed;

static void *wait_for_awaited(void *status)
{
    int index = 0;
    MPI_Request request = awaited;
    sleeper = gettid();
    int code = in_any ? MPI_Waitany(1, &request, &index, status) : MPI_Wait(&request, status);
    CHECK(index == 0 || is_freed);
    /* A freed request may be forgotten before its result is fetched. */
    CHECK(code == MPI_SUCCESS || (is_freed && class_of(code) == MPI_ERR_REQUEST));
    return NULL;
}

/* Waits until the other thread sleeps. */
static void await_sleep(void)
{
    char path[64], state = 0;
    while (!sleeper)
        sched_yield();
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)sleeper);
    while (state != 'S') {
        FILE *stat = fopen(path, "r");
        CHECK(stat && fscanf(stat, "%*d (%*[^)]) %c", &state) == 1);
        fclose(stat);
        sched_yield();
    }
}

static pthread_t sleep_for(MPI_Request request, MPI_Status *status)
{
    pthread_t thread;
    awaited = request;
    sleeper = 0;
    CHECK(pthread_create(&thread, NULL, wait_for_awaited, status) == 0);
    await_sleep();
    return thread;
}

static int describe(void *extra, MPI_Status *status)
{
    (void)extra;
    return MPI_Status_set_elements(status, MPI_BYTE, 0);
}

static int let_be(void *extra)
{
    (void)extra;
    return MPI_SUCCESS;
}

static int end_early(void *extra, int complete)
{
    CHECK(!complete);
    return MPI_Grequest_complete(*(MPI_Request *)extra);
}

static void cancelled_while_awaited(void)
{
    MPI_Status status;
    int flag = 0, value = 0;
    SUCCEEDS(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    SUCCEEDS(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    for (in_any = 0; in_any < 2; in_any++) {
        is_freed = 0;
        SUCCEEDS(MPI_Grequest_start(describe, let_be, end_early, &given, &given));
        pthread_t thread = sleep_for(given, &status);
        SUCCEEDS(MPI_Cancel(&given));
        CHECK(pthread_join(thread, NULL) == 0);

        SUCCEEDS(MPI_Recv_init(&value, 1, MPI_INT, 0, 9, MPI_COMM_SELF, &given));
        SUCCEEDS(MPI_Start(&given));
        thread = sleep_for(given, &status);
        SUCCEEDS(MPI_Cancel(&given));
        CHECK(pthread_join(thread, NULL) == 0);
        SUCCEEDS(MPI_Test_cancelled(&status, &flag));
        CHECK(flag);

        /* When freed, the operation continues, and so does the thread that waits. */
        is_freed = 1;
        SUCCEEDS(MPI_Start(&given));
        thread = sleep_for(given, &status);
        SUCCEEDS(MPI_Request_free(&given));
        value = 7;
        SUCCEEDS(MPI_Send(&value, 1, MPI_INT, 0, 9, MPI_COMM_SELF));
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK(value == 7);
    }
}

/* The sender marks the second partition as ready when it is told that the first one has arrived. */
static void arrived_while_awaited(void)
{
    int halves[2] = {0, 0}, flag = 0;
    if (me == 0) {
        SUCCEEDS(MPI_Precv_init(halves, 2, 1, MPI_INT, 1, PARTS, MPI_COMM_WORLD, MPI_INFO_NULL, &given));
        for (in_any = 0; in_any < 2; in_any++) {
            SUCCEEDS(MPI_Start(&given));
            pthread_t thread = sleep_for(given, MPI_STATUS_IGNORE);
            for (flag = 0; !flag;)
                SUCCEEDS(MPI_Parrived(given, 0, &flag));
            SUCCEEDS(MPI_Send(NULL, 0, MPI_INT, 1, GO, MPI_COMM_WORLD));
            CHECK(pthread_join(thread, NULL) == 0);
            CHECK(halves[0] == 1 && halves[1] == 2);
        }
    } else {
        halves[0] = 1, halves[1] = 2;
        SUCCEEDS(MPI_Psend_init(halves, 2, 1, MPI_INT, 0, PARTS, MPI_COMM_WORLD, MPI_INFO_NULL, &given));
        for (int round = 0; round < 2; round++) {
            SUCCEEDS(MPI_Start(&given));
            SUCCEEDS(MPI_Pready(0, given));
            SUCCEEDS(MPI_Recv(NULL, 0, MPI_INT, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            SUCCEEDS(MPI_Pready(1, given));
            SUCCEEDS(MPI_Wait(&given, MPI_STATUS_IGNORE));
        }
    }
    SUCCEEDS(MPI_Request_free(&given));
}

/* Channels up to 134217727 belong to the program: the MPI library must not send messages in them. */
static void channels(void)
{
    static const int numbers[] = {0x4d50, 0x4d51, 134217727};
    rg_request received[3];
    int cancelled = 0;
    for (int k = 0; k < 3; k++)
        CHECK(rg_irecv(NULL, 0, RG_ANY, RG_ANY, RG_CHANNEL(numbers[k]), &received[k]) == RG_OK);
    SUCCEEDS(MPI_Grequest_start(describe, let_be, end_early, &given, &given));
    SUCCEEDS(MPI_Grequest_complete(given));
    SUCCEEDS(MPI_Wait(&given, MPI_STATUS_IGNORE));
    for (int k = 0; k < 3; k++) {
        CHECK(rg_cancel(received[k], &cancelled) == RG_OK && cancelled);
        rg_wait(&received[k], NULL);
    }
}

static void *look_around(void *unused)
{
    int flag;
    while (!over)
        SUCCEEDS(MPI_Request_get_status(given, &flag, MPI_STATUS_IGNORE));
    return unused;
}

/*
 * MPI_Testall completes the requests that it reports as complete, even if another thread calls MPI_Request_get_status
 * at the same moment.
 */
static void tested_beside_looks(void)
{
    pthread_t thread;
    int flag = 0, value = 0;
    over = 0;
    SUCCEEDS(MPI_Recv_init(&value, 1, MPI_INT, 0, 9, MPI_COMM_SELF, &given));
    CHECK(pthread_create(&thread, NULL, look_around, NULL) == 0);
    for (int round = 0; round < 100000; round++) {
        SUCCEEDS(MPI_Start(&given));
        SUCCEEDS(MPI_Send(&round, 1, MPI_INT, 0, 9, MPI_COMM_SELF));
        for (flag = 0; !flag;)
            SUCCEEDS(MPI_Testall(1, &given, &flag, MPI_STATUSES_IGNORE));
        CHECK(value == round);
    }
    over = 1;
    CHECK(pthread_join(thread, NULL) == 0);
    SUCCEEDS(MPI_Request_free(&given));
}

/* MPI_Init allows one thread, and a session many. */
static void session_threads(void)
{
    MPI_Session session;
    MPI_Group group;
    SUCCEEDS(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    SUCCEEDS(MPI_Group_from_session_pset(session, "mpi://SELF", &group));
    for (int thread = 0; thread < THREADS; thread++) {
        char name[16];
        snprintf(name, sizeof name, "thread %d", thread);
        SUCCEEDS(MPI_Comm_create_from_group(group, name, MPI_INFO_NULL, MPI_ERRORS_RETURN, &own[thread]));
    }
    receive_for_a_while(THREADS);
    drop(THREADS);
    SUCCEEDS(MPI_Group_free(&group));
    SUCCEEDS(MPI_Session_finalize(&session));
}

/* ---- without threads ------------------------------------------------------------------------- */

/*
 * Neither process receives before its sends are complete: both get an error, through the handler of their communicator.
 */
static void circle(void)
{
    enum { LENGTH = 1 << 22 };
    char *bytes = calloc(LENGTH, 1);
    CHECK(bytes != NULL);
    MPI_Request requests[2];
    duplicate(MPI_COMM_WORLD, 1);
    SUCCEEDS(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    SUCCEEDS(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
    for (int i = 0; i < 2; i++)
        SUCCEEDS(MPI_Issend(bytes, LENGTH, MPI_BYTE, 1 - me, i, own[0], &requests[i]));
    CHECK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE) != MPI_SUCCESS);
    for (int i = 0; i < 2; i++)
        SUCCEEDS(MPI_Recv(bytes, LENGTH, MPI_BYTE, 1 - me, i, own[0], MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    drop(1);
    free(bytes);
}

/* The size of this many elements in bytes overflows. */
static void lengths(void)
{
    double number = 1.5;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Count many = ((MPI_Count)1 << 61) + 1;
    FAILS(MPI_ERR_COUNT, MPI_Send_c(&number, many, MPI_DOUBLE, me, 1, MPI_COMM_SELF));
    FAILS(MPI_ERR_COUNT, MPI_Isend_c(&number, many, MPI_DOUBLE, 0, 1, MPI_COMM_SELF, &request));
    FAILS(MPI_ERR_COUNT, MPI_Irecv_c(&number, many, MPI_DOUBLE, 0, 1, MPI_COMM_SELF, &request));
    CHECK(request == MPI_REQUEST_NULL);
}

/* A program with sessions only, without MPI_COMM_WORLD. */
static int session_alone(void)
{
    MPI_Session session;
    MPI_Group group;
    MPI_Request request;
    MPI_Status status;
    int value, flag = 0;
    SUCCEEDS(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    SUCCEEDS(MPI_Group_from_session_pset(session, "mpi://SELF", &group));
    SUCCEEDS(MPI_Comm_create_from_group(group, "alone", MPI_INFO_NULL, MPI_ERRORS_RETURN, &own[0]));
    SUCCEEDS(MPI_Irecv(&value, 1, MPI_INT, MPI_PROC_NULL, 3, own[0], &request));
    SUCCEEDS(MPI_Request_get_status(request, &flag, &status));
    CHECK(flag && status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
    SUCCEEDS(MPI_Wait(&request, &status));
    drop(1);
    SUCCEEDS(MPI_Group_free(&group));
    SUCCEEDS(MPI_Session_finalize(&session));
    return 0;
}

static int play_threads(int argc, char **argv, scenario_function work)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    work();
    SUCCEEDS(MPI_Finalize());
    return 0;
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"session_threads", session_threads},
        {"circle", circle},
        {"lengths", lengths},
        {NULL, NULL},
    };
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "session_alone") == 0)
        return session_alone();
    if (strcmp(name, "exchanges") == 0)
        return play_threads(argc, argv, exchanges);
    if (strcmp(name, "places") == 0)
        return play_threads(argc, argv, places);
    if (strcmp(name, "staged_operation") == 0)
        return play_threads(argc, argv, staged_operation);
    if (strcmp(name, "cancelled_while_awaited") == 0)
        return play_threads(argc, argv, cancelled_while_awaited);
    if (strcmp(name, "arrived_while_awaited") == 0)
        return play_threads(argc, argv, arrived_while_awaited);
    if (strcmp(name, "channels") == 0)
        return play_threads(argc, argv, channels);
    if (strcmp(name, "tested_beside_looks") == 0)
        return play_threads(argc, argv, tested_beside_looks);
    return play(argc, argv, scenarios);
}
