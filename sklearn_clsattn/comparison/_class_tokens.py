"""The most important and most selected tokens of each class."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._token_effects import effects_of_values, token_effects, values_by_class


@dataclass(frozen=True)
class ClassTokens:
    """The tokens that speak for one class.

    Parameters
    ----------
    label : object
        The class.
    important : list of (str, float)
        The tokens that speak for the class and change decisions most, with their effects.
    selected : list of (str, int)
        The tokens whose value speaks for the class and that have the highest attention of most
        training documents, with the number of these documents.
    """

    label: Any
    important: list[tuple[str, float]]
    selected: list[tuple[str, int]]


def class_tokens(
    classifier: Any,
    X: Any,
    names: Sequence[str] | NDArray[Any],
    *,
    classes: Sequence[Any] | None = None,
    n_top: int = 10,
) -> list[ClassTokens]:
    """Return, for each class, its most important and its most selected tokens.

    A token's importance for a class is its effect on decisions (see :func:`token_effects`); for a
    model with an MLP, its value for the class, less its mean over the classes, times the standard
    deviation of its attention.

    Parameters
    ----------
    classifier : classifier of this package
        A fitted classifier.
    X : csr_matrix of shape (n_documents, n_tokens)
        The token counts or weights on which it was fitted.
    names : sequence of str of length n_tokens
        Names of the tokens.
    classes : sequence of length n_classes, default=None
        Labels of the classes; None for ``classifier.classes_``.
    n_top : int, default=10
        Maximum number of tokens in each list.

    Returns
    -------
    tokens : list of ClassTokens of length n_classes
        One for each class, in the order of ``classifier.classes_``.

    Raises
    ------
    ValueError
        If there is not one name for each token.

    Examples
    --------
    >>> from sklearn_clsattn.comparison import class_tokens, count_tokens
    >>> from sklearn_clsattn import ClsAttentionClassifier
    >>> vectorizer, X = count_tokens(["so good", "good fun", "so bad", "bad plot"], (1, 1), 2)
    >>> classifier = ClsAttentionClassifier().fit(X, ["pos", "pos", "neg", "neg"])
    >>> tokens = class_tokens(classifier, X, vectorizer.get_feature_names_out(), n_top=1)
    >>> [(of_class.label, of_class.important[0][0]) for of_class in tokens]
    [('neg', 'bad'), ('pos', 'good')]
    """
    values = values_by_class(classifier.token_values_)
    if len(names) != values.shape[1]:
        raise ValueError(f"expected {values.shape[1]} names of tokens, got {len(names)}")
    if classifier._model().mlp:  # decisions are not sums over tokens
        importance = effects_of_values(values, classifier.attention(X))
    else:
        importance = token_effects(classifier, X)
    speaks_for = values.argmax(axis=0)
    selected = np.asarray(classifier.selected_tokens_)
    counts = np.asarray(classifier.selection_counts_)

    labels = classifier.classes_.tolist() if classes is None else classes
    tokens = []
    for k, label in enumerate(labels):
        best = np.argsort(-importance[k], kind="stable")[:n_top]
        own = np.flatnonzero(speaks_for[selected] == k)[:n_top]
        tokens.append(
            ClassTokens(
                label=label,
                important=[
                    (str(names[s]), float(importance[k, s])) for s in best if importance[k, s] > 0
                ],
                selected=[(str(names[selected[i]]), int(counts[i])) for i in own],
            )
        )
    return tokens
