/*
 * Writes a file and prints how long that took: `cubix_write plain FILE MIB BLOCK` in one task with write(2),
 * `cubix_write multi ...` on all nodes with Cubix in multi mode. Each node writes an equal part; BLOCK is the size of
 * one write call in KiB. `each` instead of `multi` flushes after each block.
 */
#define _GNU_SOURCE
#include <cubix.h>
#include <express.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void need(int fine, const char *what)
{
    if (fine)
        return;
    perror(what);
    exit(1);
}

static void plain(const char *path, const char *block, size_t len, size_t blocks)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    need(fd >= 0, "open");
    for (size_t i = 0; i < blocks; i++)
        for (size_t done = 0; done < len;) {
            ssize_t part = write(fd, block + done, len - done);
            need(part > 0, "write");
            done += (size_t)part;
        }
    need(close(fd) == 0, "close");
}

static void together(const char *path, const char *block, size_t len, size_t blocks, int each)
{
    FILE *file = fopen(path, "w");

    need(file != NULL && fmulti(file) == 0, "fopen");
    for (size_t i = 0; i < blocks; i++) {
        need(fwrite(block, 1, len, file) == len, "fwrite");
        if (each)
            need(fflush(file) == 0, "fflush");
    }
    need(fclose(file) == 0, "fclose");
}

int main(int argc, char **argv)
{
    struct nodenv env = {0, 1, 0, 0};

    need(argc == 5, "cubix_write plain|multi|each FILE MIB BLOCK");
    int alone = strcmp(argv[1], "plain") == 0;
    size_t whole = strtoul(argv[3], NULL, 10) << 20, len = strtoul(argv[4], NULL, 10) << 10;
    need(alone || exparam(&env) == 0, "exparam");
    size_t blocks = len ? whole / (size_t)env.nprocs / len : 0;
    char *block = malloc(len);
    need(blocks > 0 && block != NULL, "nothing to write");
    memset(block, 'a' + env.procnum, len);
    if (!alone)
        exsync();
    double begin = now();
    if (alone)
        plain(argv[2], block, len, blocks);
    else
        together(argv[2], block, len, blocks, strcmp(argv[1], "each") == 0);
    double took = now() - begin;
    if (!alone)
        exsync();
    if (env.procnum == 0)
        fprintf(stderr, "%.4f\n", took);
    free(block);
    return 0;
}
