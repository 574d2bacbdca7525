"""A member dies during a call: the others get an error that names it, and go on without it."""

import os
import signal

import numpy as np
import regatta_mpi as rg

world = rg.world
rank, size = world.rank, world.size
victim = size - 1
pids = world.allgather_object(os.getpid())
if rank == victim:
    signal.raise_signal(signal.SIGKILL)
for wait in (
    lambda: world.recv(bytearray(8), victim),
    lambda: world.irecv(bytearray(8), victim).wait(),
    lambda: world.recv_object(victim),
    lambda: world.allreduce(np.ones(4)),
    lambda: world.barrier(),
):
    try:
        wait()
    except rg.TaskDied as error:
        assert error.task == world.task_of(victim), error.task
        assert f"task {error.task} (pid {pids[victim]}) was killed by signal 9" in str(error), error
    else:
        raise AssertionError("it has come")
world.acknowledge_dead()
assert world.dead() == [victim]
# When all living members have arrived here, they revoke the group.
assert world.agree(1) == 1
world.revoke()
try:
    world.recv(bytearray(1), rank)
except rg.GroupRevoked:
    assert world.is_revoked
else:
    raise AssertionError("not revoked")
rest = world.shrink()
assert rest.size == size - 1 and rest.allreduce(1) == size - 1
print(f"{rank} of {size}: all is well")
