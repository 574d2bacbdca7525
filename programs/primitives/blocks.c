/* blocks: an echo test. The message is one element of a derived datatype: blocks of eight bytes, every second one of an
 * array. Half of the round trip counts.
 *
 * In the timed part only the first and the last block are written and compared, like the first and the last word of
 * other messages. */
#ifdef ENV_BLOCKS

enum { BLOCK = 8 };

static inline size_t blocks_step(size_t number)
{
    return payload_whole || number < 2 ? 1 : number - 1;
}

static inline void blocks_mark(char *buf, size_t number, uint32_t stamp)
{
    for (size_t k = 0; k < number; k += blocks_step(number)) {
        uint64_t word = payload_word(k, stamp);
        memcpy(buf + k * 2 * BLOCK, &word, BLOCK);
    }
}

static inline void blocks_check(const char *buf, size_t number, uint32_t stamp)
{
    for (size_t k = 0; k < number; k += blocks_step(number)) {
        uint64_t word = payload_word(k, stamp);
        if (__builtin_expect(memcmp(buf + k * 2 * BLOCK, &word, BLOCK), 0))
            payload_wrong(number * BLOCK, stamp);
    }
}

static void blocks(size_t bytes, long n)
{
    size_t number = bytes / BLOCK;
    for (long i = 0; i < n; i++) {
        payload_turn++;
        if (me == 0) {
            blocks_mark(payload_a, number, payload_turn);
            env_blocks_send(payload_a, number, 1, 1);
            env_blocks_recv(payload_b, number, 1, 1);
            blocks_check(payload_b, number, payload_turn);
        } else {
            env_blocks_recv(payload_b, number, 0, 1);
            env_blocks_send(payload_b, number, 0, 1);
        }
    }
}

OPERATION(blocks, .name = "blocks", .run = blocks, .parts = 2, .unit = BLOCK, .pairs = 2, .blocks = 2)
#endif
