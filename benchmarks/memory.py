"""Peak memory of a fit beyond the caller's matrix."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from .competitors import COMPETITORS
from .problems import read
from .timing import warm_up_rows


def peak_of_fit(path: str, name: str, value: float | None) -> float:
    """Return the peak of a competitor's fit on a cached problem, as a multiple of X's bytes."""
    warnings.simplefilter("ignore")
    problem, competitor = read(Path(path)), COMPETITORS[name]
    n_classes, y, rows = problem.n_classes, problem.y_train, warm_up_rows(problem.y_train)
    X, _ = competitor.matrices(problem.X_train, problem.X_test[:1])
    del problem
    competitor.make(value, n_classes).fit(X[rows], y[rows])  # imports
    model = competitor.make(value, n_classes)
    return peak_beyond(lambda: model.fit(X, y)) / (
        X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    )


def peak_beyond(function: Callable[[], Any]) -> int:
    """Return the bytes by which resident memory rises while `function` runs (Linux)."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)  # freed memory back to the system
    before = psutil.Process().memory_info().rss
    return peak_during(function) - before


def peak_during(function: Callable[[], Any]) -> int:
    """Return the largest resident memory while `function` runs; `ru_maxrss` knows the parent's."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak, where Linux allows it
    function()
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
