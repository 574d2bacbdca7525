/*
 * Names of every mpi.h that the standard ABI does not have: conversions of handles and statuses between C and Fortran,
 * and what MPI has removed since its first version. A name in parentheses is the library's function, not a macro.
 */
#include "mpi_check.h"

#define CONVERTS(kind, handle)                                                                 \
    do {                                                                                       \
        MPI_Fint number_ = MPI_##kind##_c2f(handle);                                           \
        CHECK(MPI_##kind##_f2c(number_) == (handle));                                          \
        CHECK((MPI_##kind##_f2c)((MPI_##kind##_c2f)(handle)) == (handle));                     \
        CHECK(PMPI_##kind##_f2c(PMPI_##kind##_c2f(handle)) == (handle));                       \
        CHECK((PMPI_##kind##_f2c)((PMPI_##kind##_c2f)(handle)) == (handle));                   \
    } while (0)

/* Every handle can be converted to a number and back. */
static void handles(void)
{
    MPI_Comm comm;
    MPI_Group group;
    MPI_Datatype type;
    MPI_Info info;
    MPI_Request request;
    MPI_Win win;
    int value = 0;
    SUCCEEDS(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    SUCCEEDS(MPI_Comm_group(comm, &group));
    SUCCEEDS(MPI_Type_contiguous(2, MPI_INT, &type));
    SUCCEEDS(MPI_Info_create(&info));
    SUCCEEDS(MPI_Recv_init(&value, 1, MPI_INT, 0, 0, comm, &request));
    SUCCEEDS(MPI_Win_create(&value, sizeof value, 1, MPI_INFO_NULL, comm, &win));
    CONVERTS(Comm, MPI_COMM_WORLD);
    CONVERTS(Comm, MPI_COMM_NULL);
    CONVERTS(Comm, comm);
    CONVERTS(Group, group);
    CONVERTS(Type, type);
    CONVERTS(Type, MPI_DOUBLE);
    CONVERTS(Info, info);
    CONVERTS(Request, request);
    CONVERTS(Win, win);
    CONVERTS(Op, MPI_SUM);
    CONVERTS(Errhandler, MPI_ERRORS_RETURN);
    CONVERTS(File, MPI_FILE_NULL);
    CONVERTS(Message, MPI_MESSAGE_NO_PROC);
    CONVERTS(Session, MPI_SESSION_NULL);
    SUCCEEDS(MPI_Win_free(&win));
    SUCCEEDS(MPI_Request_free(&request));
    SUCCEEDS(MPI_Info_free(&info));
    SUCCEEDS(MPI_Type_free(&type));
    SUCCEEDS(MPI_Group_free(&group));
    SUCCEEDS(MPI_Comm_free(&comm));
}

/* A status is the same in all its forms. */
static void statuses(void)
{
    MPI_Status status, back;
    MPI_Fint fortran[MPI_F_STATUS_SIZE];
    MPI_F08_status derived;
    int value = 7, got = 0, count = 0;
    SUCCEEDS(MPI_Sendrecv(&value, 1, MPI_INT, 0, 5, &got, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &status));
    SUCCEEDS(MPI_Status_c2f(&status, fortran));
    SUCCEEDS(MPI_Status_f2f08(fortran, &derived));
    memset(fortran, -1, sizeof fortran);
    SUCCEEDS(MPI_Status_f082f(&derived, fortran));
    SUCCEEDS(MPI_Status_f2c(fortran, &back));
    SUCCEEDS(MPI_Status_c2f08(&back, &derived));
    memset(&back, -1, sizeof back);
    SUCCEEDS(MPI_Status_f082c(&derived, &back));
    SUCCEEDS(MPI_Get_count(&back, MPI_INT, &count));
    CHECK(back.MPI_SOURCE == 0 && back.MPI_TAG == 5 && count == 1);
    FAILS(MPI_ERR_ARG, MPI_Status_c2f(MPI_STATUS_IGNORE, fortran));
    FAILS(MPI_ERR_ARG, MPI_Status_f2c(fortran, NULL));
    /* These addresses differ from those of all statuses. */
    CHECK((void *)MPI_F_STATUS_IGNORE != (void *)fortran && (void *)MPI_F_STATUSES_IGNORE != (void *)fortran);
    CHECK((void *)MPI_F08_STATUS_IGNORE != (void *)&derived && (void *)MPI_F08_STATUSES_IGNORE != (void *)&derived);
}

static int called;
static void count_call(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    called++;
}

/* Calls of MPI's first version behave like those that have replaced them. */
static void removed(void)
{
    struct {
        double d;
        int i[3];
    } here = {0, {0}};
    MPI_Aint places[2], lower = -1, upper = -1, extent = -1;
    SUCCEEDS(MPI_Address(&here.d, &places[0]));
    SUCCEEDS((MPI_Address)(&here.i, &places[1]));
    places[1] -= places[0];
    places[0] = 0;
    CHECK(places[1] == sizeof(double));
    int lengths[2] = {1, 3}, bytes = 0;
    MPI_Datatype types[2] = {MPI_DOUBLE, MPI_INT}, made;
    SUCCEEDS(MPI_Type_struct(2, lengths, places, types, &made));
    SUCCEEDS(MPI_Type_lb(made, &lower));
    SUCCEEDS(MPI_Type_ub(made, &upper));
    SUCCEEDS(MPI_Type_extent(made, &extent));
    CHECK(lower == 0 && upper == sizeof here && extent == sizeof here);
    SUCCEEDS(MPI_Type_free(&made));
    SUCCEEDS((MPI_Type_struct)(2, lengths, places, types, &made));
    SUCCEEDS(MPI_Type_free(&made));
    MPI_Datatype *none = NULL;
    FAILS(MPI_ERR_ARG, (MPI_Type_struct)(2, lengths, places, types, none));
    for (int whole = 0; whole < 2; whole++) {
        SUCCEEDS(whole ? (MPI_Type_hindexed)(2, lengths, places, MPI_INT, &made) : MPI_Type_hindexed(2, lengths, places, MPI_INT, &made));
        SUCCEEDS(MPI_Type_extent(made, &extent));
        CHECK(extent == sizeof(double) + 3 * sizeof(int));
        SUCCEEDS(MPI_Type_free(&made));
        SUCCEEDS(whole ? (MPI_Type_hvector)(3, 1, 16, MPI_INT, &made) : MPI_Type_hvector(3, 1, 16, MPI_INT, &made));
        SUCCEEDS(MPI_Type_size(made, &bytes));
        SUCCEEDS(MPI_Type_ub(made, &upper));
        CHECK(bytes == 3 * sizeof(int) && upper == 32 + sizeof(int));
        SUCCEEDS(MPI_Type_free(&made));
    }
    MPI_Handler_function *function = count_call;
    MPI_Errhandler handler, before;
    MPI_Comm comm;
    SUCCEEDS(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    for (int whole = 0; whole < 2; whole++) {
        SUCCEEDS(whole ? (MPI_Errhandler_create)(function, &handler) : MPI_Errhandler_create(function, &handler));
        SUCCEEDS(whole ? (MPI_Errhandler_set)(comm, handler) : MPI_Errhandler_set(comm, handler));
        SUCCEEDS(whole ? (MPI_Errhandler_get)(comm, &before) : MPI_Errhandler_get(comm, &before));
        CHECK(before == handler);
        SUCCEEDS(MPI_Errhandler_free(&before));
        SUCCEEDS(MPI_Errhandler_free(&handler));
        MPI_Comm_call_errhandler(comm, MPI_ERR_OTHER);
        CHECK(called == whole + 1);
    }
    SUCCEEDS(MPI_Comm_free(&comm));
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"handles", handles}, {"statuses", statuses}, {"removed", removed}, {NULL, NULL}};
    return play(argc, argv, scenarios);
}
