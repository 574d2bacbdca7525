/*
 * NX host programs: a cube, and processes that are loaded, exchange messages, and are waited for and killed. The nodes
 * run nx_node.c.
 */
#include "nx_check.h"
#include "nx_node.h"

#include <sched.h>

enum { NODES = 3, OWN_PID = 100 };

/* Returns the path of the nodes' program, which lies beside this one. */
static const char *node_program(void)
{
    static char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 10);
    CHECK(length > 0);
    path[length] = 0;
    strcpy(strrchr(path, '/') + 1, "nx_node");
    return path;
}

static void start(void)
{
    getcube("mine", "3", NULL, 0);
    setpid(OWN_PID);
    me = (int)mynode();
    size = (int)numnodes();
    CHECK(me == NODES && size == NODES && myhost() == NODES && mypid() == OWN_PID);
    killcube(-1, 0);
}

static void tell(long what, long number, long node, long pid)
{
    struct order order = {what, number};
    csend(ORDER, &order, sizeof order, node, pid);
}

/* Receives an answer from each node: its number, which must agree with the info calls. */
static void hear(long values[NODES], long pid)
{
    for (int i = 0; i < NODES; i++)
        values[i] = -1;
    for (int i = 0; i < NODES; i++) {
        long value;
        crecv(ANSWER, &value, sizeof value);
        CHECK(infocount() == sizeof value && infopid() == pid && infonode() >= 0 && infonode() < NODES);
        CHECK(values[infonode()] == -1);
        values[infonode()] = value;
    }
}

static void check_nodes(long pid)
{
    long values[NODES];
    tell('w', 0, -1, pid);
    hear(values, pid);
    for (int i = 0; i < NODES; i++)
        CHECK(values[i] == i + 10 * NODES + 100 * pid + 100000L * NODES);
    tell('s', 0, -1, pid);
    hear(values, pid);
    for (int i = 0; i < NODES; i++)
        CHECK(values[i] == 6);
    tell('r', 0, -1, pid);
    hear(values, pid);
    CHECK(values[0] == NODES && values[1] == 2 && values[2] == 3);
}

static void typical(void)
{
    start();
    CHECK(load(node_program(), -1, 0) == 0);
    check_nodes(0);
    tell('x', 0, -1, 0);
    waitall(-1, -1);
    /* A second time, in the same cube. */
    load(node_program(), -1, 0);
    check_nodes(0);
    long info[8], value;
    tell('w', 0, 1, 0);
    crecvx(ANSWER, &value, sizeof value, 1, 0, info);
    CHECK(info[2] == 1 && info[3] == 0 && value % 10 == 1);
    tell('x', 0, -1, 0);
    waitall(-1, 0);
    relcube("mine");
}

/* Loads each node separately: they make a group when they need one. */
static void one_by_one(void)
{
    start();
    for (int node = NODES - 1; node >= 0; node--)
        load(node_program(), node, 5);
    check_nodes(5);
    tell('x', 0, -1, 5);
    waitall(-1, -1);
}

/* Two processes on each node, which communicate with each other. */
static void two_each(void)
{
    start();
    load(node_program(), -1, 0);
    load(node_program(), -1, 7);
    check_nodes(7);
    check_nodes(0);
    long values[NODES];
    tell('t', 7, -1, 0);
    hear(values, 0);
    for (int i = 0; i < NODES; i++)
        CHECK(values[i] == i + 10 * NODES + 100 * 7 + 100000L * NODES);
    tell('t', 0, -1, 7);
    hear(values, 7);
    for (int i = 0; i < NODES; i++)
        CHECK(values[i] == i + 10 * NODES + 100000L * NODES);
    tell('x', 0, -1, 7);
    waitall(-1, 7);
    check_nodes(0);
    killcube(-1, -1);
}

static void ends(void)
{
    long node, pid, code;
    start();
    load(node_program(), -1, 4);
    tell('x', 9, 1, 4);
    waitone(-1, -1, &node, &pid, &code);
    CHECK(node == 1 && pid == 4 && code == 9);
    tell('k', SIGUSR1, 0, 4);
    waitone(0, 4, &node, &pid, &code);
    CHECK(node == 0 && pid == 4 && code == -SIGUSR1);
    tell('f', 0, 2, 4);
    CHECK(_waitone(-1, -1, &node, &pid, &code) == 0 && node == 2 && code == 1);
    GIVES(_waitone(-1, -1, &node, &pid, &code), EQNOACT);
    waitall(-1, -1);
    /* A pid that has become free can be used again. */
    load(node_program(), 1, 4);
    killproc(1, 4);
    GIVES(_waitone(1, 4, &node, &pid, &code), EQNOACT);
    load(node_program(), -1, 4);
    tell('a', 0, 1, 4);
    for (int i = 0; i < NODES; i++) {
        waitone(-1, 4, &node, &pid, &code);
        CHECK(node == 1 ? code == 1 : code == -SIGKILL);
    }
    CHECK(_relcube("mine") == 0);
}

/* Without getcube, the environment variable gives the size of the cube, as the shell did on the iPSC. */
static void shells(void)
{
    CHECK(_attachcube("") == 0);
    setpid(OWN_PID);
    CHECK(numnodes() == NODES && mynode() == NODES);
    load(node_program(), -1, 0);
    check_nodes(0);
    killcube(-1, -1);
    relcube("");
}

/* attachcube is not needed either. */
static void sized(void)
{
    setpid(OWN_PID);
    CHECK(numnodes() == NODES);
    load(node_program(), -1, 0);
    check_nodes(0);
    killcube(-1, -1);
}

static void missized(void)
{
    GIVES(_setpid(OWN_PID), EQPARAM);
    GIVES(_getcube("", "", "", 0), EQPARAM);
    CHECK(_getcube("", "2", "", 0) == 0 && _setpid(OWN_PID) == 0 && _numnodes() == 2);
}

/* All nodes have died: the host waits for a message that cannot be sent any more. */
static void alone(void)
{
    long word, node, pid, code;
    start();
    load(node_program(), -1, 4);
    tell('k', SIGKILL, -1, 4);
    GIVES(_crecv(ANSWER, &word, sizeof word), EQNOACT);
    GIVES(_cprobe(-1), EQNOACT);
    GIVES(_crecv(-2147483647 - 1 + 4, &word, sizeof word), EQNOACT);
    long begun = irecv(ANSWER, &word, sizeof word);
    GIVES(_msgwait(begun), EQNOACT);
    for (int i = 0; i < NODES; i++) {
        waitone(-1, -1, &node, &pid, &code);
        CHECK(pid == 4 && code == -SIGKILL);
    }
    msgcancel(begun);
    load(node_program(), -1, 4);
    check_nodes(4);
    killcube(-1, -1);
}

/* Messages of nodes that have ended meanwhile arrive, and name their senders. */
static void last_words(void)
{
    long values[NODES];
    start();
    for (int node = 0; node < NODES; node++)
        load(node_program(), node, 2);
    tell('w', 0, -1, 2);
    tell('x', 0, -1, 2);
    waitall(-1, -1);
    cprobe(ANSWER);
    hear(values, 2);
    for (int i = 0; i < NODES; i++)
        CHECK(values[i] % 10 == i);
    GIVES(_csend(ORDER, values, sizeof values, 1, 2), EQNOACT);
}

/* Nodes are killed in the middle of a sum, and others loaded in their place. */
static void over_again(void)
{
    start();
    for (int round = 0; round < 4; round++) {
        load(node_program(), -1, 0);
        load(node_program(), -1, 1);
        /* A sum in which one node is missing. */
        tell('s', 0, 0, 0);
        tell('s', 0, 1, 0);
        check_nodes(1);
        killcube(-1, 0);
        check_nodes(1);
        load(node_program(), -1, 0);
        check_nodes(0);
        killcube(-1, -1);
    }
}

/* One process is killed, and another one loaded in its place: all nodes reach the new one. */
static void replaced(void)
{
    long value;
    start();
    load(node_program(), -1, 7);
    load(node_program(), -1, 0);
    check_nodes(7);
    check_nodes(0);
    for (long asked = 0; asked <= 7; asked += 7) {
        long asks = 7 - asked;
        /* In the second round, the asking node has already communicated with the process that was killed. */
        for (int again = 0; again < 2; again++) {
            tell('t', asked, 1, asks);
            crecv(ANSWER, &value, sizeof value);
            CHECK(infonode() == 1 && infopid() == asks && value == 1 + 10 * NODES + 100 * asked + 100000L * NODES);
            if (again == 0) {
                killproc(1, asked);
                load(node_program(), 1, asked);
            }
        }
        long values[NODES];
        tell('r', 0, -1, asked);
        hear(values, asked);
        CHECK(values[0] == NODES && values[1] == 2 && values[2] == 3);
    }
    /* Without a pid, the pid that was loaded last on all nodes is meant. */
    const long all[] = {0, 1, 2};
    struct order order = {'w', 0};
    gsendx(ORDER, &order, sizeof order, all, NODES);
    long values[NODES];
    hear(values, 0);
    /* The replacement ends with the others. */
    tell('a', 0, 2, 7);
    for (int i = 0; i < NODES; i++) {
        long node, pid, code;
        waitone(-1, 7, &node, &pid, &code);
        CHECK(node == 2 ? code == 1 : code == -SIGKILL);
    }
    killcube(-1, -1);
}

/* The processes of one cube are separate from those of the next one, which has another size. */
static void another_size(void)
{
    long value;
    start();
    load(node_program(), -1, 1);
    killcube(-1, -1);
    relcube("mine");
    getcube("larger", "4", NULL, 0);
    CHECK(numnodes() == 4);
    load(node_program(), 0, 1);
    for (long node = 1; node < 4; node++) {
        /* A killed process is listed until its end is known. */
        while (_csend(ORDER, &value, sizeof value, node, 1) == 0)
            sched_yield();
        GIVES(_csend(ORDER, &value, sizeof value, node, 1), EQNOACT);
    }
    tell('w', 0, 0, 1);
    crecvx(ANSWER, &value, sizeof value, 0, -1, NULL);
    CHECK(infonode() == 0 && infopid() == 1 && value == 10 * 4 + 100 + 100000L * 4);
    const long first[] = {0};
    struct order order = {'w', 0};
    gsendx(ORDER, &order, sizeof order, first, 1);
    crecv(ANSWER, &value, sizeof value);
    CHECK(infonode() == 0 && value == 10 * 4 + 100 + 100000L * 4);
    killcube(-1, -1);
}

/* A program that a node starts itself is not a node of this cube. */
static void by_hand(void)
{
    long values[NODES];
    start();
    load(node_program(), -1, 0);
    tell('h', 0, -1, 0);
    hear(values, 0);
    for (int i = 0; i < NODES; i++)
        CHECK(values[i] == 10);
    killcube(-1, -1);
}

static void order(void)
{
    long word = 1, node, pid, code;
    const char *program = node_program();
    GIVES(_load(program, -1, 0), EQNOSET);
    GIVES(_waitall(-1, -1), EQNOSET);
    GIVES(_waitone(-1, -1, &node, &pid, &code), EQNOSET);
    GIVES(_attachcube("mine"), EQCUBENOTEXIST);
    GIVES(_relcube("mine"), EQCUBENOTEXIST);
    GIVES(_getcube("mine", "many", NULL, 0), EQPARAM);
    CHECK(_getcube("mine", "d1", "", 1) == 0);
    GIVES(_killcube(-1, -1), EQNOSET);
    GIVES(_csend(1, &word, sizeof word, 0, 0), EQNOSET);
    GIVES(_crecv(1, &word, sizeof word), EQNOSET);
    GIVES(_load(program, -1, 0), EQNOSET);
    GIVES(_setpid(-1), EQPID);
    CHECK(_setpid(OWN_PID) == 0 && _numnodes() == 2);
    GIVES(_setpid(OWN_PID), EQSET);
    GIVES(_load(NULL, -1, 0), EQPFIL);
    GIVES(_load("", -1, 0), EQPFIL);
    GIVES(_load("/there/is/no/such/program", -1, 0), EQBADFIL);
    GIVES(_load(program, 2, 0), EQNODE);
    GIVES(_load(program, -2, 0), EQNODE);
    GIVES(_load(program, -1, -1), EQPID);
    GIVES(_csend(1, &word, sizeof word, 0, 0), EQNOACT);
    GIVES(_csend(1, &word, sizeof word, -1, 0), EQNOACT);
    GIVES(_csend(1, &word, sizeof word, 7, 0), EQNODE);
    CHECK(_load(program, 1, 0) == 0);
    GIVES(_load(program, 1, 0), EQUSEPID);
    GIVES(_load(program, -1, 0), EQUSEPID);
    GIVES(_getcube("another", "2", NULL, 0), EQCUBEEXISTS);
    GIVES(_attachcube("another"), EQCUBENOTEXIST);
    CHECK(_attachcube("mine") == 0);
    GIVES(_waitone(-1, -1, NULL, &pid, &code), EQPCNODE);
    GIVES(_waitone(-1, -1, &node, NULL, &code), EQPCPID);
    GIVES(_waitone(-1, -1, &node, &pid, NULL), EQPCCODE);
    GIVES(_waitone(0, 0, &node, &pid, &code), EQNOACT);
    GIVES(_gsync(), EQPRIV);
    GIVES(_gcol(&word, 8, &word, 8, NULL), EQPRIV);
    CHECK(_killproc(1, 0) == 0 && _killcube(-1, -1) == 0 && _waitall(-1, -1) == 0);
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"typical", typical, true},   {"one-by-one", one_by_one, true}, {"two-each", two_each, true},
        {"ends", ends, true},         {"order", order, true},           {"shells", shells, true},
        {"sized", sized, true},       {"missized", missized, true},     {"alone", alone, true},
        {"last-words", last_words, true}, {"over-again", over_again, true},
        {"replaced", replaced, true}, {"another-size", another_size, true}, {"by-hand", by_hand, true}, {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
