"""Leave-one-out log-odds against statistics really made without each document."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from helpers import targets
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import counts, slow_log_odds

from sklearn_clsattn._core import leave_one_out
from sklearn_clsattn._core.leave_one_out import (
    LeftOut,
    evidence_without,
    leave_one_out_log_odds,
    same_documents,
)
from sklearn_clsattn._core.statistics import CorpusStatistics, TokenTotals

CLASSES = pytest.mark.parametrize("n_classes", [2, 4])


def corpus(n_classes, seed=0):
    """Some documents stand several times, with the same class or others, and some weigh 0."""
    rng = np.random.default_rng(seed)
    X = counts(seed, 24, 7).tocsr()
    X = sp.csr_array(sp.vstack([X, X[:5], X[3:9], X[3:4]]))
    codes = np.concatenate([np.arange(24) % n_classes, rng.integers(n_classes, size=12)])
    weights = rng.uniform(0.5, 2.0, 36)
    weights[[2, 7]] = 0.0
    return X, codes, weights


@CLASSES
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("block", [1, 40, 10_000])
def test_log_odds_are_those_of_the_other_documents(n_classes, block, n_threads, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: n_threads)
    monkeypatch.setattr(leave_one_out, "BLOCK_ENTRIES", block)
    X, codes, weights = corpus(n_classes)
    given = targets(codes, n_classes)
    totals = TokenTotals.from_statistics(CorpusStatistics.from_documents(X, given, weights))
    expected = [slow_log_odds(X, codes, weights, n_classes, i) for i in range(X.shape[0])]
    groups = same_documents(X)
    found = leave_one_out_log_odds(X, given, weights, totals, groups)
    documents = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    wanted = np.array(expected)[documents, :, X.indices]
    assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)
    sums = [odds @ row for odds, row in zip(expected, X.toarray(), strict=True)]
    left_out = LeftOut.with_copies(given, weights, groups)[groups]
    present = weights > 0
    left_out = LeftOut(left_out.by_class * present[:, None], left_out.total * present)
    assert_allclose(evidence_without(X, left_out, totals), sums, rtol=1e-9, atol=1e-9)


@given(st.lists(st.lists(st.integers(0, 2), min_size=3, max_size=3), max_size=12), st.randoms())
def test_same_documents_have_the_same_number(rows, random):
    X = sp.csr_array(np.array(rows, dtype=float).reshape(-1, 3))
    groups = same_documents(X)
    distinct = set(map(tuple, rows))
    assert set(groups.tolist()) == set(range(len(distinct)))
    assert len(set(zip(map(tuple, rows), groups.tolist(), strict=True))) == len(distinct)
    order = list(range(len(rows)))
    random.shuffle(order)
    assert_array_equal(same_documents(X[order]), groups[order])
