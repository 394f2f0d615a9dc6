"""What is to be predicted of each document: one label, several labels, or probabilities.

Of every class, a document has a share: 1 or 0 with one label or several, a probability else. All
that training does with targets is linear in these shares: a document with probabilities is worth as
much as one copy of it for each class, weighted by the probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ._types import Array, Numbers

_ROUNDING = 1e-9  # of sums of weights that are compared


@dataclass(frozen=True)
class Targets:
    """The targets of some documents.

    classes : (n_classes,), names of the classes or labels
    values : (n_documents,), the position in `classes` of each document's only label; or shares of
        the classes, (n_documents, n_classes)
    multilabel : whether documents have several labels, of which shares are 1 or 0
    """

    classes: NDArray[Any]
    values: NDArray[Any]
    multilabel: bool = False

    @classmethod
    def from_labels(cls, labels: NDArray[Any]) -> Targets:
        """Return the targets of documents with one label each, (n_documents,)."""
        classes, codes = np.unique(labels, return_inverse=True)
        return cls(classes, codes)

    @classmethod
    def from_several_labels(cls, classes: NDArray[Any], indicator: NDArray[Any]) -> Targets:
        """Return the targets of documents with the labels not 0 in (n_documents, n_classes)."""
        return cls(classes, (indicator != 0).astype(np.float64), multilabel=True)

    @classmethod
    def joined(cls, parts: Sequence[Targets]) -> Targets:
        """Return the targets of several parts, with the same classes, as one."""
        first = parts[0]
        if len(parts) == 1:
            return first
        return replace(first, values=np.concatenate([part.values for part in parts]))

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> Targets:
        """Return the targets of some documents."""
        return replace(self, values=self.values[rows])

    @property
    def has_codes(self) -> bool:
        """Whether each document has one label."""
        return self.values.ndim == 1

    @property
    def kind(self) -> str:
        """What the documents have, in words."""
        if self.has_codes:
            return "one label per document"
        return "several labels" if self.multilabel else "probabilities"

    @property
    def n_classes(self) -> int:
        """Number of classes, or labels, K."""
        return len(self.classes)

    @property
    def n_outputs(self) -> int:
        """1 for two classes, K for K > 2; one for each of several labels."""
        return 1 if self.n_classes == 2 and not self.multilabel else self.n_classes

    def among(self, classes: NDArray[Any]) -> Targets:
        """Return the targets among more classes, (n_more,), sorted; several labels stay."""
        if self.multilabel or np.array_equal(classes, self.classes):
            return self
        positions = np.searchsorted(classes, self.classes).astype(np.intp)
        if self.has_codes and not len(self):  # there may be no classes to index
            return Targets(classes, np.empty(0, np.intp))
        if self.has_codes:
            return Targets(classes, positions[self.values])
        shares = np.zeros((len(self), len(classes)))
        shares[:, positions] = self.values
        return Targets(classes, shares)

    def without_classes(self, left_out: NDArray[np.bool_]) -> Targets:
        """Return the targets without some classes, (n_classes,), that no document is in."""
        if not left_out.any():
            return self
        classes = self.classes[~left_out]
        if self.has_codes:
            new_codes = np.cumsum(~left_out) - 1
            return Targets(classes, new_codes[self.values])
        return replace(self, classes=classes, values=self.values[:, ~left_out])

    def by_class(self, weights: Array) -> Array:
        """Return each document's weight in each class, (n_documents, n_classes)."""
        if not self.has_codes:
            return np.asarray(self.values * weights[:, None])
        by_class = np.zeros((len(self), self.n_classes))
        by_class[np.arange(len(self)), self.values] = weights
        return by_class

    def class_sums(self, numbers: Array) -> Array:
        """Return the sum of numbers, (n_documents,), over the documents of each class."""
        if not self.has_codes:
            return np.asarray(numbers @ self.values)
        return np.bincount(self.values, numbers, self.n_classes).astype(np.float64)

    def weighted(self, factors: Array, weights: Array) -> tuple[Targets, Array]:
        """Return targets and weights, (n_documents,), if classes have factors, (n_classes,).

        A document's weight is then that of its copies, one for each class.
        """
        if self.has_codes:
            return self, weights * factors[self.values]
        # The shares of copies that count more become larger.
        by_class = self.values * factors
        totals = by_class.sum(axis=1)
        return replace(self, values=_shares(by_class, totals)), weights * totals

    def kinds(self) -> Numbers:
        """Return a number for each document, the same for documents that copies can stand for.

        These have the same label or labels. Of documents with probabilities, the mean stands for
        copies.
        """
        if self.has_codes:
            return self.values
        if not self.multilabel:
            return np.zeros(len(self), np.intp)
        # The sum of a random number for each label stands for the set of labels.
        label_numbers = np.random.default_rng(0).random(self.n_classes)
        set_numbers = self.values @ label_numbers
        return np.unique(set_numbers, return_inverse=True)[1]

    def merged(self, first: Numbers, copy_of: Numbers, weights: Array) -> tuple[Targets, Array]:
        """Return the targets, and the summed weights, of documents that stand for their copies.

        `copy_of`, (n_documents,), is the number, 0..n-1, of the document that each one is a copy
        of, all of the same :meth:`kinds`, and `first`, (n,), is its row.
        """
        sums = np.bincount(copy_of, weights, len(first)).astype(np.float64)
        if self.has_codes or self.multilabel:
            return self[first], sums
        by_class = group_sums(self.by_class(weights), copy_of, len(first))
        return replace(self, values=_shares(by_class, sums)), sums

    def class_shares(self, groups: Numbers, weights: Array) -> Array:
        """Return the number of groups in each class, (n_classes,), shared by its documents.

        `groups` number the documents, from 0; all `weights` are positive.
        """
        totals = np.bincount(groups, weights)
        return self.class_sums(weights / totals[groups])

    def rarest_labels(self, weights: Array) -> NDArray[np.bool_]:
        """Return whether a class is the rarest of a document's several labels, by weight.

        The result is (n_documents, n_classes + 1): the last is for documents without labels.
        Labels may be equally rare.
        """
        # 1) the weight of all documents with a label, for each document that has it
        has_label = self.values > 0
        sizes = np.where(has_label, weights @ self.values, np.inf)
        # 2) whether it is the smallest of the document's
        smallest = sizes.min(axis=1, initial=np.inf)
        rarest = has_label & (sizes <= (1.0 + _ROUNDING) * smallest[:, None])
        return np.column_stack([rarest, ~has_label.any(axis=1)])

    def heaviest_classes(self, groups: Numbers, weights: Array) -> tuple[Numbers, Numbers]:
        """Return the pairs of a group and a class in which it weighs most, both (n_pairs,).

        `groups` number the documents, from 0. Of several labels, only the rarest counts; documents
        without any are in a class of their own, n_classes. A group is in several pairs where its
        documents weigh as much in one class as in another.
        """
        n_groups = int(groups.max(initial=-1)) + 1
        # 1) the weight of each group in each class
        if self.has_codes:
            entries = (weights, (groups, self.values))
            by_class = sp.csr_array(entries, shape=(n_groups, self.n_classes))
        elif self.multilabel:
            weight_of_rarest = self.rarest_labels(weights) * weights[:, None]
            by_class = sp.csr_array(group_sums(weight_of_rarest, groups, n_groups))
        else:
            by_class = sp.csr_array(group_sums(self.by_class(weights), groups, n_groups))
        by_class.sum_duplicates()
        # 2) the classes of the largest weight in each group
        group = np.repeat(np.arange(n_groups), np.diff(by_class.indptr))
        largest = np.zeros(n_groups)
        np.maximum.at(largest, group, by_class.data)
        is_heaviest = by_class.data >= (1.0 - _ROUNDING) * largest[group]
        return group[is_heaviest], by_class.indices[is_heaviest].astype(np.intp)


def group_sums(matrix: Array, groups: Numbers, n_groups: int) -> Array:
    """Return the sums of rows, (n_rows, m), by their groups 0..n_groups-1, (n_groups, m)."""
    n_rows = len(groups)
    entries = (np.ones(n_rows), (groups, np.arange(n_rows)))
    indicator = sp.csr_array(entries, shape=(n_groups, n_rows))
    return np.asarray(indicator @ matrix)


def _shares(by_class: Array, totals: Array) -> Array:
    """Divide weights, (n, n_classes), in place by totals, (n,), where a total is positive."""
    totals = totals[:, None]
    return np.divide(by_class, totals, out=by_class, where=totals > 0)
