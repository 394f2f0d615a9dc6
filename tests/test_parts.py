"""Fits on a corpus in parts and in chunks are those of the whole."""

from copy import copy
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from ranks import InThreads, assert_same, cut, documents, fitted, run
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier, ClsAttentionClassifierCV
from sklearn_clsattn._core import folds
from sklearn_clsattn._core.bag import TokenBag
from sklearn_clsattn._core.documents import Documents
from sklearn_clsattn._core.leave_one_out import random_directions
from sklearn_clsattn._core.part import Chunk, Part
from sklearn_clsattn._core.parts import DocumentsInParts, Parts, group_documents, serve
from sklearn_clsattn._core.reducer import Alone
from sklearn_clsattn._core.statistics import CorpusStatistics
from sklearn_clsattn._fit_parts import learn_parts
from sklearn_clsattn.distributed import fit_over
from sklearn_clsattn.paper import OneStepClassifier

pytestmark = pytest.mark.filterwarnings("ignore:[0-9] workers have:UserWarning")


def whole(n_classes):
    X, y, weights = documents(n_classes, 90)
    codes = np.unique(y, return_inverse=True)[1]
    return Documents(X, codes, weights, CorpusStatistics.of(X, codes, n_classes, weights))


def sums_of(corpus, bounds_of_ranks, asked):
    """Return what rank 0 learns from `asked`, for ranks of chunks between bounds."""
    n_classes, n_tokens = corpus.n_classes, corpus.X.shape[1]

    def work(rank, reducer):
        chunks = [
            Chunk(*chunk)
            for chunk in cut(bounds_of_ranks[rank], corpus.X, corpus.codes, corpus.weights)
        ]
        part = Part(chunks, reducer)
        if rank:
            return serve(part)
        parts = Parts(part)
        parts.sum("totals", [np.arange(n_classes)] * reducer.size, n_classes, 0)
        factors = np.ones(n_classes)
        parts.statistics = parts.sum("prepare", factors, None, np.float64, np.float64, n_tokens)
        result = asked(parts)
        reducer.send(("stop", None))
        return result

    reducers = InThreads.of(len(bounds_of_ranks)) if len(bounds_of_ranks) > 1 else [Alone()]
    results = run(work, reducers)
    if isinstance(results[0], Exception):
        raise results[0]
    return results[0], reducers


SPLITS = pytest.mark.parametrize(
    "bounds",
    [
        [[0, 103]],
        [[0, 3, 4, 4, 30, 31, 70, 103]],
        [[0, 50], [50, 103]],
        [[0, 0], [0, 20, 21], [21, 21, 103, 103]],
    ],
    ids=["whole", "7 chunks", "2 ranks", "3 ranks of chunks"],
)


@SPLITS
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("cls_weight", [2.5, 0.0])
@pytest.mark.parametrize("saturated", ["nowhere", "everywhere", "in one part"])
def test_one_sum_gives_loss_and_gradient(bounds, n_classes, cls_weight, saturated):
    corpus = whole(n_classes)
    loss = corpus.loss(TokenBag(corpus.X), cls_weight=cls_weight)
    matrix = loss.zeros()
    matrix += torch.randn(matrix.shape, generator=torch.manual_seed(0), dtype=torch.float64)
    if saturated == "everywhere":
        matrix[:-1, 0] *= 2000
    elif saturated == "in one part":  # one token far above all others, in few documents
        matrix[int(np.argmin(np.bincount(corpus.X.indices))), 0] += 600
    value, gradient = loss(matrix)
    flat, _ = sums_of(corpus, bounds, lambda parts: parts.sum("loss", cls_weight, matrix.numpy()))
    assert flat[-1] == pytest.approx(value, rel=1e-12)
    scale = float(gradient.abs().max())
    assert_allclose(flat[:-1], gradient.reshape(-1), rtol=1e-12, atol=1e-12 * scale)


@SPLITS
def test_statistics_counts_groups_and_sample_are_those_of_the_whole(bounds, monkeypatch):
    monkeypatch.setattr(folds, "SAMPLE_SIZE", 40)
    corpus = whole(3)
    scores = np.random.default_rng(1).normal(size=corpus.X.shape[1])

    def ask(parts):
        found = parts.statistics, parts.sum("selected", scores)
        n_different, sample = DocumentsInParts(
            parts, corpus.statistics, corpus.X.shape, corpus.X.nnz
        ).sample()
        projections = parts.gather("projections", random_directions(corpus.X.shape[1]))
        return *found, n_different, sample, group_documents(projections, 3)

    found, _ = sums_of(corpus, bounds, ask)
    statistics, counts, n_different, sample, (_, rows, _, _, copies, own) = found
    assert_allclose(statistics, corpus.statistics.flat(), rtol=1e-13)
    assert_array_equal(counts, corpus.count_selected(scores))
    expected, expected_sample = corpus.sample()
    assert n_different == expected > 40
    assert 30 < len(sample.codes) < 50
    assert_array_equal(sample.X.toarray(), expected_sample.X.toarray())
    assert_array_equal(sample.codes, expected_sample.codes)
    assert_array_equal(sample.weights, expected_sample.weights)
    assert_allclose(sample.statistics.flat(), expected_sample.statistics.flat())
    first = np.array([of_rank[0] for of_rank in bounds])
    assert sum(map(len, rows)) == len(sample.codes)
    copied = np.concatenate([rows + start for (rows, _), start in zip(copies, first, strict=True)])
    assert_array_equal(copied, np.flatnonzero(np.bincount(corpus.groups)[corpus.groups] > 1))
    assert own.sum() == pytest.approx(corpus.weights[copied].sum())


SETTINGS = pytest.mark.parametrize(
    "changed",
    [
        {},
        {"C": 1.0, "tol": 1e-3},
        {"attend_cls": False},
        {"token_scaling": None, "C": 3.0},
        {"sublinear_counts": False},
        {"class_weight": "balanced"},
        {"class_weight": {"bad": 2.0}},
    ],
    ids=str,
)


@SETTINGS
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_fit_on_ranks_is_that_of_the_whole(n_classes, changed):
    """C="auto" included: it is chosen on documents of all ranks."""
    X, y, weights = documents(n_classes)
    order = np.argsort(y, kind="stable")  # ranks do not have all classes
    X, y, weights = X[order], y[order], weights[order]
    expected = ClsAttentionClassifier(**changed).fit(X, y, weights)
    bounds = [0, 0, 130, len(y)]
    models = fitted(InThreads.of(3), cut(bounds, X, y, weights), **changed)
    for model in models:
        assert not isinstance(model, Exception), model
        assert_same(model, expected)
    assert_array_equal(models[0].predict_proba(X), models[2].predict_proba(X))


def test_counts_in_single_precision_agree_to_it():
    X, y, _ = documents(3)
    X = X.astype(np.int64)
    expected = ClsAttentionClassifier(C=1.0).fit(X, y)
    model = fitted(InThreads.of(2), cut([0, 100, len(y)], X, y), C=1.0)[0]
    assert model.n_iter_ == expected.n_iter_
    assert_allclose(model.attention_scores_, expected.attention_scores_, atol=1e-5)
    assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-3)


@settings(deadline=None, max_examples=5)
@given(st.lists(st.integers(0, 57), min_size=1, max_size=3), st.integers(0, 99))
def test_any_split_gives_the_same_fit(bounds, seed):
    """To six digits: with few documents, rounding may be magnified."""
    X, y, _ = documents(2, 50)
    bounds = [0, *sorted(bounds), len(y)]
    weights = np.random.default_rng(seed).choice([0.0, 1.0, 2.0], len(y))
    expected = ClsAttentionClassifier().fit(X, y, weights)
    models = fitted(InThreads.of(len(bounds) - 1), cut(bounds, X, y, weights))
    for model in models:
        assert not isinstance(model, Exception), model
        assert_same(model, expected, 1e-6)


def test_one_sum_an_evaluation():
    X, y, _ = documents()
    reducers = InThreads.of(2)
    parameters = {"C": 1.0, "token_scaling": None, "tol": 1e-4}
    model = fitted(reducers, cut([0, 100, len(y)], X, y), **parameters)[0]
    # Before: totals, statistics, a clean slate, squared attention; after: counts.
    n_evaluations = reducers[0].n_sums - 5
    assert model.n_iter_ + 1 <= n_evaluations <= 2 * model.n_iter_ + 2
    assert reducers[1].n_sums == reducers[0].n_sums


@pytest.mark.parametrize("name", ["loss", "projections", "take_copies", "entries"])
@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_fails_is_named_by_all(name, rank, monkeypatch):
    X, y, _ = documents()
    whole = getattr(Part, name)

    def failing(self, *arguments):
        if self.reducer.rank == rank:
            monkeypatch.setattr(self, "_prepared", lambda: 1 / 0)
        return whole(self, *arguments)

    monkeypatch.setattr(Part, name, failing)
    for error in fitted(InThreads.of(3), cut([0, 100, 200, len(y)], X, y)):
        assert isinstance(error, RuntimeError)
        assert f"rank {rank} failed with ZeroDivisionError: division by zero" in str(error)


def test_the_others_hear_of_every_step_of_the_choice(monkeypatch):
    X, y, _ = documents()
    messages = []
    whole = Part.keep_alive
    monkeypatch.setattr(
        Part, "keep_alive", lambda self: messages.append(self.reducer.rank) or whole(self)
    )
    model = fitted(InThreads.of(2), cut([0, 100, len(y)], X, y))[0]
    assert messages.count(0) == messages.count(1) > 2 * model.scores_.size


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda X, y: (X[:, :-1], y), r"same tokens .* rank 1 has 539 .*0 has 540"),
        (lambda X, y: (-X, y), r"rank 1: ValueError: Negative values"),
        (lambda X, y: (X, y[1:]), r"rank 1: ValueError: X has .* but y is of shape"),
        (lambda X, y: (X, np.arange(len(y)) % 2), r"labels of one type, .* rank 1: \[0, 1\]"),
        (lambda X, y: (X, y, np.full(len(y), np.nan)), "rank 1: ValueError: .*sample_weight"),
        (lambda X, y: (["a text"], ["bad"]), "rank 1: ValueError: X holds texts"),
    ],
)
def test_what_is_wrong_on_one_rank_is_said_on_all(change, said):
    X, y, _ = documents()
    first, second = cut([0, 100, len(y)], X, y)
    for error in fitted(InThreads.of(2), [first, change(*second)]):
        with pytest.raises(ValueError, match=said):
            raise error


def test_parameters_have_to_be_the_same_everywhere():
    X, y, _ = documents()
    parts = cut([0, 100, len(y)], X, y)

    def fit(rank, reducer):
        return fit_over(ClsAttentionClassifier(C=1.0 + rank), reducer, *parts[rank], None)

    for error in run(fit, InThreads.of(2)):
        with pytest.raises(ValueError, match=r"same parameters of the classifier .* rank 1"):
            raise error


def test_one_class_alone_is_an_error_everywhere():
    X, y, _ = documents()
    X, y = X[y == "bad"], y[y == "bad"]
    for error in fitted(InThreads.of(2), cut([0, 60, len(y)], X, y)):
        with pytest.raises(ValueError, match="y holds one class only: 'bad'"):
            raise error


def test_a_failed_fit_leaves_the_model_as_it_was():
    X, y, _ = documents()
    models = [ClsAttentionClassifier(C=1.0).fit(X, y) for _ in range(2)]
    before = [vars(model).copy() for model in models]
    parts = cut([0, 100, len(y)], X, y)
    parts[1] = parts[1][0][:, 1:], parts[1][1]
    errors = run(
        lambda rank, reducer: fit_over(models[rank], reducer, *parts[rank], None), InThreads.of(2)
    )
    assert all(isinstance(error, ValueError) for error in errors)
    assert [vars(model) for model in models] == before


def refusals(model, *rest, labels=True):
    """Return the errors of two ranks that fit copies of a model."""
    X, y, _ = documents()
    parts = cut([0, 100, len(y)], X, y)

    def fit(rank, reducer):
        Xs, ys = parts[rank]
        return fit_over(copy(model), reducer, Xs, ys if labels else None, None, *rest)

    return [str(error) for error in run(fit, InThreads.of(2))]


@pytest.mark.parametrize(
    "model",
    [
        ClsAttentionClassifierCV(),
        OneStepClassifier(),
        make_pipeline(CountVectorizer(), ClsAttentionClassifier()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_what_is_not_fitted_over_processes_says_what_is(model):
    said = f"rank 1: TypeError: Expected a ClsAttentionClassifier, got {type(model).__name__}, "
    for rest in ((), (partial(learn_parts, classes=None),)):
        for error in refusals(model, *rest):
            assert said in error
            assert "pass ClsAttentionClassifier()" in error


def test_why_there_is_no_partial_fit_is_said():
    X, y, _ = documents()
    learn = partial(learn_parts, classes=None)
    for model, why in (
        (ClsAttentionClassifier(class_weight="balanced"), "class_weight='balanced' needs all"),
        (ClsAttentionClassifier(C=1.0).fit(X, y), "fit remembers no documents"),
    ):
        for error in refusals(model, learn):
            assert f"rank 1: AttributeError: There is no partial_fit here, because {why}" in error


def test_labels_that_are_not_passed():
    for error in refusals(ClsAttentionClassifier(), labels=False):
        assert "rank 1: ValueError: There are no labels: pass y_local." in error
