/*
 * A random sequence of calls on PVM's buffers, valid and invalid. Prints the result of each call. The output must be
 * the same on PVM's own library and on Regatta's.
 *
 *   pvm_packing SEED STEPS
 *
 * Buffer numbers differ, so the output names buffers by their index in a table. Accidental behaviour of PVM's own
 * library is left out: the form of a message in several of its fragments, data packed after pvm_pkmesgbody, and empty
 * messages inside messages.
 */
#include <pvm3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int pvm_errno;

enum { BUFFERS = 6, MEMORY_BYTES = 8192, ITEMS = 24, MAX_ITEM_BYTES = 3000, KINDS = 11 };

static struct {
    int id;       /* 0 if there is none */
    int encoding; /* as passed to pvm_mkbuf */
    int closed;   /* nothing more is packed into it; 2: it has been joined with another */
    int unread;   /* its content must not be read, because it differs from run to run */
    int ragged;   /* it has uninitialized padding bytes (items are padded to four bytes) */
} table[BUFFERS];

static uint64_t state;
/* Items packed in place must not change. */
static unsigned char source[MEMORY_BYTES], target[MEMORY_BYTES];

static unsigned random_below(unsigned most)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % most;
}

static uint32_t digest(const unsigned char *bytes, size_t length)
{
    uint32_t hash = 2166136261u;
    for (size_t at = 0; at < length; at++)
        hash = (hash ^ bytes[at]) * 16777619u;
    return hash;
}

static int place_of(int id)
{
    for (int place = 0; place < BUFFERS; place++)
        if (id > 0 && table[place].id == id)
            return place;
    return -1;
}

/* Prints a buffer number as its index, or as an error, or as unknown. */
static void show(int id)
{
    if (id <= 0)
        printf(" %d", id);
    else if (place_of(id) >= 0)
        printf(" #%d", place_of(id));
    else
        printf(" ?");
}

static int length_of(int place)
{
    int length = -1;
    pvm_bufinfo(table[place].id, &length, NULL, NULL);
    return length;
}

/* Returns a buffer of the table, or an invalid number. */
static int some_id(void)
{
    static const int odd[] = {0, -1, -77, 1000000, 2000000000};
    if (random_below(12) == 0)
        return odd[random_below(5)];
    return table[random_below(BUFFERS)].id;
}

static void forget(int place)
{
    if (place >= 0)
        memset(&table[place], 0, sizeof table[place]);
}

static int free_place(void)
{
    for (int place = 0; place < BUFFERS; place++)
        if (!table[place].id)
            return place;
    return -1;
}

static int some_encoding(void)
{
    static const int encodings[] = {0, 0, 0, 1, 1, 1, 2, 4, 3, -1, 9};
    return encodings[random_below(11)];
}

static void enter(int place, int id, int encoding)
{
    table[place].id = id;
    table[place].encoding = encoding;
    table[place].closed = 0;
    table[place].ragged = 0;
    table[place].unread = encoding == PvmDataTrace;
}

static void make(void)
{
    int place = free_place(), encoding = some_encoding();
    if (place < 0)
        return;
    int id = pvm_mkbuf(encoding);
    if (id > 0)
        enter(place, id, encoding);
    printf("mkbuf %d:", encoding);
    show(id);
}

static void init(void)
{
    int before = place_of(pvm_getsbuf()), encoding = some_encoding();
    int id = pvm_initsend(encoding);
    int place = before >= 0 ? before : free_place();
    if (id > 0 && place >= 0)
        enter(place, id, encoding);
    else if (id > 0)
        pvm_freebuf(id);
    printf("initsend %d:", encoding);
    show(id);
}

static void release(void)
{
    int id = some_id(), place = place_of(id);
    printf("freebuf");
    show(id);
    printf(": %d", pvm_freebuf(id));
    forget(place);
}

static void set(void)
{
    int id = some_id(), sending = random_below(2);
    printf(sending ? "setsbuf" : "setrbuf");
    show(id);
    int before = sending ? pvm_setsbuf(id) : pvm_setrbuf(id);
    printf(":");
    show(before);
    printf(", now");
    show(pvm_getsbuf());
    show(pvm_getrbuf());
}

/* Fills items with numbers that survive the conversion. */
static void fill(int kind)
{
    for (int at = 0; at < MEMORY_BYTES; at++)
        source[at] = (unsigned char)random_below(256);
    if (kind == 7 || kind == 9)
        for (int at = 0; at < MEMORY_BYTES / 4; at++)
            ((float *)(void *)source)[at] = (float)random_below(1000) / 8;
    if (kind == 8 || kind == 10)
        for (int at = 0; at < MEMORY_BYTES / 8; at++)
            ((double *)(void *)source)[at] = (double)random_below(1000) / 8;
}

static int pack_kind(int kind, void *items, int count, int stride)
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

static int unpack_kind(int kind, void *items, int count, int stride)
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

/* Returns whether more may be packed into the send buffer. */
static int may_pack(void)
{
    int place = place_of(pvm_getsbuf());
    return place < 0 || (!table[place].closed && length_of(place) < MAX_ITEM_BYTES);
}

/* Notes that this many bytes have been packed, which may leave uninitialized padding. */
static void packed_bytes(int count)
{
    int place = place_of(pvm_getsbuf());
    if (place >= 0 && count > 0 && count % 4)
        table[place].ragged = 1;
}

static int some_count(void)
{
    return random_below(15) == 0 ? -1 - (int)random_below(3) : (int)random_below(ITEMS);
}

static void pack(void)
{
    int kind = random_below(KINDS), count = some_count(), stride = 1;
    if (!may_pack())
        return;
    if (random_below(3) == 0)
        stride = (int)random_below(7) - 3;
    if (kind == 0 && random_below(8))
        count = count / 4 * 4;
    if (kind == 0)
        packed_bytes(count);
    fill(kind);
    void *items = source + (stride < 0 ? MEMORY_BYTES / 2 : 0);
    printf("pack %d x%d/%d: %d", kind, count, stride, pack_kind(kind, items, count, stride));
}

static int may_unpack(void)
{
    int place = place_of(pvm_getrbuf());
    return place < 0 || !table[place].unread;
}

/*
 * Returns whether doubles may be unpacked. If the halves of a double are in two fragments, PVM's library makes the
 * message longer when reading it.
 */
static int may_unpack_doubles(void)
{
    int place = place_of(pvm_getrbuf());
    return may_unpack() && (place < 0 || table[place].closed != 2);
}

/* Returns whether strings may be unpacked. A string begins with its length, which must not be uninitialized padding. */
static int may_unpack_text(void)
{
    int place = place_of(pvm_getrbuf());
    return may_unpack() && (place < 0 || !table[place].ragged);
}

/* Prints the unpacked items, unless there were too few. */
static void judge(int code)
{
    int place = place_of(pvm_getrbuf());
    if (code == 0 && (place < 0 || !table[place].ragged))
        printf(" %08x", digest(target, MEMORY_BYTES));
    else if (place >= 0 && table[place].closed == 2)
        table[place].unread = 1;
}

static void unpack(void)
{
    int kind = random_below(KINDS), count = some_count(), stride = 1;
    if (kind == 8 || kind == 10 ? !may_unpack_doubles() : !may_unpack())
        return;
    if (random_below(3) == 0)
        stride = (int)random_below(7) - 3;
    memset(target, 0xa5, MEMORY_BYTES);
    int code = unpack_kind(kind, target + MEMORY_BYTES / 2 - (stride > 0 ? MEMORY_BYTES / 4 : 0), count, stride);
    printf("unpack %d x%d/%d: %d", kind, count, stride, code);
    judge(code);
}

static void text(void)
{
    char words[64];
    unsigned length = random_below(40);
    if (random_below(2)) {
        if (!may_pack())
            return;
        if (random_below(8))
            length |= 3;
        packed_bytes((int)length + 1);
        if (place_of(pvm_getsbuf()) >= 0 && table[place_of(pvm_getsbuf())].encoding == PvmDataTrace)
            packed_bytes((int)length);
        memset(words, 'a' + (int)length % 26, length);
        words[length] = 0;
        printf("pkstr %u: %d", length, pvm_pkstr(words));
    } else {
        if (!may_unpack_text())
            return;
        memset(target, 0xa5, MEMORY_BYTES);
        int code = pvm_upkstr((char *)target);
        printf("upkstr: %d", code);
        judge(code);
    }
}

static void tell(void)
{
    int id = some_id(), length = -9, tag = -9, tid = -9;
    struct pvmminfo info;
    memset(&info, 0x5a, sizeof info);
    printf("bufinfo");
    show(id);
    printf(": %d", pvm_bufinfo(id, &length, &tag, &tid));
    printf(" %d %d, getminfo %d", length, tag, pvm_getminfo(id, &info));
    printf(" %d %d %d %d %x %d %d", info.len, info.ctx, info.tag, info.wid, info.enc, info.crc, info.dst);
}

static void change(void)
{
    int id = some_id();
    struct pvmminfo info = {7, (int)random_below(9), (int)random_below(99), 5, 6, 7, 8, (int)random_below(9)};
    printf("setminfo");
    show(id);
    printf(": %d", pvm_setminfo(id, &info));
}

static void nest(void)
{
    int id = some_id(), inner = place_of(id), outer = place_of(pvm_getsbuf()), whole = random_below(2);
    if (!may_pack() || (outer >= 0 && table[outer].encoding == PvmDataInPlace))
        return;
    if (inner >= 0 && whole && table[inner].closed == 2)
        return;
    if (inner >= 0 && (length_of(inner) == 0 || length_of(inner) > MAX_ITEM_BYTES / 4))
        return;
    /* The creator's task number is packed as well, and differs in each run, so this replaces it. */
    struct pvmminfo info = {0, 1, 2, 3, 4, 5, 6, 7};
    if (inner >= 0)
        pvm_setminfo(id, &info);
    int code = whole ? pvm_pkmesg(id) : pvm_pkmesgbody(id);
    printf(whole ? "pkmesg" : "pkmesgbody");
    show(id);
    printf(": %d", code);
    if (inner >= 0 && outer >= 0 && inner != outer) {
        table[outer].unread |= table[inner].unread;
        table[outer].ragged |= table[inner].ragged | (length_of(inner) % 4 != 0);
        if (!whole && code == 0)
            table[inner].closed = table[outer].closed = 2;
    }
}

/* Unpacks a message from the receive buffer. `sure` says that there is one. */
static void unnest(int sure)
{
    int from = place_of(pvm_getrbuf()), place = free_place();
    sure |= from < 0;
    if (!may_unpack() || place < 0)
        return;
    int id = pvm_upkmesg();
    printf("upkmesg:");
    /* If there is no message, the result is accidental. */
    if (!sure) {
        table[from].unread = 1;
        if (id > 0)
            pvm_freebuf(id);
        return;
    }
    if (id > 0) {
        enter(place, id, -1);
        table[place].unread = from >= 0 && table[from].unread;
        table[place].ragged = from >= 0 && table[from].ragged;
        /* Its memory has no room for more. */
        table[place].closed = 1;
    }
    show(id);
}

/* Packs a message and a number into a new message, and unpacks both again. */
static void envelope(void)
{
    int place = free_place(), inner = (int)random_below(BUFFERS), encoding = (int)random_below(2), number = 77;
    if (place < 0 || !table[inner].id || table[inner].closed == 2)
        return;
    if (length_of(inner) == 0 || length_of(inner) > MAX_ITEM_BYTES / 4)
        return;
    enter(place, pvm_mkbuf(encoding), encoding);
    pvm_setsbuf(table[place].id);
    struct pvmminfo info = {0, 1, 2, 3, 4, 5, 6, 7};
    pvm_setminfo(table[inner].id, &info);
    printf("envelope #%d in #%d: %d", inner, place, pvm_pkmesg(table[inner].id));
    printf(" %d", pvm_pkint(&number, 1, 1));
    table[place].unread = table[inner].unread;
    table[place].ragged = table[inner].ragged | (length_of(inner) % 4 != 0);
    printf(" %d ", length_of(place));
    pvm_setrbuf(table[place].id);
    unnest(1);
}

static void formatted_pack(void)
{
    static short small[3] = {-1, 2, 30000};
    static long large[4] = {1, 2, 70000, 5};
    static double precise[6] = {1.5, 2.5, 3.5, 4.5, 5.5, 6.5};
    static float pairs[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    int place = place_of(pvm_getsbuf()), code;
    if (!may_pack() || (place >= 0 && table[place].encoding == PvmDataInPlace))
        return;
    unsigned which = random_below(8);
    switch (which) {
    case 0: code = pvm_packf("%d %ld %hd %c", 5, 6l, 7, 'x'); break;
    case 1: code = pvm_packf("%f %lf", 1.25, 2.5); break;
    case 2: code = pvm_packf("%3hd%*.*ld", small, 2, 2, large); break;
    case 3: code = pvm_packf("%3.2lf and %2x", precise, pairs); break;
    case 4: code = pvm_packf("%s%ud", "a string", 77u); break;
    case 5: code = pvm_packf("%d%q", 1); break;
    case 6: code = pvm_packf("nothing"); break;
    default: code = pvm_packf("%2lx%*c", precise, 3, "abc"); break;
    }
    if (which == 0 || which == 4 || which == 7)
        packed_bytes(1);
    printf("packf %u: %d", which, code);
}

static void formatted_unpack(void)
{
    if (!may_unpack())
        return;
    int *numbers = (int *)(void *)target;
    unsigned which = random_below(may_unpack_text() ? 5 : 4);
    int code, doubles = which == 1 || which == 3;
    if (doubles && !may_unpack_doubles())
        return;
    memset(target, 0xa5, MEMORY_BYTES);
    switch (which) {
    case 0: code = pvm_unpackf("%d %ld %hd %c", numbers, (long *)(void *)(target + 8), (short *)(void *)(target + 16), (char *)target + 20); break;
    case 1: code = pvm_unpackf("%f%lf", (float *)(void *)target, (double *)(void *)(target + 8)); break;
    case 2: code = pvm_unpackf("%3uhd%*.*uld", (unsigned short *)(void *)target, 2, 2, (unsigned long *)(void *)(target + 16)); break;
    case 3: code = pvm_unpackf("%3.2lf %2x", (double *)(void *)target, (float *)(void *)(target + 64)); break;
    default: code = pvm_unpackf("%s%ud", (char *)target, (unsigned *)(void *)(target + 8000)); break;
    }
    printf("unpackf %u: %d", which, code);
    judge(code);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    state = strtoull(argv[1], NULL, 10) * 2654435761u + 12345;
    /* PVM's own library joins its machine at the first call, which leaves an error number. */
    pvm_getsbuf();
    pvm_errno = 0;
    for (int step = 0; step < atoi(argv[2]); step++) {
        unsigned what = random_below(100);
        printf("%d ", step);
        if (what < 6)
            make();
        else if (what < 12)
            init();
        else if (what < 15)
            release();
        else if (what < 27)
            set();
        else if (what < 52)
            pack();
        else if (what < 76)
            unpack();
        else if (what < 82)
            text();
        else if (what < 86)
            tell();
        else if (what < 88)
            change();
        else if (what < 91)
            nest();
        else if (what < 92)
            unnest(0);
        else if (what < 94)
            envelope();
        else if (what < 97)
            formatted_pack();
        else
            formatted_unpack();
        printf(" [%d]\n", pvm_errno);
        /* Asks each library for the length after packing, so that no limit above is exceeded unnoticed. */
        if (place_of(pvm_getsbuf()) >= 0)
            length_of(place_of(pvm_getsbuf()));
    }
    return 0;
}
