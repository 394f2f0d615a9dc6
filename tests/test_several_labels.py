"""Several labels a document: one attention, a value for each label, binary losses added up."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers import refused, settled
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.inspection import ModelReport, TokenImportanceDisplay, explain, label_issues
from sklearn_clsattn.paper import OneStepClassifier
from sklearn_clsattn.saving import to_onnx
from sklearn_clsattn.text import ContextVectorizer, make_text_classifier

N_LABELS = 3
WORDS = np.array(["apple", "bread", "cheese", *(f"word{at}" for at in range(9))])


@pytest.fixture(scope="module")
def data():
    """Counts, in which column k speaks for label k, and labels: some documents have none."""
    rng = np.random.default_rng(0)
    Y = (rng.random((90, N_LABELS)) < [0.5, 0.3, 0.2]).astype(int)
    X = rng.poisson(0.4, (90, len(WORDS)))
    X[:, :N_LABELS] += 2 * Y * (rng.random(Y.shape) < 0.8)
    X[-5:], Y[-5:-3] = X[:5], Y[:2]  # copies, three with other labels
    return sp.csr_matrix(X), Y


def test_labels_alone_are_classes_of_two(data):
    """With one attention for all, a label's values are those of its own classifier."""
    X, Y = data
    twice = np.column_stack([Y[:, 0], Y[:, 0]])
    both = settled(tol=1e-8, C=1.0, attention_C=0.06).fit(X, twice)
    alone = settled(tol=1e-8, C=1.0, attention_C=0.03).fit(X, Y[:, 0])
    assert_allclose(both.token_values_[0], both.token_values_[1], atol=1e-6)
    assert_allclose(both.decision_function(X)[:, 0], alone.decision_function(X), atol=0.05)


@pytest.mark.parametrize("form", ["array", "floats", "list", "sparse", "frame"])
def test_labels_in_every_form(data, form):
    X, Y = data
    names = ["sun", "rain", "snow"]
    forms = {"floats": Y.astype(float), "list": Y.tolist(), "sparse": sp.csr_matrix(Y)}
    model = ClsAttentionClassifier()
    expected = model.fit(X, Y).predict_proba(X)
    given = pd.DataFrame(Y, columns=names) if form == "frame" else forms.get(form, Y)
    model = clone(model).fit(X, given)
    assert model.classes_.tolist() == (names if form == "frame" else [0, 1, 2])
    assert_array_equal(model.predict_proba(X), expected)


def test_predictions(data):
    X, Y = data
    model = ClsAttentionClassifier().fit(X, Y)
    decision, found = model.decision_function(X), model.predict(X)
    assert decision.shape == Y.shape
    assert_allclose(model.predict_proba(X), expit(decision))
    assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    assert_array_equal(found, decision > 0)
    assert (found == Y).mean() > 0.75
    terms = np.stack([one.sum(axis=1) for one in model.contributions(X)], axis=1)
    assert_allclose(terms + model.intercept_, decision, atol=1e-9)
    assert_array_equal(model.token_importance_.argmax(axis=1), np.arange(N_LABELS))
    restored = pickle.loads(pickle.dumps(model))
    assert_array_equal(restored.predict(X), found)
    assert not model.fit(X, Y[:, 0]).multilabel_


def test_labels_that_all_or_none_have(data):
    X, Y = data
    given = np.column_stack([Y, np.zeros(len(Y), int), np.ones(len(Y), int)])
    proba = ClsAttentionClassifier().fit(X, given).predict_proba(X)
    assert np.isfinite(proba).all()
    assert proba[:, 3].max() < 0.01
    assert proba[:, 4].min() > 0.99
    alone = ClsAttentionClassifier().fit(X, np.zeros_like(Y)).predict_proba(X)
    assert alone.max() < 0.01


def test_weights_are_repetitions(data, texts):
    X, Y = data[0].astype(float), data[1]
    weights = np.arange(len(Y)) % 3 + 5 * Y[:, 2]  # the rarest label becomes the commonest
    rows = np.repeat(np.arange(len(Y)), weights)
    one, other = settled(tol=1e-8).fit(X, Y, weights), settled(tol=1e-8).fit(X[rows], Y[rows])
    assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-4)
    one, other = ContextVectorizer(dtype=np.float64), ContextVectorizer(dtype=np.float64)
    one.fit(texts, Y, weights), other.fit([texts[row] for row in rows], Y[rows])
    assert_allclose(one.start_scores_, other.start_scores_, atol=1e-9)


def test_choice_of_C_and_search(data):
    X, Y = data
    model = ClsAttentionClassifier().fit(X, Y)
    assert model.scores_.shape[1] == len(model.Cs_) > 1
    rare = Y.sum(axis=0) / len(Y)
    entropy = -(rare * np.log(rare) + (1 - rare) * np.log(1 - rare)).sum()
    assert -entropy < model.scores_.mean(axis=0).max() < 0
    search = GridSearchCV(ClsAttentionClassifier(), {"C": [0.1, 1.0]}, scoring="f1_micro", cv=3)
    assert search.fit(X, Y).best_score_ > 0.6


def test_vectors_of_tokens(data):
    X, Y = data
    vectors = np.random.default_rng(0).normal(size=(len(WORDS), 4))
    model = ClsAttentionClassifier(C=1.0, token_vectors_scale=1.0).fit(X, Y, token_vectors=vectors)
    assert model.vector_weights_.shape == (N_LABELS, 4)
    E, v = model.token_embeddings_, model.output_vector_
    assert_allclose(E @ v.T, model.token_values_.T, atol=1e-6)
    assert ClsAttentionClassifier(C=1.0).fit(X, Y[:, 0]).decision_function(X).ndim == 1


@pytest.fixture(scope="module")
def texts(data):
    return [" ".join(np.repeat(WORDS, row)) for row in data[0].toarray()]


def test_texts_are_counted_once_and_explained_by_label(data, texts):
    labels = pd.DataFrame(data[1], columns=["fruit", "bakery", "dairy"])
    model = make_text_classifier().fit(texts, labels)
    assert (model.predict(texts) == data[1]).mean() > 0.8
    explanation = explain(model, texts[:4], target="bakery", y_true=labels[:4])
    assert explanation.classes.tolist() == ["not bakery", "bakery"]
    assert_allclose(explanation.decision[:, 0], model.decision_function(texts[:4])[:, 1])
    terms = explanation.to_frame()
    sums = terms.groupby("document")["contribution"].sum()
    assert_allclose(sums, explanation.decision[:, 0], atol=1e-9)
    assert explanation.true.tolist() == [["not bakery", "bakery"][one] for one in data[1][:4, 1]]
    at = int(model.predict_proba(texts)[:, 1].argmax())
    sets = explain(model, [texts[at]], target="bakery").counterfactual("words")
    (found,) = sets
    left = " ".join(word for word in texts[at].split() if word not in found.tokens)
    assert model.predict([left])[0, 1] == 0
    assert model.predict(found.edited_document)[0, 1] == 0
    assert "the prediction becomes not bakery" in sets.statement(0)
    refused("several labels: target must be one of", explain, model, texts[:1])
    refused("one label per document", to_onnx, model)


def test_wrong_labels_come_first(data):
    X, Y = data
    given = Y.copy()
    given[[7, 21], [0, 2]] ^= 1
    model = ClsAttentionClassifier().fit(X, given)
    issues = label_issues(model, X, given)
    assert len(issues) == Y.size
    assert issues["margin"].is_monotonic_increasing
    row = issues.iloc[0]
    assert row["probability"] == pytest.approx(expit(row["margin"]))
    assert row["given"] == given[row["document"], row["label"]]
    place = issues.reset_index().set_index(["document", "label"])["index"]
    assert place.loc[(7, 0)] < 30
    assert place.loc[(21, 2)] < 30
    # Margins are near those of fits without the document.
    model, rest = settled(tol=1e-8, C=1.0).fit(X, Y), np.arange(len(Y)) != 40
    margins = label_issues(model, X, Y).set_index(["document", "label"])["margin"].loc[40]
    exact = settled(tol=1e-8, C=1.0).fit(X[rest], Y[rest]).decision_function(X[[40]])[0]
    seen = model.decision_function(X[[40]])[0]
    found = margins.to_numpy()[np.argsort(margins.index)] * (2 * Y[40] - 1)
    assert np.abs(found - exact).sum() < np.abs(seen - exact).sum() + 0.05


def test_what_several_labels_cannot_do(data, texts, tmp_path):
    X, Y = data
    model = ClsAttentionClassifier()
    refused("matrix of 0 and 1", model.fit, X, Y + 1)
    refused("matrix of 0 and 1", model.fit, X, [["c"], ["a", "b"]] * 45)
    refused("class_weight supports only", ClsAttentionClassifier(class_weight="balanced").fit, X, Y)
    refused("several labels per document", OneStepClassifier().fit, X, Y)
    fitted = model.fit(X, Y)
    refused("model of several", ModelReport.from_estimator, fitted, X, Y)
    refused('kind="bars"', TokenImportanceDisplay.from_estimator, fitted, X, Y)
