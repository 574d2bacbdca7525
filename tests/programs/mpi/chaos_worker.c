/* A worker of the chaos run over MPI. */
#include "chaos_front.h"

#include "../chaos_worker.c"
