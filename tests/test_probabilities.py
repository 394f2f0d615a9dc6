"""Documents with probabilities of the classes: worth one copy for each class, weighted by these."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers import refused, settled
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_clsattn import ChunkedCounts, ClsAttentionClassifier
from sklearn_clsattn.paper import OneStepClassifier
from sklearn_clsattn.text import ContextVectorizer, make_text_classifier

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
        {"class_weight": {0: 2.0, 1: 0.5, 2: 1.5}, "C": 2.0},
        {"token_scaling": None, "attend_cls": False, "C": 0.5},
        {"sublinear_counts": False, "attention_C": 0.3, "C": 1.0},
    ],
)
def test_a_document_is_worth_a_copy_for_each_class(n_classes, parameters):
    X, P, weights = problem(n_classes)
    if isinstance(parameters.get("class_weight"), dict):
        factors = {k: parameters["class_weight"][k] for k in range(n_classes)}
        parameters = parameters | {"class_weight": factors}
    model = settled(tol=1e-9, **parameters).fit(X, P, sample_weight=weights)
    counts, labels, copies = repeated(X, P, weights)
    other = settled(tol=1e-9, **parameters).fit(counts, labels, sample_weight=copies)
    assert_array_equal(model.classes_, other.classes_)
    assert_allclose(model.token_importance_, other.token_importance_, atol=1e-12)
    assert_allclose(model.class_prior_, other.class_prior_)
    assert pytest.approx(other.C_, rel=1e-4) == model.C_
    assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=1e-3)


@CLASSES
def test_certain_probabilities_are_labels(n_classes):
    X, P, weights = problem(n_classes)
    codes = P.argmax(axis=1)
    certain = np.eye(n_classes)[codes]
    names = np.array(NAMES[:n_classes])
    model = ClsAttentionClassifier().fit(X, names[codes], sample_weight=weights)
    other = ClsAttentionClassifier().fit(X, certain, sample_weight=weights, classes=names)
    assert_array_equal(other.classes_, names)
    assert pytest.approx(model.C_) == other.C_
    assert_allclose(other.predict_proba(X), model.predict_proba(X), atol=1e-6)
    assert not other.multilabel_


FORMS = {
    "float32": lambda P: P.astype(np.float32),
    "list": lambda P: P.tolist(),
    "frame": lambda P: pd.DataFrame(P, columns=["b", "a", "c"]),
    "read-only": lambda P: _read_only(P),
    "columns first": np.asfortranarray,
}


def _read_only(P):
    P = P.copy()
    P.flags.writeable = False
    return P


@pytest.mark.parametrize("form", [*FORMS])
def test_probabilities_in_every_form(form):
    X, P, _ = problem(3)
    expected = ClsAttentionClassifier(C=1.0).fit(X, P).predict_proba(X)
    model = ClsAttentionClassifier(C=1.0).fit(X, FORMS[form](P))
    order = [1, 0, 2] if form == "frame" else [0, 1, 2]  # classes are sorted
    assert model.classes_.tolist() == (["a", "b", "c"] if form == "frame" else [0, 1, 2])
    assert_allclose(model.predict_proba(X), expected[:, order], atol=1e-3)


def test_names_are_matched_not_assumed():
    X, P, _ = problem(3)
    given = ClsAttentionClassifier(C=1.0).fit(X, P, classes=["z", "x", "y"])
    assert given.classes_.tolist() == ["x", "y", "z"]
    most = np.array(["z", "x", "y"])[P.argmax(axis=1)]
    assert np.mean(given.predict(X) == most) > 0.6


def test_rows_that_are_no_probabilities_are_refused():
    X, P, _ = problem(3)
    for position, row, message in (
        (7, [0.5, 0.1, 0.1], r"position 7: \[0.5, 0.1, 0.1\]"),
        (3, [1.5, -0.5, 0.0], r"position 3"),
        (5, [0.5, np.nan, 0.5], r"missing(?s:.*)position 5"),
    ):
        wrong = P.copy()
        wrong[position] = row
        refused(message, ClsAttentionClassifier().fit, X, wrong)
    refused(r"120 of 120 do not(?s:.*)a sum of 100", ClsAttentionClassifier().fit, X, P * 100)
    equal = P[:, :1].repeat(2, 1) * 0.9
    refused("rows that add up to 1", ClsAttentionClassifier().fit, X, equal)


def test_names_of_classes_are_checked():
    X, P, _ = problem(3)
    refused("3 columns of probabilities.*different names", fit_with, X, P, ["a", "b"])
    refused("different names", fit_with, X, P, ["a", "b", "a"])
    refused("with one label per document, leave classes out", fit_with, X, P.argmax(axis=1), [0, 1])
    refused("at least two are needed", fit_with, X, np.eye(3)[np.zeros(120, int)], NAMES)
    refused("several labels per document", OneStepClassifier().fit, X, P)


def fit_with(X, y, classes):
    return ClsAttentionClassifier().fit(X, y, classes=classes)


@CLASSES
@pytest.mark.parametrize("several", [False, True])
def test_chunks_and_batches(tmp_path, n_classes, several):
    """Of probabilities, and of several labels."""
    X, y, weights = problem(n_classes)
    classes = None if several else NAMES[:n_classes]
    if several:
        y = (y > 0.3).astype(int)
    fits = {} if several else {"classes": classes}
    model = ClsAttentionClassifier().fit(X, y, sample_weight=weights, **fits)
    parts = [slice(0, 50), slice(50, 51), slice(51, 120)]
    batches = [(X[part], y[part], weights[part]) for part in parts]
    counts = ChunkedCounts.write(tmp_path / "c", batches, chunk_entries=200, classes=classes)
    counts = ChunkedCounts(counts.path)
    assert_allclose(np.vstack([part[1] for part in counts]), y, atol=1e-12)
    chunked = ClsAttentionClassifier().fit_chunks(counts)
    assert_array_equal(chunked.classes_, model.classes_)
    assert chunked.multilabel_ == several
    assert pytest.approx(model.C_, rel=1e-3) == chunked.C_
    assert_allclose(chunked.predict_proba(X), model.predict_proba(X), atol=2e-3)

    first = ClsAttentionClassifier().partial_fit(X, y, sample_weight=weights, **fits)
    assert_allclose(first.predict_proba(X), model.predict_proba(X), atol=2e-3)
    second = first.partial_fit(X[:40], y[:40])
    assert second.multilabel_ == several
    assert np.isfinite(second.predict_proba(X)).all()


def test_batches_of_labels_and_of_probabilities_follow_each_other():
    X, P, _ = problem(3)
    labels = P.argmax(axis=1)
    model = ClsAttentionClassifier().partial_fit(X[:60], labels[:60], classes=[0, 1, 2])
    model = model.partial_fit(X[60:], P[60:])
    assert model.score(X, labels) > 0.7
    refused("as many different names", model.partial_fit, X, P[:, :2] + P[:, 2:] / 2)
    several = ClsAttentionClassifier().partial_fit(X, (P > 0.3).astype(int))
    refused("Earlier batches had several labels", several.partial_fit, X, labels, [0, 1, 2])


def test_chunks_of_probabilities_need_the_classes(tmp_path):
    X, P, _ = problem(3)
    refused(r"classes=\[\.\.\.\]", ChunkedCounts.write, tmp_path / "c", [(X, P)])


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
    model = make_text_classifier().fit(texts, pd.DataFrame(P, columns=["neg", "pos"]))
    assert model.predict(["so good", "so bad"]).tolist() == ["pos", "neg"]
