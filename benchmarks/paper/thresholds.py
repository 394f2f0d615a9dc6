"""What is asked of every statement: one table, written before the runs, the same for all lines."""

from __future__ import annotations

import operator
from dataclasses import dataclass


@dataclass(frozen=True)
class Threshold:
    """A limit, on which side of it a number holds ("≥", "≤" or ">"), and why it is there."""

    sign: str
    limit: float
    what: str
    reason: str

    @property
    def words(self) -> str:
        """The threshold as a table says it."""
        return f"{self.sign} {self.limit:g}"

    def met(self, number: float) -> bool:
        """Return whether a number holds; nan never does."""
        compare = {"≥": operator.ge, "≤": operator.le, ">": operator.gt}[self.sign]
        return bool(compare(number, self.limit))


THRESHOLDS = {
    "monotone": Threshold(
        "≥",
        0.95,
        "means over bins rise",
        "rank correlation; the paper's own tables have 0.986 (two layers) and 0.88, 0.90 (classes)",
    ),
    "arm": Threshold(
        "≥",
        0.9,
        "either arm of a U or V",
        "rank correlation over about ten bins; the paper's own tables have 0.99",
    ),
    "lowest at 0": Threshold("≤", 0.1, "distance of the lowest bin from 0", "one bin's width"),
    "line": Threshold(
        "≥", 0.9, "share of squares on a line through 0", "what a line leaves unexplained is small"
    ),
    "lemma": Threshold(
        "≥", 0.99, "share of squares, of E.v in alpha", "Lemma 4.1 is exact without a dimension"
    ),
    "shrinks": Threshold("≥", 1.0, "ratio of scatter", "below 1 it grows"),
    "below": Threshold(
        "≥", 0.1, "accuracy below everything trained's", "clearly below; the paper's gap is 0.23"
    ),
    "no worse": Threshold(
        "≤",
        0.1,
        "the same of what is said to scatter less",
        "less scatter of a model that has learnt little is no finding",
    ),
    "loss": Threshold("≤", 0.1, "distance from the paper's loss", "the paper gives one digit"),
    "accuracy": Threshold("≥", 0.95, "test accuracy of everything trained", "the paper's number"),
    "not monotone": Threshold(
        "≤", 0.95, "means neither rise nor fall", "the other side of 'means over bins rise'"
    ),
    "flat": Threshold(
        "≤", 0.5, "change left of 0 over rise right of 0", "the paper's table has 0.05"
    ),
    "selection": Threshold(
        "≥", 1.0, "share of documents that select their token", "theorem and lemma say all"
    ),
    "direction": Threshold(
        "≤", 1e-4, "1 less the cosine to the max-margin direction", "the theorem says equal"
    ),
    "turns": Threshold(
        "≤",
        1e-3,
        "1 less the cosine of directions at a way and at twice it",
        "a direction that converges as 1 / way turns by less",
    ),
    "only relevant": Threshold(
        "≥", 0.95, "share of documents that select relevant tokens only", "as for 'means rise'"
    ),
    "persists": Threshold(
        "≥", 0.95, "share of documents that keep their selection", "as for 'means rise'"
    ),
    "first order": Threshold(
        "≤", 0.8, "accuracy on negation of one layer", "three of four combinations, and chance"
    ),
    "solves": Threshold("≥", 0.95, "accuracy on negation of deeper models", "all but noise"),
}
