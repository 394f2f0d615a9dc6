"""The benchmark of threads: a tiny problem goes through, idle and busy."""

import torch
from helpers import data

from benchmarks import bench_threads
from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn._core import backend, bag


def test_a_tiny_run(monkeypatch, capsys):
    X, y = data(3)
    threads = []

    def fit():
        ClsAttentionClassifier().fit(X, y)
        threads.append(torch.get_num_threads())

    monkeypatch.setattr(bench_threads, "PROBLEMS", {"tiny": lambda: fit})
    before = torch.get_num_threads(), backend.FEW_MULTIPLICATIONS, bag.BLOCK_ENTRIES
    try:
        assert bench_threads.main(["--runs", "1"]) == 0
    finally:
        torch.set_num_threads(before[0])
    assert threads[1:] == [2, 1, 2, 2, 1, 2]
    assert before[1:] == (backend.FEW_MULTIPLICATIONS, bag.BLOCK_ENTRIES)
    idle, busy = (line.split(" | ") for line in capsys.readouterr().out.splitlines()[-2:])
    assert (idle[:2], busy[:2]) == (["| tiny", "idle"], ["| tiny", "busy"])
