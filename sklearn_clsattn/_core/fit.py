"""The default training: scores and values to convergence, in place of all embeddings.

Minimising the penalised loss over the embeddings E with p and v fixed and orthogonal is the
same problem as minimising it over the scores E.p and the values E.v (representer fact,
``docs/model.md``), so E never appears here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from .choose_c import choose_C
from .documents import Documents
from .fitted import FittedAttention
from .path import AttentionPath
from .result import FitResult, Report
from .statistics import TokenScaling

FEW_DOCUMENTS, FEW_TOL, MANY_TOL = 10_000, 2e-6, 1e-4


def default_tol(documents: Documents) -> float:
    """Return the gap at which training stops by default: smaller where steps cost little."""
    return FEW_TOL if documents.shape[0] < FEW_DOCUMENTS else MANY_TOL


def fit_attention(
    documents: Documents,
    *,
    C: float | None,
    attention_C: float,
    attend_cls: bool = True,
    scaling: TokenScaling = "log_odds",
    max_iter: int,
    tol: float | None,
    dtype: type[np.floating[Any]] = np.float64,
    device: torch.device | str = "cpu",
    start: FittedAttention | None = None,
    report: Report | None = None,
) -> FitResult:
    """Train scores, values, intercepts and the score of ``<cls>`` together.

    `C` and `attention_C` are the inverse strengths of the penalties on what values have beyond
    their prior mean, in units of the scaling's `C_unit`, and on what is added to the starting
    scores; `C` None is chosen (:mod:`.choose_c`). Training stops after `max_iter` steps, or when
    the optimality gap, in nats per document, is at most `tol` (None: :func:`default_tol`); `report`
    gets the gap. `start` is a model of the same tokens and outputs to start from.
    """
    documents = documents.trained_in(dtype, device)
    how: dict[str, Any] = {
        "attention_C": attention_C,
        "attend_cls": attend_cls,
        "scaling": scaling,
    }
    path = AttentionPath(documents, dtype, device, **how)
    attributes: dict[str, Any] = {"C_": C}
    if C is None:
        choice = choose_C(documents, path.mean, dtype, device, **how)
        C = choice.C
        attributes = {"C_": C, "Cs_": choice.Cs, "scores_": -choice.losses}
        if choice.point is not None:
            path.start_at(choice.point)
    if start is not None:
        path.start_from(start, C)
    tol = default_tol(documents) if tol is None else tol
    result = path.fit(C, max_iter=max_iter, tol=tol, report=report)
    return replace(result, attributes=result.attributes | attributes)
