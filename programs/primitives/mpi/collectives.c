/* Collectives that the other sources do not cover.
 *
 * gatherv-irregular, scatterv-irregular, allgatherv-irregular: tasks of even rank have 3000 ints, those of odd rank
 * one; the root is task 0. alltoallw: each task sends a block of ints to each. neighbor-alltoall: each task sends a
 * block to both neighbours in a ring. iallreduce-wait: started and waited for. persistent-allreduce: one request is
 * started again and again. */
#ifdef ENV_MPI
#include "expect.h"

enum { IRREGULAR_MAX_COUNT = 3000, IRREGULAR_STEP = 4096, MAX_TASKS = 64 };

/* Number of ints of each task in the irregular collectives, and the index of the first. */
static int irregular_counts[MAX_TASKS], irregular_places[MAX_TASKS];

static int32_t irregular_in[MAX_TASKS * IRREGULAR_STEP], irregular_out[MAX_TASKS * IRREGULAR_STEP];

static void irregular_ready(void)
{
    for (int r = 0; r < tasks; r++) {
        irregular_counts[r] = r % 2 ? 1 : IRREGULAR_MAX_COUNT;
        irregular_places[r] = r * IRREGULAR_STEP;
    }
}

/* Marks the first and the last int of a task's block. */
static void irregular_mark(int32_t *block, int task)
{
    block[0] = block[irregular_counts[task] - 1] = (int32_t)payload_turn * 64 + task;
}

static void irregular_check(const int32_t *block, int task, const char *call)
{
    int32_t word = (int32_t)payload_turn * 64 + task;
    EXPECT(block[0] == word && block[irregular_counts[task] - 1] == word, call, "a block has another content");
}

static void gatherv_irregular(size_t bytes, long n)
{
    int32_t *in = irregular_in, *out = irregular_out;
    (void)bytes;
    irregular_ready();
    for (long i = 0; i < n; i++) {
        payload_turn++;
        irregular_mark(in, me);
        MPI_Gatherv(in, irregular_counts[me], MPI_INT32_T, out, irregular_counts, irregular_places, MPI_INT32_T, 0, MPI_COMM_WORLD);
        for (int r = 0; me == 0 && r < tasks; r++)
            irregular_check(out + irregular_places[r], r, "MPI_Gatherv");
    }
}

static void scatterv_irregular(size_t bytes, long n)
{
    int32_t *in = irregular_in, *out = irregular_out;
    (void)bytes;
    irregular_ready();
    for (long i = 0; i < n; i++) {
        payload_turn++;
        for (int r = 0; me == 0 && r < tasks; r++)
            irregular_mark(in + irregular_places[r], r);
        MPI_Scatterv(in, irregular_counts, irregular_places, MPI_INT32_T, out, irregular_counts[me], MPI_INT32_T, 0, MPI_COMM_WORLD);
        irregular_check(out, me, "MPI_Scatterv");
    }
}

static void allgatherv_irregular(size_t bytes, long n)
{
    int32_t *in = irregular_in, *out = irregular_out;
    (void)bytes;
    irregular_ready();
    for (long i = 0; i < n; i++) {
        payload_turn++;
        irregular_mark(in, me);
        MPI_Allgatherv(in, irregular_counts[me], MPI_INT32_T, out, irregular_counts, irregular_places, MPI_INT32_T, MPI_COMM_WORLD);
        for (int r = 0; r < tasks; r++)
            irregular_check(out + irregular_places[r], r, "MPI_Allgatherv");
    }
}

static void alltoallw(size_t bytes, long n)
{
    int counts[MAX_TASKS], places[MAX_TASKS];
    MPI_Datatype types[MAX_TASKS];
    for (int r = 0; r < tasks; r++) {
        counts[r] = (int)(bytes / sizeof(int32_t));
        places[r] = (int)bytes * r;
        types[r] = MPI_INT32_T;
    }
    for (long i = 0; i < n; i++) {
        payload_turn++;
        for (int r = 0; r < tasks; r++)
            payload_mark(payload_a + places[r], bytes, complete_exchange_stamp(me, r));
        MPI_Alltoallw(payload_a, counts, places, types, payload_b, counts, places, types, MPI_COMM_WORLD);
        for (int r = 0; r < tasks; r++)
            payload_check(payload_b + places[r], bytes, complete_exchange_stamp(r, me));
    }
}

static MPI_Comm ring_comm = MPI_COMM_NULL;

static void ring_free(void)
{
    MPI_Comm_free(&ring_comm);
}

/* With two tasks each is the neighbour on both sides, so the block to the left neighbour arrives as the second one
 * there. */
static void neighbor_alltoall(size_t bytes, long n)
{
    int extent = tasks, periodic = 1, sides[2];
    if (ring_comm == MPI_COMM_NULL) {
        MPI_Cart_create(MPI_COMM_WORLD, 1, &extent, &periodic, 0, &ring_comm);
        env_before_finalize(ring_free);
    }
    MPI_Cart_shift(ring_comm, 0, 1, &sides[0], &sides[1]);
    for (long i = 0; i < n; i++) {
        payload_turn++;
        for (int k = 0; k < 2; k++)
            payload_mark(payload_a + (size_t)k * bytes, bytes, complete_exchange_stamp(me, sides[k]));
        MPI_Neighbor_alltoall(payload_a, (int)bytes, MPI_BYTE, payload_b, (int)bytes, MPI_BYTE, ring_comm);
        for (int k = 0; k < 2; k++)
            payload_check(payload_b + (size_t)k * bytes, bytes, complete_exchange_stamp(sides[k], me));
    }
}

static void iallreduce_wait(size_t bytes, long n)
{
    double *in = (double *)payload_a, *out = (double *)payload_b, ranks = tasks * (tasks - 1) / 2.0;
    size_t count = bytes / sizeof *in;
    for (long i = 0; i < n; i++) {
        double turn = (double)(++payload_turn % 4096);
        MPI_Request request;
        global_give(in, count, turn + me);
        MPI_Iallreduce(in, out, (int)count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        global_expect(out, count, tasks * turn + ranks);
    }
}

static MPI_Request allreduce_request = MPI_REQUEST_NULL;

static void persistent_allreduce_free(void)
{
    MPI_Request_free(&allreduce_request);
}

/* One request is used for all sums of a size. */
static void persistent_allreduce(size_t bytes, long n)
{
    static size_t made_for;
    double *in = (double *)payload_a, *out = (double *)payload_b, ranks = tasks * (tasks - 1) / 2.0;
    size_t count = bytes / sizeof *in;
    if (made_for != bytes) {
        if (made_for)
            MPI_Request_free(&allreduce_request);
        MPI_Allreduce_init(in, out, (int)count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &allreduce_request);
        made_for = bytes;
        env_before_finalize(persistent_allreduce_free);
    }
    for (long i = 0; i < n; i++) {
        double turn = (double)(++payload_turn % 4096);
        global_give(in, count, turn + me);
        MPI_Start(&allreduce_request);
        MPI_Wait(&allreduce_request, MPI_STATUS_IGNORE);
        global_expect(out, count, tasks * turn + ranks);
    }
}

OPERATION(gatherv_irregular, .name = "gatherv-irregular", .run = gatherv_irregular, .parts = 1)
OPERATION(scatterv_irregular, .name = "scatterv-irregular", .run = scatterv_irregular, .parts = 1)
OPERATION(allgatherv_irregular, .name = "allgatherv-irregular", .run = allgatherv_irregular, .parts = 1)
OPERATION(alltoallw, .name = "alltoallw", .run = alltoallw, .parts = 1, .unit = 4, .all_to_all = 1)
OPERATION(neighbor_alltoall, .name = "neighbor-alltoall", .run = neighbor_alltoall, .parts = 1, .unit = 1, .blocks = 2)
OPERATION(iallreduce_wait, .name = "iallreduce-wait", .run = iallreduce_wait, .parts = 1, .unit = 8)
OPERATION(persistent_allreduce, .name = "persistent-allreduce", .run = persistent_allreduce, .parts = 1, .unit = 8)
#endif
