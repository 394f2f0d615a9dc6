"""How many threads one fit may use while others run beside it in the same process.

joblib's process workers are given their share of the cores through the environment. Its
threading backend is not: every thread would start PyTorch's full team, and the teams would
fight for the cores. So fits that run at the same time in one process share them, and take
their share anew with every iteration.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

import torch

_lock = threading.Lock()
_running = 0
_whole = 1
_changed = False


class ThreadShare:
    """A context in which the calling thread has its share of PyTorch's threads.

    PyTorch's setting belongs to the thread that makes it, but is also what threads that come
    later begin with. So the last fit to end sets what the first one found.
    """

    def __enter__(self) -> Self:
        global _running, _whole
        self._before = self._current = torch.get_num_threads()
        with _lock:
            if _running == 0:
                _whole = self._before
            _running += 1
        self.update()
        return self

    def update(self) -> None:
        """Take the share that is due now: the whole for one fit, half of it for two."""
        global _changed
        share = max(1, min(self._before, _whole // max(1, _running)))
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
        global _running, _changed
        with _lock:
            _running -= 1
            if _running == 0 and _changed:
                torch.set_num_threads(_whole)
                _changed = False
            elif self._current != self._before:
                torch.set_num_threads(self._before)
