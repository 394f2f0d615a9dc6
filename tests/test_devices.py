"""Where fits compute: threads that they share and give back, and devices that they wait for."""

import gc
import os
import threading

import numpy as np
import pytest
import torch
from helpers import data
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_info, threadpool_limits
from torch.utils._python_dispatch import TorchDispatchMode

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn._core import lbfgs, loss, objective, threads
from sklearn_clsattn._core.products import floats, resolve_device
from sklearn_clsattn._core.threads import ThreadLimit, in_threads
from sklearn_clsattn.text import ContextVectorizer, _gate_scores


@pytest.fixture
def eight_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(8)
    yield
    torch.set_num_threads(before)


def test_fits_side_by_side_share_the_threads(eight_threads):
    """No more threads than there are for all fits, and all of them back at the end."""
    n_fits, shares, seen, leave = 4, {}, {}, threading.Event()
    entered = [threading.Event() for _ in range(n_fits)]

    def fit(i):
        with ThreadLimit() as shares[i]:
            entered[i].set()
            leave.wait(timeout=30)
            assert torch.get_num_threads() == 1
        seen[i] = torch.get_num_threads()

    workers = [threading.Thread(target=fit, args=(i,)) for i in range(n_fits)]
    for i, (worker, event) in enumerate(zip(workers, entered, strict=True)):
        worker.start()
        assert event.wait(timeout=30)
        # Who was there before gives up threads.
        assert [shares[k].n_threads for k in range(i + 1)] == [8 // (i + 1)] * (i + 1)
    leave.set()
    for worker in workers:
        worker.join(timeout=30)
    assert seen == dict.fromkeys(range(n_fits), 8)
    # More fits than threads get one each, and no more than their owner has set.
    torch.set_num_threads(2)
    with ThreadLimit() as first, ThreadLimit() as second, ThreadLimit() as third:
        assert (first.n_threads, second.n_threads, third.n_threads) == (1, 1, 1)
    assert torch.get_num_threads() == 2


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_nothing_spins_during_a_fit(eight_threads, monkeypatch):
    """Neither PyTorch nor BLAS has a second thread, and both have their own number back."""
    X, y = data(3, n_documents=300)
    seen, of_scores = [], _gate_scores.loss_and_gradient

    def watch(*arguments, **options):
        seen.append((torch.get_num_threads(), blas_threads()))

    def watched(*arguments, **options):
        watch()
        return of_scores(*arguments, **options)

    monkeypatch.setattr(_gate_scores, "loss_and_gradient", watched)
    monkeypatch.setattr(ClsAttentionClassifier, "_print_progress", watch)
    with threadpool_limits(2, "blas"):
        before = blas_threads()
        ContextVectorizer(min_df=1).fit(["so good", "so bad"] * 9, [0, 1] * 9)
        of_gates = len(seen)
        ClsAttentionClassifier().fit(X, y)
        assert len(seen) > of_gates > 1
        assert all(one == (1, {1}) for one in seen)
        assert (torch.get_num_threads(), blas_threads()) == (8, before)


def test_threads_take_what_is_left_and_begin_nothing_after_an_error(eight_threads):
    both = threading.Barrier(2, timeout=30)

    def square(x):
        if x < 2:
            both.wait()  # two threads have begun
        return threading.get_ident(), x * x

    torch.set_num_threads(2)
    threads, squares = zip(*in_threads(square, range(20)), strict=True)
    assert len(set(threads)) == 2
    assert squares == tuple(x * x for x in range(20))
    begun = []

    def fail(x):
        begun.append(x)
        both.wait()
        raise RuntimeError("failed")

    with pytest.raises(RuntimeError, match="failed"):
        in_threads(fail, range(20))
    assert len(begun) == 2
    assert torch.get_num_threads() == 2


def test_a_fit_that_fails_or_is_interrupted_gives_its_threads_back(eight_threads, monkeypatch):
    def interrupted(n):
        raise KeyboardInterrupt

    def fail():
        with ThreadLimit(), ThreadLimit() as share:
            assert share.n_threads == 4
            raise RuntimeError("failed")

    with monkeypatch.context() as patch:
        patch.setattr(torch, "set_num_threads", interrupted)
        with pytest.raises(KeyboardInterrupt), ThreadLimit():
            pass
    gc.collect()
    for _ in range(3):
        with pytest.raises(RuntimeError, match="failed"):
            fail()
        assert torch.get_num_threads() == 8


def test_the_number_of_threads_does_not_change_the_fit(eight_threads):
    X, y = data(3, n_documents=300)
    decisions = []
    for n_threads in (1, 2, 3):
        torch.set_num_threads(n_threads)
        decisions.append(ClsAttentionClassifier().fit(X, y).decision_function(X))
        assert torch.get_num_threads() == n_threads
        assert_array_equal(decisions[-1], decisions[0])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_during_a_fit_does_not_hang_the_child():
    with threads._lock:
        child = os.fork()
        if child == 0:
            done = threading.Event()

            def enter():
                with ThreadLimit():
                    done.set()

            threading.Thread(target=enter, daemon=True).start()
            os._exit(0 if done.wait(30) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# Devices

cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


class Counted(TorchDispatchMode):
    """Counts what a device would have to be waited for: numbers that are fetched from tensors."""

    def __init__(self):
        super().__init__()
        self.fetched = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.fetched += function is torch.ops.aten._local_scalar_dense.default
        return function(*args, **(kwargs or {}))


@pytest.fixture
def on_device(monkeypatch):
    """Have the solver treat the CPU as a device of its own, and count fetches."""
    several = []

    def counting(*scalars):
        several.append(len(scalars))
        return floats(*scalars)

    monkeypatch.setattr(lbfgs, "_scalar", lambda product: product)
    monkeypatch.setattr(objective, "floats", counting)
    monkeypatch.setattr(loss, "floats", counting)
    return several


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_fetches_do_not_grow_with_curvature_pairs(on_device, n_classes):
    X, y = data(n_classes, n_documents=200, n_tokens=60)
    X = X.astype(np.float64)
    fetched = []
    for max_iter in (2, 10, 18):
        on_device.clear()
        with Counted() as counted:
            model = ClsAttentionClassifier(C=1.0, tol=0.0, max_iter=max_iter).fit(X, y)
        assert model.n_iter_ == max_iter
        fetched.append(counted.fetched + len(on_device))
    first, later = (np.diff(fetched) / 8).tolist()
    # Two of them are exponentials on the CPU; a line search may need one more evaluation.
    assert first < 16
    assert later < 16


@pytest.mark.parametrize("n_classes", [2, 3])
def test_factors_that_stay_on_the_device_change_nothing(monkeypatch, n_classes):
    X, y = data(n_classes)
    options = {"C": 1.0, "tol": 1e-6}
    expected = ClsAttentionClassifier(**options).fit(X, y)
    monkeypatch.setattr(lbfgs, "_scalar", lambda product: product)
    found = ClsAttentionClassifier(**options).fit(X, y)
    assert found.n_iter_ == expected.n_iter_
    assert_allclose(found.token_values_, expected.token_values_, rtol=1e-7, atol=1e-9)


def test_a_cuda_device_that_is_not_there_is_said(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert resolve_device("cuda:1") == torch.device("cuda:1")
    assert resolve_device("auto") == torch.device("cuda")
    with pytest.raises(ValueError, match=r"'cuda:7'.* finds 2 CUDA"):
        resolve_device("cuda:7")


@cuda
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cuda_fits_the_same_model(n_classes, dtype):
    X, y = data(n_classes, n_documents=200, n_tokens=60)
    X = X.astype(dtype)
    expected, found, extreme = (
        ClsAttentionClassifier(**parameters).fit(X, y)
        for parameters in (
            {"tol": 1e-4},
            {"tol": 1e-4, "device": "cuda"},
            {"C": 1e4, "attention_C": 1e4, "device": "cuda"},  # attention underflows
        )
    )
    assert_allclose(found.predict_proba(X), expected.predict_proba(X), atol=1e-2)
    assert_allclose(found.loss_curve_[-1], expected.loss_curve_[-1], atol=2e-4)
    assert np.isfinite(extreme.predict_proba(X)).all()
