/*
 * The error class of each invalid argument of calls for messages, completion, collectives, communicators, groups,
 * topologies, attributes, datatypes, operators and info objects. Calls for windows and files are in windows.c and
 * files.c. The scenario "print" prints the classes of the library that it runs on, for comparison with another library.
 */
#include "mpi_check.h"

#include <setjmp.h>
#include <signal.h>

static int printing, wrong;
static sigjmp_buf before;

/* Another library may crash on an invalid address, or hang. */
static void crash(int number)
{
    (void)number;
    siglongjmp(before, 1);
}

static const char *name_of(int class)
{
    static const struct {
        int class;
        const char *name;
    } names[] = {
        {MPI_SUCCESS, "SUCCESS"},       {MPI_ERR_BUFFER, "BUFFER"},     {MPI_ERR_COUNT, "COUNT"},
        {MPI_ERR_TYPE, "TYPE"},         {MPI_ERR_TAG, "TAG"},           {MPI_ERR_COMM, "COMM"},
        {MPI_ERR_RANK, "RANK"},         {MPI_ERR_REQUEST, "REQUEST"},   {MPI_ERR_ROOT, "ROOT"},
        {MPI_ERR_GROUP, "GROUP"},       {MPI_ERR_OP, "OP"},             {MPI_ERR_TOPOLOGY, "TOPOLOGY"},
        {MPI_ERR_DIMS, "DIMS"},         {MPI_ERR_ARG, "ARG"},           {MPI_ERR_UNKNOWN, "UNKNOWN"},
        {MPI_ERR_TRUNCATE, "TRUNCATE"}, {MPI_ERR_OTHER, "OTHER"},       {MPI_ERR_INTERN, "INTERN"},
        {MPI_ERR_KEYVAL, "KEYVAL"},     {MPI_ERR_INFO, "INFO"},         {MPI_ERR_INFO_KEY, "INFO_KEY"},
        {MPI_ERR_INFO_VALUE, "INFO_VALUE"}, {MPI_ERR_INFO_NOKEY, "INFO_NOKEY"}, {MPI_ERR_ERRHANDLER, "ERRHANDLER"},
        {MPI_ERR_SESSION, "SESSION"},   {MPI_ERR_NAME, "NAME"},         {MPI_ERR_PORT, "PORT"},
        {MPI_ERR_IN_STATUS, "IN_STATUS"}, {MPI_ERR_SERVICE, "SERVICE"}, {MPI_ERR_WIN, "WIN"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].class == class)
            return names[i].name;
    return "another";
}

static void judge(int line, const char *call, int expected, int code)
{
    int class = code;
    MPI_Error_class(code, &class);
    if (printing) {
        printf("%d %s %s%s\n", line, name_of(class), call, class == expected ? "" : "  <-- differs");
        fflush(stdout);
    } else if (class != expected) {
        fprintf(stderr, "line %d: %s: %s, and not %s\n", line, call, name_of(class), name_of(expected));
        wrong++;
    }
}

#define BAD(class, call)                                                                                                 \
    do {                                                                                                                 \
        if (sigsetjmp(before, 1) == 0)                                                                                   \
            judge(__LINE__, #call, MPI_ERR_##class, call);                                                               \
        else                                                                                                             \
            printf("%d crash %s  <-- differs\n", __LINE__, #call);                                                       \
    } while (0)

#define W MPI_COMM_WORLD
static int data[16], more[16];
static const int ones[8] = {1, 1, 1, 1, 1, 1, 1, 1}, zeros[8];
static MPI_Datatype uncommitted;
static MPI_Request request;
static MPI_Status status;

static void messages(void)
{
    int flag, count;
    MPI_Message message;
    BAD(COMM, MPI_Send(data, 1, MPI_INT, 0, 0, MPI_COMM_NULL));
    BAD(COUNT, MPI_Send(data, -1, MPI_INT, 0, 0, W));
    BAD(TYPE, MPI_Send(data, 1, MPI_DATATYPE_NULL, 0, 0, W));
    BAD(TYPE, MPI_Send(data, 1, uncommitted, 0, 0, W));
    BAD(RANK, MPI_Send(data, 1, MPI_INT, size, 0, W));
    BAD(RANK, MPI_Send(data, 1, MPI_INT, MPI_ANY_SOURCE, 0, W));
    BAD(TAG, MPI_Send(data, 1, MPI_INT, 0, -77, W));
    BAD(TAG, MPI_Send(data, 1, MPI_INT, 0, MPI_ANY_TAG, W));
    BAD(BUFFER, MPI_Send(NULL, 1, MPI_INT, 0, 0, W));
    BAD(RANK, MPI_Ssend(data, 1, MPI_INT, -7, 0, W));
    BAD(COUNT, MPI_Rsend(data, -1, MPI_INT, 0, 0, W));
    BAD(TAG, MPI_Bsend(data, 1, MPI_INT, 0, -77, W));
    BAD(BUFFER, MPI_Bsend(data, 1, MPI_INT, 0, 0, W));
    BAD(COMM, MPI_Isend(data, 1, MPI_INT, 0, 0, MPI_COMM_NULL, &request));
    BAD(RANK, MPI_Isend(data, 1, MPI_INT, size, 0, W, &request));
    BAD(ARG, MPI_Isend(data, 1, MPI_INT, 0, 0, W, NULL));
    BAD(TAG, MPI_Issend(data, 1, MPI_INT, 0, -9, W, &request));
    BAD(RANK, MPI_Recv(data, 1, MPI_INT, size, 0, W, &status));
    BAD(TAG, MPI_Recv(data, 1, MPI_INT, 0, -77, W, &status));
    BAD(COUNT, MPI_Recv(data, -1, MPI_INT, 0, 0, W, &status));
    BAD(BUFFER, MPI_Recv(NULL, 1, MPI_INT, 0, 0, W, &status));
    BAD(TYPE, MPI_Irecv(data, 1, MPI_DATATYPE_NULL, 0, 0, W, &request));
    BAD(ARG, MPI_Irecv(data, 1, MPI_INT, 0, 0, W, NULL));
    BAD(RANK, MPI_Sendrecv(data, 1, MPI_INT, size, 0, more, 1, MPI_INT, 0, 0, W, &status));
    BAD(RANK, MPI_Sendrecv(data, 1, MPI_INT, 0, 0, more, 1, MPI_INT, size, 0, W, &status));
    BAD(COUNT, MPI_Sendrecv_replace(data, -1, MPI_INT, 0, 0, 0, 0, W, &status));
    BAD(RANK, MPI_Probe(size, 0, W, &status));
    BAD(TAG, MPI_Iprobe(0, -77, W, &flag, &status));
    BAD(ARG, MPI_Iprobe(0, 0, W, NULL, &status));
    BAD(COMM, MPI_Mprobe(0, 0, MPI_COMM_NULL, &message, &status));
    message = MPI_MESSAGE_NULL;
    BAD(REQUEST, MPI_Mrecv(data, 1, MPI_INT, &message, &status));
    BAD(RANK, MPI_Send_init(data, 1, MPI_INT, size, 0, W, &request));
    BAD(COUNT, MPI_Recv_init(data, -1, MPI_INT, 0, 0, W, &request));
    BAD(TYPE, MPI_Get_count(&status, MPI_DATATYPE_NULL, &count));
    BAD(ARG, MPI_Get_count(&status, MPI_INT, NULL));
    BAD(BUFFER, MPI_Buffer_detach(&message, &count));
}

static void completion(void)
{
    MPI_Request none = MPI_REQUEST_NULL, list[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int flag, index, indices[2];
    BAD(ARG, MPI_Wait(NULL, &status));
    BAD(ARG, MPI_Test(&none, NULL, &status));
    BAD(COUNT, MPI_Waitall(-1, list, MPI_STATUSES_IGNORE));
    BAD(ARG, MPI_Waitany(2, list, NULL, &status));
    BAD(COUNT, MPI_Waitany(-1, list, &index, &status));
    BAD(COUNT, MPI_Testsome(-1, list, &index, indices, MPI_STATUSES_IGNORE));
    BAD(ARG, MPI_Testsome(2, list, &index, NULL, MPI_STATUSES_IGNORE));
    BAD(ARG, MPI_Request_get_status_some(2, list, &index, NULL, MPI_STATUSES_IGNORE));
    BAD(ARG, MPI_Request_get_status_some(2, list, NULL, indices, MPI_STATUSES_IGNORE));
    BAD(ARG, MPI_Testall(2, list, NULL, MPI_STATUSES_IGNORE));
    BAD(COUNT, MPI_Testany(-1, list, &index, &flag, &status));
    BAD(REQUEST, MPI_Start(&none));
    BAD(REQUEST, MPI_Startall(1, list));
    BAD(COUNT, MPI_Startall(-1, list));
    BAD(REQUEST, MPI_Cancel(&none));
    BAD(REQUEST, MPI_Request_free(&none));
    BAD(ARG, MPI_Request_free(NULL));
    BAD(ARG, MPI_Test_cancelled(&status, NULL));
    BAD(REQUEST, MPI_Grequest_complete(none));
}

static void collectives(void)
{
    BAD(COMM, MPI_Barrier(MPI_COMM_NULL));
    BAD(ROOT, MPI_Bcast(data, 1, MPI_INT, size, W));
    BAD(ROOT, MPI_Bcast(data, 1, MPI_INT, -1, W));
    BAD(COUNT, MPI_Bcast(data, -1, MPI_INT, 0, W));
    BAD(TYPE, MPI_Bcast(data, 1, MPI_DATATYPE_NULL, 0, W));
    BAD(BUFFER, MPI_Bcast(NULL, 1, MPI_INT, 0, W));
    BAD(ROOT, MPI_Gather(data, 1, MPI_INT, more, 1, MPI_INT, size, W));
    BAD(COUNT, MPI_Gather(data, -1, MPI_INT, more, 1, MPI_INT, 0, W));
    BAD(ROOT, MPI_Scatter(data, 1, MPI_INT, more, 1, MPI_INT, -5, W));
    BAD(COUNT, MPI_Allgather(data, -1, MPI_INT, more, 1, MPI_INT, W));
    BAD(TYPE, MPI_Allgather(data, 1, MPI_DATATYPE_NULL, more, 1, MPI_INT, W));
    BAD(COUNT, MPI_Alltoall(data, -1, MPI_INT, more, 1, MPI_INT, W));
    BAD(COMM, MPI_Alltoall(data, 1, MPI_INT, more, 1, MPI_INT, MPI_COMM_NULL));
    BAD(OP, MPI_Reduce(data, more, 1, MPI_INT, MPI_OP_NULL, 0, W));
    BAD(ROOT, MPI_Reduce(data, more, 1, MPI_INT, MPI_SUM, size, W));
    BAD(OP, MPI_Allreduce(data, more, 1, MPI_DOUBLE, MPI_BAND, W));
    BAD(OP, MPI_Allreduce(data, more, 1, MPI_CHAR, MPI_MAXLOC, W));
    BAD(OP, MPI_Allreduce(data, more, 1, MPI_INT, MPI_REPLACE, W));
    BAD(COUNT, MPI_Allreduce(data, more, -1, MPI_INT, MPI_SUM, W));
    BAD(TYPE, MPI_Allreduce(data, more, 1, MPI_DATATYPE_NULL, MPI_SUM, W));
    BAD(BUFFER, MPI_Allreduce(data, data, 1, MPI_INT, MPI_SUM, W));
    BAD(OP, MPI_Scan(data, more, 1, MPI_INT, MPI_OP_NULL, W));
    BAD(COUNT, MPI_Exscan(data, more, -1, MPI_INT, MPI_SUM, W));
    BAD(COUNT, MPI_Reduce_scatter_block(data, more, -1, MPI_INT, MPI_SUM, W));
    BAD(COUNT, MPI_Reduce_local(data, more, -1, MPI_INT, MPI_SUM));
    BAD(OP, MPI_Reduce_local(data, more, 1, MPI_INT, MPI_OP_NULL));
    BAD(ROOT, MPI_Ibcast(data, 1, MPI_INT, size, W, &request));
    BAD(ARG, MPI_Ibarrier(W, NULL));
    BAD(OP, MPI_Iallreduce(data, more, 1, MPI_INT, MPI_OP_NULL, W, &request));
    BAD(COMM, MPI_Iallgather(data, 1, MPI_INT, more, 1, MPI_INT, MPI_COMM_NULL, &request));
}

static void communicators(void)
{
    MPI_Comm comm, null = MPI_COMM_NULL, world = W;
    MPI_Group group, world_group;
    int number, flag, ranks[2] = {0, 0}, range[1][3] = {{0, 0, 0}};
    char *text;
    SUCCEEDS(MPI_Comm_group(W, &world_group));
    BAD(ARG, MPI_Comm_join(-1, &comm));
    BAD(COMM, MPI_Comm_rank(MPI_COMM_NULL, &number));
    BAD(ARG, MPI_Comm_rank(W, NULL));
    BAD(ARG, MPI_Comm_size(W, NULL));
    BAD(COMM, MPI_Comm_dup(MPI_COMM_NULL, &comm));
    BAD(COMM, MPI_Comm_split(MPI_COMM_NULL, 0, 0, &comm));
    BAD(ARG, MPI_Comm_split(W, -5, 0, &comm));
    BAD(COMM, MPI_Comm_free(&null));
    BAD(COMM, MPI_Comm_free(&world));
    BAD(GROUP, MPI_Comm_create(W, MPI_GROUP_NULL, &comm));
    BAD(COMM, MPI_Comm_compare(W, MPI_COMM_NULL, &number));
    BAD(COMM, MPI_Comm_remote_size(W, &number));
    BAD(COMM, MPI_Comm_remote_group(W, &group));
    BAD(COMM, MPI_Intercomm_merge(W, 0, &comm));
    BAD(ARG, MPI_Comm_split_type(W, -77, 0, MPI_INFO_NULL, &comm));
    BAD(COMM, MPI_Comm_set_name(MPI_COMM_NULL, "x"));
    BAD(ARG, MPI_Comm_set_name(W, NULL));
    BAD(COMM, MPI_Comm_test_inter(MPI_COMM_NULL, &flag));
    BAD(KEYVAL, MPI_Comm_get_attr(W, MPI_KEYVAL_INVALID, &text, &flag));
    BAD(KEYVAL, MPI_Comm_set_attr(W, MPI_KEYVAL_INVALID, NULL));
    BAD(KEYVAL, MPI_Comm_delete_attr(W, MPI_KEYVAL_INVALID));
    number = MPI_TAG_UB;
    BAD(KEYVAL, MPI_Comm_free_keyval(&number));
    BAD(KEYVAL, MPI_Comm_set_attr(W, MPI_TAG_UB, NULL));
    BAD(ERRHANDLER, MPI_Comm_set_errhandler(W, MPI_ERRHANDLER_NULL));
    BAD(COMM, MPI_Comm_set_errhandler(MPI_COMM_NULL, MPI_ERRORS_RETURN));
    BAD(GROUP, MPI_Group_size(MPI_GROUP_NULL, &number));
    BAD(ARG, MPI_Group_size(world_group, NULL));
    BAD(GROUP, MPI_Group_union(world_group, MPI_GROUP_NULL, &group));
    ranks[0] = size;
    BAD(RANK, MPI_Group_incl(world_group, 1, ranks, &group));
    ranks[0] = 0;
    BAD(RANK, MPI_Group_incl(world_group, 2, ranks, &group));
    BAD(ARG, MPI_Group_incl(world_group, -1, ranks, &group));
    BAD(RANK, MPI_Group_excl(world_group, 2, ranks, &group));
    BAD(ARG, MPI_Group_range_incl(world_group, 1, range, &group));
    ranks[0] = size;
    BAD(RANK, MPI_Group_translate_ranks(world_group, 1, ranks, world_group, &number));
    group = MPI_GROUP_NULL;
    BAD(GROUP, MPI_Group_free(&group));
    SUCCEEDS(MPI_Group_free(&world_group));
}

static void topologies(void)
{
    MPI_Comm comm, line;
    int dims[2] = {1, 1}, periods[2] = {0, 0}, number, coords[2] = {5, 5}, index[1] = {0}, edges[1] = {0};
    SUCCEEDS(MPI_Cart_create(MPI_COMM_SELF, 1, dims, periods, 0, &line));
    BAD(COMM, MPI_Cart_create(MPI_COMM_NULL, 1, dims, periods, 0, &comm));
    BAD(DIMS, MPI_Cart_create(W, -1, dims, periods, 0, &comm));
    dims[0] = size + 1;
    BAD(DIMS, MPI_Cart_create(W, 1, dims, periods, 0, &comm));
    dims[0] = -1;
    BAD(DIMS, MPI_Cart_create(W, 1, dims, periods, 0, &comm));
    BAD(TOPOLOGY, MPI_Cart_get(W, 1, dims, periods, coords));
    BAD(TOPOLOGY, MPI_Cartdim_get(W, &number));
    BAD(TOPOLOGY, MPI_Cart_shift(W, 0, 1, &number, &number));
    BAD(ARG, MPI_Cart_shift(line, 4, 1, &number, &dims[0]));
    coords[0] = 5;
    BAD(ARG, MPI_Cart_rank(line, coords, &number));
    BAD(RANK, MPI_Cart_coords(line, 7, 1, coords));
    BAD(TOPOLOGY, MPI_Graphdims_get(W, &number, &number));
    BAD(TOPOLOGY, MPI_Graph_neighbors_count(W, 0, &number));
    BAD(ARG, MPI_Graph_create(W, -1, index, edges, 0, &comm));
    dims[0] = 0, dims[1] = 3;
    BAD(DIMS, MPI_Dims_create(4, 2, dims));
    BAD(TOPOLOGY, MPI_Dist_graph_neighbors_count(W, &number, &number, &number));
    BAD(TOPOLOGY, MPI_Neighbor_allgather(data, 1, MPI_INT, more, 1, MPI_INT, W));
    SUCCEEDS(MPI_Comm_free(&line));
}

static void types(void)
{
    MPI_Datatype type = MPI_DATATYPE_NULL, predefined = MPI_INT;
    int number, sizes[2] = {4, 4}, parts[2] = {2, 5}, starts[2] = {0, 0};
    MPI_Aint lower, extent, places[2] = {0, 0};
    MPI_Op op = MPI_SUM;
    int position = 0;
    BAD(TYPE, MPI_Type_size(MPI_DATATYPE_NULL, &number));
    BAD(ARG, MPI_Type_size(MPI_INT, NULL));
    BAD(TYPE, MPI_Type_get_extent(MPI_DATATYPE_NULL, &lower, &extent));
    BAD(TYPE, MPI_Type_commit(&type));
    BAD(TYPE, MPI_Type_free(&type));
    BAD(TYPE, MPI_Type_free(&predefined));
    BAD(COUNT, MPI_Type_contiguous(-1, MPI_INT, &type));
    BAD(TYPE, MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &type));
    BAD(COUNT, MPI_Type_vector(-1, 1, 1, MPI_INT, &type));
    BAD(ARG, MPI_Type_vector(1, -1, 1, MPI_INT, &type));
    BAD(COUNT, MPI_Type_indexed(-1, ones, zeros, MPI_INT, &type));
    BAD(ARG, MPI_Type_create_hindexed(1, (const int[]){-1}, places, MPI_INT, &type));
    BAD(ARG, MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type));
    BAD(ARG, MPI_Type_create_subarray(0, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type));
    parts[1] = 2;
    BAD(ARG, MPI_Type_create_subarray(2, sizes, parts, starts, -9, MPI_INT, &type));
    BAD(TYPE, MPI_Type_dup(MPI_DATATYPE_NULL, &type));
    BAD(TYPE, MPI_Type_create_resized(MPI_DATATYPE_NULL, 0, 8, &type));
    BAD(COUNT, MPI_Pack(data, -1, MPI_INT, more, sizeof more, &position, W));
    BAD(TRUNCATE, MPI_Pack(data, 4, MPI_INT, more, 4, &position, W));
    BAD(TRUNCATE, MPI_Unpack(data, 4, &position, more, 4, MPI_INT, W));
    BAD(COUNT, MPI_Pack_size(-1, MPI_INT, W, &number));
    BAD(OP, MPI_Op_free(&op));
    op = MPI_OP_NULL;
    BAD(OP, MPI_Op_free(&op));
    BAD(ARG, MPI_Op_commutative(MPI_SUM, NULL));
    BAD(OP, MPI_Op_commutative(MPI_OP_NULL, &number));
}

static void surroundings(void)
{
    MPI_Info info, null = MPI_INFO_NULL;
    int number, flag, class;
    char key[MPI_MAX_INFO_KEY + 20], text[MPI_MAX_ERROR_STRING];
    memset(key, 'k', sizeof key);
    key[sizeof key - 1] = 0;
    SUCCEEDS(MPI_Info_create(&info));
    BAD(INFO, MPI_Info_free(&null));
    BAD(INFO, MPI_Info_set(MPI_INFO_NULL, "a", "b"));
    BAD(INFO_KEY, MPI_Info_set(info, "", "b"));
    BAD(INFO_KEY, MPI_Info_set(info, key, "b"));
    BAD(INFO_KEY, MPI_Info_set(info, NULL, "b"));
    BAD(ARG, MPI_Info_set(info, "a", NULL));
    BAD(INFO_NOKEY, MPI_Info_delete(info, "absent"));
    BAD(INFO, MPI_Info_get_nkeys(MPI_INFO_NULL, &number));
    BAD(ARG, MPI_Info_get_nthkey(info, 3, key));
    BAD(ARG, MPI_Error_string(-12345, text, &number));
    BAD(ARG, MPI_Error_class(-12345, &class));
    BAD(ARG, MPI_Get_processor_name(NULL, &number));
    BAD(ARG, MPI_Initialized(NULL));
    BAD(ARG, MPI_Get_version(NULL, &number));
    BAD(ARG, MPI_Add_error_string(MPI_ERR_ARG, "x"));
    BAD(ARG, MPI_Alloc_mem(-1, MPI_INFO_NULL, &text));
    BAD(SESSION, MPI_Session_get_num_psets(MPI_SESSION_NULL, MPI_INFO_NULL, &number));
    BAD(INFO_KEY, MPI_Info_get_string(info, NULL, &number, key, &flag));
    SUCCEEDS(MPI_Info_free(&info));
}

static void all(void)
{
    SUCCEEDS(MPI_Type_contiguous(3, MPI_INT, &uncommitted));
    messages();
    completion();
    collectives();
    communicators();
    topologies();
    types();
    surroundings();
    SUCCEEDS(MPI_Type_free(&uncommitted));
    CHECK(wrong == 0);
}

static void print(void)
{
    printing = 1;
    signal(SIGSEGV, crash);
    signal(SIGFPE, crash);
    all();
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {{"check", all}, {"print", print}, {NULL, NULL}};
    return play(argc, argv, scenarios);
}
