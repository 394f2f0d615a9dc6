"""One step and then p, with the embeddings frozen: against the theory and padded sequences."""

import numpy as np
import pytest
import reference
import scipy.sparse as sp
import torch
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.importance import class_totals, signed_frequency
from sklearn_clsattn.model.bag import TokenBag
from sklearn_clsattn.model.gradient_step import unscaled_objective
from sklearn_clsattn.model.selective_gradient import SelectiveObjective
from sklearn_clsattn.model.targets import encode_targets
from sklearn_clsattn.model.token_embeddings import ExplicitEmbeddings, LimitEmbeddings
from sklearn_clsattn.theory import (
    check_single_relevant_token,
    one_step_embeddings,
    selected_tokens,
)
from sklearn_clsattn.training.gradient_flow import follow_gradient_flow
from sklearn_clsattn.training.one_step import take_step

CLASSES = pytest.mark.parametrize("n_classes", [2, 3])
DIMENSIONS = pytest.mark.parametrize("dimension", [None, 6, 40])


def documents(n_classes, seed=0, *, empty=False):
    X = reference.counts(seed, 18, 9, mean=1.5, empty=empty)
    y = np.random.default_rng(seed).permutation(np.arange(18) % n_classes)
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, 18)
    return X, y, weights


def step(
    X, y, weights=None, *, step_size=None, dimension=None, seed=0, dtype=np.float64, for_flow=False
):
    weights = np.ones(len(y)) if weights is None else weights
    n_classes = int(y.max()) + 1
    shares = class_totals(X, y, n_classes, weights, kind="shares")
    return take_step(
        TokenBag(X, dtype=dtype),
        encode_targets(y, n_classes),
        torch.from_numpy(weights),
        signed_frequency(shares, np.bincount(y, weights)),
        step_size=step_size,
        embedding_dim=dimension,
        seed=seed,
        for_flow=for_flow,
    )


def dense(embeddings):
    """Return E, [I | S] in the limit."""
    if isinstance(embeddings, ExplicitEmbeddings):
        return embeddings.matrix
    identity = torch.eye(len(embeddings.shifts), dtype=torch.float64)
    return torch.cat([identity, embeddings.shifts], dim=1)


@CLASSES
@DIMENSIONS
def test_the_step_is_that_of_the_theory(n_classes, dimension):
    X, y, weights = documents(n_classes)
    theory = one_step_embeddings(
        X, y, step_size=7.0, embedding_dim=dimension, sample_weight=weights, random_state=3
    )
    # What one_step_embeddings makes of random_state=3.
    seed = int(np.random.RandomState(3).randint(np.iinfo(np.int32).max))
    frozen = step(X, y, weights, step_size=7.0, dimension=dimension, seed=seed)
    if dimension is None:
        assert_allclose(frozen.embeddings.shifts, theory.shifts, rtol=1e-14)
        assert frozen.source is None
    else:
        assert_allclose(frozen.embeddings.matrix, theory.embeddings, atol=1e-13)
    assert_allclose(frozen.cls_embedding, theory.cls_embedding, atol=1e-14)
    assert_allclose(frozen.output_vectors, theory.output_vectors, atol=1e-14)
    assert frozen.step_size == 7.0
    E = dense(frozen.embeddings)
    assert_allclose(frozen.values, E @ frozen.output_vectors.T, atol=1e-13)


@CLASSES
@pytest.mark.parametrize("dimension", [None, 20])
def test_an_empty_document_counts_but_has_no_part_in_the_gradient(n_classes, dimension):
    """It is one of those that the mean is over, so that without it the step is longer."""
    X, y, weights = documents(n_classes, empty=True)
    kept = np.diff(X.indptr) > 0
    share = weights[kept].sum() / weights.sum()
    whole = step(X, y, weights, step_size=5.0, dimension=dimension)
    without = step(X[kept], y[kept], weights[kept], step_size=5.0 * share, dimension=dimension)
    assert_allclose(whole.values, without.values, rtol=1e-12, atol=1e-15)
    assert_allclose(dense(whole.embeddings), dense(without.embeddings), atol=1e-14)


@CLASSES
def test_the_default_step_gives_the_most_important_token_a_value_of_1(n_classes):
    for seed in range(3):
        X, y, weights = documents(n_classes, seed)
        frozen = step(X, y, weights)
        largest = float(frozen.values.abs().max())
        spectral = float(torch.linalg.matrix_norm(frozen.values, 2))
        if n_classes == 2 or spectral < 2 - 1e-9:
            assert largest == pytest.approx(1, rel=1e-14)
        else:  # more than two classes: no more than a spectral norm of 2
            assert spectral == pytest.approx(2, rel=1e-12)
            assert largest < 1
        assert frozen.warning == ""
        finite = step(X, y, weights, dimension=4096)
        assert finite.step_size == frozen.step_size
        assert float((finite.values - frozen.values).abs().max()) < 5 * 4096**-0.5
        assert finite.warning == ""


def test_nothing_is_important():
    X, y = sp.csr_matrix([[1.0, 2.0], [1.0, 2.0]]), np.array([0, 1])
    for dimension in (None, 5):
        frozen = step(X, y, dimension=dimension)
        assert frozen.step_size == 1.0
        assert frozen.warning == ""
        assert bool(torch.isfinite(frozen.values).all())
    assert not step(X, y).values.any()


@CLASSES
def test_warnings(n_classes):
    X, y, _ = documents(n_classes)
    good = step(X, y).step_size
    assert step(X, y, step_size=4.99 * good).warning == ""
    text = step(X, y, step_size=6 * good).warning
    assert f"step_size={6 * good:.3g} makes token values of up to 6: above 5" in text
    assert f"Use at most {5 * good:.3g}, or leave step_size=None, which is {good:.3g} here" in text
    # Small steps are drowned where embeddings are random, and only there.
    noise = (2 * np.log(9) / 1000) ** 0.5
    assert step(X, y, step_size=1e-6 * good).warning == ""
    assert step(X, y, step_size=1.01 * noise * good, dimension=1000).warning == ""
    text = step(X, y, step_size=0.5 * noise * good, dimension=1000).warning
    assert f"less than the {noise:.2g} that random embeddings of 1000 dimensions" in text
    assert f"Use at least {noise * good:.3g}, or more dimensions" in text
    # A larger one must do what the text says.
    assert step(X, y, step_size=5 * good, dimension=1000).warning == ""


@CLASSES
def test_a_seed_and_precision(n_classes):
    X, y, weights = documents(n_classes)
    one, same, other = (step(X, y, weights, dimension=8, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(one.embeddings.matrix, same.embeddings.matrix)
    assert not torch.equal(one.embeddings.matrix, other.embeddings.matrix)
    for dimension in (None, 8):
        single = step(X, y, weights, dimension=dimension, dtype=np.float32)
        double = step(X, y, weights, dimension=dimension)
        assert single.values.dtype == single.cls_embedding.dtype == torch.float32
        assert single.step_size == double.step_size
    assert_allclose(step(X, y, dtype=np.float32).values, step(X, y).values, rtol=1e-6)


@CLASSES
@DIMENSIONS
def test_weights_are_repetition(n_classes, dimension):
    X, y, _ = documents(n_classes)
    repeats = np.arange(len(y)) % 3
    rows = np.repeat(np.arange(len(y)), repeats)
    weighted = step(X, y, repeats.astype(float), dimension=dimension)
    repeated = step(X[rows], y[rows], dimension=dimension)
    assert weighted.step_size == pytest.approx(repeated.step_size, rel=1e-13)
    assert_allclose(weighted.values, repeated.values, atol=1e-13)


@CLASSES
@DIMENSIONS
@pytest.mark.parametrize("form", ["closed", "stable"])
def test_gradient_descent_on_p_stays_with_padded_sequences(n_classes, dimension, form):
    """50 steps of plain gradient descent on p from the same start, compared after each."""
    X, y, weights = documents(n_classes, empty=True)
    frozen = step(X, y, weights, dimension=dimension)
    E, maps = dense(frozen.embeddings), frozen.embeddings
    targets, omega = encode_targets(y, n_classes), torch.from_numpy(weights)
    objective = unscaled_objective(TokenBag(X), targets, omega, frozen.values.shape[1])
    stable = SelectiveObjective(TokenBag(X), objective, frozen.values, tolerance=1e-6)

    def fast(p):
        scores = maps.scores(p)
        if form == "stable":
            point = stable(scores)
            return point.loss, maps.pull_back(point.by_score * np.exp(point.log_scale))
        parameters = objective.start()
        parameters[:-1, 0], parameters[:-1, 1:] = scores, frozen.values
        loss, gradient = objective(parameters)
        return loss, maps.pull_back(gradient[:-1, 0])

    padded = reference.PaddedDocuments.from_counts(X)
    p, leaf = frozen.cls_embedding.clone(), frozen.cls_embedding.clone().requires_grad_()
    losses = []
    for _ in range(50):
        decisions = reference.outputs(padded, E, leaf, frozen.output_vectors, 0.0, 0.0, 0.0)
        expected = reference.mean_loss(decisions, targets, omega)
        (slow,) = torch.autograd.grad(expected, leaf)
        loss, gradient = fast(p)
        assert abs(loss - float(expected.detach())) < 1e-12
        losses.append(loss)
        p -= 2.0 * gradient
        with torch.no_grad():
            leaf.sub_(slow, alpha=2.0)
        assert float((p - leaf.detach()).abs().max()) < 1e-9
    assert losses[-1] < losses[0]
    assert float((p - frozen.cls_embedding).abs().max()) > 0.1


@CLASSES
def test_the_limit_is_a_matrix(n_classes):
    X, y, _ = documents(n_classes)
    maps = step(X, y).embeddings
    assert isinstance(maps, LimitEmbeddings)
    E = dense(maps)
    rng = np.random.default_rng(0)
    for columns in ((), (4,)):
        p = torch.from_numpy(rng.normal(size=(maps.dimension, *columns)))
        c = torch.from_numpy(rng.normal(size=(9, *columns)))
        assert_allclose(maps.scores(p), E @ p, atol=1e-14)
        assert_allclose(maps.pull_back(c), E.T @ c, atol=1e-14)


def single_relevant(n_classes, seed):
    """Return data that satisfies Assumption 1, and which entries are relevant."""
    bunch = make_token_classification(
        60 * n_classes,
        n_classes=n_classes,
        n_relevant_per_class=4,
        n_irrelevant=30,
        document_length=8,
        delta=0,
        single_relevant=True,
        random_state=seed,
        return_X_y=False,
    )
    X, y = sp.csr_matrix(bunch.data, dtype=float), bunch.target
    return X, y, check_single_relevant_token(X, y).relevant_tokens


def flow(X, y, *, size=1.0, dimension=None, seed=0):
    """Follow the flow where the most important token's value is `size`."""
    default = step(X, y)
    step_size = size * default.step_size / float(default.values.abs().max())
    frozen = step(X, y, step_size=step_size, dimension=dimension, seed=seed)
    return follow_gradient_flow(
        X,
        TokenBag(X),
        encode_targets(y, int(y.max()) + 1),
        torch.ones(len(y), dtype=torch.float64),
        frozen,
        max_iter=500,
        tol=1e-9,
    )


@CLASSES
def test_the_limit_is_what_many_dimensions_tend_to(n_classes):
    """The same selection, and a direction whose error falls like the root of the dimension."""
    dimensions, seeds = (256, 2048, 16384), range(3)
    errors = np.empty((len(seeds), len(dimensions)))
    for i in seeds:
        X, y, relevant = single_relevant(n_classes, i)
        limit = flow(X, y)
        assert limit.status == "converged"
        direction = limit.fitted.scores / np.linalg.norm(limit.fitted.scores)
        for j, dimension in enumerate(dimensions):
            finite = flow(X, y, dimension=dimension, seed=i)
            assert finite.status == "converged"
            for scores in (limit.fitted.scores, finite.fitted.scores):
                assert_array_equal(selected_tokens(scores, X).toarray(), relevant.toarray())
            scores = finite.fitted.scores / np.linalg.norm(finite.fitted.scores)
            errors[i, j] = np.linalg.norm(scores - direction)
    in_units = np.sqrt((errors**2).mean(axis=0) * dimensions)
    assert in_units.max() < 2
    assert in_units.min() > 0.2
    assert errors[:, -1].max() < 0.02


def test_what_long_steps_do_with_more_than_two_classes():
    """Where values are twice as large, descent can settle on another selection than the limit's.

    Here one class's documents select irrelevant tokens: a direction of its own margin, and so
    locally optimal in the sense of Theorem 4.3, at which the loss is higher.
    """
    X, y, relevant = single_relevant(3, 1)
    settled = {}
    for dimension in (None, 16384):
        fit = flow(X, y, size=2.0, dimension=dimension, seed=1)
        assert fit.status == "converged"
        chosen = selected_tokens(fit.fitted.scores, X)
        settled[dimension] = chosen.multiply(relevant).sum() / relevant.sum()
    assert settled[None] == 1
    assert settled[16384] == pytest.approx(2 / 3)


def test_the_default_step_before_gradient_flow_in_finite_dimensions():
    X, y, weights = documents(2)
    free = step(X, y, weights, dimension=4096)
    flowing = step(X, y, weights, dimension=4096, for_flow=True)
    norm = float(torch.linalg.matrix_norm(free.values.double(), 2))
    ratio = flowing.step_size / free.step_size
    limit = step(X, y, weights)
    exact = float(torch.linalg.matrix_norm(limit.values, 2))
    assert ratio == pytest.approx(min(1.0, 1.4 / exact), rel=1e-12)
    assert exact == pytest.approx(norm, abs=0.2)
    assert step(X, y, weights, for_flow=True).step_size == limit.step_size
