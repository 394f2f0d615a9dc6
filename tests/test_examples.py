"""Every example of the gallery runs without a warning and ends in a picture. The tutorial runs."""

import json
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


def test_the_tutorial_runs_and_has_no_outputs(tmp_path, monkeypatch):
    notebook = json.loads((EXAMPLES.parent / "tutorial.ipynb").read_text("utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] or cell["execution_count"] for cell in cells)
    script = tmp_path / "tutorial.py"
    script.write_text("\n".join("".join(cell["source"]) for cell in cells), "utf-8")
    monkeypatch.chdir(tmp_path)
    plt.switch_backend("Agg")
    try:
        names = runpy.run_path(str(script))
    finally:
        plt.close("all")
    assert (names["loaded"].predict(names["new_texts"]) == names["new_truth"]).mean() > 0.95


def test_what_draws_the_figures_finds_what_it_imports():
    assert "mean_figure" in runpy.run_path(str(EXAMPLES.parent / "figures.py"))


def test_there_are_examples():
    assert len(list(EXAMPLES.rglob("plot_*.py"))) >= 10
