"""The model report: its numbers are scikit-learn's; its page shows everything and runs nothing."""

import html as html_module
import json
import pickle
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, norm
from sklearn.calibration import calibration_curve as sklearn_curve
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, log_loss
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.comparison import compare, default_models
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.inspection import ModelReport, explain, label_issues, pages
from sklearn_clsattn.inspection.formatting import percent
from sklearn_clsattn.inspection.report.charts import calibration_axes, confidence_axes
from sklearn_clsattn.inspection.report.data import CalibrationCurve
from sklearn_clsattn.inspection.report.statistics import (
    calibration_curve,
    confusion,
    difference,
    wilson_interval,
)
from sklearn_clsattn.paper import AttentionNetworkClassifier
from sklearn_clsattn.text import ContextVectorizer, make_text_classifier

VOID = {"meta", "br", "img", "link", "input", "hr", "wbr"}
SVG = {"svg", "title", "desc", "line", "rect", "circle", "polyline", "text"}
ALLOWED = SVG | {
    *("html", "head", "meta", "title", "body", "style", "div", "p", "section", "article"),
    *("header", "nav", "span", "b", "bdi", "i", "em", "code", "small", "pre", "h1", "h2", "h3"),
    *("h4", "ul", "ol", "li", "dl", "dt", "dd", "a", "details", "summary", "figure"),
    *("figcaption", "table", "caption", "thead", "tbody", "tr", "th", "td", "wbr"),
}


class Page(HTMLParser):
    """Reads HTML, requires it to be balanced and harmless, and gathers what it has."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.ids, self.links, self.rows = [], [], [], [], []
        self.text = self.title = ""
        self.feed(html)
        self.close()
        assert not self.open
        html.encode("utf-8")
        assert set(self.tags) <= ALLOWED
        assert len(self.ids) == len(set(self.ids))
        assert set(self.links) <= set(self.ids)
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names))
        for name, value in attrs:
            assert not name.startswith("on")
            assert name not in ("src", "srcset", "action", "formaction", "xlink:href")
            if name == "href":
                assert value.startswith("#")
                self.links.append(value[1:])
            if name == "id":
                self.ids.append(value)
            if name == "style":
                assert re.fullmatch(r"[a-z:;.%\d,()\- ]+", value)
                assert "url" not in value
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        raise AssertionError(f"<{tag}/> is no HTML")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_comment(self, data):
        raise AssertionError("there are no comments to be closed by a text")

    def handle_data(self, data):
        if "style" in self.open:
            return
        self.text += data
        if self.open[-1:] == ["title"] and "svg" not in self.open:
            self.title += data
        if {"th", "td"} & set(self.open):
            self.rows[-1][-1] += data

    def words(self):
        return " ".join(self.text.split())

    def row(self, head):
        return next(row for row in self.rows if row[0] == head)


def texts_and_labels(n_classes=2, n=120, labels=None, seed=0):
    texts, y = make_token_classification(
        n_samples=n, n_classes=n_classes, flip_y=0.2, as_text=True, random_state=seed
    )
    labels = y if labels is None else np.array(labels)[y]
    return texts[: n // 2], labels[: n // 2], texts[n // 2 :], labels[n // 2 :]


@pytest.fixture(scope="module", params=[2, 3], ids=["two classes", "three classes"])
def made(request):
    """Return the parts, the report, and what scikit-learn gives for the same."""
    names = ["awful", "so so", "terrific"][-request.param :]
    parts = texts_and_labels(request.param, n=240, labels=names)
    report = ModelReport.from_texts(*parts, n_top=4, n_mistakes=3, n_disagreements=2)
    return parts, report


@pytest.fixture(scope="module")
def same_models(made):
    (texts, labels, *_), _ = made
    bag = ContextVectorizer(context=False)
    same = make_pipeline(bag, TfidfTransformer(), LogisticRegression())
    return make_text_classifier().fit(texts, labels), same.fit(texts, labels)


def test_measures_are_those_of_scikit_learn(made, same_models):
    parts, report = made
    test, y = parts[2:]
    ours, same = same_models
    assert [model.kind for model in report.models] == ["ours", "baseline", "baseline", "floor"]
    for model, fitted in zip(report.models[:2], (ours, same), strict=True):
        predicted, proba = fitted.predict(test), fitted.predict_proba(test)
        assert model.accuracy == accuracy_score(y, predicted)
        assert model.macro_f1 == pytest.approx(f1_score(y, predicted, average="macro"))
        assert model.log_loss == pytest.approx(log_loss(y, proba), rel=1e-5)
        assert model.fit_seconds > 0
        assert model.predict_seconds > 0
    expected = confusion_matrix(y, ours.predict(test), labels=report.data.classes)
    assert report.confusion.counts == expected.tolist()
    assert not any(report.confusion.unknown)
    assert report.data.classes == ours.classes_.tolist()


def test_the_baseline_is_the_one_that_is_hardest_to_beat(made):
    _, report = made
    baselines = [model for model in report.models if model.kind == "baseline"]
    best = max(model.accuracy for model in baselines)
    assert {model.name: model.accuracy for model in baselines}[report.baseline] == best
    assert [curve.name for curve in report.calibration] == [report.models[0].name, report.baseline]


def test_differences_are_paired(made, same_models):
    parts, report = made
    test, y = parts[2:]
    ours, same = same_models
    right, other = ours.predict(test) == y, same.predict(test) == y
    one = report.differences[0]
    assert (one.only_ours, one.only_other) == ((right & ~other).sum(), (other & ~right).sum())
    assert one.accuracy == pytest.approx(right.mean() - other.mean())
    gaps = right.astype(float) - other
    assert one.standard_error == pytest.approx(gaps.std() / np.sqrt(len(y)))
    if one.only_ours + one.only_other:
        pair = one.only_ours, one.only_ours + one.only_other
        assert one.p_value == pytest.approx(binomtest(*pair).pvalue)


def test_what_is_shown_of_texts_is_what_the_models_say(made, same_models):
    parts, report = made
    test, y = parts[2:]
    ours, _ = same_models
    proba, predicted = ours.predict_proba(test), ours.predict(test)
    wrong = np.flatnonzero(predicted != y)
    assert report.mistakes.n_all == len(wrong)
    expected = wrong[np.argsort(-proba[wrong].max(axis=1), kind="stable")][:3]
    assert [case.index for case in report.mistakes.shown] == expected.tolist()
    beside = next(one for one in report.differences if one.other == report.baseline)
    assert (report.ours_right.n_all, report.baseline_right.n_all) == (
        beside.only_ours,
        beside.only_other,
    )
    for cases, ours_is_right in ((report.ours_right, True), (report.baseline_right, False)):
        assert len(cases.shown) == min(2, cases.n_all)
        for case in cases.shown:
            assert (case.ours.label == case.true) is ours_is_right
            assert (case.baseline.label == case.true) is not ours_is_right
    for case in [*report.mistakes.shown, *report.ours_right.shown, *report.baseline_right.shown]:
        assert case.true == y[case.index]
        assert case.ours.label == predicted[case.index] == case.explanation.predicted[0]
        assert case.ours.probability == pytest.approx(proba[case.index].max())
        place = ours.classes_.tolist().index(case.true)
        assert case.ours.true_probability == pytest.approx(proba[case.index, place])
        assert case.explanation.texts[0][0].text == parts[2][case.index]
        assert case.explanation.index.tolist() == [case.index]


def test_tokens_and_selection(made, same_models):
    parts, report = made
    ours, _ = same_models
    assert [of.label for of in report.tokens] == ours.classes_.tolist()
    assert all(0 < len(of.important) <= 4 for of in report.tokens)
    selection = report.selection
    assert (selection.texts, selection.n_texts) == ("training", len(parts[0]))
    assert [one.selected for one in selection.tokens] == ours[-1].selection_counts_[:12].tolist()
    assert all(one.selected <= one.texts for one in selection.tokens)
    assert [one.n_tokens for one in selection.concentration] == [1, 3, 10]
    shares = [one.share for one in selection.concentration]
    assert 0 < shares[0] < shares[1] < shares[2] <= 1
    assert 0 < selection.cls_share < 1
    assert selection.evenly_over > 1


def test_the_page_has_it_all(made):
    _, report = made
    page = Page(report.to_html())
    said = page.words()
    assert page.title == "Model report"
    for part in (
        *("Data", "Results", "Calibration", "Confusions", "Important tokens", "Attention"),
        *("Mistakes", "Disagreements", "How it was made", "How to read this"),
    ):
        assert part in said
    for model in report.models:
        row = page.row(model.name)
        assert row[1] == f"{model.accuracy:.4f}"
        assert row[4] == f"{model.calibration_error:.4f}"
        if model.name in (report.models[0].name, report.baseline):
            assert f"{model.name}: calibration error {model.calibration_error:.4f}" in said
    for k, label in enumerate(report.data.classes):
        row = next(row for row in page.rows if row[0] == label and len(row) == 5)
        assert (row[1], row[3]) == (str(report.data.train_sizes[k]), str(report.data.test_sizes[k]))
    assert f"our model is wrong on {report.mistakes.n_all} of 120" in said.replace("Our", "our")
    for case in report.mistakes.shown:
        assert f"Test text {case.index}" in said
        assert " ".join(case.explanation.texts[0][0].text.split()) in said
    assert page.tags.count("svg") == 2 + 2
    assert page.tags.count("desc") == 2
    for of in report.tokens:
        for token, _ in of.important:
            assert token in said


def test_page_and_fragment():
    parts = texts_and_labels()
    report = ModelReport.from_texts(*parts, title="A <b>title</b> & more", n_mistakes=1)
    html = report.to_html()
    assert html.startswith("<!doctype html>")
    assert "content=\"default-src 'none'; style-src 'unsafe-inline'\"" in html
    page = Page(html)
    assert page.title == "A <b>title</b> & more"
    (page,) = re.findall(r' srcdoc="([^"]*)"', report._repr_html_())
    assert html_module.unescape(page) == report.to_html()
    fragment = report.to_html(fragment=True)
    tags = Page(fragment).tags
    assert tags[0] == "div"
    assert not {"html", "head", "body", "meta"} & set(tags)
    assert report.to_html() == html
    for outside in ("http:", "https:", "url(", "@import", "<script", "javascript:"):
        assert outside not in html
    style = html[html.index('<div class="clsreport">') :].split("style>")[1]
    assert style.count("{") == style.count("}")
    assert "prefers-color-scheme:dark" in style
    assert "@media print" in style


def test_text_says_what_the_page_says_first(made):
    _, report = made
    text = report.to_text()
    lead = " ".join(text.split("\n\n")[1].split())
    assert lead in Page(report.to_html()).words()
    assert max(map(len, text.splitlines())) < 120
    rows = {" ".join(line.split()).replace("*", "") for line in text.splitlines()}
    for model in report.models:
        start = f"{model.name} {model.accuracy:.4f} {model.macro_f1:.4f} {model.log_loss:.4f}"
        assert any(row.startswith(start) for row in rows)
    for case in report.mistakes.shown:
        said = f"test text {case.index}: truly {case.true}, predicted {case.ours.label} with"
        assert said in text
    for of in report.tokens:
        assert f"  {of.label}: {' · '.join(token for token, _ in of.important)}" in text
    numbered = ModelReport.from_texts(*texts_and_labels(n=60), n_mistakes=0).to_text()
    assert "\n  class 1: " in numbered
    assert "mistakes" not in numbered


def test_frame_is_the_table_of_models(made):
    _, report = made
    frame = report.to_frame()
    assert frame.index.tolist() == [model.name for model in report.models]
    for column in ("kind", "accuracy", "macro_f1", "log_loss", "calibration_error", "fit_seconds"):
        assert frame[column].tolist() == [getattr(model, column) for model in report.models]


def test_saved_page(tmp_path):
    report = ModelReport.from_texts(*texts_and_labels(), n_mistakes=0, n_disagreements=0)
    report.save(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text("utf-8") == report.to_html()
    page = Page(report.to_html())
    assert "article" not in page.tags
    assert "Mistakes" not in page.words()


def test_pickle_and_json(made):
    _, report = made
    again = pickle.loads(pickle.dumps(report))
    assert again.to_html() == report.to_html()
    assert again.to_dict() == report.to_dict()
    read = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert read["models"][0]["accuracy"] == report.models[0].accuracy
    assert read["data"]["classes"] == report.data.classes
    case = read["mistakes"]["shown"][0]
    assert case["explanation"]["document"] == case["index"]
    assert case["explanation"]["tokens"][0]["token"]
    assert repr(report).startswith("<ModelReport: 120 test texts, accuracy 0.")


def test_reports_are_the_same_but_for_seconds():
    def without_seconds(report):
        read = report.to_dict()
        del read["made"]
        for model in read["models"]:
            del model["fit_seconds"], model["predict_seconds"]
        return read

    parts = texts_and_labels()
    one, two = (without_seconds(ModelReport.from_texts(*parts)) for _ in range(2))
    assert one == two


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
    Page(report.to_html(fragment=True))
    json.dumps(report.to_dict(), allow_nan=False).encode()
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\ud800]", report.to_text())


@pytest.mark.parametrize(
    "labels", [[0.5, 1.5], [False, True], [1, 2], ["", "\n"], ["long " * 40, "b"]], ids=str
)
def test_labels_of_any_type(labels):
    report = ModelReport.from_texts(*texts_and_labels(labels=labels), n_mistakes=1)
    assert report.data.classes == sorted(labels)
    assert type(report.data.classes[0]) is type(labels[0])
    Page(report.to_html())
    json.dumps(report.to_dict())


def test_many_classes():
    parts = texts_and_labels(24, n=600)
    report = ModelReport.from_texts(*parts, n_mistakes=2, n_disagreements=1, n_top=2)
    page = Page(report.to_html())
    assert "Framed: right" not in page.text
    assert "Most frequent confusions" in page.text
    assert "4 more classes" in page.text
    assert "All 24 class sizes" in page.text
    counts = np.array(report.confusion.counts)
    right = counts.diagonal() / counts.sum(axis=1)
    heads = [at for at, row in enumerate(page.rows) if row[0] == "true class"]
    assert page.rows[heads[0]] == ["true class", "right", "texts", "taken for"]
    worst = page.rows[heads[0] + 1]
    assert worst[1].strip() == percent(right.min())
    np.fill_diagonal(counts, 0)
    mistaken = np.flatnonzero(counts[right.argmin()])
    if len(mistaken) == 1:
        assert worst[3] == f"{report.data.classes[mistaken[0]]} {counts[right.argmin()].max()}"
    assert page.rows[heads[-1] + 1][2] == str(counts.max())
    some = ModelReport.from_texts(*texts_and_labels(8, n=300), n_mistakes=0)
    assert "Framed: right" in some.to_html()


# What may be missing


def test_class_missing_in_the_test_set():
    train, y, test, y_test = texts_and_labels(3)
    report = ModelReport.from_texts(train, y, test[y_test != 1], y_test[y_test != 1])
    assert report.data.test_sizes[1] == 0
    assert report.confusion.counts[1] == [0, 0, 0]
    assert np.isfinite(report.models[0].log_loss)
    Page(report.to_html())


def test_label_unknown_in_training():
    train, y, test, y_test = texts_and_labels()
    strange = y_test.copy()
    strange[:5] = 7
    report = ModelReport.from_texts(train, y, test, strange)
    known = ModelReport.from_texts(train, y, test[5:], y_test[5:])
    assert report.data.n_unknown == 5
    assert sum(report.confusion.unknown) == 5
    assert report.models[0].accuracy == pytest.approx(known.models[0].accuracy * 55 / 60)
    assert report.mistakes.n_all == known.mistakes.n_all
    assert all(case.index >= 5 for case in report.mistakes.shown)
    page = Page(report.to_html())
    assert page.row("not in training")[-1] == "5"
    assert page.row("classes not in training")[-2] == "5"
    assert "5 of 60 test texts have labels that are not in training (7)" in page.words()


EASY = ["so good", "good fun", "so bad", "bad plot"] * 10
EASY_LABELS = ["yes", "yes", "no", "no"] * 10


def test_no_mistake_and_no_disagreement():
    report = ModelReport.from_texts(EASY, EASY_LABELS, EASY[:4], EASY_LABELS[:4])
    assert report.models[0].accuracy == 1
    said = Page(report.to_html()).words()
    assert "Our model makes none on the test texts." in said
    assert "are right on the same texts" in said
    assert "4 distinct test texts are also in the training set" in said


def test_one_mistake_and_empty_documents():
    test, labels = ["good", "bad", "", "xxx yyy"], ["yes", "yes", "no", "no"]
    report = ModelReport.from_texts(EASY, EASY_LABELS, test, labels)
    assert report.data.n_empty == 2
    page = Page(report.to_html())
    assert "Test text 1 truly yes ✗ ours: no with" in page.words()
    assert "2: for them the decision is the intercept" in page.words()
    one = ModelReport.from_texts(EASY, EASY_LABELS, test[:2], labels[:2])
    assert one.mistakes.n_all == 1
    assert "Our model is wrong on 1 of 2 test texts. Here is it" in Page(one.to_html()).words()


def test_one_test_text():
    report = ModelReport.from_texts(EASY, EASY_LABELS, ["good"], ["yes"])
    assert report.calibration[0].texts == [1]
    assert "On 1 test text our model" in Page(report.to_html()).words()


def test_a_text_that_comes_twice_is_shown_once():
    parts = texts_and_labels(seed=2)
    report = ModelReport.from_texts(*parts, n_mistakes=100, n_disagreements=100)
    both = {case.index for case in report.baseline_right.shown}
    assert both <= {case.index for case in report.mistakes.shown}
    page = Page(report.to_html())
    assert page.words().count("Its words are shown above") == len(both) > 0


# From an estimator


def fitted(parts, kind=ClsAttentionClassifier, **parameters):
    return make_pipeline(CountVectorizer(min_df=2), kind(**parameters)).fit(*parts[:2])


def test_from_estimator_is_from_texts():
    parts = texts_and_labels(labels=["neg", "pos"])
    one = ModelReport.from_texts(*parts)
    model = make_text_classifier().fit(*parts[:2])
    two = ModelReport.from_estimator(model, *parts[2:], X_train=parts[0], y_train=parts[1])
    assert two.models[0].fit_seconds is None
    for key in ("confusion", "data"):
        assert getattr(one, key) == getattr(two, key)
    assert one.calibration[0] == two.calibration[0]
    assert one.differences[-1] == two.differences[-1]
    assert one.selection.tokens == two.selection.tokens
    assert one.selection.evenly_over == pytest.approx(two.selection.evenly_over)
    for of, same in zip(one.tokens, two.tokens, strict=True):
        assert [token for token, _ in of.important] == [token for token, _ in same.important]
    assert [case.index for case in one.mistakes.shown] == [
        case.index for case in two.mistakes.shown
    ]
    for result, same in zip(one.models[::3], two.models[::2], strict=True):
        seconds = {"fit_seconds": 0, "predict_seconds": 0}
        assert replace(result, **seconds) == replace(same, **seconds)
    assert "–" in Page(two.to_html()).row("ClsAttentionClassifier")
    searched = ModelReport.from_estimator(
        model, pd.Series(parts[2], index=range(500, 560)), pd.Series(parts[3])
    )
    assert searched.confusion == one.confusion


def test_from_estimator_without_training():
    parts = texts_and_labels()
    report = ModelReport.from_estimator(fitted(parts), *parts[2:])
    assert report.baseline is None
    assert [model.kind for model in report.models] == ["ours", "floor"]
    assert (report.ours_right.n_all, report.baseline_right.n_all) == (0, 0)
    assert report.selection.texts == "test"
    page = Page(report.to_html())
    assert "Training texts were not given" in page.words()
    assert "Disagreements" not in page.words()
    majority = max(np.bincount(parts[3])) / 60
    assert report.models[1].accuracy == pytest.approx(majority)


def test_from_estimator_with_a_baseline():
    parts = texts_and_labels(labels=["b", "a"])
    naive = make_pipeline(CountVectorizer(), MultinomialNB()).fit(*parts[:2])
    report = ModelReport.from_estimator(fitted(parts), *parts[2:], baseline=naive)
    assert report.baseline == "MultinomialNB (given)"
    assert report.models[1].accuracy == naive.score(*parts[2:])
    assert report.models[1].log_loss == pytest.approx(
        log_loss(parts[3], naive.predict_proba(parts[2]))
    )
    svc = make_pipeline(CountVectorizer(), LinearSVC()).fit(*parts[:2])
    with pytest.raises(ValueError, match="must have predict_proba, which LinearSVC"):
        ModelReport.from_estimator(fitted(parts), *parts[2:], baseline=svc)
    other = make_pipeline(CountVectorizer(), MultinomialNB()).fit(parts[0], parts[1] == "a")
    with pytest.raises(ValueError, match="must have the classes"):
        ModelReport.from_estimator(fitted(parts), *parts[2:], baseline=other)


def test_from_estimator_of_other_shapes():
    train, y, test, y_test = texts_and_labels()
    frames = [pd.DataFrame({"text": texts, "n": 1.0}) for texts in (train, test)]
    columns = ColumnTransformer([("words", TfidfVectorizer(), "text"), ("n", "passthrough", ["n"])])
    tabular = make_pipeline(columns, ClsAttentionClassifier()).fit(frames[0], y)
    report = ModelReport.from_estimator(tabular, frames[1], y_test, X_train=frames[0], y_train=y)
    assert report.models[1].name == "LogisticRegression, same columns"
    assert report.data.test_words is None
    Page(report.to_html())
    vectorizer = CountVectorizer(min_df=2)
    X, X_test = vectorizer.fit_transform(train), vectorizer.transform(test)
    before = X_test.copy()
    classifier = ClsAttentionClassifier().fit(X, y)
    for matrix in (X_test, X_test.tocoo(), X_test.toarray(), pd.DataFrame(X_test.toarray())):
        of_matrix = ModelReport.from_estimator(classifier, matrix, y_test, n_mistakes=1)
        predicted = classifier.predict(X_test)
        assert of_matrix.confusion.counts == confusion_matrix(y_test, predicted).tolist()
    assert (X_test.indices == before.indices).all()
    assert "in the order of the columns" in Page(of_matrix.to_html()).words()


def test_two_layers():
    parts = texts_and_labels(n=80)
    deeper = {"embedding_dim": 4, "max_iter": 2, "n_layers": 2}
    with pytest.warns(ConvergenceWarning):
        pipeline = fitted(parts, AttentionNetworkClassifier, random_state=0, **deeper)
    report = ModelReport.from_estimator(pipeline, *parts[2:])
    Page(report.to_html())
    assert report.to_frame().index[0] == "AttentionNetworkClassifier"


def test_classifier_given():
    parts = texts_and_labels()
    given = ClsAttentionClassifier(C=0.01, sublinear_counts=False)
    report = ModelReport.from_texts(*parts, classifier=given)
    assert "C=0.01" in report.made["Model"]
    proba = make_text_classifier(C=0.01).fit(*parts[:2]).predict_proba(parts[2])
    assert report.models[0].log_loss == pytest.approx(log_loss(parts[3], proba))
    named = texts_and_labels(labels=["neg", "pos"])
    weights = {"sublinear_counts": False, "class_weight": {"pos": 20.0}}
    weighted = ModelReport.from_texts(*named, classifier=ClsAttentionClassifier(**weights))
    same = make_text_classifier(class_weight={"pos": 20.0}).fit(*named[:2]).predict(named[2])
    assert np.sum(weighted.confusion.counts, axis=0)[1] == (same == "pos").sum()
    assert "class_weight={'pos': 20.0}" in weighted.made["Model"]
    with pytest.raises(ValueError, match="'odd', which is no class"):
        ModelReport.from_texts(*named, classifier=ClsAttentionClassifier(class_weight={"odd": 2}))
    with pytest.raises(TypeError, match="such as ClsAttentionClassifier, got LinearSVC"):
        ModelReport.from_texts(*parts, classifier=LinearSVC())
    with pytest.raises(ValueError, match="with an MLP"):
        ModelReport.from_texts(
            *parts, classifier=AttentionNetworkClassifier(mlp=True, embedding_dim=4)
        )


# From a comparison


def test_from_comparison_fits_nothing_again(made, monkeypatch):
    parts, report = made
    ours, _, tfidf, *_, same_features, _, floor = default_models()
    compared = compare(*parts, models=[floor, same_features, tfidf, ours], n_top=4)
    for estimator in (ClsAttentionClassifier, LogisticRegression):
        monkeypatch.setattr(estimator, "fit", None)
    same = ModelReport.from_comparison(compared, n_mistakes=3, n_disagreements=2)
    assert [model.kind for model in same.models] == ["ours", "floor", "baseline", "baseline"]
    assert same.models == [compared.models[at] for at in (3, 0, 1, 2)]
    for key in ("confusion", "calibration", "tokens", "selection", "baseline"):
        assert getattr(same, key) == getattr(report, key)
    for key in ("mistakes", "ours_right", "baseline_right"):
        shown = getattr(report, key).shown
        assert [one.index for one in getattr(same, key).shown] == [one.index for one in shown]
    Page(same.to_html())


def test_from_a_comparison_of_any_models():
    parts = texts_and_labels()
    report = ModelReport.from_comparison(compare(*parts))
    page = Page(report.to_html())
    assert page.row("LinearSVC, TF-IDF")[3:5] == ["–", "–"]
    assert "LinearSVC, TF-IDF  " in report.to_text()
    baselines = [model for model in report.models if model.kind == "baseline"]
    with_probabilities = [model for model in baselines if model.log_loss is not None]
    best = max(with_probabilities, key=lambda model: model.accuracy)
    assert report.baseline == best.name
    stands_alone = all(one is best or one.accuracy < best.accuracy for one in baselines)
    assert ("the strongest of 7 baselines" in page.words()) == stands_alone
    ours = default_models()[0]
    alone = ModelReport.from_comparison(compare(*parts, models=[ours]))
    page = Page(alone.to_html())
    assert "most frequent class" not in page.words()
    assert "Disagreements" not in page.words()
    assert "ours against" not in alone.to_text()
    network = AttentionNetworkClassifier(mlp=True, embedding_dim=4, max_iter=2, random_state=0)
    compared = compare(*parts, models=[replace(ours, estimator=network)])
    with pytest.raises(ValueError, match="with an MLP"):
        ModelReport.from_comparison(compared)
    with pytest.raises(ValueError, match="no model of kind 'ours'"):
        ModelReport.from_comparison(compare(*parts, models=[default_models()[-1]]))


PARTS = texts_and_labels()
PIPELINE = fitted(PARTS)


@pytest.mark.parametrize(
    ("arguments", "keywords", "error", "message"),
    [
        ((PIPELINE, "one text", [0]), {}, ValueError, "got one text"),
        ((PIPELINE, [], []), {}, ValueError, "no test documents"),
        ((PIPELINE, ["a", "b"], [0]), {}, ValueError, "one label for each of 2 test documents"),
        ((PIPELINE, ["a"], ["0"]), {}, ValueError, "no test label occurs in training"),
        ((PIPELINE, [3], [0]), {}, ValueError, "expected texts"),
        ((PIPELINE[-1], ["a"], [0]), {}, ValueError, "expected a matrix"),
        ((LinearSVC(), ["a"], [0]), {}, TypeError, "LinearSVC"),
        ((PIPELINE, ["a"], [0]), {"X_train": ["a"]}, ValueError, "both or neither"),
        ((PIPELINE, ["a"], [0]), {"y_train": [0]}, ValueError, "both or neither"),
        (
            (PIPELINE, ["a"], [0]),
            {"X_train": ["a"], "y_train": [0]},
            ValueError,
            "only one of both has 1",
        ),
        ((PIPELINE, ["a"], [0]), {"n_top": -1}, ValueError, "n_top == -1, must be >= 0"),
        ((PIPELINE, ["a"], [0]), {"n_mistakes": 1.5}, TypeError, "n_mistakes must be an instance"),
        ((PIPELINE, ["a"], [0]), {"n_disagreements": True}, TypeError, "n_disagreements must be"),
    ],
)
def test_bad_input(arguments, keywords, error, message):
    with pytest.raises(error, match=message):
        ModelReport.from_estimator(*arguments, **keywords)


def test_unfitted_and_untraceable():
    with pytest.raises(NotFittedError):
        ModelReport.from_estimator(
            make_pipeline(CountVectorizer(), ClsAttentionClassifier()), ["a"], [0]
        )
    hashing = make_pipeline(
        HashingVectorizer(alternate_sign=False, n_features=64), ClsAttentionClassifier()
    ).fit(*PARTS[:2])
    with pytest.raises(ValueError, match="hashing keeps no names"):
        ModelReport.from_estimator(hashing, *PARTS[2:])


# Statistics


@pytest.mark.parametrize("n_classes", [2, 4])
def test_calibration_curve_is_that_of_scikit_learn(n_classes):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(n_classes), 4000)
    y = rng.integers(n_classes, size=4000)
    curve = calibration_curve("any", proba, y, least=1)
    confidence, right = proba.max(axis=1), proba.argmax(axis=1) == y
    start = 1 / n_classes
    # Bins between 1 / n_classes and 1 are bins between 0 and 1 of what is moved there.
    moved = (confidence - start) / (1 - start)
    expected, mean = sklearn_curve(right, moved.clip(0, 1), n_bins=10)
    np.testing.assert_allclose(curve.accuracy, expected)
    np.testing.assert_allclose(curve.confidence, mean * (1 - start) + start)
    assert sum(curve.texts) == sum(curve.histogram) == 4000
    assert all(
        low <= share <= high
        for low, share, high in zip(curve.low, curve.accuracy, curve.high, strict=True)
    )


def test_bins_with_few_texts_are_joined():
    confidence = np.r_[np.full(30, 0.52), np.full(5, 0.63), np.full(25, 0.91), np.full(3, 0.99)]
    proba = np.c_[confidence, 1 - confidence]
    curve = calibration_curve("any", proba, np.zeros(63, dtype=int))
    assert curve.texts == [30, 33]
    assert curve.edges == pytest.approx([0.5, 0.55, 1.0])
    assert curve.histogram == [30, 0, 5, 0, 0, 0, 0, 0, 25, 3]
    few = calibration_curve("any", proba[:3], np.array([0, 1, 0]))
    assert (few.texts, few.edges) == ([3], [0.5, 1.0])
    assert few.accuracy == [pytest.approx(2 / 3)]
    assert 0 < few.low[0] < 2 / 3 < few.high[0] < 1


@pytest.mark.parametrize(("n_right", "n"), [(0, 1), (1, 1), (0, 7), (7, 7), (3, 7), (812, 1000)])
def test_wilson_interval_by_its_formula(n_right, n):
    z, share = norm.ppf(0.975), n_right / n
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    low, high = wilson_interval(n_right, n)
    np.testing.assert_allclose((low, high), (middle - half, middle + half), rtol=1e-12, atol=1e-15)
    assert 0 <= low <= share <= high <= 1


@pytest.mark.parametrize("least", [1, 20, 500, 5000])
def test_bins_own_their_upper_border(least):
    rng = np.random.default_rng(least)
    n, edges = 1000, np.linspace(1 / 3, 1, 11)
    # A third of the confidences lie on borders, and rounding puts some below the lowest.
    confidence = np.where(rng.random(n) < 1 / 3, rng.choice(edges, n), rng.uniform(1 / 3, 1, n))
    confidence[:3] = 1 / 3 - 1e-17, np.nextafter(1 / 3, 0), 1.0
    proba = np.c_[confidence, (1 - confidence) / 2, (1 - confidence) / 2]
    y = rng.integers(-1, 3, size=n)
    curve = calibration_curve("any", proba, y, least=least)
    confidence, right = proba.max(axis=1), proba.argmax(axis=1) == y
    bins = np.searchsorted(edges[1:-1], confidence, side="left")
    assert curve.histogram == np.bincount(bins, minlength=10).tolist()
    joined = np.searchsorted(curve.edges[1:-1], confidence, side="left")
    n_bins = len(curve.texts)
    assert curve.texts == np.bincount(joined, minlength=n_bins).tolist()
    assert min(curve.texts) >= min(least, n)
    np.testing.assert_allclose(
        np.array(curve.accuracy) * curve.texts, np.bincount(joined, right, n_bins)
    )
    np.testing.assert_allclose(
        np.array(curve.confidence) * curve.texts, np.bincount(joined, confidence, n_bins)
    )


def test_difference_and_confusion_by_hand():
    right = np.array([True, True, False, False])
    same = difference("same", right, right)
    assert (same.accuracy, same.standard_error, same.p_value) == (0, 0, 1)
    better = difference("worse", np.array([1, 1, 1, 0], bool), np.array([1, 0, 0, 0], bool))
    assert (better.accuracy, better.only_ours, better.only_other) == (0.5, 2, 0)
    assert (better.standard_error, better.p_value) == (0.25, 0.5)
    counted = confusion(np.array([0, 1, 1, -1]), np.array([0, 0, 1, 1]), 2)
    assert (counted.counts, counted.unknown) == ([[1, 0], [1, 1]], [0, 1])


CHARTS = {"calibration": calibration_axes, "confidence": confidence_axes}


def drawn(chart, curves, n_classes):
    source = f'{{% import "report/charts.html" as charts %}}{{{{ charts.{chart}(curves, axes) }}}}'
    axes = CHARTS[chart](curves, n_classes)
    return pages._environment().from_string(source).render(curves=curves, axes=axes)


@pytest.mark.parametrize("n_classes", [2, 3, 7, 100])
@pytest.mark.parametrize("n_models", [1, 2])
def test_charts_stay_on_their_paper(n_classes, n_models):
    rng = np.random.default_rng(1)
    curves = []
    for at, name in enumerate(["ours", "<theirs>"][:n_models]):
        proba = rng.dirichlet(np.full(n_classes, 0.3), 300 * (1 + 50 * at))
        curves.append(calibration_curve(name, proba, rng.integers(n_classes, size=len(proba))))
    for chart in CHARTS:
        svg = drawn(chart, curves, n_classes)
        page = Page(svg)
        assert set(page.tags) <= SVG
        for axis, most in (("x", 360), ("y", 290)):
            places = re.findall(rf'[ c]{axis}[12]?="([-\d.]+)"', svg)
            assert places
            assert all(0 <= float(place) <= most for place in places)
        assert all(f"{curve.name}: " in page.text for curve in curves)


def test_a_chart_of_one_point():
    curve = CalibrationCurve("ours", [0.5, 1.0], [1], [1.0], [0.0], [0.0], [0.8], [0] * 9 + [1])
    for chart in CHARTS:
        Page(drawn(chart, [curve], 2))


def test_what_decisions_hang_on_and_labels_to_look_at(made, same_models):
    parts, report = made
    ours, _ = same_models
    hinges, labels = report.hinges, report.labels
    explanation = explain(ours, parts[2])
    sizes = explanation.counterfactual("words").sizes
    places = np.unique(np.linspace(0, len(sizes) - 1, hinges.n_examined).round().astype(int))
    examined = sizes[places]
    assert hinges.unit == "word"
    assert sum(hinges.texts) + hinges.n_never == hinges.n_examined == len(places)
    assert hinges.n_never == np.isnan(examined).sum()
    assert hinges.median == np.nanmedian(examined)
    assert hinges.texts[0] == (examined == 1).sum()
    for one in hinges.shown:
        text = parts[2][one.index]
        assert one.word in text
        assert ours.predict([text])[0] == one.label != one.other
    issues = label_issues(ours, *parts[:2])
    assert [one.index for one in labels.shown] == issues["document"].tolist()[: len(labels.shown)]
    page = report.to_html()
    for title, is_there in (
        ("What decisions hang on", True),
        ("Labels to look at", bool(labels.shown)),
    ):
        assert (f"<h2>{title}</h2>" in page) == is_there


def test_labels_to_look_at_are_a_ranking_and_no_count():
    """Of labels that nobody changed the leave-one-out estimate contradicts more than there are."""
    texts, y = make_token_classification(300, as_text=True, random_state=0)
    labels = np.where(np.arange(300) % 10 == 0, 1 - y, y)
    model = make_pipeline(CountVectorizer(), ClsAttentionClassifier()).fit(texts, labels)
    report = ModelReport.from_estimator(
        model, X_test=texts, y_test=y, X_train=texts, y_train=labels
    )
    said = re.search("<h2>Labels to look at</h2>(.*?)<ul", report.to_html(), re.DOTALL)[1]
    assert re.findall(r"\d+", re.sub("<[^>]*>", "", said)) == ["300"]
    assert "does not say how many" in said
