"""Heat in a rod that is hot at one end. Each task has a part, and gets the edge cells of its neighbours in each step."""

import numpy as np
import regatta_mpi as rg

CELLS, STEPS = 240, 20_000

world = rg.world
rank, size = world.rank, world.size
left = rank - 1 if rank > 0 else rg.NONE
right = rank + 1 if rank + 1 < size else rg.NONE

count = CELLS // size + (rank < CELLS % size)
rod = np.zeros(count + 2)
if rank == 0:
    rod[0] = 1.0
for step in range(STEPS):
    coming = [world.irecv(rod[:1], left), world.irecv(rod[-1:], right)]
    world.send(rod[1:2], left)
    world.send(rod[-2:-1], right)
    rg.wait_all(coming)
    change = rod[:-2] - 2 * rod[1:-1] + rod[2:]
    rod[1:-1] += 0.45 * change

heat = world.allreduce(float(rod[1:-1].sum()))
largest = world.allreduce(float(abs(change).max()), rg.MAX)
# The heat never rises along the rod, and is between 0 and that of the heated end.
parts = world.gather_object(rod[1:-1])
if rank == 0:
    whole = np.concatenate(parts)
    assert (np.diff(whole) <= 1e-12).all() and 0 <= whole.min() and whole.max() <= 1
    print(f"heat {heat:.3f} after {STEPS} steps on {size} tasks, changing by {largest:.1e}")
