"""Ranks in threads, and the documents of tests on several ranks."""

import itertools
import threading

import numpy as np
import scipy.sparse as sp

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn._core.parts import PartFailedError
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.distributed import fit_over


class InThreads:
    """A reducer between threads of one process; `n_sums` counts sums over the ranks."""

    def __init__(self, rank, others):
        self.rank, self.size, self._all = rank, others["size"], others
        self.n_sums = 0

    @classmethod
    def of(cls, size):
        """Return the reducers of some ranks."""
        together = {"size": size, "barrier": threading.Barrier(size, timeout=10)}
        together["given"] = [None] * size
        return [cls(rank, together) for rank in range(size)]

    def _exchange(self, value):
        self._all["given"][self.rank] = value
        self._wait()
        given = list(self._all["given"])
        self._wait()
        return given

    def _wait(self):
        try:
            self._all["barrier"].wait()
        except threading.BrokenBarrierError:
            raise PartFailedError("another rank is gone", lost=True) from None

    def send(self, message):
        """Return the message of rank 0."""
        return self._exchange(message)[0]

    def sum(self, flat):
        """Return the sum over the ranks, in rank 0."""
        self.n_sums += 1
        given = self._exchange(flat.copy())
        return np.sum(given, axis=0) if self.rank == 0 else flat

    def gather(self, value):
        """Return all ranks' values, in rank 0."""
        return self._exchange(value)

    def close(self, error):
        """Let no other rank wait for one with an error."""
        if error is not None and not isinstance(error, ValueError | PartFailedError):
            self._all["barrier"].abort()


def run(function, reducers):
    """Return what a function of (rank, reducer) returns, or the error that it raises."""
    results = [None] * len(reducers)

    def work(rank):
        try:
            results[rank] = function(rank, reducers[rank])
        except Exception as error:
            results[rank] = error

    threads = [threading.Thread(target=work, args=[rank]) for rank in range(len(reducers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def fitted(reducers, corpora, **parameters):
    """Return every rank's model of its (X, y, ...), or its error."""

    def fit(rank, reducer):
        X, y, weights = (*corpora[rank], None)[:3]
        return fit_over(ClsAttentionClassifier(**parameters), reducer, X, y, weights)

    return run(fit, reducers)


def documents(n_classes=2, n_documents=300, weighted=True):
    """Return counts in double precision, labels and weights; some documents stand there twice."""
    X, y = make_token_classification(n_documents, n_classes=n_classes, random_state=0)
    again = np.arange(0, n_documents, 7)
    X = sp.csr_array(sp.vstack([X, X[again]])).astype(float)
    y = np.array(["bad", "fair", "good"])[np.concatenate([y, y[again]])]
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    weights[5:9] = 0.0 if weighted else 1.0
    return X, y, weights


def cut(bounds, *arrays):
    """Return rows of all arrays between bounds."""
    return [
        tuple(array[first:last] for array in arrays) for first, last in itertools.pairwise(bounds)
    ]


def assert_same(model, expected, tol=1e-10):
    """Two fits took the same way to the same model."""
    assert model.n_iter_ == expected.n_iter_
    assert model.classes_.tolist() == expected.classes_.tolist()
    for name in (
        *("C_", "attention_scores_", "token_values_", "intercept_", "cls_score_", "cls_weight_"),
        *("loss_curve_", "token_importance_", "optimality_gap_"),
    ):
        np.testing.assert_allclose(
            getattr(model, name), getattr(expected, name), rtol=tol, atol=tol, err_msg=name
        )
    np.testing.assert_array_equal(model.selected_tokens_, expected.selected_tokens_)
    np.testing.assert_array_equal(model.selection_counts_, expected.selection_counts_)
