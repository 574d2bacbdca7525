/*
 * The tasks of an adapter without a library: the process that was launched is task 0, and the others are its copies.
 *
 * An adapter that includes this defines env_init itself, and in it calls env_fork_tasks once what all tasks share is mapped.
 */
#ifndef PROCESSES_H
#define PROCESSES_H

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_TASKS = 64 };

static int env_my_rank, env_my_size;

/* How many tasks are wanted; ends the program if they are too many. */
static inline void env_count_tasks(void)
{
    env_my_size = env_tasks_wanted();
    if (env_my_size > MAX_TASKS)
        env_fail("limit", "at most 64 tasks");
}

/* Starts the other tasks. Returns in each of them; those end with task 0. */
static inline void env_fork_tasks(void)
{
    pid_t parent = getpid();
    for (int r = 1; r < env_my_size; r++) {
        pid_t child = fork();
        if (child < 0)
            env_fail("fork", "cannot start another process");
        if (child == 0) {
            env_my_rank = r;
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent)
                _exit(1);
            break;
        }
    }
}

static inline void env_finalize(void)
{
    if (env_my_rank == 0)
        while (wait(NULL) > 0)
            ;
}

static inline int env_rank(void)
{
    return env_my_rank;
}

static inline int env_size(void)
{
    return env_my_size;
}

#endif
