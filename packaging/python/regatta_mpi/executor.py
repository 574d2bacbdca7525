"""An executor whose workers are tasks on all hosts of the job. It survives the death of workers.

How it works: the executor is a thread of this task, which receives results and events in a channel of its own. A worker is a task started
by `spawn`. It runs calls one after the other and sends each result at once. It gets about `_AHEAD` seconds of calls in advance, so that it
does not wait for the next one. When other workers are idle, the executor takes back calls that the worker has not begun. When a worker ends,
the call that it ran is retried or fails with WorkerDied, the calls that it had not begun are given to other workers, and another worker is
started. Only the first result of a call counts: it removes the call from the table.
"""

import atexit
import collections
import concurrent.futures
import itertools
import os
import pickle
import sys
import threading
import warnings
import weakref

from . import _native
from .errors import Error, WorkerDied
from .groups import any_channel, init, pack, unpack
from .events import hosts, is_event, read_event

# The first channel of executors, and the number of channels per task. The last channel of all is not used here, because
# watches use it.
_CHANNELS = 1 << 28
_CHANNELS_OF_TASK = 4096
_numbers = itertools.count()
# Tags in these channels, one per direction. A worker may have executors itself, so that both an executor and a worker may
# receive in one process. Events use the tag of messages to the executor.
TO_WORKER, TO_EXECUTOR = 1, 2

# Maximum work that a worker gets in advance, in seconds and in calls.
_AHEAD = 0.02
_MOST_AHEAD = 256
# Number of consecutive failed starts after which the executor gives up or, if some workers take calls, warns.
_FAILED_STARTS = 3
# Backoff before workers are started again, in seconds: after the first failure, and the maximum. Each failure doubles it.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 30.0

_START = "import sys; sys.path.append(sys.argv[1]); from regatta_mpi.worker import main; main(int(sys.argv[2]))"

_all = weakref.WeakSet()


class _Call:
    __slots__ = ("number", "future", "pickled", "tries", "begun")

    def __init__(self, number, future, pickled):
        self.number, self.future, self.pickled = number, future, pickled
        self.tries = 0
        self.begun = False


class _Worker:
    __slots__ = ("task", "start", "held", "sends", "mean", "ready", "asked_back", "leaving")

    def __init__(self, task, start):
        # Number of the start, which may include several workers.
        self.task, self.start = task, start
        # Calls by number, in the order in which the worker runs them.
        self.held = {}
        self.sends = []
        self.mean = None
        self.ready = self.asked_back = self.leaving = False

    def ahead(self):
        """Returns the number of calls that the worker should hold."""
        if self.mean is None:
            return 2
        return 1 + min(_MOST_AHEAD, int(_AHEAD / max(self.mean, 1e-6)))


class Executor(concurrent.futures.Executor):
    """A concurrent.futures.Executor over tasks on all hosts of the job.

    max_workers: number of workers. None uses one worker per core of all hosts, and adapts when hosts are added or lost.
    retries: number of times that a call is repeated if its worker dies. After that the call fails with WorkerDied, which names the worker.
    initializer, initargs: a function that each worker calls before its first call, and its arguments.
    host: the host on which all workers run. None uses any hosts with free capacity.

    A call may run more than once if its worker dies, but its result is reported once. Functions and arguments are pickled. As with
    multiprocessing, a program that creates an executor must protect its main part by `if __name__ == "__main__"`. Arrays among the
    arguments are sent without a copy: do not change them until the call is done.
    """

    def __init__(self, max_workers=None, *, retries=2, initializer=None, initargs=(), host=None):
        if max_workers is not None and max_workers < 1:
            raise ValueError(f"an executor needs at least one worker, not {max_workers}")
        init()
        self._me = _native.task()
        mine = self._me * _CHANNELS_OF_TASK % _CHANNELS
        self._number = _CHANNELS + mine + next(_numbers) % (_CHANNELS_OF_TASK - 1)
        self._channel = any_channel(self._number)
        self._elastic = max_workers is None
        self._wanted = _cores() if self._elastic else max_workers
        self._retries, self._host = retries, host
        pickled, pieces = pack((initializer, initargs))
        self._setup = pack(("setup", _main(), pickled, [pickle.PickleBuffer(piece) for piece in pieces]))
        self._lock = threading.RLock()
        self._pending = collections.deque()
        self._calls = {}
        self._workers = {}
        # Workers that are ready and hold no call.
        self._idle = set()
        self._call_numbers = itertools.count()
        self._starts = self._failed_start = self._failed_starts = 0
        # Workers that have ended and have not been replaced yet.
        self._lost = 0
        self._timer = None
        self._broken = None
        self._closing = False
        self._restarts = 0
        """Number of workers that have been started to replace others."""
        if self._elastic:
            _native.notify(3, 0, TO_EXECUTOR, self._channel)
        error = self._start(self._wanted)
        if error is not None:
            if not self._workers:
                raise error
            self._start_failed(self._starts, str(error))
        self._thread = threading.Thread(target=self._run, name="regatta-executor", daemon=True)
        self._thread.start()
        if not _all:
            atexit.unregister(_shut_down_all)
            atexit.register(_shut_down_all)
        _all.add(self)

    def submit(self, fn, /, *args, **kwargs):
        """Schedules fn(*args, **kwargs) to run in a worker, and returns the future of the result. Does not block."""
        future = concurrent.futures.Future()
        call = _Call(next(self._call_numbers), future, pack((fn, args, kwargs)))
        with self._lock:
            if self._broken is not None:
                raise concurrent.futures.BrokenExecutor(self._broken)
            if self._closing:
                raise RuntimeError("cannot submit calls to an executor that is shut down")
            self._calls[call.number] = call
            self._pending.append(call)
            if self._idle:
                self._refill(next(iter(self._idle)))
        return future

    def resize(self, max_workers):
        """Changes the number of workers. Starts more, or ends some after their current calls. Does not block until they have ended."""
        if max_workers < 1:
            raise ValueError(f"an executor needs at least one worker, not {max_workers}")
        with self._lock:
            self._wanted, self._elastic = max_workers, False
            self._fill()
            if self._broken is not None:
                self._tell_thread("look")

    @property
    def workers(self):
        """The task ids of the current workers."""
        with self._lock:
            return sorted(self._workers)

    @property
    def restarts(self):
        """Number of workers started in place of others that ended."""
        with self._lock:
            return self._restarts

    def shutdown(self, wait=True, *, cancel_futures=False):
        """Rejects further calls. With `wait`, blocks until all calls are done and the workers have ended.

        With `cancel_futures`, calls that were not given to a worker are cancelled. All other calls are completed.
        """
        with self._lock:
            self._closing = True
            if cancel_futures:
                kept = collections.deque()
                for call in self._pending:
                    # A call that was begun may be pending again: it was taken back, or its worker has died.
                    if call.begun or not call.future.cancel():
                        kept.append(call)
                    else:
                        self._calls.pop(call.number, None)
                        # Notifies callers of concurrent.futures.wait.
                        call.future.set_running_or_notify_cancel()
                self._pending = kept
        if self._thread.is_alive():
            self._tell_thread("look")
            if wait:
                self._thread.join()

    def _tell_thread(self, what):
        self._channel.send_parts(*pack((what,)), self._me, TO_EXECUTOR)

    # The following methods run with the lock held.

    def _tell(self, worker, packed):
        worker.sends = [request for request in worker.sends if not _is_over(request)]
        try:
            worker.sends.append(self._channel.isend_parts(*packed, worker.task, TO_WORKER))
        except Error:
            # The worker has ended, and the event that reports its end will arrive.
            pass

    def _start(self, count):
        """Starts workers. Returns the error if some could not be started, otherwise None."""
        arguments = ["-c", _START, os.path.dirname(os.path.dirname(os.path.abspath(__file__))), str(self._number)]
        self._starts += 1
        try:
            started, error = _native.spawn(sys.executable, arguments, count, self._host, None, [])
        except Error as refused:
            return refused
        for task in started:
            if task >= 0:
                worker = self._workers[task] = _Worker(task, self._starts)
                self._tell(worker, self._setup)
                _native.notify(1, task, TO_EXECUTOR, self._channel)
        return error

    def _start_failed(self, start, why):
        """Handles a start in which workers could not be started, or ended before they took a call. Starts them again after a pause."""
        is_first = start > self._failed_start
        if is_first:
            self._failed_start = start
            self._failed_starts += 1
        if self._failed_starts >= _FAILED_STARTS:
            if all(worker.leaving for worker in self._workers.values()):
                self._break(f"{_FAILED_STARTS} starts of workers in a row have failed: {why}")
                return
            ready = sum(worker.ready and not worker.leaving for worker in self._workers.values())
            if is_first and ready and self._failed_starts == _FAILED_STARTS:
                warnings.warn(
                    f"{_FAILED_STARTS} starts of workers in a row have failed: {why}; "
                    f"the executor continues with {ready} of {self._wanted} workers, and tries again at increasing intervals",
                    RuntimeWarning,
                )
        if self._timer is None:
            pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(self._failed_starts - 1, 16))
            self._timer = threading.Timer(pause, self._pause_is_over)
            self._timer.daemon = True
            self._timer.start()

    def _pause_is_over(self):
        try:
            self._tell_thread("fill")
        except Error:
            # This task has left the job.
            pass

    def _fill(self):
        """Starts or ends workers until there are as many as wanted."""
        staying = [worker for worker in self._workers.values() if not worker.leaving]
        for worker in staying[self._wanted :]:
            worker.leaving = True
            self._idle.discard(worker)
            self._ask_back(worker)
            self._tell(worker, pack(("stop",)))
        missing = self._wanted - len(staying)
        self._lost = max(0, min(self._lost, missing))
        if missing > 0 and self._broken is None and (self._calls or not self._closing):
            before = len(self._workers)
            error = self._start(missing)
            replaced = min(self._lost, len(self._workers) - before)
            self._lost -= replaced
            self._restarts += replaced
            if error is not None:
                self._start_failed(self._starts, str(error))

    def _ask_back(self, worker):
        if not worker.asked_back and len(worker.held) > 1:
            worker.asked_back = True
            self._tell(worker, pack(("back",)))

    def _dispatch(self):
        """Gives pending calls to workers that hold too few, first to those with the fewest. If no call is pending and a
        worker is idle, takes calls back from the worker that holds most."""
        if self._pending:
            for worker in sorted(self._workers.values(), key=lambda worker: len(worker.held)):
                self._refill(worker)
        if self._idle and not self._pending:
            self._ask_back(max(self._workers.values(), key=lambda worker: len(worker.held)))

    def _refill(self, worker):
        if not worker.ready or worker.leaving:
            return
        ahead = min(worker.ahead(), 1 + len(self._pending) // (2 * len(self._workers)))
        # A worker that holds more than half of its share gets no calls yet.
        if 2 * len(worker.held) <= ahead:
            self._give(worker, ahead - len(worker.held))

    def _give(self, worker, room):
        batch = []
        while self._pending and len(batch) < room:
            call = self._pending.popleft()
            if call.number not in self._calls:
                continue
            if not call.begun:
                if not call.future.set_running_or_notify_cancel():
                    self._calls.pop(call.number, None)
                    continue
                call.begun = True
            worker.held[call.number] = call
            pickled, pieces = call.pickled
            batch.append((call.number, pickled, [pickle.PickleBuffer(piece) for piece in pieces]))
        if batch:
            self._idle.discard(worker)
            self._tell(worker, pack(("calls", batch)))

    def _rest(self, worker):
        """Marks a worker as idle, and gives it calls that other workers have not begun."""
        if not worker.leaving:
            self._idle.add(worker)
            self._dispatch()

    def _done(self, worker, number):
        """Removes and returns the call that is done, or None if it was done before."""
        if worker is not None:
            worker.held.pop(number, None)
        return self._calls.pop(number, None)

    def _ended(self, event):
        worker = self._workers.pop(event.task, None)
        if worker is None:
            return
        self._idle.discard(worker)
        held = [call for call in worker.held.values() if call.number in self._calls]
        if held:
            # The worker runs calls in this order and reports each result, so the first one was running.
            running = held[0]
            running.tries += 1
            if running.tries > self._retries:
                held.pop(0)
                self._calls.pop(running.number)
                running.future.set_exception(_died(event, running.tries))
        self._pending.extendleft(reversed(held))
        if self._elastic and event.how == "host":
            self._wanted = max(1, _cores())
        if not worker.leaving:
            self._lost += 1
        if worker.ready or worker.leaving:
            self._fill()
        elif self._broken is None:
            self._start_failed(
                worker.start, f"worker {event.task} on host {event.host} {_end(event)} before it took a call; see its output for the cause"
            )
        self._dispatch()

    def _break(self, why):
        self._broken = why
        calls, self._calls = self._calls, {}
        self._pending.clear()
        for call in calls.values():
            if call.begun or call.future.set_running_or_notify_cancel():
                call.future.set_exception(concurrent.futures.BrokenExecutor(why))
        for worker in self._workers.values():
            self._tell(worker, pack(("stop",)))

    # The thread's methods.

    def _run(self):
        try:
            while not self._is_over():
                message, status = self._channel.recv_parts(-1, TO_EXECUTOR)
                if status.source == self._me and is_event(message):
                    with self._lock:
                        self._hear(read_event(message))
                else:
                    self._take(unpack(message), status.source)
        except BaseException as error:
            with self._lock:
                self._break(f"the executor's thread failed: {error!r}")
            raise
        finally:
            if self._timer is not None:
                self._timer.cancel()

    def _is_over(self):
        with self._lock:
            over = self._closing and not self._calls or self._broken is not None
            if over:
                for worker in self._workers.values():
                    if not worker.leaving:
                        worker.leaving = True
                        self._tell(worker, pack(("stop",)))
            return over and not self._workers

    def _hear(self, event):
        if event.kind == "task-exit":
            self._ended(event)
        elif event.kind == "host-added" and self._elastic:
            self._wanted = _cores()
            self._fill()

    def _take(self, message, source):
        kind, *rest = message
        if kind == "done":
            number, fine, seconds, pickled, pieces = rest
            with self._lock:
                worker = self._workers.get(source)
                call = self._done(worker, number)
                if worker is not None:
                    worker.mean = seconds if worker.mean is None else 0.8 * worker.mean + 0.2 * seconds
                    if self._pending:
                        self._refill(worker)
                    if not worker.held:
                        self._rest(worker)
            if call is not None:
                _settle(call.future, fine, pickled, pieces)
        elif kind == "ready":
            with self._lock:
                self._failed_starts = 0
                worker = self._workers.get(source)
                if worker is not None:
                    worker.ready = True
                    self._refill(worker)
                    if not worker.held:
                        self._rest(worker)
        elif kind == "back":
            with self._lock:
                worker = self._workers.get(source)
                if worker is not None:
                    worker.asked_back = False
                    calls = [worker.held.pop(number, None) for number in rest[0]]
                    self._pending.extendleft(reversed([call for call in calls if call and call.number in self._calls]))
                    if not worker.held and not worker.leaving:
                        self._idle.add(worker)
                    self._dispatch()
        elif kind == "fill":
            with self._lock:
                self._timer = None
                self._fill()
        elif kind == "failed":
            with self._lock:
                self._break(f"the initializer failed in a worker:\n{rest[0]}")


def _is_over(request):
    """Returns whether a send is over. A failed send to a dead worker is over, too: the end of the worker is reported separately."""
    try:
        return request.test()
    except Error:
        return True


def _settle(future, fine, pickled, pieces):
    try:
        result = pickle.loads(pickled, buffers=pieces)
    except BaseException as error:
        fine, result = False, error
    if fine:
        future.set_result(result)
    else:
        future.set_exception(result)


def _end(event):
    ends = {"exit": f"exited with status {event.value}", "signal": f"was killed by signal {event.value}"}
    return ends.get(event.how, "was lost with its host")


def _died(event, tries):
    error = WorkerDied(
        f"worker {event.task} on host {event.host} {_end(event)} while it ran this call, which has been tried {tries} times; "
        "the executor continues with other workers",
        task=event.task,
    )
    error.host, error.how, error.value = event.host, event.how, event.value
    return error


def _cores():
    return sum(host.cores for host in hosts() if host.alive) or 1


def _main():
    """Returns the data with which a worker finds the main program's functions, in the format of multiprocessing."""
    from multiprocessing import spawn

    data = spawn.get_preparation_data("worker")
    for name in ("authkey", "name", "start_method", "log_to_stderr", "log_level"):
        data.pop(name, None)
    return data


def _shut_down_all():
    for executor in list(_all):
        executor.shutdown()
