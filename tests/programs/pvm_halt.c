/* Ends the virtual machine that this program is in. */
#include <pvm3.h>
#include <stdlib.h>

int main(void)
{
    /* The machine may end this program first. */
    if (pvm_mytid() < 0)
        return EXIT_FAILURE;
    pvm_halt();
    return EXIT_SUCCESS;
}
