/* expect.h: what the operations of this folder hold to be true of MPI's answers. */
#ifndef EXPECT_H
#define EXPECT_H

#include "../payload.h"

/* Ends the program with the call's name and a sentence, unless the condition holds. */
#define EXPECT(condition, call, sentence)              \
    do {                                               \
        if (__builtin_expect(!(condition), 0))         \
            env_fail(call, sentence);                  \
    } while (0)

#endif
