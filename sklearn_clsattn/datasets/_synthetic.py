"""Documents of class-relevant and irrelevant tokens, from a known distribution."""

from itertools import count, pairwise, product
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.utils import Bunch, check_random_state

from .._matrices import as_configured
from .._sklearn import Interval, validate_params
from ._word_lists import sections

_LENGTH_SPREAD = 0.5  # standard deviation of the logarithm of documents' lengths
# Separators between the words of a text, and their cumulative probabilities.
_SEPARATORS = (" ", ", ", ". ")
_SEPARATOR_CDF = (0.86, 0.93, 1.0)
_END = "."  # after the last word of a text

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
        "zipf_exponent": [Interval(Real, 0, None, closed="left")],
        "weights": ["array-like", None],
        "flip_y": [Interval(Real, 0, 1, closed="both")],
        "as_text": ["boolean"],
        "return_X_y": ["boolean"],
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
    zipf_exponent: float = 1.0,
    weights: ArrayLike | None = None,
    flip_y: float = 0.0,
    as_text: bool = False,
    return_X_y: bool = True,
    random_state: int | Rng | None = None,
) -> Any:
    r"""Generate documents whose classes differ in a few relevant tokens.

    Each class has tokens that are relevant to it; all other tokens are irrelevant and equally
    frequent in all classes. A document of class :math:`y` has a log-normal number of tokens. A
    binomial number of them is relevant, at least one unless `relevant_share` is 0. Each relevant
    one is token :math:`j`, which is relevant to class :math:`k`, with probability
    :math:`(1 - \delta_j) / m` if :math:`y = k` and :math:`\delta_j / (m (K - 1))` otherwise, where
    :math:`m` is `n_relevant_per_class` and :math:`K` is `n_classes`.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of documents.
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
        If classes are equally frequent, the probability that an occurrence of a relevant token
        is in a document of another class. With 0, classes are linearly separable, unless labels
        are flipped or `relevant_share` is 0. With a pair, the tokens of each class have
        probabilities evenly spaced from `low` to `high`.
    single_relevant : bool, default=False
        Whether the data satisfy Assumption 1 of [1]_ exactly (see Notes). Pass ``delta=0`` with
        it. `n_samples` must be a multiple of `n_classes`, classes must be balanced, `flip_y` must
        be 0, and `n_irrelevant` at least 1; `relevant_share` is ignored.
    zipf_exponent : float, default=1.0
        The irrelevant token of rank r has a frequency proportional to `r ** -zipf_exponent`.
    weights : array-like of shape (n_classes,), default=None
        Class frequencies, which add up to 1; class sizes are rounded to whole numbers. By default
        classes are balanced.
    flip_y : float, default=0.0
        Probability that a label is redrawn, uniformly from all classes.
    as_text : bool, default=False
        Whether to return texts, with words in random order and punctuation, in which
        :class:`~sklearn.feature_extraction.text.CountVectorizer` counts exactly the same tokens.
    return_X_y : bool, default=True
        If False, return a :class:`~sklearn.utils.Bunch` that also contains the true distribution.
    random_state : int, RandomState instance or None, default=None
        Pass an int for reproducible documents, with and without `as_text`.

    Returns
    -------
    X : sparse matrix of shape (n_samples, n_tokens), or ndarray of shape (n_samples,)
        Counts of tokens: first those relevant to class 0, then those relevant to class 1, and so
        on, then the irrelevant tokens, most frequent first. A CSR matrix, or a CSR array after
        ``sklearn.set_config(sparse_interface="sparray")``. With `as_text`, texts.
    y : ndarray of shape (n_samples,)
        Class labels, 0 to `n_classes` - 1.
    bunch : :class:`~sklearn.utils.Bunch`
        Returned instead if `return_X_y` is False:

        data : sparse matrix of shape (n_samples, n_tokens)
            The counts, also with `as_text`.
        target : ndarray of shape (n_samples,)
            The labels.
        texts : ndarray of shape (n_samples,)
            The texts; only with `as_text`.
        feature_names : ndarray of shape (n_tokens,)
            The tokens: different lower-case words.
        target_names : list of str
            Names of the classes.
        token_class : ndarray of shape (n_tokens,)
            The class that a token is relevant to, -1 for irrelevant tokens.
        token_probabilities : ndarray of shape (n_classes, n_tokens)
            The probability of each token at a position in a document of each class, if documents
            are long enough for `relevant_share`.
        unflipped_target : ndarray of shape (n_samples,)
            The labels before `flip_y`.

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
    >>> bunch = make_token_classification(n_samples=4, return_X_y=False, random_state=0)
    >>> bunch.feature_names[[0, 20, 40]].tolist()
    ['painful', 'terrific', 'the']
    """
    # 1) the tokens, and the probabilities of relevant ones (by class) and of irrelevant ones
    p_relevant = _relevant_probabilities(delta, n_relevant_per_class, n_classes)
    p_irrelevant = _irrelevant_probabilities(zipf_exponent, n_irrelevant)
    n_relevant = p_relevant.shape[1]
    token_class = np.full(n_relevant + n_irrelevant, -1)
    token_class[:n_relevant] = np.repeat(np.arange(n_classes), n_relevant_per_class)

    # 2) the classes of the documents
    sizes = _class_sizes(n_samples, n_classes, weights)
    is_balanced = len(set(sizes.tolist())) == 1
    can_be_exact = is_balanced and not np.any(delta) and flip_y == 0 and n_irrelevant >= 1
    if single_relevant and not can_be_exact:
        raise ValueError(
            "single_relevant=True requires that n_samples is a multiple of n_classes, weights are "
            "equal, delta and flip_y are 0, and n_irrelevant is at least 1"
        )
    rng = check_random_state(random_state)
    y = np.repeat(np.arange(n_classes), sizes)
    rng.shuffle(y)

    # 3) the documents; `share` is the probability that the token at a position is relevant
    if single_relevant:
        group_lengths = _draw_lengths(rng, document_length, n_samples // n_classes)
        tokens, lengths = _draw_groups(rng, y, group_lengths, n_relevant_per_class, p_irrelevant)
        share = float(np.mean(1 / lengths))  # one token of each document is relevant
    else:
        lengths = _draw_lengths(rng, document_length, n_samples)
        share = relevant_share if n_irrelevant else 1.0
        tokens = _draw_tokens(rng, y, lengths, share, p_relevant, p_irrelevant)
    counts = as_configured(_token_counts(tokens, lengths, token_class.size))

    # 4) the labels, some of them drawn again
    is_redrawn = rng.random_sample(n_samples) < flip_y
    target = np.where(is_redrawn, rng.randint(n_classes, size=n_samples), y)
    if return_X_y and not as_text:
        return counts, target

    # 5) the texts, drawn last, so that documents are the same without them
    feature_names, target_names = _names(n_classes, n_relevant_per_class, n_irrelevant)
    texts = _write_texts(rng, tokens, lengths, feature_names) if as_text else None
    if return_X_y:
        return texts, target

    # 6) all of these, and the true distribution
    p_irrelevant_by_class = np.tile((1 - share) * p_irrelevant, (n_classes, 1))
    bunch = Bunch(
        data=counts,
        target=target,
        feature_names=feature_names,
        target_names=target_names,
        token_class=token_class,
        token_probabilities=np.hstack([share * p_relevant, p_irrelevant_by_class]),
        unflipped_target=y,
    )
    if as_text:
        bunch.texts = texts
    return bunch


def _relevant_probabilities(
    delta: float | tuple[float, float], n_per_class: int, n_classes: int
) -> NDArray[np.float64]:
    """Return the probabilities of relevant tokens in each class, (n_classes, n_relevant)."""
    bounds = np.asarray(delta, dtype=np.float64)
    if bounds.shape not in ((), (2,)) or not ((bounds >= 0) & (bounds <= 1)).all():
        raise ValueError(f"delta must be a number from 0 to 1 or a pair of them, got {delta!r}")
    low, high = np.broadcast_to(bounds, 2)
    deltas = np.tile(np.linspace(low, high, n_per_class), n_classes)
    p_own = (1 - deltas) / n_per_class
    p_other = deltas / (n_per_class * (n_classes - 1))
    classes = np.arange(n_classes)
    is_own = np.repeat(classes, n_per_class) == classes[:, None]
    return np.where(is_own, p_own, p_other)


def _irrelevant_probabilities(zipf_exponent: float, n_irrelevant: int) -> NDArray[np.float64]:
    """Return the probabilities of irrelevant tokens, (n_irrelevant,), most frequent first."""
    ranks = np.arange(1, n_irrelevant + 1, dtype=np.float64)
    frequencies = ranks**-zipf_exponent
    return frequencies / frequencies.sum()


def _class_sizes(n_samples: int, n_classes: int, weights: ArrayLike | None) -> NDArray[np.int64]:
    """Return the sizes of the classes, (n_classes,), rounded by largest remainders."""
    # 1) the frequencies of the classes
    frequencies = np.full(n_classes, 1 / n_classes)
    if weights is not None:
        frequencies = np.asarray(weights, dtype=np.float64)
    has_shape = frequencies.shape == (n_classes,)
    # NaN would pass the opposite comparisons.
    if not (has_shape and frequencies.min() >= 0 and abs(frequencies.sum() - 1) <= 1e-6):
        raise ValueError(f"weights must be {n_classes} shares that add up to 1, got {weights!r}")
    # 2) whole numbers
    exact = n_samples * frequencies / frequencies.sum()
    sizes = np.floor(exact + 1e-9).astype(np.int64)  # in spite of rounding
    remainders = exact - sizes
    missing = n_samples - int(sizes.sum())
    sizes[np.argsort(-remainders, kind="stable")[:missing]] += 1
    return sizes


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
    is_relevant = np.arange(len(starts)) - starts < np.repeat(n_relevant, lengths)
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
    # A copy, because sum_duplicates sorts in place, and texts need the order.
    counts = csr_array((ones, tokens.copy(), indptr), shape=(lengths.size, n_tokens))
    counts.sum_duplicates()
    return counts


def _draw(rng: Rng, p: NDArray[np.float64], size: int) -> NDArray[np.intp]:
    """Draw `size` indices with probabilities `p`; never one whose probability is 0."""
    cdf = np.cumsum(p)
    return np.searchsorted(cdf / cdf[-1], rng.random_sample(size), side="right")


def _names(
    n_classes: int, n_per_class: int, n_irrelevant: int
) -> tuple[NDArray[np.object_], list[str]]:
    """Return names of the tokens (n_tokens,), words or compounds of them, and of the classes."""
    # 1) a theme for each class
    words = {title: text.split() for title, text in sections("words.txt").items()}
    themes = ["negative", "positive"]
    if n_classes > 2:
        themes = [title for title in words if title.startswith("theme ")]
    # 2) names; with more classes than themes, themes come again with a number
    names: dict[str, None] = {}  # each once
    target_names = []
    for k in range(n_classes):
        turn, theme_number = divmod(k, len(themes))
        theme = themes[theme_number]
        target_name = theme.removeprefix("theme ")
        target_names.append(f"{target_name} {turn + 1}" if turn else target_name)
        _add_names(names, words[theme], n_per_class)
    _add_names(names, words["irrelevant"], n_irrelevant)
    return np.array(list(names), dtype=object), target_names


def _add_names(names: dict[str, None], words: list[str], n_new: int) -> None:
    """Add new names: words, then compounds of two of them, of three, and so on."""
    n_wanted = len(names) + n_new
    for n_parts in count(1):
        for parts in product(words, repeat=n_parts):
            if len(names) == n_wanted:
                return
            names["".join(parts)] = None


def _write_texts(
    rng: Rng, tokens: NDArray[np.int32], lengths: NDArray[np.int64], names: NDArray[np.object_]
) -> NDArray[np.object_]:
    """Return documents (n_samples,) as words in random order, with punctuation."""
    n_documents = lengths.size
    # 1) the order of words: by document, then at random
    document = np.repeat(np.arange(n_documents), lengths)
    order = np.argsort(document + rng.random_sample(tokens.size), kind="stable")
    # 2) the separator after each word
    ends = np.cumsum(lengths)
    separator = np.searchsorted(_SEPARATOR_CDF, rng.random_sample(tokens.size), side="right")
    separator[ends - 1] = len(_SEPARATORS)
    # 3) the texts
    with_separators = names[:, None] + np.array([*_SEPARATORS, _END], dtype=object)
    words = with_separators[tokens[order], separator].tolist()
    texts = np.empty(n_documents, dtype=object)
    texts[:] = ["".join(words[i:j]) for i, j in pairwise([0, *ends.tolist()])]
    return texts
