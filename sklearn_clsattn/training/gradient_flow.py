r"""The letter of the paper: p follows gradient flow, E and v frozen, until its direction converges.

The length of p grows without bound, attention concentrates on the selected tokens
:math:`S_X(p)`, and by Theorem 4.3 a direction that converges is that of the max-margin problem on
its own selection. Training does the same in two phases (ours):

1. **Normalised descent** on the stable gradient of :mod:`sklearn_clsattn.model.selective_gradient`,
   by steps of fixed size in score units, :math:`p \leftarrow p - \delta\, c / \max |E c|` with
   :math:`c = E^\top \partial L / \partial a` and :math:`\delta` = 2, until the selected tokens of
   all documents have not changed for `PATIENCE` = 30 steps and hold 99 % of the attention in every
   one. Flow and descent follow the same directions; only the speed differs.
2. **Margin maximisation** on that selection
   (:func:`sklearn_clsattn.theory.maximise_margin`), until 1 less the cosine to the max-margin
   direction is *certified* to be at most `tol`: descent alone takes thousands of steps for what
   this does in a few.

So "the direction has converged" means: it is within `tol` of the one that Theorem 4.3 names, for
the selection that descent settled on. Where the selection does not settle within `max_iter` steps
(on real text it hardly does) there is no second phase, and the fit says so.

The theorem's direction has no length. The one stored is long enough to leave every document at most
1 % of its attention on unselected tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from ..model.bag import TokenBag
from ..model.fitted import SELECTION_TOLERANCE, FittedAttention
from ..model.gradient_step import unscaled_objective
from ..model.selective_gradient import SelectiveObjective
from ..theory import maximise_margin, token_pairs
from .joint import JointProgress, fitted_model
from .one_step import FrozenEmbeddings

Array = NDArray[np.float64]

SCORE_STEP = 2.0
"""Largest change of a score in one step of descent."""

PATIENCE = 30
"""Steps without a change of the selection after which it counts as settled."""

UNSELECTED_ATTENTION = 0.01
"""Share of attention that may be left on unselected tokens."""

PASSES_PER_STEP = 100
"""How many passes of margin maximisation `max_iter` allows per step of descent."""


@dataclass(frozen=True)
class GradientFlow:
    """What following the gradient flow returns.

    Attributes
    ----------
    fitted : FittedAttention
        The model, without intercept and ``<cls>``.

    loss_curve : list of float
        Mean loss at the start and after each step of descent.

    selection_curve : list of int
        Number of stored entries of X whose being selected changed with each step.

    direction_curve : list of float
        Certified bound on 1 less the cosine to the max-margin direction, after each step of
        margin maximisation; empty where the selection did not settle.

    n_iter : int
        Steps of descent.

    status : {"converged", "selection", "direction", "no_gradient", "stopped"}
        What was not reached: "selection" where it did not settle, "direction" where its error is
        not certified to be at most `tol`. "no_gradient": all tokens of every document have the
        same value, so that nothing tells p where to go.

    cls_embedding : ndarray of shape (dimension,)
        p.
    """

    fitted: FittedAttention
    loss_curve: list[float]
    selection_curve: list[int]
    direction_curve: list[float]
    n_iter: int
    status: str
    cls_embedding: Array


def follow_gradient_flow(
    X: Any,
    bag: TokenBag,
    targets: torch.Tensor,
    sample_weight: torch.Tensor,
    frozen: FrozenEmbeddings,
    *,
    max_iter: int,
    tol: float,
    on_step: Callable[[JointProgress], bool] | None = None,
) -> GradientFlow:
    """Train p with the embeddings frozen, until selection and direction have converged.

    Parameters
    ----------
    X : CSR matrix of shape (n_documents, n_tokens)
        The documents, all of positive weight.

    bag : TokenBag of shape (n_documents, n_tokens)
        The same documents.

    targets : torch.Tensor of shape (n_documents,)
        :func:`sklearn_clsattn.model.targets.encode_targets`.

    sample_weight : torch.Tensor of shape (n_documents,)
        Document weights, positive.

    frozen : FrozenEmbeddings
        From :func:`sklearn_clsattn.training.one_step.take_step`.

    max_iter : int
        At most this many steps of descent, and `PASSES_PER_STEP` times as many passes of margin
        maximisation.

    tol : float
        Bound on 1 less the cosine to the max-margin direction.

    on_step : callable, default=None
        Called with a :class:`~sklearn_clsattn.training.joint.JointProgress` at the start and
        after each step of descent; True stops. Its gap is the largest share of attention that a
        document leaves on unselected tokens.

    Returns
    -------
    GradientFlow
    """
    n_outputs = frozen.values.shape[1]
    objective = unscaled_objective(bag, targets, sample_weight, n_outputs)
    selective = SelectiveObjective(bag, objective, frozen.values, tolerance=SELECTION_TOLERANCE)
    embeddings = frozen.embeddings

    def model(scores: torch.Tensor) -> FittedAttention:
        matrix = objective.start().to(torch.float64)
        matrix[:-1, 0] = scores
        matrix[:-1, 1:] = frozen.values
        return fitted_model(objective, matrix)

    p = frozen.cls_embedding.to(torch.float64)
    dtype = frozen.cls_embedding.dtype
    losses: list[float] = []
    changes: list[int] = []
    before: torch.Tensor | None = None
    unchanged, n_iter, status = 0, 0, "selection"
    while True:
        scores = embeddings.scores(p.to(dtype)).to(torch.float64)
        point = selective(scores)
        losses.append(point.loss)
        if before is not None:
            changed = int((point.selected != before).sum())
            changes.append(changed)
            unchanged = 0 if changed else unchanged + 1
        before = point.selected
        most_unselected = max(0.0, -math.expm1(float(point.log_selected_attention.min())))
        if on_step is not None:
            fitted = partial(model, scores)
            if on_step(JointProgress(n_iter, point.loss, most_unselected, fitted)):
                status = "stopped"
                break
        if point.log_scale == -math.inf:
            status = "no_gradient"
            break
        if unchanged >= PATIENCE and most_unselected <= UNSELECTED_ATTENTION:
            status = "direction"
            break
        if n_iter >= max_iter:
            break
        change = embeddings.pull_back(point.by_score.to(dtype))
        largest = float(embeddings.scores(change).abs().max())
        if not largest > 0:  # rounding has eaten what was left
            status = "no_gradient"
            break
        p -= change.to(torch.float64) * (SCORE_STEP / largest)
        n_iter += 1

    direction_curve: list[float] = []
    if status == "direction":
        selected = _selection(X, selective.entries, point.selected)
        pairs = token_pairs(X, selected)
        ascent = maximise_margin(
            embeddings,
            torch.from_numpy(pairs.better).to(bag.device, torch.int64),
            torch.from_numpy(pairs.worse).to(bag.device, torch.int64),
            start=p,
            max_iter=PASSES_PER_STEP * max_iter,
            tol=tol,
        )
        direction_curve = list(ascent.history)
        if len(pairs) == 0:  # nothing is left unselected: any direction will do
            status = "converged"
        elif math.isfinite(ascent.margin) and ascent.margin > 0:
            length = _length(selective, X.data, point.selected)
            p, scores = ascent.direction * length, ascent.scores * length
            if ascent.status == "converged":
                status = "converged"
    return GradientFlow(
        fitted=model(scores),
        loss_curve=losses,
        selection_curve=changes,
        direction_curve=direction_curve,
        n_iter=n_iter,
        status=status,
        cls_embedding=p.to("cpu", torch.float64).numpy().copy(),
    )


def _selection(X: Any, entries: torch.Tensor, selected: torch.Tensor) -> sp.csr_array:
    """Return the selection as a boolean CSR array of the shape of X."""
    flags = np.zeros(len(X.data), dtype=bool)
    flags[entries.cpu().numpy()[selected.cpu().numpy()]] = True
    indptr = np.concatenate([[0], np.cumsum(flags)])[X.indptr].astype(X.indptr.dtype)
    indices = X.indices[flags]
    return sp.csr_array((np.ones(len(indices), dtype=bool), indices, indptr), shape=X.shape)


def _length(selective: SelectiveObjective, weights: Any, selected: torch.Tensor) -> float:
    """Return the factor on a direction of margin 1 that leaves little on unselected tokens.

    Scores of unselected tokens are at least that factor lower, so their attention is at most
    exp(-factor) times the ratio of the counts.
    """
    # By entries, for one that X stores in two parts counts with both.
    flags, documents = selected.cpu().numpy(), selective.documents.cpu().numpy()
    counts = weights[selective.entries.cpu().numpy()].astype(np.float64)
    on_selected = np.bincount(documents, counts * flags)
    on_others = np.bincount(documents, counts * ~flags)
    ratios = np.divide(on_others, on_selected, out=np.zeros_like(on_others), where=on_selected > 0)
    odds = (1 - UNSELECTED_ATTENTION) / UNSELECTED_ATTENTION
    return math.log(max(float(ratios.max(initial=0.0)) * odds, math.e))
