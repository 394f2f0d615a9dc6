"""Training of embeddings by Adam, against autograd on padded sequences."""

import math

import numpy as np
import pytest
import reference
import scipy.sparse as sp
import torch
from helpers import documents, weighted_and_repeated
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_clsattn._core.attention_problem import CLS_PENALTY
from sklearn_clsattn._core.objective import encode_targets
from sklearn_clsattn._core.statistics import class_log_odds
from sklearn_clsattn.paper._embeddings import (
    SCORES_EPSILON,
    SCORES_LEARNING_RATE,
    fit_embeddings,
)
from sklearn_clsattn.theory._gradient_step import draw_embeddings

CLASSES = pytest.mark.parametrize("n_classes", [2, 3])
CLS = pytest.mark.parametrize("attend_cls", [True, False])
DIMENSIONS = pytest.mark.parametrize("dimension", [None, 4, 30])

SETTINGS = {
    "learning_rate": None,
    "attend_cls": False,
    "early_stopping": False,
    "validation_fraction": 0.2,
    "n_iter_no_change": 5,
    "max_iter": 50,
    "tol": 0.0,
    "seed": 0,
}


def data(n_classes, seed=0, n_documents=24, n_tokens=9):
    """Return documents, one of them empty and one token unseen."""
    X = reference.counts(seed, n_documents, n_tokens)
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, n_documents)
    return documents(X, np.arange(n_documents) % n_classes, weights)


def fit(d, dimension, **settings):
    return fit_embeddings(d, embedding_dim=dimension, **{**SETTINGS, **settings})


def padded_loss(d, leaves, cls_weight):
    """Return the loss of padded sequences, by E, directions and last row or by one matrix."""
    if len(leaves) == 1:
        last_row = leaves[0][-1]
        embeddings, p, v = reference.embed(leaves[0][:-1, 0], leaves[0][:-1, 1:])
    else:
        embeddings, directions, last_row = leaves
        p, v = directions[0], directions[1:]
    padded = reference.PaddedDocuments.from_counts(d.X)
    decisions = reference.outputs(padded, embeddings, p, v, cls_weight, last_row[0], last_row[1:])
    targets = encode_targets(d.codes, d.n_classes)
    loss = reference.mean_loss(decisions, targets, torch.from_numpy(d.weights))
    return loss + CLS_PENALTY / 2 * last_row[0] ** 2


@CLASSES
@CLS
@DIMENSIONS
def test_steps_are_those_of_padded_sequences(n_classes, attend_cls, dimension):
    """Fifty steps of PyTorch's Adam on autograd's gradients."""
    d = data(n_classes)
    n_outputs, n_tokens = d.n_outputs, d.X.shape[1]
    cls_weight = d.statistics.cls_weight if attend_cls else 0.0
    last_row = torch.zeros(1 + n_outputs, dtype=torch.float64)
    last_row[1:] = torch.from_numpy(class_log_odds(d.statistics.class_weights))
    if dimension is None:
        of_tokens = torch.zeros((n_tokens, 1 + n_outputs), dtype=torch.float64)
        leaves = [torch.vstack([of_tokens, last_row])]
        rates, epsilon = [SCORES_LEARNING_RATE], SCORES_EPSILON
    else:
        drawn = draw_embeddings(n_tokens, n_outputs, dimension, seed=0)
        directions = torch.vstack([drawn.cls_embedding, drawn.output_vectors])
        leaves = [drawn.embeddings, directions, last_row]
        rates, epsilon = [1e-3, 1e-3, 1e-3 * math.sqrt(2 * dimension / math.pi)], 1e-8
    leaves = [leaf.requires_grad_() for leaf in leaves]
    groups = [{"params": [leaf], "lr": lr} for leaf, lr in zip(leaves, rates, strict=True)]
    optimizer = torch.optim.Adam(groups, eps=epsilon)
    losses = []
    for _ in range(50):
        loss = padded_loss(d, leaves, cls_weight)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    losses.append(padded_loss(d, leaves, cls_weight).item())

    result = fit(d, dimension, attend_cls=attend_cls, n_iter_no_change=99)
    assert (result.n_iter, result.status) == (50, "max_iter")
    assert_allclose(result.loss_curve, losses, atol=1e-8)
    model, leaves = result.model, [leaf.detach().numpy() for leaf in leaves]
    if dimension is None:
        rows = leaves[0]
        assert model.embeddings is None
    else:
        embeddings, directions, last_row = leaves
        assert_allclose(model.embeddings.token_embeddings(), embeddings, atol=1e-8)
        assert_allclose(model.embeddings.cls_embedding, directions[0], atol=1e-8)
        assert_allclose(model.embeddings.output_vectors, directions[1:], atol=1e-8)
        rows = np.vstack([embeddings @ directions.T, last_row])
    assert_allclose(model.scores, rows[:-1, 0], atol=1e-8)
    assert_allclose(model.values, rows[:-1, 1:], atol=1e-8)
    assert_allclose(model.intercept, rows[-1, 1:], atol=1e-8)
    assert model.cls_weight == cls_weight
    assert model.cls_score == (pytest.approx(rows[-1, 0], abs=1e-8) if attend_cls else -np.inf)


@CLASSES
@DIMENSIONS
def test_weights_do_as_repetition(n_classes, dimension):
    d = data(n_classes)
    repeats = np.random.default_rng(1).integers(0, 4, len(d.codes))
    both = weighted_and_repeated(d.X, d.codes, repeats)
    weighted, repeated = (fit(same, dimension, attend_cls=True) for same in both)
    assert weighted.n_iter == repeated.n_iter
    assert_allclose(weighted.loss_curve, repeated.loss_curve, atol=1e-8)
    assert_allclose(weighted.model.outputs(d.X), repeated.model.outputs(d.X), atol=1e-6)


def mean_log_loss(model, d):
    outputs = model.outputs(d.X)
    if outputs.shape[1] == 1:
        outputs = np.column_stack([np.zeros(len(outputs)), outputs[:, 0]])
    losses = np.logaddexp.reduce(outputs, axis=1) - outputs[np.arange(len(d.codes)), d.codes]
    return np.average(losses, weights=d.weights)


@CLASSES
@CLS
@DIMENSIONS
def test_early_stopping_returns_to_the_best(n_classes, attend_cls, dimension):
    d = data(n_classes, n_documents=60)
    models = []

    def keep(progress):
        models.append((progress.model(), progress.criterion))
        return False

    result = fit(
        d,
        dimension,
        attend_cls=attend_cls,
        early_stopping=True,
        learning_rate=0.05,
        n_iter_no_change=4,
        max_iter=300,
        callback=keep,
    )
    assert result.status == "converged"
    curve = result.attributes["validation_loss_curve_"]
    assert len(curve) == len(result.loss_curve) == result.n_iter + 1
    assert_array_equal([criterion for _, criterion in models], curve)
    best_iter = int(np.argmin(curve))
    assert result.n_iter == best_iter + 4
    best, model = models[best_iter][0], result.model
    assert_array_equal(model.scores, best.scores)
    assert_array_equal(model.values, best.values)
    assert_array_equal(model.intercept, best.intercept)
    if dimension is not None:
        E = model.embeddings.token_embeddings()
        assert_allclose(E @ model.embeddings.cls_embedding, best.scores, atol=1e-12)
        assert_allclose(E @ model.embeddings.output_vectors.T, best.values, atol=1e-12)
    # Both curves are of documents apart from each other, which together are all.
    total = mean_log_loss(best, d)
    penalty = CLS_PENALTY / 2 * best.cls_score**2 if attend_cls else 0.0
    ends = sorted([result.loss_curve[best_iter] - penalty, curve[best_iter]])
    assert ends[0] - 1e-12 <= total <= ends[1] + 1e-12


def test_early_stopping_needs_documents_to_hold_out():
    d = data(2)
    d = documents(d.X, np.where(np.arange(len(d.codes)) == 3, 2, d.codes), d.weights)
    with pytest.raises(ValueError, match="early_stopping=False"):
        fit(d, None, early_stopping=True)
    assert fit(d, None).n_iter > 0


@pytest.mark.parametrize("dimension", [None, 5])
def test_a_seed_gives_the_same_fit_and_another_a_different_one(dimension):
    d = data(3, n_documents=60)
    one, same, other = (fit(d, dimension, early_stopping=True, seed=seed) for seed in (0, 0, 1))
    assert one.loss_curve == same.loss_curve
    assert_array_equal(one.model.values, same.model.values)
    assert one.loss_curve != other.loss_curve


def test_without_a_dimension_nothing_is_random():
    one, other = (fit(data(2), None, seed=seed) for seed in (0, 1))
    assert one.loss_curve == other.loss_curve


def test_training_stops_when_little_is_gained_and_when_told():
    result = fit(data(2), None, tol=0.02, max_iter=500)
    assert result.status == "converged"
    curve = np.array(result.loss_curve)
    assert curve[-1] >= curve[-6] - 0.02
    assert result.attributes == {}
    reports = []

    def stop(progress):
        reports.append(progress)
        return progress.n_iter == 3

    stopped = fit(data(2), 6, callback=stop)
    assert (stopped.status, stopped.n_iter) == ("stopped", 3)
    assert [report.loss for report in reports] == stopped.loss_curve
    assert all(math.isnan(report.criterion) for report in reports)


@DIMENSIONS
def test_single_precision_follows_double(dimension):
    single, double = (
        fit(data(3), dimension, attend_cls=True, dtype=dtype) for dtype in (np.float32, np.float64)
    )
    model = single.model
    assert model.values.dtype == np.float64
    if dimension is None:  # else what is drawn depends on the precision
        assert_allclose(single.loss_curve, double.loss_curve, atol=1e-4)
    else:
        E, p = model.embeddings.token_embeddings(), model.embeddings.cls_embedding
        assert (E.dtype, p.dtype) == (np.float32, np.float64)
        assert_allclose(E.astype(float) @ p, model.scores, atol=1e-5)


@CLS
@pytest.mark.parametrize("dimension", [None, 5])
def test_documents_without_any_token(attend_cls, dimension):
    d = data(3)
    d = documents(sp.csr_matrix(d.X.shape), d.codes, d.weights)
    result = fit(d, dimension, attend_cls=attend_cls)
    priors = np.bincount(d.codes, d.weights) / d.weights.sum()
    assert_allclose(np.exp(result.model.intercept), priors, atol=1e-3)


def test_bad_settings():
    d = data(3)
    with pytest.raises(ValueError, match="embedding_dim must be at least 4"):
        fit(d, 3)
    with pytest.raises(ValueError, match="learning rate must be positive"):
        fit(d, None, learning_rate=0.0)
    with pytest.raises(ValueError, match="lower the learning rate"):
        fit(d, 5, learning_rate=1e200)
