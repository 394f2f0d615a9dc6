"""What a model report measures: arrays in, plain numbers out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

Array = NDArray[np.float64]
Codes = NDArray[np.intp]

N_BINS = 10
"""Bins of the calibration curve, between 1 / n_classes and 1."""

# As the benchmarks of this package have it, and most papers.
_N_ERROR_BINS = 15
# With fewer texts, a bin's accuracy says hardly anything: it joins its neighbour.
_LEAST_IN_BIN = 20
# Of a normal distribution, 95% are within so many standard deviations.
_Z = 1.959963984540054


@dataclass(frozen=True)
class ModelScores:
    """What one model reached on the test texts.

    Parameters
    ----------
    name : str
        What the model is called.
    kind : {"ours", "baseline", "floor"}
        What it is there for; a floor is what any model must beat.
    accuracy, macro_f1 : float
        On the test texts.
    log_loss : float
        On the test texts whose class training has.
    calibration_error : float
        The expected calibration error: the mean gap between the confidence in predicted classes
        and the share of them that is right, over 15 bins of equal width from 0 to 1.
    fit_seconds, predict_seconds : float or None
        Of one fit and of predicting all test texts, without counting tokens; None where that was
        not measured.
    """

    name: str
    kind: str
    accuracy: float
    macro_f1: float
    log_loss: float
    calibration_error: float
    fit_seconds: float | None
    predict_seconds: float | None


@dataclass(frozen=True)
class Difference:
    """Our accuracy less another model's, on the same texts.

    Parameters
    ----------
    other : str
        The other model.
    accuracy : float
        Our accuracy less its.
    standard_error : float
        Of that difference, as both are measured on the same texts.
    only_ours, only_other : int
        Texts that one of both predicts right: what McNemar's test counts.
    p_value : float
        Of the exact test by McNemar: how often models that are equally good would differ so much.
    """

    other: str
    accuracy: float
    standard_error: float
    only_ours: int
    only_other: int
    p_value: float


@dataclass(frozen=True)
class CalibrationCurve:
    """How often predictions are right, by how confident they are.

    Confidence is the probability of the predicted class. Bins have the same width from 1 /
    n_classes to 1; where one holds few texts, it is joined with its neighbour.

    Parameters
    ----------
    name : str
        The model.
    edges : list of float of length n_bins + 1
        Borders of the bins, after joining.
    texts : list of int of length n_bins
        Numbers of texts.
    confidence, accuracy : list of float of length n_bins
        Mean confidence, and share that is right.
    low, high : list of float of length n_bins
        An interval for that share: Wilson's, of 95%.
    histogram : list of int of length 10
        Numbers of texts by confidence, before joining.
    """

    name: str
    edges: list[float]
    texts: list[int]
    confidence: list[float]
    accuracy: list[float]
    low: list[float]
    high: list[float]
    histogram: list[int]


@dataclass(frozen=True)
class Confusion:
    """How often each class is predicted for texts of each class.

    Parameters
    ----------
    counts : list of list of int, of shape (n_classes, n_classes)
        Texts by true class and predicted class.
    unknown : list of int of length n_classes
        The same of texts whose class training has not.
    """

    counts: list[list[int]]
    unknown: list[int]


def expected_calibration_error(proba: Array, y: Codes) -> float:
    """Return the mean gap between confidence and accuracy of the predicted classes.

    Parameters
    ----------
    proba : ndarray of shape (n_texts, n_classes)
        Probabilities.
    y : ndarray of shape (n_texts,)
        True classes, -1 for one that has no probability.

    Returns
    -------
    error : float
        Over 15 bins of equal width from 0 to 1, each weighted by its texts.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_clsattn.inspection.report.statistics import expected_calibration_error
    >>> expected_calibration_error(np.array([[0.25, 0.75], [0.25, 0.75]]), np.array([1, 0]))
    0.25
    """
    confidence, right = proba.max(axis=1), proba.argmax(axis=1) == y
    bins = _binned(confidence, np.linspace(0, 1, _N_ERROR_BINS + 1))
    gaps = np.bincount(bins, weights=right - confidence, minlength=_N_ERROR_BINS)
    return float(np.abs(gaps).sum() / len(y))


def calibration_curve(
    name: str, proba: Array, y: Codes, *, least: int = _LEAST_IN_BIN
) -> CalibrationCurve:
    """Return how often predictions are right, by how confident they are.

    Parameters
    ----------
    name : str
        The model.
    proba : ndarray of shape (n_texts, n_classes)
        Probabilities.
    y : ndarray of shape (n_texts,)
        True classes, -1 for one that has no probability.
    least : int, default=20
        Bins with fewer texts are joined with the one above, or below if there is none.

    Returns
    -------
    curve : CalibrationCurve
        The curve.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_clsattn.inspection.report.statistics import calibration_curve
    >>> proba = np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]])
    >>> curve = calibration_curve("ours", proba, np.array([0, 1, 0]))
    >>> curve.texts, [round(value, 3) for value in curve.confidence + curve.accuracy]
    ([3], [0.767, 0.667])
    """
    confidence, right = proba.max(axis=1), proba.argmax(axis=1) == y
    edges = np.linspace(1.0 / proba.shape[1], 1.0, N_BINS + 1)
    bins = _binned(confidence, edges)
    texts = np.bincount(bins, minlength=N_BINS)
    groups = _joined(texts, max(least, 1))
    starts = [group[0] for group in groups]
    n = np.add.reduceat(texts, starts)
    n_right = np.add.reduceat(np.bincount(bins, weights=right, minlength=N_BINS), starts)
    total = np.add.reduceat(np.bincount(bins, weights=confidence, minlength=N_BINS), starts)
    low, high = wilson_interval(n_right, n)
    return CalibrationCurve(
        name=name,
        edges=edges[[*starts, N_BINS]].tolist(),
        texts=n.tolist(),
        confidence=(total / n).tolist(),
        accuracy=(n_right / n).tolist(),
        low=low.tolist(),
        high=high.tolist(),
        histogram=texts.tolist(),
    )


def difference(other: str, ours_right: NDArray[np.bool_], right: NDArray[np.bool_]) -> Difference:
    """Compare our predictions with another model's, text by text.

    Parameters
    ----------
    other : str
        The other model.
    ours_right, right : boolean ndarray of shape (n_texts,)
        Which texts we, and it, predict right.

    Returns
    -------
    difference : Difference
        The difference of both accuracies and what is known of it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_clsattn.inspection.report.statistics import difference
    >>> ours, theirs = np.array([1, 1, 1, 0], bool), np.array([1, 0, 0, 0], bool)
    >>> beside = difference("baseline", ours, theirs)
    >>> beside.accuracy, beside.only_ours, beside.only_other, beside.p_value
    (0.5, 2, 0, 0.5)
    """
    by_text = ours_right.astype(np.float64) - right
    only_ours = int(np.count_nonzero(ours_right & ~right))
    only_other = int(np.count_nonzero(right & ~ours_right))
    apart = only_ours + only_other
    return Difference(
        other=other,
        accuracy=float(by_text.mean()),
        standard_error=float(by_text.std() / np.sqrt(len(by_text))),
        only_ours=only_ours,
        only_other=only_other,
        p_value=float(binomtest(only_ours, apart).pvalue) if apart else 1.0,
    )


def confusion(y: Codes, predicted: Codes, n_classes: int) -> Confusion:
    """Count texts by true and predicted class.

    Parameters
    ----------
    y, predicted : ndarray of shape (n_texts,)
        True classes, -1 for those that training has not, and predicted ones.
    n_classes : int
        Number of classes.

    Returns
    -------
    confusion : Confusion
        The counts.
    """
    known = y >= 0
    places = y[known] * n_classes + predicted[known]
    counts = np.bincount(places, minlength=n_classes**2).reshape(n_classes, n_classes)
    return Confusion(
        counts=counts.tolist(),
        unknown=np.bincount(predicted[~known], minlength=n_classes).tolist(),
    )


def worst(mistaken: NDArray[np.bool_], confidence: Array, n: int) -> list[int]:
    """Return the places of the most confident of some predictions, the most confident first.

    Parameters
    ----------
    mistaken : boolean ndarray of shape (n_texts,)
        Which predictions are meant.
    confidence : ndarray of shape (n_texts,)
        What they are ordered by.
    n : int
        How many to return at most.

    Returns
    -------
    places : list of int
        Ties in the order of the texts.
    """
    meant = np.flatnonzero(mistaken)
    return meant[np.argsort(-confidence[meant], kind="stable")[:n]].tolist()


def _binned(confidence: Array, edges: Array) -> Any:
    """Return each confidence's bin; borders belong to the bin below, as in scikit-learn."""
    return np.searchsorted(edges[1:-1], confidence, side="left")


def _joined(texts: NDArray[np.intp], least: int) -> list[list[int]]:
    """Return bins in groups of neighbours that hold `least` texts or more, if all of them do."""
    groups: list[list[int]] = []
    open_group: list[int] = []
    for at in range(len(texts)):
        open_group.append(at)
        if texts[open_group].sum() >= least:
            groups.append(open_group)
            open_group = []
    if open_group:
        if groups:
            groups[-1] += open_group
        else:
            groups = [open_group]
    return groups


def wilson_interval(n_right: Array, n: NDArray[np.intp]) -> tuple[Array, Array]:
    """Return Wilson's 95 % interval of shares, which stays between 0 and 1 even at the ends."""
    share = n_right / n
    middle = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * np.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    # Rounding must not leave the share itself outside.
    return np.clip(middle - half, 0, share), np.clip(middle + half, share, 1)
