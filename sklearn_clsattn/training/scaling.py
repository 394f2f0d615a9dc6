"""Where training starts from and in which units it moves: the token scaling.

Two ideas, both measured in ``docs/model.md``:

- values are scaled by the token's log-odds between the classes (the NB-SVM trick, which is
  also the paper's one-step result read as a prior), so that the penalty lets tokens that
  tell the classes apart move further;
- attention starts at the logarithm of the token's importance, and values are divided by it, so
  that before training the attention alone ranks tokens while the output's numerator is that
  of uniform attention.

The exponent, the smoothing and the floor are ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..importance import log_odds, overall_importance

TokenScaling = Literal["log_odds"] | None

Array = NDArray[np.float64]

LOG_ODDS_EXPONENT = 0.9
"""Values are scaled by the absolute log-odds to this power."""

SMOOTHING = 0.5
"""Mean pseudo-count per class and token; a class gets its share of the documents times it."""

IMPORTANCE_FLOOR = 0.1
"""Added to the importance before its logarithm becomes the starting score."""


@dataclass(frozen=True)
class Scaling:
    """Starting scores and value scales, in NumPy.

    Attributes
    ----------
    starting_scores : ndarray of shape (n_tokens,)
        Attention scores before training.

    value_scales : ndarray of shape (n_tokens, n_outputs)
        Token values are these times what is trained, which is on the scale of logistic
        regression's coefficients on the counts.

    cls_weight : float
        Weight of ``<cls>`` in every document: the mean attention mass of a document's tokens
        at the start, so that attention starts out half on ``<cls>``. 0 without ``<cls>``.

    document_scale : float
        Mean document weight times mean positive entry: for bags of 0 and 1 the documents'
        mean length. The penalty on values is in its units, so that X may be rescaled.
    """

    starting_scores: NDArray[np.floating[Any]]
    value_scales: NDArray[np.floating[Any]]
    cls_weight: float
    document_scale: float


def token_scaling(
    totals_of_shares: Array,
    class_weights: Array,
    mean_document_weight: float,
    mean_entry: float,
    *,
    scaling: TokenScaling,
    attend_cls: bool,
    dtype: type[np.floating[Any]] = np.float64,
) -> Scaling:
    """Choose the units of training from the tokens' shares of each class's documents.

    Parameters
    ----------
    totals_of_shares : ndarray of shape (n_classes, n_tokens)
        Summed shares of the tokens in each class's documents
        (:func:`sklearn_clsattn.importance.class_totals` of kind "shares"): every document
        has the same say, however long.

    class_weights : ndarray of shape (n_classes,)
        Summed sample weights of each class.

    mean_document_weight : float
        Mean over documents of their total token weight.

    mean_entry : float
        Mean of the positive entries: 1 for bags of 0 and 1.

    scaling : {"log_odds", None}
        None leaves all tokens alike: no scaling, uniform attention at the start.

    attend_cls : bool
        Whether ``<cls>`` attends to itself.

    dtype : {numpy.float64, numpy.float32}, default=numpy.float64
        Precision of the arrays returned: that of training saves a copy there.

    Returns
    -------
    Scaling
    """
    n_classes, n_tokens = totals_of_shares.shape
    n_outputs = 1 if n_classes == 2 else n_classes
    total_weight = class_weights.sum()
    if not mean_document_weight > 0:  # all documents are empty
        mean_document_weight = mean_entry = 1.0
    token_shares = totals_of_shares.sum(axis=0)
    scores = np.zeros(n_tokens)
    scales = np.ones((n_tokens, n_outputs))
    if scaling == "log_odds":
        # A token of no document would enter the normalisers; it keeps the least importance.
        seen = token_shares > 0
        pseudo_counts = SMOOTHING * n_classes * class_weights / total_weight
        odds = np.zeros((n_outputs, n_tokens))
        if seen.any():
            smoothing = np.maximum(pseudo_counts, 1e-9)
            # Pseudo-counts are those of documents of 0 and 1, whatever the scale of X.
            totals = totals_of_shares[:, seen] * (mean_document_weight / mean_entry)
            odds[:, seen] = log_odds(totals, smoothing=smoothing)
        importance = overall_importance(odds) + IMPORTANCE_FLOOR
        scores = np.log(importance)
        scales = _rescaled_power(odds, seen).T / importance[:, None]
    mass = float(token_shares @ np.exp(scores)) / total_weight * mean_document_weight or 1.0
    # With u = 0 and a document of mean mass, the output is then that of logistic regression
    # on the scaled counts with coefficients t.
    scales *= 2.0 * mass if attend_cls else mass
    return Scaling(
        starting_scores=scores.astype(dtype),
        value_scales=np.ascontiguousarray(scales, dtype=dtype),
        cls_weight=mass if attend_cls else 0.0,
        document_scale=mean_document_weight * mean_entry,
    )


def _rescaled_power(odds: Array, seen: NDArray[np.bool_]) -> Array:
    """Return ``|odds| ** LOG_ODDS_EXPONENT``, rescaled to the odds' own root mean square.

    Where no token tells the classes apart (all odds 0) there is nothing to scale by: 1.
    """
    size = np.sqrt(np.mean(odds[:, seen] ** 2)) if seen.any() else 0.0
    if not size > 1e-6:
        return np.ones_like(odds)
    powers = np.abs(odds) ** LOG_ODDS_EXPONENT
    return powers * (size / np.sqrt(np.mean(powers[:, seen] ** 2)))
