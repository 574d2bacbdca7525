/*
 * How many messages a call takes from the connection: pvm_nrecv, pvm_probe, pvm_trecv, pvm_recv and calls that ask the
 * daemon, when messages with other tags have arrived before the requested one.
 *
 * Children get their orders through a named pipe and answer through another when the daemon has passed their messages
 * on. So the program knows that everything has arrived without calling the library.
 *
 * `pvm_looks random SEED COUNT` plays random episodes of arriving messages, probes, receives and queries.
 */
#include <fcntl.h>
#include <poll.h>
#include <pvm3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#define CHILDREN 2
#define NONE 99

static int me, children[CHILDREN], orders[CHILDREN], answers[CHILDREN];
static char names[CHILDREN][2][32];

struct order {
    int context, tags[4];
};

static void child(char **names)
{
    int parent = pvm_parent(), orders = open(names[1], O_RDONLY), answers = open(names[2], O_WRONLY);
    struct order order;
    while (read(orders, &order, sizeof order) == sizeof order) {
        pvm_setcontext(order.context);
        for (int i = 0; i < 4 && order.tags[i] > 0; i++) {
            pvm_initsend(PvmDataDefault);
            pvm_pkint(&order.tags[i], 1, 1);
            pvm_send(parent, order.tags[i]);
        }
        for (int i = 0; i < 5; i++)
            pvm_pstat(parent); /* earlier messages have been passed on */
        if (write(answers, "", 1) != 1)
            break;
    }
    pvm_exit();
    exit(EXIT_SUCCESS);
}

/* Has one of the children send messages with these tags, in this context. */
static void come(int which, int context, int a, int b, int c, int d)
{
    struct order order = {context, {a, b, c, d}};
    char byte;
    if (write(orders[which], &order, sizeof order) != sizeof order || read(answers[which], &byte, 1) != 1)
        printf("a child does not answer\n");
}

static int tag_of(int buffer)
{
    int tag = 0;
    if (buffer <= 0)
        return buffer;
    pvm_bufinfo(buffer, NULL, &tag, NULL);
    return tag;
}

static int look(int from, int tag)
{
    return tag_of(pvm_nrecv(from, tag));
}

static int probed(int from, int tag)
{
    return tag_of(pvm_probe(from, tag));
}

static int within(int tag, int microseconds)
{
    struct timeval limit = {0, microseconds};
    return tag_of(pvm_trecv(-1, tag, &limit));
}

/* Receives the remaining messages, in the order of arrival. */
static void rest(void)
{
    int buffer;
    printf(" rest");
    while ((buffer = pvm_nrecv(-1, -1)) > 0)
        printf(" %d", tag_of(buffer));
    printf("\n");
}

static void looks(void)
{
    come(0, 0, 10, 11, 12, 0);
    printf("nrecv: %d", look(-1, 12));
    printf(" %d", look(-1, 12));
    printf(" %d", look(-1, 12));
    printf(" %d", look(-1, 12));
    rest();
    come(0, 0, 10, 11, 12, 0);
    printf("nrecv of a task: %d", look(children[0], 12));
    printf(" %d", look(children[0], 12));
    printf(" %d", look(children[0], 12));
    rest();
    come(0, 0, 10, 11, 12, 0);
    printf("in turns: %d", look(-1, 12));
    printf(" %d", look(-1, 11));
    printf(" %d", look(-1, 10));
    printf(" %d", look(-1, 12));
    rest();
    come(0, 0, 10, 11, 12, 0);
    printf("probe: %d", probed(-1, 12));
    printf(" %d", probed(-1, 12));
    printf(" %d", probed(-1, 12));
    printf(" %d", probed(-1, 12));
    rest();
    come(0, 0, 10, 11, 12, 0);
    printf("both: %d", probed(-1, 12));
    printf(" %d", look(-1, 12));
    printf(" %d", look(-1, 10));
    printf(" %d", probed(-1, 12));
    rest();
    come(0, 0, 10, 11, 12, 13);
    printf("other's: %d", look(children[1], -1));
    printf(" %d", look(me, -1));
    printf(" %d", look(-1, 13));
    printf(" %d", look(-1, 13));
    rest();
}

static void receives(void)
{
    come(0, 0, 10, 11, 12, 13);
    printf("behind a receive: %d", tag_of(pvm_recv(-1, 12)));
    printf(" %d", look(-1, 11));
    printf(" %d", look(-1, 10));
    printf(" %d", look(-1, 13));
    rest();
    come(0, 0, 10, 11, 12, 13);
    printf("before another: %d", tag_of(pvm_recv(-1, 10)));
    printf(" %d", look(-1, 13));
    printf(" %d", look(-1, 12));
    printf(" %d", look(-1, 13));
    rest();
    come(0, 0, 10, 11, 12, 0);
    int number = 0;
    printf("behind a receive of memory: %d", pvm_precv(-1, 11, &number, 1, PVM_INT, NULL, NULL, NULL));
    printf(" %d", look(-1, 10));
    printf(" %d", look(-1, 12));
    rest();
    come(0, 0, 10, 11, 12, 0);
    printf("no time: %d", within(12, 0));
    printf(" %d", look(-1, 11));
    rest();
    come(0, 0, 10, 11, 12, 0);
    printf("no time, in vain: %d", within(NONE, 0));
    printf(" %d", look(-1, 12));
    rest();
    come(0, 0, 10, 11, 12, 0);
    printf("some time: %d", within(12, 1000));
    printf(" %d", look(-1, 11));
    rest();
    come(0, 0, 10, 11, 12, 0);
    printf("some time, in vain: %d", within(NONE, 1000));
    printf(" %d", look(-1, 12));
    rest();
}

static void questions(void)
{
    int count = 0;
    come(0, 0, 10, 11, 12, 0);
    printf("behind pstat: %d", pvm_pstat(children[0]));
    printf(" %d", look(-1, 12));
    rest();
    come(0, 0, 10, 11, 12, 0);
    printf("behind config: %d", pvm_config(&count, NULL, NULL));
    printf(" %d", look(-1, 12));
    rest();
    come(0, 0, 10, 11, 12, 0);
    printf("behind tasks: %d", pvm_tasks(me, &count, NULL));
    printf(" %d", look(-1, 12));
    rest();
    come(0, 0, 10, 11, 12, 0);
    printf("behind a group: %d", pvm_joingroup("looks"));
    printf(" %d", look(-1, 12));
    rest();
    come(0, 0, 10, 11, 12, 0);
    printf("behind a barrier: %d", pvm_barrier("looks", 1));
    printf(" %d", look(-1, 12));
    rest();
    come(0, 0, 10, 11, 12, 0);
    printf("behind a second one: %d", pvm_barrier("looks", 1));
    printf(" %d", look(-1, 12));
    rest();
    pvm_lvgroup("looks");
    come(0, 0, 10, 11, 12, 0);
    pvm_initsend(PvmDataDefault);
    int index = pvm_putinfo("looks", pvm_getsbuf(), PvmMboxDefault);
    printf("behind a mailbox: %d", look(-1, 12));
    rest();
    pvm_delinfo("looks", index, PvmMboxDefault);
    come(0, 0, 10, 11, 12, 0);
    pvm_initsend(PvmDataDefault);
    printf("behind calls that ask nobody: %d %d %d", pvm_parent() < 0, pvm_getopt(PvmRoute), pvm_tidtohost(me) != 0);
    printf(" %d", look(-1, 12));
    rest();
}

static void several(void)
{
    come(0, 0, 10, 11, 0, 0);
    come(1, 0, 20, 21, 0, 0);
    printf("of two tasks: %d", look(-1, 21));
    printf(" %d", look(-1, 21));
    printf(" %d", look(-1, 21));
    printf(" %d", look(-1, 21));
    rest();
    int context = pvm_newcontext();
    pvm_setcontext(context);
    pvm_setcontext(0);
    come(0, context, 10, 11, 0, 0);
    come(0, 0, 12, 13, 0, 0);
    printf("of two contexts: %d", look(-1, 13));
    printf(" %d", look(-1, 13));
    printf(" %d", look(-1, 13));
    printf(" %d", look(-1, 13));
    pvm_setcontext(context);
    printf(" %d", look(-1, 11));
    rest();
    pvm_setcontext(0);
    rest();
    pvm_freecontext(context);
}

static int handled;

static int handle(int buffer)
{
    handled = handled * 100 + tag_of(buffer);
    return 0;
}

static void handlers(void)
{
    int number = pvm_addmhf(-1, 11, 0, handle);
    come(0, 0, 10, 11, 12, 13);
    printf("handlers: %d", look(-1, 13));
    printf(" (%d)", handled);
    printf(" %d", look(-1, 13));
    printf(" (%d)", handled);
    printf(" %d", look(-1, 13));
    printf(" %d", look(-1, 13));
    rest();
    pvm_delmhf(number);
}

static int highest(int buffer, int tid, int tag)
{
    (void)tid;
    return tag_of(buffer) >= tag ? tag_of(buffer) : 0;
}

static void choices(void)
{
    come(0, 0, 10, 12, 11, 0);
    pvm_recvf(highest);
    printf("choices: %d", look(-1, 9));
    printf(" %d", look(-1, 11));
    printf(" %d", look(-1, 9));
    printf(" %d", look(-1, 9));
    pvm_recvf(NULL);
    rest();
    come(0, 0, 10, 12, 11, 0);
    pvm_recvf(highest);
    printf("chosen by a receive: %d", tag_of(pvm_recv(-1, 11)));
    printf(" %d", look(-1, 11));
    pvm_recvf(NULL);
    rest();
}

static int readable(int fd)
{
    struct pollfd polled = {fd, POLLIN, 0};
    return poll(&polled, 1, 10000) == 1;
}

/* A program that waits for the descriptor, and then checks until nothing is left, must find every message. */
static void descriptors(void)
{
    int *fds = NULL, met = 0;
    pvm_getfds(&fds);
    for (int round = 0; round < 20; round++) {
        come(0, 0, 10, 11, 12, 0);
        while (met < 3 * (round + 1)) {
            int found;
            if (!readable(fds[0])) {
                printf("nothing to read though messages wait\n");
                return;
            }
            do {
                found = 0;
                for (int tag = 12; tag >= 10; tag--)
                    found += look(-1, tag) > 0;
                met += found;
            } while (found);
            if (round % 2)
                pvm_getfds(&fds);
        }
    }
    printf("met by the descriptor: %d\n", met);
}

static unsigned state;

static int any_of(int count)
{
    state = state * 1664525u + 1013904223u;
    return (int)((state >> 16) % (unsigned)count);
}

/* Makes one random call, and prints its result. */
static void random_call(void)
{
    int tag = 10 + any_of(5), one = any_of(3), which = any_of(CHILDREN), from = one ? -1 : children[which], count;
    int kind = any_of(12), patience = any_of(2) * 500;
    if (kind < 4)
        printf(" nrecv(%d,%d) %d", one ? -1 : which, tag, look(from, tag));
    else if (kind < 5)
        printf(" nrecv(%d) %d", one ? -1 : which, look(from, -1));
    else if (kind < 7)
        printf(" probe(%d,%d) %d", one ? -1 : which, tag, probed(from, tag));
    else if (kind < 8)
        printf(" trecv(%d,%d) %d", tag, patience, within(tag, patience));
    else if (kind < 9)
        printf(" pstat %d", pvm_pstat(me));
    else if (kind < 10)
        printf(" config %d", pvm_config(&count, NULL, NULL));
    else if (probed(-1, tag) <= 0)
        printf(" nothing to receive");
    else if (kind < 11)
        printf(" recv %d", tag_of(pvm_recv(-1, tag)));
    else
        printf(" precv(%d) %d", tag, pvm_precv(-1, tag, NULL, 0, PVM_BYTE, NULL, NULL, NULL));
}

static void play(unsigned seed, int count)
{
    int contexts[2] = {0, pvm_newcontext()};
    pvm_setcontext(contexts[1]);
    for (int episode = 0; episode < count; episode++) {
        state = (seed + (unsigned)episode) * 2654435761u + 1;
        /* The order of messages of different tasks is not guaranteed, so all are from one. */
        int sender = any_of(CHILDREN);
        printf("episode %u:", seed + (unsigned)episode);
        for (int i = 1 + any_of(3); i > 0; i--) {
            int other = any_of(4) == 0, a = 10 + any_of(5), b = 10 + any_of(5), c = any_of(2) ? 10 + any_of(5) : 0;
            printf(" [%s %d %d %d]", other ? "other" : "", a, b, c);
            come(sender, contexts[other], a, b, c, 0);
        }
        pvm_setcontext(contexts[0]);
        for (int i = 3 + any_of(8); i > 0; i--)
            random_call();
        rest();
        pvm_setcontext(contexts[1]);
        rest();
    }
    pvm_setcontext(0);
    pvm_freecontext(contexts[1]);
}

int main(int argc, char **argv)
{
    int is_random = argc > 3 && strcmp(argv[1], "random") == 0;
    if (argc > 2 && !is_random)
        child(argv);
    me = pvm_mytid();
    if (me < 0)
        return EXIT_FAILURE;
    for (int i = 0; i < CHILDREN; i++) {
        char *arguments[] = {names[i][0], names[i][1], NULL};
        snprintf(names[i][0], sizeof names[i][0], "orders.%d", i);
        snprintf(names[i][1], sizeof names[i][1], "answers.%d", i);
        unlink(names[i][0]);
        unlink(names[i][1]);
        if (mkfifo(names[i][0], 0600) || mkfifo(names[i][1], 0600))
            return EXIT_FAILURE;
        if (pvm_spawn("pvm_looks", arguments, PvmTaskDefault, NULL, 1, &children[i]) != 1)
            return EXIT_FAILURE;
        orders[i] = open(names[i][0], O_WRONLY);
        answers[i] = open(names[i][1], O_RDONLY);
        come(i, 0, 1, 0, 0, 0);
        printf("there: %d\n", tag_of(pvm_recv(children[i], 1)));
    }
    if (is_random) {
        play((unsigned)atol(argv[2]), atoi(argv[3]));
    } else {
        looks();
        receives();
        questions();
        several();
        handlers();
        choices();
        descriptors();
    }
    for (int i = 0; i < CHILDREN; i++)
        close(orders[i]);
    pvm_exit();
    return EXIT_SUCCESS;
}
