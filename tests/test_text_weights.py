"""Weights of texts are repetition, in every stage of a text classifier and in other tools."""

import numpy as np
import pandas as pd
import pytest
from helpers import refused
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import VotingClassifier
from sklearn.model_selection import GridSearchCV, cross_validate

from sklearn_clsattn import TextClassifier
from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.text import ContextVectorizer, WordVectors, _word_vectors

REQUESTS = load_requests()
RNG = np.random.default_rng(0)
SOME = RNG.choice(len(REQUESTS.data), 160, replace=False)
TEXTS = [REQUESTS.data[at] for at in SOME]
TOPICS, MOODS = REQUESTS.topic[SOME], REQUESTS.mood[SOME]
WEIGHTS = RNG.integers(0, 5, len(TEXTS))
WEIGHTS[:20] = 2  # a few of every class
COPIES = RNG.permutation(np.repeat(np.arange(len(TEXTS)), WEIGHTS))  # in another order
COPIED = [TEXTS[at] for at in COPIES]
# The bound of very common n-grams, 200 occurrences, is among the counts of these documents.
PARAMETERS = {
    "defaults": {},
    "no characters": {"characters": None},
    "no context": {"context": False},
    "bounds": {"min_df": 2},
}
FITTED = "start_scores_", "end_scores_", "previous_word_scores_"


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_every_stage_learns_from_weights_as_from_copies(parameters, monkeypatch):
    monkeypatch.setattr("sklearn_clsattn.training.choose_c.CS", (1.0, 3.0, 10.0))
    given, labels = PARAMETERS[parameters], TOPICS if parameters == "no characters" else MOODS
    weighted = TextClassifier(**given).fit(TEXTS, labels, sample_weight=WEIGHTS)
    positive = np.flatnonzero(WEIGHTS)
    without = [TEXTS[at] for at in positive]
    expected = [weighted, TextClassifier(**given)]
    expected[1].fit(without, labels[positive], sample_weight=WEIGHTS[positive])
    if parameters != "bounds":  # these count each document once
        expected.append(TextClassifier(**given).fit(COPIED, labels[COPIES]))
    probabilities = weighted.predict_proba(TEXTS)
    for other in expected[1:]:
        assert weighted.vectorizer_.vocabulary_ == other.vectorizer_.vocabulary_
        assert weighted.vectorizer_.character_vocabulary_ == other.vectorizer_.character_vocabulary_
        assert_array_equal(weighted.vectorizer_.previous_words_, other.vectorizer_.previous_words_)
        for name in FITTED:
            assert_allclose(
                getattr(other.vectorizer_, name), getattr(weighted.vectorizer_, name), atol=1e-5
            )
        assert pytest.approx(weighted.C_, rel=1e-2) == other.C_
        assert_allclose(other.token_importance_, weighted.token_importance_, atol=1e-6)
        assert_allclose(other.predict_proba(TEXTS), probabilities, atol=2e-3)


def test_equal_weights_change_nothing_and_others_do():
    plain, ones, weighted = (
        TextClassifier(C=1.0).fit(TEXTS, MOODS, weights).predict_proba(TEXTS)
        for weights in (None, np.ones(len(TEXTS)), WEIGHTS)
    )
    assert_array_equal(ones, plain)
    assert np.abs(plain - weighted).max() > 0.01


@pytest.mark.parametrize("factor", [1e-3, 0.5, 40.0])
def test_the_vocabulary_does_not_depend_on_the_unit_of_weights(factor):
    given = {"min_df": 2, "context": False, "characters": None}
    plain = ContextVectorizer(**given).fit(TEXTS, sample_weight=WEIGHTS)
    scaled = ContextVectorizer(**given).fit(TEXTS, sample_weight=factor * WEIGHTS)
    assert scaled.vocabulary_ == plain.vocabulary_


def test_a_class_of_weight_zero_is_absent():
    is_return = TOPICS == "returns"
    model = TextClassifier(C=1.0).fit(TEXTS, TOPICS, sample_weight=~is_return)
    rest = [text for text, out in zip(TEXTS, is_return, strict=True) if not out]
    expected = ContextVectorizer().fit(rest, TOPICS[~is_return])
    for name in FITTED:
        assert_allclose(getattr(model.vectorizer_, name), getattr(expected, name), atol=1e-9)
    bags = ContextVectorizer().fit_transform(TEXTS, TOPICS, ~is_return)
    assert_array_equal(bags.toarray(), model.vectorizer_.transform(TEXTS).toarray())


LETTERS = ["a b c d", "a b a", "b c d", "c d e", "e a", "d d b"] * 50


@pytest.mark.parametrize(("texts", "many_words"), [(REQUESTS.data[:300], 50.0), (LETTERS, 1.0)])
def test_word_vectors_learn_from_weights_as_from_copies(texts, many_words, monkeypatch):
    """Of short texts, and of texts with more than `many_words` words."""
    monkeypatch.setattr(_word_vectors, "_MANY_WORDS", many_words)
    weights = np.random.default_rng(0).integers(0, 4, 300)
    copies = np.repeat(np.arange(300), weights)
    weighted = WordVectors(8, min_df=1).fit(texts, sample_weight=weights)
    repeated = WordVectors(8, min_df=1).fit([texts[at] for at in copies])
    assert_array_equal(weighted.words_, repeated.words_)
    cosines = [vectors.vectors_ @ vectors.vectors_.T for vectors in (weighted, repeated)]
    assert_allclose(*cosines, atol=1e-4)


def fast():
    return TextClassifier(C=1.0, characters=None)


def test_weights_of_a_batch_reach_both_steps():
    names = np.unique(MOODS)
    model = fast().partial_fit(TEXTS, MOODS, names, WEIGHTS)
    expected = fast().fit(TEXTS, MOODS, WEIGHTS)
    for name in FITTED:
        fitted = getattr(model.vectorizer_, name)
        assert_allclose(fitted, getattr(expected.vectorizer_, name), atol=1e-9)
    assert_allclose(model.predict_proba(TEXTS), expected.predict_proba(TEXTS), atol=5e-3)


def test_weights_are_taken_by_position():
    shuffled = pd.Series(WEIGHTS, index=RNG.permutation(len(TEXTS)))
    texts = pd.Series(TEXTS, index=RNG.permutation(len(TEXTS)))
    model = fast().fit(texts, pd.Series(MOODS), sample_weight=shuffled)
    expected = fast().fit(TEXTS, MOODS, WEIGHTS).predict_proba(TEXTS)
    assert_array_equal(model.predict_proba(texts), expected)


@pytest.mark.parametrize("routed", [False, True])
def test_weights_in_tools_of_scikit_learn(routed):
    texts, y, weights = np.array(TEXTS, dtype=object), MOODS, WEIGHTS + 1.0
    folds = [(np.arange(80), np.arange(80, 160)), (np.arange(80, 160), np.arange(80))]
    halves = [fast().fit(texts[fold], y[fold], weights[fold]) for fold, _ in folds]
    whole = fast().fit(texts, y, weights).predict_proba(texts)
    with config_context(enable_metadata_routing=routed):
        model = fast()
        if routed:
            unset = GridSearchCV(model, {"C": [1.0]}, cv=folds)
            message = "Call `TextClassifier.set_fit_request"
            refused(message, unset.fit, texts, y, sample_weight=weights)
            model.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        how = {"params": {"sample_weight": weights}}
        found = cross_validate(model, texts, y, cv=folds, return_estimator=True, **how)["estimator"]
        search = GridSearchCV(model, {"C": [1.0]}, cv=folds)
        search.fit(texts, y, sample_weight=weights)
        voting = VotingClassifier([("one", model)], voting="soft")
        voting.fit(texts, y, sample_weight=weights)
        calibrated = CalibratedClassifierCV(model, cv=folds).fit(texts, y, sample_weight=weights)
        inner = [one.estimator for one in calibrated.calibrated_classifiers_]
        for one in (search, voting):
            assert_array_equal(one.predict_proba(texts), whole)
        for models in (found, inner):
            for one, expected in zip(models, halves, strict=True):
                assert_array_equal(one.predict_proba(texts), expected.predict_proba(texts))
