"""How far confidence is from accuracy."""

from __future__ import annotations

from numbers import Integral
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_scalar
from sklearn.utils.validation import _check_sample_weight, check_array, check_consistent_length

from .._validation import codes_of


def expected_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    n_bins: int = 15,
    strategy: Literal["uniform", "quantile"] = "uniform",
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Return the mean gap between the confidence in predictions and the share that is right.

    The confidence is the probability of the most probable class. Documents are put into bins by it,
    and the gaps of the bins are averaged, weighted by their documents.

    Parameters
    ----------
    y_true : array-like of shape (n_documents,)
        The true labels. A label that is not among `labels` is never predicted right.
    y_proba : array-like of shape (n_documents, n_classes) or (n_documents,)
        Probabilities of the classes, as of ``predict_proba``, or of the second of two.
    labels : array-like of shape (n_classes,), default=None
        The classes in the order of the columns, ``estimator.classes_``. By default the sorted
        labels in `y_true`.
    n_bins : int, default=15
        Number of bins, those without documents included.
    strategy : {"uniform", "quantile"}, default="uniform"
        Whether bins have equal widths, from 0 to 1, or equal numbers of documents. An edge belongs
        to the bin below it.
    sample_weight : array-like of shape (n_documents,), default=None
        Non-negative weights, not all 0.

    Returns
    -------
    error : float
        From 0, confidence as great as accuracy in every bin, to 1.

    Raises
    ------
    TypeError
        If `n_bins` is no integer.
    ValueError
        If shapes do not fit, if numbers are no probabilities, or if a parameter is out of range.

    See Also
    --------
    sklearn.calibration.calibration_curve : The bins of one class's probability.

    Notes
    -----
    With n documents, and bins B of accuracy acc and mean confidence conf [1]_,

    .. math:: \sum_B \frac{|B|}{n} \, |\mathrm{acc}(B) - \mathrm{conf}(B)| .

    It depends on the bins: in many bins of few documents, accuracy is far from confidence by
    chance. Compare models by the same bins and documents.

    References
    ----------
    .. [1] C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger (2017). On Calibration of Modern Neural
       Networks. Proceedings of ICML 2017, arXiv:1706.04599.

    Examples
    --------
    >>> from sklearn_clsattn.metrics import expected_calibration_error
    >>> round(expected_calibration_error([0, 1, 1, 1], [0.1, 0.9, 0.9, 0.1]), 2)
    0.15
    >>> expected_calibration_error(["a", "b"], [[1, 0], [0, 1]])
    0.0
    """
    check_scalar(n_bins, "n_bins", Integral, min_val=1)
    if strategy not in ("uniform", "quantile"):
        raise ValueError(f'strategy must be "uniform" or "quantile", got {strategy!r}.')
    y = np.asarray(y_true)
    proba = check_array(y_proba, ensure_2d=False, dtype=np.float64, input_name="y_proba")
    if y.ndim != 1 or proba.ndim > 2:
        raise ValueError(
            "Expected y_true of shape (n_documents,) and y_proba of shape (n_documents, "
            f"n_classes), got {y.shape} and {proba.shape}."
        )
    check_consistent_length(y, proba)
    if proba.ndim == 1:
        proba = np.column_stack([1.0 - proba, proba])
    if proba.min() < 0 or not np.allclose(proba.sum(axis=1), 1, atol=1e-4):
        raise ValueError("y_proba must be probabilities: from 0 to 1, in rows of a sum of 1.")
    classes = np.unique(y) if labels is None else np.asarray(labels)
    if classes.shape != (proba.shape[1],):
        raise ValueError(
            f"y_proba has {proba.shape[1]} classes, but there are {classes.size} labels: pass "
            "labels=estimator.classes_."
        )
    weights = _check_sample_weight(sample_weight, y, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("sample_weight must be positive for some document.")
    confidence = proba.max(axis=1)
    right = proba.argmax(axis=1) == codes_of(y, classes)
    shares = np.linspace(0, 1, n_bins + 1)[1:-1]
    edges = shares if strategy == "uniform" else np.quantile(confidence, shares)
    gaps = np.bincount(np.searchsorted(edges, confidence), weights * (right - confidence))
    return float(np.abs(gaps).sum() / weights.sum())
