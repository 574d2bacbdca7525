/* loan: a megabyte is passed around all tasks, and each adds 1 to every byte. It is never copied:
 * the block is borrowed from Regatta once, and then handed from task to task. */
#include <regatta.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int code)
{
    if (code < 0) {
        fprintf(stderr, "loan: %s\n", rg_last_error());
        exit(1);
    }
}

int main(void)
{
    enum { TAG = 1, LENGTH = 1 << 20 };

    check(rg_init());
    int rank = rg_rank(RG_WORLD), size = rg_size(RG_WORLD);
    int left = (rank + size - 1) % size, right = (rank + 1) % size;

    void *block;
    if (rank == 0) {
        check(rg_loan(LENGTH, &block));
        memset(block, 0, LENGTH); /* the initial contents of a loan are unspecified */
    } else {
        check(rg_loan_recv(&block, left, TAG, RG_WORLD, NULL));
    }
    unsigned char *bytes = block;
    for (int i = 0; i < LENGTH; i++)
        bytes[i]++;
    printf("task %d hands on bytes of %d\n", rank, bytes[LENGTH - 1]);
    /* From here on the block belongs to the receiver. */
    check(rg_loan_send(block, LENGTH, right, TAG, RG_WORLD));

    int wrong = 0;
    if (rank == 0) {
        rg_status status;
        check(rg_loan_recv(&block, left, TAG, RG_WORLD, &status));
        bytes = block;
        wrong = status.length != LENGTH;
        for (int i = 0; i < LENGTH; i++)
            wrong |= bytes[i] != (unsigned char)size;
        printf("after %d tasks: %zu bytes of %d\n", size, status.length, bytes[0]);
        check(rg_loan_free(block));
    }
    check(rg_finalize());
    return wrong;
}
