/*
 * What a task and its child write comes to a third one, neither their spawner nor asked for by it: that tells the first
 * task what it has heard.
 */
#include <pvm3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEARD = 1, CODE = 55, WRITERS = 2 };

static void check(const char *what, int answer)
{
    if (answer >= 0)
        return;
    fprintf(stderr, "pvm_third: %s: %d\n", what, answer);
    exit(1);
}

static int start(char *program, char *how)
{
    char *arguments[] = {how, NULL};
    int tid;

    check(how, pvm_spawn(program, arguments, PvmTaskDefault, NULL, 1, &tid) - 1);
    return tid;
}

/* A task that writes, and starts another one if it is to. */
static void be_writer(char *program, const char *how)
{
    printf("a %s writes\n", how);
    fflush(stdout);
    if (!strcmp(how, "parent"))
        start(program, "child");
}

/* What has come until all writers have ended: their bytes, and how often which news. */
static void be_listener(int first)
{
    int ended = 0, started = 0, others = 0, orphans = 0, bytes = 0, tid, count, parent, from;
    char text[4096];

    while (ended < WRITERS) {
        int buffer = pvm_recv(-1, CODE);
        check("receiving", buffer);
        check("who", pvm_bufinfo(buffer, NULL, NULL, &from));
        check("the task", pvm_upkint(&tid, 1, 1));
        check("what", pvm_upkint(&count, 1, 1));
        if (count > (int)sizeof text)
            check("the length", -1);
        others += from > 0;
        if (count > 0) {
            check("the text", pvm_upkbyte(text, count, 1));
            bytes += count;
        } else if (count < 0) {
            check("the parent", pvm_upkint(&parent, 1, 1));
            started++;
            orphans += parent <= 0;
        } else {
            ended++;
        }
    }
    check("a buffer", pvm_initsend(PvmDataDefault));
    check("packing", pvm_packf("%d%d%d%d%d", ended, started, orphans, others, bytes));
    check("sending", pvm_send(first, HEARD));
}

static void be_first(char *program)
{
    int listener = start(program, "listener"), ended, started, orphans, others, bytes;

    check("the task", pvm_setopt(PvmOutputTid, listener));
    check("the tag", pvm_setopt(PvmOutputCode, CODE));
    start(program, "parent");
    check("receiving", pvm_recv(listener, HEARD));
    check("unpacking", pvm_unpackf("%d%d%d%d%d", &ended, &started, &orphans, &others, &bytes));
    printf("ended: %d, news of starts: %d, orphans: %d, not by a daemon: %d, bytes: %d\n", ended, started,
           orphans, others, bytes);
}

int main(int argc, char **argv)
{
    check("becoming a task", pvm_mytid());
    if (argc == 1)
        be_first(argv[0]);
    else if (!strcmp(argv[1], "listener"))
        be_listener(pvm_parent());
    else
        be_writer(argv[0], argv[1]);
    return pvm_exit() < 0;
}
