"""compare: every model measured alike, against what scikit-learn gives step by step."""

import warnings
from functools import partial

import numpy as np
import pytest
from helpers import network, refused
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, log_loss
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier, TextClassifier
from sklearn_clsattn.comparison import (
    Model,
    ValidationFolds,
    compare,
    default_models,
    expected_calibration_error,
)
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.inspection import ModelReport, explain

NAIVE = Model("nb", make_pipeline(CountVectorizer(ngram_range=(1, 2)), MultinomialNB()))


@pytest.fixture(scope="module")
def reviews():
    texts, y = make_token_classification(n_samples=200, as_text=True, flip_y=0.2, random_state=0)
    return texts[:150], y[:150], texts[150:], y[150:]


@pytest.fixture(scope="module")
def result(reviews):
    return compare(*reviews)


def test_all_models_are_measured(result):
    models = default_models()
    assert [model.name for model in result.models] == [model.name for model in models]
    assert [model.kind for model in result.models] == ["ours", *["baseline"] * 6, "floor"]
    for model in result.models[:-1]:
        assert result.models[-1].accuracy < model.accuracy <= 1
        assert 0 < model.macro_f1 <= 1
        assert min(model.fit_seconds, model.predict_seconds) > 0
        assert (model.log_loss is None) == model.name.startswith("LinearSVC")
    assert (result.n_train, result.n_test, result.classes) == (150, 50, [0, 1])
    frame = result.to_frame()
    assert frame["accuracy"].to_dict() == {one.name: one.accuracy for one in result.models}


def test_every_model_has_its_own_features_and_scikit_learns_measurements(reviews, result):
    train, y, test, y_test = reviews
    counts = CountVectorizer(ngram_range=(1, 2))
    tfidf = make_pipeline(counts, TfidfTransformer(), LogisticRegression())
    scaled = make_pipeline(counts, TfidfTransformer(sublinear_tf=True))
    search = LogisticRegression(C=best_c(scaled.fit_transform(train), y), max_iter=1000)
    by_hand = {
        "ClsAttentionClassifier": TextClassifier(),
        "LogisticRegression, tuned": make_pipeline(scaled, search),
        "LogisticRegression, defaults": tfidf,
        "MultinomialNB": make_pipeline(counts, MultinomialNB()),
        "majority class": DummyClassifier(),
    }
    for entrant in result.entrants:
        measured, fitted = entrant.result, entrant.estimator
        np.testing.assert_array_equal(entrant.predicted, fitted.predict(test))
        assert measured.accuracy == accuracy_score(y_test, entrant.predicted)
        assert measured.macro_f1 == f1_score(y_test, entrant.predicted, average="macro")
        if entrant.proba is not None:
            np.testing.assert_allclose(entrant.proba, fitted.predict_proba(test), rtol=1e-12)
            assert measured.log_loss == pytest.approx(log_loss(y_test, entrant.proba))
        if measured.name in by_hand:
            expected = by_hand.pop(measured.name).fit(train, y).predict_proba(test)
            np.testing.assert_allclose(entrant.proba, expected, rtol=1e-4)
    assert not by_hand


def best_c(X, y):
    """Return the C of the highest accuracy on held-out fifths, the smallest of equals."""
    means = {}
    for C in (1, 10, 100):
        right = []
        for train, held_out in ValidationFolds(5).split(X, y):
            fitted = LogisticRegression(C=C, max_iter=1000).fit(X[train], y[train])
            right.append(fitted.score(X[held_out], y[held_out]))
        means[C] = np.mean(right)
    return max(means, key=means.get)


def test_documents_are_held_out_once_and_every_class_stays_in_training():
    y = np.repeat([0, 1, 2], [20, 12, 1])
    splits = list(ValidationFolds(5).split(y, y))
    assert sorted(np.concatenate([held_out for _, held_out in splits])) == list(range(32))
    for train, held_out in splits:
        assert sorted([*train, *held_out]) == list(range(33))
        of_class = np.bincount(y[held_out])
        assert of_class[0] == 4
        assert of_class[1] in (2, 3)
    ((train, _),) = ValidationFolds(5).split([0, 1], [0, 1])  # nothing can be held out
    assert train.tolist() == [0, 1]


def test_large_sets_are_validated_once():
    search = [default_models(n)[1].estimator[-1] for n in (1999, 2000)]
    y = np.arange(100) % 2
    assert [one.cv.get_n_splits(y, y) for one in search] == [5, 1]
    (split,) = search[1].cv.split(y, y)
    assert [len(part) for part in split] == [80, 20]


def test_unseen_labels_and_shared_texts_are_noted(reviews):
    train, y, test, y_test = reviews
    y_test = y_test.copy()
    y_test[:5] = 7
    result = compare(train, y, test, y_test, models=[NAIVE])
    known = compare(train, y, test[5:], y_test[5:], models=[NAIVE])
    assert result.models[0].accuracy == pytest.approx(known.models[0].accuracy * 45 / 50)
    assert result.models[0].log_loss == pytest.approx(known.models[0].log_loss)
    assert result.models[0].macro_f1 < known.models[0].macro_f1
    assert not hasattr(NAIVE.estimator, "classes_")
    assert any("5 of 50" in note and "7" in note for note in result.notes)
    notes = compare(train, y, train[:30], y[:30], models=[NAIVE]).notes
    assert any(note.startswith("30 distinct test texts are also") for note in notes)


def test_convergence_warnings_become_notes_and_others_pass(reviews):
    class Noisy(DummyClassifier):
        def fit(self, X, y):
            warnings.warn("something else", stacklevel=2)
            return super().fit(X, y)

    stuck = Model("stuck", make_pipeline(CountVectorizer(), LogisticRegression(max_iter=1)))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        plain = compare(*reviews, models=[stuck])
    assert plain.notes == ["stuck did not converge within its maximum number of iterations."]
    with pytest.warns(UserWarning, match="something else"):
        compare(*reviews, models=[Model("noisy", Noisy())])


# Tokens of classes


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_layers", [1, 2])
def test_effects_are_spreads_of_contributions_less_their_mean(n_classes, n_layers):
    counts, y = make_token_classification(n_samples=60, n_classes=n_classes, random_state=3)
    fit = ClsAttentionClassifier().fit if n_layers == 1 else partial(network, n_layers=2)
    classifier = fit(counts, y)
    added = classifier.contributions(counts)
    of_classes = [-added, added] if n_classes == 2 else added
    added = np.array([of_class.toarray() for of_class in of_classes])
    added -= added.mean(axis=0)
    effects = np.sign(added.sum(1)) * added.std(1)
    tokens = ModelReport.from_estimator(classifier, counts, y, n_top=10).tokens
    for of_class, effect in zip(tokens, effects, strict=True):
        best = np.argsort(-effect, kind="stable")[:10]
        assert [name for name, _ in of_class.important] == [f"x{s}" for s in best]
        assert [found for _, found in of_class.important] == pytest.approx(effect[best])
    selected = {name: n for of_class in tokens for name, n in of_class.selected}
    counted = dict(zip(classifier.selected_tokens_, classifier.selection_counts_, strict=True))
    assert selected.items() <= {f"x{s}": n for s, n in counted.items()}.items()


def test_errors():
    two, y = ["good good", "bad bad"] * 3, [0, 1] * 3
    refused("expected training texts", compare, "text", [0], ["x"], [0])
    refused("expected test texts", compare, two, y, [], [])
    refused("one label for each", compare, two, [0, 1], ["x"], [0])
    refused("all training labels are 0", compare, two, [0] * 6, ["x"], [0])
    refused("no test label occurs in training", compare, two, y, ["x"], ["0"])
    refused("no models to compare", compare, two, y, ["x"], [0], models=[])


def test_words_with_their_characters_are_one_token(reviews):
    train, y, test, y_test = reviews
    model = TextClassifier().fit(train, y)
    terms = explain(model, test).to_frame().query("kind == 'token'")
    added = terms.pivot_table("contribution", "document", "token", fill_value=0)
    tokens = ModelReport.from_estimator(model, test, y_test).tokens
    for name, effect in tokens[1].important:
        assert effect == pytest.approx(added[name].std(ddof=0), rel=1e-6)


# ---- calibration --------------------------------------------------------------------------------


def slow_error(codes, proba, weights, edges):
    """Return the expected calibration error, document by document; an edge is of the bin below."""
    gaps = dict.fromkeys(range(len(edges) + 1), 0.0)
    for code, row, weight in zip(codes, proba, weights, strict=True):
        confidence = max(row)
        number = sum(edge < confidence for edge in edges)
        gaps[number] += weight * ((list(row).index(confidence) == code) - confidence)
    return sum(map(abs, gaps.values())) / sum(weights)


def slow_edges(confidence, weights, n_bins, strategy):
    """Return the upper edges of all bins but the last."""
    if strategy == "uniform":
        return [at / n_bins for at in range(1, n_bins)]
    repeated = sorted(np.repeat(confidence, weights).tolist())
    ends = (-(-len(repeated) * at // n_bins) for at in range(1, n_bins))
    return [repeated[end - 1] for end in ends]


@settings(max_examples=80)
@given(
    st.integers(2, 5),
    st.integers(1, 40),
    st.integers(1, 20),
    st.sampled_from(["quantile", "uniform"]),
    st.integers(0, 10**6),
)
def test_calibration_error_is_that_of_a_slow_loop(n_classes, n, n_bins, strategy, seed):
    rng = np.random.default_rng(seed)
    mix = rng.integers(16, size=(n, 1)) / 15  # many of the same confidence, some on edges
    proba = mix * np.eye(n_classes)[rng.integers(n_classes, size=n)] + (1 - mix) / n_classes
    codes = rng.integers(-1, n_classes, size=n)
    labels = np.array(list("edcba"))[:n_classes]
    y = np.where(codes < 0, "none of them", labels[codes])
    weights = rng.integers(1, 4, size=n)
    edges = slow_edges(proba.max(axis=1), weights, n_bins, strategy)
    expected = slow_error(codes, proba, weights, edges)
    bins = {"n_bins": n_bins, "strategy": strategy}
    answer = expected_calibration_error(y, proba, labels=labels, **bins, sample_weight=weights)
    assert answer == pytest.approx(expected, abs=1e-12)


def test_wrong_probabilities_are_refused():
    measure, y, P = expected_calibration_error, [0, 1], [[0.5, 0.5]] * 2
    refused("inconsistent numbers of samples", measure, [0, 1, 2], P)
    refused("2 columns, but there are 1 labels: pass labels=", measure, [0, 0], P)
    refused("should be a 1d array", measure, [[0, 1], [1, 0]], P)
    refused("must be probabilities", measure, y, [[-0.5, 1.5]] * 2)
    refused("must be probabilities", measure, y, [[0.5, 0.6]] * 2)
    refused("n_bins must be an instance of int", measure, y, P, n_bins=1.5, error=TypeError)
    message = "strategy must be 'quantile' or 'uniform', got 'equal'"
    refused(message, measure, y, P, strategy="equal")
