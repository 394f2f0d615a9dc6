"""Theorem 4.3 and what it leaves open: which tokens gradient flow selects, and its direction."""

from __future__ import annotations

import warnings
from itertools import pairwise, product
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn._bags import Bags
from sklearn_clsattn._targets import Targets
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.paper import (
    AttentionNetworkClassifier,
    OneStepClassifier,
    check_single_relevant_token,
    max_margin_direction,
    one_step_embeddings,
    selected_tokens,
)
from sklearn_clsattn.paper._gradient_flow import RESTING, gradient_flow
from sklearn_clsattn.paper._selective import SelectiveObjective
from sklearn_clsattn.training.documents import Documents
from sklearn_clsattn.training.fitted_model import FittedAttention

from . import pictures
from .data import Settings, load
from .record import Row, row
from .shapes import Array

# Documents, relevant tokens of each class, irrelevant tokens, mean length.
SIZES = {"small": (100, 5, 40, 10), "medium": (400, 10, 150, 15), "large": (700, 20, 300, 20)}
FACTORS = (1 / 64, 1 / 16, 1 / 4, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 256.0)
# Seeds of Theorem 4.3 and of the map, which are fast: ten that no earlier record had.
FRESH = range(10, 20)
VALUES = (1 / 8, 1 / 2, 1.0, 2.0, 4.0, 8.0, 16.0)
CERTIFIED_AMONG = 2.0 ** np.arange(4, 16)
# One number of each place differs from d = 4096, n = 120, T = 10 and 50 irrelevant tokens.
PANELS: dict[str, dict[str, tuple[int | None, int, int, int]]] = {
    "embedding dimension d": {
        **{f"d = {d}": (d, 120, 10, 50) for d in (256, 1024, 4096)},
        "no dimension": (None, 120, 10, 50),
    },
    "documents n": {f"n = {n}": (4096, n, 10, 50) for n in (40, 120, 360)},
    "mean length T": {f"T = {length}": (4096, 120, length, 50) for length in (5, 10, 20)},
    "irrelevant tokens": {str(n): (4096, 120, 10, n) for n in (20, 50, 150)},
}
# What is trained after p, by which optimiser, at which learning rate.
AFTER_P: dict[str, tuple[str, Any, float]] = {
    "v": ("v", torch.optim.Adam, 1e-2),
    "E, gradient descent": ("E", torch.optim.SGD, 1.0),
    "E, Adam": ("E", torch.optim.Adam, 1e-3),
    "E, p and v, gradient descent": ("Epv", torch.optim.SGD, 1.0),
    "E, p and v, Adam": ("Epv", torch.optim.Adam, 1e-3),
}

Data = tuple[Any, NDArray[np.int64]]


def theorem(settings: Settings) -> list[Row]:
    """Train p to its limit on several sizes and seeds, then after smaller and larger steps."""
    rows, seeds = [], settings.pick(FRESH, settings.seeds)
    sizes = settings.pick(tuple(SIZES), ("small",))
    small_d, d = settings.pick((1024, 4096), (64, 128))
    widths: dict[str, tuple[int | None, float | None]] = {
        "no dimension": (None, None),
        f"d = {d}": (d, None),
        f"d = {small_d}": (small_d, None),
        f"d = {d}, largest value 1": (d, 1.0),
    }
    for label, (dimension, value) in widths.items():
        errors: list[float] = []
        for size in sizes:
            found = [
                selection(sized(size, seed), seed, dimension, value, settings.pick(1000, 300))
                for seed in seeds
            ]
            shares = [share for share, _ in found]
            rows.append(row("theorem selection", f"{label}, {size} data", shares))
            errors += [model.direction_error_ for _, model in found]
        rows.append(row("theorem direction", label, errors))
    some = [sized(size, seed) for size, seed in product(sizes[:2], seeds[:5])]
    cosines = [descent(data, settings.pick(3000, 100)) for data in some]
    rows.append(row("descent direction", "no dimension", [1 - cosine for cosine in cosines]))
    along = [along_the_flow(data, settings.pick(300.0, 30.0)) for data in some]
    rows.append(row("flow direction", "no dimension", [1 - cosine for cosine, _ in along]))
    rows.append(row("norm", "no dimension", [share for _, share in along]))
    for value in settings.pick((1.0, 3.0), (1.0,)):
        n_steps = settings.pick(10_000, 50)
        same = [with_v(sized("small", seed), seed, small_d, value, n_steps) for seed in seeds[:5]]
        rows.append(row("with v", f"d = {small_d}, largest value {value:g}", same))
    factors = settings.pick(FACTORS, (1 / 64, 1.0))
    for dimension, factor in product((None, *settings.pick((1024, 4096), (64,))), factors):
        shares = [
            selection(sized("small", seed), seed, dimension, factor, 1000)[0] for seed in seeds
        ]
        label = "no dimension" if dimension is None else f"d = {dimension}"
        key = "large step" if factor == factors[-1] else "other steps"
        rows.append(row(key, f"{label}, {factor:g} times that of largest value 1", shares))
    return rows


def selection_map(settings: Settings) -> list[Row]:
    """Follow the flow at every place of the map, for every value and seed."""
    panels = settings.pick(PANELS, {"documents n": {"n = 20": (32, 20, 5, 10)}})
    values = settings.pick(VALUES, (1.0, 4.0))
    among = settings.pick(CERTIFIED_AMONG, CERTIFIED_AMONG[:2])
    rows, shares = [], {}
    for place in dict.fromkeys(each for places in panels.values() for each in places.values()):
        dimension, n, length, n_irrelevant = place
        seeds = settings.pick(FRESH, settings.seeds)
        data = [one_relevant(seed, n, 5, n_irrelevant, length) for seed in seeds]
        settled, certified = [], []
        shares[place] = np.empty((len(values), len(data)))
        for j, (seed, each) in enumerate(zip(seeds, data, strict=True)):
            for i, value in enumerate(values):
                shares[place][i, j], model = selection(
                    each, seed, dimension, value, settings.pick(600, 50)
                )
                settled.append(model.direction_error_ < 1)
            # L never rises along the flow: below log 2 / n no document is ever wrong.
            starts = [starting_loss(each, seed, dimension, value) for value in among]
            certified.append([n * loss < np.log(2) for loss in starts])
        width = "no dimension" if dimension is None else f"d = {dimension}"
        label = f"{width}, n = {n}, T = {length}, {n_irrelevant} irrelevant"
        rows.append(row("map", label, shares[place][-1]))
        rows += [
            row("map below", f"{label}, value {value:g}", of_value)
            for value, of_value in zip(values[:-1], shares[place][:-1], strict=True)
        ]
        rows.append(row("map settled", label, np.mean(settled)))
        from_here = among[np.all(certified, axis=0)]
        rows.append(row("map certified", label, from_here[0] if len(from_here) else np.nan))
    figure, axes = pictures.grid(2, 2, width=4.6, height=3.0)
    for ax, (panel, places) in zip(axes.ravel(), panels.items(), strict=False):
        for (label, place), colour, mark in zip(
            places.items(), pictures.COLOURS, pictures.MARKS, strict=False
        ):
            percent = 100 * shares[place]
            pictures.means(ax, values, percent.mean(axis=1), colour=colour, mark=mark, label=label)
            low, high = percent.min(axis=1), percent.max(axis=1)
            ax.fill_between(values, low, high, color=colour, alpha=0.1, linewidth=0)
        ax.set_xscale("log", base=2)
        ax.set_xticks(values, [f"{value:g}" for value in values])
        ax.minorticks_off()
        ax.set_ylim(0, 106)
        pictures.name_axes(
            ax, panel, "largest value after the step", "documents selecting\ntheir token, %"
        )
        ax.legend(frameon=False, fontsize=8.5, loc="lower right")
    pictures.save(figure, settings, "paper_selection_map.png")
    return rows


def open_questions(settings: Settings) -> list[Row]:
    """Several and partly relevant tokens, the direction along the flow, negation, and after p."""
    seeds, most = settings.seeds, settings.pick(400, 50)
    rows = []
    several = [_of_two(two_relevant(seed, settings), most) for seed in seeds]
    for kind in several[0]:
        rows.append(row("several", kind, [shares[kind] for shares in several]))
    for delta in settings.pick((0.0, 0.1, 0.2, 0.4), (0.0, 0.2)):
        shares = []
        for seed in seeds:
            X, y = generated(seed, settings.pick(120, 40), delta=delta)
            irrelevant = flow(X, y, max_iter=most).select_tokens(X)[:, 10:]
            shares.append(np.mean(np.asarray(irrelevant.sum(axis=1)).ravel() == 0))
        rows.append(row("partly", f"delta {delta:g}", shares))
    kinds = {
        "one relevant": lambda seed: one_relevant(seed, settings.pick(120, 32), 5, 50, 10),
        "two relevant": lambda seed: two_relevant(seed, settings),
        "partly, delta 0.2": lambda seed: generated(seed, settings.pick(120, 40), delta=0.2),
    }
    for label, make in kinds.items():
        turned = [turns(make(seed), settings.pick((60, 120), (5, 10)), most) for seed in seeds]
        rows.append(row("turns", label, np.maximum(turned, 0)))
    accuracies = [negation(seed, settings) for seed in seeds]
    for name in accuracies[0]:
        key = "negation, deeper" if name in ("two layers", "MLP") else "negation, one layer"
        rows.append(row(key, name, [each[name] for each in accuracies]))
    for label, make in kinds.items():
        starts = []
        for seed in seeds:
            data = make(seed)
            model = flow(*data, embedding_dim=1024, max_iter=most, random_state=seed)
            start = model.token_embeddings_, model.cls_embedding_, model.output_vector_
            starts.append((data, start))
        for way, how in AFTER_P.items():
            shares = [further(data, start, how, settings.pick(1000, 10)) for data, start in starts]
            key = "after p, v" if how[0] == "v" else "after p"
            rows.append(row(key, f"{label}, {way}", shares))
    real = [(name, load(name, settings)) for name in ("IMDB", "Yelp", "Yelp stars")]
    assumption = [(name, corpus.X, corpus.y) for name, corpus in real]
    assumption += [(f"generated: {label}", *make(0)) for label, make in kinds.items()]
    for label, X, y in assumption:
        rows.append(row("distance", label, check_single_relevant_token(X, y).distance))
    return rows


def usual_step(X: Any, y: NDArray[np.int64]) -> float:
    """Return the eta_0 after which the largest value is 1."""
    return float(1 / np.abs(one_step_embeddings(X, y, step_size=1.0).shifts).max())


def after_step(data: Data, value: float, dimension: int | None, seed: int) -> Any:
    """Return E, p and v after the step to a largest value."""
    X, y = data
    return one_step_embeddings(
        X, y, step_size=value * usual_step(X, y), embedding_dim=dimension, random_state=seed
    )


def flow(X: Any, y: NDArray[np.int64], **parameters: Any) -> OneStepClassifier:
    """Fit, without warnings of steps out of range and of flows that do not settle."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return OneStepClassifier(**parameters).fit(X, y)


def selection(
    data: Data, seed: int, dimension: int | None, value: float | None, max_iter: int
) -> tuple[float, OneStepClassifier]:
    """Return the share of documents that select their relevant token, and the model.

    `value` is the largest after the step; None leaves that to the estimator.
    """
    X, y = data
    step_size = None if value is None else value * usual_step(X, y)
    model = flow(
        X, y, step_size=step_size, embedding_dim=dimension, max_iter=max_iter, random_state=seed
    )
    relevant = check_single_relevant_token(X, y).relevant_tokens
    found = np.asarray(model.select_tokens(X).multiply(relevant).sum(axis=1)).ravel() > 0
    return float(found.mean()), model


def starting_loss(data: Data, seed: int, dimension: int | None, value: float) -> float:
    """Return the mean loss where the flow begins, after a step to the largest value."""
    X, y = data
    step = after_step(data, value, dimension, seed)
    scores, values = step.embeddings @ step.cls_embedding, step.embeddings @ step.output_vectors.T
    model = FittedAttention(scores, values, np.zeros(1), cls_weight=0.0, cls_score=-np.inf)
    outputs = model.outputs(Bags(X))[:, 0]
    return float(np.logaddexp(0, (1 - 2 * y) * outputs).mean())


def generated(seed: int, n: int, *, delta: float = 0, **more: Any) -> Data:
    """Return documents whose relevant tokens, which come first, are the other class's by delta."""
    sizes = {"n_relevant_per_class": 5, "n_irrelevant": 50, "document_length": 10, **more}
    X, y = make_token_classification(n, delta=delta, random_state=seed, **sizes)
    return X.astype(np.float64), y


def one_relevant(seed: int, n: int, n_relevant: int, n_irrelevant: int, length: int) -> Data:
    """Return documents of one relevant token each."""
    sizes = {"n_relevant_per_class": n_relevant, "n_irrelevant": n_irrelevant}
    return generated(seed, n, single_relevant=True, document_length=length, **sizes)


def sized(size: str, seed: int) -> Data:
    """Return the same of one of the sizes, without tokens that occur nowhere."""
    X, y = one_relevant(seed, *SIZES[size])
    return X[:, np.flatnonzero(X.getnnz(axis=0))], y


def two_relevant(seed: int, settings: Settings) -> Data:
    """Return the same with another relevant token of its class in every document."""
    X, y = one_relevant(seed, settings.pick(120, 32), 5, 50, 10)
    first = np.asarray(X[:, :10].argmax(axis=1)).ravel() % 5
    others = (first + np.random.default_rng(seed).integers(1, 5, len(y))) % 5
    second = sp.csr_matrix((np.ones(len(y)), (np.arange(len(y)), 5 * y + others)), shape=X.shape)
    return (X + second).tocsr(), y


def limit_of(data: Data) -> tuple[Any, SelectiveObjective]:
    """Return E after one step in infinitely many dimensions, and the loss by the scores."""
    X, y = data
    step = after_step(data, 1.0, None, 0)
    documents = Documents(Bags(X), Targets(np.arange(2), y), np.ones(len(y)))
    loss = documents.attention_loss(np.float64, "cpu")
    return step, SelectiveObjective(X, loss, torch.from_numpy(step.shifts))


def descent(data: Data, n_steps: int) -> float:
    """Return the cosine to the max-margin direction after descent by steps of norm 1."""
    step, objective = limit_of(data)
    E, p = step.embeddings, np.zeros(step.embeddings.shape[1])
    for _ in range(n_steps):
        change = E.T @ objective(torch.from_numpy(E @ p)).direction.numpy()
        p -= change / np.linalg.norm(change)
    try:
        limit = max_margin_direction(E, data[0], selected_tokens(E @ p, data[0])).direction
    except (ValueError, RuntimeError):
        return float("nan")
    return float(p @ limit / np.linalg.norm(p) / np.linalg.norm(limit))


def along_the_flow(data: Data, end: float) -> tuple[float, float]:
    """Return the cosine of p to the max-margin direction, and how far |p| is a line over log t.

    The latter, a share of squares, is of the second half of the way.
    """
    step, objective = limit_of(data)
    path = gradient_flow(objective, None, torch.zeros(len(step.shifts)), 1.0)
    way, log_time, lengths = 0.0, -np.inf, []
    while way < end:
        clock, rate, log_size = path.y[1, 0], path.derivative[1, 0], path.point.log_size
        change = path.step()
        if change == 0:
            break
        taken = float(2 * (path.y[1, 0] - clock) / (rate + path.derivative[1, 0]))
        log_time = np.logaddexp(log_time, np.log(taken) - (log_size + path.point.log_size) / 2)
        way += change
        if way > end / 2:
            lengths.append((log_time, float(path.y[0] @ path.y[1]) ** 0.5))
    p = step.embeddings.T @ path.y[1].numpy()
    selected = selected_tokens(path.y[0].numpy(), data[0])
    limit = max_margin_direction(step.embeddings, data[0], selected).direction
    share = float(np.corrcoef(np.array(lengths).T)[0, 1] ** 2)
    return float(p @ limit / np.linalg.norm(p) / np.linalg.norm(limit)), share


def with_v(data: Data, seed: int, dimension: int, value: float, n_steps: int) -> float:
    """Return the share of documents that select the same where v is trained with p as without.

    Both are trained by descent in steps of length .05, after the same step on E.
    """
    X, y = data
    step = after_step(data, value, dimension, seed)
    E, logs = torch.from_numpy(step.embeddings), torch.log(torch.from_numpy(X.toarray()))
    signs, v = torch.from_numpy(2.0 * y - 1), torch.from_numpy(step.output_vectors[0])
    p, v = torch.from_numpy(step.cls_embedding).requires_grad_(), v.requires_grad_()
    for _ in range(n_steps):
        outputs = torch.softmax(E @ p + logs, dim=1) @ (E @ v)
        loss = torch.nn.functional.softplus(-signs * outputs).mean()
        of_p, of_v = torch.autograd.grad(loss, (p, v))
        if not (length := torch.cat([of_p, of_v]).norm()) > 0:
            break
        p.data.sub_(of_p * 0.05 / length)
        v.data.sub_(of_v * 0.05 / length)
    alone = flow(X, y, step_size=step.step_size, embedding_dim=dimension, random_state=seed)
    changed = selected_tokens((E @ p).detach().numpy(), X) != alone.select_tokens(X)
    return float(np.mean(np.asarray(changed.sum(axis=1)).ravel() == 0))


def turns(data: Data, ways: tuple[int, int], most_steps: int) -> float:
    """Return 1 less the cosine of p's directions at two ways along the flow, in score units."""
    step, objective = limit_of(data)
    path = gradient_flow(objective, None, torch.zeros_like(objective.values[:, 0]))
    way, directions = 0.0, []
    for end in ways:
        for _ in range(most_steps):
            if way >= end or path.speed <= RESTING:
                break
            way += path.step()
        direction = step.embeddings.T @ path.y[1].numpy()
        directions.append(direction / np.linalg.norm(direction))
    return max(1 - float(a @ b) for a, b in pairwise(directions))


def _of_two(data: Data, max_iter: int) -> dict[str, float]:
    """Return the shares of documents that select either of their relevant tokens, or both."""
    X, y = data
    model = flow(X, y, max_iter=max_iter)
    selected = model.select_tokens(X).toarray()
    names = ("neither", "the less important", "the more important", "both")
    shares = dict.fromkeys(names, 0.0)
    for counts, chosen in zip(X.toarray(), selected, strict=True):
        tokens = np.flatnonzero(counts[:10])
        low, high = tokens[np.argsort(np.abs(model.token_importance_[tokens]))]
        shares[names[int(chosen[low]) + 2 * int(chosen[high])]] += 1 / len(y)
    return shares


def negation(seed: int, settings: Settings) -> dict[str, float]:
    """Return test accuracies on documents in which one word turns the meaning of another."""
    rng = np.random.default_rng(seed)
    n = settings.pick(1200, 80)
    X = np.zeros((n, 43))
    bad, negated = rng.integers(0, 2, n), rng.integers(0, 2, n)
    X[np.arange(n), bad] = 1
    X[:, 2] = negated
    for counts in X:
        np.add.at(counts, rng.integers(3, 43, 8), 1)
    y, half = bad ^ negated, n // 2
    trained = {"early_stopping": False, "random_state": seed, "attend_cls": False, "tol": 0.0}
    network = {"embedding_dim": 32, "learning_rate": 0.01, "max_iter": settings.pick(30, 2)}
    models = {
        "one step, then the flow": OneStepClassifier(max_iter=settings.pick(100, 20)),
        "everything trained": ClsAttentionClassifier(attend_cls=False),
        "two layers": AttentionNetworkClassifier(n_layers=2, **trained, **network),
        "MLP": AttentionNetworkClassifier(mlp=True, **trained, **network),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fits = {name: model.fit(X[:half], y[:half]) for name, model in models.items()}
    return {name: float(model.score(X[half:], y[half:])) for name, model in fits.items()}


def further(data: Data, start: tuple[Array, ...], how: tuple[str, Any, float], n: int) -> float:
    """Return the share of documents that keep their selection after n steps from E, p and v."""
    X, y = data
    tensors = [torch.tensor(array, dtype=torch.float64, requires_grad=True) for array in start]
    E, p, v = tensors
    names, optimiser, rate = how
    trained = optimiser([dict(zip("Epv", tensors, strict=True))[name] for name in names], lr=rate)
    logs = torch.log(torch.from_numpy(X.toarray()))
    signs = torch.from_numpy(2.0 * y - 1)
    before = selected_tokens((E @ p).detach().numpy(), X)
    for _ in range(n):
        outputs = torch.softmax(E @ p + logs, dim=1) @ (E @ v)
        loss = torch.nn.functional.softplus(-signs * outputs).mean()
        trained.zero_grad()
        loss.backward()
        trained.step()
    changed = (selected_tokens((E @ p).detach().numpy(), X) != before).sum(axis=1)
    return float(np.mean(np.asarray(changed).ravel() == 0))
