/* Starts a virtual machine with the arguments of this program, and says what came of it. The same must be said on every library. */
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
    /* The machine may end us before we end. */
    pvm_halt();
    return 0;
}
