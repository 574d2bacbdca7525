"""Collectives on arrays, numbers and objects."""

import numpy as np
import regatta_mpi as rg

world = rg.world
rank, size = world.rank, world.size
ranks = np.arange(size)


def raises(kind, call, *words):
    try:
        call()
    except kind as error:
        assert all(word in str(error) for word in words), error
        return
    raise AssertionError(f"no {kind.__name__}")


def reductions():
    for dtype in "bBhHiIlLqQfdg":
        mine = np.arange(6, dtype=dtype).reshape(2, 3) + rank
        total = world.allreduce(mine)
        assert total.dtype == mine.dtype and total.shape == (2, 3)
        assert (total == sum(np.arange(6).reshape(2, 3) + r for r in range(size))).all()
    mine = np.array([rank, -rank, 3])
    assert (world.allreduce(mine, rg.MAX) == [size - 1, 0, 3]).all()
    assert (world.allreduce(mine, rg.MIN) == [0, 1 - size, 3]).all()
    assert (world.allreduce(mine + 1, rg.PRODUCT)[2]) == 4**size
    assert (world.allreduce(np.array([1 << rank]), rg.BOR) == (1 << size) - 1).all()
    assert (world.allreduce(np.array([rank + 1j])) == ranks.sum() + size * 1j).all()
    assert list(world.allreduce(np.array([rank == 0, False, True]))) == [True, False, True]
    assert list(world.allreduce(np.array([rank == 0, False, True]), rg.PRODUCT)) == [size == 1, False, True]
    assert world.allreduce(rank) == ranks.sum() and isinstance(world.allreduce(rank), int)
    assert world.allreduce(rank / 2) == ranks.sum() / 2
    assert world.allreduce(np.float32(1.5)) == 1.5 * size
    assert world.allreduce(np.empty((0, 4))).shape == (0, 4)
    assert (world.scan(np.array([1, rank])) == [rank + 1, ranks[: rank + 1].sum()]).all()
    for root in range(size):
        result = world.reduce(np.full(3, rank), root=root)
        assert result is None if rank != root else (result == ranks.sum()).all()
    parts = world.reduce_scatter(np.arange(size * 4).reshape(size, 4) + rank)
    assert (parts == (np.arange(4) + 4 * rank) * size + ranks.sum()).all()


def places():
    """Output arrays, in-place calls, memory layouts."""
    mine, out = np.full(4, float(rank)), np.empty(4)
    assert world.allreduce(mine, out=out) is out and (out == ranks.sum()).all()
    world.allreduce(mine, rg.MAX, mine)
    assert (mine == size - 1).all()
    table = np.arange(6.0).reshape(2, 3)
    for layout in (np.asfortranarray(table), table[:, ::-1], np.ascontiguousarray(table.T).T):
        assert np.array_equal(world.allreduce(layout), layout * size)
    raises(BufferError, lambda: world.allreduce(table, out=np.empty((2, 6))[:, ::2]), "ascontiguousarray")
    raises(ValueError, lambda: world.allreduce(table, out=np.empty(5)), "48 bytes", "40")
    raises(ValueError, lambda: world.allreduce(np.arange(2), out=np.empty(2)), "different types")
    raises(TypeError, lambda: world.allreduce(np.zeros(2, "f2")), "astype")
    raises(ValueError, lambda: world.allreduce(np.zeros(2), rg.BAND))
    world.barrier()


def exchanges():
    mine = np.arange(3) + 10 * rank
    expected = np.arange(3) + 10 * ranks[:, None]
    assert np.array_equal(world.allgather(mine), expected)
    assert np.array_equal(world.allgather(np.float64(rank)), ranks)
    world.allgather(mine, out := np.empty((size, 3), int))
    assert np.array_equal(out, expected)
    for root in range(size):
        found = world.gather(mine, root)
        assert found is None if rank != root else np.array_equal(found, expected)
        part = world.scatter(expected if rank == root else None, root)
        assert np.array_equal(part, mine) and part.dtype == int
        world.scatter(expected if rank == root else None, root, into := np.empty(3, int))
        assert np.array_equal(into, mine)
        data = np.full((2, 2), 7.0) if rank == root else np.empty((2, 2))
        assert world.bcast(data, root) is data and (data == 7).all()
    table = 100 * rank + np.arange(size)[:, None] + np.zeros((size, 2), int)
    assert np.array_equal(world.alltoall(table)[:, 0], 100 * ranks + rank)
    raises(ValueError, lambda: world.alltoall(np.zeros((size + 1, 2))), "first axis")
    constant = np.arange(4)
    constant.flags.writeable = False
    world.bcast(constant if rank == 0 else np.empty(4, int))


def objects():
    for root in (0, size - 1):
        sent = {"from": root, "data": np.arange(10_000)}
        got = world.bcast_object(sent if rank == root else None, root)
        assert got["from"] == root and got["data"].sum() == 49_995_000
        found = world.gather_object((rank, np.full(rank * 3000, rank)), root)
        if rank == root:
            assert [r for r, _ in found] == list(ranks)
            assert all(len(data) == 3000 * r and (data == r).all() for r, data in found)
        else:
            assert found is None
    assert world.allgather_object("x" * rank) == ["x" * r for r in ranks]


def groups():
    half = world.split(rank % 2, -rank)
    assert half.size == (size + 1 - rank % 2) // 2
    assert half.allreduce(rank) == ranks[rank % 2 :: 2].sum()
    assert world.split(None if rank else 0) is None or rank == 0
    again = world.dup()
    assert again != world and again.rank == rank
    pair = world.select([1, 0]) if rank < 2 <= size else None
    if pair:
        assert pair.rank == 1 - rank
        pair.free()
    assert world.agree(0b110 | rank) & 0b110 == 0b110


for part in (reductions, places, exchanges, objects, groups):
    part()
print(f"{rank} of {size}: all is well")
