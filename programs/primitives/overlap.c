/* overlap: the two tasks of a pair start an exchange, calculate with as many bytes of their own, and then wait for the
 * exchange. It ends when both have received and calculated. A library that moves messages meanwhile takes less than the
 * sum of both times; the calculation is the same for all libraries. */
static double *overlap_numbers;

static void overlap_calculate(size_t count)
{
    for (size_t k = 0; k < count; k++)
        overlap_numbers[k] = overlap_numbers[k] * 0.5 + 1;
    __asm__ volatile("" ::"r"(overlap_numbers) : "memory");
}

static void overlap(size_t bytes, long n)
{
    int peer = me ^ 1;
    env_request requests[2];
    if (!overlap_numbers)
        overlap_numbers = calloc(payload_capacity, 1);
    if (!overlap_numbers)
        env_fail("calloc", "no memory to calculate with");
    for (long i = 0; i < n; i++) {
        payload_mark(payload_a, bytes, ++payload_turn);
        requests[0] = env_irecv(payload_b, bytes, peer, 6);
        requests[1] = env_isend(payload_a, bytes, peer, 6);
        overlap_calculate(bytes / sizeof *overlap_numbers);
        env_waitall(2, requests);
        payload_check(payload_b, bytes, payload_turn);
    }
}

OPERATION(overlap, .name = "overlap", .run = overlap, .parts = 1, .unit = 8, .pairs = 2)
