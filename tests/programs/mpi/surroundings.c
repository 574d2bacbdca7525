/* The environment of a program: versions, clocks, memory, info objects, and error texts. */
#include "mpi_check.h"

#include <stdint.h>

static void versions(void)
{
    int major = -1, minor = -1, length = -1, flag = -1;
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    SUCCEEDS(MPI_Get_version(&major, &minor));
    CHECK(major == MPI_VERSION && minor == MPI_SUBVERSION);
    SUCCEEDS(MPI_Abi_get_version(&major, &minor));
    CHECK(major == 1 && minor == 0);
    SUCCEEDS(MPI_Get_library_version(text, &length));
    CHECK(strncmp(text, "Regatta ", 8) == 0 && length == (int)strlen(text));
    SUCCEEDS(MPI_Get_processor_name(text, &length));
    CHECK(length > 0 && length == (int)strlen(text));
    SUCCEEDS(MPI_Initialized(&flag));
    CHECK(flag == 1);
    SUCCEEDS(MPI_Finalized(&flag));
    CHECK(flag == 0);
    SUCCEEDS(MPI_Query_thread(&flag));
    CHECK(flag == MPI_THREAD_SINGLE);
    SUCCEEDS(MPI_Is_thread_main(&flag));
    CHECK(flag == 1);
    SUCCEEDS(MPI_Pcontrol(1));
    double before = MPI_Wtime();
    CHECK(MPI_Wtick() > 0 && MPI_Wtick() < 1e-3 && MPI_Wtime() >= before);
    MPI_Info info;
    SUCCEEDS(MPI_Get_hw_resource_info(&info));
    SUCCEEDS(MPI_Info_free(&info));
    CHECK(info == MPI_INFO_NULL);
    CHECK(MPI_Init(NULL, NULL) != MPI_SUCCESS);
}

static void binary_interface(void)
{
    MPI_Info info;
    char text[16];
    int length = sizeof text, flag = 0;
    SUCCEEDS(MPI_Abi_get_info(&info));
    SUCCEEDS(MPI_Info_get_string(info, "mpi_aint_size", &length, text, &flag));
    CHECK(flag && atoi(text) == (int)sizeof(MPI_Aint) && length == 2);
    SUCCEEDS(MPI_Info_free(&info));
    SUCCEEDS(MPI_Abi_get_fortran_info(&info));
    CHECK(info == MPI_INFO_NULL);
    SUCCEEDS(MPI_Info_create(&info));
    /* With other sizes, data of these types would be wrong. */
    SUCCEEDS(MPI_Info_set(info, "mpi_integer_size", "8"));
    FAILS(MPI_ERR_ABI, MPI_Abi_set_fortran_info(info));
    SUCCEEDS(MPI_Info_set(info, "mpi_integer_size", "4"));
    SUCCEEDS(MPI_Abi_set_fortran_info(info));
    FAILS(MPI_ERR_ABI, MPI_Abi_set_fortran_info(info));
    SUCCEEDS(MPI_Info_free(&info));
    SUCCEEDS(MPI_Abi_get_fortran_info(&info));
    SUCCEEDS(MPI_Info_get_nkeys(info, &flag));
    CHECK(flag == 1);
    SUCCEEDS(MPI_Info_free(&info));
    int32_t yes = 1, no = 0, got[2] = {7, 7};
    SUCCEEDS(MPI_Abi_get_fortran_booleans(4, &got[0], &got[1], &flag));
    CHECK(!flag && got[0] == 7);
    FAILS(MPI_ERR_ARG, MPI_Abi_set_fortran_booleans(3, &yes, &no));
    SUCCEEDS(MPI_Abi_set_fortran_booleans(4, &yes, &no));
    FAILS(MPI_ERR_ABI, MPI_Abi_set_fortran_booleans(4, &yes, &no));
    SUCCEEDS(MPI_Abi_get_fortran_booleans(4, &got[0], &got[1], &flag));
    CHECK(flag && got[0] == 1 && got[1] == 0);
}

static void memory(void)
{
    char *block = NULL;
    MPI_Info info;
    SUCCEEDS(MPI_Alloc_mem(1000, MPI_INFO_NULL, &block));
    CHECK(block && (uintptr_t)block % 64 == 0);
    memset(block, 1, 1000);
    SUCCEEDS(MPI_Free_mem(block));
    SUCCEEDS(MPI_Info_create(&info));
    SUCCEEDS(MPI_Info_set(info, "mpi_minimum_memory_alignment", "4096"));
    SUCCEEDS(MPI_Alloc_mem(0, info, &block));
    CHECK((uintptr_t)block % 4096 == 0);
    SUCCEEDS(MPI_Free_mem(block));
    SUCCEEDS(MPI_Info_free(&info));
    FAILS(MPI_ERR_ARG, MPI_Alloc_mem(-1, MPI_INFO_NULL, &block));
    FAILS(MPI_ERR_NO_MEM, MPI_Alloc_mem((MPI_Aint)1 << 60, MPI_INFO_NULL, &block));
}

static void hints(void)
{
    MPI_Info info, other;
    char text[64] = "", key[MPI_MAX_INFO_KEY], long_key[400];
    int count = -1, flag = -1, length = -1;
    SUCCEEDS(MPI_Info_create(&info));
    SUCCEEDS(MPI_Info_set(info, "second", "2"));
    SUCCEEDS(MPI_Info_set(info, "first", "one"));
    SUCCEEDS(MPI_Info_set(info, "second", "two"));
    SUCCEEDS(MPI_Info_get_nkeys(info, &count));
    CHECK(count == 2);
    SUCCEEDS(MPI_Info_get_nthkey(info, 0, key));
    CHECK(strcmp(key, "second") == 0);
    FAILS(MPI_ERR_ARG, MPI_Info_get_nthkey(info, 2, key));
    SUCCEEDS(MPI_Info_get_valuelen(info, "first", &length, &flag));
    CHECK(flag && length == 3);
    SUCCEEDS(MPI_Info_get(info, "first", 2, text, &flag));
    CHECK(flag && strcmp(text, "on") == 0);
    length = 0;
    SUCCEEDS(MPI_Info_get_string(info, "first", &length, NULL, &flag));
    CHECK(flag && length == 4);
    length = 3;
    SUCCEEDS(MPI_Info_get_string(info, "second", &length, text, &flag));
    CHECK(flag && length == 4 && strcmp(text, "tw") == 0);
    SUCCEEDS(MPI_Info_get_string(info, "third", &length, text, &flag));
    CHECK(!flag && length == 4);
    SUCCEEDS(MPI_Info_dup(info, &other));
    SUCCEEDS(MPI_Info_delete(info, "second"));
    FAILS(MPI_ERR_INFO_NOKEY, MPI_Info_delete(info, "second"));
    SUCCEEDS(MPI_Info_get_nkeys(other, &count));
    CHECK(count == 2 && MPI_Info_fromint(MPI_Info_toint(other)) == other);
    memset(long_key, 'k', sizeof long_key - 1);
    long_key[sizeof long_key - 1] = 0;
    FAILS(MPI_ERR_INFO_KEY, MPI_Info_set(info, long_key, "v"));
    FAILS(MPI_ERR_INFO_KEY, MPI_Info_set(info, "", "v"));
    MPI_Info stale = info;
    SUCCEEDS(MPI_Info_free(&info));
    SUCCEEDS(MPI_Info_free(&other));
    FAILS(MPI_ERR_INFO, MPI_Info_set(stale, "a", "b"));
    FAILS(MPI_ERR_INFO, MPI_Info_get_nkeys(MPI_INFO_NULL, &count));
    FAILS(MPI_ERR_INFO, MPI_Info_set(MPI_INFO_ENV, "a", "b"));
    SUCCEEDS(MPI_Info_get(MPI_INFO_ENV, "maxprocs", 63, text, &flag));
    CHECK(flag && atoi(text) == size);
    char *arguments[] = {"prog", "x", "y", NULL};
    SUCCEEDS(MPI_Info_create_env(3, arguments, &info));
    SUCCEEDS(MPI_Info_get(info, "argv", 63, text, &flag));
    CHECK(flag && strcmp(text, "x y") == 0);
    SUCCEEDS(MPI_Info_free(&info));
}

static int handled, handled_code;
static MPI_Comm handled_comm;

static void handle(MPI_Comm *comm, int *code, ...)
{
    handled++;
    handled_comm = *comm;
    handled_code = *code;
}

static void handlers(void)
{
    MPI_Errhandler handler, got;
    MPI_Comm comm, other;
    int rank;
    SUCCEEDS(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    SUCCEEDS(MPI_Comm_create_errhandler(handle, &handler));
    SUCCEEDS(MPI_Comm_set_errhandler(comm, handler));
    SUCCEEDS(MPI_Comm_get_errhandler(comm, &got));
    CHECK(got == handler && MPI_Errhandler_fromint(MPI_Errhandler_toint(got)) == got);
    SUCCEEDS(MPI_Errhandler_free(&got));
    CHECK(got == MPI_ERRHANDLER_NULL);
    SUCCEEDS(MPI_Errhandler_free(&handler));
    /* The communicator still has the handler. */
    SUCCEEDS(MPI_Comm_dup(comm, &other));
    CHECK(class_of(MPI_Send(&rank, 1, MPI_INT, 5, 0, other)) == MPI_ERR_RANK);
    CHECK(handled == 1 && handled_comm == other && handled_code == MPI_ERR_RANK);
    SUCCEEDS(MPI_Comm_call_errhandler(comm, MPI_ERR_OTHER));
    CHECK(handled == 2 && handled_comm == comm && handled_code == MPI_ERR_OTHER);
    SUCCEEDS(MPI_Comm_get_errhandler(comm, &handler));
    SUCCEEDS(MPI_Comm_free(&comm));
    SUCCEEDS(MPI_Comm_free(&other));
    SUCCEEDS(MPI_Comm_set_errhandler(MPI_COMM_SELF, handler));
    SUCCEEDS(MPI_Errhandler_free(&handler));
    /* An error without a communicator is raised on MPI_COMM_SELF. */
    CHECK(class_of(MPI_Comm_rank(MPI_COMM_NULL, &rank)) == MPI_ERR_COMM);
    CHECK(handled == 3 && handled_comm == MPI_COMM_SELF);
    /* An error of one of several requests is raised on that request's communicator. */
    MPI_Request requests[2];
    char bytes[8];
    SUCCEEDS(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    SUCCEEDS(MPI_Irecv(bytes, 1, MPI_CHAR, me, 1, comm, &requests[0]));
    SUCCEEDS(MPI_Isend(bytes, 8, MPI_CHAR, me, 1, comm, &requests[1]));
    CHECK(class_of(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)) == MPI_ERR_IN_STATUS);
    CHECK(handled == 3);
    SUCCEEDS(MPI_Comm_free(&comm));
    SUCCEEDS(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    FAILS(MPI_ERR_ERRHANDLER, MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRHANDLER_NULL));
    FAILS(MPI_ERR_ARG, MPI_Comm_create_errhandler(NULL, &handler));
}

/* A program from the time when errors without an object were raised on MPI_COMM_WORLD. */
static void world_alone(void)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    SUCCEEDS(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    FAILS(MPI_ERR_COMM, MPI_Comm_rank(MPI_COMM_NULL, &rank));
    FAILS(MPI_ERR_TYPE, MPI_Type_size(MPI_DATATYPE_NULL, &rank));
    MPI_Errhandler handler;
    SUCCEEDS(MPI_Comm_create_errhandler(handle, &handler));
    SUCCEEDS(MPI_Comm_set_errhandler(MPI_COMM_SELF, handler));
    SUCCEEDS(MPI_Errhandler_free(&handler));
    FAILS(MPI_ERR_COMM, MPI_Comm_rank(MPI_COMM_NULL, &rank));
    CHECK(handled == 1 && handled_comm == MPI_COMM_SELF);
}

static int refuse(MPI_Comm comm, int key, void *extra, void *value, void *copy, int *flag)
{
    (void)comm, (void)key, (void)value, (void)copy, (void)flag;
    return *(int *)extra;
}

static void texts(void)
{
    int class, code, length, *last, flag;
    char text[MPI_MAX_ERROR_STRING];
    CHECK(MPI_Comm_rank(MPI_COMM_NULL, &class) == MPI_ERR_COMM);
    SUCCEEDS(MPI_Error_string(MPI_ERR_COMM, text, &length));
    CHECK(strstr(text, "MPI_COMM_NULL") && strstr(text, "MPI_Comm_rank") && length == (int)strlen(text));
    SUCCEEDS(MPI_Error_string(MPI_ERR_TRUNCATE, text, &length));
    CHECK(length > 0);
    SUCCEEDS(MPI_Add_error_class(&class));
    CHECK(class > MPI_ERR_LASTCODE);
    SUCCEEDS(MPI_Add_error_code(class, &code));
    SUCCEEDS(MPI_Add_error_string(code, "the mast is broken"));
    SUCCEEDS(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &flag));
    CHECK(flag && *last == code && class_of(code) == class);
    SUCCEEDS(MPI_Error_string(code, text, &length));
    CHECK(strcmp(text, "the mast is broken") == 0);
    CHECK(MPI_Comm_call_errhandler(MPI_COMM_SELF, code) == MPI_SUCCESS);
    /* An error code of the program keeps its text, whatever call returns it. */
    int key;
    MPI_Comm copy;
    SUCCEEDS(MPI_Comm_create_keyval(refuse, MPI_COMM_NULL_DELETE_FN, &key, &code));
    SUCCEEDS(MPI_Comm_set_attr(MPI_COMM_WORLD, key, &code));
    CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &copy) == code);
    SUCCEEDS(MPI_Error_string(code, text, &length));
    CHECK(strcmp(text, "the mast is broken") == 0);
    SUCCEEDS(MPI_Comm_delete_attr(MPI_COMM_WORLD, key));
    SUCCEEDS(MPI_Comm_free_keyval(&key));
    CHECK(MPI_Remove_error_class(class) != MPI_SUCCESS);
    SUCCEEDS(MPI_Remove_error_string(code));
    SUCCEEDS(MPI_Remove_error_code(code));
    SUCCEEDS(MPI_Remove_error_class(class));
    FAILS(MPI_ERR_ARG, MPI_Error_class(code, &class));
    FAILS(MPI_ERR_ARG, MPI_Add_error_string(MPI_ERR_COMM, "no"));
}

static int deleted[3], deletions;

static int on_delete(MPI_Comm comm, int key, void *value, void *extra)
{
    int flag = -1;
    MPI_Finalized(&flag);
    flag |= comm != MPI_COMM_SELF || key == MPI_KEYVAL_INVALID || extra != NULL;
    deleted[deletions++] = flag ? -1 : *(int *)value;
    return MPI_SUCCESS;
}

static void at_exit_check(void)
{
    if (deletions != 2 || deleted[0] != 2 || deleted[1] != 1) {
        fprintf(stderr, "attributes of MPI_COMM_SELF: %d, %d, %d\n", deletions, deleted[0], deleted[1]);
        _Exit(1);
    }
}

/* MPI_Finalize deletes the attributes of MPI_COMM_SELF, the last one first, while MPI still works. */
static void end(void)
{
    static int one = 1, two = 2;
    int first, second;
    atexit(at_exit_check);
    SUCCEEDS(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &first, NULL));
    SUCCEEDS(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &second, NULL));
    SUCCEEDS(MPI_Comm_set_attr(MPI_COMM_SELF, first, &one));
    SUCCEEDS(MPI_Comm_set_attr(MPI_COMM_SELF, second, &two));
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"versions", versions}, {"binary_interface", binary_interface},
        {"memory", memory},     {"hints", hints},
        {"handlers", handlers}, {"texts", texts},
        {"end", end},           {NULL, NULL},
    };
    int flag, length;
    char text[MPI_MAX_ERROR_STRING];
    /* These may be called at any time. */
    SUCCEEDS(MPI_Initialized(&flag));
    CHECK(!flag);
    SUCCEEDS(MPI_Error_string(MPI_ERR_RANK, text, &length));
    MPI_Info info;
    SUCCEEDS(MPI_Info_create(&info));
    SUCCEEDS(MPI_Info_free(&info));
    if (argc > 1 && strcmp(argv[1], "world_alone") == 0) {
        SUCCEEDS(MPI_Init(&argc, &argv));
        world_alone();
        SUCCEEDS(MPI_Finalize());
        return 0;
    }
    return play(argc, argv, scenarios);
}
