"""Some documents of a corpus, and the computations of a fit on them: functions of a chunk.

Functions called ``with_...`` return another chunk; the others return numbers. A corpus in memory is
one chunk, one in files or on Dask has many (:mod:`.corpus`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .._documents import csr_of, damped, row_totals
from .._types import Array, Numbers
from .bag import TokenBag, as_tensor
from .fitted import count_selected
from .leave_one_out import evidence_without, projections
from .loss import AttentionLoss, encode_targets
from .statistics import CorpusStatistics, Scaling, row_lengths


def _in_memory(array: Any) -> Any:
    return array


def _nothing() -> None:
    return None


@dataclass(frozen=True)
class Chunk:
    """Some documents of a corpus.

    X : CSR (n_documents, n_tokens), positive token weights, every entry stored once
    codes : (n_documents,), positions of the labels among `labels`, or else among all classes
    weights : (n_documents,), document weights, class weights included once these are known
    number : which chunk of the corpus this is, from 0
    labels : the labels that `codes` number, until the classes of all chunks are known
    columns : the transpose of `X` as CSR, if there is one already
    bag : X in the precision of training
    own : (n_documents, n_classes), what each document and its copies weigh in every class
    loss : the sum of the documents' losses
    numerators, outputs : (n_documents, n_outputs), what naive Bayes says of each document without
        it, before and after the division by the attention mass
    members : (n_documents, n_labels + 1), where documents have several labels: 1 for each of these,
        and 1 at the end; `codes` are then those of kinds of documents
    keep : returns an array of the chunk as one that may be in a file
    release : gives back memory that can be read again from files
    """

    X: Any
    codes: NDArray[Any]
    weights: Array
    number: int = 0
    labels: NDArray[Any] | None = None
    columns: Any = None
    bag: TokenBag | None = None
    own: Array | None = None
    loss: AttentionLoss | None = None
    numerators: torch.Tensor | None = None
    outputs: torch.Tensor | None = None
    members: NDArray[Any] | None = None
    keep: Callable[[Any], Any] = _in_memory
    release: Callable[[], None] = _nothing

    @property
    def trained_loss(self) -> AttentionLoss:
        """The loss, created by :func:`with_loss`."""
        assert self.loss is not None
        return self.loss


def class_sums(chunk: Chunk, classes: NDArray[Any]) -> Array:
    """Return document weights, token weights and numbers of entries by class, (3, n_classes)."""
    codes = _codes_among(chunk, classes)
    of_documents = np.ones(len(codes)), row_totals(chunk.X), row_lengths(chunk.X)
    if chunk.members is not None:
        return np.array([(chunk.weights * of) @ chunk.members for of in of_documents])
    sums = [np.bincount(codes, chunk.weights * of, len(classes)) for of in of_documents]
    return np.array(sums, dtype=np.float64)


def with_weights(
    chunk: Chunk,
    classes: NDArray[Any],
    factors: Array,
    entry_scale: float | None,
    entry_type: type[np.floating[Any]],
) -> Chunk:
    """Set the documents' codes, class weights and damped entries.

    `factors`, (n_classes,), multiply the weights; `entry_scale` is the unit of damped entries,
    which are then of `entry_type`; None leaves the entries as they are.
    """
    codes = _codes_among(chunk, classes)
    weights = chunk.keep(chunk.weights * factors[codes])
    X, columns = chunk.X, chunk.columns
    if entry_scale is not None:
        X = _with_entries(X, chunk.keep(damped(X, entry_scale, entry_type).data))
        if columns is not None:
            columns = _with_entries(
                columns, chunk.keep(damped(columns, entry_scale, entry_type).data)
            )
    codes = chunk.keep(codes)
    return replace(chunk, X=X, codes=codes, weights=weights, columns=columns, labels=None)


def statistics_of(chunk: Chunk, n_classes: int) -> CorpusStatistics:
    """Return the sums over the documents before training."""
    return CorpusStatistics.of(chunk.X, chunk.codes, n_classes, chunk.weights, chunk.members)


def described(chunk: Chunk, directions: Array) -> tuple[Array, Array, Numbers, Array]:
    """Return keys that identify equal documents: two projections, the code and the weight.

    `directions` are (2, n_tokens), the results (n_documents,).
    """
    first, second = projections(chunk.X, directions)
    return first, second, chunk.codes, chunk.weights


def rows_of(chunk: Chunk, starts: Numbers, rows: Numbers) -> Any:
    """Return the CSR matrix of some documents of the corpus that are in this chunk.

    `starts` are the numbers of the chunks' first documents, `rows` those of the documents, sorted.
    """
    within, first = _within(chunk, starts, rows), starts[chunk.number]
    return chunk.X[rows[within] - first]


def with_copies(
    chunk: Chunk, starts: Numbers, copied: Numbers, groups: Numbers, weights: Array
) -> Chunk:
    """Set the weights of documents and their copies in each class.

    `copied` are the numbers of all documents that have copies, sorted, `groups` the row of each in
    `weights`, (n_groups, n_classes), which sums up the copies' weights.
    """
    if chunk.members is None:
        own = np.zeros((len(chunk.codes), weights.shape[1]))
        own[np.arange(len(own)), chunk.codes] = chunk.weights
    else:
        own = chunk.members * chunk.weights[:, None]
    within, first = _within(chunk, starts, copied), starts[chunk.number]
    own[copied[within] - first] = weights[groups[within]]
    return replace(chunk, own=chunk.keep(own))


def with_bag(chunk: Chunk, dtype: type[np.floating[Any]], device: torch.device | str) -> Chunk:
    """Create the bag on a device, in the precision of training."""
    values, columns = chunk.X, chunk.columns
    if values.dtype != dtype and chunk.keep is not _in_memory:
        values = _with_entries(values, chunk.keep(values.data.astype(dtype)))
        columns = _with_entries(columns, chunk.keep(columns.data.astype(dtype)))
    return replace(chunk, bag=TokenBag(values, dtype=dtype, device=device, columns=columns))


def with_loss(chunk: Chunk, n_outputs: int, cls_weight: float) -> Chunk:
    """Create the loss of the documents."""
    bag = chunk.bag
    assert bag is not None
    targets = encode_targets(np.array(chunk.codes), n_outputs, members=chunk.members).numpy()
    loss = AttentionLoss(
        bag,
        as_tensor(chunk.keep(targets), bag.device),
        as_tensor(chunk.weights, bag.device),
        n_outputs,
        cls_weight=cls_weight,
    )
    return replace(chunk, loss=loss)


def with_naive_bayes(chunk: Chunk, scaling: Scaling) -> Chunk:
    """Compute the naive Bayes evidence for each document without it and its copies."""
    loss, totals = chunk.trained_loss, scaling.totals
    assert chunk.own is not None
    assert totals is not None
    bag = loss.bag
    sums = scaling.unit * evidence_without(chunk.X, chunk.own, totals)
    numerators = as_tensor(chunk.keep(sums), bag.device)
    attention = np.exp(scaling.starting_scores, dtype=np.float64)[:, None]
    by_token = torch.from_numpy(attention).to(bag.device, bag.dtype)
    mass = bag.sum_over_tokens(by_token).to(torch.float64) + scaling.cls_weight
    outputs = numerators / mass.clamp(min=1e-300)
    if chunk.keep is not _in_memory:
        outputs = as_tensor(chunk.keep(outputs.numpy()), bag.device)
    return replace(chunk, own=None, numerators=numerators, outputs=outputs)


def multiple_sums(chunk: Chunk, x: Array) -> tuple[float, Array, Array]:
    """Return the loss of naive Bayes times x[0] plus intercepts x[1:], its gradient and Hessian.

    x is (1 + n_outputs,).
    """
    loss, outputs = chunk.trained_loss, chunk.outputs
    assert outputs is not None
    weight = loss.sample_weight
    fitted = x[0] * outputs + torch.from_numpy(x[1:]).to(outputs.device)
    value, slope = loss.output_loss(fitted)
    p = loss.probabilities(fitted)
    if loss.is_logistic:
        bend = p * (1 - p) * weight[:, None]
        both = bend * outputs
        hessian = torch.diag(torch.cat([(both * outputs).sum()[None], bend.sum(dim=0)]))
        hessian[0, 1:] = hessian[1:, 0] = both.sum(dim=0)
    else:
        product = p * outputs
        spread = torch.cat([product.sum(dim=1, keepdim=True), p], dim=1)
        squares = torch.cat([(product * outputs).sum(dim=1, keepdim=True), p], dim=1)
        hessian = torch.diag(weight @ squares)
        hessian.addmm_((spread * weight[:, None]).T, spread, alpha=-1)
        cross = weight @ product
        hessian[0, 1:] += cross
        hessian[1:, 0] += cross
    gradient = torch.cat([(slope * outputs).sum()[None], slope.sum(dim=0)])
    return value, gradient.cpu().numpy(), hessian.cpu().numpy()


def with_evidence(chunk: Chunk, multiple: float) -> Chunk:
    """Add a multiple of the naive Bayes evidence to the loss."""
    assert chunk.numerators is not None
    evidence = chunk.numerators * multiple
    if chunk.keep is not _in_memory:
        evidence = as_tensor(chunk.keep(evidence.numpy()), evidence.device)
    return replace(chunk, loss=chunk.trained_loss.with_evidence(evidence))


def loss_and_gradient(chunk: Chunk, matrix: torch.Tensor) -> tuple[float, torch.Tensor]:
    """Return the sum of the losses and its gradient by the token matrix."""
    return chunk.trained_loss(matrix)


def curvature(chunk: Chunk, matrix: torch.Tensor) -> torch.Tensor:
    """Return the curvature by values and intercepts, (n_tokens + 1, n_outputs)."""
    return chunk.trained_loss.curvature(matrix)


def selections(chunk: Chunk, scores: Array) -> Numbers:
    """Return the number of documents of positive weight that select each token, (n_tokens,)."""
    present = np.asarray(chunk.weights) > 0
    return count_selected(scores, chunk.X if present.all() else chunk.X[present])


def expansion(chunk: Chunk, matrix: torch.Tensor) -> tuple[float, torch.Tensor, torch.Tensor]:
    """Return the sum of the losses, its gradient and its curvature by the token matrix."""
    loss = chunk.trained_loss
    return *loss(matrix), loss.bound(matrix)


def _codes_among(chunk: Chunk, classes: NDArray[Any]) -> Numbers:
    """Return the positions of the documents' labels among the sorted classes, (n_documents,)."""
    if chunk.labels is None:
        return np.asarray(chunk.codes, dtype=np.intp)
    if not len(chunk.labels):
        return np.empty(0, np.intp)
    return np.searchsorted(classes, chunk.labels).astype(np.intp)[chunk.codes]


def _with_entries(X: Any, entries: NDArray[Any]) -> Any:
    return csr_of(entries, X.indices, X.indptr, X.shape[1])


def _within(chunk: Chunk, starts: Numbers, rows: Numbers) -> slice:
    """Return which of the sorted numbers of documents are in the chunk."""
    first = starts[chunk.number]
    return slice(*np.searchsorted(rows, [first, first + chunk.X.shape[0]]))
