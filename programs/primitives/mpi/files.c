/* Files of MPI, in the folder of the program.
 *
 * file-open: a file is opened and closed. file-set-view: sets a view of runs of 8 bytes, assigned to the tasks in turn.
 * file-read-runs, file-write-runs: each task alone reads or writes 1000 runs through that view; with -all at the end,
 * all tasks do so collectively. file-write-shared, file-write-ordered: records of 64 bytes are written at the shared
 * file pointer.
 *
 * What is read is compared with what was written. What is written is read again before the clock starts. */
#ifdef ENV_MPI
#include "expect.h"

enum { FILE_RUN = 8, FILE_RUNS = 1000, FILE_RECORD = 64 };
enum { FILE_BYTES = FILE_RUN * FILE_RUNS };
enum file_view { FILE_PLAIN, FILE_DEALT };

static MPI_File file_handle = MPI_FILE_NULL;
static MPI_Datatype file_runs = MPI_DATATYPE_NULL;
static enum file_view file_seen;
/* Stamp of the runs in the file, or 0 if something else was written since. */
static uint32_t file_stamp;
static char file_name[4096 + 32];

static void file_close(void)
{
    MPI_File_close(&file_handle);
    MPI_Type_free(&file_runs);
    if (me == 0)
        MPI_File_delete(file_name, MPI_INFO_NULL);
}

static void file_set_view_to(enum file_view view)
{
    if (view == FILE_DEALT)
        MPI_File_set_view(file_handle, me * FILE_RUN, MPI_BYTE, file_runs, "native", MPI_INFO_NULL);
    else
        MPI_File_set_view(file_handle, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    file_seen = view;
}

/* Opens the file at the first call, and sets this view. */
static void file_ready(enum file_view view)
{
    if (file_handle == MPI_FILE_NULL) {
        char program[4096];
        int number = (int)getpid();
        MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
        env_program(program, sizeof program);
        snprintf(file_name, sizeof file_name, "%s.%d", program, number);
        MPI_File_open(MPI_COMM_WORLD, file_name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file_handle);
        EXPECT(file_handle != MPI_FILE_NULL, "MPI_File_open", "cannot create a file beside the program");
        MPI_File_set_errhandler(file_handle, MPI_ERRORS_ARE_FATAL);
        MPI_Type_vector(FILE_RUNS, FILE_RUN, FILE_RUN * tasks, MPI_BYTE, &file_runs);
        MPI_Type_commit(&file_runs);
        env_before_finalize(file_close);
        file_set_view_to(FILE_PLAIN);
    }
    if (file_seen != view)
        file_set_view_to(view);
}

static void file_open(size_t bytes, long n)
{
    (void)bytes;
    file_ready(FILE_PLAIN);
    for (long i = 0; i < n; i++) {
        MPI_File file;
        int failed = MPI_File_open(MPI_COMM_WORLD, file_name, MPI_MODE_RDWR, MPI_INFO_NULL, &file);
        EXPECT(failed == MPI_SUCCESS, "MPI_File_open", "cannot open the file again");
        MPI_File_close(&file);
    }
}

static void file_set_view(size_t bytes, long n)
{
    (void)bytes;
    file_ready(FILE_DEALT);
    for (long i = 0; i < n; i++)
        file_set_view_to(FILE_DEALT);
}

/* Writes the runs of all tasks, with a stamp for each task, unless they are in the file. Before the clock starts they
 * are always written. */
static void file_fill(void)
{
    if (!payload_whole && file_stamp)
        return;
    file_stamp = payload_turn * 64;
    payload_fill(payload_a, FILE_BYTES, file_stamp + (uint32_t)me);
    MPI_File_write_at_all(file_handle, 0, payload_a, FILE_BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Compares this task's runs: all before the clock starts, later the first and the last. */
static void file_compare(uint32_t stamp)
{
    if (payload_whole) {
        payload_compare(payload_b, FILE_BYTES, stamp + (uint32_t)me);
    } else {
        uint64_t first = payload_word(0, stamp + (uint32_t)me), last = payload_word(FILE_RUNS - 1, stamp + (uint32_t)me);
        EXPECT(!memcmp(payload_b, &first, FILE_RUN) && !memcmp(payload_b + FILE_BYTES - FILE_RUN, &last, FILE_RUN), "MPI_File_read",
               "the runs have another content than was written");
    }
}

static inline void file_read_runs_by(long n, int together)
{
    file_ready(FILE_DEALT);
    file_fill();
    for (long i = 0; i < n; i++) {
        payload_b[0] = payload_b[FILE_BYTES - 1] = 0;
        if (together)
            MPI_File_read_at_all(file_handle, 0, payload_b, FILE_BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
        else
            MPI_File_read_at(file_handle, 0, payload_b, FILE_BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
        file_compare(file_stamp);
    }
}

static inline void file_write_runs_by(long n, int together)
{
    uint32_t stamp = payload_turn * 64;
    file_ready(FILE_DEALT);
    file_stamp = 0;
    payload_fill(payload_a, FILE_BYTES, stamp + (uint32_t)me);
    for (long i = 0; i < n; i++) {
        if (together)
            MPI_File_write_at_all(file_handle, 0, payload_a, FILE_BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
        else
            MPI_File_write_at(file_handle, 0, payload_a, FILE_BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    if (payload_whole) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_File_read_at(file_handle, 0, payload_b, FILE_BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
        file_compare(stamp);
    }
}

/* Checks that the record of each task is in the file once, and, if `ordered`, at the position of its rank. */
static void file_find_records(int ordered)
{
    char *records = payload_b;
    int found = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_read_at(file_handle, 0, records, FILE_RECORD * tasks, MPI_BYTE, MPI_STATUS_IGNORE);
    for (int place = 0; place < tasks; place++)
        found += !memcmp(records + place * FILE_RECORD, payload_a, FILE_RECORD) && (!ordered || place == me);
    EXPECT(found == 1, ordered ? "MPI_File_write_ordered" : "MPI_File_write_shared", "the file does not have this task's record once");
    MPI_Barrier(MPI_COMM_WORLD);
}

static inline void file_write_records(long n, int ordered)
{
    file_ready(FILE_PLAIN);
    file_stamp = 0;
    payload_fill(payload_a, FILE_RECORD, payload_turn * 64 + (uint32_t)me);
    MPI_File_seek_shared(file_handle, 0, MPI_SEEK_SET);
    for (long i = 0; i < n; i++) {
        if (ordered)
            MPI_File_write_ordered(file_handle, payload_a, FILE_RECORD, MPI_BYTE, MPI_STATUS_IGNORE);
        else
            MPI_File_write_shared(file_handle, payload_a, FILE_RECORD, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    if (payload_whole)
        file_find_records(ordered);
}

static void file_read_runs(size_t bytes, long n)
{
    (void)bytes;
    file_read_runs_by(n, 0);
}

static void file_read_runs_all(size_t bytes, long n)
{
    (void)bytes;
    file_read_runs_by(n, 1);
}

static void file_write_runs(size_t bytes, long n)
{
    (void)bytes;
    file_write_runs_by(n, 0);
}

static void file_write_runs_all(size_t bytes, long n)
{
    (void)bytes;
    file_write_runs_by(n, 1);
}

static void file_write_shared(size_t bytes, long n)
{
    (void)bytes;
    file_write_records(n, 0);
}

static void file_write_ordered(size_t bytes, long n)
{
    (void)bytes;
    file_write_records(n, 1);
}

OPERATION(file_open, .name = "file-open", .run = file_open, .parts = 1)
OPERATION(file_set_view, .name = "file-set-view", .run = file_set_view, .parts = 1)
OPERATION(file_read_runs, .name = "file-read-runs", .run = file_read_runs, .parts = 1, .unit = FILE_BYTES)
OPERATION(file_read_runs_all, .name = "file-read-runs-all", .run = file_read_runs_all, .parts = 1, .unit = FILE_BYTES)
OPERATION(file_write_runs, .name = "file-write-runs", .run = file_write_runs, .parts = 1, .unit = FILE_BYTES)
OPERATION(file_write_runs_all, .name = "file-write-runs-all", .run = file_write_runs_all, .parts = 1, .unit = FILE_BYTES)
OPERATION(file_write_shared, .name = "file-write-shared", .run = file_write_shared, .parts = 1, .unit = FILE_RECORD, .all_to_all = 1)
OPERATION(file_write_ordered, .name = "file-write-ordered", .run = file_write_ordered, .parts = 1, .unit = FILE_RECORD, .all_to_all = 1)
#endif
