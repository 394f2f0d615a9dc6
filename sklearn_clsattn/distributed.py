"""Fits over the processes of a ``torch.distributed`` group, each with its own documents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist
from numpy.typing import ArrayLike
from torch.distributed import distributed_c10d

from ._chunked_counts import ChunkedCounts
from ._classifier import _learns_from_batches
from ._core.backend import ThreadShare, resolve_device
from ._core.part import Part
from ._core.parts import PartFailedError, Parts, serve
from ._fit_parts import check_on_cpu, fit_parts, learn_parts, part_in_memory
from ._gloo import GlooReducer
from ._transaction import all_or_nothing

if TYPE_CHECKING:
    from ._classifier import ClsAttentionClassifier

__all__ = ["fit", "partial_fit"]

Model = TypeVar("Model", bound="ClsAttentionClassifier")

Learn = Callable[["ClsAttentionClassifier", Parts], None]  # fits in rank 0 on all parts' documents
# How many fits a group has had: each has its own keys in the group's store.
_calls: WeakKeyDictionary[Any, int] = WeakKeyDictionary()


def fit(
    model: Model,
    X_local: Any,
    y_local: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    process_group: dist.ProcessGroup | None = None,
) -> Model:
    """Fit a classifier on the documents of all processes of a group.

    Every process of the group calls this with documents of its own, of which there may be none, and
    ends with the same fitted model: that of ``model.fit`` on all documents together, but for
    rounding. Process 0 solves; the others return sums over their documents: for every evaluation of
    the loss one vector as large as the model goes each way. For ``C="auto"`` the counts of some
    8,000 documents go to process 0.

    Parameters
    ----------
    model : ClsAttentionClassifier
        The classifier, with the same parameters in every process. It is changed in place.
    X_local : {array-like, sparse matrix, data frame} of shape (n_local_documents, n_tokens), \
            or ChunkedCounts
        Non-negative token counts or weights, of the same tokens in every process; or a folder of
        them, which has labels and weights as well.
    y_local : array-like of shape (n_local_documents,), default=None
        Class labels; not every process needs to have all classes. None with ChunkedCounts.
    sample_weight : array-like of shape (n_local_documents,), default=None
        Non-negative weights; a weight of 2 is the document twice. None with ChunkedCounts.
    process_group : torch.distributed.ProcessGroup, default=None
        The processes, by default all. The sums go over a private gloo group of these, whatever
        the backend of this one, with its timeout.

    Returns
    -------
    model : ClsAttentionClassifier
        The fitted classifier.

    Raises
    ------
    ValueError
        As ``model.fit``; where processes differ in tokens or in parameters; for ChunkedCounts and
        a `device` that is no CPU. The rank is named. All processes raise.
    RuntimeError
        If a process fails during the fit, or does not answer within the timeout of the group: its
        rank is named, and all others raise. The timeout (`torch.distributed.init_process_group`)
        has to be longer than one pass over a process's documents.

    Warns
    -----
    ConvergenceWarning
        If `max_iter` iterations do not reach `tol`; process 0 warns.
    UserWarning
        If the processes have too few documents to gain from being several; process 0 warns.

    See Also
    --------
    partial_fit : Learn a batch of documents.
    sklearn_clsattn.ChunkedCounts : Documents in files.

    Examples
    --------
    A file ``train.py``, run by ``torchrun --nproc-per-node 2 train.py``, fits on two processes.
    Here is one process alone.

    >>> import torch.distributed as dist
    >>> from sklearn_clsattn import ClsAttentionClassifier, distributed
    >>> from sklearn_clsattn.datasets import make_token_classification
    >>> X, y = make_token_classification(400, random_state=0)
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> mine = slice(dist.get_rank(), None, dist.get_world_size())
    >>> model = distributed.fit(ClsAttentionClassifier(), X[mine], y[mine])
    >>> dist.destroy_process_group()
    >>> model.classes_
    array([0, 1])
    """
    return fit_over(model, _reducer(process_group), X_local, y_local, sample_weight)


def partial_fit(
    model: Model,
    X_local: Any,
    y_local: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    process_group: dist.ProcessGroup | None = None,
) -> Model:
    """Learn a batch that is spread over the processes of a group, after those of earlier calls.

    Every process calls this with its documents of the batch, and ends with the same model: that of
    ``model.partial_fit`` on all documents of the batch together, but for rounding.

    Parameters
    ----------
    model : ClsAttentionClassifier
        The classifier, the same in every process. It is changed in place.
    X_local, y_local, sample_weight
        This process's documents, as :func:`fit` takes them.
    classes : array-like of shape (n_classes,), default=None
        All labels that any batch may have, the same in every process, as ``model.partial_fit``
        takes them.
    process_group : torch.distributed.ProcessGroup, default=None
        As in :func:`fit`.

    Returns
    -------
    model : ClsAttentionClassifier
        The classifier, fitted on all batches so far.

    Raises
    ------
    ValueError, RuntimeError
        As :func:`fit` and ``model.partial_fit``.

    Examples
    --------
    >>> import torch.distributed as dist
    >>> from sklearn_clsattn import ClsAttentionClassifier, distributed
    >>> from sklearn_clsattn.datasets import make_token_classification
    >>> X, y = make_token_classification(400, random_state=0)
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = ClsAttentionClassifier()
    >>> for batch in slice(200), slice(200, 400):
    ...     model = distributed.partial_fit(model, X[batch], y[batch], classes=[0, 1])
    >>> dist.destroy_process_group()
    >>> bool(model.score(X, y) > 0.8)
    True
    """
    learn = partial(learn_parts, classes=classes)
    reducer = _reducer(process_group)
    return fit_over(model, reducer, X_local, y_local, sample_weight, learn, classes)


@all_or_nothing
def fit_over(
    model: Model,
    reducer: GlooReducer,
    X: Any,
    y: Any,
    sample_weight: Any,
    learn: Learn = fit_parts,
    settings: Any = None,
) -> Model:
    """Fit on the documents of all processes of a reducer, and close that.

    `settings` have to be the same in all processes, beside the classifier's parameters.
    """
    error: BaseException | None = None
    try:
        part = _part(reducer, model, X, y, sample_weight, learn, settings)
        if reducer.rank:
            _serve(part, model)
        else:
            _solve(part, model, learn)
    except BaseException as raised:
        error = raised
        raise
    finally:
        reducer.close(error)
    return model


def _part(
    reducer: GlooReducer, model: Model, X: Any, y: Any, sample_weight: Any, learn: Learn, more: Any
) -> Part:
    """Return this process's documents, or what is wrong with them."""
    try:
        if not hasattr(model, "fit_chunks"):
            raise TypeError(
                f"Expected a ClsAttentionClassifier, got {type(model).__name__}, which is not "
                "fitted over processes: pass ClsAttentionClassifier() and counts of tokens."
            )
        if getattr(learn, "func", learn) is not fit_parts:
            _learns_from_batches(model)
        model._validate_params()
        device = resolve_device(model.device)
        if isinstance(X, ChunkedCounts):
            if y is not None or sample_weight is not None:
                raise ValueError("labels or weights beside ChunkedCounts, which has its own")
            check_on_cpu(model)
            chunks, summary = X._read(), X._summary
        elif y is None:
            raise ValueError("There are no labels: pass y_local.")
        else:
            chunks, summary = part_in_memory(X, y, sample_weight, type(model).__name__)
        parameters = ", ".join(f"{name}={value!r}" for name, value in model.get_params().items())
        summary = replace(summary, settings=parameters, more_settings=str(more))
    except Exception as error:
        return Part(None, reducer, error=f"{type(error).__name__}: {error}")
    return Part(chunks, reducer, device=device, summary=summary)


def _serve(part: Part, model: Model) -> None:
    """Return sums to rank 0 until it sends what the fit has come to."""
    with ThreadShare():
        error, attributes = serve(part)
    if error is not None:
        raise error
    for name in _fitted(model):
        del model.__dict__[name]
    model.__dict__.update(attributes)


def _solve(part: Part, model: Model, learn: Learn) -> None:
    """Fit in rank 0, and send to the others what the fit has come to."""
    send = part.reducer.send
    try:
        learn(model, Parts(part))
    except Exception as error:
        if not (isinstance(error, PartFailedError) and error.lost):
            send(("stop", (error, {})))
        raise
    send(("stop", (None, _fitted(model))))


def _fitted(model: Model) -> dict[str, Any]:
    """Return what a fit has set."""
    parameters = model.get_params(deep=False)
    return {
        name: value
        for name, value in vars(model).items()
        if name not in parameters and not name.startswith("_skl")
    }


def _reducer(process_group: dist.ProcessGroup | None) -> GlooReducer:
    """Return what connects the processes of a group, whatever its backend, with its timeout."""
    if not dist.is_initialized():
        raise RuntimeError(
            "There is no process group: call torch.distributed.init_process_group first, or start "
            "the processes by torchrun."
        )
    group = process_group or dist.group.WORLD
    assert group is not None
    rank = dist.get_rank(group)
    if rank < 0:
        raise ValueError(f"Rank {dist.get_rank()} is no process of the group that was passed.")
    _calls[group] = number = _calls.get(group, 0) + 1
    store = distributed_c10d._get_process_group_store(group)
    device = torch.device("cuda" if dist.get_backend(group) == "nccl" else "cpu")
    timeout = group._get_backend(device).options._timeout.total_seconds()
    store = dist.PrefixStore(f"sklearn_clsattn {number}", store)
    return GlooReducer(store, rank, dist.get_world_size(group), timeout)
