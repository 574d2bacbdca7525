/*
 * primitives: the program the race runs, the same text for every environment.
 *
 *     primitives [--budget MS] OPERATION=BYTES[,BYTES...] ...     those of a host program (host-...) only with their like
 *     primitives --duet SOCKET OPERATION=BYTES[,BYTES...] ...     in turns with others: see duet.h
 *     primitives idle | join-leave
 *     primitives spawn N | notify N
 *
 * Task 0 prints lines of words:
 *     version TEXT             the library's own words
 *     path TEXT                which way messages go, if the library tells; once more after the points
 *     tasks N
 *     clock NS                 cost of reading the clock, already taken off
 *     processors N FIRST ...   per task: how many it may run on, and the first of them
 *     cannot OPERATION TEXT    why it is not run here; the others are
 *     point OPERATION BYTES N US...   batches of N operations: the time of one, per batch
 *     done
 */
#include "duet.h"

#include <sched.h>

/* The texts of all operations, a line for each: written by the race, or by hand as in ../README.md. */
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

/* Why this launch cannot run an operation; NULL: it can. */
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

/* As find_operation, of those that this launch can run. */
static const struct operation *find_runnable(const char *name, size_t length)
{
    const struct operation *op = find_operation(name, length);
    return cannot(op) ? NULL : op;
}

/* Call `each` for every size of every argument OPERATION=BYTES,... that can be run. */
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

/* The operations asked for that cannot be run. */
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

/* Where may each task run? The driver compares this with what it asked the launcher for. */
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

/* Between hosts a way is known when it has been used, and while the other task is there. */
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

/* A family is started by its first task, not by a launcher. */
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
