"""Peak memory of a fit beyond the caller's matrix, each in a process of its own."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parents[1]


def peak_of_fit(path: Path, name: str, value: float | None) -> float:
    """Return the peak of a competitor's fit on a cached problem, as a multiple of X's bytes."""
    command = [sys.executable, "-m", "benchmarks.memory", str(path), name, json.dumps(value)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"measuring the memory of {name} failed:\n{done.stderr}")
    return float(done.stdout.splitlines()[-1])


def peak_beyond(function: Callable[[], Any]) -> int:
    """Return the bytes by which resident memory rises while `function` runs (Linux)."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)  # freed memory back to the system
    _reset_high_water_mark()
    before = psutil.Process().memory_info().rss
    function()
    return _high_water_mark() - before


def _reset_high_water_mark() -> None:
    """Reset the peak of this process, where Linux allows it."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _high_water_mark() -> int:
    """Return the peak of this process in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


def _main(path: str, name: str, value: str) -> None:
    from .competitors import COMPETITORS
    from .problems import read
    from .timing import warm_up_rows

    warnings.simplefilter("ignore")
    problem, competitor = read(Path(path)), COMPETITORS[name]
    n_classes, y, rows = problem.n_classes, problem.y_train, warm_up_rows(problem.y_train)
    X, _ = competitor.matrices(problem.X_train, problem.X_test[:1])
    del problem
    competitor.make(json.loads(value), n_classes).fit(X[rows], y[rows])  # imports
    model = competitor.make(json.loads(value), n_classes)
    peak = peak_beyond(lambda: model.fit(X, y))
    print(peak / (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes))


if __name__ == "__main__":
    _main(*sys.argv[1:])
