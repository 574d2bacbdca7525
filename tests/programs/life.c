/* Calls outside of a job's life, and starts that go wrong. The program calls rg_init itself. */
#include "check.h"

#include <sys/wait.h>

/* Every kind of call, when there is no job. */
static void all_refused(void)
{
    char byte = 0;
    int number;
    rg_request request = RG_REQUEST_NULL;
    rg_group group;
    void *block;
    CHECK(!rg_initialized());
    FAILS(rg_send(&byte, 1, 0, 0, RG_WORLD), RG_ERR_STATE, "rg_init");
    FAILS(rg_ssend(&byte, 1, 0, 0, RG_WORLD), RG_ERR_STATE, "");
    FAILS(rg_recv(&byte, 1, 0, 0, RG_WORLD, NULL), RG_ERR_STATE, "");
    FAILS(rg_isend(&byte, 1, 0, 0, RG_WORLD, &request), RG_ERR_STATE, "");
    FAILS(rg_irecv(&byte, 1, 0, 0, RG_WORLD, &request), RG_ERR_STATE, "");
    FAILS(rg_probe(0, 0, RG_WORLD, NULL), RG_ERR_STATE, "");
    FAILS(rg_iprobe(0, 0, RG_WORLD, &number, NULL), RG_ERR_STATE, "");
    FAILS(rg_rank(RG_WORLD), RG_ERR_STATE, "");
    FAILS(rg_size(RG_WORLD), RG_ERR_STATE, "");
    FAILS(rg_tid(), RG_ERR_STATE, "");
    FAILS(rg_barrier(RG_WORLD), RG_ERR_STATE, "");
    FAILS(rg_broadcast(&byte, 1, 0, RG_WORLD), RG_ERR_STATE, "");
    FAILS(rg_ibarrier(RG_WORLD, &request), RG_ERR_STATE, "");
    FAILS(rg_group_dup(RG_WORLD, &group), RG_ERR_STATE, "");
    FAILS(rg_group_shrink(RG_WORLD, &group), RG_ERR_STATE, "");
    FAILS(rg_loan(8, &block), RG_ERR_STATE, "");
    FAILS(rg_progress(), RG_ERR_STATE, "");
    FAILS(rg_fd(&number), RG_ERR_STATE, "");
    FAILS(rg_finalize(), RG_ERR_STATE, "");
    CHECK(strlen(rg_version()) > 0 && strlen(rg_strerror(RG_ERR_STATE)) > 0);
}

static void outside(void)
{
    all_refused();
    OK(rg_init());
    OK(rg_init());
    CHECK(rg_initialized() == 1);
    me = rg_rank(RG_WORLD);
    OK(rg_barrier(RG_WORLD));
    OK(rg_finalize());
    all_refused();
}

/* rg_init fails with the code and the words given, and nothing else works. */
static void refused(void)
{
    CHECK(arg_count == 2);
    int code = rg_init();
    if (code != atoi(args[0]) || strstr(rg_last_error(), args[1]) == NULL)
        FAILED("rg_init gave %d: %s", code, code ? rg_last_error() : "nothing wrong");
    CHECK(strlen(rg_last_error()) > 30);
    all_refused();
}

static void alone(void)
{
    OK(rg_init());
    CHECK(rg_rank(RG_WORLD) == 0 && rg_size(RG_WORLD) == 1);
    int value = 3, sum = 0;
    OK(rg_allreduce(&value, &sum, 1, RG_INT32, RG_SUM, RG_WORLD));
    CHECK(sum == 3);
    OK(rg_barrier(RG_WORLD));
    OK(rg_send(&value, sizeof value, 0, 1, RG_WORLD));
    OK(rg_recv(&sum, sizeof sum, 0, 1, RG_WORLD, NULL));
    OK(rg_finalize());
}

/* A program started by a task inherits its environment; it is not the task. */
static void parent(void)
{
    OK(rg_init());
    me = rg_rank(RG_WORLD);
    OK(rg_barrier(RG_WORLD));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        execl("/proc/self/exe", "life", "refused", "-14", "REGATTA_JOB", (char *)NULL);
        _exit(9);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    OK(rg_barrier(RG_WORLD));
    OK(rg_finalize());
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"outside", outside, true}, {"refused", refused, true}, {"alone", alone, true},
        {"parent", parent, true},   {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
