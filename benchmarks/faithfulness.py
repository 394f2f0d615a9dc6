"""Faithfulness of explanations, as ERASER measures it: comprehensiveness and sufficiency.

J. DeYoung, S. Jain, N. F. Rajani, E. Lehman, C. Xiong, R. Socher, B. C. Wallace (2020). ERASER: A
Benchmark to Evaluate Rationalized NLP Models. Proceedings of ACL 2020, section 4.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]

# The fractions of a document's tokens at which ERASER measures.
ERASER_FRACTIONS = (0.01, 0.05, 0.1, 0.2, 0.5)


def comprehensiveness(
    classifier: Any, X: Any, scores: Any, *, k: int | None = None, fractions: Any = None
) -> Array:
    """Return the drop in probability (n_documents,) when the top tokens are removed.

    The probability is the one of the predicted class. The top tokens of a document are the `k`
    highest scores, or each of the `fractions` of its tokens (rounded up; the mean over them is
    returned). A token whose score is not above 0 is never a top token; equal scores are taken in
    column order. `X` and `scores` are sparse, of shape (n_documents, n_tokens).
    """
    return _probability_drops(classifier, X, scores, k, fractions, keep_top=False)


def sufficiency(
    classifier: Any, X: Any, scores: Any, *, k: int | None = None, fractions: Any = None
) -> Array:
    """Return the drop in probability (n_documents,) when only the top tokens are kept."""
    return _probability_drops(classifier, X, scores, k, fractions, keep_top=True)


def _probability_drops(
    classifier: Any, X: Any, scores: Any, k: int | None, fractions: Any, *, keep_top: bool
) -> Array:
    """Return the mean drop in probability (n_documents,) over all numbers of top tokens."""
    X = sp.csr_array(X)
    X.sum_duplicates()
    X.eliminate_zeros()
    documents = np.arange(X.shape[0])
    n_tokens = np.diff(X.indptr)

    # 1) rank of each token within its document, by falling score
    row_of_entry = np.repeat(documents, n_tokens)
    score_of_entry = scores.toarray()[row_of_entry, X.indices]
    order = np.lexsort((-score_of_entry, row_of_entry))  # stable
    rank = np.empty(X.nnz, dtype=np.int64)
    rank[order] = np.arange(X.nnz) - X.indptr[row_of_entry]
    n_supporting = np.bincount(row_of_entry[score_of_entry > 0], minlength=len(documents))

    # 2) probability of the predicted class
    probabilities = classifier.predict_proba(X)
    predicted = probabilities.argmax(axis=1)
    whole = probabilities[documents, predicted]

    # 3) the same after the change; an unchanged document has a drop of exactly 0
    if fractions is None:
        numbers = [np.full(len(documents), k)]
    else:
        # A fraction such as 0.07 of 100 tokens is computed as 7.000000000000001.
        numbers = [np.ceil(fraction * n_tokens - 1e-9) for fraction in fractions]
    drops = np.zeros(len(documents))
    for number in numbers:
        n_top = np.minimum(number, n_supporting)
        is_top = rank < n_top[row_of_entry]
        changed = X.copy()
        changed.data[is_top != keep_top] = 0
        changed.eliminate_zeros()
        left = classifier.predict_proba(changed)[documents, predicted]
        is_changed = np.diff(changed.indptr) < n_tokens
        drops += np.where(is_changed, whole - left, 0.0)
    return drops / len(numbers)
