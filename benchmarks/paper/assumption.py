"""How far data are from Assumption 1: one completely relevant token, all others irrelevant."""

from __future__ import annotations

import sys

import numpy as np

from sklearn_clsattn.theory import check_single_relevant_token

from . import pictures
from .data import Corpus, Settings, load
from .findings import Check, Section, reported, table
from .open_questions import DATA
from .run import alone
from .shapes import Array

PICTURE = "paper_assumption.png"


def run(settings: Settings) -> Section:
    """Measure every document's distance, on the reviews and on generated data."""
    found: dict[str, Array] = {}
    rows = []
    checks: list[Check] = []
    names = settings.corpora
    if settings.own is not None or load(settings.stars, settings).n_classes > 2:
        names = tuple(dict.fromkeys((*names, settings.stars)))
    data = [(corpus.name, corpus.X, corpus.y) for corpus in _corpora(names, settings)]
    data += [(f"generated: {label}", *make(0, settings)) for label, make in DATA.items()]
    for label, X, y in data:
        check = check_single_relevant_token(X, y)
        distances = check.document_distances
        found[label] = distances
        kinds = [int((check.token_kind == kind).sum()) for kind in ("relevant", "irrelevant")]
        low, middle, high = np.quantile(distances, [0.05, 0.5, 0.95])
        violate = np.zeros(len(distances), dtype=bool)
        for documents in (
            check.documents_without,
            check.documents_with_several,
            check.documents_with_partial,
        ):
            violate[documents] = True
        rows.append(
            (
                label,
                f"{kinds[0]:,}",
                f"{kinds[1]:,}",
                f"{100 * violate.mean():.1f} %",
                f"{check.distance:.3f}",
                f"{low:.3f}, {middle:.3f}, {high:.3f}",
            )
        )
        checks.append(
            reported(f"{label}: mean distance from Assumption 1", f"{check.distance:.3f}")
        )
    _draw(settings, found)
    header = (
        "data",
        "completely relevant tokens",
        "irrelevant tokens",
        "documents that violate it",
        "mean distance",
        "5 %, 50 % and 95 % of documents",
    )
    return Section(
        "assumption",
        "How far data are from Assumption 1",
        "Theorem 4.3 assumes documents of one completely relevant token each, all other tokens "
        "being irrelevant (alpha exactly 0).",
        "The distance of a document, from 0 to 1: the least change of its tokens' relevance, each "
        "weighted by its share of the document, after which one token would be completely relevant "
        "and the others irrelevant (`theory.check_single_relevant_token`).\n\n"
        + table(header, rows),
        "The assumption is one of generated data. In reviews nearly every document violates it, "
        "in every token; the distance says by how much, where the yes or no does not. It is far "
        "from 1 because most of a review is words that say little, and never near 0 because none "
        "of them says nothing. A document is said to violate it that has no relevant token, "
        "several, or one that is neither relevant nor irrelevant.",
        checks,
        PICTURE,
        "Share of documents at most so far from Assumption 1; generated data dashed.",
    )


def _corpora(names: tuple[str, ...], settings: Settings) -> list[Corpus]:
    return [load(name, settings) for name in names]


def _draw(settings: Settings, found: dict[str, Array]) -> None:
    figure, axes = pictures.grid(1, 1, width=7.0, height=3.4)
    colours = (*pictures.COLOURS, pictures.SKY, pictures.BLACK)
    for (label, distances), colour in zip(found.items(), colours, strict=False):
        axes[0, 0].plot(
            np.quantile(distances, np.linspace(0, 1, 201)),
            np.linspace(0, 100, 201),
            color=colour,
            linestyle="--" if label.startswith("generated:") else "-",
            label=label,
        )
    pictures.name_axes(
        axes[0, 0], "Distance of documents from Assumption 1", "distance", "documents, %"
    )
    axes[0, 0].set_xlim(-0.02, 1)
    pictures.legend(axes[0, 0], loc="lower right")
    pictures.save(figure, settings, PICTURE)


if __name__ == "__main__":
    sys.exit(alone(run))
