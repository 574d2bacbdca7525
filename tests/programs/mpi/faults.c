/* Going on after processes have failed: calls beyond the standard. The last process ends itself. */
#include "mpi_check.h"

#include <signal.h>

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
        /* The launcher may hear of it a moment later. */
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

/* One process ends the job; the others wait for a message that never comes. */
static void abort_job(void)
{
    int got;
    if (me == size - 1)
        MPI_Abort(MPI_COMM_WORLD, 7);
    MPI_Recv(&got, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* An error that nobody handles ends the job. */
static void fatal(void)
{
    int got;
    SUCCEEDS(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    if (me == 0)
        MPI_Send(&me, 1, MPI_INT, size, 0, MPI_COMM_WORLD);
    MPI_Recv(&got, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"shrink", shrink}, {"abort", abort_job}, {"fatal", fatal}, {NULL, NULL},
    };
    return play(argc, argv, scenarios);
}
