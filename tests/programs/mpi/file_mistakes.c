/*
 * Collective calls on a file that fail at one process: its argument is invalid, a split access is pending, or a
 * resource is missing. The second argument is the folder for the file (default: the current one).
 */
#define _GNU_SOURCE
#include "mpi_check.h"
#include "failing.h"

#include <regatta.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Library calls that can be made to fail in this process. */
int fstat(int fd, struct stat *facts)
{
    if (fails("fstat")) {
        errno = EIO;
        return -1;
    }
    return fstatat(fd, "", facts, AT_EMPTY_PATH);
}

/* Whether shared memory is refused, so that the shared pointer is an entry of the job, as on several hosts. */
static int has_no_memory;

int memfd_create(const char *name, unsigned flags)
{
    int (*call)(const char *, unsigned) = dlsym(RTLD_NEXT, "memfd_create");
    if (!has_no_memory)
        return call(name, flags);
    errno = EMFILE;
    return -1;
}

int rg_put(const char *entry, const void *value, size_t length, int index, int flags, int *placed)
{
    int (*call)(const char *, const void *, size_t, int, int, int *) = dlsym(RTLD_NEXT, "rg_put");
    return fails("rg_put") ? RG_ERR_MEMORY : call(entry, value, length, index, flags, placed);
}

int rg_add(const char *entry, int index, int64_t amount, int64_t *before)
{
    int (*call)(const char *, int, int64_t, int64_t *) = dlsym(RTLD_NEXT, "rg_add");
    return fails("rg_add") ? RG_ERR_MEMORY : call(entry, index, amount, before);
}

static char name[4096] = "mistakes";

static MPI_File fresh_file(void)
{
    MPI_File file = MPI_FILE_NULL;
    int amode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    SUCCEEDS(MPI_File_open(MPI_COMM_WORLD, name, amode, MPI_INFO_NULL, &file));
    return file;
}

/*
 * No process hangs: an error in a call that changes the file for all is returned to all, and accesses of the other
 * processes succeed.
 */
static void of_one(void)
{
    enum { PIECES = 64 };
    int wrong = me == size - 1, value = 40 + me, back = -1, values[PIECES], all_back[PIECES] = {0};
    MPI_Datatype type = wrong ? MPI_DATATYPE_NULL : MPI_INT, pieces;
    MPI_File file = MPI_FILE_NULL;
    FAILS(MPI_ERR_BAD_FILE, MPI_File_open(MPI_COMM_WORLD, wrong ? "" : name,
                                          MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    file = fresh_file();
    FAILS(MPI_ERR_UNSUPPORTED_DATAREP, MPI_File_set_view(file, 0, MPI_INT, MPI_INT, wrong ? "unheard" : "native",
                                                         MPI_INFO_NULL));
    FAILS(MPI_ERR_NOT_SAME, MPI_File_set_size(file, wrong ? -1 : 8));
    FAILS(MPI_ERR_NOT_SAME, MPI_File_preallocate(file, wrong ? -1 : 8));
    SUCCEEDS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));

    OF_LAST(MPI_ERR_TYPE, MPI_File_write_at_all(file, me, &value, 1, type, MPI_STATUS_IGNORE));
    OF_LAST(MPI_ERR_ARG, MPI_File_read_at_all(file, wrong ? -1 : me, &back, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(wrong || back == value);
    OF_LAST(MPI_ERR_COUNT, MPI_File_read_all(file, &back, wrong ? -1 : 1, MPI_INT, MPI_STATUS_IGNORE));
    OF_LAST(MPI_ERR_ARG, MPI_File_write_at_all_begin(file, wrong ? -1 : me, &value, 1, MPI_INT));
    if (!wrong)
        SUCCEEDS(MPI_File_write_at_all_end(file, &value, MPI_STATUS_IGNORE));

    MPI_Offset at = -1;
    OF_LAST(MPI_ERR_TYPE, MPI_File_write_ordered(file, &value, 1, type, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_File_get_position_shared(file, &at));
    CHECK(at == size - 1);
    /* All have queried the pointer before it moves. */
    SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
    SUCCEEDS(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    back = -1;
    OF_LAST(MPI_ERR_TYPE, MPI_File_read_ordered(file, &back, 1, type, MPI_STATUS_IGNORE));
    CHECK(wrong || back == value);

    /* The pieces of the processes are interleaved, so they access the file together. */
    SUCCEEDS(MPI_Type_vector(PIECES, 1, size, MPI_INT, &pieces));
    SUCCEEDS(MPI_Type_commit(&pieces));
    SUCCEEDS(MPI_File_set_view(file, 4 * me, MPI_INT, pieces, "native", MPI_INFO_NULL));
    MPI_Type_free(&pieces);
    for (int i = 0; i < PIECES; i++)
        values[i] = 1000 * me + i;
    OF_LAST(MPI_ERR_TYPE, MPI_File_write_all(file, values, PIECES, type, MPI_STATUS_IGNORE));
    OF_LAST(MPI_ERR_TYPE, MPI_File_read_at_all(file, 0, all_back, PIECES, type, MPI_STATUS_IGNORE));
    CHECK(wrong || memcmp(values, all_back, sizeof values) == 0);
    SUCCEEDS(MPI_File_close(&file));
}

/*
 * The last process has not ended a split access. The others wait for it neither when they close the file, which stays
 * open, nor in an access.
 */
static void pending(void)
{
    int last = me == size - 1, value = 40 + me, back = -1;
    MPI_File file = fresh_file();
    SUCCEEDS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    SUCCEEDS(MPI_File_write_at_all(file, me, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_File_sync(file));
    SUCCEEDS(MPI_File_read_at_all_begin(file, me, &back, 1, MPI_INT));
    if (!last)
        SUCCEEDS(MPI_File_read_at_all_end(file, &back, MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_IO, MPI_File_close(&file));
    CHECK(file != MPI_FILE_NULL);
    OF_LAST(MPI_ERR_IO, MPI_File_read_all_begin(file, &value, 1, MPI_INT));
    if (!last)
        SUCCEEDS(MPI_File_read_all_end(file, &value, MPI_STATUS_IGNORE));
    OF_LAST(MPI_ERR_IO, MPI_File_write_ordered_begin(file, &value, 1, MPI_INT));
    if (!last)
        SUCCEEDS(MPI_File_write_ordered_end(file, &value, MPI_STATUS_IGNORE));
    if (last)
        SUCCEEDS(MPI_File_read_at_all_end(file, &back, MPI_STATUS_IGNORE));
    CHECK(back == 40 + me);
    SUCCEEDS(MPI_File_close(&file));
    CHECK(file == MPI_FILE_NULL);
}

/* Checks that all processes get the error of a call that fails in one process. */
#define BREAKS(rank, name, class, call)                                                        \
    do {                                                                                       \
        failing = me == (rank) ? name : "";                                                    \
        FAILS(class, call);                                                                    \
        failing = "";                                                                          \
    } while (0)

/* One process lacks something that the call needs. */
static void unavailable(void)
{
    int last = size - 1, value = 5, made = MPI_MODE_CREATE | MPI_MODE_RDWR, anew = made | MPI_MODE_EXCL;
    MPI_Offset at = -1;
    MPI_File file = MPI_FILE_NULL;
    has_no_memory = 1;
    for (int rank = 0; rank < size; rank += last)
        BREAKS(rank, "fstat", MPI_ERR_IO,
               MPI_File_open(MPI_COMM_WORLD, name, made | MPI_MODE_APPEND, MPI_INFO_NULL, &file));
    file = fresh_file();
    SUCCEEDS(MPI_File_close(&file));
    BREAKS(0, "rg_put", MPI_ERR_NO_MEM, MPI_File_open(MPI_COMM_WORLD, name, anew, MPI_INFO_NULL, &file));
    /* The failed open has left no file behind. */
    SUCCEEDS(MPI_File_open(MPI_COMM_WORLD, name, anew | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));

    SUCCEEDS(MPI_File_seek_shared(file, 3, MPI_SEEK_SET));
    BREAKS(0, "rg_put", MPI_ERR_NO_MEM, MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    BREAKS(0, "rg_put", MPI_ERR_NO_MEM, MPI_File_seek_shared(file, 7, MPI_SEEK_SET));
    BREAKS(last, "rg_add", MPI_ERR_NO_MEM, MPI_File_seek_shared(file, 7, MPI_SEEK_SET));
    BREAKS(last, "fstat", MPI_ERR_IO, MPI_File_seek_shared(file, 0, MPI_SEEK_END));
    BREAKS(0, "rg_add", MPI_ERR_NO_MEM, MPI_File_write_ordered(file, &value, 1, MPI_BYTE, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_File_get_position_shared(file, &at));
    CHECK(at == 3);
    SUCCEEDS(MPI_File_get_size(file, &at));
    CHECK(at == 0);
    SUCCEEDS(MPI_File_close(&file));
    has_no_memory = 0;
    file = fresh_file();
    SUCCEEDS(MPI_File_seek_shared(file, 3, MPI_SEEK_SET));
    BREAKS(last, "fstat", MPI_ERR_IO, MPI_File_seek_shared(file, 0, MPI_SEEK_END));
    SUCCEEDS(MPI_File_get_position_shared(file, &at));
    CHECK(at == 3);
    SUCCEEDS(MPI_File_close(&file));
}

/* A device that becomes full in the middle of many short runs: nothing is written behind that position. */
static void device_full(void)
{
    enum { RUNS = 100000, STRIDE = 16, LENGTH = 8 };
    const int fresh = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    MPI_File file;
    MPI_Datatype runs;
    MPI_Offset end = -1;
    static char bytes[RUNS * LENGTH], back[LENGTH];
    SUCCEEDS(MPI_File_open(MPI_COMM_WORLD, name, fresh, MPI_INFO_NULL, &file));
    memset(bytes, 7, sizeof bytes);
    SUCCEEDS(MPI_Type_vector(RUNS, LENGTH, STRIDE, MPI_BYTE, &runs));
    SUCCEEDS(MPI_Type_commit(&runs));
    SUCCEEDS(MPI_File_set_view(file, 0, MPI_BYTE, runs, "native", MPI_INFO_NULL));
    FAILS(MPI_ERR_NO_SPACE,
          MPI_File_write_at(file, 0, bytes, sizeof bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_File_get_size(file, &end));
    CHECK(end > 0 && end < RUNS * STRIDE / 2);
    SUCCEEDS(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    for (MPI_Offset at = 0; at + LENGTH <= end; at += STRIDE) {
        SUCCEEDS(MPI_File_read_at(file, at, back, LENGTH, MPI_BYTE, MPI_STATUS_IGNORE));
        CHECK(memcmp(back, bytes, LENGTH) == 0);
    }
    SUCCEEDS(MPI_Type_free(&runs));
    SUCCEEDS(MPI_File_close(&file));
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"of_one", of_one},
        {"pending", pending},
        {"unavailable", unavailable},
        {"device_full", device_full},
        {NULL, NULL}};
    if (argc > 2)
        snprintf(name, sizeof name, "%s/mistakes", argv[2]);
    return play(argc, argv, scenarios);
}
