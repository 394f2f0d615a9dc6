"""Of several classes two are compared, by their difference, and all are shown when asked for."""

import re
import warnings

import numpy as np
import pytest
from helpers import data
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from test_explain import TRAININGS

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.inspection import explain
from sklearn_clsattn.inspection.class_table import class_table
from sklearn_clsattn.inspection.comparing import pairs
from sklearn_clsattn.inspection.formatting import aligned, rounds_to_nothing
from sklearn_clsattn.inspection.view import views


@pytest.fixture(scope="module")
def model():
    texts, y = make_token_classification(200, n_classes=4, as_text=True, random_state=0)
    y[::4] = (y[::4] + 1) % 4  # labels that nothing explains, so that no class is certain
    labels = np.array(["red", "green", "blue", "dark grey"])[y]
    fitted = make_pipeline(CountVectorizer(), ClsAttentionClassifier()).fit(
        texts[:150], labels[:150]
    )
    fitted.texts, fitted.labels = texts[150:], labels[150:]
    return fitted


def expected_pair(decisions, classes, true, target, against):
    """Return the class shown and its rival, by the rule in words."""
    ranked = [classes[k] for k in np.argsort(-decisions, kind="stable")]
    predicted = ranked[0]
    wrong = true is not None and true in ranked and true != predicted
    usual = true if wrong else ranked[1]
    if target is None and against is None:
        return predicted, usual
    if against is None:
        return target, (usual if target == predicted else predicted)
    if target is None:
        return (usual if against == predicted else predicted), against
    return target, against


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("target", [None, "red", "dark grey"])
@pytest.mark.parametrize("against", [None, "green", "dark grey"])
def test_the_pair_is_the_one_that_the_rule_says(model, known, target, against):
    true = model.labels.astype(object).copy()
    true[::5] = "unheard of"
    true[1::3] = "red"  # many mistakes
    explanation = explain(model, model.texts, y_true=true if known else None)
    if target is not None and target == against:
        with pytest.raises(ValueError, match="two classes, got 'dark grey' twice"):
            pairs(explanation, target, against)
        return
    shown, rivals = pairs(explanation, target, against)
    classes = explanation.targets.tolist()
    F = model.decision_function(model.texts)
    for i, (k, j) in enumerate(zip(shown, rivals, strict=True)):
        expected = expected_pair(F[i], classes, true[i] if known else None, target, against)
        assert (classes[k], classes[j]) == expected


@pytest.mark.parametrize("top", [None, 2])
@pytest.mark.parametrize("training", TRAININGS)
def test_differences_add_up_to_the_lead(training, top):
    X, y = data(4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = clone(TRAININGS[training]).fit(X, y)
    explanation = explain(model, X, top=top, y_true=y, removal=True)
    decision = model.decision_function(X)
    documents = explanation.to_frame("documents")
    k, j = documents["target"].to_numpy(), documents["against"].to_numpy()
    rows = np.arange(len(y))
    lead = decision[rows, k] - decision[rows, j]
    scale = 1 + np.abs(decision).max(axis=1) + np.abs(model.intercept_).max()
    assert (np.abs(documents["decision"] - lead) <= 1e-10 * scale).all()
    log_odds = model.predict_log_proba(X)
    assert_allclose(lead, log_odds[rows, k] - log_odds[rows, j], rtol=1e-10, atol=1e-10)
    assert_array_equal(documents["probability"], model.predict_proba(X)[rows, k])
    wrong = k != y
    assert (j[wrong] == y[wrong]).all()
    frame = explanation.to_frame()
    sums = frame.groupby("document")[["contribution", "attention"]].sum()
    assert (np.abs(sums["contribution"].to_numpy() - lead) <= 1e-10 * scale).all()
    assert_allclose(sums["attention"].to_numpy()[:-1], 1.0)  # the last document is empty
    every = explanation.to_frame(every_class=True)
    assert "against" not in every
    assert len(every) == 4 * len(frame)


def test_columns_of_the_frame_are_differences_of_both_classes(model):
    explanation = explain(model, model.texts[:6])
    every = explanation.to_frame(every_class=True).set_index(["document", "token", "target"])
    for row in explanation.to_frame().itertuples():
        one, other = (
            every.loc[row.document, row.token, label] for label in (row.target, row.against)
        )
        assert (one["attention"], one["count"]) == (row.attention, row.count) or row.kind != "token"
        if row.kind == "token":
            for name in ("value", "contribution", "decision_without"):
                assert_allclose(getattr(row, name), one[name] - other[name], atol=1e-12)


def test_removal_in_a_comparison_is_what_really_removing_gives(model):
    explanation = explain(model, model.texts[:3])
    vectorizer, classifier = model
    frame = explanation.to_frame()
    labels = explanation.classes.tolist()
    for row in frame[frame["kind"] == "token"].itertuples():
        x = vectorizer.transform([model.texts[row.document]]).toarray()
        x[0, vectorizer.vocabulary_[row.token]] = 0
        F = classifier.decision_function(x)[0]
        lead = F[labels.index(row.target)] - F[labels.index(row.against)]
        assert_allclose(row.decision_without, lead, rtol=0, atol=1e-10)


def test_a_mistake_shows_what_spoke_for_its_true_class(model):
    wrong = ["blue" if label != "blue" else "red" for label in model.predict(model.texts)]
    explanation = explain(model, model.texts, y_true=wrong)
    for one, view in zip(explanation, views(explanation, None, 8), strict=True):
        assert view.other == view.true == one.true[0]
        assert view.is_compared
        assert view.minus.label == f"for {view.true}"
        k, j = (one.targets.tolist().index(label) for label in (view.target, view.other))
        added = one.contributions[:, k] - one.contributions[:, j]
        assert_allclose(view.end, view.start + added.sum())
        assert_allclose(view.minus.total, added[added < 0].sum())
        assert [token.contribution for token in view.minus.tokens] == sorted(
            added[added < 0][
                [not rounds_to_nothing(one, abs(added).max()) for one in added[added < 0]]
            ]
        )[:8]
        text = one.to_text(width=200)
        assert f"lead over {view.other} " in text
        assert f"- for {view.true}" in text or not view.minus.tokens
        assert f"for {view.true}" in one.to_html()


def test_the_class_that_was_predicted_comes_first(model):
    explanation = explain(model, model.texts[:5])
    for view in views(explanation, None, 3):
        assert view.sides[0] is view.plus
    other = next(label for label in explanation.classes if label not in explanation.predicted[:1])
    (view,) = views(explanation[:1], other, 3)
    assert view.other == view.predicted
    assert view.sides[0] is view.minus


def test_all_classes_side_by_side_add_up(model):
    explanation = explain(model, model.texts[:8], y_true=model.labels[:8])
    for one, top in zip(explanation, [0, 1, 2, 3, 8, 100, 5, 4], strict=True):
        table = class_table(one, top)
        assert len(table.rows) == 4
        assert table.rows[0].remark == "predicted"
        assert [row.decision for row in table.rows] == sorted(one.decision[0], reverse=True)
        for row in table.rows:
            assert_allclose(sum(row.terms), row.decision, rtol=0, atol=1e-10)
            assert len(row.terms) == len(table.tokens) + 2
        assert len(table.tokens) + table.n_others == len(one.tokens)
        for width in (40, 70, 100, 200):
            text = one.to_text(every_class=True, top=top, width=width)
            assert max(map(len, text.splitlines())) <= width
            assert "intercept" in text
            assert any(line.startswith("dark") for line in text.splitlines())
    # What is written adds up to the last digit but for rounding.
    written = explanation[0].to_text(every_class=True, width=200).splitlines()
    (line,) = [line for line in written if "(predicted)" in line]
    decision, *terms = map(float, re.findall(r"[+-]\d+\.\d+", line))
    assert_allclose(sum(terms), decision, atol=0.005 * (len(terms) + 1))


def test_two_classes_and_one_of_several_have_no_rival(model):
    two = make_pipeline(CountVectorizer(), ClsAttentionClassifier()).fit(
        ["ab bc", "bc cd"] * 3, [0, 1] * 3
    )
    explanation = explain(two, ["ab b"])
    assert "against" not in explanation.to_frame()
    assert views(explanation, None, 2, every_class=True)[0].table is None
    for render in (explanation.to_frame, explanation.to_text, explanation.to_html):
        with pytest.raises(ValueError, match="compares two classes of several"):
            render(against=0)
    alone = explain(model, model.texts[:2], target="red")
    assert "against" not in alone.to_frame()
    assert "against red" in alone.to_text()
    with pytest.raises(ValueError, match="'red' was explained: explain without target"):
        alone.to_text(against="blue")
    whole = explain(model, model.texts[:2])
    for render in (whole.to_frame, whole.to_text, whole.to_html, whole[:0].to_text):
        for name in ("target", "against"):
            with pytest.raises(ValueError, match=f"{name} must be None or one of the classes"):
                render(**{name: "mauve"})


def test_what_rounds_to_nothing_is_not_listed(model):
    explanation = explain(model, model.texts)
    n_more = 0
    for view in views(explanation, None, 100):
        listed = aligned([token.contribution for token in view.listed])
        assert not {"+0.00", "-0.00"} & set(listed)
        every = [token.contribution for token in view.terms if token.contribution]
        assert len(view.listed) + view.plus.more + view.minus.more == len(every)
        assert_allclose(view.plus.total + view.minus.total, sum(every), atol=1e-12)
        n_more += view.plus.more + view.minus.more
    assert n_more


@pytest.mark.parametrize("largest", [0.0, 3e-9, 0.004, 0.06, 0.7, 5.0, 42.0, 900.0, 4e7])
def test_rounding_to_nothing_is_what_is_written(largest):
    for share in (0.0, 1e-6, 1e-3, 0.0049, 0.0051, 0.02, 0.3, 1.0):
        number = share * largest
        _, written = aligned([largest, number])
        is_nothing = float(written.replace(",", "")) == 0.0
        if number and not re.fullmatch(r"[+-]\d+\.?0*5", f"{number:+.12g}"):
            assert rounds_to_nothing(number, largest) == is_nothing
