r"""The paper's regime literally: p alone is trained, E and v frozen, until its direction converges.

Gradient flow (:mod:`sklearn_clsattn.paper._cls_training`) until the selection has settled, then
margin maximisation on it, certified; ``docs/theory.md`` says how and why. Where the selection does
not settle there is no second phase, and the fit warns.
"""

import math
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from .._core.attention_problem import fitted_attention
from .._core.documents import Documents
from .._core.fitted import FittedAttention
from .._core.objective import AttentionLoss
from .._core.problem import Callback, FitResult, Progress
from ..importance import signed_frequency
from ..theory import check_single_relevant_token, maximise_margin, token_pairs
from ..theory._documents import entries_kept
from ._cls_training import GradientFlow, NormalisedDescent
from ._selective_gradient import SelectiveObjective
from ._step import FrozenEmbeddings, take_step

Array = NDArray[np.float64]

# Way in score units without a change of the selection after which it counts as settled.
PATIENCE = 60.0

UNSELECTED_ATTENTION = 0.01  # share of attention that may be left on unselected tokens
# How many passes of margin maximisation `max_iter` allows per step of training.
PASSES_PER_STEP = 100


def fit_one_step(
    documents: Documents,
    *,
    step_size: float | None,
    embedding_dim: int | None,
    seed: int,
    solver: str,
    flow_tol: float,
    max_iter: int,
    tol: float,
    dtype: type[np.floating[Any]] = np.float64,
    device: torch.device | str = "cpu",
    callback: Callback | None = None,
) -> FitResult:
    """Make one gradient step on random embeddings, then train p by :func:`follow_gradient_flow`."""
    if not documents.weights.all():  # a pair of tokens has no weight
        documents = documents.rows(np.flatnonzero(documents.weights))
    statistics = documents.statistics
    loss = documents.loss(documents.bag(dtype, device))
    frozen = take_step(
        loss,
        signed_frequency(statistics.shares, statistics.class_weights),
        step_size=step_size,
        embedding_dim=embedding_dim,
        seed=seed,
        for_flow=True,
    )
    result = follow_gradient_flow(
        documents.X,
        loss,
        frozen,
        solver=solver,
        flow_tol=flow_tol,
        max_iter=max_iter,
        tol=tol,
        callback=callback,
    )
    check = check_single_relevant_token(
        documents.X, documents.codes, sample_weight=documents.weights
    )
    n_documents = loss.total_weight / float(documents.weights.min())
    # What TheoremConditions is made of, which predicting shall not import.
    conditions = (bool(check), n_documents * result.loss_curve[0], result.status == "converged")
    return replace(result, attributes={**result.attributes, "_conditions": conditions})


def follow_gradient_flow(
    X: Any,
    loss: AttentionLoss,
    frozen: FrozenEmbeddings,
    *,
    solver: str,
    flow_tol: float,
    max_iter: int,
    tol: float,
    callback: Callback | None = None,
) -> FitResult:
    """Train p with the embeddings frozen, until selection and direction have converged.

    All documents of the CSR matrix `X` have positive weight; `loss` is theirs, without ``<cls>``.
    The criterion of `callback` is the largest share of attention on unselected tokens. The result's
    status is "converged", "stopped", "selection" (not settled), "balanced" (the terms of the
    gradient all but cancel), "direction" (`tol` not certified), or "no_gradient".
    """
    selective = SelectiveObjective(loss, frozen.values)
    embeddings, start = frozen.embeddings, frozen.cls_embedding
    scores = embeddings.scores(start).to(torch.float64)
    training: GradientFlow | NormalisedDescent
    if solver == "flow":
        rounding = float(torch.finfo(start.dtype).eps)
        training = GradientFlow(selective, embeddings, scores, tol=flow_tol, rounding=rounding)
    else:
        training = NormalisedDescent(selective, embeddings, scores)

    def cls_embedding(coefficients: torch.Tensor) -> torch.Tensor:
        return start.to(torch.float64) + embeddings.pull_back(coefficients.to(start.dtype))

    def model(p: torch.Tensor, scores: torch.Tensor) -> FittedAttention:
        matrix = loss.zeros().to(torch.float64)
        matrix[:-1, 0] = scores
        matrix[:-1, 1:] = frozen.values
        ones = np.ones(loss.n_outputs)
        return fitted_attention(matrix, 0.0, frozen.located(p.cpu().numpy().copy(), ones))

    losses: list[float] = []
    changes: list[int] = []
    before: torch.Tensor | None = None
    way, n_iter, status = 0.0, 0, "selection"
    while True:
        point, scores, coefficients = training.point, training.scores, training.coefficients
        losses.append(point.loss)
        if before is not None:
            changes.append(int((point.selected != before).sum()))
            way = 0.0 if changes[-1] else way
        before = point.selected
        most_unselected = max(0.0, -math.expm1(float(point.log_selected_attention.min())))

        def present(c: torch.Tensor = coefficients, a: torch.Tensor = scores) -> FittedAttention:
            return model(cls_embedding(c), a)

        if callback is not None and callback(
            Progress(n_iter, point.loss, most_unselected, present)
        ):
            status = "stopped"
            break
        if point.log_scale == -math.inf:
            status = "no_gradient"
            break
        if way >= PATIENCE and most_unselected <= UNSELECTED_ATTENTION:
            status = "direction"
            break
        if training.balanced:
            status = "balanced"
            break
        if n_iter >= max_iter:
            break
        change = training.step()
        if not change > 0:
            status = "no_gradient"
            break
        way += change
        n_iter += 1
    p = cls_embedding(coefficients)

    direction_curve: list[float] = []
    if status == "direction":
        selected = _selection(X, selective.entries, point.selected)
        pairs = token_pairs(X, selected)
        ascent = maximise_margin(
            embeddings,
            torch.from_numpy(pairs.better).to(p.device, torch.int64),
            torch.from_numpy(pairs.worse).to(p.device, torch.int64),
            start=p,
            max_iter=PASSES_PER_STEP * max_iter,
            tol=max(tol, sys.float_info.min),  # must be positive
        )
        direction_curve = list(ascent.history)
        if len(pairs) == 0:  # nothing is unselected: any direction is a solution
            status = "converged"
        elif math.isfinite(ascent.margin) and ascent.margin > 0:
            length = _length(selective, X.data, point.selected)
            p, scores = ascent.direction * length, ascent.scores * length
            if ascent.status == "converged":
                status = "converged"
    return FitResult(
        model=model(p, scores),
        loss_curve=losses,
        n_iter=n_iter,
        status=status,
        attributes={"step_size_": frozen.step_size, "direction_curve_": np.array(direction_curve)},
        not_converged=_not_converged(status, changes, way, direction_curve, max_iter, tol),
        warning=frozen.warning,
    )


def _selection(X: Any, entries: torch.Tensor, selected: torch.Tensor) -> sp.csr_array:
    """Return the selection, flags of `entries`, as a boolean CSR array of the shape of X."""
    flags = np.zeros(len(X.data), dtype=bool)
    flags[entries.cpu().numpy()[selected.cpu().numpy()]] = True
    return entries_kept(X, flags)


def _length(selective: SelectiveObjective, weights: Any, selected: torch.Tensor) -> float:
    """Return the factor on a direction of margin 1 that leaves little on unselected tokens."""
    # By entries: one that X stores in two parts counts with both.
    flags, documents = selected.cpu().numpy(), selective.documents.cpu().numpy()
    counts = weights[selective.entries.cpu().numpy()].astype(np.float64)
    on_selected = np.bincount(documents, counts * flags)
    on_others = np.bincount(documents, counts * ~flags)
    ratios = np.divide(on_others, on_selected, out=np.zeros_like(on_others), where=on_selected > 0)
    odds = (1 - UNSELECTED_ATTENTION) / UNSELECTED_ATTENTION
    return math.log(max(float(ratios.max(initial=0.0)) * odds, math.e))


def _not_converged(
    status: str,
    changes: list[int],
    way: float,
    direction_curve: list[float],
    max_iter: int,
    tol: float,
) -> str:
    """Return the warning about a run that ended in this way; "" if none."""
    if status == "selection":
        n_changing = sum(1 for changed in changes if changed)
        what = f"they changed in {n_changing} of {len(changes)} steps"
        if way >= PATIENCE:
            what = "some document still attends to others"
        return (
            f"Training of p stopped at max_iter={max_iter}: the selected tokens have "
            f"not settled ({what}), so that p has no limit yet, and Theorem 4.3 does not apply. "
            "Increase max_iter; on real text the selection may never settle, and "
            "PenalizedOneStepClassifier is what predicts."
        )
    if status == "balanced":
        return (
            "Gradient flow on p has all but come to rest: documents that want different tokens "
            "ahead balance each other, so that the selected tokens have not settled, and Theorem "
            "4.3 does not apply. PenalizedOneStepClassifier is what predicts."
        )
    if status == "direction":
        error = direction_curve[-1] if direction_curve else np.inf
        return (
            "The direction of p is not certified: 1 less its cosine to the max-margin direction "
            f"of the tokens selected is known to be at most {error:.1e} only, > "
            f"tol={tol:.1e}. Increase max_iter or raise tol."
        )
    if status == "no_gradient":
        return (
            "The gradient of p is 0: in every document all tokens have the same value. "
            "Documents need tokens of different importance; or increase step_size."
        )
    return ""
