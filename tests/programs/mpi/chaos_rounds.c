/* The rounds of the chaos run over MPI. */
#include "chaos_front.h"

#include "../chaos_rounds.c"
