/* Many requests at once between two tasks, as many as the size says.
 *
 * waitany, testsome: receives are posted first, messages are sent in another order, and the call is repeated until no
 * request is left. tags-reverse: messages are received in the opposite order. persistent-make: requests of
 * MPI_Send_init and MPI_Recv_init are created and freed. partitioned-make: requests of MPI_Psend_init or MPI_Precv_init
 * with two partitions each are created, used once and freed. iscan-free: scans are started, their requests are freed at
 * once, and a barrier follows. */
#ifdef ENV_MPI
#include "expect.h"

enum { MAX_REQUESTS = 4096, REQUEST_STRIDE = 7, TAG_PARTITIONED = 1 << 13 };

static MPI_Request requests[MAX_REQUESTS];
static int32_t requests_in[2 * MAX_REQUESTS], requests_out[2 * MAX_REQUESTS];

static void requests_bound(size_t number)
{
    EXPECT(number <= MAX_REQUESTS, "requests.c", "it has no room for so many requests");
}

/* Posts a receive for each tag; then sends a message for each, in steps of REQUEST_STRIDE. Message k is the word k +
 * turn. */
static void requests_begin(size_t number)
{
    for (size_t k = 0; k < number; k++) {
        requests_in[k] = -1;
        MPI_Irecv(&requests_in[k], 1, MPI_INT32_T, me ^ 1, (int)k, MPI_COMM_WORLD, &requests[k]);
    }
    for (size_t k = 0, tag = 0; k < number; k++, tag = (tag + REQUEST_STRIDE) % number) {
        int32_t word = (int32_t)(tag + payload_turn);
        MPI_Send(&word, 1, MPI_INT32_T, me ^ 1, (int)tag, MPI_COMM_WORLD);
    }
}

static void requests_came(int k, const char *call)
{
    EXPECT(requests_in[k] == (int32_t)((uint32_t)k + payload_turn), call, "a request is complete, and its message is not there");
    requests_in[k] = -1;
}

/* Checks that `number` is not a multiple of REQUEST_STRIDE, since such steps would leave out tags. */
static void requests_check_number(size_t number)
{
    requests_bound(number);
    EXPECT(number % REQUEST_STRIDE, "requests.c", "the number of requests is a multiple of 7");
}

static void request_waitany(size_t number, long n)
{
    requests_check_number(number);
    for (long i = 0; i < n; i++) {
        payload_turn++;
        requests_begin(number);
        for (size_t k = 0; k < number; k++) {
            int which;
            MPI_Waitany((int)number, requests, &which, MPI_STATUS_IGNORE);
            requests_came(which, "MPI_Waitany");
        }
    }
}

static void request_testsome(size_t number, long n)
{
    static int which[MAX_REQUESTS];
    requests_check_number(number);
    for (long i = 0; i < n; i++) {
        payload_turn++;
        requests_begin(number);
        for (size_t left = number; left > 0;) {
            int count;
            MPI_Testsome((int)number, requests, &count, which, MPI_STATUSES_IGNORE);
            for (int k = 0; k < count; k++)
                requests_came(which[k], "MPI_Testsome");
            left -= (size_t)count;
        }
    }
}

static void tags_reverse(size_t number, long n)
{
    requests_bound(number);
    for (long i = 0; i < n; i++) {
        payload_turn++;
        for (size_t k = 0; k < number; k++) {
            requests_out[k] = (int32_t)(k + payload_turn);
            MPI_Isend(&requests_out[k], 1, MPI_INT32_T, me ^ 1, (int)k, MPI_COMM_WORLD, &requests[k]);
        }
        for (size_t k = number; k-- > 0;) {
            MPI_Recv(&requests_in[k], 1, MPI_INT32_T, me ^ 1, (int)k, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            requests_came((int)k, "MPI_Recv");
        }
        MPI_Waitall((int)number, requests, MPI_STATUSES_IGNORE);
    }
}

static void persistent_make(size_t number, long n)
{
    requests_bound(number);
    for (long i = 0; i < n; i++) {
        for (size_t k = 0; k < number; k++)
            if (k % 2 == 0)
                MPI_Send_init(&requests_out[k], 1, MPI_INT32_T, me ^ 1, 0, MPI_COMM_WORLD, &requests[k]);
            else
                MPI_Recv_init(&requests_in[k], 1, MPI_INT32_T, me ^ 1, 0, MPI_COMM_WORLD, &requests[k]);
        for (size_t k = 0; k < number; k++) {
            MPI_Request_free(&requests[k]);
            EXPECT(requests[k] == MPI_REQUEST_NULL, "MPI_Request_free", "the handle of a freed request is not MPI_REQUEST_NULL");
        }
    }
}

static void partitioned_make(size_t number, long n)
{
    requests_bound(number);
    for (long i = 0; i < n; i++) {
        payload_turn++;
        for (size_t k = 0; k < number; k++) {
            int tag = TAG_PARTITIONED + (int)k;
            int32_t *out = &requests_out[2 * k], *in = &requests_in[2 * k];
            out[0] = out[1] = (int32_t)(k + payload_turn);
            in[0] = in[1] = -1;
            if (me == 0)
                MPI_Psend_init(out, 2, 1, MPI_INT32_T, 1, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[k]);
            else
                MPI_Precv_init(in, 2, 1, MPI_INT32_T, 0, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[k]);
        }
        /* MPI_Startall is not used: after it, Open MPI 5.0 waits for ever for the second request. */
        for (size_t k = 0; k < number; k++)
            MPI_Start(&requests[k]);
        for (size_t k = 0; me == 0 && k < number; k++)
            MPI_Pready_range(0, 1, requests[k]);
        MPI_Waitall((int)number, requests, MPI_STATUSES_IGNORE);
        for (size_t k = 0; me == 1 && k < number; k++)
            EXPECT(requests_in[2 * k] == (int32_t)(k + payload_turn) && requests_in[2 * k + 1] == requests_in[2 * k], "MPI_Precv_init",
                   "a partition is not there");
        for (size_t k = 0; k < number; k++)
            MPI_Request_free(&requests[k]);
        /* The sender must not begin the next requests before the receiver has completed these. */
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* Returns whether all sums of the freed scans have arrived at all tasks. */
static int iscan_done(size_t number)
{
    int done = 1, all;
    for (size_t k = 0; k < number; k++)
        done &= requests_in[k] == me + 1;
    MPI_Allreduce(&done, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all;
}

/* The completion of a freed scan is not reported: before the clock starts, the program runs further collectives until
 * its sums have arrived. */
static void iscan_free(size_t number, long n)
{
    static int32_t one = 1;
    enum { MAX_LOOKS = 1000000 };
    requests_bound(number);
    if (payload_whole)
        memset(requests_in, 0, sizeof requests_in);
    for (long i = 0; i < n; i++) {
        for (size_t k = 0; k < number; k++) {
            MPI_Request request;
            MPI_Iscan(&one, &requests_in[k], 1, MPI_INT32_T, MPI_SUM, MPI_COMM_WORLD, &request);
            MPI_Request_free(&request);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    int looks = 0;
    while (payload_whole && !iscan_done(number))
        EXPECT(++looks < MAX_LOOKS, "MPI_Iscan", "a sum of a freed scan does not come");
}

OPERATION(request_waitany, .name = "waitany", .run = request_waitany, .parts = 1, .unit = 1, .pairs = 2)
OPERATION(request_testsome, .name = "testsome", .run = request_testsome, .parts = 1, .unit = 1, .pairs = 2)
OPERATION(tags_reverse, .name = "tags-reverse", .run = tags_reverse, .parts = 1, .unit = 1, .pairs = 2)
OPERATION(persistent_make, .name = "persistent-make", .run = persistent_make, .parts = 1, .unit = 1, .pairs = 2)
OPERATION(partitioned_make, .name = "partitioned-make", .run = partitioned_make, .parts = 1, .unit = 1, .pairs = 2)
OPERATION(iscan_free, .name = "iscan-free", .run = iscan_free, .parts = 1, .unit = 1, .pairs = 2)
#endif
