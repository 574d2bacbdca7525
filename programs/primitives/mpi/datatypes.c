/* Datatypes that are created, committed and freed (type-...), and packing. Each task works by itself, without messages.
 *
 * pack-nested, unpack-nested: vectors of 16 ints, every second one of an array, nested in a vector of 64 of these,
 * again every second one. pack-external, unpack-external: doubles in "external32". */
#ifdef ENV_MPI
#include "expect.h"

enum { TYPE_BLOCKS = 2000, TYPE_STRUCT = 1000, NESTED_INNER = 16, NESTED_OUTER = 64, SUBARRAY = 64 };

static void type_finish(MPI_Datatype type, int expected, const char *call)
{
    int size;
    MPI_Type_commit(&type);
    MPI_Type_size(type, &size);
    EXPECT(size == expected, call, "the new datatype has another size");
    MPI_Type_free(&type);
}

static void type_vector(size_t bytes, long n)
{
    (void)bytes;
    for (long i = 0; i < n; i++) {
        MPI_Datatype type;
        MPI_Type_vector(100, 3, 7, MPI_DOUBLE, &type);
        type_finish(type, 100 * 3 * 8, "MPI_Type_vector");
    }
}

static void type_indexed(size_t bytes, long n)
{
    static int lengths[TYPE_BLOCKS], places[TYPE_BLOCKS];
    int ints = 0;
    (void)bytes;
    for (int k = 0; k < TYPE_BLOCKS; k++) {
        lengths[k] = 1 + k % 3;
        places[k] = k * 8 + k % 5;
        ints += lengths[k];
    }
    for (long i = 0; i < n; i++) {
        MPI_Datatype type;
        MPI_Type_indexed(TYPE_BLOCKS, lengths, places, MPI_INT, &type);
        type_finish(type, ints * (int)sizeof(int), "MPI_Type_indexed");
    }
}

static void type_struct(size_t bytes, long n)
{
    static int lengths[TYPE_STRUCT];
    static MPI_Aint places[TYPE_STRUCT];
    static MPI_Datatype types[TYPE_STRUCT];
    int size = 0;
    (void)bytes;
    for (int k = 0; k < TYPE_STRUCT; k++) {
        lengths[k] = 1 + k % 3;
        places[k] = k * 32;
        types[k] = k % 2 ? MPI_INT : MPI_DOUBLE;
        size += lengths[k] * (int)(k % 2 ? sizeof(int) : sizeof(double));
    }
    for (long i = 0; i < n; i++) {
        MPI_Datatype type;
        MPI_Type_create_struct(TYPE_STRUCT, lengths, places, types, &type);
        type_finish(type, size, "MPI_Type_create_struct");
    }
}

static void type_subarray(size_t bytes, long n)
{
    int whole[3] = {SUBARRAY, SUBARRAY, SUBARRAY}, part[3] = {SUBARRAY, SUBARRAY, 1}, from[3] = {0, 0, 3};
    (void)bytes;
    for (long i = 0; i < n; i++) {
        MPI_Datatype type;
        MPI_Type_create_subarray(3, whole, part, from, MPI_ORDER_C, MPI_DOUBLE, &type);
        type_finish(type, SUBARRAY * SUBARRAY * 8, "MPI_Type_create_subarray");
    }
}

static MPI_Datatype nested_type = MPI_DATATYPE_NULL;

static void nested_free(void)
{
    MPI_Type_free(&nested_type);
}

/* Creates the nested type at the first call. Sets `*array` to an array of the type's extent, and `*packed` to its
 * elements packed by hand. */
static void nested_ready(int32_t **array, int32_t **packed)
{
    static int32_t whole[4 * NESTED_INNER * NESTED_OUTER], by_hand[NESTED_INNER * NESTED_OUTER];
    if (nested_type == MPI_DATATYPE_NULL) {
        MPI_Datatype inner;
        MPI_Type_vector(NESTED_INNER, 1, 2, MPI_INT32_T, &inner);
        MPI_Type_vector(NESTED_OUTER, 1, 2, inner, &nested_type);
        MPI_Type_commit(&nested_type);
        MPI_Type_free(&inner);
        env_before_finalize(nested_free);
        /* The extent of a vector ends with its last element: an inner vector spans 31 ints, and the outer vector skips
         * as many between two. */
        for (int32_t k = 0; k < 4 * NESTED_INNER * NESTED_OUTER; k++)
            whole[k] = k;
        for (int32_t k = 0; k < NESTED_INNER * NESTED_OUTER; k++)
            by_hand[k] = k / NESTED_INNER * 2 * (2 * NESTED_INNER - 1) + k % NESTED_INNER * 2;
    }
    *array = whole;
    *packed = by_hand;
}

static void pack_nested(size_t bytes, long n)
{
    int32_t *array, *packed;
    nested_ready(&array, &packed);
    for (long i = 0; i < n; i++) {
        int place = 0;
        MPI_Pack(array, 1, nested_type, payload_b, (int)bytes, &place, MPI_COMM_WORLD);
        EXPECT(place == (int)bytes, "MPI_Pack", "it packed another number of bytes");
    }
    EXPECT(!memcmp(payload_b, packed, bytes), "MPI_Pack", "it packed other elements");
}

static void unpack_nested(size_t bytes, long n)
{
    int32_t *array, *packed, *out = (int32_t *)payload_a;
    nested_ready(&array, &packed);
    for (long i = 0; i < n; i++) {
        int place = 0;
        MPI_Unpack(packed, (int)bytes, &place, out, 1, nested_type, MPI_COMM_WORLD);
        EXPECT(place == (int)bytes, "MPI_Unpack", "it unpacked another number of bytes");
    }
    for (size_t k = 0; k < bytes / sizeof *out; k++)
        EXPECT(out[packed[k]] == packed[k], "MPI_Unpack", "an element has another place");
}

/* Writes doubles to payload_a, followed by their external32 form, which is big-endian. */
static void external_ready(size_t bytes)
{
    for (size_t k = 0; k < bytes / 8; k++) {
        double number = (double)k + 0.5;
        uint64_t bits;
        memcpy(&bits, &number, 8);
        memcpy(payload_a + k * 8, &bits, 8);
        bits = __builtin_bswap64(bits);
        memcpy(payload_a + bytes + k * 8, &bits, 8);
    }
}

static void pack_external(size_t bytes, long n)
{
    external_ready(bytes);
    for (long i = 0; i < n; i++) {
        MPI_Aint place = 0;
        MPI_Pack_external("external32", payload_a, (int)(bytes / 8), MPI_DOUBLE, payload_b, (MPI_Aint)bytes, &place);
        EXPECT(place == (MPI_Aint)bytes, "MPI_Pack_external", "it packed another number of bytes");
    }
    EXPECT(!memcmp(payload_b, payload_a + bytes, bytes), "MPI_Pack_external", "it packed other bytes");
}

static void unpack_external(size_t bytes, long n)
{
    external_ready(bytes);
    for (long i = 0; i < n; i++) {
        MPI_Aint place = 0;
        MPI_Unpack_external("external32", payload_a + bytes, (MPI_Aint)bytes, &place, payload_b, (int)(bytes / 8), MPI_DOUBLE);
        EXPECT(place == (MPI_Aint)bytes, "MPI_Unpack_external", "it unpacked another number of bytes");
    }
    EXPECT(!memcmp(payload_b, payload_a, bytes), "MPI_Unpack_external", "it unpacked other numbers");
}

OPERATION(type_vector, .name = "type-vector", .run = type_vector, .parts = 1)
OPERATION(type_indexed, .name = "type-indexed", .run = type_indexed, .parts = 1)
OPERATION(type_struct, .name = "type-struct", .run = type_struct, .parts = 1)
OPERATION(type_subarray, .name = "type-subarray", .run = type_subarray, .parts = 1)
OPERATION(pack_nested, .name = "pack-nested", .run = pack_nested, .parts = 1, .unit = 4096, .blocks = 8)
OPERATION(unpack_nested, .name = "unpack-nested", .run = unpack_nested, .parts = 1, .unit = 4096, .blocks = 8)
OPERATION(pack_external, .name = "pack-external", .run = pack_external, .parts = 1, .unit = 8, .blocks = 2)
OPERATION(unpack_external, .name = "unpack-external", .run = unpack_external, .parts = 1, .unit = 8, .blocks = 2)
#endif
