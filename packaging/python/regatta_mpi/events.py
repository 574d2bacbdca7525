"""Spawned tasks, hosts, and events that concern them."""

import itertools
import os
import struct
import typing

from . import _native
from .errors import SpawnError
from .groups import Group, init

# Watches have a channel of their own, with one tag per watch.
_WATCHES = 0x40000000 + (1 << 29) - 1
_tags = itertools.count()

_EVENT = struct.Struct("<Iiiiiiii64s")
_MARK = int.from_bytes(b"RGev", "little")
_KINDS = {1: "task-exit", 2: "host-lost", 3: "host-added", 4: "task-started"}
_HOW = {0: None, 1: "exit", 2: "signal", 3: "host", 4: "unknown"}


class Task(typing.NamedTuple):
    """A task of the job."""

    id: int
    parent: typing.Optional[int]
    """Id of the task that has started it, or None for the launcher."""
    host: int
    pid: int
    program: str


class Host(typing.NamedTuple):
    """A host of the job."""

    number: int
    name: str
    cores: int
    tasks: int
    """Number of tasks that run on the host."""
    alive: bool
    architecture: str


class Event(typing.NamedTuple):
    """An event that a watch reports."""

    kind: str
    """task-exit, task-started, host-lost or host-added."""
    task: typing.Optional[int]
    host: int
    """Number of the host."""
    how: typing.Optional[str]
    """How a task ended: exit, signal, host (it was lost with its host), or unknown (no task ever had this id). None for other events."""
    value: int
    """The exit status or the signal. For a started task: the id of the task that has started it."""
    name: str
    """Name of the host, or of the started program."""


def is_event(message):
    """Returns whether the bytes of a message are an event."""
    return len(message) == _EVENT.size and int.from_bytes(message[:4], "little") == _MARK


def read_event(message):
    """Returns the event in the bytes of a message."""
    _, kind, task, host, how, value, _, _, name = _EVENT.unpack(message)
    name = name.partition(b"\0")[0].decode(errors="replace")
    return Event(_KINDS.get(kind, str(kind)), task if task >= 0 else None, host, _HOW.get(how, str(how)), value, name)


class Watch:
    """A sequence of events. `wait` and `for` block until the next one; `await` and `async for` wait in an event loop."""

    def __init__(self, kind, what):
        init()
        self._group = Group(_WATCHES)
        self._tag = next(_tags)
        self._id = _native.notify(kind, what, self._tag, self._group)
        self._message = bytearray(_EVENT.size)
        self._request = None

    def _begin(self):
        if self._request is None:
            self._request = self._group.irecv(self._message, _native.task(), self._tag)
        return self._request

    def _end(self):
        self._request = None
        return read_event(bytes(self._message))

    def wait(self):
        """Blocks until the next event, and returns it."""
        self._begin().wait()
        return self._end()

    def poll(self):
        """Returns the next event if one has arrived, otherwise None."""
        return self._end() if self._begin().test() else None

    async def _next(self):
        await self._begin()
        return self._end()

    def __await__(self):
        return self._next().__await__()

    def __aiter__(self):
        return self

    async def __anext__(self):
        return await self._next()

    def __iter__(self):
        return self

    def __next__(self):
        return self.wait()

    def cancel(self):
        """Ends the watch."""
        _native.notify_cancel(self._id)
        self._request = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.cancel()
        except Exception:
            # It has already reported its only event.
            pass


def watch_task(task):
    """Watches for the end of a task. There is one event, at once if the task has already ended. The death of a watched task does not count as a
    failure of the job."""
    return Watch(1, task)


def watch_tasks():
    """Watches all tasks of the job. There is one event for each task that starts, and one for each that ends."""
    return Watch(4, 0)


def watch_hosts():
    """Watches for hosts that join the virtual machine in which the job runs. There is one event for each."""
    return Watch(3, 0)


def notify(kind, what, tag, group):
    """Watches for events, and returns the number of the watch. Events are messages of this task to itself, with this tag in this group, so that
    one receive waits for messages and events.

    `kind` is 1 (the end of the task `what`), 2 (the loss of the host `what`), 3 (hosts that are added) or 4 (starts and ends of all tasks).
    `is_event` and `read_event` of this module decode the messages.
    """
    return _native.notify(kind, what, tag, group)


def spawn(program, args=(), count=1, *, host=None, directory=None, environment=None):
    """Starts `count` tasks of a program, and returns their ids. Blocks until they are started.

    The tasks form a world of their own. When the call returns, messages can be sent to them in `job` or a channel. `host` is the name of a
    host, "." for this one, or None for hosts with free capacity. `environment` is a mapping of additional variables. Raises SpawnError if
    some tasks could not be started; the others run.
    """
    init()
    variables = [f"{name}={value}" for name, value in (environment or {}).items()]
    ids, error = _native.spawn(os.fspath(program), [os.fspath(arg) for arg in args], count, host, directory, variables)
    if error is not None:
        failed = SpawnError(str(error), error.code)
        failed.tasks = [task for task in ids if task >= 0]
        raise failed from error
    return ids


def signal(task, number):
    """Sends a signal to a task."""
    _native.signal(task, number)


def kill(task):
    """Kills a task with SIGKILL. Its death does not count as a failure of the job."""
    _native.kill(task)


def abort(code=1):
    """Ends the job and all its tasks, including this one. `regatta run` exits with this status. Does not return."""
    init()
    _native.abort(code)


def task():
    """Returns the id of this task."""
    init()
    return _native.task()


def parent():
    """Returns the id of the task that has started this one, or None if the launcher has."""
    init()
    return _native.parent()


def tasks():
    """Returns the running tasks, ordered by id."""
    init()
    return [Task(*entry) for entry in _native.tasks()]


def hosts():
    """Returns the hosts of the job."""
    init()
    return [Host(*entry) for entry in _native.hosts()]


def time():
    """Returns the seconds since a moment in the past that is the same for all tasks of a host."""
    return _native.time()
