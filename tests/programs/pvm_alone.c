/* Waits until no other task is in the virtual machine, except PVM's group server. */
#include <pvm3.h>
#include <stdlib.h>
#include <string.h>

/* Returns a task that must end before this one is alone, or 0 if it is alone. */
static int another(int me)
{
    struct pvmtaskinfo *tasks;
    int count;
    if (pvm_tasks(0, &count, &tasks) < 0)
        exit(EXIT_FAILURE);
    for (int i = 0; i < count; i++)
        if (tasks[i].ti_tid != me && !strstr(tasks[i].ti_a_out, "pvmgs"))
            return tasks[i].ti_tid;
    return 0;
}

int main(void)
{
    enum { ENDED = 9 };
    int me = pvm_mytid();
    if (me < 0)
        return EXIT_FAILURE;
    for (int other; (other = another(me));) {
        pvm_notify(PvmTaskExit, ENDED, 1, &other);
        pvm_recv(-1, ENDED);
    }
    pvm_exit();
    return EXIT_SUCCESS;
}
