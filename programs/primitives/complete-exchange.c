/* complete-exchange: each task has a block for each task, itself included (alltoall). */
static uint32_t complete_exchange_stamp(int from, int to)
{
    return payload_turn * 4096 + (uint32_t)from * 64 + (uint32_t)to;
}

static void complete_exchange(size_t bytes, long n)
{
    for (long i = 0; i < n; i++) {
        payload_turn++;
        for (int r = 0; r < tasks; r++)
            payload_mark(payload_a + (size_t)r * bytes, bytes, complete_exchange_stamp(me, r));
        env_complete_exchange(payload_a, bytes, payload_b);
        for (int r = 0; r < tasks; r++)
            payload_check(payload_b + (size_t)r * bytes, bytes, complete_exchange_stamp(r, me));
    }
}

OPERATION(complete_exchange, .name = "complete-exchange", .run = complete_exchange, .parts = 1, .unit = 1, .all_to_all = 1)
