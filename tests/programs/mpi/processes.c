/* Processes that spawn others, connect to others, and publish services. Spawned processes run this program again. */
#include "mpi_check.h"

#include <sys/socket.h>
#include <unistd.h>

static char *program;

/* A spawned process sends its rank, its world's size and its command. */
static int child(MPI_Comm parent, int argc, char **argv)
{
    int word[3] = {me, size, -1}, *application, flag, remote;
    SUCCEEDS(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &application, &flag));
    word[2] = *application;
    /* The universe includes the parents of this world. */
    int *universe, parents;
    SUCCEEDS(MPI_Comm_remote_size(parent, &parents));
    SUCCEEDS(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &universe, &flag));
    CHECK(flag && *universe >= size + parents);
    CHECK(argc == 2 && strcmp(argv[1], *application ? "other" : "child") == 0);
    SUCCEEDS(MPI_Comm_remote_size(parent, &remote));
    for (int i = 0; i < remote; i++)
        SUCCEEDS(MPI_Send(word, 3, MPI_INT, i, 1, parent));
    /* The spawned processes can communicate in their world. */
    int got = -1, next = (me + 1) % size, before = (me + size - 1) % size;
    MPI_Request request;
    SUCCEEDS(MPI_Isend(&me, 1, MPI_INT, next, 1, MPI_COMM_WORLD, &request));
    SUCCEEDS(MPI_Recv(&got, 1, MPI_INT, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(got == before);
    MPI_Comm both;
    SUCCEEDS(MPI_Intercomm_merge(parent, 1, &both));
    SUCCEEDS(MPI_Comm_rank(both, &got));
    CHECK(got == remote + me);
    SUCCEEDS(MPI_Comm_free(&both));
    SUCCEEDS(MPI_Comm_disconnect(&parent));
    SUCCEEDS(MPI_Comm_get_parent(&parent));
    CHECK(parent == MPI_COMM_NULL);
    SUCCEEDS(MPI_Finalize());
    return 0;
}

static void meet(MPI_Comm children, int count, int first)
{
    int word[3], remote, rank;
    MPI_Status status;
    MPI_Comm both;
    SUCCEEDS(MPI_Comm_remote_size(children, &remote));
    CHECK(remote == count);
    for (int i = 0; i < count; i++) {
        SUCCEEDS(MPI_Recv(word, 3, MPI_INT, i, 1, children, &status));
        CHECK(word[0] == i && word[1] == count && word[2] == (i >= first) && status.MPI_SOURCE == i);
    }
    SUCCEEDS(MPI_Intercomm_merge(children, 0, &both));
    SUCCEEDS(MPI_Comm_rank(both, &rank));
    CHECK(rank == me);
    SUCCEEDS(MPI_Comm_free(&both));
    SUCCEEDS(MPI_Comm_disconnect(&children));
}

static void spawn(void)
{
    MPI_Comm children;
    int codes[3] = {-1, -1, -1};
    char *arguments[] = {"child", NULL};
    SUCCEEDS(MPI_Comm_spawn(program, arguments, 2, MPI_INFO_NULL, size - 1, MPI_COMM_WORLD, &children, codes));
    CHECK(codes[0] == MPI_SUCCESS && codes[1] == MPI_SUCCESS && codes[2] == -1);
    meet(children, 2, 2);
    SUCCEEDS(MPI_Comm_get_parent(&children));
    CHECK(children == MPI_COMM_NULL);
}

static void spawn_several(void)
{
    MPI_Comm children;
    char *commands[] = {program, program};
    char *first[] = {"child", NULL}, *second[] = {"other", NULL}, **arguments[] = {first, second};
    int counts[] = {2, 1};
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    SUCCEEDS(MPI_Comm_spawn_multiple(2, commands, arguments, counts, infos, 0, MPI_COMM_WORLD, &children,
                                     MPI_ERRCODES_IGNORE));
    meet(children, 3, 2);
}

static void spawn_nothing(void)
{
    MPI_Comm children;
    /* A number that is no error code in either interface. */
    enum { GUARD = 15 };
    int codes[] = {0, 0, GUARD, GUARD};
    /* Only root and communicator are significant at the other processes. */
    int root = me == 0;
    FAILS(MPI_ERR_SPAWN, MPI_Comm_spawn("no such program", MPI_ARGV_NULL, root ? 2 : 4, MPI_INFO_NULL, 0,
                                        MPI_COMM_WORLD, &children, codes));
    CHECK(class_of(codes[0]) == MPI_ERR_SPAWN && class_of(codes[1]) == MPI_ERR_SPAWN);
    CHECK(codes[2] == GUARD && codes[3] == GUARD);
    char *commands[] = {"no such program"};
    int counts[] = {2};
    MPI_Info infos[] = {MPI_INFO_NULL};
    codes[0] = codes[1] = 0;
    FAILS(MPI_ERR_SPAWN, MPI_Comm_spawn_multiple(root ? 1 : 4, root ? commands : NULL, MPI_ARGVS_NULL,
                                                 root ? counts : NULL, root ? infos : NULL, 0, MPI_COMM_WORLD,
                                                 &children, codes));
    CHECK(class_of(codes[0]) == MPI_ERR_SPAWN && class_of(codes[1]) == MPI_ERR_SPAWN);
    CHECK(codes[2] == GUARD && codes[3] == GUARD);
    FAILS(MPI_ERR_ROOT, MPI_Comm_spawn(program, MPI_ARGV_NULL, 1, MPI_INFO_NULL, size, MPI_COMM_WORLD, &children,
                                       codes));
}

/* Only the root's arguments are significant, and all processes get its error. */
static void spawn_wrongly(void)
{
    MPI_Comm children;
    int root = me == 0;
    FAILS(MPI_ERR_ARG, MPI_Comm_spawn(program, MPI_ARGV_NULL, root ? -1 : 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
                                      &children, MPI_ERRCODES_IGNORE));
    FAILS(MPI_ERR_COUNT, MPI_Comm_spawn_multiple(0, NULL, MPI_ARGVS_NULL, NULL, NULL, 0, MPI_COMM_WORLD, &children,
                                                 MPI_ERRCODES_IGNORE));
    /* One command cannot be run: the processes of the other command are ended, and their codes say so. */
    char *commands[] = {program, "no such program"}, *first[] = {"child", NULL}, **arguments[] = {first, first};
    int counts[] = {1, 1}, codes[] = {0, 0};
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    FAILS(MPI_ERR_SPAWN, MPI_Comm_spawn_multiple(2, commands, arguments, counts, infos, 0, MPI_COMM_WORLD, &children,
                                                 codes));
    CHECK(class_of(codes[0]) == MPI_ERR_SPAWN && class_of(codes[1]) == MPI_ERR_SPAWN);
}

/*
 * One process passes no address for the new handle: all processes get the error, before anything is started or any peer
 * is asked.
 */
static void without_a_place(void)
{
    MPI_Comm *place = me == size - 1 ? NULL : &(MPI_Comm){MPI_COMM_NULL};
    char port[MPI_MAX_PORT_NAME] = "";
    char *commands[] = {program}, *first[] = {"child", NULL}, **arguments[] = {first};
    int counts[] = {1};
    MPI_Info infos[] = {MPI_INFO_NULL};
    if (me == 0)
        SUCCEEDS(MPI_Open_port(MPI_INFO_NULL, port));
    FAILS(MPI_ERR_ARG, MPI_Comm_spawn(program, first, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, place, MPI_ERRCODES_IGNORE));
    FAILS(MPI_ERR_ARG, MPI_Comm_spawn_multiple(1, commands, arguments, counts, infos, 0, MPI_COMM_WORLD, place,
                                               MPI_ERRCODES_IGNORE));
    FAILS(MPI_ERR_ARG, MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, place));
    FAILS(MPI_ERR_ARG, MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, place));
    if (me == 0)
        SUCCEEDS(MPI_Close_port(port));
    /* The other side gets the error, too. */
    MPI_Comm side, both;
    SUCCEEDS(MPI_Comm_split(MPI_COMM_WORLD, me == 0, 0, &side));
    FAILS(MPI_ERR_ARG, MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, me == 0, 3, me == size - 1 ? NULL : &both));
    SUCCEEDS(MPI_Comm_free(&side));
}

static int keeps;

static int delete_or_not(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    return keeps ? MPI_ERR_OTHER : MPI_SUCCESS;
}

/* One process refuses to delete an attribute: the communicator stays, and no process hangs. */
static void disconnect_later(void)
{
    MPI_Comm comm;
    int key;
    SUCCEEDS(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    SUCCEEDS(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_or_not, &key, NULL));
    SUCCEEDS(MPI_Comm_set_attr(comm, key, &key));
    keeps = me == size - 1;
    FAILS(MPI_ERR_OTHER, MPI_Comm_disconnect(&comm));
    CHECK(comm != MPI_COMM_NULL);
    keeps = 0;
    SUCCEEDS(MPI_Comm_disconnect(&comm));
    CHECK(comm == MPI_COMM_NULL);
    SUCCEEDS(MPI_Comm_free_keyval(&key));
}

/* The other end of the socket is already closed. */
static void join_nobody(void)
{
    MPI_Comm inter;
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    close(ends[1]);
    FAILS(MPI_ERR_OTHER, MPI_Comm_join(ends[0], &inter));
    close(ends[0]);
}

static void talk(MPI_Comm inter, int count)
{
    int remote, got, rank;
    SUCCEEDS(MPI_Comm_remote_size(inter, &remote));
    SUCCEEDS(MPI_Comm_rank(inter, &rank));
    CHECK(remote == count);
    for (int i = 0; i < remote; i++)
        SUCCEEDS(MPI_Send(&rank, 1, MPI_INT, i, 3, inter));
    for (int i = 0; i < remote; i++) {
        SUCCEEDS(MPI_Recv(&got, 1, MPI_INT, i, 3, inter, MPI_STATUS_IGNORE));
        CHECK(got == i);
    }
}

/* No process accepts yet. The connection requested here must not be accepted later. */
static void give_up(const char *port, MPI_Comm part)
{
    MPI_Info info;
    MPI_Comm inter;
    SUCCEEDS(MPI_Comm_set_errhandler(part, MPI_ERRORS_RETURN));
    SUCCEEDS(MPI_Info_create(&info));
    SUCCEEDS(MPI_Info_set(info, "timeout", "0.1"));
    FAILS(MPI_ERR_PORT, MPI_Comm_connect(port, info, 0, part, &inter));
    SUCCEEDS(MPI_Info_set(info, "timeout", "soon"));
    FAILS(MPI_ERR_INFO_VALUE, MPI_Comm_connect(port, info, 0, part, &inter));
    SUCCEEDS(MPI_Info_free(&info));
}

/* A port is closed while others wait at it: their wait ends early. */
static void closed_while_waiting(MPI_Comm part)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    double start = MPI_Wtime();
    if (me == 0)
        SUCCEEDS(MPI_Open_port(MPI_INFO_NULL, port));
    SUCCEEDS(MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD));
    if (me == 0) {
        int flag;
        /* They most likely wait by then; if not, their connect fails at once. */
        while (MPI_Wtime() < start + 0.2)
            SUCCEEDS(MPI_Iprobe(0, 1, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE));
        SUCCEEDS(MPI_Close_port(port));
    } else {
        FAILS(MPI_ERR_PORT, MPI_Comm_connect(port, MPI_INFO_NULL, 0, part, &inter));
        CHECK(MPI_Wtime() < start + 60);
    }
    /* Process 0 stays until all have got the error. */
    SUCCEEDS(MPI_Barrier(MPI_COMM_WORLD));
}

/* Process 0 accepts connections of all others through a port with a published name. */
static void ports(void)
{
    char port[MPI_MAX_PORT_NAME] = "", found[MPI_MAX_PORT_NAME] = "";
    MPI_Comm part, inter;
    SUCCEEDS(MPI_Comm_split(MPI_COMM_WORLD, me == 0, 0, &part));
    if (me == 0) {
        SUCCEEDS(MPI_Open_port(MPI_INFO_NULL, port));
        SUCCEEDS(MPI_Publish_name("harbour", MPI_INFO_NULL, port));
        FAILS(MPI_ERR_SERVICE, MPI_Publish_name("harbour", MPI_INFO_NULL, port));
        for (int i = 1; i < size; i++)
            SUCCEEDS(MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, i, 1, MPI_COMM_WORLD));
        for (int i = 1; i < size; i++)
            SUCCEEDS(MPI_Recv(NULL, 0, MPI_INT, i, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        SUCCEEDS(MPI_Comm_accept(port, MPI_INFO_NULL, 0, part, &inter));
        talk(inter, size - 1);
    } else {
        SUCCEEDS(MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        SUCCEEDS(MPI_Lookup_name("harbour", MPI_INFO_NULL, found));
        CHECK(strcmp(port, found) == 0);
        FAILS(MPI_ERR_SERVICE, MPI_Unpublish_name("harbour", MPI_INFO_NULL, port));
        give_up(found, part);
        SUCCEEDS(MPI_Send(NULL, 0, MPI_INT, 0, 2, MPI_COMM_WORLD));
        SUCCEEDS(MPI_Comm_connect(found, MPI_INFO_NULL, 0, part, &inter));
        talk(inter, 1);
    }
    SUCCEEDS(MPI_Comm_disconnect(&inter));
    if (me == 0) {
        SUCCEEDS(MPI_Unpublish_name("harbour", MPI_INFO_NULL, port));
        FAILS(MPI_ERR_SERVICE, MPI_Unpublish_name("harbour", MPI_INFO_NULL, port));
        FAILS(MPI_ERR_NAME, MPI_Lookup_name("harbour", MPI_INFO_NULL, found));
        SUCCEEDS(MPI_Close_port(port));
        FAILS(MPI_ERR_PORT, MPI_Close_port(port));
        FAILS(MPI_ERR_PORT, MPI_Comm_connect(port, MPI_INFO_NULL, 0, part, &inter));
        FAILS(MPI_ERR_PORT, MPI_Comm_connect("nonsense", MPI_INFO_NULL, 0, part, &inter));
    }
    closed_while_waiting(part);
    SUCCEEDS(MPI_Comm_free(&part));
}

/* Two processes are connected by a socket and make an intercommunicator over it. */
static void join(void)
{
    MPI_Comm inter;
    char path[] = "\0regatta-test-0000000000";
    int listener = -1, fd = -1;
    struct sockaddr name = {.sa_family = AF_UNIX};
    if (me == 0) {
        listener = socket(AF_UNIX, SOCK_STREAM, 0);
        snprintf(path + 1, sizeof path - 1, "rg%d", (int)getpid() % 1000000);
        memcpy(name.sa_data, path, sizeof name.sa_data);
        CHECK(bind(listener, &name, sizeof name) == 0 && listen(listener, 1) == 0);
        SUCCEEDS(MPI_Send(&name, sizeof name, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
        fd = accept(listener, NULL, NULL);
        close(listener);
    } else {
        SUCCEEDS(MPI_Recv(&name, sizeof name, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        fd = socket(AF_UNIX, SOCK_STREAM, 0);
        CHECK(connect(fd, &name, sizeof name) == 0);
    }
    CHECK(fd >= 0);
    SUCCEEDS(MPI_Comm_join(fd, &inter));
    CHECK(inter != MPI_COMM_NULL);
    talk(inter, 1);
    SUCCEEDS(MPI_Comm_disconnect(&inter));
    close(fd);
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"spawn", spawn}, {"spawn_several", spawn_several}, {"spawn_nothing", spawn_nothing},
        {"spawn_wrongly", spawn_wrongly}, {"join_nobody", join_nobody},
        {"without_a_place", without_a_place}, {"disconnect_later", disconnect_later},
        {"ports", ports}, {"join", join},                   {NULL, NULL}};
    program = argv[0];
    if (argc > 1 && (strcmp(argv[1], "child") == 0 || strcmp(argv[1], "other") == 0)) {
        MPI_Comm parent;
        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &me);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        SUCCEEDS(MPI_Comm_get_parent(&parent));
        CHECK(parent != MPI_COMM_NULL);
        return child(parent, argc, argv);
    }
    return play(argc, argv, scenarios);
}
