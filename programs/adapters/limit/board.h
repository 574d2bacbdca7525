/*
 * The board of `limit`, on which tasks write blocks for collectives. Each task has lines there for small blocks, and
 * areas for larger ones.
 *
 * In each turn every task writes its block and waits until all have written theirs. No task can be two turns ahead, so
 * a block may be overwritten two turns later at the earliest. How much of its area a task cycles through is tried out,
 * as for rings.
 */
#ifndef LIMIT_BOARD_H
#define LIMIT_BOARD_H

#include "rings.h"

/* The longest block of each length class; the number of turns after which its area is reused, and whether stores bypass
 * the caches. */
static const size_t env_blocks[BLOCKS] = {1 << 10, 4 << 10, 16 << 10, 32 << 10};
static struct {
    uint64_t turns;
    int past;
} env_areas[BLOCKS];
static uint64_t env_turn;

static inline int env_block(size_t bytes)
{
    int block = 0;
    while (bytes > env_blocks[block])
        block++;
    return block;
}

/* Returns the address of the block of task r in this turn. */
static inline void *env_board(int r, size_t bytes)
{
    struct place *place = &env_shared->places[r];
    if (bytes <= LINE_DATA)
        return place->small[env_turn % TURNS].data;
    int block = env_block(bytes);
    return place->areas[block] + env_turn % env_areas[block].turns * env_blocks[block];
}

/* Begins a turn: writes this task's block on the board. */
static inline void env_board_show(const void *in, size_t bytes)
{
    env_turn++;
    void *mine = env_board(env_my_rank, bytes);
    if (bytes > LINE_DATA && env_areas[env_block(bytes)].past)
        env_copy_past(mine, in, bytes);
    else if (bytes > LINE_DATA)
        env_copy(mine, in, bytes, 0);
    else if (bytes == 8)
        memcpy(mine, in, 8);
    else if (bytes)
        memcpy(mine, in, bytes);
    if (!env_crowded)
        atomic_store_explicit(&env_shared->places[env_my_rank].small[env_turn % TURNS].turn, env_turn, memory_order_release);
}

/* Waits until every task has written its block of this turn. */
static inline void env_board_await(void)
{
    if (!env_crowded) {
        for (int r = 0; r < env_my_size; r++)
            if (r != env_my_rank) {
                _Atomic uint64_t *turn = &env_shared->places[r].small[env_turn % TURNS].turn;
                ENV_AWAIT(atomic_load_explicit(turn, memory_order_acquire) >= env_turn);
            }
        return;
    }
    /* In a crowd all tasks have to run before any can go on, so none sleeps. */
    if (atomic_fetch_add(&env_shared->arrived, 1) + 1 == (uint32_t)env_my_size) {
        atomic_store(&env_shared->arrived, 0);
        atomic_store(&env_shared->generation, (uint32_t)env_turn);
    } else {
        while (atomic_load_explicit(&env_shared->generation, memory_order_acquire) != (uint32_t)env_turn)
            sched_yield();
    }
}

static inline void env_board_meet(const void *in, size_t bytes)
{
    env_board_show(in, bytes);
    env_board_await();
}

#endif
