"""Fits over two processes and over chunks in files, against the fit of one in memory.

``python benchmarks/bench_scale.py`` prints CPU times of two gloo ranks and of memory-mapped chunks,
and the peak memory of a fit on chunks; ``--entries 100_000_000 --folder FOLDER`` writes a corpus of
so many entries there, fits on it and removes it. Each case runs in processes of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
import torch.distributed as dist

from sklearn_clsattn import ChunkedCounts, ClsAttentionClassifier, distributed
from sklearn_clsattn._core.part import ALL, Chunk, Part
from sklearn_clsattn._core.parts import Parts
from sklearn_clsattn._core.reducer import Alone
from sklearn_clsattn._fit_parts import (
    agreeing,
    all_classes,
    check_two_classes,
    documents_in_parts,
    part_in_memory,
)
from sklearn_clsattn._gloo import GlooReducer

N_TOKENS, LENGTH = 50_000, 130
REPEATS = 7


def batches(n_entries: int, n_documents: int = 20_000) -> Iterator[tuple[Any, Any]]:
    """Yield counts and labels: token k has a chance of about 1 / k, some by class."""
    rng, seen = np.random.default_rng(0), 0
    while seen < n_entries:
        y = rng.integers(0, 2, n_documents)
        tokens = (N_TOKENS ** rng.random((n_documents, LENGTH), dtype=np.float32)).astype(np.int32)
        tokens = np.minimum(tokens, N_TOKENS) - 1
        own = (rng.random((n_documents, LENGTH), dtype=np.float32) < 0.1) & (tokens > 100)
        tokens[own] += ((tokens + y[:, None]) % 2)[own] * np.where(tokens < N_TOKENS - 1, 1, 0)[own]
        indptr = np.arange(0, n_documents * LENGTH + 1, LENGTH, dtype=np.int32)
        X = sp.csr_array((np.ones(tokens.size, np.int32), tokens.ravel(), indptr))
        X.resize(n_documents, N_TOKENS)
        X.sum_duplicates()
        seen += X.nnz
        yield X, y


def corpus(n_entries: int) -> tuple[Any, Any]:
    """Return about so many entries in memory."""
    found = list(batches(n_entries))
    return sp.vstack([X for X, _ in found], format="csr"), np.concatenate([y for _, y in found])


def prepared(chunks: Any, summary: Any, reducer: Any = None) -> tuple[Parts, Any]:
    """Return parts that are ready to be evaluated, and a token matrix."""
    parts = Parts(Part(chunks, reducer or Alone(), summary=summary))
    model = ClsAttentionClassifier(C=1.0)
    summaries = agreeing(parts)
    classes, maps = all_classes([summary.classes for summary in summaries])
    documents, _ = documents_in_parts(model, parts, summaries, classes, maps, check_two_classes)
    return parts, np.zeros((documents.shape[1] + 1, 2), np.float32)


def least(function: Any, clock: Any = time.process_time) -> float:
    """Return the least time that a function takes, in seconds."""
    times = []
    for _ in range(REPEATS):
        start = clock()
        function()
        times.append(clock() - start)
    return min(times)


def rank(number: int, size: int, port: int, n_entries: int) -> None:
    """Fit on one of some ranks, and print its CPU time and that of what is sent."""
    torch.set_num_threads(1)
    store = dist.TCPStore("127.0.0.1", port, is_master=False)
    dist.init_process_group(
        "gloo", store=store, rank=number, world_size=size, timeout=timedelta(seconds=300)
    )
    X, y = corpus(n_entries)
    mine = slice(number, None, size)
    X, y = X[mine], y[mine]
    cpu = {"loss": [], "all": 0.0}
    whole = Part.loss

    def loss(self: Part, *arguments: Any) -> Any:
        start = time.process_time()
        result = whole(self, *arguments)
        cpu["loss"].append(time.process_time() - start)
        return result

    Part.loss = loss  # type: ignore[method-assign]
    start, wall = time.process_time(), time.perf_counter()
    model = ClsAttentionClassifier(C=1.0, tol=0.0, max_iter=12)
    distributed.fit(model, X, y)
    result = {
        "rank": number,
        "evaluation": min(cpu["loss"]),
        "fit": time.process_time() - start,
        "wall": time.perf_counter() - wall,
        "n_iter": model.n_iter_,
    }
    if size > 1:  # the point one way, the sums the other, and nothing in between
        reducer = GlooReducer(dist.PrefixStore("alone", store), number, size, 300.0)
        message = "loss", (ALL, 1.0, np.zeros((N_TOKENS + 1, 2), np.float32))
        flat = np.zeros(2 * N_TOKENS + 4)

        def exchange() -> None:
            reducer.send(message if number == 0 else None)
            reducer.sum(flat)

        result["transport"] = least(lambda: [exchange() for _ in range(10)]) / 10
        result["transport wall"] = (
            least(lambda: [exchange() for _ in range(10)], time.perf_counter) / 10
        )
        reducer.close(None)
    print(json.dumps(result), flush=True)
    dist.barrier()


def ranks(size: int, n_entries: int) -> list[dict[str, Any]]:
    """Return what the ranks print."""
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    command = [sys.executable, __file__, "--entries", str(n_entries), "--rank"]
    started = [
        subprocess.Popen(
            [*command, str(number), str(size), str(store.port)], stdout=subprocess.PIPE, text=True
        )
        for number in range(size)
    ]
    return [json.loads(process.communicate()[0].splitlines()[-1]) for process in started]


def forget(folder: Path) -> None:
    """Put the files of a folder out of the system's cache (Linux)."""
    for path in folder.rglob("*.npy"):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def passes(n_entries: int, folder: str) -> dict[str, float]:
    """Return the CPU time of an evaluation, resident and over ten memory-mapped chunks."""
    torch.set_num_threads(1)
    X, y = corpus(n_entries)
    chunks, summary = part_in_memory(X, y, None, "benchmark")
    parts, matrix = prepared(chunks, summary)
    found = {"resident": least(lambda: parts.sum("loss", ALL, 1.0, matrix))}
    step = X.shape[0] // 10 + 1
    cuts = [chunks[0].X[start : start + step] for start in range(0, X.shape[0], step)]
    own = [
        Chunk(part, chunks[0].codes[k * step : (k + 1) * step], np.ones(part.shape[0]))
        for k, part in enumerate(cuts)
    ]
    parts, _ = prepared(own, summary)
    found["resident, 10 chunks"] = least(lambda: parts.sum("loss", ALL, 1.0, matrix))
    counts = ChunkedCounts.write(folder, [(X, y)], chunk_entries=n_entries // 10)
    found["chunks"] = len(counts)
    parts, _ = prepared(counts._read(), counts._summary)
    found["mapped, warm"] = least(lambda: parts.sum("loss", ALL, 1.0, matrix))
    start = time.process_time()
    found_cold = []
    for _ in range(3):
        forget(Path(folder))
        _forget_maps(counts)
        start = time.process_time()
        parts.sum("loss", ALL, 1.0, matrix)
        found_cold.append(time.process_time() - start)
    found["mapped, cold"] = min(found_cold)
    return found


def _forget_maps(counts: ChunkedCounts) -> None:
    """Put the files that the fit keeps, which have no names, out of the cache, too."""
    for name in os.listdir("/proc/self/map_files"):
        path = f"/proc/self/map_files/{name}"
        try:
            if str(counts.path) in os.readlink(path):
                handle = os.open(path, os.O_RDONLY)
                os.fsync(handle)
                os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(handle)
        except OSError:  # not allowed, or gone
            continue


class Peak:
    """The largest resident memory of this process while a block runs, sampled, in bytes."""

    def __enter__(self) -> Peak:
        self.least, self.most, self.anonymous = self._now()[0], 0, 0
        self.least_anonymous = self._now()[1]
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.005):
            whole, anonymous = self._now()
            self.most, self.anonymous = max(self.most, whole), max(self.anonymous, anonymous)

    @staticmethod
    def _now() -> tuple[int, int]:
        lines = dict(
            line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines()
        )
        return tuple(1024 * int(lines[name].split()[0]) for name in ("VmRSS", "RssAnon"))


def out_of_core(folder: str, C: str) -> dict[str, Any]:
    """Fit on a folder of chunks; return time and peak memory beyond the libraries."""
    warnings.simplefilter("ignore")
    from sklearn_clsattn._core import fit  # noqa: F401 - libraries are no part of it

    small = sp.random_array((40, 30), density=0.3, rng=np.random.default_rng(0), format="csr")
    ClsAttentionClassifier(C=1.0).fit(small, np.arange(40) % 2)
    counts = ChunkedCounts(folder)
    start, cpu = time.perf_counter(), time.process_time()
    with Peak() as peak:
        model = ClsAttentionClassifier(C=C if C == "auto" else float(C)).fit_chunks(counts)
    vector = 2 * (counts.shape[1] + 1) * 4
    chunk = sum(
        array.nbytes
        for matrix in (counts._read()[0].X, counts._read()[0].columns)
        for array in (matrix.data, matrix.indices, matrix.indptr)
    )
    return {
        "documents": counts.shape[0],
        "entries": counts.n_entries,
        "chunks": len(counts),
        "C": C,
        "wall": round(time.perf_counter() - start, 1),
        "cpu": round(time.process_time() - cpu, 1),
        "n_iter": model.n_iter_,
        "peak MB": round((peak.most - peak.least) / 1e6),
        "peak without files MB": round((peak.anonymous - peak.least_anonymous) / 1e6),
        "whole process MB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3),
        "chunk MB": round(chunk / 1e6),
        "vector MB": round(vector / 1e6, 1),
    }


def in_process(*arguments: Any) -> Any:
    """Return what this script prints in a process of its own."""
    command = [sys.executable, __file__, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Print the figures."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=22_000_000)
    parser.add_argument("--folder", help="where to write a corpus, fit on it, and remove it")
    parser.add_argument("--chunk-entries", type=int)
    parser.add_argument("--rank", type=int, nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--passes", help=argparse.SUPPRESS)
    parser.add_argument("--fit", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank:
        rank(*options.rank, options.entries)
    elif options.passes:
        print(json.dumps(passes(options.entries, options.passes)))
    elif options.fit:
        print(json.dumps(out_of_core(*options.fit)))
    else:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            _report(options, folder)


def _report(options: argparse.Namespace, folder: str) -> None:
    if not options.folder:
        (one,), (first, second) = ranks(1, options.entries), ranks(2, options.entries)
        for name in ("evaluation", "fit"):
            slowest, both = max(first[name], second[name]), first[name] + second[name]
            print(
                f"{name}: {one[name]:.3f} s CPU on one rank; of two the slowest {slowest:.3f} "
                f"({slowest / one[name]:.2f}), both {both:.3f} ({both / one[name]:.2f})"
            )
        transport = max(first["transport"], second["transport"])
        print(
            f"transport of {N_TOKENS:,} tokens: {1e3 * transport:.2f} ms CPU "
            f"({transport / first['evaluation']:.1%} of an evaluation), "
            f"{1e3 * first['transport wall']:.2f} ms wall"
        )
        found = in_process("--entries", options.entries, "--passes", f"{folder}/passes")
        for name, value in found.items():
            print(f"pass, {name}: {value:.4f} ({value / found['resident']:.2f})")
    start, cpu = time.perf_counter(), time.process_time()
    counts = ChunkedCounts.write(
        f"{folder}/counts", batches(options.entries), chunk_entries=options.chunk_entries
    )
    print(
        f"{counts!r} written in {time.perf_counter() - start:.0f} s "
        f"({time.process_time() - cpu:.0f} s CPU, generating included)"
    )
    size = sum(path.stat().st_size for path in counts.path.rglob("*") if path.is_file())
    print(f"on disk: {size / 1e9:.2f} GB")
    for C in ("1.0", "auto"):
        print(in_process("--fit", counts.path, C))


if __name__ == "__main__":
    main()
