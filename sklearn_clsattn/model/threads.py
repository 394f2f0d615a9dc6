"""How many threads one fit may use while others run beside it in the same process.

joblib's process workers are given their share of the cores through the environment. Its
threading backend is not: every thread would start PyTorch's full team, and the teams would
fight for the cores. So fits that run at the same time in one process share them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_lock = threading.Lock()
_running = 0
_whole = 0


@contextmanager
def shared_threads() -> Iterator[None]:
    """Give this fit its share of PyTorch's threads, and all of them back to the last one."""
    global _running, _whole
    with _lock:
        if _running == 0:
            _whole = torch.get_num_threads()
        _running += 1
        alone = _running == 1
        if not alone:
            torch.set_num_threads(max(1, _whole // _running))
    try:
        yield
    finally:
        with _lock:
            _running -= 1
            if not alone:
                torch.set_num_threads(_whole)
