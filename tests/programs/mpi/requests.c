/* Requests among threads, in sessions, and in a circle of senders. A plain request stands in the place of the engine's, which another
 * thread may have as soon as the request is complete. */
#include "mpi_check.h"

#include <pthread.h>
#include <time.h>

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
        else
            while (!flag)
                SUCCEEDS(MPI_Test(&request, &flag, &status));
        CHECK(got == sent);
    }
    return NULL;
}

/* The threads work for some seconds: a place is taken again by the same one most of the time. */
static void receive_for_a_while(int threads)
{
    for (kind = 0; kind < 3; kind++) {
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

/* Neither receives before its sends are received: both are told, through the handler of their communicator. */
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

/* The bytes of so many elements are no number. */
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

/* The world is not there: a program of sessions only. */
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
    return play(argc, argv, scenarios);
}
