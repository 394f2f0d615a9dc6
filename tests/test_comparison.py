"""compare: every model measured alike, against what scikit-learn gives step by step."""

import numpy as np
import pytest
from helpers import generated_texts
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, log_loss
from sklearn.model_selection import GridSearchCV, ShuffleSplit, StratifiedKFold
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline, make_union

from sklearn_clsattn import TextClassifier
from sklearn_clsattn.comparison import calibration_error, compare, text_baselines

NAIVE = {"nb": make_pipeline(CountVectorizer(ngram_range=(1, 2)), MultinomialNB())}
NAMES = [
    "TextClassifier",
    "LogisticRegression with characters, tuned",
    "LogisticRegression, tuned",
    "LogisticRegression, defaults",
    "MultinomialNB",
    "NB-SVM (log-odds + LR)",
    "LinearSVC, TF-IDF",
    "majority class",
]
COLUMNS = ["accuracy", "p_value", "macro_f1", "log_loss", "calibration_error"]
FIVE = StratifiedKFold(5, shuffle=True, random_state=0)
SECONDS = ["fit_seconds", "predict_seconds"]


def reviews(n_train=150):
    texts, y = generated_texts(n_samples=n_train + 50, flip_y=0.2, random_state=0)
    return texts[:n_train], y[:n_train], texts[n_train:], y[n_train:]


@pytest.fixture(scope="module")
def measures():
    return compare(*reviews())


def tuned(folds):
    """Return the baseline to beat, of scikit-learn alone."""
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    logistic = LogisticRegression(max_iter=1000)
    return make_pipeline(words, GridSearchCV(logistic, {"C": [1, 10, 100]}, cv=folds))


def tuned_with_characters(folds):
    """Return the same with characters beside the words."""
    words = tuned(folds)
    characters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True)
    return make_pipeline(make_union(words[0], characters), words[-1])


def assert_measured(row, model, split):
    """Require a row of measures to be what scikit-learn measures of a fitted model."""
    train, y, test, y_test = split
    fitted = clone(model).fit(train, y)
    predicted = fitted.predict(test)
    proba = fitted.predict_proba(test)
    assert row["accuracy"] == accuracy_score(y_test, predicted)
    assert row["macro_f1"] == f1_score(y_test, predicted, average="macro", zero_division=0)
    assert row["log_loss"] == pytest.approx(log_loss(y_test, proba), rel=1e-4)
    error = calibration_error(y_test, proba, fitted.classes_)
    assert row["calibration_error"] == pytest.approx(error, abs=1e-4)


def test_every_model_is_measured(measures):
    assert measures.index.tolist() == NAMES
    assert measures.columns.tolist() == COLUMNS + SECONDS
    assert (measures[SECONDS] > 0).all(axis=None)
    without = measures[measures["log_loss"].isna()]
    assert without.index.tolist() == ["LinearSVC, TF-IDF"]
    assert without["calibration_error"].isna().all()


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("TextClassifier", TextClassifier()),
        ("LogisticRegression, tuned", tuned(FIVE)),
        ("LogisticRegression with characters, tuned", tuned_with_characters(FIVE)),
        ("MultinomialNB", NAIVE["nb"]),
        ("majority class", DummyClassifier()),
    ],
)
def test_measures_are_those_of_scikit_learn(measures, name, model):
    assert_measured(measures.loc[name], model, reviews())


def test_with_many_texts_c_is_chosen_on_one_fifth():
    split = reviews(n_train=2000)
    name = "LogisticRegression, tuned"
    found = compare(*split, models={name: text_baselines(split[1])[name]}).loc[name]
    assert_measured(found, tuned(ShuffleSplit(1, test_size=0.2, random_state=0)), split)


def test_rare_classes_have_fewer_folds():
    texts = ["good fun", "bad plot", "so good", "so bad", "good plot", "bad fun"]
    labels = ["yes", "no"] * 3
    test = ["good", "bad"], ["yes", "no"]
    assert compare(texts, labels, *test).loc["LogisticRegression, tuned"].notna().all()
    with pytest.warns(UserWarning, match="least populated class"):
        compare([*texts, "dull"], [*labels, "other"], *test)


def test_models_of_ones_own_are_cloned():
    found = compare(*reviews(), models=NAIVE)
    assert found.index.tolist() == ["nb"]
    assert found["p_value"].isna().all()
    assert not hasattr(NAIVE["nb"][-1], "classes_")


def test_test_labels_that_are_not_in_training():
    train, y, test, y_test = reviews()
    strange = y_test.copy()
    strange[:5] = 7
    with pytest.warns(UserWarning, match=r"5 of 50 test documents .* not in training \(7\)"):
        found = compare(train, y, test, strange, models=NAIVE).loc["nb"]
    known = compare(train, y, test[5:], y_test[5:], models=NAIVE).loc["nb"]
    assert found["accuracy"] == pytest.approx(known["accuracy"] * 45 / 50)
    assert found["log_loss"] == pytest.approx(known["log_loss"])
    assert found["macro_f1"] < known["macro_f1"]


def test_texts_of_both_sets_are_warned_of():
    train, y, _, _ = reviews()
    with pytest.warns(UserWarning, match="30 distinct test texts are also"):
        compare(train, y, train[:30], y[:30], models=NAIVE)


def test_a_fit_that_does_not_converge_warns():
    stuck = make_pipeline(CountVectorizer(), LogisticRegression(max_iter=1))
    with pytest.warns(ConvergenceWarning):
        compare(*reviews(), models={"stuck": stuck})


def test_p_values_are_of_texts_that_one_of_two_models_has_right():
    always = [DummyClassifier(strategy="constant", constant=label) for label in "yn"]
    models = {"yes": always[0], "no": always[1], "same": always[0]}
    train = ["a", "b"], ["y", "n"]
    found = compare(*train, list("cdefgh"), list("yyyyyn"), models=models)["p_value"]
    assert np.isnan(found["yes"])
    assert found["no"] == pytest.approx(2 * (1 + 6) / 2**6)  # at most one of six
    assert found["same"] == 1


# Calibration


def slow_error(codes, proba, edges):
    """Return the expected calibration error, document by document; an edge is of the bin below."""
    gaps = dict.fromkeys(range(len(edges) + 1), 0.0)
    for code, row in zip(codes, proba, strict=True):
        confidence = max(row)
        number = sum(edge < confidence for edge in edges)
        gaps[number] += (list(row).index(confidence) == code) - confidence
    return sum(map(abs, gaps.values())) / len(codes)


def slow_edges(confidence):
    """Return the upper edges of all ten bins but the last."""
    ascending = sorted(confidence.tolist())
    ends = (-(-len(ascending) * at // 10) for at in range(1, 10))
    return [ascending[end - 1] for end in ends]


@settings(max_examples=50)
@given(st.integers(2, 5), st.integers(1, 40), st.integers(0, 10**6))
def test_calibration_error_is_that_of_a_slow_loop(n_classes, n, seed):
    rng = np.random.default_rng(seed)
    mix = rng.integers(16, size=(n, 1)) / 15  # many of the same confidence, some on edges
    proba = mix * np.eye(n_classes)[rng.integers(n_classes, size=n)] + (1 - mix) / n_classes
    codes = rng.integers(-1, n_classes, size=n)
    labels = np.array(list("edcba"))[:n_classes]
    y = np.where(codes < 0, "none of them", labels[codes])
    expected = slow_error(codes, proba, slow_edges(proba.max(axis=1)))
    assert calibration_error(y, proba, labels) == pytest.approx(expected, abs=1e-12)
