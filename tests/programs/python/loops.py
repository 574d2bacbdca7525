"""Requests, objects and events in asyncio."""

import asyncio
import sys

import numpy as np
import regatta_mpi as rg

world = rg.world
rank, size = world.rank, world.size
after, before = (rank + 1) % size, (rank - 1) % size


async def ticks(count):
    """Counts how often other coroutines run while one waits."""
    while True:
        count[0] += 1
        await asyncio.sleep(0)


async def talk(tag):
    for turn in range(50):
        room = np.empty(3, int)
        coming = world.irecv(room, before, tag)
        await world.isend(np.array([rank, tag, turn]), after, tag)
        status = await coming
        assert status.tag == tag and list(room) == [before, tag, turn]


async def main():
    count = [0]
    ticking = asyncio.create_task(ticks(count))
    await asyncio.gather(*(talk(tag) for tag in range(8)))
    assert count[0] > 0
    ticking.cancel()
    # A large message, which needs both sides.
    large = np.full(1 << 20, rank)
    sent = world.isend(large, after, 50)
    await world.irecv(into := np.empty(1 << 20, int), before, 50)
    await sent
    assert (into == before).all()
    await world.isend_object({"from": rank}, after, 51)
    assert (await world.irecv_object(before, 51))["from"] == before
    # A cancelled receive takes no message.
    giving_up = asyncio.create_task(_wait(world.irecv(bytearray(3), before, 52)))
    await asyncio.sleep(0)
    giving_up.cancel()
    try:
        await giving_up
    except asyncio.CancelledError:
        pass
    world.barrier()
    world.send(b"yes", after, 52)
    await world.irecv(room := bytearray(3), before, 52)
    assert room == b"yes"
    try:
        async with asyncio.timeout(0.05):
            await world.irecv(bytearray(3), before, 53)
    except TimeoutError:
        pass
    else:
        raise AssertionError("it has come")
    if rank == 0:
        (child,) = rg.spawn(sys.executable, ["-c", "import regatta_mpi; regatta_mpi.init(); raise SystemExit(3)"])
        event = await rg.watch_task(child)
        assert (event.kind, event.task, event.how, event.value) == ("task-exit", child, "exit", 3), event
    world.barrier()


async def _wait(request):
    await request


asyncio.run(main())
# Another event loop of the same task, which is closed while a coroutine waits in it.
closed = asyncio.new_event_loop()
left = closed.create_task(_wait(world.irecv(bytearray(3), before, 61)))
closed.run_until_complete(asyncio.sleep(0))
closed.close()
asyncio.run(talk(60))
print(f"{rank} of {size}: all is well")
