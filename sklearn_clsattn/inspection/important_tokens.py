"""Important tokens of a fitted model, by how far they move the decisions for documents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.sparsefuncs import mean_variance_axis

from .decision_sums import know_the_same_classes, member_sum
from .inner_classifiers import Member, has_several_labels, members_of

_RAREST = 1000  # documents, of which a token must be in one


def token_importance(estimator: Any, documents: Any) -> pd.DataFrame:
    """Return the importance of each token of documents for each class, (n_tokens, n_classes).

    It is the token's value for the class, less its mean over the classes (unless documents may have
    several labels), times the standard deviation over the documents of its attention, or of its
    weight in a linear classifier. Words and their character n-grams are one token. Tokens in fewer
    than one of 1,000 documents are left out.
    """
    members = members_of(estimator).members
    frames = []
    for member in members:
        frames.append(member.share * _importance_for_member(member, documents))
    importance = frames[0]
    if len(frames) > 1:
        if not know_the_same_classes(members):
            raise TypeError("the classifiers inside know different classes: there is no average")
        importance = pd.concat(frames).groupby(level=0, sort=False).sum()
    return importance.set_axis(list(estimator.classes_), axis=1)


def _importance_for_member(member: Member, documents: Any) -> pd.DataFrame:
    """Return the importance for a classifier inside an estimator, (n_tokens, n_classes)."""
    decision_sum = member_sum(member)
    classifier = member.classifier
    if decision_sum is None:
        raise TypeError(
            f"the decisions of {type(classifier).__name__} are not a sum over tokens, which have "
            "no values"
        )
    loadings, values, tokens = decision_sum.by_token(decision_sum.read(documents))
    # 1) the tokens' values for each class
    if values.shape[1] < len(classifier.classes_):  # of the second of two classes
        values = np.hstack([-values, values])
    elif not has_several_labels(classifier):
        values = values - values.mean(axis=1, keepdims=True)
    # 2) the variation of their loadings
    _, variances = mean_variance_axis(loadings, axis=0)
    importance = values * np.sqrt(variances)[:, None]
    # 3) without the rarest, whose importance is that in a document or two
    n_documents = np.bincount(loadings.indices, minlength=len(tokens))
    is_shown = _RAREST * n_documents >= loadings.shape[0]
    # As objects: pandas' own type of texts has no lone surrogates.
    return pd.DataFrame(importance[is_shown], index=pd.Index(tokens[is_shown], dtype=object))


def important_tokens(importance: pd.DataFrame, label: Any, k: int) -> pd.Series[float]:
    """Return the `k` tokens of the largest positive importance for a class, with it."""
    of_class = importance[label].sort_values(ascending=False, kind="stable").head(k)
    return of_class[of_class > 0]
