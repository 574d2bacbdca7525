"""A worker of an executor: runs functions one after the other, and sends their results.

A separate thread receives messages, so that the executor can take back calls that are queued behind a long one. It waits without the GIL.
"""

import os
import pickle
import queue
import sys
import threading
import time
import traceback

from . import _native
from .errors import Error
from .executor import TO_EXECUTOR, TO_WORKER
from .groups import any_channel, pack, unpack


def main(number):
    group = any_channel(number)
    executor = _native.parent()
    calls = queue.SimpleQueue()

    def tell(*message):
        group.send_parts(*pack(message), executor, TO_EXECUTOR)

    if not _begin(group.recv_object(executor, TO_WORKER), tell):
        return
    threading.Thread(target=_receive, args=(group, executor, calls, tell), daemon=True).start()
    tell("ready")
    try:
        while (call := calls.get()) is not None:
            _run(*call, tell)
    except Error as error:
        # The executor has ended.
        print(f"regatta_mpi.worker: {error}", file=sys.stderr)
        os._exit(1)


def _begin(setup, tell):
    """Makes the main program's functions available, and calls the initializer. Returns False if either fails."""
    from multiprocessing import spawn

    _, preparation, pickled, pieces = setup
    # The folder may not exist on this host.
    if not os.path.isdir(preparation.get("dir") or ""):
        preparation.pop("dir", None)
    try:
        spawn.prepare(preparation)
        initializer, arguments = pickle.loads(pickled, buffers=pieces)
        if initializer is not None:
            initializer(*arguments)
    except BaseException as error:
        tell("failed", _traceback(error))
        return False
    return True


def _receive(group, executor, calls, tell):
    try:
        while True:
            kind, *rest = group.recv_object(executor, TO_WORKER)
            if kind == "calls":
                for call in rest[0]:
                    calls.put(call)
            elif kind == "back":
                tell("back", _unbegun(calls))
            else:
                calls.put(None)
                return
    except Error:
        # The executor has ended, so the results are not needed.
        os._exit(1)


def _unbegun(calls):
    """Removes the calls that have not begun from the queue, and returns their numbers."""
    numbers = []
    while True:
        try:
            call = calls.get_nowait()
        except queue.Empty:
            return numbers
        if call is None:
            calls.put(None)
            return numbers
        numbers.append(call[0])


def _run(number, pickled, pieces, tell):
    begin = time.perf_counter()
    try:
        function, arguments, keywords = pickle.loads(pickled, buffers=pieces)
        result, fine = function(*arguments, **keywords), True
    except BaseException as error:
        result, fine = _told(error), False
    seconds = time.perf_counter() - begin
    try:
        packed, buffers = pack(result)
    except BaseException as error:
        fine = False
        packed, buffers = pack(RuntimeError("the result cannot be pickled: " + _shown(repr, error)))
    tell("done", number, fine, seconds, packed, [pickle.PickleBuffer(buffer) for buffer in buffers])


def _told(error):
    """Returns an exception with the worker's traceback as a note, if it accepts notes and can be pickled."""
    text = _traceback(error)
    try:
        error.add_note(text)
    except BaseException:
        # The class does not accept notes.
        pass
    try:
        if isinstance(pickle.loads(pickle.dumps(error)), BaseException):
            return error
    except BaseException:
        pass
    return RuntimeError(text)


def _traceback(error):
    return _shown(lambda error: "".join(traceback.format_exception(error)).rstrip(), error)


def _shown(show, error):
    """Returns the text of an exception, even if its own methods raise."""
    try:
        return show(error)
    except BaseException:
        return "an exception without a text, because its own methods raise"
