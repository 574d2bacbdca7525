"""A backend of torch.distributed for tensors in CPU memory. It works with torch from PyPI.

    import torch.distributed as dist
    import regatta_mpi.torch

    dist.init_process_group("regatta", init_method="regatta://")

`regatta run -n 4 python program.py` starts four processes. Regatta provides ranks, sizes and addresses. When a rank dies, calls and waits
of operations that depend on it raise RankDied, which names the rank. `shrink()` makes a process group of the survivors.
"""

import asyncio
import queue
import socket
import threading
import traceback

import torch
import torch.distributed as dist
from torch.distributed.rendezvous import register_rendezvous_handler

from . import groups as _groups
from .errors import Error, GroupRevoked, TaskDied, TaskLeft
from .events import hosts, tasks
from .loop import completion

__all__ = ["RankDied", "shrink"]

# The group of the default process group's members. None until the first default process group is made, which has all
# tasks that were started together.
_members = None


class RankDied(TaskDied, dist.DistBackendError):
    """A rank that the operation depends on has died or has left. `rank` is its rank in the process group, `task` its task id."""

    rank = None


def _named(error, group):
    """Converts an error of an operation to RankDied if it concerns a rank. Returns any other error unchanged."""
    try:
        if isinstance(error, (TaskDied, TaskLeft)) and error.task is not None:
            rank = group.rank_of(error.task)
        elif isinstance(error, GroupRevoked):
            # Another member has noticed a death first, and has revoked the group.
            living = {task.id for task in tasks()}
            rank = next(rank for rank in range(group.size) if group.task_of(rank) not in living)
        else:
            return error
    except (Error, StopIteration):
        return error
    how = "has left" if isinstance(error, TaskLeft) else "has died"
    named = RankDied(
        f"rank {rank} of the process group {how}: {error}; the other ranks can continue after regatta_mpi.torch.shrink()", error.code, group.task_of(rank)
    )
    named.rank = rank
    return named


# Reductions by operator number. torch's AVG is a sum followed by a division.
_OPERATORS = {
    dist.ReduceOp.SUM: _groups.SUM,
    dist.ReduceOp.AVG: _groups.SUM,
    dist.ReduceOp.PRODUCT: _groups.PRODUCT,
    dist.ReduceOp.MIN: _groups.MIN,
    dist.ReduceOp.MAX: _groups.MAX,
    dist.ReduceOp.BAND: _groups.BAND,
    dist.ReduceOp.BOR: _groups.BOR,
    dist.ReduceOp.BXOR: _groups.BXOR,
}

# Element types of the C interface (rg_type).
_TYPES = {
    torch.int8: 1,
    torch.int16: 2,
    torch.int32: 3,
    torch.int64: 4,
    torch.uint8: 5,
    torch.uint16: 6,
    torch.uint32: 7,
    torch.uint64: 8,
    torch.float32: 9,
    torch.float64: 10,
}
# Types that are reduced in a wider type, with one rounding at the end.
_WIDER = {torch.float16: torch.float32, torch.bfloat16: torch.float32}
# A sum of booleans is true if any of them is, and a product if all are.
_OF_BOOL = {_groups.SUM: _groups.MAX, _groups.PRODUCT: _groups.MIN}


class _Work(dist.Work):
    """An operation in progress: its request, and the action that processes the result."""

    def __init__(self, owner, request, result, finish=None):
        super().__init__()
        self._owner, self._request, self._result, self._finish = owner, request, result, finish
        self._lock, self._future_lock = threading.Lock(), threading.Lock()
        self._error = self._future = None
        # The error with which to end the operation unless it is over.
        self._failure = None
        self._is_over = self._is_future_complete = False

    def _settle(self, call, blocking=True):
        """Calls `call` with the request, and completes the future if the operation is over. Returns whether it is over."""
        is_over = self._look(call, blocking)
        if is_over:
            self.complete_future()
        return is_over

    def _look(self, call, blocking):
        """Calls `call` with the request. Returns whether the operation is over. Only one thread at a time uses the request: while one waits
        for it, non-blocking calls of other threads return at once."""
        if not self._lock.acquire(blocking=blocking):
            return self._is_over
        try:
            if self._is_over:
                return True
            try:
                if call(self._request) is not False:
                    if self._finish is not None:
                        with torch.no_grad():
                            self._finish()
                    self._is_over, self._finish = True, None
            except Exception as error:
                self._end(error)
        finally:
            self._lock.release()
        if self._failure is not None:
            self.fail(self._failure)
        return self._is_over

    def _end(self, error):
        self._error, self._is_over, self._finish = _named(error, self._owner.group), True, None

    def look(self):
        """Returns whether the operation is over. Does not complete the future."""
        return self._look(lambda request: request.test(), blocking=False)

    def fail(self, error):
        """Ends the operation with an error, unless it is over. Does not block: if another thread uses the request, that thread ends the
        operation."""
        self._failure = error
        if self._lock.acquire(blocking=False):
            try:
                if not self._is_over:
                    self._end(error)
            finally:
                self._lock.release()

    def wait(self, timeout=None):
        """Blocks until the operation is over, and raises its error. Ignores `timeout`, because deaths are detected."""
        self._settle(lambda request: request.wait())
        if self._error is not None:
            raise self._error
        return True

    synchronize = wait

    def is_completed(self):
        return self._settle(lambda request: request.test(), blocking=False)

    def is_success(self):
        return self._is_over and self._error is None

    def exception(self):
        return self._error

    def result(self):
        return self._result

    def source_rank(self):
        return self._request.status.source

    _source_rank = source_rank

    def get_future(self):
        with self._future_lock:
            is_new = self._future is None
            if is_new:
                self._future = torch.futures.Future()
        if is_new and not self.is_completed():
            self._owner.watch(self)
        self.complete_future()
        return self._future

    def complete_future(self):
        """Completes the future if there is one and the operation is over. Several threads may call this; the future is completed once."""
        with self._future_lock:
            if self._future is None or not self._is_over or self._is_future_complete:
                return
            self._is_future_complete = True
        error = self.exception()
        if error is None:
            self._future.set_result(self._result)
        else:
            self._future.set_exception(error)


# Maximum number of threads that run callbacks of futures.
_MAX_CALLBACK_THREADS = 32


class _Watched:
    """An operation for the event loop. The loop does not complete its future, because the program's callbacks would block other operations."""

    def __init__(self, work):
        self.test, self.wait = work.look, lambda: None


class _Callers:
    """Threads that run callbacks. They are started when needed, and end with the process: a callback that never returns does not keep Python
    from exiting, as the threads of a ThreadPoolExecutor do."""

    def __init__(self):
        self._calls = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._count = 0

    def submit(self, call):
        """Lets a thread run `call`. Only one thread may use this method. Raises RuntimeError if Python is shutting down."""
        if not self._idle.acquire(blocking=False) and self._count < _MAX_CALLBACK_THREADS:
            threading.Thread(target=self._run, name="regatta-torch-callbacks", daemon=True).start()
            self._count += 1
        self._calls.put(call)

    def _run(self):
        while True:
            call = self._calls.get()
            try:
                call()
            except Exception:
                traceback.print_exc()
            self._idle.release()


class _Completer(threading.Thread):
    """A thread that completes the futures of a process group as their operations end, in any order. Callbacks run concurrently in other
    threads, as with torch's other backends."""

    def __init__(self):
        super().__init__(name="regatta-torch", daemon=True)
        self._loop = asyncio.new_event_loop()
        self._callers = _Callers()
        self.start()

    def add(self, work):
        asyncio.run_coroutine_threadsafe(self._complete(work), self._loop)

    async def _complete(self, work):
        try:
            await completion(_Watched(work))
        except Exception as error:
            # This is an error of the event loop. An error of the operation itself does not get here.
            work.fail(error)
        try:
            self._callers.submit(work.complete_future)
        except RuntimeError:
            # Python is shutting down and cannot start threads.
            work.complete_future()

    def run(self):
        self._loop.run_forever()


class ProcessGroup(dist.ProcessGroup):
    """A process group whose operations are those of a Regatta group."""

    def __init__(self, group, timeout):
        super().__init__(group.rank, group.size)
        self.group = group
        self._size, self._timeout = group.size, timeout
        self._completer = None
        self._name = self._description = ""

    # Methods that torch requires of a process group.

    def getBackendName(self):
        return "regatta"

    name = _get_backend_name = getBackendName

    supports_splitting = supports_coalescing = False

    def _get_backend(self, device):
        return self

    get_backend = _get_backend

    def setGroupName(self, name):
        self._name = name

    def getGroupName(self):
        return self._name

    def setGroupDesc(self, description):
        self._description = description

    def getGroupDesc(self):
        return self._description

    def _set_group_name(self, name):
        self._name = name

    def _set_group_desc(self, description):
        self._description = description

    group_name = property(lambda self: self._name)
    group_desc = property(lambda self: self._description)

    def set_timeout(self, timeout):
        self._timeout = timeout

    def shutdown(self):
        """Frees the Regatta group, unless it is the world or the default process group's."""
        if self.group is not None and self.group.id != 0 and self.group != _members:
            self.group.free()

    def abort(self):
        """Ends all pending operations, at every member, with GroupRevoked."""
        self.group.revoke()

    def watch(self, work):
        """Completes the future of an operation when the operation is over."""
        if self._completer is None:
            self._completer = _Completer()
        self._completer.add(work)

    # Collectives.

    def _work(self, start, result, finish=None):
        try:
            return _Work(self, start(), result, finish)
        except Exception as error:
            raise _named(error, self.group) from None

    def _reduction(self, tensor, op):
        """Returns the tensor or a contiguous copy, the number of elements, their type, the operator, and the final divisor."""
        number = _OPERATORS.get(getattr(op, "op", op))
        if number is None:
            raise ValueError(f"regatta does not support the reduction {op}; it supports {', '.join(str(it).split('.')[-1] for it in _OPERATORS)}")
        memory = _contiguous(tensor)
        typed = torch.view_as_real(memory) if memory.is_complex() else memory
        if memory.is_complex() and number != _groups.SUM:
            raise TypeError(f"regatta supports only sums and means of complex numbers, not {op}; reduce torch.view_as_real(tensor) in another way")
        if typed.dtype in _WIDER:
            memory = typed = typed.to(_WIDER[typed.dtype])
        elif typed.dtype == torch.bool:
            typed, number = typed.view(torch.uint8), _OF_BOOL.get(number, number)
        kind = _TYPES.get(typed.dtype)
        if kind is None:
            raise TypeError(f"regatta does not reduce tensors of {typed.dtype}; convert with tensor.to(torch.float32)")
        mean = op == dist.ReduceOp.AVG
        return memory, typed, kind, number, mean

    def _give(self, memory, tensor, mean):
        if mean:
            if memory.is_floating_point() or memory.is_complex():
                memory.div_(self._size)
            else:
                memory.div_(self._size, rounding_mode="trunc")
        if memory is not tensor:
            tensor.copy_(memory)

    def allreduce(self, tensors, opts=None):
        op = dist.ReduceOp.SUM if opts is None else opts.reduceOp
        if len(tensors) != 1:
            return self._together(tensors, lambda flat: self.allreduce([flat], opts))
        (tensor,) = tensors
        memory, typed, kind, number, mean = self._reduction(tensor, op)
        return self._work(
            lambda: self.group.iallreduce_at(typed.data_ptr(), typed.numel(), kind, number, typed),
            tensors,
            (lambda: self._give(memory, tensor, mean)) if mean or memory is not tensor else None,
        )

    def _together(self, tensors, call):
        """Runs one operation on the elements of several tensors of one type."""
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        work = call(flat)
        before, work._result = work._finish, tensors

        def finish():
            if before is not None:
                before()
            for tensor, part in zip(tensors, flat.split([tensor.numel() for tensor in tensors])):
                tensor.copy_(part.view_as(tensor))

        work._finish = finish
        return work

    def allreduce_coalesced(self, tensors, opts=None):
        return self.allreduce(tensors, opts)

    def reduce(self, tensors, opts):
        (tensor,) = tensors
        memory, typed, kind, number, mean = self._reduction(tensor, opts.reduceOp)
        is_root = self.rank() == opts.rootRank
        return self._work(
            lambda: self.group.ireduce_at(typed.data_ptr(), typed.numel(), kind, number, opts.rootRank, typed),
            tensors,
            (lambda: self._give(memory, tensor, mean)) if is_root else None,
        )

    def broadcast(self, tensors, opts):
        (tensor,) = tensors
        memory = _contiguous(tensor)
        return self._work(
            lambda: self.group.ibcast_at(memory.data_ptr(), memory.nbytes, opts.rootRank, memory),
            tensors,
            None if memory is tensor else lambda: tensor.copy_(memory),
        )

    def barrier(self, opts=None):
        return self._work(self.group.ibarrier, [])

    def all_gather_single(self, output, input, opts=None):
        given, memory = _contiguous(input), _contiguous(output)
        _check_length(memory, given.nbytes * self._size, "the output", "an input of each rank")
        return self._work(
            lambda: self.group.iallgather_at(given.data_ptr(), given.nbytes, memory.data_ptr(), (given, memory)),
            [output],
            None if memory is output else lambda: output.copy_(memory),
        )

    _allgather_base = all_gather_single

    def allgather(self, outputs, inputs, opts=None):
        (output,), (input,) = outputs, inputs
        flat = input.new_empty((self._size, *input.shape))
        work = self.all_gather_single(flat, input)
        work._result, work._finish = outputs, lambda: _spread(flat, output)
        return work

    def all_gather_single_coalesced(self, outputs, inputs, opts=None):
        return _All(self, [self.all_gather_single(output, input) for output, input in zip(outputs, inputs)], outputs)

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def gather(self, outputs, inputs, opts):
        (input,) = inputs
        given, is_root = _contiguous(input), self.rank() == opts.rootRank
        flat = given.new_empty((self._size, *given.shape)) if is_root else given
        return self._work(
            lambda: self.group.igather_at(given.data_ptr(), given.nbytes, flat.data_ptr(), opts.rootRank, (given, flat)),
            outputs,
            (lambda: _spread(flat, outputs[0])) if is_root else None,
        )

    def scatter(self, outputs, inputs, opts):
        (output,) = outputs
        memory, is_root = _contiguous(output), self.rank() == opts.rootRank
        given = torch.stack([it.reshape(output.shape) for it in inputs[0]]) if is_root else memory
        return self._work(
            lambda: self.group.iscatter_at(given.data_ptr(), memory.nbytes, memory.data_ptr(), opts.rootRank, (given, memory)),
            outputs,
            None if memory is output else lambda: output.copy_(memory),
        )

    def reduce_scatter_single(self, output, input, opts=None):
        op = dist.ReduceOp.SUM if opts is None else opts.reduceOp
        given, typed, kind, number, mean = self._reduction(input, op)
        memory = output if output.is_contiguous() and output.dtype == given.dtype else torch.empty_like(output, dtype=given.dtype).contiguous()
        _check_length(given, memory.nbytes * self._size, "the input", "an output of each rank")
        count = typed.numel() // self._size
        return self._work(
            lambda: self.group.ireduce_scatter_at(typed.data_ptr(), memory.data_ptr(), count, kind, number, (typed, memory)),
            [output],
            (lambda: self._give(memory, output, mean)) if mean or memory is not output else None,
        )

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter(self, outputs, inputs, opts=None):
        (output,) = outputs
        return self.reduce_scatter_single(output, torch.stack([it.reshape(output.shape) for it in inputs[0]]), opts)

    def reduce_scatter_single_coalesced(self, outputs, inputs, opts=None):
        return _All(self, [self.reduce_scatter_single(output, input, opts) for output, input in zip(outputs, inputs)], outputs)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def all_to_all_single(self, output, input, output_splits, input_splits, opts=None):
        given, memory = _contiguous(input), _contiguous(output)
        lengths = [_lengths(tensor, splits, self._size) for tensor, splits in ((given, input_splits), (memory, output_splits))]
        return self._work(
            lambda: self.group.ialltoall_at(given.data_ptr(), lengths[0], memory.data_ptr(), lengths[1], (given, memory)),
            [output],
            None if memory is output else lambda: output.copy_(memory),
        )

    alltoall_base = all_to_all_single

    def alltoall(self, outputs, inputs, opts=None):
        given = torch.cat([tensor.reshape(-1) for tensor in inputs])
        flat = given.new_empty(sum(tensor.numel() for tensor in outputs))
        splits = [[tensor.numel() for tensor in tensors] for tensors in (outputs, inputs)]
        work = self.all_to_all_single(flat, given, *splits)
        work._result, work._finish = outputs, lambda: _spread(flat.split(splits[0]), outputs)
        return work

    # Messages.

    def send(self, tensors, to, tag=0):
        (tensor,) = tensors
        memory = _contiguous(tensor)
        return self._work(lambda: self.group.isend_at(memory.data_ptr(), memory.nbytes, to, tag, memory), tensors)

    def recv(self, tensors, source, tag=0):
        (tensor,) = tensors
        memory = _contiguous(tensor)
        return self._work(
            lambda: self.group.irecv_at(memory.data_ptr(), memory.nbytes, source, tag, memory),
            tensors,
            None if memory is tensor else lambda: tensor.copy_(memory),
        )

    def recv_anysource(self, tensors, tag=0):
        return self.recv(tensors, _groups.ANY, tag)


class _All(_Work):
    """Several operations combined into one."""

    def __init__(self, owner, works, result):
        super().__init__(owner, self, result)
        self._works = works

    def wait(self, timeout=None):
        try:
            for work in self._works:
                work.wait()
        finally:
            self.is_completed()
        if self._error is not None:
            raise self._error
        return True

    synchronize = wait

    def is_completed(self):
        is_over = self.look()
        if is_over:
            self.complete_future()
        return is_over

    def look(self):
        self._is_over = self._error is not None or all([work.look() for work in self._works])
        return self._is_over

    def is_success(self):
        return self._error is None and all(work.is_success() for work in self._works)

    def exception(self):
        return next((work.exception() for work in self._works if work.exception() is not None), self._error)


def _contiguous(tensor):
    if tensor.device.type != "cpu":
        raise ValueError(f"the backend regatta needs tensors in CPU memory, but this one is on {tensor.device}; use tensor.cpu()")
    if tensor.layout != torch.strided:
        raise ValueError(f"the backend regatta needs dense tensors, but this one is {tensor.layout}; use tensor.to_dense()")
    # A negated or conjugated view has other bytes in memory than its values.
    tensor = tensor.resolve_conj().resolve_neg()
    return tensor if tensor.is_contiguous() else tensor.contiguous()


def _spread(parts, tensors):
    for part, tensor in zip(parts, tensors):
        tensor.copy_(part.view_as(tensor))


def _check_length(tensor, wanted, what, of_what):
    if tensor.nbytes != wanted:
        raise ValueError(f"{what} has {tensor.nbytes} bytes, but must have {wanted}, the total size of {of_what}")


def _lengths(tensor, splits, size):
    """Returns the sizes in bytes of the parts of a tensor that is split along its first dimension."""
    if not splits:
        if tensor.nbytes % size:
            raise ValueError(f"{tensor.nbytes} bytes cannot be divided evenly among {size} ranks; pass the sizes of the parts")
        return [tensor.nbytes // size] * size
    row = tensor.nbytes // tensor.shape[0] if tensor.shape[0] else 0
    if sum(splits) != tensor.shape[0]:
        raise ValueError(f"the parts have {sum(splits)} rows in total, but the tensor has {tensor.shape[0]}")
    return [rows * row for rows in splits]


def _world():
    """Returns the group of the next default process group's members."""
    global _members
    if _members is None:
        _members = _groups.world
    return _members


def _create(options, _):
    """Creates a process group for torch."""
    ranks = options.global_ranks_in_group
    members = _world()
    if members.size < options.group_size or members.size <= max(ranks, default=0):
        raise ValueError(
            f"the process group has {options.group_size} ranks, but the job has {members.size} tasks; "
            "start the same number with `regatta run -n`, and let init_method='regatta://' set rank and world_size"
        )
    whole = not ranks or list(ranks) == list(range(members.size))
    if not whole:
        return ProcessGroup(members.select(ranks), options.timeout)
    # The first process group is the default one. Another one of all members needs a group with separate messages.
    is_first = not dist.is_initialized()
    return ProcessGroup(members if is_first else members.dup(), options.timeout)


def _rendezvous(url, timeout=None, **_):
    """Sets up torch's rendezvous: rank 0 runs the store, and broadcasts its address with Regatta."""
    members = _world()
    if members.rank == 0:
        host = "127.0.0.1" if len(hosts()) == 1 else socket.getfqdn()
        store = dist.TCPStore(host, 0, members.size, True, wait_for_workers=False)
        members.bcast_object((host, store.port))
    else:
        store = dist.TCPStore(*members.bcast_object(), members.size, False, wait_for_workers=False)
    yield store, members.rank, members.size


def shrink():
    """Makes a new default process group of the living ranks, and returns it. All living ranks call it. Blocks.

    Ranks are renumbered in order. All other process groups are destroyed: make them again with `dist.new_group`.
    """
    global _members
    members = _world()
    members.revoke()
    # The old group no longer belongs to the members, so shutting it down frees it.
    _members = members.shrink()
    if dist.is_initialized():
        dist.destroy_process_group()
    dist.init_process_group("regatta", init_method="regatta://")
    return dist.group.WORLD


dist.Backend.register_backend("regatta", _create, extended_api=True, devices=["cpu"])
register_rendezvous_handler("regatta", _rendezvous)
