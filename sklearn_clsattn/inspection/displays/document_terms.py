"""What each token of one document has of the attention, and what it adds to the decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from .drawn_model import names_checked

CLS, INTERCEPT = "<cls>", "intercept"

Array = NDArray[np.float64]


@dataclass(frozen=True)
class DocumentTerms:
    """The tokens of one document, as a fitted model sees them.

    Parameters
    ----------
    tokens : ndarray of shape (n_tokens,)
        Columns of the classifier.
    counts : ndarray of shape (n_tokens,)
        How often each stands in the document.
    attention : ndarray of shape (n_tokens,)
        Share of attention of each.
    contributions : ndarray of shape (n_tokens,) or None
        What each adds to the decision for the class; None where it is no sum over tokens.
    intercept : float
        What is added to them; 0 where there are none.
    cls_share : float or None
        Share of attention of ``<cls>``; None for a model without it.
    place : int
        Place of the class in ``classes_``.
    probability : float
        Probability of the class.
    """

    tokens: NDArray[np.intp]
    counts: Array
    attention: Array
    contributions: Array | None
    intercept: float
    cls_share: float | None
    place: int
    probability: float


def document_terms(classifier: Any, row: sp.csr_array, place: int | None = None) -> DocumentTerms:
    """Return what a model makes of the tokens of one document.

    Parameters
    ----------
    classifier : ClsAttentionClassifier
        A fitted classifier.
    row : csr_array of shape (1, n_tokens)
        The document as the classifier takes it, every entry stored once.
    place : int, default=None
        Place in ``classes_`` of the class to tell contributions for. By default the second of
        two classes, and of more the predicted one.

    Returns
    -------
    terms : DocumentTerms
        The document's tokens. What stands in the matrix as 0 is not in the document.
    """
    with names_checked():
        probabilities = classifier.predict_proba(row)[0]
        attention = classifier.attention(row)
        terms = _contributions(classifier, row)
    if place is None:
        place = 1 if len(probabilities) == 2 else int(probabilities.argmax())
    present = np.flatnonzero(row.data > 0)
    shares = attention.data[present]
    contributions, intercept = _for_class(terms, classifier.intercept_, place)
    return DocumentTerms(
        tokens=row.indices[present],
        counts=row.data[present],
        attention=shares,
        contributions=None if contributions is None else contributions[present],
        intercept=intercept,
        cls_share=max(1.0 - shares.sum(), 0.0) if classifier.cls_weight_ > 0 else None,
        place=place,
        probability=float(probabilities[place]),
    )


def table_of_terms(
    names: NDArray[np.object_],
    counts: Array | None,
    attention: Array,
    contributions: Array | None,
    *,
    cls_share: float | None,
    intercept: float,
    top: int,
) -> pd.DataFrame:
    """Return the tokens that move the decision most, and the others together.

    Parameters
    ----------
    names, counts, attention, contributions : ndarray of shape (n_tokens,)
        The tokens of a document. Without contributions those most attended are first.
    cls_share : float or None
        Share of attention of ``<cls>``, which has a row where it is not None.
    intercept : float
        The intercept, which has a row where there are contributions.
    top : int
        How many tokens to tell one by one, or one more if that leaves none.

    Returns
    -------
    table : DataFrame
        With columns token, count, attention, contribution and own, which is True for rows that
        are no tokens.
    """
    n_tokens = len(attention)
    if contributions is None:
        order = np.argsort(-attention, kind="stable")
    else:
        order = np.lexsort((-attention, -np.abs(contributions)))
    if n_tokens == top + 1:
        top += 1  # "1 more token" would take the place of the token
    single, rest = order[:top], order[top:]
    numbers = np.full(n_tokens, np.nan) if counts is None else counts
    terms = np.zeros(n_tokens) if contributions is None else contributions
    rows: list[tuple[Any, ...]] = [
        (names[s], numbers[s], attention[s], terms[s], False) for s in single
    ]
    if len(rest):
        name = f"{len(rest):,} more tokens"
        rows.append((name, np.nan, attention[rest].sum(), terms[rest].sum(), True))
    if cls_share is not None:
        rows.append((CLS, np.nan, cls_share, 0.0, True))
    if contributions is not None:
        rows.append((INTERCEPT, np.nan, np.nan, intercept, True))
    return pd.DataFrame(rows, columns=["token", "count", "attention", "contribution", "own"])


def _contributions(classifier: Any, row: Any) -> list[Array] | None:
    """Return contributions for every output; None where the decision is no sum over tokens."""
    try:
        terms = classifier.contributions(row)
    except ValueError:
        return None  # With an MLP. The row itself has been checked before.
    return [term.data for term in terms] if isinstance(terms, list) else [terms.data]


def _for_class(
    terms: list[Array] | None, intercept: Array, place: int
) -> tuple[Array | None, float]:
    """Return the contributions to the decision for the class at `place`, and its intercept."""
    if terms is None:
        return None, 0.0
    if len(terms) > 1:
        return terms[place], float(intercept[place])
    sign = 1.0 if place == 1 else -1.0
    return sign * terms[0] + 0.0, sign * float(intercept[0]) + 0.0
