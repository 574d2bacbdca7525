/*
 * Common parts of the test programs: scenarios that are chosen by name, checks that print where they failed, and a
 * watchdog that turns a hang into a failure with a line number.
 *
 * A program is a table of scenarios; `PROGRAM SCENARIO [ARGS]` runs one. A failed check prints a line that starts with
 * FAIL and ends the task with status 3. A hang prints HUNG and ends the task with status 4. The drivers in tests/
 * require status 0 and neither of these words.
 */
#ifndef CHECK_H
#define CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <poll.h>
#include <regatta.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int me = -1;   /* rank in the world */
static int size = -1; /* tasks in the world */
static int arg_count;
static char **args; /* arguments after the scenario's name */
static volatile int check_line;
static const char *check_scenario = "";

__attribute__((noreturn, format(printf, 3, 4))) static void check_failed(const char *file, int line,
                                                                         const char *format, ...)
{
    char text[1600];
    int used = snprintf(text, sizeof text, "FAIL %s task %d %s:%d: ", check_scenario, me, file, line);
    va_list list;
    va_start(list, format);
    used += vsnprintf(text + used, sizeof text - (size_t)used - 2, format, list);
    va_end(list);
    if (used > (int)sizeof text - 2)
        used = (int)sizeof text - 2;
    text[used++] = '\n';
    if (write(2, text, (size_t)used) < 0)
        _exit(5);
    _exit(3);
}

#define FAILED(...) check_failed(__FILE__, __LINE__, __VA_ARGS__)

#define CHECK(condition)                 \
    do {                                 \
        check_line = __LINE__;           \
        if (!(condition))                \
            FAILED("not: %s", #condition); \
    } while (0)

/* Checks that the call succeeds. */
#define OK(call)                                                                       \
    do {                                                                               \
        check_line = __LINE__;                                                         \
        int code_ = (call);                                                            \
        if (code_ != RG_OK)                                                            \
            FAILED("%s gave %d (%s)", #call, code_, rg_last_error());                  \
    } while (0)

/* Checks that the call returns this error, with a text that contains these words. */
#define FAILS(call, code, words)                                                              \
    do {                                                                                      \
        check_line = __LINE__;                                                                \
        int code_ = (call);                                                                   \
        if (code_ != (code))                                                                  \
            FAILED("%s gave %d and not %s (%s)", #call, code_, #code,                         \
                   code_ < 0 ? rg_last_error() : "no error");                                 \
        if (strstr(rg_last_error(), (words)) == NULL)                                         \
            FAILED("%s says \"%s\" without \"%s\"", #call, rg_last_error(), (words));         \
        if (strlen(rg_last_error()) < 15)                                                     \
            FAILED("%s says only \"%s\"", #call, rg_last_error());                            \
    } while (0)

static void check_hung(int signal)
{
    (void)signal;
    char text[200];
    int used = snprintf(text, sizeof text, "HUNG %s task %d in line %d\n", check_scenario, me,
                        check_line);
    if (write(2, text, (size_t)used) < 0)
        _exit(5);
    _exit(4);
}

/* Sets the watchdog: after this many seconds from now the task counts as hung. */
static inline void check_patience(unsigned seconds)
{
    signal(SIGALRM, check_hung);
    alarm(seconds);
}

/* Records that a check is left out because this machine does not allow it; the driver records the reason. */
__attribute__((unused)) static void skip(const char *reason)
{
    printf("skipped: %s\n", reason);
}

struct scenario {
    const char *name;
    void (*run)(void);
    bool raw; /* the scenario calls rg_init and rg_finalize itself, or does not call them */
};

static int check_main(int argc, char **argv, const struct scenario *scenarios)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s SCENARIO\n", argv[0]);
        return 2;
    }
    arg_count = argc - 2;
    args = argv + 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (; scenarios->name != NULL; scenarios++) {
        if (strcmp(scenarios->name, argv[1]) != 0)
            continue;
        check_scenario = scenarios->name;
        check_patience(75);
        if (scenarios->raw) {
            scenarios->run();
            return 0;
        }
        OK(rg_init());
        me = rg_rank(RG_WORLD);
        size = rg_size(RG_WORLD);
        scenarios->run();
        OK(rg_finalize());
        return 0;
    }
    fprintf(stderr, "FAIL %s has no scenario %s\n", argv[0], argv[1]);
    return 2;
}

/* Makes no calls for a while. For scenarios in which a task must be absent, not waiting for anything. */
static inline void be_away(double seconds)
{
    for (double until = rg_time() + seconds; rg_time() < until;)
        ;
}

/* Like be_away, but without using a core. */
static inline void doze(double seconds)
{
    poll(NULL, 0, (int)(seconds * 1000));
}

/* Returns the next random number (splitmix64), the same on every machine. */
static inline uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Fills memory with bytes that depend on the seed and their position. */
static inline void paint(void *memory, size_t len, uint64_t seed)
{
    unsigned char *bytes = memory;
    uint64_t state = seed, word = 0;
    for (size_t i = 0; i < len; i++) {
        if (i % 8 == 0)
            word = next_random(&state);
        bytes[i] = (unsigned char)(word >> (8 * (i % 8)));
    }
}

/* Returns the index of the first byte that differs from what `paint` writes, or len. */
static inline size_t unpainted(const void *memory, size_t len, uint64_t seed)
{
    const unsigned char *bytes = memory;
    uint64_t state = seed, word = 0;
    for (size_t i = 0; i < len; i++) {
        if (i % 8 == 0)
            word = next_random(&state);
        if (bytes[i] != (unsigned char)(word >> (8 * (i % 8))))
            return i;
    }
    return len;
}

static inline void *need(size_t len)
{
    void *memory = malloc(len ? len : 1);
    if (memory == NULL)
        FAILED("no memory of %zu bytes", len);
    return memory;
}

/* Completes a request with rg_test and the file descriptor, as an event loop does. */
static inline void await_by_fd(int fd, rg_request *request)
{
    int done = 0;
    for (;;) {
        OK(rg_test(request, &done, NULL));
        if (done)
            return;
        struct pollfd one = {fd, POLLIN, 0};
        check_line = __LINE__;
        int ready = poll(&one, 1, 10000);
        if (ready != 1 || !(one.revents & POLLIN))
            FAILED("the descriptor was not readable in 10 s (%d)", ready);
        OK(rg_clear_fd());
    }
}

#endif
