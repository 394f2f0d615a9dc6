"""check_single_relevant_token: Assumption 1, told from every way of breaking it."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.paper import check_single_relevant_token


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_generated_data_satisfies_it_in_any_order(n_classes):
    """Sums round differently, which is forgiven."""
    X, y = make_token_classification(
        300 * n_classes, n_classes=n_classes, single_relevant=True, random_state=0
    )
    rows = np.random.default_rng(0).permutation(len(y))
    check = check_single_relevant_token(X[rows], y[rows])
    assert check
    is_relevant = np.arange(X.shape[1]) < 20 * n_classes
    np.testing.assert_array_equal(check.token_kind == "relevant", is_relevant)
    found = check.relevant_tokens.toarray()
    np.testing.assert_array_equal(found, (X[rows].toarray() > 0) & is_relevant)


def brute_force(documents, labels):
    """Return kinds, numbers of relevant tokens and distances by the definitions, in loops."""
    n_classes, kinds, relevance = len(set(labels)), [], []
    shares = [row / max(row.sum(), 1) for row in documents]
    for s in range(documents.shape[1]):
        seen = {k for k, row in zip(labels, documents, strict=True) if row[s]}
        sums = [np.array(shares)[labels == k, s].sum() for k in range(n_classes)]
        same = "irrelevant" if max(sums) - min(sums) < 1e-9 else "partial"
        kinds.append({0: "unseen", 1: "relevant"}.get(len(seen), same))
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
    """Classes may have unequal sizes, entries may be stored in two parts and any order, or as 0."""
    rng = np.random.default_rng(seed)
    n = 2 * n_classes + seed % 2
    labels = np.arange(n) % n_classes
    documents = rng.poisson(mean, (n, n_tokens))
    kinds, found, distances = brute_force(documents, labels)
    rows, columns = np.divmod(np.tile(rng.permutation(documents.size), 2), n_tokens)
    halves = documents[rows, columns] / 2
    order = np.argsort(rows, kind="stable")
    parts = sp.csr_array(
        (halves[order], columns[order], np.arange(n + 1) * 2 * n_tokens), documents.shape
    )
    before = parts.indices.copy()
    for form in (documents, parts):
        check = check_single_relevant_token(form, labels)
        assert check.token_kind.tolist() == kinds
        assert check.relevant_tokens.sum(axis=1).tolist() == found.tolist()
        assert check.holds == ((found == 1).all() and "partial" not in kinds)
        assert check.distance == pytest.approx(distances.mean())
    np.testing.assert_array_equal(parts.indices, before)
