"""Two layers with trained key-query matrices, and an MLP after the softmax."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import known, pictures
from .data import Settings, load, subset
from .models import along_posterior, batch_parameters, draw, over_seeds
from .record import Row, row
from .reviews import CORPORA
from .shapes import arms, order

N_DOCUMENTS = 4000  # of training and of testing: time allows no more
MLP_EPOCHS = 8


def run(settings: Settings) -> list[Row]:
    """Train two layers on a part of IMDB and of Yelp, and one layer with an MLP on IMDB."""
    rows = []
    parameters = batch_parameters(*settings.pick((128, 12), (16, 6))) | {"n_iter_no_change": 3}
    parameters |= {"learning_rate": 0.01} if settings.fast else {}
    parts = {name: subset(load(name, settings), N_DOCUMENTS, N_DOCUMENTS) for name in CORPORA}
    figure, axes = pictures.grid(2, 3, width=4.2)
    for name, corpus in parts.items():
        models = over_seeds(corpus, settings, n_layers=2, **parameters)
        scores, values = (
            [along_posterior(corpus, getattr(model, what)) for model in models]
            for what in ("scores", "values")
        )
        rows += [
            row("two layers rises", name, [order(bins.means) for bins in values]),
            row("two layers U", name, [arms(bins.centres, bins.means).worse for bins in scores]),
            *ends("two layers E.p", f"{name}, ", scores[0].means),
            row("two layers E.v", f"{name}, left end, first start", values[0].means[0]),
            row("two layers E.v", f"{name}, right end, first start", values[0].means[-1]),
            row("other accuracy", f"{name}, two layers", [model.accuracy for model in models]),
        ]
        if name == "IMDB":
            panels = [
                (r"$E_s \cdot W_2\, p$", models[0].scores, known.TWO_LAYER_SCORES),
                (pictures.VALUE, models[0].values, known.TWO_LAYER_VALUES),
            ]
            _draw(axes[0], f"{name}, two layers", corpus, panels)
    corpus = parts["IMDB"]
    how = {**parameters, "early_stopping": False, "max_iter": settings.pick(MLP_EPOCHS, 4)}
    models = over_seeds(corpus, settings, mlp=True, **how)
    scores, values, single = (
        [along_posterior(corpus, getattr(model, what)) for model in models]
        for what in ("scores", "values", "one_token")
    )
    rows += [
        row("mlp U", "IMDB", [arms(bins.centres, bins.means).worse for bins in scores]),
        row("mlp E.v", "IMDB", np.abs([order(bins.means) for bins in values])),
        row("mlp output", "IMDB", [order(bins.means) for bins in single]),
        *ends("mlp E.p", "", scores[0].means),
        row("other accuracy", "IMDB, MLP", [model.accuracy for model in models]),
    ]
    panels = [
        (pictures.SCORE, models[0].scores, known.MLP_SCORES),
        (pictures.VALUE, models[0].values, known.MLP_VALUES),
        (r"$f([s])$", models[0].one_token, None),
    ]
    _draw(axes[1], "IMDB, MLP", corpus, panels)
    axes[0, 2].set_visible(False)
    pictures.save(figure, settings, "paper_networks.png")
    return rows


def ends(statement: str, line: str, means: np.ndarray) -> list[Row]:
    """Return the rows of the left end, the lowest mean and the right end of the first start."""
    places = {"left end": means[0], "lowest": means.min(), "right end": means[-1]}
    return [row(statement, f"{line}{place}, first start", places[place]) for place in places]


def _draw(axes: Any, title: str, corpus: Any, panels: list[tuple[str, Any, Any]]) -> None:
    for ax, (symbol, numbers, paper) in zip(axes, panels, strict=False):
        draw(ax, corpus, numbers, title, symbol)
        if paper is not None:
            pictures.paper_axis(ax, known.BINS, paper)
