/* one-to-one-send, one-to-one-recv: the time that a task spends in the send call, and in the receive call. The other
 * side is ready each time: the receive is posted before the send is called, and the message has been sent before the
 * receive is called. Only these calls count, not the messages that synchronize the tasks.
 *
 * The receive takes its message after one that was sent later, so a library without tags cannot run it. */
static void one_to_one_send(size_t bytes, long n)
{
    for (long i = 0; i < n; i++) {
        payload_turn++;
        if (me == 0) {
            payload_mark(payload_a, bytes, payload_turn);
            env_recv(NULL, 0, 1, 2);
            double start = measure_now();
            env_send(payload_a, bytes, 1, 1);
            measure_call(start);
        } else {
            env_request request = env_irecv(payload_b, bytes, 0, 1);
            env_send(NULL, 0, 0, 2);
            env_waitall(1, &request);
            payload_check(payload_b, bytes, payload_turn);
        }
    }
}

OPERATION(one_to_one_send, .name = "one-to-one-send", .run = one_to_one_send, .parts = 1, .unit = 1, .pairs = 2, .calls = 1)

#ifndef ENV_IN_ORDER
static void one_to_one_recv(size_t bytes, long n)
{
    for (long i = 0; i < n; i++) {
        payload_turn++;
        if (me == 0) {
            payload_mark(payload_a, bytes, payload_turn);
            env_request request = env_isend(payload_a, bytes, 1, 1);
            env_send(NULL, 0, 1, 2);
            env_waitall(1, &request);
            env_recv(NULL, 0, 1, 3);
        } else {
            env_recv(NULL, 0, 0, 2);
            double start = measure_now();
            env_recv(payload_b, bytes, 0, 1);
            measure_call(start);
            payload_check(payload_b, bytes, payload_turn);
            env_send(NULL, 0, 0, 3);
        }
    }
}

OPERATION(one_to_one_recv, .name = "one-to-one-recv", .run = one_to_one_recv, .parts = 1, .unit = 1, .pairs = 2, .calls = 1)
#endif
