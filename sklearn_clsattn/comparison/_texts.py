"""Preparation of texts and labels for a comparison: checking, splitting, counting, coding."""

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import train_test_split

from sklearn_clsattn._validation import codes_of
from sklearn_clsattn.comparison._baselines import Features
from sklearn_clsattn.text import ContextVectorizer, TokenVectorizer
from sklearn_clsattn.text._raw import least_documents


def count_tokens(
    texts: Sequence[str] | NDArray[Any], ngram_range: tuple[int, int], min_df: int | Literal["auto"]
) -> tuple[TokenVectorizer, Any]:
    """Fit a vectorizer on texts and count their tokens.

    Parameters
    ----------
    texts : sequence of str of length n_texts
        The texts.
    ngram_range : tuple (min_n, max_n)
        Lengths of the word sequences that are tokens.
    min_df : int or "auto"
        Tokens in fewer texts are left out; "auto" is 1 for fewer than 5,000 texts, else 2.

    Returns
    -------
    vectorizer : TokenVectorizer
        The fitted vectorizer.
    X : csr_matrix of shape (n_texts, n_tokens)
        The counts.

    Raises
    ------
    ValueError
        If no token is left.

    Examples
    --------
    >>> from sklearn_clsattn.comparison import count_tokens
    >>> vectorizer, X = count_tokens(["so good", "so bad"], (1, 1), min_df=2)
    >>> vectorizer.get_feature_names_out().tolist(), X.toarray().tolist()
    (['so'], [[1], [1]])
    """
    least = int(least_documents(min_df, len(texts), otherwise=2))
    vectorizer = TokenVectorizer(ngram_range=ngram_range, min_df=least)
    try:
        return vectorizer, vectorizer.fit_transform(texts)
    except ValueError as error:
        raise ValueError(
            f"no word of the {len(texts):,} training texts is in {least} of them or more: lower "
            "min_df, or pass more texts"
        ) from error


def fit_features(
    features: Features,
    texts: NDArray[np.object_],
    y: NDArray[np.intp],
    ngram_range: tuple[int, int],
    min_df: int | Literal["auto"],
) -> tuple[TokenVectorizer | ContextVectorizer, Any]:
    """Return the fitted vectorizer of some features, and the texts' CSR (n_texts, n_features)."""
    if features not in get_args(Features):
        raise ValueError(
            f"a model's features must be one of {get_args(Features)}, got {features!r}"
        )
    if features == "counts":
        return count_tokens(texts, ngram_range, min_df)
    vectorizer = ContextVectorizer(
        ngram_range=ngram_range, min_df=min_df, context=features == "ours"
    )
    return vectorizer, vectorizer.fit_transform(texts, y)


def hold_out(
    texts: Sequence[str] | NDArray[Any],
    labels: ArrayLike,
    *,
    share: float = 0.2,
    random_state: int | None = 0,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Split texts into some to fit on and some to measure on, each with all classes.

    Parameters
    ----------
    texts : sequence of str of length n_texts
        The texts.
    labels : array-like of shape (n_texts,)
        Their classes.
    share : float, default=0.2
        Share of the texts, of every class, to measure on.
    random_state : int or None, default=0
        Seed of the split.

    Returns
    -------
    train_texts, train_labels, test_texts, test_labels : ndarray
        The two parts, in the order in which :func:`compare` takes them.

    Raises
    ------
    ValueError
        If there are too few texts to have all classes in both parts.

    Examples
    --------
    >>> from sklearn_clsattn.comparison import hold_out
    >>> parts = hold_out([f"text {i}" for i in range(10)], [0, 1] * 5)
    >>> [len(part) for part in parts]
    [8, 8, 2, 2]
    """
    texts, labels = check_texts(texts, labels, "training")
    classes, sizes = np.unique(labels, return_counts=True)
    if len(classes) < 2:
        raise ValueError(f"all labels are {classes.tolist()[0]!r}; expected two classes or more")
    if sizes.min() < 2 or round(share * len(texts)) < len(classes):
        raise ValueError(
            f"cannot hold out {share:.0%} of {len(texts)} texts with all {len(classes)} classes on "
            f"both sides (the smallest, {classes[sizes.argmin()]!s}, has {sizes.min()}); give more "
            "texts, or a test set of its own"
        )
    train, test = train_test_split(
        np.arange(len(texts)), test_size=share, stratify=labels, random_state=random_state
    )
    return texts[train], labels[train], texts[test], labels[test]


def check_texts(
    texts: Any, labels: ArrayLike, which: str
) -> tuple[NDArray[np.object_], NDArray[Any]]:
    """Return the `which` texts and labels as arrays of shape (n_texts,), or raise ValueError."""
    if isinstance(texts, str):
        raise ValueError(f"expected a sequence of {which} texts, got one text")
    texts = np.asarray(texts, dtype=object)
    labels = np.asarray(labels)
    if texts.ndim != 1 or labels.ndim != 1 or len(texts) != len(labels):
        raise ValueError(
            f"expected one label for each {which} text, got texts of shape {texts.shape} and "
            f"labels of shape {labels.shape}"
        )
    if not len(texts):
        raise ValueError(f"there are no {which} texts")
    wrong = next((text for text in texts if not isinstance(text, str)), None)
    if wrong is not None:
        raise ValueError(f"expected {which} texts to be strings, got {wrong!r}")
    return texts, labels


def shared_texts(train_texts: NDArray[Any], test_texts: NDArray[Any]) -> list[str]:
    """Return a note on the number of test texts that are also in training, if there are any."""
    n_shared = len(set(train_texts.tolist()).intersection(test_texts.tolist()))
    if not n_shared:
        return []
    return [f"{n_shared:,} distinct test texts are also in the training set."]


def code_test_labels(
    test_labels: NDArray[Any], classes: list[Any]
) -> tuple[NDArray[np.intp], list[str]]:
    """Return the test labels' positions among the classes, and notes on those without one."""
    y_test = codes_of(test_labels, classes)
    unseen = y_test < 0
    if unseen.all():
        few = ", ".join(repr(label) for label in classes[:5])
        raise ValueError(
            f"no test label occurs in training: test labels are such as {test_labels.tolist()[0]!r}"
            f", training labels {few}"
        )
    if not unseen.any():
        return y_test, []
    labels = ", ".join(sorted({repr(label) for label in test_labels[unseen].tolist()})[:5])
    return y_test, [
        f"{unseen.sum():,} of {len(y_test):,} test texts have labels that are not in training "
        f"({labels}): all models miss them, and log loss leaves them out."
    ]
