/*
 * Very many tasks on few cores: what each of them adds to a job.
 *
 *     PROGRAM meet | talk | miss
 */
#include "check.h"

/* All come, and go. */
static void meet(void)
{
    check_patience(150);
    OK(rg_barrier(RG_WORLD));
}

/* Each has a word with each, in turn. */
static void talk(void)
{
    check_patience(150);
    for (int i = 1; i < size; i++) {
        int to = (me + i) % size, from = (me + size - i) % size, word = me * size + to, heard = -1;
        OK(rg_send(&word, sizeof word, to, i, RG_WORLD));
        OK(rg_recv(&heard, sizeof heard, from, i, RG_WORLD, NULL));
        CHECK(heard == from * size + me);
    }
}

/* One leaves where all others meet. They hear its name, whoever of them hears it first. */
static void miss(void)
{
    check_patience(150);
    OK(rg_barrier(RG_WORLD));
    if (me == 40)
        return;
    FAILS(rg_barrier(RG_WORLD), RG_ERR_LEFT, "task 40 ");
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"meet", meet, false},
        {"talk", talk, false},
        {"miss", miss, false},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
