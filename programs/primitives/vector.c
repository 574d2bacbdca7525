/* vector-send-recv: an echo test of non-contiguous words, every second one of an array, at both ends; half of the round
 * trip counts. vector-by-packing: the same, but the program copies the words and sends them as bytes. vector-exchange:
 * the two tasks of a pair exchange vectors of contiguous words.
 *
 * In the timed part only the first and the last word are written and compared, as in other messages. */
enum { VECTOR_APART = 2 * ENV_WORD };

static inline uint32_t vector_word(size_t k, uint32_t stamp)
{
    return payload_whole ? (uint32_t)payload_word(k, stamp) : stamp;
}

static inline size_t vector_step(size_t words)
{
    return payload_whole || words < 2 ? 1 : words - 1;
}

static inline void vector_mark(char *buf, size_t stride, size_t words, uint32_t stamp)
{
    for (size_t k = 0; k < words; k += vector_step(words)) {
        uint32_t word = vector_word(k, stamp);
        memcpy(buf + k * stride, &word, sizeof word);
    }
}

static inline void vector_check(const char *buf, size_t stride, size_t words, uint32_t stamp)
{
    for (size_t k = 0; k < words; k += vector_step(words)) {
        uint32_t word = vector_word(k, stamp);
        if (__builtin_expect(memcmp(buf + k * stride, &word, sizeof word), 0))
            payload_wrong(words * ENV_WORD, stamp);
    }
}

static void vector_send_recv(size_t bytes, long n)
{
    size_t words = bytes / ENV_WORD;
    if (me == 0) {
        for (long i = 0; i < n; i++) {
            vector_mark(payload_a, VECTOR_APART, words, ++payload_turn);
            env_vector_send(payload_a, VECTOR_APART, words, 1, 1);
            env_vector_recv(payload_b, VECTOR_APART, words, 1, 1);
            vector_check(payload_b, VECTOR_APART, words, payload_turn);
        }
    } else {
        for (long i = 0; i < n; i++) {
            env_vector_recv(payload_b, VECTOR_APART, words, 0, 1);
            env_vector_send(payload_b, VECTOR_APART, words, 0, 1);
        }
    }
}

/* Copies the words into a contiguous buffer, sends them as bytes, and copies them back to their places. */
static void vector_by_packing(size_t bytes, long n)
{
    static char *packed;
    static size_t room;
    size_t words = bytes / ENV_WORD;
    if (room < bytes) {
        packed = realloc(packed, bytes);
        if (!packed)
            env_fail("realloc", "no memory for a packed vector");
        room = bytes;
    }
    for (long i = 0; i < n; i++) {
        payload_turn++;
        for (int turn = 0; turn < 2; turn++) {
            if (me == turn) {
                char *from = me == 0 ? payload_a : payload_b;
                if (me == 0)
                    vector_mark(from, VECTOR_APART, words, payload_turn);
                for (size_t k = 0; k < words; k++)
                    memcpy(packed + k * ENV_WORD, from + k * VECTOR_APART, ENV_WORD);
                env_send(packed, bytes, me ^ 1, 1);
            } else {
                env_recv(packed, bytes, me ^ 1, 1);
                for (size_t k = 0; k < words; k++)
                    memcpy(payload_b + k * VECTOR_APART, packed + k * ENV_WORD, ENV_WORD);
            }
        }
        if (me == 0)
            vector_check(payload_b, VECTOR_APART, words, payload_turn);
    }
}

static void vector_exchange(size_t bytes, long n)
{
    size_t words = bytes / ENV_WORD;
    int peer = me ^ 1;
    for (long i = 0; i < n; i++) {
        vector_mark(payload_a, ENV_WORD, words, ++payload_turn);
        env_vector_exchange(payload_a, payload_b, ENV_WORD, words, peer, 2);
        vector_check(payload_b, ENV_WORD, words, payload_turn);
    }
}

OPERATION(vector_send_recv, .name = "vector-send-recv", .run = vector_send_recv, .parts = 2, .unit = ENV_WORD, .pairs = 2, .blocks = 2)
OPERATION(vector_exchange, .name = "vector-exchange", .run = vector_exchange, .parts = 1, .unit = ENV_WORD, .pairs = 1)
OPERATION(vector_by_packing, .name = "vector-by-packing", .run = vector_by_packing, .parts = 2, .unit = 4, .pairs = 2, .blocks = 2)
