"""Time and memory of functions, in processes of their own, where nothing ran before.

``python -m benchmarks.processes FUNCTION ARGUMENTS CHECKOUT`` calls a function with arguments in
JSON and prints its result. The package is that of the checkout, the benchmarks are this one's.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parents[1]

_ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}

Clock = Callable[[], float]


def in_process(
    function: str,
    *arguments: Any,
    checkout: Path = ROOT,
    one_thread: bool = False,
    seconds: float | None = None,
) -> Any:
    """Return what a function, by its full name, returns in a fresh process, in so many seconds."""
    given = function, json.dumps(arguments, default=str), str(checkout)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.processes", *given],
        cwd=ROOT,
        env=os.environ | (_ONE_THREAD if one_thread else {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )
    if done.returncode:
        raise RuntimeError(f"{function}{arguments} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def call(function: str, *arguments: Any, **_: Any) -> Any:
    """Return what a function, by its full name, returns in this process."""
    module, _, name = function.rpartition(".")
    return getattr(import_module(module), name)(*arguments)


def timed(function: Callable[[], Any], clock: Clock = time.perf_counter) -> tuple[Any, float]:
    """Return what a function returns, and the seconds it took."""
    started = clock()
    result = function()
    return result, clock() - started


def interleaved(
    *functions: Callable[[], Any], runs: int, clock: Clock = time.perf_counter
) -> list[float]:
    """Return each function's median seconds over some rounds.

    They take turns, A B C A B C, so that a drift of the machine affects all alike.
    """
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(runs):
        for function, measured in zip(functions, times, strict=True):
            measured.append(timed(function, clock)[1])
    return [statistics.median(measured) for measured in times]


def peak_beyond(function: Callable[[], Any]) -> int:
    """Return the bytes by which resident memory rises while `function` runs (Linux)."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)  # freed memory back to the system
    before = psutil.Process().memory_info().rss
    return peak_during(function) - before


def peak_during(function: Callable[[], Any]) -> int:
    """Return the largest resident memory while `function` runs (Linux)."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak, where that is allowed
    function()
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[3])
    print(json.dumps(call(sys.argv[1], *json.loads(sys.argv[2]))))
