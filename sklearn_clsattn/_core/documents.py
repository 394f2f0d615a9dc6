"""The documents of a fit, and their loss."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .bag import TokenBag
from .leave_one_out import same_documents
from .objective import AttentionLoss, Reduce, encode_targets
from .statistics import CorpusStatistics

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Documents:
    """The documents of a fit.

    X : CSR (n_documents, n_tokens), token weights in canonical format
    codes : (n_documents,), class codes 0..K-1
    weights : (n_documents,), document weights, class weights included
    statistics : of all documents, of which these may be a part
    entry_scale : unit of the counts where `X` holds them damped, else None
    unit : what `X` and `entry_scale` were divided by, a power of two
    """

    X: Any
    codes: NDArray[np.intp]
    weights: Array
    statistics: CorpusStatistics
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
    def groups(self) -> NDArray[np.intp]:
        """A number per document, the same for the same documents (:func:`same_documents`)."""
        # Not a cached_property: before Python 3.12 all instances in all threads share its lock.
        if "_groups" not in self.__dict__:
            self.__dict__["_groups"] = same_documents(self.X)
        groups: NDArray[np.intp] = self.__dict__["_groups"]
        return groups

    def rows(self, rows: NDArray[np.intp]) -> Documents:
        """Return some of the documents; the statistics stay those of all."""
        return replace(self, X=self.X[rows], codes=self.codes[rows], weights=self.weights[rows])

    def reweighted(self, weights: Array) -> Documents:
        """Return the documents with other weights, (n_documents,), and the statistics of these."""
        statistics = CorpusStatistics.of(self.X, self.codes, self.n_classes, weights)
        others = replace(self, weights=weights, statistics=statistics)
        others.__dict__["_groups"] = self.groups  # of the same X
        return others

    def bag(self, dtype: type[np.floating[Any]], device: torch.device | str) -> TokenBag:
        """Return the documents as a :class:`TokenBag` in some precision on a device."""
        return TokenBag(self.X, dtype=dtype, device=device)

    def loss(
        self, bag: TokenBag, *, cls_weight: float = 0.0, reduce: Reduce | None = None
    ) -> AttentionLoss:
        """Return the sum of the documents' losses as a function of the token matrix."""
        weights = torch.from_numpy(np.array(self.weights, dtype=np.float64))
        return AttentionLoss(
            bag,
            encode_targets(self.codes, self.n_classes, bag.device),
            weights.to(bag.device),
            self.n_outputs,
            cls_weight=cls_weight,
            reduce=reduce,
        )
