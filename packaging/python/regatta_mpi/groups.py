"""Groups of tasks, with their messages and collectives."""

import atexit
import sys

from . import _native
from ._native import Request, Status

ANY = -1
NONE = -2
SUM, PRODUCT, MAX, MIN, AND, OR, XOR, BAND, BOR, BXOR = range(1, 11)

# Minimum size of an array's memory to be sent without a copy, in bytes. Smaller pieces are cheaper inside the pickle.
_OUT_OF_BAND = 4096


def init():
    """Joins the job in which `regatta run` has started this process, or becomes a world of one task. Further calls do nothing.

    The process leaves the job when the program ends. If it ends by an exception, it does not leave: to the other tasks it has then died.
    """
    if _native.init():
        atexit.register(_leave)


def finalize():
    """Leaves the job now. Messages that were already sent can still be received."""
    _native.finalize()


def _leave():
    failed = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    # If an MPI library is loaded, its MPI_Finalize leaves the job.
    if _native.initialized() and not failed and "mpi4py.MPI" not in sys.modules:
        try:
            _native.finalize()
        except Exception as error:
            print(f"regatta_mpi: {error}", file=sys.stderr)


def pack(obj):
    """Returns the pickle of an object, and the memory of its arrays."""
    # Imported here because many programs send only arrays, and importing pickle takes as long as the rest.
    import pickle

    pieces = []

    def keep(buffer):
        try:
            raw = buffer.raw()
        except BufferError:
            return True
        if raw.nbytes < _OUT_OF_BAND:
            return True
        pieces.append(raw)
        return False

    return pickle.dumps(obj, 5, buffer_callback=keep), pieces


def unpack(message, begin=0, end=None):
    """Returns the object in the message at `message[begin:end]`. Its arrays use the memory of `message`, and are writable."""
    import pickle

    places = _native.places(message, begin, len(message) if end is None else end)
    whole = memoryview(message)
    pickled, *pieces = [whole[begin:end] for begin, end in places]
    return pickle.loads(pickled, buffers=pieces)


class Group(_native.Group):
    """An ordered set of tasks that can send each other messages. Each task has a rank: 0, 1, and so on."""

    __slots__ = ("__weakref__",)

    def __repr__(self):
        return f"<regatta_mpi.Group {self.id:#x}>"

    def __eq__(self, other):
        return isinstance(other, _native.Group) and self.id == other.id

    def __hash__(self):
        return hash(self.id)

    def send_object(self, obj, to, tag=0):
        """Sends any object that can be pickled. Blocks like `send`. Large arrays in the object are sent without a copy."""
        self.send_parts(*pack(obj), to, tag)

    def isend_object(self, obj, to, tag=0):
        """Starts to send an object, and returns a Request. Does not block. Arrays in the object must not be changed until the request is complete."""
        return self.isend_parts(*pack(obj), to, tag)

    def recv_object(self, source=ANY, tag=ANY, *, status=False):
        """Blocks until an object arrives, and returns it. With `status`, returns a tuple of the object and the message's Status."""
        message, told = self.recv_parts(source, tag)
        obj = unpack(message)
        return (obj, told) if status else obj

    def irecv_object(self, source=ANY, tag=ANY):
        """Starts to receive an object, and returns an ObjectRequest. Does not block."""
        return ObjectRequest(self, source, tag)

    def bcast_object(self, obj=None, root=0):
        """Returns the root's object to all members. Blocks."""
        is_root = self.rank == root
        length = bytearray(8)
        if is_root:
            message = _native.joined(*pack(obj))
            length[:] = len(message).to_bytes(8, "little")
        self.bcast(length, root)
        if not is_root:
            message = bytearray(int.from_bytes(length, "little"))
        self.bcast(message, root)
        return obj if is_root else unpack(message)

    def gather_object(self, obj, root=0):
        """Returns the list of all members' objects, by rank, at the root, and None at the other members. Blocks."""
        gathered = self.gather_parts(_native.joined(*pack(obj)), root)
        if gathered is None:
            return None
        message, places = gathered
        return [unpack(message, begin, end) for begin, end in places]

    def allgather_object(self, obj):
        """Returns the list of all members' objects, by rank. Blocks."""
        return self.bcast_object(self.gather_object(obj))

    def scatter(self, input=None, root=0, out=None):
        """Returns the root's `input[rank]` to each rank. Blocks.

        `out` is an array for the result. Without it, returns a new array. Either all members pass `out`, or none.
        """
        if out is None:
            import numpy

            if self.rank == root:
                input = numpy.asarray(input, order="C")
                if input.ndim == 0 or input.shape[0] != self.size:
                    raise ValueError(
                        f"the first axis of the array must have the length {self.size}, the number of members, but its shape is {input.shape}"
                    )
            shape, dtype = self.bcast_object((input.shape[1:], input.dtype) if self.rank == root else None, root)
            out = numpy.empty(shape, dtype)
        return self.scatter_into(input, out, root)

    def dup(self):
        """Makes a group with the same members and separate messages. All members call it. Blocks."""
        return Group(_native.dup(self))

    def select(self, ranks):
        """Makes a group of the members with these ranks, in this order. Only these members call it. Blocks."""
        return Group(_native.select(self, list(ranks)))

    def split(self, colour, key=0):
        """Makes a group of the members that pass the same colour, ordered by key and rank. A member that passes None joins no group and gets
        None. All members call it. Blocks."""
        made = _native.split(self, colour, key)
        return None if made < 0 else Group(made)

    def shrink(self):
        """Makes a group of the living members. All living members call it. Blocks."""
        return Group(_native.shrink(self))


class ObjectRequest:
    """A receive of an object. `wait`, `test` and `await` work as for a Request, and return the object."""

    __slots__ = ("_group", "_source", "_tag", "_result", "status", "__weakref__")

    def __init__(self, group, source, tag):
        self._group, self._source, self._tag = group, source, tag
        self.status = None

    def test(self):
        """Returns whether the object has arrived. Does not block unless a large object is just arriving."""
        if self.status is None:
            found = self._group.irecv_parts(self._source, self._tag)
            if found is None:
                return False
            self._take(found)
        return True

    def wait(self):
        """Blocks until the object has arrived, and returns it."""
        if self.status is None:
            self._take(self._group.recv_parts(self._source, self._tag))
        return self._result

    def _take(self, found):
        message, status = found
        self._result = unpack(message)
        self.status = status

    def __await__(self):
        from .loop import completion

        return completion(self).__await__()


def wait_any(requests):
    """Blocks until one of the requests is complete, and returns its index. Returns None if all have already been returned or waited for.

    For a request that is in the list twice, returns its first index.
    """
    requests = list(requests)
    for request in requests:
        if isinstance(request, ObjectRequest):
            raise TypeError(
                "wait_any does not support requests of irecv_object, whose message has no memory yet; "
                "await several in asyncio, for example with asyncio.wait, or call test on each in a loop"
            )
    once = list(dict.fromkeys(requests))
    at = _native.wait_any(once)
    return at if at is None or len(once) == len(requests) else requests.index(once[at])


def wait_all(requests):
    """Blocks until all requests are complete. Returns the results of their `wait`, in order."""
    return [request.wait() for request in requests]


def channel(number):
    """Returns a channel: a group of all tasks of the job, like `job`, with messages separate from those of other channels.

    The number is 0 to 134217727. A task's rank in the group is its id.
    """
    if not 0 <= number < 1 << 27:
        raise ValueError(f"a channel must be a number from 0 to 134217727, not {number}; Regatta uses larger numbers itself")
    return any_channel(number)


def any_channel(number):
    """Returns a channel. Unlike `channel`, allows the numbers of Regatta's own channels."""
    init()
    return Group(0x40000000 + number)


def __getattr__(name):
    if name == "world":
        init()
        return Group(0)
    if name == "job":
        return channel(0)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
