/* Hosts and mailboxes. */
#include <stdlib.h>

#include <pvm3.h>

#include "text.h"

void pvmfhalt_(int *info) { *info = pvm_halt(); }

/* *info: the tid of the added host, or an error. */
void pvmfaddhost_(char *host, int *info, int length)
{
    struct text name;
    char *names[1] = {name.c};
    int result = 0;
    int code = to_c(&name, host, length);

    if (!code)
        code = pvm_addhosts(names, 1, &result);
    *info = code < 0 ? code : result;
}

void pvmfdelhost_(char *host, int *info, int length)
{
    struct text name;
    char *names[1] = {name.c};
    int result = 0;
    int code = to_c(&name, host, length);

    if (!code)
        code = pvm_delhosts(names, 1, &result);
    *info = code < 0 ? code : result;
}

void pvmfmstat_(char *host, int *status, int length)
{
    struct text name;
    int code = to_c(&name, host, length);

    *status = code ? code : pvm_mstat(name.c);
}

void pvmfarchcode_(char *arch, int *code, int length)
{
    struct text name;
    int failed = to_c(&name, arch, length);

    *code = failed ? failed : pvm_archcode(name.c);
}

/* Returns one host per call, in order, until all have been returned; *nhost == -1 starts over. */
void pvmfconfig_(int *nhost, int *narch, int *host, char *name, char *arch, int *speed, int *info,
                 int name_length, int arch_length)
{
    static struct pvmhostinfo *hosts;
    static int count, kinds, next;

    if (!count || *nhost == -1) {
        int code = pvm_config(&count, &kinds, &hosts);

        next = 0;
        if (code < 0) {
            count = 0;
            *info = code;
            return;
        }
    }
    *nhost = count;
    *narch = kinds;
    if (next < count) {
        *host = hosts[next].hi_tid;
        to_fortran(name, name_length, hosts[next].hi_name);
        to_fortran(arch, arch_length, hosts[next].hi_arch);
        *speed = hosts[next].hi_speed;
        next++;
    }
    *info = 1;
    if (next >= count)
        count = 0;
}

void pvmfhostsync_(int *host, int *seconds, int *microseconds, int *off_seconds, int *off_microseconds, int *info)
{
    struct timeval clock = {0, 0}, off = {0, 0};

    *info = pvm_hostsync(*host, &clock, &off);
    *seconds = (int)clock.tv_sec;
    *microseconds = (int)clock.tv_usec;
    *off_seconds = (int)off.tv_sec;
    *off_microseconds = (int)off.tv_usec;
}

/* The arguments are passed as one text, separated by blanks. */
void pvmfstartpvmd_(char *arguments, int *block, int *info, int length)
{
    enum { MAX_WORDS = MAX_TEXT_BYTES / 2 + 1 };
    struct text text;
    char *words[MAX_WORDS + 1];
    int count = 0;

    *info = to_c(&text, arguments, length);
    if (*info)
        return;
    for (char *word = strtok(text.c, " \t"); word && count < MAX_WORDS; word = strtok(NULL, " \t"))
        words[count++] = word;
    words[count] = NULL;
    *info = pvm_start_pvmd(count, words, *block);
}

void pvmfputinfo_(char *name, int *bufid, int *flags, int *index, int length)
{
    struct text text;
    int code = to_c(&text, name, length);

    *index = code ? code : pvm_putinfo(text.c, *bufid, *flags);
}

void pvmfrecvinfo_(char *name, int *index, int *flags, int *bufid, int length)
{
    struct text text;
    int code = to_c(&text, name, length);

    *bufid = code ? code : pvm_recvinfo(text.c, *index, *flags);
}

void pvmfdelinfo_(char *name, int *index, int *flags, int *info, int length)
{
    struct text text;
    int code = to_c(&text, name, length);

    *info = code ? code : pvm_delinfo(text.c, *index, *flags);
}

/* Returns one name with all its entries per call, until all have been returned; *nclasses == -1 starts over. */
void pvmfgetmboxinfo_(char *pattern, char *name, int *nclasses, int *nentries, int *indices, int *owners, int *flags,
                      int *info, int pattern_length, int name_length)
{
    static struct pvmmboxinfo *boxes;
    static int count, next;

    if (!count || *nclasses == -1) {
        struct text text;
        int code = to_c(&text, pattern, pattern_length);

        count = next = 0;
        if (!code)
            code = pvm_getmboxinfo(text.c, &count, &boxes);
        if (code >= 0 && !count)
            code = PvmNotFound;
        if (code < 0) {
            count = 0;
            *info = code;
            return;
        }
    }
    *nclasses = count;
    to_fortran(name, name_length, boxes[next].mi_name);
    *nentries = boxes[next].mi_nentries;
    for (int at = 0; at < boxes[next].mi_nentries; at++) {
        indices[at] = boxes[next].mi_indices[at];
        owners[at] = boxes[next].mi_owners[at];
        flags[at] = boxes[next].mi_flags[at];
    }
    *info = 1;
    if (++next >= count)
        count = 0;
}
