/* Adapter to MPI: Open MPI, MPICH, and whatever else has an mpicc. */
#include <mpi.h>

typedef MPI_Request env_request;

static int env_my_rank, env_my_size;
/* What MPI_Comm_spawn joins: the parent at one end, its children at the other. */
static MPI_Comm env_family = MPI_COMM_NULL;

/* MPI's default error handler ends the job with a sentence, so return codes need no check. */
static inline void env_init(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &env_my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &env_my_size);
}

static inline void env_finalize(void)
{
    if (env_family != MPI_COMM_NULL)
        MPI_Comm_disconnect(&env_family);
    MPI_Finalize();
}

static inline int env_rank(void)
{
    return env_my_rank;
}

static inline int env_size(void)
{
    return env_my_size;
}

static inline void env_version(char *text, size_t size)
{
    char whole[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(whole, &length);
    /* MPICH writes a paragraph: its first line is the version. */
    whole[strcspn(whole, "\n")] = 0;
    snprintf(text, size, "%.*s", (int)size - 1, whole);
}

static inline void env_path(char *text, size_t size)
{
    snprintf(text, size, "%s", "");
}

static inline void env_send(const void *buf, size_t bytes, int to, int tag)
{
    MPI_Send(buf, (int)bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD);
}

static inline void env_recv(void *buf, size_t bytes, int from, int tag)
{
    MPI_Recv(buf, (int)bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static inline env_request env_isend(const void *buf, size_t bytes, int to, int tag)
{
    env_request request;
    MPI_Isend(buf, (int)bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
    return request;
}

static inline env_request env_irecv(void *buf, size_t bytes, int from, int tag)
{
    env_request request;
    MPI_Irecv(buf, (int)bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, &request);
    return request;
}

static inline void env_waitall(int n, env_request *requests)
{
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
}

static inline void env_barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static inline void env_broadcast(void *buf, size_t bytes, int root)
{
    MPI_Bcast(buf, (int)bytes, MPI_BYTE, root, MPI_COMM_WORLD);
}

static inline void env_sum(const double *in, double *out, size_t count)
{
    MPI_Allreduce(in, out, (int)count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static inline void env_max(const double *in, double *out, size_t count)
{
    MPI_Allreduce(in, out, (int)count, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

static inline void env_concatenation(const void *in, size_t bytes, void *out)
{
    MPI_Allgather(in, (int)bytes, MPI_BYTE, out, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static inline void env_complete_exchange(const void *in, size_t bytes, void *out)
{
    MPI_Alltoall(in, (int)bytes, MPI_BYTE, out, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
}

/* MPI has no call that tells of the end of a task, so there is no ENV_WATCHES. */
#define ENV_SPAWNS
enum { TAG_ANSWER = 1, TAG_ORDER = 2 };

static inline void env_join(int *argc, char ***argv)
{
    env_init(argc, argv);
    MPI_Comm_get_parent(&env_family);
}

static inline void env_spawn(int count, char *argument)
{
    char path[4096], *arguments[] = {argument, NULL};
    env_program(path, sizeof path);
    if (env_family != MPI_COMM_NULL)
        env_fail("MPI_Comm_spawn", "this program starts tasks only once");
    MPI_Comm_spawn(path, arguments, count, MPI_INFO_NULL, 0, MPI_COMM_SELF, &env_family, MPI_ERRCODES_IGNORE);
}

static inline void env_hear(void *buf, size_t bytes, int child)
{
    MPI_Recv(buf, (int)bytes, MPI_BYTE, child, TAG_ANSWER, env_family, MPI_STATUS_IGNORE);
}

static inline void env_answer(const void *buf, size_t bytes)
{
    MPI_Send(buf, (int)bytes, MPI_BYTE, 0, TAG_ANSWER, env_family);
}

static inline void env_obey(void *buf, size_t bytes)
{
    MPI_Recv(buf, (int)bytes, MPI_BYTE, 0, TAG_ORDER, env_family, MPI_STATUS_IGNORE);
}
