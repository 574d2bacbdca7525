/* MPICH's ABI: what it has beyond the standard, and values that differ from the standard ABI's. */
#include "mpi_check.h"

#include <stddef.h>

/* These numbers are compiled into existing programs. */
static void values(void)
{
    CHECK(MPI_COMM_WORLD == 0x44000000 && MPI_INT == 0x4c000405 && MPI_SUM == 0x58000003);
    CHECK(sizeof(MPI_Status) == 20 && offsetof(MPI_Status, MPI_SOURCE) == 8);
    CHECK(MPI_ANY_SOURCE == -2 && MPI_ANY_TAG == -1 && MPI_PROC_NULL == -1 && MPI_ROOT == -3);
    CHECK(MPI_STATUS_IGNORE == (MPI_Status *)1 && MPI_IN_PLACE == (void *)-1);
    CHECK(MPI_ERR_TRUNCATE == 14 && MPI_THREAD_MULTIPLE == 3 && sizeof(MPI_Comm) == 4);
    int major = 0, minor = 0, level = -1;
    SUCCEEDS(MPI_Abi_get_version(&major, &minor));
    CHECK(major == -1 && minor == -1);
    SUCCEEDS(MPI_Query_thread(&level));
    CHECK(level >= MPI_THREAD_SINGLE && level <= MPI_THREAD_MULTIPLE);
}

/* A status has the values of this ABI, from every call. */
static void statuses(void)
{
    MPI_Status status, all[3];
    int value = 5, got = 0, count = -1, flag = -1;
    MPI_Request requests[3];
    SUCCEEDS(MPI_Recv(&got, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_SELF, &status));
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
    SUCCEEDS(MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &requests[0]));
    SUCCEEDS(MPI_Isend(&value, 1, MPI_INT, 0, 77, MPI_COMM_SELF, &requests[1]));
    requests[2] = MPI_REQUEST_NULL;
    for (int i = 0; i < 3; i++)
        all[i].MPI_ERROR = 12345;
    SUCCEEDS(MPI_Waitall(3, requests, all));
    CHECK(got == 5 && all[0].MPI_SOURCE == 0 && all[0].MPI_TAG == 77);
    CHECK(all[2].MPI_SOURCE == MPI_ANY_SOURCE && all[2].MPI_TAG == MPI_ANY_TAG);
    SUCCEEDS(MPI_Get_count(&all[0], MPI_INT, &count));
    CHECK(count == 1);
    /* A call for one operation does not write MPI_ERROR. */
    status.MPI_ERROR = 12345;
    SUCCEEDS(MPI_Sendrecv(&value, 1, MPI_INT, 0, 1, &got, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &status));
    CHECK(status.MPI_ERROR == 12345 && status.MPI_SOURCE == 0 && status.MPI_TAG == 1);
    SUCCEEDS(MPI_Status_set_elements_x(&status, MPI_BYTE, (MPI_Count)1 << 40));
    SUCCEEDS(MPI_Status_set_cancelled(&status, 1));
    MPI_Count elements = 0;
    SUCCEEDS(MPI_Get_elements_x(&status, MPI_BYTE, &elements));
    SUCCEEDS(MPI_Test_cancelled(&status, &flag));
    CHECK(elements == (MPI_Count)1 << 40 && flag);
    MPI_Fint fortran[5];
    MPI_Status back;
    SUCCEEDS(MPI_Status_c2f(&status, fortran));
    CHECK(fortran[2] == 0 && fortran[3] == 1);
    SUCCEEDS(MPI_Status_f2c(fortran, &back));
    CHECK(memcmp(&status, &back, sizeof back) == 0);
    FAILS(MPI_ERR_ARG, MPI_Status_c2f(MPI_STATUS_IGNORE, fortran));
    /* An array that is too long to be converted on the stack. */
    MPI_Request many[100];
    MPI_Status of_many[100];
    int sent[50], received[50];
    for (int i = 0; i < 50; i++) {
        sent[i] = i;
        SUCCEEDS(MPI_Irecv(&received[i], 1, MPI_INT, 0, i, MPI_COMM_SELF, &many[i]));
    }
    for (int i = 0; i < 50; i++)
        SUCCEEDS(MPI_Isend(&sent[i], 1, MPI_INT, 0, i, MPI_COMM_SELF, &many[50 + i]));
    SUCCEEDS(MPI_Waitall(100, many, of_many));
    for (int i = 0; i < 50; i++)
        CHECK(received[i] == i && of_many[i].MPI_TAG == i && many[i] == MPI_REQUEST_NULL);
}

/* Invalid handles are errors, and do not crash. */
static void handles(void)
{
    int number = 0;
    FAILS(MPI_ERR_COMM, MPI_Comm_size(MPI_COMM_NULL, &number));
    FAILS(MPI_ERR_COMM, MPI_Comm_size((MPI_Comm)MPI_INT, &number));
    FAILS(MPI_ERR_COMM, MPI_Comm_size(0x101, &number));
    FAILS(MPI_ERR_COMM, MPI_Comm_size(0, &number));
    FAILS(MPI_ERR_COMM, MPI_Comm_size(-1, &number));
    FAILS(MPI_ERR_TYPE, MPI_Type_size(MPI_COMM_WORLD, &number));
    FAILS(MPI_ERR_TYPE, MPI_Type_size(0x209, &number));
    FAILS(MPI_ERR_RANK, MPI_Send(&number, 1, MPI_INT, MPI_ROOT, 0, MPI_COMM_SELF));
    FAILS(MPI_ERR_RANK, MPI_Send(&number, 1, MPI_INT, -4, 0, MPI_COMM_SELF));
    FAILS(MPI_ERR_TAG, MPI_Send(&number, 1, MPI_INT, 0, -2, MPI_COMM_SELF));
    MPI_Comm copy;
    SUCCEEDS(MPI_Comm_dup(MPI_COMM_SELF, &copy));
    CHECK(MPI_Comm_f2c(MPI_Comm_c2f(copy)) == copy && MPI_Comm_fromint(MPI_Comm_toint(copy)) == copy);
    MPI_Comm stale = copy;
    SUCCEEDS(MPI_Comm_free(&copy));
    CHECK(copy == MPI_COMM_NULL);
    FAILS(MPI_ERR_COMM, MPI_Comm_size(stale, &number));
    MPI_File file = MPI_File_f2c(MPI_File_c2f(MPI_FILE_NULL));
    CHECK(file == MPI_FILE_NULL && file == NULL);
    /* All predefined datatype handles survive the conversion, also as the contents of a derived type. */
    MPI_Datatype all[] = {MPI_CHAR, MPI_INT, MPI_DOUBLE, MPI_FLOAT_INT, MPI_2INT, MPI_LONG_DOUBLE_INT, MPI_INT64_T, MPI_COUNT,
        MPI_C_BOOL, MPI_C_DOUBLE_COMPLEX, MPI_LOGICAL8, MPI_PACKED};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        MPI_Datatype made, got;
        int none;
        MPI_Aint no_address;
        SUCCEEDS(MPI_Type_contiguous(2, all[i], &made));
        SUCCEEDS(MPI_Type_get_contents(made, 1, 0, 1, &none, &no_address, &got));
        CHECK(got == all[i]);
        SUCCEEDS(MPI_Type_free(&made));
    }
}

/* Names that MPI has removed since. */
static void removed(void)
{
    struct pair {
        int number;
        double value;
    } element;
    MPI_Aint places[4], extent, lower, upper;
    SUCCEEDS(MPI_Address(&element, &lower));
    SUCCEEDS(MPI_Address(&element.value, &upper));
    CHECK(upper - lower == offsetof(struct pair, value));
    int lengths[4] = {1, 1, 1, 1};
    MPI_Datatype types[4] = {MPI_LB, MPI_INT, MPI_DOUBLE, MPI_UB}, made;
    places[0] = -8;
    places[1] = 0;
    places[2] = upper - lower;
    places[3] = 40;
    SUCCEEDS(MPI_Type_struct(4, lengths, places, types, &made));
    SUCCEEDS(MPI_Type_extent(made, &extent));
    SUCCEEDS(MPI_Type_lb(made, &lower));
    SUCCEEDS(MPI_Type_ub(made, &upper));
    CHECK(extent == 48 && lower == -8 && upper == 40);
    int bytes = 0;
    SUCCEEDS(MPI_Type_size(made, &bytes));
    CHECK(bytes == sizeof(int) + sizeof(double));
    SUCCEEDS(MPI_Type_free(&made));
    SUCCEEDS(MPI_Type_create_struct(4, lengths, places, types, &made));
    SUCCEEDS(MPI_Type_get_extent(made, &lower, &extent));
    CHECK(extent == 48 && lower == -8);
    SUCCEEDS(MPI_Type_free(&made));
    MPI_Count many[4] = {1, 1, 1, 1}, wide[4] = {-8, 0, places[2], 40}, first, span;
    SUCCEEDS(MPI_Type_create_struct_c(4, many, wide, types, &made));
    SUCCEEDS(MPI_Type_get_extent_c(made, &first, &span));
    CHECK(span == 48 && first == -8);
    SUCCEEDS(MPI_Type_free(&made));
    /* A marker alone: the upper bound of nothing is 0. */
    SUCCEEDS(MPI_Type_create_struct(1, lengths, &places[3], types, &made));
    SUCCEEDS(MPI_Type_get_extent(made, &lower, &extent));
    SUCCEEDS(MPI_Type_size(made, &bytes));
    CHECK(lower == 40 && extent == -40 && bytes == 0);
    SUCCEEDS(MPI_Type_free(&made));
    char name[MPI_MAX_OBJECT_NAME];
    SUCCEEDS(MPI_Type_get_name(MPI_UB, name, &bytes));
    CHECK(strcmp(name, "MPI_UB") == 0 && bytes == 6);
    SUCCEEDS(MPI_Type_struct(2, lengths, &places[1], &types[1], &made));
    SUCCEEDS(MPI_Type_extent(made, &extent));
    CHECK(extent == sizeof(struct pair));
    SUCCEEDS(MPI_Type_free(&made));
    SUCCEEDS(MPI_Type_hvector(3, 1, 16, MPI_INT, &made));
    SUCCEEDS(MPI_Type_extent(made, &extent));
    CHECK(extent == 36);
    SUCCEEDS(MPI_Type_free(&made));
    SUCCEEDS(MPI_Type_hindexed(2, lengths, &places[1], MPI_INT, &made));
    SUCCEEDS(MPI_Type_free(&made));
    MPI_Errhandler before;
    SUCCEEDS(MPI_Errhandler_get(MPI_COMM_SELF, &before));
    SUCCEEDS(MPI_Errhandler_set(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    SUCCEEDS(MPI_Errhandler_set(MPI_COMM_SELF, before));
}

static int calls;
static MPI_Comm seen;

static int copied(MPI_Comm comm, int key, void *extra, void *value, void *out, int *flag)
{
    calls += comm == seen && key > 0 && extra == &calls;
    *(void **)out = value;
    *flag = 1;
    return MPI_SUCCESS;
}

static int deleted(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value;
    calls += extra == &calls;
    return value == NULL ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
}

static void handled(MPI_Comm *comm, int *code, ...)
{
    calls += *comm == seen && class_of(*code) == MPI_ERR_ROOT;
}

/* Computes twice the first operand plus the second. */
static void twice(void *in, void *inout, int *count, MPI_Datatype *type)
{
    CHECK(*type == MPI_INT);
    for (int i = 0; i < *count; i++)
        ((int *)inout)[i] += 2 * ((int *)in)[i];
}

static int queried(void *extra, MPI_Status *status)
{
    status->MPI_SOURCE = MPI_PROC_NULL;
    status->MPI_TAG = 9;
    SUCCEEDS(MPI_Status_set_cancelled(status, 0));
    SUCCEEDS(MPI_Status_set_elements(status, MPI_INT, *(int *)extra));
    return MPI_SUCCESS;
}

static int freed(void *extra)
{
    *(int *)extra = -1;
    return MPI_SUCCESS;
}

static int cancelled(void *extra, int complete)
{
    (void)extra, (void)complete;
    return MPI_SUCCESS;
}

static void other_code(MPI_Comm *comm, int *code, ...)
{
    CHECK(*comm == MPI_COMM_WORLD && class_of(*code) == MPI_ERR_ROOT);
    *code = MPI_ERR_TRUNCATE;
}

static void no_code(MPI_File *file, int *code, ...)
{
    CHECK(*file == MPI_FILE_NULL);
    *code = MPI_SUCCESS;
}

/* Callbacks of the program get handles and codes of this ABI. */
static void callbacks(void)
{
    int key, flag, value = 1, results[2] = {me, 1};
    void *got = NULL;
    seen = MPI_COMM_WORLD;
    SUCCEEDS(MPI_Comm_create_keyval(copied, deleted, &key, &calls));
    SUCCEEDS(MPI_Comm_set_attr(MPI_COMM_WORLD, key, &value));
    MPI_Comm copy;
    SUCCEEDS(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
    SUCCEEDS(MPI_Comm_get_attr(copy, key, &got, &flag));
    CHECK(flag && got == &value && calls == 1);
    SUCCEEDS(MPI_Attr_put(copy, key, NULL));
    CHECK(calls == 2);
    FAILS(MPI_ERR_TRUNCATE, MPI_Comm_delete_attr(copy, key));
    CHECK(calls == 3);
    SUCCEEDS(MPI_Comm_delete_attr(MPI_COMM_WORLD, key));
    SUCCEEDS(MPI_Comm_free_keyval(&key));
    CHECK(key == MPI_KEYVAL_INVALID);
    SUCCEEDS(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL));
    SUCCEEDS(MPI_Comm_set_attr(MPI_COMM_WORLD, key, &value));
    MPI_Comm again;
    SUCCEEDS(MPI_Comm_dup(MPI_COMM_WORLD, &again));
    SUCCEEDS(MPI_Comm_get_attr(again, key, &got, &flag));
    CHECK(flag && got == &value);
    SUCCEEDS(MPI_Comm_free(&again));
    MPI_Errhandler handler;
    SUCCEEDS(MPI_Errhandler_create(handled, &handler));
    SUCCEEDS(MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler));
    SUCCEEDS(MPI_Errhandler_free(&handler));
    calls = 0;
    FAILS(MPI_ERR_ROOT, MPI_Bcast(&value, 1, MPI_INT, -5, MPI_COMM_WORLD));
    CHECK(calls == 1);
    /* The call returns the code that the error handler sets. */
    SUCCEEDS(MPI_Comm_create_errhandler(other_code, &handler));
    SUCCEEDS(MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler));
    SUCCEEDS(MPI_Errhandler_free(&handler));
    FAILS(MPI_ERR_TRUNCATE, MPI_Bcast(&value, 1, MPI_INT, -5, MPI_COMM_WORLD));
    MPI_File file;
    SUCCEEDS(MPI_File_create_errhandler(no_code, &handler));
    SUCCEEDS(MPI_File_set_errhandler(MPI_FILE_NULL, handler));
    SUCCEEDS(MPI_Errhandler_free(&handler));
    SUCCEEDS(MPI_File_open(MPI_COMM_SELF, "no such folder/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    SUCCEEDS(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
    SUCCEEDS(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    MPI_Op op;
    SUCCEEDS(MPI_Op_create(twice, 0, &op));
    SUCCEEDS(MPI_Allreduce(MPI_IN_PLACE, results, 2, MPI_INT, op, MPI_COMM_WORLD));
    CHECK(results[1] == (1 << size) - 1);
    SUCCEEDS(MPI_Op_free(&op));
    MPI_Request request;
    MPI_Status status;
    int count = 3;
    SUCCEEDS(MPI_Grequest_start(queried, freed, cancelled, &count, &request));
    SUCCEEDS(MPI_Grequest_complete(request));
    SUCCEEDS(MPI_Wait(&request, &status));
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == 9 && count == -1);
    SUCCEEDS(MPI_Get_count(&status, MPI_INT, &count));
    CHECK(count == 3);
}

/* Values that the library stores have the numbers of this ABI. */
static void facts(void)
{
    int flag = 0, *value = NULL, code = 0, string = 0, *base = NULL, result = -1;
    char text[MPI_MAX_ERROR_STRING];
    SUCCEEDS(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &value, &flag));
    CHECK(flag && *value == MPI_ANY_SOURCE);
    SUCCEEDS(MPI_Attr_get(MPI_COMM_WORLD, MPI_HOST, &value, &flag));
    CHECK(flag && *value == MPI_PROC_NULL);
    SUCCEEDS(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag));
    CHECK(flag && *value == MPI_ERR_LASTCODE);
    SUCCEEDS(MPI_Add_error_class(&code));
    CHECK(code > MPI_ERR_LASTCODE);
    SUCCEEDS(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag));
    CHECK(flag && *value == code);
    SUCCEEDS(MPI_Add_error_string(code, "ours"));
    SUCCEEDS(MPI_Error_string(code, text, &string));
    CHECK(strcmp(text, "ours") == 0 && class_of(code) == code);
    MPI_Win win;
    SUCCEEDS(MPI_Win_allocate(sizeof(int), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    SUCCEEDS(MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &value, &flag));
    CHECK(flag && *value == MPI_WIN_FLAVOR_ALLOCATE);
    SUCCEEDS(MPI_Win_get_attr(win, MPI_WIN_MODEL, &value, &flag));
    CHECK(flag && (*value == MPI_WIN_UNIFIED || *value == MPI_WIN_SEPARATE));
    SUCCEEDS(MPI_Win_free(&win));
    SUCCEEDS(MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_WORLD, &result));
    CHECK(result == MPI_IDENT);
    MPI_Group world, self;
    SUCCEEDS(MPI_Comm_group(MPI_COMM_WORLD, &world));
    SUCCEEDS(MPI_Comm_group(MPI_COMM_SELF, &self));
    int ranks[2] = {MPI_PROC_NULL, me}, others[2] = {5, 5};
    SUCCEEDS(MPI_Group_translate_ranks(world, 2, ranks, self, others));
    CHECK(others[0] == MPI_PROC_NULL && others[1] == 0);
    SUCCEEDS(MPI_Group_free(&world));
    SUCCEEDS(MPI_Group_free(&self));
    MPI_Comm graph, line;
    SUCCEEDS(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &me, MPI_UNWEIGHTED, 1, &me, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph));
    SUCCEEDS(MPI_Topo_test(graph, &result));
    CHECK(result == MPI_DIST_GRAPH);
    int in = 0, out = 0, weighted = 1, wrap = 0, left = 7, right = 7;
    SUCCEEDS(MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted));
    CHECK(in == 1 && out == 1 && !weighted);
    SUCCEEDS(MPI_Comm_free(&graph));
    SUCCEEDS(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &wrap, 0, &line));
    SUCCEEDS(MPI_Cart_shift(line, 0, 1, &left, &right));
    CHECK(left == (me == 0 ? MPI_PROC_NULL : me - 1) && right == (me == size - 1 ? MPI_PROC_NULL : me + 1));
    SUCCEEDS(MPI_Comm_free(&line));
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"values", values},
        {"statuses", statuses},
        {"handles", handles},
        {"removed", removed},
        {"callbacks", callbacks},
        {"facts", facts},
        {NULL, NULL},
    };
    return play(argc, argv, scenarios);
}
