"""The documents of a fit in parts, as rank 0 sees them: what :class:`~.documents.Documents` is.

Rank 0 solves; the others :func:`serve`. Whatever rank 0 asks is sent to all, and answered with the
sum over the parts, so that the parts cannot disagree about a step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .fitted import FittedAttention
from .folds import N_FOLDS, deal
from .leave_one_out import numbered, own_weights
from .part import ALL, Part
from .statistics import CorpusStatistics, Scaling

Array = NDArray[np.float64]


class PartFailedError(RuntimeError):
    """A part of the corpus has failed; `lost` says that no message reaches the others any more."""

    def __init__(self, message: str, lost: bool = False) -> None:
        super().__init__(message, lost)
        self.lost = lost

    def __str__(self) -> str:
        return str(self.args[0])


class Parts:
    """All parts of a corpus, of which this process has `part`, that of rank 0."""

    def __init__(self, part: Part) -> None:
        self._part, self._reducer = part, part.reducer
        self.size = part.reducer.size
        self._n_different: int | None = None
        self._kept: dict[str, tuple[Any, Array]] = {}

    def gather(self, name: str) -> Any:
        """Return what a method of :class:`~.part.Part` gathers."""
        self._reducer.send((name, ()))
        return getattr(self._part, name)()

    def sum(self, name: str, *arguments: Any) -> Array:
        """Return the sum that a method of :class:`~.part.Part` makes over all parts."""
        self._reducer.send((name, arguments))
        flat: Array = getattr(self._part, name)(*arguments)
        if flat[-1]:
            failed = [(rank, error) for rank, error in enumerate(self.gather("errors")) if error]
            said = "; ".join(f"rank {rank} failed with {error}" for rank, error in failed)
            raise PartFailedError(f"The fit stopped in all parts: {said}.")
        return flat[:-1]

    def once(self, key: Any, name: str, *arguments: Any) -> Array:
        """Return :meth:`sum`, or that of an earlier call with an equal key."""
        kept = self._kept.get(name)
        if kept is None or kept[0] != key:
            if name == "prepare":  # of other entries and weights all else is new
                self._kept = {kind: self._kept[kind] for kind in {"totals"} & {*self._kept}}
                self._n_different = None
            kept = self._kept[name] = key, self.sum(name, *arguments)
        return kept[1]

    def n_different(self, n_classes: int) -> int:
        """Return the number of documents of positive weight of which no two are the same.

        The parts learn which are, whichever parts they are in, and their folds.
        """
        if self._n_different is None:
            n_different, *found = group_documents(self.gather("projections"), n_classes)
            self.sum("take_groups", *found)
            self._n_different = n_different
        return self._n_different


def serve(part: Part) -> Any:
    """Do what rank 0 sends until it says stop, and return what it says with it."""
    while True:
        name, arguments = part.reducer.send(None)
        if name == "stop":
            return arguments
        getattr(part, name)(*arguments)


def group_documents(projections: list[Array], n_classes: int) -> tuple[Any, ...]:
    """Return the number of different documents, and what :meth:`~.part.Part.take_groups` takes.

    `projections` come from :meth:`~.part.Part.projections`; groups and folds are those of
    :class:`~.documents.Documents`.
    """
    lengths = np.cumsum([len(part) for part in projections])[:-1]
    first, second, numbers, weights = np.concatenate(projections).T
    codes = numbers.astype(np.intp)
    groups = numbered(first, second)
    present = np.flatnonzero(weights)
    of_present = np.unique(groups[present], return_inverse=True)[1]
    folds = np.full(len(codes), -1, dtype=np.int8)
    folds[present] = deal(of_present, codes[present], N_FOLDS)
    copied = np.flatnonzero((np.bincount(groups) > 1)[groups])
    of_copies = np.unique(groups[copied], return_inverse=True)[1]
    own = own_weights(codes[copied], weights[copied], n_classes, of_copies)
    bounds = [0, *lengths, len(codes)]
    copies = []
    for start, stop in pairwise(bounds):
        within = slice(*np.searchsorted(copied, [start, stop]))
        copies.append((copied[within] - start, of_copies[within]))
    return int(of_present.max(initial=-1)) + 1, np.split(folds, lengths), copies, own


@dataclass(frozen=True)
class _Shape:
    """What the problem asks of a bag: where and in what precision rank 0 solves."""

    shape: tuple[int, int]
    dtype: torch.dtype
    device: torch.device


class PartsLoss:
    """The sum of the losses of all parts' documents: an :class:`~.objective.AttentionLoss`."""

    evidence = None

    def __init__(self, documents: DocumentsInParts, bag: _Shape, cls_weight: float) -> None:
        self._parts, self._fold = documents.parts, documents.fold
        self.bag, self.n_outputs, self.cls_weight = bag, documents.n_outputs, cls_weight
        self.total_weight = documents.statistics.total_weight

    def zeros(self) -> torch.Tensor:
        """Return a token matrix of zeros."""
        return torch.zeros((self.bag.shape[1] + 1, 1 + self.n_outputs), dtype=self.bag.dtype)

    def __call__(self, matrix: torch.Tensor) -> tuple[float, torch.Tensor]:
        """Return the sum of the losses and its gradient by `matrix`."""
        flat = self._parts.sum("loss", self._fold, self.cls_weight, matrix.numpy())
        return float(flat[-1]), torch.from_numpy(flat[:-1]).view_as(matrix).to(matrix.dtype)

    def squared_attention(self, scores: torch.Tensor) -> torch.Tensor:
        """Return the sum over documents of squared attention, (n_tokens,)."""
        name = "squared_attention"
        flat = self._parts.sum(name, self._fold, self.cls_weight, scores.numpy())
        return torch.from_numpy(flat).to(scores.dtype)


class PartsNaiveBayes:
    """What naive Bayes says of all parts' documents: :class:`~.evidence.EvidenceSums`."""

    def __init__(self, documents: DocumentsInParts, cls_weight: float, scaling: Scaling) -> None:
        self._parts, self._fold, self._cls_weight = documents.parts, documents.fold, cls_weight
        self._parts.n_different(documents.n_classes)
        self._parts.sum("find_evidence", self._fold, cls_weight, scaling)

    def __call__(self, x: Array) -> tuple[float, Array, Array]:
        """Return loss, gradient and Hessian, (n,) and (n, n), at multiple and intercepts x."""
        n = len(x)
        flat = self._parts.sum("multiple_sums", self._fold, self._cls_weight, x)
        return float(flat[0]), flat[1 : n + 1], flat[n + 1 :].reshape(n, n)

    def keep(self, multiple: float) -> None:
        """Give the documents' loss this multiple of the evidence."""
        self._parts.sum("keep_evidence", self._fold, multiple)


@dataclass(frozen=True)
class DocumentsInParts:
    """The documents of a fit, in parts: what :class:`~.documents.Documents` is of those in memory.

    statistics : of all documents but those of the `fold` held out
    shape : (n_documents, n_tokens)
    entry_scale, unit : as there
    """

    parts: Parts
    statistics: CorpusStatistics
    shape: tuple[int, int]
    entry_scale: float | None = None
    unit: float = 1.0
    fold: int = ALL

    @property
    def n_classes(self) -> int:
        """Number of classes, K."""
        return len(self.statistics.class_weights)

    @property
    def n_outputs(self) -> int:
        """1 for two classes, K for K > 2."""
        return 1 if self.n_classes == 2 else self.n_classes

    def bag(self, dtype: type[np.floating[Any]], device: torch.device | str) -> _Shape:
        """Return the precision of training; rank 0 solves on the CPU."""
        return _Shape(
            self.shape, torch.float32 if dtype == np.float32 else torch.float64, torch.device("cpu")
        )

    def loss(self, bag: _Shape, *, cls_weight: float = 0.0) -> PartsLoss:
        """Return the sum of the documents' losses as a function of the token matrix."""
        return PartsLoss(self, bag, cls_weight)

    def naive_bayes(self, loss: PartsLoss, scaling: Scaling) -> PartsNaiveBayes:
        """Return what naive Bayes says of every document without it."""
        return PartsNaiveBayes(self, loss.cls_weight, scaling)

    def folds(self, n_folds: int) -> tuple[int, Callable[[int], int]]:
        """Return how many different documents there are, and what :meth:`split` takes per fold."""
        assert n_folds == N_FOLDS
        return self.parts.n_different(self.n_classes), lambda fold: fold

    def split(self, held_out: int) -> tuple[DocumentsInParts, Callable[[FittedAttention], float]]:
        """Return the documents without a fold, and the mean log loss of that."""
        sums = self.parts.sum("statistics", held_out)
        kept = replace(
            self,
            statistics=CorpusStatistics.from_flat(sums, self.n_classes, self.shape[1]),
            fold=held_out,
        )
        judged = kept.statistics.class_weights > 0

        def mean_loss(model: FittedAttention) -> float:
            loss, weight = self.parts.sum("held_out_loss", held_out, judged, model)
            return float(loss / weight) if weight else 0.0

        return kept, mean_loss

    def count_selected(self, scores: Array) -> NDArray[np.intp]:
        """Return in how many documents of positive weight each token is selected, (n_tokens,)."""
        return self.parts.sum("selected", scores).astype(np.intp)

    def loss_derivatives(
        self, model: FittedAttention, loss: PartsLoss
    ) -> tuple[float, Array, Array]:
        """Return :func:`~.memory.loss_derivatives`, with the evidence of `loss`."""
        flat = self.parts.sum("loss_derivatives", model)
        shape = len(model.scores) + 1, 1 + self.n_outputs
        gradient, curvature = flat[1:].reshape(2, *shape)
        return float(flat[0]), gradient, curvature
