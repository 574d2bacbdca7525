/*
 * hosted.h: runs with a host program and its nodes instead of equal tasks.
 *
 * The host is task 0, the nodes are tasks 1 and up. They have no collectives in common, so the barrier and the
 * agreement on times around the timed part use messages, in the same way in all environments.
 */
#ifndef HOSTED_H
#define HOSTED_H

#include "payload.h"

enum { MAX_SAMPLES = 64, TAG_HARNESS = 13 };

static int hosted;

/* Returns whether this is a launch of a host program, or one of its nodes. Some libraries start nodes without
 * arguments. */
static int host_asked(int argc, char **argv)
{
    if (argc < 2)
        return 1;
    for (int i = 1; i < argc; i++)
        if (!strncmp(argv[i], "host-", 5))
            return 1;
    return 0;
}

/* Joins as host or node. */
static void host_join(int *argc, char ***argv)
{
#ifdef ENV_HOSTS
    hosted = 1;
    env_host_init(argc, argv);
    me = env_host_rank();
    tasks = env_host_size();
    /* In some environments launchers bind only the host, because they start nothing else. */
    env_pin_apart(me, tasks);
#else
    (void)argc;
    env_fail((*argv)[0], "this library has no host programs");
#endif
}

#ifdef ENV_HOSTS
/* Finds the maxima by messages from every node to the host and back. */
static void host_agree(const double *mine, double *largest, size_t count)
{
    size_t bytes = count * sizeof *mine;
    double theirs[MAX_SAMPLES];
    memcpy(largest, mine, bytes);
    if (me != 0) {
        env_host_send(mine, bytes, 0, TAG_HARNESS);
        env_host_recv(largest, bytes, 0, TAG_HARNESS);
        return;
    }
    for (int r = 1; r < tasks; r++) {
        env_host_recv(theirs, bytes, r, TAG_HARNESS);
        for (size_t k = 0; k < count; k++)
            largest[k] = theirs[k] > largest[k] ? theirs[k] : largest[k];
    }
    for (int r = 1; r < tasks; r++)
        env_host_send(largest, bytes, r, TAG_HARNESS);
}
#endif

/* Computes, for each of up to MAX_SAMPLES numbers, the largest of all tasks. */
static void agree(const double *mine, double *largest, size_t count)
{
#ifdef ENV_HOSTS
    if (hosted) {
        host_agree(mine, largest, count);
        return;
    }
#endif
#ifdef ENV_REDUCES_IN_PLACE
    memcpy(largest, mine, count * sizeof *mine);
    env_max(largest, largest, count);
#else
    env_max(mine, largest, count);
#endif
}

static void meet(void)
{
    double nothing = 0, all;
    if (hosted)
        agree(&nothing, &all, 1);
    else
        env_barrier();
}

#endif
