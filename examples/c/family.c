/* family: every task starts two tasks of this program, receives a message from each, and is then
 * notified of their ends. */
#include <regatta.h>
#include <stdio.h>
#include <stdlib.h>

enum { CHILDREN = 2, WORD = 1, ENDED = 2 };

/* Regatta's calls return 0 or a negative error code. rg_last_error() explains the error. */
static void check(int code)
{
    if (code < 0) {
        fprintf(stderr, "family: %s\n", rg_last_error());
        exit(1);
    }
}

/* Sends a number to the parent. In RG_ALL the rank of a task is its id. */
static void be_child(void)
{
    int word = 10 + rg_rank(RG_WORLD); /* a child's world: the tasks that were started with it */
    check(rg_send(&word, sizeof word, rg_parent(), WORD, RG_ALL));
}

static int be_parent(char *program)
{
    int tids[CHILDREN], words = 0, well = 0;
    check(rg_spawn(program, NULL, NULL, CHILDREN, tids, NULL));
    for (int i = 0; i < CHILDREN; i++) {
        int word;
        check(rg_notify(RG_TASK_EXIT, tids[i], ENDED, RG_ALL, NULL));
        check(rg_recv(&word, sizeof word, tids[i], WORD, RG_ALL, NULL));
        words += word;
    }
    /* Events are messages, so one receive could also wait for both. */
    for (int i = 0; i < CHILDREN; i++) {
        rg_event event;
        check(rg_recv(&event, sizeof event, RG_ANY, ENDED, RG_ALL, NULL));
        well += event.how == RG_BY_EXIT && event.value == 0;
    }
    if (rg_rank(RG_WORLD) == 0)
        printf("the children said %d, and %d of %d ended well\n", words, well, CHILDREN);
    return words != 21 || well != CHILDREN;
}

int main(int argc, char **argv)
{
    (void)argc;
    check(rg_init());
    int wrong = 0;
    if (rg_parent() != RG_NONE)
        be_child();
    else
        wrong = be_parent(argv[0]);
    check(rg_finalize());
    return wrong;
}
