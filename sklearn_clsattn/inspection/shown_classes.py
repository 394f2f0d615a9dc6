"""The classes that an explanation shows: all, a target, or two of a document that are compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._types import Array, Numbers
from .._validation import encode_labels


@dataclass(frozen=True, eq=False)
class ShownClasses:
    """The explained classes, and the model's outputs that are their decisions."""

    numbers: Numbers  # (n_targets,), of the classes
    outputs: Numbers  # (n_targets,)
    # -1 if the first of two classes is explained, as the model's output is for the second; else 1.
    sign: float

    def select(self, by_output: Array) -> Array:
        """Return numbers for the explained classes (..., n_targets), of (..., n_outputs)."""
        return self.sign * by_output[..., self.outputs] + 0.0  # avoids negative zeros

    def select_any(self, by_output: Array | None) -> Array | None:
        """Return the same, None for None."""
        return None if by_output is None else self.select(by_output)


def shown_classes(classes: NDArray[Any], target: Any, output: int) -> ShownClasses:
    """Return the explained classes: the target, all of several, or the second of two.

    Two classes have one output, the decision for the second, at this number.
    """
    labels = classes.tolist()
    if target is not None:
        numbers = np.array([position(target, labels)])
    elif len(labels) > 2:
        numbers = np.arange(len(labels))
    else:
        numbers = np.array([1])
    if len(labels) > 2:
        return ShownClasses(numbers, outputs=numbers, sign=1.0)
    return ShownClasses(numbers, outputs=np.array([output]), sign=1.0 if numbers[0] else -1.0)


def position(label: Any, labels: list[Any], name: str = "target") -> int:
    """Return the position of a label that was asked for; raise ValueError if it is none of all."""
    if np.ndim(label) or label not in labels:
        raise ValueError(f"{name} must be None or one of the classes {labels}, got {label!r}")
    return labels.index(label)


def with_and_without(
    labels: NDArray[Any], target: Any, true: NDArray[Any] | None
) -> tuple[int, NDArray[Any], NDArray[Any] | None]:
    """Return the number of one of several labels, its two classes, and the true ones.

    The classes are "not" the label and the label, as texts; `true` has the target or all labels.
    """
    names = labels.tolist()
    if np.ndim(target) or target not in names:
        raise ValueError(
            f"Documents have several labels: target must be one of {names}, got {target!r}."
        )
    number = names.index(target)
    classes = np.array([f"not {target}", str(target)], dtype=object)
    if true is None:
        return number, classes, None
    has_label = true if true.ndim == 1 else true[:, number]
    return number, classes, classes[has_label.astype(np.intp)]


def class_pairs(explanation: Any, target: Any) -> tuple[Numbers, Numbers]:
    """Return the positions among `targets` of every document's class and its rival, -1 for none.

    By default, this is the predicted class against the true one if they differ, else against the
    runner-up. A target that was not predicted is compared with the predicted class.
    """
    labels = explanation.targets.tolist()
    n_documents = len(explanation)
    number = None if target is None else position(target, labels)
    if len(labels) == 1:
        return np.zeros(n_documents, dtype=np.intp), np.full(n_documents, -1)
    # 1) The predicted class, and the true one if it was not predicted, else the runner-up.
    predicted = encode_labels(explanation.predicted, labels)
    others = explanation.decision.copy()
    others[np.arange(n_documents), predicted] = -np.inf
    rivals = others.argmax(axis=1)
    if explanation.true is not None:
        true = encode_labels(explanation.true, labels)
        rivals = np.where((true >= 0) & (true != predicted), true, rivals)
    if number is None:
        return predicted, rivals
    # 2) The target, against the predicted class.
    chosen = np.full(n_documents, number)
    return chosen, np.where(chosen != predicted, predicted, rivals)


def difference(by_class: Array, k: Any, j: Any) -> Array:
    """Return ``by_class[:, k] - by_class[:, j]``, (n,), or ``by_class[:, k]`` where j is -1.

    Both k and j are numbers, or arrays (n,) with one for each row.
    """
    rows = np.arange(len(by_class))
    subtracted = np.where(j < 0, 0.0, by_class[rows, j])  # -1 reads the last column, unused
    return by_class[rows, k] - subtracted
