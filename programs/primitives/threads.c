/* message-rate-threads: the windows of message-rate, by two threads of each task at the same time, each with its own
 * communicator. The time of one window of both threads is divided by the number of all their messages.
 *
 * The second thread is started with the first batch, and sleeps between batches. */
#ifdef ENV_THREADS

#include <pthread.h>

enum { THREADS = 2 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t change;
    size_t bytes;
    long n;
    uint32_t turn;
    int begun, asked, done;
} threads = {.lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};

static void threads_send(int thread, char *buf, size_t bytes)
{
    env_request requests[WINDOW];
    for (int k = 0; k < WINDOW; k++)
        requests[k] = env_thread_isend(thread, buf + (size_t)k * bytes, bytes, 1, 4);
    env_waitall(WINDOW, requests);
    env_request answer = env_thread_irecv(thread, NULL, 0, 1, 5);
    env_waitall(1, &answer);
}

static void threads_receive(int thread, char *buf, size_t bytes)
{
    env_request requests[WINDOW];
    for (int k = 0; k < WINDOW; k++)
        requests[k] = env_thread_irecv(thread, buf + (size_t)k * bytes, bytes, 0, 4);
    env_waitall(WINDOW, requests);
}

static void threads_part(int thread, size_t bytes, long n, uint32_t turn)
{
    char *buf = (me == 0 ? payload_a : payload_b) + (size_t)thread * WINDOW * bytes;
    for (long i = 0; i < n; i++) {
        uint32_t stamp = turn + (uint32_t)i + 1;
        if (me == 0) {
            payload_mark(buf, bytes, stamp);
            payload_mark(buf + (WINDOW - 1) * bytes, bytes, stamp);
            threads_send(thread, buf, bytes);
        } else {
            threads_receive(thread, buf, bytes);
            payload_check(buf, bytes, stamp);
            payload_check(buf + (WINDOW - 1) * bytes, bytes, stamp);
            env_request answer = env_thread_isend(thread, NULL, 0, 0, 5);
            env_waitall(1, &answer);
        }
    }
}

static void *threads_second(void *none)
{
    pthread_mutex_lock(&threads.lock);
    for (;;) {
        while (!threads.asked)
            pthread_cond_wait(&threads.change, &threads.lock);
        threads.asked = 0;
        pthread_mutex_unlock(&threads.lock);
        threads_part(1, threads.bytes, threads.n, threads.turn);
        pthread_mutex_lock(&threads.lock);
        threads.done = 1;
        pthread_cond_broadcast(&threads.change);
    }
    return none;
}

static void threads_begin(void)
{
    pthread_t second;
    env_threads(THREADS);
    if (pthread_create(&second, NULL, threads_second, NULL) != 0)
        env_fail("pthread_create", "no second thread");
    pthread_detach(second);
    threads.begun = 1;
}

static void message_rate_threads(size_t bytes, long n)
{
    if (!threads.begun)
        threads_begin();
    pthread_mutex_lock(&threads.lock);
    threads.bytes = bytes;
    threads.n = n;
    threads.turn = payload_turn;
    threads.done = 0;
    threads.asked = 1;
    pthread_cond_broadcast(&threads.change);
    pthread_mutex_unlock(&threads.lock);
    threads_part(0, bytes, n, payload_turn);
    pthread_mutex_lock(&threads.lock);
    while (!threads.done)
        pthread_cond_wait(&threads.change, &threads.lock);
    pthread_mutex_unlock(&threads.lock);
    payload_turn += (uint32_t)n;
}

OPERATION(message_rate_threads, .name = "message-rate-threads", .run = message_rate_threads, .parts = THREADS * WINDOW, .unit = 1, .pairs = 2, .blocks = THREADS * WINDOW)
#endif
