/* Tasks that leave the job while they still have unsent messages. */
#include "check.h"
#include <sys/wait.h>

enum { LENGTH = 700, MORE_THAN_FITS = 5000 };

static unsigned char bytes[LENGTH];
static int completed;

static void completes(const rg_status *status, void *unused)
{
    (void)status, (void)unused;
    completed++;
}

/* synchronous: both tasks send each other a message that is never received, and leave. */
static void synchronous(void)
{
    rg_request request;
    check_patience(30);
    OK(rg_issend(bytes, LENGTH, 1 - me, 1, RG_WORLD, &request));
    OK(rg_on_complete(&request, completes, NULL));
}

/*
 * begun: task 0 leaves while its message is pending. The receive was posted, but the receiver then computes for longer
 * than a leaving task waits for a receiver that may never receive.
 */
static void begun(void)
{
    static unsigned char large[8 << 20];
    rg_request request;
    rg_status status;
    if (me == 0) {
        paint(large, sizeof large, 1);
        OK(rg_issend(large, sizeof large, 1, 1, RG_WORLD, &request));
        OK(rg_on_complete(&request, completes, NULL));
        OK(rg_send(NULL, 0, 1, 2, RG_WORLD));
        OK(rg_recv(NULL, 0, 1, 3, RG_WORLD, NULL));
        return;
    }
    OK(rg_recv(NULL, 0, 0, 2, RG_WORLD, NULL));
    OK(rg_irecv(large, sizeof large, 0, 1, RG_WORLD, &request));
    OK(rg_send(NULL, 0, 0, 3, RG_WORLD));
    be_away(7);
    OK(rg_wait(&request, &status));
    CHECK(status.length == sizeof large && unpainted(large, sizeof large, 1) == sizeof large);
}

/*
 * late: task 0 leaves while data of its synchronous message is still in its memory. The receiver posts its receive only
 * after that same time.
 */
static void late(void)
{
    static unsigned char large[8 << 20];
    rg_request request;
    if (me == 0) {
        paint(large, sizeof large, 1);
        OK(rg_issend(large, sizeof large, 1, 1, RG_WORLD, &request));
        OK(rg_on_complete(&request, completes, NULL));
        return;
    }
    be_away(7);
    OK(rg_recv(large, sizeof large, 0, 1, RG_WORLD, NULL));
    CHECK(unpainted(large, sizeof large, 1) == sizeof large);
}

/* unreceived: both tasks send each other a large synchronous message before either receives, and try to leave. */
static void unreceived(void)
{
    static unsigned char large[8 << 20], theirs[8 << 20];
    rg_request request;
    check_patience(30);
    OK(rg_init());
    me = rg_rank(RG_WORLD);
    OK(rg_issend(large, sizeof large, 1 - me, 1, RG_WORLD, &request));
    OK(rg_on_complete(&request, completes, NULL));
    FAILS(rg_finalize(), RG_ERR_CYCLE, "in a cycle");
    OK(rg_recv(theirs, sizeof theirs, 1 - me, 1, RG_WORLD, NULL));
    OK(rg_finalize());
    CHECK(completed == 1);
}

/*
 * circle: both tasks send each other more than their buffers hold before either receives. Neither can leave until it
 * has received.
 */
static void circle(void)
{
    check_patience(30);
    OK(rg_init());
    me = rg_rank(RG_WORLD);
    for (int i = 0; i < MORE_THAN_FITS; i++) {
        rg_request request;
        OK(rg_isend(bytes, LENGTH, 1 - me, 1, RG_WORLD, &request));
        OK(rg_on_complete(&request, completes, NULL));
    }
    CHECK(completed < MORE_THAN_FITS);
    FAILS(rg_finalize(), RG_ERR_CYCLE, "in a cycle");
    CHECK(rg_initialized() == 1);
    for (int i = 0; i < MORE_THAN_FITS; i++)
        OK(rg_recv(bytes, LENGTH, 1 - me, 1, RG_WORLD, NULL));
    OK(rg_finalize());
    if (completed != MORE_THAN_FITS)
        FAILED("%d of %d messages have called back", completed, MORE_THAN_FITS);
}

/*
 * beheaded JOB: two processes join a resident job, and one leaves while it still has to send the other more than that
 * one buffers. The driver kills the job's launcher when it reads `owes`.
 */
static void beheaded(void)
{
    int numbers[2], over[2], other;
    check_patience(30);
    CHECK(arg_count == 1 && pipe(numbers) == 0 && pipe(over) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        close(over[1]);
        OK(rg_enter(args[0], RG_BEGIN));
        int own = rg_tid();
        CHECK(write(numbers[1], &own, sizeof own) == sizeof own);
        /* Blocks until the other process has left. */
        CHECK(read(over[0], &own, 1) == 0);
        _exit(0);
    }
    OK(rg_enter(args[0], RG_BEGIN));
    CHECK(read(numbers[0], &other, sizeof other) == sizeof other);
    for (int i = 0; i < MORE_THAN_FITS; i++)
        OK(rg_bsend(bytes, LENGTH, other, 1, RG_ALL));
    printf("owes\n");
    FAILS(rg_finalize(), RG_ERR_LAUNCHER, "has ended");
    CHECK(rg_initialized() == 0);
    close(over[1]);
    CHECK(waitpid(child, NULL, 0) == child);
    printf("left\n");
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"synchronous", synchronous, false}, {"begun", begun, false},
        {"late", late, false},               {"unreceived", unreceived, true},
        {"circle", circle, true},            {"beheaded", beheaded, true},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
