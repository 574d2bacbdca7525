/* Files that NX nodes share, in each I/O mode. The last argument is a folder for them. */
#include "nx_check.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { LINE = 8, ROUNDS = 10 };

static char path[4096];

static void begin_in(const char *name)
{
    begin();
    CHECK(arg_count == 1);
    snprintf(path, sizeof path, "%s/%s-%d", args[0], name, size);
}

static int open_all(int mode)
{
    int fd = gopen(path, O_RDWR | O_CREAT | O_TRUNC, mode, 0600);
    CHECK(fd >= 0 && iomode(fd) == mode && _iomode(fd) == mode);
    return fd;
}

static long size_of(int fd)
{
    struct stat status;
    CHECK(fstat(fd, &status) == 0);
    return status.st_size;
}

static esize_t at(long offset)
{
    esize_t value = {offset, 0};
    return value;
}

static long number(esize_t value)
{
    return value.shigh << 32 | value.slow;
}

/* Checks that the file has this content for all nodes. */
static void holds(int fd, const char *expected, long length)
{
    char *content = need((size_t)length + 1);
    gsync();
    CHECK(size_of(fd) == length);
    CHECK(pread(fd, content, (size_t)length + 1, 0) == length);
    CHECK(memcmp(content, expected, (size_t)length) == 0);
    free(content);
    gsync();
}

static void own_positions(void)
{
    begin_in("unix");
    int fd = open_all(M_UNIX);
    char mine[LINE], got[LINE] = "";
    snprintf(mine, sizeof mine, "node %d\n", me);
    CHECK(number(eseek(fd, at((long)me * 7), SEEK_SET)) == (long)me * 7);
    cwrite(fd, mine, 7);
    holds(fd, "node 0\nnode 1\nnode 2\n", 21);
    CHECK(number(_eseek(fd, at(-7), SEEK_CUR)) == (long)me * 7);
    CHECK(_cread(fd, got, 7) == 7 && strcmp(got, mine) == 0);
    CHECK(iseof(fd) == (me == size - 1));
    CHECK(number(eseek(fd, at(0), SEEK_END)) == 21 && _iseof(fd) == 1);
    GIVES(_cread(fd, got, 1), ERDEOF);
    CHECK(_cread(fd, got, 0) == 0);
    gsync();
    /* lsize extends a file, and never shortens it. */
    if (me == 0) {
        CHECK(lsize(fd, 30, SIZE_SET) == 30 && _lsize(fd, 5, SIZE_SET) == 30);
        CHECK(lsize(fd, 4, SIZE_CUR) == 30 && lsize(fd, 10, SIZE_CUR) == 31);
        CHECK(number(esize(fd, at(9), SIZE_END)) == 40 && number(_esize(fd, at(0), SIZE_END)) == 40);
        GIVES(_lsize(fd, 0, 9), EQPARAM);
        errno = 0;
        CHECK(_esize(fd, at(0), 9).slow == number(at(0xffffffffL)) && errno == EQPARAM);
        CHECK(size_of(fd) == 40);
    }
    close(fd);
    gsync();
}

/* One shared position, in the order of the nodes, with different lengths. */
static void in_order(void)
{
    begin_in("sync");
    int fd = open_all(M_SYNC);
    const char *words[] = {"a", "bb", "ccc"};
    char got[LINE] = "";
    cwrite(fd, words[me], (unsigned)me + 1);
    cwrite(fd, words[me], me == 1 ? 0 : 1);
    holds(fd, "abbcccac", 8);
    eseek(fd, at(0), SEEK_SET);
    cread(fd, got, (unsigned)me + 1);
    CHECK(strcmp(got, words[me]) == 0);
    CHECK(lseek(fd, 0, SEEK_CUR) == 6);
    close(fd);
}

static void records(void)
{
    begin_in("record");
    int fd = open_all(M_RECORD);
    char mine[LINE], got[LINE] = "";
    for (int round = 0; round < 2; round++) {
        snprintf(mine, sizeof mine, "%d%d.", round, me);
        cwrite(fd, mine, 3);
    }
    holds(fd, "00.01.02.10.11.12.", 18);
    eseek(fd, at(9), SEEK_SET);
    cread(fd, got, 3);
    CHECK(strcmp(got, mine) == 0);
    close(fd);
}

/* All nodes make the same call, which is carried out once. */
static void for_all(void)
{
    begin_in("global");
    int fd = open_all(M_GLOBAL);
    char got[LINE] = "";
    cwrite(fd, "same", 4);
    cwrite(fd, "thing", 5);
    holds(fd, "samething", 9);
    eseek(fd, at(4), SEEK_SET);
    CHECK(_cread(fd, got, LINE) == 5 && strcmp(got, "thing") == 0);
    CHECK(iseof(fd) == 1);
    GIVES(_cread(fd, got, 1), ERDEOF);
    /* Back to separate positions. */
    setiomode(fd, M_UNIX);
    CHECK(iomode(fd) == M_UNIX && lseek(fd, 0, SEEK_CUR) == 9);
    close(fd);
    gsync();
}

/* One shared position in the order of arrival: nothing is overwritten, and no line is split. */
static void a_log(void)
{
    begin_in("log");
    int fd = open_all(M_LOG);
    char line[LINE], *content = need((size_t)size * ROUNDS * LINE);
    int seen[8] = {0};
    long length = (long)size * ROUNDS * LINE;
    for (int i = 0; i < ROUNDS; i++) {
        snprintf(line, sizeof line, "%03d,%02d", me, i);
        line[LINE - 1] = '\n';
        cwrite(fd, line, LINE);
    }
    gsync();
    CHECK(size_of(fd) == length && iseof(fd) == 1);
    CHECK(pread(fd, content, (size_t)length, 0) == length);
    for (long at_line = 0; at_line < length; at_line += LINE) {
        int node = atoi(content + at_line);
        CHECK(node < size && atoi(content + at_line + 4) == seen[node]++ && content[at_line + LINE - 1] == '\n');
    }
    /* Afterwards every node has the position that they shared. */
    setiomode(fd, M_ASYNC);
    CHECK(lseek(fd, 0, SEEK_CUR) == length);
    close(fd);
    free(content);
    gsync();
}

static void begun(void)
{
    begin_in("begun");
    int fd = open_all(M_UNIX);
    char got[LINE] = "";
    eseek(fd, at((long)me * 4), SEEK_SET);
    long id = iwrite(fd, "four", 4), other;
    iowait(id);
    GIVES(_iowait(id), EQMID);
    GIVES(_iodone(id), EQMID);
    eseek(fd, at((long)me * 4), SEEK_SET);
    id = _iread(fd, got, 4);
    while (iodone(id) == 0)
        flick();
    CHECK(strcmp(got, "four") == 0);
    other = _iwrite(fd, "four", 0);
    CHECK(_iodone(other) == 1);
    /* An error is reported when the call completes. */
    id = iread(fd + 100, got, 4);
    GIVES(_iowait(id), EBADF);
    gsync();
    id = iread(fd, got, 4);
    CHECK(_iowait(id) == 0 || me == size - 1);
    gsync();
    close(fd);
}

/* Scattered memory becomes one contiguous part of the file, in any mode: each node writes "<", its number and ">". */
static void apart(void)
{
    begin_in("apart");
    for (int mode = M_UNIX; mode <= M_ASYNC; mode++) {
        int fd = open_all(mode);
        char open = '<', mine[2] = {'0', 0}, close_it = '>', expected[3 * 64], got[3] = "";
        mine[0] = (char)('0' + (mode == M_GLOBAL ? 7 : me));
        struct iovec parts[] = {{&open, 1}, {NULL, 0}, {mine, 1}, {&close_it, 1}};
        int writers = mode == M_GLOBAL ? 1 : size;
        for (int i = 0; i < writers; i++)
            snprintf(expected + 3 * i, 4, "<%c>", mode == M_GLOBAL ? '7' : '0' + i);
        if (mode == M_UNIX || mode == M_ASYNC)
            eseek(fd, at(3L * me), SEEK_SET);
        if (mode == M_LOG && me > 0) /* in the order of the nodes here, too */
            crecv(1, got, 0);
        cwritev(fd, parts, 4);
        if (mode == M_LOG && me + 1 < size)
            csend(1, got, 0, me + 1, 0);
        holds(fd, expected, 3L * writers);
        setiomode(fd, M_UNIX);
        eseek(fd, at(3L * (mode == M_GLOBAL ? 0 : me)), SEEK_SET);
        gsync();
        struct iovec places[] = {{got + 2, 1}, {got, 2}};
        CHECK(_creadv(fd, places, 2) == 3);
        CHECK(got[2] == '<' && got[0] == mine[0] && got[1] == '>');
        long id = ireadv(fd, places, 2);
        CHECK(_iowait(id) == 0 || errno == ERDEOF);
        eseek(fd, at(3L * me), SEEK_SET);
        gsync();
        id = iwritev(fd, parts, 3);
        CHECK(_iodone(id) == 1);
        GIVES(_creadv(fd, places, -1), EQPARAM);
        GIVES(_cwritev(fd, NULL, 2), EQPARAM);
        struct iovec nowhere = {NULL, 4};
        GIVES(_cwritev(fd, &nowhere, 1), EQPBUF);
        CHECK(_cwritev(fd, NULL, 0) == 0);
        gsync();
        close(fd);
        gsync();
    }
}

/* The mode belongs to the file: another file with the same descriptor does not inherit it. */
static void closed(void)
{
    for (int mode = M_LOG; mode <= M_ASYNC; mode++) {
        begin_in("closed");
        int fd = open_all(mode);
        close(fd);
        snprintf(path + strlen(path), 20, "-own-%d", me);
        CHECK(open(path, O_RDWR | O_CREAT | O_TRUNC, 0600) == fd);
        CHECK(iomode(fd) == M_UNIX);
        cwrite(fd, "0123456789", 10);
        CHECK(size_of(fd) == 10);
        close(fd);
        gsync();
    }
}

static void wrong(void)
{
    begin_in("wrong");
    char byte = 0;
    int fd = open_all(M_UNIX);
    GIVES(_cwrite(fd + 100, &byte, 1), EBADF);
    GIVES(_cread(fd + 100, &byte, 1), EBADF);
    GIVES(_cwrite(fd, NULL, 1), EQPBUF);
    GIVES(_iomode(fd + 100), EBADF);
    GIVES(_iseof(fd + 100), EBADF);
    GIVES(_lsize(fd + 100, 1, SIZE_SET), EBADF);
    GIVES(_setiomode(fd, 9), EIMODE);
    GIVES(_setiomode(fd, me == 0 ? M_SYNC : M_GLOBAL), EMIXIO);
    CHECK(iomode(fd) == M_UNIX);
    lseek(fd, me, SEEK_SET);
    GIVES(_setiomode(fd, M_SYNC), ENFPS);
    if (me == 1)
        GIVES(_setiomode(fd + 100, M_ASYNC), EBADF);
    else
        CHECK(_setiomode(fd, M_ASYNC) == 0 && iomode(fd) == M_ASYNC);
    CHECK(_restrictvol(fd, 0, NULL) == 0 && restrictvol(fd, 0, NULL) == 0);
    close(fd);
    GIVES(_gopen(NULL, O_RDONLY, M_UNIX, 0), EQPARAM);
    snprintf(path, sizeof path, "%s/there/is/none", args[0]);
    GIVES(_gopen(path, O_RDONLY, M_UNIX, 0), ENOENT);
    snprintf(path, sizeof path, "%s/wrong-%d", args[0], size);
    GIVES(_gopen(path, O_RDONLY, 17, 0), EIMODE);
    gsync();
}

static void numbers(void)
{
    char text[32];
    esize_t big = stoe("12345678901234");
    CHECK(number(big) == 12345678901234 && big.slow <= 0xffffffffL && big.shigh > 0);
    CHECK(number(_stoe("-5")) == -5);
    etos(big, text);
    CHECK(strcmp(text, "12345678901234") == 0 && _etos(at(7), text) == 0 && strcmp(text, "7") == 0);
    CHECK(number(eadd(big, at(6))) == 12345678901240 && number(_eadd(big, at(1))) == 12345678901235);
    CHECK(number(esub(at(1), at(3))) == -2 && number(_esub(big, big)) == 0);
    CHECK(number(emul(big, 10)) == 123456789012340 && number(_emul(at(3), -2)) == -6);
    CHECK(ediv(big, 1000) == 12345678901 && _ediv(at(9), 2) == 4);
    CHECK(emod(big, 1000) == 234 && _emod(at(9), 2) == 1);
    CHECK(ecmp(big, at(3)) == 1 && ecmp(at(3), big) == -1 && _ecmp(big, big) == 0);
    GIVES(_ediv(big, 0), EQPARAM);
    GIVES(_emod(big, 0), EQPARAM);
    GIVES(_etos(big, NULL), EQPARAM);
    errno = 0;
    CHECK(_stoe("many").shigh == -1 && errno == EQPARAM);
}

int main(int argc, char **argv)
{
    const struct scenario scenarios[] = {
        {"unix", own_positions, true}, {"sync", in_order, true}, {"record", records, true},
        {"global", for_all, true},     {"log", a_log, true},     {"begun", begun, true},
        {"apart", apart, true},
        {"wrong", wrong, true},        {"numbers", numbers, true},
        {"closed", closed, true},      {NULL, NULL, false},
    };
    return check_main(argc, argv, scenarios);
}
