/* The content of the messages of a course, packed by its sender and unpacked by its receiver. */
#include "pvm_course.h"
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 11, TEXT = 11, FORMATTED = 12, MESSAGE = 13, LARGEST = 3 << 20, SPREAD = 4096 };

/* Items packed in place must not change until they have been sent. */
static unsigned char source[LARGEST + 65536], target[LARGEST + 65536];

static const size_t sizes[NUMBERS] = {1, 2, 4, 8, 2, 4, 8, 4, 8, 8, 16};

struct item {
    int kind, count, stride;
    uint64_t seed;
};

struct content {
    int items;
    struct item item[8];
    int ragged; /* it contains uninitialized bytes */
    int nested, large;
};

uint32_t digest(const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ at[i]) * 16777619u;
    return hash;
}

int data_type(int kind)
{
    static const int types[NUMBERS] = {PVM_BYTE, PVM_SHORT, PVM_INT, PVM_LONG, PVM_USHORT, PVM_UINT,
                                       PVM_ULONG, PVM_FLOAT, PVM_DOUBLE, PVM_CPLX, PVM_DCPLX};
    return types[kind];
}

/* Returns a length near those at which a library changes its behaviour. */
static int large_length(uint64_t *state)
{
    static const int around[] = {2048, 4064, 4080, 4096, 8192, 16384, 32768, 65536, 131072, 262144};
    unsigned which = random_below(state, 40);
    if (which == 0)
        return LARGEST;
    if (which == 1)
        return 1 << 20;
    return around[which % 10] + 4 * ((int)random_below(state, 9) - 4);
}

static struct content content_of(uint64_t script, int encoding)
{
    uint64_t state = script;
    struct content content = {0};
    content.items = (int)random_below(&state, 6);
    int large = random_below(&state, 8) == 0 ? (int)random_below(&state, 6) : -1;
    for (int at = 0; at < content.items; at++) {
        struct item *item = &content.item[at];
        unsigned what = random_below(&state, 24);
        item->kind = what < 20 ? (int)(what % NUMBERS) : (int)what % 3 + TEXT;
        /* A string cannot be packed in place. */
        if (item->kind > NUMBERS - 1 && encoding == PvmDataInPlace)
            item->kind = 3;
        item->count = (int)random_below(&state, 20);
        item->stride = random_below(&state, 4) ? 1 : 1 + (int)random_below(&state, 4);
        item->seed = next_random(&state);
        if (item->kind == 0 && random_below(&state, 6))
            item->count = item->count / 4 * 4;
        if (at == large && item->kind < NUMBERS) {
            item->count = large_length(&state) / (int)sizes[item->kind];
            item->stride = 1;
            content.large = 1;
        }
        if (item->kind == 0 && item->count % 4)
            content.ragged = 1;
        if (item->kind >= TEXT)
            content.ragged = 1;
        content.nested |= item->kind == MESSAGE;
    }
    return content;
}

static void fill(unsigned char *bytes, size_t length, int kind, uint64_t seed)
{
    if (kind >= 7) {
        for (size_t at = 0; at < length / 4 && (kind == 7 || kind == 9); at++)
            ((float *)(void *)bytes)[at] = (float)random_below(&seed, 1000) / 8;
        for (size_t at = 0; at < length / 8 && (kind == 8 || kind == 10); at++)
            ((double *)(void *)bytes)[at] = (double)random_below(&seed, 1000) / 8;
        return;
    }
    for (size_t at = 0; at < length; at += 8) {
        uint64_t word = next_random(&seed);
        /*
         * A long that does not fit into its encoded form is truncated, or fails at the end of a fragment of PVM's
         * memory.
         */
        if (kind == 3 || kind == 6)
            word >>= 33;
        memcpy(bytes + at, &word, 8);
    }
}

static int pack_numbers(int kind, void *items, int count, int stride)
{
    switch (kind) {
    case 0: return pvm_pkbyte(items, count, stride);
    case 1: return pvm_pkshort(items, count, stride);
    case 2: return pvm_pkint(items, count, stride);
    case 3: return pvm_pklong(items, count, stride);
    case 4: return pvm_pkushort(items, count, stride);
    case 5: return pvm_pkuint(items, count, stride);
    case 6: return pvm_pkulong(items, count, stride);
    case 7: return pvm_pkfloat(items, count, stride);
    case 8: return pvm_pkdouble(items, count, stride);
    case 9: return pvm_pkcplx(items, count, stride);
    default: return pvm_pkdcplx(items, count, stride);
    }
}

static int unpack_numbers(int kind, void *items, int count, int stride)
{
    switch (kind) {
    case 0: return pvm_upkbyte(items, count, stride);
    case 1: return pvm_upkshort(items, count, stride);
    case 2: return pvm_upkint(items, count, stride);
    case 3: return pvm_upklong(items, count, stride);
    case 4: return pvm_upkushort(items, count, stride);
    case 5: return pvm_upkuint(items, count, stride);
    case 6: return pvm_upkulong(items, count, stride);
    case 7: return pvm_upkfloat(items, count, stride);
    case 8: return pvm_upkdouble(items, count, stride);
    case 9: return pvm_upkcplx(items, count, stride);
    default: return pvm_upkdcplx(items, count, stride);
    }
}

static size_t reach(const struct item *item)
{
    return sizes[item->kind] * (size_t)(item->count * item->stride + 1);
}

/* Packs a message with some numbers into the message that is being packed. */
static void pack_message(uint64_t seed)
{
    int numbers[8], outer = pvm_getsbuf(), encoding = (int)random_below(&seed, 2);
    int count = 1 + (int)random_below(&seed, 8);
    for (int at = 0; at < count; at++)
        numbers[at] = (int)next_random(&seed);
    int inner = pvm_mkbuf(encoding);
    pvm_setsbuf(inner);
    pvm_pkint(numbers, count, 1);
    pvm_setsbuf(outer);
    struct pvmminfo info = {0, 1, 2, 3, 4, 5, 6, 7};
    pvm_setminfo(inner, &info);
    say(" mesg %d", pvm_pkmesg(inner));
    say(" %d", pvm_freebuf(inner));
}

static void unpack_message(uint64_t seed)
{
    int numbers[8] = {0}, outer = pvm_getrbuf(), length = -1, tag = -1;
    (void)random_below(&seed, 2);
    int count = 1 + (int)random_below(&seed, 8);
    int inner = pvm_upkmesg();
    say(" mesg %d", inner > 0 ? 1 : inner);
    if (inner <= 0)
        return;
    say(" %d %d", pvm_bufinfo(inner, &length, &tag, NULL), length);
    pvm_setrbuf(inner);
    say(" %d %08x", pvm_upkint(numbers, count, 1), digest(numbers, sizeof numbers));
    pvm_setrbuf(outer);
    say(" %d", pvm_freebuf(inner));
}

static char *text_of(uint64_t seed, int length)
{
    static char text[64];
    memset(text, 'a' + (int)random_below(&seed, 26), sizeof text);
    text[length] = 0;
    return text;
}

void pack_script(uint64_t script, int encoding)
{
    struct content content = content_of(script, encoding);
    unsigned char *at = source;
    for (int i = 0; i < content.items; i++) {
        struct item *item = &content.item[i];
        switch (item->kind) {
        case TEXT:
            strcpy((char *)at, text_of(item->seed, item->count));
            say(" %d", pvm_pkstr((char *)at));
            at += 64;
            break;
        case FORMATTED:
            fill(at, 16, 3, item->seed);
            say(" %d", pvm_packf("%d %s %2ld", (int)item->seed, text_of(item->seed, item->count), (long *)(void *)at));
            at += 64;
            break;
        case MESSAGE:
            pack_message(item->seed);
            break;
        default:
            fill(at, reach(item), item->kind, item->seed);
            say(" %d", pack_numbers(item->kind, at, item->count, item->stride));
            at += (reach(item) + 15) / 16 * 16;
        }
    }
}

static void unpack_text(void)
{
    memset(target, 0xa5, 128);
    int code = pvm_upkstr((char *)target);
    say(" str %d %08x", code, digest(target, 128));
}

static void unpack_formatted(void)
{
    int number = 0;
    long pair[2] = {0, 0};
    memset(target, 0xa5, 128);
    say(" f %d", pvm_unpackf("%d %s %2ld", &number, (char *)target, pair));
    say(" %d %08x %08x", number, digest(target, 128), digest(pair, sizeof pair));
}

static int unpack_some(int kind, int count, int stride)
{
    size_t length = sizes[kind] * (size_t)((count > 0 ? count : 0) * stride + 1);
    memset(target, 0xa5, length + 64);
    int code = unpack_numbers(kind, target, count, stride);
    say(" %dx%d/%d %d", kind, count, stride, code);
    if (code == PvmOk)
        say(" %08x", digest(target, length));
    return code;
}

/* Unpacks the items one after the other, possibly with another stride, or in two parts. */
static void unpack_exactly(const struct content *content, uint64_t way)
{
    for (int i = 0; i < content->items; i++) {
        const struct item *item = &content->item[i];
        int small = item->count < SPREAD, stride = small ? 1 + (int)random_below(&way, 3) : 1;
        if (item->kind == TEXT) {
            unpack_text();
        } else if (item->kind == FORMATTED) {
            unpack_formatted();
        } else if (item->kind == MESSAGE) {
            unpack_message(item->seed);
        } else if (item->kind != 0 && random_below(&way, 4) == 0) {
            unpack_some(item->kind, item->count / 2, stride);
            unpack_some(item->kind, item->count - item->count / 2, 1);
        } else {
            unpack_some(item->kind, item->count, stride);
        }
    }
}

/* Unpacks something else than what was packed. */
static void unpack_wrongly(uint64_t way)
{
    for (int tries = 1 + (int)random_below(&way, 5); tries > 0; tries--) {
        int kind = (int)random_below(&way, NUMBERS), count = (int)random_below(&way, 30);
        if (random_below(&way, 10) == 0)
            count = -1 - (int)random_below(&way, 3);
        unpack_some(kind, count, 1 + (int)random_below(&way, 3));
    }
}

/* Bytes are not changed by any encoding, so the encoded form of other items can be read as bytes. */
static void unpack_as_it_travels(void)
{
    int length = 0;
    pvm_bufinfo(pvm_getrbuf(), &length, NULL, NULL);
    say(" travels as");
    unpack_some(0, length < LARGEST ? length / 4 * 4 : LARGEST, 1);
}

void unpack_script(uint64_t script, int encoding, uint64_t way)
{
    struct content content = content_of(script, encoding);
    unsigned what = random_below(&way, 7);
    /* Padding between strings is not defined. */
    if (what < 2 && (content.ragged || content.nested))
        what = 3;
    switch (what) {
    case 0:
        unpack_wrongly(way);
        break;
    case 1:
        unpack_as_it_travels();
        break;
    default:
        unpack_exactly(&content, way);
        if (random_below(&way, 3) == 0) {
            say(" beyond");
            unpack_some((int)random_below(&way, NUMBERS), 1, 1);
        }
        break;
    case 2:
        say(" left");
        break;
    }
}

void unpack_all_numbers(int length)
{
    if (length > 4 * SPREAD)
        length = 4 * SPREAD;
    unpack_some(2, length / 4, 1);
}

/* Returns one item that is sent without packing. */
static struct item single(uint64_t script)
{
    uint64_t state = script;
    struct item item = {(int)random_below(&state, NUMBERS), (int)random_below(&state, 30), 1, 0};
    item.seed = next_random(&state);
    if (random_below(&state, 6) == 0)
        item.count = large_length(&state) / (int)sizes[item.kind];
    if (item.kind == 0)
        item.count = item.count / 4 * 4;
    return item;
}

int send_single(uint64_t script, int to, int tag)
{
    struct item item = single(script);
    fill(source, reach(&item), item.kind, item.seed);
    return pvm_psend(to, tag, (char *)source, item.count, data_type(item.kind));
}

void receive_single(uint64_t script, int from, int tag)
{
    struct item item = single(script);
    uint64_t state = mixed(script, 7);
    int source_tid = -1, its_tag = -1, length = -1, count = item.count;
    switch (random_below(&state, 4)) {
    case 0: count = count / 2; break;
    case 1: count = count + 5; break;
    }
    size_t bytes = sizes[item.kind] * (size_t)(count > item.count ? count : item.count);
    memset(target, 0xa5, bytes + 16);
    int code = pvm_precv(from, tag, (char *)target, count, data_type(item.kind), &source_tid, &its_tag, &length);
    say(" precv %d from", code);
    say_tid(source_tid);
    say(" %d %d %08x", its_tag, length, digest(target, bytes + 16));
}
