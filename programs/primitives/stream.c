/* stream: task 0 sends message after message, and task 1 receives all into one buffer, as TTCP does over TCP. After
 * each window of messages task 0 waits for an acknowledgement, so that the data that the library has accepted but not
 * delivered are bounded. The result is the time per message. */
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
