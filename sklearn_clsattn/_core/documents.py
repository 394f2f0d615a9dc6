"""The documents of a fit: a corpus with its statistics, a sample of it, its loss."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch

from .._bags import n_stored, without_unused_columns
from .._targets import Targets
from .._types import Array, Numbers
from .chunk import Chunk, fingerprints, rows_of, selections
from .corpus import Corpus
from .leave_one_out import LeftOut, directions_by_content, group_duplicates
from .loss import AttentionLoss
from .shard import curvature, loss_and_gradient, make_evidence, make_shard
from .statistics import CorpusStatistics, Scaling

SAMPLE_SIZE = 8_000
"""The approximate maximum number of different documents in a sample."""

LEAST_OF_A_CLASS = 8
"""The minimum number of documents of each class in a sample, if available."""


class _Description(NamedTuple):
    """The groups, targets and weights of all documents, of which chunks have parts.

    groups : (n_documents,), the same number for equal documents (:func:`.group_duplicates`)
    targets, weights : of all documents
    starts : (n_chunks + 1,), the number of each chunk's first document
    """

    groups: Numbers
    targets: Targets
    weights: Array
    starts: Numbers


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
    _cache: dict[str, _Description] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_arrays(
        cls, X: Any, targets: Targets, weights: Array, *, entry_scale: float | None = None
    ) -> Documents:
        """Return documents in memory: CSR or bags, their targets, and weights (n_documents,)."""
        corpus = Corpus([Chunk(X, targets, weights)])
        statistics = CorpusStatistics.from_documents(X, targets, weights)
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
    def targets(self) -> Targets:
        """The targets of documents in memory."""
        return self._chunk.targets

    @property
    def weights(self) -> Array:
        """Weights of documents in memory, (n_documents,)."""
        return self._chunk.weights

    @property
    def n_classes(self) -> int:
        """Number of classes, or labels, K."""
        return self.statistics.n_classes

    @property
    def n_outputs(self) -> int:
        """1 for two classes, K for K > 2; one for each of several labels."""
        return self.statistics.n_outputs

    @property
    def groups(self) -> Numbers:
        """A number per document, the same for the same documents (:func:`.group_duplicates`)."""
        return self._description.groups

    @property
    def _description(self) -> _Description:
        if "description" not in self._cache:
            statistics = self.statistics
            shares = statistics.shares
            if statistics.multilabel:  # some tokens are in documents without labels only
                shares = np.vstack([shares, statistics.token_shares])
            directions = directions_by_content(shares)
            chunks = self.corpus.gather(fingerprints, directions)
            first, second, targets, weights = zip(*chunks, strict=True)
            lengths = list(map(len, weights))
            self._cache["description"] = _Description(
                groups=group_duplicates(np.concatenate(first), np.concatenate(second)),
                targets=Targets.joined(targets),
                weights=np.concatenate(weights),
                starts=np.cumsum([0, *lengths]),
            )
        return self._cache["description"]

    def attention_loss(
        self, dtype: type[np.floating[Any]], device: torch.device | str, cls_weight: float = 0.0
    ) -> AttentionLoss:
        """Return the sum of the losses of documents in memory, with its bag."""
        return make_shard(self._chunk, dtype, device, cls_weight).loss

    def evidence(self, shards: Corpus, scaling: Scaling) -> Corpus:
        """Return the naive Bayes evidence for each document without its copies, by shards."""
        described = self._description
        groups = described.groups
        has_copies = np.bincount(groups) > 1
        copied = np.flatnonzero(has_copies[groups])
        copy_groups = _renumbered(groups[copied])
        targets = described.targets[copied]
        weights = described.weights[copied]
        copies = LeftOut.with_copies(targets, weights, copy_groups)
        return shards.map(make_evidence, scaling, described.starts, copied, copy_groups, copies)

    def sample(self) -> tuple[int, Documents]:
        """Return the number of different documents, and a sample (:func:`stratified_sample`)."""
        described = self._description
        present = np.flatnonzero(described.weights)
        targets = described.targets[present]
        weights = described.weights[present]
        groups = _renumbered(described.groups[present])
        n_different = int(groups.max(initial=-1)) + 1
        # 1) some of the documents, with all copies
        sampled = stratified_sample(groups, targets, weights)
        # 2) one document in place of its copies of the same kind, in the order of the first
        kinds = targets.kinds()[sampled]
        keys = groups[sampled] * (kinds.max(initial=0) + 1) + kinds
        _, first, copy_of = np.unique(keys, return_index=True, return_inverse=True)
        order = np.argsort(first)
        first = first[order]
        place = np.argsort(order)
        targets, weights = targets[sampled].merged(first, place[copy_of], weights[sampled])
        # 3) their bags
        rows = present[sampled[first]]
        matrices = self.corpus.gather(rows_of, described.starts, rows)
        X = matrices[0] if len(matrices) == 1 else sp.vstack(matrices, format="csr")
        return n_different, self._described(X, targets, weights, described.groups[rows])

    def largest_class_share(self) -> float:
        """Return the largest class's share of the different documents with positive weight."""
        described = self._description
        present = np.flatnonzero(described.weights)
        targets = described.targets[present]
        groups = _renumbered(described.groups[present])
        by_class = targets.class_shares(groups, described.weights[present])
        return float(by_class.max() / by_class.sum())

    def rows(self, rows: Numbers) -> Documents:
        """Return some of the documents in memory, with statistics of their own."""
        targets = self.targets[rows]
        return self._described(self.X[rows], targets, self.weights[rows], self.groups[rows])

    def without_unseen_tokens(self) -> tuple[Documents, Numbers]:
        """Return documents with only their own tokens, and these tokens; all if in chunks."""
        if len(getattr(self.corpus, "chunks", ())) != 1:
            return self, np.arange(self.shape[1])
        X, tokens = without_unused_columns(self.X)
        corpus = Corpus([replace(self._chunk, X=X, transposed=None)])
        statistics = self.statistics.of_tokens(tokens)
        documents = replace(self, corpus=corpus, statistics=statistics, shape=X.shape)
        return documents, tokens

    def count_selected(self, scores: Array) -> Numbers:
        """Return the number of documents of positive weight that select each token, (n_tokens,)."""
        counts: Numbers = self.corpus.sum(selections, scores)
        return counts

    def _described(self, X: Any, targets: Targets, weights: Array, groups: Numbers) -> Documents:
        """Return documents in memory whose groups are not to be looked for again."""
        documents = Documents.from_arrays(X, targets, weights, entry_scale=self.entry_scale)
        starts = np.array([0, len(weights)])
        documents._cache["description"] = _Description(groups, targets, weights, starts)
        return documents


class CorpusLoss:
    """The sum of documents' losses as a function of the token matrix (see :mod:`.loss`).

    Bags and token matrix, (n_tokens + 1, 1 + n_outputs), are in the precision `dtype` on `device`.
    """

    def __init__(
        self,
        documents: Documents,
        dtype: type[np.floating[Any]],
        device: torch.device | str,
        cls_weight: float,
    ) -> None:
        self.shards = documents.corpus.map(make_shard, dtype, device, cls_weight)
        self.n_outputs = documents.n_outputs
        self.cls_weight = cls_weight
        self.total_weight = documents.statistics.total_weight
        self._shape = documents.shape[1] + 1, 1 + self.n_outputs
        self.dtype = torch.float32 if dtype == np.float32 else torch.float64
        self.device = torch.device(device)

    def zeros(self) -> torch.Tensor:
        """Return a token matrix of zeros."""
        return torch.zeros(self._shape, dtype=self.dtype, device=self.device)

    def __call__(self, matrix: torch.Tensor) -> tuple[float, torch.Tensor]:
        """Return the sum of the losses and its gradient, a new tensor."""
        value, gradient = self.shards.sum(loss_and_gradient, matrix)
        return value, gradient.to(matrix.dtype)

    def curvature(self, matrix: torch.Tensor) -> torch.Tensor:
        """Return the curvature by values and intercepts, (n_tokens + 1, n_outputs)."""
        return self.shards.sum(curvature, matrix).to(matrix.dtype)


def stratified_sample(groups: Numbers, targets: Targets, weights: Array) -> Numbers:
    """Return the rows of some of the documents, with all their copies, ascending.

    `groups`, (n_documents,), 0..n-1, are numbered by content. The sample is spread evenly over the
    strata of :func:`strata`, and over contents.
    """
    order, sizes = strata(groups, targets, weights)
    n_groups = len(order)
    # 1) how many groups to take of each stratum
    fraction = min(SAMPLE_SIZE / max(n_groups, 1), 1.0)
    sample_sizes = np.maximum((sizes * fraction).astype(np.intp), LEAST_OF_A_CLASS)
    sample_sizes = np.minimum(sizes, sample_sizes)
    # 2) each group's place in its stratum, the stratum's size and that of its sample
    place = np.arange(n_groups) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    size = np.repeat(sizes, sizes)
    sample_size = np.repeat(sample_sizes, sizes)
    # 3) the groups at evenly spaced places
    is_sampled = np.zeros(n_groups, dtype=bool)
    is_sampled[order] = (place + 1) * sample_size // size > place * sample_size // size
    return np.flatnonzero(is_sampled[groups])


def strata(groups: Numbers, targets: Targets, weights: Array) -> tuple[Numbers, Numbers]:
    """Return the groups, stratum by stratum, (n_groups,), and the strata's sizes (n_strata,).

    A stratum has the groups that weigh most in the same class, or in the same classes equally, so
    that the names of the classes have no influence. Strata are in the order of their first groups.
    """
    n_groups = int(groups.max(initial=-1)) + 1
    # 1) a number for each set of classes: the sum of a random number for each class
    group, code = targets.heaviest_classes(groups, weights)
    class_numbers = np.random.default_rng(0).random(targets.n_classes + 1)
    set_numbers = np.bincount(group, class_numbers[code], n_groups)
    # 2) the groups in the order of the first group of their set
    _, first_group, stratum = np.unique(set_numbers, return_index=True, return_inverse=True)
    first_of_stratum = first_group[stratum]
    order = np.lexsort((np.arange(n_groups), first_of_stratum))
    _, sizes = np.unique(first_of_stratum, return_counts=True)
    return order, sizes


def _renumbered(groups: Numbers) -> Numbers:
    """Return the numbers of groups, (n_documents,), as 0, 1, 2, ... without gaps."""
    return np.unique(groups, return_inverse=True)[1]
