"""Tasks that are spawned, watched and ended."""

import signal
import sys

import regatta_mpi as rg

if len(sys.argv) > 1:
    parent = rg.parent()
    rg.job.send_object((rg.task(), rg.world.rank, rg.world.size, sys.argv[1:]), parent)
    rg.job.recv_object(parent)
    sys.exit(0)

ids = rg.spawn(sys.executable, [__file__, "a b"], 3, environment={"NAME": "value"})
assert len(ids) == 3
told = sorted(rg.job.recv_object(task) for task in ids)
assert told == [(task, rank, 3, ["a b"]) for rank, task in enumerate(ids)]
assert {task.id for task in rg.tasks()} >= set(ids)
assert all(task.parent == rg.task() for task in rg.tasks() if task.id in ids)
assert sum(host.cores for host in rg.hosts() if host.alive) >= 1
watches = [rg.watch_task(task) for task in ids]
assert watches[0].poll() is None
rg.kill(ids[0])
event = watches[0].wait()
assert (event.task, event.how, event.value) == (ids[0], "signal", signal.SIGKILL), event
rg.signal(ids[1], signal.SIGTERM)
assert watches[1].wait().value == signal.SIGTERM
rg.job.send_object(None, ids[2])
event = watches[2].wait()
assert (event.task, event.how, event.value) == (ids[2], "exit", 0)
try:
    rg.job.send(b"", ids[0])
except rg.TaskDied as error:
    assert error.task == ids[0]
else:
    raise AssertionError("sent to the dead")
try:
    rg.spawn("/there/is/no/such/program")
except rg.Error as error:
    assert "/there/is/no/such/program" in str(error)
else:
    raise AssertionError("started")
print("all is well")
