"""Fits on one and on two workers of a Dask cluster, and how soon a lost worker is noticed.

``python benchmarks/bench_dask.py [--size 1e7] [--timeout 5]``

The documents of bench_cuda.py, in 8 blocks, on workers of one thread. CPU seconds are those of a
worker's process from the call of `fit` to its end, data in the workers' memory. A worker then gets
a signal at a sum in the middle of a fit, and the time is taken from there to the error.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import dask
import dask.array as da
from distributed import Client, LocalCluster, wait

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import bench_cuda, command_line, machine  # noqa: E402
from sklearn_clsattn._gloo import GlooReducer  # noqa: E402
from sklearn_clsattn.dask import DaskClsAttentionClassifier  # noqa: E402

N_BLOCKS, AT_SUM = 8, 12


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    described = machine.describe()
    print("\n".join([machine.summary(described), "", *machine.warning(described)]))
    print("| workers | non-zeros | iterations | s | CPU s, slowest worker | CPU s, all workers |")
    print("|---|---|---|---|---|---|")
    slowest = []
    for n_workers in (1, 2):
        with _cluster(n_workers) as cluster, Client(cluster) as client:
            X, y = _blocks(client, int(options.size))
            model, seconds, cpu = _fit(client, X, y)
            slowest.append(max(cpu))
            print(
                f"| {n_workers} | {int(options.size):,} | {model.n_iter_} | {seconds:.1f} "
                f"| {max(cpu):.1f} | {sum(cpu):.1f} |",
                flush=True,
            )
    print(f"\nThe slowest of two workers takes {slowest[1] / slowest[0]:.2f} of one worker's CPU.")
    for kind in (signal.SIGKILL, signal.SIGSTOP):
        with _cluster(2) as cluster, Client(cluster) as client:
            after, error = _lost(client, kind, options.timeout)
            print(f"{kind.name}, timeout {options.timeout:g} s: after {after:.1f} s, {error}")
    return 0


def _cluster(n_workers: int) -> LocalCluster:
    return LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0")


def _blocks(client: Client, n_entries: int) -> tuple[da.Array, da.Array]:
    """Return documents and labels in the workers' memory."""
    block = dask.delayed(bench_cuda.documents, nout=2)
    shape = max(4, n_entries // N_BLOCKS // bench_cuda.LENGTH), bench_cuda.N_TOKENS
    meta, _ = bench_cuda.documents(0)
    made = [block(n_entries // N_BLOCKS, number) for number in range(N_BLOCKS)]
    X = da.concatenate([da.from_delayed(X, shape, meta=meta[:0]) for X, _ in made])
    y = da.concatenate([da.from_delayed(y, shape[:1], dtype=int) for _, y in made])
    X, y = client.persist([X, y])
    wait([X, y])
    return X, y


def _fit(client: Client, X: Any, y: Any, **options: Any) -> tuple[Any, float, list[float]]:
    """Return the model, seconds, and every worker's CPU seconds, of a second fit."""
    model = DaskClsAttentionClassifier(C=1.0, client=client, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        step = X.shape[0] // 100 | 1  # odd: classes alternate
        model.fit(X[::step], y[::step])  # imports
        before, started = client.run(time.process_time), time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - started
    after = client.run(time.process_time)
    return model, seconds, [after[worker] - before[worker] for worker in after]


def _signal_at(number: int, kind: int, written: str) -> None:
    """Have this process send itself a signal at a sum, and write down when."""
    count, summed = [0], GlooReducer.sum

    def sum_(self: Any, flat: Any) -> Any:
        count[0] += 1
        if count[0] == number:
            Path(written).write_text(str(time.time()))
            os.kill(os.getpid(), kind)
        return summed(self, flat)

    GlooReducer.sum = sum_  # type: ignore[method-assign]


def _lost(client: Client, kind: signal.Signals, timeout: float) -> tuple[float, str]:
    """Return after how many seconds a fit fails whose worker gets a signal, and what it says."""
    X, y = _blocks(client, 1_000_000)
    _fit(client, X, y)
    pids = client.run(os.getpid)
    address = min(pids)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        written = Path(folder) / "time"
        client.run(_signal_at, AT_SUM, kind, str(written), workers=[address])
        try:
            DaskClsAttentionClassifier(C=1.0, client=client, timeout=timeout).fit(X, y)
        except RuntimeError as error:
            return time.time() - float(written.read_text()), str(error)
        finally:
            if kind == signal.SIGSTOP:
                os.kill(pids[address], signal.SIGCONT)
    raise AssertionError("the fit did not fail")


def _parser() -> argparse.ArgumentParser:
    parser = command_line.parser(__file__, __doc__)
    parser.add_argument("--size", type=float, default=1e7)
    parser.add_argument("--timeout", type=float, default=5.0)
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
