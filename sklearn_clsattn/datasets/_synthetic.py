"""Documents of class-relevant and irrelevant tokens, from a known distribution."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils import check_random_state

from .._matrices import as_configured
from .._sklearn import Interval, validate_params

_LENGTH_SPREAD = 0.5  # standard deviation of the logarithm of documents' lengths

Rng = np.random.RandomState


@validate_params(
    {
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "n_classes": [Interval(Integral, 2, None, closed="left")],
        "n_relevant_per_class": [Interval(Integral, 1, None, closed="left")],
        "n_irrelevant": [Interval(Integral, 0, None, closed="left")],
        "document_length": [Interval(Real, 1, None, closed="left")],
        "relevant_share": [Interval(Real, 0, 1, closed="both")],
        "delta": [Interval(Real, 0, 1, closed="both"), "array-like"],
        "single_relevant": ["boolean"],
        "flip_y": [Interval(Real, 0, 1, closed="both")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def make_token_classification(
    n_samples: int = 1000,
    *,
    n_classes: int = 2,
    n_relevant_per_class: int = 20,
    n_irrelevant: int = 500,
    document_length: float = 50,
    relevant_share: float = 0.2,
    delta: float | tuple[float, float] = 0.1,
    single_relevant: bool = False,
    flip_y: float = 0.0,
    random_state: int | Rng | None = None,
) -> tuple[Any, NDArray[np.int64]]:
    r"""Generate documents whose classes differ in a few relevant tokens.

    Each class has tokens that are relevant to it; all other tokens are irrelevant and equally
    frequent in all classes. A document of class :math:`y` has a log-normal number of tokens. A
    binomial number of them is relevant, at least one unless `relevant_share` is 0. Each relevant
    one is token :math:`j`, which is relevant to class :math:`k`, with probability
    :math:`(1 - \delta_j) / m` if :math:`y = k` and :math:`\delta_j / (m (K - 1))` otherwise, where
    :math:`m` is `n_relevant_per_class` and :math:`K` is `n_classes`. The irrelevant token of rank r
    has a frequency proportional to 1 / r.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of documents, as many of each class.
    n_classes : int, default=2
        Number of classes, K.
    n_relevant_per_class : int, default=20
        Number of tokens relevant to each class.
    n_irrelevant : int, default=500
        Number of irrelevant tokens. With 0, all tokens are relevant, for any `relevant_share`.
    document_length : float, default=50
        Mean number of tokens in a document, somewhat exceeded if it is small: each document has at
        least one token.
    relevant_share : float, default=0.2
        Expected share of relevant tokens in a long document; a short one may exceed it, as each
        document has at least one relevant token. With 0, it has none, and labels are independent
        of tokens.
    delta : float or tuple (low, high), default=0.1
        The probability that an occurrence of a relevant token is in a document of another class.
        With 0, classes are linearly separable, unless labels are flipped or `relevant_share` is 0.
        With a pair, the tokens of each class have probabilities evenly spaced from `low` to `high`.
    single_relevant : bool, default=False
        Whether the data satisfy Assumption 1 of [1]_ exactly (see Notes). `n_samples` must be a
        multiple of `n_classes` then; `delta` and `relevant_share` are ignored.
    flip_y : float, default=0.0
        Probability that a label is redrawn, uniformly from all classes.
    random_state : int, RandomState instance or None, default=None
        Pass an int for reproducible documents.

    Returns
    -------
    X : sparse matrix of shape (n_samples, n_tokens)
        Counts of tokens: first those relevant to class 0, then those relevant to class 1, and so
        on, then the irrelevant tokens, most frequent first. A CSR matrix, or a CSR array after
        ``sklearn.set_config(sparse_interface="sparray")``.
    y : ndarray of shape (n_samples,)
        Class labels, 0 to `n_classes` - 1.

    Notes
    -----
    Theorem 4.3 of [1]_ requires Assumption 1: each document has exactly one relevant token, which
    occurs only in documents of one class, and all its other tokens are equally frequent in all
    classes. With `single_relevant`, the i-th documents of all classes have the same irrelevant
    tokens, so the frequencies of irrelevant tokens are exactly equal. If a class has at least as
    many documents as relevant tokens, all these tokens occur.

    References
    ----------
    .. [1] D. Wu, A. Shevchenko, S. Oymak and M. Mondelli, "Attention with Trained Embeddings
       Provably Selects Important Tokens", NeurIPS 2025, arXiv:2505.17282.

    Examples
    --------
    >>> from sklearn_clsattn.datasets import make_token_classification
    >>> X, y = make_token_classification(n_samples=100, random_state=0)
    >>> X.shape, y.shape
    ((100, 540), (100,))
    """
    # 1) the probabilities of the tokens: of relevant ones (by class) and of irrelevant ones
    p_relevant = _relevant_probabilities(delta, n_relevant_per_class, n_classes)
    n_tokens = p_relevant.shape[1] + n_irrelevant
    ranks = np.arange(1, n_irrelevant + 1)
    p_irrelevant = (1 / ranks) / np.sum(1 / ranks)

    # 2) the classes of the documents
    rng = check_random_state(random_state)
    y = np.sort(np.arange(n_samples) % n_classes)
    rng.shuffle(y)

    # 3) the documents
    if single_relevant:
        if n_samples % n_classes:
            raise ValueError(
                f"n_samples must be a multiple of n_classes={n_classes} with single_relevant, got "
                f"{n_samples}."
            )
        group_lengths = _draw_lengths(rng, document_length, n_samples // n_classes)
        tokens, lengths = _draw_groups(rng, y, group_lengths, n_relevant_per_class, p_irrelevant)
    else:
        lengths = _draw_lengths(rng, document_length, n_samples)
        share = relevant_share if n_irrelevant else 1.0
        tokens = _draw_tokens(rng, y, lengths, share, p_relevant, p_irrelevant)

    # 4) the labels, some of them drawn again
    is_redrawn = rng.random_sample(n_samples) < flip_y
    labels = np.where(is_redrawn, rng.randint(n_classes, size=n_samples), y)

    # 5) the counts
    return as_configured(_token_counts(tokens, lengths, n_tokens)), labels


def _relevant_probabilities(
    delta: float | tuple[float, float], n_per_class: int, n_classes: int
) -> NDArray[np.float64]:
    """Return the probabilities of relevant tokens in each class, (n_classes, n_relevant)."""
    low, high = np.broadcast_to(delta, 2)
    deltas = np.tile(np.linspace(low, high, n_per_class), n_classes)
    p_own = (1 - deltas) / n_per_class
    p_other = deltas / (n_per_class * (n_classes - 1))
    classes = np.arange(n_classes)
    is_own = np.repeat(classes, n_per_class) == classes[:, None]
    return np.where(is_own, p_own, p_other)


def _draw_lengths(rng: Rng, document_length: float, size: int) -> NDArray[np.int64]:
    """Draw the lengths (size,) of documents: log-normal numbers, rounded, and at least 1."""
    # The mean of a log-normal is exp(mu + sigma ** 2 / 2).
    mu = np.log(document_length) - _LENGTH_SPREAD**2 / 2
    lengths = rng.lognormal(mu, _LENGTH_SPREAD, size)
    return np.maximum(np.rint(lengths), 1).astype(np.int64)


def _draw_tokens(
    rng: Rng,
    y: NDArray[np.int64],
    lengths: NDArray[np.int64],
    relevant_share: float,
    p_relevant: NDArray[np.float64],
    p_irrelevant: NDArray[np.float64],
) -> NDArray[np.int32]:
    """Draw the tokens (n_tokens,) of all documents in order, relevant ones first in each."""
    # 1) the number of relevant tokens in each document, and where they are
    n_relevant = rng.binomial(lengths, relevant_share)
    if relevant_share > 0:
        n_relevant = np.maximum(n_relevant, 1)
    starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
    place = np.arange(len(starts)) - starts
    is_relevant = place < np.repeat(n_relevant, lengths)
    # 2) the tokens
    classes = np.repeat(y, lengths)
    tokens = np.empty(len(classes), dtype=np.int32)
    for k, p_in_class in enumerate(p_relevant):
        is_drawn = is_relevant & (classes == k)
        tokens[is_drawn] = _draw(rng, p_in_class, int(is_drawn.sum()))
    if p_irrelevant.size:
        n_others = len(tokens) - int(n_relevant.sum())
        tokens[~is_relevant] = p_relevant.shape[1] + _draw(rng, p_irrelevant, n_others)
    return tokens


def _draw_groups(
    rng: Rng,
    y: NDArray[np.int64],
    group_lengths: NDArray[np.int64],
    n_per_class: int,
    p_irrelevant: NDArray[np.float64],
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Draw groups of documents, one of each class, that have the same irrelevant tokens.

    Return the tokens of all documents in order, (n_tokens,), and the documents' lengths.
    """
    n_groups = group_lengths.size
    n_classes = y.size // n_groups
    # 1) the group and the relevant token of each document: each token once, then any at random
    group = np.empty(y.size, dtype=np.int64)
    relevant_token = np.empty(y.size, dtype=np.int32)
    for k in range(n_classes):
        in_class = y == k
        group[in_class] = np.arange(n_groups)
        distinct = rng.permutation(n_per_class)[:n_groups]
        repeated = rng.randint(n_per_class, size=n_groups - distinct.size)
        shuffled = rng.permutation(np.concatenate([distinct, repeated]))
        relevant_token[in_class] = k * n_per_class + shuffled
    # 2) the irrelevant tokens of each group
    ends = np.cumsum(group_lengths - 1)
    drawn = n_classes * n_per_class + _draw(rng, p_irrelevant, int(ends[-1]))
    irrelevant_tokens = np.split(drawn.astype(np.int32), ends[:-1])
    # 3) the documents
    parts: list[Any] = []
    for token, group_number in zip(relevant_token, group, strict=True):
        parts.append([token])
        parts.append(irrelevant_tokens[group_number])
    return np.concatenate(parts, dtype=np.int32), group_lengths[group]


def _token_counts(
    tokens: NDArray[np.int32], lengths: NDArray[np.int64], n_tokens: int
) -> csr_array:
    """Return the counts (n_samples, n_tokens) of documents, given all their tokens in order."""
    ones = np.ones(tokens.size, dtype=np.int64)
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    counts = csr_array((ones, tokens, indptr), shape=(lengths.size, n_tokens))
    counts.sum_duplicates()
    return counts


def _draw(rng: Rng, p: NDArray[np.float64], size: int) -> NDArray[np.intp]:
    """Draw `size` indices with probabilities `p`; never one whose probability is 0."""
    cdf = np.cumsum(p)
    cdf /= cdf[-1]
    return np.searchsorted(cdf, rng.random_sample(size), side="right")
