"""The model report: its numbers are scikit-learn's; its page shows everything and runs nothing."""

import pickle
import re
from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest
from helpers import network, refused
from pages import Page, page_of
from scipy.stats import binomtest
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from sklearn_clsattn import ClsAttentionClassifier, TextClassifier
from sklearn_clsattn.comparison import ValidationFolds
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.inspection import ModelReport, label_issues


def texts_and_labels(n_classes=2, n=120, labels=None):
    texts, y = make_token_classification(
        n_samples=n, n_classes=n_classes, flip_y=0.2, as_text=True, random_state=0
    )
    labels = y if labels is None else np.array(labels)[y]
    return texts[: n // 2], labels[: n // 2], texts[n // 2 :], labels[n // 2 :]


@pytest.fixture(scope="module", params=[2, 3], ids=["two classes", "three classes"])
def made(request):
    """Return the parts, the report, and the model and a baseline fitted by hand."""
    names = ["awful", "so so", "terrific"][-request.param :]
    parts = texts_and_labels(request.param, n=240, labels=names)
    report = report_of(*parts, n_top=4, n_mistakes=3)
    counts = CountVectorizer(ngram_range=(1, 2))
    search = GridSearchCV(
        LogisticRegression(max_iter=1000), {"C": [1, 10, 100]}, cv=ValidationFolds(5)
    )
    tuned = make_pipeline(counts, TfidfTransformer(sublinear_tf=True), search)
    return parts, report, TextClassifier().fit(*parts[:2]), tuned.fit(*parts[:2])


def report_of(train, y, test, y_test, estimator=None, **parameters):
    estimator = estimator or TextClassifier()
    return ModelReport.from_estimator(
        estimator, test, y_test, X_train=train, y_train=y, **parameters
    )


def fitted(parts):
    return make_pipeline(CountVectorizer(min_df=2), ClsAttentionClassifier()).fit(*parts[:2])


def test_measures_are_those_of_scikit_learn(made):
    (*_, test, y), report, ours, same = made
    assert [model.kind for model in report.models] == ["ours", "baseline", "baseline", "floor"]
    for model, by_hand in zip(report.models[:2], (ours, same), strict=True):
        predicted, proba = by_hand.predict(test), by_hand.predict_proba(test)
        assert model.accuracy == accuracy_score(y, predicted)
        assert model.macro_f1 == pytest.approx(f1_score(y, predicted, average="macro"))
        assert model.log_loss == pytest.approx(log_loss(y, proba), rel=1e-5)
        assert min(model.fit_seconds, model.predict_seconds) > 0
    expected = confusion_matrix(y, ours.predict(test), labels=report.data.classes)
    assert report.confusion.tolist() == [*expected.tolist(), [0] * len(expected)]
    assert report.data.classes == ours.classes_.tolist()
    assert report.baseline == report.models[1].name == "LogisticRegression, tuned"
    assert [curve.name for curve in report.calibration] == [report.models[0].name, report.baseline]
    right, other = ours.predict(test) == y, same.predict(test) == y
    one = report.differences.iloc[0]
    assert (one["only_ours"], one["only_other"]) == ((right & ~other).sum(), (other & ~right).sum())
    gaps = right.astype(float) - other
    assert one["accuracy"] == pytest.approx(gaps.mean())
    assert one["standard_error"] == pytest.approx(gaps.std() / np.sqrt(len(y)))
    pair = int(one["only_ours"]), int(one["only_ours"] + one["only_other"])
    assert one["p_value"] == pytest.approx(binomtest(*pair).pvalue)


def test_bins_have_equally_many_texts_up_to_ties(made):
    (*_, test, _), report, *by_hand = made
    curves = zip(report.calibration, report.models[:2], by_hand, strict=True)
    for curve, model, same in curves:
        confidence = same.predict_proba(test).max(axis=1)
        widths = np.histogram(confidence, 10, (1 / len(report.data.classes), 1))[0]
        assert curve.histogram == widths.tolist()
        bins = curve.bins
        assert len(bins) == 10
        assert set(bins["texts"]) == {12}
        assert (bins["end"][:-1].to_numpy() < bins["start"][1:].to_numpy()).all()
        assert bins["confidence"].between(bins["start"], bins["end"]).all()
        assert ((bins["low"] <= bins["right"]) & (bins["right"] <= bins["high"])).all()
        gaps = bins["texts"] * (bins["right"] - bins["confidence"]).abs()
        assert gaps.sum() / 120 == pytest.approx(model.calibration_error)


def test_mistakes_labels_and_tokens_are_what_the_models_say(made):
    (texts, labels, test, y), report, ours, _ = made
    proba, predicted = ours.predict_proba(test), ours.predict(test)
    wrong = np.flatnonzero(predicted != y)
    assert report.mistakes.n_all == len(wrong)
    expected = wrong[np.argsort(-proba[wrong].max(axis=1), kind="stable")][:3]
    shown, explanation = report.mistakes.shown, report.mistakes.explanation
    assert shown["index"].tolist() == explanation.index.tolist() == expected.tolist()
    assert shown["true"].tolist() == explanation.true.tolist() == y[expected].tolist()
    assert shown["predicted"].tolist() == explanation.predicted.tolist()
    np.testing.assert_allclose(shown["probability"], proba[expected].max(axis=1))
    truth = np.searchsorted(ours.classes_, y[expected])
    np.testing.assert_allclose(shown["true_probability"], proba[expected, truth])
    assert [text.text for (text,) in explanation.texts] == [test[at] for at in expected]
    assert [of.label for of in report.tokens] == ours.classes_.tolist()
    assert all(0 < len(of.important) <= 4 for of in report.tokens)
    issues = label_issues(ours, texts, labels)
    n = len(report.labels)
    assert 0 < n <= 15
    assert report.labels["document"].tolist() == issues["document"].tolist()[:n]
    assert (report.labels["margin"] < 0).all()


def test_the_page_has_it_all_and_nothing_else(made):
    _, report, *_ = made
    html, page = report.to_html(), page_of(report)
    said = page.words()
    assert pickle.loads(pickle.dumps(report)).to_html() == html
    assert all(cell.strip() for row in page.rows for cell in row)  # zeros are printed
    for model in report.models:
        row = page.row(model.name)
        assert row[1] == f"{model.accuracy:.4f}"
        assert row[4] == f"{model.calibration_error:.4f}"
        if model.name in (report.models[0].name, report.baseline):
            assert f"{model.name}: calibration error {model.calibration_error:.4f}" in said
    for k, label in enumerate(report.data.classes):
        row = next(row for row in page.rows if row[0] == label and len(row) == 5)
        assert (row[1], row[3]) == (str(report.data.train_sizes[k]), str(report.data.test_sizes[k]))
    assert f"{report.baseline} reaches {report.models[1].accuracy:.1%}, " in said
    assert f"This model is wrong on {report.mistakes.n_all} of 120" in said
    for index, (text,) in zip(
        report.mistakes.shown["index"], report.mistakes.explanation.texts, strict=True
    ):
        assert f"Test text {index}" in said
        assert " ".join(text.text.split()) in said
    assert page.tags.count("svg") == 2 + 2
    for axis, most in (("x", 360), ("y", 290)):
        places = re.findall(rf'[ c]{axis}[12]?="([-\d.]+)"', html)
        assert places
        assert all(0 <= float(place) <= most for place in places)
    assert all(token in said for of in report.tokens for token, _ in of.important)


# Labels, texts and tokens of any kind


HOSTILE = [
    "<script>alert('x')</script>",
    "</style></title></section> <!-- ",
    "\" onmouseover=\"alert(1)' onfocus='x",
    "javascript:alert(1) url(//example.org/x.png) &lt;b&gt; {title} %s {0}",
    "\x00\x07\x1b[31m\u202e \ud800 \ufffe",
]


def test_hostile_texts_labels_and_tokens_are_shown_and_not_run():
    rng = np.random.default_rng(0)
    labels = np.array(["<script>0</script>", "1\" onclick='x' &amp;"], dtype=object)
    y = rng.integers(2, size=120)
    words = np.array([["good", HOSTILE[1]], ["bad", HOSTILE[2]]])
    texts = [
        f"{words[(k + (rng.random() < 0.3)) % 2][0]} {HOSTILE[i % 5]}" for i, k in enumerate(y)
    ]
    pipeline = make_pipeline(
        CountVectorizer(token_pattern=r"\S+", lowercase=False), ClsAttentionClassifier()
    ).fit(texts[:60], labels[y[:60]])
    report = ModelReport.from_estimator(
        pipeline,
        texts[60:],
        labels[y[60:]],
        X_train=texts[:60],
        y_train=labels[y[:60]],
        title=HOSTILE[0],
        source=HOSTILE[2],
        made={HOSTILE[0]: HOSTILE[1]},
    )
    html = report.to_html()
    page = Page(html)
    assert "<script" not in html
    assert "<script>0</script>" in page.text
    assert "<script>alert('x')</script>" in page.text
    assert page.title == HOSTILE[0]


def test_many_classes():
    report = report_of(*texts_and_labels(24, n=400), UNFITTED, n_mistakes=2, n_top=2)
    page = Page(report.to_html())
    assert "Framed: correct" not in page.text
    counts = report.confusion[:-1].copy()
    right = counts.diagonal() / counts.sum(axis=1)
    heads = [at for at, row in enumerate(page.rows) if row[0] == "true class"]
    assert page.rows[heads[0]] == ["true class", "correct", "texts", "mistaken for"]
    worst = page.rows[heads[0] + 1]
    assert worst[1].strip() == f"{right.min():.1%}"
    np.fill_diagonal(counts, 0)
    row = counts[right.argmin()]
    assert worst[3].startswith(f"{report.data.classes[row.argmax()]} {row.max()}")
    assert page.rows[heads[-1] + 1][2] == str(counts.max())  # of the most frequent confusions


# What may be missing


def test_class_missing_in_the_test_set_and_label_unknown_in_training():
    train, y, test, y_test = texts_and_labels(3)
    report = report_of(train, y, test[y_test != 1], y_test[y_test != 1])
    assert report.data.test_sizes[1] == 0
    assert report.confusion[1].tolist() == [0, 0, 0]
    assert np.isfinite(report.models[0].log_loss)
    Page(report.to_html())
    strange = y_test.copy()
    strange[:5] = 7
    report = report_of(train, y, test, strange)
    known = report_of(train, y, test[5:], y_test[5:])
    assert report.data.n_unknown == report.confusion[-1].sum() == 5
    assert report.models[0].accuracy == pytest.approx(known.models[0].accuracy * 55 / 60)
    assert report.mistakes.n_all == known.mistakes.n_all
    assert (report.mistakes.shown["index"] >= 5).all()
    page = Page(report.to_html())
    assert page.row("not in training")[-1] == "5"
    assert page.row("classes not in training")[1:] == ["0", "0.0%", "5", "8.3%"]
    assert "5 of 60 test texts have labels that are not in training (7)" in page.words()


EASY = ["so good", "good fun", "so bad", "bad plot"] * 10
EASY_LABELS = ["yes", "yes", "no", "no"] * 10


def test_few_texts_few_mistakes_and_empty_documents():
    report = report_of(EASY, EASY_LABELS, EASY[:4], EASY_LABELS[:4])
    assert report.models[0].accuracy == 1
    twice = report_of(EASY, EASY_LABELS, EASY[:4] * 2, EASY_LABELS[:4] * 2)
    assert (twice.calibration[0].bins["texts"] % 2 == 0).all()  # those of one confidence together
    said = Page(report.to_html()).words()
    assert "This model makes no mistakes on the test texts." in said
    assert "4 distinct test texts are also in the training set" in said
    test, labels = ["good", "bad", "", "xxx yyy"], ["yes", "yes", "no", "no"]
    report = report_of(EASY, EASY_LABELS, test, labels)
    assert report.data.n_empty == 2
    said = Page(report.to_html()).words()
    assert "Test text 1 true label: yes ✗ this model: no with" in said
    assert "2: for them the decision is the intercept" in said
    single = report_of(EASY, EASY_LABELS, ["good"], ["yes"])
    assert single.calibration[0].bins["texts"].tolist() == [1]
    Page(single.to_html())


# From an estimator


def test_an_estimator_is_fitted_or_taken_as_it_is(made):
    parts, one, model, _ = made
    test = pd.Series(parts[2], index=range(500, 620))
    two = ModelReport.from_estimator(model, test, parts[3], X_train=parts[0], y_train=parts[1])
    assert asdict(one.data) == asdict(two.data)
    assert one.confusion.tolist() == two.confusion.tolist()
    pd.testing.assert_frame_equal(one.calibration[0].bins, two.calibration[0].bins)
    assert one.differences.iloc[-1].tolist() == two.differences.iloc[-1].tolist()
    assert one.mistakes.shown["index"].tolist() == two.mistakes.shown["index"][:3].tolist()
    seconds = {"fit_seconds": None, "predict_seconds": 0}
    first, second = (asdict(replace(report.models[0], **seconds)) for report in (one, two))
    for name, value in first.items():
        is_number = isinstance(value, float)
        assert second[name] == (pytest.approx(value, rel=1e-6) if is_number else value)
    assert "–" in Page(two.to_html()).row("ClsAttentionClassifier")


def test_from_estimator_without_training():
    parts = texts_and_labels()
    report = ModelReport.from_estimator(fitted(parts), *parts[2:])
    assert report.baseline is None
    assert [model.kind for model in report.models] == ["ours", "floor"]
    assert report.models[1].accuracy == pytest.approx(max(np.bincount(parts[3])) / 60)
    said = Page(report.to_html()).words()
    assert "Training texts were not given" in said
    assert "over the test texts" in said


def test_from_estimator_of_other_shapes():
    train, y, test, y_test = texts_and_labels()
    frames = [pd.DataFrame({"text": texts, "n": 1.0}) for texts in (train, test)]
    columns = ColumnTransformer([("words", TfidfVectorizer(), "text"), ("n", "passthrough", ["n"])])
    tabular = make_pipeline(columns, ClsAttentionClassifier()).fit(frames[0], y)
    report = ModelReport.from_estimator(tabular, frames[1], y_test, X_train=frames[0], y_train=y)
    assert report.models[1].name == "LogisticRegression, tuned"
    Page(report.to_html())
    vectorizer = CountVectorizer(min_df=2)
    X, X_test = vectorizer.fit_transform(train), vectorizer.transform(test)
    classifier = ClsAttentionClassifier().fit(X, y)
    for matrix in (X_test.tocoo(), pd.DataFrame(X_test.toarray())):
        of_matrix = ModelReport.from_estimator(classifier, matrix, y_test, n_mistakes=1)
        expected = confusion_matrix(y_test, classifier.predict(X_test)).tolist()
        assert of_matrix.confusion[:-1].tolist() == expected
    assert "in the order of the columns" in Page(of_matrix.to_html()).words()
    weighted = ClsAttentionClassifier().fit(X, y, sample_weight=1.0 + np.arange(len(y)))
    report = ModelReport.from_estimator(weighted, X_test, y_test, X_train=X, y_train=y)
    assert report.labels is None
    pipeline = make_pipeline(vectorizer, network(X, y, n_layers=2))
    report = ModelReport.from_estimator(pipeline, test, y_test, X_train=train, y_train=y)
    assert report.labels is None
    assert "AttentionNetworkClassifier" in Page(report.to_html()).words()


UNFITTED = make_pipeline(CountVectorizer(), ClsAttentionClassifier())


def test_hashed_columns_have_numbers():
    parts = texts_and_labels()
    hashing = HashingVectorizer(alternate_sign=False, n_features=64)
    hashed = make_pipeline(hashing, ClsAttentionClassifier()).fit(*parts[:2])
    report = ModelReport.from_estimator(hashed, *parts[2:])
    names = [name for tokens in report.tokens for name, _ in tokens.important]
    assert names
    assert all(name.startswith("x") for name in names)


def test_bad_input():
    made = ModelReport.from_estimator
    model = fitted(texts_and_labels())
    refused("one text", made, model, "one text", [0])
    refused("documents", made, model, [], [])
    refused("inconsistent numbers of samples", made, model, ["a", "b"], [0])
    refused("expected a matrix", made, model[-1], ["a"], [0])
    refused("LinearSVC", made, LinearSVC(), ["a"], [0], error=TypeError)
    refused("not fitted", made, UNFITTED, ["a"], [0], error=NotFittedError)
    refused("both or neither", made, model, ["a"], [0], X_train=["a"])
    refused("differ in 1", made, model, ["a"], [0], X_train=["a"], y_train=[0])
    refused("n_top == -1, must be >= 0", made, model, ["a"], [0], n_top=-1)
    message = "n_mistakes must be an instance"
    refused(message, made, model, ["a"], [0], n_mistakes=1.5, error=TypeError)
