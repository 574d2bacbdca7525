/* picture.h: a picture's checksum, and its file: a PNG whose data are stored without compression. */
#ifndef RIBBIT_PICTURE_H
#define RIBBIT_PICTURE_H

#include "../clock.h"
#include <stdint.h>
#include <string.h>

enum { PICTURE_MAX_STORED = 65535 /* bytes of one block of deflate */ };

/* Returns the CRC-32 of earlier bytes, whose CRC is `crc` (0 for none), followed by `count` more. */
static uint32_t picture_crc(uint32_t crc, const unsigned char *bytes, size_t count)
{
    crc = ~crc;
    for (size_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0xEDB88320) : 0);
    }
    return ~crc;
}

static void picture_put32(unsigned char *at, uint32_t value)
{
    for (int k = 0; k < 4; k++)
        at[k] = (unsigned char)(value >> (24 - 8 * k));
}

/* Writes a chunk: its length, its name, its data, and the CRC of name and data. */
static void picture_chunk(FILE *file, const char name[4], const unsigned char *data, size_t length)
{
    unsigned char word[4];
    picture_put32(word, (uint32_t)length);
    fwrite(word, 1, 4, file);
    fwrite(name, 1, 4, file);
    fwrite(data, 1, length, file);
    picture_put32(word, picture_crc(picture_crc(0, (const unsigned char *)name, 4), data, length));
    fwrite(word, 1, 4, file);
}

/* Writes a zlib stream with `bytes` in stored blocks to `out`. Returns its length. */
static size_t picture_stored(unsigned char *out, const unsigned char *bytes, size_t count)
{
    size_t length = 0;
    uint32_t a = 1, b = 0; /* the two halves of the Adler-32 checksum */
    out[length++] = 0x78;
    out[length++] = 0x01;
    for (size_t start = 0; start < count; start += PICTURE_MAX_STORED) {
        size_t size = count - start < PICTURE_MAX_STORED ? count - start : PICTURE_MAX_STORED;
        out[length++] = start + size == count;
        out[length++] = size & 255;
        out[length++] = (unsigned char)(size >> 8);
        out[length++] = ~size & 255;
        out[length++] = (unsigned char)(~size >> 8);
        memcpy(out + length, bytes + start, size);
        length += size;
    }
    for (size_t i = 0; i < count; i++) {
        a = (a + bytes[i]) % 65521;
        b = (b + a) % 65521;
    }
    picture_put32(out + length, b << 16 | a);
    return length + 4;
}

/* Writes a picture with three bytes per pixel, row by row from the top. Returns whether it was written. */
static int picture_write(const char *name, const unsigned char *pixels, int width, int height)
{
    FILE *file = fopen(name, "wb");
    if (!file)
        return 0;
    unsigned char header[13] = {[8] = 8 /* bits */, [9] = 2 /* red, green, blue */};
    picture_put32(header, (uint32_t)width);
    picture_put32(header + 4, (uint32_t)height);

    /* Each row is preceded by the number of its filter: 0, none. */
    size_t row = 3 * (size_t)width, raw = (row + 1) * (size_t)height;
    unsigned char *rows = zeroed_memory(raw, 1), *data = zeroed_memory(raw + 5 * (raw / PICTURE_MAX_STORED + 1) + 6, 1);
    for (size_t y = 0; y < (size_t)height; y++)
        memcpy(rows + y * (row + 1) + 1, pixels + y * row, row);

    fwrite("\x89PNG\r\n\x1a\n", 1, 8, file);
    picture_chunk(file, "IHDR", header, sizeof header);
    picture_chunk(file, "IDAT", data, picture_stored(data, rows, raw));
    picture_chunk(file, "IEND", header, 0);
    free(rows);
    free(data);
    int wrong = ferror(file);
    return fclose(file) == 0 && !wrong;
}

#endif
