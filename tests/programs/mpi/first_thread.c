/*
 * Windows of a process whose first thread has exited: its memory is accessible, although the kernel shows none under
 * the process's own number.
 */
#include "mpi_check.h"

#include <pthread.h>

enum { WORDS = 1000 };

static pthread_t first;

/* Waits until the kernel shows that the first thread has exited. */
static void await_end_of_first(void)
{
    char stat[200] = "";
    CHECK(pthread_join(first, NULL) == 0);
    while (strstr(stat, ") Z ") == NULL) {
        FILE *file = fopen("/proc/self/stat", "r");
        CHECK(file != NULL && fgets(stat, sizeof stat, file) != NULL && fclose(file) == 0);
    }
}

static void exchange(MPI_Win win, int *own)
{
    int got[WORDS], put[WORDS], peer = 1 - me;
    for (int i = 0; i < WORDS; i++) {
        own[i] = 1000 * me + i;
        put[i] = -i;
    }
    SUCCEEDS(MPI_Win_fence(0, win));
    SUCCEEDS(MPI_Get(got, WORDS, MPI_INT, peer, 0, WORDS, MPI_INT, win));
    SUCCEEDS(MPI_Win_fence(0, win));
    SUCCEEDS(MPI_Put(put, WORDS, MPI_INT, peer, 0, WORDS, MPI_INT, win));
    SUCCEEDS(MPI_Win_fence(0, win));
    for (int i = 0; i < WORDS; i++)
        CHECK(got[i] == 1000 * peer + i && own[i] == -i);
}

static void *work(void *unused)
{
    static int memory[WORDS];
    MPI_Win before, after, shared;
    int *place, *theirs, unit;
    MPI_Aint bytes;
    SUCCEEDS(MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                            &before));
    await_end_of_first();
    SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
    exchange(before, memory);
    SUCCEEDS(MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                            &after));
    exchange(after, memory);
    SUCCEEDS(MPI_Win_allocate_shared(sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                                     &place, &shared));
    exchange(shared, place);
    SUCCEEDS(MPI_Win_shared_query(shared, 1 - me, &bytes, &unit, &theirs));
    CHECK(bytes == sizeof memory && unit == sizeof(int));
    /* The other process has read its memory. */
    SUCCEEDS(MPI_Win_fence(0, shared));
    *theirs = 7 + me;
    SUCCEEDS(MPI_Win_fence(0, shared));
    CHECK(*place == 8 - me);
    SUCCEEDS(MPI_Win_free(&shared));
    SUCCEEDS(MPI_Win_free(&after));
    SUCCEEDS(MPI_Win_free(&before));
    SUCCEEDS(MPI_Finalize());
    return unused;
}

int main(int argc, char **argv)
{
    int level;
    pthread_t other;
    SUCCEEDS(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level));
    SUCCEEDS(MPI_Comm_rank(MPI_COMM_WORLD, &me));
    SUCCEEDS(MPI_Comm_size(MPI_COMM_WORLD, &size));
    SUCCEEDS(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    CHECK(size == 2 && level == MPI_THREAD_MULTIPLE);
    first = pthread_self();
    CHECK(pthread_create(&other, NULL, work, NULL) == 0);
    pthread_exit(NULL);
}
