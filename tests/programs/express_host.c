/* A host program and its nodes in one file: with an argument it is the host program. */
#include "express_check.h"

#include <signal.h>

static int add(int *one, const int *other, int bytes)
{
    CHECK(bytes == sizeof *one);
    *one += *other;
    return 0;
}

/* The collective calls of host program and nodes. */
static void together(int number)
{
    int type = 3, sum = 1, sizes[65], all[65], list[] = {HOST, 0};

    CHECK(exbroadcast(&number, HOST, sizeof number, ALLNODES, NULLPTR, &type) == sizeof number && number == 77);
    CHECK(excombine(&sum, add, sizeof sum, 1, ALLPROCS, NULLPTR, &type) == 0 && sum == size + 1);
    CHECK(exconcat(&me, sizeof me, all, sizeof all, sizes, ALLPROCS, NULLPTR, &type) == (size + 1) * (int)sizeof me);
    CHECK(all[0] == HOST && all[1] == 0 && all[size] == size - 1);
    if (me <= 0) {
        sum = 2;
        CHECK(excombine(&sum, add, sizeof sum, 1, 2, list, &type) == 0 && sum == 4);
        number = me == 0 ? 5 : 0;
        CHECK(exbroadcast(&number, 0, sizeof number, 2, list, &type) == sizeof number && number == 5);
    }
}

/* The host program's side of the dialogue with the nodes. */
static void talk(int count)
{
    int type = 1, got = 0, reply = 0;

    me = HOST, size = count;
    for (int node = 0; node < count; node++)
        CHECK(write_to(node, type, &node, sizeof node) == sizeof node);
    for (int i = 0; i < count; i++) {
        int src = DONTCARE;
        CHECK(exread(&got, sizeof got, &src, &type) == sizeof got && got == 10 * src);
    }
    CHECK(exchange(&reply, sizeof reply, &(int){0}, &(int){2}, &got, sizeof got, &(int){count - 1}, &(int){2}) == sizeof reply);
    CHECK(reply == count - 1);
    CHECK(exsync() == -1);
    together(77);
}

static void host(const char *program, int count)
{
    int all = ALLNODES;

    check_scenario = "host";
    CHECK(exload(0, program) == -1);
    CHECK(exopen("/dev/cube", 0, DONTCARE) == -1);
    int nodes = exopen("/dev/cube", count, DONTCARE);
    CHECK(nodes >= 0 && exopen("/dev/cube", count, DONTCARE) == -1);
    CHECK(exstart(nodes, all) == -1);
    CHECK(exload(nodes, "./no-such-program") == -1);
    CHECK(exload(nodes, program) == 0 && exload(nodes, program) == -1);
    CHECK(exstart(nodes, all) == 0 && exmain(nodes, count - 1) == 0 && exmain(nodes, count) == -1);
    CHECK(exparam(&env) == 0 && env.procnum == HOST && env.nprocs == count && env.host == HOST);
    talk(count);
    CHECK(exclose(nodes) == 0 && exclose(nodes) == -1);
    printf("host done\n");
}

/*
 * Several sets of nodes, one after the other. The first set still writes when it has been released; these messages are
 * never read.
 */
static void again(const char *program, int count)
{
    check_scenario = "again";
    for (int round = 0; round < 3; round++) {
        int nodes = exopen("/dev/cube", count + round / 2, DONTCARE), word;
        CHECK(nodes == round && exload(nodes, program) == 0);
        talk(count + round / 2);
        CHECK(exclose(nodes) == 0);
        OK(rg_put("let go", &nodes, sizeof nodes, 0, RG_PERSISTENT | RG_OVERWRITABLE, NULL));
        OK(rg_get("late", 0, RG_AWAIT | RG_TAKE, &word, sizeof word, NULL, NULL));
        /* In the earlier rounds, the message is still unread when the next nodes write. */
        CHECK(round < 2 || extest(&(int){DONTCARE}, &(int){DONTCARE}) == -1);
    }
    printf("host done\n");
}

/* All nodes have died. The host program waits for a message that cannot arrive. */
static void alone(const char *program, int count)
{
    int got, type, status;

    check_scenario = "alone";
    int nodes = exopen("/dev/cube", count, DONTCARE);
    CHECK(nodes >= 0 && exload(nodes, program) == 0);
    for (int node = 0; node < count; node++)
        CHECK(write_to(node, 9, &node, sizeof node) == sizeof node);
    int src = DONTCARE;
    type = DONTCARE;
    CHECK(exread(&got, sizeof got, &src, &type) == -1);
    src = DONTCARE;
    CHECK(exreceive(&got, sizeof got, &src, &type, &status) == 0 && exwait(&status) == -1);
    printf("alone no more\n");
}

static void node(void)
{
    int got = -1, src = DONTCARE, type = 1, answer;

    check_scenario = "node";
    begin();
    if (type = DONTCARE, exread(&got, sizeof got, &src, &type), type == 9)
        raise(SIGKILL);
    CHECK(src == HOST && got == me && type == 1);
    answer = 10 * me;
    CHECK(write_to(env.host, 1, &answer, sizeof answer) == sizeof answer);
    if (me == 0)
        CHECK(write_to(HOST, 2, &(int){size - 1}, sizeof(int)) == sizeof(int));
    if (me == size - 1)
        CHECK(read_from(HOST, 2, &got, sizeof got) == sizeof got);
    CHECK(exopen("", 1, 0) == -1);
    together(-1);
    CHECK(exsync() == 0);
    if (me == 0 && getenv("AGAIN") != NULL) {
        OK(rg_get("let go", 0, RG_AWAIT | RG_TAKE, &got, sizeof got, NULL, NULL));
        CHECK(write_to(HOST, 1, &me, sizeof me) == sizeof me);
        OK(rg_put("late", &me, sizeof me, 0, RG_PERSISTENT | RG_OVERWRITABLE, NULL));
    }
}

int main(int argc, char **argv)
{
    check_patience(60);
    if (argc > 2 && strcmp(argv[2], "again") == 0)
        again(argv[0], atoi(argv[1]));
    else if (argc > 2)
        alone(argv[0], atoi(argv[1]));
    else if (argc > 1)
        host(argv[0], atoi(argv[1]));
    else
        node();
    return 0;
    (void)check_main;
}
