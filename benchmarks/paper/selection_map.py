"""Which tokens gradient flow selects, over eta_0, d, n, T and the number of irrelevant tokens."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.paper import OneStepClassifier

from . import pictures
from .data import Settings
from .findings import Check, Section, asked, decimals, reported, table
from .margin import rule
from .run import alone
from .shapes import Array

PICTURE = "paper_selection_map.png"
VALUES = (1 / 8, 1 / 2, 1.0, 2.0, 4.0, 8.0, 16.0)
MOST_STEPS = 600
CERTIFIED_AMONG = 2.0 ** np.arange(4, 16)


@dataclass(frozen=True)
class Place:
    """Where on the map: theory.md's data but for one number."""

    dimension: int | None = 4096
    n_documents: int = 120
    length: int = 10
    n_irrelevant: int = 50


# One number varies in each panel; the first place of a panel is drawn in the first colour.
PANELS: dict[str, dict[str, Place]] = {
    "embedding dimension d": {
        "d = 256": Place(256),
        "d = 1024": Place(1024),
        "d = 4096": Place(),
        "no dimension": Place(None),
    },
    "documents n": {
        "n = 40": Place(n_documents=40),
        "n = 120": Place(),
        "n = 360": Place(n_documents=360),
    },
    "mean length T": {"T = 5": Place(length=5), "T = 10": Place(), "T = 20": Place(length=20)},
    "irrelevant tokens": {
        "20": Place(n_irrelevant=20),
        "50": Place(),
        "150": Place(n_irrelevant=150),
    },
}


@dataclass(frozen=True, eq=False)
class Line:
    """What was found along eta_0 at one place.

    Attributes
    ----------
    shares : ndarray of shape (n_values, n_seeds)
        Share of documents that select their relevant token.

    settled : ndarray of bool of shape (n_values, n_seeds)
        Whether the flow settled on a selection, with its direction certified.

    certified_from : float
        The smallest largest value tried at which the certificate n L(p0) < log 2 holds in every
        seed; infinite if at none.
    """

    shares: Array
    settled: Any
    certified_from: float


def run(settings: Settings) -> Section:
    """Follow the flow at every place, value and seed."""
    panels = settings.pick(PANELS, {"documents n": {"n = 20": Place(32, 20, 5, 10)}})
    values = settings.pick(VALUES, (1.0, 4.0))
    lines: dict[Place, Line] = {}
    for places in panels.values():
        for place in places.values():
            if place not in lines:
                lines[place] = line(place, values, settings)
    _draw(settings, panels, lines, values)
    checks: list[Check] = []
    rows = []
    for panel, places in panels.items():
        for label, place in places.items():
            found = lines[place]
            rows.append(
                (
                    panel,
                    label,
                    *(decimals(share) for share in found.shares.mean(axis=1)),
                    _values(gap(values, found)),
                    f"{found.certified_from:g}" if np.isfinite(found.certified_from) else "–",
                )
            )
    for place, found in lines.items():
        name = f"Map, {_name(place)}"
        checks += [
            asked(
                f"{name}: share selecting their relevant token at a largest value of "
                f"{values[-1]:g}",
                "selection",
                found.shares[-1],
            ),
            reported(f"{name}: values at which some seed misses one", _values(gap(values, found))),
        ]
    unsettled = sum(int((~found.settled).sum()) for found in lines.values())
    n_runs = sum(found.settled.size for found in lines.values())
    header = (
        "what varies",
        "place",
        *(_value(value) for value in values),
        "misses at",
        "certified from",
    )
    return Section(
        "selection_map",
        "Which tokens are selected: a map",
        "The lemma says that for eta_0 large enough, and d growing with it, all important tokens "
        "are selected. How large, and what happens below, is left open.",
        "Mean share of documents that select their relevant token over "
        f"{len(settings.seeds)} seeds, by eta_0 as the largest value after the step. All places "
        "are theory.md's data (d = 4096, n = 120, T = 10, 50 irrelevant tokens) but for one "
        "number. *Certified from* is the smallest power "
        "of 2, from 16 on, at which n L(p0) < log 2 in every seed, so that the flow is bound to "
        f"keep every document right. {unsettled} of {n_runs} runs had not settled on a selection "
        f"within {MOST_STEPS} steps; what they select at their end is counted.\n\n"
        + table(header, rows),
        _conclusion(
            values,
            {place: gap(values, found) for place, found in lines.items()},
            {place: found.certified_from for place, found in lines.items()},
        ),
        checks,
        PICTURE,
        "Share of documents that select their relevant token by gradient flow, over eta_0; mean "
        f"and range of {len(settings.seeds)} seeds. In each panel one number varies; blue, green, "
        "orange and pink from small to large.",
    )


def line(place: Place, values: tuple[float, ...], settings: Settings) -> Line:
    """Follow the flow for every value and seed at one place."""
    seeds = settings.seeds
    shares = np.empty((len(values), len(seeds)))
    settled = np.zeros(shares.shape, dtype=bool)
    certified = np.zeros((len(CERTIFIED_AMONG), len(seeds)), dtype=bool)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of steps out of range, and of flows that do not settle
        for j, seed in enumerate(seeds):
            X, y = documents(place, seed)
            unit = rule(X, y)
            relevant = np.arange(10)
            for i, value in enumerate(values):
                model = OneStepClassifier(
                    step_size=value * unit,
                    embedding_dim=place.dimension,
                    max_iter=settings.pick(MOST_STEPS, 50),
                    random_state=seed,
                ).fit(X, y)
                selected = model.select_tokens(X)[:, relevant]
                shares[i, j] = np.mean(np.asarray(selected.sum(axis=1)).ravel() > 0)
                settled[i, j] = model.conditions_.direction_converged
            for i, value in enumerate(CERTIFIED_AMONG):
                model = OneStepClassifier(
                    step_size=value * unit,
                    embedding_dim=place.dimension,
                    solver="descent",
                    max_iter=1,
                    random_state=seed,
                ).fit(X, y)
                certified[i, j] = model.conditions_.keeps_documents_right
    from_here = np.flatnonzero(certified.all(axis=1))
    first = float(CERTIFIED_AMONG[from_here[0]]) if len(from_here) else np.inf
    return Line(shares, settled, first)


def documents(place: Place, seed: int) -> tuple[Any, Any]:
    """Return documents of one relevant token each, the first ten tokens, and their labels."""
    X, y = make_token_classification(
        place.n_documents,
        n_relevant_per_class=5,
        n_irrelevant=place.n_irrelevant,
        document_length=place.length,
        delta=0,
        single_relevant=True,
        random_state=seed,
    )
    return X.astype(np.float64), y


def gap(values: tuple[float, ...], found: Line) -> list[float]:
    """Return the values at which some seed has a document without its relevant token."""
    return [value for value, shares in zip(values, found.shares, strict=True) if shares.min() < 1]


def _conclusion(
    values: tuple[float, ...], gaps: dict[Place, list[float]], certified: dict[Place, float]
) -> str:
    """Say where `gaps`, the values at which some seed misses a token, begin and end."""
    safe = [value for value in values if not any(value in missed for missed in gaps.values())]
    above = max(safe, default=0.0)
    highest = max((max(missed) for missed in gaps.values() if missed), default=0.0)
    always = f"Values of {_values(safe)} select every relevant token everywhere tried. " * bool(
        safe
    )
    found = [(place, value) for place, value in certified.items() if np.isfinite(value)]
    bound = (
        "; ".join(f"{_name(place)}: from {value:g}" for place, value in found)
        or "at no place tried"
    )
    return (
        f"{always}Above {above:g} there is a gap, in which the flow may end with the documents "
        f"of one class selecting irrelevant tokens; the highest value tried with such a seed is "
        f"{highest:g}. Beyond the gap is the range of the lemma. The table has "
        "where it lies at each place; below, at small d, the noise of the random start takes over. "
        f"The certificate, tried up to {CERTIFIED_AMONG[-1]:,.0f}, holds in all seeds here: "
        f"{bound}. It has to beat attention that starts out uniform over whole documents, and in "
        "finite dimensions a longer step also "
        "makes what it writes beside v larger: d has to grow with eta_0. The flow needs far less."
    )


def _name(place: Place) -> str:
    dimension = "no dimension" if place.dimension is None else f"d = {place.dimension}"
    return (
        f"{dimension}, n = {place.n_documents}, T = {place.length}, {place.n_irrelevant} irrelevant"
    )


def _value(value: float) -> str:
    return f"{value:g}" if value >= 1 else f"1/{1 / value:.0f}"


def _values(values: list[float]) -> str:
    return ", ".join(_value(value) for value in values) or "none"


def _draw(
    settings: Settings,
    panels: dict[str, dict[str, Place]],
    lines: dict[Place, Line],
    values: tuple[float, ...],
) -> None:
    n_rows = (len(panels) + 1) // 2
    figure, axes = pictures.grid(n_rows, 2, width=4.6, height=3.0)
    for ax in axes.ravel()[len(panels) :]:
        ax.set_visible(False)
    colours = (pictures.BLUE, pictures.GREEN, pictures.ORANGE, pictures.PINK)
    for ax, (panel, places) in zip(axes.ravel(), panels.items(), strict=False):
        for (label, place), colour, mark in zip(
            places.items(), colours, pictures.MARKS, strict=False
        ):
            shares = 100 * lines[place].shares
            pictures.means(ax, values, shares.mean(axis=1), colour=colour, mark=mark, label=label)
            ax.fill_between(
                values, shares.min(axis=1), shares.max(axis=1), color=colour, alpha=0.1, linewidth=0
            )
        ax.set_xscale("log", base=2)
        ax.set_xticks(values, [_value(value) for value in values])
        ax.minorticks_off()
        ax.set_ylim(0, 106)
        pictures.name_axes(
            ax, panel, "largest value after the step", "documents selecting\ntheir token, %"
        )
        pictures.legend(ax, loc="lower right")
    pictures.save(figure, settings, PICTURE)


if __name__ == "__main__":
    sys.exit(alone(run))
