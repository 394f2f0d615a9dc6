"""OneStepClassifier: Theorem 4.3, how the training of p ends, and what it leaves."""

import numpy as np
import pytest
import reference
import scipy.sparse as sp
import torch
from helpers import core_documents, data, single_relevant
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import LSODA
from sklearn.exceptions import ConvergenceWarning

from sklearn_clsattn.paper import (
    OneStepClassifier,
    _gradient_flow,
    check_single_relevant_token,
    max_margin_direction,
    one_step_embeddings,
    selected_tokens,
)
from sklearn_clsattn.paper._gradient_flow import UNSELECTED_ATTENTION
from sklearn_clsattn.paper._selective import SelectiveObjective

CLASSES = pytest.mark.parametrize("n_classes", [2, 3])
SIZES = [(60, 2, 10, 5), (120, 5, 40, 10), (402, 8, 150, 20)]


def assumption_1(n_classes=2, seed=0, size=1):
    """Return data that satisfies Assumption 1, and which entries are relevant."""
    n_documents, *sizes = SIZES[size]
    X, y = single_relevant(n_documents, n_classes, *sizes, seed=seed)
    check = check_single_relevant_token(X, y)
    assert check
    return X, y, check.relevant_tokens


def fit(X, y, weights=None, **parameters):
    return OneStepClassifier(random_state=0, **parameters).fit(X, y, weights)


def assert_max_margin(model, X):
    """Require p to be the max-margin direction of its own selection."""
    assert model.direction_error_ < 1e-6
    E, scores = model.token_embeddings_, model.attention_scores_
    if model.embedding_dim is None:  # the limit [I | S], where S are the values
        E = np.column_stack([np.eye(len(scores)), model.token_values_.T])
    expected = max_margin_direction(E, X, model.select_tokens(X)).scores
    assert scores @ expected > (1 - 1e-6) * np.linalg.norm(scores) * np.linalg.norm(expected)


@CLASSES
@pytest.mark.parametrize(
    ("seed", "dimension", "dtype"),
    [
        *((seed, None, np.float64) for seed in range(len(SIZES))),
        (0, 4096, np.float64),
        (1, 4096, np.float32),
    ],
)
def test_theorem_4_3(seed, dimension, dtype, n_classes):
    """Data of Assumption 1: every important token is selected, and p is the max-margin direction.

    The theorem is about two classes; by the default step it holds for three all the same. Documents
    of weight 0 are as good as absent.
    """
    X, y, relevant = assumption_1(n_classes, seed, seed if dimension is None else 1)
    absent = reference.counts(0, 10, X.shape[1], mean=0.2)
    model = fit(
        sp.vstack([X, absent]).tocsr().astype(dtype),
        np.concatenate([y, y[:10]]),
        np.repeat([1.0, 0.0], [len(y), 10]),
        embedding_dim=dimension,
    )
    assert_array_equal(model.select_tokens(X).toarray(), relevant.toarray())
    assert_max_margin(model, X)
    assert model.score(X, y) == 1
    assert_array_equal(model.intercept_, 0)
    assert model.loss_curve_[-1] < model.loss_curve_[0]
    left = 1 - np.asarray(model.attention(X).multiply(relevant).sum(axis=1)).ravel()
    assert left.max() <= UNSELECTED_ATTENTION * (1 + 1e-9)
    assert left.max() > UNSELECTED_ATTENTION / 100  # nor is p longer than it need be
    if dimension is None:
        step = one_step_embeddings(X, y, step_size=model.step_size_)
        assert_allclose(np.atleast_2d(model.token_values_).T, step.shifts, atol=1e-14)
    else:
        E, p = model.token_embeddings_, model.cls_embedding_
        assert E.dtype == dtype
        assert_allclose(E @ p, model.attention_scores_, atol=1e-4 if dtype == np.float32 else 1e-9)


def test_other_step_sizes():
    """Noise drowns a step that is too short; one that saturates the loss selects all the same."""
    X, y, relevant = assumption_1(seed=1, size=0)
    usual = fit(X, y).step_size_
    for size in (0.05, 8.0):
        model = fit(X, y, step_size=size * usual)
        assert_array_equal(model.select_tokens(X).toarray(), relevant.toarray())
        assert model.step_size_ == size * usual
    # In few dimensions a short step is drowned by the noise of random embeddings.
    model = fit(X, y, step_size=0.02 * usual, embedding_dim=400)
    assert model.select_tokens(X).multiply(relevant).sum() < relevant.sum()


@pytest.mark.parametrize("embedding_dim", [None, 64])
def test_a_step_out_of_range(embedding_dim):
    X, y = data()
    with pytest.raises(ValueError, match="leaves the range of floating-point numbers"):
        fit(X.astype(np.float32), y, step_size=1e100, embedding_dim=embedding_dim)


def test_relevant_tokens_that_always_come_together_are_selected_together():
    """Ties: such data is not of Assumption 1, and the selection has two tokens a document."""
    X, y, relevant = assumption_1()
    twins = np.flatnonzero(np.asarray(relevant.sum(axis=0)).ravel())
    X = sp.hstack([X, X[:, twins]]).tocsr()
    model = fit(X, y)
    assert_array_equal(np.asarray(model.select_tokens(X).sum(axis=1)).ravel(), 2)
    assert_max_margin(model, X)


def test_where_documents_balance_each_other():
    """They want different tokens ahead: that is said, and no direction is given out."""
    X, y = reference.counts(0, 12, 9, mean=0.8), np.arange(12) % 2
    with pytest.warns(ConvergenceWarning, match="almost stopped"):
        model = fit(X, y)
    assert model.direction_error_ == 2


def test_a_selection_that_does_not_settle():
    X, y = data()
    with pytest.warns(ConvergenceWarning, match="stopped at max_iter before .* settled"):
        model = OneStepClassifier(max_iter=12).fit(X, y)
    assert (model.direction_error_, model.n_iter_) == (2, 12)


def test_a_selection_that_stays_but_does_not_have_all_the_attention(monkeypatch):
    # Scores have to outgrow the logarithm of a ratio of counts, nearly the largest that is allowed.
    monkeypatch.setattr(_gradient_flow, "PATIENCE", 20.0)
    relevant, none, many = np.eye(4), np.zeros((4, 1)), np.full((4, 1), 1e18)
    X, y = np.block([[relevant, none], [1e-18 * relevant, many]]), [0, 1] * 4
    with pytest.warns(ConvergenceWarning, match="stopped at max_iter"):
        OneStepClassifier(max_iter=7).fit(X, y)
    OneStepClassifier(max_iter=12).fit(X, y)


@pytest.mark.parametrize("X", [np.ones((6, 4)), np.zeros((6, 4)), np.eye(6)], ids=str)
def test_documents_in_which_there_is_nothing_to_select(X):
    with pytest.warns(ConvergenceWarning, match="almost stopped.*same value"):
        model = OneStepClassifier().fit(X, [0, 1] * 3)
    assert not model.attention_scores_.any()
    assert np.isfinite(model.decision_function(X)).all()


def test_a_direction_that_is_not_certified(monkeypatch):
    def failed(*_):
        raise ValueError("No direction was found")

    monkeypatch.setattr(_gradient_flow, "max_margin_direction", failed)
    X, y, relevant = assumption_1()
    with pytest.warns(ConvergenceWarning, match="not certified.*No direction was found"):
        model = fit(X, y)
    assert model.direction_error_ == 2
    assert_array_equal(model.select_tokens(X).toarray(), relevant.toarray())


# The flow of p against another integrator, from the same E, p and v. Only the path of the flow
# matters, so its speed is set to 1.


def lsoda(X, y, E, p, v):
    """Return the p at which no selection has changed over the way that the package waits."""
    loss = core_documents(X, y).attention_loss(np.float64, "cpu")
    objective = SelectiveObjective(X, loss, torch.from_numpy(E @ v)[:, None])

    def flow(_, p):
        downhill = -objective(torch.from_numpy(E @ p)).direction.numpy() @ E
        return downhill / np.linalg.norm(downhill)

    solver = LSODA(flow, 0.0, p, 50_000.0, rtol=1e-6, atol=1e-6, max_step=1.0)
    before, since = objective.selection(torch.from_numpy(E @ p))[0], 0.0
    while True:
        solver.step()
        selected, unselected = objective.selection(torch.from_numpy(E @ solver.y))
        if (selected != before).any():
            before, since = selected, solver.t
        if solver.t - since > _gradient_flow.PATIENCE and unselected < 0.01:
            return solver.y


def start(seed, dimension, value):
    """Return data of Assumption 1, and the estimator before its training of p."""
    X, y = single_relevant(60, n_irrelevant=20, seed=seed)
    step_size = value / np.abs(one_step_embeddings(X, y, step_size=1.0).shifts).max()
    model = OneStepClassifier(embedding_dim=dimension, step_size=step_size, random_state=seed)
    return X, y, model


@pytest.mark.parametrize(
    ("dimension", "value", "seed", "share"),
    [
        (512, 2.0, 0, 0.5),
        (1024, 2.0, 2, 1.0),
    ],
)
def test_the_flow_selects_what_an_independent_integrator_selects(
    dimension, value, seed, share, monkeypatch
):
    """And so does it at a tenth of the tolerance: no step size is left in the result."""
    X, y, model = start(seed, dimension, value)
    step = one_step_embeddings(
        X, y, step_size=model.step_size, embedding_dim=dimension, random_state=seed
    )
    # In a basis of the rows of E alone: all that the flow sees.
    basis = np.linalg.qr(step.embeddings.T)[0]
    E, p, v = step.embeddings @ basis, step.cls_embedding @ basis, step.output_vectors[0] @ basis
    expected = selected_tokens(E @ lsoda(X, y, E, p, v), X)
    n_selecting = (expected[:, :10].sum(axis=1) > 0).sum()  # the first 10 tokens are relevant
    assert n_selecting / len(y) == share
    for tolerance in (1e-3, 1e-4):
        monkeypatch.setattr(_gradient_flow, "TOLERANCE", tolerance)
        model.fit(X, y)
        assert (model.select_tokens(X) != expected).nnz == 0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("value", "certified"), [(1.0, False), (2000.0, True)])
def test_the_certificate_and_what_it_promises(value, certified):
    """The loss never rises, so that no document is ever wrong once n L is below log 2."""
    X, y, model = start(0, 1024, value)
    model.set_params(max_iter=5).fit(X, y)
    assert (np.diff(model.loss_curve_) <= 1e-12).all()
    assert (len(y) * model.loss_curve_[0] < np.log(2)) == certified
    assert model.score(X, y) == 1 or not certified
