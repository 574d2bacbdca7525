/*
 * Requests hosts and tasks that a resource manager decides about, and prints the results.
 */
#define _DEFAULT_SOURCE
#include <stdio.h>

#include <pvm3.h>
#include <stdlib.h>
#include <string.h>

#define HELLO 1
#define GO 2
#define EXIT 5

static int child(void)
{
    int me = pvm_mytid(), parent = pvm_parent();
    pvm_initsend(PvmDataDefault);
    pvm_pkint(&me, 1, 1);
    pvm_send(parent, HELLO);
    pvm_recv(parent, GO);
    pvm_exit();
    return EXIT_SUCCESS;
}

static void hear(int tid)
{
    int said = 0;
    pvm_recv(tid, HELLO);
    pvm_upkint(&said, 1, 1);
    printf("a child says its number: %d\n", said == tid);
}

static void see(int manager, int me)
{
    struct pvmtaskinfo *all;
    int count = 0;
    printf("tasks: %d\n", pvm_tasks(0, &count, &all));
    /* The manager may still have an earlier state of this task. */
    for (int i = 0; i < count; i++)
        if (all[i].ti_tid == manager || all[i].ti_tid == me || all[i].ti_ptid == me)
            printf("manager %d, me %d, mine %d, %s\n", all[i].ti_tid == manager, all[i].ti_tid == me,
                   all[i].ti_ptid == me, all[i].ti_a_out);
}

int main(int argc, char **argv)
{
    char *words[] = {"child", NULL}, *nowhere[] = {"nowhere.invalid"};
    struct pvmhostinfo *hosts;
    struct pvmmboxinfo *roles;
    int count = 0, kinds = 0, tids[2] = {0, 0}, infos[1] = {0}, who;
    (void)argv;
    if (argc > 1)
        return child();
    /* A process that becomes a task while a manager is registered asks the manager. */
    pvm_mytid();
    pvm_recvinfo("###_PVM_RM_###", 0, PvmMboxWaitForInfo);
    pvm_exit();
    int me = pvm_mytid();
    pvm_getmboxinfo("###_PVM_RM_###", &count, &roles);
    int manager = roles[0].mi_owners[0];
    printf("hosts: %d", pvm_config(&count, &kinds, &hosts));
    printf(" %d %d %s %d\n", count, kinds, hosts[0].hi_arch, hosts[0].hi_speed);
    char *host = strdup(hosts[0].hi_name);
    printf("spawned: %d\n", pvm_spawn("pvm_managed", words, PvmTaskDefault, NULL, 2, tids));
    hear(tids[0]);
    hear(tids[1]);
    see(manager, me);
    printf("notify: %d\n", pvm_notify(PvmTaskExit, EXIT, 2, tids));
    pvm_initsend(PvmDataDefault);
    pvm_mcast(tids, 2, GO);
    for (int i = 0; i < 2; i++) {
        int from, buffer = pvm_recv(-1, EXIT);
        pvm_bufinfo(buffer, NULL, NULL, &from);
        pvm_upkint(&who, 1, 1);
        printf("an end is told by the manager: %d %d\n", from == manager, who == tids[0] || who == tids[1]);
    }
    printf("on a host: %d\n", pvm_spawn("pvm_managed", words, PvmTaskHost, host, 1, tids));
    hear(tids[0]);
    pvm_initsend(PvmDataDefault);
    pvm_send(tids[0], GO);
    printf("no such program: %d", pvm_spawn("nonesuch", NULL, PvmTaskDefault, NULL, 1, tids));
    printf(" %d\n", tids[0]);
    printf("added: %d %d\n", pvm_addhosts(nowhere, 1, infos), infos[0] < 0);
    printf("deleted: %d", pvm_delhosts(nowhere, 1, infos));
    printf(" %d\n", infos[0]);
    pvm_exit();
    return EXIT_SUCCESS;
}
