/* Messages expressed by other operations: in halves, by non-blocking calls, by persistent requests; and a complete
 * exchange by messages. The guidelines say that none of these takes less time than the operation it expresses. */

static void one_to_one_halves(size_t bytes, long n)
{
    size_t half = bytes / 2, rest = bytes - half;
    for (long i = 0; i < n; i++) {
        payload_turn++;
        if (me == 0) {
            payload_mark(payload_a, bytes, payload_turn);
            env_send(payload_a, half, 1, 1);
            env_send(payload_a + half, rest, 1, 1);
        }
        env_recv(payload_b, half, me ^ 1, 1);
        env_recv(payload_b + half, rest, me ^ 1, 1);
        if (me == 1) {
            env_send(payload_b, half, 0, 1);
            env_send(payload_b + half, rest, 0, 1);
        } else {
            payload_check(payload_b, bytes, payload_turn);
        }
    }
}

static inline void started_send(const void *buf, size_t bytes, int to)
{
    env_request request = env_isend(buf, bytes, to, 1);
    env_waitall(1, &request);
}

static inline void started_recv(void *buf, size_t bytes, int from)
{
    env_request request = env_irecv(buf, bytes, from, 1);
    env_waitall(1, &request);
}

static void one_to_one_started(size_t bytes, long n)
{
    for (long i = 0; i < n; i++) {
        payload_turn++;
        if (me == 0) {
            payload_mark(payload_a, bytes, payload_turn);
            started_send(payload_a, bytes, 1);
            started_recv(payload_b, bytes, 1);
            payload_check(payload_b, bytes, payload_turn);
        } else {
            started_recv(payload_b, bytes, 0);
            started_send(payload_b, bytes, 0);
        }
    }
}

/* Receives of NX select by tag alone, so each sender has a tag of its own. */
enum { TAG_OF_SENDER = 64 };

static void complete_exchange_by_messages(size_t bytes, long n)
{
    static env_request requests[2 * 64];
    for (long i = 0; i < n; i++) {
        int number = 0;
        payload_turn++;
        for (int r = 0; r < tasks; r++)
            payload_mark(payload_a + (size_t)r * bytes, bytes, complete_exchange_stamp(me, r));
        memcpy(payload_b + (size_t)me * bytes, payload_a + (size_t)me * bytes, bytes);
        for (int d = 1; d < tasks; d++) {
            int from = (me + tasks - d) % tasks;
            requests[number++] = env_irecv(payload_b + (size_t)from * bytes, bytes, from, TAG_OF_SENDER + from);
        }
        for (int d = 1; d < tasks; d++) {
            int to = (me + d) % tasks;
            requests[number++] = env_isend(payload_a + (size_t)to * bytes, bytes, to, TAG_OF_SENDER + me);
        }
        env_waitall(number, requests);
        for (int r = 0; r < tasks; r++)
            payload_check(payload_b + (size_t)r * bytes, bytes, complete_exchange_stamp(r, me));
    }
}

OPERATION(one_to_one_halves, .name = "one-to-one-halves", .run = one_to_one_halves, .parts = 2, .unit = 1, .pairs = 2)
OPERATION(one_to_one_started, .name = "one-to-one-started", .run = one_to_one_started, .parts = 2, .unit = 1, .pairs = 2)
OPERATION(complete_exchange_by_messages, .name = "complete-exchange-by-messages", .run = complete_exchange_by_messages, .parts = 1, .unit = 1, .all_to_all = 1)

#ifdef ENV_MPI
/* One pair of requests is used for all messages of a size. */
static MPI_Request persistent_requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};

static void persistent_free(void)
{
    for (int k = 0; k < 2; k++)
        if (persistent_requests[k] != MPI_REQUEST_NULL)
            MPI_Request_free(&persistent_requests[k]);
}

static inline void persistent_run(int which)
{
    MPI_Start(&persistent_requests[which]);
    MPI_Wait(&persistent_requests[which], MPI_STATUS_IGNORE);
}

static void one_to_one_persistent(size_t bytes, long n)
{
    static size_t made_for;
    if (made_for != bytes) {
        persistent_free();
        MPI_Send_init(me == 0 ? payload_a : payload_b, (int)bytes, MPI_BYTE, me ^ 1, 1, MPI_COMM_WORLD, &persistent_requests[0]);
        MPI_Recv_init(payload_b, (int)bytes, MPI_BYTE, me ^ 1, 1, MPI_COMM_WORLD, &persistent_requests[1]);
        made_for = bytes;
        env_before_finalize(persistent_free);
    }
    for (long i = 0; i < n; i++) {
        payload_turn++;
        if (me == 0) {
            payload_mark(payload_a, bytes, payload_turn);
            persistent_run(0);
            persistent_run(1);
            payload_check(payload_b, bytes, payload_turn);
        } else {
            persistent_run(1);
            persistent_run(0);
        }
    }
}

OPERATION(one_to_one_persistent, .name = "one-to-one-persistent", .run = one_to_one_persistent, .parts = 2, .unit = 1, .pairs = 2)
#endif
