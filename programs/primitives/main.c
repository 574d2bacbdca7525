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
 *     path TEXT                which way messages go, if the library tells
 *     tasks N
 *     clock NS                 cost of reading the clock, already taken off
 *     processors N FIRST ...   per task: how many it may run on, and the first of them
 *     point OPERATION BYTES N US...   batches of N operations: the time of one, per batch
 *     done
 */
#include "duet.h"

#include <sched.h>

#include "barrier.c"
#include "blocks.c"
#include "broadcast.c"
#include "complete-exchange.c"
#include "concatenation.c"
#include "copy.c"
#include "exchange.c"
#include "global.c"
#include "host.c"
#include "idle.c"
#include "message-rate.c"
#include "one-to-one.c"
#include "ping-pong.c"
#include "ring.c"
#include "spawn.c"
#include "threads.c"
#include "vector.c"
#include "window.c"

static const struct operation operations[] = {
    {.name = "one-to-one", .run = one_to_one, .parts = 2, .unit = 1, .pairs = 2},
    {.name = "exchange", .run = exchange_in_pairs, .parts = 1, .unit = 1, .pairs = 1},
    {.name = "ring", .run = ring, .parts = 1, .unit = 1},
    {.name = "broadcast", .run = broadcast, .parts = 1, .unit = 1},
    {.name = "barrier", .run = barrier, .parts = 1},
    {.name = "global-sum", .run = global_sum, .parts = 1, .unit = 8},
    {.name = "global-product", .run = global_product, .parts = 1, .unit = 8},
    {.name = "global-max", .run = global_max, .parts = 1, .unit = 8},
    {.name = "concatenation", .run = concatenation, .parts = 1, .unit = 1, .all_to_all = 1},
    {.name = "complete-exchange", .run = complete_exchange, .parts = 1, .unit = 1, .all_to_all = 1},
    {.name = "message-rate", .run = message_rate, .parts = WINDOW, .unit = 1, .pairs = 2, .window = 1},
    {.name = "copy", .run = copy, .parts = 1, .unit = 1},
    {.name = "vector-send-recv", .run = vector_send_recv, .parts = 2, .unit = ENV_WORD, .pairs = 2, .apart = 1},
    {.name = "vector-exchange", .run = vector_exchange, .parts = 1, .unit = ENV_WORD, .pairs = 1},
#ifdef ENV_WINDOWS
    {.name = "put-flush", .run = put_flush, .parts = 1, .unit = 1, .pairs = 2},
    {.name = "get-flush", .run = get_flush, .parts = 1, .unit = 1, .pairs = 2},
    {.name = "accumulate-flush", .run = accumulate_flush, .parts = 1, .unit = 8, .pairs = 2},
    {.name = "fetch-add", .run = fetch_add, .parts = 1, .unit = 8, .pairs = 2},
#endif
#ifdef ENV_BLOCKS
    {.name = "blocks", .run = blocks, .parts = 2, .unit = BLOCK, .pairs = 2, .apart = 1},
#endif
#ifdef ENV_THREADS
    {.name = "message-rate-threads", .run = message_rate_threads, .parts = THREADS * WINDOW, .unit = 1, .pairs = 2, .window = THREADS},
#endif
#ifdef ENV_HOSTS
    {.name = "host-node-send", .run = host_node_send, .parts = 1, .unit = 1, .nodes = 1},
    {.name = "host-node-recv", .run = host_node_recv, .parts = 1, .unit = 1, .nodes = 1},
    {.name = "host-node-exchange", .run = host_node_exchange, .parts = 1, .unit = 1, .nodes = 1},
    {.name = "host-broadcast", .run = host_broadcast, .parts = 1, .unit = 1},
#endif
    {.name = "ping-pong-blocking", .run = one_to_one, .parts = 2, .unit = 1, .pairs = 2},
#ifdef ENV_PACKS
    {.name = "ping-pong-asynchronous", .run = ping_pong_asynchronous, .parts = 2, .unit = 1, .pairs = 2},
    {.name = "ping-pong-blocking-pack-raw", .run = ping_pong_raw, .parts = 2, .unit = 1, .pairs = 2},
    {.name = "ping-pong-blocking-pack-in-place", .run = ping_pong_in_place, .parts = 2, .unit = 1, .pairs = 2},
#ifdef ENV_PACKS_TYPES
    {.name = "ping-pong-blocking-pack-raw-int", .run = ping_pong_raw_int, .parts = 2, .unit = 4, .pairs = 2},
    {.name = "ping-pong-blocking-pack-raw-float", .run = ping_pong_raw_float, .parts = 2, .unit = 4, .pairs = 2},
    {.name = "ping-pong-blocking-pack-raw-double", .run = ping_pong_raw_double, .parts = 2, .unit = 8, .pairs = 2},
    {.name = "ping-pong-blocking-pack-in-place-int", .run = ping_pong_in_place_int, .parts = 2, .unit = 4, .pairs = 2},
    {.name = "ping-pong-blocking-pack-in-place-float", .run = ping_pong_in_place_float, .parts = 2, .unit = 4, .pairs = 2},
    {.name = "ping-pong-blocking-pack-in-place-double", .run = ping_pong_in_place_double, .parts = 2, .unit = 8, .pairs = 2},
#endif
#ifdef ENV_PACKS_DEFAULT
    {.name = "ping-pong-blocking-pack-default", .run = ping_pong_default, .parts = 2, .unit = 1, .pairs = 2},
    {.name = "ping-pong-blocking-pack-default-int", .run = ping_pong_default_int, .parts = 2, .unit = 4, .pairs = 2},
    {.name = "ping-pong-blocking-pack-default-float", .run = ping_pong_default_float, .parts = 2, .unit = 4, .pairs = 2},
    {.name = "ping-pong-blocking-pack-default-double", .run = ping_pong_default_double, .parts = 2, .unit = 8, .pairs = 2},
#endif
#endif
};

static const struct operation *find_operation(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (strlen(operations[i].name) == length && !memcmp(operations[i].name, name, length))
            return &operations[i];
    fprintf(stderr, "unknown operation: %s\n", name);
    exit(2);
}

static size_t buffer_needed(const struct operation *op, size_t bytes)
{
    size_t blocks = op->all_to_all ? (size_t)tasks : op->window ? (size_t)(WINDOW * op->window) : op->apart ? VECTOR_APART / ENV_WORD : 1;
    return bytes * blocks;
}

static void check_tasks(const struct operation *op)
{
    int wrong_number = (op->pairs == 2 && tasks != 2) || (op->pairs == 1 && tasks % 2) || (op->nodes && tasks != 2);
    if (wrong_number || hosted != !strncmp(op->name, "host-", 5)) {
        fprintf(stderr, "%s does not run with %d tasks%s\n", op->name, tasks, hosted ? ", the host one of them" : "");
        exit(2);
    }
}

/* Call `each` for every size of every argument OPERATION=BYTES,... */
static void for_each_point(int n, char **args, void (*each)(const struct operation *, size_t))
{
    for (int i = 0; i < n; i++) {
        size_t length = strcspn(args[i], "=");
        const struct operation *op = find_operation(args[i], length);
        char *text = args[i] + length;
        check_tasks(op);
        do {
            size_t bytes = *text ? strtoull(text + 1, &text, 10) : 0;
            each(op, op->unit ? bytes / op->unit * op->unit : 0);
        } while (*text == ',');
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

static void print_library(void)
{
    char text[512];
    env_version(text, sizeof text);
    printf("version %s\n", text);
    env_path(text, sizeof text);
    printf("path %s\n", text);
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
        if (driver)
            duet(driver, find_operation);
        else
            for_each_point(argc - first, argv + first, measure_point);
    }
    env_finalize();
    if (me == 0 && (argc <= first || strcmp(argv[first], "join-leave")))
        printf("done\n");
    return 0;
}
