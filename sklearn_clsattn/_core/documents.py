"""The documents of a fit: a corpus with its statistics, its copies, a sample of it, its loss."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from .._bags import n_stored, without_unused_columns
from .._types import Array, Numbers
from .chunk import (
    Chunk,
    curvature,
    described,
    loss_and_gradient,
    rows_of,
    selections,
    with_bag,
    with_copies,
    with_loss,
)
from .corpus import Corpus
from .leave_one_out import directions_by_content, numbered, own_weights
from .loss import AttentionLoss
from .statistics import CorpusStatistics

SAMPLE_SIZE = 8_000
"""The approximate maximum number of different documents in a sample."""

LEAST_OF_A_CLASS = 8
"""The minimum number of documents of each class in a sample, if available."""


@dataclass(frozen=True)
class Documents:
    """The documents of a fit.

    corpus : their chunks
    statistics : of all documents
    shape : (n_documents, n_tokens)
    n_entries : stored entries of all
    entry_scale : unit of the counts where the chunks hold them damped, else None
    """

    corpus: Corpus
    statistics: CorpusStatistics
    shape: tuple[int, int]
    n_entries: int
    entry_scale: float | None = None
    # What is found out once, of these documents in any form.
    _known: dict[str, tuple[Numbers, Numbers, Array, Numbers]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @classmethod
    def of(
        cls,
        X: Any,
        codes: Numbers,
        weights: Array,
        n_classes: int,
        *,
        entry_scale: float | None = None,
        members: NDArray[Any] | None = None,
    ) -> Documents:
        """Return documents in memory: CSR or bags, codes and weights, (n_documents,).

        `members` tell of several labels (:class:`.chunk.Chunk`).
        """
        statistics = CorpusStatistics.of(X, codes, n_classes, weights, members)
        corpus = Corpus([Chunk(X, codes, weights, members=members)])
        return cls(corpus, statistics, X.shape, n_stored(X), entry_scale)

    @property
    def _chunk(self) -> Chunk:
        """The only chunk of documents in memory."""
        (chunk,) = self.corpus.chunks
        return chunk

    @property
    def X(self) -> Any:
        """The CSR matrix, or bags, of documents in memory."""
        return self._chunk.X

    @property
    def codes(self) -> Numbers:
        """Class codes of documents in memory, (n_documents,)."""
        return self._chunk.codes

    @property
    def members(self) -> NDArray[Any] | None:
        """Which of several labels documents in memory have (:class:`.chunk.Chunk`)."""
        return self._chunk.members if self.statistics.several else None

    @property
    def weights(self) -> Array:
        """Weights of documents in memory, (n_documents,)."""
        return self._chunk.weights

    @property
    def n_classes(self) -> int:
        """Number of classes, K."""
        return len(self.statistics.class_weights)

    @property
    def n_outputs(self) -> int:
        """1 for two classes, K for K > 2; one for each of several labels."""
        return self.statistics.n_outputs

    @property
    def groups(self) -> Numbers:
        """A number per document, the same for the same documents (:func:`.numbered`)."""
        return self._described()[0]

    def _described(self) -> tuple[Numbers, Numbers, Array, Numbers]:
        """Return groups, codes and weights of all documents, and the first number of each chunk."""
        if "description" not in self._known:
            directions = directions_by_content(self.statistics.shares)
            chunks = self.corpus.gather(described, directions)
            starts = np.cumsum([0, *(len(codes) for _, _, codes, _ in chunks)])
            columns = zip(*chunks, strict=True)
            joined = [part[0] if len(part) == 1 else np.concatenate(part) for part in columns]
            first, second, codes, weights = joined
            self._known["description"] = numbered(first, second), codes, weights, starts
        return self._known["description"]

    def trained_in(self, dtype: type[np.floating[Any]], device: torch.device | str) -> Documents:
        """Return the documents with their bags in some precision on a device."""
        return replace(self, corpus=self.corpus.map(with_bag, dtype, device))

    def attention_loss(
        self, dtype: type[np.floating[Any]], device: torch.device | str, cls_weight: float = 0.0
    ) -> AttentionLoss:
        """Return the sum of the losses of documents in memory, with its bag."""
        loss = CorpusLoss(self.trained_in(dtype, device), dtype, device, cls_weight)
        (chunk,) = loss.corpus.chunks
        return chunk.trained_loss

    def with_copies(self, corpus: Corpus) -> Corpus:
        """Return this corpus with the weights of documents and their copies in each class."""
        groups, codes, weights, starts = self._described()
        copied = np.flatnonzero((np.bincount(groups) > 1)[groups])
        of_copies = np.unique(groups[copied], return_inverse=True)[1]
        members = None if self.members is None else self.members[copied]
        own = own_weights(codes[copied], weights[copied], self.n_classes, of_copies, members)
        return corpus.map(with_copies, starts, copied, of_copies, own)

    def sample(self) -> tuple[int, Documents]:
        """Return the number of different documents, and a sample (:func:`some_of`)."""
        groups, codes, weights, starts = self._described()
        present = np.flatnonzero(weights)
        of_present = np.unique(groups[present], return_inverse=True)[1]
        kinds = codes
        if self.members is not None:  # copies with the same labels
            keys = self.members @ np.random.default_rng(0).random(self.n_classes)
            kinds = np.unique(keys, return_inverse=True)[1]
        of_sample, sample_weights = some_of(
            of_present, codes[present], weights[present], kinds[present]
        )
        rows = present[of_sample]
        matrices = self.corpus.gather(rows_of, starts, rows)
        X = matrices[0] if len(matrices) == 1 else sp.vstack(matrices, format="csr")
        sampled = self._some(X, rows, codes[rows], sample_weights, groups[rows])
        return int(of_present.max(initial=-1)) + 1, sampled

    def largest_class_share(self) -> float:
        """Return the largest class's share of the different documents with positive weight."""
        groups, codes, weights, _ = self._described()
        present, n_codes = weights > 0, int(codes.max(initial=0)) + 1
        pairs = np.unique(groups[present].astype(np.int64) * n_codes + codes[present])
        sizes = np.bincount(pairs % n_codes)
        return float(sizes.max() / sizes.sum())

    def rows(self, rows: Numbers) -> Documents:
        """Return some of the documents in memory, with statistics of their own."""
        weights, groups = self.weights[rows], self.groups[rows]
        return self._some(self.X[rows], rows, self.codes[rows], weights, groups)

    def without_unseen_tokens(self) -> tuple[Documents, Numbers]:
        """Return documents with only their own tokens, and these tokens; all if in chunks."""
        if len(getattr(self.corpus, "chunks", ())) != 1:
            return self, np.arange(self.shape[1])
        X, tokens = without_unused_columns(self.X)
        statistics = replace(self.statistics, shares=self.statistics.shares[:, tokens])
        corpus = Corpus([replace(self._chunk, X=X, columns=None)])
        return replace(self, corpus=corpus, statistics=statistics, shape=X.shape), tokens

    def count_selected(self, scores: Array) -> Numbers:
        """Return the number of documents of positive weight that select each token, (n_tokens,)."""
        counts: Numbers = self.corpus.sum(selections, scores)
        return counts

    def _some(
        self, X: Any, rows: Numbers, codes: Numbers, weights: Array, groups: Numbers
    ) -> Documents:
        """Return documents in memory of known groups."""
        scale, members = self.entry_scale, None if self.members is None else self.members[rows]
        some = Documents.of(X, codes, weights, self.n_classes, entry_scale=scale, members=members)
        some._known["description"] = groups, codes, weights, np.array([0, len(codes)])
        return some


class CorpusLoss:
    """The sum of documents' losses as a function of the token matrix (see :mod:`.loss`).

    The documents have bags in the precision `dtype` on `device`; so is the matrix, (n_tokens + 1,
    1 + n_outputs).
    """

    def __init__(
        self,
        documents: Documents,
        dtype: type[np.floating[Any]],
        device: torch.device | str,
        cls_weight: float,
    ) -> None:
        self.corpus = documents.corpus.map(with_loss, documents.n_outputs, cls_weight)
        self.n_outputs, self.cls_weight = documents.n_outputs, cls_weight
        self.total_weight = documents.statistics.total_weight
        self._shape = documents.shape[1] + 1, 1 + self.n_outputs
        self.dtype = torch.float32 if dtype == np.float32 else torch.float64
        self.device = torch.device(device)

    def zeros(self) -> torch.Tensor:
        """Return a token matrix of zeros."""
        return torch.zeros(self._shape, dtype=self.dtype, device=self.device)

    def __call__(self, matrix: torch.Tensor) -> tuple[float, torch.Tensor]:
        """Return the sum of the losses and its gradient, a new tensor."""
        value, gradient = self.corpus.sum(loss_and_gradient, matrix)
        return value, gradient.to(matrix.dtype)

    def curvature(self, matrix: torch.Tensor) -> torch.Tensor:
        """Return the curvature by values and intercepts, (n_tokens + 1, n_outputs)."""
        return self.corpus.sum(curvature, matrix).to(matrix.dtype)


def some_of(
    groups: Numbers, codes: Numbers, weights: Array, kinds: Numbers
) -> tuple[Numbers, Array]:
    """Return some of the documents, (n,), in their order, and weights of these, (n,).

    `groups`, 0..n-1, are numbered by content. The sample is spread evenly over the strata of
    :func:`class_by_class` and over contents; a document stands for its copies of the same kind, and
    has their weights.
    """
    order, sizes = class_by_class(groups, codes)
    share = min(SAMPLE_SIZE / max(len(order), 1), 1.0)
    wanted = np.minimum(sizes, np.maximum((sizes * share).astype(np.intp), LEAST_OF_A_CLASS))
    place = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    size, want = np.repeat(sizes, sizes), np.repeat(wanted, sizes)
    taken = np.zeros(len(order), dtype=bool)
    taken[order] = (place + 1) * want // size > place * want // size
    rows = np.flatnonzero(taken[groups])
    keys = (groups * (kinds.max(initial=0) + 1) + kinds)[rows]
    _, first, copy_of = np.unique(keys, return_index=True, return_inverse=True)
    by_row = np.argsort(first)
    sums = np.bincount(copy_of, weights[rows], len(first)).astype(np.float64)
    return rows[first[by_row]], sums[by_row]


def class_by_class(groups: Numbers, codes: Numbers) -> tuple[Numbers, Numbers]:
    """Return the groups, stratum by stratum, (n_groups,), and the strata's sizes (n_strata,).

    A stratum is the groups whose documents have the same classes: so groups of documents of
    several classes belong to none of these, whatever their names. Strata are in the order of their
    first groups.
    """
    n_groups, n_classes = int(groups.max(initial=-1)) + 1, int(codes.max(initial=0)) + 1
    # 1) the different pairs of a group and a class
    group, code = np.divmod(np.unique(groups.astype(np.int64) * n_classes + codes), n_classes)
    # 2) a number for each set of classes: the sum of a random number for each class
    numbers = np.random.default_rng(0).random(n_classes)
    set_numbers = np.bincount(group, numbers[code], n_groups)
    # 3) the groups in the order of the first group of their set
    _, first_group, stratum = np.unique(set_numbers, return_index=True, return_inverse=True)
    first_of_stratum = first_group[stratum]
    order = np.lexsort((np.arange(n_groups), first_of_stratum))
    return order, np.unique(first_of_stratum, return_counts=True)[1]
