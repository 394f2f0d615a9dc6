"""Selected tokens, the pairs they order, and the max-margin direction with its proof."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import counts
from scipy.optimize import nnls

from sklearn_clsattn.paper import max_margin_direction, selected_tokens
from sklearn_clsattn.paper._max_margin import pair_graph

pytest.importorskip("piqp")

# Selected tokens and their pairs


def slow_pairs(X, selected):
    return sorted(
        {
            (s, t)
            for row, chosen in zip(X > 0, selected, strict=True)
            for s in np.flatnonzero(chosen)
            for t in np.flatnonzero(row & ~chosen)
        }
    )


@pytest.mark.parametrize(
    "form",
    [
        sp.csc_matrix,
        sp.coo_array,
        lambda X: X.toarray().astype(int).tolist(),
        lambda X: pd.DataFrame(X.toarray()),
    ],
)
def test_selection_and_pairs_agree_with_loops(form):
    X = counts(0, 40, 15)
    scores = np.random.default_rng(1).integers(-3, 3, 15).astype(float)  # with ties
    selected = selected_tokens(scores, form(X))
    assert selected.format == "csr"
    assert selected.dtype == bool
    assert selected.data.all()
    for row, chosen in zip(X.toarray() > 0, selected.toarray(), strict=True):
        highest = scores[row].max(initial=-np.inf)
        np.testing.assert_array_equal(chosen, row & (scores >= highest - 1e-6))
    graph = pair_graph(form(X), form(sp.csr_matrix(selected, dtype=float)))
    found = np.column_stack(graph.nonzero()).tolist()
    assert list(map(tuple, found)) == slow_pairs(X.toarray(), selected.toarray())


def test_bad_scores_and_documents():
    refused("scores contains NaN", selected_tokens, [1.0, np.nan, 0.0], [[1, 1, 1]])
    refused("X contains NaN", selected_tokens, [1.0, 2.0, 0.0], [[1.0, np.nan, 1.0]])
    negative = sp.csr_matrix([[1.0, -2.0, 1.0]])
    refused("Negative values", selected_tokens, [1.0, 2.0, 0.0], negative)


# The direction


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


def limit(shifts):
    return sp.csr_array(sp.hstack([sp.eye_array(len(shifts)), sp.csr_array(shifts)]))


def check_optimality(result, E, X, selected):
    """Check the Karush-Kuhn-Tucker conditions on every pair; return the pairs' differences."""
    better, worse = pair_graph(X, selected).nonzero()
    rows, p = E[better] - E[worse], result.direction
    assert (rows @ p).min() >= 1 - 1e-9
    assert result.duality_gap <= 1e-8
    assert (result.multipliers >= 0).all()
    support = result.support_pairs
    tight = E[support[:, 0]] - E[support[:, 1]]
    np.testing.assert_allclose(tight @ p, 1, atol=2e-6)
    np.testing.assert_allclose(result.multipliers @ tight, p, atol=1e-9 * np.abs(p).max())
    np.testing.assert_allclose(result.scores, E @ p, atol=1e-9)
    np.testing.assert_allclose(result.margin, 1 / np.linalg.norm(p))
    return rows


@given(st.integers(0, 10_000), st.sampled_from([None, 5]), st.integers(-4, 4), st.booleans())
@settings(max_examples=30)
def test_agrees_with_non_negative_least_squares_at_any_scale(seed, d, exponent, is_sparse):
    X, selected, E = instance(seed, d=d)
    form, scale = sp.csr_array if is_sparse else np.array, 10.0**exponent
    result = max_margin_direction(form(scale * E), 3 * X, selected)
    rows = check_optimality(result, scale * E, X, selected) / scale
    # The least distance of Z'm from 0 and of 1'm from 1, over m >= 0, is Lawson and Hanson's
    # way to the same p: it is Z'm / (1 - 1'm).
    stacked = np.vstack([rows.T, np.ones(len(rows))])
    m, _ = nnls(stacked, np.append(np.zeros(E.shape[1]), 1.0))
    np.testing.assert_allclose(scale * result.direction, rows.T @ m / (1 - m.sum()), atol=1e-7)


def test_a_deep_instance_is_solved_to_optimality():
    X, selected, shifts = deep_instance()
    result = max_margin_direction(limit(shifts), X, selected)
    assert len(check_optimality(result, np.hstack([np.eye(300), shifts]), X, selected)) > 4000
    assert np.ptp(result.scores) > 8  # chains, not one step


@pytest.mark.parametrize("n_tokens", [2, 50, 2000])
def test_a_chain_is_a_ladder_of_scores_however_long(n_tokens):
    # Its norm is 26,000 for 2,000 tokens, far from the units in which the solver starts.
    links = np.arange(n_tokens - 1)
    selected = sp.csr_array((np.ones(n_tokens - 1), (links, links)), (n_tokens - 1, n_tokens))
    X = selected + sp.csr_array((np.ones(n_tokens - 1), (links, links + 1)), selected.shape)
    result = max_margin_direction(limit(np.zeros((n_tokens, 1))), X, selected)
    ladder = (n_tokens - 1) / 2 - np.arange(n_tokens)
    np.testing.assert_allclose(result.scores, ladder, atol=1e-5)
    assert len(result.support_pairs) == n_tokens - 1


def test_without_pairs_the_direction_is_zero_and_its_margin_infinite():
    X = np.array([[1, 1, 0], [0, 0, 0]])
    result = max_margin_direction(np.eye(3), X, X > 0)
    assert result.margin == np.inf
    assert result.direction.tolist() == [0, 0, 0]
    assert result.support_pairs.shape == (0, 2)


# Selections that no direction makes


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_infeasible_exactly_where_the_pairs_have_a_cycle(seed):
    rng = np.random.default_rng(seed)
    X = (rng.random((6, 7)) < 0.4).astype(float)
    selected = np.zeros(X.shape, dtype=bool)
    for row, chosen in zip(X, selected, strict=True):
        if row.any():
            chosen[rng.choice(np.flatnonzero(row))] = True
    edges = set(slow_pairs(X, selected))
    # Tokens without a predecessor are taken away until none is left, or only cycles are.
    while starts := {s for s, _ in edges} - {t for _, t in edges}:
        edges = {(s, t) for s, t in edges if s not in starts}
    if edges:
        refused("a cycle", max_margin_direction, np.eye(7), X, selected)
    else:
        assert max_margin_direction(np.eye(7), X, selected).margin > 0


@pytest.mark.parametrize("d", [1, 2, 5, 10])
def test_too_few_dimensions_are_detected_and_said(d):
    X, selected, _ = deep_instance(60, 200, 8)
    E = np.random.default_rng(0).normal(size=(60, d))
    refused("more dimensions", max_margin_direction, E, X, selected)
    assert max_margin_direction(np.eye(60), X, selected).margin > 0
