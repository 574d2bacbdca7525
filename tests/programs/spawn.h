/*
 * Common parts of programs that start others: tasks of the same program with another scenario as their role.
 */
#ifndef SPAWN_H
#define SPAWN_H

#include "check.h"

#include <sys/stat.h>

enum { MAX_MEMBERS = 256, GREETING = 5, EVENT = 6, END = 7 };

static inline const char *own_path(void)
{
    static char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    CHECK(n > 0);
    self[n] = '\0';
    return self;
}

/* Starts `count` tasks of this program in a role. Stores their ids in `tids`. */
static inline void start(const char *role, const char *more, int count, int *tids)
{
    char *argv[] = {(char *)role, (char *)more, NULL};
    int started = -1;
    rg_spawn_options options = {.elsewhere = getenv("ELSEWHERE") != NULL};
    OK(rg_spawn(own_path(), argv, &options, count, tids, &started));
    CHECK(started == count);
}

static inline rg_event next_event(void)
{
    rg_event event;
    rg_status status;
    OK(rg_recv(&event, sizeof event, RG_ANY, EVENT, RG_ALL, &status));
    CHECK(status.source == rg_tid() && status.length == sizeof event);
    CHECK(event.mark == RG_EVENT_MARK);
    return event;
}

/* Waits for the order to end. */
static inline void await_end(void)
{
    OK(rg_recv(NULL, 0, rg_parent(), END, RG_ALL, NULL));
}

static inline void end(int count, const int *tids)
{
    for (int i = 0; i < count; i++)
        OK(rg_send(NULL, 0, tids[i], END, RG_ALL));
}

/* Returns the size of the job's segment in memory, in bytes. */
static inline long segment_bytes(void)
{
    for (int fd = 3; fd < 256; fd++) {
        char path[64], name[64] = "";
        struct stat facts;
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (readlink(path, name, sizeof name - 1) > 0 && strstr(name, "regatta-job") != NULL) {
            CHECK(fstat(fd, &facts) == 0);
            return (long)facts.st_blocks * 512;
        }
    }
    FAILED("no descriptor of the segment");
}

#endif
