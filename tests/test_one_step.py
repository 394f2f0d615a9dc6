"""One step and then p, with the embeddings frozen: against the theory and padded sequences."""

import numpy as np
import pytest
import reference
import scipy.sparse as sp
import torch
from helpers import documents, weighted_and_repeated
from numpy.testing import assert_allclose, assert_array_equal
from test_gradient_flow import assumption_1, flow

from sklearn_clsattn._core.objective import encode_targets
from sklearn_clsattn.importance import signed_frequency
from sklearn_clsattn.paper._selective_gradient import SelectiveObjective
from sklearn_clsattn.paper._step import take_step
from sklearn_clsattn.theory import one_step_embeddings
from sklearn_clsattn.theory._token_embeddings import ExplicitEmbeddings, LimitEmbeddings

CLASSES = pytest.mark.parametrize("n_classes", [2, 3])
DIMENSIONS = pytest.mark.parametrize("dimension", [None, 6, 40])


def data(n_classes, seed=0, *, empty=False):
    X = reference.counts(seed, 18, 9, mean=1.5, empty=empty)
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(18) % n_classes)
    return documents(X, y, np.random.default_rng(seed).uniform(0.5, 2.0, 18))


def unweighted(d):
    return documents(d.X, d.codes)


def step(d, *, dimension=None, dtype=np.float64, step_size=None, seed=0, for_flow=False):
    return take_step(
        d.loss(d.bag(dtype, "cpu")),
        signed_frequency(d.statistics.shares, d.statistics.class_weights),
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
    d = data(n_classes)
    theory = one_step_embeddings(
        d.X,
        d.codes,
        step_size=7.0,
        embedding_dim=dimension,
        sample_weight=d.weights,
        random_state=3,
    )
    # What one_step_embeddings makes of random_state=3.
    seed = int(np.random.RandomState(3).randint(np.iinfo(np.int32).max))
    frozen = step(d, step_size=7.0, dimension=dimension, seed=seed)
    if dimension is None:
        assert_allclose(frozen.embeddings.shifts, theory.shifts, rtol=1e-14)
        assert frozen.located(np.ones(3), np.ones(len(theory.output_vectors))) is None
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
    d = data(n_classes, empty=True)
    kept = np.diff(d.X.indptr) > 0
    share = d.weights[kept].sum() / d.weights.sum()
    whole = step(d, step_size=5.0, dimension=dimension)
    rest = documents(d.X[kept], d.codes[kept], d.weights[kept])
    without = step(rest, step_size=5.0 * share, dimension=dimension)
    assert_allclose(whole.values, without.values, rtol=1e-12, atol=1e-15)
    assert_allclose(dense(whole.embeddings), dense(without.embeddings), atol=1e-14)


@CLASSES
def test_the_default_step_gives_the_most_important_token_a_value_of_1(n_classes):
    for seed in range(3):
        d = data(n_classes, seed)
        frozen = step(d)
        largest = float(frozen.values.abs().max())
        spectral = float(torch.linalg.matrix_norm(frozen.values, 2))
        if n_classes == 2 or spectral < 2 - 1e-9:
            assert largest == pytest.approx(1, rel=1e-14)
        else:  # more than two classes: no more than a spectral norm of 2
            assert spectral == pytest.approx(2, rel=1e-12)
            assert largest < 1
        assert frozen.warning == ""
        finite = step(d, dimension=4096)
        assert finite.step_size == frozen.step_size
        assert float((finite.values - frozen.values).abs().max()) < 5 * 4096**-0.5
        assert finite.warning == ""


def test_nothing_is_important():
    d = documents(sp.csr_matrix([[1.0, 2.0], [1.0, 2.0]]), np.array([0, 1]))
    for dimension in (None, 5):
        frozen = step(d, dimension=dimension)
        assert frozen.step_size == 1.0
        assert frozen.warning == ""
        assert bool(torch.isfinite(frozen.values).all())
    assert not step(d).values.any()


@CLASSES
def test_warnings(n_classes):
    d = unweighted(data(n_classes))
    good = step(d).step_size
    assert step(d, step_size=4.99 * good).warning == ""
    text = step(d, step_size=6 * good).warning
    assert f"step_size={6 * good:.3g} makes token values of up to 6: above 5" in text
    assert f"Use at most {5 * good:.3g}, or leave step_size=None, which is {good:.3g} here" in text
    # Small steps are drowned where embeddings are random, and only there.
    noise = (2 * np.log(9) / 1000) ** 0.5
    assert step(d, step_size=1e-6 * good).warning == ""
    assert step(d, step_size=1.01 * noise * good, dimension=1000).warning == ""
    text = step(d, step_size=0.5 * noise * good, dimension=1000).warning
    assert f"less than the {noise:.2g} that random embeddings of 1000 dimensions" in text
    assert f"Use at least {noise * good:.3g}, or more dimensions" in text
    # A larger one must do what the text says.
    assert step(d, step_size=5 * good, dimension=1000).warning == ""


@CLASSES
def test_a_seed_and_precision(n_classes):
    d = data(n_classes)
    one, same, other = (step(d, dimension=8, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(one.embeddings.matrix, same.embeddings.matrix)
    assert not torch.equal(one.embeddings.matrix, other.embeddings.matrix)
    for dimension in (None, 8):
        single = step(d, dimension=dimension, dtype=np.float32)
        assert single.values.dtype == single.cls_embedding.dtype == torch.float32
        assert single.step_size == step(d, dimension=dimension).step_size
    assert_allclose(step(d, dtype=np.float32).values, step(d).values, rtol=1e-6)


@CLASSES
@DIMENSIONS
def test_weights_are_repetition(n_classes, dimension):
    d = data(n_classes)
    both = weighted_and_repeated(d.X, d.codes, np.arange(len(d.codes)) % 3)
    weighted, repeated = (step(same, dimension=dimension) for same in both)
    assert weighted.step_size == pytest.approx(repeated.step_size, rel=1e-13)
    assert_allclose(weighted.values, repeated.values, atol=1e-13)


@CLASSES
@DIMENSIONS
@pytest.mark.parametrize("form", ["closed", "stable"])
def test_gradient_descent_on_p_stays_with_padded_sequences(n_classes, dimension, form):
    """50 steps of plain gradient descent on p from the same start, compared after each."""
    d = data(n_classes, empty=True)
    frozen = step(d, dimension=dimension)
    E, maps = dense(frozen.embeddings), frozen.embeddings
    targets, omega = encode_targets(d.codes, n_classes), torch.from_numpy(d.weights)
    mean_loss = d.loss(d.bag(np.float64, "cpu"))
    stable = SelectiveObjective(mean_loss, frozen.values)

    def fast(p):
        scores = maps.scores(p)
        if form == "stable":
            point = stable(scores)
            return point.loss, maps.pull_back(point.by_score * np.exp(point.log_scale))
        matrix = mean_loss.zeros()
        matrix[:-1, 0], matrix[:-1, 1:] = scores, frozen.values
        loss, gradient = mean_loss.mean(matrix)
        return loss, maps.pull_back(gradient[:-1, 0])

    padded = reference.PaddedDocuments.from_counts(d.X)
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
    maps = step(data(n_classes)).embeddings
    assert isinstance(maps, LimitEmbeddings)
    E = dense(maps)
    rng = np.random.default_rng(0)
    for columns in ((), (4,)):
        p = torch.from_numpy(rng.normal(size=(maps.dimension, *columns)))
        c = torch.from_numpy(rng.normal(size=(9, *columns)))
        assert_allclose(maps.scores(p), E @ p, atol=1e-14)
        assert_allclose(maps.pull_back(c), E.T @ c, atol=1e-14)


SMALL = {"n_relevant": 4, "n_irrelevant": 30, "length": 8}


@CLASSES
def test_the_limit_is_what_many_dimensions_tend_to(n_classes):
    """The same selection, and a direction whose error falls like the root of the dimension."""
    dimensions, seeds = (256, 2048, 16384), range(3)
    errors = np.empty((len(seeds), len(dimensions)))
    for i in seeds:
        X, y, relevant = assumption_1(n_classes, i, n_documents=60 * n_classes, **SMALL)
        step_size = step_of(X, y, 1.0)
        settings = {"step_size": step_size, "max_iter": 500}
        limit = flow(X, y, **settings)
        assert limit.status == "converged"
        direction = limit.model.scores / np.linalg.norm(limit.model.scores)
        for j, dimension in enumerate(dimensions):
            finite = flow(X, y, dimension=dimension, seed=i, **settings)
            assert finite.status == "converged"
            for model in (limit.model, finite.model):
                assert_array_equal(model.selected(X).toarray(), relevant.toarray())
            scores = finite.model.scores / np.linalg.norm(finite.model.scores)
            errors[i, j] = np.linalg.norm(scores - direction)
    in_units = np.sqrt((errors**2).mean(axis=0) * dimensions)
    assert in_units.max() < 2
    assert in_units.min() > 0.2
    assert errors[:, -1].max() < 0.02


def step_of(X, y, value):
    """Return the step size at which the most important token's value is this."""
    default = step(documents(X, y))
    return value * default.step_size / float(default.values.abs().max())


def test_the_default_step_before_gradient_flow_in_finite_dimensions():
    d = data(2)
    free, flowing = (step(d, dimension=4096, for_flow=flag) for flag in (False, True))
    limit = step(d)
    exact = float(torch.linalg.matrix_norm(limit.values, 2))
    assert flowing.step_size / free.step_size == pytest.approx(min(1.0, 1.4 / exact), rel=1e-12)
    assert float(torch.linalg.matrix_norm(free.values, 2)) == pytest.approx(exact, abs=0.2)
    assert step(d, for_flow=True).step_size == limit.step_size
