"""Explanations are the predictions, exactly; they are plain data, and are refused clearly."""

import json
import warnings
from copy import deepcopy

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import data, drawn_models, refused, sums_of_documents
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from test_contract import CLASSIFIERS, OURS, odd_layouts

from sklearn_clsattn import ClsAttentionClassifier, TextClassifier
from sklearn_clsattn.inspection import explain

TEXTS = ["a terrific film", "a boring film", "terrific fun", "long and boring"]
LABELS = ["good", "bad", "good", "bad"]
TRAININGS = {name: CLASSIFIERS[name] for name in (*OURS, "one step", "adam", "two layers")}


def pipeline(**parameters):
    return make_pipeline(CountVectorizer(), ClsAttentionClassifier(**parameters)).fit(TEXTS, LABELS)


def fitted(n_classes=2, model=None, **parameters):
    X, y = data(n_classes)
    model = ClsAttentionClassifier(**parameters) if model is None else clone(model)
    with warnings.catch_warnings():  # a model need not have converged to be explained
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y), X


def outputs(model, X):
    return model.decision_function(X).reshape(X.shape[0], -1)


def assert_contract(model, X, explanation, tolerance=1e-10):
    scale = sums_of_documents(explanation, abs(explanation.contributions))
    scale += abs(explanation.intercept)
    decisions = sums_of_documents(explanation, explanation.contributions) + explanation.intercept
    gap = decisions - outputs(model, X)
    assert (abs(gap) <= tolerance * scale).all()
    assert_array_equal(explanation.decision, outputs(model, X))
    shares = sums_of_documents(explanation, explanation.attention) + explanation.cls_attention
    empty = np.diff(explanation.indptr) == 0
    expected = np.where(empty & (model.cls_weight_ == 0), 0.0, 1.0)
    assert_allclose(shares, expected, rtol=1e-10)
    assert_allclose(
        explanation.attention[:, None] * explanation.values, explanation.contributions, atol=1e-12
    )


@settings(max_examples=60)
@given(drawn_models(classes=(2, 3)), st.booleans())
def test_terms_add_up_to_the_decision(drawn, whole):
    model, X = drawn
    X.data *= 1.0 if whole else np.random.default_rng(0).gamma(1.0, size=X.nnz)
    assert_contract(model, X, explain(model, X))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("training", TRAININGS)
def test_every_training_is_explained_exactly(training, n_classes):
    model, X = fitted(n_classes, TRAININGS[training])
    explanation = explain(model, X)
    assert_contract(model, X, explanation)
    assert_array_equal(explanation.predicted, model.predict(X))
    # A matrix has no words to remove.
    few = explanation[:5]
    assert few.decision_without is None
    assert "decision_without" not in few.to_frame()
    assert "without" not in few.to_text()
    assert "prediction becomes" not in few.to_html()


@pytest.mark.parametrize("training", ["joint", "one step"])
def test_every_layout_of_a_matrix_is_explained_alike_and_left_alone(training):
    model, X = fitted(model=TRAININGS[training])
    expected = explain(model, X)
    for Z in (X.tocsc(), X.toarray(), *odd_layouts(X)):
        arrays = [Z.data, Z.indices, Z.indptr] if sp.issparse(Z) else [Z]
        before = deepcopy(arrays)
        explanation = explain(model, Z)
        for array, copied in zip(arrays, before, strict=True):
            assert_array_equal(array, copied)
        assert_array_equal(explanation.tokens, expected.tokens)
        for name in ("weights", "attention", "contributions"):
            assert_allclose(getattr(explanation, name), getattr(expected, name), atol=1e-12)


def test_targets_of_two_classes_are_two_sides_of_one_decision():
    model = pipeline()
    good, bad = (explain(model, TEXTS, target=label) for label in ("good", "bad"))
    assert_array_equal(good.decision[:, 0], model.decision_function(TEXTS))
    for name in ("decision", "contributions", "values", "decision_without", "intercept"):
        assert_array_equal(getattr(good, name), -getattr(bad, name))
    assert_allclose(good.probability + bad.probability, 1.0)
    assert_allclose(bad.probability[:, 0], model.predict_proba(TEXTS)[:, 0], rtol=1e-14)
    assert_array_equal(bad.predicted, model.predict(TEXTS))
    model, X = fitted(3)
    every, one = explain(model, X), explain(model, X, target=2)
    for name in ("decision", "contributions", "values", "probability"):
        assert_array_equal(getattr(one, name), getattr(every, name)[:, [2]])


def test_slices_masks_and_iteration():
    explanation = explain(pipeline(), [*TEXTS, "", "fun fun"], y_true=[*LABELS, "bad", "good"])
    assert len(explanation) == 6
    assert explanation[3].tokens.tolist() == ["and", "boring", "long"]
    assert explanation[-1].weights.tolist() == [2.0]
    assert explanation[1:3].index.tolist() == [1, 2]
    assert explanation[::-1][0].index.tolist() == [5]
    assert explanation[explanation.predicted == "good"].true.tolist() == ["good", "good", "good"]
    assert explanation[[4, 0]].texts == ("", TEXTS[0])
    assert len(explanation[[]]) == len(explanation[2:2]) == 0
    assert [one.index[0] for one in explanation] == list(range(6))
    together = np.concatenate([one.contributions for one in explanation])
    assert_array_equal(together, explanation.contributions)
    with pytest.raises(IndexError):
        explanation[6]


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("training", ["joint", "two layers"])
def test_frames_add_up(training, n_classes):
    model, X = fitted(n_classes, TRAININGS[training])
    y = np.arange(X.shape[0]) % n_classes
    explanation = explain(model, X, y_true=y)
    frame = explanation.to_frame()
    rows, decision = np.arange(len(y)), outputs(model, X)
    if n_classes == 2:
        assert "against" not in frame
        expected = decision[:, 0]
    else:
        labels = frame.groupby("document")[["target", "against"]].first()
        k, j = labels["target"].to_numpy(), labels["against"].to_numpy()
        assert_array_equal(k, model.predict(X))
        assert_array_equal(j[k != y], y[k != y])  # a mistake is compared with the true class
        others = np.where(rows[:n_classes] == k[:, None], -np.inf, decision)
        assert_array_equal(j[k == y], others.argmax(axis=1)[k == y])
        expected = decision[rows, k] - decision[rows, j]
    sums = frame.groupby("document")[["contribution", "attention"]].sum()
    assert_allclose(sums["contribution"], expected, rtol=1e-10, atol=1e-10)
    assert_allclose(sums["attention"].to_numpy()[:-1], 1.0)  # the last document is empty
    assert len(explanation[:0].to_frame()) == 0


def test_another_class_is_compared_with_the_predicted_one():
    model, X = fitted(4)
    explanation = explain(model, X)
    labels = explanation.to_frame(target=2).groupby("document")[["target", "against"]].first()
    assert set(labels["target"]) == {2}
    others = explanation.predicted != 2
    assert_array_equal(labels["against"][others], explanation.predicted[others])


def test_dictionaries_can_be_written_as_json():
    for explanation in (
        explain(pipeline(), [*TEXTS, ""], y_true=[*LABELS, "good"]),
        explain(*fitted(3)),
        explain(*fitted(model=TRAININGS["two layers"])),
    ):
        plain = json.loads(json.dumps(explanation.to_dict(), allow_nan=False))
        for i, document in enumerate(plain["documents"]):
            terms = [token["contributions"] for token in document["tokens"]]
            assert_allclose(np.sum([*terms, plain["intercept"]], axis=0), explanation.decision[i])
            assert all(token["vector_contributions"] is None for token in document["tokens"])


def test_unfitted_estimators_are_refused():
    X, _ = data()
    model = ClsAttentionClassifier()
    for unfitted, documents in (
        (model, X),
        (make_pipeline(CountVectorizer(), model), TEXTS),
        (GridSearchCV(model, {}), X),
    ):
        refused("not fitted", explain, unfitted, documents, error=NotFittedError)


def test_bad_arguments_are_refused():
    model, X = fitted()
    refused("inconsistent numbers of samples", explain, model, X, y_true=[0, 1])
    explanation = explain(model, X)
    refused("width must be at least", explanation.to_text, width=10)
    for render in (explanation.to_text, explanation.to_html):
        refused(r"^top .*must be", render, top=-1)
    for target in ("bad", [0], np.array([0, 1]), 0.5):
        message = r"target must be None or one of the classes \[0, 1\]"
        refused(message, explain, model, X, target=target)
        for render in (explanation.to_text, explanation.to_html, explanation[:0].to_text):
            refused("target must be None or one of the", render, target=target)


def test_texts_that_are_no_unicode():
    """Bytes that were read with errors="surrogateescape" are tokens like others."""
    texts = ["a good film \ud800", "a bad film", "good fun, really \udcff", "bad, dull fun"] * 4
    model = TextClassifier(min_df=1, C=1.0).fit(texts, ["good", "bad"] * 8)
    explanation = explain(model, ["a good film \ud800", "so \udcffbad"])
    frame = explanation.to_frame()
    assert "\ud800" in set(frame["token"])
    decision = frame[frame["document"] == 0]["contribution"].sum()
    assert decision == pytest.approx(model.decision_function(["a good film \ud800"])[0])
    page = explanation.to_html()
    assert page.encode("utf-8")
    assert explanation.to_text()
    assert explanation[0].counterfactual().to_html()
