"""Ctrl-C ends each call that waits."""

import os
import signal
import sys

import numpy as np
import regatta_mpi as rg

world = rg.world
peer = 1 - world.rank
pids = world.allgather_object(os.getpid())


def waits(call, then=None):
    """Rank 0 waits for ever, and rank 1 interrupts it when it is about to wait."""
    if world.rank == 0:
        try:
            world.send(b"", 1, 1)
            call()
        except KeyboardInterrupt:
            pass
        else:
            raise AssertionError("it has come")
        world.send(b"", 1, 2)
    else:
        world.recv(bytearray(), 0, 1)
        os.kill(pids[0], signal.SIGINT)
        world.recv(bytearray(), 0, 2)
        if then:
            then()


room = bytearray(8)
waits(lambda: world.recv(room, 1, 9))
waits(lambda: world.recv(np.zeros((4, 4))[:, ::2], 1, 9))
waits(lambda: world.recv_object(1, 9))
waits(lambda: world.probe(1, 9))
waits(lambda: world.ssend(b"nobody takes it", 1, 9))
waits(lambda: world.send(np.zeros(1 << 22), 1, 9))
kept = world.irecv(room, peer, 10)
waits(lambda: kept.wait(), lambda: world.send(b"it is on", 0, 10))
if world.rank == 0:
    # Only the wait has ended; the request is still pending.
    kept.wait()
    assert room == b"it is on"
else:
    world.send(b"", 1, 11)
    world.recv(bytearray(), 1, 11)
    kept.cancel()

# A handler that does not raise ends no call.
if world.rank == 0:
    heard = []
    signal.signal(signal.SIGINT, lambda *_: heard.append(1))
    world.send(b"", 1, 1)
    world.recv(room, 1, 12)
    assert heard == [1]
    signal.signal(signal.SIGINT, signal.default_int_handler)
else:
    world.recv(bytearray(), 0, 1)
    os.kill(pids[0], signal.SIGINT)
    world.send(b"now then", 0, 12)

# An interrupted collective leaves its group revoked, so no other member waits for this one.
large = np.ones(1 << 18)
for call in (lambda group: group.barrier(), lambda group: group.allreduce(large), lambda group: group.bcast(room, 1)):
    group = world.dup()
    ended = False
    while not ended:
        if world.rank == 0:
            try:
                world.send(b"", 1, 1)
                call(group)
            except KeyboardInterrupt:
                # Or the signal came before the call.
                ended = group.is_revoked
            else:
                raise AssertionError("it has come")
            world.send_object(ended, 1, 2)
        else:
            world.recv(bytearray(), 0, 1)
            os.kill(pids[0], signal.SIGINT)
            ended = world.recv_object(0, 2)
    if world.rank == 1:
        try:
            group.recv(bytearray(), 0, 1)
        except rg.GroupRevoked:
            pass
# If a member had already left, the last receive would fail for that reason.
world.barrier()
print(f"{world.rank}: all is well")
sys.stdout.flush()
