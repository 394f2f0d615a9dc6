"""The benchmark of devices runs where there is none, and its documents can be learned."""

import pytest
import torch

from benchmarks import bench_cuda
from sklearn_clsattn import ClsAttentionClassifier


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_tiny_run_without_a_device(capsys):
    assert bench_cuda.main(["--sizes", "1e4"]) == 0
    printed = capsys.readouterr().out
    assert "There is no CUDA device here." in printed
    assert "| cpu |" in printed
    assert "| ratio |" not in printed


def test_documents():
    X, y = bench_cuda.documents(20_000)
    assert X.shape == (200, bench_cuda.N_TOKENS)
    assert X.sum() == 20_000
    assert ClsAttentionClassifier(C=1.0).fit(X, y).score(X, y) > 0.8
