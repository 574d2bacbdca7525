/*
 * Adds the hosts that its arguments describe, and prints the result for each.
 */
#include <pvm3.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int infos[8], count = argc - 1, hosts = -1;
    if (count < 1 || count > 8 || pvm_mytid() < 0)
        return EXIT_FAILURE;
    pvm_setopt(PvmAutoErr, 0);
    printf("added: %d", pvm_addhosts(argv + 1, count, infos));
    for (int i = 0; i < count; i++)
        printf(" %d", infos[i] < 0 ? infos[i] : 0);
    pvm_config(&hosts, NULL, NULL);
    printf(", hosts: %d\n", hosts);
    pvm_exit();
    return EXIT_SUCCESS;
}
