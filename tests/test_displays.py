"""The displays: their numbers are right, and what is drawn is those numbers, readably."""

import pickle
import sys
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers import data
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_clsattn import (
    ClsAttentionClassifier,
    ClsAttentionClassifierCV,
    TokenImportanceTransformer,
)
from sklearn_clsattn.comparison import class_tokens
from sklearn_clsattn.importance import class_totals, posterior_difference

with warnings.catch_warnings():  # of matplotlib and pyparsing about each other
    warnings.simplefilter("ignore", DeprecationWarning)
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    plt = pytest.importorskip("matplotlib.pyplot")
    pytest.importorskip("matplotlib.mathtext")

from sklearn_clsattn.inspection import (
    AttentionDisplay,
    ContextDisplay,
    RegularizationPathDisplay,
    SelectionDisplay,
    TokenImportanceDisplay,
    explain,
)
from sklearn_clsattn.inspection.concentration import concentration
from sklearn_clsattn.inspection.displays._inputs import drawn_model
from sklearn_clsattn.inspection.displays._plotting import shown
from sklearn_clsattn.inspection.displays.importance import _binned as binned_means
from sklearn_clsattn.inspection.displays.importance import _spread as spread
from sklearn_clsattn.paper import AttentionNetworkClassifier
from sklearn_clsattn.text import ContextVectorizer

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


@pytest.fixture(scope="module")
def pipeline():
    return make_pipeline(CountVectorizer(), ClsAttentionClassifier()).fit(TEXTS, LABELS)


@pytest.fixture(scope="module")
def mlp():
    X, y = data(2)
    model = AttentionNetworkClassifier(
        embedding_dim=4, mlp=True, max_iter=2, early_stopping=False, random_state=0
    )
    with pytest.warns(ConvergenceWarning):
        return model.fit(X, y), X, y


def tick_labels(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def lengths(ax):
    """Return the lengths of the bars drawn last, those with names."""
    return [bar.get_width() for bar in ax.containers[-1]]


def drawn_ticks(axis):
    """Return the tick labels that are drawn: those of ticks in view."""
    low, high = sorted(axis.get_view_interval())
    coordinate = 0 if axis.axis_name == "x" else 1
    labels = axis.get_majorticklabels()
    return [label for label in labels if low <= label.get_position()[coordinate] <= high]


def assert_readable(figure):
    """Require all text to be in the figure, and none to lie on its like."""
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    titles = []
    for ax in figure.axes:
        titles += [ax._left_title, ax.xaxis.label, ax.yaxis.label]
        for group in (drawn_ticks(ax.yaxis), drawn_ticks(ax.xaxis), ax.texts):
            assert_apart_and_inside(group, figure, renderer)
    assert_apart_and_inside(titles, figure, renderer)


def assert_apart_and_inside(texts, figure, renderer):
    texts = [text for text in texts if text.get_text() and text.get_visible()]
    # Without the lines that lead from names to points.
    boxes = [matplotlib.text.Text.get_window_extent(text, renderer) for text in texts]
    for place, (text, box) in enumerate(zip(texts, boxes, strict=True)):
        # Boxes have some air around the letters.
        assert box.x0 > -2, text
        assert box.x1 < figure.bbox.width + 2, text
        assert box.y0 > -2, text
        assert box.y1 < figure.bbox.height + 2, text
        for other in boxes[place + 1 :]:
            across = min(box.x1, other.x1) - max(box.x0, other.x0)
            up = min(box.y1, other.y1) - max(box.y0, other.y0)
            assert across <= 0.5 or up <= 2.5, text


# ---- statistics ---------------------------------------------------------------------------------


def test_bins_hold_means_and_deviations_of_their_points():
    x, y = np.array([[0.0, 0.1, 0.5, 0.9, 1.0], [1.0, 3.0, 5.0, 2.0, 4.0]])
    bins = binned_means(x, y, 2, min_points=2)
    assert_allclose(bins["centre"], [0.25, 0.75])
    assert_array_equal(bins["count"], [2, 3])  # a point on the border is in the right bin
    assert_allclose(bins["mean"], [2.0, 11 / 3])
    assert_allclose(bins["deviation"], [1.0, np.std([5, 2, 4])])


def test_small_bins_have_no_means_and_there_may_be_none():
    x = np.array([0.0, 0, 0, 1])
    assert_array_equal(binned_means(x, x, 2, min_points=3)["count"], [3, np.nan])
    assert binned_means(x, x, 20)["mean"].isna().all()
    for step in (0.0, np.finfo(float).eps):  # all equal, or equal up to rounding
        x = 2.0 + step * np.arange(5)
        assert_allclose(binned_means(x, x, 20, min_points=1)["mean"].dropna(), 2.0)


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=60), st.integers(1, 25))
def test_bins_are_those_of_the_benchmarks(points, n_bins):
    shapes = benchmark_shapes()
    x, y = np.array(points).T
    expected = shapes.binned(x, y, n_bins, 1)
    bins = binned_means(x, y, n_bins, 1).dropna()
    assert_array_equal(bins["centre"], expected.centres)
    assert_array_equal(bins["count"], expected.counts)
    assert_allclose(bins["mean"], expected.means, atol=1e-12)
    assert_allclose(bins["deviation"], expected.deviations, atol=1e-12)


def benchmark_shapes():
    root = str(Path(__file__).parents[1])
    if root not in sys.path:
        sys.path.insert(0, root)
    return pytest.importorskip("benchmarks.paper.shapes")


@given(st.lists(numbers, min_size=1, max_size=20), st.floats(0.01, 30))
def test_names_are_spread_in_order_and_within_the_range(wanted, gap):
    heights = spread(wanted, gap, -120.0, 120.0)
    assert heights.min() >= -120 - 1e-9
    assert heights.max() <= 120 + 1e-9
    if len(heights) > 1:
        assert np.diff(heights).min() >= min(gap, 240 / (len(heights) - 1)) - 1e-6


def test_names_that_have_room_stay_where_they_are():
    assert_allclose(spread([5.0, 1.0, 3.0], 1.0, 0.0, 10.0), [1.0, 3.0, 5.0])
    assert_allclose(spread([5.0, 5.0], 2.0, 0.0, 10.0), [4.0, 6.0])


@given(
    st.lists(
        st.lists(st.floats(0, 1).map(lambda w: round(w, 3)), min_size=4, max_size=4), min_size=1
    )
)
def test_entropy_and_top_shares_are_those_of_each_row(rows):
    entropy, top = concentration(sp.csr_array(np.array(rows)), 3)
    for row, one, shares in zip(rows, entropy, top, strict=True):
        row = np.array(row)
        if not row.any():
            assert np.isnan(one)
            assert np.isnan(shares).all()
            continue
        q = np.sort(row / row.sum())[::-1]
        assert_allclose(one, -np.sum(q[q > 0] * np.log(q[q > 0])), atol=1e-12)
        assert_allclose(shares, np.cumsum(q)[:3])


def test_shown_names():
    assert shown("good") == "good"
    assert shown(" a ") == "␣a␣"
    assert shown("a b\tc") == "a b\\tc"
    assert shown("") == "(empty)"
    assert shown("  ") == "␣␣"
    long = shown("unquestionably extraordinary masterpiece", 20)
    assert len(long) == 20
    assert long.startswith("unquest")
    assert long.endswith("piece")


# ---- TokenImportanceDisplay ---------------------------------------------------------------------


def test_scatter_against_alpha(two):
    model, X, y = two
    display = TokenImportanceDisplay.from_estimator(model, X, y, x="signed_frequency", n_bins=5)
    kept = display.to_frame()["token"].astype(int)
    assert_allclose(display.to_frame()["signed_frequency"], model.token_importance_[kept])
    assert [ax.get_xlabel() for ax in display.ax_] == 2 * [
        f"signed frequency alpha for class {model.classes_[1]}"
    ]
    points = display.ax_[0].collections[0].get_offsets()
    assert_allclose(
        points, np.column_stack([model.token_importance_, model.attention_scores_])[kept]
    )
    alone = TokenImportanceDisplay(
        [0.0, 1.0], [1.0, -1.0], classes=[0, 1], posterior_difference=[0.5, -0.5]
    )
    with pytest.raises(ValueError, match="needs signed_frequency"):
        alone.plot(x="signed_frequency")
    with pytest.raises(ValueError, match="x must be one of"):
        alone.plot(x="alpha")


def test_full_bins_have_equally_many_points():
    x = np.arange(40.0) ** 3
    bins = binned_means(x, x, 4, full=True)
    assert_array_equal(bins["count"], [10, 10, 10, 10])


def test_scatter_has_the_models_numbers(two):
    model, X, y = two
    display = TokenImportanceDisplay.from_estimator(model, X, y)
    frame = display.to_frame()
    assert len(display.ax_) == 2
    assert display.figure_ is display.ax_[0].figure
    documents = (X.toarray() > 0).sum(axis=0)
    kept = np.flatnonzero(documents >= 10)
    assert len(kept) == X.shape[1] - 1  # the last token is in no document
    assert_array_equal(frame["token"], kept.astype(str))
    assert_array_equal(frame["documents"], documents[kept])
    assert_array_equal(frame["attention_score"], model.attention_scores_[kept])
    assert_array_equal(frame["token_value"], model.token_values_[kept])
    assert set(frame["class"]) == {1}
    # Classes are of one size here.
    expected = posterior_difference(class_totals(X, y, 2))
    assert_allclose(frame["posterior_difference"], expected[kept], atol=1e-12)
    for ax, column in zip(display.ax_, ["attention_score", "token_value"], strict=True):
        points = np.asarray(ax.collections[0].get_offsets())
        assert_allclose(points, frame[["posterior_difference", column]])


def test_posteriors_are_of_classes_of_equal_weight(two):
    model, X, y = two
    rows = np.r_[np.flatnonzero(y == 0)[:13], np.flatnonzero(y == 1)]
    display = TokenImportanceDisplay.from_estimator(model, X[rows], y[rows], min_count=1)
    kept = display.to_frame()["token"].astype(int)
    shapes = benchmark_shapes()
    expected = shapes.token_posterior_difference(X[rows], y[rows])
    assert_allclose(display.posterior_difference[1], expected[kept])
    assert abs(display.posterior_difference[1].mean()) < 0.2  # not the prior's 0.5


def test_target_turns_two_classes_round(two):
    model, X, y = two
    display = TokenImportanceDisplay.from_estimator(model, X, y, target=0)
    one, other = display.to_frame(0), display.to_frame(1)
    assert set(one["class"]) == {0}
    assert_array_equal(one["attention_score"], other["attention_score"])
    for name in ("token_value", "posterior_difference", "importance"):
        assert_array_equal(one[name], -other[name])
    points = np.asarray(display.ax_[1].collections[0].get_offsets())
    assert_array_equal(points[:, 1], one["token_value"])


def test_every_class_of_several_has_its_row(three):
    model, X, y = three
    display = TokenImportanceDisplay.from_estimator(model, X, y)
    assert len(display.ax_) == 6
    assert [ax.get_ylabel() for ax in display.ax_[1::2]] == [
        f"token value for {name}" for name in ("blue", "green", "red")
    ]
    chosen = TokenImportanceDisplay.from_estimator(model, X, y, target=["red"])
    assert len(chosen.ax_) == 2
    points = np.asarray(chosen.ax_[1].collections[0].get_offsets())
    assert_array_equal(points[:, 1], chosen.to_frame("red")["token_value"])
    assert len(display.to_frame()) == 3 * len(chosen.to_frame("red"))
    # The definition: a class's posterior less the mean of the others'.
    counts = class_totals(X, np.searchsorted(model.classes_, y), 3)
    sizes = np.unique(y, return_counts=True)[1]
    posterior = counts[:, :-1] / sizes[:, None]
    posterior /= posterior.sum(axis=0)
    expected = posterior[2] - posterior[:2].mean(axis=0)
    assert_allclose(chosen.to_frame("red")["posterior_difference"], expected, atol=1e-12)


def test_bins_are_drawn_where_there_are_tokens_enough():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 400)
    display = TokenImportanceDisplay.from_arrays(
        x**2, x, classes=[0, 1], posterior_difference=x, n_bins=10
    )
    bins = binned_means(x, x**2, 10)
    line = display.ax_[0].containers[0].lines[0]
    assert_array_equal(line.get_xdata(), bins["centre"])
    assert_array_equal(line.get_ydata(), bins["mean"])
    assert "10 bins" in display.ax_[1].get_legend().get_texts()[0].get_text()


def test_means_are_joined_only_where_bins_are_neighbours():
    x = np.repeat([0.0, 0.1, 0.9, 1.0], 5)
    display = TokenImportanceDisplay.from_arrays(
        x, x, classes=[0, 1], posterior_difference=x, n_bins=10
    )
    heights = display.ax_[0].containers[0].lines[0].get_ydata()
    # 0.9 and 1 are in one bin. Lines are interrupted at NaN.
    assert_allclose(heights, [0, 0.1, *[np.nan] * 7, 0.95], atol=1e-15)


@pytest.mark.parametrize("fixture", ["two", "three"])
def test_effect_is_the_one_of_the_comparisons_table(fixture, request):
    model, X, _ = request.getfixturevalue(fixture)
    display = TokenImportanceDisplay.from_estimator(model, X, kind="bars", k=4, min_count=1)
    names = [str(place) for place in range(X.shape[1])]
    expected = class_tokens(model, X, names, n_top=4)
    assert len(display.ax_) == len(model.classes_)
    for ax, tokens in zip(display.ax_, expected, strict=True):
        assert tick_labels(ax) == [name for name, _ in tokens.important]
        assert_allclose(lengths(ax), [effect for _, effect in tokens.important], rtol=1e-6)


@pytest.mark.parametrize(
    ("importance", "attribute"),
    [("signed_frequency", "token_importance_"), ("value", "token_values_")],
)
def test_bars_of_fitted_attributes_need_no_documents(three, importance, attribute):
    model, _, _ = three
    display = TokenImportanceDisplay.from_estimator(
        model, kind="bars", importance=importance, k=3, target="green"
    )
    numbers = getattr(model, attribute)[1]
    best = np.argsort(-numbers)[:3]
    assert_array_equal(lengths(display.ax_), numbers[best])
    assert tick_labels(display.ax_) == best.astype(str).tolist()
    assert display.documents is None


def test_bars_for_the_first_of_two_classes_are_those_against_the_second(pipeline):
    display = TokenImportanceDisplay.from_estimator(pipeline, kind="bars", k=2)
    assert [tick_labels(ax)[0] for ax in display.ax_] == ["bad", "good"]
    assert display.importance_name == "signed_frequency"
    assert min(lengths(display.ax_[0])) > 0
    assert display.ax_[0].get_xlim() == display.ax_[1].get_xlim()


def test_a_class_without_tokens_says_so():
    display = TokenImportanceDisplay.from_arrays(
        [0.0, 1.0], [1.0, 2.0], classes=["a", "b"], importance=[1.0, 2.0], kind="bars"
    )
    assert [text.get_text() for text in display.ax_[0].texts] == ["no token is evidence for it"]
    assert tick_labels(display.ax_[1]) == ["1", "0"]


def test_one_display_draws_both_kinds(two):
    model, X, y = two
    display = TokenImportanceDisplay.from_estimator(model, X, y)
    assert display.plot(kind="bars", k=2) is display
    assert len(tick_labels(display.ax_[1])) == 2
    assert isinstance(pickle.loads(pickle.dumps(display.to_frame())), pd.DataFrame)


def test_effect_of_two_layers_is_that_of_contributions():
    X, y = data(2, n_documents=40)
    model = AttentionNetworkClassifier(
        embedding_dim=4, n_layers=2, max_iter=2, early_stopping=False, random_state=0
    )
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    display = TokenImportanceDisplay.from_estimator(model, X, y, min_count=1)
    terms = model.contributions(X).toarray()[:, :-1]
    expected = np.sign(terms.sum(axis=0)) * terms.std(axis=0)
    assert_allclose(display.importance[1], expected, atol=1e-12)


def test_an_mlp_has_no_effects(mlp):
    model, X, y = mlp
    display = TokenImportanceDisplay.from_estimator(model, X, y, min_count=1)
    assert display.importance_name == "signed_frequency"
    with pytest.raises(ValueError, match="no sum over tokens"):
        TokenImportanceDisplay.from_estimator(model, X, y, min_count=1, importance="effect")


# ---- SelectionDisplay ---------------------------------------------------------------------------


@pytest.mark.parametrize("fixture", ["two", "three"])
def test_selection_counts_are_the_fitted_ones(fixture, request):
    model, X, _ = request.getfixturevalue(fixture)
    display = SelectionDisplay.from_estimator(model, X, k=5)
    frame = display.to_frame()
    assert_array_equal(frame["token"], model.selected_tokens_.astype(str))
    assert_array_equal(frame["selected"], model.selection_counts_)
    in_documents = (X.toarray() > 0).sum(axis=0)[model.selected_tokens_]
    assert_array_equal(frame["documents"], in_documents)
    assert_allclose(frame["share_of_its_documents"], model.selection_counts_ / in_documents)
    values = np.atleast_2d(model.token_values_)
    values = np.vstack([-values, values]) if len(values) == 1 else values
    speaks = model.classes_[values.argmax(axis=0)][model.selected_tokens_]
    assert frame["speaks_for"].tolist() == speaks.tolist()
    assert tick_labels(display.ax_[0]) == frame["token"][:5].tolist()
    filled = (X.toarray() > 0).any(axis=1).sum()
    assert_allclose(lengths(display.ax_[0]), 100 * model.selection_counts_[:5] / filled)


def test_concentration_is_that_of_attention_and_of_counts(two):
    model, X, _ = two
    display = SelectionDisplay.from_estimator(model, X, n_top=3)
    frame = display.to_frame("documents")
    attention, counts = model.attention(X).toarray(), X.toarray()
    assert list(frame.columns) == [
        *("entropy", "top_1_share", "top_2_share", "top_3_share"),
        *("even_entropy", "even_top_1_share", "even_top_2_share", "even_top_3_share"),
        "cls_share",
    ]
    assert_allclose(frame["cls_share"], 1 - attention.sum(axis=1))
    assert frame["entropy"].isna().tolist() == [False] * (len(frame) - 1) + [True]
    row = attention[0] / attention[0].sum()
    assert_allclose(frame["top_1_share"][0], row.max())
    assert_allclose(frame["even_top_1_share"][0], counts[0].max() / counts[0].sum())
    line = display.ax_[2].lines[0]
    assert_allclose(line.get_ydata(), 100 * frame.filter(regex="^top").mean())
    counted = sum(bar.get_height() for bar in display.ax_[1].containers[0])
    assert counted == len(frame) - 1  # the empty document has no entropy


def test_selection_without_counts_or_classes():
    display = SelectionDisplay.from_arrays(np.eye(3) * 0.5, np.eye(3) > 0, k=2)
    assert display.even_entropy is None
    assert list(display.to_frame().columns) == [
        *("token", "selected", "documents", "share_of_its_documents")
    ]
    assert_allclose(display.to_frame("documents")["entropy"], 0, atol=1e-15)
    assert len(tick_labels(display.ax_[0])) == 2


def test_an_mlps_values_do_not_say_what_tokens_speak_for(mlp):
    model, X, _ = mlp
    assert "speaks_for" not in SelectionDisplay.from_estimator(model, X).to_frame()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0.5, 0.6]], [[True, False]]), "at most 1"),
        (([[0.5, -0.1]], [[True, False]]), "attention must be finite and not negative"),
        (([[0.5, np.nan]], [[True, False]]), "attention must be finite and not negative"),
        (([[0.5, 0.1]], [[True, False, True]]), r"selected must have shape \(1, 2\)"),
        (([[0.5, 0.1]], [[True, False]], [[1, 1], [1, 1]]), r"counts must have shape \(1, 2\)"),
        (([[0.0, 0.0]], [[False, False]]), "None of the 1 documents has a token"),
    ],
)
def test_wrong_selections_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        SelectionDisplay.from_arrays(*arguments)


def test_documents_without_tokens_alone_are_refused(pipeline):
    with pytest.raises(ValueError, match="None of the 2 documents has a token"):
        SelectionDisplay.from_estimator(pipeline, ["zzz", ""])
    with pytest.raises(ValueError, match='of must be "tokens" or "documents"'):
        SelectionDisplay.from_estimator(pipeline, TEXTS).to_frame("words")


# ---- AttentionDisplay ---------------------------------------------------------------------------


@pytest.mark.parametrize("target", [0, 1])
def test_contributions_add_up_to_the_decision_of_two_classes(two, target):
    model, X, _ = two
    display = AttentionDisplay.from_estimator(model, X[[3]], target=target)
    sign = 1 if target else -1
    assert_allclose(display.decision, sign * model.decision_function(X[[3]])[0], rtol=1e-12)
    assert_allclose(display.probability, model.predict_proba(X[[3]])[0, target])
    assert_allclose(display.to_frame()["contribution"].sum(), display.decision, rtol=1e-12)
    assert_allclose(display.to_frame()["attention"].sum(), 1, rtol=1e-12)


def test_contributions_of_several_classes(three):
    model, X, _ = three
    decision = model.decision_function(X[[3]])[0]
    for place, label in enumerate(model.classes_):
        display = AttentionDisplay.from_estimator(model, X[[3]], target=label)
        assert_allclose(display.decision, decision[place], rtol=1e-12)
    default = AttentionDisplay.from_estimator(model, X[[3]])
    assert default.target == model.predict(X[[3]])[0]
    assert default.target in default.ax_[1].get_xlabel()


def test_tokens_that_are_not_drawn_alone_are_drawn_together(two):
    model, X, _ = two
    full = AttentionDisplay.from_estimator(model, X[[3]], top=50).to_frame()
    display = AttentionDisplay.from_estimator(model, X[[3]], top=3)
    n_tokens = len(full) - 2
    more = n_tokens - 3
    assert tick_labels(display.ax_[0])[-3:] == [f"{more} more tokens", "<cls>", "intercept"]
    drawn = lengths(display.ax_[1])
    assert_allclose(drawn[:3], full["contribution"][:3])
    assert_allclose(drawn[3], full["contribution"][3:n_tokens].sum())
    assert_allclose(sum(drawn), display.decision, rtol=1e-12)
    assert_allclose(sum(lengths(display.ax_[0])), 100)
    assert np.all(np.diff(np.abs(full["contribution"][:n_tokens])) <= 0)
    # A row for a single token left would take the place of the token.
    AttentionDisplay.from_estimator(model, X[[3]], top=n_tokens - 1)
    display.plot(top=n_tokens - 1)
    assert len(tick_labels(display.ax_[0])) == n_tokens + 2


def test_documents_as_texts_and_as_counts(pipeline):
    display = AttentionDisplay.from_estimator(pipeline, "good, good film")
    assert tick_labels(display.ax_[0]) == ["good ×2", "film", "<cls>", "intercept"]
    frame = display.to_frame()
    assert_array_equal(frame["count"], [2, 1, np.nan, np.nan])
    assert display.target == "pos"
    row = pipeline[0].transform(["good, good film"])
    bare = pipeline[-1]
    for document in (row, row.toarray(), row.toarray()[0], row.toarray()[0].tolist()):
        other = AttentionDisplay.from_estimator(bare, document).to_frame()
        assert_array_equal(other["attention"], frame["attention"])
        assert_array_equal(other["contribution"], frame["contribution"])
        plt.close("all")
    one = AttentionDisplay.from_estimator(pipeline, ["good, good film"]).to_frame()
    pd.testing.assert_frame_equal(one, frame)


@pytest.mark.parametrize("document", ["", "zzz"])
def test_an_empty_document_has_its_answer(pipeline, document):
    display = AttentionDisplay.from_estimator(pipeline, document)
    assert display.to_frame()["token"].tolist() == ["<cls>", "intercept"]
    assert display.cls_share == 1
    assert_allclose(display.decision, pipeline[-1].intercept_[0])
    assert "no known token" in display.ax_[0].get_title(loc="left")


def test_a_model_without_cls_has_no_row_for_it():
    X, y = data(2)
    model = ClsAttentionClassifier(attend_cls=False).fit(X, y)
    display = AttentionDisplay.from_estimator(model, X[[0]])
    assert "<cls>" not in display.to_frame()["token"].tolist()
    assert_allclose(display.to_frame()["attention"].sum(), 1)
    empty = AttentionDisplay.from_estimator(model, X[[-1]])
    assert empty.to_frame()["token"].tolist() == ["intercept"]


def test_an_mlp_has_attention_alone(mlp):
    model, X, _ = mlp
    display = AttentionDisplay.from_estimator(model, X[[0]])
    assert display.contributions is None
    assert display.decision is None
    assert isinstance(display.ax_, matplotlib.axes.Axes)
    assert list(display.to_frame().columns) == ["token", "count", "attention"]
    assert_allclose(display.to_frame()["attention"].sum(), 1, rtol=1e-6)
    empty = AttentionDisplay.from_estimator(model, X[[-1]])
    assert len(empty.to_frame()) <= 1


def test_stored_zeros_are_no_tokens(two):
    model, X, _ = two
    row = X[[3]].copy()
    row.data[0] = 0
    tokens = AttentionDisplay.from_estimator(model, row).to_frame()["token"].tolist()
    assert str(row.indices[0]) not in tokens


def test_contributions_have_decimals_that_tell_them_apart():
    display = AttentionDisplay.from_arrays([0.1, 0.2], [0.03, -0.004])
    drawn = [text.get_text() for text in display.ax_[1].texts]
    assert drawn == ["+0.030", "−0.004", "0"]


def test_no_tick_is_above_the_whole_attention(pipeline):
    display = AttentionDisplay.from_estimator(pipeline, "zzz")
    assert max(display.ax_[0].get_xticks()) == 100
    assert display.ax_[0].get_xlim()[1] > 100  # room for what is written beside the bar


def test_attention_of_a_class_of_unknown_probability():
    display = AttentionDisplay.from_arrays([0.4], target="pos")
    assert display.ax_.get_title(loc="left") == "Attention"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"attention": [0.9, 0.2]}, "at most 1 in all"),
        ({"attention": [0.9], "cls_share": 0.2}, "at most 1 in all"),
        ({"attention": [-0.1]}, "not negative"),
        ({"attention": [np.nan]}, "attention must be finite"),
        (
            {"attention": [0.5], "contributions": [1.0, 2.0]},
            r"contributions must have shape \(1,\)",
        ),
        (
            {"attention": [0.5], "token_names": ["a", "b"]},
            "token_names must have 1 entries, one a token, got 2",
        ),
        ({"attention": [0.5], "top": 0}, "top == 0, must be >= 1"),
    ],
)
def test_wrong_documents_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        AttentionDisplay.from_arrays(**arguments)


def test_several_documents_are_refused(pipeline, two):
    with pytest.raises(ValueError, match="Expected one document, got 2"):
        AttentionDisplay.from_estimator(pipeline, ["good", "bad"])
    with pytest.raises(ValueError, match="Expected one document, got 80"):
        AttentionDisplay.from_estimator(two[0], two[1])
    with pytest.raises(ValueError, match="target must be one class"):
        AttentionDisplay.from_estimator(pipeline, "good", target=["pos", "neg"])


# ---- scores by C --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "classifier",
    [ClsAttentionClassifierCV(Cs=[0.1, 1, 10], cv=3), ClsAttentionClassifier(C="auto")],
    ids=["cv", "auto"],
)
def test_scores_of_every_fold_are_drawn(classifier):
    model = make_pipeline(CountVectorizer(), classifier)
    texts = [f"{text} of {at}0 and {at}1" for at, text in enumerate(TEXTS)]
    fitted = model.fit(texts, LABELS)[-1]
    display = RegularizationPathDisplay.from_estimator(model)
    *folds, mean, chosen = display.ax_.lines
    assert_array_equal([line.get_ydata() for line in folds], fitted.scores_)
    assert_allclose(mean.get_ydata(), fitted.scores_.mean(axis=0))
    assert_array_equal(mean.get_xdata(), fitted.Cs_)
    assert chosen.get_xdata() == [fitted.C_, fitted.C_]
    assert display.ax_.get_xscale() == "log"
    assert display.ax_.get_ylabel() == "minus mean log loss"
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == [
        f"{len(fitted.scores_)} folds",
        "their mean",
        f"chosen: C = {fitted.C_:.3g}",
    ]
    assert_readable(display.figure_)
    frame = display.to_frame()
    assert_array_equal(frame["C"], fitted.Cs_)
    assert_array_equal(frame["fold 2"], fitted.scores_[1])
    with plt.style.context("dark_background"):
        _, ax = plt.subplots()
        assert display.plot(ax).ax_ is ax


@pytest.mark.parametrize("Cs", [[1e-6, 1e6], [3.0], [2.0, 2.5]])
def test_every_range_of_C_has_a_tick(Cs):
    display = RegularizationPathDisplay.from_arrays(Cs, np.ones((1, len(Cs))), C=2.2)
    assert_readable(display.figure_)
    assert 1 <= len(drawn_ticks(display.ax_.xaxis)) <= 8
    assert len(display.ax_.lines) == 2  # one fold is its own mean


def test_the_scores_name_is_shown(two):
    _, X, y = two
    model = ClsAttentionClassifierCV(Cs=2, cv=2, scoring="f1").fit(X, y)
    assert RegularizationPathDisplay.from_estimator(model).ax_.get_ylabel() == "f1"
    model = ClsAttentionClassifierCV(Cs=2, cv=2, scoring=lambda *_: 0.0).fit(X, y)
    assert RegularizationPathDisplay.from_estimator(model).ax_.get_ylabel() == "score"


def test_what_chose_no_C_is_refused(two):
    given = ClsAttentionClassifier(C=1).fit(*two[1:])
    few = ClsAttentionClassifier(C="auto").fit([[1, 0], [0, 1]], [0, 1])
    for model in (given, few):
        with pytest.raises(ValueError, match="did not choose C by held-out documents"):
            RegularizationPathDisplay.from_estimator(model)
    with pytest.raises(NotFittedError):
        RegularizationPathDisplay.from_estimator(ClsAttentionClassifierCV())
    with pytest.raises(TypeError, match="expected a fitted ClsAttentionClassifier"):
        RegularizationPathDisplay.from_estimator(LogisticRegression())


@pytest.mark.parametrize(
    ("Cs", "scores", "C", "message"),
    [
        ([1, 2], [[1, 2, 3]], None, r"\(n_folds, 2\), .* got \(1, 3\)"),
        ([], [[]], None, "one or more Cs"),
        ([2, 1], [[1, 2]], None, "positive and ascending"),
        ([0, 1], [[1, 2]], None, "positive and ascending"),
        ([1, 2], [[1, np.nan]], None, "scores must be finite"),
        ([1, 2], [[1, 2]], -1.0, "C must be positive"),
    ],
)
def test_wrong_paths_are_refused(Cs, scores, C, message):
    with pytest.raises(ValueError, match=message):
        RegularizationPathDisplay(Cs, scores, C=C)


# ---- estimators, names and input ----------------------------------------------------------------


def displays_of(estimator, X, y, one):
    return [
        lambda: TokenImportanceDisplay.from_estimator(estimator, X, y, min_count=1),
        lambda: TokenImportanceDisplay.from_estimator(estimator, X, kind="bars", min_count=1),
        lambda: SelectionDisplay.from_estimator(estimator, X),
        lambda: AttentionDisplay.from_estimator(estimator, one),
    ]


@pytest.mark.parametrize(
    "steps",
    [
        [CountVectorizer()],
        [TfidfVectorizer(ngram_range=(1, 2))],
        [CountVectorizer(), SelectKBest(chi2, k=3)],
        [CountVectorizer(), TokenImportanceTransformer(k=3, scale=False)],
        [Pipeline([("count", CountVectorizer()), ("keep", SelectKBest(chi2, k=3))])],
        [HashingVectorizer(n_features=16, alternate_sign=False, norm=None)],
    ],
    ids=["counts", "tfidf", "selector", "importance", "nested", "hashing"],
)
def test_pipelines_of_all_kinds(steps):
    model = make_pipeline(*steps, ClsAttentionClassifier()).fit(TEXTS, LABELS)
    for display in displays_of(model, TEXTS, LABELS, TEXTS[0]):
        frame = display().to_frame()
        plt.close("all")
        if isinstance(steps[0], HashingVectorizer):
            assert all(
                name.isdigit() for name in frame["token"] if name not in ("<cls>", "intercept")
            )
        elif "importance" in frame:
            assert {"good", "bad"} <= set(frame["token"])


def test_a_classifier_at_the_end_of_a_nested_pipeline(pipeline):
    outer = Pipeline([("nothing", "passthrough"), ("all", pipeline)])
    assert drawn_model(outer).token_names.tolist() == drawn_model(pipeline).token_names.tolist()
    display = AttentionDisplay.from_estimator(outer, "good")
    assert display.to_frame()["token"].tolist() == ["good", "<cls>", "intercept"]


def test_names_from_a_column_of_a_data_frame():
    frame = pd.DataFrame({"text": TEXTS, "other": 1})
    columns = ColumnTransformer([("words", CountVectorizer(), "text")])
    model = make_pipeline(columns, ClsAttentionClassifier()).fit(frame, LABELS)
    display = AttentionDisplay.from_estimator(model, frame.iloc[[0]])
    explained = explain(model, frame.iloc[[0]]).tokens
    assert set(display.to_frame()["token"]) - {"<cls>", "intercept"} == set(explained)
    assert "good" in explained


def test_names_behind_steps_that_change_texts_or_search():
    shouted = [text.upper() for text in TEXTS]
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    steps = make_pipeline(lower, CountVectorizer(lowercase=False), ClsAttentionClassifier())
    search = GridSearchCV(steps, {"clsattentionclassifier__C": [1.0]}, cv=2).fit(shouted, LABELS)
    for model in (search, search.best_estimator_):
        display = TokenImportanceDisplay.from_estimator(model, shouted, LABELS, min_count=1)
        assert {"good", "bad"} <= set(display.to_frame()["token"])


def test_columns_that_mix_tokens_are_drawn_by_their_own_names():
    mixing = NMF(2, init="nndsvda", random_state=0)
    model = make_pipeline(CountVectorizer(), mixing, ClsAttentionClassifier()).fit(TEXTS, LABELS)
    display = AttentionDisplay.from_estimator(model, "good")
    assert set(display.to_frame()["token"]) <= {"nmf0", "nmf1", "<cls>", "intercept"}
    hashed = make_pipeline(
        FeatureUnion([("hashed", HashingVectorizer(n_features=4, alternate_sign=False))]),
        ClsAttentionClassifier(),
    ).fit(TEXTS, LABELS)
    assert drawn_model(hashed).token_names.tolist() == ["0", "1", "2", "3"]
    names = drawn_model(GridSearchCV(hashed, {}, cv=2).fit(TEXTS, LABELS)).token_names
    assert names.tolist() == ["0", "1", "2", "3"]


def test_a_classifier_fitted_with_names_has_them():
    X, y = data(2)
    frame = pd.DataFrame(X.toarray(), columns=[f"w{place}" for place in range(X.shape[1])])
    model = ClsAttentionClassifier().fit(frame, y)
    for display in displays_of(model, frame, y, frame.iloc[[0]]):
        tokens = display().to_frame()["token"]
        assert all(name[0] == "w" for name in tokens if name not in ("<cls>", "intercept"))


def test_input_of_any_form_says_the_same_and_is_not_changed(two):
    model, X, y = two
    expected = [display().to_frame() for display in displays_of(model, X, y, X[[3]])]
    plt.close("all")
    # Every entry in two parts, columns in descending order.
    bounds = list(pairwise(X.indptr))
    rows = [np.repeat(X.indices[first:last][::-1], 2) for first, last in bounds]
    parts = [np.repeat(X.data[first:last][::-1] / 2, 2) for first, last in bounds]
    doubled = sp.csr_matrix(
        (np.concatenate(parts), np.concatenate(rows), 2 * X.indptr), shape=X.shape
    )
    before = doubled.data.copy(), doubled.indices.copy()
    for form in (doubled, sp.csr_array(X), X.tocsc(), X.toarray()):
        one = form[[3]] if sp.issparse(form) or isinstance(form, np.ndarray) else form
        for display, frame in zip(displays_of(model, form, y, one), expected, strict=True):
            pd.testing.assert_frame_equal(display().to_frame(), frame, rtol=1e-9)
        plt.close("all")
    assert_array_equal(doubled.data, before[0])
    assert_array_equal(doubled.indices, before[1])


@pytest.mark.parametrize("place", range(4))
def test_wrong_estimators_and_widths_are_refused(two, pipeline, place):
    model, X, y = two
    with pytest.raises(NotFittedError):
        displays_of(ClsAttentionClassifier(), X, y, X[[0]])[place]()
    unfitted = make_pipeline(CountVectorizer(), ClsAttentionClassifier())
    with pytest.raises(NotFittedError):
        displays_of(unfitted, TEXTS, LABELS, "good")[place]()
    other = make_pipeline(CountVectorizer(), LogisticRegression()).fit(TEXTS, LABELS)
    with pytest.raises(TypeError, match="got Pipeline with LogisticRegression as its last step"):
        displays_of(other, TEXTS, LABELS, "good")[place]()
    with pytest.raises(TypeError, match="got LogisticRegression"):
        displays_of(other[-1], X, y, X[[0]])[place]()
    with pytest.raises(ValueError, match=r"(?s)5 features.*20 features"):
        displays_of(model, X[:, :5], y, X[[0], :5])[place]()
    with pytest.raises(ValueError, match="got texts: pass the fitted Pipeline"):
        displays_of(pipeline[-1], TEXTS, LABELS, "good")[place]()
    with pytest.raises(ValueError, match="Negative values"):
        displays_of(model, -X, y, -X[[0]])[place]()
    assert not plt.get_fignums()  # nothing was begun


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "pie"}, "kind must be one of"),
        ({"X": None}, 'kind="scatter" needs documents X and their labels y'),
        ({"y": None}, 'kind="scatter" needs documents X and their labels y'),
        ({"target": "green"}, r"target must be one of the classes \[0, 1\], got 'green'"),
        ({"target": []}, "target must be a class or a list of classes, got an empty list"),
        ({"importance": "size"}, "importance must be one of"),
        ({"X": None, "kind": "bars", "importance": "effect"}, "needs documents X"),
        ({"min_count": 0}, "min_count == 0, must be >= 1"),
        ({"min_count": 1000}, r"No token is in 1000 documents of X or more \(the most frequent"),
        ({"kind": "bars", "k": 0}, "k == 0, must be >= 1"),
        ({"n_bins": -1}, "n_bins == -1, must be >= 1"),
        ({"y": np.zeros(3)}, "X and y must have as many documents, got 80 and 3"),
        ({"y": np.full(80, 7)}, r"y must hold labels of the classes \[0, 1\], got 7"),
        ({"y": np.zeros(80, int)}, r"no document is of \[1\]"),
    ],
)
def test_wrong_arguments_are_refused(two, arguments, message):
    model, X, y = two
    with pytest.raises(ValueError, match=message):
        TokenImportanceDisplay.from_estimator(model, **{"X": X, "y": y, **arguments})


@pytest.mark.parametrize("name", ["min_count", "k", "n_bins"])
def test_numbers_that_are_no_integers_are_refused(two, name):
    model, X, y = two
    with pytest.raises(TypeError, match=f"{name} must be an instance of int, not float"):
        TokenImportanceDisplay.from_estimator(model, X, y, **{name: 2.5})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"token_values": [1.0]}, r"token_values must have shape \(2,\) for 2 classes"),
        ({"classes": [0, 1, 2]}, r"token_values must have shape \(3, 2\) for 3 classes"),
        ({"classes": [0]}, "classes must be two labels or more"),
        ({"attention_scores": [0.0, np.inf]}, "attention_scores must be finite"),
        ({"posterior_difference": None}, "needs posterior_difference"),
        ({"kind": "bars"}, "needs importance"),
        ({"documents": [1]}, r"documents must have shape \(2,\)"),
        ({"token_names": ["a"]}, "token_names must have 2 entries, one a token, got 1"),
    ],
)
def test_wrong_arrays_are_refused(arguments, message):
    arrays = {
        "attention_scores": [0.0, 1.0],
        "token_values": [1.0, 2.0],
        "classes": [0, 1],
        "posterior_difference": [0.5, -0.5],
    }
    with pytest.raises(ValueError, match=message):
        TokenImportanceDisplay.from_arrays(**{**arrays, **arguments})


# ---- drawing ------------------------------------------------------------------------------------


def test_axes_that_are_given_are_drawn_on(two):
    model, X, y = two
    figure, axes = plt.subplots(2, 4)
    displays = [
        TokenImportanceDisplay.from_estimator(model, X, y, ax=axes[0, :2]),
        TokenImportanceDisplay.from_estimator(model, kind="bars", ax=list(axes[0, 2:])),
        AttentionDisplay.from_estimator(model, X[[0]], ax=axes[:, 0][:2]),
        SelectionDisplay.from_estimator(model, X, ax=axes[1, 1:]),
    ]
    assert plt.get_fignums() == [figure.number]
    for display in displays:
        assert display.figure_ is figure
    assert displays[0].ax_[1] is axes[0, 1]
    # One under the other, each needs its names.
    assert axes[1, 0].yaxis.get_tick_params()["labelleft"]
    single = TokenImportanceDisplay.from_estimator(model, kind="bars", target=1, ax=axes[0, 0])
    assert single.ax_ is axes[0, 0]


def test_wrong_axes_are_refused(two):
    model, X, y = two
    _, axes = plt.subplots(1, 3)
    with pytest.raises(ValueError, match="as many axes as are drawn, 2, but holds 3"):
        TokenImportanceDisplay.from_estimator(model, X, y, ax=axes)
    with pytest.raises(ValueError, match="as many axes as are drawn, 3, but holds 1"):
        SelectionDisplay.from_estimator(model, X, ax=axes[0])
    with pytest.raises(TypeError, match="ax must be matplotlib axes"):
        AttentionDisplay.from_estimator(model, X[[0]], ax=["left", "right"])


def test_each_display_makes_one_figure_and_leaves_settings_alone(two):
    model, X, y = two
    before = dict(matplotlib.rcParams)
    for n_figures, display in enumerate(displays_of(model, X, y, X[[0]]), start=1):
        display()
        assert len(plt.get_fignums()) == n_figures
    assert dict(matplotlib.rcParams) == before


def test_without_matplotlib_the_extra_is_named(two, monkeypatch):
    model, X, y = two
    drawn = TokenImportanceDisplay.from_estimator(model, X, y)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    for display in displays_of(model, X, y, X[[0]]):
        with pytest.raises(ImportError, match=r"sklearn-clsattn\[plot\]"):
            display()
    assert len(drawn.to_frame()) == 19


def hostile_names(n_tokens):
    """Return names that are long, read as mathematics, or hard to see."""
    kinds = ["pneumonoultramicroscopicsilicovolcanoconiosis {}", "${}$ \\frac{{", "_{}", " {} "]
    return [kinds[place % 4].format(place) for place in range(n_tokens)]


@pytest.mark.parametrize("n_classes", [2, 5])
def test_text_is_in_the_picture_and_apart(n_classes):
    X, y = data(n_classes, n_documents=80)
    y = np.array([f"topic.{code}.$x$" * 3 for code in y])
    X = pd.DataFrame(X.toarray(), columns=hostile_names(X.shape[1]))
    model = ClsAttentionClassifier().fit(X, y)
    for display in (
        TokenImportanceDisplay.from_estimator(
            model, X, y, min_count=1, target=model.classes_[-1:].tolist()
        ),
        TokenImportanceDisplay.from_estimator(model, X, kind="bars", min_count=1, k=6),
        SelectionDisplay.from_estimator(model, X, k=8),
        AttentionDisplay.from_estimator(model, X[3:4]),
    ):
        assert_readable(display.figure_)


def test_a_single_token_can_be_drawn():
    X = np.array([[1], [2]]).repeat(5, axis=0)
    y = np.repeat([0, 1], 5)
    model = ClsAttentionClassifier().fit(X, y)
    for display in displays_of(model, X, y, X[0]):
        display().figure_.canvas.draw()


# ---- ContextDisplay -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def vectorizer():
    return ContextVectorizer(min_df=1, characters=None).fit(TEXTS, LABELS)


def test_context_lines_are_the_multipliers(vectorizer):
    display = ContextDisplay.from_estimator(vectorizer)
    tables = (vectorizer.start_scores_, vectorizer.end_scores_)
    for ax, table in zip(display.ax_[:2], tables, strict=True):
        assert len(ax.lines) == 3  # two orders and the line at 1
        for line, scores in zip(ax.lines, table, strict=False):
            drawn = np.asarray(line.get_ydata())
            assert_array_equal(np.isnan(drawn), scores == 0)
            assert_allclose(drawn[scores != 0], scores[scores != 0] / 2)
    assert [text.get_text() for text in display.ax_[0].get_legend().get_texts()] == [
        "single words",
        "pairs of words",
    ]
    frame = display.to_frame()
    chosen = frame.query("n_words == 2 and counted_from == 'end'")
    assert_array_equal(chosen["first_position"], 2 ** np.arange(10))
    assert_allclose(chosen["multiplier"], np.exp(vectorizer.end_scores_[1] / 2))


def test_context_bars_are_the_words_that_matter_most():
    words, scores = ["a", "b", "c", "d", "e"], [0.1, -0.8, 0.9, 0.0, -0.2]
    display = ContextDisplay.from_arrays([[0.0, 0.3]], [[0.1, -0.3]], words, scores, min_n=2, k=1)
    ax = display.ax_[2]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["c …", "b …"]
    assert_allclose([bar.get_width() for bar in ax.patches], [0.45, -0.4])
    assert [text.get_text() for text in ax.texts] == ["1.57", "0.67"]
    assert display.to_frame("words")["previous_word"].tolist() == ["c", "a", "d", "e", "b"]
    assert display.ax_[0].get_legend().get_texts()[0].get_text() == "pairs of words"
    assert [label.get_text() for label in display.ax_[1].get_xticklabels()] == ["1", "2+"]


def test_context_without_words_before():
    display = ContextDisplay.from_arrays([[0.0]], [[0.0]])
    assert "no word" in display.ax_[2].texts[0].get_text()
    assert display.to_frame("words").empty


def test_context_is_found_in_pipelines_and_searches(vectorizer):
    pipeline = make_pipeline(ContextVectorizer(min_df=1, characters=None), LogisticRegression())
    search = GridSearchCV(pipeline, {"logisticregression__C": [1.0]}, cv=2).fit(TEXTS, LABELS)
    for estimator in (search, search.best_estimator_, pipeline.fit(TEXTS, LABELS)):
        display = ContextDisplay.from_estimator(estimator)
        assert_allclose(display.start_scores, vectorizer.start_scores_, atol=1e-9)


def test_context_errors(vectorizer):
    with pytest.raises(TypeError, match="got CountVectorizer"):
        ContextDisplay.from_estimator(CountVectorizer())
    with pytest.raises(NotFittedError):
        ContextDisplay.from_estimator(ContextVectorizer())
    with pytest.raises(ValueError, match="context=False"):
        ContextDisplay.from_estimator(ContextVectorizer(context=False, min_df=1).fit(TEXTS))
    with pytest.raises(ValueError, match="end_scores"):
        ContextDisplay([[0.0, 1.0]], [[0.0]])
    with pytest.raises(ValueError, match="start_scores"):
        ContextDisplay([0.0, 1.0], [0.0, 1.0])
    with pytest.raises(ValueError, match='"positions" or "words"'):
        ContextDisplay([[0.0]], [[0.0]]).to_frame("documents")
    with pytest.raises(ValueError, match="k == 0"):
        ContextDisplay.from_estimator(vectorizer, k=0)


def test_context_text_is_in_the_picture_and_apart():
    random = np.random.default_rng(0)
    start, end = random.normal(0.0, 0.8, (2, 3, 10))
    scores = np.linspace(-3.0, 2.0, 40)
    display = ContextDisplay.from_arrays(start, end, hostile_names(40), scores)
    assert_readable(display.figure_)
