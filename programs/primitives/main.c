/*
 * primitives: the program that the race runs, with the same source for every environment.
 *
 *     primitives [--budget MS] OPERATION=BYTES[,BYTES...] ...     host-... operations only with others of a host program
 *     primitives --duet SOCKET OPERATION=BYTES[,BYTES...] ...     in turns with other programs: see duet.h
 *     primitives idle | join-leave
 *     primitives spawn N | notify N
 *
 * Task 0 prints these lines:
 *     version TEXT             the library's own description
 *     path TEXT                the path of messages, if the library reports it; printed again after the points
 *     tasks N
 *     clock NS                 cost of reading the clock, already subtracted
 *     processors N FIRST ...   for each task: the number of processors it may run on, and the first of them
 *     cannot OPERATION TEXT    why it is not run here; the others are run
 *     point OPERATION BYTES N US...   batches of N operations: the time of one operation, for each batch
 *     done
 */
#include "duet.h"

#include <sched.h>

/* Includes the sources of all operations. The file is written by the race, or by hand as in ../README.md. */
#include "operations.h"

static const struct operation *find_operation(const char *name, size_t length)
{
    for (const struct operation *op = operations; op; op = op->next)
        if (strlen(op->name) == length && !memcmp(op->name, name, length))
            return op;
    return NULL;
}

static size_t buffer_needed(const struct operation *op, size_t bytes)
{
    return bytes * (size_t)(op->all_to_all ? tasks : op->blocks ? op->blocks : 1);
}

/* Returns why this launch cannot run an operation, or NULL if it can. */
static const char *cannot(const struct operation *op)
{
    if (!op)
        return "the environment lacks what it needs";
    if ((op->pairs == 2 && tasks != 2) || (op->pairs == 1 && tasks % 2) || (op->nodes && tasks != 2))
        return hosted ? "it takes one node beside the host" : "it does not run with this number of tasks";
    if (hosted != !strncmp(op->name, "host-", 5))
        return hosted ? "its tasks have no host" : "its host has to be started as one";
    return NULL;
}

/* Like find_operation, but returns NULL for operations that this launch cannot run. */
static const struct operation *find_runnable(const char *name, size_t length)
{
    const struct operation *op = find_operation(name, length);
    return cannot(op) ? NULL : op;
}

/* Calls `each` for every size of every runnable argument OPERATION=BYTES,.... */
static void for_each_point(int n, char **args, void (*each)(const struct operation *, size_t))
{
    for (int i = 0; i < n; i++) {
        size_t length = strcspn(args[i], "=");
        const struct operation *op = find_runnable(args[i], length);
        char *text = args[i] + length;
        while (op) {
            size_t bytes = *text ? strtoull(text + 1, &text, 10) : 0;
            each(op, op->unit ? bytes / op->unit * op->unit : 0);
            if (*text != ',')
                break;
        }
    }
}

/* Prints the requested operations that cannot be run. */
static void print_refusals(int n, char **args)
{
    for (int i = 0; i < n; i++) {
        int length = (int)strcspn(args[i], "=");
        const char *why = cannot(find_operation(args[i], (size_t)length));
        if (why)
            printf("cannot %.*s %s\n", length, args[i], why);
    }
}

static size_t largest;

static void note_largest(const struct operation *op, size_t bytes)
{
    size_t needed = buffer_needed(op, bytes);
    largest = needed > largest ? needed : largest;
}

/* Prints the processors that each task may run on. The driver compares them with its request to the launcher. */
static void print_processors(void)
{
    int32_t mine[2] = {0, -1};
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
        mine[0] = CPU_COUNT(&allowed);
        for (int i = CPU_SETSIZE - 1; i >= 0; i--)
            if (CPU_ISSET(i, &allowed))
                mine[1] = i;
    }
    int32_t *all = calloc((size_t)tasks, sizeof mine);
    if (!all)
        env_fail("calloc", "no memory");
    env_concatenation(mine, sizeof mine, all);
    if (me == 0) {
        printf("processors");
        for (int r = 0; r < tasks; r++)
            printf(" %d %d", all[2 * r], all[2 * r + 1]);
        printf("\n");
    }
    free(all);
}

static void print_path(void)
{
    char text[512];
    env_path(text, sizeof text);
    printf("path %s\n", text);
}

/* Prints the path of messages again. Between hosts it is known only after it was used, and while the other task exists.
 * */
static void print_used_path(void)
{
    if (hosted)
        return;
    if (me == 0)
        print_path();
    env_barrier();
}

static void print_library(void)
{
    char text[512];
    env_version(text, sizeof text);
    printf("version %s\n", text);
    print_path();
    printf("tasks %d\nclock %.2f\n", tasks, measure_clock * 1e9);
}

static void print_header(void)
{
    if (me == 0)
        print_library();
    if (!hosted)
        print_processors();
    fflush(stdout);
}

/* Runs spawn, notify, or one of their children. Their first task is started without a launcher. */
static int main_of_family(int argc, char **argv)
{
    int first = !strchr(argv[1], '=');
    family_join(&argc, &argv);
    tasks = first && argc > 2 ? atoi(argv[2]) : 1;
    if (first) {
        measure_clock = measure_clock_cost();
        print_library();
    }
    family(argc, argv);
    env_finalize();
    if (first)
        printf("done\n");
    return 0;
}

int main(int argc, char **argv)
{
    if (family_asked(argc, argv))
        return main_of_family(argc, argv);
    if (host_asked(argc, argv)) {
        host_join(&argc, &argv);
    } else {
        env_init(&argc, &argv);
        me = env_rank();
        tasks = env_size();
    }
    int first = 1;
    const char *driver = NULL;
    if (argc > 2 && !strcmp(argv[1], "--budget")) {
        measure_budget = atof(argv[2]) * 1e-3;
        first = 3;
    } else if (argc > 2 && !strcmp(argv[1], "--duet")) {
        driver = argv[2];
        first = 3;
    }
    if (argc > first && !strcmp(argv[first], "idle")) {
        idle();
    } else if (argc <= first || strcmp(argv[first], "join-leave")) {
        measure_clock = measure_clock_cost();
        for_each_point(argc - first, argv + first, note_largest);
        payload_reserve(largest);
        print_header();
        if (me == 0)
            print_refusals(argc - first, argv + first);
        if (driver) {
            duet(driver, find_runnable);
        } else {
            for_each_point(argc - first, argv + first, measure_point);
            print_used_path();
        }
    }
    env_finalize();
    if (me == 0 && (argc <= first || strcmp(argv[first], "join-leave")))
        printf("done\n");
    return 0;
}
