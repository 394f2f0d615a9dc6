"""TextClassifier: a vectorizer and a classifier as one estimator, at home in scikit-learn."""

import pickle

import numpy as np
import pandas as pd
import pytest
from helpers import refused
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

from sklearn_clsattn import TextClassifier
from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.inspection import explain
from sklearn_clsattn.saving import load_model, save_model
from sklearn_clsattn.text import ContextVectorizer, WordVectors

REQUESTS = load_requests()
TEXTS, TOPICS = REQUESTS.data[:120], REQUESTS.topic[:120]
OTHERS, OTHER_TOPICS = REQUESTS.data[600:700], REQUESTS.topic[600:700]
MODEL = TextClassifier(C=1.0, characters=(2, 3)).fit(TEXTS, TOPICS)


def test_it_is_its_vectorizer_and_its_classifier():
    model = MODEL
    vectorizer = ContextVectorizer(characters=(2, 3)).fit(TEXTS, TOPICS)
    X = model.vectorizer_.transform(OTHERS)
    assert_array_equal(X.toarray(), vectorizer.transform(OTHERS).toarray())
    expected = model.classifier_.predict_proba(X)
    for method in ("predict_proba", "predict_log_proba", "decision_function"):
        by_classifier = getattr(model.classifier_, method)(X)
        assert_allclose(getattr(model, method)(OTHERS), by_classifier, rtol=1e-5, atol=1e-6)
    assert_array_equal(model.predict(OTHERS), model.classes_[expected.argmax(axis=1)])
    assert model.score(OTHERS, OTHER_TOPICS) == (model.predict(OTHERS) == OTHER_TOPICS).mean()


def test_fitted_attributes_are_those_of_the_classifier():
    n_tokens = len(MODEL.get_feature_names_out())
    assert MODEL.token_importance_.shape == (len(MODEL.classes_), n_tokens)
    for name in ("token_importance_", "cls_embedding_", "selected_tokens_", "classes_", "C_"):
        assert_array_equal(getattr(MODEL, name), getattr(MODEL.classifier_, name))
    assert not hasattr(MODEL, "n_features_in_")  # texts have no columns
    unfitted = TextClassifier()
    assert not hasattr(unfitted, "classes_")
    with pytest.raises(NotFittedError):
        unfitted.predict(OTHERS)
    with pytest.raises(AttributeError, match="no attribute 'coef'"):
        MODEL.coef  # noqa: B018


def test_parameters():
    model = TextClassifier(C=2.0, min_df=3, word_vectors=WordVectors(8))
    assert (
        repr(model) == "TextClassifier(C=2.0, min_df=3, word_vectors=WordVectors(n_components=8))"
    )
    assert repr(clone(model)) == repr(model)
    model.set_params(word_vectors__n_components=9, characters=None)
    assert model.word_vectors.n_components == 9
    tags = get_tags(model)
    assert tags.input_tags.string
    assert not tags.input_tags.two_d_array
    assert tags.classifier_tags.multi_label
    for name, value in [("ngram_range", 2), ("characters", True), ("C", -1.0), ("min_df", 1.5)]:
        refused(f"'{name}' parameter", TextClassifier(**{name: value}).fit, TEXTS, TOPICS)
    refused("1 <= min_n <= max_n", TextClassifier(ngram_range=(2, 1)).fit, TEXTS, TOPICS)


def test_texts_in_any_container_are_read_alike():
    expected = MODEL.predict_proba(TEXTS)
    for made_of in (list, tuple, np.array, pd.Series, iter):
        model = clone(MODEL).fit(made_of(TEXTS), pd.Series(TOPICS))
        assert_array_equal(model.predict_proba(made_of(TEXTS)), expected)
    alone = [MODEL.predict_proba([text]) for text in TEXTS]
    assert_allclose(np.vstack(alone), expected, rtol=1e-6, atol=1e-9)
    assert_allclose(MODEL.predict_proba(["", " \n"]).sum(axis=1), 1)


def test_several_labels_and_probabilities():
    several = pd.get_dummies(pd.Series(TOPICS)).astype(int)
    several["long"] = [int(len(text) > 60) for text in TEXTS]
    model = TextClassifier(C=1.0).fit(TEXTS, several)
    assert model.multilabel_
    assert model.classes_.tolist() == several.columns.tolist()
    assert model.predict(OTHERS).shape == (100, several.shape[1])
    P = pd.DataFrame(MODEL.predict_proba(TEXTS), columns=MODEL.classes_)
    student = TextClassifier(C=1.0).fit(TEXTS, P)
    assert (student.predict(OTHERS) == MODEL.predict(OTHERS)).mean() > 0.9


def test_texts_without_labels_help():
    few = TextClassifier(characters=None).fit(TEXTS[:40], TOPICS[:40])
    more = clone(few).fit(TEXTS[:40], TOPICS[:40], unlabeled=REQUESTS.data[1000:1400])
    assert more.score(OTHERS, OTHER_TOPICS) > few.score(OTHERS, OTHER_TOPICS)
    assert np.abs(more.vector_weights_).max() > 0
    vectors = WordVectors(10).fit(REQUESTS.data[1000:1600])
    brought = TextClassifier(C=1.0, characters=None, word_vectors=vectors)
    brought = clone(brought).fit(TEXTS[:40], TOPICS[:40])  # fitted vectors stay in clones
    assert brought.vector_weights_.shape == (len(brought.classes_), 10)
    again = more.fit(TEXTS[:40], TOPICS[:40])
    assert_array_equal(again.predict_proba(OTHERS), few.predict_proba(OTHERS))


# Among scikit-learn's


def test_searches_and_ensembles():
    fast = TextClassifier(C=1.0, characters=None, context=False)
    search = GridSearchCV(fast, {"C": [0.3, 3.0], "ngram_range": [(1, 1), (1, 2)]}, cv=2)
    search.fit(TEXTS, TOPICS)
    assert search.best_params_["C"] == search.best_estimator_.C_
    counts = make_pipeline(CountVectorizer(), LogisticRegression())
    members = [("ours", fast), ("theirs", counts)]
    for wrapped in (
        CalibratedClassifierCV(fast, cv=2),
        StackingClassifier(members, cv=2),
        VotingClassifier(members, voting="soft"),
    ):
        assert wrapped.fit(TEXTS, TOPICS).score(OTHERS, OTHER_TOPICS) > 0.6
    out_of_fold = cross_val_predict(fast, np.array(TEXTS), TOPICS, cv=3)
    assert (out_of_fold == TOPICS).mean() > 0.6


@config_context(enable_metadata_routing=True)
def test_texts_without_labels_are_routed_where_they_are_requested():
    fast = TextClassifier(C=1.0, characters=None, context=False)
    search = GridSearchCV(fast.set_fit_request(unlabeled=True), {"C": [1.0]}, cv=2)
    search.fit(TEXTS, TOPICS, unlabeled=OTHERS)
    expected = clone(fast).fit(TEXTS, TOPICS, unlabeled=OTHERS)
    assert_array_equal(search.predict_proba(OTHERS), expected.predict_proba(OTHERS))


def test_explained_pickled_and_saved(tmp_path):
    expected = MODEL.predict_proba(OTHERS)
    save_model(MODEL, tmp_path / "model.skops")
    for other in (load_model(tmp_path / "model.skops"), pickle.loads(pickle.dumps(MODEL))):
        assert isinstance(other, TextClassifier)
        assert_array_equal(other.predict_proba(OTHERS), expected)
    explanation = explain(MODEL, OTHERS[:3])
    assert_array_equal(explanation.predicted, MODEL.predict(OTHERS[:3]))
    assert_allclose(explanation.probability, expected[:3])


# One fit and the next


def test_a_fit_that_fails_changes_nothing():
    model = clone(MODEL).fit(TEXTS, TOPICS)
    vectorizer, expected = model.vectorizer_, model.predict_proba(OTHERS)
    refused("Document", model.fit, [*TEXTS[:-1], None], TOPICS)
    refused("inconsistent numbers of samples", model.fit, TEXTS, TOPICS[:-1])
    refused("greater than one", model.fit, TEXTS, ["a"] * len(TEXTS))
    with pytest.raises(RuntimeError, match="device"):
        model.set_params(device="gpu").fit(OTHERS, OTHER_TOPICS)
    assert model.vectorizer_ is vectorizer
    assert_array_equal(model.predict_proba(OTHERS), expected)


def test_batches():
    classes = set(TOPICS)
    model = TextClassifier(C=1.0, characters=None)
    assert model.partial_fit(TEXTS, TOPICS, classes) is model
    first = clone(model).fit(TEXTS, TOPICS)
    assert_allclose(model.predict_proba(OTHERS), first.predict_proba(OTHERS), atol=0.02)
    vocabulary = model.vectorizer_.vocabulary_
    for start in (120, 600):
        batch = slice(start, start + 300)
        model.partial_fit(REQUESTS.data[batch], REQUESTS.topic[batch])
    assert model.vectorizer_.vocabulary_ is vocabulary
    test = slice(1000, 2000)
    score = model.score(REQUESTS.data[test], REQUESTS.topic[test])
    assert score > first.score(REQUESTS.data[test], REQUESTS.topic[test])
    message = "partial_fit is not available, because"
    refused(message, first.partial_fit, TEXTS, TOPICS, classes, error=AttributeError)
    balanced = TextClassifier(class_weight="balanced")
    refused(message, balanced.partial_fit, TEXTS, TOPICS, classes, error=AttributeError)
    assert not hasattr(balanced, "vectorizer_")
    model.set_params(C=0.01).partial_fit(TEXTS, TOPICS)
    assert model.C_ == 0.01
    refused("not among the classes", model.set_params(C=3.0).partial_fit, TEXTS[:1], ["other"])
    assert model.classifier_.C == 0.01
    balanced = model.set_params(class_weight="balanced")
    refused(message, balanced.partial_fit, TEXTS, TOPICS, error=AttributeError)
