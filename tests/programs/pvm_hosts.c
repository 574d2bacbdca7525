/*
 * PVM programs that are started by hand on the hosts h0 to h3 of a Regatta virtual machine. The one on h0 is first, and
 * ends with its host; the others stay, and one more is started. Arguments: the role of this program, and the pipe that
 * the driver reads.
 */
#include "pvm_words.h"

#include <string.h>
#include <sys/time.h>

enum { HELLO = 1, QUESTION, ANSWER, BORN, COME, WELCOME, THANKS, EXITED, HOST_GONE };

static const char *pipe_to_driver;

/* Sends a line to the driver. */
static void say(const char *word)
{
    FILE *pipe = fopen(pipe_to_driver, "w");
    CHECK(pipe);
    fprintf(pipe, "%s\n", word);
    fclose(pipe);
}

static int hosts(void)
{
    int count = -1, formats;
    struct pvmhostinfo *all;
    CHECK(pvm_config(&count, &formats, &all) == PvmOk);
    for (int i = 0; i < count; i++)
        printf("%s%s", all[i].hi_name, i + 1 < count ? " " : "\n");
    fflush(stdout);
    return count;
}

static long long micro(struct timeval time)
{
    return time.tv_sec * 1000000LL + time.tv_usec;
}

/*
 * All hosts have the same clock: the reported time must lie between request and answer, and delta must not exceed that
 * interval.
 */
static void ask_time(int tid)
{
    struct timeval before, there, delta, after;
    CHECK(gettimeofday(&before, NULL) == 0);
    CHECK(pvm_hostsync(pvm_tidtohost(tid), &there, &delta) == PvmOk);
    CHECK(gettimeofday(&after, NULL) == 0);
    CHECK(micro(before) <= micro(there) && micro(there) <= micro(after));
    CHECK(delta.tv_usec >= 0 && llabs(micro(delta)) <= micro(after) - micro(before));
}

static void stay(void)
{
    pvm_recv(-1, 1000);
}

static void first(void)
{
    printf("the first finds ");
    CHECK(hosts() == 4);
    publish("first");
    stay();
}

static void second(char *program)
{
    int first = look_up("first"), child;
    CHECK(pvm_notify(PvmTaskExit, EXITED, 1, &first) == PvmOk);
    publish("second");
    int third = await_word(-1, HELLO);
    ask_time(first);
    ask_time(third);
    say("the first host may go");
    await_word(-1, EXITED);
    printf("the second finds ");
    while (hosts() != 3)
        ;
    CHECK(pvm_hostsync(pvm_tidtohost(first), NULL, NULL) == PvmNoHost);
    ask_time(third);
    send_word(third, QUESTION);
    await_word(third, ANSWER);
    char *arguments[] = {"child", (char *)pipe_to_driver, NULL};
    CHECK(pvm_spawn(program, arguments, PvmTaskHost, "h3", 1, &child) == 1);
    CHECK(pvm_pstat(child) == PvmOk && pvm_tidtohost(child) != pvm_tidtohost(pvm_mytid()));
    await_word(child, BORN);
    say("one more may come");
    int late = await_word(-1, COME);
    CHECK(pvm_tidtohost(late) == pvm_tidtohost(child));
    send_word(late, WELCOME);
    await_word(late, THANKS);
    printf("the second has met all\n");
    fflush(stdout);
    pvm_halt();
    stay();
}

static void third(void)
{
    int second = look_up("second");
    send_word(second, HELLO);
    await_word(second, QUESTION);
    send_word(second, ANSWER);
    stay();
}

static void late(void)
{
    int second = look_up("second");
    send_word(second, COME);
    await_word(second, WELCOME);
    send_word(second, THANKS);
    stay();
}

int main(int count, char **args)
{
    if (count < 3 || pvm_mytid() < 0)
        return EXIT_FAILURE;
    pipe_to_driver = args[2];
    if (strcmp(args[1], "first") == 0)
        first();
    else if (strcmp(args[1], "second") == 0)
        second(args[0]);
    else if (strcmp(args[1], "third") == 0)
        third();
    else if (strcmp(args[1], "late") == 0)
        late();
    else if (pvm_parent() > 0) {
        send_word(pvm_parent(), BORN);
        stay();
    }
    return EXIT_SUCCESS;
}
