/* Tasks that poll for messages.
 *
 * test-loop, iprobe-loop: an echo test in pairs. The task of odd rank polls with MPI_Test, or with MPI_Iprobe, until
 * the message has arrived; the other task waits in MPI_Recv. Half of the round trip counts. stream-any: both tasks send
 * without pause with MPI_Isend and MPI_Test, and receive from any source, as HPCC's RandomAccess does. The result is
 * the time per message. */
#ifdef ENV_MPI
#include "expect.h"

enum { TAG_ECHO = 31, TAG_STREAM = 32 };

static void echo_waiting(size_t bytes, long n)
{
    for (long i = 0; i < n; i++) {
        payload_mark(payload_a, bytes, ++payload_turn);
        MPI_Send(payload_a, (int)bytes, MPI_BYTE, me + 1, TAG_ECHO, MPI_COMM_WORLD);
        MPI_Recv(payload_b, (int)bytes, MPI_BYTE, me + 1, TAG_ECHO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        payload_check(payload_b, bytes, payload_turn);
    }
}

static void test_loop(size_t bytes, long n)
{
    if (me % 2 == 0) {
        echo_waiting(bytes, n);
        return;
    }
    for (long i = 0; i < n; i++) {
        MPI_Request request;
        MPI_Irecv(payload_b, (int)bytes, MPI_BYTE, me - 1, TAG_ECHO, MPI_COMM_WORLD, &request);
        for (int done = 0; !done;)
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        MPI_Send(payload_b, (int)bytes, MPI_BYTE, me - 1, TAG_ECHO, MPI_COMM_WORLD);
    }
}

static void iprobe_loop(size_t bytes, long n)
{
    if (me % 2 == 0) {
        echo_waiting(bytes, n);
        return;
    }
    for (long i = 0; i < n; i++) {
        MPI_Status status;
        int count;
        for (int there = 0; !there;)
            MPI_Iprobe(me - 1, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        EXPECT(count == (int)bytes && status.MPI_TAG == TAG_ECHO, "MPI_Iprobe", "it found another message");
        MPI_Recv(payload_b, count, MPI_BYTE, me - 1, TAG_ECHO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(payload_b, count, MPI_BYTE, me - 1, TAG_ECHO, MPI_COMM_WORLD);
    }
}

/* Messages of one sender arrive in order, so the k-th has stamp k. */
static void stream_any(size_t bytes, long n)
{
    MPI_Request in, out = MPI_REQUEST_NULL;
    uint32_t sent = payload_turn, received = payload_turn, last = payload_turn + (uint32_t)n;
    MPI_Irecv(payload_b, (int)bytes, MPI_BYTE, MPI_ANY_SOURCE, TAG_STREAM, MPI_COMM_WORLD, &in);
    while (sent < last || received < last) {
        int done;
        if (received < last) {
            MPI_Test(&in, &done, MPI_STATUS_IGNORE);
            if (done) {
                payload_check(payload_b, bytes, ++received);
                if (received < last)
                    MPI_Irecv(payload_b, (int)bytes, MPI_BYTE, MPI_ANY_SOURCE, TAG_STREAM, MPI_COMM_WORLD, &in);
            }
        }
        if (sent < last) {
            MPI_Test(&out, &done, MPI_STATUS_IGNORE);
            if (done) {
                payload_mark(payload_a, bytes, ++sent);
                MPI_Isend(payload_a, (int)bytes, MPI_BYTE, me ^ 1, TAG_STREAM, MPI_COMM_WORLD, &out);
            }
        }
    }
    MPI_Wait(&out, MPI_STATUS_IGNORE);
}

OPERATION(test_loop, .name = "test-loop", .run = test_loop, .parts = 2, .unit = 1, .pairs = 1)
OPERATION(iprobe_loop, .name = "iprobe-loop", .run = iprobe_loop, .parts = 2, .unit = 1, .pairs = 1)
OPERATION(stream_any, .name = "stream-any", .run = stream_any, .parts = 1, .unit = 1, .pairs = 2)
#endif
