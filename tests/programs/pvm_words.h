/*
 * Shared by programs that are started by hand: a check that says where it failed, numbers of tasks under names, and
 * messages that mean something by their tags.
 */
#ifndef PVM_WORDS_H
#define PVM_WORDS_H

#include <pvm3.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition) ((condition) ? (void)0 : failed(__LINE__, #condition))

static void failed(int line, const char *what)
{
    printf("FAILED in line %d: %s\n", line, what);
    fflush(stdout);
    exit(EXIT_FAILURE);
}

/* Makes our number known by a name. */
static void publish(const char *name)
{
    int me = pvm_mytid();
    pvm_initsend(PvmDataDefault);
    pvm_pkint(&me, 1, 1);
    CHECK(pvm_putinfo((char *)name, pvm_getsbuf(), PvmMboxDefault) >= 0);
}

/* The number that is known by a name; waits for it. */
static int look_up(const char *name)
{
    int tid = 0, buffer = pvm_recvinfo((char *)name, 0, PvmMboxWaitForInfo);
    CHECK(buffer > 0);
    pvm_setrbuf(buffer);
    CHECK(pvm_upkint(&tid, 1, 1) == PvmOk);
    return tid;
}

static void send_word(int tid, int tag)
{
    pvm_initsend(PvmDataRaw);
    CHECK(pvm_pkint(&tag, 1, 1) == PvmOk);
    CHECK(pvm_send(tid, tag) == PvmOk);
}

/* Awaits a word, and returns its sender. */
static int await_word(int tid, int tag)
{
    int buffer = pvm_recv(tid, tag), length, got, from;
    CHECK(buffer > 0);
    CHECK(pvm_bufinfo(buffer, &length, &got, &from) == PvmOk && got == tag);
    return from;
}

#endif
