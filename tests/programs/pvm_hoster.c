/*
 * Adds hosts that another task starts in the daemon's place: a hoster. The hoster runs the command that it receives in
 * a shell on its own host as if that were the new host, or through the program named by REACH, or sends a wrong answer.
 * The adding task prints what both see, starts a task on the new host, and deletes the hosts, or has them lost by the
 * command LOSE.
 *
 * Arguments: the name of a host, and `silent` for a hoster that does not answer. Other tasks of this program have their
 * role as argument.
 */
#define _DEFAULT_SOURCE
#include <pvm3.h>
#include <pvmproto.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READY = 1, MANNER, SEEN, BORN, GONE };

/*
 * What the hoster does with a request: starts the hosts, sends an answer, answers about a host that was not requested,
 * answers with another request number first, does not answer, or ends without an answer. Or it registers again, and
 * then is no hoster any more.
 */
enum { START, ANSWER, OTHER_HOST, OTHER_NUMBER, SILENCE, END, AGAIN };

#define CHECK(condition) ((condition) ? (void)0 : failed(__LINE__, #condition))

static void failed(int line, const char *what)
{
    printf("FAILED in line %d: %s\n", line, what);
    fflush(stdout);
    exit(EXIT_FAILURE);
}

/* Returns the first line that the command prints on a non-interactive host, as PVM's own hoster reads it. */
static void run(const char *host, const char *command, const char *machine, char *line, int room)
{
    const char *reach = getenv("REACH");
    int out[2], length = 0;
    CHECK(pipe(out) == 0);
    int pid = fork();
    if (pid == 0) {
        dup2(out[1], 1);
        close(out[0]);
        close(out[1]);
        if (*machine)
            setenv("PVM_VMID", machine, 1);
        setenv("PVM_ROOT", "/usr/lib/pvm3", 0);
        if (reach)
            execl(reach, reach, host, "sh", "-c", command, (char *)NULL);
        else
            execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    FILE *from = fdopen(out[0], "r");
    strcpy(line, "PvmCantStart");
    while (fgets(line, room, from) && strncmp(line, "ddpro", 5))
        strcpy(line, "PvmCantStart");
    length = strcspn(line, "\n");
    line[length] = 0;
    fclose(from);
    waitpid(pid, NULL, 0);
}

/* Reports a message that the hoster has received to its parent, as text. */
static void tell(int to, const char *text)
{
    pvm_initsend(PvmDataDefault);
    pvm_pkstr((char *)text);
    CHECK(pvm_send(to, SEEN) == PvmOk);
}

/* Sends an answer about these hosts with this request number. */
static int answer(int to, int number, int count, int *tids, char (*lines)[256])
{
    struct pvmminfo info;
    pvm_packf("%+ %d", PvmDataDefault, count);
    for (int i = 0; i < count; i++)
        pvm_packf("%d %s", tids[i], lines[i]);
    pvm_getminfo(pvm_getsbuf(), &info);
    info.wid = number;
    pvm_setminfo(pvm_getsbuf(), &info);
    return pvm_send(to, SM_STHOSTACK);
}

/* Answers a request in the given manner. Returns 0 if the hoster is to end. */
static int handle(int parent, int manner, const char *word)
{
    static char options[64], login[256], command[512], other[512], machine[256], lines[2][256], text[1024];
    struct pvmminfo info;
    int buffer = pvm_recv(-1, SM_STHOST), from, count = 0, tids[2];
    CHECK(buffer > 0);
    pvm_bufinfo(buffer, NULL, NULL, &from);
    pvm_getminfo(buffer, &info);
    CHECK(pvm_upkint(&count, 1, 1) == 0 && count >= 1 && count <= 2);
    sprintf(text, "hosts wanted by a daemon: %d, %d, a number to answer: %d, in %x as %x", from < 0, count, info.wid != 0,
            info.ctx, info.enc);
    tell(parent, text);
    if (manner == SILENCE || manner == END)
        return manner == SILENCE;
    for (int i = 0; i < count; i++) {
        CHECK(pvm_unpackf("%d %s %s %s %s %s", &tids[i], options, login, command, other, machine) == 0);
        int new = (tids[i] & ~0x3ffc0000) == 0 && tids[i] != pvm_tidtohost(pvm_mytid());
        sprintf(text, "a host's number: %d, so=%s, %s, a command: %d, in machine %s", new, options, login, *command != 0,
                machine);
        tell(parent, text);
        strcpy(lines[i], word);
        if (manner == START)
            run(login, command, machine, lines[i], sizeof lines[i]);
    }
    if (manner == OTHER_HOST)
        tids[count - 1] += 1 << 18;
    if (manner == OTHER_NUMBER)
        answer(from, info.wid + 7, count, tids, lines);
    sprintf(text, "told: %d", answer(from, info.wid, count, tids, lines));
    tell(parent, text);
    return 1;
}

static int hoster(int parent)
{
    int manner = AGAIN, registered;
    static char word[256];
    CHECK(pvm_mytid() > 0);
    pvm_setopt(PvmResvTids, 1);
    do {
        if (manner == AGAIN) {
            registered = pvm_reg_hoster();
            pvm_initsend(PvmDataDefault);
            pvm_pkint(&registered, 1, 1);
            pvm_send(parent, READY);
            if (registered < 0)
                return EXIT_FAILURE;
        }
        CHECK(pvm_recv(parent, MANNER) > 0);
        pvm_upkint(&manner, 1, 1);
        pvm_upkstr(word);
    } while (manner == AGAIN || handle(parent, manner, word));
    pvm_exit();
    return EXIT_SUCCESS;
}

static int started;

/* Starts a hoster as a separate task. Returns the result of its registration. */
static int start(const char *program, int *tid)
{
    char me[32];
    int registered;
    sprintf(me, "%d", pvm_mytid());
    fflush(stdout);
    started = fork();
    if (started == 0) {
        execl(program, program, "hoster", me, (char *)NULL);
        _exit(127);
    }
    int buffer = pvm_recv(-1, READY);
    CHECK(buffer > 0);
    pvm_bufinfo(buffer, NULL, NULL, tid);
    pvm_upkint(&registered, 1, 1);
    return registered;
}

/* Tells the hoster how to handle the next request. */
static void have(int hoster, int manner, const char *word)
{
    pvm_initsend(PvmDataDefault);
    pvm_pkint(&manner, 1, 1);
    pvm_pkstr((char *)word);
    CHECK(pvm_send(hoster, MANNER) == PvmOk);
}

/* Has the hoster register again. */
static int again(int hoster)
{
    int registered;
    have(hoster, AGAIN, "");
    CHECK(pvm_recv(hoster, READY) > 0);
    pvm_upkint(&registered, 1, 1);
    return registered;
}

/* Adds hosts while the hoster acts in this manner. `said` is the number of messages that it reports. */
static void add(const char *what, int hoster, int manner, const char *word, char **hosts, int count, int said)
{
    int infos[2] = {0, 0};
    char text[1024];
    have(hoster, manner, word);
    int added;
    /* PVM's daemon adds no hosts while it is still adding those of its host file. */
    do
        added = pvm_addhosts(hosts, count, infos);
    while (added == PvmAlready);
    for (int i = 0; i < said; i++) {
        CHECK(pvm_recv(hoster, SEEN) > 0);
        pvm_upkstr(text);
        printf("  %s\n", text);
    }
    printf("%s: %d", what, added);
    for (int i = 0; i < count; i++)
        printf(" %d", infos[i] < 0 ? infos[i] : 0);
    printf("\n");
    fflush(stdout);
}

static int hosts(void)
{
    int count = -1;
    CHECK(pvm_config(&count, NULL, NULL) == PvmOk);
    return count;
}

/* Returns the flags of a task as pvm_tasks reports them. */
static int flags(int tid)
{
    struct pvmtaskinfo *all;
    int count = 0;
    pvm_tasks(tid, &count, &all);
    return count == 1 ? all[0].ti_flag & ~2 : -1;
}

/* Starts a task on the added host, then removes that host. */
static void use(const char *name)
{
    int tid = 0, word = 0, got, me = pvm_mytid(), daemon;
    char *arguments[] = {"task", NULL}, *names[] = {(char *)name};
    printf("hosts: %d\n", hosts());
    printf("spawned there: %d\n", pvm_spawn("pvm_hoster", arguments, PvmTaskHost, (char *)name, 1, &tid));
    CHECK(pvm_recv(tid, BORN) > 0);
    pvm_upkint(&word, 1, 1);
    daemon = pvm_tidtohost(tid);
    printf("from there: %d, on another host: %d\n", word, daemon != pvm_tidtohost(me));
    CHECK(pvm_notify(PvmHostDelete, GONE, 1, &daemon) == PvmOk);
    const char *lose = getenv("LOSE");
    if (lose)
        CHECK(system(lose) == 0);
    else
        printf("deleted: %d", pvm_delhosts(names, 1, &got));
    CHECK(pvm_recv(-1, GONE) > 0);
    while (hosts() != 1)
        ;
    printf(" %d\n", lose ? PvmHostFail : got);
    fflush(stdout);
}

static int task(void)
{
    int word = 41;
    pvm_initsend(PvmDataDefault);
    pvm_pkint(&word, 1, 1);
    pvm_send(pvm_parent(), BORN);
    pvm_recv(-1, 99);
    return EXIT_SUCCESS;
}

/* Adds a host. The request is answered only after the hoster has ended. */
static int ask(const char *host)
{
    char *names[] = {(char *)host};
    int info = 0;
    printf("asked in vain: %d\n", pvm_addhosts(names, 1, &info));
    pvm_exit();
    return EXIT_SUCCESS;
}

/* While the hoster leaves one task's request unanswered, another task's request is answered. */
static void silent(char **argv, int hoster)
{
    int hoster_process = started, status, asker;
    char text[1024], *other[] = {"127.0.0.4"};
    have(hoster, SILENCE, "");
    fflush(stdout);
    asker = fork();
    if (asker == 0) {
        execl(argv[0], argv[0], "ask", argv[1], (char *)NULL);
        _exit(127);
    }
    CHECK(pvm_recv(hoster, SEEN) > 0);
    pvm_upkstr(text);
    printf("  %s\n", text);
    add("another one", hoster, ANSWER, "PvmDupHost", other, 1, 3);
    kill(hoster_process, SIGKILL);
    CHECK(waitpid(hoster_process, &status, 0) == hoster_process);
    CHECK(waitpid(asker, &status, 0) == asker && WIFEXITED(status));
    pvm_exit();
}

int main(int argc, char **argv)
{
    int first, second, status;
    char line[256];
    CHECK(argc > 1);
    if (strcmp(argv[1], "hoster") == 0)
        return hoster(atoi(argv[2]));
    if (strcmp(argv[1], "task") == 0)
        return task();
    if (strcmp(argv[1], "ask") == 0)
        return ask(argv[2]);
    CHECK(pvm_mytid() > 0);
    sprintf(line, "%s so=pw lo=joe", argv[1]);
    char *plain[] = {argv[1]}, *two[] = {line, "127.0.0.4"};
    printf("registered: %d\n", start(argv[0], &first));
    if (argc > 2) {
        silent(argv, first);
        return EXIT_SUCCESS;
    }
    printf("flags: %x\n", flags(first));
    printf("registered: %d\n", start(argv[0], &second));
    CHECK(waitpid(started, &status, 0) == started);
    printf("registered again: %d\n", again(first));
    printf("flags: %x\n", flags(first));
    printf("and again: %d\n", again(first));
    printf("flags: %x\n", flags(first));
    add("not started", first, ANSWER, "PvmCantStart", plain, 1, 3);
    add("there already", first, ANSWER, "PvmDupHost", two, 2, 4);
    add("a daemon's error", first, ANSWER, "PvmDSysErr", plain, 1, 3);
    add("nonsense", first, ANSWER, "Good morning", plain, 1, 3);
    add("half a line", first, ANSWER, "ddpro<2316> arch<", plain, 1, 3);
    add("of another host", first, OTHER_HOST, "PvmCantStart", two, 2, 4);
    add("under another number first", first, OTHER_NUMBER, "PvmDupHost", plain, 1, 3);
    add("started", first, START, "", plain, 1, 3);
    use(argv[1]);
    add("started again", first, START, "", plain, 1, 3);
    use(argv[1]);
    add("at its end", first, END, "", plain, 1, 1);
    printf("registered: %d\n", start(argv[0], &second));
    kill(started, SIGKILL);
    CHECK(waitpid(started, &status, 0) == started);
    pvm_exit();
    return EXIT_SUCCESS;
}
