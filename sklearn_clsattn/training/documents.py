"""The documents of a fit, in memory.

:mod:`sklearn_clsattn.dask` has those of a cluster.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch

from .._bags import Bags
from .._targets import Targets
from .._types import Array, Numbers
from .fitted_model import count_selected
from .folds import group_duplicates, joined_groups, near_copies, projections, sampled_rows
from .leave_one_out import Evidence, Grouped, left_out
from .loss import AttentionLoss
from .statistics import CorpusStatistics, Scaling
from .trusted_words import Trust, trust_in


@dataclass(frozen=True, eq=False)
class Documents:
    """Documents: their bags, targets and weights, (n_documents,).

    entry_scale : unit of the counts where the bags hold them damped, else None
    given_groups : a number per document, the same for documents that are held out together
    """

    bags: Bags
    targets: Targets
    weights: Array
    entry_scale: float | None = None
    given_groups: Numbers | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of documents and of tokens."""
        return self.bags.shape

    def class_sizes(self) -> Array:
        """Return the weights of the classes, (n_classes,)."""
        return self.targets.class_sums(self.weights)

    def entry_sums(self) -> Array:
        """Return the weighted sums of the entries and of their numbers, (2,)."""
        sum_of_entries = self.bags.totals() @ self.weights
        n_entries = self.bags.estimated_lengths() @ self.weights
        return np.array([sum_of_entries, n_entries])

    @property
    def is_damped(self) -> bool:
        """Whether a vectorizer has damped the counts already."""
        return self.bags.is_damped

    @property
    def entry_type(self) -> np.dtype[Any]:
        """The type of the entries."""
        return self.bags.dtype

    @property
    def largest_entry(self) -> float:
        """The largest entry, or an upper bound of it."""
        return self.bags.largest_entry

    def with_class_factors(self, factors: Array) -> Documents:
        """Return documents whose weights are multiplied by factors of classes, (n_classes,)."""
        targets, weights = self.targets.weighted(factors, self.weights)
        return replace(self, targets=targets, weights=weights)

    def damped(self, scale: float, dtype: type[np.floating[Any]]) -> Documents:
        """Return documents with damped entries, whose unit is `scale`, in a precision."""
        return replace(self, bags=self.bags.damped(scale, dtype), entry_scale=scale)

    @cached_property
    def statistics(self) -> CorpusStatistics:
        """Sums over the documents."""
        return CorpusStatistics.from_documents(self.bags, self.targets, self.weights)

    @cached_property
    def trust(self) -> Trust | None:
        """What people say of the tokens, if they do."""
        return None if self.bags.trusted is None else trust_in(self.bags.trusted, self.targets)

    @cached_property
    def copies(self) -> Numbers:
        """A number per document, the same for documents with the same bags, (n_documents,)."""
        return group_duplicates(*self._projected)

    @cached_property
    def _projected(self) -> Array:
        """The projections of the bags, (2, n_documents)."""
        return projections(self.bags)

    @cached_property
    def near_groups(self) -> Numbers:
        """A number per document, the same for copies and near-copies, (n_documents,)."""
        return near_copies(self.bags, self._projected, self.copies, self.weights)

    @cached_property
    def held_together(self) -> Numbers:
        """A number per document, the same for those that are held out together, (n_documents,)."""
        numbers = self.near_groups
        return numbers if self.given_groups is None else joined_groups(numbers, self.given_groups)

    def attention_loss(
        self, dtype: type[np.floating[Any]], device: torch.device | str, cls_weight: float = 0.0
    ) -> AttentionLoss:
        """Return the sum of the documents' losses, in a precision and on a device."""
        return AttentionLoss(
            self.bags,
            self.targets,
            self.weights,
            dtype=dtype,
            device=device,
            cls_weight=cls_weight,
        )

    def evidence(self, loss: AttentionLoss, scaling: Scaling) -> Evidence:
        """Return the naive Bayes evidence for each document, without it, its copies and group."""
        by_class, weights = left_out(self.targets, self.weights, self.copies)
        n_together = np.bincount(self.held_together)[self.held_together]
        n_copies = np.bincount(self.copies)[self.copies]
        rows = np.flatnonzero(n_together > n_copies)
        own = self.targets[rows].shares() * self.weights[rows, None], self.weights[rows]
        grouped = Grouped(rows, self.held_together[rows], *own)
        return Evidence(loss, self.bags, by_class, weights, scaling, grouped)

    def sample(self) -> tuple[int, Documents]:
        """Return the number of different documents, and some documents with all their copies."""
        n_different, rows = sampled_rows(self.copies, self.targets, self.weights)
        return n_different, self.rows(rows)

    def rows(self, rows: Numbers) -> Documents:
        """Return some of the documents."""
        given = None if self.given_groups is None else self.given_groups[rows]
        some = Documents(
            self.bags[rows], self.targets[rows], self.weights[rows], self.entry_scale, given
        )
        # Numbers by content stay valid: those that are known need not be found again.
        known = self.__dict__.keys() & {"copies", "near_groups"}
        some.__dict__.update({name: getattr(self, name)[rows] for name in known})
        return some

    def without_unseen_tokens(self) -> tuple[Documents, Numbers]:
        """Return documents with only their own tokens, and these tokens."""
        bags, tokens = self.bags.without_unused_columns()
        documents = replace(self, bags=bags)
        # Tokens of no document change neither other sums nor which documents are copies.
        documents.__dict__["statistics"] = self.statistics.of_tokens(tokens)
        documents.__dict__["copies"] = self.copies
        documents.__dict__["near_groups"] = self.near_groups
        return documents, tokens

    def count_selected(self, scores: Array) -> Numbers:
        """Return the number of documents of positive weight that select each token, (n_tokens,)."""
        bags = self.bags
        if not self.weights.all():
            bags = bags[np.flatnonzero(self.weights)]
        return count_selected(scores, bags)
