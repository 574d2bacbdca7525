/* Going on after processes have failed, with calls beyond the standard. The last process kills itself. */
#include "mpi_check.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

static void shrink(void)
{
    MPI_Comm comm, rest;
    MPI_Group failed;
    int count, got, acknowledged = -1;
    SUCCEEDS(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    if (me == size - 1)
        raise(SIGKILL);
    CHECK(class_of(MPI_Recv(&got, 1, MPI_INT, size - 1, 0, comm, MPI_STATUS_IGNORE)) == MPIX_ERR_PROC_FAILED);
    do {
        /* The launcher may notice it a moment later. */
        SUCCEEDS(MPIX_Comm_get_failed(comm, &failed));
        SUCCEEDS(MPI_Group_size(failed, &count));
        SUCCEEDS(MPI_Group_free(&failed));
    } while (count == 0);
    CHECK(count == 1);
    SUCCEEDS(MPIX_Comm_ack_failed(comm, 0, &acknowledged));
    CHECK(acknowledged == 0);
    SUCCEEDS(MPIX_Comm_ack_failed(comm, size, &acknowledged));
    CHECK(acknowledged == 1);
    SUCCEEDS(MPIX_Comm_failure_ack(comm));
    SUCCEEDS(MPIX_Comm_failure_get_acked(comm, &failed));
    SUCCEEDS(MPI_Group_size(failed, &count));
    CHECK(count == 1);
    SUCCEEDS(MPI_Group_free(&failed));
    SUCCEEDS(MPIX_Comm_shrink(comm, &rest));
    SUCCEEDS(MPI_Comm_size(rest, &count));
    CHECK(count == size - 1);
    int next = (me + 1) % count;
    MPI_Request request;
    SUCCEEDS(MPI_Isend(&me, 1, MPI_INT, next, 0, rest, &request));
    SUCCEEDS(MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 0, rest, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(got == (me + count - 1) % count);
    SUCCEEDS(MPI_Comm_free(&rest));
    SUCCEEDS(MPI_Comm_free(&comm));
}

/* One process aborts the job; the others wait for a message that never arrives. */
static void abort_with(int code)
{
    int got;
    if (me == size - 1)
        MPI_Abort(MPI_COMM_WORLD, code);
    MPI_Recv(&got, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void abort_job(void)
{
    abort_with(7);
}

static void abort_well(void)
{
    abort_with(0);
}

/* An error without a handler ends the job. */
static void fatal(void)
{
    int got;
    SUCCEEDS(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    if (me == 0)
        MPI_Send(&me, 1, MPI_INT, size, 0, MPI_COMM_WORLD);
    MPI_Recv(&got, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* A communicator is made from a group with a failed process: all living processes get the error, and none hangs. */
static void from_group(void)
{
    MPI_Group all;
    MPI_Comm made = MPI_COMM_NULL;
    int got;
    SUCCEEDS(MPI_Comm_group(MPI_COMM_WORLD, &all));
    if (me == size - 1)
        raise(SIGKILL);
    CHECK(class_of(MPI_Recv(&got, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)) == MPIX_ERR_PROC_FAILED);
    int code = MPI_Comm_create_from_group(all, "some", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made);
    CHECK(class_of(code) == MPIX_ERR_PROC_FAILED && made == MPI_COMM_NULL);
    SUCCEEDS(MPI_Group_free(&all));
}

static volatile int replaced;
static MPI_Comm handled;

static void count_error(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    (void)code;
}

static void *replace_handlers(void *none)
{
    while (!replaced) {
        MPI_Errhandler handler;
        MPI_Comm_create_errhandler(count_error, &handler);
        MPI_Comm_set_errhandler(handled, handler);
        MPI_Errhandler_free(&handler);
    }
    return none;
}

/*
 * One thread replaces the error handler while another thread causes errors: each error is handled by a handler that
 * returns.
 */
static void replacing(void)
{
    pthread_t other;
    SUCCEEDS(MPI_Comm_dup(MPI_COMM_SELF, &handled));
    SUCCEEDS(MPI_Comm_set_errhandler(handled, MPI_ERRORS_RETURN));
    CHECK(pthread_create(&other, NULL, replace_handlers, NULL) == 0);
    for (int i = 0; i < 20000; i++)
        CHECK(class_of(MPI_Send(&me, 1, MPI_INT, 99, 0, handled)) == MPI_ERR_RANK);
    replaced = 1;
    pthread_join(other, NULL);
    SUCCEEDS(MPI_Comm_free(&handled));
}

/* Receives that are cancelled and freed leave nothing behind. */
static void freed(void)
{
    int got;
    struct rusage before, after;
    for (int i = 0; i < 200000; i++) {
        MPI_Request request;
        SUCCEEDS(MPI_Irecv(&got, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request));
        SUCCEEDS(MPI_Cancel(&request));
        SUCCEEDS(MPI_Request_free(&request));
        if (i == 20000)
            getrusage(RUSAGE_SELF, &before);
    }
    getrusage(RUSAGE_SELF, &after);
    CHECK(after.ru_maxrss < before.ru_maxrss + 8192);
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"shrink", shrink}, {"abort", abort_job}, {"abort-well", abort_well}, {"fatal", fatal}, {"from-group", from_group}, {"replacing", replacing},
        {"freed", freed},   {NULL, NULL},
    };
    return play(argc, argv, scenarios);
}
