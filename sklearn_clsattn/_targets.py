"""What is to be predicted of each document: one label, several labels, or probabilities.

Of every class, a document has a share: 1 or 0 with one label or several, a probability else. All
that training does with targets is linear in these shares: a document with probabilities is worth as
much as one copy of it for each class, weighted by the probability.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ._matrices import safe_divide
from ._types import Array, Numbers


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
    def from_probabilities(cls, classes: NDArray[Any], probabilities: NDArray[Any]) -> Targets:
        """Return the targets of documents with probabilities, (n_documents, n_classes)."""
        order = np.argsort(classes, kind="stable")  # scikit-learn's classes are sorted
        sums = probabilities.sum(axis=1, keepdims=True)
        shares = probabilities[:, order] / sums
        return cls(classes[order], np.ascontiguousarray(shares))

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

    @property
    def has_rivals(self) -> bool:
        """Whether outputs are those of classes of which a document has one."""
        return self.n_outputs > 1 and not self.multilabel

    def recoded(self, classes: NDArray[Any]) -> Targets:
        """Return the targets among more classes, (n_more,), sorted; several labels stay."""
        if self.multilabel or np.array_equal(classes, self.classes):
            return self
        positions = np.searchsorted(classes, self.classes).astype(np.intp)
        if self.has_codes:
            codes = positions[self.values] if len(self) else self.values
            return Targets(classes, codes)
        shares = np.zeros((len(self), len(classes)))
        shares[:, positions] = self.values
        return Targets(classes, shares)

    def shares(self) -> Array:
        """Return the share of each class, (n_documents, n_classes)."""
        if not self.has_codes:
            return np.asarray(self.values, dtype=np.float64)
        return np.eye(self.n_classes)[self.values]

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
        divisors = totals[:, None]
        shares = np.divide(by_class, divisors, out=by_class, where=divisors > 0)
        return replace(self, values=shares), weights * totals

    def strata(self, weights: Array) -> Numbers:
        """Return the class of each document, (n_documents,), by which documents are held out.

        Of several labels it is the rarest, and n_classes for a document without any. Of other
        shares it is the class with the largest, and n_classes for equal ones.
        """
        if self.has_codes:
            return self.values
        # 1) several labels: the rarest, or a column of none after the others
        if self.multilabel:
            label_weights = weights @ self.values
            rarity = safe_divide(1.0, label_weights) * (self.values > 0)
            has_none = rarity.max(axis=1, initial=0.0) == 0
            with_none = np.column_stack([rarity, has_none])
            return np.asarray(with_none.argmax(axis=1))
        # 2) other shares: the largest, if it is the only one
        largest = self.values.max(axis=1, keepdims=True)
        is_largest = self.values == largest
        classes = is_largest.argmax(axis=1)
        n_largest = is_largest.sum(axis=1)
        classes[n_largest > 1] = self.n_classes
        return classes


def group_sums(matrix: Array, groups: Numbers, n_groups: int) -> Array:
    """Return the sums of rows, (n_rows, ...), by their groups 0..n_groups-1, (n_groups, ...)."""
    n_rows = len(groups)
    places = groups, np.arange(n_rows)
    indicator = sp.csr_array((np.ones(n_rows), places), shape=(n_groups, n_rows))
    return np.asarray(indicator @ matrix)
