"""The two interfaces of the core: any solver fits, and sums over any split of documents add up."""

import threading
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from numpy.testing import assert_allclose, assert_array_equal
from reference import counts
from scipy.optimize import minimize

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn._core.bag import TokenBag
from sklearn_clsattn._core.documents import Documents
from sklearn_clsattn._core.fit import fit_attention
from sklearn_clsattn._core.fitted import count_selected
from sklearn_clsattn._core.solvers.base import Iterate, SolverResult
from sklearn_clsattn._core.statistics import CorpusStatistics, balancing_factors

CLASSES = pytest.mark.parametrize("n_classes", [2, 3])
SETTINGS = {"C": 1.0, "attention_C": 0.03, "max_iter": 100, "tol": 1e-3}


def documents(n_classes, n_documents=90):
    X = counts(0, n_documents, 25)
    codes = np.arange(n_documents) % n_classes
    X = X.toarray()
    X[np.arange(n_documents), codes] += np.arange(n_documents) % 3  # the classes' own tokens
    X = sp.csr_matrix(X)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, n_documents)
    statistics = CorpusStatistics.of(X, codes, n_classes, weights)
    return Documents(X, codes, weights, statistics)


def lbfgs_of_scipy(function, start, *, is_converged, max_iter, inverse_curvature=None):
    """SciPy's L-BFGS-B as a solver; it has no preconditioner."""
    result = SolverResult(start, [])

    def evaluate(flat):
        value, gradient = function(torch.from_numpy(flat.copy()).reshape(start.shape))
        return value, gradient.numpy().ravel()

    def accept(flat):
        x = torch.from_numpy(flat.copy()).reshape(start.shape)
        value, gradient = function(x)
        result.n_iter += bool(result.values)
        result.x = x
        result.values.append(value)
        if is_converged(Iterate(result.n_iter, x, value, gradient)):
            result.status = "converged"
            raise StopIteration

    try:
        accept(start.numpy().ravel())
        options = {"maxiter": max_iter, "ftol": 0, "gtol": 0}
        method = "L-BFGS-B"
        minimize(
            evaluate,
            start.numpy().ravel(),
            jac=True,
            method=method,
            callback=accept,
            options=options,
        )
    except StopIteration:
        pass
    return result


@CLASSES
def test_another_solver_reaches_the_same_model(n_classes):
    """A solver is one function: SciPy's stands in for ours, and stops by the same gap."""
    settings = {**SETTINGS, "tol": 1e-9, "max_iter": 2000}
    ours = fit_attention(documents(n_classes), **settings)
    other = fit_attention(documents(n_classes), solver=lbfgs_of_scipy, **settings)
    assert ours.status == other.status == "converged"
    assert other.attributes["optimality_gap_"] <= 1e-9
    assert len(other.loss_curve) == other.n_iter + 1
    assert other.loss_curve[-1] == pytest.approx(ours.loss_curve[-1], abs=2e-9)
    assert_allclose(other.model.scores, ours.model.scores, atol=1e-3)
    assert_allclose(other.model.values, ours.model.values, atol=1e-2)


class InThreads:
    """Shards of a corpus, each in a thread of its own, which add up what they hand to `reduce`."""

    def __init__(self, n_shards):
        self._barrier = threading.Barrier(n_shards, timeout=60)
        self._lock = threading.Lock()
        self._sum = None
        self.n_reductions = 0

    def reduce(self, flat):
        """Return the sum over all shards; every shard has to call it as often."""
        with self._lock:
            self._sum = flat.clone() if self._sum is None else self._sum + flat
        self._barrier.wait()
        total = self._sum
        if self._barrier.wait() == 0:
            self._sum = None
            self.n_reductions += 1
        self._barrier.wait()
        return total.clone()

    @classmethod
    def run(cls, function, shards):
        """Return ``function(shard, reduce)`` of every shard, and how many sums there were."""
        together, results = cls(len(shards)), [None] * len(shards)

        def work(k):
            try:
                results[k] = function(shards[k], together.reduce)
            except BaseException as error:  # so that no other shard waits for this one
                together._barrier.abort()
                results[k] = error

        threads = [threading.Thread(target=work, args=[k]) for k in range(len(shards))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return results, together.n_reductions


def cut(corpus, n_shards):
    """Return uneven shards with statistics of their own; of three or more one is empty."""
    n = corpus.X.shape[0]
    bounds = {1: [0, n], 3: [0, 0, 20, n], 7: [0, 3, 4, 4, 30, 31, 70, n]}[n_shards]
    shards = []
    for first, last in pairwise(bounds):
        part = corpus.rows(np.arange(first, last))
        own = CorpusStatistics.of(part.X, part.codes, corpus.n_classes, part.weights)
        shards.append(replace(part, statistics=own))
    return shards


def with_all_statistics(shard, reduce):
    """Return a shard that knows the statistics of all."""
    statistics = shard.statistics.reduced(lambda flat: reduce(torch.from_numpy(flat)).numpy())
    return replace(shard, statistics=statistics)


def balanced(part):
    """Return a part of a corpus in which all classes weigh the same."""
    factors = balancing_factors(part.statistics.class_weights)
    sums = {name: (sum.T * factors).T for name, sum in vars(part.statistics).items()}
    return replace(
        part, weights=part.weights * factors[part.codes], statistics=CorpusStatistics(**sums)
    )


SHARDS = pytest.mark.parametrize("n_shards", [1, 3, 7])


@CLASSES
@SHARDS
def test_statistics_and_selection_counts_add_up(n_classes, n_shards):
    whole = documents(n_classes)
    shards = cut(whole, n_shards)
    parts, n_reductions = InThreads.run(with_all_statistics, shards)
    assert n_reductions == 1
    for part in parts:
        for name, expected in vars(whole.statistics).items():
            assert_allclose(getattr(part.statistics, name), expected, rtol=1e-13, atol=1e-15)
    scores = np.random.default_rng(1).normal(size=whole.X.shape[1])
    counted = sum(count_selected(scores, shard.X) for shard in shards)
    assert_array_equal(counted, count_selected(scores, whole.X))


@CLASSES
@SHARDS
@pytest.mark.parametrize("cls_weight", [2.5, 0.0])
@pytest.mark.parametrize("saturated", ["nowhere", "everywhere", "in one shard"])
def test_loss_and_gradient_of_shards_are_those_of_the_whole(
    n_classes, n_shards, cls_weight, saturated
):
    """One sum a call, also where only some shards take the saturated branch."""
    whole = documents(n_classes)
    matrix = whole.loss(TokenBag(whole.X)).zeros()
    generator = torch.Generator().manual_seed(0)
    matrix += torch.randn(matrix.shape, generator=generator, dtype=torch.float64)
    if saturated == "everywhere":
        matrix[:-1, 0] *= 2000
    elif saturated == "in one shard":  # one token far above all others, in few documents
        matrix[int(np.argmin(np.diff(whole.X.tocsc().indptr)[:20])), 0] += 600

    def evaluate(shard, reduce):
        loss = shard.loss(TokenBag(shard.X), cls_weight=cls_weight, reduce=reduce)
        return loss.total_weight, *loss.mean(matrix.clone())

    expected = evaluate(whole, None)
    results, n_reductions = InThreads.run(evaluate, cut(whole, n_shards))
    assert n_reductions == 2  # of the total weight, and of loss and gradient together
    for total, loss, gradient in results:
        assert total == pytest.approx(expected[0], rel=1e-13)
        assert loss == pytest.approx(expected[1], rel=1e-13)
        scale = float(expected[2].abs().max())
        assert_allclose(gradient, expected[2], rtol=1e-13, atol=1e-13 * scale)


@CLASSES
@SHARDS
@pytest.mark.parametrize(
    "changed",
    [{}, {"attend_cls": False}, {"scaling": None, "C": 3.0}],
    ids=["default", "without <cls>", "unscaled"],
)
def test_a_fit_of_shards_is_that_of_the_whole(n_classes, n_shards, changed):
    """The default, and what takes other branches; classes are balanced, by their sums alone."""
    whole, settings = balanced(documents(n_classes)), {**SETTINGS, **changed}

    def train(shard, reduce):
        return fit_attention(
            balanced(with_all_statistics(shard, reduce)), reduce=reduce, **settings
        )

    expected = fit_attention(whole, **settings)
    assert np.ptp(whole.statistics.class_weights) < 1e-12 * whole.statistics.total_weight
    for result in InThreads.run(train, cut(whole, n_shards))[0]:
        assert result.n_iter == expected.n_iter
        assert_allclose(result.loss_curve, expected.loss_curve, rtol=1e-12)
        assert_allclose(result.model.token_matrix(), expected.model.token_matrix(), rtol=1e-8)


def test_fit_is_the_core_on_validated_documents():
    """What the estimator stores is what `fit_attention` returns, so the above is about it."""
    whole = documents(3)
    options = {"C": SETTINGS["C"], "tol": SETTINGS["tol"], "sublinear_counts": False}
    model = ClsAttentionClassifier(**options).fit(whole.X, whole.codes, whole.weights)
    expected = fit_attention(whole, **SETTINGS)
    assert model.n_iter_ == expected.n_iter
    assert_array_equal(model.attention_scores_, expected.model.scores)
