/* Sessions, with and without MPI_Init. */
#include "mpi_check.h"

#include <unistd.h>

static int handled, expected;

static void handle(MPI_Session *session, int *code, ...)
{
    handled = *session != MPI_SESSION_NULL ? *code : -1;
}

static int unmade, unmade_code;

static void handle_unmade(MPI_Comm *comm, int *code, ...)
{
    unmade += *comm == MPI_COMM_NULL;
    unmade_code = *code;
}

/* Errors of calls that make an object go to the error handler given for that object. */
static void refused(MPI_Group group)
{
    MPI_Session session = MPI_SESSION_NULL;
    MPI_Comm comm;
    MPI_Info info;
    MPI_Errhandler handler;
    SUCCEEDS(MPI_Info_create(&info));
    SUCCEEDS(MPI_Info_set(info, "thread_level", "MPI_THREAD_PLENTY"));
    CHECK(class_of(MPI_Session_init(info, MPI_ERRORS_RETURN, &session)) == MPI_ERR_INFO_VALUE);
    CHECK(session == MPI_SESSION_NULL);
    SUCCEEDS(MPI_Info_free(&info));
    SUCCEEDS(MPI_Comm_create_errhandler(handle_unmade, &handler));
    MPI_Comm_create_from_group(MPI_GROUP_NULL, "no", MPI_INFO_NULL, handler, &comm);
    CHECK(unmade == 1 && unmade_code == MPI_ERR_GROUP);
    MPI_Intercomm_create_from_groups(group, -1, group, 0, "no", MPI_INFO_NULL, handler, &comm);
    CHECK(unmade == 2 && unmade_code == MPI_ERR_RANK);
    unmade = 0;
    SUCCEEDS(MPI_Errhandler_free(&handler));
}

static void used(void)
{
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    MPI_Info info;
    char name[MPI_MAX_PSET_NAME_LEN], text[32];
    int count = -1, length = 0, flag, got = -1, rank;
    SUCCEEDS(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    CHECK(MPI_Session_fromint(MPI_Session_toint(session)) == session);
    SUCCEEDS(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &count));
    CHECK(count == 2);
    SUCCEEDS(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, NULL));
    CHECK(length == 12);
    SUCCEEDS(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, name));
    CHECK(strcmp(name, "mpi://WORLD") == 0);
    FAILS(MPI_ERR_ARG, MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 2, &length, name));
    SUCCEEDS(MPI_Session_get_pset_info(session, "mpi://WORLD", &info));
    SUCCEEDS(MPI_Info_get(info, "mpi_size", 31, text, &flag));
    CHECK(flag);
    SUCCEEDS(MPI_Info_free(&info));
    SUCCEEDS(MPI_Session_get_info(session, &info));
    SUCCEEDS(MPI_Info_get(info, "thread_level", 31, text, &flag));
    CHECK(flag && strcmp(text, "MPI_THREAD_MULTIPLE") == 0);
    SUCCEEDS(MPI_Info_free(&info));
    MPI_Errhandler handler, found;
    SUCCEEDS(MPI_Session_create_errhandler(handle, &handler));
    SUCCEEDS(MPI_Session_set_errhandler(session, handler));
    CHECK(class_of(MPI_Group_from_session_pset(session, "mpi://NOBODY", &group)) == MPI_ERR_ARG);
    CHECK(handled == MPI_ERR_ARG);
    SUCCEEDS(MPI_Session_call_errhandler(session, MPI_ERR_IO));
    CHECK(handled == MPI_ERR_IO);
    SUCCEEDS(MPI_Session_get_errhandler(session, &found));
    CHECK(found == handler);
    SUCCEEDS(MPI_Errhandler_free(&found));
    SUCCEEDS(MPI_Errhandler_free(&handler));
    SUCCEEDS(MPI_Group_from_session_pset(session, "mpi://world", &group));
    refused(group);
    SUCCEEDS(MPI_Comm_create_from_group(group, "part", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    SUCCEEDS(MPI_Group_free(&group));
    SUCCEEDS(MPI_Comm_rank(comm, &rank));
    SUCCEEDS(MPI_Comm_size(comm, &count));
    CHECK(count == expected);
    MPI_Request request;
    SUCCEEDS(MPI_Isend(&rank, 1, MPI_INT, (rank + 1) % count, 0, comm, &request));
    SUCCEEDS(MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 0, comm, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(got == (rank + count - 1) % count);
    SUCCEEDS(MPI_Comm_disconnect(&comm));
    SUCCEEDS(MPI_Group_from_session_pset(session, "mpi://SELF", &group));
    SUCCEEDS(MPI_Group_size(group, &count));
    CHECK(count == 1);
    SUCCEEDS(MPI_Group_free(&group));
    MPI_Session stale = session;
    SUCCEEDS(MPI_Session_finalize(&session));
    CHECK(session == MPI_SESSION_NULL && stale != session);
}

int main(int argc, char **argv)
{
    int flag = -1;
    expected = atoi(argv[2]);
    if (strcmp(argv[1], "alone") == 0) {
        /* One session after the other, without a world. */
        for (int i = 0; i < 3; i++)
            used();
        SUCCEEDS(MPI_Initialized(&flag));
        CHECK(!flag);
        return 0;
    }
    if (strcmp(argv[1], "later") == 0) {
        /* The first session follows the end of the world, and the process exits in any way after the last one. */
        MPI_Init(&argc, &argv);
        SUCCEEDS(MPI_Comm_rank(MPI_COMM_WORLD, &me));
        SUCCEEDS(MPI_Comm_size(MPI_COMM_WORLD, &size));
        SUCCEEDS(MPI_Finalize());
        /* Information about how this process was started is still available. */
        MPI_Info info;
        char text[64] = "";
        SUCCEEDS(MPI_Info_create_env(argc, argv, &info));
        SUCCEEDS(MPI_Info_get(info, "maxprocs", 63, text, &flag));
        CHECK(flag && atoi(text) == size);
        SUCCEEDS(MPI_Info_free(&info));
        for (int i = 0; i < 3; i++)
            used();
        SUCCEEDS(MPI_Finalized(&flag));
        CHECK(flag);
        if (me % 2 == 1)
            _exit(0);
        return 0;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    used();
    /* A session that stays open after MPI_Finalize. */
    MPI_Session session;
    SUCCEEDS(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    SUCCEEDS(MPI_Finalize());
    used();
    SUCCEEDS(MPI_Session_finalize(&session));
    return 0;
}
