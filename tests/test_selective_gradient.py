"""The stable gradient by the scores, against autograd and against a thousand digits."""

import mpmath
import numpy as np
import pytest
import reference
import scipy.sparse as sp
import torch
from helpers import core_documents
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_clsattn.paper import selected_tokens
from sklearn_clsattn.paper._selective import SelectiveObjective

CLASSES = pytest.mark.parametrize("n_classes", [2, 3])


def problem(n_classes, seed=0, X=None, *, n_documents=12):
    """Return counts (one document empty, one token unseen), their loss and values."""
    rng = np.random.default_rng(seed)
    X = reference.counts(seed, n_documents) if X is None else sp.csr_matrix(X, dtype=float)
    codes, weights = np.arange(X.shape[0]) % n_classes, rng.uniform(0.5, 2.0, X.shape[0])
    loss = core_documents(X, codes, weights, n_classes).attention_loss(np.float64, "cpu")
    return X, loss, torch.from_numpy(rng.normal(size=(X.shape[1], loss.n_outputs)))


def exact(X, loss, values, scores):
    """Return the gradient by the scores, and its size, in mpmath's precision, digit by digit.

    dL/da_s = sum_i omega_i / Omega sum_k dl_i/dF_ik q_is (b_sk - f_ik), and the size is
    sum_ik omega_i / Omega |dl_i/dF_ik| sum_s q_is (b_sk - f_ik)^2 / max |b|.
    """
    number = mpmath.mpf
    a = [number(x) for x in scores.tolist()]
    b = [[number(x) for x in row] for row in values.tolist()]
    omega = [number(x) for x in loss.output_loss.weights.tolist()]
    targets = loss.output_loss.signs if loss.n_outputs == 1 else loss.output_loss.targets
    gradient, size = [number(0)] * len(a), number(0)
    largest = max(abs(x) for row in b for x in row)
    for i, row in enumerate(X.toarray().tolist()):
        tokens = [s for s, count in enumerate(row) if count > 0]
        if not tokens:
            continue
        masses = [number(row[s]) * mpmath.exp(a[s]) for s in tokens]
        q = [mass / sum(masses) for mass in masses]
        outputs = range(len(b[0]))
        f = [sum(qs * b[s][k] for qs, s in zip(q, tokens, strict=True)) for k in outputs]
        if len(f) == 1:
            y = number(float(targets[i]))
            g = [-y / (1 + mpmath.exp(y * f[0]))]
        else:
            exponentials = [mpmath.exp(x) for x in f]
            g = [x / sum(exponentials) for x in exponentials]
            g[int(targets[i])] -= 1
        for qs, s in zip(q, tokens, strict=True):
            pull = sum(g[k] * (b[s][k] - f[k]) for k in outputs)
            gradient[s] += omega[i] * qs * pull / sum(omega)
            squares = sum(abs(g[k]) * (b[s][k] - f[k]) ** 2 for k in outputs)
            size += omega[i] * qs * squares / sum(omega) / largest
    return np.array([float(x / size) for x in gradient]), float(mpmath.log(size))


@CLASSES
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 1000.0])
def test_it_is_the_gradient_to_every_token_s_own_length(n_classes, scale):
    """With weights, unequal lengths, repeated tokens, an empty document and an unseen token."""
    X, loss, values = problem(n_classes, 1, reference.counts(1, 6) * (0.37 if scale else 1.0))
    scores = scale * torch.from_numpy(np.random.default_rng(1).normal(size=X.shape[1]))
    objective = SelectiveObjective(X, loss, values)
    point = objective(scores)
    assert objective.is_spread == (scale <= 30)
    with mpmath.workdps(100 + 4 * int(scale)):
        expected, log_size = exact(X, loss, values, scores)
    assert_allclose(point.direction, expected, rtol=1e-10, atol=1e-300 if scale > 1 else 1e-14)
    assert point.log_size == pytest.approx(log_size, rel=1e-12, abs=1e-12)
    matrix = torch.nn.functional.pad(torch.column_stack([scores, values]), (0, 0, 0, 1))
    assert point.loss == pytest.approx(loss(matrix)[0] / loss.total_weight, rel=1e-12)
    assert float(point.direction[X.shape[1] // 2]) == 0


@CLASSES
@pytest.mark.parametrize(
    ("scores", "is_spread"),
    [
        ([1000.0, 1001.0, 1000.0, 999.0], True),
        ([-1000.0, -1001.0, -1000.0, -999.0], True),
        ([720.0, 721.0, 0.0, 1.0], False),  # the second document's mass has few digits
        ([30.0, 0.0, 0.0, 30.0], False),  # attention 1 - 1e-13 has few digits of the rest
        ([2000.0, 0.0, 0.0, 2000.0], False),  # attention of exp(-2000) is no number
    ],
)
def test_scores_of_any_size(n_classes, scores, is_spread):
    X, loss, values = problem(n_classes, X=[[1, 2, 0, 0], [0, 0, 1, 3]])
    scores = torch.tensor(scores, dtype=torch.float64)
    objective = SelectiveObjective(X, loss, values)
    point = objective(scores)
    assert objective.is_spread == is_spread
    with mpmath.workdps(2000):
        expected, log_size = exact(X, loss, values, scores)
    assert_allclose(point.direction, expected, rtol=1e-11)
    assert point.log_size == pytest.approx(log_size, rel=1e-11)


@CLASSES
def test_ties_and_the_selection(n_classes):
    """The leading token is the first of several: which one must not matter."""
    X, loss, values = problem(n_classes, X=[[1, 1, 1, 0], [0, 2, 2, 1], [1, 0, 0, 1]])
    scores = torch.tensor([800.0, 800.0, 800.0, 100.0], dtype=torch.float64)
    objective = SelectiveObjective(X, loss, values)
    point = objective(scores)
    with mpmath.workdps(1000):
        expected, _ = exact(X, loss, values, scores)
    assert_allclose(point.direction, expected, rtol=1e-11, atol=1e-300)
    selected, unselected = objective.selection(scores)
    rows, tokens = selected_tokens(scores.numpy(), X).nonzero()
    assert_array_equal(objective.documents[selected], rows)
    assert_array_equal(objective.tokens[selected], tokens)
    assert unselected < 1e-12
