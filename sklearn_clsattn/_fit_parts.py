"""Fits of a classifier on a corpus in parts: what `fit` does, with sums for documents."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _get_feature_names, check_array, column_or_1d

from ._core.backend import resolve_device
from ._core.memory import Stream
from ._core.part import Chunk, Part
from ._core.parts import DocumentsInParts, Parts
from ._core.reducer import Alone
from ._core.statistics import CorpusStatistics
from ._documents import (
    as_csr,
    canonical,
    check_batch,
    check_two_classes,
    damped,
    least_entry,
    unit_exponent,
)
from ._validation import check_labels, check_non_negative, check_not_texts, code_labels

if TYPE_CHECKING:
    from ._chunked_counts import ChunkedCounts
    from ._classifier import ClsAttentionClassifier
    from ._core.problem import Callback, FitResult, Progress

Array = NDArray[np.float64]

# Is given what makes the attributes of the model that has been reached.
Watch = Callable[[Callable[[], dict[str, Any]]], None]
# With fewer entries a worker for each trained number, work that is not shared dominates.
ENTRIES_PER_NUMBER = 50


@dataclass(frozen=True)
class Summary:
    """What rank 0 is to know of a part of a corpus."""

    shape: tuple[int, int]
    n_entries: int
    names: list[str] | None  # of the tokens, if they have any
    classes: NDArray[Any]  # (n_classes,), the labels of this part, sorted
    dtype: np.dtype[Any]  # of the entries
    largest: float  # entry
    least: float  # positive entry
    settings: str = ""  # the classifier's parameters
    more_settings: str = ""  # those of the call


def summary_of(X: Any, classes: NDArray[Any], names: list[str] | None) -> Summary:
    """Return the summary of a CSR matrix of documents with labels of these classes."""
    return Summary(
        X.shape, X.nnz, names, classes, X.dtype, float(X.data.max(initial=0)), least_entry(X)
    )


def checked(
    X: Any, y: Any, sample_weight: Any, name: str
) -> tuple[Any, NDArray[Any], Array, list[str] | None]:
    """Return documents, if there are any, as CSR, with labels, weights and tokens' names."""
    check_not_texts(X, name)
    check_labels(y)
    names = _get_feature_names(X)
    X = check_array(
        X,
        accept_sparse="csr",
        accept_large_sparse=True,
        ensure_min_samples=0,
        estimator=name,
        input_name="X",
    )
    check_non_negative(X, name)
    y = column_or_1d(y, warn=True)
    if y.shape != (X.shape[0],):
        raise ValueError(f"X has {X.shape[0]} documents, but y is of shape {y.shape}.")
    if len(y):  # each label thrice: scikit-learn warns of few documents for the labels
        check_classification_targets(np.repeat(np.unique(y), 3))
    weights = np.ones(len(y))
    if sample_weight is not None:  # all may be 0 here, if not everywhere
        if isinstance(sample_weight, Real):
            sample_weight = np.full(len(y), sample_weight)
        weights = check_array(
            sample_weight,
            dtype=np.float64,
            ensure_2d=False,
            ensure_min_samples=0,
            input_name="sample_weight",
        )
        if weights.shape != y.shape:
            raise ValueError(f"sample_weight is of shape {weights.shape}, and y of {y.shape}.")
        if weights.min(initial=0.0) < 0:
            raise ValueError(f"sample_weight must not be negative, got {weights.min():.6g}.")
    return canonical(as_csr(X)), y, weights, None if names is None else names.tolist()


def part_in_memory(X: Any, y: Any, sample_weight: Any, name: str) -> tuple[list[Chunk], Summary]:
    """Return documents as one chunk, and their summary."""
    X, y, weights, names = checked(X, y, sample_weight, name)
    classes, codes = np.unique(y, return_inverse=True)
    return [Chunk(X, codes, weights)], summary_of(X, classes, names)


def fit_parts(model: ClsAttentionClassifier, parts: Parts, watch: Watch | None = None) -> None:
    """Fit a classifier on all parts' documents, in rank 0; `watch` is called in every iteration.

    Warnings are of the line that is five calls above this one.
    """
    summaries = agreeing(parts)
    earlier = model._trained_on() if model.warm_start else None
    classes, maps = all_classes([summary.classes for summary in summaries])
    set_tokens(model, summaries[0])
    warn_of_workers(summaries, len(classes), stacklevel=7)
    documents, dtype = documents_in_parts(model, parts, summaries, classes, maps, check_two_classes)
    train: Any = partial(model._train, device=torch.device("cpu"))
    if earlier is not None and earlier[1:] == (*model._tokens(), classes.tolist()):
        before = earlier[0]
        start = replace(before, cls_weight=before.cls_weight / documents.unit)
        train = partial(train, start=start)
    if watch is not None:
        train = partial(_watched, train, watch, model, classes)
    model._fit_documents(documents, dtype, classes, (None, None, None), train, stacklevel=8)


def _watched(
    train: Callable[..., FitResult],
    watch: Watch,
    model: ClsAttentionClassifier,
    classes: NDArray[Any],
    documents: DocumentsInParts,
    *,
    callback: Callback,
    **options: Any,
) -> FitResult:
    """Train, and tell `watch` how to get the attributes of the model that is reached."""
    tokens = {name: value for name, value in vars(model).items() if name.endswith("_in_")}

    def report(progress: Progress) -> bool:
        watch(
            lambda: {
                **tokens,
                "classes_": classes,
                **model._model_attributes(progress.model(), documents.entry_scale, documents.unit),
            }
        )
        return callback(progress)

    return train(documents, callback=report, **options)


def learn_parts(model: ClsAttentionClassifier, parts: Parts, *, classes: ArrayLike | None) -> None:
    """Learn all parts' documents as a batch, in rank 0, as `fit_parts` and `partial_fit` do."""
    stream: Stream | None = getattr(model, "_stream", None)
    summaries = agreeing(parts)
    if stream is None:
        set_tokens(model, summaries[0])
    elif model._tokens() != (summaries[0].shape[1], summaries[0].names):
        raise ValueError(
            f"The batch has {summaries[0].shape[1]:,} tokens, earlier ones had "
            f"{model.n_features_in_:,}: expected the same tokens, by the same names if they have "
            "any, in all batches."
        )
    labels, maps = all_classes([summary.classes for summary in summaries])
    known, codes = code_labels(labels, classes, None if stream is None else model.classes_)
    maps = [codes[part] for part in maps]
    if stream is None:
        stream = Stream.empty(len(known), summaries[0].shape[1])
    check = partial(check_batch, stream.statistics.class_weights)
    batch, _ = documents_in_parts(
        model, parts, summaries, known, maps, check, stream.entry_scale, np.float64
    )
    model._learn(stream, batch, known, torch.device("cpu"), stacklevel=8)


def set_tokens(model: ClsAttentionClassifier, summary: Summary) -> None:
    """Give a classifier number and names of the tokens."""
    model.n_features_in_ = summary.shape[1]
    model.__dict__.pop("feature_names_in_", None)
    if summary.names is not None:
        model.feature_names_in_ = np.array(summary.names, dtype=object)


def documents_in_parts(
    model: ClsAttentionClassifier,
    parts: Parts,
    summaries: Sequence[Summary],
    classes: NDArray[Any],
    maps: Sequence[NDArray[np.intp]],
    check: Callable[[NDArray[Any], Array], None],
    entry_scale: float | None = None,
    dtype: type[np.floating[Any]] | None = None,
) -> tuple[Any, type[np.floating[Any]]]:
    """Return the documents of all parts, a :class:`DocumentsInParts`, and the training's precision.

    `maps` has every part's codes among the classes; `check` sees the sums of these classes'
    weights; `entry_scale` is that of earlier documents, `dtype` None is chosen.
    """
    n_tokens, n_documents = summaries[0].shape[1], sum(part.shape[0] for part in summaries)
    largest = max(summary.largest for summary in summaries)
    least = min(summary.least for summary in summaries)
    entry_type = np.result_type(*(summary.dtype for summary in summaries))
    exponent = unit_exponent(largest, lambda: least, entry_type)
    with np.errstate(over="ignore", invalid="ignore"):  # `check` refuses what is not finite
        sums = parts.once(exponent, "totals", maps, len(classes), exponent).reshape(3, -1)
        factors = model._class_factors(classes, sums[0])
        check(classes, sums[0] * factors)
        total, token_weights, n_entries = sums @ factors
    entries = np.full((1, 1), np.ldexp(largest, -exponent) if exponent else largest, entry_type)
    exact = entry_type == np.float32 or entry_type.kind in "biu"
    damped_type: type[np.floating[Any]] = np.float32 if exact else np.float64
    if not model.sublinear_counts:
        entry_scale = None
    elif entry_scale is None:
        entry_scale = float(token_weights / n_entries) if n_entries > 0 else 1.0
    if entry_scale is not None:
        entries = damped(entries, entry_scale, damped_type)
    if dtype is None:
        dtype = model._precision(sparse.csr_array(entries), float(total))
    arguments = (factors, entry_scale, damped_type, dtype, n_tokens)
    key = factors.tobytes(), entry_scale, exponent, dtype
    sums = parts.once(key, "prepare", *arguments)
    statistics = CorpusStatistics.from_flat(sums, len(classes), n_tokens)
    parts.sum("forget")
    shape = n_documents, n_tokens
    stored = sum(summary.n_entries for summary in summaries)
    return DocumentsInParts(parts, statistics, shape, stored, entry_scale, 2.0**exponent), dtype


def agreeing(parts: Parts) -> list[Summary]:
    """Return the summaries of all parts, if these can be parts of one corpus."""
    found = parts.gather("summary")
    errors = [f"rank {rank}: {error}" for rank, (_, error) in enumerate(found) if error]
    if errors:
        raise ValueError(f"No part of the fit began. {'; '.join(errors)}")
    summaries: list[Summary] = [summary for summary, _ in found]
    first = summaries[0]
    for rank, other in enumerate(summaries):
        for what, here, there in (
            ("tokens (columns of X)", other.shape[1], first.shape[1]),
            ("names of tokens", other.names, first.names),
            ("parameters of the classifier", other.settings, first.settings),
            ("classes", other.more_settings, first.more_settings),
        ):
            if here != there:
                raise ValueError(
                    f"Expected the same {what} in all parts, but rank {rank} has {_short(here)} "
                    f"and rank 0 has {_short(there)}."
                )
    return summaries


def _short(value: Any) -> str:
    text = f"{value:,}" if isinstance(value, int) else str(value)
    return text if len(text) < 200 else text[:200] + "..."


def all_classes(labels: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], list[NDArray[np.intp]]]:
    """Return the classes of all parts, sorted, and the codes of each part's among them."""
    given = [part for part in labels if len(part)]
    kinds = {kind_of_labels(part) for part in given}
    if len(kinds) > 1:
        of_ranks = [f"rank {rank}: {part[:3].tolist()}" for rank, part in enumerate(labels)]
        raise ValueError(
            "Expected labels of one type, numbers or strings, in all parts, got "
            f"{'; '.join(of_ranks)}."
        )
    if not given:
        raise ValueError("There is no document in any part.")
    classes = np.unique(np.concatenate(given))
    return classes, [
        np.searchsorted(classes, part).astype(np.intp) if len(part) else np.empty(0, np.intp)
        for part in labels
    ]


def kind_of_labels(labels: NDArray[Any]) -> str:
    """Return what labels, of which there are some, are."""
    if labels.dtype.kind in "biuf":
        return "number"
    return "string" if isinstance(labels[0], str) else type(labels[0]).__name__


def warn_of_workers(summaries: Sequence[Summary], n_classes: int, stacklevel: int) -> None:
    """Warn where each of several workers has too few entries for the numbers that are trained."""
    n_workers = len(summaries)
    n_entries = sum(summary.n_entries for summary in summaries)
    n_numbers = summaries[0].shape[1] * (2 if n_classes == 2 else 1 + n_classes)
    share = n_entries / n_workers / max(n_numbers, 1)
    if n_workers > 1 and share < ENTRIES_PER_NUMBER:
        warnings.warn(
            f"{n_workers} workers have {share:.3g} entries of X each for every trained number: "
            f"below about {ENTRIES_PER_NUMBER} the work that each has to do alone dominates, and "
            "fewer workers are as fast.",
            UserWarning,
            stacklevel=stacklevel,
        )


def check_on_cpu(model: ClsAttentionClassifier) -> None:
    """Raise ValueError for a classifier of documents in files that does not compute on the CPU."""
    if resolve_device(model.device).type != "cpu":
        raise ValueError(
            f"Fits on ChunkedCounts compute on the CPU, but device={model.device!r}: chunks that "
            "fit into a GPU's memory can be fitted on at once, by fit."
        )


def fit_chunks(model: ClsAttentionClassifier, counts: ChunkedCounts) -> None:
    """Fit a classifier on all documents of a folder of chunks."""
    check_on_cpu(model)
    with counts._lock:
        if counts._parts is None:
            counts._parts = Parts(Part(counts._read(), Alone(), summary=counts._summary))
        fit_parts(model, counts._parts)
