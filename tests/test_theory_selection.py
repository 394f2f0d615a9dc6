"""Selected tokens against a loop over documents, and the pairs they order."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from reference import counts

from sklearn_clsattn.theory import selected_tokens, token_pairs

FORMS = {
    "csr_matrix": sp.csr_matrix,
    "csr_array": sp.csr_array,
    "csc": sp.csc_matrix,
    "coo": sp.coo_array,
    "ndarray": lambda X: X.toarray(),
    "int_list": lambda X: X.toarray().astype(int).tolist(),
    "frame": lambda X: pd.DataFrame(X.toarray()),
}


def slow_selection(scores, X, tol=1e-6):
    X = X.toarray()
    selected = np.zeros(X.shape, dtype=bool)
    for i, row in enumerate(X):
        tokens = np.flatnonzero(row)
        if len(tokens):
            selected[i, tokens[scores[tokens] >= scores[tokens].max() - tol]] = True
    return selected


def slow_pairs(X, selected):
    return sorted(
        {
            (s, t)
            for row, chosen in zip(X.toarray() > 0, selected, strict=True)
            for s in np.flatnonzero(chosen)
            for t in np.flatnonzero(row & ~chosen)
        }
    )


@pytest.mark.parametrize("form", FORMS)
def test_selection_and_pairs_agree_with_loops(form):
    X = counts(0, 40, 15)
    scores = np.random.default_rng(1).integers(-3, 3, 15).astype(float)  # with ties
    selected = selected_tokens(scores, FORMS[form](X))
    assert selected.format == "csr"
    assert selected.dtype == bool
    assert selected.data.all()
    np.testing.assert_array_equal(selected.toarray(), slow_selection(scores, X))
    pairs = token_pairs(FORMS[form](X), FORMS[form](sp.csr_matrix(selected, dtype=float)))
    found = list(zip(pairs.better.tolist(), pairs.worse.tolist(), strict=True))
    assert found == slow_pairs(X, selected.toarray())
    assert pairs.n_tokens == 15
    assert len(pairs) == len(found)


def test_tolerance_makes_ties():
    X = [[1, 1, 1]]
    assert selected_tokens([0.0, -0.05, -0.2], X, tol=0.1).toarray().tolist() == [
        [True, True, False]
    ]
    assert selected_tokens([0.0, -1e-9, 1e-9], X, tol=0).toarray().tolist() == [
        [False, False, True]
    ]


def test_stored_zeros_and_parts_and_unsorted_rows_leave_the_matrix_as_it_was():
    data, indices, indptr = [0.0, 1.0, 2.0, 1.0], [2, 1, 0, 0], [0, 4, 4]
    X = sp.csr_matrix((data, indices, indptr), shape=(2, 3))
    selected = selected_tokens([1.0, 0.0, 5.0], X)
    assert selected.toarray().tolist() == [[True, False, False], [False, False, False]]
    assert X.indices.tolist() == indices
    assert X.data.tolist() == data


def test_infinite_scores_are_ordered():
    scores = [-np.inf, np.inf, 1e6]
    selected = selected_tokens(scores, [[1, 0, 0], [1, 0, 1], [1, 1, 1]])
    assert selected.toarray().tolist() == [
        [True, False, False],
        [False, False, True],
        [False, True, False],
    ]


def test_no_documents_and_no_tokens():
    assert selected_tokens(np.zeros(3), np.empty((0, 3))).shape == (0, 3)
    assert len(token_pairs(np.zeros((2, 3)), np.zeros((2, 3), bool))) == 0


@given(st.integers(0, 10_000))
def test_every_document_with_tokens_selects_and_the_pairs_follow_the_scores(seed):
    X = counts(seed)
    scores = np.random.default_rng(seed).normal(size=X.shape[1])
    selected = selected_tokens(scores, X)
    assert ((selected.sum(axis=1) > 0) == (X.sum(axis=1).A1 > 0)).all()
    pairs = token_pairs(X, selected)
    assert (scores[pairs.better] > scores[pairs.worse]).all()
    np.testing.assert_allclose(pairs.matrix() @ scores, pairs.differences(scores))
    weights = np.random.default_rng(seed).random(len(pairs))
    np.testing.assert_allclose(pairs.matrix().T @ weights, pairs.totals(weights), atol=1e-12)


@pytest.mark.parametrize(
    ("scores", "X", "match"),
    [
        ([1.0, 2.0], [[1, 1, 1]], r"shape \(3,\), one score for each column of X, got \(2,\)"),
        ([1.0, np.nan, 0.0], [[1, 1, 1]], "1 are NaN, the first at token 1"),
        ([1.0, 2.0, 0.0], [[1, -2, 1]], "non-negative.*minimum of -2"),
        ([1.0, 2.0, 0.0], sp.csr_matrix([[1.0, -2.0, 1.0]]), "non-negative.*minimum of -2"),
        ([1.0, 2.0, 0.0], [[1.0, np.nan, 1.0]], "non-negative"),
        ([1.0, 2.0, 0.0], [1, 1, 1], "1 dimension"),
        ([1.0, 2.0, 0.0], [["a", "b", "c"]], "hold numbers"),
    ],
    ids=["length", "nan_score", "negative", "negative_sparse", "nan", "flat", "text"],
)
def test_bad_input_is_refused(scores, X, match):
    with pytest.raises(ValueError, match=match):
        selected_tokens(scores, X)


def test_a_negative_tolerance_is_refused():
    with pytest.raises(ValueError, match="tol must be 0 or more"):
        selected_tokens([1.0], [[1]], tol=-1)


@pytest.mark.parametrize(
    ("selected", "match"),
    [
        ([[True, False]], r"shape of X, \(2, 3\), got \(1, 2\)"),
        ([[1, 0, 0], [1, 1, 0]], "1 entries where X has no token.*document 1, token 0"),
        ([[0, 0, 0], [0, 1, 0]], "1 documents have tokens but select none.*document 0"),
    ],
    ids=["shape", "absent", "undecided"],
)
def test_selections_that_are_none_are_refused(selected, match):
    with pytest.raises(ValueError, match=match):
        token_pairs([[1, 1, 0], [0, 1, 1]], selected)
