"""The documents of a fit in parts, as rank 0 sees them: what :class:`~.documents.Documents` is.

Rank 0 solves; the others :func:`serve`. Whatever rank 0 asks is sent to all, and answered with the
sum over the parts, so that the parts cannot disagree about a step.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from .documents import Documents
from .fitted import FittedAttention
from .folds import sample
from .leave_one_out import directions_by_content, numbered, own_weights
from .part import Part
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
        self._sampled: tuple[int, list[NDArray[np.intp]], NDArray[np.intp], Array] | None = None
        self._kept: dict[str, tuple[Any, Array]] = {}

    def gather(self, name: str, *arguments: Any) -> list[Any]:
        """Return what a method of :class:`~.part.Part` gathers."""
        self._reducer.send((name, arguments))
        found = getattr(self._part, name)(*arguments)
        _raise_failures([error for _, error in found])
        return [value for value, _ in found]

    def sum(self, name: str, *arguments: Any) -> Array:
        """Return the sum that a method of :class:`~.part.Part` makes over all parts."""
        self._reducer.send((name, arguments))
        flat: Array = getattr(self._part, name)(*arguments)
        if flat[-1]:
            self.gather("errors")
        return flat[:-1]

    def once(self, key: Any, name: str, *arguments: Any) -> Array:
        """Return :meth:`sum`, or that of an earlier call with an equal key."""
        kept = self._kept.get(name)
        if kept is None or kept[0] != key:
            if name == "prepare":  # of other entries and weights all else is new
                self._kept = {kind: self._kept[kind] for kind in {"totals"} & {*self._kept}}
                self._sampled = None
            kept = self._kept[name] = key, self.sum(name, *arguments)
        return kept[1]

    def sampled(self, shares: Array) -> tuple[int, list[NDArray[np.intp]], NDArray[np.intp], Array]:
        """Return how many different documents there are, and a sample of them.

        That is, each part's rows, and the codes and weights of all. The parts learn which
        documents have copies, whichever parts these are in. `shares`, (n_classes, n_tokens), are
        those of all documents.
        """
        if self._sampled is None:
            projections = self.gather("projections", directions_by_content(shares))
            *found, copies, own = group_documents(projections, len(shares))
            self.sum("take_copies", copies, own)
            self._sampled = found[0], found[1], found[2], found[3]
        return self._sampled


def _raise_failures(errors: list[str]) -> None:
    """Raise an error that names the parts that have failed, if there are any."""
    failed = [f"rank {rank} failed with {error}" for rank, error in enumerate(errors) if error]
    if failed:
        raise PartFailedError(f"The fit stopped in all parts: {'; '.join(failed)}.")


def serve(part: Part) -> Any:
    """Do what rank 0 sends until it says stop, and return what it says with it."""
    while True:
        name, arguments = part.reducer.send(None)
        if name == "stop":
            return arguments
        getattr(part, name)(*arguments)


def group_documents(projections: list[Array], n_classes: int) -> tuple[Any, ...]:
    """Return the number of different documents, a sample, and the copies.

    The sample is each part's rows, and codes and weights of all of these; of the copies,
    :meth:`~.part.Part.take_copies` learns. `projections` come from
    :meth:`~.part.Part.projections`; groups and sample are those of :class:`~.documents.Documents`.
    """
    bounds = np.cumsum([0, *map(len, projections)])
    first, second, numbers, weights = np.concatenate(projections).T
    codes = numbers.astype(np.intp)
    groups = numbered(first, second)
    present = np.flatnonzero(weights)
    of_present = np.unique(groups[present], return_inverse=True)[1]
    of_sample, sample_weights = sample(of_present, codes[present], weights[present])
    sampled = present[of_sample]
    copied = np.flatnonzero((np.bincount(groups) > 1)[groups])
    of_copies = np.unique(groups[copied], return_inverse=True)[1]
    own = own_weights(codes[copied], weights[copied], n_classes, of_copies)
    rows, copies = [], []
    for start, stop in pairwise(bounds):
        rows.append(sampled[slice(*np.searchsorted(sampled, [start, stop]))] - start)
        within = slice(*np.searchsorted(copied, [start, stop]))
        copies.append((copied[within] - start, of_copies[within]))
    n_different = int(of_present.max(initial=-1)) + 1
    return n_different, rows, codes[sampled], sample_weights, copies, own


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
        self._parts = documents.parts
        self.bag, self.n_outputs, self.cls_weight = bag, documents.n_outputs, cls_weight
        self.total_weight = documents.statistics.total_weight

    def zeros(self) -> torch.Tensor:
        """Return a token matrix of zeros."""
        return torch.zeros((self.bag.shape[1] + 1, 1 + self.n_outputs), dtype=self.bag.dtype)

    def __call__(self, matrix: torch.Tensor) -> tuple[float, torch.Tensor]:
        """Return the sum of the losses and its gradient by `matrix`."""
        flat = self._parts.sum("loss", self.cls_weight, matrix.numpy())
        return float(flat[-1]), torch.from_numpy(flat[:-1]).view_as(matrix).to(matrix.dtype)

    def curvature(self, matrix: torch.Tensor) -> torch.Tensor:
        """Return the sum of the curvatures by values and intercepts, (n_tokens + 1, n_outputs)."""
        flat = self._parts.sum("curvature", self.cls_weight, matrix.numpy())
        return torch.from_numpy(flat).view(len(matrix), self.n_outputs).to(matrix.dtype)


class PartsNaiveBayes:
    """What naive Bayes says of all parts' documents: :class:`~.evidence.EvidenceSums`."""

    def __init__(self, documents: DocumentsInParts, cls_weight: float, scaling: Scaling) -> None:
        self._parts, self._cls_weight = documents.parts, cls_weight
        self._parts.sampled(documents.statistics.shares)
        self._parts.sum("find_evidence", cls_weight, scaling)

    def __call__(self, x: Array) -> tuple[float, Array, Array]:
        """Return loss, gradient and Hessian, (n,) and (n, n), at multiple and intercepts x."""
        n = len(x)
        flat = self._parts.sum("multiple_sums", self._cls_weight, x)
        return float(flat[0]), flat[1 : n + 1], flat[n + 1 :].reshape(n, n)

    def keep(self, multiple: float) -> None:
        """Give the documents' loss this multiple of the evidence."""
        self._parts.sum("keep_evidence", multiple)


@dataclass(frozen=True)
class DocumentsInParts:
    """The documents of a fit, in parts: what :class:`~.documents.Documents` is of those in memory.

    statistics : of all documents
    shape : (n_documents, n_tokens)
    n_entries : of all parts
    entry_scale, unit : as there
    """

    parts: Parts
    statistics: CorpusStatistics
    shape: tuple[int, int]
    n_entries: int
    entry_scale: float | None = None
    unit: float = 1.0

    @property
    def n_classes(self) -> int:
        """Number of classes, K."""
        return len(self.statistics.class_weights)

    @property
    def n_outputs(self) -> int:
        """1 for two classes, K for K > 2."""
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def n_multiplications(self) -> int:
        """How many a product with a token matrix takes."""
        return self.n_entries * (1 + self.n_outputs)

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

    def sample(self) -> tuple[int, Documents]:
        """Return how many different documents there are, and a sample of them, in memory."""
        n_different, rows, codes, weights = self.parts.sampled(self.statistics.shares)
        X = sp.vstack(list(chain.from_iterable(self.parts.gather("entries", rows))), format="csr")
        statistics = CorpusStatistics.of(X, codes, self.n_classes, weights)
        return n_different, Documents(X, codes, weights, statistics, self.entry_scale, self.unit)

    def keep_alive(self) -> None:
        """Tell the other parts, which wait for rank 0, that it goes on."""
        self.parts.sum("keep_alive")

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
