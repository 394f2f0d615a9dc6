"""All classes side by side: what the strongest tokens of a document add to each decision."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .formatting import label_text
from .terms import DecisionTerms


@dataclass(frozen=True)
class ClassRow:
    """A class of the table: its decision is the sum of `terms`."""

    label: str
    probability: float
    decision: float
    terms: list[float]  # the intercept, the tokens listed, all others
    remark: str  # "predicted", "true" or ""


@dataclass(frozen=True)
class ClassTable:
    """The classes of one document, the most probable first, and the tokens that are listed."""

    tokens: list[str]
    n_others: int  # tokens that are not listed
    rows: list[ClassRow]


def class_table(one: DecisionTerms, top: int) -> ClassTable:
    """Return one document's table, of the `top` tokens that tell probable classes apart most."""
    added = one.contributions
    # How far a token moves the classes apart, by how probable they are.
    shares = one.probability[0]
    apart = np.abs(added - (added @ shares)[:, None]) @ shares
    order = np.argsort(-apart, kind="stable")
    listed, left = order[:top], order[top:]
    others = added[left].sum(axis=0) + one.others_contributions[0]
    terms = np.vstack([one.intercept, added[listed], others])
    labels: Sequence[Any] = one.targets.tolist()
    remarks = {} if one.true is None else {one.true.tolist()[0]: "true"}
    remarks[one.predicted.tolist()[0]] = "predicted"
    return ClassTable(
        tokens=[str(name) for name in one.tokens[listed]],
        n_others=len(left) + int(one.others_count[0]),
        rows=[
            ClassRow(
                label=label_text(labels[k]),
                probability=float(one.probability[0, k]),
                decision=float(one.decision[0, k]),
                terms=terms[:, k].tolist(),
                remark=remarks.get(labels[k], ""),
            )
            for k in np.argsort(-one.decision[0], kind="stable").tolist()
        ],
    )
