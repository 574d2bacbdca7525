/*
 * Shared by programs that are started by hand: a check that prints where it failed, task numbers published under names,
 * and messages whose meaning is their tag.
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

/* Publishes this task's number under a name. */
static void publish(const char *name)
{
    int me = pvm_mytid();
    pvm_initsend(PvmDataDefault);
    pvm_pkint(&me, 1, 1);
    CHECK(pvm_putinfo((char *)name, pvm_getsbuf(), PvmMboxDefault) >= 0);
}

/* Waits until a number is published under this name, and returns it. */
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

/* Waits for a message with this tag, and returns its sender. */
static int await_word(int tid, int tag)
{
    int buffer = pvm_recv(tid, tag), length, got, from;
    CHECK(buffer > 0);
    CHECK(pvm_bufinfo(buffer, &length, &got, &from) == PvmOk && got == tag);
    return from;
}

#endif
