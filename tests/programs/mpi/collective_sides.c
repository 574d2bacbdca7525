/* Collectives on intercommunicators and on neighbourhoods of topologies; blocking, nonblocking and persistent. */
#include "mpi_check.h"

#define MAX_PROCESSES 16

enum form { BLOCKING, STARTED, PERSISTENT, FORMS };

#define IN_FORM(form, blocking, started, kept, ...)                                          \
    do {                                                                                     \
        MPI_Request request_ = MPI_REQUEST_NULL;                                             \
        if (form == BLOCKING) {                                                              \
            SUCCEEDS(blocking(__VA_ARGS__));                                                 \
        } else if (form == STARTED) {                                                        \
            SUCCEEDS(started(__VA_ARGS__, &request_));                                       \
            SUCCEEDS(MPI_Wait(&request_, MPI_STATUS_IGNORE));                                \
        } else {                                                                             \
            SUCCEEDS(kept(__VA_ARGS__, MPI_INFO_NULL, &request_));                           \
            for (int round_ = 0; round_ < 2; round_++) {                                     \
                SUCCEEDS(MPI_Start(&request_));                                              \
                SUCCEEDS(MPI_Wait(&request_, MPI_STATUS_IGNORE));                            \
            }                                                                                \
            SUCCEEDS(MPI_Request_free(&request_));                                           \
        }                                                                                    \
        CHECK(request_ == MPI_REQUEST_NULL);                                                 \
    } while (0)

static MPI_Comm inter, own;
static int mine, here, there; /* the rank on this side, and the sizes of both sides */

static void sides(void)
{
    SUCCEEDS(MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &own));
    SUCCEEDS(MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, 1 - me % 2, 9, &inter));
    SUCCEEDS(MPI_Comm_rank(inter, &mine));
    SUCCEEDS(MPI_Comm_size(inter, &here));
    SUCCEEDS(MPI_Comm_remote_size(inter, &there));
}

/* Returns the world rank of a process of the other side. */
static int far(int rank)
{
    return 2 * rank + 1 - me % 2;
}

/* The root is the last process of the even side. */
static int at_root, root;
static void choose_root(void)
{
    int evens = me % 2 == 0 ? here : there;
    at_root = me == 2 * (evens - 1);
    root = me % 2 ? evens - 1 : at_root ? MPI_ROOT : MPI_PROC_NULL;
}

static void rooted(enum form form)
{
    int all[3 * MAX_PROCESSES], one[3], counts[MAX_PROCESSES], places[MAX_PROCESSES];
    int bcast[3] = {at_root ? 5 : 0, at_root ? 6 : 0, at_root ? 7 : 0};
    IN_FORM(form, MPI_Bcast, MPI_Ibcast, MPI_Bcast_init, bcast, 3, MPI_INT, root, inter);
    if (at_root || me % 2)
        CHECK(bcast[0] == 5 && bcast[1] == 6 && bcast[2] == 7);

    one[0] = me;
    one[1] = me * me;
    memset(all, 0xff, sizeof all);
    IN_FORM(form, MPI_Gather, MPI_Igather, MPI_Gather_init, one, 2, MPI_INT, all, 1, MPI_2INT, root, inter);
    for (int i = 0; at_root && i < there; i++)
        CHECK(all[2 * i] == far(i) && all[2 * i + 1] == far(i) * far(i));

    for (int i = 0; i < MAX_PROCESSES; i++) {
        counts[i] = i % 3;
        places[i] = 3 * i + 1;
    }
    memset(all, 0xff, sizeof all);
    one[0] = one[1] = one[2] = me;
    IN_FORM(form, MPI_Gatherv, MPI_Igatherv, MPI_Gatherv_init, one, mine % 3, MPI_INT, all, counts, places, MPI_INT, root,
            inter);
    for (int i = 0; at_root && i < there; i++)
        for (int k = 0; k < 2; k++)
            CHECK(all[3 * i + 1 + k] == (k < i % 3 ? far(i) : -1));

    for (int i = 0; i < 3 * MAX_PROCESSES; i++)
        all[i] = 100 + i;
    one[0] = one[1] = one[2] = -1;
    IN_FORM(form, MPI_Scatter, MPI_Iscatter, MPI_Scatter_init, all, 2, MPI_INT, one, 2, MPI_INT, root, inter);
    if (me % 2)
        CHECK(one[0] == 100 + 2 * mine && one[1] == 101 + 2 * mine && one[2] == -1);
    one[0] = one[1] = one[2] = -1;
    IN_FORM(form, MPI_Scatterv, MPI_Iscatterv, MPI_Scatterv_init, all, counts, places, MPI_INT, one, mine % 3, MPI_INT, root,
            inter);
    for (int k = 0; me % 2 && k < 3; k++)
        CHECK(one[k] == (k < mine % 3 ? 101 + 3 * mine + k : -1));

    int sum[2] = {-1, -1}, given[2] = {me, 1};
    IN_FORM(form, MPI_Reduce, MPI_Ireduce, MPI_Reduce_init, given, sum, 2, MPI_INT, MPI_SUM, root, inter);
    int wanted = 0;
    for (int i = 0; i < there; i++)
        wanted += far(i);
    CHECK(at_root ? sum[0] == wanted && sum[1] == there : sum[0] == -1 && sum[1] == -1);
}

static void exchanged(enum form form)
{
    int all[3 * MAX_PROCESSES], one[3 * MAX_PROCESSES], counts[MAX_PROCESSES], places[MAX_PROCESSES], bytes[MAX_PROCESSES];
    MPI_Datatype types[MAX_PROCESSES];
    IN_FORM(form, MPI_Barrier, MPI_Ibarrier, MPI_Barrier_init, inter);
    one[0] = me;
    one[1] = -me;
    memset(all, 0xff, sizeof all);
    IN_FORM(form, MPI_Allgather, MPI_Iallgather, MPI_Allgather_init, one, 2, MPI_INT, all, 2, MPI_INT, inter);
    for (int i = 0; i < there; i++)
        CHECK(all[2 * i] == far(i) && all[2 * i + 1] == -far(i));

    for (int i = 0; i < MAX_PROCESSES; i++) {
        counts[i] = i % 3;
        places[i] = 3 * i;
        bytes[i] = 4 * places[i];
        types[i] = MPI_INT;
    }
    for (int i = 0; i < 3 * MAX_PROCESSES; i++)
        one[i] = me;
    memset(all, 0xff, sizeof all);
    IN_FORM(form, MPI_Allgatherv, MPI_Iallgatherv, MPI_Allgatherv_init, one, mine % 3, MPI_INT, all, counts, places, MPI_INT,
            inter);
    for (int i = 0; i < there; i++)
        for (int k = 0; k < 3; k++)
            CHECK(all[3 * i + k] == (k < i % 3 ? far(i) : -1));

    for (int i = 0; i < there; i++)
        one[i] = 100 * me + i;
    memset(all, 0xff, sizeof all);
    IN_FORM(form, MPI_Alltoall, MPI_Ialltoall, MPI_Alltoall_init, one, 1, MPI_INT, all, 1, MPI_INT, inter);
    for (int i = 0; i < there; i++)
        CHECK(all[i] == 100 * far(i) + mine);

    /* Rank r sends (r + s) % 3 numbers to rank s. */
    for (int i = 0; i < MAX_PROCESSES; i++)
        counts[i] = (i + mine) % 3;
    for (int i = 0; i < 3 * MAX_PROCESSES; i++)
        one[i] = 1000 * me + i;
    for (int typed = 0; typed < 2; typed++) {
        memset(all, 0xff, sizeof all);
        if (typed)
            IN_FORM(form, MPI_Alltoallw, MPI_Ialltoallw, MPI_Alltoallw_init, one, counts, bytes, types, all, counts, bytes,
                    types, inter);
        else
            IN_FORM(form, MPI_Alltoallv, MPI_Ialltoallv, MPI_Alltoallv_init, one, counts, places, MPI_INT, all, counts,
                    places, MPI_INT, inter);
        for (int i = 0; i < there; i++)
            for (int k = 0; k < 3; k++)
                CHECK(all[3 * i + k] == (k < (i + mine) % 3 ? 1000 * far(i) + 3 * mine + k : -1));
    }
}

static void reduced(enum form form)
{
    int given[4 * MAX_PROCESSES], sums[4 * MAX_PROCESSES], wanted = 0, counts[MAX_PROCESSES];
    for (int i = 0; i < there; i++)
        wanted += far(i);
    for (int i = 0; i < 4 * MAX_PROCESSES; i++)
        given[i] = me + i;
    IN_FORM(form, MPI_Allreduce, MPI_Iallreduce, MPI_Allreduce_init, given, sums, 3, MPI_INT, MPI_SUM, inter);
    for (int i = 0; i < 3; i++)
        CHECK(sums[i] == wanted + i * there);

    /* Both sides have the same total. */
    int each = there, first = mine * each;
    memset(sums, 0xff, sizeof sums);
    IN_FORM(form, MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, MPI_Reduce_scatter_block_init, given, sums, each,
            MPI_INT, MPI_SUM, inter);
    for (int i = 0; i < each; i++)
        CHECK(sums[i] == wanted + (first + i) * there);
    CHECK(sums[each] == -1);
    for (int i = 0; i < here; i++)
        counts[i] = i == here - 1 ? here * there : 0;
    memset(sums, 0xff, sizeof sums);
    IN_FORM(form, MPI_Reduce_scatter, MPI_Ireduce_scatter, MPI_Reduce_scatter_init, given, sums, counts, MPI_INT, MPI_SUM,
            inter);
    for (int i = 0; i < counts[mine]; i++)
        CHECK(sums[i] == wanted + i * there);
    CHECK(sums[counts[mine]] == -1);
}

static void between(void)
{
    sides();
    choose_root();
    for (enum form form = BLOCKING; form < FORMS; form++) {
        rooted(form);
        exchanged(form);
        reduced(form);
    }
    int in[1], out[1];
    SUCCEEDS(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    FAILS(MPI_ERR_COMM, MPI_Scan(in, out, 1, MPI_INT, MPI_SUM, inter));
    FAILS(MPI_ERR_COMM, MPI_Exscan(in, out, 1, MPI_INT, MPI_SUM, inter));
    FAILS(MPI_ERR_ROOT, MPI_Bcast(in, 1, MPI_INT, there, inter));
    FAILS(MPI_ERR_BUFFER, MPI_Allreduce(MPI_IN_PLACE, out, 1, MPI_INT, MPI_SUM, inter));
    SUCCEEDS(MPI_Barrier(inter));
    SUCCEEDS(MPI_Comm_free(&inter));
    SUCCEEDS(MPI_Comm_free(&own));
}

/* While processes meet in their own group, the first processes of one side must send a result to the other side. */
static void crossing(void)
{
    sides();
    for (int round = 0; round < 200; round++) {
        int given = me + round, sum = -1, all = -1, wanted = there * round;
        MPI_Request request;
        for (int i = 0; i < there; i++)
            wanted += far(i);
        SUCCEEDS(MPI_Iallreduce(&given, &sum, 1, MPI_INT, MPI_SUM, inter, &request));
        if (me % 2)
            SUCCEEDS(MPI_Wait(&request, MPI_STATUS_IGNORE));
        SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
        SUCCEEDS(MPI_Allreduce(&given, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
        CHECK(all == size - 1 + round);
        SUCCEEDS(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(sum == wanted);
    }
}

/*
 * Runs all neighbourhood collectives. `sources` and `destinations` are lists of ranks. `slots` says for each
 * destination at which position there the data arrives.
 */
static void with_neighbours(MPI_Comm comm, int sources, const int *from, int destinations, const int *slots, int rank)
{
    int one[2], all[2 * MAX_PROCESSES], got[2 * MAX_PROCESSES], counts[MAX_PROCESSES], places[MAX_PROCESSES];
    MPI_Aint bytes[MAX_PROCESSES];
    MPI_Datatype types[MAX_PROCESSES];
    for (int i = 0; i < MAX_PROCESSES; i++) {
        counts[i] = 2;
        places[i] = 2 * i;
        bytes[i] = 8 * i;
        types[i] = MPI_INT;
    }
    for (enum form form = BLOCKING; form < FORMS; form++) {
        one[0] = rank;
        one[1] = rank * 3;
        for (int listed = 0; listed < 2; listed++) {
            memset(got, 0xff, sizeof got);
            if (listed)
                IN_FORM(form, MPI_Neighbor_allgatherv, MPI_Ineighbor_allgatherv, MPI_Neighbor_allgatherv_init, one, 2,
                        MPI_INT, got, counts, places, MPI_INT, comm);
            else
                IN_FORM(form, MPI_Neighbor_allgather, MPI_Ineighbor_allgather, MPI_Neighbor_allgather_init, one, 2, MPI_INT,
                        got, 2, MPI_INT, comm);
            for (int i = 0; i < sources; i++) {
                int nobody = from[i] == MPI_PROC_NULL;
                CHECK(got[2 * i] == (nobody ? -1 : from[i]) && got[2 * i + 1] == (nobody ? -1 : 3 * from[i]));
            }
        }
        for (int i = 0; i < destinations; i++) {
            all[2 * i] = rank;
            all[2 * i + 1] = slots[i];
        }
        for (int way = 0; way < 3; way++) {
            memset(got, 0xff, sizeof got);
            if (way == 0)
                IN_FORM(form, MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall, MPI_Neighbor_alltoall_init, all, 2, MPI_INT,
                        got, 2, MPI_INT, comm);
            else if (way == 1)
                IN_FORM(form, MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv, MPI_Neighbor_alltoallv_init, all, counts,
                        places, MPI_INT, got, counts, places, MPI_INT, comm);
            else
                IN_FORM(form, MPI_Neighbor_alltoallw, MPI_Ineighbor_alltoallw, MPI_Neighbor_alltoallw_init, all, counts,
                        bytes, types, got, counts, bytes, types, comm);
            for (int i = 0; i < sources; i++) {
                int nobody = from[i] == MPI_PROC_NULL;
                CHECK(got[2 * i] == (nobody ? -1 : from[i]) && got[2 * i + 1] == (nobody ? -1 : i));
            }
        }
    }
}

static void neighbours(void)
{
    MPI_Comm line, ring, graph;
    int rank, length = size, open = 0, closed = 1, from[2], across[2] = {1, 0};
    SUCCEEDS(MPI_Cart_create(MPI_COMM_WORLD, 1, &length, &open, 0, &line));
    SUCCEEDS(MPI_Comm_rank(line, &rank));
    SUCCEEDS(MPI_Cart_shift(line, 0, 1, &from[0], &from[1]));
    with_neighbours(line, 2, from, 2, across, rank);
    /* With one or two processes, the neighbours on both sides are the same process. */
    SUCCEEDS(MPI_Cart_create(MPI_COMM_WORLD, 1, &length, &closed, 0, &ring));
    SUCCEEDS(MPI_Cart_shift(ring, 0, 1, &from[0], &from[1]));
    with_neighbours(ring, 2, from, 2, across, rank);
    /* Two edges to the next process, one to the one after it. */
    int next = (me + 1) % size, second = (me + 2) % size, before = (me + size - 1) % size, long_before = (me + 2 * size - 2) % size;
    int sources[3] = {before, before, long_before}, destinations[3] = {next, next, second}, slots[3] = {0, 1, 2};
    SUCCEEDS(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 3, sources, MPI_UNWEIGHTED, 3, destinations, MPI_UNWEIGHTED,
                                            MPI_INFO_NULL, 0, &graph));
    with_neighbours(graph, 3, sources, 3, slots, me);
    int one = 1, all[3];
    FAILS(MPI_ERR_TOPOLOGY, MPI_Neighbor_allgather(&one, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Comm_free(&line));
    SUCCEEDS(MPI_Comm_free(&ring));
    SUCCEEDS(MPI_Comm_free(&graph));
}

/* One process starts a nonblocking collective before a blocking one, the others after it. */
static void orders(void)
{
    for (int first = 0; first < size; first++) {
        int bits = me == first ? 11 : 13, both = -1, done = 0;
        MPI_Request request;
        SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
        if (me == first) {
            SUCCEEDS(MPI_Iallreduce(&bits, &both, 1, MPI_INT, MPI_BAND, MPI_COMM_WORLD, &request));
            SUCCEEDS(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
            CHECK(size == 1 || !done);
            SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
        } else {
            SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
            SUCCEEDS(MPI_Iallreduce(&bits, &both, 1, MPI_INT, MPI_BAND, MPI_COMM_WORLD, &request));
        }
        SUCCEEDS(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(both == (size == 1 ? 11 : 9));
    }
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"between", between},
        {"crossing", crossing},
        {"neighbours", neighbours},
        {"orders", orders},
        {NULL, NULL},
    };
    return play(argc, argv, scenarios);
}
