/* contiguous.h: packs a parcel into one block of bytes, for interfaces whose messages are that. All tasks must have the
 * same data representation. */
#ifndef RIBBIT_CONTIGUOUS_H
#define RIBBIT_CONTIGUOUS_H

#include "ribbit.h"

/* Size of the longest parcel, in bytes. */
enum { CONTIGUOUS_ROOM = (PARCEL_HEAD + PARCEL_INTS) * (int)sizeof(int) + PARCEL_NUMBERS * (int)sizeof(double) + PARCEL_BYTES };

static char contiguous_space[CONTIGUOUS_ROOM];

static void contiguous_put(int *at, const void *data, size_t bytes)
{
    memcpy(contiguous_space + *at, data, bytes);
    *at += (int)bytes;
}

static void contiguous_get(int *at, void *data, size_t bytes)
{
    memcpy(data, contiguous_space + *at, bytes);
    *at += (int)bytes;
}

/* Copies the used parts of a parcel into one block. Returns its length in bytes. */
static int contiguous_pack(const struct parcel *parcel)
{
    int at = 0;
    contiguous_put(&at, &parcel->kind, PARCEL_HEAD * sizeof(int));
    contiguous_put(&at, parcel->piece_ints, (size_t)parcel->pieces * PIECE_INTS * sizeof(int));
    contiguous_put(&at, parcel->number, (size_t)parcel->numbers * sizeof(double));
    contiguous_put(&at, parcel->byte, (size_t)parcel->bytes);
    return at;
}

/* Copies the parts back from the block. The header, which comes first, has the lengths of the others. */
static void contiguous_unpack(struct parcel *parcel)
{
    int at = 0;
    contiguous_get(&at, &parcel->kind, PARCEL_HEAD * sizeof(int));
    contiguous_get(&at, parcel->piece_ints, (size_t)parcel->pieces * PIECE_INTS * sizeof(int));
    contiguous_get(&at, parcel->number, (size_t)parcel->numbers * sizeof(double));
    contiguous_get(&at, parcel->byte, (size_t)parcel->bytes);
}

#endif
