"""The random start and the gradient by all embeddings, against autograd on padded sequences."""

import numpy as np
import pytest
import reference
import torch
from helpers import documents
from numpy.testing import assert_allclose

from sklearn_clsattn._core.objective import encode_targets
from sklearn_clsattn.theory._gradient_step import draw_embeddings, embedding_gradient

CLASSES = pytest.mark.parametrize("n_classes", [2, 3])
CLS = pytest.mark.parametrize("cls_weight", [0.0, 2.5])


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_what_is_drawn(n_outputs):
    d = 4000
    drawn = draw_embeddings(50, n_outputs, d, seed=0)
    E, p, v = drawn.embeddings, drawn.cls_embedding, drawn.output_vectors
    assert (E.shape, p.shape, v.shape) == ((50, d), (d,), (n_outputs, d))
    assert E.dtype == p.dtype == v.dtype == torch.float64
    assert_allclose(v @ v.T, np.eye(n_outputs), atol=1e-14)
    # N(0, I / d): coordinates of variance 1 / d, and rows all but orthonormal.
    assert float(E.mean()) * d**0.5 == pytest.approx(0, abs=5 * (50 * d) ** -0.5)
    assert float(E.var()) * d == pytest.approx(1, abs=0.02)
    assert float(p.square().sum()) == pytest.approx(1, abs=0.1)
    assert float((E @ E.T - torch.eye(50)).abs().max()) < 5 * d**-0.5
    assert float((E @ torch.vstack([p, v]).T).abs().max()) < 5 * d**-0.5


def test_output_vectors_take_every_direction():
    """Signs and places are even over seeds: nothing of the QR factorisation's habits is left."""
    vectors = torch.stack([draw_embeddings(1, 2, 3, seed=i).output_vectors for i in range(2000)])
    assert float(vectors.mean(dim=0).abs().max()) < 0.05
    assert_allclose(vectors.square().mean(dim=0), np.full((2, 3), 1 / 3), atol=0.03)


def test_a_seed_draws_the_same_again():
    one, same, other = (draw_embeddings(5, 1, 4, seed=seed) for seed in (7, 7, 8))
    for name in ("embeddings", "cls_embedding", "output_vectors"):
        assert torch.equal(getattr(one, name), getattr(same, name))
        assert not torch.equal(getattr(one, name), getattr(other, name))


def test_drawing_leaves_the_global_generator_alone():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    draw_embeddings(5, 1, 4, seed=7)
    assert torch.equal(torch.rand(3), expected)


def test_single_precision():
    drawn = draw_embeddings(5, 3, 8, seed=0, dtype=torch.float32)
    assert drawn.embeddings.dtype == drawn.cls_embedding.dtype == torch.float32
    double = draw_embeddings(5, 3, 8, seed=0)
    assert_allclose(drawn.cls_embedding, double.cls_embedding, rtol=1e-6)
    assert_allclose(drawn.output_vectors, double.output_vectors, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("n_outputs", "too_small"), [(1, 1), (3, 3)])
def test_too_few_dimensions(n_outputs, too_small):
    message = f"embedding_dim must be at least {too_small + 1} .* got {too_small}"
    with pytest.raises(ValueError, match=message):
        draw_embeddings(5, n_outputs, too_small, seed=0)
    draw_embeddings(5, n_outputs, too_small + 1, seed=0)


@CLASSES
@CLS
@pytest.mark.parametrize("with_last_row", [True, False])
def test_the_gradient_is_that_of_padded_sequences(n_classes, cls_weight, with_last_row):
    """By every coordinate of E, by p, by the v_k and by the last row."""
    n_outputs = 1 if n_classes == 2 else n_classes
    rng = np.random.default_rng(0)
    X = reference.counts(3)
    d = documents(X, rng.integers(n_classes, size=12), rng.uniform(0.5, 2, 12), n_classes)
    targets, weights = encode_targets(d.codes, n_classes), torch.from_numpy(d.weights)
    E, p, v = (
        torch.from_numpy(rng.normal(size=shape)).requires_grad_()
        for shape in ((X.shape[1], 5), (5,), (n_outputs, 5))
    )
    row = torch.zeros(1 + n_outputs, dtype=torch.float64)
    if with_last_row:
        row = torch.from_numpy(rng.normal(size=1 + n_outputs))
    row.requires_grad_()
    padded = reference.PaddedDocuments.from_counts(X)
    decisions = reference.outputs(padded, E, p, v, cls_weight, row[0], row[1:])
    # Linked to row[0] even where <cls> is left out, so that autograd has a 0 for it.
    slow = reference.mean_loss(decisions, targets, weights) + 0 * row[0]
    by_E, by_p, by_v, by_row = torch.autograd.grad(slow, [E, p, v, row])

    fast = d.loss(d.bag(np.float64, "cpu"), cls_weight=cls_weight)
    with torch.no_grad():
        loss, gradient = embedding_gradient(fast, E, p, v, row if with_last_row else None)
        factors = gradient[:-1]
        assert loss == pytest.approx(float(slow.detach()), rel=1e-13)
        assert_allclose(factors @ torch.vstack([p, v]), by_E, atol=1e-13)
        assert_allclose(E.T @ factors[:, 0], by_p, atol=1e-13)
        assert_allclose((E.T @ factors[:, 1:]).T, by_v, atol=1e-13)
        assert_allclose(gradient[-1], by_row, atol=1e-13)
