/* The captain of the chaos run over MPI: one crew follows the other, since processes that are started later have another MPI_COMM_WORLD. */
#define OVER_MPI 1
#include "../chaos.c"
