/* Datatypes: queries, how they were made, and messages of them. */
#include "mpi_check.h"

#include <stddef.h>
#include <stdint.h>

struct particle {
    double place[3];
    int kind;
    char name;
};

static MPI_Datatype committed(MPI_Datatype datatype)
{
    SUCCEEDS(MPI_Type_commit(&datatype));
    return datatype;
}

static void is(MPI_Datatype datatype, MPI_Count size, MPI_Aint lb, MPI_Aint extent, MPI_Aint true_lb, MPI_Aint true_extent)
{
    int small;
    MPI_Count large, first, second;
    MPI_Aint a, b;
    SUCCEEDS(MPI_Type_size(datatype, &small));
    SUCCEEDS(MPI_Type_size_x(datatype, &large));
    CHECK(small == size && large == size);
    SUCCEEDS(MPI_Type_size_c(datatype, &large));
    CHECK(large == size);
    SUCCEEDS(MPI_Type_get_extent(datatype, &a, &b));
    CHECK(a == lb && b == extent);
    SUCCEEDS(MPI_Type_get_extent_x(datatype, &first, &second));
    CHECK(first == lb && second == extent);
    SUCCEEDS(MPI_Type_get_extent_c(datatype, &first, &second));
    CHECK(first == lb && second == extent);
    SUCCEEDS(MPI_Type_get_true_extent(datatype, &a, &b));
    CHECK(a == true_lb && b == true_extent);
    SUCCEEDS(MPI_Type_get_true_extent_x(datatype, &first, &second));
    CHECK(first == true_lb && second == true_extent);
}

static void envelope(MPI_Datatype datatype, int combiner, int integers, int addresses, int types)
{
    int i, a, d, c;
    SUCCEEDS(MPI_Type_get_envelope(datatype, &i, &a, &d, &c));
    CHECK(i == integers && a == addresses && d == types && c == combiner);
    MPI_Count li, la, lc, ld;
    SUCCEEDS(MPI_Type_get_envelope_c(datatype, &li, &la, &lc, &ld, &c));
    CHECK(li == integers && la == addresses && lc == 0 && ld == types && c == combiner);
}

/* Frees the datatypes returned by MPI_Type_get_contents. */
static void let_go(MPI_Datatype datatype)
{
    int i, a, d, combiner;
    SUCCEEDS(MPI_Type_get_envelope(datatype, &i, &a, &d, &combiner));
    if (combiner != MPI_COMBINER_NAMED)
        SUCCEEDS(MPI_Type_free(&datatype));
}

static void facts(void)
{
    MPI_Datatype t, u;
    int i[16];
    MPI_Aint a[8];
    MPI_Datatype d[4];
    is(MPI_DOUBLE, 8, 0, 8, 0, 8);
    is(MPI_DOUBLE_INT, 12, 0, 16, 0, 12);
    is(MPI_SHORT_INT, 6, 0, 8, 0, 8);
    is(MPI_LONG_DOUBLE_INT, 20, 0, 32, 0, 20);
    is(MPI_C_DOUBLE_COMPLEX, 16, 0, 16, 0, 16);
    envelope(MPI_DOUBLE, MPI_COMBINER_NAMED, 0, 0, 0);

    SUCCEEDS(MPI_Type_contiguous(5, MPI_SHORT_INT, &t));
    is(t, 30, 0, 40, 0, 40);
    envelope(t, MPI_COMBINER_CONTIGUOUS, 1, 0, 1);
    SUCCEEDS(MPI_Type_get_contents(t, 1, 0, 1, i, a, d));
    CHECK(i[0] == 5 && d[0] == MPI_SHORT_INT);
    SUCCEEDS(MPI_Type_free(&t));
    CHECK(t == MPI_DATATYPE_NULL);

    SUCCEEDS(MPI_Type_vector(3, 2, -4, MPI_INT, &t));
    is(t, 24, -32, 40, -32, 40);
    envelope(t, MPI_COMBINER_VECTOR, 3, 0, 1);
    SUCCEEDS(MPI_Type_get_contents(t, 3, 0, 1, i, a, d));
    CHECK(i[0] == 3 && i[1] == 2 && i[2] == -4 && d[0] == MPI_INT);
    SUCCEEDS(MPI_Type_create_resized(t, -4, 100, &u));
    is(u, 24, -4, 100, -32, 40);
    envelope(u, MPI_COMBINER_RESIZED, 0, 2, 1);
    SUCCEEDS(MPI_Type_get_contents(u, 0, 2, 1, i, a, d));
    CHECK(a[0] == -4 && a[1] == 100);
    envelope(d[0], MPI_COMBINER_VECTOR, 3, 0, 1);
    let_go(d[0]);
    SUCCEEDS(MPI_Type_free(&u));
    SUCCEEDS(MPI_Type_free(&t));

    SUCCEEDS(MPI_Type_create_hvector(2, 3, 17, MPI_CHAR, &t));
    is(t, 6, 0, 20, 0, 20);
    envelope(t, MPI_COMBINER_HVECTOR, 2, 1, 1);
    SUCCEEDS(MPI_Type_get_contents(t, 2, 1, 1, i, a, d));
    CHECK(i[0] == 2 && i[1] == 3 && a[0] == 17);
    SUCCEEDS(MPI_Type_free(&t));

    int lengths[3] = {2, 0, 1}, places[3] = {4, 90, 0};
    SUCCEEDS(MPI_Type_indexed(3, lengths, places, MPI_INT, &t));
    is(t, 12, 0, 24, 0, 24);
    envelope(t, MPI_COMBINER_INDEXED, 7, 0, 1);
    SUCCEEDS(MPI_Type_get_contents(t, 7, 0, 1, i, a, d));
    CHECK(i[0] == 3 && i[1] == 2 && i[3] == 1 && i[4] == 4 && i[5] == 90);
    SUCCEEDS(MPI_Type_dup(t, &u));
    is(u, 12, 0, 24, 0, 24);
    envelope(u, MPI_COMBINER_DUP, 0, 0, 1);
    SUCCEEDS(MPI_Type_free(&u));
    SUCCEEDS(MPI_Type_free(&t));

    MPI_Aint bytes[3] = {8, 0, 3};
    SUCCEEDS(MPI_Type_create_hindexed(3, lengths, bytes, MPI_CHAR, &t));
    is(t, 3, 3, 7, 3, 7);
    envelope(t, MPI_COMBINER_HINDEXED, 4, 3, 1);
    SUCCEEDS(MPI_Type_free(&t));
    SUCCEEDS(MPI_Type_create_indexed_block(3, 2, places, MPI_INT, &t));
    is(t, 24, 0, 368, 0, 368);
    envelope(t, MPI_COMBINER_INDEXED_BLOCK, 5, 0, 1);
    SUCCEEDS(MPI_Type_free(&t));
    SUCCEEDS(MPI_Type_create_hindexed_block(3, 1, bytes, MPI_CHAR, &t));
    is(t, 3, 0, 9, 0, 9);
    envelope(t, MPI_COMBINER_HINDEXED_BLOCK, 2, 3, 1);
    SUCCEEDS(MPI_Type_free(&t));

    int ones[3] = {3, 1, 1};
    MPI_Aint members[3] = {offsetof(struct particle, place), offsetof(struct particle, kind), offsetof(struct particle, name)};
    MPI_Datatype types[3] = {MPI_DOUBLE, MPI_INT, MPI_CHAR};
    SUCCEEDS(MPI_Type_create_struct(3, ones, members, types, &t));
    is(t, 29, 0, sizeof(struct particle), 0, 29);
    envelope(t, MPI_COMBINER_STRUCT, 4, 3, 3);
    SUCCEEDS(MPI_Type_get_contents(t, 4, 3, 3, i, a, d));
    CHECK(i[0] == 3 && i[1] == 3 && a[1] == members[1] && d[0] == MPI_DOUBLE && d[2] == MPI_CHAR);
    SUCCEEDS(MPI_Type_free(&t));

    int sizes[2] = {6, 10}, parts[2] = {2, 3}, starts[2] = {1, 4};
    SUCCEEDS(MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &t));
    is(t, 24, 0, 240, 56, 52);
    envelope(t, MPI_COMBINER_SUBARRAY, 8, 0, 1);
    SUCCEEDS(MPI_Type_free(&t));
    SUCCEEDS(MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_FORTRAN, MPI_INT, &t));
    is(t, 24, 0, 240, 100, 56);
    SUCCEEDS(MPI_Type_free(&t));
    int kinds[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC}, arguments[2] = {MPI_DISTRIBUTE_DFLT_DARG, 2}, grid[2] = {2, 2};
    SUCCEEDS(MPI_Type_create_darray(4, 1, 2, sizes, kinds, arguments, grid, MPI_ORDER_C, MPI_INT, &t));
    is(t, 3 * 4 * 4, 0, 240, 8, 4 * (2 * 10 + 6));
    envelope(t, MPI_COMBINER_DARRAY, 12, 0, 1);
    SUCCEEDS(MPI_Type_get_contents(t, 12, 0, 1, i, a, d));
    CHECK(i[0] == 4 && i[1] == 1 && i[2] == 2 && i[3] == 6 && i[5] == MPI_DISTRIBUTE_BLOCK && i[11] == MPI_ORDER_C);
    SUCCEEDS(MPI_Type_free(&t));
    SUCCEEDS(MPI_Type_contiguous(0, MPI_INT, &t));
    is(t, 0, 0, 0, 0, 0);
    SUCCEEDS(MPI_Type_free(&t));
}

/* Types with large counts: the queries with MPI_Count return their values, and the queries with int do not. */
static void large(void)
{
    MPI_Datatype t, d[1];
    MPI_Count i, a, c, n, size, counts[4];
    int combiner, small;
    SUCCEEDS(MPI_Type_vector_c((MPI_Count)1 << 20, 1 << 12, 1 << 13, MPI_DOUBLE, &t));
    SUCCEEDS(MPI_Type_size_c(t, &size));
    CHECK(size == (MPI_Count)1 << 35);
    SUCCEEDS(MPI_Type_size(t, &small));
    CHECK(small == MPI_UNDEFINED);
    SUCCEEDS(MPI_Type_get_envelope_c(t, &i, &a, &c, &n, &combiner));
    CHECK(i == 0 && a == 0 && c == 3 && n == 1 && combiner == MPI_COMBINER_VECTOR);
    SUCCEEDS(MPI_Type_get_contents_c(t, 0, 0, 3, 1, NULL, NULL, counts, d));
    CHECK(counts[0] == 1 << 20 && counts[1] == 1 << 12 && counts[2] == 1 << 13 && d[0] == MPI_DOUBLE);
    SUCCEEDS(MPI_Type_free(&t));
    SUCCEEDS(MPI_Type_create_resized_c(MPI_INT, -8, (MPI_Count)1 << 40, &t));
    SUCCEEDS(MPI_Type_get_envelope_c(t, &i, &a, &c, &n, &combiner));
    CHECK(a == 0 && c == 2 && combiner == MPI_COMBINER_RESIZED);
    SUCCEEDS(MPI_Type_get_extent_c(t, &a, &c));
    CHECK(a == -8 && c == (MPI_Count)1 << 40);
    SUCCEEDS(MPI_Type_free(&t));
    MPI_Count lengths[2] = {1, 2}, places[2] = {0, 24};
    MPI_Datatype types[2] = {MPI_CHAR, MPI_DOUBLE};
    SUCCEEDS(MPI_Type_create_struct_c(2, lengths, places, types, &t));
    is(t, 17, 0, 40, 0, 40);
    SUCCEEDS(MPI_Type_get_envelope_c(t, &i, &a, &c, &n, &combiner));
    CHECK(i == 0 && a == 0 && c == 5 && n == 2);
    SUCCEEDS(MPI_Type_free(&t));
}

static void names(void)
{
    MPI_Datatype t, u;
    char name[MPI_MAX_OBJECT_NAME];
    int length;
    SUCCEEDS(MPI_Type_get_name(MPI_2INT, name, &length));
    CHECK(strcmp(name, "MPI_2INT") == 0 && length == 8);
    /* Of two names for one type, the one that is not the synonym. */
    SUCCEEDS(MPI_Type_get_name(MPI_LONG_LONG, name, &length));
    CHECK(strcmp(name, "MPI_LONG_LONG_INT") == 0);
    SUCCEEDS(MPI_Type_get_name(MPI_C_FLOAT_COMPLEX, name, &length));
    CHECK(strcmp(name, "MPI_C_COMPLEX") == 0);
    SUCCEEDS(MPI_Type_contiguous(2, MPI_INT, &t));
    SUCCEEDS(MPI_Type_get_name(t, name, &length));
    CHECK(length == 0 && name[0] == 0);
    SUCCEEDS(MPI_Type_set_name(t, "two"));
    SUCCEEDS(MPI_Type_get_name(t, name, &length));
    CHECK(strcmp(name, "two") == 0 && length == 3);
    SUCCEEDS(MPI_Type_dup(t, &u));
    SUCCEEDS(MPI_Type_get_name(u, name, &length));
    CHECK(length == 0);
    CHECK(MPI_Type_fromint(MPI_Type_toint(t)) == t && MPI_Type_fromint(MPI_Type_toint(MPI_INT)) == MPI_INT);
    SUCCEEDS(MPI_Type_free(&u));
    SUCCEEDS(MPI_Type_free(&t));
    SUCCEEDS(MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &t));
    CHECK(t == MPI_REAL8);
    SUCCEEDS(MPI_Type_create_f90_real(12, MPI_UNDEFINED, &t));
    is(t, 8, 0, 8, 0, 8);
    envelope(t, MPI_COMBINER_F90_REAL, 2, 0, 0);
    SUCCEEDS(MPI_Type_create_f90_real(12, MPI_UNDEFINED, &u));
    CHECK(t == u);
    SUCCEEDS(MPI_Type_create_f90_integer(9, &t));
    is(t, 4, 0, 4, 0, 4);
    SUCCEEDS(MPI_Type_create_f90_complex(MPI_UNDEFINED, 30, &t));
    is(t, 8, 0, 8, 0, 8);
    SUCCEEDS(MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &t));
    CHECK(t == MPI_DOUBLE_INT);
    SUCCEEDS(MPI_Type_get_value_index(MPI_FLOAT, MPI_INT64_T, &t));
    is(t, 12, 0, 16, 0, 16);
    envelope(t, MPI_COMBINER_VALUE_INDEX, 0, 0, 2);
    SUCCEEDS(MPI_Type_get_value_index(MPI_CHAR, MPI_DOUBLE, &t));
    CHECK(t == MPI_DATATYPE_NULL);
}

static int copies, ends;

static int copy(MPI_Datatype t, int key, void *extra, void *in, void *out, int *flag)
{
    (void)t, (void)key;
    CHECK(extra == &copies);
    *(void **)out = (char *)in + 1;
    *flag = 1;
    copies++;
    return MPI_SUCCESS;
}

static int uncopied(MPI_Datatype t, int key, void *extra, void *in, void *out, int *flag)
{
    (void)t, (void)key, (void)extra, (void)in, (void)out, (void)flag;
    return MPI_ERR_OTHER;
}

static int end(MPI_Datatype t, int key, void *value, void *extra)
{
    (void)t, (void)key, (void)value, (void)extra;
    ends++;
    return MPI_SUCCESS;
}

static void attributes(void)
{
    int key, quiet, kept, flag;
    MPI_Datatype t, u;
    char *value;
    SUCCEEDS(MPI_Type_create_keyval(copy, end, &key, &copies));
    SUCCEEDS(MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &quiet, NULL));
    SUCCEEDS(MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, &kept, NULL));
    SUCCEEDS(MPI_Type_contiguous(2, MPI_INT, &t));
    SUCCEEDS(MPI_Type_get_attr(t, key, &value, &flag));
    CHECK(!flag);
    SUCCEEDS(MPI_Type_set_attr(t, key, (void *)&size));
    SUCCEEDS(MPI_Type_set_attr(t, quiet, (void *)&size));
    SUCCEEDS(MPI_Type_set_attr(t, kept, (void *)&size));
    SUCCEEDS(MPI_Type_dup(t, &u));
    CHECK(copies == 1 && ends == 0);
    SUCCEEDS(MPI_Type_get_attr(u, key, &value, &flag));
    CHECK(flag && value == (char *)&size + 1);
    SUCCEEDS(MPI_Type_get_attr(u, quiet, &value, &flag));
    CHECK(!flag);
    SUCCEEDS(MPI_Type_get_attr(u, kept, &value, &flag));
    CHECK(flag && value == (char *)&size);
    SUCCEEDS(MPI_Type_delete_attr(t, key));
    CHECK(ends == 1);
    SUCCEEDS(MPI_Type_free_keyval(&key));
    CHECK(key == MPI_KEYVAL_INVALID);
    SUCCEEDS(MPI_Type_free(&u));
    CHECK(ends == 2);
    SUCCEEDS(MPI_Type_free(&t));
    CHECK(ends == 2);
    /* If a copy function fails, there is no duplicate. */
    SUCCEEDS(MPI_Type_create_keyval(uncopied, MPI_TYPE_NULL_DELETE_FN, &key, NULL));
    SUCCEEDS(MPI_Type_contiguous(2, MPI_INT, &t));
    SUCCEEDS(MPI_Type_set_attr(t, key, NULL));
    u = MPI_INT;
    FAILS(MPI_ERR_OTHER, MPI_Type_dup(t, &u));
    CHECK(u == MPI_DATATYPE_NULL);
    SUCCEEDS(MPI_Type_free(&t));
}

enum { MAX_ELEMENTS = 1 << 18 };
static double from[2 * MAX_ELEMENTS], to[2 * MAX_ELEMENTS];

/* A column of a matrix in all send modes, to itself or to the other process; as plain numbers on the other side. */
static void column(int rows)
{
    int next = (me + 1) % size, before = (me + size - 1) % size;
    MPI_Datatype t;
    MPI_Request requests[2];
    MPI_Status status[2];
    SUCCEEDS(MPI_Type_vector(rows, 1, 2, MPI_DOUBLE, &t));
    t = committed(t);
    for (int mode = 0; mode < 4; mode++) {
        for (int k = 0; k < 2 * rows; k++) {
            from[k] = me * 1000000.0 + k + mode;
            to[k] = -1;
        }
        int plain = mode == 1;
        SUCCEEDS(MPI_Irecv(to, plain ? rows : 1, plain ? MPI_DOUBLE : t, before, 1, MPI_COMM_WORLD, &requests[0]));
        switch (mode) {
        case 0:
        case 1:
            SUCCEEDS(MPI_Isend(from, 1, t, next, 1, MPI_COMM_WORLD, &requests[1]));
            break;
        case 2:
            SUCCEEDS(MPI_Issend(from, 1, t, next, 1, MPI_COMM_WORLD, &requests[1]));
            break;
        default:
            requests[1] = MPI_REQUEST_NULL;
            SUCCEEDS(MPI_Send(from, 1, t, next, 1, MPI_COMM_WORLD));
        }
        SUCCEEDS(MPI_Waitall(2, requests, status));
        for (int k = 0; k < rows; k++) {
            CHECK(to[plain ? k : 2 * k] == before * 1000000.0 + 2 * k + mode);
            CHECK(plain || to[2 * k + 1] == -1);
        }
        int count;
        SUCCEEDS(MPI_Get_elements(&status[0], t, &count));
        CHECK(count == rows && status[0].MPI_SOURCE == before);
    }
    SUCCEEDS(MPI_Type_free(&t));
}

static void columns(void)
{
    column(1);
    column(7);
    column(1000);
    column(8192);
    column(MAX_ELEMENTS);
}

/* Many pieces of different lengths, which are packed into one piece. */
static void irregular(void)
{
    enum { PIECES = 3000 };
    static int lengths[PIECES], places[PIECES], numbers[PIECES * 8], got[PIECES * 8];
    int total = 0, next = (me + 1) % size, before = (me + size - 1) % size;
    for (int k = 0; k < PIECES; k++) {
        lengths[k] = 1 + k * 7 % 5;
        places[k] = k * 8 + k % 3;
        total += lengths[k];
    }
    MPI_Datatype t;
    SUCCEEDS(MPI_Type_indexed(PIECES, lengths, places, MPI_INT, &t));
    t = committed(t);
    MPI_Request requests[2];
    MPI_Status status[2];
    for (int round = 0; round < 3; round++) {
        for (int k = 0; k < PIECES * 8; k++) {
            numbers[k] = me * 1000000 + k;
            got[k] = -1;
        }
        if (round == 0) {
            SUCCEEDS(MPI_Irecv(got, 1, t, before, 1, MPI_COMM_WORLD, &requests[0]));
            SUCCEEDS(MPI_Isend(numbers, 1, t, next, 1, MPI_COMM_WORLD, &requests[1]));
            SUCCEEDS(MPI_Waitall(2, requests, status));
        } else {
            /* A blocking call on either side. */
            SUCCEEDS(MPI_Isend(numbers, 1, t, next, 1, MPI_COMM_WORLD, &requests[0]));
            SUCCEEDS(MPI_Recv(got, 1, t, before, 1, MPI_COMM_WORLD, &status[0]));
            SUCCEEDS(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
        }
        for (int k = 0; k < PIECES; k++) {
            for (int n = 0; n < lengths[k]; n++)
                CHECK(got[places[k] + n] == before * 1000000 + places[k] + n);
            CHECK(got[places[k] + lengths[k]] == -1);
        }
        int count;
        SUCCEEDS(MPI_Get_elements(&status[0], t, &count));
        CHECK(count == total);
    }
    SUCCEEDS(MPI_Type_free(&t));
}

/* Messages shorter than the type, structures, and types that are freed while their messages are in transit. */
static void parts(void)
{
    struct particle all[10], got[10];
    int ones[3] = {3, 1, 1};
    MPI_Aint members[3] = {offsetof(struct particle, place), offsetof(struct particle, kind), offsetof(struct particle, name)};
    MPI_Datatype types[3] = {MPI_DOUBLE, MPI_INT, MPI_CHAR}, t;
    memset(all, 3, sizeof all);
    memset(got, 9, sizeof got);
    for (int k = 0; k < 10; k++)
        all[k] = (struct particle){{k, k + 0.5, me}, k, 'a' + k};
    SUCCEEDS(MPI_Type_create_struct(3, ones, members, types, &t));
    t = committed(t);
    MPI_Request requests[2];
    MPI_Status status[2];
    int next = (me + 1) % size, before = (me + size - 1) % size, count;
    MPI_Count large;
    SUCCEEDS(MPI_Irecv(got, 10, t, before, 5, MPI_COMM_WORLD, &requests[0]));
    SUCCEEDS(MPI_Isend(all, 7, t, next, 5, MPI_COMM_WORLD, &requests[1]));
    MPI_Datatype again = t;
    SUCCEEDS(MPI_Type_free(&again));
    SUCCEEDS(MPI_Waitall(2, requests, status));
    for (int k = 0; k < 7; k++)
        CHECK(got[k].place[0] == k && got[k].place[2] == before && got[k].kind == k && got[k].name == 'a' + k);
    CHECK(((char *)&got[7])[0] == 9 && ((char *)&got[6])[30] == 9);
    SUCCEEDS(MPI_Type_create_struct(3, ones, members, types, &t));
    t = committed(t);
    SUCCEEDS(MPI_Get_elements(&status[0], t, &count));
    CHECK(count == 35);
    SUCCEEDS(MPI_Get_elements_x(&status[0], t, &large));
    CHECK(large == 35);

    /* Two elements and a part of a third one. */
    SUCCEEDS(MPI_Irecv(got, 10, t, before, 6, MPI_COMM_WORLD, &requests[0]));
    SUCCEEDS(MPI_Isend(all, 2 * 29 + 16, MPI_BYTE, next, 6, MPI_COMM_WORLD, &requests[1]));
    SUCCEEDS(MPI_Waitall(2, requests, status));
    SUCCEEDS(MPI_Get_elements(&status[0], t, &count));
    CHECK(count == 12);
    SUCCEEDS(MPI_Status_set_elements(&status[0], t, 9));
    SUCCEEDS(MPI_Get_elements(&status[0], t, &count));
    CHECK(count == 9);
    SUCCEEDS(MPI_Status_set_elements_x(&status[0], t, 11));
    SUCCEEDS(MPI_Get_elements(&status[0], MPI_BYTE, &count));
    CHECK(count == 2 * 29 + 8);
    SUCCEEDS(MPI_Type_free(&t));
}

/* Messages to and from MPI_PROC_NULL, and messages without elements. */
static void nobody(void)
{
    int numbers[8] = {0}, count;
    MPI_Datatype t;
    MPI_Request requests[2];
    MPI_Status status;
    SUCCEEDS(MPI_Type_vector(3, 1, 2, MPI_INT, &t));
    t = committed(t);
    SUCCEEDS(MPI_Send(numbers, 1, t, MPI_PROC_NULL, 1, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Ssend(numbers, 1, t, MPI_PROC_NULL, 1, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Isend(numbers, 1, t, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[0]));
    SUCCEEDS(MPI_Issend(numbers, 1, t, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[1]));
    SUCCEEDS(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    SUCCEEDS(MPI_Recv(numbers, 1, t, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status));
    SUCCEEDS(MPI_Get_elements(&status, t, &count));
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && count == 0);
    SUCCEEDS(MPI_Irecv(NULL, 0, t, me, 1, MPI_COMM_WORLD, &requests[0]));
    SUCCEEDS(MPI_Rsend(NULL, 0, t, me, 1, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Wait(&requests[0], &status));
    SUCCEEDS(MPI_Get_elements(&status, t, &count));
    CHECK(status.MPI_SOURCE == me && count == 0);
    /* A request that is freed before its message has been sent: the memory must stay valid until then. */
    static int many[40000];
    MPI_Datatype odd;
    int lengths[100], places[100];
    for (int k = 0; k < 100; k++) {
        lengths[k] = 1 + k % 3 * 90;
        places[k] = 400 * k;
    }
    for (int k = 0; k < 40000; k++)
        many[k] = k;
    SUCCEEDS(MPI_Type_indexed(100, lengths, places, MPI_INT, &odd));
    odd = committed(odd);
    SUCCEEDS(MPI_Isend(many, 1, odd, me, 2, MPI_COMM_WORLD, &requests[0]));
    SUCCEEDS(MPI_Request_free(&requests[0]));
    static int got[40000];
    SUCCEEDS(MPI_Recv(got, 1, odd, me, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int k = 0; k < 100; k++)
        CHECK(got[places[k]] == places[k] && got[places[k] + lengths[k] - 1] == places[k] + lengths[k] - 1);
    SUCCEEDS(MPI_Type_free(&odd));
    /* A persistent message whose type is freed before it is started. */
    SUCCEEDS(MPI_Recv_init(got, 1, t, me, 3, MPI_COMM_WORLD, &requests[0]));
    SUCCEEDS(MPI_Send_init(many, 3, MPI_INT, me, 3, MPI_COMM_WORLD, &requests[1]));
    SUCCEEDS(MPI_Type_free(&t));
    for (int round = 0; round < 2; round++) {
        many[1] = 7 + round;
        SUCCEEDS(MPI_Startall(2, requests));
        SUCCEEDS(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        CHECK(got[0] == 0 && got[2] == 7 + round && got[4] == 2);
    }
    SUCCEEDS(MPI_Request_free(&requests[0]));
    SUCCEEDS(MPI_Request_free(&requests[1]));
}

/* Absolute addresses with MPI_BOTTOM. */
static void bottom(void)
{
    static int a[4], b[4];
    int lengths[2] = {1, 2};
    MPI_Aint places[2];
    MPI_Datatype t;
    SUCCEEDS(MPI_Get_address(&a[3], &places[0]));
    SUCCEEDS(MPI_Get_address(&a[0], &places[1]));
    CHECK(MPI_Aint_diff(places[0], places[1]) == 12 && MPI_Aint_add(places[1], 12) == places[0]);
    SUCCEEDS(MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &t));
    t = committed(t);
    for (int k = 0; k < 4; k++)
        a[k] = 10 * me + k;
    int next = (me + 1) % size, before = (me + size - 1) % size;
    MPI_Request request;
    SUCCEEDS(MPI_Irecv(b, 4, MPI_INT, before, 1, MPI_COMM_WORLD, &request));
    SUCCEEDS(MPI_Send(MPI_BOTTOM, 1, t, next, 1, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(b[0] == 10 * before + 3 && b[1] == 10 * before && b[2] == 10 * before + 1 && b[3] == 0);
    SUCCEEDS(MPI_Type_free(&t));
}

/* Invalid arguments have the standard's error classes, and change nothing. */
static void errors(void)
{
    MPI_Datatype t = MPI_DATATYPE_NULL, u = MPI_INT;
    int one = 1, minus = -1, none, room[2] = {0, 0}, place = 0, sizes[2] = {4, 4}, parts[2] = {2, 5}, starts[2] = {0, 0};
    int kinds[2] = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK}, arguments[2] = {1, 1}, grid[2] = {1, 2};
    MPI_Aint zero = 0;
    double value = 0;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    FAILS(MPI_ERR_TYPE, MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &t));
    FAILS(MPI_ERR_COUNT, MPI_Type_contiguous(-1, MPI_INT, &t));
    FAILS(MPI_ERR_ARG, MPI_Type_contiguous(1, MPI_INT, NULL));
    FAILS(MPI_ERR_ARG, MPI_Type_vector(1, -1, 1, MPI_INT, &t));
    FAILS(MPI_ERR_ARG, MPI_Type_indexed(1, &minus, &place, MPI_INT, &t));
    FAILS(MPI_ERR_ARG, MPI_Type_create_hindexed(1, NULL, &zero, MPI_INT, &t));
    FAILS(MPI_ERR_TYPE, MPI_Type_create_struct(1, &one, &zero, &t, &t));
    FAILS(MPI_ERR_ARG, MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &t));
    FAILS(MPI_ERR_ARG, MPI_Type_create_subarray(2, sizes, starts, starts, 7, MPI_INT, &t));
    FAILS(MPI_ERR_ARG, MPI_Type_create_darray(2, 0, 2, sizes, kinds, arguments, grid, MPI_ORDER_C, MPI_INT, &t));
    FAILS(MPI_ERR_ARG, MPI_Type_create_darray(3, 0, 2, sizes, kinds, starts, grid, MPI_ORDER_C, MPI_INT, &t));
    CHECK(t == MPI_DATATYPE_NULL);
    FAILS(MPI_ERR_TYPE, MPI_Type_free(&u));
    FAILS(MPI_ERR_TYPE, MPI_Type_free(&t));
    FAILS(MPI_ERR_TYPE, MPI_Type_commit(&t));
    FAILS(MPI_ERR_TYPE, MPI_Type_get_contents(MPI_INT, 0, 0, 0, room, &zero, &u));
    SUCCEEDS(MPI_Type_contiguous(2, MPI_INT, &t));
    FAILS(MPI_ERR_TYPE, MPI_Send(room, 1, t, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_ARG, MPI_Type_get_contents(t, 0, 0, 1, room, &zero, &u));
    u = t;
    SUCCEEDS(MPI_Type_free(&t));
    FAILS(MPI_ERR_TYPE, MPI_Type_free(&u));
    FAILS(MPI_ERR_TYPE, MPI_Type_size(u, &none));
    FAILS(MPI_ERR_TYPE, MPI_Send(room, 1, u, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_KEYVAL, MPI_Type_set_attr(MPI_INT, MPI_TAG_UB, NULL));
    FAILS(MPI_ERR_ARG, MPI_Type_create_f90_real(99, 99, &t));
    SUCCEEDS(MPI_Type_vector(2, 1, 2, MPI_INT, &t));
    t = committed(t);
    FAILS(MPI_ERR_COUNT, MPI_Send(room, -1, t, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_BUFFER, MPI_Send(NULL, 1, t, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_TRUNCATE, MPI_Pack(&value, 1, MPI_DOUBLE, room, 4, &place, MPI_COMM_WORLD));
    CHECK(place == 0);
    FAILS(MPI_ERR_COMM, MPI_Pack(&value, 1, MPI_DOUBLE, room, 8, &place, MPI_COMM_NULL));
    FAILS(MPI_ERR_ARG, MPI_Pack_external_size("native", 1, MPI_INT, &zero));
    FAILS(MPI_ERR_OP, MPI_Reduce_local(room, room + 1, 1, MPI_BYTE, MPI_SUM));
    MPI_Op op = MPI_SUM;
    FAILS(MPI_ERR_OP, MPI_Op_free(&op));
    op = MPI_OP_NULL;
    FAILS(MPI_ERR_OP, MPI_Op_free(&op));
    /* A message that is longer than the receive buffer fills it, and nothing beyond it. */
    int numbers[6] = {1, 2, 3, 4, 5, 6}, got[6] = {0};
    MPI_Request request;
    MPI_Status status;
    SUCCEEDS(MPI_Isend(numbers, 6, MPI_INT, me, 1, MPI_COMM_WORLD, &request));
    FAILS(MPI_ERR_TRUNCATE, MPI_Recv(got, 1, t, me, 1, MPI_COMM_WORLD, &status));
    CHECK(got[0] == 1 && got[1] == 0 && got[2] == 2 && got[3] == 0);
    SUCCEEDS(MPI_Wait(&request, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_Type_free(&t));
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"errors", errors},
        {"facts", facts},
        {"large", large},
        {"names", names},
        {"attributes", attributes},
        {"columns", columns},
        {"irregular", irregular},
        {"parts", parts},
        {"nobody", nobody},
        {"bottom", bottom},
        {NULL, NULL},
    };
    return play(argc, argv, scenarios);
}
