/* exchange: the two tasks of a pair send to each other at the same time. Over when both have
 * received; neither can begin the next exchange before that. */
static void exchange_in_pairs(size_t bytes, long n)
{
    int peer = me ^ 1;
    for (long i = 0; i < n; i++) {
        payload_mark(payload_a, bytes, ++payload_turn);
        env_exchange(payload_a, payload_b, bytes, peer, 2);
        payload_check(payload_b, bytes, payload_turn);
    }
}
