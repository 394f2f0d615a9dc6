"""The report: a page that shows what the functions that it is made of say, and runs nothing."""

import sys
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from helpers import generated_texts, network, refused
from pages import POLICY, Page, in_notebook
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier, TextClassifier
from sklearn_clsattn.comparison import compare
from sklearn_clsattn.inspection import TokenImportanceDisplay, _report, label_issues, report

with warnings.catch_warnings():  # of matplotlib and pyparsing about each other
    warnings.simplefilter("ignore", DeprecationWarning)
    pytest.importorskip("matplotlib.style")

EASY = ["so good", "good fun", "so bad", "bad plot"] * 10
EASY_LABELS = ["yes", "yes", "no", "no"] * 10


def texts_and_labels(n_classes=2, n=120, labels=None):
    sizes = {"n_irrelevant": 100, "document_length": 15}
    texts, y = generated_texts(
        n_samples=n, n_classes=n_classes, flip_y=0.2, random_state=0, **sizes
    )
    labels = y if labels is None else np.array(labels, dtype=object)[y]
    return texts[: n // 2], labels[: n // 2], texts[n // 2 :], labels[n // 2 :]


def counting():
    return make_pipeline(CountVectorizer(min_df=2), ClsAttentionClassifier())


@pytest.fixture(scope="module", params=[2, 3], ids=["two classes", "three classes"])
def made(request):
    """Return a fitted model, the data, and the page on them."""
    parts = texts_and_labels(request.param, 240, ["awful", "so so", "terrific"][: request.param])
    train, y, test, y_test = parts
    model = TextClassifier().fit(train, y)
    page = report(model, test, y_test, X_train=train, y_train=y, title="On a <b>film</b>")
    return model, parts, page


@pytest.fixture
def one_baseline(monkeypatch):
    """One baseline, of which nothing depends, in place of those that take seconds to fit."""
    majority = {"majority class": DummyClassifier(strategy="prior")}
    for name in ("baselines", "text_baselines"):
        monkeypatch.setattr(_report, name, lambda *arguments, **options: majority)


# What is on the page


def test_the_page_is_complete_and_harmless(made):
    html = made[2]
    page = Page(html)
    assert page.declared == "doctype html"
    assert page.title == "On a <b>film</b>"
    assert ("meta", "content", POLICY) in page.attributes
    assert in_notebook(html) == html
    assert repr(html).startswith("<Page of ")
    for outside in ("http:", "https:", "url(", "@import", "<script", "javascript:"):
        assert outside not in html


def test_measures_are_those_of_compare(made):
    model, (train, y, test, y_test), html = made
    page = Page(html)
    measures = compare(train, y, test, y_test)
    for name, row in measures.iterrows():
        shown = page.row("this model" if name == "TextClassifier" else name)
        decimals = [f"{number:.4f}".replace("0.0000", "<0.0001") for number in row[:5]]
        assert shown[1:6] == [number.replace("nan", "–") for number in decimals]
    assert page.row("this model")[6] == "–"  # it was fitted before
    share = f"{model.score(test, y_test):.1%}"
    assert f"This model predicts {share} of 120 test documents correctly." in page.words()


def test_mistakes_are_the_most_confident_ones(made):
    model, (_, _, test, y_test), html = made
    confidence = model.predict_proba(test).max(axis=1)
    wrong = np.flatnonzero(model.predict(test) != y_test)
    said = Page(html).words()
    assert f"{len(wrong)} predictions are wrong." in said
    places = []
    for number in wrong[np.argsort(-confidence[wrong], kind="stable")][:10]:
        places.append(said.index(f"Document {number} predicted"))
        assert " ".join(test[number].split()) in said
    assert places == sorted(places)
    assert said.count("✗ true label") == min(len(wrong), 10)


def test_tokens_and_labels_to_check(made):
    model, (train, y, _, _), html = made
    page = Page(html)
    importance = TokenImportanceDisplay.from_estimator(model, train).importance
    for label in model.classes_:
        best = importance[label].nlargest(10).index
        assert f"{label} {' '.join(best)}" in page.words()
    issues = label_issues(model, train, y, top=15).query("margin < 0")
    assert len(issues)
    for issue in issues.itertuples():
        row = page.row(str(issue.document))
        assert row[1:4] == [issue.label, issue.suggested, f"{issue.probability:.1%}"]
        assert row[4].startswith(train[issue.document][:100])


def test_pictures_or_tables(made, monkeypatch):
    model, (_, _, test, y_test), html = made
    assert Page(html).tags.count("img") == 2
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    page = Page(report(model, test, y_test))
    assert "img" not in page.tags
    matrix = confusion_matrix(y_test, model.predict(test))
    for label, counts in zip(model.classes_, matrix, strict=True):
        assert page.row(label) == [label, *map(str, counts)]
    confidence = model.predict_proba(test).max(axis=1)
    heads = page.rows.index(["confidence", "correct"])
    assert page.rows[heads + 10][0] == f"{np.sort(confidence)[-12:].mean():.1%}"


HOSTILE = [
    "<script>alert('x')</script>",
    "</style></title></section> <!-- ",
    "\" onmouseover=\"alert(1)' onfocus='x",
    "javascript:alert(1) url(//example.org/x.png) &lt;b&gt; {title} %s {0}",
    "\x00\x07\x1b[31m\u202e \ud800 \ufffe",
]


@pytest.mark.usefixtures("one_baseline")
@pytest.mark.parametrize("has_matplotlib", [True, False])
def test_hostile_texts_labels_and_tokens_are_shown_and_not_run(has_matplotlib, monkeypatch):
    if not has_matplotlib:
        monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    labels = np.array([HOSTILE[0], "\x07 中文 $\\frac{$"], dtype=object)
    y = np.arange(120) % 2
    words = np.array([["good", HOSTILE[1]], ["bad", HOSTILE[2]]], dtype=object)
    rng = np.random.default_rng(0)
    texts = []
    for number, k in enumerate(y):
        word = words[(k + (rng.random() < 0.3)) % 2][0]
        texts.append(f"{word} {HOSTILE[number % 5]} {number}")
    vectorizer = CountVectorizer(token_pattern=r"\S+", lowercase=False)
    model = make_pipeline(vectorizer, ClsAttentionClassifier())
    given = {"X_train": texts[:60], "y_train": labels[y[:60]], "title": HOSTILE[2]}
    html = report(model, texts[60:], labels[y[60:]], **given)
    page = Page(html)
    assert "<script" not in html
    assert HOSTILE[0] in page.text
    assert page.title == HOSTILE[2]


@pytest.mark.usefixtures("one_baseline")
def test_many_classes_are_drawn_without_numbers():
    train, y, test, y_test = texts_and_labels(24, n=400)
    model = TextClassifier(C=1.0).fit(train, y)
    page = Page(report(model, test, y_test))
    assert page.tags.count("img") == 2
    assert page.tags.count("ol") == 24


# What may be missing


def test_without_training_data():
    train, y, test, y_test = texts_and_labels()
    page = Page(report(counting().fit(train, y), test, y_test))
    assert [row[0] for row in page.rows[:3]] == ["model", "this model", "token"]
    assert "Labels to check" not in page.text
    assert "over the test documents" in page.words()


def test_without_mistakes_and_wrong_labels():
    easy = EASY, EASY_LABELS
    with pytest.warns(UserWarning, match="4 distinct test texts are also in the training set"):
        page = Page(report(TextClassifier(), *easy, X_train=EASY, y_train=EASY_LABELS))
    assert "No prediction is wrong." in page.text
    assert "contradict a training document's label." in page.words()


def test_empty_documents_are_predicted_by_the_intercept():
    model = TextClassifier().fit(EASY, EASY_LABELS)
    page = Page(report(model, ["good", "bad", "", "xxx yyy"], ["yes", "yes", "no", "no"]))
    assert "Document 1 predicted no" in page.words()


@pytest.mark.usefixtures("one_baseline")
def test_test_labels_that_are_not_in_training():
    train, y, test, y_test = texts_and_labels(3)
    model = counting().fit(train, y)
    present = y_test != 1
    Page(report(model, test[present], y_test[present]))
    strange = y_test.copy()
    strange[:5] = 7
    with pytest.warns(UserWarning, match=r"5 of 60 test documents .* not in training \(7\)"):
        page = Page(report(model, test, strange))
    score = np.mean(model.predict(test) == strange)
    assert page.row("this model")[1] == f"{score:.4f}"


@pytest.mark.usefixtures("one_baseline")
def test_weighted_fits_say_why_labels_are_not_ranked():
    train, y, test, y_test = texts_and_labels()
    X = CountVectorizer().fit(train)
    model = ClsAttentionClassifier().fit(X.transform(train), y, sample_weight=1.0 + np.arange(60))
    inputs = {"X_train": X.transform(train), "y_train": y}
    said = Page(report(model, X.transform(test), y_test, **inputs)).words()
    assert "were not ranked: The model's token importances are not those of X and y" in said


# Models and documents of every kind


@pytest.mark.usefixtures("one_baseline")
def test_an_unfitted_model_is_fitted_and_timed(made):
    _, (train, y, test, y_test), html = made
    unfitted = TextClassifier()
    page = Page(report(unfitted, test, y_test, X_train=train, y_train=y))
    shown = page.row("this model")
    assert shown[1:6] == Page(html).row("this model")[1:6]
    assert float(shown[6]) > 0
    refused("not fitted", report, unfitted, test, y_test, error=NotFittedError)


@pytest.mark.usefixtures("one_baseline")
@pytest.mark.parametrize("kind", [pd.Series, list])
def test_texts_in_a_column_or_a_list(kind):
    train, y, test, y_test = texts_and_labels()
    search = GridSearchCV(counting(), {"clsattentionclassifier__C": [1.0]}, cv=2)
    inputs = {"X_train": kind(train), "y_train": pd.Series(y, index=range(7, 67))}
    page = Page(report(search, kind(test), kind(y_test), **inputs))
    expected = search.fit(train, y).score(test, y_test)
    assert page.row("this model")[1] == f"{expected:.4f}"


def test_counts_and_tables():
    train, y, test, y_test = texts_and_labels()
    counter = CountVectorizer(min_df=2)
    X, X_test = counter.fit_transform(train), counter.transform(test)
    for form in (np.asarray, pd.DataFrame, None):
        both = [X, X_test] if form is None else [form(part.toarray()) for part in (X, X_test)]
        page = Page(report(ClsAttentionClassifier(), both[1], y_test, X_train=both[0], y_train=y))
        assert len(page.row("LogisticRegression, tuned")) == 8
    frames = [pd.DataFrame({"text": texts, "n": 1.0}) for texts in (train, test)]
    columns = ColumnTransformer([("words", TfidfVectorizer(), "text"), ("n", "passthrough", ["n"])])
    model = make_pipeline(columns, ClsAttentionClassifier())
    page = Page(report(model, frames[1], y_test, X_train=frames[0], y_train=y))
    assert len(page.row("LogisticRegression, tuned")) == 8


@pytest.mark.usefixtures("one_baseline")
def test_a_network_has_no_labels_to_check():
    train, y, test, y_test = texts_and_labels()
    counter = CountVectorizer().fit(train)
    model = make_pipeline(counter, network(counter.transform(train), y, n_layers=2))
    said = Page(report(model, test, y_test, X_train=train, y_train=y)).words()
    assert "were not ranked: expected a TextClassifier or ClsAttentionClassifier" in said


def test_bad_input():
    train, y, test, y_test = texts_and_labels()
    made = partial(report, counting().fit(train, y))
    refused("should be a 1d array", made, test, np.c_[y_test, y_test])
    refused("inconsistent numbers of samples", made, test, y_test[:5])
    refused("should be a 1d array", made, test, y_test, X_train=train)
