"""The max-margin direction: against slow solvers, by its optimality conditions, and infeasible."""

import importlib
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, nnls

from sklearn_clsattn.theory import (
    InfeasibleSelectionError,
    max_margin_direction,
    selected_tokens,
    token_pairs,
)
from sklearn_clsattn.theory import _max_margin as max_margin_module
from sklearn_clsattn.theory._quadratic import Solution
from sklearn_clsattn.theory._token_embeddings import ExplicitEmbeddings, LimitEmbeddings

pytest.importorskip("piqp")


def instance(seed, n_documents=15, n_tokens=8, length=3, d=None):
    """Return documents, a selection by random scores, and generic embeddings."""
    rng = np.random.default_rng(seed)
    X = np.zeros((n_documents, n_tokens))
    for row in X:
        row[rng.choice(n_tokens, length, replace=False)] = rng.integers(1, 4, length)
    E = rng.normal(size=(n_tokens, d or n_tokens + 3))
    scores = rng.normal(size=n_tokens) if d is None else E @ rng.normal(size=d)
    return sp.csr_array(X), selected_tokens(scores, X), E


def deep_instance(n_tokens=300, n_documents=600, length=25):
    """Return documents of Zipfian tokens whose selection makes long chains of pairs."""
    rng = np.random.default_rng(0)
    frequency = 1 / np.arange(1, n_tokens + 1) ** 0.7
    X = rng.multinomial(length, frequency / frequency.sum(), n_documents)
    return X, selected_tokens(rng.normal(size=n_tokens), X), rng.uniform(-1, 1, (n_tokens, 1))


def differences(E, X, selected):
    pairs = token_pairs(X, selected)
    return E[pairs.better] - E[pairs.worse]


def check_optimality(result, E, X, selected):
    """Check the Karush-Kuhn-Tucker conditions on every pair, from the embeddings alone."""
    rows = differences(E, X, selected)
    p = result.direction
    assert (rows @ p).min() >= 1 - 1e-9
    assert result.max_violation <= 1e-9
    assert result.duality_gap <= 1e-8
    assert (result.multipliers >= 0).all()
    support = result.support_pairs
    tight = E[support[:, 0]] - E[support[:, 1]]
    np.testing.assert_allclose(tight @ p, 1, atol=2e-6)
    np.testing.assert_allclose(result.multipliers @ tight, p, atol=1e-9 * np.abs(p).max())
    np.testing.assert_allclose(result.scores, E @ p, atol=1e-9)
    np.testing.assert_allclose(result.margin, 1 / np.linalg.norm(p))
    assert result.n_pairs == len(rows)
    assert len(result.dropped_pairs) == 0


@pytest.mark.parametrize("seed", range(6))
def test_agrees_with_slsqp_and_with_non_negative_least_squares(seed):
    X, selected, E = instance(seed, d=None if seed % 2 else 5)
    result = max_margin_direction(E, X, selected)
    check_optimality(result, E, X, selected)
    rows = differences(E, X, selected)
    slsqp = minimize(
        lambda p: p @ p / 2,
        result.direction + 0.1,
        jac=lambda p: p,
        constraints={"type": "ineq", "fun": lambda p: rows @ p - 1, "jac": lambda p: rows},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(result.direction, slsqp.x, atol=1e-5)
    # The least distance of Z'm from 0 and of 1'm from 1, over m >= 0, is Lawson and Hanson's
    # way to the same p: it is Z'm / (1 - 1'm).
    stacked = np.vstack([rows.T, np.ones(len(rows))])
    m, _ = nnls(stacked, np.append(np.zeros(E.shape[1]), 1.0))
    np.testing.assert_allclose(result.direction, rows.T @ m / (1 - m.sum()), atol=1e-7)


def test_a_deep_instance_is_solved_to_optimality():
    X, selected, shifts = deep_instance()
    result = max_margin_direction(LimitEmbeddings(torch.from_numpy(shifts)), X, selected)
    assert result.n_pairs > 4000
    check_optimality(result, np.hstack([np.eye(300), shifts]), X, selected)
    assert result.scores.max() - result.scores.min() > 8  # chains, not one step


@pytest.mark.parametrize("n_tokens", [2, 50, 2000])
def test_a_chain_is_a_ladder_of_scores_however_long(n_tokens):
    # Its norm is 26,000 for 2,000 tokens, far from the units in which the solver starts.
    links = np.arange(n_tokens - 1)
    selected = sp.csr_array((np.ones(n_tokens - 1), (links, links)), (n_tokens - 1, n_tokens))
    X = selected + sp.csr_array((np.ones(n_tokens - 1), (links, links + 1)), selected.shape)
    embeddings = LimitEmbeddings(torch.zeros(n_tokens, 1))
    result = max_margin_direction(embeddings, X, selected)
    ladder = (n_tokens - 1) / 2 - np.arange(n_tokens)
    np.testing.assert_allclose(result.scores, ladder, atol=1e-5)
    assert len(result.support_pairs) == n_tokens - 1


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_kernel_explicit_limit_and_materialised_limit_agree(n_outputs):
    X, selected, _ = instance(3, 40, 20, 5)
    shifts = np.random.default_rng(0).normal(size=(20, n_outputs))
    dense = np.hstack([np.eye(20), shifts])
    limit = max_margin_direction(LimitEmbeddings(torch.from_numpy(shifts)), X, selected)
    check_optimality(limit, dense, X, selected)
    explicit = max_margin_direction(ExplicitEmbeddings(torch.from_numpy(dense)), X, selected)
    array = max_margin_direction(dense, X, selected)
    kernel = max_margin_direction(None, X, selected, kernel=dense @ dense.T)
    for other in (explicit, array, kernel):
        np.testing.assert_allclose(other.scores, limit.scores, atol=1e-7)
        np.testing.assert_allclose(other.margin, limit.margin, rtol=1e-8)
    np.testing.assert_allclose(explicit.direction, limit.direction, atol=1e-7)
    np.testing.assert_allclose(dense.T @ kernel.direction, limit.direction, atol=1e-7)


def test_a_singular_kernel_is_that_of_embeddings_of_few_dimensions():
    X, selected, E = instance(4, d=4)
    explicit = max_margin_direction(E, X, selected)
    kernel = max_margin_direction(None, X, selected, kernel=E @ E.T)
    np.testing.assert_allclose(E.T @ kernel.direction, explicit.direction, atol=1e-6)


def test_many_dimensions_are_reduced_without_a_trace():
    X, selected, _ = instance(5)
    E = np.random.default_rng(5).normal(size=(8, 500))
    result = max_margin_direction(E, X, selected)
    assert result.direction.shape == (500,)
    check_optimality(result, E, X, selected)


@given(st.integers(0, 10_000))
@settings(max_examples=25)
def test_invariances(seed):
    X, selected, E = instance(seed)
    rng = np.random.default_rng(seed)
    result = max_margin_direction(E, X, selected)
    p = result.direction
    tolerance = 1e-6 * np.abs(p).max()

    documents = rng.permutation(X.shape[0])
    again = max_margin_direction(E, X[documents], selected[documents])
    np.testing.assert_allclose(again.direction, p, atol=tolerance)

    repeated = np.concatenate([documents, documents[:5]])
    again = max_margin_direction(E, X[repeated] * 3, selected[repeated])
    np.testing.assert_allclose(again.direction, p, atol=tolerance)

    tokens = rng.permutation(X.shape[1])
    again = max_margin_direction(E[tokens], X[:, tokens], selected[:, tokens])
    np.testing.assert_allclose(again.direction, p, atol=tolerance)
    np.testing.assert_allclose(again.scores, result.scores[tokens], atol=1e-5)

    scale = 10.0 ** rng.integers(-4, 5)
    again = max_margin_direction(scale * E, X, selected)
    np.testing.assert_allclose(again.direction * scale, p, atol=tolerance)
    np.testing.assert_allclose(again.margin, result.margin * scale, rtol=1e-6)


def test_columns_never_seen_get_a_coefficient_of_zero():
    X, selected, _ = instance(6)
    wider = np.hstack([X.toarray(), np.zeros((15, 2))])
    chosen = np.hstack([selected.toarray(), np.zeros((15, 2), bool)])
    E = np.eye(10)
    result = max_margin_direction(E, wider, chosen)
    assert (result.direction[8:] == 0).all()
    kernel = max_margin_direction(None, wider, chosen, kernel=E)
    assert (kernel.direction[8:] == 0).all()


def test_without_pairs_the_direction_is_zero_and_its_margin_infinite():
    X = np.array([[1, 1, 0], [0, 0, 0]])
    for result in (
        max_margin_direction(np.eye(3), X, X > 0),
        max_margin_direction(None, X, X > 0, kernel=np.eye(3)),
    ):
        assert result.margin == np.inf
        assert result.n_pairs == 0
        assert result.direction.tolist() == [0, 0, 0]
        assert result.support_pairs.shape == (0, 2)


def test_empty_documents_contribute_nothing():
    X, selected, E = instance(7)
    empty = sp.csr_array((3, 8))
    again = max_margin_direction(
        E, sp.vstack([empty, X]), sp.vstack([empty.astype(bool), selected])
    )
    np.testing.assert_allclose(
        again.direction, max_margin_direction(E, X, selected).direction, atol=1e-9
    )


# -- selections that no direction makes ---------------------------------------------------------

NAMES = ["good", "bad", "film", "plot", "end", "cast"]
# Documents 0, 1 and 3 ask for good > bad > film > good; document 2 is no part of it.
CYCLE_X = np.array([[1, 1, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1], [1, 0, 1, 1, 0, 0]])
CYCLE_S = np.array([[1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0], [0, 0, 1, 0, 0, 0]])


def test_a_cycle_is_found_and_explained():
    with pytest.raises(InfeasibleSelectionError, match="cycle") as caught:
        max_margin_direction(np.eye(6), CYCLE_X, CYCLE_S, feature_names=NAMES)
    error = caught.value
    assert error.reason == "cycle"
    assert [component.tolist() for component in error.components] == [[0, 1, 2]]
    assert error.tokens.tolist() == [0, 1, 2]
    assert error.documents.tolist() == [0, 1, 3]
    follow_cycle(error, CYCLE_X, CYCLE_S)
    for name in NAMES[:3]:
        assert repr(name) in str(error)
    assert "document 3" in str(error)
    copy = pickle.loads(pickle.dumps(error))
    assert copy.cycle == error.cycle
    assert str(copy) == str(error)


def follow_cycle(error, X, selected):
    assert len(set(error.cycle)) == len(error.cycle) >= 2
    ahead = [*error.cycle[1:], error.cycle[0]]
    for better, worse, document in zip(error.cycle, ahead, error.cycle_documents, strict=True):
        assert selected[document, better]
        assert X[document, worse]
        assert not selected[document, worse]


def test_tokens_without_names_are_named_by_column():
    with pytest.raises(InfeasibleSelectionError, match="token 0 over token 1"):
        max_margin_direction(np.eye(2), np.ones((2, 2)), np.eye(2))


@given(st.integers(0, 10_000))
@settings(max_examples=40)
def test_infeasible_exactly_where_the_graph_has_a_cycle(seed):
    rng = np.random.default_rng(seed)
    X = (rng.random((6, 7)) < 0.4).astype(float)
    selected = np.zeros(X.shape, dtype=bool)
    for row, chosen in zip(X, selected, strict=True):
        if row.any():
            chosen[rng.choice(np.flatnonzero(row))] = True
    # Tokens without a predecessor are taken away until none is left, or only cycles are.
    edges = {
        (s, t)
        for row, chosen in zip(X, selected, strict=True)
        for s in np.flatnonzero(chosen)
        for t in np.flatnonzero((row > 0) & ~chosen)
    }
    while starts := {s for s, _ in edges} - {t for _, t in edges}:
        edges = {(s, t) for s, t in edges if s not in starts}
    if not edges:
        assert (max_margin_direction(np.eye(7), X, selected).margin) > 0
        return
    with pytest.raises(InfeasibleSelectionError) as caught:
        max_margin_direction(np.eye(7), X, selected)
    follow_cycle(caught.value, X, selected)
    across = max_margin_direction(np.eye(7), X, selected, on_infeasible="across_components")
    assert len(across.dropped_pairs) > 0
    labels = np.arange(7)
    for component in caught.value.components:
        labels[component] = component[0]
    dropped = across.dropped_pairs
    assert (labels[dropped[:, 0]] == labels[dropped[:, 1]]).all()
    pairs = token_pairs(X, selected)
    kept = labels[pairs.better] != labels[pairs.worse]
    assert across.n_pairs == kept.sum() == len(pairs) - len(across.dropped_pairs)
    assert (pairs.differences(across.scores)[kept] >= 1 - 1e-9).all()


def test_across_components_says_what_it_left_out():
    result = max_margin_direction(np.eye(6), CYCLE_X, CYCLE_S, on_infeasible="across_components")
    assert sorted(map(tuple, result.dropped_pairs.tolist())) == [(0, 1), (1, 2), (2, 0)]
    assert result.n_pairs == 3  # plot over end and cast; film over plot
    assert result.scores[2] > result.scores[3] > result.scores[4]


@pytest.mark.parametrize("d", [1, 2, 5, 10])
def test_too_few_dimensions_are_detected_and_said(d):
    X, selected, _ = deep_instance(60, 200, 8)
    E = np.random.default_rng(0).normal(size=(60, d))
    for arguments in ({"embeddings": E}, {"embeddings": None, "kernel": E @ E.T}):
        with pytest.raises(InfeasibleSelectionError, match="more dimensions") as caught:
            max_margin_direction(X=X, selected=selected, **arguments)
        assert caught.value.reason == "dimension"
        assert caught.value.cycle == []
    assert max_margin_direction(np.eye(60), X, selected).margin > 0


@pytest.mark.parametrize("others", [0, 30])
def test_equal_embeddings_cannot_be_told_apart(others):
    E = np.random.default_rng(0).normal(size=(2 + others, 50))
    E[0] = E[1]
    X, selected = np.ones((1, 2 + others)), np.eye(1, 2 + others)
    for arguments in ({"embeddings": E}, {"embeddings": None, "kernel": E @ E.T}):
        with pytest.raises(InfeasibleSelectionError, match="more dimensions"):
            max_margin_direction(X=X, selected=selected, **arguments)


# -- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"embeddings": None}, "either embeddings or kernel"),
        ({"kernel": np.eye(3)}, "either embeddings or kernel"),
        ({"embeddings": np.eye(2)}, r"one row for each of the 3 columns.*\(2, 2\)"),
        ({"embeddings": np.ones(3)}, "one row for each"),
        ({"embeddings": np.full((3, 3), np.nan)}, "finite"),
        ({"embeddings": None, "kernel": np.eye(2)}, r"kernel must have shape \(3, 3\)"),
        ({"embeddings": None, "kernel": np.triu(np.ones((3, 3)))}, "symmetric"),
        ({"embeddings": None, "kernel": -np.eye(3)}, "positive semi-definite"),
        ({"embeddings": None, "kernel": np.full((3, 3), np.inf)}, "finite"),
        ({"feature_names": ["a"]}, "feature_names must have one name for each of 3 tokens"),
        ({"on_infeasible": "ignore"}, "on_infeasible must be"),
        ({"X": [[1, -1, 0]]}, "non-negative"),
        ({"selected": [[0, 0, 1]]}, "X has no token"),
        ({"selected": [[0, 0, 0]]}, "select none"),
    ],
    ids=lambda value: None if isinstance(value, str) else "-".join(value),
)
def test_bad_input_is_refused(arguments, match):
    good = {"embeddings": np.eye(3), "X": [[1, 1, 0]], "selected": [[1, 0, 0]]}
    with pytest.raises(ValueError, match=match):
        max_margin_direction(**{**good, **arguments})


def test_a_missing_solver_is_named(monkeypatch):
    imported = importlib.import_module

    def without_piqp(name, *arguments):
        if name == "piqp":
            raise ImportError(name)
        return imported(name, *arguments)

    monkeypatch.setattr(importlib, "import_module", without_piqp)
    with pytest.raises(ImportError, match=r"pip install 'sklearn-clsattn\[theory\]'"):
        max_margin_direction(np.eye(2), [[1, 1]], [[1, 0]])


@pytest.mark.parametrize(
    ("multipliers", "match"),
    [([1.0, 0.0], "not feasible"), ([0.5, 0.9], "fails the checks")],
    ids=["infeasible", "suboptimal"],
)
def test_a_solver_that_did_not_deliver_is_found_out(monkeypatch, multipliers, match):
    def wrong(matrix, pairs, scale):
        return Solution(True, np.array(multipliers), np.arange(2), "says it solved it")

    monkeypatch.setattr(max_margin_module, "solve_max_margin", wrong)
    with pytest.raises(RuntimeError, match=match):
        max_margin_direction(np.eye(4), [[1, 1, 0, 0], [0, 0, 1, 1]], [[1, 0, 0, 0], [0, 0, 1, 0]])


def test_a_solver_that_gives_up_is_not_taken_for_infeasibility(monkeypatch):
    def gave_up(matrix, pairs, scale):
        return Solution(False, np.array([1.0]), np.arange(1), "PIQP_MAX_ITER_REACHED")

    monkeypatch.setattr(max_margin_module, "solve_max_margin", gave_up)
    with pytest.raises(RuntimeError, match="PIQP_MAX_ITER_REACHED"):
        max_margin_direction(np.eye(2), [[1, 1]], [[1, 0]])
