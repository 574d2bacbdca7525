/*
 * buffered: task 0 sends more to task 1 than any ring holds. Task 1 calls Regatta only after everything was sent (it
 * learns that through a named pipe), then receives messages that fit and messages that do not.
 */
#include <regatta.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MESSAGE_BYTES 5000 /* length of the messages in bytes */
#define BYTES 700
#define LARGE (6 << 20)

#define CHECK(what)                                                                                \
    do {                                                                                           \
        int code_ = (what);                                                                        \
        if (code_ < 0) {                                                                           \
            printf("%s: %s\n", #what, rg_last_error());                                            \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

static unsigned char large[LARGE];

static void send_all(const char *file)
{
    unsigned char small[BYTES];
    for (int i = 0; i < MESSAGE_BYTES; i++) {
        memset(small, i, sizeof small);
        CHECK(rg_bsend(small, sizeof small, 1, 1, RG_ALL));
    }
    for (int i = 0; i < LARGE; i++)
        large[i] = (unsigned char)(i * 7);
    rg_view halves[2] = {{large, LARGE / 2, 1, 0}, {large + LARGE / 2, LARGE / 2, 1, 0}};
    CHECK(rg_bsendv(halves, 2, 1, 2, RG_ALL));
    memset(large, 0, sizeof large); /* the send is complete, so the memory may be changed */
    FILE *sent = fopen(file, "w");
    if (!sent || fclose(sent))
        exit(EXIT_FAILURE);
}

static int receive_all(const char *file)
{
    unsigned char small[BYTES];
    rg_status status;
    int wrong = 0;
    /* Blocks until the sender opens the pipe, without any call of Regatta. */
    FILE *sent = fopen(file, "r");
    CHECK(sent != NULL && fclose(sent) == 0);
    for (int i = 0; i < MESSAGE_BYTES; i++) {
        CHECK(rg_recv_within(small, sizeof small, RG_ANY, 1, RG_ALL, -1, &status));
        wrong += status.length != BYTES || small[0] != (unsigned char)i || small[BYTES - 1] != small[0];
    }
    int code = rg_recv_within(small, sizeof small, RG_ANY, RG_ANY, RG_ALL, 20, &status);
    wrong += code != RG_ERR_TRUNCATED || status.length != LARGE || status.source != 0 || status.tag != 2;
    code = rg_recv_within(small, sizeof small, 0, 3, RG_ALL, 0, &status);
    wrong += code != RG_ERR_NOTHING;
    double before = rg_time();
    code = rg_recv_within(small, sizeof small, 0, 3, RG_ALL, 0.05, &status);
    wrong += code != RG_ERR_NOTHING || rg_time() - before < 0.05;
    CHECK(rg_recv_within(large, sizeof large, 0, 2, RG_ALL, -1, &status));
    for (int i = 0; i < LARGE; i++)
        wrong += large[i] != (unsigned char)(i * 7);
    return wrong;
}

int main(int argc, char **argv)
{
    int wrong = 0;
    if (argc != 2)
        return EXIT_FAILURE;
    CHECK(rg_init());
    wrong += rg_host_of(0) != 0 || rg_host_of(7) != RG_ERR_TASK;
    if (rg_rank(RG_WORLD) == 0)
        send_all(argv[1]);
    else
        wrong += receive_all(argv[1]);
    /* rg_finalize first sends the messages that are still queued. */
    CHECK(rg_finalize());
    if (wrong)
        printf("%d things are wrong\n", wrong);
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
