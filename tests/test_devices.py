"""Where fits compute: threads that they share and give back, and devices."""

import multiprocessing
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from helpers import assert_same_fit, data, refused
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_info, threadpool_limits

from sklearn_clsattn import ClsAttentionClassifier, TextClassifier
from sklearn_clsattn.text import ContextVectorizer


def output_that(watch):
    """Return a standard output that calls a function when a fit prints how it goes."""
    return SimpleNamespace(write=lambda text: watch(), flush=lambda: None)


@pytest.fixture
def eight_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(8)
    yield
    torch.set_num_threads(before)


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_nothing_spins_during_a_fit(eight_threads, monkeypatch):
    """Neither PyTorch nor BLAS has a second thread, and both have their own number back."""
    seen = []
    watch = output_that(lambda: seen.append((torch.get_num_threads(), blas_threads())))
    monkeypatch.setattr(sys, "stdout", watch)
    with threadpool_limits(2, "blas"):
        before = blas_threads()
        TextClassifier(min_df=1, verbose=1).fit(["so good", "so bad"] * 9, [0, 1] * 9)
        assert seen
        assert all(one == (1, {1}) for one in seen)
        assert (torch.get_num_threads(), blas_threads()) == (8, before)


def test_nothing_spins_in_the_first_fit_of_a_process():
    """PyTorch, which the fit imports, has one thread while gates are learned."""
    code = """
import sys
from sklearn_clsattn import TextClassifier
from sklearn_clsattn.text import _context_vectorizer

in_background = _context_vectorizer.in_background

def watched(function):
    print(sys.modules["torch"].get_num_threads())
    return in_background(function)

_context_vectorizer.in_background = watched
TextClassifier().fit(["so good", "so bad"] * 9, [0, 1] * 9)
"""
    variables = os.environ | {"OMP_NUM_THREADS": "2"}
    printed = subprocess.run(
        [sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True
    )
    assert {*printed.stdout.split()} == {"1"}


def test_fits_at_the_same_time_are_those_alone_and_give_the_threads_back(eight_threads):
    X, y = data(3, n_documents=300)
    strengths = [0.3, 1.0, 3.0, 10.0]

    def fit(C):
        return ClsAttentionClassifier(C=C).fit(X, y), torch.get_num_threads()

    with ThreadPoolExecutor(4) as pool:
        for C, (model, n_threads) in zip(strengths, pool.map(fit, strengths), strict=True):
            assert_same_fit(model, ClsAttentionClassifier(C=C).fit(X, y))
            assert n_threads == 8
    assert torch.get_num_threads() == 8


def test_a_fit_that_is_interrupted_gives_its_threads_back(eight_threads, monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    X, y = data()
    monkeypatch.setattr(sys, "stdout", output_that(interrupt))
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            ClsAttentionClassifier(verbose=1).fit(X, y)
        assert torch.get_num_threads() == 8


@pytest.mark.parametrize(
    "surroundings",
    [
        torch.autocast("cpu", dtype=torch.bfloat16),
        torch.device("meta"),
        torch.inference_mode(),
    ],
    ids=["autocast", "default device", "inference"],
)
def test_a_fit_is_the_same_whatever_pytorch_is_set_to(surroundings):
    X, y = data()
    alone = ClsAttentionClassifier().fit(X, y)
    text = TextClassifier().fit(["so good", "so bad"] * 9, [0, 1] * 9)
    with surroundings:
        assert_same_fit(ClsAttentionClassifier().fit(X, y), alone)
        assert_same_fit(TextClassifier().fit(["so good", "so bad"] * 9, [0, 1] * 9), text)


def fitted_in_a_child(results):
    X, y = data()
    results.put(ClsAttentionClassifier(C=1.0).fit(X, y).score(X, y))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not fork by default")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_during_a_fit_does_not_hang_the_child(eight_threads, monkeypatch):
    """With helper threads, which the child does not have: a fit would wait for them for ever."""
    fork, inside, done = multiprocessing.get_context("fork"), threading.Event(), threading.Event()

    def wait():
        inside.set()
        done.wait(60)

    X, y = data()
    monkeypatch.setattr(sys, "stdout", output_that(wait))
    fit = threading.Thread(target=ClsAttentionClassifier(verbose=1).fit, args=(X, y))
    fit.start()
    assert inside.wait(60)
    results = fork.Queue()
    child = fork.Process(target=fitted_in_a_child, args=(results,))
    child.start()
    try:
        assert results.get(timeout=60) > 0.5
    finally:
        child.kill()
        done.set()
        fit.join()


def test_blocks_of_many_entries_give_the_same_fit_with_any_number_of_threads(eight_threads):
    rng = np.random.default_rng(0)
    X, y = rng.poisson(1.0, (3000, 200)).astype(float), np.arange(3000) % 2
    X[:, 0] += y
    decisions = []
    for n_threads in (1, 3):
        torch.set_num_threads(n_threads)
        model = ClsAttentionClassifier(C=1.0, tol=0.1).fit(X, y)
        decisions.append(model.decision_function(X))
    assert_array_equal(*decisions)


def long_texts():
    """Texts of several blocks of characters, and of tokens."""
    return [" ".join(f"w{i % n}" for i in range(n, n + 400)) for n in range(2, 902)]


def test_texts_are_counted_alike_with_any_number_of_threads(eight_threads):
    texts = long_texts()
    y = np.arange(len(texts)) % 2
    matrices = []
    for n_threads in (1, 3):
        torch.set_num_threads(n_threads)
        model = ContextVectorizer()
        matrices.append((model.fit_transform(texts, y), model.transform(texts[::-1])))
        assert torch.get_num_threads() == n_threads
    for one, other in zip(*matrices, strict=True):
        assert (one != other).nnz == 0


# Devices

cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


def test_a_cuda_device_that_is_not_there_is_said(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    model = ClsAttentionClassifier(device="cuda:7")
    refused("finds 2 CUDA devices, not cuda:7", model.fit, *data())


@cuda
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cuda_fits_the_same_model(n_classes, dtype):
    X, y = data(n_classes, n_documents=200, n_tokens=60)
    X = X.astype(dtype)
    expected, found = (
        ClsAttentionClassifier(tol=1e-4, device=device).fit(X, y) for device in ("cpu", "cuda")
    )
    extreme = ClsAttentionClassifier(C=1e4, attention_C=1e4, device="cuda")  # attention underflows
    with pytest.warns(ConvergenceWarning):
        extreme.fit(X, y)
    assert_allclose(found.predict_proba(X), expected.predict_proba(X), atol=1e-2)
    assert_allclose(found.loss_curve_[-1], expected.loss_curve_[-1], atol=2e-4)
    assert np.isfinite(extreme.predict_proba(X)).all()
