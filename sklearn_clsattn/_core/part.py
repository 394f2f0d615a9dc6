"""A part of a corpus, chunk by chunk: every sum that a fit asks of its documents.

What rank 0 calls here through :class:`~.parts.Parts` runs in every part with the same arguments. A
method has one sum over the parts or one gathering, at its end and whatever the documents are: no
part can wait for a sum that another one does not make. A part that fails adds to the sum's last
number instead of raising, or gathers its error, so that rank 0 learns of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .._blocks import csr_of
from .._documents import damped
from ..importance import row_totals
from .bag import TokenBag, _tensor
from .documents import Documents
from .evidence import NaiveBayes, multiple_sums
from .fitted import FittedAttention, count_selected
from .memory import loss_derivatives
from .objective import AttentionLoss
from .reducer import Reducer
from .statistics import CorpusStatistics, Scaling

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Chunk:
    """Some documents of a corpus.

    X : CSR (n_documents, n_tokens), positive token weights in canonical format
    codes : (n_documents,), positions of the labels among the corpus's classes
    weights : (n_documents,), document weights
    columns : CSR of the transpose of `X`, where the chunk is in files; None where in memory
    keep : returns an array of the chunk's as one that may be in a file
    release : gives back memory that can be read again from files
    """

    X: Any
    codes: NDArray[Any]
    weights: Array
    columns: Any = None
    keep: Callable[[NDArray[Any]], NDArray[Any]] = lambda array: array
    release: Callable[[], None] = lambda: None


Corpus = Sequence[Chunk]
"""Documents in chunks, to be gone through again and again."""


class Part:
    """The documents of a corpus, whose parts `reducer` connects.

    `device` is where this part computes; `summary` is what rank 0 is to know of the corpus first,
    and `error` is why there is no corpus, if there is none.
    """

    def __init__(
        self,
        corpus: Corpus | None,
        reducer: Reducer,
        *,
        device: torch.device | str = "cpu",
        summary: Any = None,
        error: str = "",
    ) -> None:
        self._corpus, self.reducer, self._device = corpus, reducer, device
        self._summary, self.error = summary, error

    def summary(self) -> list[tuple[Any, str]]:
        """Gather what the parts say of themselves, and why they cannot begin, as one value."""
        return self.reducer.gather(((self._summary, self.error), ""))

    def errors(self) -> list[tuple[Any, str]]:
        """Gather the parts' errors, and no values."""
        return self.reducer.gather((None, self.error))

    def keep_alive(self) -> Array:
        """Sum up nothing: the parts hear that rank 0 goes on."""
        return self._sum(0, lambda _: None)

    def totals(self, maps: Sequence[NDArray[np.intp]], n_classes: int, exponent: int) -> Array:
        """Sum up, by class, document weights, token weights and numbers of entries.

        `maps` has for every part the codes of its classes among all; entries are taken in units of
        two to the power of `exponent`. Returned is (3 * n_classes,).
        """
        self._map, self._n_classes, self._exponent = maps[self.reducer.rank], n_classes, exponent

        def add(flat: Array) -> None:
            for chunk in self._chunks():
                codes = self._map[chunk.codes]
                X = self._in_units(chunk.X)
                of_documents = (np.ones(X.shape[0]), row_totals(X), np.diff(X.indptr))
                for k, numbers in enumerate(of_documents):
                    weighted = chunk.weights * numbers
                    flat[k * n_classes :][:n_classes] += np.bincount(codes, weighted, n_classes)

        return self._sum(3 * n_classes, add)

    def prepare(
        self,
        factors: Array,
        entry_scale: float | None,
        entry_type: type[np.floating[Any]],
        dtype: type[np.floating[Any]],
        n_tokens: int,
    ) -> Array:
        """Make the entries that are trained on, and sum up the statistics.

        `factors`, (n_classes,), multiply the weights of the classes; `entry_scale` is the unit of
        damped entries, which are then of `entry_type`, None leaves them as they are; `dtype` is the
        precision of training.
        """
        self._factors, self._n_tokens = factors, n_tokens
        self._chunked: list[_Prepared] = []
        self._evidence: list[torch.Tensor] | None = None
        self._bayes: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._losses: dict[Any, AttentionLoss] = {}

        def add(flat: Array) -> None:
            for chunk in self._chunks():
                X, columns = self._in_units(chunk.X), chunk.columns
                if entry_scale is not None:
                    X = damped(X, entry_scale, entry_type)
                X = _kept(chunk, X, chunk.X)
                if columns is not None:
                    of_columns = self._in_units(columns)
                    if entry_scale is not None:
                        of_columns = damped(of_columns, entry_scale, entry_type)
                    columns = _kept(chunk, of_columns, columns, dtype)
                values = _kept(chunk, X, X, dtype) if columns is not None else X
                bag = TokenBag(values, dtype=dtype, device=self._device, columns=columns)
                self._chunked.append(_Prepared(chunk, X, bag))
            for part in self._prepared():
                codes, weights = self._codes_and_weights(part)
                flat += CorpusStatistics.of(part.X, codes, self._n_classes, weights).flat()

        return self._sum(self._n_classes * (3 + n_tokens), add)

    def forget(self) -> Array:
        """Forget the evidence of an earlier fit."""
        self._evidence, self._bayes, self._losses = None, [], {}
        return self._sum(0, lambda _: None)

    def projections(self, directions: Array) -> list[tuple[Array, str]]:
        """Gather what tells equal documents: two projections, the code and the weight of each.

        On `directions`, (2, n_tokens). Arrays of shape (n_documents, 4), in the order of the parts.
        """

        def of_documents() -> Array:
            rows = [np.empty((0, 4))]
            for part in self._prepared():
                X = part.X
                codes, weights = self._codes_and_weights(part)
                rows.append(np.column_stack([X @ directions[0], X @ directions[1], codes, weights]))
            return np.concatenate(rows)

        return self._gather(of_documents)

    def take_copies(
        self, copies: Sequence[tuple[NDArray[np.intp], NDArray[np.intp]]], own: Array
    ) -> Array:
        """Learn which documents have copies, and what all copies of each weigh in every class.

        `copies` are, for every part, the documents with copies and the row of `own`, (n_groups,
        n_classes), of each.
        """
        documents, groups = copies[self.reducer.rank]

        def learn(_: Array) -> None:
            for part, first in self._with_first():
                within = slice(*np.searchsorted(documents, [first, first + part.X.shape[0]]))
                part.copies = documents[within] - first, own[groups[within]]

        return self._sum(0, learn)

    def entries(self, rows: Sequence[NDArray[np.intp]]) -> list[tuple[list[Any], str]]:
        """Gather CSR arrays of some documents, one a chunk; `rows` says for every part which."""
        mine = rows[self.reducer.rank]

        def of_rows() -> list[Any]:
            found = []
            for part, first in self._with_first():
                within = slice(*np.searchsorted(mine, [first, first + part.X.shape[0]]))
                found.append(part.X[mine[within] - first])
            return found

        return self._gather(of_rows)

    def find_evidence(self, cls_weight: float, scaling: Scaling) -> Array:
        """Find what naive Bayes says of every document without it."""
        self._bayes = []

        def find(_: Array) -> None:
            for part in self._prepared():
                codes, weights = self._codes_and_weights(part)
                own = np.zeros((len(codes), self._n_classes))
                own[np.arange(len(codes)), codes] = weights
                documents, of_copies = part.copies
                own[documents] = of_copies
                own *= (weights > 0)[:, None]
                found = NaiveBayes(part.X, own, self._loss(part, cls_weight), scaling)
                self._bayes.append((_file(part, found.numerators), _file(part, found.outputs)))

        return self._sum(0, find)

    def multiple_sums(self, cls_weight: float, x: Array) -> Array:
        """Sum up the loss of evidence times x[0] plus intercepts x[1:], and its derivatives."""

        def add(flat: Array) -> None:
            for part, (_, outputs) in zip(self._prepared(), self._bayes, strict=True):
                value, derivatives = multiple_sums(self._loss(part, cls_weight), outputs, x)
                flat[0] += value
                flat[1:] += derivatives.cpu().numpy()

        return self._sum(1 + len(x) + len(x) ** 2, add)

    def keep_evidence(self, multiple: float) -> Array:
        """Give the losses this multiple of the evidence."""

        def keep(_: Array) -> None:
            parts = zip(self._prepared(), self._bayes, strict=True)
            self._evidence = [_file(part, numerators * multiple) for part, (numerators, _) in parts]

        return self._sum(0, keep)

    def loss(self, cls_weight: float, matrix: NDArray[Any]) -> Array:
        """Sum up the gradient by the token matrix, and the loss."""

        def add(flat: Array) -> None:
            point = torch.from_numpy(matrix).to(self._device)
            for part in self._prepared():
                value, gradient = self._loss(part, cls_weight)(point)
                flat[:-1] += gradient.reshape(-1).cpu().numpy()
                flat[-1] += value

        return self._sum(matrix.size + 1, add)

    def curvature(self, cls_weight: float, matrix: NDArray[Any]) -> Array:
        """Sum up the curvature by values and intercepts at the token matrix."""

        def add(flat: Array) -> None:
            point = torch.from_numpy(matrix).to(self._device)
            for part in self._prepared():
                found = self._loss(part, cls_weight).curvature(point)
                flat += found.reshape(-1).cpu().numpy()

        return self._sum(matrix.size - len(matrix), add)

    def selected(self, scores: Array) -> Array:
        """Count in how many documents of positive weight each token is selected."""

        def add(flat: Array) -> None:
            for part in self._prepared():
                present = self._codes_and_weights(part)[1] > 0
                flat += count_selected(scores, part.X if present.all() else part.X[present])

        return self._sum(len(scores), add)

    def loss_derivatives(self, model: FittedAttention) -> Array:
        """Sum up what :func:`~.memory.loss_derivatives` returns, flat."""

        def add(flat: Array) -> None:
            evidence: Any = self._evidence or [None] * len(self._chunked)
            for part, own in zip(self._prepared(), evidence, strict=True):
                own = None if own is None else own.cpu().numpy()
                found = loss_derivatives(model, part.X, *self._codes_and_weights(part), own)
                flat += np.concatenate([np.ravel(numbers) for numbers in found])

        return self._sum(1 + 2 * model.token_matrix().size, add)

    def _gather(self, value: Callable[[], Any]) -> list[tuple[Any, str]]:
        """Gather what `value` returns, None where it fails, and the parts' errors."""
        found = None
        try:
            found = value()
        except Exception as error:
            if self.reducer.size == 1:
                raise
            self.error = f"{type(error).__name__}: {error}"
        return self.reducer.gather((found, self.error))

    def _sum(self, n: int, add: Callable[[Array], None]) -> Array:
        """Return the parts' sum of what `add` adds to zeros, (n,), and the number of failures."""
        flat = np.zeros(n + 1)
        try:
            add(flat[:-1])
        except Exception as error:
            if self.reducer.size == 1:
                raise
            self.error = f"{type(error).__name__}: {error}"
            flat[:-1], flat[-1] = 0.0, 1.0
        return self.reducer.sum(flat)

    def _chunks(self) -> Iterator[Chunk]:
        """Yield the chunks, and release each after its use."""
        assert self._corpus is not None
        for chunk in self._corpus:
            yield chunk
            chunk.release()

    def _prepared(self) -> Iterator[_Prepared]:
        """Yield what the chunks have become, and release each after its use."""
        for part in self._chunked:
            yield part
            part.chunk.release()

    def _in_units(self, X: Any) -> Any:
        if not self._exponent:
            return X
        return csr_of(np.ldexp(X.data, -self._exponent), X.indices, X.indptr, X.shape[1])

    def _with_first(self) -> Iterator[tuple[_Prepared, int]]:
        """Yield :meth:`_prepared` with the number of the first document of each."""
        first = 0
        for part in self._prepared():
            yield part, first
            first += part.X.shape[0]

    def _codes_and_weights(self, part: _Prepared) -> tuple[NDArray[np.intp], Array]:
        """Return classes and weights of a chunk's documents."""
        codes = self._map[part.chunk.codes]
        return codes, part.chunk.weights * self._factors[codes]

    def _loss(self, part: _Prepared, cls_weight: float) -> AttentionLoss:
        """Return the loss of a chunk; that of documents in memory is kept."""
        key = id(part), cls_weight
        loss = self._losses.get(key)
        if loss is None:
            codes, weights = self._codes_and_weights(part)
            nothing = CorpusStatistics.empty(self._n_classes, 0)
            documents = Documents(part.X, codes, weights, nothing)
            loss = documents.loss(part.bag, cls_weight=cls_weight)
            if part.chunk.columns is None:
                self._losses[key] = loss
        if self._evidence is not None:
            loss.evidence = self._evidence[self._chunked.index(part)]
        return loss


@dataclass(eq=False)
class _Prepared:
    """A chunk as it is trained on: its entries, and its bag in the precision of training.

    copies : the documents with copies, and what all copies of each weigh in every class
    """

    chunk: Chunk
    X: Any
    bag: TokenBag
    copies: tuple[NDArray[np.intp], Array] = (np.empty(0, np.intp), np.empty(0))


def _kept(chunk: Chunk, X: Any, stored: Any, dtype: Any = None) -> Any:
    """Return a CSR matrix with its entries where the chunk keeps them, in some precision."""
    data = X.data if dtype is None else X.data.astype(dtype, copy=False)
    if data is stored.data:
        return X
    return csr_of(chunk.keep(data), X.indices, X.indptr, X.shape[1])


def _file(part: _Prepared, tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor of a chunk's documents where the chunk keeps it."""
    if part.chunk.columns is None:
        return tensor
    return _tensor(part.chunk.keep(tensor.cpu().numpy()), tensor.device)
