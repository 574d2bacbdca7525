/* Handles and tags are not reused while anything refers to them, nor soon after. */
#include "mpi_check.h"

/* More objects, one after the other, than a slot of the library's tables has handles. */
enum { OBJECTS = 200 };

/* Frees one object, then makes and frees many others: none of them may have the handle of the first. */
#define COMES_NOT_AGAIN(type, make, free)                                                      \
    do {                                                                                       \
        type made, old;                                                                        \
        SUCCEEDS(make);                                                                        \
        old = made;                                                                            \
        SUCCEEDS(free);                                                                        \
        for (int i = 0; i < OBJECTS; i++) {                                                    \
            SUCCEEDS(make);                                                                    \
            CHECK(made != old);                                                                \
            SUCCEEDS(free);                                                                    \
        }                                                                                      \
    } while (0)

static void on_error(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
}

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)count, (void)type;
}

static int query(void *state, MPI_Status *status)
{
    (void)state;
    MPI_Status_set_elements(status, MPI_BYTE, 0);
    MPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}

static int freed(void *state)
{
    (void)state;
    return MPI_SUCCESS;
}

static int cancelled(void *state, int complete)
{
    (void)state, (void)complete;
    return MPI_SUCCESS;
}

static int complete(MPI_Request *request)
{
    SUCCEEDS(MPI_Grequest_complete(*request));
    return MPI_Wait(request, MPI_STATUS_IGNORE);
}

static void handles(void)
{
    MPI_Group world;
    SUCCEEDS(MPI_Comm_group(MPI_COMM_WORLD, &world));
    COMES_NOT_AGAIN(MPI_Comm, MPI_Comm_dup(MPI_COMM_SELF, &made), MPI_Comm_free(&made));
    COMES_NOT_AGAIN(MPI_Group, MPI_Group_incl(world, 1, &(int){0}, &made), MPI_Group_free(&made));
    COMES_NOT_AGAIN(MPI_Datatype, MPI_Type_contiguous(3, MPI_INT, &made), MPI_Type_free(&made));
    COMES_NOT_AGAIN(MPI_Info, MPI_Info_create(&made), MPI_Info_free(&made));
    COMES_NOT_AGAIN(MPI_Op, MPI_Op_create(add, 1, &made), MPI_Op_free(&made));
    COMES_NOT_AGAIN(MPI_Errhandler, MPI_Comm_create_errhandler(on_error, &made),
                    MPI_Errhandler_free(&made));
    COMES_NOT_AGAIN(MPI_Win, MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_SELF, &made),
                    MPI_Win_free(&made));
    COMES_NOT_AGAIN(MPI_Session, MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &made),
                    MPI_Session_finalize(&made));
    COMES_NOT_AGAIN(MPI_Request, MPI_Grequest_start(query, freed, cancelled, NULL, &made),
                    complete(&made));
    SUCCEEDS(MPI_Group_free(&world));
}

/* A request refers to its communicator by handle, which must not be reused until the request is complete. */
static void pending(void)
{
    MPI_Comm made, old;
    MPI_Request request;
    SUCCEEDS(MPI_Comm_dup(MPI_COMM_SELF, &made));
    old = made;
    SUCCEEDS(MPI_Irecv(NULL, 0, MPI_INT, 0, 1, made, &request));
    SUCCEEDS(MPI_Comm_free(&made));
    for (int i = 0; i < OBJECTS; i++) {
        SUCCEEDS(MPI_Comm_dup(MPI_COMM_SELF, &made));
        CHECK(made != old);
        SUCCEEDS(MPI_Comm_free(&made));
    }
    SUCCEEDS(MPI_Cancel(&request));
    SUCCEEDS(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

/* ---- persistent collectives ------------------------------------------------------------------ */

static MPI_Comm without_neighbours(void)
{
    MPI_Comm made;
    SUCCEEDS(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_UNWEIGHTED, 0, NULL,
                                            MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made));
    SUCCEEDS(MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN));
    return made;
}

static MPI_Request exchange(MPI_Comm comm, int *given, int *taken)
{
    static const int counts[2] = {1, 1}, places[2] = {0, sizeof(int)};
    static MPI_Datatype types[2];
    types[0] = types[1] = MPI_INT;
    MPI_Request made;
    SUCCEEDS(MPI_Alltoallw_init(given, counts, places, types, taken, counts, places, types, comm,
                                MPI_INFO_NULL, &made));
    return made;
}

/*
 * Two persistent collectives on one communicator, between which so many others are made that the library's tags wrap
 * around. Each process starts the two in another order.
 */
static void persistent(void)
{
    enum { COLLECTIVES_BETWEEN = (1 << 19) - 1 };
    MPI_Comm comm = without_neighbours();
    int given[2][2] = {{10 + me, 10 + me}, {20 + me, 20 + me}}, taken[2][2] = {{0}};
    MPI_Request both[2];
    both[0] = exchange(comm, given[0], taken[0]);
    for (int i = 0; i < COLLECTIVES_BETWEEN; i++)
        SUCCEEDS(MPI_Neighbor_allgather(NULL, 0, MPI_INT, NULL, 0, MPI_INT, comm));
    both[1] = exchange(comm, given[1], taken[1]);
    SUCCEEDS(MPI_Start(&both[me]));
    SUCCEEDS(MPI_Start(&both[1 - me]));
    SUCCEEDS(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    for (int from = 0; from < 2; from++)
        CHECK(taken[0][from] == 10 + from && taken[1][from] == 20 + from);
    for (int i = 0; i < 2; i++)
        SUCCEEDS(MPI_Request_free(&both[i]));
    SUCCEEDS(MPI_Comm_free(&comm));
}

/* ---- partitioned messages -------------------------------------------------------------------- */

static void init(int tag, MPI_Count partitions, MPI_Count count, int *from, int *to, MPI_Request *both)
{
    SUCCEEDS(MPI_Psend_init(from, (int)partitions, count, MPI_INT, 0, tag, MPI_COMM_SELF,
                            MPI_INFO_NULL, &both[0]));
    SUCCEEDS(MPI_Precv_init(to, 1, count, MPI_INT, 0, tag, MPI_COMM_SELF, MPI_INFO_NULL, &both[1]));
}

/* A persistent send keeps its tags, even if others use up all the remaining ones. */
static void partitions(void)
{
    enum { MAX_PARTITIONS = 1 << 28 };
    MPI_Request first[2], others[2], last[2];
    int from[2] = {1, 2}, to[2] = {0, 0}, there = 1;
    init(1, 1, 1, &from[0], &to[0], first);
    init(2, MAX_PARTITIONS - 1, 0, NULL, NULL, others);
    SUCCEEDS(MPI_Request_free(&others[0]));
    SUCCEEDS(MPI_Request_free(&others[1]));
    init(3, 1, 1, &from[1], &to[1], last);
    SUCCEEDS(MPI_Start(&last[1]));
    /* It receives the sender's announcement, and waits for the partition from here on. */
    SUCCEEDS(MPI_Parrived(last[1], 0, &there));
    CHECK(!there);
    SUCCEEDS(MPI_Startall(2, first));
    SUCCEEDS(MPI_Pready(0, first[0]));
    SUCCEEDS(MPI_Waitall(2, first, MPI_STATUSES_IGNORE));
    CHECK(to[0] == 1 && to[1] == 0);
    SUCCEEDS(MPI_Start(&last[0]));
    SUCCEEDS(MPI_Pready(0, last[0]));
    SUCCEEDS(MPI_Waitall(2, last, MPI_STATUSES_IGNORE));
    CHECK(to[1] == 2);
    for (int i = 0; i < 2; i++) {
        SUCCEEDS(MPI_Request_free(&first[i]));
        SUCCEEDS(MPI_Request_free(&last[i]));
    }
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"handles", handles},
        {"pending", pending},
        {"persistent", persistent},
        {"partitions", partitions},
        {NULL, NULL},
    };
    return play(argc, argv, scenarios);
}
