/*
 * A process of a job starts a program by itself, which initializes MPI. That program must not be a process of the job,
 * but a world of one process. Generalized requests, sessions and info objects are further scenarios, each with a single
 * process.
 */
#define _GNU_SOURCE
#include "mpi_check.h"

#include <sys/wait.h>
#include <unistd.h>

static char *program;

static void a_program_of_its_own(void)
{
    int status, sum = 0, one = 1;
    pid_t child = fork();
    if (child == 0) {
        execl(program, program, "started", NULL);
        _exit(9);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    SUCCEEDS(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == size);
}

static int be_started(int argc, char **argv)
{
    MPI_Comm parent;
    SUCCEEDS(MPI_Init(&argc, &argv));
    SUCCEEDS(MPI_Comm_size(MPI_COMM_WORLD, &size));
    SUCCEEDS(MPI_Comm_get_parent(&parent));
    CHECK(size == 1 && parent == MPI_COMM_NULL);
    SUCCEEDS(MPI_Finalize());
    return 0;
}

static int freed;

static int query(void *extra, MPI_Status *status)
{
    (void)extra;
    return MPI_Status_set_elements(status, MPI_BYTE, 0);
}

static int free_now(void *extra)
{
    (void)extra;
    freed++;
    return MPI_SUCCESS;
}

static int cancel(void *extra, int complete)
{
    (void)extra, (void)complete;
    return MPI_SUCCESS;
}

static void generalized_requests_are_freed_at_once(void)
{
    MPI_Request request, copy;
    SUCCEEDS(MPI_Grequest_start(query, free_now, cancel, NULL, &request));
    copy = request;
    SUCCEEDS(MPI_Request_free(&request));
    CHECK(freed == 0);
    SUCCEEDS(MPI_Grequest_complete(copy));
    CHECK(freed == 1);
    SUCCEEDS(MPI_Grequest_start(query, free_now, cancel, NULL, &request));
    SUCCEEDS(MPI_Grequest_complete(request));
    CHECK(freed == 1);
    SUCCEEDS(MPI_Request_free(&request));
    CHECK(freed == 2);
}

/* Checks that the info object does not have this key. */
static void check_unknown(MPI_Info info)
{
    char value[8];
    int length = sizeof value, flag = 1;
    SUCCEEDS(MPI_Info_get_string(info, "nobody_knows_this", &length, value, &flag));
    CHECK(!flag);
    SUCCEEDS(MPI_Info_free(&info));
}

static void unknown_hints_are_not_told(void)
{
    MPI_Info info, used;
    MPI_Comm comm;
    MPI_Win window;
    MPI_File file;
    int *memory, flag, length = 8;
    char value[8], path[] = "/tmp/regatta-hints-XXXXXX";
    SUCCEEDS(MPI_Info_create(&info));
    SUCCEEDS(MPI_Info_set(info, "nobody_knows_this", "1"));
    SUCCEEDS(MPI_Info_set(info, "mpi_assert_no_any_tag", "true"));
    SUCCEEDS(MPI_Comm_dup_with_info(MPI_COMM_SELF, info, &comm));
    SUCCEEDS(MPI_Comm_get_info(comm, &used));
    SUCCEEDS(MPI_Info_get_string(used, "mpi_assert_no_any_tag", &length, value, &flag));
    CHECK(flag && strcmp(value, "true") == 0);
    check_unknown(used);
    SUCCEEDS(MPI_Win_allocate(sizeof *memory, 1, info, comm, &memory, &window));
    SUCCEEDS(MPI_Win_get_info(window, &used));
    check_unknown(used);
    SUCCEEDS(MPI_Win_free(&window));
    CHECK(close(mkstemp(path)) == 0);
    SUCCEEDS(MPI_File_open(comm, path, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, info, &file));
    SUCCEEDS(MPI_File_get_info(file, &used));
    check_unknown(used);
    SUCCEEDS(MPI_File_close(&file));
    SUCCEEDS(MPI_Info_free(&info));
    SUCCEEDS(MPI_Comm_free(&comm));
}

static void start_on(const char *host)
{
    MPI_Comm children;
    MPI_Info info;
    char *arguments[] = {"child", NULL};
    SUCCEEDS(MPI_Info_create(&info));
    SUCCEEDS(MPI_Info_set(info, "host", host));
    SUCCEEDS(MPI_Comm_spawn(program, arguments, 1, info, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE));
    SUCCEEDS(MPI_Info_free(&info));
    SUCCEEDS(MPI_Comm_disconnect(&children));
}

static void localhost_is_the_host_of_who_starts(void)
{
    char own[256];
    CHECK(gethostname(own, sizeof own) == 0);
    start_on("localhost");
    start_on("127.0.0.1");
    start_on(own);
}

static int be_child(int argc, char **argv)
{
    MPI_Comm parent;
    SUCCEEDS(MPI_Init(&argc, &argv));
    SUCCEEDS(MPI_Comm_get_parent(&parent));
    SUCCEEDS(MPI_Comm_disconnect(&parent));
    SUCCEEDS(MPI_Finalize());
    return 0;
}

/* Sessions may follow each other, even after MPI_Finalize. */
static int be_in_sessions(int argc, char **argv)
{
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    for (int i = 0; i < 4; i++) {
        SUCCEEDS(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
        SUCCEEDS(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
        SUCCEEDS(MPI_Comm_create_from_group(group, "session", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
        SUCCEEDS(MPI_Barrier(comm));
        SUCCEEDS(MPI_Comm_free(&comm));
        SUCCEEDS(MPI_Group_free(&group));
        SUCCEEDS(MPI_Session_finalize(&session));
        if (i == 1) {
            SUCCEEDS(MPI_Init(&argc, &argv));
            SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
            SUCCEEDS(MPI_Finalize());
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"own", a_program_of_its_own},
        {"generalized", generalized_requests_are_freed_at_once},
        {"hints", unknown_hints_are_not_told},
        {"localhost", localhost_is_the_host_of_who_starts},
        {NULL, NULL},
    };
    program = argv[0];
    if (argc > 1 && strcmp(argv[1], "started") == 0)
        return be_started(argc, argv);
    if (argc > 1 && strcmp(argv[1], "child") == 0)
        return be_child(argc, argv);
    if (argc > 1 && strcmp(argv[1], "sessions") == 0)
        return be_in_sessions(argc, argv);
    return play(argc, argv, scenarios);
}
