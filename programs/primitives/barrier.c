/* barrier: a barrier of all tasks. The size is ignored. */
static void barrier(size_t bytes, long n)
{
    (void)bytes;
    for (long i = 0; i < n; i++)
        env_barrier();
}

OPERATION(barrier, .name = "barrier", .run = barrier, .parts = 1)
