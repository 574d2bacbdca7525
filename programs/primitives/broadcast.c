/* broadcast: one task sends to all. The root changes each time, and the next root must have received the broadcast
 * before: a root that runs ahead of its receivers cannot hide the cost. With two tasks the result is the time until the
 * last task has the data; with more, tasks that are neither root may lag behind a little, in every environment alike.
 * */
static void broadcast(size_t bytes, long n)
{
    int root = (int)(payload_turn % (uint32_t)tasks);
    for (long i = 0; i < n; i++) {
        payload_turn++;
        if (me == root)
            payload_mark(payload_a, bytes, payload_turn);
        env_broadcast(payload_a, bytes, root);
        payload_check(payload_a, bytes, payload_turn);
        root = root + 1 == tasks ? 0 : root + 1;
    }
}

OPERATION(broadcast, .name = "broadcast", .run = broadcast, .parts = 1, .unit = 1)
