/*
 * Common parts of the MPI programs: a failed check prints where it is and aborts the job; the first argument names a
 * scenario.
 */
#ifndef MPI_CHECK_H
#define MPI_CHECK_H

#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int me = -1, size = -1;

#define CHECK(condition)                                                                       \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            fprintf(stderr, "%s:%d: process %d: %s does not hold\n", __FILE__, __LINE__, me,   \
                    #condition);                                                               \
            exit(1);                                                                           \
        }                                                                                      \
    } while (0)

/* Returns the error class of a call's result. */
static inline int class_of(int code)
{
    int class = -1;
    CHECK(MPI_Error_class(code, &class) == MPI_SUCCESS);
    return class;
}

#define SUCCEEDS(call)                                                                         \
    do {                                                                                       \
        int code_ = (call);                                                                    \
        if (code_ != MPI_SUCCESS) {                                                            \
            char text_[MPI_MAX_ERROR_STRING] = "";                                             \
            int length_ = 0;                                                                   \
            MPI_Error_string(code_, text_, &length_);                                          \
            fprintf(stderr, "%s:%d: process %d: %s: error %d, %s\n", __FILE__, __LINE__, me,   \
                    #call, code_, text_);                                                      \
            exit(1);                                                                           \
        }                                                                                      \
    } while (0)

#define FAILS(class, call)                                                                     \
    do {                                                                                       \
        int code_ = (call);                                                                    \
        if (class_of(code_) != (class)) {                                                      \
            fprintf(stderr, "%s:%d: process %d: %s: error %d, and not " #class "\n", __FILE__, \
                    __LINE__, me, #call, code_);                                               \
            exit(1);                                                                           \
        }                                                                                      \
    } while (0)

/* Checks a collective call that fails only at the last process. */
#define OF_LAST(class, call)                                                                   \
    do {                                                                                       \
        if (me == size - 1)                                                                    \
            FAILS(class, call);                                                                \
        else                                                                                   \
            SUCCEEDS(call);                                                                    \
    } while (0)

typedef void (*scenario_function)(void);
struct scenario {
    const char *name;
    scenario_function play;
};

/* Plays the scenario that the first argument names, after MPI has been initialized. Errors are returned. */
static inline int play_initialized(int argc, char **argv, const struct scenario *scenarios)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (; argc > 1 && scenarios->name; scenarios++) {
        if (strcmp(scenarios->name, argv[1]) == 0) {
            scenarios->play();
            SUCCEEDS(MPI_Finalize());
            return 0;
        }
    }
    fprintf(stderr, "no scenario %s\n", argc > 1 ? argv[1] : "");
    return 2;
}

/* Like `play_initialized`, but initializes MPI first. */
static inline int play(int argc, char **argv, const struct scenario *scenarios)
{
    MPI_Init(&argc, &argv);
    return play_initialized(argc, argv, scenarios);
}

#endif
