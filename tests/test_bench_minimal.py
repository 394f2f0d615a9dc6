"""The race of small changes: its searches keep their promises, and a tiny run goes through."""

import numpy as np
import pytest

from benchmarks import bench_minimal
from benchmarks.explanations import searches

WEIGHTS = np.array([3.0, 1.0, 0.5, -1.0, -0.5])


def ask(kept):
    return 1 / (1 + np.exp(0.5 - kept @ WEIGHTS))


@pytest.mark.parametrize("search", [searches.greedy, searches.lime_order, searches.dice_random])
def test_searches_find_what_changes_a_linear_model(search):
    removed = search(ask, len(WEIGHTS), np.random.default_rng(0))
    kept = np.ones((1, len(WEIGHTS)), dtype=bool)
    kept[0, removed] = False
    assert ask(kept)[0] < 0.5
    assert 0 in removed
    assert search(lambda kept: np.ones(len(kept)), 5, np.random.default_rng(0)) is None


def test_an_anchor_keeps_the_prediction_most_often():
    fixed = searches.anchor(ask, len(WEIGHTS), np.random.default_rng(0))
    assert fixed.tolist() == [0]


@pytest.mark.parametrize("arguments", [[], ["--labels"]])
def test_a_tiny_run(arguments, capsys, tmp_path):
    page = tmp_path / "page.md"
    paths = ["--reviews", str(tmp_path), "--output", str(page)]
    assert bench_minimal.main(["--fast", *paths, *arguments]) == 0
    printed = capsys.readouterr().out
    assert page.read_text() in printed
    if arguments:
        assert "area under the curve" in printed
    else:
        (ours,) = [line for line in printed.splitlines() if "| removed | ours" in line]
        assert ours.count("100%") == 2
        (guarantee,) = [line for line in printed.splitlines() if "| guarantee | ours" in line]
        assert guarantee.count("100") == 2
