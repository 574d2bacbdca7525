/* Tasks, signals, notifications and options. */
#include <stdio.h>

#include <pvm3.h>

#include "text.h"

void pvmsleep(int seconds);

void pvmfmytid_(int *tid) { *tid = pvm_mytid(); }
void pvmfexit_(int *info) { *info = pvm_exit(); }
void pvmfparent_(int *tid) { *tid = pvm_parent(); }
void pvmfkill_(int *tid, int *info) { *info = pvm_kill(*tid); }
void pvmfsendsig_(int *tid, int *signum, int *info) { *info = pvm_sendsig(*tid, *signum); }
void pvmfpstat_(int *tid, int *status) { *status = pvm_pstat(*tid); }
void pvmftidtohost_(int *tid, int *host) { *host = pvm_tidtohost(*tid); }
void pvmftidtoh_(int *tid, int *host) { *host = pvm_tidtohost(*tid); }
void pvmfsleep_(int *seconds) { pvmsleep(*seconds); }
void pvmfsetopt_(int *what, int *value, int *before) { *before = pvm_setopt(*what, *value); }
void pvmfgetopt_(int *what, int *value) { *value = pvm_getopt(*what); }

void pvmfnotify_(int *what, int *tag, int *count, int *tids, int *info)
{
    *info = pvm_notify(*what, *tag, *count, tids);
}

/* `where` of "*" means any host. */
void pvmfspawn_(char *task, int *flag, char *where, int *ntask, int *tids, int *numt, int task_length,
                int where_length)
{
    struct text program, place = {""};
    int code = to_c(&program, task, task_length);

    if (!code && *where != '*')
        code = to_c(&place, where, where_length);
    *numt = code ? code : pvm_spawn(program.c, NULL, *flag, place.c, *ntask, tids);
}

/* The siblings of a task never change, so they are requested only once. */
void pvmfsiblings_(int *count, int *index, int *tid)
{
    static int known = -1;
    static int *tids;

    if (known == -1)
        known = pvm_siblings(&tids);
    *count = known;
    *tid = *index >= 0 && *index < known ? tids[*index] : PvmNoTask;
}

/* Returns one task per call, in order, until all have been returned; *ntask == -1 starts over. */
void pvmftasks_(int *where, int *ntask, int *tid, int *parent, int *host, int *flag, char *name, int *info,
                int name_length)
{
    static struct pvmtaskinfo *tasks;
    static int count, next;

    if (!count || *ntask == -1) {
        int code = pvm_tasks(*where, &count, &tasks);

        next = 0;
        if (code < 0) {
            count = 0;
            *info = code;
            return;
        }
    }
    *ntask = count;
    if (next < count) {
        *tid = tasks[next].ti_tid;
        *parent = tasks[next].ti_ptid;
        *host = tasks[next].ti_host;
        *flag = tasks[next].ti_flag;
        to_fortran(name, name_length, tasks[next].ti_a_out);
        next++;
    }
    *info = 1;
    if (next >= count)
        count = 0;
}

void pvmfcatchout_(int *on, int *info) { *info = pvm_catchout(*on ? stdout : NULL); }

void pvmfperror_(char *what, int *info, int length)
{
    char text[MAX_TEXT_BYTES + 1];

    if (length > MAX_TEXT_BYTES)
        length = MAX_TEXT_BYTES;
    if (length < 0)
        length = 0;
    memcpy(text, what, (size_t)length);
    text[length] = 0;
    *info = pvm_perror(text);
}
