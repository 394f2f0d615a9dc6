"""The benchmark of threads: a tiny problem goes through, on one thread and on two."""

from pathlib import Path

import torch
from helpers import data

from benchmarks import bench_threads, problems
from sklearn_clsattn._core import backend


def test_a_tiny_run(monkeypatch, capsys):
    X, y = data(3)
    problem = problems.Problem("tiny", "tiny", Path(), X, y, X, y)
    monkeypatch.setattr(problems, "load", lambda spec, reviews: problem)
    monkeypatch.setattr(problems, "find_reviews", lambda reviews: None)
    monkeypatch.setattr(bench_threads, "SIZES", (50,))
    monkeypatch.setattr(backend, "FEW_MULTIPLICATIONS", backend.FEW_MULTIPLICATIONS)
    before = torch.get_num_threads()
    try:
        assert bench_threads.main(["--runs", "1"]) == 0
    finally:
        torch.set_num_threads(before)
    line = capsys.readouterr().out.splitlines()[-1].split(" | ")
    order = bench_threads.np.random.default_rng(0).permutation(len(y))
    assert line[:3] == ["| tiny", "50", f"{4 * X[order[:50]].nnz:,}"]
