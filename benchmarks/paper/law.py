"""The selection law on fresh data: ``python -m benchmarks.paper.law [--fast]`` (``make paper``).

Every seed has documents and embeddings of its own. Thresholds were written down before the run.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch
from joblib import Parallel, delayed
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from benchmarks import command_line, machine, pages
from sklearn_clsattn.paper import check_single_relevant_token
from sklearn_clsattn.paper._gradient_flow import gradient_flow

from .selection_law import LARGEST_LEAD, law_of, selection_law
from .theorem import Data, after_step, flow, limit_of, objective_of, one_relevant, usual_step

N_RELEVANT, LENGTHS = (1, 2, 5, 10, 20), (5, 10, 14, 20, 30, 60)
DIMENSIONS = (None, 64, 256, 1024, 4096, 16384)
VALUES = (1 / 4, 1 / 2, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0)
# Relevant tokens of the classes, exponent of their frequencies, share of documents with one of the
# other class, and share of the first class: the last two break the assumption.
KINDS: dict[str, list[tuple[int, int, float, float, float]]] = {
    "classes of unequal numbers of tokens, or unequal frequencies": [
        (2, 10, 0.0, 0.0, 0.5),
        (5, 20, 0.0, 0.0, 0.5),
        (5, 5, 1.0, 0.0, 0.5),
        (3, 10, 1.0, 0.0, 0.5),
    ],
    "tokens shared, 2 % and 5 % of documents": [(5, 5, 0.0, 0.02, 0.5), (5, 5, 0.0, 0.05, 0.5)],
    "classes of 60 and 40 %, or 75 and 25 %": [(5, 5, 0.0, 0.0, 0.6), (5, 5, 0.0, 0.0, 0.75)],
}
# What is asked: of A in finite dimensions on the first grid, on kinds, and of closed forms.
LEAST_AUC, MOST_MISJUDGED = 0.9, 0.1
SPECTRAL_RULE = 1.4**2  # of S: the spectral norm that the default step keeps to
LEAST_AUC_OF_KINDS, MOST_MISJUDGED_OF_KINDS = 0.8, 0.2
RATIO_OF_TIMES, RATIO_OF_EDGES = (0.8, 1.25), (0.5, 2.0)
IMAGES = command_line.ROOT / "docs" / "images"
# Settings of the times to select (value, relevant tokens, length), and of both edges.
TIMES = tuple(product((1 / 64, 1 / 4, 1.0), ((2, 10), (5, 20), (10, 40))))
NOISE_EDGES = tuple(product((64, 1024), ((2, 10), (10, 10), (5, 30))))
LARGE_STEP_EDGES = (256, 1024, 4096)
NEVER = 400.0  # an infinite lead, for areas and pictures


def redrawn(
    seed: int, K0: int, K1: int, exponent: float, shared: float, first: float, length: int
) -> Data:
    """Return documents whose relevant tokens, which come first, are drawn again."""
    sizes, n_relevant = (K0, K1), max(K0, K1)
    X, y = one_relevant(seed, max(120, 20 * n_relevant), n_relevant, 50, length)
    rng = np.random.default_rng(seed)
    tokens = np.empty(len(y), dtype=int)
    for k, size in enumerate(sizes):
        of_class = rng.permutation(np.flatnonzero(y == k))
        p = np.arange(1.0, size + 1) ** -exponent
        drawn = rng.choice(size, len(of_class), p=p / p.sum())
        drawn[:size] = np.arange(size)  # every token occurs
        tokens[of_class] = k * sizes[0] + drawn
    other = rng.random(len(y)) < shared
    tokens[other] = np.where(
        y[other] == 0,
        sizes[0] + rng.integers(0, sizes[1], other.sum()),
        rng.integers(0, sizes[0], other.sum()),
    )
    ones = np.ones(len(y))
    relevant = sp.csr_matrix((ones, (np.arange(len(y)), tokens)), shape=(len(y), sum(sizes)))
    X = sp.hstack([relevant, X[:, 2 * n_relevant :]]).tocsr()
    kept = rng.random(len(y)) < np.where(y == 0, 1.0, (1 - first) / first)
    return X[kept], y[kept]


def judge(
    data: Data, n_relevant: int, dimension: int | None, value: float | None, seed: int
) -> dict[str, Any]:
    """Return whether a fit misses a relevant token, which come first, and what the law says."""
    X, y = data
    step_size = None if value is None else value * usual_step(X, y)
    model = flow(X, y, step_size=step_size, embedding_dim=dimension, random_state=seed)
    if check_single_relevant_token(X, y).holds:
        law = selection_law(X, y, step_size=model.step_size_, embedding_dim=dimension)
    else:
        present = np.asarray(X.sum(axis=0)).ravel() > 0
        relevant = np.flatnonzero(present[:n_relevant])
        n_irrelevant = int(present[n_relevant:].sum())
        law = law_of(X, y, relevant, n_irrelevant, model.step_size_, dimension)
    selected = np.asarray(model.select_tokens(X)[:, :n_relevant].sum(axis=1)).ravel()
    return {
        "T": np.exp((law.upper_edge - np.log(2)) / 2) + 1,
        "d": dimension or np.inf,
        "value": law.largest_value,
        "seed": seed,
        "fails": not selected.all(),
        "verdict": law.verdict,
        "A": min(float(np.mean(law.leads)), NEVER),
        "S": law.strength,
        "proved": law.token_loss < 1,
        "bad optimum": law.bad_optimum > 1,
        "over noise": law.noise,
    }


def place(K: int, T: int, d: int | None, value: float | None) -> tuple[Any, ...]:
    """Return a place of one relevant token a document, as :func:`fits_of` takes it."""
    return lambda seed: one_relevant(seed, max(120, 20 * K), K, 50, T), 2 * K, d, value


def fits_of(places: list[tuple[Any, ...]], n_seeds: int, n_jobs: int, first: int) -> pd.DataFrame:
    """Return the fits of places: a function from seeds to data, and :func:`judge`'s arguments."""

    def fit(at: int, seed: int) -> dict[str, Any]:
        make, *place = places[at]
        return {"at": at, **judge(make(seed), *place, seed)}

    tasks = product(range(len(places)), range(first, first + n_seeds))
    return pd.DataFrame(Parallel(n_jobs, verbose=1)(delayed(fit)(*task) for task in tasks))


def by_point(fits: pd.DataFrame) -> pd.DataFrame:
    """Return means over seeds, one row for each place."""
    return fits.groupby("at")[["T", "value", "fails", "A", "S"]].mean()


def judged(fits: pd.DataFrame, least: float, most: float) -> list[tuple[str, str, str]]:
    """Return what A, S and the value tell of fits in finite dimensions.

    A and the default step's rule have thresholds written down before; those of S and of the value
    are the best for these very points, in either direction.
    """
    finite = fits[np.isfinite(fits["d"])]
    points = by_point(finite)
    fails = (points["fails"] > 0.5).to_numpy()
    wrong = int((fails != (points["A"] > LARGEST_LEAD)).sum())
    others = [int((fails != (points["S"] > SPECTRAL_RULE)).sum())]
    others += [fewest_misjudged(points[name].to_numpy(), fails) for name in ("S", "value")]
    areas = {name: area(finite["fails"], finite[name]) for name in ("A", "S", "value")}
    said = "S > 1.96 {}, S at best {}, value at best {}".format(*others)
    return [
        (
            "area under the curve of A",
            f"≥ {least:g}",
            f"{areas['A']:.3f} (S {areas['S']:.3f}, value {areas['value']:.3f})",
        ),
        ("points misjudged by A > 9", f"≤ {most:.0%}", f"{wrong} of {len(points)} ({said})"),
    ]


def area(fails: pd.Series, measure: pd.Series) -> float:
    """Return the area under the curve, NaN where all fits fail or none does."""
    return roc_auc_score(fails, measure) if fails.nunique() == 2 else float("nan")


def fewest_misjudged(measure: NDArray[np.float64], fails: NDArray[np.bool_]) -> int:
    """Return how many points the best threshold on a measure misjudges, in either direction."""
    above = measure[:, None] > np.append(measure, -np.inf)
    wrong = (above != fails[:, None]).sum(axis=0)
    return int(min(wrong.min(), len(fails) - wrong.max()))


def verdicts(fits: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Return how many fits fail of those with a verdict, and of those that a proof is about."""
    rows = []
    limit = fits[np.isinf(fits["d"])]
    for where, some in (("d finite", fits.drop(limit.index)), ("no dimension", limit)):
        for verdict, of in some.groupby("verdict"):
            rows.append((f'said "{verdict}", {where}', "", of))
    rows.append(("no dimension, w max a < 1: proved", "0", limit[limit["proved"]]))
    rows.append(("no dimension, w min a <= 1", "0", limit[~limit["bad optimum"]]))
    return [
        (f"fits that fail, {name}", asked, f"{int(of['fails'].sum())} of {len(of)}")
        for name, asked, of in rows
    ]


def time_to_select(data: Data, n_relevant: int, value: float) -> float:
    """Return the median of tokens' times to half the attention over the closed form's.

    That is 4 / (eta alpha^2) (T + 2 ln(T - 1) - T / (T - 1)) / T_h / (1 + 2 K sum p_s^2), with T
    and T_h the geometric and the harmonic mean of lengths, p_s the irrelevant tokens' shares.
    """
    X, y = data
    step, objective = limit_of(data, value * usual_step(X, y))
    path = gradient_flow(objective, None, torch.zeros(X.shape[1], dtype=torch.float64), 0.1)
    relevant, counts = X[:, :n_relevant].toarray(), np.asarray(X.sum(axis=0)).ravel()
    alpha = 2 * np.abs(step.shifts[:n_relevant, 0]) / step.step_size
    harmonic = (relevant > 0).mean(axis=0) / alpha
    length = np.exp(np.log(np.asarray(X.sum(axis=1))).mean())
    shares = counts[n_relevant:] / counts[n_relevant:].sum()
    expected = 4 / (step.step_size * alpha**2) / harmonic / (1 + n_relevant * (shares @ shares))
    expected *= length + 2 * np.log(length - 1) - length / (length - 1)
    time, reached = 0.0, np.full(n_relevant, np.nan)
    while np.isnan(reached).any():
        weights = X.multiply(np.exp(path.y[0].numpy())).tocsr()
        own, whole = (np.asarray(of.sum(axis=1)) for of in (weights[:, :n_relevant], weights))
        mean = (relevant * (own / whole).reshape(-1, 1)).sum(axis=0) / relevant.sum(axis=0)
        reached[np.isnan(reached) & (mean >= 0.5)] = time
        before, rate, log_size = path.y[1, 0], path.derivative[1, 0], path.point.log_size
        if path.step() == 0:
            break
        own_time = 2 * (path.y[1, 0] - before) / (rate + path.derivative[1, 0])
        time += float(own_time) * (np.exp(-log_size) + np.exp(-path.point.log_size)) / 2
    return float(np.nanmedian(reached / expected))


def times(settings: Sequence[Any], n_seeds: int, n_jobs: int) -> list[tuple[str, str, str]]:
    """Return the ratios of measured times to select to the closed form's."""
    rows, (low, high) = [], RATIO_OF_TIMES
    for value, (n_relevant, length) in settings:
        data = [
            one_relevant(seed, 20 * n_relevant, n_relevant, 50, length)
            for seed in range(46_000, 46_000 + n_seeds)
        ]
        found = Parallel(n_jobs)(
            delayed(time_to_select)(each, 2 * n_relevant, value) for each in data
        )
        name = f"time to half the attention over the closed form, value {value:g}, "
        measured = f"{np.median(found):.2f} ({min(found):.2f} to {max(found):.2f})"
        asked = f"{low} to {high}" if value < 1 else ""  # above, the classes compete
        rows.append((f"{name}K = {n_relevant}, T = {length}", asked, measured))
    return rows


def edges(
    noise: Sequence[Any], large_step: Sequence[int], n_seeds: int, n_jobs: int
) -> list[tuple[str, str, str]]:
    """Return where half of the fits fail, over the edges by noise and of large steps."""
    rows, (low, high) = [], RATIO_OF_EDGES
    multiples = np.array([1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0])
    for dimension, (n_relevant, length) in noise:
        edge = np.sqrt(2 * np.log(2 * n_relevant) / dimension)
        places = [(n_relevant, length, dimension, float(edge * x)) for x in multiples]
        fails = shares(places, n_seeds, n_jobs, 44_000)
        name = f"edge by noise, K = {n_relevant}, T = {length}, d = {dimension}"
        rows.append((name, f"{low:g} to {high:g}", crossing(multiples, fails, falls=True)))
    for dimension in large_step:
        places = [(5, 10, dimension, float(np.sqrt(dimension) * x)) for x in multiples]
        fails = shares(places, n_seeds, n_jobs, 45_000)
        name = f"edge of large steps, a over sqrt(d), d = {dimension}"
        rows.append((name, f"{low:g} to {high:g}", crossing(multiples, fails, falls=False)))
    return rows


def shares(places: list[tuple[Any, ...]], n_seeds: int, n_jobs: int, first: int) -> list[float]:
    """Return the share of fits that fail at each place: K, T, d and the value."""
    return (
        fits_of([place(*one) for one in places], n_seeds, n_jobs, first)
        .groupby("at")["fails"]
        .mean()
        .tolist()
    )


def crossing(multiples: np.ndarray, fails: list[float], *, falls: bool) -> str:
    """Return between which multiples most fits begin, or cease, to fail, and all shares."""
    said = ", ".join(f"{share:.0%}" for share in fails)
    over = np.array(fails) > 0.5
    changes = np.flatnonzero(over[:-1] != over[1:])
    if over[0] != falls or over[-1] == falls or len(changes) != 1:
        return f"no edge: {said}"
    return f"{multiples[changes[0]]:g} to {multiples[changes[0] + 1]:g}: {said}"


def draw(fits: pd.DataFrame) -> Figure:
    """Return the picture: the share of fits that fail, over the value and over A."""
    points = by_point(fits[np.isfinite(fits["d"])])
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    axes = {"value": "largest value after the step", "A": "lead A of the mean field"}
    for ax, (axis, label) in zip(panels, axes.items(), strict=True):
        x, colours = points[axis].clip(lower=0.5), LogNorm(min(LENGTHS), max(LENGTHS))
        dots = ax.scatter(x, points["fails"], 24, points["T"], norm=colours, alpha=0.8)
        ax.set_xscale("log")
        ax.set_xlabel(label)
        ax.yaxis.set_major_formatter(PercentFormatter(1.0))
        ax.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("fits that fail")
    panels[1].axvline(LARGEST_LEAD, color="#8c8c8c", linewidth=1)
    bar = figure.colorbar(dots, ax=panels, label="tokens of a document")
    bar.set_ticks(LENGTHS, labels=[str(length) for length in LENGTHS])
    bar.minorticks_off()
    return figure


def mechanism() -> Figure:
    """Return the picture of two flows: the class behind comes back in one, and not in the other."""
    data = one_relevant(0, 120, 5, 50, 10)
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    for ax, value in zip(figure.subplots(1, 2), (8.0, 2.0), strict=True):
        step = after_step(data, value, dimension=1024, seed=0)
        E = torch.from_numpy(step.embeddings)
        objective = objective_of(data, E @ torch.from_numpy(step.output_vectors).T)
        path = gradient_flow(objective, E, E @ torch.from_numpy(step.cls_embedding), 1.0)
        ways, leads = [0.0], []
        while True:
            scores = path.y[0].numpy()
            others = scores[10:].mean()
            leads.append([scores[:5].mean() - others, scores[5:10].mean() - others])
            if ways[-1] > 50:
                break
            ways.append(ways[-1] + path.step())
        for lead, colour, name in zip(
            np.transpose(leads), ("#0072b2", "#d55e00"), ("first", "second"), strict=True
        ):
            ax.plot(ways, lead, color=colour, label=f"relevant tokens of the {name} class")
        ax.axhline(0, color="#8c8c8c", linewidth=1)
        ax.set_title(f"largest value {value:g}", fontsize=10, loc="left")
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_xlabel("way along the flow, in score units")
    figure.axes[0].set_ylabel("score above irrelevant tokens'")
    figure.axes[0].legend(frameon=False, fontsize=8.5)
    return figure


def main(arguments: list[str] | None = None) -> int:
    """Fit, and write the page and the pictures."""
    parser = command_line.parser("paper.law", __doc__)
    parser.add_argument("--fast", action="store_true", help="few points and seeds, a trial")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, help="folder of page and pictures")
    options = parser.parse_args(arguments)
    described = machine.describe()
    n_points, n_seeds = (4, 1) if options.fast else (60, 15)
    folder, images = pages.RESULTS, IMAGES
    if options.fast or options.out:
        folder = images = options.out or Path(tempfile.mkdtemp(prefix="law-"))
    rng = np.random.default_rng(2027)  # points and seeds that no earlier record had
    grid = list(product(N_RELEVANT, LENGTHS, DIMENSIONS, VALUES))
    chosen = [grid[at] for at in rng.permutation(len(grid))[:n_points]]
    places = [place(*one) for one in chosen]
    fits = fits_of(places, n_seeds, options.jobs, 41_000)
    draw(fits).savefig(images / "selection_law.png", dpi=120)
    mechanism().savefig(images / "selection_mechanism.png", dpi=120)
    rows = judged(fits, LEAST_AUC, MOST_MISJUDGED) + verdicts(fits)
    usual = [(make, K, d, None) for make, K, d, _ in places]
    default = fits_of(usual, max(1, n_seeds // 5), options.jobs, 42_000)
    n = int(default["fails"].sum())
    rows.append(("fits that fail at the default step, same places", "", f"{n} of {len(default)}"))
    for kind, cases in KINDS.items():
        grid = list(product(cases, (10, 20, 40), (256, 1024, 4096), VALUES[1:9]))
        chosen = [grid[at] for at in rng.permutation(len(grid))[: max(1, n_points // 5)]]
        places = [
            (lambda seed, case=case, T=T: redrawn(seed, *case, T), case[0] + case[1], d, value)
            for case, T, d, value in chosen
        ]
        of_kind = fits_of(places, n_seeds, options.jobs, 43_000)
        found = judged(of_kind, LEAST_AUC_OF_KINDS, MOST_MISJUDGED_OF_KINDS)
        rows += [(f"{kind}: {name}", asked, measured) for name, asked, measured in found]
    some = slice(1 if options.fast else None)
    rows += times(TIMES[some], n_seeds, options.jobs)
    rows += edges(NOISE_EDGES[some], LARGE_STEP_EDGES[some], n_seeds, options.jobs)
    caption = (
        "Thresholds were written down before the run; misses are in the table. A point is a place "
        'and a step with all its seeds; it fails if most of them do. "At best": with the threshold '
        "that misjudges the fewest of these points."
    )
    text = pages.table(("", "asked", "measured"), rows)
    command = "python -m benchmarks.paper.law" + " --fast" * options.fast
    theory = Path(__file__).with_suffix(".md").read_text(encoding="utf-8").strip()
    page = pages.page("The selection law", command, theory, caption, text, described=described)
    pages.publish(page, folder / "selection_law.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
