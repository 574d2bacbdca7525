/*
 * Applications and partitions of the Paragon's NX: a program begins an application and starts itself or nx_node.c on
 * its nodes.
 */
#include "nx_check.h"
#include "nx_node.h"
#include <errno.h>
#include <fcntl.h>

enum { NODES = 3, OWN_PTYPE = 7, REPORT = 20, WORD = 21 };

/* Returns the path of a program that lies beside this one. */
static const char *beside(const char *name)
{
    static char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 40);
    CHECK(length > 0);
    path[length] = 0;
    strcpy(strrchr(path, '/') + 1, name);
    return path;
}

/* Begins an application of this many nodes, without options. */
static void start(long nodes)
{
    CHECK(nx_initve(NULL, nodes, "", NULL, NULL) == nodes && numnodes() == nodes);
    size = (int)nodes;
}

/* A node sends its number, and takes part in a sum. Its exit status is its number. */
static void report(void)
{
    long word = mynode() + 10 * numnodes() + 100 * myptype(), sum = mynode() + 1, work;
    CHECK(mynode() >= 0 && mynode() < size && myhost() == size);
    gisum(&sum, 1, &work);
    CHECK(sum == size * (size + 1) / 2);
    csend(REPORT, &word, sizeof word, myhost(), OWN_PTYPE);
    crecv(WORD, &word, sizeof word);
    CHECK(infonode() == myhost() && infoptype() == OWN_PTYPE);
    exit((int)mynode());
}

/* Receives the reports of the nodes with this ptype, after which they may end. */
static void hear(long ptype)
{
    bool heard[16] = {false};
    for (int i = 0; i < size; i++) {
        long word;
        crecv(REPORT, &word, sizeof word);
        CHECK(infoptype() == ptype && infonode() < size && !heard[infonode()]);
        CHECK(word == infonode() + 10 * size + 100 * ptype);
        heard[infonode()] = true;
    }
    csend(WORD, &size, sizeof size, -1, ptype);
}

/* As in programs that were linked with -lnx, both sides of the fork are in one source file. */
static void forked(void)
{
    long pids[NODES];
    start(NODES);
    long started = nx_nfork(NULL, -1, 0, pids);
    if (started == 0)
        report();
    CHECK(started == NODES && mynode() == NODES && myhost() == NODES && myptype() == INVALID_PTYPE);
    for (int i = 0; i < NODES; i++)
        CHECK(pids[i] > 1 && pids[i] != getpid() && (i == 0 || pids[i] != pids[i - 1]));
    setptype(OWN_PTYPE);
    CHECK(myptype() == OWN_PTYPE);
    hear(0);
    CHECK(nx_waitall() == 0);
    GIVES(_setptype(OWN_PTYPE + 1), EQSET);
}

/* The ways in which nodes end can be distinguished. */
static void ends(void)
{
    start(NODES);
    if (nx_nfork(NULL, -1, 2, NULL) == 0)
        report();
    setptype(OWN_PTYPE);
    hear(2);
    for (int i = 0; i < NODES; i++) {
        long node, ptype, code;
        waitone(-1, -1, &node, &ptype, &code);
        CHECK(ptype == 2 && code == node);
    }
}

/* Processes that are started by a second call have also returned from the first. */
static void forked_twice(void)
{
    const long some[] = {2, 0};
    long pids[2] = {0, 0};
    start(NODES);
    long first = nx_nfork(some, 2, 1, pids);
    if (first == 0) {
        CHECK(myptype() == 1 && (mynode() == 0 || mynode() == 2));
        long word = 0;
        csend(WORD, &word, sizeof word, mynode() == 2 ? 0 : 2, 1);
        crecv(WORD, &word, sizeof word);
        CHECK(infonode() == 2 - mynode());
        exit(0);
    }
    CHECK(first == 2 && pids[0] > 1 && pids[1] > 1);
    long second = nx_nfork(NULL, -1, 0, NULL);
    if (second == 0)
        report();
    CHECK(second == NODES);
    setptype(OWN_PTYPE);
    hear(0);
    CHECK(nx_waitall() == 0);
}

/* The program's file was replaced after its start, as by a compiler: the new file is started. */
static void renewed(void)
{
    start(NODES);
    if (getenv("REGATTA_NX") == NULL) {
        const char *copy = "p=$(readlink /proc/$PPID/exe) && p=${p% (deleted)} && cp $p $p.$$ && mv $p.$$ $p";
        CHECK(system(copy) == 0);
    }
    long started = nx_nfork(NULL, -1, 0, NULL);
    if (started == 0)
        report();
    CHECK(started == NODES);
    setptype(OWN_PTYPE);
    hear(0);
    CHECK(nx_waitall() == 0);
}

/* Another program, loaded on one node after the other, then with arguments of its own. */
static void loaded(void)
{
    const long first[] = {2, 0}, second[] = {1};
    long pids[2], values[NODES];
    start(NODES);
    CHECK(nx_load(first, 2, 4, pids, beside("nx_node")) == 2 && pids[0] != pids[1]);
    CHECK(nx_load(second, 1, 4, NULL, beside("nx_node")) == 1);
    setptype(OWN_PTYPE);
    struct order order = {'w', 0};
    csend(ORDER, &order, sizeof order, -1, 4);
    for (int i = 0; i < NODES; i++) {
        long value;
        crecv(ANSWER, &value, sizeof value);
        values[infonode()] = value;
    }
    for (int i = 0; i < NODES; i++)
        CHECK(values[i] == i + 10 * NODES + 100 * 4 + 100000L * NODES);
    order.what = 'x';
    csend(ORDER, &order, sizeof order, -1, 4);
    CHECK(nx_waitall() == 0);
    char *words[] = {"nx_node", "set", NULL}, *settings[] = {"NX_TEST=set", NULL};
    CHECK(nx_loadve(NULL, -1, 4, NULL, beside("nx_node"), words, settings) == NODES);
    csend(ORDER, NULL, 0, -1, 4);
    for (int i = 0; i < NODES; i++) {
        long node, ptype, code;
        waitone(-1, -1, &node, &ptype, &code);
        CHECK(code == 10 * NODES + node);
    }
}

/* Options precede arguments, and are removed; nodes know the rectangle. */
static void options(void)
{
    char *words[] = {"program", "-sz", "2x2", "input", "-plk", "-pri", "3", "-v", NULL};
    int count = 8;
    CHECK(nx_initve("", 2, "", &count, words) == 4);
    CHECK(count == 3 && strcmp(words[1], "input") == 0 && strcmp(words[2], "-v") == 0 && words[3] == NULL);
    size = 4;
    long rows = 0, columns = 0;
    long started = nx_nfork(NULL, -1, 0, NULL);
    CHECK(nx_app_rect(&rows, &columns) == 0 && rows == 2 && columns == 2);
    mypart(&rows, &columns);
    CHECK(rows == 2 && columns == 2);
    if (started == 0)
        report();
    setptype(OWN_PTYPE);
    hear(0);
    CHECK(nx_waitall() == 0);
}

/* The number of arguments may be a long, as in the manual. */
static void wide_count(void)
{
    char *words[] = {"program", "-sz", "2", NULL};
    long count = 3;
    CHECK(nx_initve("", 0, "", &count, words) == 2 && count == 1 && words[1] == NULL);
}

/* Only the variable NX_DFLT_SIZE gives the number of nodes. */
static void usual(void)
{
    CHECK(nx_initve(NULL, 0, "", NULL, NULL) == 5 && numnodes() == 5);
}

static void rectangle(void)
{
    long rows, columns;
    CHECK(nx_initve_rect("", -1, 3, 2, "", NULL, NULL) == 6 && numnodes() == 6);
    CHECK(nx_app_rect(&rows, &columns) == 0 && rows == 3 && columns == 2);
}

static void attributes(void)
{
    const long sides[] = {1, 4};
    long rows, columns;
    GIVES(nx_initve_attr("", NULL, NULL, 999, 1, NX_ATTR_END), EQPARAM);
    CHECK(nx_initve_attr("", NULL, NULL, NX_ATTR_RECT, sides, NX_ATTR_SEL, "all", NX_ATTR_PRI, 5, NX_ATTR_END) == 4);
    CHECK(nx_app_rect(&rows, &columns) == 0 && rows == 1 && columns == 4);
}

static void check_nodes(nx_nodes_t nodes, unsigned long number, const long expected[], unsigned long count)
{
    CHECK(number == count && nodes != NULL);
    for (unsigned long i = 0; i < count; i++)
        CHECK(nodes[i] == expected[i]);
    free(nodes);
}

static void partitions(void)
{
    const long map[] = {3, 1};
    nx_part_info_t told;
    nx_pspart_t *list;
    nx_nodes_t nodes;
    unsigned long number;
    CHECK(nx_mkpart("mine", 4, NX_STD) == 4 && nx_mkpart_rect(".compute.grid", 2, 3, NX_GANG) == 6);
    CHECK(nx_mkpart_map("mine.part", 2, map, NX_STD) == 2);
    CHECK(nx_mkpart_attr("set", NX_ATTR_SZ, 2L, NX_ATTR_SCHED, NX_SPS, NX_ATTR_EPL, 4, NX_ATTR_RQ, 100, NX_ATTR_MOD, 0700,
                         NX_ATTR_MAP, map, NX_ATTR_END) == 2);
    GIVES(nx_mkpart("mine", 4, NX_STD), EPPARTEXIST);
    GIVES(nx_mkpart("mine.large", 5, NX_STD), EPALLOCERR);
    GIVES(nx_mkpart("nowhere.part", 1, NX_STD), EPINVALPART);
    GIVES(nx_mkpart("kind", 1, 77), EQPARAM);
    GIVES(nx_mkpart_attr("none", NX_ATTR_RECT, (const long[]){0, 4}, NX_ATTR_END), EQPARAM);
    GIVES(nx_mkpart_map("mine.far", 2, (const long[]){0, 4}, NX_STD), EPBADNODE);
    CHECK(nx_part_attr("set", &told) == 0 && told.nodes == 2 && told.sched == NX_SPS && told.epl == 4);
    CHECK(told.rq == 100 && told.access == 0700 && told.mesh_x == 0 && told.uid == (long)getuid());
    CHECK(nx_part_attr("grid", &told) == 0 && told.mesh_x == 2 && told.mesh_y == 3 && told.sched == NX_GANG);
    CHECK(nx_part_nodes("mine.part", &nodes, &number) == 0);
    check_nodes(nodes, number, map, 2);
    CHECK(nx_chpart_epl("grid", 2) == 0 && nx_chpart_rq("grid", 5) == 0 && nx_chpart_sched("grid", NX_STD) == 0);
    CHECK(nx_chpart_mod("grid", 0111) == 0 && nx_chpart_owner("grid", 12, 34) == 0 && nx_chpart_name("grid", "plane") == 0);
    CHECK(nx_part_attr("plane", &told) == 0 && told.epl == 2 && told.rq == 5 && told.sched == NX_STD);
    CHECK(told.access == 0111 && told.uid == 12 && told.gid == 34);
    GIVES(nx_part_attr("grid", &told), EPINVALPART);
    GIVES(nx_chpart_epl("plane", 11), EPINVALPRI);
    GIVES(nx_chpart_epl(".compute", 1), EPACCES);
    GIVES(nx_rmpart(".compute", 1, 1), EPACCES);
    /* An application in a partition has as many nodes as the partition. */
    CHECK(nx_initve("mine", 0, "", NULL, NULL) == 4 && numnodes() == 4);
    CHECK(nx_pspart("mine", &list, &number) == 0 && number == 2);
    CHECK(list[0].object_type == NX_PARTITION && list[0].size == 2 && list[1].object_type == NX_APPLICATION);
    CHECK(list[1].size == 4 && list[1].object_id == getpgrp() && list[1].active == 1);
    free(list);
    CHECK(nx_pspart("", &list, &number) == 0 && number == 3);
    free(list);
    GIVES(nx_rmpart("mine", 0, 1), EPNOTEMPTY);
    GIVES(nx_rmpart("mine", 1, 0), EPNOTEMPTY);
    CHECK(nx_rmpart("mine", 1, 1) == 0);
    GIVES(nx_part_attr("mine.part", &told), EPINVALPART);
}

/* An application stays in its partition, whatever happens to the enclosing ones; it prevents their removal. */
static void nested(void)
{
    nx_nodes_t nodes;
    unsigned long number;
    CHECK(nx_mkpart("outer", 4, NX_STD) == 4 && nx_mkpart("outer.inner", 2, NX_STD) == 2);
    CHECK(nx_initve("outer.inner", 0, "", NULL, NULL) == 2);
    CHECK(nx_chpart_name("outer", "renamed") == 0);
    CHECK(nx_app_nodes(0, &nodes, &number) == 0 && number == 2);
    free(nodes);
    GIVES(nx_rmpart("renamed", 0, 1), EPNOTEMPTY);
    CHECK(nx_app_nodes(0, &nodes, &number) == 0 && number == 2);
    free(nodes);
    CHECK(nx_rmpart("renamed", 1, 1) == 0);
}

/* nx_perror while standard error cannot be written. */
static void unread(void)
{
    int full = open("/dev/full", O_WRONLY);
    CHECK(full >= 0 && dup2(full, 2) == 2);
    errno = EINVAL;
    nx_perror("nobody reads this");
}

/* The nodes of an application have the numbers given by its partition's map. */
static void mapped(void)
{
    const long map[] = {5, 2}, all[] = {0, 1, 2};
    nx_nodes_t nodes;
    unsigned long number;
    CHECK(nx_mkpart_map("pair", 2, map, NX_STD) == 2);
    GIVES(nx_initve("pair", 3, "", NULL, NULL), EPALLOCERR);
    GIVES(nx_initve("nowhere", 3, "", NULL, NULL), EPINVALPART);
    CHECK(nx_initve("pair", -1, "", NULL, NULL) == 2);
    CHECK(nx_app_nodes(0, &nodes, &number) == 0);
    check_nodes(nodes, number, map, 2);
    CHECK(nx_part_nodes(".compute", &nodes, &number) == 0);
    check_nodes(nodes, number, all, 2);
    CHECK(nx_empty_nodes(&nodes, &number) == 0 && number == 0);
    free(nodes);
    CHECK(nx_failed_nodes(&nodes, &number) == 0 && number == 0);
    free(nodes);
    CHECK(nx_app_nodes(getpgrp(), &nodes, &number) == 0);
    free(nodes);
    GIVES(nx_app_nodes(1, &nodes, &number), EANOEXIST);
}

static void wrong(void)
{
    const long far[] = {NODES}, twice[] = {1, 1};
    long word = 0;
    GIVES(nx_nfork(NULL, -1, 0, NULL), EANOEXIST);
    GIVES(nx_load(NULL, -1, 0, NULL, "nx_node"), EANOEXIST);
    GIVES(nx_waitall(), EANOEXIST);
    GIVES(nx_initve("", -5, "", NULL, NULL), EQPARAM);
    GIVES(nx_initve_rect("", 0, 0, 4, "", NULL, NULL), EQPARAM);
    char *words[] = {"program", "-sz", "none", NULL};
    int count = 3;
    GIVES(nx_initve("", 1, "", &count, words), EQPARAM);
    CHECK(count == 3);
    start(NODES);
    GIVES(nx_initve("", NODES, "", NULL, NULL), EAEXIST);
    GIVES(nx_load(far, 1, 0, NULL, beside("nx_node")), EQNODE);
    GIVES(nx_load(twice, 2, 0, NULL, beside("nx_node")), EQUSEPID);
    GIVES(nx_load(NULL, 1, 0, NULL, beside("nx_node")), EQPARAM);
    GIVES(nx_load(NULL, -1, -1, NULL, beside("nx_node")), EQPID);
    GIVES(nx_load(NULL, -1, 0, NULL, "/there/is/no/such/program"), EQBADFIL);
    GIVES(nx_load(NULL, -1, 0, NULL, NULL), EQPFIL);
    GIVES(_csend(1, &word, sizeof word, 0, 0), EQNOACT);
    GIVES(nx_pri(0, 11), EPINVALPRI);
    CHECK(nx_pri(0, 10) == 0 && nx_waitall() == 0);
    errno = EPINVALPART;
    nx_perror("nx_mkpart");
    errno = ENOENT;
    nx_perror("");
}

/* Nodes started by regatta run already have an application. */
static void in_a_job(void)
{
    nx_nodes_t nodes;
    unsigned long number;
    GIVES(nx_initve("", 2, "", NULL, NULL), EQPRIV);
    GIVES(nx_nfork(NULL, -1, 0, NULL), EQPRIV);
    GIVES(nx_waitall(), EQPRIV);
    begin();
    CHECK(nx_app_nodes(0, &nodes, &number) == 0 && number == (unsigned long)size);
    free(nodes);
    gsync();
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"forked", forked, true},         {"ends", ends, true},           {"forked-twice", forked_twice, true},
        {"renewed", renewed, true},
        {"loaded", loaded, true},         {"options", options, true},     {"wide-count", wide_count, true},
        {"usual", usual, true},
        {"rectangle", rectangle, true},   {"attributes", attributes, true}, {"partitions", partitions, true},
        {"nested", nested, true},         {"unread", unread, true},         {"mapped", mapped, true},
        {"wrong", wrong, true},         {"in-a-job", in_a_job, true},
        {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
