"""What two tasks take, by regatta_mpi or by mpi4py: pair.py own|mpi4py. Prints one line a measurement, in microseconds: the median of rounds."""

import statistics
import sys
import time

import numpy as np

own = sys.argv[1] == "own"
if own:
    import regatta_mpi as rg

    world = rg.world
    rank = world.rank
    send, recv, barrier = world.send, world.recv, world.barrier
    send_object, recv_object = world.send_object, world.recv_object

    def allreduce(a, b):
        world.allreduce(a, rg.SUM, b)
else:
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    rank = world.rank
    send, recv, barrier = world.Send, world.Recv, world.Barrier
    send_object = world.send

    def recv_object(source):
        return world.recv(source=source)

    def allreduce(a, b):
        world.Allreduce(a, b, MPI.SUM)


other = 1 - rank
clock = time.perf_counter


def one_way(size, turns):
    data = np.zeros(size, np.uint8)
    begin = clock()
    if rank == 0:
        for _ in range(turns):
            send(data, other)
            recv(data, other)
    else:
        for _ in range(turns):
            recv(data, other)
            send(data, other)
    return (clock() - begin) / turns / 2


def reduction(turns):
    given, out = np.ones(1), np.empty(1)
    begin = clock()
    for _ in range(turns):
        allreduce(given, out)
    return (clock() - begin) / turns


def objects(total, turns):
    obj = {"arrays": [np.zeros(total // 8 // 4) for _ in range(4)], "step": 1}
    begin = clock()
    for _ in range(turns):
        if rank == 0:
            send_object(obj, other)
            recv_object(other)
        else:
            obj = recv_object(other)
            send_object(obj, other)
    return (clock() - begin) / turns / 2


for name, measure, arguments, rounds in (
    ("one way 8 B", one_way, (8, 5000), 40),
    ("one way 1 MiB", one_way, (1 << 20, 100), 30),
    ("allreduce 8 B", reduction, (5000,), 40),
    ("objects 100 MB", objects, (100_000_000, 1), 8),
):
    measure(*arguments)
    times = []
    for _ in range(rounds):
        barrier()
        times.append(measure(*arguments))
    if rank == 0:
        print(f"{name},{statistics.median(times) * 1e6:.3f}", flush=True)
