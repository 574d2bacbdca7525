/* stream: task 0 sends message after message, which task 1 takes all into one place, as TTCP does over TCP. After so many messages or bytes
 * it waits for a word that they have come: what a library has taken and not yet delivered stays within bounds. The time counts for each
 * message. */
enum { STREAM_MESSAGES = 64, STREAM_BYTES = 1 << 20 };

static inline long stream_window(size_t bytes)
{
    if (bytes <= STREAM_BYTES / STREAM_MESSAGES)
        return STREAM_MESSAGES;
    return bytes < STREAM_BYTES ? (long)(STREAM_BYTES / bytes) : 1;
}

static void stream(size_t bytes, long n)
{
    long window = stream_window(bytes), left = window;
    for (long i = 0; i < n; i++) {
        int last = --left == 0 || i + 1 == n;
        payload_turn++;
        if (me == 0) {
            payload_mark(payload_a, bytes, payload_turn);
            env_send(payload_a, bytes, 1, 4);
            if (last)
                env_recv(NULL, 0, 1, 5);
        } else {
            env_recv(payload_b, bytes, 0, 4);
            payload_check(payload_b, bytes, payload_turn);
            if (last)
                env_send(NULL, 0, 0, 5);
        }
        if (last)
            left = window;
    }
}

OPERATION(stream, .name = "stream", .run = stream, .parts = 1, .unit = 1, .pairs = 2)
