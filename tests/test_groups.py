"""Groups: documents that are no evidence for each other are held out together."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import core_documents, data
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import slow_log_odds
from sklearn import config_context
from sklearn.model_selection import cross_validate

from sklearn_clsattn import ClsAttentionClassifier, TextClassifier
from sklearn_clsattn._bags import Bags
from sklearn_clsattn._targets import Targets
from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.text import ContextVectorizer
from sklearn_clsattn.text._gate_positions import PlacedTokens, token_positions
from sklearn_clsattn.text._gate_scores import gather_evidence
from sklearn_clsattn.text._ngrams import count_ngrams
from sklearn_clsattn.text._teacher import _folds
from sklearn_clsattn.text._tokens import WORDS_AND_PUNCTUATION, tokenize
from sklearn_clsattn.training import leave_one_out
from sklearn_clsattn.training.documents import Documents
from sklearn_clsattn.training.folds import joined_groups
from sklearn_clsattn.training.leave_one_out import Grouped, evidence_without_groups
from sklearn_clsattn.training.statistics import TokenTotals


def twins(n=300, n_tokens=1_500, seed=0):
    """Return pairs of documents that differ by the one token that tells their labels apart."""
    rng = np.random.default_rng(seed)
    X = np.zeros((2 * n, 4 + n_tokens))
    for i in range(n):
        X[2 * i : 2 * i + 2, 4 + rng.choice(n_tokens, 12, replace=False)] = 1
        X[2 * i, rng.integers(2)] = 1
        X[2 * i + 1, 2 + rng.integers(2)] = 1
    return sp.csr_array(X), np.tile([0, 1], n), np.repeat(np.arange(n), 2)


def test_twins_with_other_labels_do_not_hide_what_words_say():
    X, y, pairs = twins()
    order = np.random.default_rng(1).permutation(len(y))
    X, y, pairs = X[order], y[order], pairs[order]
    X_test, y_test, _ = twins(seed=2)
    alone = ClsAttentionClassifier().fit(X, y)
    model = ClsAttentionClassifier().fit(X, y, groups=pairs)
    assert model.C_ > 3 * alone.C_
    right = [one.predict_proba(X_test)[np.arange(len(y_test)), y_test] for one in (alone, model)]
    assert np.log(right[1]).mean() > np.log(right[0]).mean()
    names = np.array([f"pair {pair}" for pair in 7 * pairs % 300])
    named = ClsAttentionClassifier().fit(X, y, groups=names)
    assert_allclose(named.decision_function(X_test), model.decision_function(X_test), atol=1e-6)


def test_groups_of_one_document_change_nothing():
    X, y = data(3, n_documents=150)
    alone = ClsAttentionClassifier().fit(X, y)
    model = ClsAttentionClassifier().fit(X, y, groups=np.arange(150))
    assert_array_equal(model.token_values_, alone.token_values_)


@pytest.mark.parametrize("n_labels", [2, 4, "several"])
def test_evidence_leaves_whole_groups_out(n_labels, monkeypatch):
    rng = np.random.default_rng(0)
    dense = rng.poisson(0.7, (40, 9)).astype(float)
    dense[5] = 0
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], 40)
    groups = rng.integers(12, size=40)
    if n_labels == "several":
        Y = rng.integers(0, 2, (40, 3))
        given_targets = Targets(np.arange(3), Y.astype(float), multilabel=True)
        problems = [(labels, 2) for labels in Y.T]
    else:
        codes = rng.integers(n_labels, size=40)
        given_targets = Targets(np.arange(n_labels), codes)
        problems = [(codes, n_labels)]
    documents = core_documents(dense, np.zeros(40, int))
    documents = type(documents)(documents.bags, given_targets, weights)
    totals = TokenTotals.from_statistics(documents.statistics)
    own = given_targets.shares() * weights[:, None], weights
    monkeypatch.setattr(leave_one_out, "BLOCK_ENTRIES", 30)  # several blocks
    grouped = Grouped(np.arange(40), groups, *own)
    found = evidence_without_groups(documents.bags, grouped, totals)
    for i in range(40):
        left_out = groups == groups[i]
        odds = [
            slow_log_odds(sp.csr_array(dense), codes, weights, n, left_out=left_out)
            for codes, n in problems
        ]
        assert_allclose(found[i], np.vstack(odds) @ dense[i], rtol=1e-8, atol=1e-8)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=30))
def test_joined_groups_hold_what_either_holds(pairs):
    first, second = np.array(pairs).T
    expected = np.arange(len(pairs))
    for _ in pairs:  # the least number of any document that it is held with
        for numbers in (first, second):
            for number in numbers:
                expected[numbers == number] = expected[numbers == number].min()
    joined = joined_groups(first, second)
    assert_array_equal(joined[:, None] == joined, expected[:, None] == expected)


def test_texts_of_a_thread_are_in_one_fold_of_the_teachers_judges():
    rng = np.random.default_rng(0)
    X = Bags(sp.csr_array(rng.poisson(0.5, (60, 30)).astype(float)))
    threads = rng.integers(12, size=60)
    targets = Targets(np.arange(2), np.eye(2)[rng.integers(2, size=60)])
    texts = Documents(X, targets, np.ones(60), given_groups=threads)
    folds = list(_folds(texts))
    assert len(folds) > 1
    for labelled, held_out in folds:
        assert not set(threads[labelled]) & set(threads[held_out])


def test_gates_leave_whole_groups_out_of_samples_too():
    texts, codes = load_requests(target="mood", return_X_y=True)
    texts, codes = texts[:400], np.unique(codes[:400], return_inverse=True)[1]
    threads = np.random.default_rng(0).integers(130, size=400)

    def evidence(limit, order):
        some = [texts[i] for i in order]
        tokens = tokenize(some, WORDS_AND_PUNCTUATION)
        ngrams = count_ngrams(tokens, (1, 2))
        positions = token_positions(tokens, some, {})
        placed = PlacedTokens(tokens, ngrams.columns_at_tokens(), positions)
        given = ngrams.counts, placed, Targets(np.arange(2), codes[order]), np.ones(400)
        return gather_evidence(*given, 0, limit, threads[order]).numerators[0].sum(axis=1)

    order = np.arange(400)
    every, sample = evidence(np.inf, order), evidence(3_000, order)
    assert 20 < len(sample) < 300
    distances = np.abs(np.subtract.outer(sample, every)).min(axis=1)
    assert_allclose(distances, 0, atol=1e-9)
    # The order of the texts, and so the numbers of the groups, have no influence.
    assert_allclose(np.sort(evidence(3_000, order[::-1])), np.sort(sample), atol=1e-9)


def test_text_classifiers_pass_groups_on():
    texts, moods = load_requests(target="mood", return_X_y=True)
    texts, moods = np.array(texts[:160], dtype=object), np.array(moods[:160])
    threads = np.arange(160) // 2
    model = TextClassifier(characters=None).fit(texts, moods, groups=threads)
    vectorizer = ContextVectorizer(characters=None).fit(texts, moods, groups=threads)
    classifier = ClsAttentionClassifier()
    classifier.fit(vectorizer._fit_bags(texts, moods, groups=threads), moods, groups=threads)
    assert_array_equal(model.vectorizer_.start_scores_, vectorizer.start_scores_)
    assert_array_equal(model.token_values_, classifier.token_values_)
    few = {"unlabeled": texts[100:], "teacher": TextClassifier(C=1.0, characters=None)}
    TextClassifier(characters=None).fit(texts[:100], moods[:100], groups=threads[:100], **few)
    with config_context(enable_metadata_routing=True):
        routed = TextClassifier(C=1.0, characters=None).set_fit_request(groups=True)
        cross_validate(routed, texts, moods, params={"groups": threads}, cv=2, error_score="raise")


def test_what_is_refused():
    X, y = data()
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        ClsAttentionClassifier().fit(X, y, groups=[1, 2])
    with pytest.raises(ValueError, match="groups contains NaN"):
        ClsAttentionClassifier().fit(X, y, groups=np.where(y, 1.0, np.nan))
    with pytest.raises(ValueError, match="1d array"):
        ClsAttentionClassifier().fit(X, y, groups=np.ones((60, 2)))
