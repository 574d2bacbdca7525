"""Exceptions. The text of each says what has happened, and names the task that it concerns, if any."""

__all__ = [
    "Cancelled",
    "Deadlock",
    "Error",
    "GroupRevoked",
    "LauncherError",
    "NoSuchName",
    "SpawnError",
    "TaskDied",
    "TaskLeft",
    "Truncated",
    "WorkerDied",
]


class Error(Exception):
    """A call of Regatta failed. The text says what happened, what it means, and what to do.

    `code` is the error code of the C interface. `task` is the id of the task that the error concerns, or None.
    """

    def __init__(self, sentence, code=0, task=None):
        super().__init__(sentence)
        self.code = code
        self.task = task

    def __reduce__(self):
        return type(self), (self.args[0], self.code, self.task)


class TaskDied(Error):
    """A task that the call depends on has died: it was killed, exited without leaving, or was lost with its host. `task` is its id."""


class TaskLeft(Error):
    """A task that the call depends on has left the job by finalize. `task` is its id."""


class GroupRevoked(Error):
    """A member has revoked the group. Only shrink and agree still work in it."""


class Truncated(Error):
    """The message was longer than the buffer, which holds its first bytes. The rest is lost."""


class Deadlock(Error):
    """Blocked senders wait for each other in a cycle, and all their buffers are full."""


class Cancelled(Error):
    """The operation was cancelled."""


class LauncherError(Error):
    """The job's launcher cannot be reached, or has been killed."""


class NoSuchName(Error, KeyError):
    """Nothing is registered under this name."""

    __str__ = Exception.__str__


class SpawnError(Error):
    """Some tasks could not be started. `tasks` has the ids of those that were."""

    tasks = ()


class WorkerDied(Error):
    """A worker of an Executor died while it ran this call. `task` is its task id, and `host` the number of its host. `how` and `value` say how it
    ended, as in Event."""

    host = how = value = None


class ArgumentError(Error, ValueError):
    """An argument is invalid."""


class MemoryLimit(Error, MemoryError):
    """Memory, or a limit on it, is exhausted."""


class SystemRefused(Error, OSError):
    """The operating system refused a request."""

    __str__ = Exception.__str__


class NothingCame(Error, TimeoutError):
    """No message arrived in the given time."""

    __str__ = Exception.__str__


_OF_CODE = {
    -1: ArgumentError,
    -3: ArgumentError,
    -4: ArgumentError,
    -5: ArgumentError,
    -6: Truncated,
    -7: TaskDied,
    -8: TaskLeft,
    -9: MemoryLimit,
    -10: Deadlock,
    -12: Cancelled,
    -14: LauncherError,
    -16: SystemRefused,
    -20: NoSuchName,
    -23: NothingCame,
    -24: GroupRevoked,
}


def of_code(code, sentence, task):
    """Returns the exception for an error code of the C interface."""
    return _OF_CODE.get(code, Error)(sentence, code, task)
