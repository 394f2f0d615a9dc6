"""check_single_relevant_token: Assumption 1, told from every way of breaking it."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.theory import check_single_relevant_token

# Tokens: 0 and 1 are relevant to class 0 and 1, 2 and 3 are irrelevant, 4 is never seen.
X = np.array([[1, 0, 2, 0, 0], [0, 1, 2, 0, 0], [1, 0, 1, 1, 0], [0, 1, 1, 1, 0]])
y = np.array([0, 1, 0, 1])
NAMES = ["boring", "terrific", "film", "the", "gone"]


def changed(*entries, X=X):
    X = X.copy()
    for row, column, value in entries:
        X[row, column] = value
    return X


def test_where_it_holds():
    check = check_single_relevant_token(X, y, tol=0, feature_names=NAMES)
    assert check
    assert check.holds
    assert check.token_kind.tolist() == [
        "relevant",
        "relevant",
        "irrelevant",
        "irrelevant",
        "unseen",
    ]
    assert check.token_class.tolist() == [0, 1, -1, -1, -1]
    np.testing.assert_allclose(check.importance, [-1 / 6, 1 / 6, 0, 0, 0])
    assert check.relevant_counts.tolist() == [1, 1, 1, 1]
    assert check.relevant_tokens.dtype == bool
    np.testing.assert_array_equal(check.relevant_tokens.toarray()[:, :2], X[:, :2] > 0)
    assert check.relevant_tokens.nnz == 4
    for name in ("without", "with_several", "with_partial"):
        assert getattr(check, f"documents_{name}").size == 0
    assert check.partial_tokens.size == 0
    assert str(check) == (
        "Assumption 1 holds.\n"
        "  Tokens: 2 completely relevant, 2 irrelevant, 0 neither, 1 never seen.\n"
        "  Every document has exactly one completely relevant token."
    )
    with pytest.raises(dataclasses.FrozenInstanceError):
        check.holds = False


def test_a_relevant_token_that_occurs_twice_is_a_single_one():
    # Importance 0 is a matter of shares, so the other class's document gets as long.
    assert check_single_relevant_token(changed((0, 0, 2), (1, 1, 2)), y)


def test_a_document_without_a_relevant_token():
    documents = changed((0, 0, 0), (1, 1, 0))
    check = check_single_relevant_token(documents, y)
    assert not check
    assert check.documents_without.tolist() == [0, 1]
    assert check.relevant_counts.tolist() == [0, 0, 1, 1]
    assert check.documents_with_several.size == check.partial_tokens.size == 0
    assert "without a completely relevant token: 2 (rows 0, 1)" in str(check)


def test_a_document_without_tokens_is_listed():
    documents = np.vstack([X, np.zeros((1, 5), int)])
    check = check_single_relevant_token(documents, [*y, 0])
    assert not check
    assert check.documents_without.tolist() == [4]
    assert check.partial_tokens.size == 0


def test_a_document_with_several_relevant_tokens():
    documents = np.hstack([X, np.zeros((4, 1), int)])
    documents[0, 5] = 1
    documents[1, 1] = 2  # as long as row 0, or token 2 would not be irrelevant
    check = check_single_relevant_token(documents, y, feature_names=[*NAMES, "dull"])
    assert not check
    assert check.documents_with_several.tolist() == [0]
    assert check.relevant_counts.tolist() == [2, 1, 1, 1]
    assert check.documents_without.size == check.partial_tokens.size == 0
    assert "Documents with several of them: 1 (rows 0: 'boring', 'dull')." in str(check)
    assert "0: token 0, token 5" in str(check_single_relevant_token(documents, y))


def test_a_token_that_is_neither():
    # Token 3 is in both classes, but twice as large a share of one: and all of row 2 changes.
    check = check_single_relevant_token(changed((2, 3, 2)), y, feature_names=NAMES)
    assert not check
    assert check.token_kind.tolist()[2:] == ["partial", "partial", "unseen"]
    assert check.partial_tokens.tolist() == [3, 2]  # the larger importance first
    assert check.documents_with_partial.tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(check.importance[3], (1 / 3 - 2 / 4) / 4)
    assert "neither irrelevant nor completely relevant: 2, in 4 documents" in str(check)
    assert "('the' alpha = -0.0417, 'film' alpha = 0.0208)" in str(check)


def test_long_lists_are_cut_in_the_summary_only():
    documents = np.zeros((40, 30), int)
    documents[:, ::2] = 1
    documents[::2, 1:20:2] = 1
    check = check_single_relevant_token(documents, np.arange(40) % 2)
    assert check.documents_with_several.size == 20
    text = str(check)
    assert text.count("\n") <= 5
    assert ", and 15 more" in text
    assert len(text) < 850


def test_unequal_class_sizes_break_it():
    """The paper's importance has the class prior in it: no token of both classes is at 0."""
    check = check_single_relevant_token(np.vstack([X, X[:1]]), [*y, 0])
    assert check.partial_tokens.tolist() == [2]
    # Unless sample weights balance the classes again.
    weights = [0.5, 1, 1, 1, 0.5]
    assert check_single_relevant_token(np.vstack([X, X[:1]]), [*y, 0], sample_weight=weights)


def test_a_document_of_weight_0_breaks_nothing_and_shows_nothing():
    documents = np.vstack([X, [0, 0, 0, 0, 9], [3, 3, 3, 0, 0], np.zeros(5, int)])
    weights = [1, 1, 1, 1, 0, 0, 0]
    check = check_single_relevant_token(documents, [*y, 0, 1, 1], sample_weight=weights)
    assert check
    assert check.token_kind[4] == "unseen"


@pytest.mark.parametrize("n_classes", [2, 3, 5, 6])
@pytest.mark.parametrize("seed", range(4))
def test_generated_data_satisfies_it_to_the_last_bit(n_classes, seed):
    parameters = {
        "n_samples": 30 * n_classes,
        "n_classes": n_classes,
        "random_state": seed,
        "return_X_y": False,
        "delta": 0,
    }
    bunch = make_token_classification(single_relevant=True, **parameters)
    names = bunch.feature_names
    check = check_single_relevant_token(bunch.data, bunch.target, tol=0, feature_names=names)
    assert check
    relevant = bunch.token_class >= 0
    np.testing.assert_array_equal(check.token_kind == "relevant", relevant)
    np.testing.assert_array_equal(check.token_class, bunch.token_class)
    np.testing.assert_allclose(check.importance.T[~relevant], 0, atol=1e-15)
    # Completely relevant tokens alone are not enough.
    check = check_single_relevant_token(*_xy(make_token_classification(**parameters)))
    assert not check
    assert check.partial_tokens.size > 50


def _xy(bunch):
    return bunch.data, bunch.target


def test_rounding_is_forgiven_unless_tol_is_0():
    """Documents of the classes in another order: sums that round differently."""
    bunch = make_token_classification(
        n_samples=2000, single_relevant=True, delta=0, return_X_y=False, random_state=0
    )
    rows = np.concatenate(
        [np.flatnonzero(bunch.target == 0), np.flatnonzero(bunch.target == 1)[::-1]]
    )
    documents, labels = bunch.data[rows], bunch.target[rows]
    assert check_single_relevant_token(documents, labels)
    check = check_single_relevant_token(documents, labels, tol=0)
    assert not check
    assert np.abs(check.importance[check.partial_tokens]).max() < 1e-15


def brute_force(X, y):
    """Return the kind of each token and each document's number of relevant ones, by loops."""
    n, V = X.shape
    labels = sorted(set(y))
    kinds = []
    for s in range(V):
        classes = {y[i] for i in range(n) if X[i, s] > 0}
        sums = [
            sum(X[i, s] / X[i].sum() for i in range(n) if y[i] == k and X[i, s]) for k in labels
        ]
        if len(classes) == 0:
            kinds.append("unseen")
        elif len(classes) == 1:
            kinds.append("relevant")
        else:
            kinds.append("irrelevant" if max(sums) - min(sums) < 1e-9 else "partial")
    counts = [sum(X[i, s] > 0 and kinds[s] == "relevant" for s in range(V)) for i in range(n)]
    return kinds, counts


@given(
    st.integers(2, 4),
    st.integers(1, 5),
    st.sampled_from([0.3, 0.8, 2.0]),
    st.integers(0, 2**32 - 1),
)
def test_kinds_and_documents_by_brute_force(n_classes, n_tokens, mean, seed):
    rng = np.random.default_rng(seed)
    n = 2 * n_classes
    labels = np.arange(n) % n_classes
    documents = rng.poisson(mean, (n, n_tokens))
    kinds, counts = brute_force(documents, labels)
    check = check_single_relevant_token(documents, labels)
    assert check.token_kind.tolist() == kinds
    assert check.relevant_counts.tolist() == counts
    assert check.holds == (set(counts) == {1} and "partial" not in kinds)
    partial = np.array(kinds) == "partial"
    assert sorted(check.partial_tokens) == np.flatnonzero(partial).tolist()
    np.testing.assert_array_equal(
        check.documents_with_partial, np.flatnonzero(documents[:, partial].any(axis=1))
    )
    assert str(check)


def test_every_form_of_input_is_the_same_and_left_alone():
    documents = changed((2, 3, 2), (0, 4, 5)).astype(float)
    stored_zero = sp.csr_matrix(documents)
    stored_zero.data[0] = 0  # an explicit 0 is not an occurrence
    without = documents.copy()
    without[0, 0] = 0
    # Unsorted, and with an entry stored in two parts.
    parts = sp.csr_matrix(
        (
            np.concatenate([[2.0, 1, 2], documents[1:][documents[1:] > 0], [3.0]]),
            np.concatenate([[4, 0, 2], np.nonzero(documents[1:])[1], [3]]),
            [0, 3, 5, 8, 12],
        ),
        shape=(4, 5),
    )
    joined = parts.toarray()
    before = [a.copy() for a in (parts.data, parts.indices, parts.indptr)]
    pairs = [(make(documents), documents) for make in (sp.csr_array, sp.csc_matrix, sp.coo_array)]
    pairs += [(sp.dok_array(documents), documents), (documents.tolist(), documents)]
    pairs += [(documents.astype(np.float32), documents), (documents.astype(int), documents)]
    for form, same in [*pairs, (stored_zero, without), (parts, joined)]:
        expected = check_single_relevant_token(same, y)
        check = check_single_relevant_token(form, y)
        assert str(check) == str(expected)
        for name in ("token_kind", "relevant_counts", "partial_tokens"):
            np.testing.assert_array_equal(getattr(check, name), getattr(expected, name))
        np.testing.assert_allclose(check.importance, expected.importance)
    for array, copy in zip((parts.data, parts.indices, parts.indptr), before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_labels_of_any_type_and_the_class_in_the_summary():
    labels = np.array(["ant", "bee", "cat"])[[0, 1, 2]]
    documents = [[1, 0, 0, 1], [0, 1, 0, 2], [0, 0, 1, 1]]
    check = check_single_relevant_token(documents, labels)
    assert check.classes.tolist() == ["ant", "bee", "cat"]
    assert check.importance.shape == (3, 4)
    assert "token 3 alpha = 0.037 for class bee" in str(check)


@pytest.mark.parametrize(
    ("arguments", "parameters", "message"),
    [
        ((X, y), {"tol": -1}, "tol must be 0 or more"),
        ((X, y), {"tol": np.nan}, "tol must be 0 or more"),
        ((X, y), {"feature_names": ["one"]}, r"feature_names must have shape \(5,\)"),
        ((X, y[1:]), {}, r"y must have shape \(4,\)"),
        ((X, y * 0), {}, "at least 2 classes"),
        ((X, y + 0.5 * np.arange(4)), {}, "continuous"),
        ((X, y), {"sample_weight": [1, 0, 1, 0]}, r"\[1\] has none"),
        ((X, y), {"sample_weight": [1, 1, 1, -1]}, "not negative"),
        ((X, y), {"sample_weight": [1, 1, 1]}, "sample_weight must have shape"),
        ((-X, y), {}, "non-negative"),
        ((X[0], y), {}, "X must have shape"),
        ((np.where(X, X, np.inf), y), {}, "infinite"),
    ],
    ids=range(12),
)
def test_bad_input(arguments, parameters, message):
    with pytest.raises(ValueError, match=message):
        check_single_relevant_token(*arguments, **parameters)


def slow_distances(X, y, n_classes):
    """Return every document's distance by the formula, token by token."""
    q = X / X.sum(axis=1, keepdims=True)
    shares = np.array([q[y == k].sum(axis=0) for k in range(n_classes)])
    relevance = [
        0.0 if not t.sum() else (n_classes * (t / t.sum()).max() - 1) / (n_classes - 1)
        for t in shares.T
    ]
    found = []
    for row in q:
        tokens = np.flatnonzero(row)
        found.append(
            min(
                row[r] * (1 - relevance[r]) + sum(row[s] * relevance[s] for s in tokens if s != r)
                for r in tokens
            )
        )
    return np.array(found), np.array(relevance)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_the_distance_agrees_with_a_slow_loop(n_classes, seed):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.7, (20, 8)).astype(float)
    counts[:, 0] += counts.sum(axis=1) == 0
    labels = np.arange(20) % n_classes
    check = check_single_relevant_token(counts, labels)
    expected, relevance = slow_distances(counts, labels, n_classes)
    np.testing.assert_allclose(check.document_distances, expected, atol=1e-12)
    np.testing.assert_allclose(check.token_relevance, relevance, atol=1e-12)
    assert check.distance == pytest.approx(expected.mean())
    assert "Distance from it" in str(check)


def test_the_distance_is_0_where_it_holds_and_1_without_tokens():
    check = check_single_relevant_token(X, y)
    np.testing.assert_allclose(check.document_distances, 0, atol=1e-12)
    empty = check_single_relevant_token(np.vstack([X, 0 * X[:1]]), [*y, 0])
    assert empty.document_distances[-1] == 1
    weighted = check_single_relevant_token(
        np.vstack([X, 0 * X[:1]]), [*y, 0], sample_weight=[1, 1, 1, 1, 0]
    )
    assert weighted.distance == pytest.approx(0, abs=1e-12)


def test_the_distance_tells_nearly_from_not_at_all():
    nearly = changed((1, 2, 3))  # an irrelevant token, once more
    far = changed((0, 1, 4), (1, 0, 4))  # relevant tokens of both classes in one document
    distances = [check_single_relevant_token(each, y).distance for each in (X, nearly, far)]
    assert distances[0] < distances[1] < 0.1 < distances[2] < 1
