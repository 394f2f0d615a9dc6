"""Training of p by gradient flow: Theorem 4.3, how training ends, and what it leaves."""

from itertools import pairwise

import numpy as np
import pytest
import reference
import scipy.sparse as sp
import torch
from helpers import documents
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_clsattn._core.objective import encode_targets
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.importance import signed_frequency
from sklearn_clsattn.paper import _gradient_flow
from sklearn_clsattn.paper._gradient_flow import UNSELECTED_ATTENTION, fit_one_step
from sklearn_clsattn.theory import check_single_relevant_token, max_margin_direction
from sklearn_clsattn.theory._gradient_step import draw_embeddings
from sklearn_clsattn.theory._token_embeddings import ExplicitEmbeddings, LimitEmbeddings

CLASSES = pytest.mark.parametrize("n_classes", [2, 3])
DIMENSIONS = pytest.mark.parametrize("dimension", [None, 200])


def assumption_1(n_classes=2, seed=0, *, n_documents=120, n_relevant=5, n_irrelevant=40, length=10):
    """Return data that satisfies Assumption 1, and which entries are relevant."""
    bunch = make_token_classification(
        n_documents,
        n_classes=n_classes,
        n_relevant_per_class=n_relevant,
        n_irrelevant=n_irrelevant,
        document_length=length,
        delta=0,
        single_relevant=True,
        random_state=seed,
        return_X_y=False,
    )
    X, y = sp.csr_matrix(bunch.data), bunch.target
    check = check_single_relevant_token(X, y)
    assert check
    return X, y, check.relevant_tokens


def flow(X, y, weights=None, *, size=1.0, step_size=None, dimension=None, **settings):
    """Fit by a step of `step_size`, or by `size` times that of the default rule in the limit."""
    d = documents(X, y, weights)
    settings = {"seed": 0, "max_iter": 2000, "tol": 1e-9, **settings}
    settings = {"solver": "flow", "flow_tol": 1e-3, **settings}
    if step_size is None and size != 1.0:
        nothing_trained = {**settings, "max_iter": 0, "callback": None}
        default = fit_one_step(d, step_size=None, embedding_dim=None, **nothing_trained)
        step_size = size * default.attributes["step_size_"]
    return fit_one_step(d, step_size=step_size, embedding_dim=dimension, **settings)


def embeddings_and_p(model):
    """Return E and p of a fitted model; in the limit [I | S], and the p in the span of its rows.

    There the step wrote S, the values, and p started at 0 and moved along rows of E alone.
    """
    if model.embeddings is not None:
        E = torch.from_numpy(model.embeddings.token_embeddings())
        return ExplicitEmbeddings(E), model.embeddings.cls_embedding
    S = model.values
    m = np.linalg.solve(np.eye(len(S)) + S @ S.T, model.scores)
    return LimitEmbeddings(torch.from_numpy(S)), np.concatenate([m, S.T @ m])


def one_less_cosine(a, b):
    return 1 - a @ b / np.linalg.norm(a) / np.linalg.norm(b)


def distance_from_max_margin(fit, X, selected):
    """Return 1 less the cosine between p and the exact max-margin direction of a selection."""
    embeddings, p = embeddings_and_p(fit.model)
    return one_less_cosine(max_margin_direction(embeddings, X, selected).direction, p)


def assert_theorem_4_3(fit, X, relevant):
    """Require that p selects the relevant tokens, and is their max-margin direction."""
    assert fit.status == "converged"
    selected = fit.model.selected(X)
    assert_array_equal(selected.toarray(), relevant.toarray())
    assert distance_from_max_margin(fit, X, selected) < 1e-8


def share_found(fit, X, relevant):
    return fit.model.selected(X).multiply(relevant).sum() / relevant.sum()


class Selections:
    """A callback that notes what every step selects."""

    def __init__(self, X):
        self.X, self.seen = X, []

    def __call__(self, progress):
        self.seen.append(progress.model().selected(self.X))
        return False

    def changes(self):
        """Return in how many entries each step's selection differs from the last one's."""
        return [(after != before).nnz for before, after in pairwise(self.seen)]


SIZES = [
    {"n_documents": 60, "n_relevant": 2, "n_irrelevant": 10, "length": 5},
    {"n_documents": 120, "n_relevant": 5, "n_irrelevant": 40, "length": 10},
    {"n_documents": 402, "n_relevant": 8, "n_irrelevant": 150, "length": 20},
    {"n_documents": 804, "n_relevant": 10, "n_irrelevant": 300, "length": 30},
]


@pytest.mark.parametrize("seed", range(8))
def test_theorem_4_3(seed):
    """Data of Assumption 1: every important token is selected, and p is the max-margin direction.

    The cosine exceeds 0.9999.
    """
    X, y, relevant = assumption_1(seed=seed, **SIZES[seed % len(SIZES)])
    assert_theorem_4_3(flow(X, y), X, relevant)


@pytest.mark.parametrize("size", range(4))
def test_theorem_4_3_with_three_classes(size):
    """The theorem is about two; by the default step it holds for more all the same."""
    X, y, relevant = assumption_1(3, size, **SIZES[size])
    assert_theorem_4_3(flow(X, y), X, relevant)


def test_descent_by_large_steps_is_not_gradient_flow():
    """Beyond the default step it can end with one class's documents selecting irrelevant tokens."""
    X, y, relevant = assumption_1(3, 1, **SIZES[3])
    for solver, share in (("flow", 1), ("descent", 2 / 3)):
        fit = flow(X, y, size=1.9, solver=solver, max_iter=1000 if solver == "flow" else 100)
        assert fit.status == ("converged" if share == 1 else "selection")
        assert share_found(fit, X, relevant) == pytest.approx(share, abs=0.05)


@CLASSES
def test_theorem_4_3_in_finite_dimensions(n_classes):
    X, y, relevant = assumption_1(n_classes)
    assert_theorem_4_3(flow(X, y, dimension=4096), X, relevant)


def test_training_for_longer_tends_to_the_same_direction():
    """What the second phase is in place of."""
    X, y, _ = assumption_1()
    fit, points = flow(X, y), []

    def note(progress):
        points.append(progress.model().scores)
        return len(points) > 400

    descent = flow(X, y, solver="descent", callback=note)
    assert descent.status == "converged"  # it settles long before, and goes no further
    assert len(points) < 100
    at_the_end = one_less_cosine(points[-1], fit.model.scores)
    assert at_the_end < 0.02
    assert at_the_end < one_less_cosine(points[5], fit.model.scores)


def test_other_step_sizes():
    """Noise drowns a step that is too short; one that saturates the loss selects all the same."""
    X, y, relevant = assumption_1(seed=1)
    for size in (0.05, 1.0, 5.0, 8.0):
        fit = flow(X, y, size=size)
        assert ("saturates" in fit.warning) == (size > 5)
        assert fit.status == "converged"
        assert share_found(fit, X, relevant) == 1

    # In few dimensions a short step is drowned by the noise of random embeddings.
    fit = flow(X, y, size=0.02, dimension=400, max_iter=300)
    assert "drowned" in fit.warning
    assert share_found(fit, X, relevant) < 1


@CLASSES
@DIMENSIONS
def test_what_is_returned(n_classes, dimension):
    X, y, _ = assumption_1(n_classes)
    selections = Selections(X)
    fit = flow(X, y, dimension=dimension, tol=1e-6, callback=selections)
    assert fit.status == "converged"
    assert fit.not_converged == ""
    assert len(fit.loss_curve) == fit.n_iter + 1 == len(selections.seen)
    assert fit.loss_curve[-1] < fit.loss_curve[0]
    changes = selections.changes()
    assert changes[0] > 0
    assert not any(changes[-30:])
    directions = fit.attributes["direction_curve_"]
    assert (np.diff(directions) <= 0).all()
    assert directions[-1] <= 1e-6
    model = fit.model
    assert not model.intercept.any()
    assert model.cls_weight == 0
    assert model.scores.dtype == np.float64
    if dimension is None:
        assert model.embeddings is None
        importance = 0.5 if n_classes == 2 else 1.0
        importance *= signed_frequency_of(X, y) * fit.attributes["step_size_"]
        assert_allclose(model.values, importance, atol=1e-14)
    else:
        E, p = model.embeddings.token_embeddings(), model.embeddings.cls_embedding
        assert p.shape == (dimension,)
        assert p.dtype == np.float64
        assert_allclose(E @ p, model.scores, atol=1e-9)
        assert_allclose(E @ model.embeddings.output_vectors.T, model.values, atol=1e-14)


def signed_frequency_of(X, y):
    """Return the importance by the paper's definition, shape (n_tokens, n_outputs)."""
    statistics = documents(X, y).statistics
    importance = signed_frequency(statistics.shares, statistics.class_weights)
    return importance[:, None] if importance.ndim == 1 else importance.T


@CLASSES
@DIMENSIONS
def test_hardly_any_attention_is_left_on_unselected_tokens(n_classes, dimension):
    for scale in (1, 50) if dimension is None else (1,):
        X, y, _ = assumption_1(n_classes)
        # Irrelevant tokens that are frequent in their documents: longer p are needed.
        X = X.astype(float)
        relevant = check_single_relevant_token(X, y).relevant_tokens
        X = sp.csr_matrix(X.multiply(scale) - relevant.multiply(X) * (scale - 1))
        fit = flow(X, y, dimension=dimension)
        assert fit.status == "converged"
        on_selected = fit.model.attention(X).multiply(fit.model.selected(X)).sum(axis=1)
        left = 1 - np.asarray(on_selected).ravel()
        assert left.max() <= UNSELECTED_ATTENTION * (1 + 1e-9)
        assert left.max() > UNSELECTED_ATTENTION / 100  # nor is p longer than it need be


def test_ending_by_request():
    X, y, _ = assumption_1()
    seen = []

    def callback(progress):
        seen.append((progress.n_iter, progress.loss, progress.criterion, progress.model()))
        return len(seen) == 8

    fit = flow(X, y, callback=callback)
    assert (fit.status, fit.n_iter) == ("stopped", 7)
    assert fit.not_converged == ""
    assert [step[0] for step in seen] == list(range(8))
    assert [step[1] for step in seen] == fit.loss_curve
    assert len(fit.attributes["direction_curve_"]) == 0
    last = seen[-1][3]
    assert_array_equal(last.scores, fit.model.scores)
    attention = last.attention(X).multiply(last.selected(X)).sum(axis=1)
    criteria = [step[2] for step in seen]
    assert criteria[-1] == pytest.approx(1 - np.asarray(attention).min(), abs=1e-12)
    assert criteria[0] < 1e-12 < criteria[-1] < criteria[1]  # at first all scores are tied


def test_ending_before_the_selection_has_settled():
    X, y, _ = assumption_1()
    fit = flow(X, y, max_iter=30, dimension=200)
    assert (fit.status, fit.n_iter) == ("selection", 30)
    assert "have not settled (they changed in" in fit.not_converged
    assert len(fit.loss_curve) == 31
    assert len(fit.attributes["direction_curve_"]) == 0
    embeddings, p = embeddings_and_p(fit.model)
    assert_allclose(embeddings.scores(torch.from_numpy(p)), fit.model.scores, atol=1e-12)


def test_ending_before_the_direction_has_converged(monkeypatch):
    monkeypatch.setattr(_gradient_flow, "PASSES_PER_STEP", 1)
    X, y, _ = assumption_1(n_documents=400, n_irrelevant=150, length=20)
    fit = flow(X, y, tol=1e-14, max_iter=32, solver="descent")
    assert fit.status == "direction"
    assert "not certified" in fit.not_converged
    certified = fit.attributes["direction_curve_"][-1]
    assert 1e-14 < certified < 0.1
    # What was found is kept all the same, and is as near as its certificate says.
    assert distance_from_max_margin(fit, X, fit.model.selected(X)) < certified + 1e-9


@CLASSES
@DIMENSIONS
def test_the_gradient_of_p_is_0(n_classes, dimension):
    y = np.arange(6) % n_classes
    single = sp.csr_matrix(np.eye(6) * 3.0)  # every document has one token only
    for X in (single, sp.csr_matrix((6, 4))):
        fit = flow(X, y, dimension=dimension)
        assert (fit.status, fit.n_iter) == ("no_gradient", 0)
        assert "gradient of p is 0" in fit.not_converged
        assert len(fit.loss_curve) == 1
        assert len(fit.attributes["direction_curve_"]) == 0
        if dimension is None:
            assert not fit.model.scores.any()
        else:
            n_outputs = fit.model.values.shape[1]
            start = draw_embeddings(X.shape[1], n_outputs, dimension, seed=0).cls_embedding
            assert_array_equal(fit.model.embeddings.cls_embedding, start)
    X = sp.csr_matrix(np.ones((6, 4)))  # all tokens are alike in the limit
    if dimension is None:
        assert flow(X, y).status == "no_gradient"


@CLASSES
def test_documents_of_a_single_token_and_without_any_change_nothing_of_the_direction(n_classes):
    """They are no constraints. Their loss is another, but a token's importance keeps its sign."""
    X, y, relevant = assumption_1(n_classes)
    rows, columns = relevant.nonzero()
    alone = sp.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=X.shape)
    nothing = sp.csr_matrix(X.shape)
    larger, labels = sp.vstack([X, alone, nothing]).tocsr(), np.tile(y, 3)
    fit = flow(larger, labels)
    assert fit.status == "converged"
    selected = fit.model.selected(larger)
    assert_array_equal(selected[: len(y)].toarray(), relevant.toarray())
    assert distance_from_max_margin(fit, X, relevant) < 1e-8


@CLASSES
def test_weights_are_repetition(n_classes):
    """A document of weight 0 is as good as absent: it has no pairs of tokens either."""
    X, y, _ = assumption_1(n_classes)
    repeats = 1 + np.arange(len(y)) // n_classes % 3
    rows = np.repeat(np.arange(len(y)), repeats)
    absent = sp.csr_matrix(reference.counts(0, 10, X.shape[1], mean=0.2))
    weights = np.concatenate([repeats, np.zeros(10)])
    weighted = flow(sp.vstack([X, absent]).tocsr(), np.concatenate([y, y[:10]]), weights)
    repeated = flow(X[rows], y[rows])
    assert weighted.status == "converged"
    assert weighted.n_iter == repeated.n_iter
    assert_allclose(weighted.loss_curve, repeated.loss_curve, rtol=1e-9)
    assert one_less_cosine(weighted.model.scores, repeated.model.scores) < 1e-8


@CLASSES
def test_entries_stored_in_parts_are_one(n_classes):
    X, y, _ = assumption_1(n_classes)
    X = X.astype(float)
    lengths = np.diff(X.indptr)
    twice = np.repeat(np.arange(X.nnz), 2)
    data = X.data[twice] * np.tile([0.25, 0.75], X.nnz)
    divided = sp.csr_matrix(
        (data, X.indices[twice], np.concatenate([[0], np.cumsum(2 * lengths)])), shape=X.shape
    )
    one, other = flow(X, y), flow(divided, y)
    assert other.status == "converged"
    assert one.n_iter == other.n_iter
    assert_allclose(other.model.scores, one.model.scores, atol=1e-5)
    assert divided.nnz == 2 * X.nnz  # and are left as they were


def test_relevant_tokens_that_always_come_together_are_selected_together():
    """Ties: such data is not of Assumption 1, and the selection has two tokens a document."""
    X, y, relevant = assumption_1()
    twins = np.flatnonzero(np.asarray(relevant.sum(axis=0)).ravel())
    X = sp.hstack([X, X[:, twins]]).tocsr()
    fit = flow(X, y)
    assert fit.status == "converged"
    selected = fit.model.selected(X)
    assert_array_equal(np.asarray(selected.sum(axis=1)).ravel(), np.full(len(y), 2))
    assert distance_from_max_margin(fit, X, selected) < 1e-8


@pytest.mark.parametrize(("n_classes", "seed"), [(2, 1), (2, 2), (3, 3)])
def test_where_other_data_converges(n_classes, seed):
    """It is in the max-margin direction of what it selects, whatever that is."""
    X, y = reference.counts(seed, 12, 9, mean=0.8), np.arange(12) % n_classes
    fit = flow(X, y)
    assert fit.status == "converged"
    assert distance_from_max_margin(fit, X, fit.model.selected(X)) < 1e-8


@pytest.mark.parametrize(("n_classes", "seed"), [(2, 0), (3, 2)])
def test_where_other_data_does_not_converge(n_classes, seed):
    """Documents want different tokens ahead, and balance each other.

    The flow all but comes to rest there, and steps of fixed size go to and fro. That is said, and
    no direction is given out.
    """
    X, y = reference.counts(seed, 12, 9, mean=0.8), np.arange(12) % n_classes
    fit = flow(X, y)
    assert fit.status == "balanced"
    assert "all but come to rest" in fit.not_converged
    assert len(fit.attributes["direction_curve_"]) == 0
    gradient = padded_gradient(X, y, fit)
    assert np.abs(gradient).max() < 1e-4

    selections = Selections(X)
    fit = flow(X, y, solver="descent", max_iter=100, callback=selections)
    assert (fit.status, fit.n_iter) == ("selection", 100)
    changes = selections.changes()
    assert min(changes[-10:]) > 0
    assert f"changed in {np.count_nonzero(changes)} of 100 steps" in fit.not_converged
    assert len(fit.attributes["direction_curve_"]) == 0


def padded_gradient(X, y, fit):
    """Return the gradient by the scores of padded sequences, by autograd."""
    scores = torch.from_numpy(fit.model.scores.copy()).requires_grad_()
    values = torch.from_numpy(fit.model.values)
    padded = reference.PaddedDocuments.from_counts(X)
    embeddings, p, v = reference.embed(scores, values)
    decisions = reference.outputs(padded, embeddings, p, v, 0.0, 0.0, 0.0)
    targets = encode_targets(y, int(y.max()) + 1)
    loss = reference.mean_loss(decisions, targets, torch.ones(len(y)))
    return torch.autograd.grad(loss, scores)[0].numpy()


@CLASSES
@DIMENSIONS
def test_single_precision(n_classes, dimension):
    X, y, relevant = assumption_1(n_classes)
    fit = flow(X.astype(np.float32), y, dtype=np.float32, dimension=dimension)
    assert fit.status == "converged"
    selected = fit.model.selected(X)
    assert distance_from_max_margin(fit, X, selected) < 1e-6
    if dimension is None:
        assert_array_equal(selected.toarray(), relevant.toarray())


def test_the_same_again():
    X, y, _ = assumption_1()
    before = X.copy()
    one, other = flow(X, y, dimension=50), flow(X, y, dimension=50)
    assert one.loss_curve == other.loss_curve
    assert_array_equal(one.model.scores, other.model.scores)
    for name in ("data", "indices", "indptr"):
        assert_array_equal(getattr(X, name), getattr(before, name))
