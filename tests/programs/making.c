/*
 * Groups that are made at the same time: by threads, with nonblocking calls, in different orders. Groups that shared a
 * context would receive each other's messages.
 */
#include "check.h"

#include <pthread.h>

enum { KEPT = 8, THREADS = 3 };

static int rounds(void) { return atoi(args[0]); }

/* Each member sends the name of each of these groups to the next member, and receives in another order. */
static void apart(rg_group *groups, int n, int name)
{
    for (int i = 0; i < n; i++) {
        int tasks = rg_size(groups[i]), rank = rg_rank(groups[i]), word = name + i;
        CHECK(tasks > 0);
        OK(rg_send(&word, sizeof word, (rank + 1) % tasks, 1, groups[i]));
    }
    for (int i = n; i-- > 0;) {
        int tasks = rg_size(groups[i]), rank = rg_rank(groups[i]), word = -1, all = -1;
        OK(rg_recv(&word, sizeof word, (rank + tasks - 1) % tasks, 1, groups[i], NULL));
        if (word != name + i)
            FAILED("group %d received the word of group %d", name + i, word);
        OK(rg_allreduce(&word, &all, 1, RG_INT32, RG_MAX, groups[i]));
        CHECK(all == word);
    }
    for (int i = 0; i < n; i++)
        OK(rg_group_free(groups[i]));
}

/* Each thread makes groups from a parent of its own, and tasks progress at different speeds. */
static rg_group parents[THREADS];

static void *maker(void *argument)
{
    int thread = *(int *)argument;
    uint64_t state = (uint64_t)(me * THREADS + thread);
    for (int round = 0; round < rounds(); round++) {
        rg_group made[KEPT];
        for (int i = 0; i < KEPT; i++) {
            int reversed[64];
            for (int rank = 0; rank < size; rank++)
                reversed[rank] = size - 1 - rank;
            for (volatile uint64_t pause = next_random(&state) % 3000; pause > 0; pause--)
                continue;
            if (i % 3 == 0)
                OK(rg_group_dup(parents[thread], &made[i]));
            else if (i % 3 == 1)
                OK(rg_group_split(parents[thread], 0, -me, &made[i]));
            else
                OK(rg_group_select(parents[thread], size, reversed, &made[i]));
        }
        apart(made, KEPT, (thread + 1) * 1000);
    }
    return NULL;
}

static void run_threads(void *(*run)(void *))
{
    pthread_t ids[THREADS];
    int numbers[THREADS];
    /* Every other task starts the threads in reverse order. */
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = me % 2 == 0 ? i : THREADS - 1 - i;
        CHECK(pthread_create(&ids[i], NULL, run, &numbers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(ids[i], NULL) == 0);
}

static void threads(void)
{
    for (int i = 0; i < THREADS; i++)
        OK(rg_group_dup(RG_WORLD, &parents[i]));
    run_threads(maker);
}

/* Threads make groups from one parent with tags, of all members or of some. */
static void *tagged_maker(void *argument)
{
    int thread = *(int *)argument, ranks[64];
    for (int round = 0; round < rounds(); round++) {
        rg_group of_all[KEPT], of_some[KEPT];
        int tag = thread * 0x20000000, even = 0;
        for (int i = 0; i < KEPT; i++) {
            for (int rank = 0; rank < size; rank++)
                ranks[rank] = rank;
            OK(rg_group_select_tagged(RG_WORLD, size, ranks, tag, &of_all[i]));
            for (even = 0; 2 * even < size; even++)
                ranks[even] = 2 * even;
            if (me % 2 == 0)
                OK(rg_group_select_tagged(RG_WORLD, even, ranks, tag, &of_some[i]));
        }
        if (me % 2 == 0)
            apart(of_some, KEPT, (thread + 1) * 1000);
        apart(of_all, KEPT, (thread + 1) * 1000 + 100);
    }
    return NULL;
}

static void tagged(void)
{
    int ranks[] = {0, 0};
    rg_group made;
    FAILS(rg_group_select_tagged(RG_WORLD, 1, &me, -1, &made), RG_ERR_TAG, "-1");
    FAILS(rg_group_select_tagged(RG_WORLD, 2, ranks, 1, &made), RG_ERR_ARGUMENT, "twice");
    run_threads(tagged_maker);
}

/* Nonblocking duplicates of two parents in opposite orders, while other groups are made with blocking calls. */
static void idup(void)
{
    rg_group parent[2];
    OK(rg_group_dup(RG_WORLD, &parent[0]));
    OK(rg_group_split(RG_WORLD, 0, -me, &parent[1]));
    for (int round = 0; round < rounds(); round++) {
        rg_group made[6];
        rg_request requests[4];
        int first = me % 2;
        for (int i = 0; i < 4; i++) {
            int which = i ^ first;
            OK(rg_igroup_dup(parent[which % 2], &made[which], &requests[i]));
        }
        OK(rg_group_dup(RG_WORLD, &made[4]));
        OK(rg_group_select(RG_WORLD, 1, &me, &made[5]));
        OK(rg_waitall(4, requests, NULL));
        apart(made, 6, round * 10);
    }
    /* Never completed; it is dropped at the end, and no member waits for it. */
    rg_group never;
    rg_request open;
    if (me == 0)
        OK(rg_igroup_dup(parent[0], &never, &open));
}

/* Several groups at once: of all members, and of some members, which alone make the call. */
static void at_once(void)
{
    enum { OF_ALL = 3, OF_SOME = 2 };
    rg_group made[OF_ALL + OF_SOME], none[17];
    rg_request requests[2];
    int ranks[64], even;
    FAILS(rg_igroup_select(RG_WORLD, 0, NULL, 0, 0, none, requests), RG_ERR_ARGUMENT, "1 to 16");
    FAILS(rg_igroup_select(RG_WORLD, 0, NULL, 0, 17, none, requests), RG_ERR_ARGUMENT, "1 to 16");
    FAILS(rg_igroup_select(RG_WORLD, 0, NULL, 0, 1, NULL, requests), RG_ERR_ARGUMENT, "out is NULL");
    FAILS(rg_igroup_select(RG_WORLD, 1, &me, -1, 1, none, requests), RG_ERR_TAG, "-1");
    for (even = 0; 2 * even < size; even++)
        ranks[even] = 2 * even;
    for (int round = 0; round < rounds(); round++) {
        int some = me % 2 == 0 ? OF_SOME : 0;
        OK(rg_igroup_select(RG_WORLD, 0, NULL, 0, OF_ALL, made, &requests[0]));
        if (some != 0)
            OK(rg_igroup_select(RG_WORLD, even, ranks, 5, OF_SOME, made + OF_ALL, &requests[1]));
        OK(rg_waitall(some != 0 ? 2 : 1, requests, NULL));
        apart(made, OF_ALL + some, round * 10);
    }
}

/*
 * A member has been killed: making a group with it fails with an error that names it, and the others can make groups
 * without it.
 */
static void death(void)
{
    rg_group made, rest;
    rg_request request;
    OK(rg_barrier(RG_WORLD));
    if (me == 1)
        raise(SIGKILL);
    OK(rg_igroup_dup(RG_WORLD, &made, &request));
    FAILS(rg_wait(&request, NULL), RG_ERR_DEAD, "task 1 ");
    FAILS(rg_barrier(made), RG_ERR_HANDLE, "group");
    OK(rg_group_shrink(RG_WORLD, &rest));
    OK(rg_group_dup(rest, &made));
    rg_group both[] = {rest, made};
    apart(both, 2, 0);
    int others[64], count = 0;
    for (int rank = 0; rank < size; rank++)
        if (rank != 1)
            others[count++] = rank;
    OK(rg_group_select(RG_WORLD, count, others, &made));
    CHECK(rg_size(made) == size - 1);
    apart(&made, 1, 0);
    printf("went on %d\n", me);
}

/*
 * Task 0 already has the maximum number of groups. A split that would give it another one fails for all members,
 * including those of other colours.
 */
static void full(void)
{
    enum { MAX_GROUPS = 1 << 15 };
    static rg_group own[MAX_GROUPS];
    rg_group made;
    int self = me, count = 0, code = RG_OK;
    while (me == 0 && code == RG_OK)
        code = rg_group_select(RG_WORLD, 1, &self, &own[count++]);
    CHECK(me != 0 || code == RG_ERR_MEMORY);
    FAILS(rg_group_split(RG_WORLD, me, 0, &made), RG_ERR_MEMORY, "task 0 had no memory or no free entry");
    OK(rg_group_split(RG_WORLD, me == 0 ? RG_NONE : 1, 0, &made));
    if (me != 0)
        apart(&made, 1, 0);
    for (int i = 0; i < count - 1; i++)
        OK(rg_group_free(own[i]));
    OK(rg_group_split(RG_WORLD, 1, 0, &made));
    apart(&made, 1, 0);
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"threads", threads, false}, {"tagged", tagged, false}, {"idup", idup, false},
        {"at_once", at_once, false}, {"death", death, false},   {"full", full, false},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
