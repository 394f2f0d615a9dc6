r"""Sums over documents before training, and the units of training that follow from them.

:class:`CorpusStatistics` are sums over documents, class by class: those of two sets of documents
add up to those of both, so that one set may be read in parts, batch after batch or on several
machines. :func:`token_scaling` derives from them where training starts and in which units:

- values are scaled by the token's log-odds between the classes (the NB-SVM trick, which is
  also the paper's one-step result read as a prior), so that tokens that separate the
  classes are shrunk less by the penalty;
- attention starts at the logarithm of the token's importance, and values are divided by it, so
  that before training the attention alone ranks tokens while the output's numerator is that
  of uniform attention.

``docs/model.md`` has the measurements behind exponent, smoothing and floor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..importance import class_totals, log_odds, overall_importance

Array = NDArray[np.float64]

TokenScaling = Literal["log_odds"] | None

LOG_ODDS_EXPONENT = 0.9
"""Values are scaled by the absolute log-odds to this power."""

SMOOTHING = 0.5
"""Mean pseudo-count per class and token; a class gets its share of the documents times it."""

IMPORTANCE_FLOOR = 0.1
"""Added to the importance before its logarithm becomes the starting score."""


@dataclass(frozen=True)
class CorpusStatistics:
    """Weighted sums over documents, class by class. They are additive.

    class_weights : (n_classes,), document weights
    token_weights : (n_classes,), document weight times total token weight
    n_entries : (n_classes,), document weight times number of positive entries
    shares : (n_classes, n_tokens), document weight times each token's share of the document's total
        token weight (:func:`~sklearn_clsattn.importance.class_totals` of kind "shares")
    """

    class_weights: Array
    token_weights: Array
    n_entries: Array
    shares: Array

    @classmethod
    def of(
        cls, X: Any, codes: NDArray[np.intp], n_classes: int, weights: Array
    ) -> CorpusStatistics:
        """Return the sums over the rows of a CSR matrix, given class codes and weights."""
        totals = X @ np.ones(X.shape[1])  # unlike X.sum, in double precision
        per_token = np.divide(weights, totals, out=np.zeros(len(weights)), where=totals > 0)
        return cls(
            _by_class(codes, n_classes, weights),
            _by_class(codes, n_classes, weights * totals),
            _by_class(codes, n_classes, weights * _positive_entries(X)),
            class_totals(X, codes, n_classes, per_token),
        )

    @classmethod
    def empty(cls, n_classes: int, n_tokens: int) -> CorpusStatistics:
        """Return the sums over no documents."""
        nothing = np.zeros(n_classes)
        return cls(nothing, nothing, nothing, np.zeros((n_classes, n_tokens)))

    def __add__(self, other: CorpusStatistics) -> CorpusStatistics:
        return CorpusStatistics(*map(np.add, self._arrays(), other._arrays()))

    def reweighted(self, factors: Array) -> CorpusStatistics:
        """Return the sums with every class's document weights times its factor, (n_classes,)."""
        return CorpusStatistics(*((array.T * factors).T for array in self._arrays()))

    def balancing_factors(self) -> Array:
        """Return the factors that give the classes with documents equal weights, (n_classes,)."""
        weights = self.class_weights
        mean = weights.sum() / max(np.count_nonzero(weights), 1)
        return np.divide(mean, weights, out=np.zeros(len(weights)), where=weights > 0)

    def reduced(self, reduce: Callable[[Array], Array]) -> CorpusStatistics:
        """Return the sums over all parts of a corpus; `reduce` adds up flat float64 arrays."""
        arrays = self._arrays()
        sums = reduce(np.concatenate([array.ravel() for array in arrays]))
        parts = np.split(sums, np.cumsum([array.size for array in arrays])[:-1])
        return CorpusStatistics(
            *(part.reshape(array.shape) for part, array in zip(parts, arrays, strict=True))
        )

    def _arrays(self) -> list[Array]:
        return [getattr(self, field.name) for field in fields(self)]

    @property
    def total_weight(self) -> float:
        """Weight of all documents."""
        return float(self.class_weights.sum())

    @property
    def mean_token_weight(self) -> float:
        """Mean over documents of their total token weight."""
        return float(self.token_weights.sum()) / self.total_weight

    @property
    def mean_entry(self) -> float:
        """Mean of the positive entries, by document weight: 1 for bags of 0 and 1."""
        return float(self.token_weights.sum()) / (float(self.n_entries.sum()) or 1.0)

    @property
    def cls_weight(self) -> float:
        """Weight of ``<cls>`` as a document's mean token weight; 1 if all are empty."""
        return self.mean_token_weight or 1.0


@dataclass(frozen=True)
class Scaling:
    """Starting scores and value scales, in NumPy.

    starting_scores : (n_tokens,), attention scores before training
    value_scales : (n_tokens, n_outputs), token values are these times what is trained, which is on
        the scale of logistic regression's coefficients on the counts
    cls_weight : weight of ``<cls>`` in every document: the mean attention mass of a document's
        tokens at the start, so that attention starts out half on ``<cls>``; 0 without it
    document_scale : mean document weight times mean positive entry, for bags of 0 and 1 the mean
        length; the penalty on values is in its units, so that X may be rescaled
    """

    starting_scores: NDArray[np.floating[Any]]
    value_scales: NDArray[np.floating[Any]]
    cls_weight: float
    document_scale: float


def token_scaling(
    statistics: CorpusStatistics,
    *,
    scaling: TokenScaling,
    attend_cls: bool,
    dtype: type[np.floating[Any]] = np.float64,
) -> Scaling:
    """Choose the units of training from the tokens' shares of each class's documents.

    `statistics` are those of all documents: through shares, every document counts alike, however
    long. `scaling` None treats all tokens alike: no scaling, uniform attention at the start.
    `dtype` is the precision of the arrays returned: that of training saves a copy there.
    """
    shares, class_weights = statistics.shares, statistics.class_weights
    n_classes, n_tokens = shares.shape
    n_outputs = 1 if n_classes == 2 else n_classes
    total_weight = statistics.total_weight
    mean_document_weight, mean_entry = statistics.mean_token_weight, statistics.mean_entry
    if not mean_document_weight > 0:  # all documents are empty
        mean_document_weight = mean_entry = 1.0
    token_shares = shares.sum(axis=0)
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
            totals = shares[:, seen] * (mean_document_weight / mean_entry)
            odds[:, seen] = log_odds(totals, smoothing=smoothing)
        importance = overall_importance(odds) + IMPORTANCE_FLOOR
        scores = np.log(importance)
        scales = _rescaled_power(odds, seen).T / importance[:, None]
    mass = float(token_shares @ np.exp(scores)) / total_weight * mean_document_weight or 1.0
    # With u = 0 and a document of mean mass, the output is then that of logistic regression
    # on the scaled counts with coefficients t.
    scales *= 2.0 * mass if attend_cls else mass
    document_scale = mean_document_weight * mean_entry
    if not (np.isfinite(document_scale) and np.isfinite(scales).all()):
        raise ValueError(
            "Training leaves the range of floating-point numbers: expected entries of X whose "
            f"squares are finite, got a mean of {mean_entry:.2g}. Divide X by a constant."
        )
    return Scaling(
        starting_scores=scores.astype(dtype),
        value_scales=np.ascontiguousarray(scales, dtype=dtype),
        cls_weight=mass if attend_cls else 0.0,
        document_scale=document_scale,
    )


def _rescaled_power(odds: Array, seen: NDArray[np.bool_]) -> Array:
    """Return ``|odds| ** LOG_ODDS_EXPONENT``, rescaled to the odds' own root mean square.

    Where no token separates the classes (all odds 0) the result is 1.
    """
    size = np.sqrt(np.mean(odds[:, seen] ** 2)) if seen.any() else 0.0
    if not size > 1e-6:
        return np.ones_like(odds)
    powers = np.abs(odds) ** LOG_ODDS_EXPONENT
    return powers * (size / np.sqrt(np.mean(powers[:, seen] ** 2)))


def class_log_odds(class_weights: Array) -> Array:
    """Return the intercepts that depend on the class weights alone, (n_outputs,).

    For two classes the log-odds of the second, else the logarithms of the classes' shares.
    """
    priors = class_priors(class_weights)
    return np.log(priors[1:] / priors[:1]) if len(priors) == 2 else np.log(priors)


def class_priors(class_weights: Array) -> Array:
    """Return every class's share of the weight, at least 1e-9, (n_classes,)."""
    return np.asarray(np.maximum(class_weights / class_weights.sum(), 1e-9))


def _by_class(codes: NDArray[np.intp], n_classes: int, numbers: Array) -> Array:
    return np.bincount(codes, numbers, n_classes).astype(np.float64)


def _positive_entries(X: Any) -> NDArray[np.int64]:
    """Return how many positive entries every row of a CSR matrix has."""
    if np.count_nonzero(X.data) == X.data.size:
        return np.diff(X.indptr).astype(np.int64)
    return np.diff(np.concatenate([[0], np.cumsum(X.data > 0)])[X.indptr])
