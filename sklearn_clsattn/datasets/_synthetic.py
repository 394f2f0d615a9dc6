"""Documents of class-relevant and irrelevant tokens, from a known distribution."""

from itertools import count, pairwise, product
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.utils import Bunch, check_random_state

from .._documents import as_configured
from .._sklearn import Interval, validate_params
from ._requests import sections

_LENGTH_SPREAD = 0.5  # standard deviation of the logarithm of documents' lengths
# Separators after words in a text, and their cumulative probabilities.
_SEPARATORS = (" ", ", ", ". ", ".")
_SEPARATOR_CDF = (0.86, 0.93, 1.0)

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
    binomial number of them, at least one, is relevant. Each relevant one is token :math:`j`, which
    is relevant to class :math:`k`, with probability :math:`(1 - \delta_j) / m` if :math:`y = k` and
    :math:`\delta_j / (m (K - 1))` otherwise, where :math:`m` is `n_relevant_per_class` and
    :math:`K` is `n_classes`.

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
        Mean number of tokens in a document.
    relevant_share : float, default=0.2
        Expected share of relevant tokens in a document. With 0, labels are independent of tokens;
        otherwise each document has at least one relevant token.
    delta : float or tuple (low, high), default=0.1
        If classes are equally frequent, the probability that an occurrence of a relevant token
        is in a document of another class. With 0, classes are linearly separable. With a pair,
        the tokens of each class have probabilities evenly spaced from `low` to `high`.
    single_relevant : bool, default=False
        Whether the data satisfy Assumption 1 of [1]_ exactly (see Notes). `n_samples` must be a
        multiple of `n_classes`, classes must be balanced, and `delta` and `flip_y` must be 0;
        `relevant_share` is ignored.
    zipf_exponent : float, default=1.0
        The irrelevant token of rank r has a frequency proportional to `r ** -zipf_exponent`.
    weights : array-like of shape (n_classes,), default=None
        Class frequencies; class sizes are rounded to whole numbers. By default classes are
        balanced.
    flip_y : float, default=0.0
        Fraction of labels to replace by a label drawn uniformly from all classes.
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
        on, then the irrelevant tokens, most frequent first. CSR, in the container of scikit-learn's
        `sparse_interface`. With `as_text`, texts.
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
    occurs only in documents of one class, and all its other tokens have signed frequency 0. With
    `single_relevant`, documents are drawn in groups of K, one of each class, that differ only in
    the relevant token and have the same order within each class, so that the frequencies of
    irrelevant tokens are equal to the last bit. If a class has as many documents as relevant
    tokens, all these tokens occur.

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
    own, other = _relevant_probabilities(delta, n_relevant_per_class, n_classes)
    sizes = _class_sizes(n_samples, n_classes, weights)
    unbalanced = n_samples % n_classes or np.ptp(sizes)
    if single_relevant and (unbalanced or np.any(delta) or flip_y or not n_irrelevant):
        raise ValueError(
            "single_relevant=True requires that n_samples is a multiple of n_classes, weights are "
            "equal, delta and flip_y are 0, and n_irrelevant is at least 1"
        )
    rng = check_random_state(random_state)

    n_relevant = n_classes * n_relevant_per_class
    token_class = np.full(n_relevant + n_irrelevant, -1)
    token_class[:n_relevant] = np.repeat(np.arange(n_classes), n_relevant_per_class)
    relevant = np.where(token_class[:n_relevant] == np.arange(n_classes)[:, None], own, other)
    irrelevant = np.arange(1, n_irrelevant + 1, dtype=np.float64) ** -zipf_exponent
    irrelevant /= max(irrelevant.sum(), np.finfo(np.float64).tiny)

    y = np.repeat(np.arange(n_classes), sizes)
    rng.shuffle(y)
    n_lengths = n_samples // n_classes if single_relevant else n_samples
    # The mean of a log-normal is exp(mu + sigma ** 2 / 2).
    mu = np.log(document_length) - _LENGTH_SPREAD**2 / 2
    lengths = np.maximum(np.rint(rng.lognormal(mu, _LENGTH_SPREAD, n_lengths)), 1).astype(np.int64)
    if single_relevant:
        tokens, lengths = _draw_groups(rng, y, lengths, n_classes, n_relevant, irrelevant)
        relevant_share = float(np.mean(1 / lengths))
    else:
        relevant_share = relevant_share if n_irrelevant else 1.0
        tokens = _draw_tokens(rng, y, lengths, relevant_share, relevant, irrelevant)
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    ones = np.ones(tokens.size, dtype=np.int64)
    arrays = ones, tokens.astype(np.int32), indptr.copy()
    counts = csr_array(arrays, shape=(n_samples, token_class.size))
    counts.sum_duplicates()
    counts = as_configured(counts)

    flipped = rng.random_sample(n_samples) < flip_y
    target = np.where(flipped, rng.randint(n_classes, size=n_samples), y)
    if return_X_y and not as_text:
        return counts, target
    feature_names, target_names = _names(n_classes, n_relevant_per_class, n_irrelevant)
    bunch = Bunch(
        data=counts,
        target=target,
        feature_names=feature_names,
        target_names=target_names,
        token_class=token_class,
        token_probabilities=np.hstack(
            [relevant_share * relevant, np.tile((1 - relevant_share) * irrelevant, (n_classes, 1))]
        ),
        unflipped_target=y,
    )
    if as_text:  # drawn last, so that documents are the same without texts
        bunch.texts = _write_texts(rng, tokens, indptr, feature_names)
    return (bunch.texts, target) if return_X_y else bunch


def _relevant_probabilities(
    delta: float | tuple[float, float], n_relevant: int, n_classes: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the probabilities of relevant tokens in documents of their own and other classes."""
    bounds = np.asarray(delta, dtype=np.float64)
    if bounds.shape not in ((), (2,)) or not ((bounds >= 0) & (bounds <= 1)).all():
        raise ValueError(f"delta must be a number from 0 to 1 or a pair of them, got {delta!r}")
    low, high = np.broadcast_to(bounds, 2)
    deltas = np.tile(np.linspace(low, high, n_relevant), n_classes)
    return (1 - deltas) / n_relevant, deltas / (n_relevant * (n_classes - 1))


def _class_sizes(n_samples: int, n_classes: int, weights: ArrayLike | None) -> NDArray[np.int64]:
    """Return the sizes of the classes, (n_classes,), rounded by largest remainders."""
    frequencies = np.full(n_classes, 1 / n_classes)
    if weights is not None:
        frequencies = np.asarray(weights, dtype=np.float64)
    has_shape = frequencies.shape == (n_classes,)
    # NaN would pass the opposite comparisons.
    if not (has_shape and frequencies.min() >= 0 and abs(frequencies.sum() - 1) <= 1e-6):
        raise ValueError(f"weights must be {n_classes} shares that add up to 1, got {weights!r}")
    exact = n_samples * frequencies / frequencies.sum()
    sizes = np.floor(exact + 1e-9).astype(np.int64)
    missing = n_samples - int(sizes.sum())
    sizes[np.argsort(sizes - exact, kind="stable")[:missing]] += 1
    return sizes


def _draw_tokens(
    rng: Rng,
    y: NDArray[np.int64],
    lengths: NDArray[np.int64],
    relevant_share: float,
    relevant: NDArray[np.float64],
    irrelevant: NDArray[np.float64],
) -> NDArray[np.int32]:
    """Draw the tokens (n_tokens,) of all documents in order, relevant ones first in each."""
    n_relevant = np.maximum(rng.binomial(lengths, relevant_share), int(relevant_share > 0))
    starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
    is_relevant = np.arange(len(starts)) - starts < np.repeat(n_relevant, lengths)
    classes = np.repeat(y, lengths)
    tokens = np.empty(len(classes), dtype=np.int32)
    for k, probabilities in enumerate(relevant):
        of_class = is_relevant & (classes == k)
        tokens[of_class] = _draw(rng, probabilities, int(of_class.sum()))
    if irrelevant.size:
        n_others = len(tokens) - int(n_relevant.sum())
        tokens[~is_relevant] = relevant.shape[1] + _draw(rng, irrelevant, n_others)
    return tokens


def _draw_groups(
    rng: Rng,
    y: NDArray[np.int64],
    group_lengths: NDArray[np.int64],
    n_classes: int,
    n_relevant: int,
    irrelevant: NDArray[np.float64],
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Draw groups of documents, one of each class, that have the same irrelevant tokens."""
    n_groups = group_lengths.size
    group = np.empty(y.size, dtype=np.int64)
    tokens_of_class = n_relevant // n_classes
    first = np.empty(y.size, dtype=np.int32)
    for k in range(n_classes):
        of_class = y == k
        group[of_class] = np.arange(n_groups)
        drawn = rng.permutation(tokens_of_class)[:n_groups]  # each at most once
        further = rng.randint(tokens_of_class, size=n_groups - drawn.size)
        first[of_class] = k * tokens_of_class + rng.permutation(np.concatenate([drawn, further]))

    ends = np.cumsum(group_lengths - 1)
    shared = n_relevant + _draw(rng, irrelevant, int(ends[-1]))
    parts = np.split(shared.astype(np.int32), ends[:-1])
    tokens: list[Any] = []
    for relevant_token, number in zip(first, group, strict=True):
        tokens += [[relevant_token], parts[number]]
    return np.concatenate(tokens, dtype=np.int32), group_lengths[group]


def _draw(rng: Rng, p: NDArray[np.float64], size: int) -> NDArray[np.intp]:
    """Draw `size` indices with probabilities `p`; never one whose probability is 0."""
    cdf = np.cumsum(p)
    return np.searchsorted(cdf / cdf[-1], rng.random_sample(size), side="right")


def _names(
    n_classes: int, n_relevant: int, n_irrelevant: int
) -> tuple[NDArray[np.object_], list[str]]:
    """Return names of the tokens (n_tokens,), words or compounds of them, and of the classes."""
    words = {title: text.split() for title, text in sections("words.txt").items()}
    themes = [title for title in words if title.startswith("theme ")]
    if n_classes == 2:
        themes = ["negative", "positive"]
    names: dict[str, None] = {}  # each once
    target_names = []
    for k in range(n_classes):
        turn, theme = divmod(k, len(themes))
        title = themes[theme]
        target_name = title.removeprefix("theme ")
        target_names.append(f"{target_name} {turn + 1}" if turn else target_name)
        _add_names(names, words[title], n_relevant)
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
    rng: Rng, tokens: NDArray[np.int32], indptr: NDArray[np.int32], names: NDArray[np.object_]
) -> NDArray[np.object_]:
    """Return documents (n_samples,) as words in random order, with punctuation."""
    document = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    order = np.argsort(document + rng.random_sample(tokens.size), kind="stable")
    separator = np.searchsorted(_SEPARATOR_CDF, rng.random_sample(tokens.size), side="right")
    separator[indptr[1:] - 1] = len(_SEPARATORS) - 1
    with_separators = names[:, None] + np.array(_SEPARATORS, dtype=object)
    words = with_separators[tokens[order], separator].tolist()
    texts = np.empty(indptr.size - 1, dtype=object)
    texts[:] = ["".join(words[i:j]) for i, j in pairwise(indptr.tolist())]
    return texts
