"""Training of embeddings by Adam, against autograd on padded sequences."""

import math

import numpy as np
import pytest
import reference
import scipy.sparse as sp
import torch
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_clsattn.model.bag import TokenBag
from sklearn_clsattn.model.gradient_step import draw_embeddings, unscaled_objective
from sklearn_clsattn.model.targets import encode_targets
from sklearn_clsattn.training.embeddings import (
    SCORES_EPSILON,
    SCORES_LEARNING_RATE,
    Embeddings,
    ScoresAndValues,
    fit_embeddings,
)
from sklearn_clsattn.training.joint import CLS_PENALTY, class_log_odds

CLASSES = pytest.mark.parametrize("n_classes", [2, 3])
CLS = pytest.mark.parametrize("cls_weight", [0.0, 2.5])
DIMENSIONS = pytest.mark.parametrize("dimension", [None, 4, 30])

SETTINGS = {
    "learning_rate": None,
    "early_stopping": False,
    "validation_fraction": 0.2,
    "n_iter_no_change": 5,
    "max_iter": 50,
    "tol": 0.0,
    "seed": 0,
    "dtype": np.float64,
}


def data(n_classes, seed=0, n_documents=24, n_tokens=9):
    """Return counts with an empty document and an unseen token, class codes and weights."""
    X = reference.counts(seed, n_documents, n_tokens)
    codes = np.arange(n_documents) % n_classes
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, n_documents)
    return X, codes, weights


def fit(X, codes, weights, dimension, cls_weight=0.0, **settings):
    return fit_embeddings(
        X,
        codes,
        weights,
        int(codes.max()) + 1,
        embedding_dim=dimension,
        cls_weight=cls_weight,
        **{**SETTINGS, **settings},
    )


class Padded:
    """The slow model: leaves, and the loss of padded documents by them."""

    def __init__(self, X, codes, weights, n_classes, leaves, cls_weight):
        self.documents = reference.PaddedDocuments.from_counts(X)
        self.targets = encode_targets(codes, n_classes)
        self.weights = torch.from_numpy(weights)
        self.leaves = [leaf.clone().requires_grad_() for leaf in leaves]
        self.cls_weight = cls_weight

    def loss(self):
        if len(self.leaves) == 1:
            rows = self.leaves[0]
            last_row = rows[-1]
            embeddings, p, v = reference.embed(rows[:-1, 0], rows[:-1, 1:])
        else:
            embeddings, directions, last_row = self.leaves
            p, v = directions[0], directions[1:]
        decisions = reference.outputs(
            self.documents, embeddings, p, v, self.cls_weight, last_row[0], last_row[1:]
        )
        loss = reference.mean_loss(decisions, self.targets, self.weights)
        return loss + CLS_PENALTY / 2 * last_row[0] ** 2

    def gradients(self):
        loss = self.loss()
        return loss.item(), torch.autograd.grad(loss, self.leaves)


def pair(n_classes, cls_weight, dimension, seed=0, *, at_random=True):
    """Return the fast parameters, their gradient function, and the slow model at one point."""
    X, codes, weights = data(n_classes, seed)
    n_outputs = 1 if n_classes == 2 else n_classes
    objective = unscaled_objective(
        TokenBag(X),
        encode_targets(codes, n_classes),
        torch.from_numpy(weights),
        n_outputs,
        cls_weight=cls_weight,
        cls_penalty=CLS_PENALTY,
    )
    generator = torch.Generator().manual_seed(seed)
    start = objective.start()
    if at_random:
        start.copy_(torch.randn(start.shape, generator=generator, dtype=torch.float64))
    if not cls_weight:
        start[-1, 0] = 0.0
    if dimension is None:
        parameters = ScoresAndValues(start)
    else:
        drawn = draw_embeddings(X.shape[1], n_outputs, dimension, seed=seed)
        directions = torch.vstack([drawn.cls_embedding, drawn.output_vectors])
        parameters = Embeddings(drawn.embeddings, directions, start[-1])

    def gradients():
        loss, gradient = objective(parameters.rows())
        parameters.pull_back(gradient)
        return loss, [tensor.grad for tensor in parameters.trained]

    return (
        parameters,
        gradients,
        Padded(X, codes, weights, n_classes, parameters.trained, cls_weight),
    )


@CLASSES
@CLS
@DIMENSIONS
def test_gradients_are_those_of_padded_sequences(n_classes, cls_weight, dimension):
    for seed in range(3):
        _, gradients, slow = pair(n_classes, cls_weight, dimension, seed)
        loss, fast = gradients()
        expected_loss, expected = slow.gradients()
        assert loss == pytest.approx(expected_loss, rel=1e-12)
        for one, other in zip(fast, expected, strict=True):
            assert_allclose(one, other, atol=1e-12)


@CLASSES
@CLS
@DIMENSIONS
def test_gradient_descent_stays_with_padded_sequences(n_classes, cls_weight, dimension):
    """50 stable steps of plain gradient descent, compared after each."""
    parameters, gradients, slow = pair(n_classes, cls_weight, dimension)
    first = gradients()[0]
    for _ in range(50):
        loss, fast = gradients()
        expected_loss, expected = slow.gradients()
        assert abs(loss - expected_loss) < 1e-9
        with torch.no_grad():
            for tensor, gradient in zip(parameters.trained, fast, strict=True):
                tensor.sub_(gradient, alpha=0.3)
            for leaf, gradient in zip(slow.leaves, expected, strict=True):
                leaf.sub_(gradient, alpha=0.3)
        for one, other in zip(parameters.trained, slow.leaves, strict=True):
            assert float((one - other.detach()).abs().max()) < 1e-9
    assert gradients()[0] < first


@CLASSES
@CLS
@DIMENSIONS
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_training_is_torch_adam_on_padded_sequences(
    n_classes, cls_weight, dimension, fit_intercept
):
    X, codes, weights = data(n_classes)
    _, _, slow = pair(n_classes, cls_weight, dimension, at_random=False)
    last = slow.leaves[-1][-1] if dimension is None else slow.leaves[-1]
    if fit_intercept:
        last.data[1:] = torch.from_numpy(class_log_odds(np.bincount(codes, weights)))
    if dimension is None:
        rates, epsilon = [SCORES_LEARNING_RATE], SCORES_EPSILON
    else:
        rates, epsilon = [1e-3, 1e-3, 1e-3 * math.sqrt(2 * dimension / math.pi)], 1e-8
    groups = [{"params": [leaf], "lr": lr} for leaf, lr in zip(slow.leaves, rates, strict=True)]
    optimizer = torch.optim.Adam(groups, eps=epsilon)
    losses = []
    for _ in range(50):
        loss, gradients = slow.gradients()
        losses.append(loss)
        for leaf, gradient in zip(slow.leaves, gradients, strict=True):
            leaf.grad = gradient
        if not fit_intercept:
            slow.leaves[-1].grad.view(-1)[-(len(last) - 1) :] = 0.0
        optimizer.step()
    result = fit(
        X, codes, weights, dimension, cls_weight, fit_intercept=fit_intercept, n_iter_no_change=99
    )
    assert (result.n_iter, result.best_iter, result.status) == (50, 50, "max_iter")
    assert_allclose(result.loss_curve, [*losses, slow.loss().item()], atol=1e-8)
    leaves = [leaf.detach().numpy() for leaf in slow.leaves]
    if dimension is None:
        rows = leaves[0]
        assert result.token_embeddings is result.cls_embedding is result.output_vectors is None
    else:
        embeddings, directions, last_row = leaves
        assert_allclose(result.token_embeddings, embeddings, atol=1e-8)
        assert_allclose(result.cls_embedding, directions[0], atol=1e-8)
        assert_allclose(result.output_vectors, directions[1:], atol=1e-8)
        rows = np.vstack([embeddings @ directions.T, last_row])
    fitted = result.fitted
    assert_allclose(fitted.scores, rows[:-1, 0], atol=1e-8)
    assert_allclose(fitted.values, rows[:-1, 1:], atol=1e-8)
    assert_allclose(fitted.intercept, rows[-1, 1:], atol=1e-8)
    assert fitted.cls_weight == cls_weight
    assert fitted.cls_score == (pytest.approx(rows[-1, 0], abs=1e-8) if cls_weight else -np.inf)
    if not fit_intercept:
        assert_array_equal(fitted.intercept, 0.0)


@CLASSES
@DIMENSIONS
def test_weights_do_as_repetition(n_classes, dimension):
    X, codes, _ = data(n_classes)
    repeats = np.random.default_rng(1).integers(0, 4, len(codes))
    weighted = fit(X, codes, repeats.astype(float), dimension, 1.5)
    rows = np.repeat(np.arange(len(codes)), repeats)
    repeated = fit(X[rows], codes[rows], np.ones(len(rows)), dimension, 1.5)
    assert weighted.n_iter == repeated.n_iter
    assert_allclose(weighted.loss_curve, repeated.loss_curve, atol=1e-8)
    assert_allclose(weighted.fitted.outputs(X), repeated.fitted.outputs(X), atol=1e-6)


def mean_log_loss(fitted, X, codes, weights):
    outputs = fitted.outputs(X)
    if outputs.shape[1] == 1:
        outputs = np.column_stack([np.zeros(len(outputs)), outputs[:, 0]])
    losses = np.logaddexp.reduce(outputs, axis=1) - outputs[np.arange(len(codes)), codes]
    return np.average(losses, weights=weights)


@CLASSES
@CLS
@DIMENSIONS
def test_early_stopping_returns_to_the_best(n_classes, cls_weight, dimension):
    X, codes, weights = data(n_classes, n_documents=60)
    models = []

    def keep(progress):
        models.append((progress.fitted(), progress.gap))
        return False

    result = fit(
        X,
        codes,
        weights,
        dimension,
        cls_weight,
        early_stopping=True,
        learning_rate=0.05,
        n_iter_no_change=4,
        max_iter=300,
        on_step=keep,
    )
    assert result.status == "converged"
    assert result.n_iter == result.best_iter + 4
    curve = result.validation_curve
    assert len(curve) == len(result.loss_curve) == result.n_iter + 1
    assert [gap for _, gap in models] == curve
    assert np.argmin(curve) == result.best_iter
    best = models[result.best_iter][0]
    assert_array_equal(result.fitted.scores, best.scores)
    assert_array_equal(result.fitted.values, best.values)
    assert_array_equal(result.fitted.intercept, best.intercept)
    if dimension is not None:
        assert_allclose(result.token_embeddings @ result.cls_embedding, best.scores, atol=1e-12)
        values = result.token_embeddings @ result.output_vectors.T
        assert_allclose(values, best.values, atol=1e-12)
    # Both curves are of documents apart from each other, which together are all.
    total = mean_log_loss(best, X, codes, weights)
    penalty = CLS_PENALTY / 2 * best.cls_score**2 if cls_weight else 0.0
    ends = sorted([result.loss_curve[result.best_iter] - penalty, curve[result.best_iter]])
    assert ends[0] - 1e-12 <= total <= ends[1] + 1e-12


def test_early_stopping_needs_documents_to_hold_out():
    X, codes, weights = data(2)
    codes = np.where(np.arange(len(codes)) == 3, 2, codes)
    with pytest.raises(ValueError, match="early_stopping=False"):
        fit(X, codes, weights, None, early_stopping=True)
    assert fit(X, codes, weights, None).n_iter > 0


def test_a_seed_gives_the_same_fit_and_another_a_different_one():
    X, codes, weights = data(3, n_documents=60)
    for dimension in (None, 5):
        one, same, other = (
            fit(X, codes, weights, dimension, early_stopping=True, seed=seed) for seed in (0, 0, 1)
        )
        assert one.loss_curve == same.loss_curve
        assert_array_equal(one.fitted.values, same.fitted.values)
        assert one.loss_curve != other.loss_curve


def test_without_a_dimension_nothing_is_random():
    X, codes, weights = data(2)
    one, other = (fit(X, codes, weights, None, seed=seed) for seed in (0, 1))
    assert one.loss_curve == other.loss_curve


def test_training_stops_when_little_is_gained_and_when_told():
    X, codes, weights = data(2)
    result = fit(X, codes, weights, None, tol=0.02, max_iter=500)
    assert result.status == "converged"
    curve = np.array(result.loss_curve)
    assert curve[-1] >= curve[-6] - 0.02
    assert result.validation_curve is None
    reports = []

    def stop(progress):
        reports.append(progress)
        return progress.n_iter == 3

    stopped = fit(X, codes, weights, 6, on_step=stop)
    assert (stopped.status, stopped.n_iter) == ("stopped", 3)
    assert [report.loss for report in reports] == stopped.loss_curve
    assert all(math.isnan(report.gap) for report in reports)


@DIMENSIONS
def test_single_precision_follows_double(dimension):
    X, codes, weights = data(3)
    double = fit(X, codes, weights, dimension, 1.0)
    single = fit(X, codes, weights, dimension, 1.0, dtype=np.float32)
    assert single.fitted.values.dtype == np.float64
    if dimension is None:  # else what is drawn depends on the precision
        assert_allclose(single.loss_curve, double.loss_curve, atol=1e-4)
    else:
        assert single.token_embeddings.dtype == np.float32
        assert single.cls_embedding.dtype == np.float64
        scores = single.token_embeddings.astype(float) @ single.cls_embedding
        assert_allclose(scores, single.fitted.scores, atol=1e-5)


@CLS
def test_documents_without_any_token(cls_weight):
    X, codes, weights = data(3)
    for dimension in (None, 5):
        result = fit(sp.csr_matrix(X.shape), codes, weights, dimension, cls_weight)
        priors = np.bincount(codes, weights) / weights.sum()
        assert_allclose(np.exp(result.fitted.intercept), priors, atol=1e-3)


def test_bad_settings():
    X, codes, weights = data(3)
    with pytest.raises(ValueError, match="embedding_dim must be at least 4"):
        fit(X, codes, weights, 3)
    with pytest.raises(ValueError, match="learning rate must be positive"):
        fit(X, codes, weights, None, learning_rate=0.0)
    with pytest.raises(ValueError, match="lower the learning rate"):
        fit(X, codes, weights, 5, learning_rate=1e200)
