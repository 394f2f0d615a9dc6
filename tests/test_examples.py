"""Every example of the gallery runs, without a warning, and ends in a picture."""

import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"


@pytest.mark.parametrize(
    "example", sorted(EXAMPLES.rglob("plot_*.py")), ids=lambda example: example.stem
)
def test_example(example, monkeypatch):
    shown = []
    monkeypatch.setattr(plt, "show", lambda: shown.extend(plt.get_fignums()))
    plt.switch_backend("Agg")
    try:
        runpy.run_path(str(example))
        for number in shown:
            plt.figure(number).canvas.draw()
    finally:
        plt.close("all")
    assert shown


def test_what_draws_the_figures_finds_what_it_imports():
    assert "mean_figure" in runpy.run_path(str(EXAMPLES.parent / "figures.py"))


def test_there_are_examples():
    assert len(list(EXAMPLES.rglob("plot_*.py"))) >= 10
