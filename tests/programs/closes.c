/*
 * Opens the library named by the argument, calls it in two threads, and closes it before they end. The library's
 * cleanup at the end of these threads and of the process must still work.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef int (*call)(void);

static pthread_barrier_t called, closed;
static void *library;

static void need(int holds, const char *what)
{
    if (holds)
        return;
    const char *error = dlerror();
    fprintf(stderr, "%s: %s\n", what, error != NULL ? error : "no");
    exit(1);
}

static int made(const char *name)
{
    call function;
    *(void **)&function = dlsym(library, name);
    need(function != NULL, name);
    return function();
}

/* Gets an error, whose text is stored for this thread and must be freed when it ends. */
static void *fail(void *unused)
{
    need(made("rg_finalize") < 0, "an error");
    pthread_barrier_wait(&called);
    pthread_barrier_wait(&closed);
    return unused;
}

int main(int count, char **words)
{
    pthread_t other;
    need(count == 2, "the library's name");
    library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
    need(library != NULL, "dlopen");
    need(made("rg_init") == 0 && made("rg_finalize") == 0, "calls");
    pthread_barrier_init(&called, NULL, 2);
    pthread_barrier_init(&closed, NULL, 2);
    need(pthread_create(&other, NULL, fail, NULL) == 0, "a thread");
    pthread_barrier_wait(&called);
    need(dlclose(library) == 0, "dlclose");
    pthread_barrier_wait(&closed);
    need(pthread_join(other, NULL) == 0, "its end");
    printf("closed\n");
    fflush(stdout);
    pthread_exit(NULL);
}
