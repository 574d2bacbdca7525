/*
 * Invalid arguments of collectives, which must be detected before anything is sent; and a member that dies during
 * collectives.
 */
#include "mpi_check.h"

#include <signal.h>

static void arguments(void)
{
    int in[16] = {0}, out[16], counts[8] = {1, 1, 1, 1, 1, 1, 1, 1}, places[8] = {0}, wrong[8] = {-1, 1, 1, 1, 1, 1, 1, 1};
    int own_places[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    MPI_Comm all = MPI_COMM_WORLD;
    MPI_Datatype raw;
    MPI_Request request = MPI_REQUEST_NULL;
    SUCCEEDS(MPI_Type_contiguous(2, MPI_INT, &raw));
    FAILS(MPI_ERR_ROOT, MPI_Bcast(in, 1, MPI_INT, size, all));
    FAILS(MPI_ERR_ROOT, MPI_Bcast(in, 1, MPI_INT, -1, all));
    FAILS(MPI_ERR_ROOT, MPI_Reduce(in, out, 1, MPI_INT, MPI_SUM, MPI_PROC_NULL, all));
    FAILS(MPI_ERR_ROOT, MPI_Gather(in, 1, MPI_INT, out, 1, MPI_INT, size, all));
    FAILS(MPI_ERR_ROOT, MPI_Scatter(in, 1, MPI_INT, out, 1, MPI_INT, MPI_ROOT, all));
    FAILS(MPI_ERR_COUNT, MPI_Bcast(in, -1, MPI_INT, 0, all));
    FAILS(MPI_ERR_COUNT, MPI_Allreduce(in, out, -1, MPI_INT, MPI_SUM, all));
    FAILS(MPI_ERR_COUNT, MPI_Allgatherv(in, 1, MPI_INT, out, wrong, places, MPI_INT, all));
    FAILS(MPI_ERR_COUNT, MPI_Reduce_scatter(in, out, wrong, MPI_INT, MPI_SUM, all));
    FAILS(MPI_ERR_COUNT, MPI_Reduce_scatter_block(in, out, -4, MPI_INT, MPI_SUM, all));
    FAILS(MPI_ERR_TYPE, MPI_Bcast(in, 1, MPI_DATATYPE_NULL, 0, all));
    FAILS(MPI_ERR_TYPE, MPI_Bcast(in, 1, raw, 0, all));
    FAILS(MPI_ERR_TYPE, MPI_Alltoall(in, 1, raw, out, 1, raw, all));
    FAILS(MPI_ERR_TYPE, MPI_Scan(in, out, 1, MPI_DATATYPE_NULL, MPI_SUM, all));
    FAILS(MPI_ERR_OP, MPI_Allreduce(in, out, 1, MPI_INT, MPI_OP_NULL, all));
    FAILS(MPI_ERR_OP, MPI_Allreduce(in, out, 1, MPI_DOUBLE, MPI_BAND, all));
    FAILS(MPI_ERR_OP, MPI_Reduce(in, out, 1, MPI_INT, MPI_REPLACE, 0, all));
    FAILS(MPI_ERR_OP, MPI_Exscan(in, out, 1, MPI_INT, MPI_MAXLOC, all));
    FAILS(MPI_ERR_COMM, MPI_Barrier(MPI_COMM_NULL));
    FAILS(MPI_ERR_COMM, MPI_Ibarrier((MPI_Comm)0x12345, &request));
    FAILS(MPI_ERR_ARG, MPI_Ibarrier(all, NULL));
    FAILS(MPI_ERR_BUFFER, MPI_Bcast(NULL, 1, MPI_INT, 0, all));
    FAILS(MPI_ERR_BUFFER, MPI_Bcast(MPI_IN_PLACE, 1, MPI_INT, 0, all));
    FAILS(MPI_ERR_BUFFER, MPI_Allreduce(in, in, 1, MPI_INT, MPI_SUM, all));
    FAILS(MPI_ERR_BUFFER, MPI_Allreduce(NULL, out, 1, MPI_INT, MPI_SUM, all));
    FAILS(MPI_ERR_BUFFER, MPI_Allreduce(in, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, all));
    FAILS(MPI_ERR_BUFFER, MPI_Allgather(in, 1, MPI_INT, in, 1, MPI_INT, all));
    /* All members detect this error, so none waits for another. */
    FAILS(MPI_ERR_BUFFER, MPI_Allgather(in + me, 1, MPI_INT, in, 1, MPI_INT, all));
    FAILS(MPI_ERR_BUFFER, MPI_Allgatherv(in + me, 1, MPI_INT, in, counts, own_places, MPI_INT, all));
    FAILS(MPI_ERR_BUFFER, MPI_Exscan(in, in, 1, MPI_INT, MPI_SUM, all));
    FAILS(MPI_ERR_BUFFER, MPI_Scan(in, in, 1, MPI_INT, MPI_SUM, all));
    FAILS(MPI_ERR_BUFFER, MPI_Alltoallv(in, counts, places, MPI_INT, in, counts, places, MPI_INT, all));
    FAILS(MPI_ERR_ARG, MPI_Alltoallv(in, NULL, places, MPI_INT, out, counts, places, MPI_INT, all));
    FAILS(MPI_ERR_ARG, MPI_Reduce_scatter(in, out, NULL, MPI_INT, MPI_SUM, all));
    FAILS(MPI_ERR_TRUNCATE, MPI_Allgather(in, 2, MPI_INT, out, 1, MPI_INT, all));
    FAILS(MPI_ERR_TRUNCATE, MPI_Iallgather(in, 2, MPI_INT, out, 1, MPI_INT, all, &request));
    FAILS(MPI_ERR_OP, MPI_Allreduce_init(in, out, 1, MPI_FLOAT, MPI_LAND, all, MPI_INFO_NULL, &request));
    FAILS(MPI_ERR_ROOT, MPI_Ibcast(in, 1, MPI_INT, size, all, &request));
    CHECK(request == MPI_REQUEST_NULL);
    if (me == size - 1) {
        FAILS(MPI_ERR_BUFFER, MPI_Gather(in + me, 1, MPI_INT, in, 1, MPI_INT, me, all));
        FAILS(MPI_ERR_BUFFER, MPI_Scatter(in, 1, MPI_INT, in + me, 1, MPI_INT, me, all));
    }
    if (size > 1)
        FAILS(MPI_ERR_BUFFER, MPI_Gather(MPI_IN_PLACE, 1, MPI_INT, out, 1, MPI_INT, (me + 1) % size, all));
    /* Nothing has been sent, so later calls work. And an empty message needs no buffer. */
    int sum = -1, one = 1;
    SUCCEEDS(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all));
    CHECK(sum == size);
    SUCCEEDS(MPI_Bcast(NULL, 0, MPI_INT, 0, all));
    SUCCEEDS(MPI_Allreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, all));
    SUCCEEDS(MPI_Alltoall(NULL, 0, MPI_INT, NULL, 0, MPI_INT, all));
    SUCCEEDS(MPI_Gather(NULL, 0, MPI_INT, NULL, 0, MPI_INT, 0, all));
    SUCCEEDS(MPI_Type_free(&raw));
}

/* The last process dies. The others get the error in every collective that needs it. */
static void death(void)
{
    int in[8] = {0}, out[8], counts[8] = {1, 1, 1, 1, 1, 1, 1, 1}, places[8], bytes[8];
    MPI_Datatype types[8];
    MPI_Request request;
    for (int i = 0; i < 8; i++) {
        places[i] = i;
        bytes[i] = 4 * i;
        types[i] = MPI_INT;
    }
    SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
    if (me == size - 1)
        raise(SIGKILL);
    FAILS(MPIX_ERR_PROC_FAILED, MPI_Barrier(MPI_COMM_WORLD));
    FAILS(MPIX_ERR_PROC_FAILED, MPI_Allreduce(in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    FAILS(MPIX_ERR_PROC_FAILED, MPI_Allgather(in, 1, MPI_INT, out, 1, MPI_INT, MPI_COMM_WORLD));
    FAILS(MPIX_ERR_PROC_FAILED, MPI_Bcast(in, 1, MPI_INT, size - 1, MPI_COMM_WORLD));
    FAILS(MPIX_ERR_PROC_FAILED, MPI_Alltoallw(in, counts, bytes, types, out, counts, bytes, types, MPI_COMM_WORLD));
    /* The error is returned by the start or by the wait. */
    int code = MPI_Iallreduce(in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    if (code == MPI_SUCCESS)
        code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    FAILS(MPIX_ERR_PROC_FAILED, code);
    char text[MPI_MAX_ERROR_STRING];
    int length;
    code = MPI_Alltoallv(in, counts, places, MPI_INT, out, counts, places, MPI_INT, MPI_COMM_WORLD);
    FAILS(MPIX_ERR_PROC_FAILED, code);
    SUCCEEDS(MPI_Error_string(code, text, &length));
    char name[32];
    snprintf(name, sizeof name, "%d", size - 1);
    CHECK(strstr(text, name) != NULL);

}

/* A process of the odd side dies: that side has no result, and notifies the even side. */
static void death_on_one_side(void)
{
    MPI_Comm own, inter;
    int in = 1, out = -1, length;
    char text[MPI_MAX_ERROR_STRING], name[32];
    SUCCEEDS(MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &own));
    SUCCEEDS(MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, 1 - me % 2, 9, &inter));
    SUCCEEDS(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    SUCCEEDS(MPI_Barrier(inter));
    if (me == 3)
        raise(SIGKILL);
    int code = MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, inter);
    if (me % 2 == 0) {
        FAILS(MPIX_ERR_PROC_FAILED, code);
        SUCCEEDS(MPI_Error_string(code, text, &length));
        snprintf(name, sizeof name, "task %d", 3);
        CHECK(strstr(text, name) != NULL);
    }

}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"arguments", arguments},
        {"death", death},
        {"death_on_one_side", death_on_one_side},
        {NULL, NULL},
    };
    return play(argc, argv, scenarios);
}
