/*
 * Tasks whose output is delivered to the task that has started them. As in spawn.c, one program plays both roles.
 */
#include "spawn.h"

enum { OUTPUT = 8 };

static void start_told(const char *role, const char *more, int kind, int count, int *tids)
{
    char *argv[] = {(char *)role, (char *)more, NULL};
    int started = -1;
    rg_spawn_options options = {.elsewhere = getenv("ELSEWHERE") != NULL,
                                .output = kind,
                                .output_tag = OUTPUT,
                                .output_group = RG_CHANNEL(3)};
    OK(rg_spawn(own_path(), argv, &options, count, tids, &started));
    CHECK(started == count);
}

static rg_output next_output(void)
{
    rg_output output;
    rg_status status;
    OK(rg_recv(&output, sizeof output, rg_tid(), OUTPUT, RG_CHANNEL(3), &status));
    CHECK(output.mark == RG_OUTPUT_MARK && output.length <= RG_OUTPUT_MOST);
    CHECK(status.length == sizeof output - RG_OUTPUT_MOST + output.length);
    CHECK(output.stream == 1 || output.stream == 2);
    return output;
}

static void is_line(const rg_output *output, int tid, int stream, const char *text)
{
    if (output->tid != tid || output->stream != stream || output->length != strlen(text) ||
        memcmp(output->text, text, output->length) != 0)
        FAILED("task %d stream %d wrote \"%.*s\", not \"%s\"", output->tid, output->stream,
               (int)output->length, output->text, text);
}

/* Writes lines to both streams, one of them too long, one without a newline, and ends by a signal. */
static void as_writer(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    await_end();
    for (int i = 0; i < 100; i++) {
        printf("line %d ", i);
        printf("of task %d\n", rg_tid());
        fprintf(stderr, "error %d\n", i);
    }
    for (int i = 0; i < RG_OUTPUT_MOST + 10; i++)
        putchar('x');
    printf("\nand no end");
    kill(getpid(), SIGKILL);
}

/* The output of each of several tasks arrives complete, in order, and before the notice of the task's end. */
static void written(void)
{
    enum { COUNT = 3 };
    int tids[COUNT], ended = 0, next[COUNT][2] = {{0}};
    bool closed[COUNT][2] = {{false}};
    start_told("as-writer", NULL, RG_OUTPUT_LINES, COUNT, tids);
    for (int i = 0; i < COUNT; i++)
        OK(rg_notify(RG_TASK_EXIT, tids[i], OUTPUT, RG_CHANNEL(3), NULL));
    end(COUNT, tids);
    while (ended < COUNT) {
        union {
            uint32_t mark;
            rg_event event;
            rg_output output;
        } told;
        OK(rg_recv(&told, sizeof told, rg_tid(), OUTPUT, RG_CHANNEL(3), NULL));
        if (told.mark == RG_EVENT_MARK) {
            int who = told.event.tid - tids[0];
            CHECK(told.event.how == RG_BY_SIGNAL);
            CHECK(closed[who][0] && closed[who][1]);
            CHECK(next[who][0] == 103 && next[who][1] == 100);
            ended++;
            continue;
        }
        CHECK(told.mark == RG_OUTPUT_MARK);
        int who = told.output.tid - tids[0], stream = told.output.stream - 1;
        CHECK(who >= 0 && who < COUNT && (stream == 0 || stream == 1) && !closed[who][stream]);
        int line = next[who][stream]++;
        char text[64] = "";
        if (told.output.length == 0) {
            closed[who][stream] = true;
            next[who][stream]--;
        } else if (line < 100) {
            snprintf(text, sizeof text, stream ? "error %d\n" : "line %d of task %d\n", line,
                     told.output.tid);
            is_line(&told.output, tids[who], stream + 1, text);
        } else if (line == 100) {
            CHECK(told.output.length == RG_OUTPUT_MOST && told.output.text[0] == 'x');
        } else {
            is_line(&told.output, tids[who], 1, line == 101 ? "xxxxxxxxxx\n" : "and no end");
        }
    }
}

/* Returns text of this length, in lines of random lengths. */
static char *flood_of(size_t len)
{
    char *bytes = need(len);
    paint(bytes, len, 8);
    for (size_t i = 0; i < len; i++)
        bytes[i] = bytes[i] % 64 == 0 ? '\n' : (char)('a' + (unsigned char)bytes[i] % 26);
    return bytes;
}

/* Writes this many bytes. */
static void as_flood(void)
{
    size_t len = (size_t)atol(args[0]);
    char *bytes = flood_of(len);
    for (size_t done = 0; done < len;) {
        ssize_t n = write(1, bytes + done, len - done < 4096 ? len - done : 4096);
        CHECK(n > 0);
        done += (size_t)n;
    }
}

static void flood_comes(int tid, const char *bytes, size_t len)
{
    size_t had = 0;
    for (int ends = 0; ends < 2;) {
        rg_output output = next_output();
        CHECK(output.tid == tid && had + output.length <= len);
        CHECK(memcmp(output.text, bytes + had, output.length) == 0);
        had += output.length;
        ends += output.length == 0;
    }
    CHECK(had == len);
}

static void floods(void)
{
    size_t len = 3u << 20;
    char *bytes = flood_of(len), text[32];
    snprintf(text, sizeof text, "%zu", len);
    for (int i = 0; i < 2; i++) {
        int tid;
        start_told("as-flood", text, i ? RG_OUTPUT_LINES : RG_OUTPUT_BLOCKS, 1, &tid);
        flood_comes(tid, bytes, len);
    }
}

/* The output of a task's children goes where its own output goes, unless the spawn says otherwise. */
static void as_writing_parent(void)
{
    int tid, started;
    char *argv[] = {"as-talker", NULL};
    rg_spawn_options options = {.output = atoi(args[0])};
    OK(rg_spawn(own_path(), argv, &options, 1, &tid, &started));
    end(1, &tid);
}

static void inherited(void)
{
    int tid, ends = 0, lines = 0;
    start_told("as-writing-parent", "0", RG_OUTPUT_LINES, 1, &tid);
    while (ends < 4) {
        rg_output output = next_output();
        if (output.length != 0) {
            CHECK(output.tid > tid);
            is_line(&output, output.tid, 1, "talker 0 of 1\n");
            lines++;
        }
        ends += output.length == 0;
    }
    CHECK(lines == 1);
    start_told("as-writing-parent", "1", RG_OUTPUT_LINES, 1, &tid);
    for (ends = 0; ends < 2; ends++) {
        rg_output output = next_output();
        is_line(&output, tid, output.stream, "");
    }
}

static void as_teller(void)
{
    printf("told to whoever listens\n");
    OK(rg_send(NULL, 0, rg_parent(), GREETING, RG_ALL));
    OK(rg_recv(NULL, 0, RG_ANY, END, RG_ALL, NULL));
    printf("and then to the job\n");
}

/* The task that requested the output ends, normally or not: later output goes to the job's output. */
static void as_deaf(void)
{
    int tid;
    start_told("as-teller", NULL, RG_OUTPUT_LINES, 1, &tid);
    OK(rg_recv(NULL, 0, tid, GREETING, RG_ALL, NULL));
    rg_output output = next_output();
    is_line(&output, tid, 1, "told to whoever listens\n");
    OK(rg_send(&tid, sizeof tid, rg_parent(), GREETING, RG_ALL));
    OK(rg_recv(NULL, 0, rg_parent(), END, RG_ALL, NULL));
    if (atoi(args[0]))
        kill(getpid(), SIGKILL);
}

static void receiver_ends(void)
{
    for (int killed = 0; killed < 2; killed++) {
        int tid, child;
        start("as-deaf", killed ? "1" : "0", 1, &tid);
        OK(rg_notify(RG_TASK_EXIT, tid, EVENT, RG_ALL, NULL));
        OK(rg_recv(&child, sizeof child, tid, GREETING, RG_ALL, NULL));
        end(1, &tid);
        next_event();
        end(1, &child);
    }
}

/* The task has left, but its process goes on. Its child writes much output, and no task waits for that. */
static void leaves_and_stays(void)
{
    int tid, started, word = 0, begun[2];
    char text[4096];
    CHECK(rg_init() == RG_OK);
    CHECK(pipe(begun) == 0);
    char *argv[] = {"as-flood-to-job", NULL};
    snprintf(text, sizeof text, "DONE=/proc/%d/fd/%d", getpid(), begun[1]);
    const char *environment[] = {text, NULL};
    rg_spawn_options options = {.output = RG_OUTPUT_BLOCKS, .host = ".", .environment = environment};
    OK(rg_spawn(own_path(), argv, &options, 1, &tid, &started));
    OK(rg_finalize());
    CHECK(read(begun[0], &word, 1) == 1);
}

static void as_flood_to_job(void)
{
    for (int i = 0; i < 20000; i++)
        printf("a line that nobody receives, and that is not lost: %d\n", i);
    fflush(stdout);
    FILE *done = fopen(getenv("DONE"), "w");
    CHECK(done != NULL && fputc('d', done) == 'd' && fclose(done) == 0);
}

/* Returns the number that follows this word in a /proc file of a process. */
static long long number_of(int pid, const char *file, const char *word)
{
    char path[64], line[256];
    long long number = -1;
    snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
    FILE *facts = fopen(path, "r");
    CHECK(facts != NULL);
    while (fgets(line, sizeof line, facts) != NULL)
        if (strncmp(line, word, strlen(word)) == 0)
            number = strtoll(line + strlen(word), NULL, 10);
    fclose(facts);
    CHECK(number >= 0);
    return number;
}

static bool sleeps(int pid)
{
    char path[64], line[256];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *status = fopen(path, "r");
    CHECK(status != NULL);
    while (fgets(line, sizeof line, status) != NULL)
        found |= strncmp(line, "State:\tS", 8) == 0;
    fclose(status);
    return found;
}

static int pid_of(int tid)
{
    rg_task tasks[8];
    int count;
    OK(rg_tasks(tasks, 8, &count));
    for (int i = 0; i < count; i++)
        if (tasks[i].tid == tid)
            return tasks[i].pid;
    FAILED("no task %d", tid);
}

/* A task that requests output and does not receive it blocks the writer; the output must not fill memory. */
static void never_receives(void)
{
    int tid;
    long long before = number_of(getppid(), "status", "VmRSS:");
    size_t len = 16u << 20;
    char *bytes = flood_of(len), text[32];
    snprintf(text, sizeof text, "%zu", len);
    start_told("as-flood", text, RG_OUTPUT_BLOCKS, 1, &tid);
    /* The writer writes until it blocks. */
    int pid = pid_of(tid);
    for (long long now = 0, last = -1; now != last || now < 256 << 10 || !sleeps(pid);) {
        last = now;
        now = number_of(pid, "io", "wchar:");
        CHECK(now < 2 << 20);
        OK(rg_progress());
    }
    CHECK(number_of(getppid(), "status", "VmRSS:") - before < 4096);
    /* All output arrives once it is received. */
    flood_comes(tid, bytes, len);
}

static void told_nonsense(void)
{
    int tid, started;
    rg_spawn_options options = {.output = 7};
    FAILS(rg_spawn("/bin/true", NULL, &options, 1, &tid, &started), RG_ERR_ARGUMENT, "RG_OUTPUT");
    options = (rg_spawn_options){.output = RG_OUTPUT_LINES, .output_tag = -3};
    FAILS(rg_spawn("/bin/true", NULL, &options, 1, &tid, &started), RG_ERR_TAG, "tag");
    options = (rg_spawn_options){.output = RG_OUTPUT_LINES, .output_group = {12345}};
    FAILS(rg_spawn("/bin/true", NULL, &options, 1, &tid, &started), RG_ERR_HANDLE, "group");
    options = (rg_spawn_options){.output = RG_OUTPUT_LINES, .output_to = -1};
    FAILS(rg_spawn("/bin/true", NULL, &options, 1, &tid, &started), RG_ERR_ARGUMENT, "output_to");
    /* A program that does not use Regatta, and its child. */
    char *argv[] = {"-c", "echo one; (echo two)", NULL};
    options = (rg_spawn_options){.output = RG_OUTPUT_BLOCKS,
                                 .output_tag = OUTPUT,
                                 .output_group = RG_CHANNEL(3)};
    OK(rg_spawn("/bin/sh", argv, &options, 1, &tid, &started));
    char all[64] = "";
    for (int ends = 0; ends < 2;) {
        rg_output output = next_output();
        strncat(all, output.text, output.length);
        ends += output.length == 0;
    }
    CHECK(strcmp(all, "one\ntwo\n") == 0);
}

static void as_lost_writer(void)
{
    printf("the last that is heard\n");
    OK(rg_send(NULL, 0, rg_parent(), GREETING, RG_ALL));
    await_end();
}

/* A host is lost: the streams of its tasks end, too. */
static void lost_writer(void)
{
    if (me == 1)
        OK(rg_recv(NULL, 0, 0, END, RG_WORLD, NULL));
    int tid, ids[2], ends = 0;
    start("as-host", NULL, 1, &tid);
    OK(rg_recv(ids, sizeof ids, tid, GREETING, RG_ALL, NULL));
    OK(rg_notify(RG_TASK_EXIT, tid, EVENT, RG_ALL, NULL));
    OK(rg_notify(RG_TASK_EXIT, 1, EVENT, RG_ALL, NULL));
    start_told("as-lost-writer", NULL, RG_OUTPUT_LINES, 1, &tid);
    OK(rg_notify(RG_TASK_EXIT, tid, EVENT, RG_ALL, NULL));
    OK(rg_recv(NULL, 0, tid, GREETING, RG_ALL, NULL));
    rg_output output = next_output();
    is_line(&output, tid, 1, "the last that is heard\n");
    CHECK(kill(ids[1], SIGKILL) == 0);
    for (; ends < 2; ends++) {
        output = next_output();
        is_line(&output, tid, output.stream, "");
    }
    for (int i = 0; i < 3; i++)
        CHECK(next_event().how == RG_BY_HOST);
}

static void as_talker(void)
{
    printf("talker %d of %d\n", me, size);
    await_end();
}

static void as_host(void)
{
    int ids[2] = {getpid(), getppid()};
    OK(rg_send(ids, sizeof ids, rg_parent(), GREETING, RG_ALL));
    await_end();
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"as-talker", as_talker, false},
        {"as-host", as_host, false},
        {"as-writer", as_writer, false},
        {"as-flood", as_flood, false},
        {"as-writing-parent", as_writing_parent, false},
        {"as-teller", as_teller, false},
        {"as-deaf", as_deaf, false},
        {"as-flood-to-job", as_flood_to_job, false},
        {"as-lost-writer", as_lost_writer, false},
        {"written", written, false},
        {"floods", floods, false},
        {"inherited", inherited, false},
        {"receiver-ends", receiver_ends, false},
        {"leaves-and-stays", leaves_and_stays, true},
        {"never-receives", never_receives, false},
        {"told-nonsense", told_nonsense, false},
        {"lost-writer", lost_writer, false},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
