/*
 * A random program of a master and its workers: masters.c SEED. All processes draw the same plan from the seed: which
 * worker does which tasks, how results are received (blocking, nonblocking or persistent receive, MPI_Probe,
 * MPI_Iprobe), from one worker or any, which workers the master spawns, and when each one is in MPI_Finalize. The
 * master prints sums that do not depend on the order of arrival.
 */
#include "mpi_check.h"

#include <stdint.h>

enum { TASKS = 1, RESULT, OWN, REST = 100 };

static uint64_t state;

static unsigned draw(unsigned most)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % most;
}

/* The plan of one worker. */
struct plan {
    int results;    /* number of results it sends */
    int length;     /* number of ints in each */
    int way;        /* how it sends them */
    int answers;    /* nonzero if the master gives it a task for each */
    int frees;      /* nonzero if it frees its last request while it is in progress */
};

static struct plan plan_of(unsigned seed, int worker)
{
    state = seed * 1000003u + (unsigned)worker * 7919u + 17u;
    draw(2);
    static const int lengths[] = {1, 3, 100, 2000, 70000};
    return (struct plan){(int)draw(4), lengths[draw(5)], (int)draw(4), (int)draw(2), (int)draw(2)};
}

static void work(unsigned seed, int worker, int master, MPI_Comm comm)
{
    struct plan plan = plan_of(seed, worker);
    int *data = malloc(sizeof(int) * (size_t)plan.length * 4);
    MPI_Request request = MPI_REQUEST_NULL, standing;
    int stop;
    /* A receive that may get no message; it is cancelled before MPI_Finalize. */
    MPI_Irecv(&stop, 1, MPI_INT, MPI_ANY_SOURCE, REST, comm, &standing);
    for (int i = 0; i < plan.results; i++) {
        int task = i, *out = data + (size_t)plan.length * (size_t)i;
        if (plan.answers)
            MPI_Recv(&task, 1, MPI_INT, master, TASKS, comm, MPI_STATUS_IGNORE);
        for (int at = 0; at < plan.length; at++)
            out[at] = worker * 1000 + task * 10 + at % 7;
        switch (plan.way) {
        case 0:
            MPI_Send(out, plan.length, MPI_INT, master, RESULT, comm);
            break;
        case 1:
            MPI_Ssend(out, plan.length, MPI_INT, master, RESULT, comm);
            break;
        default:
            MPI_Isend(out, plan.length, MPI_INT, master, RESULT, comm, &request);
            if (plan.way == 2 || !plan.frees || i + 1 < plan.results)
                MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
    }
    MPI_Cancel(&standing);
    MPI_Wait(&standing, MPI_STATUS_IGNORE);
    /* The message is still sent after this and in MPI_Finalize, so its memory must stay. */
    if (request != MPI_REQUEST_NULL)
        MPI_Request_free(&request);
}

static int in[280000];

static long long sum_of(int count)
{
    long long sum = 0;
    for (int i = 0; i < count; i++)
        sum += in[i];
    return sum;
}

/* Receives one result in a randomly chosen way. */
static long long receive_result(unsigned way, int from, MPI_Comm comm, int *source)
{
    const int most = (int)(sizeof in / sizeof *in);
    MPI_Status status;
    MPI_Message message;
    MPI_Request request;
    int flag = 0, count;
    switch (way) {
    case 0:
        MPI_Recv(in, most, MPI_INT, from, RESULT, comm, &status);
        break;
    case 1:
        MPI_Irecv(in, most, MPI_INT, from, RESULT, comm, &request);
        MPI_Wait(&request, &status);
        break;
    case 2:
        MPI_Irecv(in, most, MPI_INT, from, RESULT, comm, &request);
        while (!flag)
            MPI_Test(&request, &flag, &status);
        break;
    case 3:
        MPI_Probe(from, MPI_ANY_TAG, comm, &status);
        MPI_Recv(in, most, MPI_INT, status.MPI_SOURCE, RESULT, comm, &status);
        break;
    case 4:
        while (!flag)
            MPI_Iprobe(from, RESULT, comm, &flag, &status);
        MPI_Recv(in, most, MPI_INT, status.MPI_SOURCE, RESULT, comm, &status);
        break;
    default:
        while (!flag)
            MPI_Improbe(from, RESULT, comm, &flag, &message, &status);
        MPI_Mrecv(in, most, MPI_INT, &message, &status);
    }
    *source = status.MPI_SOURCE;
    MPI_Get_count(&status, MPI_INT, &count);
    return sum_of(count);
}

/* The master's calls after its workers have done everything: most or all of them are in MPI_Finalize. */
static int look_around(MPI_Comm comm, int own, unsigned seed)
{
    int found = 0, flag, got = 0, out = 5;
    MPI_Request standing, request;
    MPI_Status status;
    MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, OWN, comm, &standing);
    for (unsigned i = 0; i < 200 + seed % 7 * 300; i++) {
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, &status);
        found += flag;
        MPI_Test(&standing, &flag, &status);
        found += flag;
    }
    if (own >= 0 && seed % 3) {
        MPI_Isend(&out, 1, MPI_INT, own, OWN, comm, &request);
        MPI_Wait(&standing, &status);
        MPI_Wait(&request, &status);
        CHECK(got == 5);
    } else {
        MPI_Cancel(&standing);
        MPI_Wait(&standing, &status);
        MPI_Test_cancelled(&status, &flag);
        CHECK(flag);
    }
    return found;
}

/* The master's part for the workers of one communicator. Their numbers begin at `first`, their ranks at `base`. */
static void lead(const char *what, unsigned seed, MPI_Comm comm, int workers, int first, int base)
{
    int *left = calloc((size_t)workers, sizeof(int)), total = 0, source;
    long long sum = 0;
    unsigned way, anybody;
    for (int i = 0; i < workers; i++) {
        struct plan plan = plan_of(seed, first + i);
        left[i] = plan.results;
        total += plan.results;
        for (int task = 0; plan.answers && task < plan.results; task++)
            MPI_Send(&task, 1, MPI_INT, base + i, TASKS, comm);
    }
    state = seed * 31u + (unsigned)first;
    anybody = draw(3);
    for (int got = 0; got < total; got++) {
        int from = MPI_ANY_SOURCE;
        way = draw(6);
        if (anybody == 0) {
            /* The last worker first, which may have been done long before. */
            for (int i = 0; i < workers; i++)
                from = left[i] ? base + i : from;
        }
        sum += receive_result(way, from, comm, &source);
        left[source - base]--;
    }
    for (int i = 0; i < workers; i++)
        CHECK(left[i] == 0);
    printf("%s: %d results, sum %lld, found %d\n", what, total, sum, look_around(comm, base ? 0 : -1, seed));
    fflush(stdout);
    free(left);
}

int main(int argc, char **argv)
{
    MPI_Comm parent, children = MPI_COMM_NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parent);
    unsigned seed = (unsigned)atoi(argv[1]);
    if (parent != MPI_COMM_NULL) {
        work(seed, 50 + me, 0, parent);
        MPI_Finalize();
        return 0;
    }
    state = seed;
    draw(2);
    int started = (int)draw(4), late = (int)draw(2);
    started = started == 3 ? 0 : started;
    if (me == 0 && started && !late)
        MPI_Comm_spawn(argv[0], argv + 1, started, MPI_INFO_NULL, 0, MPI_COMM_SELF, &children, MPI_ERRCODES_IGNORE);
    if (me) {
        work(seed, me, 0, MPI_COMM_WORLD);
        MPI_Finalize();
        return 0;
    }
    if (size > 1)
        lead("world", seed, MPI_COMM_WORLD, size - 1, 1, 1);
    if (started && late)
        MPI_Comm_spawn(argv[0], argv + 1, started, MPI_INFO_NULL, 0, MPI_COMM_SELF, &children, MPI_ERRCODES_IGNORE);
    if (started)
        lead("started", seed, children, started, 50, 0);
    MPI_Finalize();
    return 0;
}
