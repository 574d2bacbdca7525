/*
 * A task that learns of a group's change through messages must see that change, whichever path the messages take. The
 * friend makes requests to the caster after the joiner has told the friend what it has done. On the direct path from
 * joiner to caster nothing passes meanwhile, or other messages are queued before it. Arguments: the role, and how to
 * block that path: pipes to and from a driver that cuts it, or "flood" for tasks of one host.
 */
#define _GNU_SOURCE
#include "pvm_words.h"

#include <dlfcn.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { PROCESS = 1, READY, TOLD, CAST, PASSED, DONE, FLOOD };
enum { PIECES = 2000, PIECE = 8000 };

static int caster, friend, joiner;

static void send_process(int tid)
{
    int pid = getpid();
    pvm_initsend(PvmDataDefault);
    CHECK(pvm_pkint(&pid, 1, 1) == PvmOk);
    CHECK(pvm_send(tid, PROCESS) == PvmOk);
}

static pid_t await_process(int tid)
{
    int pid = 0;
    await_word(tid, PROCESS);
    CHECK(pvm_upkint(&pid, 1, 1) == PvmOk && pid > 1);
    return pid;
}

/* Waits until the process is stopped. */
static void await_stop(pid_t pid)
{
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    while (state != 'T') {
        FILE *file = fopen(path, "r");
        CHECK(file && fscanf(file, "%*d (%*[^)]) %c", &state) == 1);
        fclose(file);
    }
}

/* Returns how many tasks wait at a barrier of a group. */
static int waiting(const char *group)
{
    int (*ask)(const char *, int *, int, int *) = NULL, count = 0;
    *(void **)&ask = dlsym(RTLD_DEFAULT, "rg_waiting");
    CHECK(ask && ask(group, NULL, 0, &count) <= 0);
    return count;
}

static void told(void)
{
    await_word(friend, TOLD);
}

/* Notifies the caster through the friend. */
static void tell(void)
{
    send_word(friend, TOLD);
}

static void pass_on(void)
{
    await_word(joiner, TOLD);
    send_word(caster, TOLD);
}

/* Writes a line into the pipe to the driver, and waits for its answer. */
static void ask_driver(const char *to, const char *from)
{
    FILE *pipe = fopen(to, "w");
    CHECK(pipe && fprintf(pipe, "ready\n") > 0 && fclose(pipe) == 0);
    pipe = fopen(from, "r");
    CHECK(pipe && fgetc(pipe) != EOF && fclose(pipe) == 0);
}

static void cast(void)
{
    pvm_initsend(PvmDataDefault);
    CHECK(pvm_bcast("choir", CAST) == PvmOk);
}

static void run_caster(void)
{
    CHECK(pvm_joingroup("choir") == 0);
    CHECK(pvm_joingroup("crew") == 0);
    CHECK(pvm_joingroup("fixed") == 0);
    publish("caster");
    friend = look_up("friend");
    CHECK(pvm_barrier("crew", 2) == PvmOk);
    CHECK(pvm_barrier("crew", 2) == PvmOk);
    CHECK(pvm_gsize("choir") == 1);
    send_process(friend);

    /* Calls that use the member list must use the current one. */
    told();
    cast();

    /* A barrier of all members includes the one that has just joined. */
    told();
    CHECK(pvm_barrier("crew", -1) == PvmOk);
    send_word(look_up("joiner"), PASSED);

    told();
    CHECK(pvm_bcast("choir", CAST) == PvmNoInst);
    CHECK(pvm_gsize("choir") == 1);

    /* The caster sleeps in this call: see the friend. */
    CHECK(pvm_freezegroup("fixed", 2) == 2);
    send_word(friend, DONE);

    await_word(friend, READY);
    CHECK(pvm_barrier("crew", 3) == PvmOk);
    pvm_recv(-1, 1000);
}

static void run_friend(void)
{
    caster = look_up("caster");
    CHECK(pvm_joingroup("crew") == 1);
    CHECK(pvm_joingroup("fixed") == 1);
    publish("friend");
    CHECK(pvm_barrier("crew", 2) == PvmOk);
    CHECK(pvm_barrier("crew", 2) == PvmOk);
    pid_t pid = await_process(caster);
    joiner = look_up("joiner");
    send_word(joiner, READY);

    pass_on();

    await_word(joiner, TOLD);
    send_word(caster, TOLD);
    CHECK(pvm_barrier("crew", -1) == PvmOk);
    send_word(joiner, PASSED);

    pass_on();

    while (waiting("fixed") != 1)
        ;
    kill(pid, SIGSTOP);
    await_stop(pid);
    CHECK(pvm_freezegroup("fixed", 2) == 2);
    send_word(joiner, DONE);
    await_word(joiner, DONE);
    kill(pid, SIGCONT);
    await_word(caster, DONE);
    await_word(joiner, DONE);

    /*
     * The joiner, which has met the caster and the friend, does not come to this barrier; another task comes instead.
     */
    int late = look_up("late");
    send_word(caster, READY);
    send_word(late, READY);
    CHECK(pvm_barrier("crew", 3) == PvmOk);
    printf("all is known\n");
    fflush(stdout);
    pvm_halt();
    pvm_recv(-1, 1000);
}

static void run_joiner(const char *to, const char *from)
{
    friend = look_up("friend");
    caster = look_up("caster");
    publish("joiner");
    await_word(friend, READY);
    ask_driver(to, from);

    CHECK(pvm_joingroup("choir") == 1);
    tell();

    CHECK(pvm_joingroup("crew") == 2);
    tell();
    while (waiting("crew") != 2)
        CHECK(pvm_nrecv(-1, PASSED) == 0);
    CHECK(pvm_barrier("crew", -1) == PvmOk);
    await_word(friend, PASSED);

    CHECK(pvm_lvgroup("choir") == PvmOk);
    tell();

    await_word(friend, DONE);
    CHECK(pvm_joingroup("fixed") == PvmNotInGroup);
    send_word(friend, DONE);
    ask_driver(to, from);
    /* The messages that were blocked before. */
    await_word(caster, CAST);
    await_word(caster, PASSED);
    send_word(friend, DONE);
    pvm_recv(-1, 1000);
}

static void run_late(void)
{
    publish("late");
    await_word(-1, READY);
    CHECK(pvm_joingroup("crew") == 3);
    CHECK(pvm_barrier("crew", 3) == PvmOk);
    pvm_recv(-1, 1000);
}

/* On one host: this many messages to the caster, which receives none of them, are queued before those of the joiner. */
static void flood_caster(void)
{
    CHECK(pvm_joingroup("choir") == 0);
    publish("caster");
    joiner = look_up("joiner");
    friend = look_up("friend");
    /* The joiner stops this process as soon as it can, so the friend, which continues it, must be told first. */
    send_process(friend);
    send_process(joiner);
    pid_t other = await_process(joiner);
    told();
    cast();
    kill(other, SIGCONT);
    await_word(joiner, DONE);
    printf("all is known\n");
    pvm_exit();
}

static void flood_friend(void)
{
    publish("friend");
    caster = look_up("caster");
    joiner = look_up("joiner");
    pid_t casters = await_process(caster), joiners = await_process(joiner);
    await_word(joiner, TOLD);
    await_stop(joiners);
    send_word(caster, TOLD);
    kill(casters, SIGCONT);
    pvm_recv(-1, 1000);
}

static void flood_joiner(void)
{
    static char piece[PIECE];
    publish("joiner");
    caster = look_up("caster");
    friend = look_up("friend");
    send_process(caster);
    send_process(friend);
    pid_t pid = await_process(caster);
    kill(pid, SIGSTOP);
    await_stop(pid);
    pvm_initsend(PvmDataRaw);
    CHECK(pvm_pkbyte(piece, PIECE, 1) == PvmOk);
    for (int i = 0; i < PIECES; i++)
        CHECK(pvm_send(caster, FLOOD) == PvmOk);
    CHECK(pvm_joingroup("choir") == 1);
    tell();
    raise(SIGSTOP);
    await_word(caster, CAST);
    send_word(caster, DONE);
    pvm_recv(-1, 1000);
}

int main(int count, char **args)
{
    if (count < 3 || pvm_mytid() < 0)
        return EXIT_FAILURE;
    pvm_setopt(PvmAutoErr, 0);
    int flood = strcmp(args[2], "flood") == 0;
    if (strcmp(args[1], "caster") == 0)
        flood ? flood_caster() : run_caster();
    else if (strcmp(args[1], "friend") == 0)
        flood ? flood_friend() : run_friend();
    else if (strcmp(args[1], "late") == 0)
        run_late();
    else if (strcmp(args[1], "joiner") == 0 && (flood || count == 4))
        flood ? flood_joiner() : run_joiner(args[2], args[3]);
    else
        return EXIT_FAILURE;
    return EXIT_SUCCESS;
}
