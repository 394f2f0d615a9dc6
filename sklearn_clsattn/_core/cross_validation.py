"""The choice of C by cross-validation: given values, given folds, any score."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .attention_problem import VALUES, AttentionProblem
from .choose_c import SEARCH_TOL
from .documents import Documents
from .fitted import FittedAttention
from .objective import evaluate_together
from .path import AttentionPath
from .problem import Callback, FitResult
from .solvers.lbfgs import Minimisation, Pairs, Result, add_curvature, lbfgs

Array = NDArray[np.float64]

Score = Callable[[FittedAttention], float]
"""Returns how good a model is on the documents that a fold holds out: the greater, the better."""


def fit_cross_validated(
    documents: Documents,
    folds: Iterable[tuple[Array, Score]],
    Cs: Array,
    *,
    max_iter: int,
    tol: float,
    dtype: type[np.floating[Any]] = np.float64,
    device: torch.device | str = "cpu",
    callback: Callback | None = None,
    **how: Any,
) -> FitResult:
    """Fit for the C of the best mean score, the smallest of equals.

    A fold is the weights of its training documents, (n_documents,), 0 for those held out, and its
    score; `Cs`, (n_Cs,), ascend, and every fold runs up them. All folds share one bag and the
    products with it. The last fit starts from the first fold's model. `how` are the parameters of
    :class:`~.path.AttentionPath`, the others those of :func:`~.fit.fit_attention`.
    """
    bag = documents.bag(dtype, device)
    problems, paths = [], []
    for weights, score in folds:
        of_fold = AttentionPath(documents.reweighted(weights), bag, **how)
        problems.append(of_fold.problem)
        paths.append(_path(of_fold, Cs, score, max_iter, max(tol, SEARCH_TOL)))
    scores, points = zip(*_side_by_side(problems, paths), strict=True)
    best = int(np.mean(scores, axis=0).argmax())
    start = points[0][best]
    del problems, paths, points
    path = AttentionPath(documents, bag, **how)
    path.start_at(start)
    result = path.fit(Cs[best], max_iter=max_iter, tol=tol, callback=callback)
    attributes = {"C_": float(Cs[best]), "Cs_": Cs, "scores_": np.array(scores)}
    return replace(result, attributes=result.attributes | attributes)


def _path(
    path: AttentionPath, Cs: Array, score: Score, max_iter: int, tol: float
) -> Minimisation[tuple[list[float], list[torch.Tensor]]]:
    """Minimise for every C; return scores and points, (n_Cs,).

    Each minimisation starts where the last two lead to, with the curvature that the last one found.
    """
    scores: list[float] = []
    problem = path.problem
    points = [problem.start]
    start, pairs, penalty = problem.start, Pairs(), 0.0
    for place, C in enumerate(Cs):
        path.set_C(C)
        values = problem.blocks[VALUES]
        add_curvature(pairs, values.index, values.penalty - penalty)
        penalty = values.penalty
        found = yield from lbfgs(
            start,
            is_converged=lambda iterate: problem.gap(iterate.gradient) <= tol,
            max_iter=max_iter,
            inverse_curvature=problem.inverse_curvature(start),
            pairs=pairs,
        )
        points.append(found.x)
        scores.append(score(problem.model(found.x)))
        if not np.isfinite(scores[-1]):
            raise ValueError(
                f"A fold's score at C = {C:g} is {scores[-1]}: expected a finite number. Check "
                "what `scoring` needs of the documents that are held out."
            )
        start = found.x
        if 0 < place < len(Cs) - 1:
            ahead, behind = np.diff(np.log(Cs[place - 1 : place + 2]))[::-1]
            start = torch.lerp(points[-2], points[-1], 1 + min(ahead / behind, 1.0))
    return scores, points[1:]


def _side_by_side(
    problems: Sequence[AttentionProblem], minimisations: Sequence[Minimisation[Result]]
) -> list[Result]:
    """Run the minimisations of problems on one bag, one evaluation of all after another."""
    results: dict[int, Result] = {}
    points = {place: next(one) for place, one in enumerate(minimisations)}
    while points:
        losses = evaluate_together(
            [
                problems[place].loss.evaluation(problems[place].token_map.matrix(x))
                for place, x in points.items()
            ],
            problems[0].loss.bag,
        )
        for (place, x), (loss, by_matrix) in zip(list(points.items()), losses, strict=True):
            try:
                evaluated = problems[place].penalised(x, loss, by_matrix)
                points[place] = minimisations[place].send(evaluated)
            except StopIteration as stop:
                results[place] = stop.value
                del points[place]
    return [results[place] for place in range(len(minimisations))]
