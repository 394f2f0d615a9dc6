"""Fits on a CUDA device against the same machine's CPU.

``python benchmarks/bench_cuda.py [--sizes 1e6 1e7 1e8] [--device cuda]``

Documents of 100 tokens out of 50,000, by Zipf's law, two classes. An iteration is the difference of
two fits, one of 2 iterations and one of 22, both at C=1; what does not depend on their number is
the rest: statistics, the transpose, the way to the device and back. Without a CUDA device the CPU's
columns alone are printed.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import command_line, machine  # noqa: E402
from sklearn_clsattn import ClsAttentionClassifier  # noqa: E402

LENGTH, N_TOKENS = 100, 50_000
FEW, MANY = 2, 22


def main(arguments: list[str] | None = None) -> int:
    import torch

    options = _parser().parse_args(arguments)
    devices = ["cpu"]
    if torch.cuda.is_available():
        devices.append(options.device)
        print(torch.cuda.get_device_name(options.device))
    else:
        print("There is no CUDA device here.")
    described = machine.describe()
    print("\n".join([machine.summary(described), "", *machine.warning(described)]))
    print("| non-zeros | device | fit of 22 iterations, s | iteration, ms | the rest, s | GiB |")
    print("|---|---|---|---|---|---|")
    for size in options.sizes:
        X, y = documents(int(size))
        found = {device: seconds(X, y, device) for device in devices}
        for device, (fit, iteration, memory) in found.items():
            print(
                f"| {X.nnz:,} | {device} | {fit:.2f} | {1e3 * iteration:.1f} "
                f"| {fit - MANY * iteration:.2f} | {memory} |",
                flush=True,
            )
        if len(found) == 2:
            cpu, gpu = found.values()
            print(f"| | ratio | {cpu[0] / gpu[0]:.2f} | {cpu[1] / gpu[1]:.2f} | | |", flush=True)
    return 0


def documents(n_entries: int, seed: int = 0) -> tuple[sp.csr_array, Any]:
    """Return about so many counts of documents, and their classes."""
    rng = np.random.default_rng(seed)
    n_documents = max(4, n_entries // LENGTH)
    y = np.arange(n_documents) % 2
    tokens = np.exp(rng.uniform(0, np.log(N_TOKENS), (n_documents, LENGTH))).astype(np.int32)
    # A twentieth of the tokens are of a class: even ones of one, odd ones of the other.
    of_class = rng.random(tokens.shape) < 0.05
    tokens -= of_class * ((tokens - y[:, None]) % 2)
    np.clip(tokens, 0, N_TOKENS - 1, out=tokens)
    indptr = np.arange(n_documents + 1, dtype=np.int64) * LENGTH
    counts = np.ones(tokens.size, dtype=np.float32)
    X = sp.csr_array((counts, tokens.ravel(), indptr), shape=(n_documents, N_TOKENS))
    X.sum_duplicates()
    return X, y


def seconds(X: Any, y: Any, device: str) -> tuple[float, float, str]:
    """Return seconds of a long fit and of an iteration, and the device's peak memory in GiB."""
    import torch

    fit(X[:200], y[:200], device, FEW)  # imports, and the device's libraries
    if device != "cpu":
        torch.cuda.reset_peak_memory_stats(device)
    short, long = (min(fit(X, y, device, n) for _ in range(2)) for n in (FEW, MANY))
    peak = "" if device == "cpu" else f"{torch.cuda.max_memory_allocated(device) / 2**30:.1f}"
    return long, (long - short) / (MANY - FEW), peak


def fit(X: Any, y: Any, device: str, n_iterations: int) -> float:
    """Return the seconds of a fit of so many iterations; fitted attributes are on the host."""
    model = ClsAttentionClassifier(C=1.0, tol=0.0, max_iter=n_iterations, device=device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        started = time.perf_counter()
        model.fit(X, y)
        return time.perf_counter() - started


def _parser() -> argparse.ArgumentParser:
    parser = command_line.parser(__file__, __doc__)
    parser.add_argument("--sizes", nargs="+", type=float, default=[1e6, 1e7, 1e8])
    parser.add_argument("--device", default="cuda")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
