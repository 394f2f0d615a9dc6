"""A GPU beside the CPU: ``python -m benchmarks.devices``.

The same generated documents are learned on each: 100 tokens of a vocabulary in which a token's
frequency falls with its rank, as words' do, and classes that a third of the tokens tell.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from sklearn_clsattn import ClsAttentionClassifier

from . import pages

LENGTH = 100
SHARE_TELLING = 1 / 3
EXPONENT = 0.9  # of the rank
CASES = (50_000, 2), (200_000, 2), (50_000, 20), (200_000, 20)  # documents and classes
DEVICES = "cuda", "cpu"


def documents(n: int, n_classes: int, n_tokens: int) -> tuple[Any, NDArray[np.intp]]:
    """Return counts, CSR (n, n_tokens), and classes."""
    rng = np.random.default_rng(0)
    frequencies = 1.0 / np.arange(1, n_tokens + 1) ** EXPONENT
    below = np.cumsum(frequencies / frequencies.sum())
    tokens = np.searchsorted(below, rng.random(n * LENGTH)).clip(max=n_tokens - 1)
    indptr = np.arange(0, n * LENGTH + 1, LENGTH)
    X = sp.csr_array((np.ones(n * LENGTH, np.float32), tokens, indptr), shape=(n, n_tokens))
    X.sum_duplicates()
    is_telling = rng.random((n_tokens, 1)) < SHARE_TELLING
    values = rng.normal(size=(n_tokens, n_classes)) * is_telling
    noise = rng.gumbel(size=(n, n_classes))
    decisions = X @ values / np.sqrt(LENGTH / 3) + 0.5 * noise
    return X, decisions.argmax(axis=1)


def main(arguments: list[str] | None = None) -> int:
    """Measure, and write the page."""
    parser = pages.parser("devices", __doc__)
    parser.add_argument("--documents", type=int, default=200_000, help="at most so many")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    has_gpu = torch.cuda.is_available()
    if not has_gpu:
        print("PyTorch finds no CUDA device: the CPU alone.", file=sys.stderr)
    rows = []
    for n, n_classes in CASES:
        if n > options.documents:
            continue
        X, y = documents(n, n_classes, n_tokens=n // 2)
        for C in (1.0, "auto"):
            found: dict[str, tuple[float, ClsAttentionClassifier]] = {}
            for device in DEVICES if has_gpu else DEVICES[1:]:
                start = time.perf_counter()
                model = ClsAttentionClassifier(C=C, device=device).fit(X, y)
                found[device] = time.perf_counter() - start, model
            seconds = [found[device][0] if device in found else None for device in DEVICES]
            difference = None
            if has_gpu:
                some = X[:10_000]
                gpu, cpu = (found[device][1].predict_proba(some) for device in DEVICES)
                difference = float(np.abs(gpu - cpu).mean())
            cells = [pages.number(one, ".1f") for one in seconds]
            rows.append([f"{n:,}", n_classes, C, *cells, pages.number(difference, ".1e")])
            print(*rows[-1], file=sys.stderr, flush=True)
    gpu_name = torch.cuda.get_device_name(0) if has_gpu else "none"
    notes = (
        f"GPU: {gpu_name}. Seconds of a fit, the first one on the GPU with the start of CUDA, and "
        "the mean difference of probabilities."
    )
    header = "documents", "classes", "C", "GPU", "CPU", "difference"
    pages.publish(
        options.output, "A GPU beside the CPU", "devices", notes, pages.table(header, rows)
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
