/* concatenation: each task gives a block; all tasks get all blocks in rank order (allgather). */
static void concatenation(size_t bytes, long n)
{
    for (long i = 0; i < n; i++) {
        uint32_t turn = ++payload_turn * 1024;
        payload_mark(payload_a, bytes, turn + (uint32_t)me);
        env_concatenation(payload_a, bytes, payload_b);
        for (int r = 0; r < tasks; r++)
            payload_check(payload_b + (size_t)r * bytes, bytes, turn + (uint32_t)r);
    }
}

OPERATION(concatenation, .name = "concatenation", .run = concatenation, .parts = 1, .unit = 1, .all_to_all = 1)
