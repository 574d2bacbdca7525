/* Groups and their collectives. */
#include <pvm3.h>

#include "text.h"

typedef void combine(int *type, void *inout, void *in, int *count, int *info);

void pvmfjoingroup_(char *group, int *instance, int length)
{
    struct text name;
    int code = to_c(&name, group, length);

    *instance = code ? code : pvm_joingroup(name.c);
}

void pvmflvgroup_(char *group, int *info, int length)
{
    struct text name;
    int code = to_c(&name, group, length);

    *info = code ? code : pvm_lvgroup(name.c);
}

void pvmfgsize_(char *group, int *size, int length)
{
    struct text name;
    int code = to_c(&name, group, length);

    *size = code ? code : pvm_gsize(name.c);
}

void pvmfgettid_(char *group, int *instance, int *tid, int length)
{
    struct text name;
    int code = to_c(&name, group, length);

    *tid = code ? code : pvm_gettid(name.c, *instance);
}

void pvmfgetinst_(char *group, int *tid, int *instance, int length)
{
    struct text name;
    int code = to_c(&name, group, length);

    *instance = code ? code : pvm_getinst(name.c, *tid);
}

void pvmfbarrier_(char *group, int *count, int *info, int length)
{
    struct text name;
    int code = to_c(&name, group, length);

    *info = code ? code : pvm_barrier(name.c, *count);
}

void pvmfbcast_(char *group, int *tag, int *info, int length)
{
    struct text name;
    int code = to_c(&name, group, length);

    *info = code ? code : pvm_bcast(name.c, *tag);
}

void pvmffreezegroup_(char *group, int *size, int *info, int length)
{
    struct text name;
    int code = to_c(&name, group, length);

    *info = code ? code : pvm_freezegroup(name.c, *size);
}

void pvmfreduce_(combine *combine, void *data, int *count, int *type, int *tag, char *group, int *root, int *info,
                 int length)
{
    struct text name;
    int code = to_c(&name, group, length);

    *info = code ? code : pvm_reduce(combine, data, *count, *type, *tag, name.c, *root);
}

void pvmfgather_(void *result, void *data, int *count, int *type, int *tag, char *group, int *root, int *info,
                 int length)
{
    struct text name;
    int code = to_c(&name, group, length);

    *info = code ? code : pvm_gather(result, data, *count, *type, *tag, name.c, *root);
}

void pvmfscatter_(void *result, void *data, int *count, int *type, int *tag, char *group, int *root, int *info,
                  int length)
{
    struct text name;
    int code = to_c(&name, group, length);

    *info = code ? code : pvm_scatter(result, data, *count, *type, *tag, name.c, *root);
}

/* The names that the manual uses. */
void pvmfjoingrp_(char *group, int *instance, int length) { pvmfjoingroup_(group, instance, length); }
void pvmflvgrp_(char *group, int *info, int length) { pvmflvgroup_(group, info, length); }
void pvmffrzgrp_(char *group, int *size, int *info, int length) { pvmffreezegroup_(group, size, info, length); }

/* Operators for pvmfreduce. */
void pvmmax_(int *type, void *inout, void *in, int *count, int *info) { PvmMax(type, inout, in, count, info); }
void pvmmin_(int *type, void *inout, void *in, int *count, int *info) { PvmMin(type, inout, in, count, info); }
void pvmsum_(int *type, void *inout, void *in, int *count, int *info) { PvmSum(type, inout, in, count, info); }

void pvmproduct_(int *type, void *inout, void *in, int *count, int *info)
{
    PvmProduct(type, inout, in, count, info);
}
