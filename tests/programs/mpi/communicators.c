/* Groups, and communicators made from others. */
#define _GNU_SOURCE
#include "mpi_check.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

/* Checks that all members of a communicator can communicate in it, separately from all other communicators. */
static void works(MPI_Comm comm)
{
    int rank, count, got = -1;
    SUCCEEDS(MPI_Comm_rank(comm, &rank));
    SUCCEEDS(MPI_Comm_size(comm, &count));
    MPI_Request request;
    SUCCEEDS(MPI_Isend(&rank, 1, MPI_INT, (rank + 1) % count, 1, comm, &request));
    SUCCEEDS(MPI_Recv(&got, 1, MPI_INT, (rank + count - 1) % count, 1, comm, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(got == (rank + count - 1) % count);
}

static void groups(void)
{
    MPI_Group world, evens, odds, all, some;
    int count, rank, result, ranks[3] = {0, MPI_PROC_NULL, 1}, found[3];
    SUCCEEDS(MPI_Comm_group(MPI_COMM_WORLD, &world));
    SUCCEEDS(MPI_Group_size(world, &count));
    SUCCEEDS(MPI_Group_rank(world, &rank));
    CHECK(count == size && rank == me && MPI_Group_fromint(MPI_Group_toint(world)) == world);
    int even[1][3] = {{0, size - 1, 2}};
    SUCCEEDS(MPI_Group_range_incl(world, 1, even, &evens));
    SUCCEEDS(MPI_Group_range_excl(world, 1, even, &odds));
    SUCCEEDS(MPI_Group_size(evens, &count));
    CHECK(count == (size + 1) / 2);
    SUCCEEDS(MPI_Group_union(evens, odds, &all));
    SUCCEEDS(MPI_Group_compare(world, all, &result));
    CHECK(result == (size <= 2 ? MPI_IDENT : MPI_SIMILAR));
    SUCCEEDS(MPI_Group_intersection(evens, odds, &some));
    CHECK(some == MPI_GROUP_EMPTY);
    SUCCEEDS(MPI_Group_compare(evens, some, &result));
    CHECK(result == MPI_UNEQUAL);
    SUCCEEDS(MPI_Group_difference(world, odds, &some));
    SUCCEEDS(MPI_Group_compare(some, evens, &result));
    CHECK(result == MPI_IDENT);
    SUCCEEDS(MPI_Group_free(&some));
    if (size > 2) {
        ranks[2] = 2;
        SUCCEEDS(MPI_Group_translate_ranks(world, 3, ranks, evens, found));
        CHECK(found[0] == 0 && found[1] == MPI_PROC_NULL && found[2] == 1);
        int last[2] = {2, 0};
        SUCCEEDS(MPI_Group_incl(world, 2, last, &some));
        SUCCEEDS(MPI_Group_rank(some, &rank));
        CHECK(rank == (me == 2 ? 0 : me == 0 ? 1 : MPI_UNDEFINED));
        SUCCEEDS(MPI_Group_free(&some));
        SUCCEEDS(MPI_Group_excl(world, 2, last, &some));
        SUCCEEDS(MPI_Group_size(some, &count));
        CHECK(count == size - 2);
        SUCCEEDS(MPI_Group_free(&some));
        int twice[2] = {0, 0};
        FAILS(MPI_ERR_RANK, MPI_Group_incl(world, 2, twice, &some));
    }
    int wrong[1] = {size};
    FAILS(MPI_ERR_RANK, MPI_Group_incl(world, 1, wrong, &some));
    int endless[1][3] = {{0, 0, 0}};
    FAILS(MPI_ERR_ARG, MPI_Group_range_incl(world, 1, endless, &some));
    int beyond[1][3] = {{0, size, 1}};
    FAILS(MPI_ERR_RANK, MPI_Group_range_excl(world, 1, beyond, &some));
    FAILS(MPI_ERR_ARG, MPI_Group_range_excl(world, 1, beyond, NULL));
    FAILS(MPI_ERR_GROUP, MPI_Group_size(MPI_GROUP_NULL, &count));
    MPI_Group stale = all;
    SUCCEEDS(MPI_Group_free(&all));
    CHECK(all == MPI_GROUP_NULL);
    FAILS(MPI_ERR_GROUP, MPI_Group_size(stale, &count));
    SUCCEEDS(MPI_Group_free(&evens));
    SUCCEEDS(MPI_Group_free(&odds));
    SUCCEEDS(MPI_Group_free(&world));
}

static void copies(void)
{
    MPI_Comm copy, named;
    int result, length, flag;
    char name[MPI_MAX_OBJECT_NAME];
    SUCCEEDS(MPI_Comm_get_name(MPI_COMM_WORLD, name, &length));
    CHECK(strcmp(name, "MPI_COMM_WORLD") == 0 && length == 14);
    SUCCEEDS(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
    CHECK(MPI_Comm_fromint(MPI_Comm_toint(copy)) == copy);
    SUCCEEDS(MPI_Comm_compare(MPI_COMM_WORLD, copy, &result));
    CHECK(result == MPI_CONGRUENT);
    SUCCEEDS(MPI_Comm_compare(copy, copy, &result));
    CHECK(result == MPI_IDENT);
    SUCCEEDS(MPI_Comm_get_name(copy, name, &length));
    CHECK(length == 0);
    SUCCEEDS(MPI_Comm_set_name(copy, "a copy"));
    SUCCEEDS(MPI_Comm_get_name(copy, name, &length));
    CHECK(strcmp(name, "a copy") == 0);
    works(copy);
    MPI_Info info, used;
    SUCCEEDS(MPI_Info_create(&info));
    SUCCEEDS(MPI_Info_set(info, "mpi_assert_no_any_tag", "true"));
    SUCCEEDS(MPI_Comm_dup_with_info(copy, info, &named));
    SUCCEEDS(MPI_Info_set(info, "mpi_assert_no_any_source", "true"));
    SUCCEEDS(MPI_Comm_set_info(named, info));
    SUCCEEDS(MPI_Comm_get_info(named, &used));
    SUCCEEDS(MPI_Info_get(used, "mpi_assert_no_any_source", 63, name, &flag));
    CHECK(flag && strcmp(name, "true") == 0);
    SUCCEEDS(MPI_Info_free(&used));
    SUCCEEDS(MPI_Info_free(&info));
    MPI_Comm stale = copy;
    SUCCEEDS(MPI_Comm_free(&copy));
    SUCCEEDS(MPI_Comm_disconnect(&named));
    CHECK(copy == MPI_COMM_NULL && named == MPI_COMM_NULL);
    FAILS(MPI_ERR_COMM, MPI_Comm_rank(stale, &result));
    stale = MPI_COMM_WORLD;
    FAILS(MPI_ERR_COMM, MPI_Comm_free(&stale));
    SUCCEEDS(MPI_Comm_test_inter(MPI_COMM_WORLD, &flag));
    CHECK(!flag);
    FAILS(MPI_ERR_COMM, MPI_Comm_remote_size(MPI_COMM_WORLD, &flag));
}

static void parts(void)
{
    MPI_Comm part, sub;
    int rank, count;
    SUCCEEDS(MPI_Comm_split(MPI_COMM_WORLD, me % 2, -me, &part));
    SUCCEEDS(MPI_Comm_size(part, &count));
    SUCCEEDS(MPI_Comm_rank(part, &rank));
    CHECK(count == (size + 1 - me % 2) / 2 && rank == count - 1 - me / 2);
    works(part);
    SUCCEEDS(MPI_Comm_free(&part));
    SUCCEEDS(MPI_Comm_split(MPI_COMM_WORLD, me == 0 ? MPI_UNDEFINED : 7, 0, &part));
    CHECK((part == MPI_COMM_NULL) == (me == 0));
    if (part != MPI_COMM_NULL)
        SUCCEEDS(MPI_Comm_free(&part));
    FAILS(MPI_ERR_ARG, MPI_Comm_split(MPI_COMM_WORLD, -5, 0, &part));
    SUCCEEDS(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &part));
    SUCCEEDS(MPI_Comm_size(part, &count));
    CHECK(count == size);
    SUCCEEDS(MPI_Comm_split_type(part, MPI_COMM_TYPE_HW_UNGUIDED, 0, MPI_INFO_NULL, &sub));
    CHECK(sub == MPI_COMM_NULL);
    SUCCEEDS(MPI_Comm_split_type(part, MPI_UNDEFINED, 0, MPI_INFO_NULL, &sub));
    CHECK(sub == MPI_COMM_NULL);
    SUCCEEDS(MPI_Comm_free(&part));
    FAILS(MPI_ERR_ARG, MPI_Comm_split_type(MPI_COMM_WORLD, 12, 0, MPI_INFO_NULL, &part));
}

static void of_groups(void)
{
    MPI_Group world, some;
    MPI_Comm comm;
    int ranks[2] = {size - 1, 0}, rank;
    int count = size > 1 ? 2 : 1;
    SUCCEEDS(MPI_Comm_group(MPI_COMM_WORLD, &world));
    SUCCEEDS(MPI_Group_incl(world, count, ranks, &some));
    SUCCEEDS(MPI_Group_rank(some, &rank));
    for (int way = 0; way < 3; way++) {
        comm = MPI_COMM_NULL;
        if (way == 0)
            SUCCEEDS(MPI_Comm_create(MPI_COMM_WORLD, some, &comm));
        else if (rank == MPI_UNDEFINED)
            continue;
        else if (way == 1)
            SUCCEEDS(MPI_Comm_create_group(MPI_COMM_WORLD, some, 5, &comm));
        else
            SUCCEEDS(MPI_Comm_create_from_group(some, "test", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
        CHECK((comm == MPI_COMM_NULL) == (rank == MPI_UNDEFINED));
        if (comm != MPI_COMM_NULL) {
            int mine;
            SUCCEEDS(MPI_Comm_rank(comm, &mine));
            CHECK(mine == rank);
            works(comm);
            SUCCEEDS(MPI_Comm_free(&comm));
        }
    }
    MPI_Comm self;
    SUCCEEDS(MPI_Comm_dup(MPI_COMM_SELF, &self));
    if (size > 1)
        FAILS(MPI_ERR_GROUP, MPI_Comm_create(self, world, &comm));
    SUCCEEDS(MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &comm));
    CHECK(comm == MPI_COMM_NULL);
    SUCCEEDS(MPI_Comm_free(&self));
    SUCCEEDS(MPI_Group_free(&some));
    SUCCEEDS(MPI_Group_free(&world));
}

/* A communicator that is freed while a receive is pending stays alive for that receive. */
static void freed(void)
{
    int got = -1, next = (me + 1) % size, before = (me + size - 1) % size;
    MPI_Request request;
    MPI_Status status;
    for (int i = 0; i < 40; i++) {
        MPI_Comm comm, other;
        SUCCEEDS(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        SUCCEEDS(MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 4, comm, &request));
        MPI_Comm copy = comm;
        SUCCEEDS(MPI_Comm_dup(MPI_COMM_WORLD, &other));
        SUCCEEDS(MPI_Send(&i, 1, MPI_INT, next, 4, comm));
        SUCCEEDS(MPI_Comm_free(&comm));
        FAILS(MPI_ERR_COMM, MPI_Send(&i, 1, MPI_INT, next, 4, copy));
        SUCCEEDS(MPI_Wait(&request, &status));
        CHECK(got == i && status.MPI_SOURCE == before);
        SUCCEEDS(MPI_Comm_free(&other));
    }
}

static int add_one(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
    CHECK(comm != MPI_COMM_NULL && key != MPI_KEYVAL_INVALID);
    *(MPI_Aint *)out = (MPI_Aint)in + 1;
    *flag = *(int *)extra;
    return MPI_SUCCESS;
}

static int uncopied(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
    (void)comm, (void)key, (void)extra, (void)in, (void)out, (void)flag;
    return MPI_ERR_OTHER;
}

static int refuse(MPI_Comm comm, int key, void *value, void *extra)
{
    CHECK(comm != MPI_COMM_NULL && key != MPI_KEYVAL_INVALID && extra != NULL);
    return (MPI_Aint)value == 13 ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static void attributes(void)
{
    int key, flag, wanted = 1, *value;
    MPI_Aint got = 0;
    MPI_Comm comm, copy;
    SUCCEEDS(MPI_Comm_create_keyval(add_one, refuse, &key, &wanted));
    SUCCEEDS(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    SUCCEEDS(MPI_Comm_get_attr(comm, key, &got, &flag));
    CHECK(!flag);
    SUCCEEDS(MPI_Comm_set_attr(comm, key, (void *)5));
    SUCCEEDS(MPI_Comm_dup(comm, &copy));
    SUCCEEDS(MPI_Comm_get_attr(copy, key, &got, &flag));
    CHECK(flag && got == 6);
    wanted = 0;
    MPI_Comm third;
    SUCCEEDS(MPI_Comm_dup(copy, &third));
    SUCCEEDS(MPI_Attr_get(third, key, &got, &flag));
    CHECK(!flag);
    SUCCEEDS(MPI_Attr_put(third, key, (void *)13));
    FAILS(MPI_ERR_OTHER, MPI_Comm_free(&third));
    CHECK(third != MPI_COMM_NULL);
    FAILS(MPI_ERR_OTHER, MPI_Attr_delete(third, key));
    SUCCEEDS(MPI_Comm_delete_attr(comm, key));
    SUCCEEDS(MPI_Comm_free(&comm));
    SUCCEEDS(MPI_Comm_free(&copy));
    SUCCEEDS(MPI_Comm_free_keyval(&key));
    CHECK(key == MPI_KEYVAL_INVALID);
    SUCCEEDS(MPI_Keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, &key, NULL));
    SUCCEEDS(MPI_Keyval_free(&key));
    SUCCEEDS(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag));
    CHECK(flag && *value >= 32767);
    SUCCEEDS(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &value, &flag));
    CHECK(flag && *value == 1);
    SUCCEEDS(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &flag));
    CHECK(flag && *value == 0);
    SUCCEEDS(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag));
    CHECK(flag && *value >= size);
    SUCCEEDS(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &value, &flag));
    CHECK(flag && *value == MPI_ANY_SOURCE);
    FAILS(MPI_ERR_KEYVAL, MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_TAG_UB, NULL));
    FAILS(MPI_ERR_KEYVAL, MPI_Comm_get_attr(MPI_COMM_WORLD, 77, &value, &flag));
    /* If a copy function fails, there is no duplicate. */
    MPI_Request request;
    SUCCEEDS(MPI_Comm_create_keyval(uncopied, MPI_COMM_NULL_DELETE_FN, &key, NULL));
    SUCCEEDS(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    SUCCEEDS(MPI_Comm_set_attr(comm, key, NULL));
    copy = MPI_COMM_WORLD;
    FAILS(MPI_ERR_OTHER, MPI_Comm_dup(comm, &copy));
    CHECK(copy == MPI_COMM_NULL);
    copy = MPI_COMM_WORLD;
    FAILS(MPI_ERR_OTHER, MPI_Comm_dup_with_info(comm, MPI_INFO_NULL, &copy));
    CHECK(copy == MPI_COMM_NULL);
    copy = MPI_COMM_WORLD;
    FAILS(MPI_ERR_OTHER, MPI_Comm_idup(comm, &copy, &request));
    CHECK(copy == MPI_COMM_NULL);
    SUCCEEDS(MPI_Comm_free(&comm));
}

/* Returns the size of the memory that the processes of this host share, in bytes. */
static long long shared_bytes(void)
{
    DIR *folder = opendir("/proc/self/fd");
    CHECK(folder != NULL);
    long long bytes = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char path[300], target[64] = "";
        struct stat file;
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        if (readlink(path, target, sizeof target - 1) > 0 && strncmp(target, "/memfd:", 7) == 0) {
            CHECK(stat(path, &file) == 0);
            bytes += 512LL * file.st_blocks;
        }
    }
    CHECK(closedir(folder) == 0 && bytes > 0);
    return bytes;
}

/* Thousands of communicators need no shared memory, and only little after each has had a collective. */
static void memory(void)
{
    enum { COUNT = 3000 };
    static MPI_Comm made[2 * COUNT];
    long long before = 0, after;
    for (int i = 0; i < 2 * COUNT; i++) {
        SUCCEEDS(MPI_Comm_dup(i < COUNT ? MPI_COMM_WORLD : MPI_COMM_SELF, &made[i]));
        /* The first one sets up what all messages need, at both processes. */
        if (i == 0) {
            works(made[i]);
            SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
            before = shared_bytes();
        }
    }
    after = shared_bytes();
    CHECK(after - before < 1 << 20);
    /* The other process still measures. */
    SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 2 * COUNT; i++) {
            int sum = -1, one = 1, many;
            SUCCEEDS(MPI_Comm_size(made[i], &many));
            SUCCEEDS(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, made[i]));
            CHECK(sum == many);
        }
    }
    CHECK(shared_bytes() - before < 16 << 20);
    for (int i = 0; i < 2 * COUNT; i++)
        SUCCEEDS(MPI_Comm_free(&made[i]));
    /* Their memory is reused. */
    SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
    after = shared_bytes();
    for (int i = 0; i < COUNT; i++) {
        SUCCEEDS(MPI_Comm_dup(MPI_COMM_WORLD, &made[0]));
        SUCCEEDS(MPI_Barrier(made[0]));
        SUCCEEDS(MPI_Comm_free(&made[0]));
    }
    CHECK(shared_bytes() - after < 1 << 20);
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"groups", groups},       {"copies", copies}, {"parts", parts},
        {"of_groups", of_groups}, {"freed", freed},   {"attributes", attributes},
        {"memory", memory},       {NULL, NULL},
    };
    return play(argc, argv, scenarios);
}
