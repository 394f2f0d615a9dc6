"""What threads cost and give a fit, where the cores are idle and where they are busy.

``python benchmarks/bench_threads.py [--runs N]`` prints seconds of a default fit, medians of
interleaved runs: as it is, on one thread, and with all of PyTorch's threads, which spin while they
wait. "Busy" is beside two processes that compute. The fit as it is should take no more than 1.3
times the best of the two others.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import command_line, machine  # noqa: E402
from sklearn_clsattn import ClsAttentionClassifier  # noqa: E402
from sklearn_clsattn._core import backend, bag  # noqa: E402
from sklearn_clsattn.datasets import load_requests, make_token_classification  # noqa: E402
from sklearn_clsattn.text import make_text_classifier  # noqa: E402

SIZES = {"n_samples": 20_000, "n_irrelevant": 29_000, "document_length": 200}
WAYS = {"as it is": (2, False), "one thread": (1, False), "PyTorch's two": (2, True)}


def requests() -> Callable[[], Any]:
    """Return a fit of 3,000 short texts."""
    texts, labels = load_requests(return_X_y=True)
    return lambda: make_text_classifier().fit(texts, labels)


def counts(n_classes: int) -> Callable[[], Any]:
    """Return a fit of 20,000 documents, 30,000 tokens and 3 million counts."""
    relevant = {"n_relevant_per_class": 1000 // n_classes, "delta": 0.55}
    X, y = make_token_classification(**SIZES, **relevant, n_classes=n_classes, random_state=0)
    return lambda: ClsAttentionClassifier().fit(X, y)


PROBLEMS = {
    "requests, from texts": requests,
    "3 million counts": partial(counts, 2),
    "ten classes": partial(counts, 10),
}


def seconds(fit: Callable[[], Any], threads: int, spin: bool) -> tuple[float, float]:
    """Return the wall and the processor seconds of a fit.

    `spin` is whether PyTorch uses the threads, and nothing else.
    """
    usual = backend.FEW_MULTIPLICATIONS, bag.BLOCK_ENTRIES
    if spin:
        backend.FEW_MULTIPLICATIONS, bag.BLOCK_ENTRIES = 0, sys.maxsize
    torch.set_num_threads(threads)
    started = time.perf_counter(), time.process_time()
    fit()
    found = time.perf_counter() - started[0], time.process_time() - started[1]
    backend.FEW_MULTIPLICATIONS, bag.BLOCK_ENTRIES = usual
    return found


@contextmanager
def others(number: int) -> Iterator[None]:
    """Let so many other processes compute."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for one in running:
            one.kill()
            one.wait()


def main(arguments: list[str] | None = None) -> int:
    parser = command_line.parser(__file__, __doc__)
    parser.add_argument("--runs", type=int, default=5, help="fits of each kind")
    runs = parser.parse_args(arguments).runs
    described = machine.describe()
    print(machine.summary(described))
    print(*machine.warning(described), sep="\n")
    print(f"\n| problem | cores | {' | '.join(f'{way}, s (CPU)' for way in WAYS)} | to the best |")
    print("|---|---|---|---|---|---|")
    for name, make in PROBLEMS.items():
        fit = make()
        fit()
        for state, number in (("idle", 0), ("busy", 2)):
            with others(number):
                found = [[seconds(fit, *way) for way in WAYS.values()] for _ in range(runs)]
            walls, cpus = np.median(found, axis=0).T
            cells = " | ".join(f"{w:.2f} ({c:.2f})" for w, c in zip(walls, cpus, strict=True))
            print(f"| {name} | {state} | {cells} | {walls[0] / walls[1:].min():.2f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
