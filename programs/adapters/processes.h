/*
 * Tasks of an adapter without a library: the launched process is task 0, and the others are forked from it.
 *
 * An adapter that includes this file defines env_init itself, and calls env_fork_tasks in it once the memory that all
 * tasks share is mapped.
 */
#ifndef PROCESSES_H
#define PROCESSES_H

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_TASKS = 64 };

static int env_my_rank, env_my_size;

/* Sets the number of tasks; ends the program if it is too large. */
static inline void env_count_tasks(void)
{
    env_my_size = env_tasks_wanted();
    if (env_my_size > MAX_TASKS)
        env_fail("limit", "at most 64 tasks");
}

/* Starts the other tasks and returns in each of them. They are killed when task 0 ends. */
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
