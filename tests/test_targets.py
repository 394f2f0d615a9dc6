"""Several labels a document, with one attention for all, and probabilities of the classes."""

import itertools
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

from sklearn_clsattn import ClsAttentionClassifier, TextClassifier
from sklearn_clsattn.inspection import explain, label_issues
from sklearn_clsattn.paper import OneStepClassifier
from sklearn_clsattn.text import ContextVectorizer

N_LABELS = 3
WORDS = np.array(["apple", "bread", "cheese", *(f"word{at}" for at in range(9))])


def labelled_counts(n_documents):
    """Return counts, in which column k speaks for label k, and labels: some documents have none."""
    rng = np.random.default_rng(0)
    Y = (rng.random((n_documents, N_LABELS)) < [0.5, 0.3, 0.2]).astype(int)
    X = rng.poisson(0.4, (n_documents, len(WORDS)))
    X[:, :N_LABELS] += 2 * Y * (rng.random(Y.shape) < 0.8)
    X[-5:], Y[-5:-3] = X[:5], Y[:2]  # copies, three with other labels
    return sp.csr_matrix(X), Y


@pytest.fixture(scope="module")
def data():
    return labelled_counts(90)


def test_labels_alone_are_classes_of_two(data):
    """With one attention for all, a label's values are those of its own classifier."""
    X, Y = data
    twice = np.column_stack([Y[:, 0], Y[:, 0]])
    both = settled(tol=1e-8, C=1.0, attention_C=0.06).fit(X, twice)
    alone = settled(tol=1e-8, C=1.0, attention_C=0.03).fit(X, Y[:, 0])
    assert_allclose(both.token_values_[0], both.token_values_[1], atol=1e-6)
    assert_allclose(both.decision_function(X)[:, 0], alone.decision_function(X), atol=0.1)


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


def test_choice_of_C_and_search():
    X, Y = labelled_counts(150)
    model = ClsAttentionClassifier().fit(X, Y)
    assert model.scores_.shape[1] == len(model.Cs_) > 1
    rare = Y.sum(axis=0) / len(Y)
    entropy = -(rare * np.log(rare) + (1 - rare) * np.log(1 - rare)).sum()
    assert -entropy < model.scores_.mean(axis=0).max() < 0
    search = GridSearchCV(ClsAttentionClassifier(), {"C": [0.1, 1.0]}, scoring="f1_micro", cv=3)
    assert search.fit(X, Y).best_score_ > 0.55


def test_vectors_of_tokens(data):
    X, Y = data
    vectors = np.random.default_rng(0).normal(size=(len(WORDS), 4))
    model = ClsAttentionClassifier(C=1.0).fit(X, Y, token_vectors=vectors)
    assert model.vector_weights_.shape == (N_LABELS, 4)
    E, v = model.token_embeddings_, model.output_vector_
    assert_allclose(E @ v.T, model.token_values_.T, atol=1e-6)
    assert ClsAttentionClassifier(C=1.0).fit(X, Y[:, 0]).decision_function(X).ndim == 1


@pytest.fixture(scope="module")
def texts(data):
    return [" ".join(np.repeat(WORDS, row)) for row in data[0].toarray()]


def test_texts_are_counted_once_and_explained_by_label(data, texts):
    labels = pd.DataFrame(data[1], columns=["fruit", "bakery", "dairy"])
    model = TextClassifier().fit(texts, labels)
    assert (model.predict(texts) == data[1]).mean() > 0.8
    explanation = explain(model, texts[:4], target="bakery", y_true=labels[:4])
    assert explanation.classes.tolist() == ["not bakery", "bakery"]
    assert_allclose(explanation.decision[:, 0], model.decision_function(texts[:4])[:, 1])
    terms = explanation.to_frame()
    sums = terms.groupby("document")["contribution"].sum()
    assert_allclose(sums, explanation.decision[:, 0], atol=1e-9)
    assert explanation.true.tolist() == [["not bakery", "bakery"][one] for one in data[1][:4, 1]]
    sparse = explain(model, texts[:4], target="bakery", y_true=sp.csr_array(data[1][:4]))
    assert sparse.true.tolist() == explanation.true.tolist()
    refused("several labels: target must be one of", explain, model, texts[:1])


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
    refused("a matrix of 0 and 1", model.fit, X, Y + 1)
    refused(
        "class_weight is for one label", ClsAttentionClassifier(class_weight="balanced").fit, X, Y
    )
    refused("y should be a 1d array", OneStepClassifier().fit, X, Y)


# Documents with probabilities: worth one copy for each class, weighted by these


CLASSES = pytest.mark.parametrize("n_classes", [2, 3])
NAMES = ["a", "b", "c"]


def problem(n_classes, n=120, seed=0):
    """Return counts, probabilities of which some are certain, and weights; some rows are copies."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    means = np.full((n, 15), 0.4)
    means[np.arange(n), y] = 1.5
    X = rng.poisson(means).astype(float)
    X[-6:] = X[:6]
    P = 0.5 * np.eye(n_classes)[y] + 0.5 * rng.dirichlet(np.full(n_classes, 0.5), n)
    P[: n // 3] = np.eye(n_classes)[y[: n // 3]]
    return sp.csr_array(X), P, rng.uniform(0.5, 2.0, n)


def repeated(X, P, weights):
    """Return each document once per class, its label, and its weight times the probability."""
    n, n_classes = P.shape
    X = sp.csr_array(sp.vstack([X] * n_classes))
    return X, np.repeat(np.arange(n_classes), n), (P * weights[:, None]).T.ravel()


@CLASSES
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"C": 1.0},
        {"class_weight": "balanced"},
        {"class_weight": {0: 2.0, 1: 0.5}, "C": 2.0},
        {"token_scaling": None, "attend_cls": False, "C": 0.5},
        {"attention_C": 0.3, "C": 1.0},
    ],
)
def test_a_document_is_worth_a_copy_for_each_class(n_classes, parameters):
    X, P, weights = problem(n_classes, 60)
    model = settled(tol=1e-9, **parameters).fit(X, P, sample_weight=weights)
    counts, labels, copies = repeated(X, P, weights)
    other = settled(tol=1e-9, **parameters).fit(counts, labels, sample_weight=copies)
    assert_array_equal(model.classes_, other.classes_)
    assert_allclose(model.token_importance_, other.token_importance_, atol=1e-12)
    assert pytest.approx(other.C_, rel=1e-4) == model.C_
    assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=1e-3)


@CLASSES
def test_certain_probabilities_are_labels(n_classes):
    X, P, weights = problem(n_classes)
    codes = P.argmax(axis=1)
    certain = np.eye(n_classes)[codes]
    names = np.array(NAMES[:n_classes])
    model = ClsAttentionClassifier().fit(X, names[codes], sample_weight=weights)
    nearly = np.clip(certain, 1e-12, None)  # a matrix of 0 and 1 would be several labels
    given = pd.DataFrame(nearly, columns=names)
    other = ClsAttentionClassifier().fit(X, given, sample_weight=weights)
    assert_array_equal(other.classes_, names)
    assert pytest.approx(model.C_, rel=1e-4) == other.C_
    assert_allclose(other.predict_proba(X), model.predict_proba(X), atol=1e-6)
    assert not other.multilabel_


def test_probabilities_in_every_form():
    X, P, _ = problem(3)
    expected = ClsAttentionClassifier(C=1.0).fit(X, P).predict_proba(X)
    read_only = P.copy()
    read_only.flags.writeable = False
    for form in (P.astype(np.float32), P.tolist(), read_only, np.asfortranarray(P)):
        model = ClsAttentionClassifier(C=1.0).fit(X, form)
        assert model.classes_.tolist() == [0, 1, 2]
        assert_allclose(model.predict_proba(X), expected, atol=1e-3)
    # Names of classes are sorted, and probabilities with them.
    model = ClsAttentionClassifier(C=1.0).fit(X, pd.DataFrame(P, columns=["b", "a", "c"]))
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert_allclose(model.predict_proba(X), expected[:, [1, 0, 2]], atol=1e-3)


def test_rows_that_are_no_probabilities_are_refused():
    X, P, _ = problem(3)
    for position, row, message in (
        (7, [0.5, 0.1, 0.1], "row 7 has a sum of 0.7"),
        (3, [1.5, -0.5, 0.0], "row 3"),
        (5, [0.5, np.nan, 0.5], "contains NaN"),
    ):
        wrong = P.copy()
        wrong[position] = row
        refused(message, ClsAttentionClassifier().fit, X, wrong)
    refused("a sum of 100", ClsAttentionClassifier().fit, X, P * 100)
    equal = P[:, :1].repeat(2, 1) * 0.9
    refused("rows that add up to 1", ClsAttentionClassifier().fit, X, equal)
    twice = pd.DataFrame(P, columns=["a", "b", "a"])
    refused("unique column names", ClsAttentionClassifier().fit, X, twice)
    refused("y should be a 1d array", OneStepClassifier().fit, X, P)


@CLASSES
@pytest.mark.parametrize("several", [False, True])
def test_batches(n_classes, several):
    """Of probabilities, and of several labels."""
    X, y, weights = problem(n_classes)
    if several:
        y = (y > 0.3).astype(int)
    model = ClsAttentionClassifier().fit(X, y, sample_weight=weights)
    first = ClsAttentionClassifier().partial_fit(X, y, sample_weight=weights)
    assert_allclose(first.predict_proba(X), model.predict_proba(X), atol=2e-3)
    second = first.partial_fit(X[:40], y[:40])
    assert second.multilabel_ == several
    assert np.isfinite(second.predict_proba(X)).all()


@pytest.mark.parametrize("columns", [["spam", "ham"], ["ham", "spam"]])
def test_columns_of_probabilities_are_classes_by_name_in_batches_too(columns):
    X, P, _ = problem(2)
    given = pd.DataFrame(P, columns=["spam", "ham"])
    model = ClsAttentionClassifier(C=1.0).fit(X, given)
    batches = ClsAttentionClassifier(C=1.0)
    for rows in (slice(60), slice(60, 120)):
        batches.partial_fit(X[rows], given[columns][rows], classes=["ham", "spam"])
    assert batches.classes_.tolist() == model.classes_.tolist() == ["ham", "spam"]
    assert np.mean((batches.predict(X) == "spam") == (P[:, 0] > 0.5)) > 0.7
    other = pd.DataFrame(P, columns=["spam", "eggs"])
    refused("not among the classes.*eggs", batches.partial_fit, X, other)


def test_batches_of_labels_and_of_probabilities_follow_each_other():
    X, P, _ = problem(3)
    labels = P.argmax(axis=1)
    model = ClsAttentionClassifier().partial_fit(X[:60], labels[:60], classes=[0, 1, 2])
    model = model.partial_fit(X[60:], P[60:])
    assert model.score(X, labels) > 0.7
    refused("2 columns: expected as many", model.partial_fit, X, P[:, :2] + P[:, 2:] / 2)
    several = ClsAttentionClassifier().partial_fit(X, (P > 0.3).astype(int))
    refused("Earlier batches had several labels", several.partial_fit, X, labels, [0, 1, 2])
    before = model.predict_proba(X)
    model = model.partial_fit(X[:3], np.eye(3, dtype=int))  # of 0 and 1 by chance
    assert not np.allclose(model.predict_proba(X), before)
    for row in ([0, 0, 0], [1, 1, 0]):
        rows = np.vstack([np.eye(3, dtype=int), row])
        refused("Expected probabilities in rows that add up to 1", model.partial_fit, X[:4], rows)


def test_texts_with_probabilities():
    """Gates and classifier are those of a copy for each class."""
    texts = ["a good film", "a bad film", "not good", "not bad at all", "so good", "so bad"] * 6
    P = np.tile([[0.1, 0.9], [0.8, 0.2], [0.7, 0.3], [0.4, 0.6], [0.0, 1.0], [1.0, 0.0]], (6, 1))
    options = {"min_df": 1, "character_min_df": 1, "characters": None}
    vectorizer = ContextVectorizer(**options).fit(texts, P)
    copies = [*texts, *texts]
    labels, weights = np.repeat([0, 1], 36), P.T.ravel()
    other = ContextVectorizer(**options).fit(copies, labels, sample_weight=weights)
    assert_allclose(vectorizer.start_scores_, other.start_scores_, atol=1e-6)
    assert_allclose(vectorizer.previous_word_scores_, other.previous_word_scores_, atol=1e-6)
    model = TextClassifier().fit(texts, pd.DataFrame(P, columns=["neg", "pos"]))
    assert model.predict(["so good", "so bad"]).tolist() == ["pos", "neg"]


def test_columns_of_every_batch_are_matched():
    """By their names, or in the order of `classes`, whatever the order of the batch before."""
    X, P, Y = problem_of_columns()
    names = ["ham", "spam"]
    expected = ClsAttentionClassifier(C=1.0).partial_fit(X, Y, names).partial_fit(X, Y)
    other = ClsAttentionClassifier(C=1.0).partial_fit(X, Y, names)
    other.partial_fit(X, Y[:, ::-1], names[::-1])
    assert_array_equal(other.predict_proba(X), expected.predict_proba(X))
    assert other.classes_.tolist() == names
    frames = [pd.DataFrame(P, columns=names), pd.DataFrame(P[:, ::-1], columns=names[::-1])]
    expected = ClsAttentionClassifier(C=1.0).partial_fit(X, P, names).partial_fit(X, P)
    for one, two in itertools.permutations(frames):
        other = ClsAttentionClassifier(C=1.0).partial_fit(X, one).partial_fit(X, two)
        assert_array_equal(other.predict_proba(X), expected.predict_proba(X))
    model = ClsAttentionClassifier(C=1.0)
    refused("ascending order", model.partial_fit, X, P, names[::-1])
    refused("classes of the first call", expected.partial_fit, X, P, ["ham", "spam", "else"])


def problem_of_columns():
    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, (80, 6)).astype(float)
    spam = 1.0 / (1.0 + np.exp(1.0 - X[:, 0]))
    return X, np.stack([1.0 - spam, spam], axis=1), (X[:, :2] > 1).astype(int)
