"""The effect of each token on the decisions of a fitted attention classifier."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def token_effects(classifier: Any, X: Any) -> NDArray[np.float64]:
    """Return the effect of each token on the decision for each class, over documents.

    This is the standard deviation, over the documents X, of what the token adds to the decision
    for the class less what it adds on average over the classes. Its sign says whether the token
    speaks for the class. Words that are in every document have little effect, and so have words
    that are in hardly any.

    Parameters
    ----------
    classifier : classifier of this package
        A fitted classifier.
    X : {array-like, sparse matrix} of shape (n_documents, n_tokens)
        Token counts or weights, sparse ones with every entry stored once.

    Returns
    -------
    effects : ndarray of shape (n_classes, n_tokens)
        One row for each class, also for two classes, of which one is the other's negative. They
        sum to 0 over the classes, except for models of two layers.

    Raises
    ------
    ValueError
        If X does not fit the classifier, or if its decisions are not sums over tokens, as with an
        MLP.

    Notes
    -----
    With one layer of attention it is the token's value for the class, less its mean over the
    classes, times the standard deviation of its attention.

    Examples
    --------
    >>> from sklearn_clsattn import ClsAttentionClassifier
    >>> from sklearn_clsattn.comparison import count_tokens, token_effects
    >>> vectorizer, X = count_tokens(["so good", "good fun", "so bad", "bad plot"], (1, 1), 2)
    >>> classifier = ClsAttentionClassifier().fit(X, ["pos", "pos", "neg", "neg"])
    >>> vectorizer.get_feature_names_out().tolist()
    ['bad', 'good', 'so']
    >>> import numpy as np
    >>> np.sign(token_effects(classifier, X)[:, :2])
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    model = classifier._model()
    if model.n_layers == 1 and not model.mlp:
        return effects_of_values(classifier.token_values_, classifier.attention(X))
    contributions = classifier.contributions(X)
    terms = contributions if isinstance(contributions, list) else [contributions]
    mean = sum(term.data for term in terms) / len(terms) if len(terms) > 1 else 0.0
    n_documents, n_tokens = terms[0].shape
    effects = np.empty((len(terms), n_tokens))
    for effect, term in zip(effects, terms, strict=True):
        data = term.data - mean
        means = np.bincount(term.indices, data, n_tokens) / n_documents
        squares = np.bincount(term.indices, data**2, n_tokens) / n_documents
        effect[:] = np.sign(means) * _deviation(means, squares)
    return values_by_class(effects[0] if len(terms) == 1 else effects)


def effects_of_values(values: ArrayLike, attention: Any) -> NDArray[np.float64]:
    """Return the effects (n_classes, n_tokens) of tokens that contribute attention times value."""
    centred = values_by_class(values)
    centred = centred - centred.mean(axis=0)
    means = np.asarray(attention.mean(axis=0)).ravel()
    squares = np.asarray(attention.multiply(attention).mean(axis=0)).ravel()
    return centred * _deviation(means, squares) + 0.0  # no negative zeros


def values_by_class(values: ArrayLike) -> NDArray[np.float64]:
    """Return values (n_classes, n_tokens), also of two classes, which the second's stand for."""
    rows = np.asarray(values, dtype=np.float64)
    return np.stack([-rows, rows]) + 0.0 if rows.ndim == 1 else rows  # no negative zeros


def _deviation(means: NDArray[np.float64], squares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard deviations (n_tokens,) from means and mean squares."""
    # Rounding must not make a variance negative.
    return np.asarray(np.sqrt(np.maximum(squares - means**2, 0.0)))
