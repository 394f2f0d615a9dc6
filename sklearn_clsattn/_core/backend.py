"""Where a fit computes: its device, its precision, and its share of the threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self, TypeVar
from weakref import WeakSet

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Return the function's results for some items, on as many threads as PyTorch uses."""
    waiting = list(items)
    n_threads = min(torch.get_num_threads(), len(waiting))
    if n_threads <= 1:
        return list(map(function, waiting))
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(function, waiting))


def in_background(function: Callable[[], Result]) -> Callable[[], Result]:
    """Start a function on a thread of its own, and return what waits for its result.

    Where PyTorch uses one thread, so does this.
    """
    if torch.get_num_threads() == 1:
        result = function()
        return lambda: result
    pool = ThreadPoolExecutor(1)
    future = pool.submit(function)
    pool.shutdown(wait=False)
    return future.result


def floats(*scalars: torch.Tensor) -> list[float]:
    """Return tensors of one number each as floats, in one transfer: a device waits for each."""
    numbers: list[float] = torch.stack(scalars).tolist() if scalars else []
    return numbers


def resolve_device(device: str | torch.device) -> torch.device:
    """Return the device that a `device` parameter names; "auto" is CUDA if there is one, else CPU.

    Anything that is no device, is not available, or has no sparse matrix products is a ValueError.
    """
    expected = "expected 'cpu', 'cuda', 'auto' or a torch.device"
    if isinstance(device, str) and device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not isinstance(device, str | torch.device):
        raise ValueError(f"device: {expected}, got {device!r}.")
    try:
        resolved = torch.device(device)
    except RuntimeError:
        raise ValueError(f"device: {expected}, got {device!r}.") from None
    if resolved.type not in ("cpu", "cuda"):
        raise ValueError(
            f"device: {resolved.type!r} has no sparse matrix products in PyTorch; use 'cpu' or "
            "'cuda'."
        )
    if resolved.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(
            f"device: {device!r} was asked for, but PyTorch finds no CUDA device here; use "
            "'cpu', or 'auto' to take CUDA where there is one."
        )
    if resolved.type == "cuda" and (resolved.index or 0) >= (found := torch.cuda.device_count()):
        raise ValueError(
            f"device: {device!r} was asked for, but PyTorch finds {found} CUDA device(s) here, "
            f"numbered from 0; use 'cuda' or 'cuda:{found - 1}'."
        )
    return resolved


# joblib's process workers get their share of the cores through the environment. Its threading
# backend does not: every thread would use all of PyTorch's threads, which would compete for the
# cores. So fits that run at the same time in one process share them, and update their share with
# every iteration.
_lock = threading.Lock()
_running: WeakSet[ThreadShare] = WeakSet()  # one that an interrupt left behind counts no longer
_whole = 1
_changed = False


def _start_anew() -> None:
    """Forget, in a forked child, the fits of the parent, one of which may hold the lock."""
    global _lock, _changed
    _lock, _changed = threading.Lock(), False
    _running.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)


FEW_MULTIPLICATIONS = 2_000_000
"""In a product below which a second thread costs a fit time (``benchmarks/bench_threads.py``)."""


class ThreadShare:
    """A context in which the calling thread has its share of PyTorch's threads.

    PyTorch's setting belongs to the thread that makes it, but is also the initial one of threads
    that start later. So the last fit to end restores what the first one found. A fit whose products
    are small computes on one thread: to wake others takes longer than they save.
    """

    def __init__(self, n_multiplications: int = FEW_MULTIPLICATIONS) -> None:
        self._few = n_multiplications < FEW_MULTIPLICATIONS

    def __enter__(self) -> Self:
        global _whole
        self._before = self._current = torch.get_num_threads()
        with _lock:
            if not _running:
                _whole = self._before
            _running.add(self)
        self.update()
        return self

    def update(self) -> None:
        """Set the share that is due now: the whole for one fit, half of it for two."""
        global _changed
        share = 1 if self._few else max(1, min(self._before, _whole // max(1, len(_running))))
        if share != self._current:
            _changed = True
            torch.set_num_threads(share)
            self._current = share

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        global _changed
        with _lock:
            _running.discard(self)
            if not _running and _changed:
                torch.set_num_threads(_whole)
                _changed = False
            elif self._current != self._before:
                torch.set_num_threads(self._before)
