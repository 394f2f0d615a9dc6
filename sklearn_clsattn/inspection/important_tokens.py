"""Important tokens of a fitted model, by their effects on the decisions for documents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.sparsefuncs import mean_variance_axis

from .._base import fitted_attention
from .parts import classifier_input, column_names, parts_of

_RAREST = 1000  # documents, of which a token must be in one


def token_effects(estimator: Any, documents: Any) -> pd.DataFrame:
    """Return the effect of each token of documents on each class, (n_tokens, n_classes).

    The effect is the token's value for the class, less its mean over the classes (unless documents
    may have several labels), times the standard deviation of its attention over the documents.
    Words and their character n-grams are one token. Tokens in fewer than one of 1,000 documents are
    left out.
    """
    steps, classifier = parts_of(estimator)
    fitted = fitted_attention(classifier)
    # 1) the documents by tokens
    bags = classifier_input(steps, classifier, documents)
    tokens = column_names(steps, classifier)
    if bags.names is not None:
        fitted = fitted.of_units(bags.tokens)
        tokens = bags.names
    # 2) the tokens' values for each class
    values = np.asarray(fitted.values, dtype=np.float64)
    if values.shape[1] < len(classifier.classes_):  # of the second of two classes
        values = np.hstack([-values, values])
    elif not classifier.multilabel_:
        values = values - values.mean(axis=1, keepdims=True)
    # 3) the variation of their attention
    counts = bags.units
    _, variances = mean_variance_axis(fitted.attention(counts), axis=0)
    effects = values * np.sqrt(variances)[:, None]
    # 4) without the rarest, whose effects are those of a document or two
    n_documents = np.bincount(counts.indices, minlength=len(tokens))
    is_shown = _RAREST * n_documents >= counts.shape[0]
    # As objects: pandas' own type of texts has no lone surrogates.
    index = pd.Index(tokens[is_shown], dtype=object)
    return pd.DataFrame(effects[is_shown], index=index, columns=classifier.classes_.tolist())


def important_tokens(effects: pd.DataFrame, label: Any, k: int) -> pd.Series[float]:
    """Return the `k` tokens with the largest positive effects on a class, and these effects."""
    of_class = effects[label].sort_values(ascending=False, kind="stable").head(k)
    return of_class[of_class > 0]
