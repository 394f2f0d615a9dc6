"""Explanations are the predictions, exactly; they are plain data, and are refused clearly."""

import json
import pickle
import re
import warnings
from copy import copy, deepcopy
from functools import cache

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers import data
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.inspection import explain
from sklearn_clsattn.inspection.view import views
from sklearn_clsattn.paper import (
    AttentionNetworkClassifier,
    EmbeddingClassifier,
    FrozenEmbeddingClassifier,
    OneStepClassifier,
    PenalizedOneStepClassifier,
)

TEXTS = ["a terrific film", "a boring film", "terrific fun", "long and boring"]
LABELS = ["good", "bad", "good", "bad"]
TRAININGS = {
    "joint": ClsAttentionClassifier(),
    "joint, without cls": ClsAttentionClassifier(attend_cls=False),
    "joint, unscaled": ClsAttentionClassifier(token_scaling=None, attention_C=10.0),
    "one step": OneStepClassifier(tol=0.5, max_iter=20),
    "penalized": PenalizedOneStepClassifier(),
    "frozen": FrozenEmbeddingClassifier(embedding_dim=16, random_state=0),
    "adam": EmbeddingClassifier(max_iter=30, random_state=0),
    "adam, finite": EmbeddingClassifier(embedding_dim=8, max_iter=30, random_state=0),
    "two layers": AttentionNetworkClassifier(
        n_layers=2, embedding_dim=8, early_stopping=False, max_iter=3, random_state=0
    ),
}


def pipeline(**parameters):
    return make_pipeline(CountVectorizer(), ClsAttentionClassifier(**parameters)).fit(TEXTS, LABELS)


def fitted(n_classes=2, model=None, **parameters):
    X, y = data(n_classes)
    model = ClsAttentionClassifier(**parameters) if model is None else clone(model)
    with warnings.catch_warnings():  # a model need not have converged to be explained
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y), X


@cache
def hardly_fitted(n_classes, n_tokens, attend_cls):
    y = np.arange(2 * n_classes) % n_classes
    X = np.random.default_rng(0).poisson(1.0, (len(y), n_tokens))
    return ClsAttentionClassifier(attend_cls=attend_cls, max_iter=1, tol=1e9).fit(X, y)


@st.composite
def models(draw):
    """Return a classifier with drawn scores and values, not tamed by any training, and counts."""
    n_classes = draw(st.sampled_from([2, 3]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_tokens = draw(st.integers(1, 12))
    model = copy(hardly_fitted(n_classes, n_tokens, draw(st.booleans())))
    spread = draw(st.sampled_from([0.0, 1.0, 10.0, 40.0, 900.0]))
    model.attention_scores_ = spread * rng.standard_normal(n_tokens)
    model.token_values_ = 3 * rng.standard_normal(model.token_values_.shape)
    model.intercept_ = rng.standard_normal(model.intercept_.shape)
    if model.cls_weight_:
        model.cls_score_ = float(rng.standard_normal())
    X = rng.poisson(draw(st.sampled_from([0.2, 1.0])), (draw(st.integers(1, 8)), n_tokens))
    X = X * (1.0 if draw(st.booleans()) else rng.gamma(1.0, size=X.shape))
    return model, sp.csr_matrix(X.astype(float))


def outputs(model, X):
    return model.decision_function(X).reshape(X.shape[0], -1)


def assert_contract(model, X, explanation, tolerance=1e-10):
    terms = abs(explanation.contributions)
    rows = np.repeat(np.arange(len(explanation)), np.diff(explanation.indptr))
    scale = abs(explanation.intercept) + [
        terms[rows == i].sum(axis=0) for i in range(len(explanation))
    ]
    gap = explanation.decision_terms() + explanation.intercept - outputs(model, X)
    assert (abs(gap) <= tolerance * scale).all()
    assert_array_equal(explanation.decision, outputs(model, X))
    shares = np.bincount(rows, explanation.attention, len(explanation)) + explanation.cls_attention
    shares += explanation.others_attention
    empty = np.diff(explanation.indptr) + explanation.others_count == 0
    expected = np.where(empty & (model.cls_weight_ == 0), 0.0, 1.0)
    assert_allclose(shares, expected, rtol=1e-10)
    assert_allclose(
        explanation.attention[:, None] * explanation.values, explanation.contributions, atol=1e-12
    )


def really_removed(model, X, explanation):
    """Return the decisions without each token, by setting its count to 0."""
    without = []
    for i in range(len(explanation)):
        for entry in range(*explanation.indptr[i : i + 2]):
            changed = X[[i]].toarray()
            changed[0, explanation.columns[entry]] = 0
            without.append(outputs(model, changed)[0])
    return np.reshape(without, explanation.decision_without.shape)


@settings(max_examples=60)
@given(models())
def test_terms_add_up_to_the_decision(drawn):
    model, X = drawn
    assert_contract(model, X, explain(model, X))


@settings(max_examples=60)
@given(models())
def test_removal_is_what_really_removing_gives(drawn):
    model, X = drawn
    explanation = explain(model, X)
    expected = really_removed(model, X, explanation)
    scale = abs(model.token_values_).max() + abs(model.intercept_).max()
    assert_allclose(explanation.decision_without, expected, rtol=0, atol=1e-10 * scale)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("training", TRAININGS)
def test_every_training_is_explained_exactly(training, n_classes):
    model, X = fitted(n_classes, TRAININGS[training])
    explanation = explain(model, X, removal=True)
    assert_contract(model, X, explanation)
    first = X[:5]
    few = explain(model, first, removal=True)
    assert_allclose(few.decision_without, really_removed(model, first, few), rtol=1e-7, atol=1e-9)


def test_two_layers_leave_removal_out_unless_asked():
    model, X = fitted(model=TRAININGS["two layers"])
    assert explain(model, X).decision_without is None
    assert "decision_without" not in explain(model, X).to_frame()
    assert "without" not in explain(model, X[:2]).to_text()


def test_removal_is_left_out_when_asked():
    model, X = fitted()
    assert explain(model, X, removal=False).decision_without is None


def test_a_document_that_loses_its_only_token_is_an_empty_one():
    for attend_cls in (True, False):
        model, X = fitted(attend_cls=attend_cls)
        one = sp.csr_matrix(([2.0], ([0], [3])), shape=(1, X.shape[1]))
        explanation = explain(model, one)
        assert_array_equal(explanation.decision_without[0], model.intercept_)
        assert_array_equal(outputs(model, one * 0)[0], model.intercept_)


def test_an_mlp_is_refused():
    mlp = AttentionNetworkClassifier(mlp=True, embedding_dim=8, max_iter=2, random_state=0)
    model, X = fitted(model=mlp)
    with pytest.raises(ValueError, match="no sum over tokens"):
        explain(model, X)


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "unsorted", "parts", "zeros", "dense"])
def test_every_layout_of_a_matrix_is_explained_alike_and_left_alone(layout):
    model, X = fitted()
    expected = explain(model, X)
    unsorted = sp.csr_matrix(X.copy())
    for i in range(unsorted.shape[0]):
        row = slice(*unsorted.indptr[i : i + 2])
        unsorted.indices[row] = unsorted.indices[row][::-1].copy()
        unsorted.data[row] = unsorted.data[row][::-1].copy()
    unsorted.has_sorted_indices = False
    coo = X.tocoo()
    halves = sp.coo_matrix(
        (np.tile(coo.data / 2, 2), (np.tile(coo.row, 2), np.tile(coo.col, 2))), shape=X.shape
    )
    order = np.argsort(halves.row, kind="stable")
    parts = sp.csr_matrix((halves.data[order], halves.col[order], 2 * X.indptr), shape=X.shape)
    zeros = X.copy()
    zeros.data[::3] = 0
    given = {
        "csr": sp.csr_array(X),
        "csc": X.tocsc(),
        "coo": coo,
        "unsorted": unsorted,
        "parts": parts,
        "zeros": zeros,
        "dense": X.toarray(),
    }[layout]
    if layout == "zeros":
        expected = explain(model, sp.csr_matrix(zeros.toarray()))
    before = deepcopy(given)
    explanation = explain(model, given)
    for name in ("data", "indices", "indptr", "row", "col"):
        if sp.issparse(given) and hasattr(given, name):
            assert_array_equal(getattr(given, name), getattr(before, name))
    if not sp.issparse(given):
        assert_array_equal(given, before)
    assert_array_equal(explanation.columns, expected.columns)
    assert_array_equal(explanation.counts, expected.counts)
    for name in ("attention", "contributions", "decision_without"):
        assert_allclose(getattr(explanation, name), getattr(expected, name), atol=1e-12)


def test_data_frames_give_the_names():
    X, y = data()
    frame = pd.DataFrame(X.toarray(), columns=[f"word{j}" for j in range(X.shape[1])])
    model = ClsAttentionClassifier().fit(frame, y)
    explanation = explain(model, frame)
    assert set(explanation.tokens) <= set(frame.columns)
    assert explanation.tokens[0] == f"word{explanation.columns[0]}"


def test_targets_of_two_classes_are_two_sides_of_one_decision():
    model = pipeline()
    good, bad = (explain(model, TEXTS, target=label) for label in ("good", "bad"))
    assert_array_equal(good.decision[:, 0], model.decision_function(TEXTS))
    for name in ("decision", "contributions", "values", "decision_without", "intercept"):
        assert_array_equal(getattr(good, name), -getattr(bad, name))
    assert_allclose(good.probability + bad.probability, 1.0)
    assert_array_equal(bad.probability[:, 0], model.predict_proba(TEXTS)[:, 0])
    assert_array_equal(bad.predicted, model.predict(TEXTS))


def test_one_target_of_several_is_its_part_of_all():
    model, X = fitted(3)
    every, one = explain(model, X), explain(model, X, target=2)
    assert every.targets.tolist() == [0, 1, 2]
    assert one.targets.tolist() == [2]
    for name in ("decision", "contributions", "values", "decision_without", "probability"):
        assert_array_equal(getattr(one, name), getattr(every, name)[:, [2]])
    assert_array_equal(one.predicted_probability, model.predict_proba(X).max(axis=1))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_top_puts_the_others_together(n_classes):
    model, X = fitted(n_classes)
    every, few = explain(model, X), explain(model, X, top=3)
    assert np.diff(few.indptr).max() == 3
    assert_allclose(few.decision_terms(), every.decision_terms())
    assert_contract(model, X, few)
    for whole, part in zip(every, few, strict=True):
        kept = np.isin(whole.columns, part.columns)
        all_of = abs(whole.contributions).max(axis=1)
        assert all_of[kept].min(initial=np.inf) >= all_of[~kept].max(initial=0.0)
        assert part.others_count[0] == len(whole.columns) - len(part.columns)
    assert explain(model, X, top=0).indptr[-1] == 0


def test_slices_masks_and_iteration():
    explanation = explain(pipeline(), [*TEXTS, "", "fun fun"], y_true=[*LABELS, "bad", "good"])
    assert len(explanation) == 6
    assert explanation[3].tokens.tolist() == ["and", "boring", "long"]
    assert explanation[-1].counts.tolist() == [2.0]
    assert explanation[1:3].index.tolist() == [1, 2]
    assert explanation[::-1][0].index.tolist() == [5]
    assert explanation[explanation.predicted == "good"].true.tolist() == ["good", "good", "good"]
    assert explanation[[4, 0]].texts[1][0].text == TEXTS[0]
    assert len(explanation[[]]) == len(explanation[2:2]) == 0
    assert [one.index[0] for one in explanation] == list(range(6))
    together = np.concatenate([one.contributions for one in explanation])
    assert_array_equal(together, explanation.contributions)
    with pytest.raises(IndexError):
        explanation[6]
    for wrong in (True, (0, 1)):
        with pytest.raises(TypeError, match="one integer, slice"):
            explanation[wrong]


def test_pickles_are_plain_and_small():
    explanation = explain(pipeline(), TEXTS)
    stored = pickle.dumps(explanation[0])
    assert b"sklearn." not in stored.replace(b"sklearn_clsattn", b"")
    assert len(stored) < 5000
    again = pickle.loads(stored)
    assert_array_equal(again.contributions, explanation[0].contributions)
    assert again.texts[0][0].text == TEXTS[0]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_frames_add_up(n_classes):
    model, X = fitted(n_classes)
    explanation = explain(model, X, top=4, y_true=model.predict(X))
    frame = explanation.to_frame(every_class=True)
    assert list(frame.columns)[:4] == ["document", "target", "token", "kind"]
    sums = frame.groupby(["document", "target"])[["contribution", "attention"]].sum()
    assert_allclose(sums["contribution"].to_numpy(), explanation.decision.ravel(), atol=1e-12)
    assert_allclose(sums["attention"].to_numpy(), 1.0)
    documents = explanation.to_frame("documents", every_class=True)
    assert len(documents) == len(explanation) * len(explanation.targets)
    assert (documents["predicted"] == documents["true"]).all()
    assert len(explanation[:0].to_frame()) == len(explanation[:0].to_frame("documents")) == 0
    with pytest.raises(ValueError, match="rows must be"):
        explanation.to_frame("words")


def test_a_token_called_cls_is_told_from_cls():
    model, X = fitted()
    names = ["<cls>", *(f"t{j}" for j in range(1, X.shape[1]))]
    frame = explain(model, X[:3], token_names=names).to_frame()
    assert set(frame.loc[frame["token"] == "<cls>", "kind"]) == {"token", "cls"}


def test_dictionaries_can_be_written_as_json():
    for explanation in (
        explain(pipeline(), [*TEXTS, ""], top=2, y_true=[*LABELS, "good"]),
        explain(*fitted(3)),
        explain(*fitted(model=TRAININGS["two layers"])),
    ):
        plain = json.loads(json.dumps(explanation.to_dict(), allow_nan=False))
        for i, document in enumerate(plain["documents"]):
            terms = [token["contributions"] for token in document["tokens"]]
            terms += [document["others"]["contributions"], plain["intercept"]]
            assert_allclose(np.sum(terms, axis=0), explanation.decision[i])


def test_empty_documents_and_documents_of_unknown_words():
    explanation = explain(pipeline(), ["", "nothing known here", "fun"])
    assert np.diff(explanation.indptr).tolist() == [0, 0, 1]
    assert_array_equal(explanation.decision[:2, 0], np.repeat(explanation.intercept, 2))
    assert explanation.cls_attention[:2].tolist() == [1.0, 1.0]
    assert "decision is the intercept" in explanation[0].to_text()


def test_searches_are_explained_by_their_best():
    X, y = data()
    search = GridSearchCV(ClsAttentionClassifier(), {"C": [0.1, 1.0]}, cv=2).fit(X, y)
    assert_array_equal(explain(search, X).decision[:, 0], search.decision_function(X))
    with pytest.raises(NotFittedError):
        explain(GridSearchCV(ClsAttentionClassifier(), {}), X)


def test_bad_estimators_are_refused():
    X, y = data()
    with pytest.raises(NotFittedError):
        explain(ClsAttentionClassifier(), X)
    with pytest.raises(NotFittedError):
        explain(make_pipeline(CountVectorizer(), ClsAttentionClassifier()), TEXTS)
    other = LogisticRegression().fit(X, y)
    with pytest.raises(TypeError, match="got LogisticRegression"):
        explain(other, X)
    with pytest.raises(TypeError, match="Pipeline with LogisticRegression as its last step"):
        explain(make_pipeline(CountVectorizer(), LogisticRegression()), TEXTS)
    with pytest.raises(TypeError, match="got 'model'"):
        explain("model", X)


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ("a terrific film", "got one text"),
        (b"a terrific film", "got one text"),
        ([], "no documents"),
        (np.array([], dtype=object), "no documents"),
        (sp.csr_matrix((0, 8)), "no documents"),
        (["fun", None], "document 1 is None"),
        (["fun", float("nan")], "document 1 is nan"),
        (sp.csr_matrix((2, 8)), "expected raw texts"),
        (np.zeros((2, 8)), "expected raw texts"),
        (pd.DataFrame({"text": TEXTS}), "expected raw texts|document 0"),
    ],
    ids=lambda given: type(given).__name__,
)
def test_bad_texts_are_refused(documents, message):
    with pytest.raises(ValueError, match=message):
        explain(pipeline(), documents)


def test_texts_may_come_in_any_sequence():
    model = pipeline()
    expected = explain(model, TEXTS).decision
    for texts in (
        tuple(TEXTS),
        np.array(TEXTS),
        np.array(TEXTS, dtype=object),
        pd.Series(TEXTS, index=[7, 5, 3, 1]),
        (text for text in TEXTS),
        [text.encode() for text in TEXTS],
    ):
        explanation = explain(model, texts)
        assert_array_equal(explanation.decision, expected)
        assert [one[0].text for one in explanation.texts] == TEXTS


def test_bad_matrices_are_refused():
    model, X = fitted()
    with pytest.raises(ValueError, match="got texts: pass the Pipeline"):
        explain(model, TEXTS)
    with pytest.raises(ValueError, match="got texts: pass the Pipeline"):
        explain(model, pd.Series(TEXTS))
    with pytest.raises(ValueError, match="21 features"):
        explain(model, sp.csr_matrix((2, 21)))
    with pytest.raises(ValueError, match="Negative"):
        explain(model, -X)


@pytest.mark.parametrize("target", ["bad", 7, [0], np.array([0, 1]), 0.5])
def test_unknown_targets_are_refused(target):
    model, X = fitted()
    with pytest.raises(ValueError, match=r"target must be None or one of the classes \[0, 1\]"):
        explain(model, X, target=target)
    explanation = explain(model, X)
    empty = explanation[:0]
    for render in (explanation.to_text, explanation.to_html, empty.to_text, empty.to_html):
        with pytest.raises(ValueError, match="target must be None or one of the classes"):
            render(target=target)


def test_other_bad_arguments_are_refused():
    model, X = fitted()
    explanation = explain(model, X)
    for top, error in ((-1, ValueError), (1.5, TypeError), ("all", TypeError)):
        with pytest.raises(error, match=r"^top .*must be"):
            explain(model, X, top=top)
        for render in (explanation.to_text, explanation.to_html):
            with pytest.raises(error, match=r"^top .*must be"):
                render(top=top)
    with pytest.raises(ValueError, match="one label in y_true"):
        explain(model, X, y_true=[0, 1])
    with pytest.raises(ValueError, match="expected 20 token_names"):
        explain(model, X, token_names=["a"])
    with pytest.raises(ValueError, match="width must be at least"):
        explain(model, X).to_text(width=10)


def test_plain_text_says_it_without_colour():
    text = explain(pipeline(), ["a terrific but boring film"], y_true=["bad"]).to_text(color=False)
    assert "\x1b" not in text
    assert "[+terrific]" in text
    assert "[-boring]" in text
    assert re.search(r"decision [+-][\d.]+ = [+-][\d.]+ intercept, \+[\d.]+ for good", text)
    assert max(map(len, text.splitlines())) <= 100


def test_coloured_text_is_the_same_text():
    explanation = explain(pipeline(), ["a terrific but boring film", "fun"])
    colored = explanation.to_text(color=True)
    assert "\x1b[" in colored
    stripped = re.sub(r"\x1b\[[\d;]*m", "", colored)
    plain = re.sub(r"\[[+-](\w+)\]", r"\1", explanation.to_text(color=False))
    assert [line.split() for line in stripped.splitlines()] == [
        line.split() for line in plain.splitlines()
    ]
    assert explanation.to_text() == explanation.to_text(color=False)  # tests run without a terminal


def test_text_cannot_steer_a_terminal():
    hostile = (
        "terrific \x1b[31mred\x1b[0m \x07\x08 \u202ereversed \ud800 \x9b2J\r\n[bold]boring[/bold]"
    )
    for color in (True, False):
        text = explain(pipeline(), [hostile]).to_text(color=color, width=60)
        text.encode()
        assert not set(re.sub(r"\x1b\[[\d;]*m", "", text)) & set("\x1b\x07\x08\x9b\r\u202e")
        assert "[bold]" in text


def test_text_of_several_classes_says_which_is_shown():
    texts, y = make_token_classification(60, n_classes=3, as_text=True, random_state=0)
    model = make_pipeline(CountVectorizer(), ClsAttentionClassifier()).fit(texts, y)
    explanation = explain(model, texts[:1])
    predicted = explanation.predicted[0]
    assert f"for {predicted}" in explanation.to_text()
    other = next(label for label in range(3) if label != predicted)
    assert f"for {other}" in explanation.to_text(target=other)
    assert f"against {other}" in explain(model, texts[:1], target=other).to_text()
    assert repr(explanation) == "<Explanation of 1 document: what speaks for each of 3 classes>"


def test_numbers_of_matrices_without_names_are_shown():
    model, X = fitted()
    assert "x0" in explain(model, X[:1]).to_text(top=20)


def test_classes_that_predict_in_their_own_way_are_asked():
    class Cautious(ClsAttentionClassifier):
        def predict_proba(self, X):
            return 0.5 * super().predict_proba(X) + 0.25

    texts, labels = ["good fun", "bad plot", "good plot"], ["yes", "no", "yes"]
    model = make_pipeline(CountVectorizer(), Cautious()).fit(texts, labels)
    assert_allclose(explain(model, texts).probability[:, 0], model.predict_proba(texts)[:, 1])


def test_a_vectorizer_that_has_no_hash():
    class Equal(CountVectorizer):
        def __eq__(self, other):
            return isinstance(other, Equal)

    model = make_pipeline(Equal(), ClsAttentionClassifier()).fit(["good fun", "bad"], [1, 0])
    assert explain(model, ["good"]).tokens.tolist() == ["good"]


def test_parameters_set_after_fitting_change_no_explanation():
    X, y = make_token_classification(60, random_state=0)
    network = AttentionNetworkClassifier(n_layers=2, embedding_dim=4, max_iter=2, random_state=0)
    with pytest.warns(ConvergenceWarning):
        network.fit(X, y)
    before = explain(network, X[:3]).to_frame()
    after = explain(network.set_params(n_layers=1, mlp=True), X[:3]).to_frame()
    pd.testing.assert_frame_equal(before, after)


def test_class_strips_leave_out_what_rounds_to_nothing():
    texts, y = make_token_classification(600, n_classes=30, as_text=True, random_state=0)
    names = np.array([f"a class with the long name {k}" for k in range(30)])[y]
    model = make_pipeline(CountVectorizer(), ClsAttentionClassifier()).fit(texts, names)
    explanation = explain(model, texts[:5])
    for one, view in zip(explanation, views(explanation, None, 8), strict=True):
        shown, more = view.classes()
        assert 2 <= len(shown) <= 6
        assert len(shown) + more == 30
        assert shown[0].shown
        assert all(part.probability >= 0.0005 for part in shown[2:])
        assert shown[0].probability == one.probability.max()
    assert 'class="classes long"' in explanation.to_html()
