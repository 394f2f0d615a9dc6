"""Checks of input that both estimators make, beyond scikit-learn's own."""

from __future__ import annotations

from typing import Any

from scipy import sparse
from sklearn.base import BaseEstimator


def check_non_negative(X: Any, estimator: BaseEstimator) -> None:
    """Refuse negative counts, naming the smallest; works on the stored values of sparse X."""
    values = X.data if sparse.issparse(X) else X
    if values.size and (minimum := values.min()) < 0:
        raise ValueError(
            f"Negative values in data passed to {type(estimator).__name__}: expected "
            f"non-negative token counts, got a minimum of {minimum}: use counts or TF-IDF."
        )
