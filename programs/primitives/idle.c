/*
 * idle: joins, passes a barrier, and then does nothing until released. Every task but task 0 is blocked in a receive;
 * task 0 waits for the driver. Meanwhile the driver reads the memory of all tasks and the processor time of the blocked
 * ones from /proc.
 *
 * Tasks report their process ids through the file named by RACE_HOLD, one on each line. Messages would cost memory that
 * an idle task does not need. Task 0 prints "idle" when all have reported, and releases them when the driver has
 * deleted the file: this works under every launcher, whatever it does to standard input.
 */
static void idle(void)
{
    const char *hold = getenv("RACE_HOLD");
    FILE *pids = hold ? fopen(hold, "a") : NULL;
    char release = 0;
    if (!pids)
        env_fail("idle", "cannot append to the file named by RACE_HOLD");
    fprintf(pids, "%d %ld\n", me, (long)getpid());
    fclose(pids);
    env_barrier();
    if (me != 0) {
        env_recv(&release, 1, 0, 7);
        return;
    }
    printf("idle\n");
    fflush(stdout);
    while (access(hold, F_OK) == 0)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    for (int r = 1; r < tasks; r++)
        env_send(&release, 1, r, 7);
}
