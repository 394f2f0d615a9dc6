"""check_single_relevant_token: Assumption 1, told from every way of breaking it."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.paper import check_single_relevant_token

# Tokens: 0 and 1 are relevant to class 0 and 1, 2 and 3 are irrelevant, 4 is never seen.
X = np.array([[1, 0, 2, 0, 0], [0, 1, 2, 0, 0], [1, 0, 1, 1, 0], [0, 1, 1, 1, 0]])
y = np.array([0, 1, 0, 1])


def changed(*entries):
    documents = X.copy()
    for row, column, value in entries:
        documents[row, column] = value
    return documents


def test_where_it_holds():
    check = check_single_relevant_token(X, y, tol=0)
    assert check
    assert check.token_kind.tolist() == ["relevant"] * 2 + ["irrelevant"] * 2 + ["unseen"]
    np.testing.assert_array_equal(check.relevant_tokens.toarray()[:, :2], X[:, :2] > 0)
    assert check.relevant_tokens.nnz == 4
    np.testing.assert_allclose(check.document_distances, 0, atol=1e-12)
    assert str(check) == (
        "Assumption 1 holds.\n"
        "  Tokens: 2 completely relevant, 2 irrelevant, 0 neither, 1 never seen.\n"
        "  Every document has exactly one completely relevant token."
    )
    # A relevant token that occurs twice is a single one. Importance 0 is a matter of shares, so
    # the other class's document gets as long.
    assert check_single_relevant_token(changed((0, 0, 2), (1, 1, 2)), y)


def test_documents_without_a_relevant_token_and_without_any():
    documents = np.vstack([changed((0, 0, 0), (1, 1, 0)), np.zeros((1, 5), int)])
    check = check_single_relevant_token(documents, [*y, 0])
    assert not check
    assert check.documents_without.tolist() == [0, 1, 4]
    assert check.document_distances[-1] == 1
    assert "without a completely relevant token: 3 (rows 0, 1, 4)" in str(check)


def test_a_document_with_several_relevant_tokens():
    documents = np.hstack([X, np.zeros((4, 1), int)])
    documents[0, 5] = 1
    documents[1, 1] = 2  # as long as row 0, or token 2 would not be irrelevant
    check = check_single_relevant_token(documents, y)
    assert not check
    assert check.documents_with_several.tolist() == [0]
    assert check.documents_without.size == check.partial_tokens.size == 0
    assert "Documents with several of them: 1 (rows 0)." in str(check)


def test_a_token_that_is_neither():
    # Token 3 is in both classes, but twice as large a share of one: and all of row 2 changes.
    check = check_single_relevant_token(changed((2, 3, 2)), y)
    assert not check
    assert check.token_kind.tolist()[2:] == ["partial", "partial", "unseen"]
    assert check.partial_tokens.tolist() == [3, 2]  # the larger importance first
    assert "neither irrelevant nor completely relevant: 2 (3, 2)." in str(check)


def test_weights():
    """The paper's importance has the class prior in it: no token of both classes is at 0."""
    documents = np.vstack([X, X[:1]])
    assert check_single_relevant_token(documents, [*y, 0]).partial_tokens.tolist() == [2]
    weights = [0.5, 1, 1, 1, 0.5]
    assert check_single_relevant_token(documents, [*y, 0], sample_weight=weights)
    # A document of weight 0 breaks nothing and shows nothing.
    documents = np.vstack([X, [0, 0, 0, 0, 9], [3, 3, 3, 0, 0], np.zeros(5, int)])
    weights = [1, 1, 1, 1, 0, 0, 0]
    check = check_single_relevant_token(documents, [*y, 0, 1, 1], sample_weight=weights)
    assert check
    assert check.token_kind[4] == "unseen"
    assert check.distance == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_generated_data_satisfies_it_to_the_last_bit(n_classes):
    parameters = {"n_samples": 30 * n_classes, "n_classes": n_classes, "delta": 0}
    parameters |= {"return_X_y": False, "random_state": 0}
    bunch = make_token_classification(single_relevant=True, **parameters)
    check = check_single_relevant_token(bunch.data, bunch.target, tol=0)
    assert check
    np.testing.assert_array_equal(check.token_kind == "relevant", bunch.token_class >= 0)
    # Completely relevant tokens alone are not enough.
    bunch = make_token_classification(**parameters)
    assert check_single_relevant_token(bunch.data, bunch.target).partial_tokens.size > 50


def test_rounding_is_forgiven_unless_tol_is_0():
    """Documents of the classes in another order: sums that round differently."""
    documents, labels = make_token_classification(
        n_samples=2000, single_relevant=True, delta=0, random_state=0
    )
    rows = np.concatenate([np.flatnonzero(labels == 0), np.flatnonzero(labels == 1)[::-1]])
    assert check_single_relevant_token(documents[rows], labels[rows])
    assert not check_single_relevant_token(documents[rows], labels[rows], tol=0)


def brute_force(documents, labels):
    """Return kinds, numbers of relevant tokens and distances by the definitions, in loops."""
    n_classes, kinds, relevance = len(set(labels)), [], []
    shares = [row / max(row.sum(), 1) for row in documents]
    for s in range(documents.shape[1]):
        seen = {k for k, row in zip(labels, documents, strict=True) if row[s]}
        sums = [np.array(shares)[labels == k, s].sum() for k in range(n_classes)]
        same = max(sums) - min(sums) < 1e-9
        kinds.append(
            ["unseen", "relevant"][len(seen)]
            if len(seen) < 2
            else ("irrelevant" if same else "partial")
        )
        total = sum(sums)
        relevance.append((n_classes * max(sums) / total - 1) / (n_classes - 1) if total else 0.0)
    found = (documents[:, np.array(kinds) == "relevant"] > 0).sum(axis=1)
    distances = []
    for q in shares:
        tokens = np.flatnonzero(q)
        least = [
            q[r] * (1 - relevance[r]) + sum(q[s] * relevance[s] for s in tokens if s != r)
            for r in tokens
        ]
        distances.append(min(least, default=1.0))
    return kinds, found, np.array(distances)


@given(
    st.integers(2, 4),
    st.integers(1, 5),
    st.sampled_from([0.3, 0.8, 2.0]),
    st.integers(0, 2**32 - 1),
)
def test_everything_by_brute_force(n_classes, n_tokens, mean, seed):
    n = 2 * n_classes
    labels = np.arange(n) % n_classes
    documents = np.random.default_rng(seed).poisson(mean, (n, n_tokens))
    kinds, found, distances = brute_force(documents, labels)
    check = check_single_relevant_token(documents, labels)
    assert check.token_kind.tolist() == kinds
    assert check.documents_without.tolist() == np.flatnonzero(found == 0).tolist()
    assert check.documents_with_several.tolist() == np.flatnonzero(found > 1).tolist()
    assert check.holds == ((found == 1).all() and "partial" not in kinds)
    partial = np.array(kinds) == "partial"
    assert sorted(check.partial_tokens) == np.flatnonzero(partial).tolist()
    np.testing.assert_allclose(check.document_distances, distances, atol=1e-12)
    assert check.distance == pytest.approx(distances.mean())
    assert len(str(check).splitlines()) <= 6


def test_entries_in_parts_and_stored_zeros():
    documents = changed((2, 3, 2), (0, 4, 5)).astype(float)
    parts = sp.csr_matrix(
        (
            np.concatenate([[2.0, 3, 1, 2, 0], documents[1:][documents[1:] > 0]]),
            np.concatenate([[4, 4, 0, 2, 1], np.nonzero(documents[1:])[1]]),
            [0, 5, 7, 10, 13],
        ),
        shape=(4, 5),
    )
    before = [a.copy() for a in (parts.data, parts.indices, parts.indptr)]
    assert str(check_single_relevant_token(parts, y)) == str(
        check_single_relevant_token(documents, y)
    )
    for array, copy in zip((parts.data, parts.indices, parts.indptr), before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_a_negative_tolerance():
    with pytest.raises(ValueError, match="tol must be 0 or more"):
        check_single_relevant_token(X, y, tol=-1)
