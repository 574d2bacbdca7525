/* Packing, external32, operators and reductions within a process. */
#include "mpi_check.h"

#include <stdint.h>

static void packed(void)
{
    int numbers[6] = {1, 2, 3, 4, 5, 6}, got[6] = {0}, position = 0, needed, more;
    double half = 0.5, back = 0;
    char buffer[100];
    MPI_Datatype t;
    SUCCEEDS(MPI_Type_vector(3, 1, 2, MPI_INT, &t));
    SUCCEEDS(MPI_Type_commit(&t));
    SUCCEEDS(MPI_Pack_size(1, t, MPI_COMM_WORLD, &needed));
    SUCCEEDS(MPI_Pack_size(1, MPI_DOUBLE, MPI_COMM_WORLD, &more));
    CHECK(needed >= 12 && more >= 8);
    SUCCEEDS(MPI_Pack(numbers, 1, t, buffer, needed + more, &position, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Pack(&half, 1, MPI_DOUBLE, buffer, needed + more, &position, MPI_COMM_WORLD));
    int length = position, next = (me + 1) % size, before = (me + size - 1) % size;
    char came[100];
    MPI_Request request;
    SUCCEEDS(MPI_Irecv(came, sizeof came, MPI_PACKED, before, 1, MPI_COMM_WORLD, &request));
    SUCCEEDS(MPI_Send(buffer, length, MPI_PACKED, next, 1, MPI_COMM_WORLD));
    SUCCEEDS(MPI_Wait(&request, MPI_STATUS_IGNORE));
    position = 0;
    SUCCEEDS(MPI_Unpack(came, length, &position, got, 1, t, MPI_COMM_WORLD));
    MPI_Count place = position;
    SUCCEEDS(MPI_Unpack_c(came, length, &place, &back, 1, MPI_DOUBLE, MPI_COMM_WORLD));
    CHECK(place == length && back == 0.5);
    CHECK(got[0] == 1 && got[1] == 0 && got[2] == 3 && got[3] == 0 && got[4] == 5);
    SUCCEEDS(MPI_Type_free(&t));
}

static void external(void)
{
    int numbers[2] = {-2, 0x01020304}, got[2] = {0};
    long wide = -5, wide_back = 0;
    double half = -0.5, half_back = 0;
    long double ext = -1.25L, ext_back = 0;
    unsigned char buffer[64];
    MPI_Aint length, position = 0;
    SUCCEEDS(MPI_Pack_external_size("external32", 2, MPI_INT, &length));
    CHECK(length == 8);
    SUCCEEDS(MPI_Pack_external_size("external32", 2, MPI_LONG, &length));
    CHECK(length == 8);
    SUCCEEDS(MPI_Pack_external("external32", numbers, 2, MPI_INT, buffer, sizeof buffer, &position));
    CHECK(position == 8 && buffer[0] == 0xff && buffer[3] == 0xfe && buffer[4] == 1 && buffer[7] == 4);
    SUCCEEDS(MPI_Pack_external("external32", &wide, 1, MPI_LONG, buffer, sizeof buffer, &position));
    CHECK(position == 12 && buffer[11] == 0xfb);
    SUCCEEDS(MPI_Pack_external("external32", &half, 1, MPI_DOUBLE, buffer, sizeof buffer, &position));
    CHECK(buffer[12] == 0xbf && buffer[13] == 0xe0);
    SUCCEEDS(MPI_Pack_external("external32", &ext, 1, MPI_LONG_DOUBLE, buffer, sizeof buffer, &position));
    CHECK(position == 36 && buffer[20] == 0xbf && buffer[21] == 0xff && buffer[22] == 0x40);
    position = 0;
    SUCCEEDS(MPI_Unpack_external("external32", buffer, 36, &position, got, 2, MPI_INT));
    SUCCEEDS(MPI_Unpack_external("external32", buffer, 36, &position, &wide_back, 1, MPI_LONG));
    SUCCEEDS(MPI_Unpack_external("external32", buffer, 36, &position, &half_back, 1, MPI_DOUBLE));
    SUCCEEDS(MPI_Unpack_external("external32", buffer, 36, &position, &ext_back, 1, MPI_LONG_DOUBLE));
    CHECK(position == 36 && got[0] == -2 && got[1] == numbers[1] && wide_back == -5 && half_back == half && ext_back == ext);
}

static void less(void *in, void *inout, int *count, MPI_Datatype *datatype)
{
    int bytes;
    MPI_Type_size(*datatype, &bytes);
    CHECK(bytes == 4);
    for (int k = 0; k < *count; k++)
        ((int *)inout)[k] = ((int *)in)[k] - ((int *)inout)[k];
}

static void less_of_many(void *in, void *inout, MPI_Count *count, MPI_Datatype *datatype)
{
    int n = (int)*count;
    less(in, inout, &n, datatype);
}

static void operators(void)
{
    MPI_Op op;
    int commutes, a[3] = {5, 6, 7}, b[3] = {1, 2, 3};
    SUCCEEDS(MPI_Op_create(less, 0, &op));
    SUCCEEDS(MPI_Op_commutative(op, &commutes));
    CHECK(!commutes);
    SUCCEEDS(MPI_Reduce_local(a, b, 3, MPI_INT, op));
    CHECK(b[0] == 4 && b[1] == 4 && b[2] == 4);
    CHECK(MPI_Op_fromint(MPI_Op_toint(op)) == op);
    SUCCEEDS(MPI_Op_free(&op));
    CHECK(op == MPI_OP_NULL);
    SUCCEEDS(MPI_Op_create_c(less_of_many, 1, &op));
    SUCCEEDS(MPI_Op_commutative(op, &commutes));
    CHECK(commutes);
    SUCCEEDS(MPI_Reduce_local_c(a, b, 3, MPI_INT, op));
    CHECK(b[0] == 1 && b[1] == 2 && b[2] == 3);
    SUCCEEDS(MPI_Op_free(&op));
    SUCCEEDS(MPI_Op_commutative(MPI_SUM, &commutes));
    CHECK(commutes);
    SUCCEEDS(MPI_Reduce_local(a, b, 3, MPI_INT, MPI_SUM));
    CHECK(b[0] == 6 && b[1] == 8 && b[2] == 10);
    long double x = 1.5L, y = 2;
    SUCCEEDS(MPI_Reduce_local(&x, &y, 1, MPI_LONG_DOUBLE, MPI_PROD));
    CHECK(y == 3);
    struct { double value; int index; } p = {1, 4}, q = {1, 2}, r = {0.5, 9};
    SUCCEEDS(MPI_Reduce_local(&p, &q, 1, MPI_DOUBLE_INT, MPI_MINLOC));
    CHECK(q.value == 1 && q.index == 2);
    SUCCEEDS(MPI_Reduce_local(&r, &q, 1, MPI_DOUBLE_INT, MPI_MINLOC));
    CHECK(q.value == 0.5 && q.index == 9);
    float c[2] = {1, 2}, d[2] = {3, 4};
    SUCCEEDS(MPI_Reduce_local(c, d, 1, MPI_C_FLOAT_COMPLEX, MPI_PROD));
    CHECK(d[0] == -5 && d[1] == 10);
    _Bool t[2] = {1, 1}, f[2] = {0, 1};
    SUCCEEDS(MPI_Reduce_local(t, f, 2, MPI_C_BOOL, MPI_LAND));
    CHECK(!f[0] && f[1]);
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"packed", packed},
        {"external", external},
        {"operators", operators},
        {NULL, NULL},
    };
    return play(argc, argv, scenarios);
}
