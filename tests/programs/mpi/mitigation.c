/*
 * Processes fail while others agree, revoke a communicator, or are in a collective. The survivors get the error, go on,
 * and must all have got the same results. A process kills itself by a timer signal, wherever it is at that moment.
 */
#include "mpi_check.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* The second argument is the rank of the process that kills itself, the third a seed. */
static int victim = 1;
static unsigned seed = 1;

/* Returns a random time of at most `most` microseconds until the victim dies. */
static unsigned draw(unsigned most)
{
    seed = seed * 1103515245u + 12345u;
    return (seed >> 8) % most + 1;
}

static void end_now(int number)
{
    (void)number;
    kill(getpid(), SIGKILL);
}

static void end_soon(unsigned most)
{
    struct itimerval when = {{0, 0}, {0, (int)draw(most)}};
    signal(SIGALRM, end_now);
    CHECK(setitimer(ITIMER_REAL, &when, NULL) == 0);
}

/*
 * Kills the victim soon, once all have passed the preceding barrier: a process that is still in one may get the error.
 */
static void fail_soon(unsigned most)
{
    enum { PASSED = 99 };
    char word = 0;
    if (me == victim) {
        for (int rank = 0; rank < size; rank++)
            if (rank != me)
                SUCCEEDS(MPI_Recv(&word, 1, MPI_CHAR, rank, PASSED, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        end_soon(most);
    } else if (victim >= 0) {
        SUCCEEDS(MPI_Send(&word, 1, MPI_CHAR, victim, PASSED, MPI_COMM_WORLD));
    }
}

static double now(void)
{
    struct timespec at;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &at) == 0);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

/* Line number that is printed if a process hangs. */
static volatile int line_now;

static void hung(int number)
{
    (void)number;
    fprintf(stderr, "HUNG process %d near line %d\n", me, line_now);
    _exit(4);
}

static void be_patient(void)
{
    if (me != victim) {
        signal(SIGALRM, hung);
        alarm(60);
    }
}

#define HERE (line_now = __LINE__)

/* Checks that all survivors have the same value. */
static void check_same(MPI_Comm rest, long value)
{
    long both[2] = {value, -value}, most[2];
    SUCCEEDS(MPI_Allreduce(both, most, 2, MPI_LONG, MPI_MAX, rest));
    CHECK(most[0] == value && most[1] == -value);
}

/* The survivors acknowledge all failures, so that agreements succeed again, and shrink the communicator. */
static MPI_Comm go_on(MPI_Comm comm, int expected)
{
    MPI_Comm rest;
    int count, flag, code, tries = 0;
    do {
        /* Processes notice a failure at different times. */
        int acknowledged;
        SUCCEEDS(MPIX_Comm_ack_failed(comm, size, &acknowledged));
        flag = ~(1 << me);
        HERE;
        code = MPIX_Comm_agree(comm, &flag);
        CHECK(code == MPI_SUCCESS || class_of(code) == MPIX_ERR_PROC_FAILED);
        CHECK(tries++ < 100000);
    } while (code != MPI_SUCCESS);
    int living = 0;
    for (int rank = 0; rank < size; rank++)
        living |= rank == victim && expected < size ? 0 : 1 << rank;
    CHECK((flag & living) == 0);
    HERE;
    SUCCEEDS(MPIX_Comm_shrink(comm, &rest));
    SUCCEEDS(MPI_Comm_size(rest, &count));
    CHECK(count == expected);
    int one = 1, sum = 0;
    HERE;
    SUCCEEDS(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, rest));
    CHECK(sum == expected);
    return rest;
}

/*
 * Agrees repeatedly, until a process fails during an agreement: all survivors must have got the same flags and errors.
 */
static void agree(void)
{
    MPI_Comm comm, rest;
    SUCCEEDS(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    be_patient();
    SUCCEEDS(MPI_Barrier(comm));
    fail_soon(20000);
    long history = 0;
    int code, rounds = 0;
    do {
        int flag = ~(1 << (me + 8 * (rounds % 2)));
        HERE;
        code = MPIX_Comm_agree(comm, &flag);
        history = history * 31 + flag + class_of(code);
        rounds++;
    } while (code == MPI_SUCCESS);
    CHECK(class_of(code) == MPIX_ERR_PROC_FAILED);
    rest = go_on(comm, size - 1);
    check_same(rest, history);
    check_same(rest, rounds);
    SUCCEEDS(MPI_Comm_free(&rest));
    SUCCEEDS(MPI_Comm_free(&comm));
}

/* As above, but all start the agreement before any of them waits. */
static void agree_later(void)
{
    enum { AT_ONCE = 5 };
    MPI_Comm comm, rest;
    SUCCEEDS(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    be_patient();
    SUCCEEDS(MPI_Barrier(comm));
    fail_soon(20000);
    long history = 0;
    int failed = 0;
    while (!failed) {
        MPI_Request requests[AT_ONCE];
        int flags[AT_ONCE];
        for (int i = 0; i < AT_ONCE; i++) {
            flags[i] = ~(1 << (me + i));
            SUCCEEDS(MPIX_Comm_iagree(comm, &flags[i], &requests[i]));
        }
        for (int i = AT_ONCE - 1; i >= 0; i--) {
            HERE;
            int code = MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
            if (code != MPI_SUCCESS && class_of(code) != MPIX_ERR_PROC_FAILED)
                SUCCEEDS(code);
            failed |= code != MPI_SUCCESS;
            history = history * 31 + flags[i] + class_of(code);
        }
    }
    rest = go_on(comm, size - 1);
    check_same(rest, history);
    SUCCEEDS(MPI_Comm_free(&rest));
    SUCCEEDS(MPI_Comm_free(&comm));
}

/* A process fails during collectives. The first to notice revokes the communicator, so that all others leave theirs. */
static void collective(void)
{
    MPI_Comm comm, rest;
    SUCCEEDS(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    be_patient();
    SUCCEEDS(MPI_Barrier(comm));
    fail_soon(30000);
    static char large[200000];
    int code = MPI_SUCCESS;
    for (int round = 0; code == MPI_SUCCESS; round++) {
        int one = 1, sum, got, next = (me + 1) % size, last = (me + size - 1) % size;
        MPI_Request request;
        HERE;
        switch (round % 5) {
        case 0:
            code = MPI_Barrier(comm);
            break;
        case 1:
            code = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
            break;
        case 2:
            code = MPI_Bcast(large, sizeof large, MPI_BYTE, round % size, comm);
            break;
        case 3:
            code = MPI_Ibarrier(comm, &request);
            if (code == MPI_SUCCESS)
                code = MPI_Wait(&request, MPI_STATUS_IGNORE);
            break;
        default:
            /* Only the two neighbours notice the failure at once. */
            code = MPI_Sendrecv(&me, 1, MPI_INT, next, 0, &got, 1, MPI_INT, last, 0, comm, MPI_STATUS_IGNORE);
        }
    }
    CHECK(class_of(code) == MPIX_ERR_PROC_FAILED || class_of(code) == MPIX_ERR_REVOKED);
    HERE;
    SUCCEEDS(MPIX_Comm_revoke(comm));
    FAILS(MPIX_ERR_REVOKED, MPI_Barrier(comm));
    rest = go_on(comm, size - 1);
    int revoked = 0;
    SUCCEEDS(MPIX_Comm_is_revoked(comm, &revoked));
    CHECK(revoked);
    SUCCEEDS(MPIX_Comm_is_revoked(rest, &revoked));
    CHECK(!revoked);
    SUCCEEDS(MPI_Comm_free(&rest));
    SUCCEEDS(MPI_Comm_free(&comm));
}

/* A persistent collective, on a communicator of its own. */
static MPI_Request persistent;

/* Calls in which all but process 0 wait, for process 0 where possible. */
static int wait_in(int kind, MPI_Comm comm)
{
    static char large[3000000];
    static int all[1024], one = 1, sum;
    MPI_Request requests[2];
    MPI_Message message;
    int code, other = me == size - 1 ? 1 : me + 1;
    switch (kind) {
    case 0:
        return MPI_Recv(&one, 1, MPI_INT, other, 5, comm, MPI_STATUS_IGNORE);
    case 1:
        return MPI_Recv(&one, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, MPI_STATUS_IGNORE);
    case 2:
        return MPI_Ssend(&one, 1, MPI_INT, other, 5, comm);
    case 3:
        /* Process 0 may receive messages while it waits for something else, until its buffer is full. */
        do
            code = MPI_Send(large, sizeof large, MPI_BYTE, 0, 5, comm);
        while (code == MPI_SUCCESS);
        return code;
    case 4:
        return MPI_Probe(other, 5, comm, MPI_STATUS_IGNORE);
    case 5:
        return MPI_Mprobe(MPI_ANY_SOURCE, 5, comm, &message, MPI_STATUS_IGNORE);
    case 6:
        return MPI_Barrier(comm);
    case 7:
        return MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    case 8:
        return MPI_Allreduce(MPI_IN_PLACE, large, sizeof large / 4, MPI_INT, MPI_SUM, comm);
    case 9:
        return MPI_Bcast(large, sizeof large, MPI_BYTE, 0, comm);
    case 10:
        code = MPI_Ibarrier(comm, &requests[0]);
        return code == MPI_SUCCESS ? MPI_Wait(&requests[0], MPI_STATUS_IGNORE) : code;
    case 11:
        code = MPI_Iallgather(&one, 1, MPI_INT, all, 1, MPI_INT, comm, &requests[0]);
        if (code != MPI_SUCCESS)
            return code;
        if (MPI_Irecv(&sum, 1, MPI_INT, 0, 5, comm, &requests[1]) != MPI_SUCCESS)
            return MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        for (int i = 0; i < 2; i++) {
            code = MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
            if (class_of(code) != MPIX_ERR_REVOKED)
                return code;
        }
        return code;
    case 12: {
        MPI_Comm copy;
        return MPI_Comm_dup(comm, &copy);
    }
    case 13: {
        int done = 0;
        code = MPI_Irecv(&one, 1, MPI_INT, 0, 5, comm, &requests[0]);
        while (code == MPI_SUCCESS && !done)
            code = MPI_Test(&requests[0], &done, MPI_STATUS_IGNORE);
        return code;
    }
    case 14:
        code = MPI_Start(&persistent);
        return code == MPI_SUCCESS ? MPI_Wait(&persistent, MPI_STATUS_IGNORE) : code;
    default:
        return -1;
    }
}

/* Process 0 revokes a communicator in which all others wait. */
static void blocked(void)
{
    be_patient();
    for (int kind = 0; kind < 15; kind++) {
        MPI_Comm comm, rest;
        SUCCEEDS(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        SUCCEEDS(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
        HERE;
        SUCCEEDS(MPI_Barrier_init(comm, MPI_INFO_NULL, &persistent));
        /* A barrier of another communicator: some processes could still be in it when this one is revoked. */
        SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
        if (me == 0) {
            /* In every other case, the others have fallen asleep by then. */
            if (kind % 2 == 0 || size > 4)
                poll(NULL, 0, 20);
            SUCCEEDS(MPIX_Comm_revoke(comm));
        } else {
            int code = wait_in(kind, comm);
            if (class_of(code) != MPIX_ERR_REVOKED) {
                fprintf(stderr, "process %d: kind %d gave %d\n", me, kind, code);
                exit(1);
            }
        }
        int got;
        FAILS(MPIX_ERR_REVOKED, MPI_Send(&me, 1, MPI_INT, 0, 0, comm));
        FAILS(MPIX_ERR_REVOKED, MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 0, comm, MPI_STATUS_IGNORE));
        FAILS(MPIX_ERR_REVOKED, MPI_Send(&me, 1, MPI_INT, MPI_PROC_NULL, 0, comm));
        FAILS(MPIX_ERR_REVOKED, MPI_Recv(&got, 1, MPI_INT, MPI_PROC_NULL, 0, comm, MPI_STATUS_IGNORE));
        FAILS(MPIX_ERR_REVOKED, MPI_Barrier(comm));
        FAILS(MPIX_ERR_REVOKED, MPI_Scan(&me, &got, 1, MPI_INT, MPI_SUM, comm));
        SUCCEEDS(MPI_Request_free(&persistent));
        victim = -1;
        HERE;
        rest = go_on(comm, size);
        SUCCEEDS(MPI_Comm_free(&rest));
        SUCCEEDS(MPI_Comm_free(&comm));
        SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
    }
}

static char file_name[200];

/* Creates a file name that only this job uses. */
static void name_file(void)
{
    const char *folder = getenv("TMPDIR");
    long number = getpid();
    SUCCEEDS(MPI_Bcast(&number, 1, MPI_LONG, 0, MPI_COMM_WORLD));
    snprintf(file_name, sizeof file_name, "%s/mitigation.%ld", folder ? folder : "/tmp", number);
}

/* Makes an object from a communicator, uses it in all processes, and frees it. Returns the first error. */
static int make_of(int kind, MPI_Comm comm)
{
    static int number;
    int code, freed = MPI_SUCCESS, zero = 0, all = size, range[1][3] = {{0, size - 1, 1}};
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Request request;
    MPI_Group group, part;
    MPI_Win window = MPI_WIN_NULL;
    MPI_File file = MPI_FILE_NULL;
    void *memory;
    switch (kind) {
    case 0:
        code = MPI_Comm_split(comm, 0, -me, &made);
        break;
    case 1:
        code = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, me, MPI_INFO_NULL, &made);
        break;
    case 2:
        SUCCEEDS(MPI_Comm_group(comm, &group));
        SUCCEEDS(MPI_Group_range_incl(group, 1, range, &part));
        code = MPI_Comm_create_group(comm, part, number++ % 100, &made);
        SUCCEEDS(MPI_Group_free(&part));
        SUCCEEDS(MPI_Group_free(&group));
        break;
    case 3:
        code = MPI_Cart_create(comm, 1, &all, &zero, 0, &made);
        break;
    case 4:
        code = MPI_Comm_dup(comm, &made);
        break;
    case 5:
        code = MPI_Comm_idup(comm, &made, &request);
        if (code == MPI_SUCCESS)
            code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        break;
    case 6:
        code = MPI_Win_allocate(64, 1, MPI_INFO_NULL, comm, &memory, &window);
        if (code == MPI_SUCCESS) {
            SUCCEEDS(MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN));
            code = MPI_Win_fence(0, window);
            freed = MPI_Win_free(&window);
        }
        return code == MPI_SUCCESS ? freed : code;
    default:
        code = MPI_File_open(comm, file_name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
        if (code == MPI_SUCCESS) {
            code = MPI_File_set_size(file, 100);
            freed = MPI_File_close(&file);
            CHECK(file == MPI_FILE_NULL);
        }
        return code == MPI_SUCCESS ? freed : code;
    }
    if (code != MPI_SUCCESS)
        return code;
    SUCCEEDS(MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN));
    code = MPI_Barrier(made);
    SUCCEEDS(MPI_Comm_free(&made));
    return code;
}

/* Revokes a communicator after some microseconds, whatever its process is doing. */
static void *revoke_soon(void *comm)
{
    double end = now() + draw(3000) * 1e-6;
    while (now() < end)
        sched_yield();
    SUCCEEDS(MPIX_Comm_revoke(*(MPI_Comm *)comm));
    return NULL;
}

/* All repeatedly make objects from a communicator, until one process revokes it meanwhile: no process may hang. */
static void making(void)
{
    enum { KINDS = 8, ROUNDS = 20 };
    be_patient();
    name_file();
    for (int round = 0; round < KINDS * ROUNDS; round++) {
        int code, kind = round % KINDS;
        MPI_Comm comm, rest;
        pthread_t thread;
        SUCCEEDS(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        SUCCEEDS(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
        SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
        int revokes = me == round / KINDS % size;
        if (revokes)
            CHECK(pthread_create(&thread, NULL, revoke_soon, &comm) == 0);
        do {
            HERE;
            code = make_of(kind, comm);
        } while (code == MPI_SUCCESS);
        if (class_of(code) != MPIX_ERR_REVOKED) {
            fprintf(stderr, "process %d: kind %d\n", me, kind);
            SUCCEEDS(code);
        }
        if (revokes)
            CHECK(pthread_join(thread, NULL) == 0);
        victim = -1;
        HERE;
        rest = go_on(comm, size);
        SUCCEEDS(MPI_Comm_free(&rest));
        SUCCEEDS(MPI_Comm_free(&comm));
    }
    SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
    if (me == 0)
        unlink(file_name);
}

/*
 * Two sides are connected repeatedly until the communicator of one side is revoked: no process of either side may hang.
 */
static void connecting(void)
{
    int low = me < size / 2;
    be_patient();
    for (int round = 0; round < 60; round++) {
        MPI_Comm side, both;
        pthread_t thread;
        int code;
        SUCCEEDS(MPI_Comm_split(MPI_COMM_WORLD, low, me, &side));
        SUCCEEDS(MPI_Comm_set_errhandler(side, MPI_ERRORS_RETURN));
        SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
        int revokes = me == round % size;
        if (revokes)
            CHECK(pthread_create(&thread, NULL, revoke_soon, &side) == 0);
        do {
            HERE;
            code = MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, low ? size / 2 : 0, 3, &both);
            if (code == MPI_SUCCESS) {
                SUCCEEDS(MPI_Comm_set_errhandler(both, MPI_ERRORS_RETURN));
                HERE;
                SUCCEEDS(MPI_Barrier(both));
                SUCCEEDS(MPI_Comm_free(&both));
            }
        } while (code == MPI_SUCCESS);
        CHECK(class_of(code) == MPIX_ERR_REVOKED);
        if (revokes)
            CHECK(pthread_join(thread, NULL) == 0);
        SUCCEEDS(MPI_Comm_free(&side));
        HERE;
        SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
    }
}

/* All wait at a port, to accept or to connect, without any peer, until one process revokes their communicator. */
static void ports(void)
{
    enum { ROUNDS = 8 };
    char port[MPI_MAX_PORT_NAME] = "";
    be_patient();
    if (me == 0)
        SUCCEEDS(MPI_Open_port(MPI_INFO_NULL, port));
    SUCCEEDS(MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD));
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm comm, both;
        pthread_t thread;
        int revokes = me == round / 2 % size;
        SUCCEEDS(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        SUCCEEDS(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
        SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
        if (revokes)
            CHECK(pthread_create(&thread, NULL, revoke_soon, &comm) == 0);
        HERE;
        if (round % 2 == 0)
            FAILS(MPIX_ERR_REVOKED, MPI_Comm_accept(port, MPI_INFO_NULL, 0, comm, &both));
        else
            FAILS(MPIX_ERR_REVOKED, MPI_Comm_connect(port, MPI_INFO_NULL, 0, comm, &both));
        if (revokes)
            CHECK(pthread_join(thread, NULL) == 0);
        SUCCEEDS(MPI_Comm_free(&comm));
        SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
    }
    if (me == 0)
        SUCCEEDS(MPI_Close_port(port));
}

/* A process fails while all wait at a port without any peer. */
static void port_failure(void)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm comm, both, rest;
    be_patient();
    SUCCEEDS(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    if (me == 0)
        SUCCEEDS(MPI_Open_port(MPI_INFO_NULL, port));
    SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
    fail_soon(20000);
    HERE;
    FAILS(MPIX_ERR_PROC_FAILED, MPI_Comm_accept(port, MPI_INFO_NULL, 0, comm, &both));
    if (me == 0)
        SUCCEEDS(MPI_Close_port(port));
    rest = go_on(comm, size - 1);
    SUCCEEDS(MPI_Comm_free(&rest));
    SUCCEEDS(MPI_Comm_free(&comm));
}

/* A process fails while all move the shared pointer of a file: the others go on moving it, and close the file. */
static void pointer(void)
{
    enum { AFTER = 20 };
    MPI_File file;
    MPI_Group failed;
    MPI_Offset end;
    MPI_Comm rest;
    int known = 0, written = 0, all = 0, rank;
    be_patient();
    name_file();
    SUCCEEDS(MPI_File_open(MPI_COMM_WORLD, file_name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
    fail_soon(20000);
    for (int after = 0; after < AFTER; after += known > 0) {
        HERE;
        SUCCEEDS(MPI_File_write_shared(file, &me, 1, MPI_INT, MPI_STATUS_IGNORE));
        written += (int)sizeof me;
        SUCCEEDS(MPIX_Comm_get_failed(MPI_COMM_WORLD, &failed));
        SUCCEEDS(MPI_Group_size(failed, &known));
        SUCCEEDS(MPI_Group_free(&failed));
    }
    HERE;
    SUCCEEDS(MPIX_Comm_shrink(MPI_COMM_WORLD, &rest));
    SUCCEEDS(MPI_Allreduce(&written, &all, 1, MPI_INT, MPI_SUM, rest));
    SUCCEEDS(MPI_File_get_position_shared(file, &end));
    CHECK(end >= all && end % (int)sizeof me == 0);
    HERE;
    FAILS(MPIX_ERR_PROC_FAILED, MPI_File_close(&file));
    CHECK(file == MPI_FILE_NULL);
    SUCCEEDS(MPI_Comm_rank(rest, &rank));
    if (rank == 0)
        unlink(file_name);
    SUCCEEDS(MPI_Comm_free(&rest));
}

/* MPI_COMM_WORLD, which has the fastest path, is revoked: only its survivors remain. */
static void world(void)
{
    MPI_Comm rest;
    int got, revoked = 0;
    be_patient();
    SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
    if (me == size - 1)
        SUCCEEDS(MPIX_Comm_revoke(MPI_COMM_WORLD));
    else
        FAILS(MPIX_ERR_REVOKED, MPI_Recv(&got, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    FAILS(MPIX_ERR_REVOKED, MPI_Send(&me, 1, MPI_INT, 0, 0, MPI_COMM_WORLD));
    MPI_Request request;
    FAILS(MPIX_ERR_REVOKED, MPI_Irecv(&got, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request));
    SUCCEEDS(MPIX_Comm_is_revoked(MPI_COMM_WORLD, &revoked));
    CHECK(revoked);
    victim = -1;
    rest = go_on(MPI_COMM_WORLD, size);
    SUCCEEDS(MPI_Comm_free(&rest));
}

/* An intercommunicator: it is revoked on both sides, the sides agree together, and go on with each other. */
static void sides(void)
{
    MPI_Comm side, both, rest;
    int got, count, low = me < size / 2;
    be_patient();
    SUCCEEDS(MPI_Comm_split(MPI_COMM_WORLD, low, me, &side));
    SUCCEEDS(MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, low ? size / 2 : 0, 3, &both));
    SUCCEEDS(MPI_Comm_set_errhandler(both, MPI_ERRORS_RETURN));
    int flag = ~(1 << me);
    SUCCEEDS(MPIX_Comm_agree(both, &flag));
    CHECK(flag == ~((1 << size) - 1));
    /* A barrier of another communicator: some processes could still be in it when this one is revoked. */
    SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
    if (me == 0)
        SUCCEEDS(MPIX_Comm_revoke(both));
    else if (low)
        FAILS(MPIX_ERR_REVOKED, MPI_Barrier(both));
    else
        FAILS(MPIX_ERR_REVOKED, MPI_Recv(&got, 1, MPI_INT, 0, 0, both, MPI_STATUS_IGNORE));
    HERE;
    SUCCEEDS(MPIX_Comm_shrink(both, &rest));
    SUCCEEDS(MPI_Comm_remote_size(rest, &count));
    CHECK(count == (low ? size - size / 2 : size / 2));
    SUCCEEDS(MPI_Barrier(rest));
    SUCCEEDS(MPI_Comm_free(&rest));
    SUCCEEDS(MPI_Comm_free(&both));
    SUCCEEDS(MPI_Comm_free(&side));
}

/*
 * A process revokes communicators, and fails meanwhile. In the end each is revoked either for all survivors or for
 * none.
 */
static void revoker(void)
{
    enum { COMMUNICATOR_COUNT = 12 };
    MPI_Comm comms[COMMUNICATOR_COUNT], rest;
    be_patient();
    for (int i = 0; i < COMMUNICATOR_COUNT; i++) {
        SUCCEEDS(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
        SUCCEEDS(MPI_Comm_set_errhandler(comms[i], MPI_ERRORS_RETURN));
    }
    SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
    fail_soon(300);
    for (int i = 0; i < COMMUNICATOR_COUNT; i++) {
        HERE;
        if (me == victim) {
            SUCCEEDS(MPIX_Comm_revoke(comms[i]));
            continue;
        }
        int got;
        int code = MPI_Recv(&got, 1, MPI_INT, victim, 0, comms[i], MPI_STATUS_IGNORE);
        CHECK(class_of(code) == MPIX_ERR_PROC_FAILED || class_of(code) == MPIX_ERR_REVOKED);
    }
    while (me == victim)
        pause();
    HERE;
    rest = go_on(MPI_COMM_WORLD, size - 1);
    for (int i = 0; i < COMMUNICATOR_COUNT; i++) {
        int code, flag, tries = 0;
        /* The revocation may still be in transit. */
        do {
            int all = 0, none = 1, revoked = 0;
            SUCCEEDS(MPIX_Comm_is_revoked(comms[i], &revoked));
            HERE;
            SUCCEEDS(MPI_Allreduce(&revoked, &all, 1, MPI_INT, MPI_MIN, rest));
            SUCCEEDS(MPI_Allreduce(&revoked, &none, 1, MPI_INT, MPI_MAX, rest));
            flag = all == none;
            CHECK(tries++ < 100000);
        } while (!flag);
        flag = 1;
        code = MPIX_Comm_agree(comms[i], &flag);
        CHECK(class_of(code) == MPIX_ERR_PROC_FAILED && flag == 1);
    }
    for (int i = 0; i < COMMUNICATOR_COUNT; i++)
        SUCCEEDS(MPI_Comm_free(&comms[i]));
    SUCCEEDS(MPI_Comm_free(&rest));
}

/*
 * A process does not take part in making a communicator: the error of all others names it, whether they wait for it or
 * for the first process, which has noticed.
 */
static void missing(void)
{
    MPI_Group all;
    MPI_Comm made;
    char text[MPI_MAX_ERROR_STRING], name[32];
    int length;
    be_patient();
    SUCCEEDS(MPI_Comm_group(MPI_COMM_WORLD, &all));
    /* Without a barrier before it: some processes could still be in the barrier when this one is gone. */
    if (me == victim)
        kill(getpid(), SIGKILL);
    HERE;
    int code = MPI_Comm_create_group(MPI_COMM_WORLD, all, 3, &made);
    CHECK(class_of(code) == MPIX_ERR_PROC_FAILED);
    SUCCEEDS(MPI_Error_string(code, text, &length));
    snprintf(name, sizeof name, "task %d", victim);
    if (strstr(text, name) == NULL) {
        fprintf(stderr, "process %d: %s\n", me, text);
        exit(1);
    }
    SUCCEEDS(MPI_Group_free(&all));
}

/*
 * The last two processes cannot reach each other any more and give each other up. All processes notice, although the
 * others reach both, so agreements succeed again after an acknowledgement. One of the two is left out.
 */
static void given_up(void)
{
    MPI_Comm rest;
    int code = MPI_SUCCESS, other = me == size - 1 ? size - 2 : size - 1, got, flag, tries = 0, acknowledged, count;
    be_patient();
    SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
    if (me == size - 1) {
        printf("begun\n");
        fflush(stdout);
    }
    HERE;
    while (me >= size - 2 && code == MPI_SUCCESS)
        code = MPI_Sendrecv(&me, 1, MPI_INT, other, 0, &got, 1, MPI_INT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(me < size - 2 || class_of(code) == MPIX_ERR_PROC_FAILED);
    do {
        SUCCEEDS(MPIX_Comm_ack_failed(MPI_COMM_WORLD, size, &acknowledged));
        flag = 1;
        HERE;
        code = MPIX_Comm_agree(MPI_COMM_WORLD, &flag);
        CHECK(tries++ < 1000);
    } while (class_of(code) == MPIX_ERR_PROC_FAILED);
    if (code != MPI_SUCCESS)
        return;
    CHECK(acknowledged == 1);
    HERE;
    SUCCEEDS(MPIX_Comm_shrink(MPI_COMM_WORLD, &rest));
    SUCCEEDS(MPI_Comm_size(rest, &count));
    CHECK(count == size - 1);
    printf("one of %d goes on\n", count);
    SUCCEEDS(MPI_Comm_free(&rest));
}

/*
 * Measures the time from the end of a process during a collective until the last of the others has the error, which
 * names it, and until the survivors have completed the next collective.
 */
static void timed(void)
{
    MPI_Comm comm, rest;
    MPI_Win window;
    double *ended, heard, times[2], last[2];
    SUCCEEDS(MPI_Win_allocate_shared(me == 0 ? sizeof *ended : 0, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &ended, &window));
    MPI_Aint bytes;
    int unit, code, one = 1, sum;
    SUCCEEDS(MPI_Win_shared_query(window, 0, &bytes, &unit, &ended));
    SUCCEEDS(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    be_patient();
    SUCCEEDS(MPI_Barrier(comm));
    unsigned rounds = draw(2000);
    for (unsigned round = 0;; round++) {
        if (me == victim && round == rounds) {
            *ended = now();
            kill(getpid(), SIGKILL);
        }
        HERE;
        code = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
        if (code != MPI_SUCCESS)
            break;
    }
    heard = now();
    CHECK(class_of(code) == MPIX_ERR_PROC_FAILED);
    char text[MPI_MAX_ERROR_STRING], name[32];
    int length;
    SUCCEEDS(MPI_Error_string(code, text, &length));
    snprintf(name, sizeof name, "task %d ", victim);
    CHECK(strstr(text, name) != NULL);
    HERE;
    SUCCEEDS(MPIX_Comm_shrink(comm, &rest));
    SUCCEEDS(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, rest));
    CHECK(sum == size - 1);
    times[0] = heard - *ended;
    times[1] = now() - *ended;
    SUCCEEDS(MPI_Reduce(times, last, 2, MPI_DOUBLE, MPI_MAX, 0, rest));
    int rank;
    SUCCEEDS(MPI_Comm_rank(rest, &rank));
    if (rank == 0)
        printf("took %.6f %.6f\n", last[0], last[1]);
    SUCCEEDS(MPI_Comm_free(&rest));
    SUCCEEDS(MPI_Comm_free(&comm));
    /* The window is not freed: that would need all of its members. */
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"agree", agree},     {"agree-later", agree_later}, {"collective", collective}, {"blocked", blocked}, {"world", world},
        {"sides", sides},     {"revoker", revoker},         {"timed", timed},           {"making", making},       {"pointer", pointer}, {"missing", missing},
        {"connecting", connecting}, {"ports", ports}, {"port-failure", port_failure}, {"given-up", given_up},
        {NULL, NULL},
    };
    if (argc > 2)
        victim = atoi(argv[2]);
    if (argc > 3)
        seed = (unsigned)atoi(argv[3]);
    return play(argc, argv, scenarios);
}
