/* exchange: the two tasks of a pair send to each other at the same time. Over when both have
 * received; neither can begin the next exchange before that. */
static void exchange(size_t bytes, long n)
{
    int peer = me ^ 1;
    for (long i = 0; i < n; i++) {
        env_request requests[2];
        requests[0] = env_irecv(payload_b, bytes, peer, 2);
        payload_mark(payload_a, bytes, ++payload_turn);
        requests[1] = env_isend(payload_a, bytes, peer, 2);
        env_waitall(2, requests);
        payload_check(payload_b, bytes, payload_turn);
    }
}
