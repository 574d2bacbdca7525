/*
 * Arguments that are not significant in a call must not be read: these addresses are unmapped, and the handles invalid.
 */
#include "mpi_check.h"

/* An unmapped address, unknown to the compiler, and invalid handles. */
static void *volatile nowhere = (void *)8;
#define NOWHERE nowhere
#define INTS ((int *)nowhere)
#define TYPES ((MPI_Datatype *)nowhere)
#define TEXT ((char *)nowhere)
#define TYPE ((MPI_Datatype)(MPI_Aint)0x7ffffff1)
#define COMM ((MPI_Comm)(MPI_Aint)0x7ffffff1)
#define INFO ((MPI_Info)(MPI_Aint)0x7ffffff1)

enum { most = 8 };

/* Makes a call in its blocking, its nonblocking and its persistent form. */
#define ALL_FORMS(name, ...)                                                                   \
    do {                                                                                       \
        MPI_Request request_;                                                                  \
        SUCCEEDS(MPI_##name(__VA_ARGS__));                                                     \
        SUCCEEDS(MPI_I##name(__VA_ARGS__, &request_));                                         \
        SUCCEEDS(MPI_Wait(&request_, MPI_STATUS_IGNORE));                                      \
        SUCCEEDS(MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, &request_));                    \
        SUCCEEDS(MPI_Start(&request_));                                                        \
        SUCCEEDS(MPI_Wait(&request_, MPI_STATUS_IGNORE));                                      \
        SUCCEEDS(MPI_Request_free(&request_));                                                 \
    } while (0)
/* Function names begin with a capital letter, except after MPI_I. */
#define MPI_IGather MPI_Igather
#define MPI_IGatherv MPI_Igatherv
#define MPI_IScatter MPI_Iscatter
#define MPI_IScatterv MPI_Iscatterv
#define MPI_IReduce MPI_Ireduce
#define MPI_IBcast MPI_Ibcast
#define MPI_IAllgather MPI_Iallgather
#define MPI_IAllgatherv MPI_Iallgatherv
#define MPI_IAlltoall MPI_Ialltoall
#define MPI_IAlltoallv MPI_Ialltoallv
#define MPI_IAlltoallw MPI_Ialltoallw
#define MPI_INeighbor_alltoallw MPI_Ineighbor_alltoallw
#define MPI_INeighbor_alltoallv MPI_Ineighbor_alltoallv
#define MPI_INeighbor_allgatherv MPI_Ineighbor_allgatherv

/* Arguments that are significant only at the root. */
static void rooted(void)
{
    int one = me, all[most], counts[most], places[most], root = size - 1;
    for (int i = 0; i < size; i++)
        counts[i] = 1, places[i] = i, all[i] = i;
    if (me != root) {
        ALL_FORMS(Gather, &one, 1, MPI_INT, NOWHERE, -5, TYPE, root, MPI_COMM_WORLD);
        ALL_FORMS(Gatherv, &one, 1, MPI_INT, NOWHERE, INTS, INTS, TYPE, root, MPI_COMM_WORLD);
        ALL_FORMS(Scatter, NOWHERE, -5, TYPE, &one, 1, MPI_INT, root, MPI_COMM_WORLD);
        CHECK(one == me);
        ALL_FORMS(Scatterv, NOWHERE, INTS, INTS, TYPE, &one, 1, MPI_INT, root, MPI_COMM_WORLD);
        CHECK(one == me);
        ALL_FORMS(Reduce, &one, NOWHERE, 1, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
        return;
    }
    /* The root's own part is already in place. */
    int sum = 0;
    ALL_FORMS(Gather, MPI_IN_PLACE, -5, TYPE, all, 1, MPI_INT, root, MPI_COMM_WORLD);
    ALL_FORMS(Gatherv, MPI_IN_PLACE, -5, TYPE, all, counts, places, MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++)
        CHECK(all[i] == i);
    ALL_FORMS(Scatter, all, 1, MPI_INT, MPI_IN_PLACE, -5, TYPE, root, MPI_COMM_WORLD);
    ALL_FORMS(Scatterv, all, counts, places, MPI_INT, MPI_IN_PLACE, -5, TYPE, root, MPI_COMM_WORLD);
    ALL_FORMS(Reduce, &one, &sum, 1, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
    CHECK(sum == size * (size - 1) / 2);
}

/* Arguments of the data to send are not significant in place. */
static void in_place(void)
{
    int all[most], counts[most], places[most], bytes[most];
    MPI_Datatype types[most];
    for (int i = 0; i < size; i++)
        counts[i] = 1, places[i] = i, bytes[i] = i * (int)sizeof(int), types[i] = MPI_INT, all[i] = me;
    ALL_FORMS(Allgather, MPI_IN_PLACE, -5, TYPE, all, 1, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++)
        CHECK(all[i] == (i == me ? me : i));
    ALL_FORMS(Allgatherv, MPI_IN_PLACE, -5, TYPE, all, counts, places, MPI_INT, MPI_COMM_WORLD);
    ALL_FORMS(Alltoall, MPI_IN_PLACE, -5, TYPE, all, 1, MPI_INT, MPI_COMM_WORLD);
    ALL_FORMS(Alltoallv, MPI_IN_PLACE, INTS, INTS, TYPE, all, counts, places, MPI_INT, MPI_COMM_WORLD);
    ALL_FORMS(Alltoallw, MPI_IN_PLACE, INTS, INTS, TYPES, all, counts, bytes, types, MPI_COMM_WORLD);
    ALL_FORMS(Alltoallw, MPI_IN_PLACE, NULL, NULL, NULL, all, counts, bytes, types, MPI_COMM_WORLD);
}

/* Intercommunicators: even processes, of which the first is the root, and odd ones. */
static void between(void)
{
    MPI_Comm local, inter;
    int one = me, all[most], counts[most], places[most], remote, rank;
    SUCCEEDS(MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &local));
    SUCCEEDS(MPI_Comm_rank(local, &rank));
    /* Only the leaders know the bridge communicator and the remote leader. */
    if (rank == 0)
        SUCCEEDS(MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 1 - me % 2, 9, &inter));
    else
        SUCCEEDS(MPI_Intercomm_create(local, 0, COMM, -77, 9, &inter));
    SUCCEEDS(MPI_Comm_remote_size(inter, &remote));
    for (int i = 0; i < most; i++)
        counts[i] = 1, places[i] = i, all[i] = i;
    if (me % 2) {
        ALL_FORMS(Bcast, &one, 1, MPI_INT, 0, inter);
        CHECK(one == 0);
        ALL_FORMS(Gather, &one, 1, MPI_INT, NOWHERE, -5, TYPE, 0, inter);
        ALL_FORMS(Gatherv, &one, 1, MPI_INT, NOWHERE, INTS, INTS, TYPE, 0, inter);
        ALL_FORMS(Scatter, NOWHERE, -5, TYPE, &one, 1, MPI_INT, 0, inter);
        ALL_FORMS(Scatterv, NOWHERE, INTS, INTS, TYPE, &one, 1, MPI_INT, 0, inter);
        ALL_FORMS(Reduce, &one, NOWHERE, 1, MPI_INT, MPI_SUM, 0, inter);
    } else if (rank == 0) {
        ALL_FORMS(Bcast, &one, 1, MPI_INT, MPI_ROOT, inter);
        ALL_FORMS(Gather, NOWHERE, -5, TYPE, all, 1, MPI_INT, MPI_ROOT, inter);
        ALL_FORMS(Gatherv, NOWHERE, -5, TYPE, all, counts, places, MPI_INT, MPI_ROOT, inter);
        ALL_FORMS(Scatter, all, 1, MPI_INT, NOWHERE, -5, TYPE, MPI_ROOT, inter);
        ALL_FORMS(Scatterv, all, counts, places, MPI_INT, NOWHERE, -5, TYPE, MPI_ROOT, inter);
        ALL_FORMS(Reduce, NOWHERE, &one, 1, MPI_INT, MPI_SUM, MPI_ROOT, inter);
    } else {
        ALL_FORMS(Bcast, NOWHERE, -5, TYPE, MPI_PROC_NULL, inter);
        ALL_FORMS(Gather, NOWHERE, -5, TYPE, NOWHERE, -5, TYPE, MPI_PROC_NULL, inter);
        ALL_FORMS(Gatherv, NOWHERE, -5, TYPE, NOWHERE, INTS, INTS, TYPE, MPI_PROC_NULL, inter);
        ALL_FORMS(Scatter, NOWHERE, -5, TYPE, NOWHERE, -5, TYPE, MPI_PROC_NULL, inter);
        ALL_FORMS(Scatterv, NOWHERE, INTS, INTS, TYPE, NOWHERE, -5, TYPE, MPI_PROC_NULL, inter);
        ALL_FORMS(Reduce, NOWHERE, NOWHERE, 1, MPI_INT, MPI_SUM, MPI_PROC_NULL, inter);
    }
    SUCCEEDS(MPI_Comm_free(&inter));
    SUCCEEDS(MPI_Comm_free(&local));
}

/* Calls with MPI_PROC_NULL access no memory. */
static void nobody(void)
{
    MPI_Status status;
    MPI_Request request;
    MPI_Message message;
    int flag;
    SUCCEEDS(MPI_Send(NOWHERE, 3, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Ssend(NOWHERE, 3, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Bsend(NOWHERE, 3, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Recv(NOWHERE, 3, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status));
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
    SUCCEEDS(MPI_Recv(NOWHERE, 3, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    /* Nothing is packed either. */
    MPI_Datatype apart;
    SUCCEEDS(MPI_Type_vector(200, 1, 2, MPI_INT, &apart));
    SUCCEEDS(MPI_Type_commit(&apart));
    SUCCEEDS(MPI_Send(NOWHERE, 3, apart, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Ssend(NOWHERE, 3, apart, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Bsend(NOWHERE, 3, apart, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Recv(NOWHERE, 3, apart, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status));
    SUCCEEDS(MPI_Issend(NOWHERE, 3, apart, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request));
    SUCCEEDS(MPI_Wait(&request, &status));
    SUCCEEDS(MPI_Sendrecv(NOWHERE, 1, apart, MPI_PROC_NULL, 0, NOWHERE, 1, apart, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status));
    SUCCEEDS(MPI_Sendrecv_replace(NOWHERE, 1, apart, MPI_PROC_NULL, 0, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status));
    SUCCEEDS(MPI_Bsend_init(NOWHERE, 3, apart, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request));
    SUCCEEDS(MPI_Start(&request));
    SUCCEEDS(MPI_Wait(&request, &status));
    SUCCEEDS(MPI_Request_free(&request));
    SUCCEEDS(MPI_Psend_init(NOWHERE, 2, 3, apart, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    SUCCEEDS(MPI_Start(&request));
    SUCCEEDS(MPI_Pready_range(0, 1, request));
    SUCCEEDS(MPI_Wait(&request, &status));
    SUCCEEDS(MPI_Request_free(&request));
    SUCCEEDS(MPI_Precv_init(NOWHERE, 2, 3, apart, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    SUCCEEDS(MPI_Start(&request));
    SUCCEEDS(MPI_Wait(&request, &status));
    SUCCEEDS(MPI_Request_free(&request));
    SUCCEEDS(MPI_Type_free(&apart));
    SUCCEEDS(MPI_Isend(NOWHERE, 3, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request));
    SUCCEEDS(MPI_Wait(&request, &status));
    SUCCEEDS(MPI_Irecv(NOWHERE, 3, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request));
    SUCCEEDS(MPI_Wait(&request, &status));
    SUCCEEDS(MPI_Sendrecv(NOWHERE, 1, MPI_INT, MPI_PROC_NULL, 0, NOWHERE, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status));
    SUCCEEDS(MPI_Sendrecv_replace(NOWHERE, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status));
    SUCCEEDS(MPI_Send_init(NOWHERE, 3, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request));
    SUCCEEDS(MPI_Start(&request));
    SUCCEEDS(MPI_Wait(&request, &status));
    SUCCEEDS(MPI_Request_free(&request));
    SUCCEEDS(MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &message, &status));
    CHECK(message == MPI_MESSAGE_NO_PROC);
    SUCCEEDS(MPI_Mrecv(NOWHERE, 3, MPI_INT, &message, &status));
    SUCCEEDS(MPI_Improbe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &flag, &message, &status));
    SUCCEEDS(MPI_Imrecv(NOWHERE, 3, MPI_INT, &message, &request));
    SUCCEEDS(MPI_Wait(&request, &status));

    long long memory[4] = {0}, got = 0;
    MPI_Win win;
    SUCCEEDS(MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    SUCCEEDS(MPI_Win_fence(0, win));
    SUCCEEDS(MPI_Put(NOWHERE, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win));
    SUCCEEDS(MPI_Get(NOWHERE, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win));
    SUCCEEDS(MPI_Accumulate(NOWHERE, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, MPI_SUM, win));
    SUCCEEDS(MPI_Get_accumulate(NOWHERE, 1, MPI_INT, NOWHERE, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, MPI_SUM, win));
    SUCCEEDS(MPI_Fetch_and_op(NOWHERE, NOWHERE, MPI_INT, MPI_PROC_NULL, 0, MPI_SUM, win));
    SUCCEEDS(MPI_Compare_and_swap(NOWHERE, NOWHERE, NOWHERE, MPI_INT, MPI_PROC_NULL, 0, win));
    /* A fetch with MPI_NO_OP does not read the origin buffer. */
    SUCCEEDS(MPI_Get_accumulate(NOWHERE, -5, TYPE, &got, 1, MPI_LONG_LONG, me, 8, 1, MPI_LONG_LONG, MPI_NO_OP, win));
    SUCCEEDS(MPI_Fetch_and_op(NOWHERE, &got, MPI_LONG_LONG, me, 16, MPI_NO_OP, win));
    SUCCEEDS(MPI_Win_fence(0, win));
    SUCCEEDS(MPI_Win_free(&win));
}

/* Arrays and buffers without elements may have any address. */
static void empty(void)
{
    int count = -1, flag = -1, indices[1] = {-1}, zero[most] = {0}, rank;
    MPI_Datatype type, kept[most];
    MPI_Group world, group;
    MPI_Comm comm;
    MPI_Request request;
    MPI_Win win;
    for (int i = 0; i < most; i++)
        kept[i] = MPI_INT;
    int next = (me + 1) % size, before = (me + size - 1) % size;
    SUCCEEDS(MPI_Sendrecv(NOWHERE, 0, MPI_INT, next, 0, NOWHERE, 0, MPI_INT, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_Sendrecv(NULL, 0, MPI_INT, next, 0, NULL, 0, MPI_INT, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    ALL_FORMS(Bcast, NOWHERE, 0, MPI_INT, 0, MPI_COMM_WORLD);
    ALL_FORMS(Gather, NOWHERE, 0, MPI_INT, NOWHERE, 0, MPI_INT, 0, MPI_COMM_WORLD);
    ALL_FORMS(Allgather, NOWHERE, 0, MPI_INT, NOWHERE, 0, MPI_INT, MPI_COMM_WORLD);
    ALL_FORMS(Alltoall, NULL, 0, MPI_INT, NULL, 0, MPI_INT, MPI_COMM_WORLD);
    ALL_FORMS(Alltoallv, NULL, zero, zero, MPI_INT, NULL, zero, zero, MPI_INT, MPI_COMM_WORLD);
    ALL_FORMS(Alltoallw, NULL, zero, zero, kept, NULL, zero, zero, kept, MPI_COMM_WORLD);
    ALL_FORMS(Reduce, NULL, NULL, 0, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    SUCCEEDS(MPI_Allreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Scan(NULL, NULL, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Waitall(0, NULL, NULL));
    SUCCEEDS(MPI_Waitall(0, NOWHERE, NOWHERE));
    SUCCEEDS(MPI_Testall(0, NULL, &flag, NULL));
    CHECK(flag == 1);
    SUCCEEDS(MPI_Waitany(0, NOWHERE, indices, MPI_STATUS_IGNORE));
    CHECK(indices[0] == MPI_UNDEFINED);
    SUCCEEDS(MPI_Testany(0, NOWHERE, indices, &flag, MPI_STATUS_IGNORE));
    CHECK(indices[0] == MPI_UNDEFINED && flag == 1);
    SUCCEEDS(MPI_Waitsome(0, NOWHERE, &count, NOWHERE, NOWHERE));
    CHECK(count == MPI_UNDEFINED);
    SUCCEEDS(MPI_Testsome(0, NOWHERE, &count, NOWHERE, NOWHERE));
    CHECK(count == MPI_UNDEFINED);
    SUCCEEDS(MPI_Startall(0, NOWHERE));

    SUCCEEDS(MPI_Comm_group(MPI_COMM_WORLD, &world));
    SUCCEEDS(MPI_Group_incl(world, 0, NOWHERE, &group));
    CHECK(group == MPI_GROUP_EMPTY);
    SUCCEEDS(MPI_Group_range_incl(world, 0, NOWHERE, &group));
    SUCCEEDS(MPI_Group_excl(world, 0, NOWHERE, &group));
    SUCCEEDS(MPI_Group_free(&group));
    SUCCEEDS(MPI_Group_range_excl(world, 0, NOWHERE, &group));
    SUCCEEDS(MPI_Group_translate_ranks(world, 0, NOWHERE, group, NOWHERE));
    SUCCEEDS(MPI_Group_free(&group));
    SUCCEEDS(MPI_Group_free(&world));

    SUCCEEDS(MPI_Type_indexed(0, NOWHERE, NOWHERE, MPI_INT, &type));
    SUCCEEDS(MPI_Type_free(&type));
    SUCCEEDS(MPI_Type_create_hindexed(0, NOWHERE, NOWHERE, MPI_INT, &type));
    SUCCEEDS(MPI_Type_free(&type));
    SUCCEEDS(MPI_Type_create_indexed_block(0, 1, NOWHERE, MPI_INT, &type));
    SUCCEEDS(MPI_Type_free(&type));
    SUCCEEDS(MPI_Type_create_struct(0, NOWHERE, NOWHERE, NOWHERE, &type));
    SUCCEEDS(MPI_Type_commit(&type));
    SUCCEEDS(MPI_Send(NOWHERE, 7, type, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Isend(NOWHERE, 7, type, me, 0, MPI_COMM_WORLD, &request));
    SUCCEEDS(MPI_Recv(NOWHERE, 7, type, me, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_Wait(&request, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_Type_free(&type));
    int position = 0, place = 0;
    SUCCEEDS(MPI_Pack(NOWHERE, 0, MPI_INT, NOWHERE, 0, &position, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Unpack(NOWHERE, 0, &position, NOWHERE, 0, MPI_INT, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Reduce_local(NOWHERE, NOWHERE, 0, MPI_INT, MPI_SUM));

    SUCCEEDS(MPI_Cart_create(MPI_COMM_WORLD, 0, NOWHERE, NOWHERE, 0, &comm));
    CHECK((comm == MPI_COMM_NULL) == (me != 0));
    if (comm != MPI_COMM_NULL) {
        SUCCEEDS(MPI_Cart_get(comm, 0, NOWHERE, NOWHERE, NOWHERE));
        SUCCEEDS(MPI_Cart_coords(comm, 0, 0, NOWHERE));
        SUCCEEDS(MPI_Cart_rank(comm, NOWHERE, &rank));
        SUCCEEDS(MPI_Comm_free(&comm));
    }
    SUCCEEDS(MPI_Dims_create(1, 0, NOWHERE));
    SUCCEEDS(MPI_Graph_create(MPI_COMM_WORLD, 0, NOWHERE, NOWHERE, 0, &comm));
    CHECK(comm == MPI_COMM_NULL);
    SUCCEEDS(MPI_Dist_graph_create(MPI_COMM_WORLD, 0, NOWHERE, NOWHERE, NOWHERE, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm));
    SUCCEEDS(MPI_Comm_free(&comm));
    SUCCEEDS(MPI_Dist_graph_create_adjacent(
        MPI_COMM_WORLD, 0, NOWHERE, MPI_UNWEIGHTED, 0, NOWHERE, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm));
    SUCCEEDS(MPI_Dist_graph_neighbors(comm, 0, NOWHERE, NOWHERE, 0, NOWHERE, NOWHERE));
    ALL_FORMS(Neighbor_allgatherv, NULL, 0, MPI_INT, NULL, NOWHERE, NOWHERE, MPI_INT, comm);
    ALL_FORMS(Neighbor_alltoallv, NULL, NOWHERE, NOWHERE, MPI_INT, NULL, NOWHERE, NOWHERE, MPI_INT, comm);
    ALL_FORMS(Neighbor_alltoallw, NULL, NOWHERE, NOWHERE, NOWHERE, NULL, NOWHERE, NOWHERE, NOWHERE, comm);
    SUCCEEDS(MPI_Comm_free(&comm));

    SUCCEEDS(MPI_Win_create(me == 0 ? &place : NOWHERE, me == 0 ? sizeof place : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    SUCCEEDS(MPI_Win_fence(0, win));
    SUCCEEDS(MPI_Put(NOWHERE, 0, MPI_INT, size - 1, 0, 0, MPI_INT, win));
    SUCCEEDS(MPI_Get(NOWHERE, 0, MPI_INT, 0, 0, 0, MPI_INT, win));
    SUCCEEDS(MPI_Win_fence(0, win));
    SUCCEEDS(MPI_Win_free(&win));
    MPI_Info info;
    SUCCEEDS(MPI_Info_create(&info));
    SUCCEEDS(MPI_Info_set(info, "key", "value"));
    int length = 0;
    SUCCEEDS(MPI_Info_get_string(info, "key", &length, NOWHERE, &flag));
    CHECK(length == 6 && flag);
    length = 9;
    SUCCEEDS(MPI_Info_get_string(info, "none", &length, NOWHERE, &flag));
    CHECK(!flag);
    SUCCEEDS(MPI_Info_free(&info));
}

/* Only the root knows the programs to spawn, or the port. */
static void processes(void)
{
    MPI_Comm children, parent;
    SUCCEEDS(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL) {
        SUCCEEDS(MPI_Comm_disconnect(&parent));
        return;
    }
    if (me == 0) {
        char *arguments[] = {"processes", NULL}, **both[] = {arguments, arguments}, *names[2] = {0};
        char name[4096] = {0};
        FILE *file = fopen("/proc/self/cmdline", "r");
        CHECK(file && fread(name, 1, sizeof name - 1, file) > 0);
        fclose(file);
        SUCCEEDS(MPI_Comm_spawn(name, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE));
        SUCCEEDS(MPI_Comm_disconnect(&children));
        names[0] = names[1] = name;
        MPI_Info infos[2] = {MPI_INFO_NULL, MPI_INFO_NULL};
        SUCCEEDS(MPI_Comm_spawn_multiple(
            2, names, both, (int[]){1, 1}, infos, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE));
    } else {
        SUCCEEDS(MPI_Comm_spawn(TEXT, NOWHERE, -5, INFO, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE));
        SUCCEEDS(MPI_Comm_disconnect(&children));
        SUCCEEDS(MPI_Comm_spawn_multiple(
            2, NOWHERE, NOWHERE, INTS, NOWHERE, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE));
    }
    SUCCEEDS(MPI_Comm_disconnect(&children));

    /* Half of the processes connect to the other half. */
    MPI_Comm half, others;
    char port[MPI_MAX_PORT_NAME];
    int rank;
    SUCCEEDS(MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &half));
    SUCCEEDS(MPI_Comm_rank(half, &rank));
    if (me == 0) {
        SUCCEEDS(MPI_Open_port(MPI_INFO_NULL, port));
        SUCCEEDS(MPI_Send(port, sizeof port, MPI_CHAR, 1, 0, MPI_COMM_WORLD));
    } else if (me == 1)
        SUCCEEDS(MPI_Recv(port, sizeof port, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    char *known = rank == 0 ? port : TEXT;
    MPI_Info info = rank == 0 ? MPI_INFO_NULL : INFO;
    if (me % 2)
        SUCCEEDS(MPI_Comm_connect(known, info, 0, half, &others));
    else
        SUCCEEDS(MPI_Comm_accept(known, info, 0, half, &others));
    SUCCEEDS(MPI_Comm_disconnect(&others));
    if (me == 0)
        SUCCEEDS(MPI_Close_port(port));
    SUCCEEDS(MPI_Comm_free(&half));
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"rooted", rooted}, {"in_place", in_place}, {"between", between}, {"nobody", nobody}, {"empty", empty},
        {"processes", processes}, {NULL, NULL},
    };
    return play(argc, argv, scenarios);
}
