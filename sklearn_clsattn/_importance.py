r"""Token statistics: the importance of each token for each class.

They are formulas on totals of tokens by class, which the notes of
:class:`~sklearn_clsattn.TokenImportanceTransformer` have for two classes. A result has one number
per token for two classes, positive for the second, and one row per class for more.
"""

import numpy as np

from ._matrices import safe_divide
from ._types import Array


def signed_frequency(
    totals_of_shares: Array, class_sizes: Array, *, centred: bool = False
) -> Array:
    r"""Return the signed frequency of tokens, which one gradient step on the embeddings learns.

    For K > 2 classes it is

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


def posterior_difference(totals: Array) -> Array:
    r"""Return the difference of the classes' posterior probabilities, given the token.

    For K > 2 classes it is the posterior of class k minus the mean posterior of the others,
    :math:`(K P(k|s) - 1) / (K - 1)`. The totals are those of counts, (n_classes, n_tokens).
    """
    n_classes = len(totals)
    seen = totals.sum(axis=0)
    if n_classes == 2:
        return safe_divide(totals[1] - totals[0], seen)
    difference = n_classes * totals  # changed in place: it may be large
    difference -= seen
    return safe_divide(difference, (n_classes - 1) * seen)


def log_odds(totals: Array, *, smoothing: float = 1.0) -> Array:
    """Return the log-count ratio of each token between the classes, as in NB-SVM.

    For K > 2, the smoothed totals of each class are compared with the sum of the others. The totals
    are those of counts, (n_classes, n_tokens). The training of classifiers smooths otherwise
    (:class:`~.training.statistics.TokenTotals`).
    """
    # 1) the totals of each class, and of all others
    smoothed = totals + smoothing
    rest = smoothed.sum(axis=0) - smoothed
    # By rounding, the difference may be smaller than the smoothing.
    np.maximum(rest, (len(totals) - 1) * smoothing, out=rest)
    # 2) their log-odds, relative to those of their sums
    prior_odds = np.log(smoothed.sum(axis=1)) - np.log(rest.sum(axis=1))
    smoothed /= rest
    ratios = np.log(smoothed, out=smoothed)
    ratios -= prior_odds[:, None]
    return ratios[1] if len(totals) == 2 else ratios


def overall_importance(importance: Array) -> Array:
    """Return one non-negative importance per token, over all classes, (n_tokens,).

    It is the absolute value for two classes, and the root mean square over the classes for more:
    the maximum of many noisy numbers would rank rare tokens first.
    """
    if importance.ndim == 1:
        return np.abs(importance)
    squares = np.einsum("ks,ks->s", importance, importance)
    return np.asarray(np.sqrt(squares / len(importance)))
