"""The margin maximiser without a solver: against non-negative least squares and PIQP, certified."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls
from test_theory_max_margin import deep_instance, instance

from sklearn_clsattn.theory import max_margin_direction, maximise_margin, token_pairs
from sklearn_clsattn.theory._token_embeddings import ExplicitEmbeddings, LimitEmbeddings

METHODS = ["augmented_lagrangian", "dual_acceleration"]


def pair_tensors(X, selected):
    pairs = token_pairs(X, selected)
    return torch.from_numpy(pairs.better), torch.from_numpy(pairs.worse)


def single_relevant(seed, n_tokens=60, n_documents=150, length=6):
    """Return documents with one relevant token each, which they select, and limit embeddings."""
    rng = np.random.default_rng(seed)
    n_relevant = 6
    X = np.zeros((n_documents, n_tokens))
    selected = np.zeros((n_documents, n_tokens), dtype=bool)
    for row, chosen in zip(X, selected, strict=True):
        relevant = rng.integers(n_relevant)
        row[relevant] = chosen[relevant] = 1
        row[rng.choice(np.arange(n_relevant, n_tokens), length, replace=False)] = 1
    shifts = np.zeros((n_tokens, 1))
    shifts[:n_relevant, 0] = rng.choice([-1, 1], n_relevant) * rng.uniform(0.3, 1, n_relevant)
    return X, selected, shifts


def one_less_cosine(p, q):
    # Through the difference of unit vectors: 1 - cosine itself is lost in rounding.
    p, q = np.asarray(p), np.asarray(q)
    return np.sum((p / np.linalg.norm(p) - q / np.linalg.norm(q)) ** 2) / 2


def least_squares_direction(E, better, worse):
    """Return the solution by non-negative least squares (Lawson & Hanson's LDP)."""
    rows = E[better] - E[worse]
    stacked = np.vstack([rows.T, np.ones(len(rows))])
    m, _ = nnls(stacked, np.append(np.zeros(E.shape[1]), 1.0))
    return rows.T @ m / (1 - m.sum())


@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_least_squares_and_never_claims_too_much(seed):
    X, selected, E = instance(seed)
    better, worse = pair_tensors(X, selected)
    p = least_squares_direction(E, better.numpy(), worse.numpy())
    claims = []

    def check(progress):
        claims.append(progress.error)
        if progress.margin > 0:
            assert one_less_cosine(progress.direction, p) <= progress.error + 1e-12

    result = maximise_margin(
        ExplicitEmbeddings(torch.from_numpy(E)),
        better,
        worse,
        callback=check,
        tol=1e-6,
        max_iter=4000,
    )
    assert claims == result.history
    assert (np.diff(claims) <= 0).all()
    assert one_less_cosine(result.direction, p) <= min(result.error + 1e-12, 1e-4)
    assert result.status == "converged"
    assert result.error <= 1e-6
    np.testing.assert_allclose(result.direction, p, rtol=0, atol=1e-3 * np.abs(p).max())


def test_certifies_data_of_one_relevant_token():
    X, selected, shifts = single_relevant(0)
    better, worse = pair_tensors(X, selected)
    embeddings = LimitEmbeddings(torch.from_numpy(shifts))
    result = maximise_margin(embeddings, better, worse, tol=1e-7)
    assert result.status == "converged"
    assert result.n_iter < 1000
    dense = np.hstack([np.eye(60), shifts])
    p = least_squares_direction(dense, better.numpy(), worse.numpy())
    assert one_less_cosine(result.direction, p) <= 1e-7
    np.testing.assert_allclose(result.scores, dense @ result.direction.numpy(), atol=1e-12)
    assert (result.scores[better] - result.scores[worse]).min() >= 1 - 1e-12
    assert math.isclose(result.margin, 1 / np.linalg.norm(result.direction), rel_tol=1e-9)
    # The proof, made again from the weights: no margin is above this norm.
    q = result.multipliers.numpy()
    assert (q >= 0).all()
    assert math.isclose(q.sum(), 1.0)
    bound = np.linalg.norm(q @ (dense[better] - dense[worse]))
    assert math.isclose(1 - result.error, result.margin / bound, rel_tol=1e-12)


def test_agrees_with_the_quadratic_programme_on_deep_chains():
    pytest.importorskip("piqp")
    X, selected, shifts = deep_instance()
    embeddings = LimitEmbeddings(torch.from_numpy(shifts))
    better, worse = pair_tensors(X, selected)
    exact = max_margin_direction(embeddings, X, selected)
    result = maximise_margin(embeddings, better, worse)
    assert result.status == "converged"
    assert result.n_iter < 2000
    assert one_less_cosine(result.direction, exact.direction) <= 1e-8


@given(st.integers(0, 10_000))
@settings(max_examples=15)
def test_scale_order_and_repetition_change_nothing(seed):
    X, selected, E = instance(seed)
    better, worse = pair_tensors(X, selected)
    p = maximise_margin(ExplicitEmbeddings(torch.from_numpy(E)), better, worse, tol=1e-10)
    order = torch.randperm(len(better), generator=torch.Generator().manual_seed(seed))
    order = torch.cat([order, order[:3]])
    for scale in (1e-4, 1.0, 1e4):
        embeddings = ExplicitEmbeddings(torch.from_numpy(scale * E))
        again = maximise_margin(embeddings, better[order], worse[order], tol=1e-10)
        assert again.status == "converged"
        assert one_less_cosine(again.direction, p.direction) <= 4e-10
        assert math.isclose(again.margin, scale * p.margin, rel_tol=1e-9)


def test_starting_at_the_solution_ends_soon():
    X, selected, shifts = single_relevant(1)
    better, worse = pair_tensors(X, selected)
    embeddings = LimitEmbeddings(torch.from_numpy(shifts))
    cold = maximise_margin(embeddings, better, worse, tol=1e-9)
    before = cold.direction.clone()
    warm = maximise_margin(embeddings, better, worse, start=cold.direction, tol=1e-6)
    assert warm.status == "converged"
    assert one_less_cosine(warm.direction, cold.direction) <= 2e-6
    assert torch.equal(cold.direction, before)


def test_a_start_of_any_size_is_survived():
    X, selected, shifts = single_relevant(2)
    better, worse = pair_tensors(X, selected)
    embeddings = LimitEmbeddings(torch.from_numpy(shifts))
    start = 300.0 * torch.randn(61, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    result = maximise_margin(embeddings, better, worse, start=start, max_iter=200)
    assert torch.isfinite(result.direction).all()
    assert np.isfinite(result.history).all()


def test_the_caller_can_stop_it():
    X, selected, shifts = single_relevant(3)
    better, worse = pair_tensors(X, selected)
    result = maximise_margin(
        LimitEmbeddings(torch.from_numpy(shifts)),
        better,
        worse,
        tol=1e-14,
        callback=lambda progress: progress.error < 0.5,
    )
    assert result.status == "stopped"
    assert result.history[-1] < 0.5 <= result.history[-2]


def test_a_cycle_has_no_margin():
    embeddings = ExplicitEmbeddings(torch.eye(3, dtype=torch.float64))
    result = maximise_margin(embeddings, torch.tensor([0, 1, 2]), torch.tensor([1, 2, 0]))
    assert result.status == "infeasible"
    assert result.error == 2.0
    assert result.margin <= 0


def test_too_few_dimensions_have_no_margin():
    X, selected, _ = deep_instance(60, 200, 8)
    E = torch.randn(60, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    result = maximise_margin(ExplicitEmbeddings(E), *pair_tensors(X, selected))
    assert result.status == "infeasible"
    assert result.margin <= 0


def test_single_precision_embeddings_are_computed_in_double():
    X, selected, E = instance(0)
    better, worse = pair_tensors(X, selected)
    single = torch.from_numpy(E.astype(np.float32))
    result = maximise_margin(ExplicitEmbeddings(single), better, worse)
    double = maximise_margin(ExplicitEmbeddings(single.double()), better, worse)
    assert result.direction.dtype == torch.float64
    assert torch.equal(result.direction, double.direction)
    limit = maximise_margin(LimitEmbeddings(single[:, :1]), better, worse)
    assert limit.status == "converged"


def test_without_pairs_there_is_nothing_to_do():
    none = torch.empty(0, dtype=torch.int64)
    result = maximise_margin(ExplicitEmbeddings(torch.eye(3).double()), none, none)
    assert result.status == "converged"
    assert result.margin == math.inf
    assert result.direction.tolist() == [0, 0, 0]
    assert result.error == 0


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"max_iter": 0}, "max_iter must be 1 or more"),
        ({"tol": 0.0}, "tol must be positive"),
        ({"better": torch.tensor([0.0])}, "int64 vectors of one length"),
        ({"worse": torch.tensor([1, 2])}, "int64 vectors of one length"),
        ({"worse": torch.tensor([3])}, "tokens from 0 to 2.*got 0 to 3"),
        ({"start": torch.zeros(2)}, r"start must be finite and have shape \(3,\)"),
        ({"start": torch.full((3,), math.nan)}, "start must be finite"),
    ],
    ids=["max_iter", "tol", "type", "length", "range", "start", "nan"],
)
def test_bad_input_is_refused(arguments, match):
    good = {"better": torch.tensor([0]), "worse": torch.tensor([1])}
    with pytest.raises(ValueError, match=match):
        maximise_margin(ExplicitEmbeddings(torch.eye(3).double()), **{**good, **arguments})
