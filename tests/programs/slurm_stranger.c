/*
 * Behaves like a task of a program that was built with another version of Regatta: connects to the guardian's socket on
 * its node, and prints the answer. Waits for that socket as long as necessary.
 */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "regatta/%d/%s.%s/%s", (int)geteuid(),
                          getenv("SLURM_JOB_ID"), getenv("SLURM_STEP_ID"), getenv("SLURM_NODEID"));
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    int line = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    while (connect(line, (struct sockaddr *)&address, size) != 0)
        continue;
    unsigned char hello[20] = "rgslurm\x01\x01\0\0\0\x63\0\0\0";
    hello[16] = (unsigned char)atoi(getenv("SLURM_PROCID"));
    char answer[4096] = "";
    if (send(line, hello, sizeof hello, 0) != sizeof hello || recv(line, answer, sizeof answer - 1, 0) < 6)
        return 1;
    printf("stranger %d %s\n", answer[1], answer + 6);
    return 0;
}
