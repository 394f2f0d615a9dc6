"""What the paper leaves open: several and partial relevant tokens, directions, negation."""

from __future__ import annotations

import sys
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn._core.bag import TokenBag
from sklearn_clsattn._core.objective import AttentionLoss, encode_targets
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.paper import AttentionNetworkClassifier, OneStepClassifier
from sklearn_clsattn.paper._cls_training import GradientFlow
from sklearn_clsattn.paper._selective_gradient import SelectiveObjective
from sklearn_clsattn.theory import one_step_embeddings

from . import pictures
from .data import Settings
from .findings import Check, Section, asked, reported, table
from .margin import rule
from .run import alone
from .shapes import Array

PICTURE = "paper_open_questions.png"
DELTAS = (0.0, 0.1, 0.2, 0.4)
WAYS = (30, 60, 120)
MOST_STEPS = 400  # of a flow, and from one way to the next
N_RELEVANT = 5  # of each class
LARGER, SMALLER, BOTH, NEITHER = "the more important", "the less important", "both", "neither"
ONE_LAYER, FLOW = "one layer, everything trained", "one step, then the flow"
TWO_LAYERS, HIDDEN = "two layers", "one layer and an MLP"


def run(settings: Settings) -> Section:
    """Run the four experiments on generated data."""
    seeds = settings.seeds
    several = [several_relevant(seed, settings) for seed in seeds]
    partial = {
        delta: [partly_relevant(delta, seed, settings) for seed in seeds]
        for delta in settings.pick(DELTAS, (0.0, 0.2))
    }
    ways = settings.pick(WAYS, (5, 10))
    turning = {
        label: np.array([turns(*make(seed, settings), ways) for seed in seeds])
        for label, make in DATA.items()
    }
    negated = [negation(seed, settings) for seed in seeds]
    _draw(settings, several, partial, turning, ways, negated)
    accuracy = {name: [each[name] for each in negated] for name in negated[0]}
    checks: list[Check] = [
        reported(
            f"Two relevant tokens a document, selected: {kind}",
            _range([100 * each[kind] for each in several], " %"),
        )
        for kind in several[0]
    ]
    checks += [
        asked(
            f"Partly relevant, delta {delta:g}: share of documents that select relevant tokens "
            "only",
            "only relevant",
            [share for share, _ in found],
        )
        for delta, found in partial.items()
    ]
    checks += [
        asked(
            f"Direction converges, {label}: 1 - cosine of directions at ways of {ways[-2]} and "
            f"{ways[-1]}",
            "turns",
            np.maximum(found[:, -1], 0.0),
        )
        for label, found in turning.items()
    ]
    checks += [
        asked(f"Negation, {name}: test accuracy", threshold, accuracy[name])
        for name, threshold in (
            (ONE_LAYER, "first order"),
            (FLOW, "first order"),
            (TWO_LAYERS, "solves"),
            (HIDDEN, "solves"),
        )
    ]
    rows = [
        (
            f"{delta:g}",
            _range([100 * share for share, _ in found], " %"),
            f"{sum(settled for _, settled in found)} of {len(found)}",
        )
        for delta, found in partial.items()
    ]
    header = ("delta", "documents that select relevant tokens only", "flows that settled")
    return Section(
        "open_questions",
        "What the paper leaves open",
        "Theorem 4.3 has one completely relevant token a document, assumes that the direction "
        "converges, and knows first-order importance only. The reviews ask what happens with "
        "several or partly relevant tokens, and with tokens that change each other's meaning.",
        f"{len(seeds)} seeds, without a dimension, eta_0 by the default rule; ranges over seeds. "
        "*Several*: theory.md's data with a second relevant token of the document's class. "
        "*Partly relevant*: 120 documents of mean length 10, a fifth of it relevant tokens, of "
        "which a share delta comes from the other class:\n\n"
        + table(header, rows)
        + "\n\n*Direction*: how far the direction of p turns along the flow between one way in "
        "score units and twice that. *Negation*: a document has `good` or `bad`, `not` or no "
        "`not`, and eight of 40 other words; `not` turns the label round, so that no token has "
        "any importance of its own.",
        _conclusion(several, partial, accuracy),
        checks,
        PICTURE,
        "Which of two relevant tokens is selected; selection of partly relevant tokens; how far "
        "the direction still turns along the flow; accuracy on negation. Dots are seeds.",
    )


def one_relevant(seed: int, settings: Settings) -> tuple[Any, NDArray[np.int64]]:
    """Return theory.md's data: one relevant token a document, the first ten tokens."""
    X, y = make_token_classification(
        settings.pick(120, 32),
        n_relevant_per_class=N_RELEVANT,
        n_irrelevant=50,
        document_length=10,
        delta=0,
        single_relevant=True,
        random_state=seed,
    )
    return X.astype(np.float64), y


def two_relevant(seed: int, settings: Settings) -> tuple[Any, NDArray[np.int64]]:
    """Return the same with another relevant token of its class in every document."""
    X, y = one_relevant(seed, settings)
    first = X[:, : 2 * N_RELEVANT].argmax(axis=1)
    first = np.asarray(first).ravel() % N_RELEVANT
    others = (first + np.random.default_rng(seed).integers(1, N_RELEVANT, len(y))) % N_RELEVANT
    second = sp.csr_matrix(
        (np.ones(len(y)), (np.arange(len(y)), y * N_RELEVANT + others)), shape=X.shape
    )
    return (X + second).tocsr(), y


def partly(seed: int, settings: Settings, delta: float = 0.2) -> tuple[Any, NDArray[np.int64]]:
    """Return documents whose relevant tokens come from the other class by a share of delta."""
    X, y = make_token_classification(
        settings.pick(120, 40),
        n_relevant_per_class=N_RELEVANT,
        n_irrelevant=50,
        document_length=10,
        delta=delta,
        random_state=seed,
    )
    return X.astype(np.float64), y


DATA = {"one relevant": one_relevant, "two relevant": two_relevant, "partly, delta 0.2": partly}


def several_relevant(seed: int, settings: Settings) -> dict[str, float]:
    """Return the shares of documents that select either of their relevant tokens, or both."""
    X, y = two_relevant(seed, settings)
    model = _flow(X, y, settings)
    importance = np.abs(model.token_importance_)
    selected = model.select_tokens(X).toarray()
    counts = dict.fromkeys((LARGER, SMALLER, BOTH, NEITHER), 0.0)
    for row, chosen in zip(X.toarray(), selected, strict=True):
        tokens = np.flatnonzero(row[: 2 * N_RELEVANT])
        low, high = tokens[np.argsort(importance[tokens])]
        kind = {(0, 1): LARGER, (1, 0): SMALLER, (1, 1): BOTH, (0, 0): NEITHER}
        counts[kind[int(chosen[low]), int(chosen[high])]] += 1 / len(y)
    return counts


def partly_relevant(delta: float, seed: int, settings: Settings) -> tuple[float, bool]:
    """Return the share of documents that select relevant tokens only, and whether it settled."""
    X, y = partly(seed, settings, delta)
    model = _flow(X, y, settings)
    irrelevant = model.select_tokens(X)[:, 2 * N_RELEVANT :]
    none = np.asarray(irrelevant.sum(axis=1)).ravel() == 0
    return float(none.mean()), model.conditions_.direction_converged


def turns(X: Any, y: NDArray[np.int64], ways: tuple[int, ...]) -> Array:
    """Return 1 less the cosine of p's directions at each way along the flow and the next."""
    embeddings = one_step_embeddings(X, y, step_size=rule(X, y)).limit
    loss = AttentionLoss(TokenBag(X), encode_targets(y, 2), torch.ones(len(y)), 1)
    objective = SelectiveObjective(loss, embeddings.shifts)
    flow = GradientFlow(objective, embeddings, torch.zeros(X.shape[1]).double(), tol=1e-3)
    way, directions = 0.0, []
    for end in ways:
        for _ in range(MOST_STEPS):
            if way >= end or flow.balanced:
                break
            way += flow.step()
        p = embeddings.pull_back(flow.coefficients)
        directions.append((p / torch.linalg.vector_norm(p)).numpy())
    return np.array([1 - a @ b for a, b in pairwise(directions)])


def negation(seed: int, settings: Settings) -> dict[str, float]:
    """Return test accuracies on documents in which one word turns the meaning of another."""
    rng = np.random.default_rng(seed)
    n = settings.pick(1200, 80)
    X = np.zeros((n, 43))
    bad, negated = rng.integers(0, 2, n), rng.integers(0, 2, n)
    X[np.arange(n), bad] = 1
    X[:, 2] = negated
    for row in X:
        np.add.at(row, rng.integers(3, 43, 8), 1)
    y, half = bad ^ negated, n // 2
    trained = {"early_stopping": False, "random_state": seed, "attend_cls": False, "tol": 0.0}
    network = {"embedding_dim": 32, "learning_rate": 0.01, "max_iter": settings.pick(30, 2)}
    models = {
        FLOW: OneStepClassifier(max_iter=settings.pick(100, 20)),
        ONE_LAYER: ClsAttentionClassifier(attend_cls=False),
        TWO_LAYERS: AttentionNetworkClassifier(n_layers=2, **trained, **network),
        HIDDEN: AttentionNetworkClassifier(mlp=True, **trained, **network),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            name: float(model.fit(X[:half], y[:half]).score(X[half:], y[half:]))
            for name, model in models.items()
        }


def _flow(X: Any, y: NDArray[np.int64], settings: Settings) -> OneStepClassifier:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a flow that does not settle
        return OneStepClassifier(max_iter=settings.pick(MOST_STEPS, 50)).fit(X, y)


def _conclusion(
    several: list[dict[str, float]],
    partial: dict[float, list[tuple[float, bool]]],
    accuracy: dict[str, list[float]],
) -> str:
    mean = {kind: 100 * float(np.mean([each[kind] for each in several])) for kind in several[0]}
    settled = [delta for delta, found in partial.items() if all(done for _, done in found)]
    until = f"for delta up to {max(settled):g}" if settled else "for no delta"
    return (
        f"Of two relevant tokens, {mean[LARGER]:.0f} % of the documents select the more important "
        f"one alone, {mean[SMALLER]:.0f} % the less important one alone and {mean[BOTH]:.0f} % "
        f"both. With partly relevant tokens every flow settles {until}; where it does not, "
        "documents want different tokens ahead and there is no direction for the theorem to name, "
        "and ever fewer documents select relevant tokens only: with so few documents, words that "
        "say nothing have an importance by chance as well. "
        "With negation one layer, whatever is trained, stays below what three of four combinations "
        f"of word and negation allow (at most {max(accuracy[ONE_LAYER] + accuracy[FLOW]):.3f}), "
        f"two layers reach {min(accuracy[TWO_LAYERS]):.3f} to {max(accuracy[TWO_LAYERS]):.3f}, and "
        f"an MLP {min(accuracy[HIDDEN]):.3f} at least: first-order importance says nothing there, "
        "and one layer of attention to bags has nothing else."
    )


def _range(numbers: list[float], unit: str) -> str:
    low, high = f"{min(numbers):.0f}", f"{max(numbers):.0f}"
    return (low if low == high else f"{low} to {high}") + unit


def _draw(
    settings: Settings,
    several: list[dict[str, float]],
    partial: dict[float, list[tuple[float, bool]]],
    turning: dict[str, Array],
    ways: tuple[int, ...],
    negated: list[dict[str, float]],
) -> None:
    figure, axes = pictures.grid(2, 2, width=4.7, height=3.0)
    for ax, found, title in (
        (axes[0, 0], several, "Two relevant tokens: which is selected"),
        (axes[1, 0], negated, "Negation: test accuracy"),
    ):
        names = list(found[0])
        means = [100 * float(np.mean([each[name] for each in found])) for name in names]
        ax.barh(range(len(names)), means, color=pictures.SKY, height=0.6)
        for each in found:
            ax.plot([100 * each[name] for name in names], range(len(names)), ".", color="#222222")
        ax.set_yticks(range(len(names)), names)
        ax.invert_yaxis()
        ax.set_xlim(0, 104)
        pictures.name_axes(ax, title, "%", "")
    ax = axes[0, 1]
    deltas = list(partial)
    shares = np.array([[100 * share for share, _ in partial[delta]] for delta in deltas])
    pictures.means(ax, deltas, shares.mean(axis=1))
    ax.fill_between(
        deltas, shares.min(axis=1), shares.max(axis=1), color=pictures.BLUE, alpha=0.15, linewidth=0
    )
    pictures.name_axes(
        ax, "Partly relevant tokens", "delta", "documents selecting\nrelevant tokens only, %"
    )
    ax = axes[1, 1]
    for (label, found), colour, mark in zip(
        turning.items(), pictures.COLOURS, pictures.MARKS, strict=False
    ):
        turned = np.maximum(found.mean(axis=0), 1e-12)
        pictures.means(ax, ways[1:], turned, colour=colour, mark=mark, label=label)
    ax.set_xscale("log", base=2)
    ax.set_xticks(ways[1:], [str(way) for way in ways[1:]])
    ax.set_yscale("log")
    ax.minorticks_off()
    pictures.name_axes(
        ax,
        "Does the direction converge?",
        "way of the flow, score units",
        "1 - cosine since half of it",
    )
    pictures.legend(ax, loc="upper right")
    pictures.save(figure, settings, PICTURE)


if __name__ == "__main__":
    sys.exit(alone(run))
