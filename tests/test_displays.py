"""The displays: their numbers are right, and what is drawn is those numbers."""

import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from helpers import data, refused
from numpy.testing import assert_allclose, assert_array_equal
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

from sklearn_clsattn.inspection import (
    ModelReport,
    SelectionDisplay,
    TokenImportanceDisplay,
    explain,
)

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


def displays_of(estimator, X, y):
    """Return functions that draw the displays of a classifier."""
    return [
        lambda: TokenImportanceDisplay.from_estimator(estimator, X, y, min_count=1),
        lambda: TokenImportanceDisplay.from_estimator(estimator, X, kind="bars", min_count=1),
        lambda: SelectionDisplay.from_estimator(estimator, X),
        lambda: explain(estimator, X[:1]).plot(),
    ]


def names_in(display):
    """Return the names of the tokens that a display has."""
    tokens = display.tokens
    return set((next(iter(tokens.values())) if isinstance(tokens, dict) else tokens)["token"])


def tick_labels(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def lengths(ax):
    """Return the lengths of the bars drawn last, those with names."""
    return [bar.get_width() for bar in ax.containers[-1]]


# TokenImportanceDisplay


def test_scatter_has_the_models_numbers(any_number):
    model, X, y = any_number
    X, y = X[10:], y[10:]  # classes of different sizes
    n_classes, codes = len(model.classes_), np.searchsorted(model.classes_, y)
    display = TokenImportanceDisplay.from_estimator(model, X, y)
    counts = X.toarray()
    frequent = np.flatnonzero((counts > 0).sum(axis=0) >= 10)
    assert len(frequent) < X.shape[1]
    # A class's posterior at equal class weights, less the mean of the others'.
    rates = np.stack([counts[codes == k].mean(axis=0) for k in range(n_classes)])[:, frequent]
    expected = (n_classes * rates / rates.sum(axis=0) - 1) / (n_classes - 1)
    scores, values = model.attention_scores_[frequent], model.token_values_
    values = (np.stack([-values, values]) if n_classes == 2 else values)[:, frequent]
    drawn = [1] if n_classes == 2 else [0, 1, 2]
    assert len(display.ax_) == 2 * len(drawn)
    assert display.figure_ is display.ax_[0].figure
    one = TokenImportanceDisplay.from_estimator(model, X, y, target=model.classes_[0])
    axes = [*display.ax_, *one.ax_]
    for k, left, right in zip([*drawn, 0], axes[::2], axes[1::2], strict=True):
        tokens = display.tokens[model.classes_[k]]
        assert_array_equal(tokens["token"], [f"x{s}" for s in frequent])
        assert_array_equal(tokens["documents"], (counts > 0).sum(axis=0)[frequent])
        points = np.asarray(left.collections[0].get_offsets())
        assert_allclose(points, np.c_[expected[k], scores], atol=1e-12)
        points = np.asarray(right.collections[0].get_offsets())
        assert_allclose(points, np.c_[expected[k], values[k]], atol=1e-12)


def test_means_and_deviations_in_bins_are_drawn():
    X, y = data(2, n_tokens=200)
    model = ClsAttentionClassifier().fit(X, y)
    ax = TokenImportanceDisplay.from_estimator(model, X, y, min_count=1).ax_[0]
    x, scores = np.asarray(ax.collections[0].get_offsets()).T
    ((line, _, (deviations,)),) = ax.containers
    edges = np.linspace(x.min(), x.max(), 21)
    bins = np.digitize(x, edges[1:-1])
    for at, mean in enumerate(line.get_ydata()):
        inside = scores[bins == at]
        assert line.get_xdata()[at] == pytest.approx(edges[at : at + 2].mean())
        if len(inside) < 5:
            assert np.isnan(mean)
            continue
        ends = deviations.get_segments()[at][:, 1]
        assert_allclose([mean, np.ptp(ends) / 2], [inside.mean(), inside.std()], atol=1e-12)


def test_effects_are_those_of_the_report(any_number):
    model, X, y = any_number
    display = TokenImportanceDisplay.from_estimator(model, X, kind="bars", k=4, min_count=1)
    report = ModelReport.from_estimator(model, X, y, n_top=4)
    for ax, tokens in zip(display.ax_, report.tokens, strict=True):
        assert tick_labels(ax) == [name for name, _ in tokens.important]
        assert_allclose(lengths(ax), [effect for _, effect in tokens.important], rtol=1e-6)
    assert display.ax_[0].get_xlim() == display.ax_[1].get_xlim()


def test_bars_without_documents_are_signed_frequencies(two, three):
    for model, target in ((three[0], "green"), (two[0], 0)):
        display = TokenImportanceDisplay.from_estimator(model, kind="bars", k=3, target=target)
        alpha = model.token_importance_
        alpha = alpha[1] if alpha.ndim == 2 else -alpha
        best = np.argsort(-alpha)[:3]
        assert_array_equal(lengths(display.ax_), alpha[best])
        assert tick_labels(display.ax_) == [f"x{s}" for s in best]


def test_wrong_arguments_are_refused(two):
    model, X, y = two
    for change, message in (
        ({"kind": "pie"}, "kind must be"),
        ({"X": None}, 'kind="scatter" needs documents X and their labels y'),
        ({"y": None}, 'kind="scatter" needs documents X and their labels y'),
        ({"target": "green"}, r"one of the classes \[0, 1\], got 'green'"),
        ({"min_count": 0}, "min_count == 0, must be >= 1"),
        ({"min_count": 1000}, r"at least 1000 documents of X \(the most"),
        ({"y": np.zeros(3)}, "inconsistent numbers of samples"),
        ({"y": np.full(80, 7)}, r"labels of all classes \[0, 1\], got \[7\]"),
        ({"y": np.zeros(80, int)}, r"got \[0\]"),
    ):
        arguments = {"X": X, "y": y, **change}
        refused(message, TokenImportanceDisplay.from_estimator, model, **arguments)
    message = "k must be an instance of int, not float"
    refused(message, TokenImportanceDisplay.from_estimator, model, X, y, k=2.5, error=TypeError)


# SelectionDisplay


def test_selection_is_the_fitted_one_and_attention_that_of_the_model(any_number):
    model, X, _ = any_number
    display = SelectionDisplay.from_estimator(model, X, k=5)
    tokens, selected = display.tokens, model.selected_tokens_
    assert_array_equal(tokens["token"], [f"x{s}" for s in selected])
    assert_array_equal(tokens["selected"], model.selection_counts_)
    assert_array_equal(tokens["documents"], (X.toarray() > 0).sum(axis=0)[selected])
    values = np.atleast_2d(model.token_values_)
    values = np.vstack([-values, values]) if len(values) == 1 else values
    labels = model.classes_[values.argmax(axis=0)][selected]
    assert tokens["label"].tolist() == labels.tolist()
    assert tick_labels(display.ax_[0]) == tokens["token"][:5].tolist()
    attention, counts = model.attention(X).toarray()[:-1], X.toarray()[:-1]  # the last is empty
    assert_allclose(lengths(display.ax_[0]), 100 * model.selection_counts_[:5] / len(counts))
    assert_allclose(display.cls_share, 1 - attention.sum(axis=1).mean())
    counted = sum(bar.get_height() for bar in display.ax_[1].containers[0])
    assert counted == len(counts)


def test_documents_without_known_tokens_are_refused(pipeline):
    draw = SelectionDisplay.from_estimator
    refused("None of the 2 documents contains a token", draw, pipeline, ["zzz", ""])


# Estimators and input of every kind


def test_names_come_from_pipelines_and_data_frames(pipeline):
    steps = [("count", CountVectorizer()), ("keep", SelectKBest(chi2, k=3))]
    model = make_pipeline(Pipeline(steps), "passthrough", ClsAttentionClassifier())
    search = GridSearchCV(model, {}, cv=2).fit(TEXTS, LABELS)
    for display in displays_of(search, TEXTS, LABELS)[:3]:
        assert {"good", "bad"} <= names_in(display())
    X = pd.DataFrame(pipeline[0].transform(TEXTS).toarray()).add_prefix("word ")
    model = ClsAttentionClassifier().fit(X, LABELS)
    for display in displays_of(model, X, LABELS)[:3]:
        assert all(name.startswith("word ") for name in names_in(display()))


# Drawing


def test_axes_that_are_given_are_drawn_on(two):
    model, X, y = two
    figure, axes = plt.subplots(2, 4)
    displays = [
        TokenImportanceDisplay.from_estimator(model, X, y, ax=axes[0, :2]),
        TokenImportanceDisplay.from_estimator(model, kind="bars", ax=list(axes[0, 2:])),
        SelectionDisplay.from_estimator(model, X, ax=axes[1, 2:]),
        TokenImportanceDisplay.from_estimator(model, kind="bars", target=1, ax=axes[0, 0]),
    ]
    assert plt.get_fignums() == [figure.number]
    assert all(display.figure_ is figure for display in displays)
    assert displays[0].ax_[1] is axes[0, 1]
    assert displays[-1].ax_ is axes[0, 0]
    with pytest.raises(ValueError, match="ax must be 2 axes, one for each plot, got 3"):
        TokenImportanceDisplay.from_estimator(model, X, y, ax=axes[0, 1:])


def test_each_display_makes_one_figure_and_needs_matplotlib(two, monkeypatch):
    model, X, y = two
    before = dict(matplotlib.rcParams)
    displays = displays_of(model, X, y)
    for n_figures, display in enumerate(displays, start=1):
        display()
        assert len(plt.get_fignums()) == n_figures
    assert dict(matplotlib.rcParams) == before
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    for display in displays:
        refused(r"sklearn-clsattn\[plot\]", display, error=ImportError)


def test_names_are_no_mathematics():
    X, y = data(2)
    y = np.array([r"$\frac{$", r"$\frac}$"])[y]
    names = [rf"$\frac{{{at}$" for at in range(X.shape[1])]
    X = pd.DataFrame(X.toarray(), columns=names)
    model = ClsAttentionClassifier().fit(X, y)
    for display in displays_of(model, X, y):
        display()
        plt.gcf().canvas.draw()


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
    refused("target must be None or one of the explained classes", one.plot, target="purple")


def test_one_of_several_labels_is_drawn():
    X, y = data(2, n_documents=80)
    several = ClsAttentionClassifier().fit(X, np.column_stack([y, 1 - y, y]))
    ax = explain(several, X[:1], target=1).plot()
    decision = several.decision_function(X[:1])[0, 1]
    starts, widths = bars_of(ax)
    assert_allclose(starts[-1] + widths.sum(), decision, atol=1e-10)
    assert ax.get_xlabel() == "log-odds of 1 against not 1"


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
