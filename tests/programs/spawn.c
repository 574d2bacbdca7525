/*
 * Tasks that start tasks. One program plays both roles: its scenario names a spawner, or, after "as", a started task.
 */
#include "spawn.h"
#include <errno.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* More messages than one check takes in. */
enum { WORDS = 40 };

/* -- started tasks ------------------------------------------------------------------------------- */

static void as_child(void)
{
    int facts[5] = {rg_tid(), rg_parent(), me, size, rg_size(RG_ALL)};
    CHECK(rg_rank(RG_ALL) == rg_tid());
    CHECK(rg_tid_of(RG_WORLD, 0) == rg_tid() - me);
    OK(rg_barrier(RG_WORLD));
    int sum = 0, one = me;
    OK(rg_allreduce(&one, &sum, 1, RG_INT32, RG_SUM, RG_WORLD));
    CHECK(sum == size * (size - 1) / 2);
    int next = -1;
    rg_status status;
    OK(rg_sendrecv(&me, sizeof me, (me + 1) % size, 1, &next, sizeof next, RG_ANY, 1, RG_WORLD,
                   &status));
    CHECK(status.source == (me + size - 1) % size && next == status.source);
    OK(rg_send(facts, sizeof facts, rg_parent(), GREETING, RG_ALL));
    await_end();
}

static void as_quiet(void)
{
    await_end();
}

static void as_exit(void)
{
    OK(rg_finalize());
    exit(atoi(args[0]));
}

static void as_exit_later(void)
{
    await_end();
    as_exit();
}

static void as_last_words(void)
{
    await_end();
    for (int word = 0; word < WORDS; word++)
        OK(rg_send(&word, sizeof word, rg_parent(), EVENT, RG_ALL));
}

/* Is notified of a task's end after its parent, and ends. */
static void as_witness(void)
{
    int whose, watch;
    pid_t pid = getpid();
    OK(rg_recv(&whose, sizeof whose, rg_parent(), GREETING, RG_ALL, NULL));
    OK(rg_notify(RG_TASK_EXIT, whose, EVENT, RG_ALL, &watch));
    OK(rg_send(&pid, sizeof pid, rg_parent(), GREETING, RG_ALL));
    CHECK(next_event().tid == whose);
}

static void as_talker(void)
{
    printf("talker %d of %d\n", me, size);
    await_end();
}

static void as_place(void)
{
    char text[4096] = "";
    CHECK(getcwd(text, sizeof text) != NULL);
    OK(rg_send(text, strlen(text) + 1, rg_parent(), GREETING, RG_ALL));
    const char *added = getenv("ADDED");
    CHECK(added != NULL && getenv("PATH") != NULL);
    OK(rg_send(added, strlen(added) + 1, rg_parent(), GREETING, RG_ALL));
}

static void as_large(void)
{
    size_t len = 3u << 20;
    unsigned char *bytes = malloc(len), *back = malloc(len);
    paint(bytes, len, 1);
    OK(rg_send(bytes, len, rg_parent(), GREETING, RG_ALL));
    for (size_t n = 1; n <= 100000; n = n * 3 + 1)
        OK(rg_send(bytes, n, rg_parent(), GREETING, RG_ALL));
    OK(rg_recv(back, len, rg_parent(), GREETING, RG_ALL, NULL));
    CHECK(memcmp(bytes, back, len) == 0);
}

static void as_grandparent(void)
{
    int tid;
    int depth = atoi(args[0]);
    char less[16];
    snprintf(less, sizeof less, "%d", depth - 1);
    if (depth > 0) {
        start("as-grandparent", less, 1, &tid);
        int below;
        OK(rg_recv(&below, sizeof below, tid, GREETING, RG_ALL, NULL));
        depth = below + 1;
    }
    OK(rg_send(&depth, sizeof depth, rg_parent(), GREETING, RG_ALL));
}

static void as_member(void)
{
    int number;
    OK(rg_join("crew", &number));
    OK(rg_meet("crew", size + 1));
    OK(rg_send(&number, sizeof number, rg_parent(), GREETING, RG_ALL));
    await_end();
}

static void as_poster(void)
{
    for (int i = 0; i < 3; i++)
        OK(rg_put("letters", &me, sizeof me, RG_ANY, RG_SEVERAL | RG_OVERWRITABLE | RG_PERSISTENT,
                  NULL));
    OK(rg_put("mine", &me, sizeof me, RG_ANY, 0, NULL));
    OK(rg_send(NULL, 0, rg_parent(), GREETING, RG_ALL));
    await_end();
}

static void as_merged(void)
{
    int members[MAX_MEMBERS];
    rg_status status;
    OK(rg_recv(members, sizeof members, rg_parent(), GREETING, RG_ALL, &status));
    rg_group all;
    OK(rg_group_select(RG_ALL, (int)(status.length / sizeof(int)), members, &all));
    int one = 1, sum = 0;
    OK(rg_allreduce(&one, &sum, 1, RG_INT32, RG_SUM, all));
    CHECK(sum == rg_size(all) && rg_tid_of(all, rg_rank(all)) == rg_tid());
    OK(rg_barrier(all));
    OK(rg_group_free(all));
}

/* -- spawners ------------------------------------------------------------------------------------ */

static void family(void)
{
    int tids[4];
    CHECK(rg_parent() == RG_NONE);
    if (me == 0) {
        start("as-child", NULL, 4, tids);
        for (int i = 0; i < 4; i++) {
            int facts[5];
            CHECK(tids[i] == size + i);
            OK(rg_recv(facts, sizeof facts, tids[i], GREETING, RG_ALL, NULL));
            CHECK(facts[0] == tids[i] && facts[1] == rg_tid());
            CHECK(facts[2] == i && facts[3] == 4 && facts[4] == size + 4);
        }
        CHECK(rg_size(RG_ALL) == size + 4);
        FAILS(rg_send(NULL, 0, size + 4, 1, RG_ALL), RG_ERR_TASK, "no task");
        end(4, tids);
    }
    CHECK(rg_size(RG_WORLD) == size);
    OK(rg_barrier(RG_WORLD));
    FAILS(rg_barrier(RG_ALL), RG_ERR_ARGUMENT, "rg_group_select");
    rg_group group;
    FAILS(rg_group_dup(RG_ALL, &group), RG_ERR_ARGUMENT, "rg_group_select");
    FAILS(rg_group_shrink(RG_ALL, &group), RG_ERR_ARGUMENT, "rg_group_select");
    FAILS(rg_group_free(RG_ALL), RG_ERR_ARGUMENT, "channel");
}

static void worlds(void)
{
    int one[3], two[3];
    start("as-child", NULL, 3, one);
    start("as-child", NULL, 3, two);
    for (int i = 0; i < 6; i++)
        OK(rg_recv(NULL, 0, RG_ANY, GREETING, RG_ALL, NULL) == RG_ERR_TRUNCATED ? RG_OK : -1);
    end(3, two);
    end(3, one);
}

static void merged(void)
{
    int members[MAX_MEMBERS];
    members[0] = rg_tid();
    start("as-merged", NULL, 3, members + 1);
    for (int i = 1; i <= 3; i++)
        OK(rg_send(members, 4 * sizeof(int), members[i], GREETING, RG_ALL));
    rg_group all;
    OK(rg_group_select(RG_ALL, 4, members, &all));
    int one = 1, sum = 0;
    OK(rg_allreduce(&one, &sum, 1, RG_INT32, RG_SUM, all));
    CHECK(sum == 4 && rg_rank(all) == 0);
    OK(rg_barrier(all));
    OK(rg_group_free(all));
}

static void channels(void)
{
    int tid = rg_tid(), got = 0;
    OK(rg_send(&tid, sizeof tid, tid, 1, RG_CHANNEL(7)));
    OK(rg_send(&size, sizeof size, tid, 1, RG_CHANNEL(8)));
    int found = 1;
    OK(rg_iprobe(RG_ANY, RG_ANY, RG_ALL, &found, NULL));
    CHECK(!found);
    OK(rg_recv(&got, sizeof got, RG_ANY, RG_ANY, RG_CHANNEL(8), NULL));
    CHECK(got == size);
    OK(rg_recv(&got, sizeof got, RG_ANY, RG_ANY, RG_CHANNEL(7), NULL));
    CHECK(got == tid);
}

static void large(void)
{
    int tid;
    size_t len = 3u << 20;
    unsigned char *bytes = malloc(len), *want = malloc(len);
    paint(want, len, 1);
    start("as-large", NULL, 1, &tid);
    OK(rg_recv(bytes, len, tid, GREETING, RG_ALL, NULL));
    CHECK(memcmp(bytes, want, len) == 0);
    for (size_t n = 1; n <= 100000; n = n * 3 + 1) {
        rg_status status;
        memset(bytes, 0, n);
        OK(rg_recv(bytes, len, tid, GREETING, RG_ALL, &status));
        CHECK(status.length == n && memcmp(bytes, want, n) == 0);
    }
    OK(rg_send(want, len, tid, GREETING, RG_ALL));
}

static void generations(void)
{
    int tid, depth = -1;
    start("as-grandparent", "4", 1, &tid);
    OK(rg_recv(&depth, sizeof depth, tid, GREETING, RG_ALL, NULL));
    CHECK(depth == 4);
}

static void talkers(void)
{
    int tids[2];
    start("as-talker", NULL, 2, tids);
    end(2, tids);
}

static void places(void)
{
    const char *environment[] = {"ADDED=by the spawner", "OTHER=", NULL};
    rg_spawn_options options = {.directory = "/usr", .environment = environment, .host = "."};
    char *argv[] = {"as-place", NULL};
    char text[4096];
    int tid, started;
    OK(rg_spawn(own_path(), argv, &options, 1, &tid, &started));
    OK(rg_recv(text, sizeof text, tid, GREETING, RG_ALL, NULL));
    CHECK(strcmp(text, "/usr") == 0);
    OK(rg_recv(text, sizeof text, tid, GREETING, RG_ALL, NULL));
    CHECK(strcmp(text, "by the spawner") == 0);
}

static void missing(void)
{
    int tids[3] = {0, 0, 0}, started = 9;
    FAILS(rg_spawn("/no/such/program", NULL, NULL, 3, tids, &started), RG_ERR_PROGRAM,
          "does not exist");
    CHECK(started == 0 && tids[0] == RG_ERR_PROGRAM && tids[2] == RG_ERR_PROGRAM);
    FAILS(rg_spawn("no-such-program", NULL, NULL, 1, tids, &started), RG_ERR_PROGRAM, "PATH");
    char nonsense[] = "/tmp/regatta-spawn-XXXXXX";
    int fd = mkstemp(nonsense);
    CHECK(fd >= 0 && write(fd, "\177nonsense", 9) == 9);
    FAILS(rg_spawn(nonsense, NULL, NULL, 1, tids, &started), RG_ERR_PROGRAM, "not executable");
    CHECK(fchmod(fd, 0755) == 0 && close(fd) == 0);
    FAILS(rg_spawn(nonsense, NULL, NULL, 2, tids, &started), RG_ERR_PROGRAM, "neither a program");
    CHECK(started == 0 && tids[0] == RG_ERR_PROGRAM && tids[1] == RG_ERR_PROGRAM);
    unlink(nonsense);
    rg_spawn_options options = {.directory = "/no/such/directory"};
    FAILS(rg_spawn("/bin/true", NULL, &options, 1, tids, &started), RG_ERR_PROGRAM, "directory");
    options = (rg_spawn_options){.host = "atlantis"};
    FAILS(rg_spawn("/bin/true", NULL, &options, 1, tids, &started), RG_ERR_HOST, "atlantis");
    options = (rg_spawn_options){.architecture = "vax"};
    FAILS(rg_spawn("/bin/true", NULL, &options, 1, tids, &started), RG_ERR_HOST, "vax");
    FAILS(rg_spawn(NULL, NULL, NULL, 1, tids, &started), RG_ERR_ARGUMENT, "NULL");
    FAILS(rg_spawn("/bin/true", NULL, NULL, 0, tids, &started), RG_ERR_ARGUMENT, "count");
    const char *bad[] = {"no equals sign", NULL};
    options = (rg_spawn_options){.environment = bad};
    FAILS(rg_spawn("/bin/true", NULL, &options, 1, tids, &started), RG_ERR_ARGUMENT, "NAME=value");
    int tid;
    start("as-quiet", NULL, 1, &tid);
    end(1, &tid);
}

/*
 * One of two hosts lacks the program: tasks are started on the other host, and for each task that is not started there
 * is an error.
 */
static void missing_there(void)
{
    int tids[4] = {0, 0, 0, 0}, started = 0;
    if (me == 0) {
        char *argv[] = {"as-quiet", NULL};
        FAILS(rg_spawn(args[0], argv, NULL, 4, tids, &started), RG_ERR_PROGRAM, args[1]);
        CHECK(started == 2 && tids[0] >= size && tids[1] >= size);
        CHECK(tids[2] == RG_ERR_PROGRAM && tids[3] == RG_ERR_PROGRAM);
        end(2, tids);
    }
    OK(rg_barrier(RG_WORLD));
}

/* A program that never joins is a task as well. */
static void stranger(void)
{
    int tid, started, watch;
    OK(rg_spawn("/bin/true", NULL, NULL, 1, &tid, &started));
    OK(rg_notify(RG_TASK_EXIT, tid, EVENT, RG_ALL, &watch));
    rg_event event = next_event();
    CHECK(event.tid == tid && event.how == RG_BY_EXIT && event.value == 0 && event.watch == watch);
    FAILS(rg_send(NULL, 0, tid, 1, RG_ALL), RG_ERR_DEAD, "");
}

static void notices(void)
{
    int tids[4], watch, pending;
    start("as-quiet", NULL, 2, tids);
    start("as-exit-later", "7", 1, tids + 2);
    OK(rg_notify(RG_TASK_EXIT, tids[0], EVENT, RG_ALL, &watch));
    double before = rg_time();
    OK(rg_kill(tids[0]));
    rg_event event = next_event();
    double took = rg_time() - before;
    CHECK(event.kind == RG_TASK_EXIT && event.tid == tids[0] && event.watch == watch);
    CHECK(event.how == RG_BY_SIGNAL && event.value == SIGKILL);
    CHECK(took < 5.0); /* milliseconds, except on a busy machine */
    printf("notified after %.2f ms\n", took * 1e3);
    /* The task has already ended: the notice comes at once. */
    OK(rg_notify(RG_TASK_EXIT, tids[0], EVENT, RG_ALL, &watch));
    event = next_event();
    CHECK(event.tid == tids[0] && event.how == RG_BY_SIGNAL && event.watch == watch);
    OK(rg_notify(RG_TASK_EXIT, 12345, EVENT, RG_ALL, &watch));
    event = next_event();
    CHECK(event.tid == 12345 && event.how == RG_UNKNOWN);
    OK(rg_notify(RG_TASK_EXIT, tids[2], EVENT, RG_ALL, &watch));
    end(1, tids + 2);
    event = next_event();
    CHECK(event.tid == tids[2] && event.how == RG_BY_EXIT && event.value == 7);
    /* A cancelled watch gives no notice. */
    OK(rg_notify(RG_TASK_EXIT, tids[1], EVENT, RG_ALL, &watch));
    OK(rg_notify_cancel(watch, &pending));
    CHECK(pending == 1);
    end(1, tids + 1);
    OK(rg_notify(RG_TASK_EXIT, tids[1], END, RG_WORLD, &watch));
    rg_status status;
    OK(rg_recv(&event, sizeof event, me, END, RG_WORLD, &status));
    CHECK(event.tid == tids[1] && event.value == 0 && event.how == RG_BY_EXIT);
    int found;
    OK(rg_iprobe(RG_ANY, EVENT, RG_ALL, &found, NULL));
    CHECK(!found);
    OK(rg_notify_cancel(watch, &pending));
    CHECK(pending == 0);
    FAILS(rg_notify(99, 0, EVENT, RG_ALL, &watch), RG_ERR_ARGUMENT, "RG_TASK_EXIT");
    FAILS(rg_notify(RG_TASK_EXIT, 0, -5, RG_ALL, &watch), RG_ERR_TAG, "tag");
    OK(rg_notify(RG_HOST_LOST, 99, EVENT, RG_ALL, &watch));
    CHECK(next_event().kind == RG_HOST_LOST);
}

/* A task's messages arrive before the notice of its end, even if both are available at the first check. */
static void last_words(void)
{
    for (int round = 0; round < 20; round++) {
        int tid, witness, watch, word = -1;
        pid_t pid = 0;
        start("as-last-words", NULL, 1, &tid);
        start("as-witness", NULL, 1, &witness);
        OK(rg_notify(RG_TASK_EXIT, tid, EVENT, RG_ALL, &watch));
        OK(rg_send(&tid, sizeof tid, witness, GREETING, RG_ALL));
        OK(rg_recv(&pid, sizeof pid, witness, GREETING, RG_ALL, NULL));
        end(1, &tid);
        struct pollfd ended = {(int)syscall(SYS_pidfd_open, pid, 0), POLLIN, 0};
        if (ended.fd >= 0)
            CHECK(poll(&ended, 1, -1) == 1 && close(ended.fd) == 0);
        else
            CHECK(errno == ESRCH);
        int found;
        OK(rg_iprobe(RG_ANY, RG_ANY, RG_ALL, &found, NULL));
        CHECK(found);
        for (int i = 0; i < WORDS; i++) {
            rg_status status;
            rg_event next;
            OK(rg_recv(&next, sizeof next, RG_ANY, RG_ANY, RG_ALL, &status));
            memcpy(&word, &next, sizeof word);
            CHECK(status.source == tid && status.length == sizeof word && word == i);
        }
        CHECK(next_event().tid == tid);
    }
}

/* The descriptor reports events, too. */
static void by_descriptor(void)
{
    int tid, watch, fd, found = 0;
    OK(rg_fd(&fd));
    start("as-quiet", NULL, 1, &tid);
    OK(rg_notify(RG_TASK_EXIT, tid, EVENT, RG_ALL, &watch));
    OK(rg_clear_fd());
    end(1, &tid);
    while (!found) {
        fd_set set;
        FD_ZERO(&set);
        FD_SET(fd, &set);
        CHECK(select(fd + 1, &set, NULL, NULL, NULL) == 1);
        OK(rg_clear_fd());
        OK(rg_iprobe(RG_ANY, EVENT, RG_ALL, &found, NULL));
    }
    CHECK(next_event().tid == tid);
}

static void signals(void)
{
    int tids[2], watch, count;
    start("as-quiet", NULL, 2, tids);
    OK(rg_signal(tids[0], 0));
    FAILS(rg_signal(tids[0], 4711), RG_ERR_ARGUMENT, "signal");
    FAILS(rg_signal(4711, SIGTERM), RG_ERR_TASK, "4711");
    FAILS(rg_signal(-1, SIGTERM), RG_ERR_TASK, "-1");
    OK(rg_notify(RG_TASK_EXIT, tids[0], EVENT, RG_ALL, &watch));
    OK(rg_signal(tids[0], SIGTERM));
    rg_event event = next_event();
    CHECK(event.how == RG_BY_SIGNAL && event.value == SIGTERM);
    FAILS(rg_kill(tids[0]), RG_ERR_TASK, "ended");
    rg_task tasks[8];
    OK(rg_tasks(tasks, 8, &count));
    CHECK(count == 2 && tasks[0].tid == 0 && tasks[0].parent == RG_NONE);
    CHECK(tasks[0].pid == getpid() && tasks[1].tid == tids[1] && tasks[1].parent == 0);
    CHECK(strcmp(tasks[1].program, own_path()) == 0 && kill(tasks[1].pid, 0) == 0);
    OK(rg_tasks(NULL, 0, &count));
    CHECK(count == 2);
    rg_host hosts[2];
    OK(rg_hosts(hosts, 2, &count));
    CHECK(count == 1 && hosts[0].tasks == 2 && hosts[0].alive && hosts[0].cores > 0);
    CHECK(strlen(hosts[0].name) > 0 && strlen(hosts[0].architecture) > 0);
    end(1, tids + 1);
}

static void failing(void)
{
    int tid;
    start("as-exit", "3", 1, &tid);
    OK(rg_finalize());
    exit(0);
}

static void one_after_the_other(void)
{
    int rounds = atoi(args[0]);
    long early = 0;
    for (int i = 0; i < rounds; i++) {
        int tid, watch;
        start("as-quiet", NULL, 1, &tid);
        OK(rg_notify(RG_TASK_EXIT, tid, EVENT, RG_ALL, &watch));
        end(1, &tid);
        rg_event event = next_event();
        CHECK(event.tid == tid && event.how == RG_BY_EXIT && event.value == 0);
        if (i == rounds / 10)
            early = segment_bytes();
    }
    printf("memory %ld KiB then %ld KiB\n", early >> 10, segment_bytes() >> 10);
    /* Allows for an entry in the task table per task, and nothing more. */
    CHECK(segment_bytes() - early <= rounds * 256L + (1 << 20));
}

static void table_full(void)
{
    int tids[4], started;
    char *argv[] = {"as-quiet", NULL};
    start("as-quiet", NULL, 3, tids);
    FAILS(rg_spawn(own_path(), argv, NULL, 2, tids, &started), RG_ERR_MEMORY, "--most-tasks");
    start("as-quiet", NULL, 1, tids + 3);
    end(4, tids);
}

/*
 * The tasks of both hosts request three more at the same time. Only one request succeeds, because the job may have six
 * tasks.
 */
static void full_at_once(void)
{
    int tids[3], started;
    char *argv[] = {"as-quiet", NULL};
    OK(rg_barrier(RG_WORLD));
    int code = rg_spawn(own_path(), argv, NULL, 3, tids, &started);
    int has = code == RG_OK, all;
    CHECK(has ? started == 3 : code == RG_ERR_MEMORY);
    OK(rg_allreduce(&has, &all, 1, RG_INT32, RG_SUM, RG_WORLD));
    CHECK(all == 1);
    if (has)
        end(3, tids);
    OK(rg_barrier(RG_WORLD));
}

static void few_descriptors(void)
{
    int tids[MAX_MEMBERS], started = 0, all = 0, code = RG_OK;
    char *argv[] = {"as-quiet", NULL};
    while (code == RG_OK && all < 100) {
        code = rg_spawn(own_path(), argv, NULL, 10, tids + all, &started);
        all += started;
    }
    CHECK(code == RG_ERR_SYSTEM && all > 0 && strstr(rg_last_error(), "open files") != NULL);
    end(all, tids);
}

/* The task is killed while the launcher starts the tasks that it requested. */
static void dies_meanwhile(void)
{
    pid_t pid = getpid();
    int begun[2], tids[20], started;
    char *argv[] = {"as-exit", "0", NULL}, word = 0;
    CHECK(pipe(begun) == 0);
    if (fork() == 0) {
        if (read(begun[0], &word, 1) == 1)
            kill(pid, SIGKILL);
        _exit(0);
    }
    CHECK(write(begun[1], &word, 1) == 1);
    for (;;)
        OK(rg_spawn(own_path(), argv, NULL, 20, tids, &started));
}

static void mailboxes(void)
{
    int tids[2], count, value = 0, index;
    size_t len;
    FAILS(rg_get("letters", 0, 0, &value, sizeof value, &len, &index), RG_ERR_NAME, "letters");
    start("as-poster", NULL, 1, tids);
    OK(rg_recv(NULL, 0, tids[0], GREETING, RG_ALL, NULL));
    rg_entry entries[8];
    OK(rg_names("let*", entries, 8, &count));
    CHECK(count == 3 && entries[2].index == 2 && entries[2].owner == tids[0]);
    CHECK(entries[0].length == sizeof(int) && strcmp(entries[0].name, "letters") == 0);
    FAILS(rg_delete("mine", 0), RG_ERR_DENIED, "belongs to task");
    OK(rg_get("letters", 1, RG_TAKE, &value, sizeof value, &len, &index));
    CHECK(len == sizeof value && index == 1);
    int watch;
    OK(rg_notify(RG_TASK_EXIT, tids[0], EVENT, RG_ALL, &watch));
    end(1, tids);
    next_event();
    OK(rg_names("*", entries, 8, &count));
    CHECK(count == 2 && entries[0].owner == RG_NONE);
    FAILS(rg_get("letters", 0, 0, &value, 1, &len, &index), RG_ERR_TRUNCATED, "");
    CHECK(len == sizeof value);
    OK(rg_get("letters", 1, RG_FIRST, &value, sizeof value, &len, &index));
    CHECK(index == 2);
    OK(rg_delete("letters", 0));
    FAILS(rg_delete("letters", 0), RG_ERR_NAME, "letters");
    OK(rg_put("one", "a", 1, RG_ANY, 0, &index));
    FAILS(rg_put("one", "b", 1, RG_ANY, 0, &index), RG_ERR_EXISTS, "one");
    OK(rg_put("one", "b", 1, RG_ANY, RG_OVERWRITABLE, &index));
    CHECK(index == 0);
    /* A long value that does not fit into a socket buffer at once. */
    size_t many = 3u << 20;
    char *text = malloc(many), *back = malloc(many);
    paint(text, many, 5);
    OK(rg_put("long", text, many, 3, 0, &index));
    OK(rg_get("long", 3, RG_TAKE, back, many, &len, &index));
    CHECK(len == many && index == 3 && memcmp(text, back, many) == 0);
    FAILS(rg_put("", "a", 1, RG_ANY, 0, &index), RG_ERR_ARGUMENT, "empty");
    static char much[(16 << 20) - 70];
    FAILS(rg_put("much", much, sizeof much, RG_ANY, 0, &index), RG_ERR_ARGUMENT, "longer");
    OK(rg_put("much", much, sizeof much - 100, RG_ANY, 0, NULL));
    OK(rg_get("much", 0, RG_TAKE, much, sizeof much, &len, &index));
    CHECK(len == sizeof much - 100);
    FAILS(rg_put(NULL, "a", 1, RG_ANY, 0, &index), RG_ERR_ARGUMENT, "NULL");
}

/* One task waits for an entry that another one puts. */
static void waiting_for_names(void)
{
    int value = 0, index;
    size_t len;
    if (me == 0) {
        OK(rg_get("work", 0, RG_AWAIT | RG_TAKE, &value, sizeof value, &len, &index));
        CHECK(value == 42);
        OK(rg_put("answer", &value, sizeof value, RG_ANY, RG_PERSISTENT, NULL));
    } else {
        value = 42;
        OK(rg_put("work", &value, sizeof value, RG_ANY, RG_OVERWRITABLE, NULL));
        value = 0;
        OK(rg_get("answer", 0, RG_AWAIT, &value, sizeof value, &len, &index));
        CHECK(value == 42);
    }
}

/* Lists groups. Earlier groups may still be listed, because their tasks are ending. */
static void listed_groups(void)
{
    int number, count, waiting;
    rg_named_group groups[4];
    OK(rg_join("zealots", &number));
    OK(rg_join("admirals", &number));
    OK(rg_named_groups(groups, 4, &count));
    CHECK(count >= 2 && strcmp(groups[0].name, "admirals") == 0 && groups[0].members == 1);
    CHECK(strcmp(groups[count - 1].name, "zealots") == 0 && groups[count - 1].wanted == 0);
    OK(rg_named_groups(NULL, 0, &number));
    CHECK(number >= 2);
    OK(rg_waiting("zealots", &waiting, 1, &count));
    CHECK(count == 0);
    FAILS(rg_waiting(NULL, &waiting, 1, &count), RG_ERR_ARGUMENT, "NULL");
    OK(rg_leave("admirals"));
    OK(rg_leave("zealots"));
}

static void named_groups(void)
{
    int tids[3], number, count, members[8], sum = 0;
    OK(rg_join("crew", &number));
    CHECK(number == 0);
    FAILS(rg_join("crew", &number), RG_ERR_EXISTS, "crew");
    start("as-member", NULL, 3, tids);
    OK(rg_meet("crew", 4));
    for (int i = 0; i < 3; i++) {
        OK(rg_recv(&number, sizeof number, tids[i], GREETING, RG_ALL, NULL));
        sum += number;
    }
    CHECK(sum == 1 + 2 + 3);
    OK(rg_members("crew", members, 8, &count));
    CHECK(count == 4 && members[0] == 0);
    OK(rg_leave("crew"));
    FAILS(rg_leave("crew"), RG_ERR_NAME, "crew");
    OK(rg_members("crew", members, 8, &count));
    CHECK(count == 4 && members[0] == RG_NONE && members[1] != RG_NONE);
    end(3, tids);
    OK(rg_members("nobody", members, 8, &count));
    CHECK(count == 0);
    listed_groups();
}

static void as_host(void)
{
    int ids[2] = {getpid(), getppid()};
    OK(rg_send(ids, sizeof ids, rg_parent(), GREETING, RG_ALL));
    await_end();
}

/* The agent of the other host is killed: its tasks and the host are lost, and watchers are notified. */
static void host_lost(void)
{
    if (me == 1)
        OK(rg_recv(NULL, 0, 0, END, RG_WORLD, NULL));
    int tids[2], ids[2], watch, count, ended = 0, lost = 0;
    start("as-host", NULL, 2, tids);
    for (int i = 0; i < 2; i++)
        OK(rg_recv(ids, sizeof ids, tids[i], GREETING, RG_ALL, NULL));
    rg_task tasks[8];
    OK(rg_tasks(tasks, 8, &count));
    CHECK(count == 4 && tasks[2].tid == tids[0] && tasks[2].host == tasks[1].host);
    OK(rg_notify(RG_TASK_EXIT, 1, EVENT, RG_ALL, NULL));
    for (int i = 0; i < 2; i++)
        OK(rg_notify(RG_TASK_EXIT, tids[i], EVENT, RG_ALL, NULL));
    OK(rg_notify(RG_HOST_LOST, tasks[1].host, EVENT, RG_ALL, &watch));
    CHECK(kill(ids[1], SIGKILL) == 0);
    while (ended < 3 || lost < 1) {
        rg_event event = next_event();
        if (event.kind == RG_HOST_LOST) {
            CHECK(event.host == tasks[1].host && event.watch == watch);
            CHECK(strcmp(event.name, "beta") == 0);
            lost++;
        } else {
            CHECK(event.kind == RG_TASK_EXIT && event.how == RG_BY_HOST);
            ended++;
        }
    }
    rg_host hosts[4];
    OK(rg_hosts(hosts, 4, &count));
    CHECK(count == 2 && hosts[0].alive && !hosts[1].alive && hosts[1].tasks == 0);
    int started;
    rg_spawn_options options = {.host = "beta"};
    char *argv[] = {"as-quiet", NULL};
    FAILS(rg_spawn(own_path(), argv, &options, 1, tids, &started), RG_ERR_HOST, "alpha");
    OK(rg_spawn(own_path(), argv, NULL, 1, tids, &started));
    end(1, tids);
}

/*
 * The agent of task 1 gets no memory for a while: requests in that time fail, on any host, and nothing else does.
 * Everything requested later is known on that host, too.
 */
static void host_without_room(void)
{
    enum { TASKS = 60 };
    struct rlimit before = {0, 0}, none;
    char *argv[] = {"as-exit", "0", NULL};
    int tids[TASKS], started = -1, late = -1;
    if (me == 1) {
        CHECK(prlimit(getppid(), RLIMIT_FSIZE, NULL, &before) == 0);
        none = before;
        none.rlim_cur = 4096;
        CHECK(prlimit(getppid(), RLIMIT_FSIZE, &none, NULL) == 0);
    }
    OK(rg_barrier(RG_WORLD));
    if (me == 0) {
        const char *hosts[] = {"alpha", "beta"};
        for (int i = 0; i < 4; i++) {
            rg_spawn_options options = {.host = hosts[i % 2]};
            int said = rg_spawn(own_path(), argv, &options, TASKS, tids, &started);
            CHECK(said == RG_ERR_MEMORY && started == 0);
            CHECK(strstr(rg_last_error(), "on the host beta: shared memory") != NULL);
        }
    }
    OK(rg_barrier(RG_WORLD));
    if (me == 1)
        CHECK(prlimit(getppid(), RLIMIT_FSIZE, &before, NULL) == 0);
    OK(rg_barrier(RG_WORLD));
    if (me == 0) {
        rg_spawn_options options = {.host = "alpha"};
        char *quiet[] = {"as-quiet", NULL};
        OK(rg_spawn(own_path(), quiet, &options, 1, &late, &started));
        OK(rg_send(&late, sizeof late, 1, GREETING, RG_WORLD));
        OK(rg_recv(NULL, 0, 1, GREETING, RG_WORLD, NULL));
        end(1, &late);
    } else {
        OK(rg_recv(&late, sizeof late, 0, GREETING, RG_WORLD, NULL));
        /* Messages can be sent to it, and its end can be watched. */
        int watch;
        OK(rg_notify(RG_TASK_EXIT, late, EVENT, RG_ALL, &watch));
        OK(rg_send(NULL, 0, late, GREETING, RG_ALL));
        OK(rg_send(NULL, 0, 0, GREETING, RG_WORLD));
        CHECK(next_event().tid == late);
    }
    OK(rg_barrier(RG_WORLD));
}

/* A program started by hand, which leaves before the tasks that it has started. */
static void early_leaver(void)
{
    int tid;
    start("as-late", NULL, 1, &tid);
}

static void as_late(void)
{
    int watch;
    OK(rg_notify(RG_TASK_EXIT, rg_parent(), EVENT, RG_ALL, &watch));
    CHECK(next_event().how == RG_BY_EXIT);
    printf("the child ends last\n");
}

/* Goes on until it is killed, whatever it receives. */
static void as_orphan(void)
{
    (void)rg_recv(NULL, 0, rg_parent(), END, RG_ALL, NULL);
    for (;;)
        pause();
}

static void dies_at_once(void)
{
    int tids[3];
    start("as-orphan", NULL, 3, tids);
    kill(getpid(), SIGKILL);
}

static void storm(void)
{
    int rounds = atoi(args[0]), tids[8 * 5];
    CHECK(rounds <= 8);
    for (int i = 0; i < rounds; i++)
        start("as-child", NULL, 5, tids + 5 * i);
    for (int i = 0; i < 5 * rounds; i++) {
        int facts[5];
        OK(rg_recv(facts, sizeof facts, RG_ANY, GREETING, RG_ALL, NULL));
        CHECK(facts[1] == rg_tid());
    }
    end(5 * rounds, tids);
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"as-child", as_child, false},
        {"as-quiet", as_quiet, false},
        {"as-exit", as_exit, false},
        {"as-exit-later", as_exit_later, false},
        {"as-last-words", as_last_words, false},
        {"as-witness", as_witness, false},
        {"as-talker", as_talker, false},
        {"as-place", as_place, false},
        {"as-large", as_large, false},
        {"as-grandparent", as_grandparent, false},
        {"as-member", as_member, false},
        {"as-poster", as_poster, false},
        {"as-merged", as_merged, false},
        {"family", family, false},
        {"worlds", worlds, false},
        {"merged", merged, false},
        {"channels", channels, false},
        {"large", large, false},
        {"generations", generations, false},
        {"talkers", talkers, false},
        {"places", places, false},
        {"missing", missing, false},
        {"missing-there", missing_there, false},
        {"stranger", stranger, false},
        {"notices", notices, false},
        {"by-descriptor", by_descriptor, false},
        {"last-words", last_words, false},
        {"signals", signals, false},
        {"failing", failing, false},
        {"one-after-the-other", one_after_the_other, false},
        {"table-full", table_full, false},
        {"full-at-once", full_at_once, false},
        {"few-descriptors", few_descriptors, false},
        {"dies-meanwhile", dies_meanwhile, false},
        {"mailboxes", mailboxes, false},
        {"waiting-for-names", waiting_for_names, false},
        {"named-groups", named_groups, false},
        {"storm", storm, false},
        {"as-host", as_host, false},
        {"host-lost", host_lost, false},
        {"host-without-room", host_without_room, false},
        {"as-late", as_late, false},
        {"as-orphan", as_orphan, false},
        {"early-leaver", early_leaver, false},
        {"dies-at-once", dies_at_once, false},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
