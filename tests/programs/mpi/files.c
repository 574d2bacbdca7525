/*
 * Files: opening and errors, sizes, individual and shared pointers, views, collective accesses, representations. The
 * second argument is the folder for the files (default: the current one).
 */
#include "mpi_check.h"

#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *folder = ".";

static const char *path(const char *name)
{
    static char text[2][4096];
    static int turn;
    turn = !turn;
    snprintf(text[turn], sizeof text[turn], "%s/files_%s", folder, name);
    return text[turn];
}

static MPI_File opened(const char *name, int amode)
{
    MPI_File file = MPI_FILE_NULL;
    SUCCEEDS(MPI_File_open(MPI_COMM_WORLD, path(name), amode, MPI_INFO_NULL, &file));
    CHECK(file != MPI_FILE_NULL);
    return file;
}

static const int fresh = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;

static int count_of(MPI_Status *status, MPI_Datatype type)
{
    int count = -7;
    SUCCEEDS(MPI_Get_count(status, type, &count));
    return count;
}

static void all_here(void)
{
    SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
}

/* ---- opening, closing, attributes of a file ---------------------------------------------------- */

static void opening(void)
{
    MPI_File file = opened("opening", MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR);
    int amode = 0, flag = -1, result = -1;
    SUCCEEDS(MPI_File_get_amode(file, &amode));
    CHECK(amode == (MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR));
    CHECK(MPI_File_fromint(MPI_File_toint(file)) == file);
    CHECK(MPI_File_fromint(MPI_File_toint(MPI_FILE_NULL)) == MPI_FILE_NULL);
    MPI_Group of_file, of_world;
    SUCCEEDS(MPI_File_get_group(file, &of_file));
    SUCCEEDS(MPI_Comm_group(MPI_COMM_WORLD, &of_world));
    SUCCEEDS(MPI_Group_compare(of_file, of_world, &result));
    CHECK(result == MPI_IDENT);
    MPI_Group_free(&of_file);
    MPI_Group_free(&of_world);
    MPI_Info info, used;
    SUCCEEDS(MPI_Info_create(&info));
    SUCCEEDS(MPI_Info_set(info, "access_style", "read_once"));
    SUCCEEDS(MPI_File_set_info(file, info));
    SUCCEEDS(MPI_File_get_info(file, &used));
    char value[32];
    SUCCEEDS(MPI_Info_get(used, "access_style", 31, value, &flag));
    CHECK(flag && strcmp(value, "read_once") == 0);
    MPI_Info_free(&info);
    MPI_Info_free(&used);
    SUCCEEDS(MPI_File_get_atomicity(file, &flag));
    CHECK(flag == 0);
    SUCCEEDS(MPI_File_set_atomicity(file, 1));
    SUCCEEDS(MPI_File_get_atomicity(file, &flag));
    CHECK(flag == 1);
    MPI_Offset bytes = -1;
    SUCCEEDS(MPI_File_set_size(file, 100));
    SUCCEEDS(MPI_File_get_size(file, &bytes));
    CHECK(bytes == 100);
    all_here();
    SUCCEEDS(MPI_File_preallocate(file, 50));
    SUCCEEDS(MPI_File_get_size(file, &bytes));
    CHECK(bytes == 100);
    all_here();
    SUCCEEDS(MPI_File_preallocate(file, 1000));
    SUCCEEDS(MPI_File_get_size(file, &bytes));
    CHECK(bytes == 1000);
    all_here();
    SUCCEEDS(MPI_File_set_size(file, 0));
    SUCCEEDS(MPI_File_sync(file));
    SUCCEEDS(MPI_File_close(&file));
    CHECK(file == MPI_FILE_NULL);

    int amode_new = MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR;
    FAILS(MPI_ERR_FILE_EXISTS,
          MPI_File_open(MPI_COMM_WORLD, path("opening"), amode_new, MPI_INFO_NULL, &file));
    file = opened("opening", MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE);
    char byte = 1;
    FAILS(MPI_ERR_READ_ONLY, MPI_File_write(file, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_READ_ONLY, MPI_File_set_size(file, 1));
    SUCCEEDS(MPI_File_close(&file));
    FAILS(MPI_ERR_NO_SUCH_FILE, MPI_File_open(MPI_COMM_WORLD, path("opening"), MPI_MODE_RDONLY,
                                              MPI_INFO_NULL, &file));
    /* A separate file per process. */
    char own[64];
    snprintf(own, sizeof own, "own%d", me);
    SUCCEEDS(MPI_File_open(MPI_COMM_SELF, path(own), fresh, MPI_INFO_NULL, &file));
    SUCCEEDS(MPI_File_write_shared(file, &me, 1, MPI_INT, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_File_close(&file));
    CHECK(access(path(own), F_OK) != 0);
    /* In append mode, the pointer begins at the end. */
    file = opened("append", MPI_MODE_CREATE | MPI_MODE_WRONLY);
    if (me == 0)
        SUCCEEDS(MPI_File_write(file, "0123456789", 10, MPI_CHAR, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_File_close(&file));
    int append = MPI_MODE_APPEND | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE;
    file = opened("append", append);
    MPI_Offset at = -1;
    SUCCEEDS(MPI_File_get_position(file, &at));
    CHECK(at == 10);
    SUCCEEDS(MPI_File_get_position_shared(file, &at));
    CHECK(at == 10);
    FAILS(MPI_ERR_ACCESS, MPI_File_read(file, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_File_close(&file));
}

static int handled;
static void handler(MPI_File *file, int *code, ...)
{
    CHECK(file != NULL);
    handled = *code;
}

static void mistakes(void)
{
    MPI_File file = MPI_FILE_NULL;
    MPI_Offset at = 0;
    int amodes[] = {0, MPI_MODE_RDONLY | MPI_MODE_RDWR, MPI_MODE_RDONLY | MPI_MODE_CREATE,
                    MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL, 1 << 20 | MPI_MODE_RDWR};
    for (int i = 0; i < 5; i++)
        FAILS(MPI_ERR_AMODE, MPI_File_open(MPI_COMM_WORLD, path("amode"), amodes[i],
                                           MPI_INFO_NULL, &file));
    if (size > 1) {
        int amode = me ? MPI_MODE_RDWR : MPI_MODE_WRONLY;
        FAILS(MPI_ERR_NOT_SAME, MPI_File_open(MPI_COMM_WORLD, path("amode"),
                                              amode | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    }
    FAILS(MPI_ERR_COMM, MPI_File_open(MPI_COMM_NULL, path("x"), MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    FAILS(MPI_ERR_NO_SUCH_FILE, MPI_File_delete(path("never"), MPI_INFO_NULL));
    FAILS(MPI_ERR_BAD_FILE, MPI_File_open(MPI_COMM_WORLD, folder, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    char name[8192];
    memset(name, 'x', sizeof name);
    name[8000] = 0;
    FAILS(MPI_ERR_BAD_FILE, MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    FAILS(MPI_ERR_FILE, MPI_File_get_size(MPI_FILE_NULL, &at));
    FAILS(MPI_ERR_FILE, MPI_File_close(&file));

    file = opened("mistakes", fresh);
    MPI_File stale = file;
    char bytes[8] = {0};
    FAILS(MPI_ERR_COUNT, MPI_File_write_at(file, 0, bytes, -1, MPI_BYTE, MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_ARG, MPI_File_write_at(file, -1, bytes, 1, MPI_BYTE, MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_TYPE, MPI_File_read_at(file, 0, bytes, 1, MPI_DATATYPE_NULL, MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_BUFFER, MPI_File_write_at(file, 0, NULL, 1, MPI_BYTE, MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_ARG, MPI_File_seek(file, -1, MPI_SEEK_SET));
    FAILS(MPI_ERR_ARG, MPI_File_seek(file, 0, 77));
    FAILS(MPI_ERR_ARG, MPI_File_set_size(file, -1));
    FAILS(MPI_ERR_ARG, MPI_File_get_size(file, NULL));
    FAILS(MPI_ERR_UNSUPPORTED_DATAREP,
          MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "unheard", MPI_INFO_NULL));
    FAILS(MPI_ERR_ARG, MPI_File_set_view(file, -5, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    FAILS(MPI_ERR_ARG, MPI_File_set_view(file, 0, MPI_INT, MPI_SHORT, "native", MPI_INFO_NULL));
    MPI_Datatype falling;
    SUCCEEDS(MPI_Type_create_indexed_block(2, 1, (int[]){3, 0}, MPI_INT, &falling));
    FAILS(MPI_ERR_TYPE, MPI_File_set_view(file, 0, MPI_INT, falling, "native", MPI_INFO_NULL));
    SUCCEEDS(MPI_Type_commit(&falling));
    FAILS(MPI_ERR_IO, MPI_File_set_view(file, 0, MPI_INT, falling, "native", MPI_INFO_NULL));
    MPI_Type_free(&falling);
    MPI_Datatype twice;
    SUCCEEDS(MPI_Type_create_hindexed_block(2, 1, (MPI_Aint[]){0, 2}, MPI_INT, &twice));
    SUCCEEDS(MPI_Type_commit(&twice));
    FAILS(MPI_ERR_IO, MPI_File_set_view(file, 0, MPI_INT, twice, "native", MPI_INFO_NULL));
    MPI_Type_free(&twice);
    FAILS(MPI_ERR_TYPE,
          MPI_File_set_view(file, 0, MPI_DATATYPE_NULL, MPI_INT, "native", MPI_INFO_NULL));
    FAILS(MPI_ERR_IO, MPI_File_write_all_end(file, bytes, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    FAILS(MPI_ERR_IO, MPI_File_write_at(file, 0, bytes, 3, MPI_BYTE, MPI_STATUS_IGNORE));
    if (size > 1)
        FAILS(MPI_ERR_NOT_SAME, MPI_File_set_size(file, 10 + (me == 1)));
    all_here();

    MPI_Errhandler mine, got;
    SUCCEEDS(MPI_File_create_errhandler(handler, &mine));
    SUCCEEDS(MPI_File_get_errhandler(file, &got));
    CHECK(got == MPI_ERRORS_RETURN);
    SUCCEEDS(MPI_File_set_errhandler(file, mine));
    FAILS(MPI_ERR_ARG, MPI_File_seek(file, -1, MPI_SEEK_SET));
    CHECK(handled == MPI_ERR_ARG);
    SUCCEEDS(MPI_File_call_errhandler(file, MPI_ERR_IO));
    CHECK(handled == MPI_ERR_IO);
    SUCCEEDS(MPI_File_close(&file));
    SUCCEEDS(MPI_File_set_errhandler(MPI_FILE_NULL, mine));
    SUCCEEDS(MPI_File_get_errhandler(MPI_FILE_NULL, &got));
    CHECK(got == mine);
    FAILS(MPI_ERR_FILE, MPI_File_get_size(stale, &at));
    CHECK(handled == MPI_ERR_FILE);
    SUCCEEDS(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
    MPI_Errhandler_free(&got);
    MPI_Errhandler_free(&mine);
}

/* A file that may not grow: the write must return an error, and no signal may end the process. */
static void full(void)
{
    MPI_File file = opened("full", fresh);
    /* The limit also applies to files of the environment in shared memory, so it must leave them room. */
    const MPI_Offset most = 1 << 30;
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = most;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    static char bytes[200 * 1024];
    FAILS(MPI_ERR_QUOTA, MPI_File_write_at(file, most - 64 * 1024, bytes, sizeof bytes, MPI_BYTE,
                                           MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_QUOTA, MPI_File_set_size(file, most + 1));
    SUCCEEDS(MPI_File_write_at(file, most - 64 * 1024, bytes, 64 * 1024, MPI_BYTE, MPI_STATUS_IGNORE));
    /* The pieces of the processes are interleaved: a process whose data another process writes gets the error too. */
    MPI_Datatype every;
    SUCCEEDS(MPI_Type_create_resized(MPI_BYTE, 0, size, &every));
    SUCCEEDS(MPI_Type_commit(&every));
    SUCCEEDS(MPI_File_set_view(file, most - 5000 + me, MPI_BYTE, every, "native", MPI_INFO_NULL));
    FAILS(MPI_ERR_QUOTA,
          MPI_File_write_all(file, bytes, 9000 / size, MPI_BYTE, MPI_STATUS_IGNORE));
    MPI_Type_free(&every);
    SUCCEEDS(MPI_File_close(&file));
    FILE *device = fopen("/dev/full", "r");
    if (device) {
        fclose(device);
        SUCCEEDS(MPI_File_open(MPI_COMM_WORLD, "/dev/full", MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
        FAILS(MPI_ERR_NO_SPACE, MPI_File_write(file, bytes, 10, MPI_BYTE, MPI_STATUS_IGNORE));
        SUCCEEDS(MPI_File_close(&file));
    }
}

/* ---- pointers ------------------------------------------------------------------------------------ */

static void pointers(void)
{
    MPI_File file = opened("pointers", fresh);
    MPI_Offset at = -1;
    MPI_Status status;
    int values[4], back[4];
    SUCCEEDS(MPI_File_set_view(file, 16 * sizeof(int) * me, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int i = 0; i < 4; i++)
        values[i] = 100 * me + i;
    SUCCEEDS(MPI_File_write(file, values, 4, MPI_INT, &status));
    CHECK(count_of(&status, MPI_INT) == 4);
    MPI_Request request;
    SUCCEEDS(MPI_File_iwrite(file, values, 4, MPI_INT, &request));
    SUCCEEDS(MPI_Wait(&request, &status));
    CHECK(count_of(&status, MPI_INT) == 4 && request == MPI_REQUEST_NULL);
    SUCCEEDS(MPI_File_get_position(file, &at));
    CHECK(at == 8);
    SUCCEEDS(MPI_File_get_byte_offset(file, 3, &at));
    CHECK(at == (MPI_Offset)(16 * sizeof(int) * me + 3 * sizeof(int)));
    SUCCEEDS(MPI_File_seek(file, -6, MPI_SEEK_CUR));
    SUCCEEDS(MPI_File_read(file, back, 2, MPI_INT, &status));
    CHECK(back[0] == values[2] && back[1] == values[3]);
    SUCCEEDS(MPI_File_iread_at(file, 5, back, 3, MPI_INT, &request));
    SUCCEEDS(MPI_Wait(&request, &status));
    CHECK(count_of(&status, MPI_INT) == 3 && back[0] == values[1]);
    SUCCEEDS(MPI_File_sync(file));
    all_here();
    SUCCEEDS(MPI_File_seek(file, 0, MPI_SEEK_END));
    SUCCEEDS(MPI_File_get_position(file, &at));
    CHECK(at == 16 * (size - me) - 8);
    SUCCEEDS(MPI_File_read(file, back, 4, MPI_INT, &status));
    CHECK(count_of(&status, MPI_INT) == 0);
    SUCCEEDS(MPI_File_read_at(file, at - 2, back, 4, MPI_INT, &status));
    CHECK(count_of(&status, MPI_INT) == 2);
    all_here();
    SUCCEEDS(MPI_File_close(&file));
}

/*
 * The shared pointer is reset again and again, while some processes are already moving it and others have not yet
 * returned from the reset.
 */
static void reset(void)
{
    MPI_File file = opened("reset", fresh);
    MPI_Offset at = -1;
    char byte = 'b';
    for (int round = 0; round < 200; round++) {
        int base = round % 3 ? round : 0;
        if (base)
            SUCCEEDS(MPI_File_seek_shared(file, base, MPI_SEEK_SET));
        else
            SUCCEEDS(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
        SUCCEEDS(MPI_File_write_shared(file, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE));
        if (round % 2)
            all_here();
        SUCCEEDS(MPI_File_write_ordered(file, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE));
        SUCCEEDS(MPI_File_get_position_shared(file, &at));
        CHECK(at == base + 2 * size);
    }
    all_here();
    if (size > 1) {
        FAILS(MPI_ERR_NOT_SAME, MPI_File_seek_shared(file, me, MPI_SEEK_SET));
        FAILS(MPI_ERR_NOT_SAME, MPI_File_seek_shared(file, 0, me ? MPI_SEEK_CUR : MPI_SEEK_SET));
        SUCCEEDS(MPI_File_get_position_shared(file, &at));
        CHECK(at == 199 + 2 * size);
    }
    SUCCEEDS(MPI_File_close(&file));
}

static void shared(void)
{
    MPI_File file = opened("shared", fresh);
    MPI_Offset at = -1;
    MPI_Status status;
    MPI_Request request;
    enum { times = 20 };
    SUCCEEDS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int i = 0; i < times; i++) {
        int value = me * times + i;
        if (i % 2) {
            SUCCEEDS(MPI_File_write_shared(file, &value, 1, MPI_INT, &status));
        } else {
            SUCCEEDS(MPI_File_iwrite_shared(file, &value, 1, MPI_INT, &request));
            SUCCEEDS(MPI_Wait(&request, &status));
        }
        CHECK(count_of(&status, MPI_INT) == 1);
    }
    all_here();
    SUCCEEDS(MPI_File_get_position_shared(file, &at));
    CHECK(at == times * size);
    char *seen = calloc(1, times * size);
    for (int i = 0; i < times * size; i++) {
        int value = -1;
        SUCCEEDS(MPI_File_read_at(file, i, &value, 1, MPI_INT, &status));
        CHECK(value >= 0 && value < times * size && !seen[value]);
        seen[value] = 1;
    }
    SUCCEEDS(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    int sum = 0, total = -1;
    for (int i = 0; i < times; i++) {
        int value = 0;
        if (i % 2)
            SUCCEEDS(MPI_File_read_shared(file, &value, 1, MPI_INT, &status));
        else {
            SUCCEEDS(MPI_File_iread_shared(file, &value, 1, MPI_INT, &request));
            SUCCEEDS(MPI_Wait(&request, &status));
        }
        sum += value;
    }
    SUCCEEDS(MPI_Allreduce(&sum, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(total == times * size * (times * size - 1) / 2);
    free(seen);

    SUCCEEDS(MPI_File_seek_shared(file, 5, MPI_SEEK_SET));
    int values[8];
    for (int i = 0; i <= me; i++)
        values[i] = 1000 * me + i;
    SUCCEEDS(MPI_File_write_ordered(file, values, me + 1, MPI_INT, &status));
    CHECK(count_of(&status, MPI_INT) == me + 1);
    SUCCEEDS(MPI_File_write_ordered_begin(file, values, me + 1, MPI_INT));
    SUCCEEDS(MPI_File_write_ordered_end(file, values, &status));
    int round = size * (size + 1) / 2;
    SUCCEEDS(MPI_File_get_position_shared(file, &at));
    CHECK(at == 5 + 2 * round);
    all_here();
    for (int turn = 0, place = 5; turn < 2; turn++)
        for (int rank = 0; rank < size; rank++)
            for (int i = 0; i <= rank; i++) {
                int value = -1;
                SUCCEEDS(MPI_File_read_at(file, place++, &value, 1, MPI_INT, &status));
                CHECK(value == 1000 * rank + i);
            }
    SUCCEEDS(MPI_File_seek_shared(file, 5, MPI_SEEK_SET));
    for (int turn = 0; turn < 2; turn++) {
        int back[8] = {-1};
        if (turn) {
            SUCCEEDS(MPI_File_read_ordered_begin(file, back, me + 1, MPI_INT));
            SUCCEEDS(MPI_File_read_ordered_end(file, back, &status));
        } else
            SUCCEEDS(MPI_File_read_ordered(file, back, me + 1, MPI_INT, &status));
        CHECK(count_of(&status, MPI_INT) == me + 1);
        CHECK(memcmp(back, values, sizeof(int) * (me + 1)) == 0);
    }
    SUCCEEDS(MPI_File_close(&file));

    /* Sequential mode: only the shared pointer, and a view from its position. */
    file = opened("sequential", MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL
                                    | MPI_MODE_DELETE_ON_CLOSE);
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_write(file, values, 1, MPI_INT, &status));
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_seek(file, 0, MPI_SEEK_SET));
    SUCCEEDS(MPI_File_write_ordered(file, values, 1, MPI_INT, &status));
    SUCCEEDS(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    MPI_Datatype etype, filetype;
    char datarep[MPI_MAX_DATAREP_STRING];
    SUCCEEDS(MPI_File_get_view(file, &at, &etype, &filetype, datarep));
    CHECK(at == (MPI_Offset)sizeof(int) * size && etype == MPI_INT && filetype == MPI_INT);
    CHECK(strcmp(datarep, "native") == 0);
    SUCCEEDS(MPI_File_close(&file));
}

/* ---- views, compared with a plain array of bytes ------------------------------------------------- */

static uint64_t state;

static unsigned rnd(unsigned below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

enum { blocks_most = 6, bytes_most = 3000 };

/* A filetype of `unit`s: which of its `extent` positions are visible. */
struct seen {
    int extent, count, places[64];
};

static MPI_Datatype filetype_of(const struct seen *seen, MPI_Datatype unit, int bytes)
{
    MPI_Datatype indexed, resized;
    SUCCEEDS(MPI_Type_create_indexed_block(seen->count, 1, seen->places, unit, &indexed));
    SUCCEEDS(MPI_Type_create_resized(indexed, 0, (MPI_Aint)seen->extent * bytes, &resized));
    SUCCEEDS(MPI_Type_commit(&resized));
    MPI_Type_free(&indexed);
    return resized;
}

/* Returns the position in the file of byte `index` of the view. */
static size_t place_of(const struct seen *seen, int unit, size_t displacement, size_t index)
{
    size_t element = index / unit;
    return displacement + (element / seen->count * seen->extent + seen->places[element % seen->count]) * unit
           + index % unit;
}

/*
 * One round: each process gets some positions of the units of a tile, writes a random part of its view in a random way,
 * and all read everything again with another view.
 */
static void one_round(MPI_File file, unsigned char *oracle, size_t length, int number)
{
    static const MPI_Datatype units[] = {MPI_BYTE, MPI_SHORT, MPI_INT, MPI_DOUBLE};
    static const int sizes[] = {1, 2, 4, 8};
    int which = rnd(4), unit = sizes[which], atomic = rnd(8) == 0;
    struct seen seen[8];
    int extent = 1 + rnd(blocks_most) + size;
    for (int rank = 0; rank < size; rank++)
        seen[rank].extent = extent, seen[rank].count = 0;
    int separate = rnd(3) == 0;
    for (int place = 0; place < extent; place++) {
        int rank = place < size ? place : (int)rnd(size + 1);
        if (rank < size) {
            struct seen *it = &seen[rank];
            it->places[it->count++] = place;
        }
    }
    size_t displacement = rnd(40);
    SUCCEEDS(MPI_File_set_atomicity(file, atomic));
    MPI_Datatype filetype = filetype_of(&seen[me], units[which], unit);
    /* Separate: each process has a dense view of its own part. */
    size_t part = length / size / 8 * 8;
    if (separate)
        SUCCEEDS(MPI_File_set_view(file, part * me, units[which], units[which], "native", MPI_INFO_NULL));
    else
        SUCCEEDS(MPI_File_set_view(file, displacement, units[which], filetype, "native", MPI_INFO_NULL));
    int way = rnd(6), back_way = rnd(5);
    static unsigned char data[8][bytes_most], back[bytes_most];
    size_t offset[8], count[8];
    for (int rank = 0; rank < size; rank++) {
        size_t room = separate ? part / unit
                               : (length - displacement) / (extent * unit) * seen[rank].count;
        size_t most = bytes_most / unit;
        offset[rank] = rnd(room);
        count[rank] = rnd((room - offset[rank] < most ? room - offset[rank] : most) + 1);
        for (size_t i = 0; i < count[rank] * unit; i++) {
            data[rank][i] = rnd(256);
            struct seen plain = {1, 1, {0}};
            size_t index = offset[rank] * unit + i;
            size_t place = separate ? place_of(&plain, unit, part * rank, index)
                                    : place_of(&seen[rank], unit, displacement, index);
            CHECK(place < length);
            oracle[place] = data[rank][i];
        }
    }
    MPI_Status status;
    MPI_Request request;
    int elements = count[me];
    const void *from = data[me];
    if (way == 0)
        SUCCEEDS(MPI_File_write_at(file, offset[me], from, elements, units[which], &status));
    else if (way == 1)
        SUCCEEDS(MPI_File_write_at_all(file, offset[me], from, elements, units[which], &status));
    else if (way == 2) {
        SUCCEEDS(MPI_File_seek(file, offset[me], MPI_SEEK_SET));
        SUCCEEDS(MPI_File_write_all(file, from, elements, units[which], &status));
        MPI_Offset at;
        SUCCEEDS(MPI_File_get_position(file, &at));
        CHECK(at == (MPI_Offset)(offset[me] + count[me]));
    } else if (way == 3) {
        SUCCEEDS(MPI_File_iwrite_at_all(file, offset[me], from, elements, units[which], &request));
        SUCCEEDS(MPI_Wait(&request, &status));
    } else if (way == 4) {
        SUCCEEDS(MPI_File_write_at_all_begin(file, offset[me], from, elements, units[which]));
        SUCCEEDS(MPI_File_write_at_all_end(file, from, &status));
    } else {
        /* The elements have gaps in memory. */
        MPI_Datatype apart;
        static unsigned char spread[3 * bytes_most];
        SUCCEEDS(MPI_Type_create_resized(units[which], 0, 3 * unit, &apart));
        SUCCEEDS(MPI_Type_commit(&apart));
        for (int i = 0; i < elements; i++)
            memcpy(spread + 3 * unit * i, data[me] + unit * i, unit);
        SUCCEEDS(MPI_File_write_at_all(file, offset[me], spread, elements, apart, &status));
        MPI_Type_free(&apart);
    }
    CHECK(count_of(&status, units[which]) == elements);
    SUCCEEDS(MPI_File_sync(file));
    all_here();

    memset(back, 0, sizeof back);
    if (back_way == 0)
        SUCCEEDS(MPI_File_read_at(file, offset[me], back, elements, units[which], &status));
    else if (back_way == 1)
        SUCCEEDS(MPI_File_read_at_all(file, offset[me], back, elements, units[which], &status));
    else if (back_way == 2) {
        SUCCEEDS(MPI_File_seek(file, offset[me], MPI_SEEK_SET));
        SUCCEEDS(MPI_File_iread_all(file, back, elements, units[which], &request));
        SUCCEEDS(MPI_Wait(&request, &status));
    } else if (back_way == 3) {
        SUCCEEDS(MPI_File_seek(file, offset[me], MPI_SEEK_SET));
        SUCCEEDS(MPI_File_read_all_begin(file, back, elements, units[which]));
        SUCCEEDS(MPI_File_read_all_end(file, back, &status));
    } else {
        MPI_Datatype apart;
        static unsigned char spread[3 * bytes_most];
        SUCCEEDS(MPI_Type_create_resized(units[which], 0, 3 * unit, &apart));
        SUCCEEDS(MPI_Type_commit(&apart));
        SUCCEEDS(MPI_File_read_at_all(file, offset[me], spread, elements, apart, &status));
        for (int i = 0; i < elements; i++)
            memcpy(back + unit * i, spread + 3 * unit * i, unit);
        MPI_Type_free(&apart);
    }
    CHECK(count_of(&status, units[which]) == elements);
    if (memcmp(back, data[me], count[me] * unit) != 0) {
        fprintf(stderr, "round %d, ways %d and %d\n", number, way, back_way);
        CHECK(!"what was written is read");
    }
    MPI_Type_free(&filetype);
}

static void views(void)
{
    enum { length = 40000, rounds = 150 };
    static unsigned char oracle[length], whole[length];
    MPI_File file = opened("views", fresh);
    SUCCEEDS(MPI_File_set_size(file, length));
    state = 12345;
    for (int number = 0; number < rounds; number++) {
        one_round(file, oracle, length, number);
        if (number % 10 == 9) {
            MPI_Status status;
            SUCCEEDS(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
            SUCCEEDS(MPI_File_read_at_all(file, 0, whole, length, MPI_BYTE, &status));
            CHECK(count_of(&status, MPI_BYTE) == length);
            CHECK(memcmp(whole, oracle, length) == 0);
            all_here();
        }
    }
    SUCCEEDS(MPI_File_close(&file));
}

/*
 * A filetype's extent may be shorter than its span, so that repetitions overlap: each process has positions of one
 * filetype, or several repetitions in a part of its own, where later ones overwrite earlier ones.
 */
static void short_extents(void)
{
    enum { span = 24, part = 1000, length = 8 * part, rounds = 150 };
    static unsigned char oracle[length], whole[length];
    MPI_File file = opened("short", fresh);
    SUCCEEDS(MPI_File_set_size(file, length));
    state = 777;
    for (int number = 0; number < rounds; number++) {
        struct seen seen[8];
        int extent = (int)rnd(span + 6) - 5, between = rnd(2), atomic = rnd(6) == 0, way = rnd(3);
        for (int rank = 0; rank < size; rank++)
            seen[rank].extent = extent, seen[rank].count = 0;
        for (int place = 0; place < span; place++) {
            struct seen *it = &seen[place < size ? place : (int)rnd(size)];
            it->places[it->count++] = place;
        }
        unsigned char data[8][8 * span], back[8 * span];
        int offset[8], count[8];
        for (int rank = 0; rank < size; rank++) {
            const struct seen *it = &seen[rank];
            int room = it->count * (between ? 1 : 5);
            offset[rank] = rnd(room);
            count[rank] = rnd(room - offset[rank] + 1);
            for (int i = 0; i < count[rank]; i++) {
                int index = offset[rank] + i;
                int place = index / it->count * extent + it->places[index % it->count];
                data[rank][i] = rnd(256);
                oracle[(between ? part : part * rank) + part / 2 + place] = data[rank][i];
            }
        }
        MPI_Datatype filetype = filetype_of(&seen[me], MPI_BYTE, 1);
        MPI_Offset displacement = (between ? part : part * me) + part / 2, byte;
        MPI_Status status;
        SUCCEEDS(MPI_File_set_atomicity(file, atomic));
        SUCCEEDS(MPI_File_set_view(file, displacement, MPI_BYTE, filetype, "native", MPI_INFO_NULL));
        SUCCEEDS(MPI_File_get_byte_offset(file, seen[me].count + (1 % seen[me].count), &byte));
        CHECK(byte == displacement + extent + seen[me].places[1 % seen[me].count]);
        if (way == 0)
            SUCCEEDS(MPI_File_write_at(file, offset[me], data[me], count[me], MPI_BYTE, &status));
        else
            SUCCEEDS(MPI_File_write_at_all(file, offset[me], data[me], count[me], MPI_BYTE, &status));
        CHECK(count_of(&status, MPI_BYTE) == count[me]);
        SUCCEEDS(MPI_File_sync(file));
        all_here();
        if (way == 1)
            SUCCEEDS(MPI_File_read_at(file, offset[me], back, count[me], MPI_BYTE, &status));
        else
            SUCCEEDS(MPI_File_read_at_all(file, offset[me], back, count[me], MPI_BYTE, &status));
        CHECK(count_of(&status, MPI_BYTE) == count[me]);
        for (int i = 0; i < count[me]; i++) {
            int index = offset[me] + i;
            int place = index / seen[me].count * extent + seen[me].places[index % seen[me].count];
            CHECK(back[i] == oracle[displacement + place]);
        }
        SUCCEEDS(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
        SUCCEEDS(MPI_File_read_at_all(file, 0, whole, length, MPI_BYTE, &status));
        CHECK(count_of(&status, MPI_BYTE) == length && memcmp(whole, oracle, length) == 0);
        all_here();
        MPI_Type_free(&filetype);
    }

    /* A struct of plain and resized parts has the bounds of the resized ones. */
    MPI_Datatype plain, five, resized, mixed;
    SUCCEEDS(MPI_Type_contiguous(16, MPI_BYTE, &plain));
    SUCCEEDS(MPI_Type_contiguous(5, MPI_BYTE, &five));
    SUCCEEDS(MPI_Type_create_resized(five, 0, 16, &resized));
    SUCCEEDS(MPI_Type_create_struct(3, (int[]){1, 1, 1}, (MPI_Aint[]){0, 16, 32},
                                    (MPI_Datatype[]){plain, resized, plain}, &mixed));
    SUCCEEDS(MPI_Type_commit(&mixed));
    char letters[37], there[48], wanted[48] = {0};
    for (int i = 0; i < 37; i++)
        letters[i] = 'a' + i % 26;
    memcpy(wanted, letters, 21);
    memcpy(wanted + 32, letters + 21, 16);
    SUCCEEDS(MPI_File_set_view(file, length + 48 * me, MPI_BYTE, mixed, "native", MPI_INFO_NULL));
    SUCCEEDS(MPI_File_write_all(file, letters, 37, MPI_BYTE, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_File_sync(file));
    all_here();
    SUCCEEDS(MPI_File_set_view(file, length + 48 * me, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    memset(there, 0, sizeof there);
    SUCCEEDS(MPI_File_read_all(file, there, 48, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(memcmp(there, wanted, sizeof there) == 0);
    MPI_Type_free(&plain);
    MPI_Type_free(&five);
    MPI_Type_free(&resized);
    MPI_Type_free(&mixed);
    SUCCEEDS(MPI_File_close(&file));
}

/* So much data that collective accesses need several rounds. The last read goes beyond the end. */
static void large(void)
{
    enum { block = 1000 };
    int blocks = 24 * 1000 * 1000 / block;
    size_t bytes = (size_t)blocks * block;
    unsigned char *data = malloc(bytes), *back = malloc(bytes + block);
    memset(back, 99, bytes + block);
    for (size_t i = 0; i < bytes; i++)
        data[i] = (unsigned char)(i * 7 + i / 251 + 31 * me);
    MPI_File file = opened("large", fresh);
    MPI_Datatype one, filetype;
    SUCCEEDS(MPI_Type_contiguous(block, MPI_BYTE, &one));
    SUCCEEDS(MPI_Type_create_resized(one, 0, (MPI_Aint)block * size, &filetype));
    SUCCEEDS(MPI_Type_commit(&filetype));
    SUCCEEDS(MPI_File_set_view(file, (MPI_Offset)block * me, MPI_BYTE, filetype, "native", MPI_INFO_NULL));
    MPI_Status status;
    SUCCEEDS(MPI_File_write_all(file, data, bytes, MPI_BYTE, &status));
    CHECK(count_of(&status, MPI_BYTE) == (int)bytes);
    MPI_Offset there;
    SUCCEEDS(MPI_File_get_size(file, &there));
    CHECK(there == (MPI_Offset)bytes * size);
    SUCCEEDS(MPI_File_read_at_all(file, 0, back, bytes + block, MPI_BYTE, &status));
    CHECK(count_of(&status, MPI_BYTE) == (int)bytes);
    CHECK(memcmp(back, data, bytes) == 0);
    /* Memory for bytes beyond the end of the file is not written. */
    for (int i = 0; i < block; i++)
        CHECK(back[bytes + i] == 99);
    memset(back, 0, bytes);
    SUCCEEDS(MPI_File_read_at(file, 0, back, bytes, MPI_BYTE, &status));
    CHECK(memcmp(back, data, bytes) == 0);
    MPI_Datatype etype, got;
    MPI_Offset displacement;
    char datarep[MPI_MAX_DATAREP_STRING];
    SUCCEEDS(MPI_File_get_view(file, &displacement, &etype, &got, datarep));
    int integers, addresses, types, combiner;
    SUCCEEDS(MPI_Type_get_envelope(got, &integers, &addresses, &types, &combiner));
    CHECK(combiner == MPI_COMBINER_RESIZED && etype == MPI_BYTE && displacement == block * me);
    MPI_Type_free(&got);
    MPI_Type_free(&one);
    MPI_Type_free(&filetype);
    SUCCEEDS(MPI_File_close(&file));
    free(data);
    free(back);
}

/* In atomic mode, if two processes write the same bytes, those of one of them remain. */
static void atomicity(void)
{
    enum { count = 100000 };
    MPI_File file = opened("atomic", fresh);
    SUCCEEDS(MPI_File_set_atomicity(file, 1));
    MPI_Datatype every;
    SUCCEEDS(MPI_Type_create_resized(MPI_BYTE, 0, 7, &every));
    SUCCEEDS(MPI_Type_commit(&every));
    SUCCEEDS(MPI_File_set_view(file, 0, MPI_BYTE, every, "native", MPI_INFO_NULL));
    char *data = malloc(count);
    memset(data, 'a' + me, count);
    for (int turn = 0; turn < 5; turn++) {
        SUCCEEDS(MPI_File_write_at(file, 0, data, count / 50, MPI_BYTE, MPI_STATUS_IGNORE));
        char *back = malloc(count);
        MPI_Status status;
        SUCCEEDS(MPI_File_read_at(file, 0, back, count / 50, MPI_BYTE, &status));
        for (int i = 1; i < count / 50; i++)
            CHECK(back[i] == back[0]);
        free(back);
    }
    all_here();
    free(data);
    MPI_Type_free(&every);
    SUCCEEDS(MPI_File_close(&file));
}

/* ---- representations ----------------------------------------------------------------------------- */

static int extent_calls;
static int extent_of(MPI_Datatype type, MPI_Aint *extent, void *extra)
{
    CHECK(*(int *)extra == 77);
    extent_calls++;
    int bytes;
    MPI_Type_size(type, &bytes);
    *extent = 2 * bytes;
    return MPI_SUCCESS;
}
static int write_twice(void *user, MPI_Datatype type, int count, void *file, MPI_Offset position,
                       void *extra)
{
    CHECK(*(int *)extra == 77 && type == MPI_INT);
    for (int i = 0; i < count; i++)
        for (int twice = 0; twice < 2; twice++)
            memcpy((char *)file + 4 * (2 * (i + position) + twice), (char *)user + 4 * i, 4);
    return MPI_SUCCESS;
}
static int read_twice(void *user, MPI_Datatype type, int count, void *file, MPI_Offset position,
                      void *extra)
{
    CHECK(*(int *)extra == 77 && type == MPI_INT);
    for (int i = 0; i < count; i++)
        memcpy((char *)user + 4 * (i + position), (char *)file + 8 * i, 4);
    return MPI_SUCCESS;
}

static void representations(void)
{
    MPI_File file = opened("representations", fresh);
    MPI_Status status;
    MPI_Aint extent = 0;
    char datarep[MPI_MAX_DATAREP_STRING];
    MPI_Offset at;
    MPI_Datatype etype, filetype;
    SUCCEEDS(MPI_File_set_view(file, 64 * me, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL));
    SUCCEEDS(MPI_File_get_view(file, &at, &etype, &filetype, datarep));
    CHECK(strcmp(datarep, "external32") == 0);
    int values[3] = {0x01020304, -2, me}, back[5] = {0};
    SUCCEEDS(MPI_File_write_at_all(file, 1, values, 3, MPI_INT, &status));
    CHECK(count_of(&status, MPI_INT) == 3);
    SUCCEEDS(MPI_File_read_at_all(file, 1, back, 3, MPI_INT, &status));
    CHECK(count_of(&status, MPI_INT) == 3 && memcmp(back, values, sizeof values) == 0);
    unsigned char raw[12];
    SUCCEEDS(MPI_File_set_view(file, 64 * me, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    SUCCEEDS(MPI_File_read_at(file, 4, raw, 12, MPI_BYTE, &status));
    CHECK(raw[0] == 1 && raw[1] == 2 && raw[2] == 3 && raw[3] == 4 && raw[7] == 0xfe);
    all_here();

    /* In external32, a long has four bytes. */
    MPI_Datatype vector;
    SUCCEEDS(MPI_Type_vector(2, 1, size, MPI_LONG, &vector));
    SUCCEEDS(MPI_Type_commit(&vector));
    SUCCEEDS(MPI_File_set_view(file, 4 * me, MPI_LONG, vector, "external32", MPI_INFO_NULL));
    SUCCEEDS(MPI_File_get_type_extent(file, MPI_LONG, &extent));
    CHECK(extent == 4);
    SUCCEEDS(MPI_File_get_type_extent(file, vector, &extent));
    CHECK(extent == 4 * (size + 1));
    long longs[2] = {10 + me, -20 - me}, long_back[2] = {0};
    SUCCEEDS(MPI_File_write_all(file, longs, 2, MPI_LONG, &status));
    SUCCEEDS(MPI_File_read_at_all(file, 0, long_back, 2, MPI_LONG, &status));
    CHECK(count_of(&status, MPI_LONG) == 2 && memcmp(longs, long_back, sizeof longs) == 0);
    SUCCEEDS(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "internal", MPI_INFO_NULL));
    SUCCEEDS(MPI_File_read_at(file, 4 * me, raw, 4, MPI_BYTE, &status));
    CHECK(raw[3] == 10 + me && raw[0] == 0);
    all_here();
    MPI_Type_free(&vector);

    static int extra = 77;
    SUCCEEDS(MPI_Register_datarep("twice", read_twice, write_twice, extent_of, &extra));
    FAILS(MPI_ERR_DUP_DATAREP, MPI_Register_datarep("twice", read_twice, write_twice, extent_of, &extra));
    FAILS(MPI_ERR_DUP_DATAREP, MPI_Register_datarep("native", read_twice, write_twice, extent_of, &extra));
    FAILS(MPI_ERR_ARG, MPI_Register_datarep("none", read_twice, write_twice, NULL, &extra));
    SUCCEEDS(MPI_Register_datarep("plain", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent_of, &extra));
    SUCCEEDS(MPI_File_set_view(file, 64 * me, MPI_INT, MPI_INT, "twice", MPI_INFO_NULL));
    CHECK(extent_calls > 0);
    SUCCEEDS(MPI_File_write_at(file, 2, values, 3, MPI_INT, &status));
    CHECK(count_of(&status, MPI_INT) == 3);
    memset(back, 0, sizeof back);
    SUCCEEDS(MPI_File_read_at(file, 2, back, 3, MPI_INT, &status));
    CHECK(count_of(&status, MPI_INT) == 3 && memcmp(back, values, sizeof values) == 0);
    SUCCEEDS(MPI_File_set_view(file, 64 * me, MPI_INT, MPI_INT, "plain", MPI_INFO_NULL));
    SUCCEEDS(MPI_File_read_at(file, 4, back, 4, MPI_INT, &status));
    CHECK(back[0] == values[0] && back[1] == values[0] && back[3] == values[1]);
    all_here();
    SUCCEEDS(MPI_File_close(&file));
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"opening", opening},   {"mistakes", mistakes},   {"full", full},
        {"pointers", pointers}, {"shared", shared},       {"reset", reset},         {"views", views}, {"short_extents", short_extents},
        {"large", large},       {"atomicity", atomicity}, {"representations", representations},
        {NULL, NULL},
    };
    if (argc > 2)
        folder = argv[2];
    return play(argc, argv, scenarios);
}
