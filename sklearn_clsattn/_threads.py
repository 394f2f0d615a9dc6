"""Threads of a fit and of the counting of texts.

Threads of PyTorch (OpenMP) and of NumPy (BLAS) spin after each operation, and wait for each other
at its end: where the cores have other work as well, a fit takes ten times as long on two of them
as on one. So a fit computes on one, and gives what pays to a pool of Python's threads, which sleep.
Fits in several threads of one process may use more threads than there are cores.
"""

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import cache
from itertools import islice
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from ._sklearn import _openmp_effective_n_threads

Item = TypeVar("Item")
Result = TypeVar("Result")

_N_STREAMED = 16  # results in memory at a time
# Has the `pool` of the calling thread and its `n_threads`; None in a thread of a pool.
_here = threading.local()
_lock = threading.Lock()
_n_torch_threads: list[int | None] = []  # what PyTorch was set to use, once for each fit that runs
_blas = cache(ThreadpoolController)


@contextmanager
def thread_pool() -> Iterator[None]:
    """Give the calling thread a pool of threads, and PyTorch and BLAS one thread each.

    The pool has as many threads as PyTorch was set to use, or as there are cores where it is not
    loaded. A context within another one has the same pool.
    """
    # 1) a context within another one
    if hasattr(_here, "pool"):
        yield
        return
    # 2) the number of threads
    with _lock:  # a thread that begins during a fit would find the one thread of that
        before = _n_torch_threads[0] if _n_torch_threads else _torch_threads()
        _n_torch_threads.append(before)
    n_threads = before or _openmp_effective_n_threads()
    # 3) the pool, beside which PyTorch and BLAS have one thread each
    try:
        with (
            _blas().limit(limits=1, user_api="blas"),
            ThreadPoolExecutor(n_threads, "fit", initializer=_begin_thread) as pool,
            _plain_torch(),
        ):
            _here.pool = pool if n_threads > 1 else None
            _here.n_threads = n_threads
            _set_torch_threads(1)
            yield
    finally:
        vars(_here).pop("pool", None)
        _set_torch_threads(before)
        with _lock:
            _n_torch_threads.pop()


def in_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Apply a function to some items, in the calling thread and those of the pool."""
    waiting = list(items)
    if len(waiting) < 2:
        return list(map(function, waiting))
    if not hasattr(_here, "pool"):  # outside of a fit
        with thread_pool():
            return in_threads(function, waiting)
    if _here.pool is None:
        return list(map(function, waiting))
    results: list[Any] = [None] * len(waiting)
    left = iter(range(len(waiting)))

    def work() -> None:
        for place in left:
            results[place] = function(waiting[place])

    n_helpers = min(_here.n_threads, len(waiting)) - 1
    helpers = [_here.pool.submit(work) for _ in range(n_helpers)]
    try:
        work()
    finally:
        deque(left, maxlen=0)  # after an error, nothing new is begun
    for helper in helpers:
        if not helper.cancel():
            helper.result()  # raises its error
    return results


def map_in_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yield a function's results of items in order; a few at a time are computed in threads."""
    waiting = iter(items)
    while some := list(islice(waiting, _N_STREAMED)):
        yield from in_threads(function, some)


def in_background(function: Callable[[], Result]) -> Callable[[], Result]:
    """Start a function in a thread of the pool, and return a function that waits for the result."""
    pool = getattr(_here, "pool", None)
    if pool is None:
        result = function()
        return lambda: result
    return pool.submit(function).result


@contextmanager
def _plain_torch() -> Iterator[None]:
    """Turn off the caller's autocast and default device, if PyTorch is loaded."""
    if _torch_threads() is None:
        yield
        return
    torch = sys.modules["torch"]
    # A context with a device slows every call of PyTorch's.
    is_usual = torch.get_default_device().type == "cpu"
    with (
        torch.autocast("cpu", enabled=False),
        torch.autocast("cuda", enabled=False),
        nullcontext() if is_usual else torch.device("cpu"),
    ):
        yield


def _begin_thread() -> None:
    """Begin a thread of a pool, which has one thread of PyTorch's and no pool of its own."""
    _here.pool = None
    _set_torch_threads(1)


def _torch_threads() -> int | None:
    """Return the number of PyTorch's threads, None where it is not loaded or not yet ready."""
    torch: Any = sys.modules.get("torch")
    return torch.get_num_threads() if hasattr(torch, "set_num_threads") else None


def _set_torch_threads(n_threads: int | None) -> None:
    """Set the number of PyTorch's threads in the calling thread, if PyTorch is loaded."""
    if n_threads is not None and _torch_threads() is not None:
        sys.modules["torch"].set_num_threads(n_threads)
