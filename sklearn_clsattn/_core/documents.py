"""The documents of a fit, and their loss."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .._blocks import csr_of
from .bag import TokenBag
from .evidence import NaiveBayes
from .fitted import FittedAttention, count_selected
from .folds import sample
from .leave_one_out import directions_by_content, own_weights, same_documents
from .memory import loss_derivatives
from .objective import AttentionLoss, encode_targets
from .statistics import CorpusStatistics, Scaling

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Documents:
    """The documents of a fit.

    X : CSR (n_documents, n_tokens), positive token weights, every entry stored once
    codes : (n_documents,), class codes 0..K-1
    weights : (n_documents,), document weights, class weights included
    statistics : of all documents, of which these may be a part
    entry_scale : unit of the counts where `X` holds them damped, else None
    unit : what `X` and `entry_scale` were divided by, a power of two
    columns : the transpose of `X` as CSR, if there is one already
    """

    X: Any
    codes: NDArray[np.intp]
    weights: Array
    statistics: CorpusStatistics
    entry_scale: float | None = None
    unit: float = 1.0
    columns: Any = None

    @property
    def n_classes(self) -> int:
        """Number of classes, K."""
        return len(self.statistics.class_weights)

    @property
    def n_outputs(self) -> int:
        """1 for two classes, K for K > 2."""
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of documents and tokens."""
        return int(self.X.shape[0]), int(self.X.shape[1])

    @property
    def n_multiplications(self) -> int:
        """How many a product with a token matrix takes."""
        return int(self.X.nnz) * (1 + self.n_outputs)

    @property
    def groups(self) -> NDArray[np.intp]:
        """A number per document, the same for the same documents (:func:`same_documents`)."""
        # Not a cached_property: before Python 3.12 all instances in all threads share its lock.
        if "_groups" not in self.__dict__:
            directions = directions_by_content(self.statistics.shares)
            self.__dict__["_groups"] = same_documents(self.X, directions)
        groups: NDArray[np.intp] = self.__dict__["_groups"]
        return groups

    def reweighted(self, weights: Array) -> Documents:
        """Return the documents with other weights, (n_documents,), and the statistics of these."""
        statistics = CorpusStatistics.of(self.X, self.codes, self.n_classes, weights)
        others = replace(self, weights=weights, statistics=statistics)
        others.__dict__["_groups"] = self.groups  # of the same X
        return others

    def bag(self, dtype: type[np.floating[Any]], device: torch.device | str) -> TokenBag:
        """Return the documents as a :class:`TokenBag` in some precision on a device."""
        return TokenBag(self.X, dtype=dtype, device=device, columns=self.columns)

    def loss(self, bag: TokenBag, *, cls_weight: float = 0.0) -> AttentionLoss:
        """Return the sum of the documents' losses as a function of the token matrix."""
        weights = torch.from_numpy(np.array(self.weights, dtype=np.float64))
        return AttentionLoss(
            bag,
            encode_targets(self.codes, self.n_classes, bag.device),
            weights.to(bag.device),
            self.n_outputs,
            cls_weight=cls_weight,
        )

    def naive_bayes(self, loss: AttentionLoss, scaling: Scaling) -> NaiveBayes:
        """Return what naive Bayes says of every document without it, for :mod:`.prior_mean`."""
        own = own_weights(self.codes, self.weights, self.n_classes, self.groups)[self.groups]
        own *= (self.weights > 0)[:, None]
        return NaiveBayes(self.X, own, loss, scaling)

    def sample(self) -> tuple[int, Documents]:
        """Return how many different documents there are, and a sample (:func:`.folds.sample`)."""
        present = np.flatnonzero(self.weights)
        groups = np.unique(self.groups[present], return_inverse=True)[1]
        rows, weights = sample(groups, self.codes[present], self.weights[present])
        return int(groups.max(initial=-1)) + 1, self.rows(present[rows], weights)

    def keep_alive(self) -> None:
        """Do nothing: there are no other parts, which would wait."""

    def rows(self, rows: NDArray[np.intp], weights: Array | None = None) -> Documents:
        """Return some of the documents, with weights, (n,), and statistics of their own."""
        X, codes = self.X[rows], self.codes[rows]
        weights = self.weights[rows] if weights is None else weights
        statistics = CorpusStatistics.of(X, codes, self.n_classes, weights)
        some = Documents(X, codes, weights, statistics, self.entry_scale, self.unit)
        some.__dict__["_groups"] = self.groups[rows]
        return some

    def without_unseen_tokens(self) -> tuple[Documents, NDArray[np.intp]]:
        """Return the documents with columns for their own tokens alone, and which these are."""
        X = self.X
        seen = np.bincount(X.indices, minlength=X.shape[1]) > 0
        seen[:1] = True  # a matrix has a column
        tokens = np.flatnonzero(seen)
        numbers = np.cumsum(seen, dtype=X.indices.dtype) - 1
        X = csr_of(X.data, numbers[X.indices], X.indptr, len(tokens))
        statistics = replace(self.statistics, shares=self.statistics.shares[:, tokens])
        some = replace(self, X=X, statistics=statistics, columns=None)
        some.__dict__["_groups"] = self.groups
        return some, tokens

    def count_selected(self, scores: Array) -> NDArray[np.intp]:
        """Return in how many documents of positive weight each token is selected, (n_tokens,)."""
        present = self.weights > 0
        return count_selected(scores, self.X if present.all() else self.X[present])

    def loss_derivatives(
        self, model: FittedAttention, loss: AttentionLoss
    ) -> tuple[float, Array, Array]:
        """Return :func:`~.memory.loss_derivatives`, with the evidence of `loss`."""
        evidence = None if loss.evidence is None else loss.evidence.cpu().numpy()
        return loss_derivatives(model, self.X, self.codes, self.weights, evidence)
