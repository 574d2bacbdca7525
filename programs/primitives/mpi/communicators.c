/* Communicators that are created and freed. The number of tasks of each is checked by MPI_Comm_size in the timed part,
 * and by a sum over the communicator before the clock starts.
 *
 * comm-dup, comm-idup, comm-split, comm-create-group, cart-create, dist-graph-create: with all tasks, or with every
 * second one. intercomm-create, intercomm-merge: with two halves, the tasks of even and of odd rank. comm-dup-many:
 * as many as the size says are created, and then all are freed. */
#ifdef ENV_MPI
#include "expect.h"

enum { TAG_GROUP = 21, TAG_BRIDGE = 22, MAX_COMMUNICATORS = 1000 };

static void communicator_check(MPI_Comm comm, int expected, const char *call)
{
    int size, one = 1, sum;
    MPI_Comm_size(comm, &size);
    EXPECT(size == expected, call, "the new communicator has another number of tasks");
    if (payload_whole) {
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
        EXPECT(sum == expected, call, "a sum over the new communicator is wrong");
    }
}

/* Returns the number of tasks whose rank has the parity of this task's. */
static int communicator_half(void)
{
    return me % 2 ? tasks / 2 : (tasks + 1) / 2;
}

static void comm_dup(size_t bytes, long n)
{
    (void)bytes;
    for (long i = 0; i < n; i++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        communicator_check(comm, tasks, "MPI_Comm_dup");
        MPI_Comm_free(&comm);
    }
}

static void comm_idup(size_t bytes, long n)
{
    (void)bytes;
    for (long i = 0; i < n; i++) {
        MPI_Comm comm;
        MPI_Request request;
        MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        communicator_check(comm, tasks, "MPI_Comm_idup");
        MPI_Comm_free(&comm);
    }
}

static void comm_dup_many(size_t number, long n)
{
    static MPI_Comm comms[MAX_COMMUNICATORS];
    EXPECT(number <= MAX_COMMUNICATORS, "comm-dup-many", "it has no room for so many communicators");
    for (long i = 0; i < n; i++) {
        for (size_t k = 0; k < number; k++)
            MPI_Comm_dup(MPI_COMM_WORLD, &comms[k]);
        communicator_check(comms[number - 1], tasks, "MPI_Comm_dup");
        for (size_t k = 0; k < number; k++)
            MPI_Comm_free(&comms[k]);
    }
}

static void comm_split(size_t bytes, long n)
{
    (void)bytes;
    for (long i = 0; i < n; i++) {
        MPI_Comm comm;
        MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &comm);
        communicator_check(comm, communicator_half(), "MPI_Comm_split");
        MPI_Comm_free(&comm);
    }
}

static void comm_create_group(size_t bytes, long n)
{
    MPI_Group group;
    (void)bytes;
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    for (long i = 0; i < n; i++) {
        MPI_Comm comm;
        MPI_Comm_create_group(MPI_COMM_WORLD, group, TAG_GROUP, &comm);
        communicator_check(comm, tasks, "MPI_Comm_create_group");
        MPI_Comm_free(&comm);
    }
    MPI_Group_free(&group);
}

static void cart_create(size_t bytes, long n)
{
    int extent = tasks, periodic = 1;
    (void)bytes;
    for (long i = 0; i < n; i++) {
        MPI_Comm comm;
        MPI_Cart_create(MPI_COMM_WORLD, 1, &extent, &periodic, 0, &comm);
        communicator_check(comm, tasks, "MPI_Cart_create");
        MPI_Comm_free(&comm);
    }
}

static void dist_graph_create(size_t bytes, long n)
{
    int left = (me + tasks - 1) % tasks, right = (me + 1) % tasks;
    (void)bytes;
    for (long i = 0; i < n; i++) {
        MPI_Comm comm;
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &left, MPI_UNWEIGHTED, 1, &right, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                       &comm);
        communicator_check(comm, tasks, "MPI_Dist_graph_create_adjacent");
        MPI_Comm_free(&comm);
    }
}

/* The tasks with this task's parity, and the intercommunicator of both halves. Created once and freed at the end. */
static MPI_Comm half_comm = MPI_COMM_NULL, bridge_comm = MPI_COMM_NULL;

static void bridge_free(void)
{
    MPI_Comm_free(&bridge_comm);
    MPI_Comm_free(&half_comm);
}

static void bridge_make(MPI_Comm *bridge)
{
    MPI_Intercomm_create(half_comm, 0, MPI_COMM_WORLD, me % 2 ? 0 : 1, TAG_BRIDGE, bridge);
}

/* Creates both halves and the intercommunicator between them, if they do not exist yet. */
static void bridge_open(void)
{
    if (half_comm != MPI_COMM_NULL)
        return;
    MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &half_comm);
    bridge_make(&bridge_comm);
    env_before_finalize(bridge_free);
}

static void intercomm_create(size_t bytes, long n)
{
    (void)bytes;
    bridge_open();
    for (long i = 0; i < n; i++) {
        MPI_Comm comm;
        int others;
        bridge_make(&comm);
        MPI_Comm_remote_size(comm, &others);
        EXPECT(others == tasks - communicator_half(), "MPI_Intercomm_create", "the other side has another number of tasks");
        MPI_Comm_free(&comm);
    }
}

static void intercomm_merge(size_t bytes, long n)
{
    (void)bytes;
    bridge_open();
    for (long i = 0; i < n; i++) {
        MPI_Comm comm;
        MPI_Intercomm_merge(bridge_comm, me % 2, &comm);
        communicator_check(comm, tasks, "MPI_Intercomm_merge");
        MPI_Comm_free(&comm);
    }
}

/* Each half gets the sum over the other one. */
static void inter_allreduce(size_t bytes, long n)
{
    double *in = (double *)payload_a, *out = (double *)payload_b, others = 0;
    int count = (int)(bytes / sizeof *in);
    bridge_open();
    for (int r = 0; r < tasks; r++)
        others += r % 2 != me % 2 ? r + 1 : 0;
    for (int k = 0; k < count; k++)
        in[k] = me + 1;
    for (long i = 0; i < n; i++) {
        out[0] = out[count - 1] = -1;
        MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, bridge_comm);
        EXPECT(out[0] == others && out[count - 1] == others, "MPI_Allreduce", "the sum over the other side is wrong");
    }
}

OPERATION(comm_dup, .name = "comm-dup", .run = comm_dup, .parts = 1)
OPERATION(comm_idup, .name = "comm-idup", .run = comm_idup, .parts = 1)
OPERATION(comm_dup_many, .name = "comm-dup-many", .run = comm_dup_many, .parts = 1, .unit = 1)
OPERATION(comm_split, .name = "comm-split", .run = comm_split, .parts = 1)
OPERATION(comm_create_group, .name = "comm-create-group", .run = comm_create_group, .parts = 1)
OPERATION(cart_create, .name = "cart-create", .run = cart_create, .parts = 1)
OPERATION(dist_graph_create, .name = "dist-graph-create", .run = dist_graph_create, .parts = 1)
OPERATION(intercomm_create, .name = "intercomm-create", .run = intercomm_create, .parts = 1)
OPERATION(intercomm_merge, .name = "intercomm-merge", .run = intercomm_merge, .parts = 1)
OPERATION(inter_allreduce, .name = "inter-allreduce", .run = inter_allreduce, .parts = 1, .unit = 8)
#endif
