"""Important tokens of a fitted model, by their effects on the decisions for documents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.sparsefuncs import mean_variance_axis

from .decisions import member_decision
from .parts import Member, members_of

_RAREST = 1000  # documents, of which a token must be in one


def token_effects(estimator: Any, documents: Any) -> pd.DataFrame:
    """Return the effect of each token of documents on each class, (n_tokens, n_classes).

    The effect is the token's value for the class, less its mean over the classes (unless documents
    may have several labels), times the standard deviation over the documents of its attention, or
    of its weight in a linear classifier. Words and their character n-grams are one token. Tokens in
    fewer than one of 1,000 documents are left out.
    """
    effects = []
    for member in members_of(estimator):
        effects.append(member.share * _effects_on_member(member, documents))
    if len(effects) == 1:
        frame = effects[0]
    else:
        frame = pd.concat(effects).groupby(level=0, sort=False).sum()
    return frame.set_axis(list(estimator.classes_), axis=1)


def _effects_on_member(member: Member, documents: Any) -> pd.DataFrame:
    """Return the effects on a classifier inside an estimator, (n_tokens, n_classes)."""
    decision = member_decision(member)
    classifier = member.classifier
    if decision is None:
        raise TypeError(
            f"the decisions of {type(classifier).__name__} are not a sum over tokens, which have "
            "no values"
        )
    loadings, values, tokens = decision.by_token(decision.read(documents))
    # 1) the tokens' values for each class
    if values.shape[1] < len(classifier.classes_):  # of the second of two classes
        values = np.hstack([-values, values])
    elif not getattr(classifier, "multilabel_", False):
        values = values - values.mean(axis=1, keepdims=True)
    # 2) the variation of their loadings
    _, variances = mean_variance_axis(loadings, axis=0)
    effects = values * np.sqrt(variances)[:, None]
    # 3) without the rarest, whose effects are those of a document or two
    n_documents = np.bincount(loadings.indices, minlength=len(tokens))
    is_shown = _RAREST * n_documents >= loadings.shape[0]
    # As objects: pandas' own type of texts has no lone surrogates.
    return pd.DataFrame(effects[is_shown], index=pd.Index(tokens[is_shown], dtype=object))


def important_tokens(effects: pd.DataFrame, label: Any, k: int) -> pd.Series[float]:
    """Return the `k` tokens with the largest positive effects on a class, and these effects."""
    of_class = effects[label].sort_values(ascending=False, kind="stable").head(k)
    return of_class[of_class > 0]
