/* expect.h: checks of MPI's results by the operations of this folder. */
#ifndef EXPECT_H
#define EXPECT_H

#include "../payload.h"

/* Ends the program with the call's name and a sentence if the condition is false. */
#define EXPECT(condition, call, sentence)              \
    do {                                               \
        if (__builtin_expect(!(condition), 0))         \
            env_fail(call, sentence);                  \
    } while (0)

#endif
