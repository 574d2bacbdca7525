"""Each collective and message of torch.distributed with the backend regatta."""
import threading

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional

import regatta_mpi.torch

dist.init_process_group("regatta", init_method="regatta://")
rank, size = dist.get_rank(), dist.get_world_size()
total = size * (size + 1) // 2


def full(value, *shape, **more):
    return torch.full(shape or (2,), value, **more)


# Reductions of each type, in place and on non-contiguous tensors.
kinds = "int8 uint8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128"
for kind in kinds.split():
    value = full(rank + 1, 3, 4, dtype=getattr(torch, kind))
    dist.all_reduce(value)
    assert (value == total).all(), (kind, value)
value = torch._neg_view(full(rank + 1.0))
dist.all_reduce(value, op=dist.ReduceOp.MAX)
assert (value == -1).all(), value
value = torch.tensor([rank == 0, False])
dist.all_reduce(value)
assert value.tolist() == [True, False]
value = full(rank + 1.0, 4, 6)[:, ::2]
dist.all_reduce(value, op=dist.ReduceOp.AVG)
assert (value == total / size).all()
for op, wanted in ((dist.ReduceOp.MAX, size), (dist.ReduceOp.MIN, 1)):
    value = full(rank + 1)
    work = dist.all_reduce(value, op=op, async_op=True)
    work.wait()
    assert work.is_completed() and (value == wanted).all()
value = full(1 << rank)
dist.all_reduce(value, op=dist.ReduceOp.BOR)
assert (value == (1 << size) - 1).all()
value = full(rank + 1.0)
dist.reduce(value, dst=size - 1)
assert rank != size - 1 or (value == total).all()

# Each rank's tensor is sent to others.
value = full(rank)
dist.broadcast(value, src=1)
assert (value == 1).all()
outputs = [torch.empty(2, 3) for _ in range(size)]
dist.all_gather(outputs, full(float(rank), 2, 3))
assert all((output == other).all() for other, output in enumerate(outputs))
output = torch.empty(2 * size)
dist.all_gather_into_tensor(output, full(float(rank)))
assert output.tolist() == [index // 2 for index in range(2 * size)]
outputs = [torch.empty(2) for _ in range(size)] if rank == 0 else None
dist.gather(full(float(rank)), outputs, dst=0)
assert rank != 0 or [output[1].item() for output in outputs] == list(range(size))
output = torch.empty(2)
dist.scatter(output, [full(float(other)) for other in range(size)] if rank == 0 else None, src=0)
assert (output == rank).all()
output = torch.empty(2)
dist.reduce_scatter_tensor(output, torch.arange(2.0 * size))
assert output.tolist() == [size * 2 * rank, size * (2 * rank + 1)]
output = torch.empty(2, dtype=torch.bfloat16)
dist.reduce_scatter(output, [full(float(other), dtype=torch.bfloat16) for other in range(size)])
assert output.tolist() == [size * rank] * 2
output = torch.empty(size)
dist.all_to_all_single(output, torch.arange(float(size)) + 10 * rank)
assert output.tolist() == [10 * other + rank for other in range(size)]
inputs = [full(float(10 * rank + other), other + 1) for other in range(size)]
outputs = [torch.empty(rank + 1) for _ in range(size)]
dist.all_to_all(outputs, inputs)
assert all(output.tolist() == [10 * other + rank] * (rank + 1) for other, output in enumerate(outputs))

# Messages.
if rank == 0:
    dist.send(torch.arange(5), 1, tag=3)
elif rank == 1:
    output = torch.zeros(5, dtype=torch.int64)
    assert dist.recv(output, tag=3) == 0 and output.tolist() == [0, 1, 2, 3, 4]
incoming = torch.empty(2)
ring = [dist.P2POp(dist.isend, full(float(rank)), (rank + 1) % size), dist.P2POp(dist.irecv, incoming, (rank - 1) % size)]
for work in dist.batch_isend_irecv(ring):
    work.wait()
assert (incoming == (rank - 1) % size).all()
dist.barrier()

# Objects, other groups, futures, and functions built on these.
objects = [None] * size
dist.all_gather_object(objects, {"rank": rank})
assert [it["rank"] for it in objects] == list(range(size))
objects = [{"from": 0}] if rank == 0 else [None]
dist.broadcast_object_list(objects, src=0)
assert objects == [{"from": 0}]
pair = dist.new_group([0, 1])
if rank < 2:
    value = torch.ones(1)
    dist.all_reduce(value, group=pair)
    assert value.item() == 2
dist.all_reduce(torch.ones(3), async_op=True).get_future().wait()
if rank == 0:
    # A thread waits for the message because of its future. is_completed must still answer.
    work = dist.irecv(value, 1)
    future = work.get_future()
    assert not work.is_completed()
    dist.send(value, 1)
    future.wait()
    assert work.is_completed()
elif rank == 1:
    dist.recv(value, 0)
    dist.send(value, 0)
if rank == 0:
    # A message that arrives late must not delay the callback of one that has arrived.
    late, soon = torch.zeros(1), torch.zeros(1)
    first, second = dist.irecv(late, 1, tag=1).get_future(), dist.irecv(soon, 1, tag=2).get_future()
    called = threading.Event()
    second.then(lambda _: called.set())
    dist.send(soon, 1)
    assert called.wait(20) and not first.done()
    dist.send(late, 1)
    first.wait()
    assert late.item() == 1 and soon.item() == 2
    # Nor does a callback that takes long: here until that of the other message has run.
    first, second = dist.irecv(late, 1, tag=1).get_future(), dist.irecv(soon, 1, tag=2).get_future()
    begun, called = threading.Event(), threading.Event()
    slow = first.then(lambda _: begun.set() or called.wait(20))
    second.then(lambda _: called.set())
    dist.send(late, 1)
    assert begun.wait(20) and not slow.done()
    dist.send(soon, 1)
    assert slow.wait()
    # What goes wrong where messages are waited for is the future's error.
    work = dist.irecv(late, 1, tag=1)
    work.look = lambda: 1 // 0
    future = work.get_future()
    dist.send(soon, 1)
    try:
        future.wait()
        raise AssertionError("no error")
    except ZeroDivisionError:
        assert not work.is_success()
elif rank == 1:
    dist.recv(value, 0)
    dist.send(full(2.0, 1), 0, tag=2)
    dist.recv(value, 0)
    dist.send(full(1.0, 1), 0, tag=1)
    for tag in (1, 2, 1):
        dist.recv(value, 0)
        dist.send(full(1.0, 1), 0, tag=tag)
model = torch.nn.Linear(4, 1)
parallel = torch.nn.parallel.DistributedDataParallel(model)
parallel(full(rank + 1.0, 2, 4)).sum().backward()
assert torch.allclose(model.weight.grad, full(2.0 * total / size, 1, 4)), model.weight.grad
assert (functional.all_reduce(full(rank + 1.0), "sum", dist.group.WORLD) == total).all()

# Unsupported calls raise an error at all ranks, and change nothing.
for wrong, text in (
    (lambda: dist.all_reduce(torch.ones(2).to_sparse()), "dense"),
    (lambda: dist.all_reduce(torch.ones(2, dtype=torch.float8_e4m3fn)), "convert"),
):
    try:
        wrong()
        raise AssertionError("no error")
    except (TypeError, ValueError, NotImplementedError) as error:
        assert text in str(error), error
if rank == 0:
    print(f"right of {size}")
dist.destroy_process_group()
