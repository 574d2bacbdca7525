"""The executor: results, errors, workers that die, and calls queued behind a long one."""

import asyncio
import concurrent.futures
import contextlib
import os
import queue
import signal
import sys
import warnings

import numpy as np
import regatta_mpi as rg


def square(n):
    return n * n


def fails(text):
    raise KeyError(text)


def unpicklable():
    return lambda: None


def dies_until(path, times):
    """Kills its worker this many times, then returns how often it was begun."""
    with open(path, "a") as file:
        file.write("x")
    begun = os.path.getsize(path)
    if begun <= times:
        os.kill(os.getpid(), signal.SIGKILL)
    return begun


def awaits(path):
    """Returns when the file can be opened and read. A named pipe makes it wait."""
    with open(path) as file:
        return file.read()


def total(array):
    return array.sum(), array * 2


SET = []


def prepare(value):
    SET.append(value)


def prepared():
    return SET[0]


def worker():
    return os.getpid()


class Unwilling(Exception):
    """An exception that accepts no note and has no text."""

    def add_note(self, note):
        raise TypeError("no notes")

    def __repr__(self):
        raise TypeError("no text")

    __str__ = __repr__


class Reduced(Exception):
    """An exception whose pickle is a number."""

    def __reduce__(self):
        return int, ()


class Unpicklable:
    def __reduce__(self):
        raise Unwilling()


def raises(kind):
    raise kind()


def only_the_first(path):
    """An initializer that ends each worker but the first."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        os._exit(7)


def waits_once_begun(path, pipe):
    """An initializer that waits for the test if the file exists."""
    if os.path.exists(path):
        awaits(pipe)


def meets(pipe, mode):
    """Returns when the other end of the pipe has been opened, too."""
    with open(pipe, mode):
        return mode


INNER = []


def squared_inside(n):
    """Uses an executor in the worker. It is that process's first, as the executor that the worker belongs to is the
    program's first."""
    if not INNER:
        INNER.append(rg.Executor(1))
    return INNER[0].submit(square, n).result()


@contextlib.contextmanager
def warned():
    """Returns a queue of the warnings' texts, from all threads."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        told = queue.SimpleQueue()
        warnings.showwarning = lambda message, *_: told.put(str(message))
        yield told


async def awaited(executor):
    return await asyncio.get_running_loop().run_in_executor(executor, square, 12)


def basics(folder):
    with rg.Executor(2, initializer=prepare, initargs=("told",)) as executor:
        assert executor.submit(prepared).result() == "told"
        assert list(executor.map(square, range(500))) == [n * n for n in range(500)]
        future = executor.submit(fails, "no such thing")
        error = future.exception()
        assert isinstance(error, KeyError) and "fails" in error.__notes__[0]
        assert "cannot be pickled" in str(executor.submit(unpicklable).exception())
        data = np.arange(300_000.0)
        sum_of, twice = executor.submit(total, data).result()
        assert sum_of == data.sum() and np.array_equal(twice, data * 2)
        assert asyncio.run(awaited(executor)) == 144
        assert len(executor.workers) == 2
        # Calls queued behind one that waits are run by the other worker, which then lets that one go on.
        pipe = os.path.join(folder, "pipe")
        os.mkfifo(pipe)
        long = executor.submit(awaits, pipe)
        assert list(executor.map(square, range(100))) == [n * n for n in range(100)]
        assert not long.done()
        with open(pipe, "w") as file:
            file.write("go on")
        assert long.result() == "go on"
        # A call that has not begun can be cancelled.
        pipes = [os.path.join(folder, name) for name in ("one", "two")]
        for pipe in pipes:
            os.mkfifo(pipe)
        blocked = [executor.submit(awaits, pipe) for pipe in pipes]
        waiting = [executor.submit(square, n) for n in range(50)]
        assert waiting[-1].cancel()
        for pipe in pipes:
            with open(pipe, "w"):
                pass
        concurrent.futures.wait(blocked + waiting[:-1])
    try:
        executor.submit(square, 1)
    except RuntimeError:
        pass
    else:
        raise AssertionError("taken")


def deaths(folder):
    with rg.Executor(2, retries=2) as executor:
        before = executor.workers
        again = executor.submit(dies_until, os.path.join(folder, "twice"), 2)
        others = executor.map(square, range(200))
        assert again.result() == 3
        assert list(others) == [n * n for n in range(200)]
        for_ever = executor.submit(dies_until, os.path.join(folder, "ever"), 100)
        more = [executor.submit(square, n) for n in range(50)]
        error = for_ever.exception()
        assert isinstance(error, rg.WorkerDied) and (error.how, error.value) == ("signal", 9), error
        assert error.task is not None and f"worker {error.task} " in str(error) and "3 times" in str(error)
        assert [future.result() for future in more] == [n * n for n in range(50)]
        assert executor.restarts >= 5
        assert not set(before) & set(executor.workers)


def kill_one(executor):
    """Kills one worker. A worker that has already ended may still be listed."""
    for worker in executor.workers:
        try:
            rg.kill(worker)
        except ValueError:
            continue
        return


def killed_from_outside():
    """Workers are killed one after the other while calls run: each call must have exactly one result."""
    counted = []
    # Several kills in a row may meet the same call.
    with rg.Executor(4, retries=10) as executor:
        futures = [executor.submit(square, n) for n in range(4000)]
        for future in futures:
            future.add_done_callback(lambda future: counted.append(future.result()))
        for at in range(400, 4000, 400):
            futures[at].result()
            kill_one(executor)
        assert [future.result() for future in futures] == [n * n for n in range(4000)]
    assert sorted(counted) == [n * n for n in range(4000)]


def executors_in_workers():
    with rg.Executor(1) as executor:
        # One at a time, so that the worker's executor waits for messages when a call is sent to the worker.
        for n in range(40):
            assert executor.submit(squared_inside, n).result(timeout=60) == n * n
        assert executor.restarts == 0


def exceptions_that_cannot_be_told():
    with rg.Executor(1, retries=0) as executor:
        assert type(executor.submit(raises, Unwilling).exception()) is Unwilling
        error = executor.submit(raises, Reduced).exception()
        assert type(error) is RuntimeError and "Reduced" in str(error), error
        assert "cannot be pickled" in str(executor.submit(Unpicklable).exception())
        assert executor.submit(square, 3).result() == 9 and executor.restarts == 0


def shut_down_while_begun(folder):
    """A call that was begun is completed, even if no worker runs it when the others are cancelled."""
    path, pipe = os.path.join(folder, "begun"), os.path.join(folder, "initializer")
    os.mkfifo(pipe)
    executor = rg.Executor(1, initializer=waits_once_begun, initargs=(path, pipe))
    begun = executor.submit(dies_until, path, 1)
    with open(pipe, "w"):
        # Its first worker has died, and the second one is in its initializer.
        waiting = executor.submit(square, 3)
        executor.shutdown(wait=False, cancel_futures=True)
        assert concurrent.futures.wait([waiting], timeout=60).done and waiting.cancelled()
    executor.shutdown()
    assert begun.done() and begun.result() == 2


def failed_starts(folder):
    # An initializer that ends all workers but one.
    with warned() as told, rg.Executor(2, initializer=only_the_first, initargs=(os.path.join(folder, "first"),)) as executor:
        assert executor.submit(square, 3).result() == 9
        warning = told.get(timeout=60)
        assert "exited with status 7" in warning and "1 of 2 workers" in warning, warning
        assert executor.restarts <= 3 and executor.submit(square, 4).result() == 16
    # An initializer that ends all workers.
    with rg.Executor(2, initializer=os._exit, initargs=(7,)) as executor:
        try:
            error = executor.submit(square, 1).exception(timeout=60)
        except concurrent.futures.BrokenExecutor as broken:
            error = broken
        assert isinstance(error, concurrent.futures.BrokenExecutor) and "status 7" in str(error), error
    # The interpreter is missing for a while.
    pipe, interpreter = os.path.join(folder, "both"), sys.executable
    os.mkfifo(pipe)
    with warned() as told, rg.Executor(2) as executor:
        futures = [executor.submit(meets, pipe, mode) for mode in "rw"]
        concurrent.futures.wait(futures, timeout=60)
        sys.executable = os.path.join(folder, "none")
        kill_one(executor)
        assert "does not exist" in told.get(timeout=60)
        try:
            rg.Executor(1)
        except rg.Error as error:
            assert "does not exist" in str(error)
        else:
            raise AssertionError("started")
        sys.executable = interpreter
        futures = [executor.submit(meets, pipe, mode) for mode in "rw"]
        assert [future.result(timeout=60) for future in futures] == ["r", "w"]
        assert executor.restarts == 1


def sizes():
    with rg.Executor(1) as executor:
        executor.submit(square, 1).result()
        executor.resize(3)
        assert len(executor.workers) == 3
        executor.resize(1)
        assert executor.submit(square, 3).result() == 9
        try:
            executor.resize(0)
        except ValueError as error:
            assert "at least one worker" in str(error)
        else:
            raise AssertionError("resized")
    with rg.Executor(initializer=fails, initargs=("broken",)) as executor:
        error = executor.submit(square, 1).exception()
        assert isinstance(error, concurrent.futures.BrokenExecutor) and "broken" in str(error)


if __name__ == "__main__":
    basics(sys.argv[1])
    deaths(sys.argv[1])
    killed_from_outside()
    executors_in_workers()
    exceptions_that_cannot_be_told()
    shut_down_while_begun(sys.argv[1])
    failed_starts(sys.argv[1])
    sizes()
    # An executor that is never shut down ends with the program.
    executor = rg.Executor(1)
    assert executor.submit(square, 4).result() == 16
    print("all is well")
