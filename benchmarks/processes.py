"""Functions in processes of their own: what is measured there is not disturbed by what ran before.

``python -m benchmarks.processes FUNCTION ARGUMENTS CHECKOUT`` calls a function with arguments in
JSON and prints its result. The package is that of the checkout, the benchmarks are this one's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from .command_line import ROOT

ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}


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
        env=os.environ | (ONE_THREAD if one_thread else {}),
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


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[3])
    print(json.dumps(call(sys.argv[1], *json.loads(sys.argv[2]))))
