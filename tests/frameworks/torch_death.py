"""A rank is killed: the others get an error with its rank within a second, and go on."""
import os
import signal
import time

import torch
import torch.distributed as dist

import regatta_mpi as rg
import regatta_mpi.torch

dist.init_process_group("regatta", init_method="regatta://")
if dist.get_rank() == 0:
    rg.watch_task(rg.world.task_of(1))
value = torch.ones(1000)
dist.all_reduce(value)
if dist.get_rank() == 1:
    os.kill(os.getpid(), signal.SIGKILL)
begin = time.monotonic()
gone = None
while gone is None:
    try:
        dist.all_reduce(value)
    except regatta_mpi.torch.RankDied as error:
        gone = error.rank
        assert isinstance(error, dist.DistBackendError) and f"rank {gone} " in str(error), error
assert time.monotonic() - begin < 1, "the death was heard of too late"
regatta_mpi.torch.shrink()
value = torch.ones(2)
dist.all_reduce(value)
assert value[0] == dist.get_world_size()
# Each group is freed when the next one is made, so there are never more than two.
groups = set()
for _ in range(6):
    regatta_mpi.torch.shrink()
    groups.add(regatta_mpi.torch._members.id % 32768)
assert len(groups) <= 2, groups
if dist.get_rank() == 0:
    print(f"rank {gone} is gone; {dist.get_world_size()} go on")
dist.destroy_process_group()
