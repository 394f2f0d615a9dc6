"""Training with frozen random embeddings: its gradient, its optimum, and its limit."""

import numpy as np
import pytest
import torch
from helpers import assert_gradient, centred, documents, scipy_minimum, weighted_and_repeated
from numpy.testing import assert_allclose, assert_array_equal
from reference import PaddedDocuments, counts, mean_loss, outputs

from sklearn_clsattn._core.attention_problem import CLS_PENALTY
from sklearn_clsattn._core.fit import fit_attention
from sklearn_clsattn._core.objective import encode_targets
from sklearn_clsattn.paper._frozen import FrozenProblem, _C_scale, fit_frozen
from sklearn_clsattn.theory._gradient_step import draw_embeddings

CLASSES = pytest.mark.parametrize("n_classes", [2, 3])
CLS = pytest.mark.parametrize("attend_cls", [True, False])
SETTINGS = {"C": 1.0, "attention_C": 0.3}


def data(n_classes, seed=0, n_documents=40, n_tokens=10):
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, n_documents)
    codes = np.arange(n_documents) % n_classes
    return documents(counts(seed, n_documents, n_tokens), codes, weights)


def fit(d, dimension=6, **settings):
    settings = {**SETTINGS, "seed": 0, "max_iter": 500, "tol": 1e-6, **settings}
    return fit_frozen(d, embedding_dim=dimension, **settings)


def problem(d, dimension=6, *, attend_cls=True):
    settings = {**SETTINGS, "seed": 0, "dtype": np.float64, "device": "cpu"}
    return FrozenProblem(d, embedding_dim=dimension, attend_cls=attend_cls, **settings)


@CLASSES
@CLS
@pytest.mark.parametrize("dimension", [4, 25])
def test_the_gradient_is_that_of_finite_differences(n_classes, attend_cls, dimension):
    made = problem(data(n_classes), dimension, attend_cls=attend_cls)
    generator = torch.Generator().manual_seed(3)
    assert_gradient(made, torch.randn(made.start.shape, generator=generator, dtype=torch.float64))


@CLASSES
@CLS
def test_the_loss_is_that_of_padded_sequences_and_penalised_vectors(n_classes, attend_cls):
    d = data(n_classes)
    result, made = fit(d, attend_cls=attend_cls), problem(d, attend_cls=attend_cls)
    model = result.model
    drawn = draw_embeddings(d.X.shape[1], d.n_outputs, 6, seed=0)
    p = torch.from_numpy(model.embeddings.cls_embedding)
    v = torch.from_numpy(model.embeddings.output_vectors)
    cls_score = model.cls_score if attend_cls else 0.0
    of_documents = outputs(
        PaddedDocuments.from_counts(d.X),
        drawn.embeddings,
        p,
        v,
        made.loss.cls_weight,
        cls_score,
        torch.from_numpy(model.intercept),
    )
    assert bool(made.loss.cls_weight) == attend_cls
    targets = encode_targets(d.codes, n_classes)
    loss = mean_loss(of_documents, targets, torch.from_numpy(d.weights))
    w = v / made.units.value_scales[0][:, None]
    of_scores, of_values, *_ = made.blocks
    loss += of_scores.penalty / 2 * p.square().sum() + of_values.penalty / 2 * w.square().sum()
    loss += CLS_PENALTY / 2 * cls_score**2
    assert result.loss_curve[-1] == pytest.approx(float(loss), rel=1e-10)


@CLASSES
@CLS
def test_it_finds_what_scipy_finds(n_classes, attend_cls):
    d = data(n_classes)
    result = fit(d, attend_cls=attend_cls, tol=1e-11, max_iter=2000)
    assert result.status in ("converged", "no_progress")
    made = problem(d, attend_cls=attend_cls)
    value, x = scipy_minimum(made)
    assert result.loss_curve[-1] == pytest.approx(value, abs=1e-9)
    found, wanted = (centred(model.outputs(d.X)) for model in (result.model, made.model(x)))
    assert_allclose(found, wanted, atol=1e-4)


@CLASSES
@CLS
def test_many_dimensions_tend_to_the_default_training(n_classes, attend_cls):
    """E E^T tends to the identity like d^(-1/2), and with it the fit to that of no dimension."""
    d = data(n_classes)
    settings = {**SETTINGS, "attend_cls": attend_cls, "max_iter": 2000, "tol": 1e-9}
    C = settings["C"] * _C_scale(d.statistics)
    expected = fit_attention(d, scaling=None, **{**settings, "C": C}).model.outputs(d.X)
    expected = centred(expected)
    distances = []
    for dimension in (64, 512, 4096):
        errors = [
            centred(fit(d, dimension, seed=seed, **settings).model.outputs(d.X)) - expected
            for seed in range(3)
        ]
        distances.append(np.sqrt(np.mean(np.square(errors))))
    slopes = np.diff(np.log(distances)) / np.log(8)
    assert_allclose(slopes, -0.5, atol=0.25)
    assert distances[-1] < 0.06 * np.std(expected)


def test_a_fit_says_what_it_did():
    d = data(3)
    reports = []
    result = fit(d, callback=reports.append)
    gap = result.attributes["optimality_gap_"]
    assert result.status == "converged"
    assert gap <= 1e-6
    assert len(result.loss_curve) == result.n_iter + 1
    assert (np.diff(result.loss_curve) < 0).all()
    assert [report.loss for report in reports] == result.loss_curve
    assert reports[-1].criterion == gap
    priors = np.bincount(d.codes, d.weights) / d.weights.sum()
    assert result.loss_curve[0] == pytest.approx(-(priors * np.log(priors)).sum())
    p, v = result.model.embeddings.cls_embedding, result.model.embeddings.output_vectors
    assert (p.shape, v.shape) == ((6,), (3, 6))
    embeddings = result.model.embeddings.token_embeddings()
    assert_array_equal(embeddings, draw_embeddings(d.X.shape[1], 3, 6, seed=0).embeddings)
    assert_allclose(embeddings @ p, result.model.scores, atol=1e-12)
    assert_allclose(embeddings @ v.T, result.model.values, atol=1e-10)


def test_stops():
    short = fit(data(2), max_iter=2, tol=0.0)
    assert (short.status, short.n_iter) == ("max_iter", 2)
    told = fit(data(2), tol=0.0, callback=lambda progress: progress.n_iter == 1)
    assert (told.status, told.n_iter) == ("stopped", 1)


def test_a_seed_gives_the_same_fit_and_another_a_different_one():
    one, same, other = (fit(data(2), seed=seed) for seed in (0, 0, 1))
    assert one.loss_curve == same.loss_curve
    assert_array_equal(one.model.scores, same.model.scores)
    assert one.loss_curve[-1] != other.loss_curve[-1]


@CLASSES
def test_weights_do_as_repetition(n_classes):
    d = data(n_classes)
    repeats = np.random.default_rng(1).integers(0, 4, len(d.codes))
    one, other = (fit(same, tol=1e-12) for same in weighted_and_repeated(d.X, d.codes, repeats))
    assert_allclose(one.model.outputs(d.X), other.model.outputs(d.X), atol=1e-5)


def test_single_precision():
    """Other embeddings are drawn in single precision, but their scores are products as well."""
    result = fit(data(2), tol=1e-3, dtype=np.float32)
    assert result.status == "converged"
    embeddings = result.model.embeddings.token_embeddings()
    assert embeddings.dtype == np.float32
    scores = embeddings.astype(float) @ result.model.embeddings.cls_embedding
    assert_allclose(scores, result.model.scores, atol=1e-5)


def test_too_few_dimensions():
    with pytest.raises(ValueError, match="embedding_dim must be at least 4"):
        fit(data(3), 3)
