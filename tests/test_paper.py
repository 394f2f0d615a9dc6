"""The statistics, the page and fast runs of the experiments that make the paper's figures again."""

import warnings
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_clsattn.datasets import make_token_classification

with warnings.catch_warnings():  # of matplotlib and pyparsing about each other
    warnings.simplefilter("ignore", DeprecationWarning)
    pytest.importorskip("matplotlib.pyplot")
    pytest.importorskip("matplotlib.mathtext")

from matplotlib.figure import Figure

from benchmarks.paper import (
    data,
    findings,
    known,
    mlp,
    one_step,
    page,
    run,
    shapes,
)
from benchmarks.paper.findings import Check, Section
from benchmarks.paper.thresholds import THRESHOLDS

drawing = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # matplotlib's and pyparsing's

MACHINE = {
    "cpu": "a processor",
    "cores": 2,
    "memory_gib": 8.0,
    "system": "Linux",
    "python": "3.12",
    "versions": {"torch": "2"},
    "threads": {"torch": 2},
}


class TestShapes:
    def test_bins_by_hand(self):
        x = [-1.0, -0.9, 0.1, 0.2, 1.0]
        bins = shapes.binned(x, [4.0, 2.0, 5.0, 9.0, 1.0], n_bins=2, min_tokens=1)
        assert_allclose(bins.centres, [-0.5, 0.5])
        assert_array_equal(bins.counts, [2, 3])
        assert_allclose(bins.means, [3, 5])
        assert_allclose(bins.deviations, [1, np.sqrt(32 / 3)])
        assert bins.span == pytest.approx(2)
        assert bins.relative_scatter == pytest.approx((1 + np.sqrt(32 / 3)) / 4)

    def test_bins_cover_both_ends_and_leave_thin_ones_out(self):
        x = np.r_[np.zeros(7), 0.5, np.ones(6)]
        bins = shapes.binned(x, x, n_bins=20)
        assert_array_equal(bins.counts, [7, 6])
        assert_allclose(bins.centres, [0.025, 0.975])
        assert_allclose(bins.deviations, 0, atol=1e-12)

    @pytest.mark.parametrize("seed", range(3))
    def test_bins_agree_with_a_slow_loop(self, seed):
        rng = np.random.default_rng(seed)
        x, y = rng.normal(size=400), rng.normal(size=400)
        bins = shapes.binned(x, y, n_bins=9, min_tokens=3)
        edges = np.linspace(x.min(), x.max(), 10)
        expected = []
        for low, high in pairwise(edges):
            last = high == edges[-1]
            inside = y[(x >= low) & ((x < high) | (last & (x <= high)))]
            if len(inside) >= 3:
                expected.append(((low + high) / 2, inside.mean(), inside.std(), len(inside)))
        assert_allclose(
            np.column_stack([bins.centres, bins.means, bins.deviations, bins.counts]), expected
        )

    def test_equally_full_bins(self):
        rng = np.random.default_rng(0)
        x = rng.standard_cauchy(200)
        bins = shapes.equally_full(x, x, n_bins=20)
        assert_array_equal(bins.counts, np.full(20, 10))
        assert shapes.order(bins.means) == 1
        few = shapes.equally_full(x[:3], x[:3], n_bins=20)
        assert_array_equal(np.sort(few.means), np.sort(x[:3]))

    @pytest.mark.parametrize(
        ("x", "y", "message"),
        [
            ([1.0, 2.0], [1.0], "as many"),
            ([], [], "at least one"),
            ([1.0, np.nan], [1.0, 2.0], "finite"),
            ([1.0, 2.0], [1.0, 2.0], "No bin has 5"),
        ],
    )
    def test_bad_points(self, x, y, message):
        with pytest.raises(ValueError, match=message):
            shapes.binned(x, y)

    def test_order_is_spearmans(self):
        from scipy.stats import spearmanr

        rng = np.random.default_rng(0)
        values = rng.integers(0, 6, size=30).astype(float)
        expected = spearmanr(np.arange(30), values).statistic
        assert shapes.order(values) == pytest.approx(expected)
        assert shapes.order(np.exp([1.0, 2.0, 5.0])) == 1
        assert shapes.order([3.0, 2.0, 1.0]) == -1
        assert np.isnan(shapes.order([1.0, 2.0]))
        assert np.isnan(shapes.order([1.0, 1.0, 1.0]))

    def test_a_u_and_what_is_none(self):
        x = np.linspace(-1, 1, 21)
        u = shapes.arms(x, x**2)
        assert (u.left, u.right, u.worse) == (1, 1, 1)
        assert u.lowest_at == pytest.approx(0)
        assert shapes.arms(x, -(x**2)).worse != pytest.approx(1)
        rising = shapes.arms(x, x)
        assert np.isnan(rising.left)
        assert np.isnan(rising.worse)

    def test_a_line_through_the_origin(self):
        x = np.array([-2.0, 1.0, 3.0])
        slope, share = shapes.slope_through_origin(x, -4 * x)
        assert slope == pytest.approx(-4)
        assert share == pytest.approx(1)
        # An offset is no line through the origin, however straight.
        assert shapes.slope_through_origin(x, x + 10)[1] < 0.5

    def test_the_paper_s_own_tables_have_the_shapes_it_names(self):
        assert shapes.order(known.TWO_LAYER_VALUES) > 0.95
        for scores in (known.TWO_LAYER_SCORES, known.MLP_SCORES):
            u = shapes.arms(known.BINS, scores)
            assert u.worse > 0.95
            assert u.lowest_at == pytest.approx(0.01)
        assert abs(mlp.rise_left_over_right(known.BINS, known.MLP_VALUES)) < 0.1
        for k, centres in known.CLASS_BINS.items():
            assert len(centres) == len(known.CLASS_VALUES[k])
            assert shapes.order(known.CLASS_VALUES[k]) > 0.85

    def test_statistics_give_classes_equal_weight(self):
        # The first token says nothing, though three quarters of the documents are of class 1.
        X = sp.csr_matrix([[2, 0, 1], [2, 3, 0], [2, 3, 0], [2, 3, 0]])
        y = np.array([0, 1, 1, 1])
        difference = shapes.token_posterior_difference(X, y)
        assert_allclose(difference, [0, 1, -1], atol=1e-12)
        alpha = shapes.token_alpha(X, y)
        assert_allclose(alpha, [(2 / 5 - 2 / 3) / 2, 3 / 10, -1 / 6])
        assert shapes.balanced_weights(y, 2) @ y == pytest.approx(2)
        assert_array_equal(shapes.frequent_tokens(X, 2), [0, 1])


class TestFindings:
    def test_thresholds(self):
        assert findings.asked("a", "monotone", 0.95).verdict == "holds"
        assert findings.asked("a", "monotone", 0.9499999).verdict == "**fails**"
        assert findings.asked("a", "monotone", float("nan")).verdict == "**fails**"
        assert findings.asked("a", "flat", -1.0).verdict == "holds"
        assert findings.asked("a", "flat", float("nan")).holds is False
        assert findings.asked("a", "direction", 2e-5).measured == "2.0e-05"
        assert findings.reported("a", "1", "2").verdict == "reported"

    def test_a_statement_holds_if_every_seed_does(self):
        check = findings.asked("a", "monotone", [1.0, 0.96, 0.98])
        assert (check.verdict, check.measured) == ("holds", "0.980 (0.960 to 1.000)")
        assert findings.asked("a", "monotone", [1.0, 1.0, 0.94]).holds is False
        missing = findings.asked("a", "monotone", [1.0, float("nan")])
        assert (missing.holds, missing.measured) == (False, "not defined in 1 of 2")

    def test_the_table_of_thresholds_can_hold_and_fail(self):
        for threshold in THRESHOLDS.values():
            assert {threshold.met(-1e9), threshold.met(1e9)} == {True, False}
            assert not threshold.met(float("nan"))
            assert threshold.met(threshold.limit) == (threshold.sign != ">")
            assert threshold.reason

    @pytest.mark.parametrize(
        ("number", "written"),
        [
            (0.99996, "0.999"),
            (1.0, "1.000"),
            (-0.0001, "0.000"),
            (np.nan, "–"),
            (12.3456, "12.346"),
        ],
    )
    def test_a_number_never_reads_as_more_than_it_is(self, number, written):
        assert findings.decimals(number) == written

    def test_flat_on_the_left(self):
        x = np.linspace(-1, 1, 21)
        assert mlp.rise_left_over_right(x, np.maximum(x, 0)) == pytest.approx(0)
        assert mlp.rise_left_over_right(x, x) == pytest.approx(1)
        assert np.isnan(mlp.rise_left_over_right(x, -x))


@pytest.fixture
def settings(tmp_path):
    return data.Settings(None, tmp_path / "images", fast=True, cache=tmp_path / "cache")


class TestData:
    def test_stand_ins_are_like_the_reviews_in_kind(self, settings):
        binary, unequal, stars = (data.load(name, settings) for name in data.REAL)
        assert binary.n_classes == 2
        assert np.bincount(unequal.y)[1] > 1.5 * np.bincount(unequal.y)[0]
        assert stars.n_classes == 4
        assert stars.posterior.shape == (4, len(stars.frequent))
        assert "generated" in binary.words

    def test_no_document_is_empty_and_no_token_is_rare(self, settings):
        corpus = data.subset(data.load("IMDB", settings), 200, 50)
        assert corpus.X.shape[0] <= 200
        assert corpus.X_test.shape[0] <= 50
        assert corpus.X.shape[1] == corpus.X_test.shape[1]
        assert corpus.X.getnnz(axis=0).min() >= data.MIN_DOCUMENTS
        assert min(corpus.X.getnnz(axis=1).min(), corpus.X_test.getnnz(axis=1).min()) >= 1

    def test_the_most_frequent_tokens(self, settings):
        corpus = data.load("IMDB", settings)
        few = data.most_frequent(corpus, 20)
        totals = np.sort(np.asarray(corpus.X.sum(axis=0)).ravel())[::-1]
        assert_array_equal(np.sort(np.asarray(few.X.sum(axis=0)).ravel())[::-1], totals[:20])

    def test_the_middle_class_goes(self):
        X = sp.csr_matrix(np.arange(10).reshape(5, 2))
        kept, codes = data._four_classes(X, np.array([3, 5, 1, 2, 4]))
        assert_array_equal(codes, [3, 0, 1, 2])
        assert_array_equal(kept.toarray(), X.toarray()[1:])


def section(**more):
    return Section(
        "two_layers", "A title", "It says so.", "| a |\n| --- |\n| 1 |", "It agrees.", **more
    )


class TestPage:
    def test_it_counts_what_fails_and_shows_every_picture(self):
        checks = [Check("one", "≥ 1", "2", True), Check("two", "≥ 1", "0", False)]
        sections = [
            section(checks=checks, picture="paper_x.png", caption="What is seen.", seconds=3.0),
            replace(section(), title="Another", checks=[findings.reported("three", "7", "8")]),
        ]
        text = page.markdown(sections, MACHINE, 600.0, data.Settings(None, Path()))
        assert "2 statements were checked; 1 hold, 1 fail." in text
        assert text.count("**fails**") == 2  # in the summary and in its section
        assert "](images/paper_x.png)" in text
        assert "## A title" in text
        assert "## Another" in text
        assert "in 10 minutes on a processor, 2 cores" in text
        assert ">>>" not in text
        for line in text.splitlines():
            assert not line.startswith("|") or line.endswith("|")

    def test_it_says_what_is_ours(self):
        text = page.markdown([], MACHINE, 0.0, data.Settings(None, Path()))
        assert "5 random starts of each line" in text
        assert "of 94 % confidence" in text
        for what in ("equation\n(15)", "optimiser", "tokenizer", "bins", "two-layer"):
            assert what in text

    def test_it_is_written_whole(self, tmp_path):
        path = tmp_path / "paper.md"
        page.write(path, "one")
        page.write(path, "two")
        assert path.read_text() == "two"
        assert [each.name for each in tmp_path.iterdir()] == ["paper.md"]


@drawing
@pytest.mark.parametrize("name", run.EXPERIMENTS)
def test_every_experiment_runs_on_tiny_data(name, tmp_path, capsys, monkeypatch):
    """Nothing is asked of the numbers here: a few hundred generated documents prove no shape."""
    draw = Figure.savefig  # coarsely, and few iterations: this is the test's whole time
    monkeypatch.setattr(Figure, "savefig", lambda figure, file, **how: draw(figure, file, dpi=25))
    monkeypatch.setattr(one_step, "ITERATIONS", 10)
    monkeypatch.setattr(one_step, "SHORT_ITERATIONS", 5)
    before = run.PAGE.read_bytes() if run.PAGE.is_file() else None
    arguments = ["--fast", "--out", str(tmp_path), "--cache", str(tmp_path / "cache")]
    assert run.main([*arguments, "--only", name]) == 0
    output = capsys.readouterr()
    assert "| what | asked | measured | verdict |" in output.out
    assert "nan" not in output.out
    assert "is left alone" in output.err
    assert (run.PAGE.read_bytes() if run.PAGE.is_file() else None) == before
    assert f"benchmarks.paper.{name}`" in (tmp_path / "paper.md").read_text()
    pictures = list(tmp_path.glob("*.png"))
    assert [picture.name for picture in pictures] == [f"paper_{name}.png"]
    assert pictures[0].read_bytes().startswith(b"\x89PNG")
    drawn = pd.read_csv(tmp_path / f"paper_{name}.csv")
    assert np.isfinite(drawn[["x", "y"]].to_numpy()).all()
    assert len(drawn) > 5
    assert list(pd.read_csv(tmp_path / "checks.csv").columns)[:2] == ["section", "what"]


@drawing
@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_s_own_texts(n_classes, tmp_path, capsys):
    X, y = make_token_classification(
        400, n_classes=n_classes, n_irrelevant=60, n_relevant_per_class=30, random_state=0
    )
    texts = [" ".join(f"w{s}" for s in row.indices) for row in X.tocsr()]
    path = tmp_path / "own.csv"
    pd.DataFrame({"text": texts, "label": y}).to_csv(path, index=False)
    out = tmp_path / "out"
    arguments = ["--fast", "--data", str(path), "--out", str(out), "--only"]
    names = ["joint", "stars", "margin", "assumption"]
    assert run.main([*arguments, *names]) == 0
    capsys.readouterr()
    expected = {"joint" if n_classes == 2 else "stars", "assumption"}
    written = {file.stem.removeprefix("paper_") for file in out.glob("*.png")}
    assert written == {file.stem.removeprefix("paper_") for file in out.glob("paper_*.csv")}
    assert written == expected
    assert "own.csv" in (out / "paper.md").read_text()


def test_what_cannot_be_run_says_so(tmp_path):
    with pytest.raises(SystemExit, match="no file"):
        run.main(["--data", str(tmp_path / "none.csv")])
    with pytest.raises(SystemExit, match="1 or more"):
        run.main(["--seeds", "0"])


@drawing
def test_one_experiment_alone_prints_its_section(tmp_path, capsys):
    def experiment(settings):
        assert (settings.fast, settings.images) == (True, tmp_path)
        return section()

    arguments = ["--fast", "--out", str(tmp_path), "--cache", str(tmp_path / "cache")]
    assert run.alone(experiment, arguments) == 0
    assert capsys.readouterr().out.startswith("## A title\n")
