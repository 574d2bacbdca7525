/* message-rate: task 0 sends windows of 64 messages, each in a buffer of its own. Task 1 posts 64 receives, waits for
 * all, and acknowledges the window with an empty message. The time of a window, acknowledgement included, is divided by
 * 64. */
static void message_rate(size_t bytes, long n)
{
    env_request requests[WINDOW];
    char *last_a = payload_a + (WINDOW - 1) * bytes, *last_b = payload_b + (WINDOW - 1) * bytes;
    for (long i = 0; i < n; i++) {
        payload_turn++;
        if (me == 0) {
            payload_mark(payload_a, bytes, payload_turn);
            payload_mark(last_a, bytes, payload_turn);
            for (int k = 0; k < WINDOW; k++)
                requests[k] = env_isend(payload_a + (size_t)k * bytes, bytes, 1, 4);
            env_waitall(WINDOW, requests);
            env_recv(NULL, 0, 1, 5);
        } else {
            for (int k = 0; k < WINDOW; k++)
                requests[k] = env_irecv(payload_b + (size_t)k * bytes, bytes, 0, 4);
            env_waitall(WINDOW, requests);
            payload_check(payload_b, bytes, payload_turn);
            payload_check(last_b, bytes, payload_turn);
            env_send(NULL, 0, 0, 5);
        }
    }
}

OPERATION(message_rate, .name = "message-rate", .run = message_rate, .parts = WINDOW, .unit = 1, .pairs = 2, .blocks = WINDOW)
