"""From validated input to the documents of a fit; warnings, errors and state of a fit."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from types import FrameType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import compute_sample_weight

from ._bags import Bags, n_stored
from ._matrices import log_damp_entries, safe_divide
from ._sklearn import _fit_context
from ._targets import Targets
from ._types import Array
from ._validation import check_entries, check_total_weight, check_two_classes

if TYPE_CHECKING:
    from ._core.corpus import Corpus
    from ._core.documents import Documents
    from ._core.result import FitResult

Options = ParamSpec("Options")
Returned = TypeVar("Returned")

# Single precision is exact for integers up to the first, and good enough for the others.
_LARGEST_INTEGER = 2**24
_LARGEST_FLOAT = 1e8
_LARGEST_TOTAL = 1e10
_LEAST = 1e-20
# A fit takes some 160 bytes for each value, measured from 2 to 20 million values.
_BYTES_OF_A_VALUE = 160
_MANY_VALUES = 40_000_000
# Warnings point to the first line outside these, which is the user's.
_LIBRARIES = ("sklearn_clsattn", "sklearn", "joblib")
_OUTLYING = 50.0  # the mean entry over the median, above which few entries outweigh all others


@dataclass(frozen=True)
class Summary:
    """Facts about the documents that training needs beforehand."""

    shape: tuple[int, int]  # (n_documents, n_tokens)
    n_entries: int  # stored ones
    dtype: np.dtype[Any]  # of the entries
    least: float  # positive entry, or infinity if there is none
    largest: float  # entry, or 0
    targets: Targets  # of no documents: their classes and kind
    names: list[str] | None = None  # of the tokens, if they have any


def summary_of(X: Any, targets: Targets, names: list[str] | None = None) -> Summary:
    """Return the summary of documents, bags or a CSR matrix without zeros, and of their targets."""
    n_entries = n_stored(X)
    if isinstance(X, Bags):  # bounds, without the product
        least = X.left.data.min(initial=np.inf) * X.right.data.min(initial=np.inf)
        largest = (X.left @ X.right.max(axis=1).toarray()).max(initial=0)
    else:
        least = X.data.min() if n_entries else np.inf
        largest = X.data.max(initial=0)
    return Summary(
        shape=X.shape,
        n_entries=n_entries,
        dtype=X.dtype,
        least=float(least),
        largest=float(largest),
        targets=targets[:0],
        names=names,
    )


def joined(summaries: Sequence[Summary]) -> Summary:
    """Combine the summaries of parts; raise ValueError if they do not match."""
    # 1) the tokens, which must be the same
    first = summaries[0]
    for other in summaries:
        if (other.shape[1], other.names) != (first.shape[1], first.names):
            raise ValueError(
                f"Got documents with {other.shape[1]:,} tokens after documents with "
                f"{first.shape[1]:,}: expected the same tokens, with the same names, in all parts."
            )
    # 2) sums and bounds
    n_documents = sum(summary.shape[0] for summary in summaries)
    return Summary(
        shape=(n_documents, first.shape[1]),
        n_entries=sum(summary.n_entries for summary in summaries),
        dtype=np.result_type(*[summary.dtype for summary in summaries]),
        least=min(summary.least for summary in summaries),
        largest=max(summary.largest for summary in summaries),
        targets=_joined_targets([summary.targets for summary in summaries]),
        names=first.names,
    )


def _joined_targets(parts: list[Targets]) -> Targets:
    """Return targets of no documents with the classes of all parts, which must be of one kind."""
    # 1) the kind, of parts that have documents
    parts = [part for part in parts if part.n_classes] or parts[:1]
    first = parts[0]
    if not first.n_classes:  # no part has any documents
        return first
    kinds = {part.kind for part in parts}
    if len(kinds) > 1:
        raise ValueError(f"Expected one kind of y in all documents, got {' and '.join(kinds)}.")
    # 2) with columns of classes, the same columns
    if not first.has_codes:
        for other in parts:
            if not np.array_equal(other.classes, first.classes):
                raise ValueError(
                    f"Expected the classes {first.classes.tolist()} in all documents, got "
                    f"{other.classes.tolist()}."
                )
        return first
    # 3) with one label, labels of one type
    types = {_type_of_labels(part.classes) for part in parts}
    if len(types) > 1:
        raise ValueError(
            f"Expected labels of one type in all documents, got {' and '.join(sorted(types))}."
        )
    classes = np.unique(np.concatenate([part.classes for part in parts]))
    return Targets(classes, np.empty(0, np.intp))


def _type_of_labels(labels: NDArray[Any]) -> str:
    """Return the name of the type of labels, one for all types of numbers."""
    kind = labels.dtype.kind
    if kind in "biuf":
        return "numbers"
    return "str" if kind == "U" else type(labels[0]).__name__


def prepared_documents(
    classifier: Any,
    corpus: Corpus,
    summary: Summary,
    entry_scale: float | None = None,
    earlier_class_weights: Array | None = None,
) -> tuple[Documents, type[np.floating[Any]]]:
    """Return the documents in the form for training, and the precision of training.

    They have the weights of their classes, and damped counts where the classifier wants these.
    Earlier batches, if there were any, had the unit `entry_scale`, and their classes the weights
    `earlier_class_weights`. Single precision is for what it holds exactly, where no size is
    extreme.
    """
    from ._core import chunk
    from ._core.documents import Documents

    classes = summary.targets.classes
    check_entries(summary.least, summary.largest)
    corpus = corpus.map(chunk.with_classes, classes)
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused
        # 1) class weights, whose factors multiply the weights of documents
        *sums, total = corpus.sum(chunk.class_weights)
        if summary.targets.multilabel:
            check_total_weight(np.array([total]))
        else:
            factors = class_factors(classifier.class_weight, classes, np.array(sums))
            check_two_classes(classes, sums * factors, earlier_class_weights)
            total = float(sums @ factors)
            if classifier.class_weight is not None:
                corpus = corpus.map(chunk.with_class_factors, factors)
        # 2) damped entries, in the unit of their mean
        if not getattr(classifier, "sublinear_counts", False):
            entry_scale = None
        elif entry_scale is None:
            token_weight, n_entries = corpus.sum(chunk.entry_sums)
            entry_scale = float(token_weight / n_entries) if n_entries > 0 else 1.0
    largest = summary.largest
    dtype = summary.dtype
    if entry_scale is not None:
        dtype = np.dtype(np.float32 if _is_exact(dtype) else np.float64)
        largest = float(log_damp_entries(np.array([largest]), entry_scale)[0])
        corpus = corpus.map(chunk.with_damped_entries, entry_scale, dtype.type)
    # 3) statistics, and the precision of training
    statistics = corpus.sum(chunk.statistics_of)
    documents = Documents(corpus, statistics, summary.shape, summary.n_entries, entry_scale)
    return documents, _precision(classifier, dtype, largest, total)


def _precision(
    classifier: Any, dtype: np.dtype[Any], largest: float, total_weight: float
) -> type[np.floating[Any]]:
    """Return the precision of training on entries of a type, up to the `largest` one."""
    limit = _LARGEST_FLOAT if dtype.kind == "f" else _LARGEST_INTEGER
    sizes = [total_weight]  # which must not be tiny
    for name in ("C", "attention_C"):
        strength: Any = getattr(classifier, name, "auto")
        if strength != "auto":
            sizes.append(strength)
    is_single = (
        _is_exact(dtype)
        and largest <= limit
        and min(sizes) > _LEAST
        and total_weight <= _LARGEST_TOTAL
    )
    return np.float32 if is_single else np.float64


def _is_exact(dtype: np.dtype[Any]) -> bool:
    """Whether single precision represents the usual numbers of a type exactly."""
    return dtype == np.float32 or dtype.kind in "biu"


def class_factors(class_weight: Any, classes: NDArray[Any], class_weights: Array) -> Array:
    """Return every class's factor (n_classes,) by `class_weight`, from the classes' weights."""
    if class_weight is None:
        return np.ones(len(classes))
    if class_weight == "balanced":  # equal weights of the classes that have documents
        mean = class_weights.sum() / max(np.count_nonzero(class_weights), 1)
        return safe_divide(mean, class_weights)
    factors = np.asarray(compute_sample_weight(class_weight, classes))
    if not (np.isfinite(factors).all() and factors.min() >= 0):
        raise ValueError(f"class_weight must be finite and not negative, got {class_weight!r}.")
    return factors


@contextmanager
def overflow_as_value_error(classifier: Any, total_weight: float) -> Iterator[None]:
    """Turn floating-point overflow into a ValueError that names the sizes."""
    try:
        with np.errstate(all="ignore"):  # the results are checked
            yield
    except (ArithmeticError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "without overflow" not in str(error):
            raise  # PyTorch says no more about a number that overflows single precision
        sizes = ""
        for name in ("C", "attention_C", "learning_rate", "step_size", "class_weight"):
            value = getattr(classifier, name, None)
            if value is not None:
                sizes += f", {name}={value!r}"
        raise ValueError(
            f"Training leaves the range of floating-point numbers, with a sum of document weights "
            f"of {total_weight:.2g}{sizes}: choose less extreme values."
        ) from error


def check_finite(result: FitResult) -> None:
    """Raise FloatingPointError unless the model and losses of a fit are finite."""
    model = result.model
    numbers = [model.scores, model.values, model.intercept, model.cls_weight, result.loss_curve]
    numbers += result.attributes.values()
    for value in numbers:
        array = np.asarray(value)
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise FloatingPointError


def warn_of_outlying_entries(classifier: Any, X: Any) -> None:
    """Warn if few entries of X set the scale of all, and are not damped.

    X is a CSR matrix without zeros. The mean entry sets the scale.
    """
    damps_counts = getattr(classifier, "sublinear_counts", True)
    if damps_counts or isinstance(X, Bags) or not len(X.data):
        return
    with np.errstate(over="ignore"):
        mean = float(X.data.mean(dtype=np.float64))
        median = float(np.median(X.data))
    if mean > _OUTLYING * median:
        warn_user(
            f"Few entries of X outweigh all others: the mean of the positive ones is {mean:.2g}, "
            f"half of them are at most {median:.2g}, and the largest is {X.data.max():.2g}. Set "
            "sublinear_counts=True, or clip or rescale columns of X."
        )


def warn_of_size(n_tokens: int, n_outputs: int) -> None:
    """Warn if a fit trains so many values that its memory is one to be told."""
    n_values = n_tokens * n_outputs
    if n_values >= _MANY_VALUES:
        of_token = "one" if n_outputs == 1 else f"{n_outputs:,}"
        gigabytes = _BYTES_OF_A_VALUE * n_values / 2**30
        warn_user(
            f"This fit trains {n_values:,} values, {of_token} for each of {n_tokens:,} tokens, and "
            f"needs some {gigabytes:.0f} GB of memory. Fewer tokens, as by a larger min_df, need "
            "less."
        )


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that points to the line that called a fit, through whatever library."""
    frame = inspect.currentframe()
    n_inside = 0
    while frame is not None and _package_of(frame) in _LIBRARIES:
        frame = frame.f_back
        n_inside += 1
    warnings.warn(message, category, stacklevel=n_inside + 1)


def _package_of(frame: FrameType) -> str:
    """Return the name of the package that a frame's code belongs to."""
    name: str = frame.f_globals.get("__name__", "")
    return name.partition(".")[0]


def all_or_nothing(
    method: Callable[Concatenate[Any, Options], Returned],
) -> Callable[Concatenate[Any, Options], Returned]:
    """Validate the parameters of a fitting method, and restore the estimator if it fails.

    This includes Ctrl-C. The attributes are restored without copies, because fits create new
    arrays and change none in place.
    """
    validating = _fit_context(prefer_skip_nested_validation=True)(method)

    @wraps(method)
    def fitting(self: Any, *args: Options.args, **options: Options.kwargs) -> Returned:
        before = vars(self).copy()
        try:
            return validating(self, *args, **options)
        except BaseException:
            self.__dict__ = before  # one assignment, which nothing can interrupt
            raise

    return fitting
