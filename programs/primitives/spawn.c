/*
 * spawn, notify: tasks started and ended at run time.
 *
 * spawn N: one task starts N others and waits until each has joined and answered with a message. notify N: a task with
 * N - 1 children is notified of the death of one. Each child has answered before and waits for an order that never
 * arrives. The child is killed by a signal, so that killing costs the same in all environments. For each further sample
 * a new child replaces the dead one.
 *
 * A child is this program with the argument spawned=STAMP or victim=STAMP. Its answer is filled with the stamp's
 * pattern, except for the first word, which is its process id.
 */
#ifdef ENV_SPAWNS
#include <signal.h>

enum { ANSWER = 64, DEATHS = 5 };

static void family_fill(char *answer, uint32_t stamp, pid_t pid)
{
    int64_t word = pid;
    payload_fill(answer, ANSWER, stamp);
    memcpy(answer, &word, sizeof word);
}

/* Receives the answer of a child and checks every byte. Returns the child's process id. */
static pid_t family_hear(int child, uint32_t stamp)
{
    char answer[ANSWER], expected[ANSWER];
    int64_t pid;
    env_hear(answer, sizeof answer, child);
    memcpy(&pid, answer, sizeof pid);
    family_fill(expected, stamp, (pid_t)pid);
    if (pid <= 1 || pid == getpid() || memcmp(answer, expected, sizeof answer))
        payload_wrong(sizeof answer, stamp);
    return (pid_t)pid;
}

/* Does the work of a child. `word` is its argument. */
static void family_child(const char *word)
{
    char answer[ANSWER];
    family_fill(answer, (uint32_t)strtoul(strchr(word, '=') + 1, NULL, 10), getpid());
    env_answer(answer, sizeof answer);
    if (*word == 'v')
        env_obey(answer, sizeof answer);
}

static void family_start(int count, const char *word, uint32_t stamp)
{
    char argument[32];
    snprintf(argument, sizeof argument, "%s=%u", word, stamp);
    env_spawn(count, argument);
}

static void spawn(int count)
{
    uint32_t stamp = (uint32_t)getpid();
    double start = measure_now();
    family_start(count, "spawned", stamp);
    for (int child = 0; child < count; child++)
        family_hear(child, stamp);
    printf("point spawn 0 1 %.6g\n", (measure_now() - start - measure_clock) * 1e6);
}

#ifdef ENV_WATCHES
/* Kills a child. Returns the time, in seconds, until the notification has arrived. */
static double notify_death(int child, pid_t pid)
{
    double start = measure_now();
    if (kill(pid, SIGKILL) != 0)
        env_fail("kill", "a child is not there");
    int ended = env_await_end();
    double took = measure_now() - start - measure_clock;
    if (ended != child)
        env_fail("notify", "the event tells of another child than was killed");
    return took;
}

static void notify(int company)
{
    uint32_t stamp = (uint32_t)getpid();
    int living = company - 1;
    pid_t *pids = calloc((size_t)living + DEATHS, sizeof *pids);
    if (!pids)
        env_fail("calloc", "no memory");
    family_start(living, "victim", stamp);
    for (int child = 0; child < living; child++)
        pids[child] = family_hear(child, stamp);
    printf("point notify 0 1");
    for (int child = 0; child < DEATHS; child++) {
        env_watch(child);
        printf(" %.6g", notify_death(child, pids[child]) * 1e6);
        family_start(1, "victim", ++stamp);
        pids[living + child] = family_hear(living + child, stamp);
    }
    printf("\n");
    for (int child = DEATHS; child < living + DEATHS; child++) {
        env_watch(child);
        notify_death(child, pids[child]);
    }
    free(pids);
}
#endif
#endif

/* Returns whether this is a launch of spawn or notify, or a child of one. */
static int family_asked(int argc, char **argv)
{
    if (argc < 2)
        return 0;
    return !strcmp(argv[1], "spawn") || !strcmp(argv[1], "notify") || !strncmp(argv[1], "spawned=", 8) ||
           !strncmp(argv[1], "victim=", 7);
}

static void family_join(int *argc, char ***argv)
{
#ifdef ENV_SPAWNS
    env_join(argc, argv);
#else
    (void)argc;
    env_fail((*argv)[1], "this library starts no tasks");
#endif
}

/* Runs spawn, notify or a child, according to the arguments. */
static void family(int argc, char **argv)
{
#ifdef ENV_SPAWNS
    int count = argc > 2 ? atoi(argv[2]) : 0;
    if (strchr(argv[1], '=')) {
        family_child(argv[1]);
        return;
    }
    if (!strcmp(argv[1], "spawn") && count > 0) {
        spawn(count);
        return;
    }
#ifdef ENV_WATCHES
    if (!strcmp(argv[1], "notify") && count > 1) {
        notify(count);
        return;
    }
#endif
#endif
    (void)argc;
    env_fail(argv[1], "not an operation of this library, or not with this number of tasks");
}
