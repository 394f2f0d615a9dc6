"""Threads of a fit, and of the counting of texts, which may do without PyTorch."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Any, Self, TypeVar
from weakref import WeakSet, ref

from .._bags import Bags
from .._matrices import BLOCK_ENTRIES, left_blocks, row_blocks
from .._sklearn import _get_threadpool_controller, _openmp_effective_n_threads

Item = TypeVar("Item")
Result = TypeVar("Result")

_N_STREAMED = 16  # results in memory at a time


def in_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Apply a function to some items, on this thread's share of the threads.

    The calling thread takes items too. It waits for items begun, not for threads that the system
    has not started yet.
    """
    waiting = list(items)
    share = _share_here()
    if share is None:
        with ThreadLimit():
            return in_threads(function, waiting)
    n_helpers = min(share.n_threads, len(waiting)) - 1
    if n_helpers < 1:
        return list(map(function, waiting))
    results: list[Any] = [None] * len(waiting)
    left = iter(range(len(waiting)))

    def work() -> None:
        for place in left:
            results[place] = function(waiting[place])

    def help_out() -> None:
        share.set_torch_threads(1)
        work()

    helpers: list[Future[None]] = []
    try:
        for _ in range(n_helpers):
            helpers.append(_submit(help_out))
        work()
    finally:
        deque(left, maxlen=0)  # after an error, nothing new is begun
        _finish(helpers)
    for helper in helpers:
        if not helper.cancelled():
            helper.result()  # raises its error
    return results


def stream_in_threads(
    function: Callable[[Item], Result], items: Iterable[Item]
) -> Iterator[Result]:
    """Yield a function's results of items in order; a few at a time are computed in threads.

    The same whatever the number of threads, if each result depends on its item alone.
    """
    waiting = iter(items)
    while some := list(islice(waiting, _N_STREAMED)):
        yield from map(function, some) if len(some) == 1 else in_threads(function, some)


def blocks_in_threads(
    function: Callable[[tuple[slice, Any]], Result], X: Any, n_entries: int = BLOCK_ENTRIES
) -> list[Result]:
    """Apply a function to :func:`.row_blocks` in threads, where bags are multiplied too."""
    if not isinstance(X, Bags):
        return in_threads(function, row_blocks(X, n_entries))

    def multiply_and_apply(block: tuple[slice, Any]) -> Result:
        rows, left = block
        return function((rows, left @ X.right))

    return in_threads(multiply_and_apply, left_blocks(X, n_entries))


def in_background(function: Callable[[], Result]) -> Callable[[], Result]:
    """Start a function on its own thread, and return a function that waits for the result.

    Where one thread is the share of the calling one, so does this. The function never runs longer
    than the :class:`ThreadLimit` in which it was started.
    """
    share = _share_here()
    if share is None or share.n_threads == 1:
        result = function()
        return lambda: result

    def compute() -> Result:
        share.set_torch_threads(1)
        return function()

    job = _submit(compute)
    share.background.add(job)
    return job.result


# Threads of PyTorch (OpenMP) and of NumPy (BLAS) spin after each operation, and wait for each other
# at its end: where the cores have other work as well, a fit takes ten times as long on two of them
# as on one. So a fit computes on one, and gives what pays to Python's threads, which sleep.
#
# joblib's process workers get their share of the cores through the environment. Its threading
# backend does not. So fits that run at the same time in one process share the threads.
_lock = threading.Lock()
_running: WeakSet[ThreadLimit] = WeakSet()  # one that an interrupt left behind counts no longer
_whole = 1
_blas: Any = None  # puts the number of BLAS threads back
_pool: ThreadPoolExecutor | None = None
_here = threading.local()


def _start_anew() -> None:
    """Reset the threads and fits of the parent in a forked child; one may hold the lock."""
    global _lock, _pool
    _lock = threading.Lock()
    _pool = None
    _running.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)


def _helpers() -> ThreadPoolExecutor:
    """Return the thread pool of :func:`in_threads`, which starts on first use and persists."""
    global _pool
    with _lock:
        _pool = _pool or ThreadPoolExecutor(os.cpu_count(), "fit")
        return _pool


def _submit(function: Callable[[], Result]) -> Future[Result]:
    """Start a function in the thread pool, or compute it here while the interpreter shuts down."""
    try:
        return _helpers().submit(function)
    except RuntimeError as error:
        if "shutdown" not in str(error):
            raise
    computed: Future[Result] = Future()
    computed.set_result(function())
    return computed


def _finish(jobs: Iterable[Future[Any]]) -> None:
    """Cancel the jobs that have not begun, and wait for the others."""
    begun = [job for job in jobs if not job.cancel()]
    wait(begun)


def _share_here() -> ThreadLimit | None:
    """Return the share of the calling thread, if it is in one."""
    share: ref[ThreadLimit] | None = getattr(_here, "share", None)
    return None if share is None else share()


def _torch_threads() -> int | None:
    """Return the number of PyTorch's threads, None where it is not loaded or not yet ready."""
    torch: Any = sys.modules.get("torch")
    return torch.get_num_threads() if hasattr(torch, "set_num_threads") else None


FEW_MULTIPLICATIONS = 2_000_000
"""Of dense matrices, below which a second thread of PyTorch's costs a fit time."""


class ThreadLimit:
    """A context in which the calling thread has one of PyTorch's threads, and a share of Python's.

    As many are shared as PyTorch was set to use, or as there are cores where it is not loaded. The
    setting belongs to the thread that makes it, but is also the initial one of threads that start
    later: these have what the first fit found. A context within another one, in the same thread,
    takes its place, and its whole share. `n_dense` are the multiplications of a fit's products of
    dense matrices; where they are many, PyTorch has the share.
    """

    def __init__(self, n_dense: int = 0) -> None:
        self._n_dense = n_dense
        self.background: WeakSet[Future[Any]] = WeakSet()  # jobs of :func:`in_background`

    @property
    def n_threads(self) -> int:
        """The number of threads due now: all for one fit, half of them for two."""
        return max(1, _whole // max(1, len(_running)))

    def set_torch_threads(self, n_threads: int | None) -> None:
        """Set the number of PyTorch's threads, unless it was loaded since the context began.

        Then nothing would restore the number.
        """
        if self._before is not None:
            sys.modules["torch"].set_num_threads(n_threads)

    def __enter__(self) -> Self:
        global _whole, _blas
        self._outer = _share_here()
        with _lock:
            self._before = _torch_threads()
            if not _running:
                _whole = self._before or _openmp_effective_n_threads()
                _blas = _blas or _get_threadpool_controller().limit(limits=1, user_api="blas")
            elif self._before is not None and self._outer is None:
                self._before = _whole
            if self._outer is not None:
                _running.discard(self._outer)
            _running.add(self)
        _here.share = ref(self)
        self.set_torch_threads(1 if self._n_dense < FEW_MULTIPLICATIONS else self.n_threads)
        return self

    def __exit__(self, *error: object) -> None:
        try:
            _finish(self.background)
        finally:
            self._give_back()

    def _give_back(self) -> None:
        """Restore the numbers of threads, and the share of the context around this one."""
        global _blas
        _here.share = None if self._outer is None else ref(self._outer)
        with _lock:
            _running.discard(self)
            if self._outer is not None:
                _running.add(self._outer)
            if not _running and _blas:
                _blas.restore_original_limits()
                _blas = None
            # Under the lock: what the next fit finds is never the setting of this one.
            self.set_torch_threads(self._before)
