"""Whether selections persist as v, or E, is trained further after p."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from sklearn_clsattn.paper import OneStepClassifier
from sklearn_clsattn.theory import selected_tokens

from . import pictures
from .data import Settings
from .findings import Section, asked, spread, table
from .open_questions import DATA, MOST_STEPS
from .run import alone
from .shapes import Array
from .thresholds import THRESHOLDS

PICTURE = "paper_after_p.png"
DIMENSION = 1024
STEPS = (0, 1, 3, 10, 30, 100, 300, 1000)
# What is trained further, by which optimiser, at which learning rate.
WAYS: dict[str, tuple[str, Any, float]] = {
    "v": ("v", torch.optim.Adam, 1e-2),
    "E, gradient descent": ("E", torch.optim.SGD, 1.0),
    "E, Adam": ("E", torch.optim.Adam, 1e-3),
    "E, p and v, gradient descent": ("Epv", torch.optim.SGD, 1.0),
    "E, p and v, Adam": ("Epv", torch.optim.Adam, 1e-3),
}


def run(settings: Settings) -> Section:
    """Train p to its limit, then go on with v, E or everything."""
    steps = settings.pick(STEPS, (0, 1, 10))
    kept: dict[tuple[str, str], Array] = {}
    losses: dict[tuple[str, str], Array] = {}
    for label, make in DATA.items():
        data = [make(seed, settings) for seed in settings.seeds]
        starts = [after_flow(*each, seed) for seed, each in zip(settings.seeds, data, strict=True)]
        for way in WAYS:
            found = [
                further(*each, start, way, steps) for each, start in zip(data, starts, strict=True)
            ]
            kept[label, way] = np.array([shares for shares, _ in found])
            losses[label, way] = np.array([loss for _, loss in found])
    _draw(settings, kept, steps)
    rows = [
        (
            label,
            way,
            *(f"{100 * share:.0f} %" for share in shares.mean(axis=0)),
            f"{spread(losses[label, way][:, 0])}, {spread(losses[label, way][:, -1])}",
        )
        for (label, way), shares in kept.items()
    ]
    checks = [
        asked(
            f"After p, {label}, {way}: documents that keep their selection for {steps[-1]:,} steps",
            "persists",
            shares[:, -1],
        )
        for (label, way), shares in kept.items()
    ]
    lost = [
        f"{way} ({label})"
        for (label, way), shares in kept.items()
        if shares[:, -1].min() < THRESHOLDS["persists"].limit
    ]
    return Section(
        "after_p",
        "Training v, or E further, after p",
        "The theorem trains p alone. Whether its selections persist as v or E are trained "
        "afterwards is left open.",
        f"The data of the last section, d = {DIMENSION}, eta_0 by the default rule, p along the "
        "flow to its limit, of a length at which 99 % of the attention is on selected tokens. Then "
        "all documents in every step, E, p and v being what is named. Share of documents whose "
        "selected tokens are the same as before, mean over seeds:\n\n"
        + table(("data", "trained", *(f"{n:,}" for n in steps), "loss before, after"), rows),
        "Training v alone cannot change a selection: scores are E.p, and v is not in them. "
        + (
            f"Not every document keeps its selection with: {'; '.join(lost)}. "
            if lost
            else "Nor does training of E, or of everything, change any here. "
        )
        + "Where attention is nearly all on selected tokens, the gradient by other tokens' scores "
        "is as small as what is left on them, so that gradient descent hardly moves them; Adam "
        "divides by the size of gradients, and so moves every token at the same pace, however "
        "small its gradient is.",
        checks,
        PICTURE,
        "Share of documents that keep their selection, over steps of training after p; mean and "
        "range over seeds.",
    )


def after_flow(X: Any, y: NDArray[np.int64], seed: int) -> tuple[Array, ...]:
    """Return E after one step, the p that the flow ends with, and v."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a flow that does not settle
        model = OneStepClassifier(
            embedding_dim=DIMENSION, max_iter=MOST_STEPS, random_state=seed
        ).fit(X, y)
    return model.token_embeddings_, model.cls_embedding_, model.output_vector_


def further(
    X: Any, y: NDArray[np.int64], start: tuple[Array, ...], way: str, steps: tuple[int, ...]
) -> tuple[list[float], list[float]]:
    """Return the shares of documents that keep their selection, and the losses, at `steps`.

    `start` has E (n_tokens, d), p (d,) and v (d,).
    """
    E, p, v = (torch.tensor(array, dtype=torch.float64, requires_grad=True) for array in start)
    names, optimiser, rate = WAYS[way]
    trained = optimiser([{"E": E, "p": p, "v": v}[name] for name in names], lr=rate)
    logs = torch.log(torch.from_numpy(X.toarray()))
    signs = torch.from_numpy(2.0 * y - 1)
    before = selected_tokens((E @ p).detach().numpy(), X)
    shares, losses = [], []
    for step in range(steps[-1] + 1):
        scores = E @ p
        outputs = torch.softmax(scores + logs, dim=1) @ (E @ v)
        loss = torch.nn.functional.softplus(-signs * outputs).mean()
        if step in steps:
            now = selected_tokens(scores.detach().numpy(), X)
            changed = np.asarray((now != before).sum(axis=1)).ravel() > 0
            shares.append(float(np.mean(~changed)))
            losses.append(loss.item())
        trained.zero_grad()
        loss.backward()
        trained.step()
    return shares, losses


def _draw(settings: Settings, kept: dict[tuple[str, str], Array], steps: tuple[int, ...]) -> None:
    figure, axes = pictures.grid(1, len(DATA), width=3.8, height=3.0)
    colours = (*pictures.COLOURS, pictures.SKY)
    marks = (*pictures.MARKS, "v")
    for ax, label in zip(axes[0], DATA, strict=True):
        for way, colour, mark in zip(WAYS, colours, marks, strict=True):
            shares = 100 * kept[label, way]
            pictures.means(ax, steps, shares.mean(axis=0), colour=colour, mark=mark, label=way)
            ax.fill_between(
                steps, shares.min(axis=0), shares.max(axis=0), color=colour, alpha=0.1, linewidth=0
            )
        ax.set_xscale("symlog", linthresh=1)
        ax.set_ylim(-4, 104)
        pictures.name_axes(ax, label, "steps after p", "documents keeping\ntheir selection, %")
    pictures.legend_below(figure, axes[0, 0], 3)
    pictures.save(figure, settings, PICTURE)


if __name__ == "__main__":
    sys.exit(alone(run))
