/*
 * Starts a virtual machine with the arguments of this program, and prints the result, which must be the same on every
 * library.
 */
#include <pvm3.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int hosts = 0, started = pvm_start_pvmd(argc - 1, argv + 1, 1);
    printf("started: %d\n", started);
    if (started < 0)
        return 0;
    int told = pvm_config(&hosts, NULL, NULL);
    printf("hosts: %d, %d\n", told, hosts);
    printf("again: %d\n", pvm_start_pvmd(argc - 1, argv + 1, 1));
    fflush(stdout);
    /* Halting the machine may end this program. */
    pvm_halt();
    return 0;
}
