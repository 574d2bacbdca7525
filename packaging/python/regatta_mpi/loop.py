"""Requests in asyncio. The engine has a single descriptor, which notifies event loops that a message may have arrived."""

import asyncio

from . import _native

# The watch of each event loop in which an asyncio task waits.
_watches = {}


class _Watch:
    """The requests that asyncio tasks of one event loop wait for."""

    def __init__(self, loop):
        self._loop = loop
        self._waiting = {}
        self._fd = _native.fd()
        loop.add_reader(self._fd, self._look)

    def add(self, request, future):
        self._waiting[future] = request
        # Messages that arrived before the descriptor was cleared do not make it readable again.
        self._look()

    def remove(self, future):
        self._waiting.pop(future, None)
        if not self._waiting:
            self._loop.remove_reader(self._fd)
            _watches.pop(self._loop, None)

    def _look(self):
        try:
            _native.clear_fd()
        except Exception as error:
            for future in list(self._waiting):
                _end(future, error)
            return
        self._test()
        # An event loop of another thread may have missed that the descriptor was readable, because this one has cleared it.
        for watch in list(_watches.values()):
            if watch is not self:
                try:
                    watch._loop.call_soon_threadsafe(watch._test)
                except RuntimeError:
                    # That loop was closed, and its waiting tasks were abandoned.
                    _watches.pop(watch._loop, None)

    def _test(self):
        for future, request in list(self._waiting.items()):
            try:
                done = request.test()
            except Exception as error:
                _end(future, error)
            else:
                if done:
                    _end(future)


def _end(future, error=None):
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)


async def completion(request):
    """Waits for a request while other asyncio tasks of the event loop run. Returns the result of its `wait`.

    If the asyncio task is cancelled, a receive that has no message yet is cancelled, too.
    """
    if not request.test():
        loop = asyncio.get_running_loop()
        watch = _watches.get(loop)
        if watch is None:
            watch = _watches[loop] = _Watch(loop)
        future = loop.create_future()
        try:
            watch.add(request, future)
            await future
        except asyncio.CancelledError:
            if getattr(request, "is_receive", False):
                request.cancel()
            raise
        finally:
            watch.remove(future)
    return request.wait()
