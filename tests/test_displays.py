"""The displays: their numbers are right, and what is drawn is those numbers, readably."""

import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from helpers import data, refused
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline

from sklearn_clsattn import ClsAttentionClassifier

with warnings.catch_warnings():  # of matplotlib and pyparsing about each other
    warnings.simplefilter("ignore", DeprecationWarning)
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    plt = pytest.importorskip("matplotlib.pyplot")
    pytest.importorskip("matplotlib.mathtext")

from sklearn_clsattn.inspection import SelectionDisplay, TokenImportanceDisplay, explain
from sklearn_clsattn.inspection.displays import AGAINST, FOR, binned_means
from sklearn_clsattn.inspection.formatting import MINUS, signed
from sklearn_clsattn.inspection.important_tokens import class_tokens, read_documents

TEXTS = ["a good film", "good fun, good plot", "a bad film", "a dull, bad plot"] * 6
LABELS = np.array(["pos", "pos", "neg", "neg"] * 6)
numbers = st.floats(-100, 100).map(lambda number: round(number, 3))


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


def assert_readable(figure):
    """Require all text to be in the figure, and none to lie on its like."""
    figure.canvas.draw()
    titles = []
    for ax in figure.axes:
        titles += [ax._left_title, ax.xaxis.label, ax.yaxis.label]
        for group in (drawn_ticks(ax.yaxis), drawn_ticks(ax.xaxis), ax.texts):
            assert_apart_and_inside(group, figure)
    assert_apart_and_inside(titles, figure)


def drawn_ticks(axis):
    """Return the tick labels that are drawn: those of ticks in view."""
    low, high = sorted(axis.get_view_interval())
    coordinate = 0 if axis.axis_name == "x" else 1
    labels = axis.get_majorticklabels()
    return [label for label in labels if low <= label.get_position()[coordinate] <= high]


def assert_apart_and_inside(texts, figure):
    texts = [text for text in texts if text.get_text() and text.get_visible()]
    # Without the lines that lead from names to points.
    renderer = figure.canvas.get_renderer()
    boxes = [matplotlib.text.Text.get_window_extent(text, renderer) for text in texts]
    for at, (text, box) in enumerate(zip(texts, boxes, strict=True)):
        # Boxes have some air around the letters.
        assert min(box.x0, box.y0) > -2, text
        assert box.x1 < figure.bbox.width + 2, text
        assert box.y1 < figure.bbox.height + 2, text
        for other in boxes[at + 1 :]:
            across = min(box.x1, other.x1) - max(box.x0, other.x0)
            up = min(box.y1, other.y1) - max(box.y0, other.y0)
            assert across <= 0.5 or up <= 2.5, text


# Numbers and names


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=60), st.integers(1, 25))
def test_bins_hold_means_and_deviations_of_their_points(points, n_bins):
    x, y = np.array(points).T
    bins = binned_means(x, y, n_bins, 1)
    edges = np.linspace(x.min(), x.max(), n_bins + 1)
    inside = np.digitize(x, edges[1:-1])  # a point on a border is in the right bin
    for number, row in bins.iterrows():
        of_bin = y[inside == number]
        assert row["centre"] == pytest.approx(edges[number : number + 2].mean())
        if not len(of_bin):
            assert np.isnan(row["mean"])
            continue
        assert row["count"] == len(of_bin)
        assert row["mean"] == pytest.approx(of_bin.mean(), abs=1e-9)
        assert row["deviation"] == pytest.approx(of_bin.std(), abs=1e-9)


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


def test_effect_is_the_one_of_the_comparisons_table(any_number):
    model, X, _ = any_number
    display = TokenImportanceDisplay.from_estimator(model, X, kind="bars", k=4, min_count=1)
    every = class_tokens(read_documents(model, X), n_top=4)
    for ax, tokens in zip(display.ax_, every, strict=True):
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


def test_wrong_estimators_and_documents_are_refused(two, pipeline):
    model, X, y = two
    logistic = make_pipeline(CountVectorizer(), LogisticRegression()).fit(TEXTS, LABELS)
    for arguments, error, message in (
        ((ClsAttentionClassifier(), X, y), NotFittedError, "not fitted"),
        ((logistic, TEXTS, LABELS), TypeError, "with LogisticRegression as its last step"),
        ((model, X[:, :5], y), ValueError, r"(?s)5 features.*20 features"),
        ((pipeline[-1], TEXTS, LABELS), ValueError, "texts"),
    ):
        for draw in displays_of(*arguments)[:3]:
            refused(message, draw, error=error)
    assert not plt.get_fignums()  # nothing was begun


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


def hostile_names(n_tokens):
    """Return names that are long, read as mathematics, or hard to see."""
    kinds = ["pneumonoultramicroscopicsilicovolcanoconiosis {}", "${}$ \\frac{{", "_{}", " {} "]
    return [kinds[at % len(kinds)].format(at) for at in range(n_tokens)]


@pytest.mark.parametrize("n_classes", [2, 5])
def test_text_is_in_the_picture_and_apart(n_classes):
    X, y = data(n_classes, n_documents=80)
    y = np.array([f"topic.{code}.$x$" * 3 for code in y])
    X = pd.DataFrame(X.toarray(), columns=hostile_names(X.shape[1]))
    model = ClsAttentionClassifier().fit(X, y)
    for display in (
        TokenImportanceDisplay.from_estimator(model, X, y, min_count=1, target=model.classes_[-1]),
        TokenImportanceDisplay.from_estimator(model, X, kind="bars", min_count=1, k=6),
        SelectionDisplay.from_estimator(model, X, k=8),
    ):
        assert_readable(display.figure_)
    for shown in explain(model, X[:6]):
        assert_readable(shown.plot().figure)


# Explanation.plot


def bars_of(ax):
    """Return where bars start and how wide they are, from the top, in arrays."""
    (bars,) = ax.containers
    return np.array([(bar.get_x(), bar.get_width()) for bar in bars]).reshape(-1, 2).T


def written_on(ax):
    return " ".join(text.get_text() for text in ax.texts)


@pytest.mark.parametrize("max_display", [1, 2, 4, 10, 1000])
def test_bars_lead_from_the_intercept_to_the_decision(any_number, max_display):
    model, X, _ = any_number
    decisions = model.decision_function(X)
    classes = model.classes_.tolist()
    for at, one in enumerate(explain(model, X[:6])):
        ax = one.plot(max_display=max_display)
        starts, widths = bars_of(ax)
        decision, intercept = decisions[at], model.intercept_[0]
        if len(classes) > 2:  # the predicted class against the next
            best, second = np.argsort(-decisions[at])[:2]
            decision = decisions[at, best] - decisions[at, second]
            intercept = model.intercept_[best] - model.intercept_[second]
            across = f"log-odds of {classes[best]} against {classes[second]}"
            assert ax.get_xlabel() == across
        assert_allclose(intercept + widths.sum(), decision, atol=1e-10)
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
        colors = [bar.get_facecolor()[:3] for bar in ax.containers[0]]
        expected = [FOR if width > 0 else AGAINST for width in widths]
        assert_allclose(colors, [matplotlib.colors.to_rgb(color) for color in expected])
        assert f"decision {signed(decision, MINUS)}" in written_on(ax)
        assert f"intercept {signed(intercept, MINUS)}" in written_on(ax)
        assert f"Document {at}: predicted " in ax.get_title(loc="left")


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
    explanation = explain(pipeline, ["", "a good film"])
    empty, full = (
        one.plot(ax=ax, max_display=2) for one, ax in zip(explanation, axes, strict=True)
    )
    assert (empty, full) == tuple(axes)
    assert plt.get_fignums() == [figure.number]
    assert not tick_labels(empty)
    assert "decision" in written_on(empty)
    assert "intercept" in written_on(empty)


def test_several_documents_are_not_drawn(pipeline):
    explanation = explain(pipeline, TEXTS[:4])
    for n in (0, 3):
        refused(rf"got {n}: choose one, .*\[0\]\.plot\(\)", explanation[:n].plot)
    refused("max_display == 0, must be >= 1", explanation[:1].plot, max_display=0)
