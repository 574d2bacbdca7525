/* pvm_fsend and pvm_frecv, which PVM 3.4 does not have: with each other, and together with all other calls. */
#include <pvm3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "pvm_fsend.c:%d: not so: %s\n", __LINE__, #condition);    \
            exit(1);                                                                  \
        }                                                                             \
    } while (0)

enum { MAX_ITEMS = 300000, ONE = 1 };

static double out[MAX_ITEMS], in[MAX_ITEMS];

int main(void)
{
    int me = pvm_mytid(), from, tag, length, numbers[6] = {1, 2, 3, 4, 5, 6}, got[6] = {0};

    CHECK(me > 0);
    for (int at = 0; at < MAX_ITEMS; at++)
        out[at] = at / 2.0;
    /* Few and many items, contiguous and with strides, to this task itself. */
    int counts[] = {0, 1, 100, 512, 513, MAX_ITEMS / 3};
    for (int which = 0; which < 6; which++) {
        int count = counts[which];
        for (int apart = 1; apart <= 3; apart++) {
            for (int there = 1; there <= 2; there++) {
                memset(in, 0, sizeof in);
                CHECK(pvm_fsend(me, ONE, out, count, apart, PVM_DOUBLE) == 0);
                CHECK(pvm_frecv(me, ONE, in, count, there, PVM_DOUBLE, &from, &tag, &length) == 0);
                CHECK(from == me && tag == ONE && length == count * (int)sizeof(double));
                for (int at = 0; at < count; at++)
                    CHECK(in[at * there] == out[at * apart]);
                if (there == 2 && count)
                    CHECK(in[1] == 0);
            }
        }
    }
    /* Backwards. */
    CHECK(pvm_fsend(me, 2, numbers + 5, 6, -1, PVM_INT) == 0);
    CHECK(pvm_frecv(-1, -1, got, 6, 1, PVM_INT, NULL, NULL, NULL) == 0);
    CHECK(got[0] == 6 && got[5] == 1);
    /* A packed message has the same bytes, and vice versa. */
    CHECK(pvm_initsend(PvmDataRaw) > 0 && pvm_pkint(numbers, 6, 1) == 0 && pvm_send(me, 3) == 0);
    CHECK(pvm_frecv(me, 3, got, 3, 2, PVM_INT, NULL, NULL, &length) == 0 && length == 24);
    CHECK(got[0] == 1 && got[2] == 2 && got[4] == 3);
    CHECK(pvm_fsend(me, 4, numbers, 3, 2, PVM_INT) == 0 && pvm_recv(me, 4) > 0);
    CHECK(pvm_upkint(got, 3, 1) == 0 && got[0] == 1 && got[1] == 3 && got[2] == 5);
    CHECK(pvm_upkint(got, 1, 1) == PvmNoData);
    CHECK(pvm_psend(me, 5, numbers, 6, PVM_INT) == 0);
    /* A message that was probed is received, too. */
    CHECK(pvm_probe(me, 5) > 0 && pvm_frecv(me, 5, got, 2, 3, PVM_INT, NULL, NULL, NULL) == 0);
    CHECK(got[0] == 1 && got[3] == 2);
    /* Invalid arguments. */
    pvm_setopt(PvmAutoErr, 0);
    CHECK(pvm_fsend(me, 1, NULL, 1, 1, PVM_INT) == PvmBadParam);
    CHECK(pvm_fsend(me, 1, numbers, -1, 1, PVM_INT) == PvmBadParam);
    CHECK(pvm_fsend(me, 1, numbers, 1, 1, 77) == PvmBadParam);
    CHECK(pvm_fsend(-5, 1, numbers, 1, 1, PVM_INT) == PvmBadParam);
    CHECK(pvm_frecv(me, 1, NULL, 1, 1, PVM_INT, NULL, NULL, NULL) == PvmBadParam);
    puts("all of it");
    pvm_exit();
    return 0;
}
