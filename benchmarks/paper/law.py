"""The selection law on fresh data: ``python -m benchmarks.paper.law [--seeds 15]``.

Points are drawn from a grid of the number of relevant tokens, length, dimension and value; every
seed has documents and embeddings of its own. Thresholds were written down before the run.
"""

from __future__ import annotations

import argparse
import sys
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from matplotlib.figure import Figure
from sklearn.metrics import roc_auc_score

from benchmarks import pages
from benchmarks.command_line import ROOT
from sklearn_clsattn.paper import one_step_embeddings
from sklearn_clsattn.paper._selection_law import LARGEST_LEAD, selection_law

from .theorem import one_relevant, selection

N_RELEVANT, LENGTHS = (1, 2, 5, 10, 20), (5, 10, 14, 20, 30, 60)
DIMENSIONS = (None, 64, 256, 1024, 4096, 16384)
VALUES = (1 / 4, 1 / 2, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0)
# What is asked: of A in finite dimensions, of verdicts, and of the condition without a dimension.
LEAST_AUC, MOST_MISJUDGED, MOST_FAILS_WITHOUT_OPTIMUM = 0.9, 0.1, 0.0


def judge(
    n_relevant: int, length: int, dimension: int | None, value: float, seed: int
) -> dict[str, Any]:
    """Return whether a fit fails to select, and what the law says of it."""
    data = one_relevant(seed, max(120, 20 * n_relevant), n_relevant, 50, length)
    unit = one_step_embeddings(*data, step_size=1.0)
    step_size = value / np.abs(unit.shifts).max()
    law = selection_law(*data, step_size=step_size, embedding_dim=dimension)
    share, _ = selection(data, seed, dimension, value, 600)
    return {
        "K": n_relevant,
        "T": length,
        "d": dimension or np.inf,
        "value": value,
        "seed": seed,
        "fails": share < 1,
        "verdict": law.verdict,
        "A": float(np.mean(law.leads)),
        "S": law.strength,
        "bad optimum": law.bad_optimum > 1,
        "over noise": law.noise,
    }


def table(fits: pd.DataFrame) -> str:
    """Return the areas under the curve, and how verdicts and the condition fared."""
    finite, limit = fits[np.isfinite(fits["d"])], fits[np.isinf(fits["d"])]
    points = finite.groupby(["K", "T", "d", "value"])[["fails", "A", "S"]].mean().reset_index()
    rows = []
    for name in ("A", "S", "value"):
        area = roc_auc_score(finite["fails"], finite[name])
        rows.append((f"area under the curve of {name}, finite dimensions", f"{area:.3f}"))
    right = (points["fails"] > 0.5) == (points["A"] > LARGEST_LEAD)
    rows.append(("points misjudged by A > 9", f"{(~right).sum()} of {len(right)}"))
    for where, some in (("finite dimensions", finite), ("no dimension", limit)):
        for verdict, of in some.groupby("verdict"):
            n = int(of["fails"].sum())
            rows.append((f'fits that fail of those said "{verdict}", {where}', f"{n} of {len(of)}"))
    for said, of in limit.groupby("bad optimum"):
        n = int(of["fails"].sum())
        rows.append((f"fits that fail, w min a {'>' if said else '<='} 1", f"{n} of {len(of)}"))
    for axis in ("K", "T", "d"):
        for at, of in points.groupby(axis):
            wrong = ((of["fails"] > 0.5) != (of["A"] > LARGEST_LEAD)).sum()
            rows.append((f"points misjudged, {axis} = {at:g}", f"{wrong} of {len(of)}"))
    return pages.table(("", "measured"), rows)


def draw(fits: pd.DataFrame) -> Figure:
    """Return the picture: the share of fits that fail, over the value and over A."""
    finite = fits[np.isfinite(fits["d"])]
    points = finite.groupby(["K", "T", "d", "value"])[["fails", "A"]].mean().reset_index()
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    for ax, axis, label in zip(
        figure.subplots(1, 2, sharey=True),
        ("value", "A"),
        ("largest value after the step", "lead A of the mean field"),
        strict=True,
    ):
        x = points[axis].clip(lower=0.5)
        ax.scatter(x, points["fails"], c=np.log(points["T"]), cmap="viridis", s=22, alpha=0.8)
        ax.set_xscale("log")
        ax.set_xlabel(label)
        if axis == "A":
            ax.axvline(LARGEST_LEAD, color="#8c8c8c", linewidth=1)
        else:
            ax.set_ylabel("share of fits that fail")
    return figure


def main(argv: list[str] | None = None) -> None:
    """Fit, and write the page and the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=15)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(argv)
    grid = list(product(N_RELEVANT, LENGTHS, DIMENSIONS, VALUES))
    chosen = np.random.default_rng(2026).permutation(len(grid))[: options.points]
    places = [grid[at] for at in chosen]
    tasks = [(*place, 9_000 + seed) for place in places for seed in range(options.seeds)]
    found = Parallel(options.jobs, verbose=1)(delayed(judge)(*task) for task in tasks)
    fits = pd.DataFrame(found)
    draw(fits).savefig(ROOT / "docs" / "images" / "selection_law.png", dpi=120)
    asked = (
        f"Asked before the run: an area of at least {LEAST_AUC} for A, at most "
        f"{MOST_MISJUDGED:.0%} of points misjudged, and no fit that fails where w min a <= 1 "
        "without a dimension."
    )
    text = pages.page("The selection law", "python -m benchmarks.paper.law", asked, table(fits))
    pages.write(pages.RESULTS / "selection_law.md", text)


if __name__ == "__main__":
    sys.exit(main())
