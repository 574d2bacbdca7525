/* copy: task 0 copies within its own memory and sends no message. For the environment `limit` this is the least that a
 * single copy may cost. */
static void copy(size_t bytes, long n)
{
    if (me != 0)
        return;
    for (long i = 0; i < n; i++) {
        payload_mark(payload_a, bytes, ++payload_turn);
        memcpy(payload_b, payload_a, bytes);
        __asm__ volatile("" ::"r"(payload_b) : "memory");
        payload_check(payload_b, bytes, payload_turn);
    }
}

OPERATION(copy, .name = "copy", .run = copy, .parts = 1, .unit = 1)
