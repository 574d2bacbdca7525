/*
 * MPI as MPItrampoline accesses it: all functions and constants are looked up in the library that the first argument
 * names.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uintptr_t handle;
typedef struct {
    int internal[5], unused;
    int source, tag, error;
} __attribute__((aligned(8))) status;

static void *library;

static void *find(const char *name)
{
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    return found;
}

#define CALL(name, ...) ((int (*)())find("MPIABI_" #name))(__VA_ARGS__)
#define INT(name) (*(const int *)find("MPIABI_" #name))
#define HANDLE(name) (*(const handle *)find("MPIABI_" #name))
#define CHECK(condition)                                              \
    do {                                                              \
        if (!(condition)) {                                           \
            fprintf(stderr, "%d: not %s\n", __LINE__, #condition);    \
            exit(1);                                                  \
        }                                                             \
    } while (0)

static int freed;

static int query(void *state, status *what)
{
    CALL(Status_set_elements, what, HANDLE(BYTE), 3);
    CALL(Status_set_cancelled, what, 0);
    what->source = *(int *)state;
    what->tag = 7;
    return 0;
}

static int let_go(void *state)
{
    freed = *(int *)state;
    return 0;
}

static int cancel(void *state, int complete)
{
    (void)state, (void)complete;
    return 0;
}

int main(int argc, char **argv)
{
    enum { REQUEST_COUNT = 40 };
    int rank, size, sum, own, count, done, received[REQUEST_COUNT], indices[REQUEST_COUNT], left, twice = 22;
    handle world, integer, requests[REQUEST_COUNT], request;
    status one, several[REQUEST_COUNT];

    CHECK(argc == 2);
    library = dlopen(argv[1], RTLD_LAZY | RTLD_LOCAL | RTLD_DEEPBIND);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    CHECK(*(const int *)find("mpiabi_version_major") == 2);
    CHECK(*(const int *)find("mpiabi_version_minor") >= 9);
    find("mpiwrapper_version_major"), find("mpiwrapper_version_minor"), find("mpiwrapper_version_patch");
    ((void (*)(void))find("mpiwrapper_export_fortran_constants_"))();
    find("MPIABI_F_STATUS_IGNORE"), find("MPIABI_F_STATUSES_IGNORE"), find("MPIXABI_Query_cuda_support");
    world = HANDLE(COMM_WORLD), integer = HANDLE(INT);

    CHECK(CALL(Init, NULL, NULL) == INT(SUCCESS));
    CALL(Comm_rank, world, &rank);
    CALL(Comm_size, world, &size);
    CHECK(size == 2);
    own = rank + 1;
    CALL(Allreduce, &own, &sum, 1, integer, HANDLE(SUM), world);
    CHECK(sum == 3);

    if (rank == 0) {
        for (int i = 0; i < REQUEST_COUNT; i++)
            CALL(Send, &i, 1, integer, 1, i, world);
        CALL(Send, &own, 1, integer, 1, 100, world);
    } else {
        for (int i = 0; i < REQUEST_COUNT; i++) {
            CALL(Irecv, &received[i], 1, integer, INT(ANY_SOURCE), i, world, &requests[i]);
            memset(&several[i], 0x55, sizeof several[i]);
        }
        for (left = REQUEST_COUNT; left > 0; left -= count) {
            CALL(Waitsome, REQUEST_COUNT, requests, &count, indices, several);
            for (int i = 0; i < count; i++) {
                int elements = 0;
                CHECK(several[i].source == 0 && several[i].tag == indices[i]);
                CALL(Get_count, &several[i], integer, &elements);
                CHECK(elements == 1 && received[indices[i]] == indices[i]);
            }
        }
        memset(&one, 0x55, sizeof one);
        CALL(Recv, &own, 1, integer, 0, INT(ANY_TAG), world, &one);
        CHECK(one.source == 0 && one.tag == 100);
        /* MPI_Recv does not write MPI_ERROR. */
        CHECK(one.error == 0x55555555);
    }
    CALL(Grequest_start, query, let_go, cancel, &twice, &request);
    CALL(Test, &request, &done, HANDLE(STATUS_IGNORE));
    CHECK(!done);
    CALL(Grequest_complete, request);
    CALL(Wait, &request, &one);
    CALL(Get_count, &one, HANDLE(BYTE), &count);
    CHECK(count == 3 && one.source == 22 && one.tag == 7 && freed == 22);
    CHECK(request == HANDLE(REQUEST_NULL));

    /* The error code is the value of the constant. */
    CALL(Comm_set_errhandler, world, HANDLE(ERRORS_RETURN));
    int code, class;
    code = CALL(Send, &own, 1, integer, 99, 0, world);
    CALL(Error_class, code, &class);
    CHECK(class == INT(ERR_RANK));
    CHECK(CALL(Finalize) == INT(SUCCESS));
    return 0;
}
