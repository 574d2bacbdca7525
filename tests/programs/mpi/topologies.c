/* Topologies: grids, graphs, distributed graphs, and balanced dimensions. */
#include "mpi_check.h"

static void dims(void)
{
    int all[3] = {0, 0, 0}, some[3] = {0, 3, 0}, wrong[2] = {5, 0}, full[2] = {2, 3};
    SUCCEEDS(MPI_Dims_create(24, 3, all));
    CHECK(all[0] == 4 && all[1] == 3 && all[2] == 2);
    SUCCEEDS(MPI_Dims_create(24, 3, some));
    CHECK(some[0] == 4 && some[1] == 3 && some[2] == 2);
    SUCCEEDS(MPI_Dims_create(6, 2, full));
    FAILS(MPI_ERR_DIMS, MPI_Dims_create(24, 2, wrong));
    FAILS(MPI_ERR_DIMS, MPI_Dims_create(7, 2, full));
}

/* A grid of two rows, which are periodic. */
static void grids(void)
{
    int lengths[2] = {2, size / 2}, rings[2] = {0, 1}, coords[2], count, kind, rank, from, to;
    MPI_Comm grid, row, copy;
    SUCCEEDS(MPI_Cart_map(MPI_COMM_WORLD, 2, lengths, rings, &rank));
    CHECK(rank == (me < size / 2 * 2 ? me : MPI_UNDEFINED));
    SUCCEEDS(MPI_Cart_create(MPI_COMM_WORLD, 2, lengths, rings, 1, &grid));
    CHECK((grid == MPI_COMM_NULL) == (me >= size / 2 * 2));
    int many[1] = {size + 1};
    copy = grid;
    FAILS(MPI_ERR_DIMS, MPI_Cart_create(MPI_COMM_WORLD, 1, many, rings, 0, &copy));
    CHECK(copy == MPI_COMM_NULL);
    /* A grid with a dimension of 0 has no processes. */
    lengths[1] = 0;
    SUCCEEDS(MPI_Cart_map(MPI_COMM_WORLD, 2, lengths, rings, &rank));
    CHECK(rank == MPI_UNDEFINED);
    SUCCEEDS(MPI_Cart_create(MPI_COMM_WORLD, 2, lengths, rings, 1, &copy));
    CHECK(copy == MPI_COMM_NULL);
    lengths[1] = -1;
    FAILS(MPI_ERR_DIMS, MPI_Cart_map(MPI_COMM_WORLD, 2, lengths, rings, &rank));
    SUCCEEDS(MPI_Topo_test(MPI_COMM_WORLD, &kind));
    CHECK(kind == MPI_UNDEFINED);
    FAILS(MPI_ERR_TOPOLOGY, MPI_Cartdim_get(MPI_COMM_WORLD, &count));
    if (grid == MPI_COMM_NULL)
        return;
    SUCCEEDS(MPI_Comm_dup(grid, &copy));
    SUCCEEDS(MPI_Topo_test(copy, &kind));
    SUCCEEDS(MPI_Cartdim_get(copy, &count));
    CHECK(kind == MPI_CART && count == 2);
    int got[2], periods[2];
    SUCCEEDS(MPI_Cart_get(copy, 2, got, periods, coords));
    CHECK(got[0] == 2 && got[1] == size / 2 && !periods[0] && periods[1]);
    CHECK(coords[0] == me / (size / 2) && coords[1] == me % (size / 2));
    SUCCEEDS(MPI_Cart_rank(grid, coords, &rank));
    CHECK(rank == me);
    coords[1] += size / 2;
    SUCCEEDS(MPI_Cart_rank(grid, coords, &rank));
    CHECK(rank == me);
    coords[0] = 2;
    FAILS(MPI_ERR_ARG, MPI_Cart_rank(grid, coords, &rank));
    SUCCEEDS(MPI_Cart_coords(grid, me, 2, coords));
    FAILS(MPI_ERR_ARG, MPI_Cart_coords(grid, me, 1, coords));
    FAILS(MPI_ERR_RANK, MPI_Cart_coords(grid, size, 2, coords));
    SUCCEEDS(MPI_Cart_shift(grid, 0, 1, &from, &to));
    CHECK(coords[0] == 0 ? from == MPI_PROC_NULL && to == me + size / 2 : to == MPI_PROC_NULL);
    SUCCEEDS(MPI_Cart_shift(grid, 1, -1, &from, &to));
    CHECK(to == coords[0] * (size / 2) + (coords[1] + size / 2 - 1) % (size / 2));
    FAILS(MPI_ERR_ARG, MPI_Cart_shift(grid, 2, 1, &from, &to));
    int keep[2] = {0, 1}, none[2] = {0, 0};
    SUCCEEDS(MPI_Cart_sub(grid, keep, &row));
    SUCCEEDS(MPI_Comm_rank(row, &rank));
    SUCCEEDS(MPI_Comm_size(row, &count));
    CHECK(rank == coords[1] && count == size / 2);
    SUCCEEDS(MPI_Comm_free(&row));
    SUCCEEDS(MPI_Cart_sub(grid, none, &row));
    SUCCEEDS(MPI_Cartdim_get(row, &count));
    CHECK(count == 0);
    SUCCEEDS(MPI_Comm_free(&row));
    SUCCEEDS(MPI_Comm_free(&copy));
    SUCCEEDS(MPI_Comm_free(&grid));
}

/* A line of processes: each has the previous and the next one as neighbours. */
static void graphs(void)
{
    int ends[16], edges[32], count = 0, kind, nodes, rank, got[32];
    for (int i = 0; i < size; i++) {
        if (i > 0)
            edges[count++] = i - 1;
        if (i < size - 1)
            edges[count++] = i + 1;
        ends[i] = count;
    }
    MPI_Comm line;
    SUCCEEDS(MPI_Graph_map(MPI_COMM_WORLD, size, ends, edges, &rank));
    CHECK(rank == me);
    SUCCEEDS(MPI_Graph_create(MPI_COMM_WORLD, size, ends, edges, 0, &line));
    SUCCEEDS(MPI_Topo_test(line, &kind));
    CHECK(kind == MPI_GRAPH);
    SUCCEEDS(MPI_Graphdims_get(line, &nodes, &kind));
    CHECK(nodes == size && kind == count);
    SUCCEEDS(MPI_Graph_get(line, 16, 32, got, got + 16));
    CHECK(got[size - 1] == count);
    SUCCEEDS(MPI_Graph_neighbors_count(line, me, &kind));
    CHECK(kind == (me > 0) + (me < size - 1));
    SUCCEEDS(MPI_Graph_neighbors(line, me, 2, got));
    CHECK(me == 0 ? size == 1 || got[0] == 1 : got[0] == me - 1);
    SUCCEEDS(MPI_Comm_free(&line));
    edges[0] = size;
    if (count)
        FAILS(MPI_ERR_ARG, MPI_Graph_create(MPI_COMM_WORLD, size, ends, edges, 0, &line));
}

/* MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY in variables, because compilers warn that their memory is too small. */
static int *volatile unweighted, *volatile no_weights;

/* A ring, first described by each process for itself, then by process 0 for all. */
static void distributed(void)
{
    int next = (me + 1) % size, before = (me + size - 1) % size, weight = me, weight_before = before;
    int in, out, weighted, from[1], to[1], got[1], given[1], kind;
    MPI_Comm ring;
    SUCCEEDS(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, &weight_before, 1, &next, &weight,
                                            MPI_INFO_NULL, 0, &ring));
    SUCCEEDS(MPI_Topo_test(ring, &kind));
    SUCCEEDS(MPI_Dist_graph_neighbors_count(ring, &in, &out, &weighted));
    CHECK(kind == MPI_DIST_GRAPH && in == 1 && out == 1 && weighted);
    SUCCEEDS(MPI_Dist_graph_neighbors(ring, 1, from, got, 1, to, given));
    CHECK(from[0] == before && to[0] == next && got[0] == before && given[0] == me);
    SUCCEEDS(MPI_Comm_free(&ring));
    int sources[16], degrees[16], destinations[16];
    for (int i = 0; i < size; i++) {
        sources[i] = i;
        degrees[i] = 1;
        destinations[i] = (i + 1) % size;
    }
    SUCCEEDS(MPI_Dist_graph_create(MPI_COMM_WORLD, me == 0 ? size : 0, sources, degrees, destinations,
                                   unweighted, MPI_INFO_NULL, 1, &ring));
    SUCCEEDS(MPI_Dist_graph_neighbors_count(ring, &in, &out, &weighted));
    CHECK(in == 1 && out == 1 && !weighted);
    SUCCEEDS(MPI_Dist_graph_neighbors(ring, 1, from, unweighted, 1, to, unweighted));
    CHECK(from[0] == before && to[0] == next);
    SUCCEEDS(MPI_Comm_free(&ring));
    SUCCEEDS(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, no_weights, 0, NULL, no_weights,
                                            MPI_INFO_NULL, 0, &ring));
    SUCCEEDS(MPI_Dist_graph_neighbors_count(ring, &in, &out, &weighted));
    CHECK(in == 0 && out == 0 && weighted);
    SUCCEEDS(MPI_Comm_free(&ring));
    FAILS(MPI_ERR_TOPOLOGY, MPI_Dist_graph_neighbors_count(MPI_COMM_WORLD, &in, &out, &weighted));
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"dims", dims}, {"grids", grids}, {"graphs", graphs}, {"distributed", distributed}, {NULL, NULL}};
    unweighted = MPI_UNWEIGHTED;
    no_weights = MPI_WEIGHTS_EMPTY;
    return play(argc, argv, scenarios);
}
