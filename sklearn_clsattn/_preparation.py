"""What a fit makes of documents before training: class weights, damped counts, precision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import compute_sample_weight

from ._matrices import log_damp, safe_divide
from ._types import Array

if TYPE_CHECKING:
    from .training.documents import Documents
    from .training.fitted_model import FitResult

_LARGEST_SINGLE = 2**24  # up to here, single precision is exact for integers
PSEUDO_DOCUMENTS = 1.0  # of each class, for its share
_LEAST_FACTOR = 1e-30  # of a class's odds


def prepared(
    documents: Documents,
    class_weight: Any,
    *,
    damps_counts: bool,
    entry_scale: float | None = None,
    weighs_documents: bool = True,
) -> tuple[Documents, type[np.floating[Any]]]:
    """Return documents in the form for training, and the precision of training.

    With `damps_counts`, counts are damped in the unit `entry_scale`, by default their mean. Class
    weights multiply the documents' weights if `weighs_documents`; else they are for the intercepts
    (:func:`class_offsets`). Training is in single precision if that holds the entries exactly.
    """
    # 1) class weights
    if class_weight is not None:
        targets = documents.targets
        if targets.multilabel:
            raise ValueError("class_weight is for one label per document: use sample_weight.")
        if weighs_documents:
            factors = class_factors(class_weight, targets.classes, documents.class_sizes())
            documents = documents.with_class_factors(factors)
    # 2) the precision of the entries
    is_exact = documents.entry_type == np.float32 or documents.entry_type.kind in "biu"
    largest = documents.largest_entry
    # 3) damped entries, in the unit of their mean
    if damps_counts:
        if entry_scale is None:
            total, n_entries = documents.entry_sums()
            entry_scale = float(total / n_entries) if n_entries > 0 else 1.0
        documents = documents.damped(entry_scale, np.float32 if is_exact else np.float64)
        largest = float(log_damp(np.array([largest]), entry_scale)[0])
    is_single = is_exact and largest <= _LARGEST_SINGLE
    return documents, np.float32 if is_single else np.float64


def class_factors(class_weight: Any, classes: NDArray[Any], class_sizes: Array) -> Array:
    """Return every class's factor (n_classes,) by `class_weight`, from the classes' weights."""
    if class_weight == "balanced":  # equal weights of the classes that have documents
        mean = class_sizes.sum() / max(np.count_nonzero(class_sizes), 1)
        return safe_divide(mean, class_sizes)
    factors = np.asarray(compute_sample_weight(class_weight, classes))
    if (factors < 0).any():
        raise ValueError(f"class_weight must not be negative, got {class_weight}.")
    return factors


def class_offsets(class_weight: Any, classes: NDArray[Any], class_sizes: Array) -> Array:
    """Return the offsets of intercepts, (n_outputs,): logarithms of the classes' factors.

    `class_sizes`, (n_classes,), are the sums of the documents' weights. Each class is worth
    :data:`PSEUDO_DOCUMENTS` more, as the shares of a few documents are uncertain (Laplace's rule of
    succession), but at most twice its documents. A factor by `class_weight` multiplies the odds of
    a class; that of weight 0 is tiny, so that logarithms of probabilities are finite.
    """
    # 1) the shares of classes
    logs = np.log1p(PSEUDO_DOCUMENTS / np.maximum(class_sizes, PSEUDO_DOCUMENTS))
    # 2) the class weights
    if class_weight is not None:
        factors = class_factors(class_weight, classes, class_sizes * np.exp(logs))
        logs += np.log(factors.clip(_LEAST_FACTOR))
    return logs[1:] - logs[:1] if len(logs) == 2 else logs


def check_finite(result: FitResult) -> None:
    """Raise ValueError unless the model and losses of a fit are finite."""
    model = result.model
    numbers = [model.scores, model.values, model.intercept, model.cls_weight, result.loss_curve]
    numbers += result.attributes.values()
    for value in numbers:
        array = np.asarray(value)
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(
                "Training leaves the range of floating-point numbers: choose less extreme entries "
                "of X, weights or parameters."
            )
