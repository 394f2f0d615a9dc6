"""Fits side by side share the threads that there are, and give them back."""

import gc
import os
import threading

import pytest
import torch
from helpers import data
from numpy.testing import assert_array_equal
from threadpoolctl import threadpool_info, threadpool_limits

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn._core import backend
from sklearn_clsattn._core.backend import ThreadShare, in_threads
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
        with ThreadShare() as shares[i]:
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
    with ThreadShare() as first, ThreadShare() as second, ThreadShare() as third:
        assert (first.n_threads, second.n_threads, third.n_threads) == (1, 1, 1)
    assert torch.get_num_threads() == 2


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_nothing_spins_during_a_fit(eight_threads, monkeypatch):
    """Neither PyTorch nor BLAS has a second thread, and both have their own number back."""
    X, y = data(3, n_documents=300)
    seen, loss = [], _gate_scores.loss_and_gradient

    def watch(*arguments, **options):
        seen.append((torch.get_num_threads(), blas_threads()))

    def watched(*arguments, **options):
        watch()
        return loss(*arguments, **options)

    monkeypatch.setattr(_gate_scores, "loss_and_gradient", watched)
    monkeypatch.setattr(ClsAttentionClassifier, "_report", watch)
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
        with ThreadShare(), ThreadShare() as share:
            assert share.n_threads == 4
            raise RuntimeError("failed")

    with monkeypatch.context() as patch:
        patch.setattr(torch, "set_num_threads", interrupted)
        with pytest.raises(KeyboardInterrupt), ThreadShare():
            pass
    gc.collect()
    for _ in range(3):
        with pytest.raises(RuntimeError, match="failed"):
            fail()
        assert torch.get_num_threads() == 8


def test_the_number_of_threads_does_not_change_the_fit(eight_threads):
    X, y = data(3, n_documents=300)
    decisions = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        decisions.append(ClsAttentionClassifier().fit(X, y).decision_function(X))
        assert torch.get_num_threads() == threads
        assert_array_equal(decisions[-1], decisions[0])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_during_a_fit_does_not_hang_the_child():
    with backend._lock:
        child = os.fork()
        if child == 0:
            done = threading.Event()

            def enter():
                with ThreadShare():
                    done.set()

            threading.Thread(target=enter, daemon=True).start()
            os._exit(0 if done.wait(30) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
