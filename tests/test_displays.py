"""Plots: their numbers are those of the model, and what is drawn is those numbers."""

import warnings

import numpy as np
import pandas as pd
import pytest
from helpers import data, generated_texts, refused
from numpy.testing import assert_allclose
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline

from sklearn_clsattn import ClsAttentionClassifier

with warnings.catch_warnings():  # of matplotlib and pyparsing about each other
    warnings.simplefilter("ignore", DeprecationWarning)
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    plt = pytest.importorskip("matplotlib.pyplot")
    pytest.importorskip("matplotlib.mathtext")

from sklearn_clsattn import TextClassifier
from sklearn_clsattn.inspection import TokenImportanceDisplay, explain

TEXTS = ["a good film", "good fun, good plot", "a bad film", "a dull, bad plot"] * 6
LABELS = np.array(["pos", "pos", "neg", "neg"] * 6)


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def two():
    X, y = data(2, n_documents=80)
    return ClsAttentionClassifier().fit(X, y), X, y


@pytest.fixture(scope="module")
def three():
    X, y = data(3, n_documents=90)
    y = np.array(["red", "green", "blue"])[y]
    return ClsAttentionClassifier().fit(X, y), X, y


@pytest.fixture(params=["two", "three"])
def any_number(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def pipeline():
    return make_pipeline(CountVectorizer(), ClsAttentionClassifier()).fit(TEXTS, LABELS)


def tick_labels(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


# TokenImportanceDisplay


def test_importance_is_the_spread_of_what_a_token_adds(any_number):
    model, X, _ = any_number
    added = model.contributions(X)
    of_classes = [-added, added] if len(model.classes_) == 2 else added
    added = np.array([of_class.toarray() for of_class in of_classes])
    added -= added.mean(axis=0)
    expected = np.sign(added.sum(axis=1)) * added.std(axis=1)
    display = TokenImportanceDisplay.from_estimator(model, X, k=4)
    assert display.importance.columns.tolist() == model.classes_.tolist()
    assert display.importance.index.tolist() == [f"x{token}" for token in range(19)]  # not the last
    assert_allclose(display.importance.T, expected[:, :19], atol=1e-12)
    for ax, of_class in zip(display.ax_, expected, strict=True):
        best = np.argsort(-of_class, kind="stable")[:4]
        assert tick_labels(ax) == [f"x{token}" for token in best]
        assert_allclose([bar.get_width() for bar in ax.patches], of_class[best])
    assert display.ax_[0].get_xlim() == display.ax_[1].get_xlim()


def test_words_with_their_characters_are_one_token():
    texts, y = generated_texts(n_samples=150, random_state=0)
    model = TextClassifier().fit(texts[:100], y[:100])
    terms = explain(model, texts[100:]).to_frame().query("kind == 'token'")
    added = terms.pivot_table("contribution", "document", "token", fill_value=0)
    importance = TokenImportanceDisplay.from_estimator(model, texts[100:]).importance[1]
    for token, effect in importance.nlargest(10).items():
        assert effect == pytest.approx(added[token].std(ddof=0), rel=1e-6)


def test_of_several_labels_each_is_compared_with_its_absence():
    X, y = data(2, n_documents=80)
    model = ClsAttentionClassifier().fit(X, np.column_stack([y, 1 - y, y]))
    importance = TokenImportanceDisplay.from_estimator(model, X).importance
    added = np.array([of_label.toarray() for of_label in model.contributions(X)])
    assert_allclose(importance.abs().T, added.std(axis=1)[:, :19], atol=1e-12)


def test_tokens_of_very_few_documents_are_no_important_ones():
    texts = ["good film", "bad film"] * 1001
    texts[0] = "stupendous " * 50
    model = make_pipeline(CountVectorizer(), ClsAttentionClassifier(C=100.0))
    model.fit(texts, ["pos", "neg"] * 1001)
    draw = TokenImportanceDisplay.from_estimator
    assert "stupendous" not in draw(model, texts).importance.index
    assert "stupendous" in draw(model, texts[:1000]).importance.index


def test_one_class_is_drawn_on_given_axes(three):
    model, X, _ = three
    figure, axes = plt.subplots(1, 3)
    one = TokenImportanceDisplay.from_estimator(model, X, target="green", ax=axes[0])
    assert one.ax_ is axes[0]
    assert axes[0].get_title(loc="left") == "green"
    every = one.plot(axes, k=2)
    assert [len(ax.get_yticks()) for ax in every.ax_] == [2, 2, 2]
    assert plt.get_fignums() == [figure.number]
    assert every.figure_ is figure
    for target in ("none of them", [0]):
        refused("target must be None or one of the classes", one.plot, target=target)


def test_classes_may_be_truth_values(two):
    model, X, y = two
    model = ClsAttentionClassifier().fit(X, y == 1)
    display = TokenImportanceDisplay.from_estimator(model, X, k=3)
    assert [ax.get_title(loc="left") for ax in display.ax_] == ["class False", "class True"]
    assert len(display.plot(target=True, k=2).ax_.patches) == 2


def test_a_new_figure_leaves_the_users_style_as_it_is(two):
    before = dict(matplotlib.rcParams)
    display = TokenImportanceDisplay.from_estimator(two[0], two[1])
    assert plt.get_fignums() == [display.figure_.number]
    assert dict(matplotlib.rcParams) == before


def test_names_come_from_pipelines_and_data_frames(pipeline):
    steps = [("count", CountVectorizer()), ("keep", SelectKBest(chi2, k=3))]
    model = make_pipeline(Pipeline(steps), "passthrough", ClsAttentionClassifier())
    search = GridSearchCV(model, {}, cv=2).fit(TEXTS, LABELS)
    assert {"good", "bad"} <= {
        *TokenImportanceDisplay.from_estimator(search, TEXTS).importance.index
    }
    X = pd.DataFrame(pipeline[0].transform(TEXTS).toarray()).add_prefix("word ")
    model = ClsAttentionClassifier().fit(X, LABELS)
    assert TokenImportanceDisplay.from_estimator(model, X).importance.index.tolist() == [*X]


def test_names_are_no_mathematics():
    X, y = data(2)
    y = np.array([r"$\frac{$", r"$\frac}$"])[y]
    names = [rf"$\frac{{{at}$" for at in range(X.shape[1])]
    X = pd.DataFrame(X.toarray(), columns=names)
    model = ClsAttentionClassifier().fit(X, y)
    TokenImportanceDisplay.from_estimator(model, X).figure_.canvas.draw()
    explain(model, X[:1]).plot().figure.canvas.draw()


def test_classes_without_evidence_have_no_bars():
    model = make_pipeline(CountVectorizer(), ClsAttentionClassifier())
    model.fit(["film"] * 20, ["yes", "no"] * 10)
    display = TokenImportanceDisplay.from_estimator(model, ["film", "film"])
    assert [len(ax.patches) for ax in display.ax_] == [0, 0]


# Explanation.plot


def bars_of(ax):
    """Return where bars start and how wide they are, from the top, in arrays."""
    (bars,) = ax.containers
    return np.array([(bar.get_x(), bar.get_width()) for bar in bars]).reshape(-1, 2).T


@pytest.mark.parametrize("max_display", [1, 4, 1000])
def test_bars_lead_from_the_intercept_to_the_decision(any_number, max_display):
    model, X, _ = any_number
    decisions = model.decision_function(X)
    for at, one in enumerate(explain(model, X[:6])):
        ax = one.plot(max_display=max_display)
        starts, widths = bars_of(ax)
        decision, intercept = decisions[at], model.intercept_[0]
        if decisions.ndim == 2:  # the predicted class against the next
            best, second = np.argsort(-decisions[at])[:2]
            decision = decisions[at, best] - decisions[at, second]
            intercept = model.intercept_[best] - model.intercept_[second]
            across = f"log-odds of {model.classes_[best]} against {model.classes_[second]}"
            assert ax.get_xlabel() == across
        # From below: each bar starts where the one below it ends.
        stops = starts + widths
        assert_allclose(starts, [*stops[1:], intercept], atol=1e-10)
        assert_allclose(stops[0], decision, atol=1e-10)
        names = tick_labels(ax)
        n_tokens = len(one.tokens)
        assert len(names) == len(widths) == min(n_tokens, max_display)
        n_named = n_tokens if n_tokens <= max_display else max_display - 1
        sizes = np.abs(widths[:n_named])
        assert (sizes[1:] <= sizes[:-1]).all()
        terms = one.to_frame().set_index("token")["contribution"]
        assert_allclose(widths[:n_named], terms[names[:n_named]], atol=1e-12)
        if n_named < n_tokens:
            n_others = n_tokens - n_named
            assert names[-1] == f"{n_others} other token{'s' * (n_others > 1)}"


def test_a_target_is_drawn_against_the_prediction(three):
    model, X, _ = three
    one = explain(model, X[:1])
    predicted = one.predicted[0]
    other = next(label for label in model.classes_.tolist() if label != predicted)
    ax = one.plot(target=other)
    assert ax.get_xlabel() == f"log-odds of {other} against {predicted}"
    _, widths = bars_of(ax)
    k, j = model.classes_.tolist().index(other), model.classes_.tolist().index(predicted)
    expected = one.contributions[:, k] - one.contributions[:, j]
    assert_allclose(widths.sum(), expected.sum(), atol=1e-10)
    alone = explain(model, X[:1], target=other).plot()
    assert alone.get_xlabel() == f"decision for {other}"
    assert_allclose(bars_of(alone)[1].sum(), one.contributions[:, k].sum(), atol=1e-10)
    refused("target must be None or one of the classes", one.plot, target="purple")


def test_one_of_several_labels_is_drawn():
    X, y = data(2, n_documents=80)
    several = ClsAttentionClassifier().fit(X, np.column_stack([y, 1 - y, y]))
    ax = explain(several, X[:1], target=1).plot()
    decision = several.decision_function(X[:1])[0, 1]
    starts, widths = bars_of(ax)
    assert_allclose(starts[-1] + widths.sum(), decision, atol=1e-10)
    assert ax.get_xlabel() == "log-odds of 1 against not 1"


def test_a_predicted_number_is_called_a_class():
    X, y = data(2, n_documents=80)
    one = explain(ClsAttentionClassifier().fit(X, y), X[:1])
    assert f"predicted class {one.predicted[0]} (" in one.plot().get_title(loc="left")


def test_documents_without_tokens_and_given_axes_are_drawn(pipeline):
    figure, axes = plt.subplots(1, 2)
    for one, ax in zip(explain(pipeline, ["", "a good film"]), axes, strict=True):
        assert one.plot(ax=ax, max_display=2) is ax
    assert plt.get_fignums() == [figure.number]
    assert not tick_labels(axes[0])


def test_several_documents_are_not_drawn(pipeline):
    explanation = explain(pipeline, TEXTS[:4])
    for n in (0, 3):
        refused(rf"got {n}: choose one, .*\[0\]\.plot\(\)", explanation[:n].plot)
    refused("max_display == 0, must be >= 1", explanation[:1].plot, max_display=0)
