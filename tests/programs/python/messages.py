"""Messages of buffers and of objects between the tasks of a job: each task sends to the next one what the previous one
sends to it."""

import array
import gc
import random
import sys
import threading
import weakref

import numpy as np
import regatta_mpi as rg
from regatta_mpi import _native

world = rg.world
rank, size = world.rank, world.size
after, before = (rank + 1) % size, (rank - 1) % size


def raises(kind, call, *words):
    try:
        call()
    except kind as error:
        assert all(word in str(error) for word in words), error
        return error
    raise AssertionError(f"no {kind.__name__}")


def exchange(sent, into, tag=0):
    request = world.irecv(into, before, tag)
    world.send(sent, after, tag)
    status = request.wait()
    assert (status.source, status.tag) == (before, tag), status
    return status


class Tensor:
    """An array that supports only DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **how):
        return self.array.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def buffers():
    for sent, into in (
        (b"hello", bytearray(5)),
        (bytearray(b"x" * 49), bytearray(49)),
        (array.array("d", [1, 2, 3]), array.array("d", [0, 0, 0])),
        (memoryview(b"abcdef")[::2], bytearray(3)),
        (np.arange(1 << 21, dtype=np.float64), np.empty(1 << 21)),
    ):
        exchange(sent, into)
        assert bytes(into) == bytes(sent)
    status = exchange(b"short", bytearray(100), 7)
    assert status.length == 5


def odd_arrays():
    cube = np.arange(4 * 5 * 6, dtype=np.int32).reshape(4, 5, 6)
    read_only = cube.copy()
    read_only.flags.writeable = False
    empty = np.empty((3, 0, 2))
    for sent in (
        cube[:, 1:4, ::2],
        cube[::-1, ::-1, ::-1],
        np.asfortranarray(cube),
        cube.transpose(2, 0, 1),
        read_only,
        empty,
        np.float64(2.5),
        np.array(7),
        np.broadcast_to(np.arange(6), (5, 6)),
        cube.astype([("a", "i4"), ("b", "f8")]),
    ):
        exchange(sent, received := np.empty_like(sent, subok=False) if np.ndim(sent) else np.zeros((), sent.dtype))
        assert np.array_equal(received, sent), (sent, received)
        # Into another layout of the same shape.
        wide = np.zeros([2 * n for n in np.shape(sent)], np.asarray(sent).dtype)
        part = wide[(..., *(slice(None, None, 2) for _ in np.shape(sent)))]
        exchange(sent, part)
        assert np.array_equal(part, sent)
    # More rows than are listed one by one.
    many = np.arange(70_000 * 3 * 2, dtype=np.int16).reshape(70_000, 3, 2)
    into = np.zeros((70_000, 3, 4), np.int16)[:, :, ::2]
    request = world.isend(many[:, ::-1, ::-1], after)
    world.recv(into, before)
    request.wait()
    assert np.array_equal(into, many[:, ::-1, ::-1])


def tensors():
    sent, into = np.arange(24.0).reshape(4, 6), np.zeros((4, 6))
    exchange(Tensor(sent[:, ::3]), Tensor(into[:, ::3]))
    assert np.array_equal(into[:, ::3], sent[:, ::3]) and not into[:, 1].any()


def errors():
    raises(BufferError, lambda: world.recv(b"constant", before), "writable")
    raises(BufferError, lambda: world.irecv(np.broadcast_to(np.zeros(1), 3), before), "writable")
    raises(TypeError, lambda: world.send("text", after))
    raises(ValueError, lambda: world.send(b"", size), f"rank or id {size}")
    raises(ValueError, lambda: world.send(b"", after, -3), "tag -3")
    world.send(b"12345", after, 3)
    error = raises(rg.Truncated, lambda: world.recv(bytearray(3), before, 3), "5 bytes")
    assert error.code == -6 and error.task is None
    world.send(b"1234567812345678", after, 3)
    raises(ValueError, lambda: world.recv_object(before, 3), "does not contain an object")


def requests():
    rooms = [bytearray(4) for _ in range(3)]
    received = [world.irecv(room, before, tag) for tag, room in enumerate(rooms)]
    assert not received[0].test() and received[0].status is None
    world.barrier()
    world.send(b"tag2", after, 2)
    assert rg.wait_any(received) == 2
    world.barrier()
    for tag in (1, 0):
        world.send(b"tag%d" % tag, after, tag)
    assert {rg.wait_any(received), rg.wait_any(received)} == {0, 1}
    assert rg.wait_any(received) is None
    assert rooms == [b"tag0", b"tag1", b"tag2"]
    assert [status.tag for status in rg.wait_all(received)] == [0, 1, 2]
    # A receive without any reference takes no message.
    world.irecv(bytearray(4), before, 9)
    gc.collect()
    world.barrier()
    world.send(b"mine", after, 9)
    world.recv(room := bytearray(4), before, 9)
    assert room == b"mine"
    pending = world.irecv(bytearray(4), before, 10)
    assert pending.cancel()
    raises(rg.Cancelled, pending.wait)


def requests_of_all_kinds():
    """wait_any accepts a request twice and rejects other types. cancel says what to do with a request that another
    thread waits for."""
    me = world.rank
    coming = world.irecv(room := bytearray(3), me, 30)
    world.send(b"yes", me, 30)
    other = world.irecv(bytearray(3), me, 31)
    assert rg.wait_any([other, coming, coming]) == 1 and room == b"yes"
    other.cancel()
    try:
        rg.wait_any([world.irecv_object(me, 30)])
    except TypeError as error:
        assert "asyncio" in str(error)
    else:
        raise AssertionError("waited for")
    coming = world.irecv(room, me, 32)
    waiting = threading.Thread(target=coming.wait)
    waiting.start()
    try:
        # Raises as soon as the other thread waits.
        while coming.is_receive:
            pass
    except ValueError:
        pass
    try:
        coming.cancel()
    except ValueError as error:
        assert "another thread waits" in str(error) and "asyncio" in str(error), error
    else:
        raise AssertionError("cancelled")
    world.send(b"end", me, 32)
    waiting.join()
    assert room == b"end"


def kept_memory():
    """A request's memory stays valid until the request is complete, even without references to either."""
    large = np.full(1 << 20, rank, np.int64)
    gone = weakref.ref(large)
    world.isend(large, after, 4)
    del large
    gc.collect()
    # A message to itself is copied at once.
    assert size == 1 or gone() is not None
    world.barrier()
    world.recv(into := np.empty(1 << 20, np.int64), before, 4)
    assert (into == before).all()
    world.barrier()
    world.iprobe()
    gc.collect()
    assert gone() is None
    growing = bytearray(8)
    request = world.irecv(growing, before, 5)
    raises(BufferError, lambda: growing.extend(b"more"))
    world.send(b"", after, 5)
    request.wait()
    growing.extend(b"more")


def objects():
    for sent in (None, {"a": [1, 2.5]}, "x" * 100_000, np.arange(1000), [np.ones((300, 300)), np.arange(5), np.empty(0)]):
        request = world.isend_object(sent, after, 6)
        received, status = world.recv_object(before, status=True)
        request.wait()
        assert status.source == before
        same = np.array_equal if isinstance(sent, np.ndarray) else lambda a, b: str(a) == str(b)
        assert same(received, sent)
    # Received arrays are writable, aligned, and have the sender's memory order.
    sent = np.asfortranarray(np.arange(1e5).reshape(100, 1000))
    world.send_object((sent, sent[::2]), after)
    whole, half = world.irecv_object(before).wait()
    assert np.array_equal(whole, sent) and np.array_equal(half, sent[::2])
    assert whole.flags.f_contiguous and whole.flags.aligned
    whole += 1
    coming = world.irecv_object(before, 8)
    assert not coming.test()
    world.barrier()
    world.send_object(rank, after, 8)
    assert coming.wait() == before and coming.test()


def nonsense():
    """Whatever a message contains as its header, nothing outside of it is read."""
    draw = random.Random(rank)
    taken = 0
    for _ in range(5000):
        words = [draw.choice((0, 1, 2, 8, 24, draw.getrandbits(8), draw.getrandbits(64))) for _ in range(draw.randrange(6))]
        message = bytearray(b"".join(word.to_bytes(8, "little") for word in words) + draw.randbytes(draw.randrange(100)))
        begin = draw.randrange(9)
        try:
            places = _native.places(message, begin, max(0, len(message) - draw.randrange(9)))
        except ValueError:
            continue
        taken += 1
        assert all(begin <= at <= end <= len(message) for at, end in places), (message, places)
    assert taken > 50, taken


def threads():
    """Each thread has its tag; a thread that waits lets the others run."""
    wrong = []

    def talk(tag):
        for turn in range(200):
            exchange(np.array([tag, turn]), into := np.empty(2, int), tag)
            if list(into) != [tag, turn]:
                wrong.append((tag, turn, into))

    running = [threading.Thread(target=talk, args=(100 + n,)) for n in range(4)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert not wrong, wrong


def channels():
    for number in (-1, 1 << 27, 1 << 28, (1 << 29) - 1):
        try:
            rg.channel(number)
        except ValueError as error:
            assert "134217727" in str(error)
        else:
            raise AssertionError(f"channel {number}")
    rg.channel((1 << 27) - 1)
    one, two = rg.channel(1), rg.channel(2)
    me = rg.task()
    next_task = world.task_of(after)
    two.send(b"two", next_task)
    one.send(b"one", next_task)
    one.recv(room := bytearray(3))
    assert room == b"one" and two.probe().length == 3
    two.recv(room)
    assert room == b"two" and world.rank_of(me) == rank
    assert two.iprobe() is None


for part in (buffers, odd_arrays, tensors, errors, requests, requests_of_all_kinds, kept_memory, objects, nonsense, threads, channels):
    part()
    world.barrier()
print(f"{rank} of {size}: all is well")
sys.stdout.flush()
