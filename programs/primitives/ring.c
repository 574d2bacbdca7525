/* ring: a message travels once round all tasks; each task sends on what it received. */
static void ring(size_t bytes, long n)
{
    int next = (me + 1) % tasks, previous = (me + tasks - 1) % tasks;
    if (me == 0) {
        for (long i = 0; i < n; i++) {
            payload_mark(payload_a, bytes, ++payload_turn);
            env_send(payload_a, bytes, next, 3);
            env_recv(payload_b, bytes, previous, 3);
            payload_check(payload_b, bytes, payload_turn);
        }
    } else {
        for (long i = 0; i < n; i++) {
            env_recv(payload_b, bytes, previous, 3);
            env_send(payload_b, bytes, next, 3);
        }
    }
}

OPERATION(ring, .name = "ring", .run = ring, .parts = 1, .unit = 1)
