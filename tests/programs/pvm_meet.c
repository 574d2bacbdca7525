/*
 * Two of these, started by hand, find each other through a mailbox, exchange messages, and then wait for a third one
 * for ever; on request with a handler for messages of others.
 */
#include <pvm3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A handler. With one, the program checks for the handler's messages while it waits for its own. */
static int heard(int buffer)
{
    return buffer;
}

int main(int argc, char **argv)
{
    int me = pvm_mytid(), other = 0, got = 0;
    pvm_setopt(PvmAutoErr, 0);
    pvm_initsend(PvmDataDefault);
    pvm_pkint(&me, 1, 1);
    int index = pvm_putinfo("meet", pvm_getsbuf(), PvmMboxMultiInstance);
    int found = pvm_recvinfo("meet", 1 - index, PvmMboxWaitForInfo);
    if (me < 0 || index < 0 || found < 0) {
        printf("number %x, put %d, found %d\n", me, index, found);
        return EXIT_FAILURE;
    }
    pvm_setrbuf(found);
    pvm_upkint(&other, 1, 1);
    pvm_initsend(PvmDataRaw);
    pvm_pkint(&me, 1, 1);
    pvm_send(other, 1);
    pvm_recv(other, 1);
    pvm_upkint(&got, 1, 1);
    printf(got == other && other != me ? "met\n" : "not met\n");
    fflush(stdout);
    if (argc > 1 && strcmp(argv[1], "handler") == 0)
        pvm_addmhf(-1, 3, pvm_newcontext(), heard);
    printf("%d\n", pvm_recv(-1, 2));
    return EXIT_SUCCESS;
}
