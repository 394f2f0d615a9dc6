"""Peak memory of a fit beyond the caller's matrix, each in a fresh process of its own.

The process loads X, imports what fitting imports, fits a few rows, hands freed memory back to
the system, and then fits: the peak of its resident memory less what it was just before.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from .competitors import COMPETITORS
from .problems import Problem, read

ROOT = Path(__file__).resolve().parents[1]


def peak_of_fit(problem: Problem, name: str, value: float | None) -> dict[str, Any]:
    """Measure in a fresh process: bytes of X, bytes at the peak beyond it, and their ratio."""
    command = [sys.executable, "-m", "benchmarks.memory", str(problem.path), name, str(value)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"measuring the memory of {name} failed:\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def peak_beyond(function: Callable[[], Any]) -> tuple[int, str]:
    """Return by how many bytes resident memory rises while `function` runs, and how measured."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    process = psutil.Process()
    if _reset_high_water_mark():
        before = process.memory_info().rss
        function()
        return _high_water_mark() - before, "VmHWM"
    peak = before = process.memory_info().rss
    stop = threading.Event()

    def sample() -> None:
        nonlocal peak
        while not stop.wait(0.001):
            peak = max(peak, process.memory_info().rss)

    sampler = threading.Thread(target=sample, daemon=True)
    sampler.start()
    function()
    stop.set()
    sampler.join()
    return max(peak, process.memory_info().rss) - before, "sampled"


def _reset_high_water_mark() -> bool:
    """Have Linux forget the process's peak; False where it cannot."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
        return _high_water_mark() <= 1.02 * psutil.Process().memory_info().rss
    except (OSError, StopIteration):
        return False


def _high_water_mark() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


def _main(path: str, name: str, value: str) -> None:
    from .timing import warm_up_rows

    warnings.simplefilter("ignore")
    problem, competitor = read(Path(path)), COMPETITORS[name]
    n_classes, y = problem.n_classes, problem.y_train
    X = competitor.matrices(problem.X_train, problem.X_test[:1])[0]
    del problem
    parameter = None if value == "None" else float(value)
    rows = warm_up_rows(y)
    competitor.make(parameter, n_classes).fit(X[rows], y[rows])
    model = competitor.make(parameter, n_classes)
    peak, method = peak_beyond(lambda: model.fit(X, y))
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    print(json.dumps({"x_bytes": size, "peak_bytes": peak, "ratio": peak / size, "how": method}))


if __name__ == "__main__":
    _main(*sys.argv[1:])
