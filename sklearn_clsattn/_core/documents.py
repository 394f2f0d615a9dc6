"""The documents of a fit, and their loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .bag import TokenBag
from .evidence import NaiveBayes
from .fitted import FittedAttention, count_selected, log_losses
from .folds import deal
from .leave_one_out import own_weights, same_documents
from .memory import loss_derivatives
from .objective import AttentionLoss, encode_targets
from .statistics import CorpusStatistics, Scaling

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

    def folds(self, n_folds: int) -> tuple[int, Callable[[int], NDArray[np.bool_]]]:
        """Return how many different documents there are, and what :meth:`split` takes per fold."""
        present = np.flatnonzero(self.weights)
        groups = np.unique(self.groups[present], return_inverse=True)[1]
        folds = np.full(len(self.codes), -1)
        folds[present] = deal(groups, self.codes[present], n_folds)
        return int(groups.max(initial=-1)) + 1, lambda fold: folds == fold

    def split(
        self, held_out: NDArray[np.bool_]
    ) -> tuple[Documents, Callable[[FittedAttention], float]]:
        """Return the documents with a weight of 0 for some, and the mean log loss of these.

        Of a class that is held out altogether nothing can be learned: it is not in the loss.
        """
        kept = self.reweighted(np.where(held_out, 0.0, self.weights))
        judged = self.rows(
            np.flatnonzero(held_out & (kept.statistics.class_weights[self.codes] > 0))
        )

        def mean_loss(model: FittedAttention) -> float:
            if not judged.weights.any():
                return 0.0
            losses = log_losses(model.outputs(judged.X), judged.codes)
            return float(np.average(losses, weights=judged.weights))

        return kept, mean_loss

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
