"""Which class a document is explained for, and against which: F_k - F_j is a sum as well."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .terms import DecisionTerms

Positions = NDArray[np.intp]


def pairs(explanation: DecisionTerms, target: Any, against: Any) -> tuple[Positions, Positions]:
    """Return the positions among `targets` of every document's class and its rival, -1 for none.

    By default the predicted class and the true one where it is known and another, else the
    runner-up; a class that was not predicted is shown against the one that was.
    """
    labels = explanation.targets.tolist()
    shown = _position(labels, target, "target")
    n_documents = len(explanation)
    if len(labels) == 1:
        if against is not None:
            raise ValueError(
                f"against compares two classes of several, and only {labels[0]!r} was explained"
                + ("" if len(explanation.classes) == 2 else ": explain without target")
            )
        return np.zeros(n_documents, dtype=np.intp), np.full(n_documents, -1)
    rival = _position(labels, against, "against")
    if shown is not None and shown == rival:
        raise ValueError(f"target and against must be two classes, got {target!r} twice")
    predicted = _positions(labels, explanation.predicted)
    others = explanation.decision.copy()
    others[np.arange(n_documents), predicted] = -np.inf
    usual = others.argmax(axis=1)
    if explanation.true is not None:
        true = _positions(labels, explanation.true)
        usual = np.where((true >= 0) & (true != predicted), true, usual)
    if shown is not None:
        given = np.full(n_documents, shown)
        if rival is not None:
            return given, np.full(n_documents, rival)
        return given, np.where(given != predicted, predicted, usual)
    if rival is not None:
        given = np.full(n_documents, rival)
        return np.where(given != predicted, predicted, usual), given
    return predicted, usual


def between(one: DecisionTerms, k: int, j: int) -> DecisionTerms:
    """Return one document's terms for the class at position k alone, less those of j unless -1."""

    def of(by_class: Any) -> Any:
        return difference(by_class, np.array([k]), np.array([j]))[..., None]

    without = one.decision_without
    return replace(
        one,
        targets=one.targets[[k]],
        intercept=of(one.intercept[None])[0],
        values=of(one.values),
        contributions=of(one.contributions),
        decision_without=None if without is None else of(without),
        others_contributions=of(one.others_contributions),
        decision=of(one.decision),
        probability=one.probability[:, [k]],
    )


def difference(by_class: Any, k: Positions, j: Positions) -> Any:
    """Return column k less column j unless -1 of (n, n_targets), for `k`, `j` of (n,) or (1,)."""
    rows = np.arange(len(by_class))
    return by_class[rows, k] - np.where(j < 0, 0.0, by_class[rows, j])


def _position(labels: list[Any], label: Any, name: str) -> int | None:
    if label is None:
        return None
    if np.ndim(label) == 0 and label in labels:
        return labels.index(label)
    raise ValueError(f"{name} must be None or one of the classes explained, {labels}: {label!r}")


def _positions(labels: list[Any], of: NDArray[Any]) -> Positions:
    """Return the positions (n,) of labels (n,), -1 for others."""
    places = {label: at for at, label in enumerate(labels)}
    return np.array([places.get(label, -1) for label in of.tolist()], dtype=np.intp)
