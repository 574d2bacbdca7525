/* one-to-one: an echo test. Task 1 sends back the buffer that it received; half of the round trip counts. */
static void one_to_one(size_t bytes, long n)
{
    if (me == 0) {
        for (long i = 0; i < n; i++) {
            payload_mark(payload_a, bytes, ++payload_turn);
            env_send(payload_a, bytes, 1, 1);
            env_recv(payload_b, bytes, 1, 1);
            payload_check(payload_b, bytes, payload_turn);
        }
    } else {
        for (long i = 0; i < n; i++) {
            env_recv(payload_b, bytes, 0, 1);
            env_send(payload_b, bytes, 0, 1);
        }
    }
}

OPERATION(one_to_one, .name = "one-to-one", .run = one_to_one, .parts = 2, .unit = 1, .pairs = 2)
OPERATION(ping_pong_blocking, .name = "ping-pong-blocking", .run = one_to_one, .parts = 2, .unit = 1, .pairs = 2)
