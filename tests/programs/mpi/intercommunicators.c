/* Intercommunicators. */
#include "mpi_check.h"

#include <pthread.h>

/* Makes an intercommunicator of even and odd processes. The leaders are 0 and 1. */
static MPI_Comm sides(MPI_Comm *local)
{
    MPI_Comm inter;
    SUCCEEDS(MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, local));
    SUCCEEDS(MPI_Intercomm_create(*local, 0, MPI_COMM_WORLD, 1 - me % 2, 9, &inter));
    return inter;
}

/* Every process sends its rank to each process of the other side. */
static void crosses(MPI_Comm inter)
{
    int count, rank, remote, got;
    SUCCEEDS(MPI_Comm_size(inter, &count));
    SUCCEEDS(MPI_Comm_rank(inter, &rank));
    SUCCEEDS(MPI_Comm_remote_size(inter, &remote));
    MPI_Request requests[16];
    for (int i = 0; i < remote; i++)
        SUCCEEDS(MPI_Isend(&rank, 1, MPI_INT, i, 2, inter, &requests[i]));
    int sum = 0;
    for (int i = 0; i < remote; i++) {
        MPI_Status status;
        SUCCEEDS(MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 2, inter, &status));
        CHECK(got == status.MPI_SOURCE);
        sum += got;
    }
    CHECK(sum == remote * (remote - 1) / 2);
    SUCCEEDS(MPI_Waitall(remote, requests, MPI_STATUSES_IGNORE));
}

static void made(void)
{
    MPI_Comm local, inter, copy, both;
    MPI_Group group, own;
    int count, flag, rank, result;
    inter = sides(&local);
    SUCCEEDS(MPI_Comm_test_inter(inter, &flag));
    CHECK(flag);
    SUCCEEDS(MPI_Comm_size(inter, &count));
    SUCCEEDS(MPI_Comm_rank(inter, &rank));
    CHECK(count == (size + 1 - me % 2) / 2 && rank == me / 2);
    SUCCEEDS(MPI_Comm_remote_size(inter, &count));
    CHECK(count == (size + me % 2) / 2);
    SUCCEEDS(MPI_Comm_remote_group(inter, &group));
    SUCCEEDS(MPI_Comm_group(inter, &own));
    SUCCEEDS(MPI_Group_rank(group, &rank));
    CHECK(rank == MPI_UNDEFINED);
    SUCCEEDS(MPI_Group_free(&group));
    SUCCEEDS(MPI_Group_free(&own));
    crosses(inter);
    SUCCEEDS(MPI_Comm_dup(inter, &copy));
    SUCCEEDS(MPI_Comm_compare(inter, copy, &result));
    CHECK(result == MPI_CONGRUENT);
    crosses(copy);
    SUCCEEDS(MPI_Intercomm_merge(copy, me % 2 == 0, &both));
    SUCCEEDS(MPI_Comm_rank(both, &rank));
    SUCCEEDS(MPI_Comm_size(both, &count));
    CHECK(count == size && rank == (me % 2 ? me / 2 : size / 2 + me / 2));
    SUCCEEDS(MPI_Comm_free(&both));
    SUCCEEDS(MPI_Intercomm_merge(copy, 0, &both));
    SUCCEEDS(MPI_Comm_size(both, &count));
    CHECK(count == size);
    SUCCEEDS(MPI_Comm_free(&both));
    SUCCEEDS(MPI_Comm_disconnect(&copy));
    SUCCEEDS(MPI_Comm_free(&inter));
    FAILS(MPI_ERR_RANK, MPI_Intercomm_create(local, 99, MPI_COMM_WORLD, 0, 1, &inter));
    FAILS(MPI_ERR_COMM, MPI_Intercomm_merge(local, 0, &both));
    SUCCEEDS(MPI_Comm_free(&local));
}

/* Parts of both sides: the first process of each side, and the others. */
static void parts(void)
{
    MPI_Comm local, inter, part;
    MPI_Group group, first;
    int rank, count, zero = 0;
    inter = sides(&local);
    SUCCEEDS(MPI_Comm_rank(inter, &rank));
    SUCCEEDS(MPI_Comm_split(inter, rank == 0, 0, &part));
    if (rank == 0) {
        SUCCEEDS(MPI_Comm_remote_size(part, &count));
        CHECK(count == 1);
    }
    if (part != MPI_COMM_NULL) {
        crosses(part);
        SUCCEEDS(MPI_Comm_free(&part));
    }
    /* A colour that only one side has gives no communicator. */
    SUCCEEDS(MPI_Comm_split(inter, me % 2, 0, &part));
    CHECK(part == MPI_COMM_NULL);
    SUCCEEDS(MPI_Comm_group(inter, &group));
    SUCCEEDS(MPI_Group_incl(group, 1, &zero, &first));
    SUCCEEDS(MPI_Comm_create(inter, first, &part));
    CHECK((part != MPI_COMM_NULL) == (rank == 0));
    if (part != MPI_COMM_NULL) {
        crosses(part);
        SUCCEEDS(MPI_Comm_free(&part));
    }
    SUCCEEDS(MPI_Group_free(&group));
    SUCCEEDS(MPI_Group_free(&first));
    SUCCEEDS(MPI_Comm_free(&inter));
    SUCCEEDS(MPI_Comm_free(&local));
}

static void of_groups(void)
{
    MPI_Group world, mine, others;
    MPI_Comm inter;
    int own[1][3] = {{me % 2, size - 1, 2}}, other[1][3] = {{1 - me % 2, size - 1, 2}};
    SUCCEEDS(MPI_Comm_group(MPI_COMM_WORLD, &world));
    SUCCEEDS(MPI_Group_range_incl(world, 1, own, &mine));
    SUCCEEDS(MPI_Group_range_incl(world, 1, other, &others));
    SUCCEEDS(MPI_Intercomm_create_from_groups(mine, 0, others, 0, "two", MPI_INFO_NULL, MPI_ERRORS_RETURN,
                                              &inter));
    crosses(inter);
    SUCCEEDS(MPI_Comm_free(&inter));
    SUCCEEDS(MPI_Group_free(&world));
    SUCCEEDS(MPI_Group_free(&mine));
    SUCCEEDS(MPI_Group_free(&others));
}

/* Connects the two sides of a duplicate of the world. Other threads do it at the same time with the same tag. */
static void *connect_sides(void *world)
{
    MPI_Comm all = *(MPI_Comm *)world, local, inter, both;
    for (int i = 0; i < 20; i++) {
        int sum = -1;
        SUCCEEDS(MPI_Comm_split(all, me % 2, me, &local));
        SUCCEEDS(MPI_Intercomm_create(local, 0, all, 1 - me % 2, 9, &inter));
        SUCCEEDS(MPI_Intercomm_merge(inter, me % 2, &both));
        SUCCEEDS(MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, both));
        CHECK(sum == size * (size - 1) / 2);
        SUCCEEDS(MPI_Comm_free(&both));
        SUCCEEDS(MPI_Comm_free(&inter));
        SUCCEEDS(MPI_Comm_free(&local));
    }
    return NULL;
}

static void threads(void)
{
    enum { THREADS = 4 };
    MPI_Comm worlds[THREADS];
    pthread_t all[THREADS];
    for (int i = 0; i < THREADS; i++)
        SUCCEEDS(MPI_Comm_dup(MPI_COMM_WORLD, &worlds[i]));
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&all[i], NULL, connect_sides, &worlds[i]) == 0);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(all[i], NULL) == 0);
        SUCCEEDS(MPI_Comm_free(&worlds[i]));
    }
}

/* All processes of a communicator that was made by this thread and those of the others with the same number. */
static void has_threads_of(int thread, MPI_Comm *comm)
{
    int range[2] = {-thread, thread};
    SUCCEEDS(MPI_Allreduce(MPI_IN_PLACE, range, 2, MPI_INT, MPI_MAX, *comm));
    CHECK(range[0] == -thread && range[1] == thread);
    SUCCEEDS(MPI_Comm_free(comm));
}

/* What two threads of each process do at the same time, with tags that differ in their highest bits alone and texts whose hashes are the same. */
static void *make_apart(void *number)
{
    enum { ROUNDS = 50, HIGH = 1 << 24 };
    const char *const texts[2] = {"tag klbvs", "tag uacxa"};
    int thread = *(int *)number, tag = 5 + thread * HIGH;
    MPI_Comm local, inter, comm;
    MPI_Group all, own, others;
    int sides[2][3] = {{0, size - 1 - (size + 1) % 2, 2}, {1, size - 1 - size % 2, 2}};
    SUCCEEDS(MPI_Comm_group(MPI_COMM_WORLD, &all));
    SUCCEEDS(MPI_Group_range_incl(all, 1, &sides[me % 2], &own));
    SUCCEEDS(MPI_Group_range_incl(all, 1, &sides[1 - me % 2], &others));
    for (int i = 0; i < ROUNDS; i++) {
        SUCCEEDS(MPI_Comm_create_group(MPI_COMM_WORLD, all, tag, &comm));
        has_threads_of(thread, &comm);
        SUCCEEDS(MPI_Comm_create_from_group(all, texts[thread], MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL,
                                            &comm));
        has_threads_of(thread, &comm);
        SUCCEEDS(MPI_Comm_create_group(MPI_COMM_WORLD, own, tag, &local));
        SUCCEEDS(MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 1 - me % 2, tag, &inter));
        SUCCEEDS(MPI_Intercomm_merge(inter, 0, &comm));
        has_threads_of(thread, &comm);
        SUCCEEDS(MPI_Comm_free(&inter));
        SUCCEEDS(MPI_Comm_free(&local));
        SUCCEEDS(MPI_Intercomm_create_from_groups(own, 0, others, 0, texts[thread], MPI_INFO_NULL,
                                                  MPI_ERRORS_ARE_FATAL, &inter));
        SUCCEEDS(MPI_Intercomm_merge(inter, 0, &comm));
        has_threads_of(thread, &comm);
        SUCCEEDS(MPI_Comm_free(&inter));
    }
    SUCCEEDS(MPI_Group_free(&own));
    SUCCEEDS(MPI_Group_free(&others));
    SUCCEEDS(MPI_Group_free(&all));
    return NULL;
}

static void tags(void)
{
    int first = me % 2, second = 1 - first;
    pthread_t other;
    CHECK(pthread_create(&other, NULL, make_apart, &second) == 0);
    make_apart(&first);
    CHECK(pthread_join(other, NULL) == 0);
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"made", made}, {"parts", parts}, {"of_groups", of_groups}, {"threads", threads}, {"tags", tags}, {NULL, NULL}};
    return play(argc, argv, scenarios);
}
