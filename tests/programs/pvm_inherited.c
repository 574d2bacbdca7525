/*
 * The settings that a task may choose for output and traces of its children, when the settings that it has inherited
 * name its parent. The child makes the calls, and the parent prints the results.
 */
#include <pvm3.h>
#include <stdio.h>
#include <stdlib.h>

enum { ANSWERS = 1, OUTPUT = 55, TRACE = 57, CONTEXT = 3, MAX_ANSWERS = 64 };

static int answers[MAX_ANSWERS], count;

static void check(const char *what, int answer)
{
    if (answer >= 0)
        return;
    fprintf(stderr, "pvm_inherited: %s: %d\n", what, answer);
    exit(1);
}

/*
 * Sets an option. Records whether that succeeded and the option's new value, with task numbers replaced by their roles.
 */
static void set(int option, int value)
{
    int done = pvm_setopt(option, value), now = pvm_getopt(option), me = pvm_mytid();

    answers[count++] = done < 0 ? done : 0;
    answers[count++] = now == me ? -100 : now == pvm_parent() ? -200 : now;
}

static void ask(int task, int code, int context)
{
    int before = pvm_getopt(code);

    set(code, before + 1);
    set(code, before);
    set(context, CONTEXT + 1);
    set(context, CONTEXT);
    set(task, pvm_parent());
    set(task, pvm_mytid());
    set(code, 70);
    set(context, CONTEXT + 2);
    set(task, 12345);
    set(task, pvm_parent());
    answers[count++] = pvm_getopt(code);
    answers[count++] = pvm_getopt(context);
    set(task, 0);
    set(code, 71);
    set(task, pvm_parent());
    answers[count++] = pvm_getopt(code);
}

static void be_child(void)
{
    ask(PvmOutputTid, PvmOutputCode, PvmOutputContext);
    ask(PvmTraceTid, PvmTraceCode, PvmTraceContext);
    check("a buffer", pvm_initsend(PvmDataDefault));
    check("packing", pvm_pkint(&count, 1, 1));
    check("packing", pvm_pkint(answers, count, 1));
    check("sending", pvm_send(pvm_parent(), ANSWERS));
}

static void be_parent(char *program)
{
    char *arguments[] = {"child", NULL};
    int tid;

    pvm_setcontext(CONTEXT);
    check("the task", pvm_setopt(PvmOutputTid, pvm_mytid()));
    check("the tag", pvm_setopt(PvmOutputCode, OUTPUT));
    check("the task", pvm_setopt(PvmTraceTid, pvm_mytid()));
    check("the tag", pvm_setopt(PvmTraceCode, TRACE));
    check("spawning", pvm_spawn(program, arguments, PvmTaskDefault, NULL, 1, &tid) - 1);
    check("receiving", pvm_recv(tid, ANSWERS));
    check("unpacking", pvm_upkint(&count, 1, 1));
    if (count > MAX_ANSWERS)
        check("the answers", -1);
    check("unpacking", pvm_upkint(answers, count, 1));
    for (int i = 0; i < count; i++)
        printf("%d: %d\n", i, answers[i]);
}

int main(int argc, char **argv)
{
    check("becoming a task", pvm_mytid());
    if (argc > 1)
        be_child();
    else
        be_parent(argv[0]);
    return pvm_exit() < 0;
}
