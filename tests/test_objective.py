"""The objective: its gradient, its invariances, and the saturated path."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import (
    PaddedDocuments,
    counts,
    embed,
    loss_and_gradient,
    mean_loss,
    outputs,
)
from torch.testing import assert_close

from sklearn_clsattn._core.bag import TokenBag
from sklearn_clsattn._core.chunk import Chunk
from sklearn_clsattn._core.corpus import Corpus, CorpusLoss
from sklearn_clsattn._core.lbfgs import minimize_lbfgs
from sklearn_clsattn._core.loss import AttentionLoss
from sklearn_clsattn._core.objective import CLS_PENALTY, AttentionObjective
from sklearn_clsattn._core.statistics import Scaling

PENALTIES = (0.7, 0.3, CLS_PENALTY)  # value_C, score_C, cls_penalty
N_OUTPUTS = pytest.mark.parametrize("n_outputs", [1, 3, 7], ids=["K=2", "K=3", "K=7"])
CLS = pytest.mark.parametrize("cls_weight", [2.5, 0.0], ids=["cls", "no cls"])
BACKEND = pytest.mark.parametrize("backend", ["torch", "scipy"])
EXACT = {"rtol": 1e-9, "atol": 1e-11}


class OneLoss(CorpusLoss):
    """The loss of one chunk, as that of a corpus."""

    def __init__(self, loss):
        self.corpus = Corpus([Chunk(None, None, None, loss=loss)])
        self._shape = tuple(loss.zeros().shape)
        self.dtype, self.device, self.n_outputs = loss.bag.dtype, loss.bag.device, loss.n_outputs
        self.total_weight, self.cls_weight = loss.total_weight, loss.cls_weight


class Problem:
    """A small random problem: documents, targets, weights, units and a point."""

    def __init__(self, n_outputs=1, cls_weight=2.5, *, X=None, seed=0, scaled=True, spread=1.0):
        self.X = counts(seed) if X is None else X
        n_documents, n_tokens = self.X.shape
        rng = np.random.default_rng(seed + 100)

        def normal(*shape):
            return torch.from_numpy(rng.normal(size=shape))

        self.targets = (
            torch.from_numpy(rng.choice([-1.0, 1.0], n_documents))
            if n_outputs == 1
            else torch.from_numpy(rng.integers(0, n_outputs, n_documents))
        )
        self.weights = torch.from_numpy(rng.uniform(0.2, 3.0, n_documents))
        self.cls_weight = cls_weight
        self.starting_scores = torch.zeros(n_tokens).double()
        self.value_scales = torch.ones(n_tokens, n_outputs).double()
        if scaled:
            self.starting_scores = normal(n_tokens)
            self.value_scales = normal(n_tokens, n_outputs).exp()
        self.point = normal(n_tokens + 1, 1 + n_outputs)
        self.point[:-1, 0] *= spread
        if not cls_weight:
            self.point[-1, 0] = 0.0

    def loss(self, *, X=None, dtype=torch.float64, backend="scipy", rows=None, weights=None):
        X = self.X if X is None else X
        rows = slice(None) if rows is None else rows
        return AttentionLoss(
            TokenBag(X.astype(str(dtype).removeprefix("torch.")), backend=backend),
            self.targets[rows],
            self.weights[rows] if weights is None else weights,
            self.value_scales.shape[1],
            cls_weight=self.cls_weight,
        )

    def objective(self, *, dtype=torch.float64, **how):
        loss = OneLoss(self.loss(dtype=dtype, **how))
        arrays = (array.to(dtype).numpy() for array in (self.starting_scores, self.value_scales))
        classes = np.ones(max(2, self.value_scales.shape[1]))
        value_C, score_C, _ = PENALTIES
        scaling = Scaling(*arrays, self.cls_weight, 1.0)
        return AttentionObjective(loss, classes, scaling, C=value_C, attention_C=score_C)

    def reference(self, point=None):
        return loss_and_gradient(
            self.point if point is None else point,
            PaddedDocuments.from_counts(self.X),
            self.targets,
            self.weights,
            self,
            PENALTIES,
        )


def assert_same(result, expected, **tolerance):
    """Compare two pairs of loss and gradient."""
    tolerance = tolerance or EXACT
    assert result[0] == pytest.approx(expected[0], rel=tolerance["rtol"], abs=tolerance["atol"])
    assert_close(result[1].double(), expected[1].double(), **tolerance)


@N_OUTPUTS
@CLS
@BACKEND
@pytest.mark.parametrize("scaled", [True, False], ids=["scaled", "unscaled"])
def test_loss_and_gradient_are_those_of_the_padded_model(n_outputs, cls_weight, backend, scaled):
    problem = Problem(n_outputs, cls_weight, scaled=scaled)
    assert_same(problem.objective(backend=backend)(problem.point), problem.reference())


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.sampled_from([1, 3]), st.sampled_from([0.0, 1.3]))
def test_weights_that_are_not_whole_counts(seed, n_outputs, cls_weight):
    X = counts(seed, 6, 5)
    X.data *= np.random.default_rng(seed).uniform(0.1, 2.0, len(X.data))
    problem = Problem(n_outputs, cls_weight, X=X, seed=seed)
    assert_same(problem.objective()(problem.point), problem.reference())


@N_OUTPUTS
@CLS
def test_gradient_against_finite_differences(n_outputs, cls_weight):
    problem = Problem(n_outputs, cls_weight, seed=1)
    objective = problem.objective()
    generator = torch.Generator().manual_seed(0)
    gradient = objective(problem.point)[1]
    for _ in range(5):
        direction = torch.randn(problem.point.shape, generator=generator, dtype=torch.float64)
        if not cls_weight:
            direction[-1, 0] = 0.0
        # Richardson's extrapolation of central differences: error O(h^4).
        slopes = []
        for h in (2e-3, 1e-3):
            after, before = (objective(problem.point + s * direction)[0] for s in (h, -h))
            slopes.append((after - before) / (2 * h))
        slope = (4 * slopes[1] - slopes[0]) / 3
        assert float((gradient * direction).sum()) == pytest.approx(slope, rel=1e-8, abs=1e-9)


@N_OUTPUTS
def test_backends_agree(n_outputs):
    problem = Problem(n_outputs, seed=2)
    one, other = (problem.objective(backend=b)(problem.point) for b in ("torch", "scipy"))
    assert_same(one, other, rtol=1e-13, atol=1e-14)


@N_OUTPUTS
@CLS
@BACKEND
def test_single_precision_is_close_to_double(n_outputs, cls_weight, backend):
    problem = Problem(n_outputs, cls_weight, seed=3)
    single = problem.objective(dtype=torch.float32, backend=backend)
    loss, gradient = single(problem.point.float())
    assert gradient.dtype == torch.float32
    assert_same((loss, gradient), problem.objective()(problem.point), rtol=2e-5, atol=2e-6)


@N_OUTPUTS
def test_permuting_documents_changes_nothing(n_outputs):
    problem = Problem(n_outputs, seed=4)
    order = np.random.default_rng(0).permutation(problem.X.shape[0])
    permuted = problem.objective(X=problem.X[order], rows=torch.from_numpy(order))
    assert_same(permuted(problem.point), problem.objective()(problem.point))


@N_OUTPUTS
def test_permuting_tokens_permutes_the_gradient(n_outputs):
    problem = Problem(n_outputs, seed=5)
    loss, gradient = problem.objective()(problem.point)
    order = np.random.default_rng(0).permutation(problem.X.shape[1])
    problem.X = problem.X[:, order]
    problem.starting_scores = problem.starting_scores[order]
    problem.value_scales = problem.value_scales[order]
    rows = torch.from_numpy(np.append(order, len(order)))
    assert_same(problem.objective()(problem.point[rows]), (loss, gradient[rows]))


@N_OUTPUTS
def test_a_weight_is_a_repetition(n_outputs):
    problem = Problem(n_outputs, seed=6)
    repeats = np.random.default_rng(0).integers(0, 4, problem.X.shape[0])
    weighted = problem.objective(weights=torch.from_numpy(repeats))
    rows = np.repeat(np.arange(len(repeats)), repeats)
    ones = torch.ones(len(rows)).double()
    repeated = problem.objective(X=problem.X[rows], rows=torch.from_numpy(rows), weights=ones)
    assert_same(weighted(problem.point), repeated(problem.point))


@N_OUTPUTS
@CLS
def test_splitting_a_token_in_two_with_the_same_score_and_value(n_outputs, cls_weight):
    problem = Problem(n_outputs, cls_weight, seed=7)
    loss, gradient = problem.loss()(problem.point)
    dense = problem.X.toarray()
    share = np.random.default_rng(0).uniform(0, 1, len(dense))
    problem.X = sp.csr_matrix(
        np.column_stack([share * dense[:, 0], dense[:, 1:], (1 - share) * dense[:, 0]])
    )
    tokens = [*range(dense.shape[1]), 0]
    split_loss, split = problem.loss()(problem.point[[*tokens, -1]])
    merged = torch.cat([split[:1] + split[-2:-1], split[1:-2], split[-1:]])
    assert_same((split_loss, merged), (loss, gradient))


@N_OUTPUTS
@CLS
@pytest.mark.parametrize("spread", [1.0, 1000.0], ids=["fast", "saturated"])
def test_sums_over_two_shards_add_up_to_the_whole(n_outputs, cls_weight, spread):
    problem = Problem(n_outputs, cls_weight, seed=8, spread=spread)
    loss, gradient = problem.loss()(problem.point)
    shards = [
        problem.loss(X=problem.X[rows], rows=rows)(problem.point)
        for rows in (slice(0, 5), slice(5, None))
    ]
    total = shards[0][0] + shards[1][0], shards[0][1] + shards[1][1]
    assert_same(total, (loss, gradient))


@N_OUTPUTS
@CLS
@pytest.mark.parametrize("constant", [-700.0, 3.0, 5000.0])
def test_a_constant_on_all_scores_changes_nothing(n_outputs, cls_weight, constant):
    problem = Problem(n_outputs, cls_weight, seed=9)
    shifted = problem.point.clone()
    shifted[:, 0] += constant
    loss = problem.loss()
    expected = loss(problem.point)
    assert_same(loss(shifted), expected, rtol=1e-9, atol=1e-10)
    # So the derivative along that direction is 0.
    assert float(expected[1][:, 0].sum()) == pytest.approx(0, abs=1e-12)


@N_OUTPUTS
@CLS
@BACKEND
def test_the_saturated_path_agrees_with_the_fast_one(n_outputs, cls_weight, backend):
    problem = Problem(n_outputs, cls_weight, seed=10, spread=5.0)
    loss = problem.loss(backend=backend)
    assert_same(loss._saturated(problem.point), loss(problem.point))


@N_OUTPUTS
@CLS
@BACKEND
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_scores_a_thousand_apart(n_outputs, cls_weight, backend, dtype):
    problem = Problem(n_outputs, cls_weight, seed=11, spread=1000.0)
    point = problem.point.to(dtype)
    if dtype == torch.float32:  # the reference must be asked about the same numbers
        problem.starting_scores = problem.starting_scores.float()
        problem.value_scales = problem.value_scales.float()
    loss, gradient = problem.objective(dtype=dtype, backend=backend)(point)
    assert np.isfinite(loss)
    tolerance = EXACT if dtype == torch.float64 else {"rtol": 1e-5, "atol": 1e-5}
    assert_same((loss, gradient), problem.reference(point), **tolerance)


@CLS
def test_all_documents_empty(cls_weight):
    for stored_zeros in (False, True):
        X = sp.csr_matrix(np.ones((4, 3)))
        X.data[:] = 0
        if not stored_zeros:
            X.eliminate_zeros()
        problem = Problem(1, cls_weight, X=X)
        assert_same(problem.objective()(problem.point), problem.reference())


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_a_perfectly_confident_model_stays_finite(n_outputs):
    problem = Problem(n_outputs, seed=12)
    point = problem.point.clone()
    point[:, 1:] *= 1e4
    assert_same(problem.objective()(point), problem.reference(point))


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_minimising_over_embeddings_is_minimising_over_scores_and_values(n_outputs):
    """The representer fact: d drops out, and ||E||^2 is two penalties, on a and on b."""
    problem = Problem(n_outputs, seed=13)
    n_tokens = problem.X.shape[1]
    documents = PaddedDocuments.from_counts(problem.X)
    _, p, v = embed(torch.zeros(n_tokens).double(), torch.zeros(n_tokens, n_outputs).double())
    v /= v.norm(dim=1, keepdim=True) * 0.8  # one length, as one value_C is one penalty
    strength = 0.05
    cls_weight, cls_score = 2.5, 0.3
    generator = torch.Generator().manual_seed(1)
    start = 0.1 * torch.randn(n_tokens, len(p), generator=generator, dtype=torch.float64)

    def over_embeddings(embeddings):
        leaf = embeddings.clone().requires_grad_()
        decisions = outputs(documents, leaf, p, v, cls_weight, cls_score, 0.0)
        loss = mean_loss(decisions, problem.targets, problem.weights)
        loss = loss + strength / 2 * (leaf**2).sum()
        return float(loss.detach()), torch.autograd.grad(loss, leaf)[0]

    loss = AttentionLoss(
        TokenBag(problem.X), problem.targets, problem.weights, n_outputs, cls_weight=cls_weight
    )
    total = loss.total_weight
    objective = AttentionObjective(
        OneLoss(loss),
        np.ones(max(2, n_outputs)),
        Scaling(np.zeros(n_tokens), np.ones((n_tokens, n_outputs)), cls_weight, 1.0),
        C=float((v[0] ** 2).sum()) / strength / total,
        attention_C=float((p**2).sum()) / strength / total,
    )

    def over_scores_and_values(parameters):
        full = torch.cat([parameters, torch.zeros(1, 1 + n_outputs).double()])
        full[-1, 0] = cls_score
        loss, gradient = objective(full)
        return loss - CLS_PENALTY / 2 * cls_score**2, gradient[:-1]

    def minimum(function, start):
        return minimize_lbfgs(
            function,
            start,
            is_converged=lambda iterate: float(iterate.gradient.norm()) < 1e-9,
            max_iter=500,
        )

    embeddings = minimum(over_embeddings, start)
    columns = torch.cat([start @ p[:, None], start @ v.T], dim=1)
    pairs = minimum(over_scores_and_values, columns)
    assert embeddings.value < over_embeddings(start)[0] - 1e-3
    assert pairs.value == pytest.approx(embeddings.value, abs=1e-10)
    assert_close(pairs.x[:, 0], embeddings.x @ p, rtol=1e-5, atol=1e-6)
    assert_close(pairs.x[:, 1:], embeddings.x @ v.T, rtol=1e-5, atol=1e-6)
