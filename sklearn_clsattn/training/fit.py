"""The default training: scores and values to convergence, in place of all embeddings.

Minimising the penalised loss over the embeddings E with p and v fixed and orthogonal is the
same problem as minimising it over the scores E.p and the values E.v (representer fact,
``docs/mathematics.md``), so E never appears here.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from .._bags import TokenVectors
from .choose_c import ATTENTION_CS, choose_C
from .documents import Documents
from .fitted_model import FitResult, OnIteration
from .regularization_path import AttentionPath
from .statistics import IMPORTANCE_FLOOR, TokenScaling
from .trusted_words import kept_to_their_class
from .vector_values import SCALES, with_vectors

FEW_DOCUMENTS = 10_000
FEW_TOL = 2e-6
MANY_TOL = 1e-4


def default_tol(documents: Documents) -> float:
    """Return the gap at which training stops by default: smaller where steps cost little.

    Of several labels, losses and so gaps are added up.
    """
    tol = FEW_TOL if documents.shape[0] < FEW_DOCUMENTS else MANY_TOL
    return tol * documents.targets.n_outputs if documents.targets.multilabel else tol


def fit_attention(
    documents: Documents,
    *,
    C: float | None,
    attention_C: float | None,
    attend_cls: bool = True,
    token_scaling: TokenScaling = "log_odds",
    max_iter: int,
    tol: float | None,
    dtype: type[np.floating[Any]] = np.float64,
    device: torch.device | str = "cpu",
    vectors: TokenVectors | None = None,
    vector_scale: float | None = None,
    on_iteration: OnIteration | None = None,
    log: Callable[[str], None] | None = None,
) -> FitResult:
    """Train scores, values, intercepts and the score of ``<cls>`` together.

    `C` and `attention_C` are the inverse strengths of the penalties on what values have beyond
    their prior mean, in units of the scaling's `C_unit`, and on what is added to the starting
    scores. None is chosen (:mod:`.choose_c`), and `log` is called with what is tried; but if `C` is
    given, `attention_C` None is the first of :data:`~.choose_c.ATTENTION_CS`. Training stops after
    `max_iter` steps, or when the optimality gap, in nats per document, is at most `tol` (None:
    :func:`default_tol`); `on_iteration` gets the gap. `vectors` of the tokens have the scale gamma
    `vector_scale`, None for one that is chosen with C.
    """
    # 1) the tokens to train: those that occur, if many do not
    n_tokens = documents.shape[1]
    seen = np.arange(n_tokens)
    leaves_out_unseen = vectors is not None or 2 * documents.statistics.n_seen < n_tokens
    if leaves_out_unseen:
        documents, seen = documents.without_unseen_tokens()
    model_params: dict[str, Any] = {"attend_cls": attend_cls, "token_scaling": token_scaling}
    search_dtype = dtype  # enough for the tolerance of the search
    if vectors is not None:
        model_params["vectors"] = vectors[seen]
        if documents.shape[0] < FEW_DOCUMENTS:  # single precision may not reach the small tol
            dtype = np.float64
    # 2) C, attention_C and gamma, as given or chosen
    first_attention_C = ATTENTION_CS[0] if attention_C is None else attention_C
    path = AttentionPath(documents, dtype, device, attention_C=first_attention_C, **model_params)
    choice = None
    if C is None or (vectors is not None and vector_scale is None):
        scales: tuple[float, ...] = (0.0,)
        if vectors is not None:
            scales = SCALES if vector_scale is None else (vector_scale,)
        choice = choose_C(
            documents, path.mean, search_dtype, device, C, attention_C, scales, log, **model_params
        )
    attributes: dict[str, Any] = {"C_": C, "attention_C_": first_attention_C}
    if choice is not None:
        attributes = {"C_": choice.C, "attention_C_": choice.attention_C}
        if C is None:
            attributes |= {"Cs_": choice.Cs, "scores_": -choice.losses}
        vector_scale = choice.scale
        path.start_with(choice)
    # 3) the fit on all documents, after which no trusted word speaks against its class
    path.set_vector_scale(vector_scale or 0.0)
    tol = default_tol(documents) if tol is None else tol
    result = path.fit(attributes["C_"], max_iter=max_iter, tol=tol, on_iteration=on_iteration)
    if documents.trust is not None:
        assert documents.bags.trusted is not None
        model = kept_to_their_class(result.model, documents.bags.trusted, documents.targets)
        result = replace(result, model=model)
    # 4) the other tokens, some of which have vectors
    unseen_score = 0.0 if token_scaling is None else float(np.log(IMPORTANCE_FLOOR))
    if leaves_out_unseen and vectors is None:
        result = replace(result, model=result.model.embedded_in(n_tokens, seen, unseen_score))
    if vectors is not None and path.vector_values is not None:
        weights = path.vector_values.weights(path.objective.start)
        factors = path.vector_values.factors
        model = with_vectors(result.model, seen, vectors, factors, weights, unseen_score)
        result = replace(result, model=model)
        rows = weights[:, 0] if documents.targets.n_outputs == 1 else weights.T
        attributes |= {"token_vectors_scale_": vector_scale or 0.0, "vector_weights_": rows}
    return replace(result, attributes=result.attributes | attributes)
