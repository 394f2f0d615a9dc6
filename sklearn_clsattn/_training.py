"""From validated input to the documents of a fit, and what is said of a fit that goes wrong."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import compute_sample_weight

from ._core.statistics import balancing_factors
from ._documents import check_entries, damped_entries, training_dtype

if TYPE_CHECKING:
    from ._core.corpus import Corpus
    from ._core.documents import Documents
    from ._core.result import FitResult

Array = NDArray[np.float64]
Check = Callable[[NDArray[Any], Array], None]
"""Refuses classes, (n_classes,), by the weights that they have, (n_classes,)."""


@dataclass(frozen=True)
class Summary:
    """What is to be known of documents before training.

    shape : (n_documents, n_tokens)
    n_entries : stored entries
    dtype : of the entries
    least, largest : positive entry, infinity and 0 if there is none
    labels : sorted
    names : of the tokens, if they have any
    """

    shape: tuple[int, int]
    n_entries: int
    dtype: np.dtype[Any]
    least: float
    largest: float
    labels: NDArray[Any]
    names: list[str] | None = None


def summary_of(X: Any, labels: NDArray[Any], names: list[str] | None = None) -> Summary:
    """Return the summary of a CSR matrix without zeros, of documents with these labels."""
    least = float(X.data.min()) if X.nnz else np.inf
    return Summary(X.shape, X.nnz, X.dtype, least, float(X.data.max(initial=0)), labels, names)


def joined(summaries: Sequence[Summary]) -> Summary:
    """Return the summary of all documents of several, or raise ValueError if they do not match."""
    first = summaries[0]
    for other in summaries:
        if (other.shape[1], other.names) != (first.shape[1], first.names):
            raise ValueError(
                f"There are {other.shape[1]:,} tokens, and {first.shape[1]:,} in the documents "
                "before: expected the same tokens, by the same names if they have any, in all."
            )
    labels = [summary.labels for summary in summaries if len(summary.labels)]
    kinds = {kind_of_labels(some) for some in labels}
    if len(kinds) > 1:
        raise ValueError(
            f"Expected labels of one type in all documents, got {' and '.join(kinds)}."
        )
    return Summary(
        (sum(summary.shape[0] for summary in summaries), first.shape[1]),
        sum(summary.n_entries for summary in summaries),
        np.result_type(*(summary.dtype for summary in summaries)),
        min(summary.least for summary in summaries),
        max(summary.largest for summary in summaries),
        np.unique(np.concatenate(labels)) if labels else np.empty(0),
        first.names,
    )


def kind_of_labels(labels: NDArray[Any]) -> str:
    """Return what labels, of which there are some, are."""
    if labels.dtype.kind in "biuf":
        return "numbers"
    return "strings" if isinstance(labels[0], str) else type(labels[0]).__name__


def weighted_documents(
    classifier: Any,
    corpus: Corpus,
    summary: Summary,
    classes: NDArray[Any],
    check: Check,
    entry_scale: float | None = None,
) -> tuple[Documents, type[np.floating[Any]]]:
    """Return the documents as a classifier trains on them, and the precision for that.

    They have the weights of their classes, of which `check` sees the sums, and damped counts where
    the classifier wants these; `entry_scale` is the unit of earlier documents, if there were any.
    """
    from ._core.chunk import class_sums, statistics_of, with_weights
    from ._core.documents import Documents

    check_entries(summary.least, summary.largest)
    with np.errstate(over="ignore", invalid="ignore"):  # `check` refuses what is not finite
        sums = corpus.sum(class_sums, classes)
        factors = class_factors(classifier.class_weight, classes, sums[0])
        check(classes, sums[0] * factors)
        total, token_weights, n_entries = sums @ factors
    exact = summary.dtype == np.float32 or summary.dtype.kind in "biu"
    dtype: np.dtype[Any] = np.dtype(np.float32 if exact else np.float64)
    largest = summary.largest
    if not getattr(classifier, "sublinear_counts", False):
        entry_scale, dtype = None, summary.dtype
    else:
        if entry_scale is None:
            entry_scale = float(token_weights / n_entries) if n_entries > 0 else 1.0
        largest = float(damped_entries(np.array([largest]), entry_scale)[0])
    corpus = corpus.map(with_weights, classes, factors, entry_scale, dtype.type)
    statistics = corpus.sum(statistics_of, len(classes))
    documents = Documents(corpus, statistics, summary.shape, summary.n_entries, entry_scale)
    precision = training_dtype(dtype, largest, float(total), least_strength(classifier))
    return documents, precision


def least_strength(classifier: Any) -> float:
    """Return the smaller one of `C` and `attention_C`, of those that are given."""
    strengths = [getattr(classifier, name, 1.0) for name in ("C", "attention_C")]
    return float(min([1.0, *(strength for strength in strengths if strength != "auto")]))


def class_factors(class_weight: Any, classes: NDArray[Any], class_weights: Array) -> Array:
    """Return every class's factor by the parameter `class_weight`, from the classes' weights.

    All are (n_classes,).
    """
    if class_weight is None:
        return np.ones(len(classes))
    if class_weight == "balanced":
        return balancing_factors(class_weights)
    factors = np.asarray(compute_sample_weight(class_weight, classes))
    if not (np.isfinite(factors).all() and factors.min() >= 0):
        raise ValueError(f"class_weight must be finite and not negative, got {class_weight!r}.")
    return factors


@contextmanager
def in_range(classifier: Any, total_weight: float) -> Iterator[None]:
    """Turn what leaves the range of floating-point numbers into a ValueError with the sizes."""
    try:
        with np.errstate(all="ignore"):  # what comes of it is checked
            yield
    except (ArithmeticError, NotFiniteError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "without overflow" not in str(error):
            raise  # PyTorch says no more of a number that single precision does not hold
        names = ("C", "attention_C", "learning_rate", "step_size", "class_weight")
        given = {name: getattr(classifier, name, None) for name in names}
        sizes = "".join(f", {name}={value!r}" for name, value in given.items() if value is not None)
        raise ValueError(
            f"Training leaves the range of floating-point numbers, with document weights of "
            f"{total_weight:.2g} together{sizes}: choose less extreme ones."
        ) from error


class NotFiniteError(Exception):
    """A model has numbers that are infinite or NaN."""


def check_finite(result: FitResult) -> None:
    """Raise NotFiniteError unless a fit's model and its losses are finite."""
    model = result.model
    arrays = (model.scores, model.values, model.intercept, [model.cls_weight], result.loss_curve)
    numbers = [np.asarray(value) for value in (*result.attributes.values(), *arrays)]
    if not all(np.isfinite(array).all() for array in numbers if array.dtype.kind == "f"):
        raise NotFiniteError


def warn(result: FitResult, stacklevel: int) -> None:
    """Warn of what training says, past scikit-learn's wrapper of `fit`."""
    for message, category in (
        (result.warning, UserWarning),
        (result.not_converged, ConvergenceWarning),
    ):
        if message:
            warnings.warn(message, category, stacklevel=stacklevel)
