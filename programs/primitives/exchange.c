/* exchange: the two tasks of a pair send to each other at the same time. It ends when both have received; neither can
 * begin the next exchange before that. */
static void exchange_in_pairs(size_t bytes, long n)
{
    int peer = me ^ 1;
    for (long i = 0; i < n; i++) {
        payload_mark(payload_a, bytes, ++payload_turn);
        env_exchange(payload_a, payload_b, bytes, peer, 2);
        payload_check(payload_b, bytes, payload_turn);
    }
}

OPERATION(exchange_in_pairs, .name = "exchange", .run = exchange_in_pairs, .parts = 1, .unit = 1, .pairs = 1)

/* exchange-plain: each of the two tasks sends and then receives, where sends do not wait for their receives. */
#ifdef ENV_BUFFERS
static void exchange_plain(size_t bytes, long n)
{
    int peer = me ^ 1;
    for (long i = 0; i < n; i++) {
        payload_mark(payload_a, bytes, ++payload_turn);
        env_send(payload_a, bytes, peer, 2);
        env_recv(payload_b, bytes, peer, 2);
        payload_check(payload_b, bytes, payload_turn);
    }
}

OPERATION(exchange_plain, .name = "exchange-plain", .run = exchange_plain, .parts = 1, .unit = 1, .pairs = 1)
#endif
