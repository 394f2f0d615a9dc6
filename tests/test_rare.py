"""One class rare: what its few documents say, and what class weights do."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import data
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, log_loss
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier, TextClassifier
from sklearn_clsattn._bags import Bags
from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.inspection import label_issues
from sklearn_clsattn.training.folds import group_duplicates, near_copies, projections
from sklearn_clsattn.training.prior_mean import PriorMean

CLASSES = pytest.mark.parametrize("n_classes", [2, 3])


def odds(model, X):
    """Return log-odds of all classes but the first, relative to it."""
    log = model.predict_log_proba(X)
    return log[:, 1:] - log[:, :1]


# The evidence of few documents


@pytest.fixture(scope="module")
def messages():
    """Messages of which 12 in 1,212 are about returns, and others with as many of each topic."""
    texts, topics = load_requests(return_X_y=True)
    texts, is_rare = np.array(texts, dtype=object), np.array(topics) == "returns"
    train = np.append(np.flatnonzero(is_rare)[:12], np.flatnonzero(~is_rare)[:1200])
    test = np.append(np.flatnonzero(is_rare)[100:], np.flatnonzero(~is_rare)[1200:])
    return texts[train], is_rare[train], texts[test], is_rare[test]


def test_a_rare_class_is_ranked_and_its_probability_is_right(messages):
    texts, y, texts_test, y_test = messages
    model = TextClassifier().fit(texts, y)
    tfidf = TfidfVectorizer(ngram_range=(1, 2))
    rival = make_pipeline(tfidf, LogisticRegression(C=10, max_iter=1000)).fit(texts, y)
    precision, rivals_precision = (
        average_precision_score(y_test, one.predict_proba(texts_test)[:, 1])
        for one in (model, rival)
    )
    assert precision > rivals_precision
    # In the shares of training.
    weights = np.where(y_test, 0.01 / y_test.mean(), 0.99 / (1 - y_test.mean()))
    loss, rivals_loss = (
        log_loss(y_test, one.predict_proba(texts_test), sample_weight=weights)
        for one in (model, rival)
    )
    assert loss < rivals_loss
    assert loss < 0.056  # that of the shares alone


@pytest.mark.parametrize("n_others", [20, 2_000])
def test_the_word_of_one_document_says_less_than_that_of_all(n_others):
    """Token 0 is in each of ten documents of a class, token 1 in one, others in both classes."""
    rng = np.random.default_rng(0)
    X = rng.random((10 + n_others, 40)) < 0.2
    y = np.arange(10 + n_others) < 10
    X[:, :2] = 0
    X[:10, 0] = 1
    X[0, 1] = 1
    model = ClsAttentionClassifier().fit(X.astype(float), y)
    of_all, of_one = model.token_values_[:2] * np.exp(model.attention_scores_[:2])
    assert 0 < of_one < 0.5 * of_all


def test_tokens_of_no_document_change_nothing():
    X, y = data(3)
    model = ClsAttentionClassifier(C=1.0).fit(X, y)
    wide = sp.csr_matrix((X.shape[0], 4 * X.shape[1])).tolil()
    columns = np.arange(X.shape[1]) * 3
    wide[:, columns] = X
    other = ClsAttentionClassifier(C=1.0).fit(wide.tocsr(), y)
    assert_allclose(other.predict_proba(wide), model.predict_proba(X), atol=1e-6)
    assert_allclose(other.token_values_[:, columns], model.token_values_, atol=1e-4)
    assert_array_equal(np.delete(other.token_values_, columns, axis=1), 0)


# Class weights


@CLASSES
@pytest.mark.parametrize("kind", ["balanced", "dict"])
def test_class_weights_multiply_the_odds(n_classes, kind):
    X, y = data(n_classes)
    rows = np.flatnonzero((y > 0) | (np.arange(len(y)) % 3 == 0))  # the first class is rarer
    X, y = X[rows], y[rows]
    factors = np.arange(1.0, n_classes + 1)
    class_weight = dict(enumerate(factors))
    if kind == "balanced":
        class_weight = "balanced"
        factors = 1 / (np.bincount(y) + 1)  # with a pseudo-document of each class
    plain = ClsAttentionClassifier().fit(X, y)
    model = ClsAttentionClassifier(class_weight=class_weight).fit(X, y)
    assert_array_equal(model.token_values_, plain.token_values_)
    expected = odds(plain, X) + np.log(factors[1:] / factors[0])
    assert_allclose(odds(model, X), expected, atol=1e-9)


def test_a_class_of_little_weight_is_seldom_predicted():
    X, y = data(3)
    y[y == 2] = 1
    y[:1] = 2
    shares = []
    for weight in (0.0, 1e-12, 1e-9, 1e-6, 1e-3, 0.1, 1.0, 2.0):
        weights = np.where(y == 2, weight, 1.0)
        model = ClsAttentionClassifier(C=1.0).fit(X, y, sample_weight=weights)
        shares.append(model.predict_proba(X)[1:, 2].mean())
    assert shares == sorted(shares)
    assert shares[3] < 1e-6
    assert shares[-1] < 0.05


def test_class_weights_of_batches_and_of_label_issues():
    X, y = data(2)
    weights = {0: 1.0, 1: 5.0}
    batches = [
        ClsAttentionClassifier(class_weight=class_weight)
        .partial_fit(X[::2], y[::2], classes=[0, 1])
        .partial_fit(X[1::2], y[1::2])
        for class_weight in (None, weights)
    ]
    assert_allclose(odds(batches[1], X), odds(batches[0], X) + np.log(5), atol=1e-9)
    plain, weighted = (
        label_issues(ClsAttentionClassifier(class_weight=one).fit(X, y), X, y).sort_values(
            "document"
        )
        for one in (None, weights)
    )
    sign = np.where(y == 1, 1, -1)
    assert_allclose(weighted["margin"], plain["margin"] + sign * np.log(5), atol=1e-6)


def test_class_weights_with_a_teacher(messages):
    texts, y, others, _ = messages
    texts, y, others = texts[:100], y[:100], others[:300]
    given = {"unlabeled": others[:100], "teacher": lambda asked: np.full((len(asked), 2), 0.5)}
    plain, weighted = (
        TextClassifier(C=1.0, class_weight=one, characters=None).fit(texts, y, **given)
        for one in (None, {False: 1.0, True: 3.0})
    )
    assert_allclose(odds(weighted, others), odds(plain, others) + np.log(3), atol=1e-9)
    assert weighted.classifier_.class_weight == {False: 1.0, True: 3.0}


def test_a_class_of_weight_0_is_never_predicted(messages):
    X, y = data(3)
    model = ClsAttentionClassifier(C=1.0, class_weight={2: 0.0}).fit(X, y)
    other = ClsAttentionClassifier(C=1.0).fit(X, y)
    assert_array_equal(model.predict(X), other.predict_proba(X)[:, :2].argmax(axis=1))
    assert np.isfinite(model.predict_log_proba(X)).all()
    texts, y, others, _ = messages
    taught = TextClassifier(C=1.0, class_weight={True: 0.0})
    taught.fit(texts[:200], y[:200], unlabeled=others[:50], teacher=np.full((50, 2), 0.5))
    assert not taught.predict(others).any()


# Near-copies


@pytest.mark.parametrize("kind", [TextClassifier, ClsAttentionClassifier])
def test_copies_with_a_number_of_their_own_are_no_evidence(kind):
    """With them in training and held out, C would be 3 to 300, and certainty grow with them.

    The gates would read the numbers.
    """
    texts, topics = map(np.array, load_requests(return_X_y=True))
    rng = np.random.default_rng(0)
    train, test = np.split(rng.permutation(len(texts))[:1650], [150])
    labels = topics[train]
    labels[:22] = rng.choice(np.unique(topics), 22)

    def numbered(texts):
        numbers = rng.permutation(10**6)[: len(texts)]
        return [f"Ticket {number}: {text}" for number, text in zip(numbers, texts, strict=True)]

    model = kind()
    if kind is ClsAttentionClassifier:
        model = make_pipeline(CountVectorizer(ngram_range=(1, 2)), model)
    new = numbered(texts[test])
    losses = []
    for k in (1, 8, 20):
        model.fit(numbered(np.repeat(texts[train], k)), np.repeat(labels, k))
        losses.append(log_loss(topics[test], model.predict_proba(new)))
    assert losses[1] < 1.15 * losses[0]
    assert losses[2] < 1.3 * losses[0]


def test_near_copies_share_all_but_what_no_other_has():
    X = np.zeros((6, 40))
    X[:3, :12] = 1  # three copies, two of them with a token of their own
    X[0, 20] = X[1, 21] = 1
    X[3:5, 5:20] = [[1], [2]]  # the same tokens, not the same counts
    X[5, :4] = 1  # a few tokens that others have
    X[5, 30] = 1
    bags = Bags(sp.csr_array(X))
    projected = projections(bags)
    groups = group_duplicates(*projected)
    numbers = near_copies(bags, projected, groups, np.ones(6))
    assert numbers[0] == numbers[1] == numbers[2]
    assert len(np.unique(numbers)) == 4
    some = np.array([5, 2, 4, 0, 3, 1])
    other = near_copies(Bags(sp.csr_array(X[some])), projected[:, some], groups[some], np.ones(6))
    assert_array_equal(other[:, None] == other, numbers[some][:, None] == numbers[some])


def test_hundreds_of_classes_of_few_documents_need_few_steps(monkeypatch):
    """Newton's steps without damping would need thousands of evaluations."""
    rng = np.random.default_rng(0)
    n_classes = 200
    y = np.repeat(np.arange(n_classes), 4)
    own = np.array([rng.choice(3_000, 6, replace=False) for _ in range(n_classes)])
    columns = [
        np.append(rng.choice(own[k], 4, replace=False), (rng.zipf(1.3, 12) - 1) % 3_000) for k in y
    ]
    rows = np.repeat(np.arange(len(y)), 16)
    X = sp.csr_matrix((np.ones(rows.size), (rows, np.concatenate(columns))))
    evaluate, calls = PriorMean._evaluate, []
    monkeypatch.setattr(
        PriorMean, "_evaluate", lambda self, x: calls.append(x) or evaluate(self, x)
    )
    model = ClsAttentionClassifier(C=0.3).fit(X, y)
    assert model.score(X, y) > 0.9
    assert len(calls) < 100
