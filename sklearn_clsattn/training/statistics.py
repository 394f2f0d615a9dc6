"""Sums over documents before training, and the units of training that follow from them.

:class:`CorpusStatistics` are sums over documents, class by class: those of two sets of documents
add up to those of both, so that one set may be read batch after batch or on several machines.
:func:`scaling_of` derives from them where training starts and in which units, by the formulas of
``docs/mathematics.md``:

- values are scaled by the token's log-odds between the classes, so that tokens that separate the
  classes are shrunk less by the penalty;
- totals have pseudo-counts, divided between a class and its rivals like their documents, so that
  the evidence of a class is worth what its documents are (Monroe, Colaresi and Quinn's informative
  prior);
- attention starts at the logarithm of the token's importance, and values are divided by it, so
  that before training the attention alone ranks tokens while the output's numerator is that
  of uniform attention.

The importances of tokens that the transformer has as well are at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from .._bags import Bags
from .._matrices import safe_divide
from .._targets import Targets
from .._types import Array, Numbers
from .trusted_words import Trust

TokenScaling = Literal["log_odds"] | None

LOG_ODDS_EXPONENT = 0.9
"""Values are scaled by the absolute log-odds to this power (``docs/measured.md``)."""

SMOOTHING = 0.3
"""Pseudo-count of each token in a class, or in all others, if these have fewer documents."""

BACKGROUND_DOCUMENTS = 10.0
"""Pseudo-documents of the rarer of the two, in which tokens are as frequent as in all documents."""

IMPORTANCE_FLOOR = 0.1
"""Added to the importance before its logarithm becomes the starting score."""

_LEAST_PRIOR = 1e-9


@dataclass(frozen=True)
class CorpusStatistics:
    """Weighted sums over documents, in all and class by class. They are additive.

    class_sizes : (n_classes,), document weights
    shares : (n_classes, n_tokens), document weight times each token's share of the document's total
        token weight
    total_weight : document weights, of all documents
    token_weight : document weight times total token weight, of all documents
    n_entries : document weight times number of entries, of all documents
    token_shares : (n_tokens,), like `shares`, of all documents
    multilabel : whether documents have several labels, which are the classes
    """

    class_sizes: Array
    shares: Array
    total_weight: float
    token_weight: float
    n_entries: float
    token_shares: Array
    multilabel: bool = False

    @classmethod
    def from_documents(cls, bags: Bags, targets: Targets, weights: Array) -> CorpusStatistics:
        """Return the sums over documents with these bags, targets and weights."""
        # 1) the tokens' shares of documents, by class
        totals = bags.totals()
        per_token = safe_divide(weights, totals)
        shares = bags.class_totals(targets.values, targets.n_classes, per_token)
        # 2) of all documents; with several labels, those of the classes overlap
        if targets.multilabel:
            one_class = np.zeros(len(weights), dtype=np.intp)
            token_shares = bags.class_totals(one_class, 1, per_token)[0]
        else:
            token_shares = shares.sum(axis=0)
        return cls(
            class_sizes=targets.class_sums(weights),
            shares=shares,
            total_weight=float(weights.sum()),
            token_weight=float(weights @ totals),
            n_entries=float(weights @ bags.estimated_lengths()),
            token_shares=token_shares,
            multilabel=targets.multilabel,
        )

    def __add__(self, other: CorpusStatistics) -> CorpusStatistics:
        return CorpusStatistics(
            class_sizes=self.class_sizes + other.class_sizes,
            shares=self.shares + other.shares,
            total_weight=self.total_weight + other.total_weight,
            token_weight=self.token_weight + other.token_weight,
            n_entries=self.n_entries + other.n_entries,
            token_shares=self.token_shares + other.token_shares,
            multilabel=self.multilabel or other.multilabel,
        )

    def of_tokens(self, tokens: Numbers) -> CorpusStatistics:
        """Return the statistics of some tokens, (n_some,), which become 0, 1, 2, ..."""
        shares = self.shares[:, tokens]
        return replace(self, shares=shares, token_shares=self.token_shares[tokens])

    @property
    def n_seen(self) -> int:
        """Number of tokens of any document of positive weight."""
        return int(np.count_nonzero(self.token_shares))

    @property
    def n_outputs(self) -> int:
        """As that of the targets."""
        n_classes = len(self.class_sizes)
        return 1 if n_classes == 2 and not self.multilabel else n_classes

    @property
    def mean_token_weight(self) -> float:
        """Mean over documents of their total token weight."""
        return self.token_weight / self.total_weight

    @property
    def mean_entry(self) -> float:
        """Mean of the entries, by document weight: 1 for bags of 0 and 1."""
        return self.token_weight / (self.n_entries or 1.0)

    @property
    def priors(self) -> Array:
        """Every class's, or label's, share of the weight, at least 1e-9, (n_classes,)."""
        total = self.total_weight if self.multilabel else self.class_sizes.sum()
        priors = self.class_sizes / total
        largest = 1.0 - _LEAST_PRIOR if self.multilabel else 1.0
        return np.asarray(priors.clip(_LEAST_PRIOR, largest))

    @property
    def class_log_odds(self) -> Array:
        """The intercepts that depend on the classes' shares alone, (n_outputs,).

        For two classes the log-odds of the second, else the logarithms of the classes' shares; of
        each of several labels the log-odds.
        """
        priors = self.priors
        if self.multilabel:
            return np.asarray(logit(priors))
        if self.n_outputs == 1:
            return np.log(priors[1:] / priors[:1])
        return np.log(priors)

    @property
    def importance(self) -> Array:
        """Signed frequency of each token, (n_tokens,) or (n_classes, n_tokens)."""
        if self.multilabel:
            differences = 2 * self.shares - self.token_shares
            return np.asarray(differences / self.total_weight)
        return signed_frequency(self.shares, self.class_sizes)

    @property
    def cls_weight(self) -> float:
        """Weight of ``<cls>`` as a document's mean token weight; 1 if all are empty."""
        return self.mean_token_weight or 1.0


@dataclass(frozen=True)
class TokenTotals:
    """Smoothed totals of tokens by class, and the tokens' log-odds between the classes.

    seen : (n_tokens,), whether there are any documents with the token
    smoothed, rest : (n_tokens, n_classes), totals of every class and of all others together, in
        units of documents of 0 and 1; where documents have several labels, of those with and
        without each
    pseudo_counts : (n_tokens,), of each token in the rarer of a class and its rivals
    class_shares : (2, n_classes), weight of each class, and of all others, relative to the rarer
    prior_odds : (n_classes,), log-odds of the classes' sums over tokens
    unit : a document of weight 1 counts this times each token's share of it
    stated, factors : (n_tokens, n_outputs) and (n_tokens,), what people state of the tokens, and
        what multiplies the log-odds of the documents (:mod:`.trusted_words`); None if they do not
    n_outputs : 1 for two classes, else n_classes: the last ones
    """

    seen: NDArray[np.bool_]
    smoothed: Array
    rest: Array
    pseudo_counts: Array
    class_shares: Array
    prior_odds: Array
    unit: float
    n_outputs: int
    stated: Array | None = None
    factors: Array | None = None

    @classmethod
    def from_statistics(
        cls, statistics: CorpusStatistics, trust: Trust | None = None
    ) -> TokenTotals:
        """Return the totals of the documents of some statistics, and what people say of tokens."""
        unit = statistics.mean_token_weight / (statistics.mean_entry or 1.0)
        # 1) totals of each class and of all others, or with and without each label
        of_all = statistics.token_shares * unit
        smoothed = statistics.shares * unit
        rest = (of_all - smoothed).clip(min=0.0)
        # 2) pseudo-counts, divided between the two like the documents that have tokens
        pseudo_counts = SMOOTHING + BACKGROUND_DOCUMENTS * of_all / statistics.total_weight
        priors = statistics.shares.sum(axis=1) / (statistics.token_shares.sum() or 1.0)
        both = np.stack([priors, 1 - priors])
        relative = (both / both.min(axis=0).clip(_LEAST_PRIOR)).clip(_LEAST_PRIOR)
        smoothed += np.multiply.outer(relative[0], pseudo_counts)
        rest += np.multiply.outer(relative[1], pseudo_counts)
        prior_odds = np.log(relative[0]) - np.log(relative[1])
        seen = statistics.token_shares > 0
        stated, factors = (None, None) if trust is None else trust
        return cls(
            seen=seen,
            smoothed=smoothed.T,
            rest=rest.T,
            pseudo_counts=pseudo_counts,
            class_shares=relative,
            prior_odds=prior_odds,
            unit=unit,
            n_outputs=statistics.n_outputs,
            stated=stated,
            factors=factors,
        )

    @property
    def first(self) -> int:
        """The class of the first output."""
        return len(self.prior_odds) - self.n_outputs

    def log_odds(self) -> Array:
        """Return the tokens' log-odds, (n_tokens, n_outputs)."""
        odds = np.divide(self.smoothed[:, self.first :], self.rest[:, self.first :], order="C")
        np.log(odds, out=odds)
        odds -= self.prior_odds[self.first :]
        odds[~self.seen] = 0.0  # exactly
        return odds if self.factors is None else odds * self.factors[:, None]


@dataclass(frozen=True)
class Scaling:
    """Starting scores and value scales, in NumPy.

    starting_scores : (n_tokens,), attention scores before training
    value_scales : (n_tokens, n_outputs), token values are these times what is trained, which is on
        the scale of logistic regression's coefficients on the counts
    cls_weight : weight of ``<cls>`` in every document: the mean attention mass of a document's
        tokens at the start, so that attention starts out half on ``<cls>``; 0 without it
    C_unit : C = 1 in units of logistic regression's C: for bags of 0 and 1, one over the root of
        the mean length; it follows the scale of X, so that X may be rescaled
    unit : numerator of a document of mean mass whose output is 1, in units of the mean entry
    value_spread : root mean square, over the tokens of training and outputs, of value scale times
        exp(starting score)
    totals : totals of tokens by class; None where all tokens are alike
    """

    starting_scores: NDArray[np.floating[Any]]
    value_scales: NDArray[np.floating[Any]]
    cls_weight: float
    C_unit: float
    unit: float = 1.0
    value_spread: float = 1.0
    totals: TokenTotals | None = None


def scaling_of(
    statistics: CorpusStatistics,
    *,
    token_scaling: TokenScaling,
    attend_cls: bool,
    dtype: type[np.floating[Any]] = np.float64,
    trust: Trust | None = None,
) -> Scaling:
    """Choose the units of training from the tokens' shares of each class's documents.

    `statistics` are those of all documents: through shares, every document counts alike, however
    long. `trust` is what people say of the tokens, if they do. `token_scaling` None treats all
    tokens alike: no scaling, uniform attention at the start.
    `dtype` is the precision of the arrays returned: that of training saves a copy there.
    """
    n_outputs = statistics.n_outputs
    n_tokens = statistics.shares.shape[1]
    mean_document_weight = statistics.mean_token_weight
    mean_entry = statistics.mean_entry
    if not mean_document_weight > 0:  # all documents are empty
        mean_document_weight = 1.0
        mean_entry = 1.0
    token_shares = statistics.token_shares
    is_seen = token_shares > 0
    # 1) starting scores and the values' scales relative to each other
    totals = None
    if token_scaling is None:
        scores = np.zeros(n_tokens)
        scales = np.ones((n_tokens, n_outputs))
    else:
        totals = TokenTotals.from_statistics(statistics, trust)
        odds = totals.log_odds()
        if totals.stated is not None:
            odds += totals.stated
        importance = overall_importance(odds.T) + IMPORTANCE_FLOOR
        scores = np.log(importance)
        # Of tokens without documents, people's odds do not count; without people, all are 0.
        counted = slice(None) if trust is None else is_seen
        scales = _rescaled_power(odds, statistics.n_seen, counted)
        scales /= importance[:, None]
    # 2) their unit: with u = 0 and a document of mean mass, the output is that of logistic
    # regression on the scaled counts with coefficients t
    mean_attention = float(token_shares @ np.exp(scores)) / statistics.total_weight
    mass = mean_attention * mean_document_weight or 1.0
    unit = 2.0 * mass if attend_cls else mass
    scales *= unit
    # 3) their spread; the tokens without log-odds count as well: by rounding, one may have 1e-17
    seen_importance = np.exp(scores[is_seen])
    spreads = scales[is_seen] * seen_importance[:, None]
    value_spread = float(np.sqrt(np.mean(np.square(spreads)))) if spreads.size else 1.0
    return Scaling(
        starting_scores=scores.astype(dtype),
        value_scales=np.ascontiguousarray(scales, dtype=dtype),
        cls_weight=mass if attend_cls else 0.0,
        C_unit=1.0 / (mean_entry**2 * np.sqrt(mean_document_weight / mean_entry)),
        unit=unit / mean_entry,
        value_spread=value_spread,
        totals=totals,
    )


def _rescaled_power(odds: Array, n_seen: int, counted: Any) -> Array:
    """Return ``|odds| ** LOG_ODDS_EXPONENT``, rescaled to the odds' own root mean square.

    It is in the memory of `odds`, (n_tokens, n_outputs). The root mean square is that of the rows
    `counted`, all but `n_seen` of which are 0. Where all odds are 0, the result is 1.
    """
    squares = float(np.vdot(odds[counted], odds[counted]))
    if not squares > 1e-12 * n_seen * odds.shape[1]:
        return np.ones_like(odds)
    np.abs(odds, out=odds)
    np.power(odds, LOG_ODDS_EXPONENT, out=odds)
    odds *= np.sqrt(squares / float(np.vdot(odds[counted], odds[counted])))
    return odds


def signed_frequency(
    totals_of_shares: Array, class_sizes: Array, *, centred: bool = False
) -> Array:
    r"""Return the signed frequency of tokens, which one gradient step on the embeddings learns.

    It has one number per token for two classes, positive for the second, and for K > 2 classes one
    row per class,

    .. math:: \alpha_{sk} = \frac 1 n \sum_i \omega_i \frac{c_{is}}{T_i}
              \Bigl(\frac{K-1}{K} [y_i = k] - \frac 1 K [y_i \ne k]\Bigr).

    The totals are those of shares, (n_classes, n_tokens), and the weights those of the classes,
    (n_classes,). Centred, each document is weighted by n / (K n_k) with the weight n_k of its
    class, so that a token that is equally frequent in all classes gets 0.
    """
    n_classes = len(totals_of_shares)
    divisors = np.full(n_classes, class_sizes.sum())
    if centred:
        divisors = n_classes * class_sizes
    shares = safe_divide(totals_of_shares, divisors[:, None])
    if n_classes == 2:
        return shares[1] - shares[0]
    # Subtract the first class, so that equal shares give exactly 0: their mean may be rounded.
    shares -= shares[0].copy()
    shares -= shares.mean(axis=0)
    return shares


def overall_importance(importance: Array) -> Array:
    """Return one non-negative importance per token, over all classes, (n_tokens,).

    It is the absolute value for two classes, and the root mean square over the classes for more:
    the maximum of many noisy numbers would rank rare tokens first.
    """
    if importance.ndim == 1:
        return np.abs(importance)
    squares = np.einsum("ks,ks->s", importance, importance)
    return np.asarray(np.sqrt(squares / len(importance)))
