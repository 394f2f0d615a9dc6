"""The statistics, the record and a trial run of the experiments of the paper's page."""

import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers import refused
from numpy.testing import assert_allclose, assert_array_equal

with warnings.catch_warnings():  # of matplotlib and pyparsing about each other
    warnings.simplefilter("ignore", DeprecationWarning)
    pytest.importorskip("matplotlib.pyplot")
    pytest.importorskip("matplotlib.mathtext")

from benchmarks import pages
from benchmarks.paper import data, known, needles, record, run, shapes, theorem


@pytest.mark.parametrize("seed", range(3))
def test_bins_agree_with_a_slow_loop(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=400), rng.normal(size=400)
    bins = shapes.binned(x, y, n_bins=9, min_tokens=3)
    edges = np.linspace(x.min(), x.max(), 10)
    expected = []
    for low, high in pairwise(edges):
        inside = y[(x >= low) & ((x < high) | ((high == edges[-1]) & (x <= high)))]
        if len(inside) >= 3:
            expected.append(((low + high) / 2, inside.mean(), inside.std(), len(inside)))
    found = np.column_stack([bins.centres, bins.means, bins.deviations, bins.counts])
    assert_allclose(found, expected)
    assert bins.relative_scatter == pytest.approx(bins.deviations.mean() / np.ptp(bins.means))


def test_orders_arms_and_lines():
    assert shapes.order([1.0, 7.0, 9.0]) == 1
    assert shapes.order([3.0, 2.0, 1.0]) == -1
    assert np.isnan(shapes.order([1.0, 2.0]))
    assert np.isnan(shapes.order([1.0, 1.0, 1.0]))
    x = np.linspace(-1, 1, 21)
    u = shapes.arms(x, x**2)
    assert (u.left, u.right, u.worse) == (1, 1, 1)
    assert u.lowest_at == pytest.approx(0)
    assert np.isnan(shapes.arms(x, x).worse)
    assert shapes.share_on_line(x, -4 * x) == pytest.approx(1)
    assert shapes.share_on_line(x, x + 10) < 0.5  # an offset is no line through 0


def test_statistics_give_classes_equal_weight():
    # The first token says nothing, though three quarters of the documents are of class 1.
    X = sp.csr_matrix([[2, 0, 1], [2, 3, 0], [2, 3, 0], [2, 3, 0]])
    difference = shapes.token_posterior_difference(X, np.array([0, 1, 1, 1]))
    assert_allclose(difference, [0, 1, -1], atol=1e-12)
    assert_array_equal(shapes.frequent_tokens(X, 2), [0, 1])


def test_the_paper_s_own_tables_have_the_shapes_it_names():
    assert shapes.order(known.TWO_LAYER_VALUES) > 0.95
    for scores in (known.TWO_LAYER_SCORES, known.MLP_SCORES):
        assert shapes.arms(known.BINS, scores).worse > 0.95
    assert shapes.order(known.MLP_VALUES) < 0.7
    assert min(shapes.order(values) for values in known.CLASS_VALUES.values()) > 0.85


def test_a_line_holds_if_every_start_does():
    rows = [
        record.row("rises", "a", [1.0, 0.95]),
        record.row("rises", "b", [1.0, 0.9499]),
        record.row("rises", "c", [1.0, np.nan]),
        record.row("flow direction", "d", 2e-5),
        record.row("scatter E.v", "f", [4.0, 16.0]),
        record.row("scatter E.v", "g", [8.0, 16.1]),
        record.row("distance", "e", 0.119),
    ]
    verdicts = ["holds", "fails", "fails", "holds", "holds", "fails", "reported"]
    assert [row.verdict for row in rows] == verdicts


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # matplotlib's and pyparsing's
def test_a_trial_run(tmp_path, monkeypatch):
    flow = theorem.flow

    def short_flow(X, y, max_iter=0, **parameters):
        return flow(X, y, max_iter=15, **parameters)

    monkeypatch.setattr(theorem, "flow", short_flow)
    monkeypatch.setitem(theorem.SIZES, "small", (40, 4, 10, 6))
    monkeypatch.setitem(data.TINY, "n_irrelevant", 60)
    assert run.main(["--fast", "--out", str(tmp_path)]) == 0
    found = pd.read_csv(tmp_path / "paper.csv")
    assert set(found["experiment"]) == set(run.EXPERIMENTS)
    assert set(found["statement"]) == {each.words for each in record.STATEMENTS.values()}
    page = (tmp_path / "paper.md").read_text()
    for picture in (tmp_path / "images").iterdir():
        assert f"images/{picture.name})" in page
    assert page.count("](images/") == len(list((tmp_path / "images").iterdir())) == 6
    assert len(page.split()) < 1000
    assert "| statement | asked |" in (tmp_path / "paper_checks.md").read_text()


def test_without_reviews():
    refused("There are no reviews", run.main, [], error=SystemExit)


def test_every_failing_line_of_the_record_has_a_reason_of_four_words(tmp_path):
    names = "paper.csv", *run.TEMPLATES
    for name in names:
        (tmp_path / name).write_text(run.page_file(name, pages.DOCS).read_text("utf-8"), "utf-8")
    found = pd.read_csv(tmp_path / "paper.csv", keep_default_na=False)
    fails = found["verdict"] == "fails"
    assert not found.loc[~fails, "reason"].any()
    assert found.loc[fails, "reason"].str.split().str.len().eq(4).all()
    assert run.main(["--page", "--out", str(tmp_path)]) == 0  # nothing is left to change
    for name in names:
        published = run.page_file(name, pages.DOCS)
        assert (tmp_path / name).read_text("utf-8") == published.read_text("utf-8")


def test_documents_have_as_many_relevant_tokens_as_asked():
    line = needles.Line(n_needles=2, zipf=True, noise=0.0)
    X, y = needles.documents(line, 30, 50, seed=0)
    assert (X.sum(axis=1) == 30).all()
    for label in (0, 1):
        of_class = X[y == label][:, 80 * label : 80 * (label + 1)]
        assert (of_class.sum(axis=1) == 2).all()


def test_a_crossing_is_interpolated_in_the_logarithm_of_length():
    accuracy = pd.Series({10: 1.0, 100: 0.8, 1000: 0.7})
    assert needles.crossing(accuracy) == pytest.approx(10**2.5)
    assert np.isnan(needles.crossing(accuracy, 0.6))


def test_the_record_of_needles_is_what_the_page_says():
    found = pd.read_csv(pages.DOCS / "needles.csv")
    page = (pages.RESULTS / "needles.md").read_text("utf-8")
    for words, asked, measured, verdict in needles.claims(found):
        assert f"| {words} | {asked} | {measured} | {verdict} |" in page
