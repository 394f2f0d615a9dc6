"""Large corpora: chunks in files, a GPU, and the memory of a fit.

``python -m benchmarks.bench_scale [--entries 22_000_000] [--folder FOLDER]`` fits on chunks in
files and on the same documents in memory. ``--cuda`` fits on the device and on the CPU,
``--memory`` prints the peak of a fit beyond X.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_clsattn import ChunkedCounts, ClsAttentionClassifier

from . import command_line, memory, pages
from .processes import in_process
from .timing import timed

HERE = "benchmarks.bench_scale"
LENGTH, N_TOKENS, BLOCK = 130, 50_000, 20_000
MEMORY_CASES = [  # entries, tokens, classes, C, type of the entries
    (5_000_000, 10_000, 2, 1.0, "int64"),
    (5_000_000, 10_000, 2, "auto", "int64"),
    (5_000_000, 10_000, 2, 1.0, "float64"),
    (1_000_000, 500_000, 2, 1.0, "int64"),
    (1_000_000, 200_000, 20, "auto", "int64"),
    (1_000_000, 200_000, 20, 1.0, "float64"),
]


def documents(n_documents: int, seed: int = 0) -> tuple[sp.csr_array, Any]:
    """Return counts, in which token k has a frequency of about 1 / k, and classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_documents) % 2
    tokens = np.exp(rng.uniform(0, np.log(N_TOKENS), (n_documents, LENGTH))).astype(np.int32)
    of_class = rng.random(tokens.shape) < 0.05  # these tokens are even or odd by class
    tokens -= of_class * ((tokens - y[:, None]) % 2)
    np.clip(tokens, 0, N_TOKENS - 1, out=tokens)
    indptr = np.arange(n_documents + 1, dtype=np.int32) * LENGTH
    counts = np.ones(tokens.size, dtype=np.int32)
    X = sp.csr_array((counts, tokens.ravel(), indptr), shape=(n_documents, N_TOKENS))
    X.sum_duplicates()
    return X, y


def blocks(n_entries: int) -> Iterator[tuple[sp.csr_array, Any]]:
    """Yield blocks of documents, about so many entries in all."""
    n_documents = max(2, n_entries // LENGTH)
    for seed, start in enumerate(range(0, n_documents, BLOCK)):
        yield documents(min(BLOCK, n_documents - start), seed)


def fit_once(kind: str, source: str, C: Any) -> dict[str, Any]:
    """Return times and peak memory of one fit: "memory" or "chunks", of a folder of counts."""
    ClsAttentionClassifier(C=1.0).fit(*documents(200))  # imports
    counts, model = ChunkedCounts(source), ClsAttentionClassifier(C=C)
    fit = partial(model.fit_chunks, counts)
    if kind == "memory":
        parts = list(counts)
        X = sp.vstack([part[0] for part in parts], format="csr")
        fit = partial(model.fit, X, np.concatenate([part[1] for part in parts]))
    cpu = time.process_time()
    peak, wall = timed(lambda: memory.peak_beyond(fit))
    cpu = time.process_time() - cpu
    return {"wall": wall, "cpu": cpu, "iterations": model.n_iter_, "peak": peak / 1e6}


def chunks(n_entries: int, folder: str | None) -> str:
    """Return a table of fits in memory and over chunks in files."""
    rows = []
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        counts = ChunkedCounts.write(f"{scratch}/counts", blocks(n_entries))
        for C in (1.0, "auto"):
            for kind in ("memory", "chunks"):
                found = in_process(f"{HERE}.fit_once", kind, counts.path, C)
                shown = f"{found['wall']:.1f}", f"{found['cpu']:.1f}", found["iterations"]
                rows.append((kind, f"{counts.n_entries:,}", C, *shown, f"{found['peak']:.0f} MB"))
    header = ("documents in", "entries", "C", "s", "CPU s", "iterations", "peak beyond the start")
    return pages.table(header, rows)


def on_cuda(n_entries: int, device: str) -> str:
    """Return a table of fits on the CPU and on a device, of 22 iterations and of one of them."""
    import torch

    X, y = documents(max(2, n_entries // LENGTH))
    rows = []
    for where in ("cpu", device) if torch.cuda.is_available() else ("cpu",):
        seconds = {}
        for n_iterations in (2, 2, 22):  # the first one imports
            model = ClsAttentionClassifier(C=1.0, tol=0.0, max_iter=n_iterations, device=where)
            _, seconds[n_iterations] = timed(partial(model.fit, X, y))
        iteration = (seconds[22] - seconds[2]) / 20
        rows.append((where, f"{X.nnz:,}", f"{seconds[22]:.2f}", f"{1e3 * iteration:.1f}"))
    return pages.table(("device", "non-zeros", "fit of 22 iterations, s", "iteration, ms"), rows)


def peak(entries: int, tokens: int, n_classes: int, C: Any, dtype: str) -> int:
    """Return the bytes that a fit adds to the peak of this process."""
    ClsAttentionClassifier(C=1.0).fit(*documents(200))  # imports
    rng, n = np.random.default_rng(0), entries // 100
    indptr = np.arange(0, n * 100 + 1, 100, dtype=np.int32)
    columns = rng.integers(0, tokens, n * 100, dtype=np.int32)
    X = sp.csr_matrix((np.ones(n * 100, dtype), columns, indptr), shape=(n, tokens))
    X.sum_duplicates()
    model = ClsAttentionClassifier(C=C, max_iter=8)
    return memory.peak_beyond(lambda: model.fit(X, np.arange(n) % n_classes))


def memory_table(scale: float = 1.0) -> str:
    """Return a table of peaks, in bytes an entry and a trained number."""
    rows = []
    for entries, tokens, n_classes, C, dtype in MEMORY_CASES:
        case = int(scale * entries), int(scale * tokens), n_classes, C, dtype
        size = in_process(f"{HERE}.peak", *case)
        numbers = case[1] * (2 if n_classes == 2 else 1 + n_classes)
        rows.append(
            (*case, f"{size / 1e9:.2f} GB", f"{size / case[0]:.0f}", f"{size / numbers:.0f}")
        )
    header = ("entries", "tokens", "classes", "C", "type", "peak", "an entry", "a trained number")
    return pages.table(header, rows)


def main(arguments: list[str] | None = None) -> int:
    parser = command_line.parser("bench_scale", __doc__)
    parser.add_argument("--entries", type=lambda text: int(float(text)), default=22_000_000)
    parser.add_argument("--folder", help="where to write the chunks, which are removed")
    parser.add_argument("--cuda", nargs="?", const="cuda", metavar="DEVICE")
    parser.add_argument("--memory", nargs="?", type=float, const=1.0, metavar="SCALE")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    if options.cuda:
        found = on_cuda(options.entries, options.cuda)
    elif options.memory:
        found = memory_table(options.memory)
    else:
        found = chunks(options.entries, options.folder)
    print(pages.page("Large corpora", "python -m benchmarks.bench_scale", found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
