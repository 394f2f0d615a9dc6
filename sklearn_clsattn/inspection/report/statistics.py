"""The measurements of a model report, from arrays to plain numbers."""

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.stats import binomtest
from sklearn.metrics import confusion_matrix

from ...comparison._measurement import binned
from ...comparison._token_effects import values_by_class
from ..concentration import concentration, documents_with
from .data import (
    CalibrationCurve,
    Concentration,
    Confusion,
    Difference,
    SelectedToken,
    Selection,
    Spread,
)

Array = NDArray[np.float64]
Codes = NDArray[np.intp]

_N_BINS = 10
# With fewer texts, a bin's accuracy is too uncertain, and the bin is joined with its neighbour.
_LEAST_IN_BIN = 20
_N_ATTENDED = (1, 3, 10)
_N_SELECTED = 12


def calibration_curve(
    name: str, proba: Array, y: Codes, *, least: int = _LEAST_IN_BIN
) -> CalibrationCurve:
    """Return the accuracy of predictions, `proba` (n_texts, n_classes), by their confidence."""
    confidence, right = proba.max(axis=1), proba.argmax(axis=1) == y
    edges = np.linspace(1.0 / proba.shape[1], 1.0, _N_BINS + 1).tolist()
    histogram = np.bincount(binned(confidence, edges), minlength=_N_BINS).tolist()
    joined = _joined(edges, histogram, max(least, 1))
    predictions = pd.DataFrame({"confidence": confidence, "right": right})
    bins = predictions.groupby(binned(confidence, joined))
    texts, n_right = bins.size().tolist(), bins["right"].sum().tolist()
    intervals = [wilson_interval(*pair) for pair in zip(n_right, texts, strict=True)]
    return CalibrationCurve(
        name=name,
        edges=joined,
        texts=texts,
        confidence=bins["confidence"].mean().tolist(),
        accuracy=bins["right"].mean().tolist(),
        low=[low for low, _ in intervals],
        high=[high for _, high in intervals],
        histogram=histogram,
    )


def wilson_interval(n_right: int, n: int) -> tuple[float, float]:
    """Return Wilson's 95% interval of the share `n_right` / `n`."""
    interval = binomtest(n_right, n).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)


def difference(other: str, ours_right: NDArray[np.bool_], right: NDArray[np.bool_]) -> Difference:
    """Compare which texts (n_texts,) we predict right with those that another model does."""
    by_text = ours_right.astype(np.float64) - right
    only_ours, only_other = int((by_text > 0).sum()), int((by_text < 0).sum())
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
    """Count texts by true class `y` (n_texts,), -1 for others than the model's, and prediction."""
    matrix = confusion_matrix(y, predicted, labels=np.arange(-1, n_classes)).tolist()
    return Confusion(counts=[row[1:] for row in matrix[1:]], unknown=matrix[0][1:])


def selection(
    classifier: Any, X: sp.csr_array, names: NDArray[Any], classes: list[Any], texts: str
) -> Selection:
    """Return which tokens attention selects, and how concentrated it is."""
    attention = sp.csr_array(classifier.attention(X))
    times = documents_with(sp.csr_array(classifier.select_tokens(X)))
    present = documents_with(X)
    speaks_for = values_by_class(classifier.token_values_).argmax(axis=0)
    order = np.argsort(-times, kind="stable")[: min(_N_SELECTED, np.count_nonzero(times))]
    n_top = min(max(_N_ATTENDED), X.shape[1])
    entropy, shares = concentration(attention, n_top)
    even_entropy, even_shares = concentration(X, n_top)
    filled = ~np.isnan(entropy)
    some = bool(filled.any())
    kept = 1.0 - np.asarray(attention.sum(axis=1)).ravel()[filled]
    return Selection(
        texts=texts,
        n_texts=int(np.count_nonzero(filled)),
        n_selected=int(np.count_nonzero(times)),
        tokens=[
            SelectedToken(str(names[s]), int(times[s]), int(present[s]), classes[speaks_for[s]])
            for s in order
        ],
        concentration=[
            Concentration(
                n, float(shares[filled, n - 1].mean()), float(even_shares[filled, n - 1].mean())
            )
            for n in _N_ATTENDED
            if some and n <= n_top
        ],
        evenly_over=float(np.exp(np.median(entropy[filled]))) if some else None,
        even_evenly_over=float(np.exp(np.median(even_entropy[filled]))) if some else None,
        cls_share=float(kept.mean().clip(0, 1)) if some and classifier.cls_weight_ else None,
    )


def spread(numbers: NDArray[np.intp]) -> Spread:
    """Return quantiles and the maximum of numbers (n_texts,)."""
    low, median, high = np.quantile(numbers, [0.05, 0.5, 0.95], method="inverted_cdf").tolist()
    return Spread(float(low), float(median), float(high), float(numbers.max()))


def _joined(edges: list[float], texts: list[int], least: int) -> list[float]:
    """Return the edges of the joined bins, each of `least` texts or more, if there are so many."""
    kept, total = edges[:1], 0
    for edge, n in zip(edges[1:], texts, strict=True):
        total += n
        if total >= least:
            kept.append(edge)
            total = 0
    # The remaining texts join the last bin.
    return [*kept[: max(1, len(kept) - 1)], edges[-1]]
