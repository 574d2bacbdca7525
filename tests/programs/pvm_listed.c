/*
 * Groups that another program lists. One member of the crew waits at a barrier until the standard input of the first
 * task ends; then the others enter it too, and all leave. The duo has an instance that is free again.
 */
#include <pvm3.h>
#include <stdio.h>
#include <stdlib.h>

enum { MEMBERS = 3, JOINED = 1, COME = 2, LEFT = 3 };

static char crew[] = "crew", duo[] = "duo";

static void check(const char *what, int answer)
{
    if (answer >= 0)
        return;
    fprintf(stderr, "pvm_listed: %s: %d\n", what, answer);
    exit(1);
}

static void say(int to, int tag, int number)
{
    check("a buffer", pvm_initsend(PvmDataDefault));
    check("packing", pvm_pkint(&number, 1, 1));
    check("sending", pvm_send(to, tag));
}

/* Receives the number sent with this tag, and its sender. */
static int hear(int from, int tag, int *who)
{
    int number, buffer = pvm_recv(from, tag);

    check("receiving", buffer);
    check("who", pvm_bufinfo(buffer, NULL, NULL, who));
    check("unpacking", pvm_upkint(&number, 1, 1));
    return number;
}

static void meet_and_leave(void)
{
    check("the barrier", pvm_barrier(crew, MEMBERS));
    check("leaving", pvm_lvgroup(crew));
}

static void be_member(int first)
{
    int number = pvm_joingroup(crew);

    check("joining", number);
    if (number == 1)
        check("joining", pvm_joingroup(duo));
    say(first, JOINED, number);
    hear(first, COME, NULL);
    meet_and_leave();
    if (number == 1)
        check("leaving", pvm_lvgroup(duo));
    say(first, LEFT, number);
}

static void be_first(char *program)
{
    int tids[MEMBERS], others[MEMBERS], who;

    check("joining", pvm_joingroup(crew));
    check("joining", pvm_joingroup(duo));
    check("spawning", pvm_spawn(program, NULL, PvmTaskDefault, NULL, MEMBERS - 1, tids) - (MEMBERS - 1));
    for (int i = 1; i < MEMBERS; i++) {
        int number = hear(-1, JOINED, &who);
        others[number] = who;
    }
    check("leaving", pvm_lvgroup(duo));
    say(others[1], COME, 0);
    while (getchar() != EOF)
        continue;
    say(others[2], COME, 0);
    meet_and_leave();
    for (int i = 1; i < MEMBERS; i++)
        hear(-1, LEFT, NULL);
}

int main(int argc, char **argv)
{
    int parent = pvm_parent();

    (void)argc;
    check("becoming a task", pvm_mytid());
    if (parent >= 0)
        be_member(parent);
    else
        be_first(argv[0]);
    return pvm_exit() < 0;
}
