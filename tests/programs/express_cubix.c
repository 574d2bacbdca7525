/*
 * Standard I/O of node programs with Cubix: what is written and read in each mode. Everything but the checks uses plain
 * stdio.
 */
#include "express_check.h"

#include <cubix.h>
#include <errno.h>
#include <sys/resource.h>

static char path[200];

static void start(void)
{
    begin();
    CHECK(arg_count == 1);
    snprintf(path, sizeof path, "%s/%s", args[0], check_scenario);
}

/* Checks the content of the file: node 0 reads it without Cubix. */
static void has(const char *text)
{
    exsync();
    if (me == 0) {
        char got[4000] = "";
        FILE *file = (fopen)(path, "r");
        CHECK(file != NULL);
        got[(fread)(got, 1, sizeof got - 1, file)] = 0;
        (fclose)(file);
        if (strcmp(got, text) != 0)
            FAILED("the file has\n%s", got);
    }
    exsync();
}

/* Singular mode: one copy of what all nodes write. */
static void single(void)
{
    start();
    FILE *file = fopen(path, "w");
    CHECK(file != NULL && !ismulti(file));
    for (int i = 0; i < 3; i++)
        CHECK(fprintf(file, "line %d\n", i) == 7);
    CHECK(ftell(file) == 21);
    CHECK(fflush(file) == 0);
    has("line 0\nline 1\nline 2\n");
    CHECK(fseek(file, 5, SEEK_SET) == 0 && fputs("X", file) >= 0 && fclose(file) == 0);
    has("line X\nline 1\nline 2\n");
    file = fopen(path, "a");
    CHECK(file != NULL && fputs("end\n", file) >= 0 && fclose(file) == 0);
    has("line X\nline 1\nline 2\nend\n");
}

/* All nodes read the same data, with any call. */
static void reads(void)
{
    char line[40];
    int number = 0, more = 0;

    start();
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    fprintf(file, "17 4\nthe second line\nrest");
    CHECK(fclose(file) == 0);
    file = fopen(path, "r");
    CHECK(file != NULL && fscanf(file, "%d %d", &number, &more) == 2 && number == 17 && more == 4);
    CHECK(getc(file) == '\n' && fgets(line, sizeof line, file) == line && strcmp(line, "the second line\n") == 0);
    long at = ftell(file);
    CHECK(at == 21 && fread(line, 1, sizeof line, file) == 4 && memcmp(line, "rest", 4) == 0 && feof(file));
    CHECK(fseek(file, 9, SEEK_SET) == 0 && fgets(line, 4, file) == line && strcmp(line, "sec") == 0);
    CHECK(fclose(file) == 0);
    CHECK(fopen("/no/such/file", "r") == NULL && errno == ENOENT);
    CHECK(fopen(path, "nonsense") == NULL && errno == EINVAL);
}

/* Multiple mode: each node's text in the order of the nodes, when all have flushed. */
static void multi(void)
{
    char expected[2000] = "head\n";

    start();
    FILE *file = fopen(path, "w");
    CHECK(file != NULL && fputs("head\n", file) >= 0 && fmulti(file) == 0 && ismulti(file));
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i <= me + round; i++)
            fprintf(file, "%d.%d\n", me, i);
        CHECK(fflush(file) == 0);
        for (int node = 0; node < size; node++)
            for (int i = 0; i <= node + round; i++)
                snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%d.%d\n", node, i);
    }
    has(expected);
    /* Only the last node writes something; then one copy again. */
    if (me == size - 1)
        fputs("last\n", file);
    CHECK(fsingl(file) == 0 && !ismulti(file) && fputs("tail\n", file) >= 0);
    CHECK(fclose(file) == 0);
    has(strcat(expected, "last\ntail\n"));
}

/* Each node gets its part of what is read, by bytes and by lines. */
static void parts(void)
{
    char got[20], line[20], expected[20];

    start();
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    fputs("first\n", file);
    for (int node = 0; node < size; node++)
        fprintf(file, "%04d", 11 * node);
    for (int node = 0; node < size; node++)
        fprintf(file, "line of %d\n", node);
    fputs("all\nx", file);
    CHECK(fclose(file) == 0);
    file = fopen(path, "r");
    CHECK(file != NULL && fgets(line, sizeof line, file) == line && strcmp(line, "first\n") == 0);
    CHECK(fmulti(file) == 0);
    CHECK(fread(got, 4, 1, file) == 1);
    snprintf(expected, sizeof expected, "%04d", 11 * me);
    CHECK(memcmp(got, expected, 4) == 0);
    CHECK(fgets(line, sizeof line, file) == line);
    snprintf(expected, sizeof expected, "line of %d\n", me);
    CHECK(strcmp(line, expected) == 0);
    CHECK(fsingle(file) == 0 && fgets(line, sizeof line, file) == line && strcmp(line, "all\n") == 0);
    /* The last byte goes to node 0; the others reach the end of the file. */
    CHECK(fmulti(file) == 0 && fread(got, 1, 1, file) == (me == 0 ? 1 : 0) && !feof(file) == (me == 0));
    CHECK(fclose(file) == 0);
}

/* Asynchronous mode: each node by itself. */
static void async(void)
{
    char line[40];

    start();
    FILE *file = fopen(path, "w+");
    CHECK(file != NULL);
    for (int node = 0; node < size; node++)
        fprintf(file, "record %d\n", node);
    CHECK(fflush(file) == 0 && fasync(file) == 0);
    CHECK(fseek(file, 9 * me, SEEK_SET) == 0 && fgets(line, sizeof line, file) == line);
    CHECK(atoi(line + 7) == me);
    CHECK(fseek(file, 9 * me + 7, SEEK_SET) == 0 && fprintf(file, "%c", 'a' + me) == 1 && fflush(file) == 0);
    exsync();
    CHECK(fsingl(file) == 0 && fseek(file, 0, SEEK_SET) == 0);
    for (int node = 0; node < size; node++) {
        CHECK(fgets(line, sizeof line, file) == line);
        CHECK(strncmp(line, "record ", 7) == 0 && line[7] == 'a' + node && line[8] == '\n');
    }
    CHECK(fclose(file) == 0);
}

/* Writes a node's part: this many lines of nine bytes. */
static void put_lines(FILE *file, int node, int lines)
{
    for (int i = 0; i < lines; i++)
        CHECK(fprintf(file, "%d.%06d\n", node, i) == 9);
}

static void has_lines(FILE *file, int node, int lines)
{
    char line[20], expected[20];

    for (int i = 0; i < lines; i++) {
        snprintf(expected, sizeof expected, "%d.%06d\n", node, i);
        CHECK((fgets)(line, sizeof line, file) == line && strcmp(line, expected) == 0);
    }
}

enum { LINES = 50000 };

/* Checks the file: two long parts and one short part of each node, and one copy. */
static void has_much(const char *where)
{
    exsync();
    if (me == 0) {
        FILE *file = (fopen)(where, "r");
        CHECK(file != NULL);
        has_lines(file, 9, 1);
        for (int round = 0; round < 2; round++)
            for (int node = 0; node < size; node++)
                has_lines(file, node, LINES * (node + 1) - 7 * node);
        for (int node = 0; node < size; node++)
            has_lines(file, node, 3);
        has_lines(file, 8, 1);
        CHECK(getc(file) == EOF && (fclose)(file) == 0);
    }
    exsync();
}

static void write_much(FILE *file)
{
    CHECK(fmulti(file) == 0);
    for (int round = 0; round < 2; round++) {
        put_lines(file, me, LINES * (me + 1) - 7 * me);
        CHECK(fflush(file) == 0);
    }
    put_lines(file, me, 3);
    CHECK(fsingl(file) == 0);
    put_lines(file, 8, 1);
    CHECK(fclose(file) == 0);
}

/* Long parts, which each node writes into the file itself. */
static void much(void)
{
    start();
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    put_lines(file, 9, 1);
    write_much(file);
    has_much(path);
    /* In append mode, other writers may append, so nodes do not know their positions. */
    CHECK((file = fopen(path, "w")) != NULL && fclose(file) == 0);
    CHECK((file = fopen(path, "a")) != NULL);
    put_lines(file, 9, 1);
    write_much(file);
    has_much(path);
}

/* Another file has replaced the one that the nodes have opened. */
static void moved(void)
{
    char away[220];

    start();
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    put_lines(file, 9, 1);
    CHECK(fflush(file) == 0);
    snprintf(away, sizeof away, "%s-away", path);
    if (me == 0) {
        CHECK(rename(path, away) == 0);
        FILE *other = (fopen)(path, "w");
        CHECK(other != NULL && (fclose)(other) == 0);
    }
    exsync();
    write_much(file);
    has_much(away);
    has("");
}

/* The last node exceeds its file size limit. It gets the error at once, the others with the next collective call. */
static void full(void)
{
    struct rlimit limit = {1 << 16, 1 << 16};

    start();
    FILE *file = fopen(path, "w");
    CHECK(file != NULL && fmulti(file) == 0);
    signal(SIGXFSZ, SIG_IGN);
    if (me == size - 1)
        CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    put_lines(file, me, LINES);
    errno = 0;
    CHECK(fflush(file) == (me == size - 1 ? EOF : 0) && (me != size - 1 || errno == EFBIG));
    errno = 0;
    CHECK(fclose(file) == EOF);
}

/* The terminal: one question, one answer for all nodes, then a line of every node. */
static void terminal(void)
{
    int number = 0;
    char word[20];

    begin();
    printf("number? ");
    CHECK(scanf("%d %19s", &number, word) == 2);
    printf("%d %s\n", number, word);
    CHECK(fmulti(stdout) == 0);
    printf("node %d\n", me + number);
    CHECK(ismulti(stdout) && fasync(stderr) == EOF);
}

/* Only this call and no other. */
static void once(void)
{
    printf("once");
}

static const struct scenario scenarios[] = {{"single", single, true}, {"reads", reads, true}, {"multi", multi, true},
                                            {"parts", parts, true},   {"async", async, true}, {"terminal", terminal, true}, {"once", once, true},
                                            {"much", much, true}, {"moved", moved, true}, {"full", full, true},
                                            {NULL, NULL, false}};

int main(int argc, char **argv)
{
    return check_main(argc, argv, scenarios);
}
