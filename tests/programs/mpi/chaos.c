/*
 * The captain of the chaos run over MPI. One crew follows the other, because processes that are started later have
 * another MPI_COMM_WORLD.
 */
#define OVER_MPI 1
#include "../chaos.c"
