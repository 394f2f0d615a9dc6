"""Faithfulness, as the benchmark of explanations measures it, against a loop over tokens."""

import math

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from benchmarks.bench_explanations import ERASER_FRACTIONS, probability_drops


class RandomSoftmax:
    """A model with random coefficients, whose rows are independent of each other."""

    def __init__(self, n_tokens, n_classes, seed=0):
        self.coef = np.random.default_rng(seed).normal(size=(n_tokens, n_classes))

    def predict_proba(self, X):
        z = np.exp((X.toarray()[:, :, None] * self.coef).sum(axis=1))
        return z / z.sum(axis=1, keepdims=True)


def slow_probability(model, row, scores, code, n_top, *, keep_top):
    """Return the probability of a class with only the top tokens, or without them."""
    supporting = [token for token in range(len(row)) if row[token] != 0 and scores[token] > 0]
    order = sorted(supporting, key=lambda token: (-scores[token], token))
    changed = np.zeros_like(row) if keep_top else row.copy()
    for token in order[:n_top]:
        changed[token] = row[token] if keep_top else 0
    return model.predict_proba(sp.csr_array(changed[None]))[0, code]


@st.composite
def problems(draw):
    """Return a model, counts with empty documents, and scores with ties, zeros and negatives."""
    shape = (draw(st.integers(1, 5)), draw(st.integers(1, 7)))
    n_entries = shape[0] * shape[1]
    counts = draw(st.lists(st.integers(0, 3), min_size=n_entries, max_size=n_entries))
    scores = draw(st.lists(st.integers(-2, 3), min_size=n_entries, max_size=n_entries))
    model = RandomSoftmax(shape[1], draw(st.integers(2, 4)), draw(st.integers(0, 9)))
    return model, np.array(counts, float).reshape(shape), np.array(scores, float).reshape(shape)


@settings(max_examples=30)
@given(problems())
def test_drops_equal_those_of_a_slow_loop(problem):
    model, X, scores = problem
    codes = model.predict_proba(sp.csr_array(X)).argmax(axis=1)
    for keep_top in (False, True):
        expected = []
        for row, row_scores, code in zip(X, scores, codes, strict=True):
            whole = model.predict_proba(sp.csr_array(row[None]))[0, code]
            left = []
            for fraction in ERASER_FRACTIONS:
                n_top = math.ceil(fraction * np.count_nonzero(row) - 1e-9)
                left.append(
                    slow_probability(model, row, row_scores, code, n_top, keep_top=keep_top)
                )
            expected.append(whole - np.mean(left))
        counts, sparse_scores = sp.csr_array(X), sp.csr_array(scores)
        answer = probability_drops(model, counts, sparse_scores, keep_top=keep_top)
        assert_allclose(answer, expected, rtol=0, atol=1e-14)
