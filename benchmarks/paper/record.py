"""What is stated and asked, what was measured, and whether it holds: one row per line measured."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Statement:
    """A statement of the paper or its reviews, what is asked of it, and the paper's own number.

    An empty `sign` asks nothing: numbers are reported. "to" asks for `limit` to `most`.
    """

    words: str
    sign: str = ""
    limit: float = float("nan")
    paper: str = ""
    most: float = float("nan")

    @property
    def asked(self) -> str:
        """What is asked, as the table says it."""
        if self.sign == "to":
            return f"{self.limit:g} to {self.most:g}"
        return f"{self.sign} {self.limit:g}" if self.sign else "–"

    def holds(self, number: float) -> bool:
        """Return whether a number meets the threshold; NaN never does."""
        if self.sign == "to":
            return self.limit <= number <= self.most
        return bool(number >= self.limit if self.sign == "≥" else number <= self.limit)


STATEMENTS = {
    # Synthetic data
    "synthetic line": Statement(
        "Synthetic data: E.v on a line through the origin, share of squares", "≥", 0.9
    ),
    "synthetic rises": Statement("Synthetic data: means of E.v rise", "≥", 0.95),
    "synthetic V": Statement(
        "Synthetic data: E.p is a V, rank correlation of its worse arm", "≥", 0.9
    ),
    "synthetic lowest": Statement("Synthetic data: distance of its lowest bin from 0", "≤", 0.1),
    "synthetic accuracy": Statement("Synthetic data: test accuracy"),
    # Reviews
    "rises": Statement(
        "Everything trained: means of E.v rise, rank correlation", "≥", 0.95, "0.99 (two layers)"
    ),
    "U": Statement("Everything trained: E.p is a U, worse arm", "≥", 0.9, "0.99 (two layers)"),
    "accuracy": Statement("Everything trained: test accuracy", "≥", 0.95, "about 0.95"),
    "other accuracy": Statement("Trained otherwise: test accuracy"),
    "trained loss": Statement(
        "Everything trained: distance of the test loss from the paper's", "≤", 0.1, "0.1"
    ),
    "scatter E.v": Statement("One step on E: scatter of E.v shrinks, ratio", "to", 4, "8", 16),
    "scatter E.p": Statement("One step on E: scatter of E.p shrinks, ratio", "to", 3, "6", 12),
    "scatter over range": Statement(
        "One step on E: the same relative to the range of the means", "≥", 1.0
    ),
    "one step rises": Statement("One step on E: means of E.v rise", "≥", 0.95),
    "one step variants": Statement("One step on E, otherwise: ratios of scatter of E.v and E.p"),
    "one step worse": Statement("One step on E: accuracy below everything trained's", "≤", 0.1),
    "frozen below": Statement(
        "Frozen E: accuracy below everything trained's", "≥", 0.1, "about 0.23"
    ),
    "frozen loss": Statement(
        "Frozen E: distance of the test loss from the paper's", "≤", 0.1, "0.6"
    ),
    "frozen descent": Statement("Frozen E by gradient descent: test accuracy", paper="about 0.72"),
    "two layers rises": Statement("Two layers: means of E.v rise", "≥", 0.95, "0.986"),
    "two layers U": Statement("Two layers: E.W2 p is a U, worse arm", "≥", 0.9, "0.99"),
    "two layers E.p": Statement(
        "Two layers: E.W2 p at the left end, lowest, right end", paper="15.5, -3.9, 12.4"
    ),
    "two layers E.v": Statement("Two layers: E.v at the ends", paper="-1.07, 0.93"),
    "mlp U": Statement("MLP: E.p is a U, worse arm", "≥", 0.9, "0.99"),
    "mlp E.v": Statement("MLP: E.v neither rises nor falls", "≤", 0.95, "0.665"),
    "mlp output": Statement("MLP: outputs of one-token documents rise", "≥", 0.95),
    "mlp E.p": Statement("MLP: E.p at the left end, lowest, right end", paper="4.8, 0.6, 6.1"),
    "stars": Statement(
        "Four classes: means of E.v_k rise with the importance for class k", "≥", 0.95, "0.88, 0.90"
    ),
    # Lemma 4.1
    "lemma line": Statement(
        "Lemma 4.1 on reviews, d = 2,048: E.v on the line of eta alpha / 2, share of squares",
        "≥",
        0.9,
    ),
    "lemma error": Statement(
        "The same for K classes: largest error of a step over eta, times the root of d", "≤", 1.0
    ),
    # The theorem
    "theorem selection": Statement(
        "Theorem 4.3: documents that select their relevant token, share", "≥", 1.0, "1"
    ),
    "theorem direction": Statement(
        "Theorem 4.3: error of the program's direction, of the selection that was reached"
    ),
    "flow direction": Statement(
        "Theorem 4.3: 1 less the cosine of the flow's p to the max-margin direction, at a way of "
        "300",
        "≤",
        1e-3,
        "0",
    ),
    "descent direction": Statement(
        "The same for normalised descent, after 3,000 steps", "≤", 1e-4, "0"
    ),
    "norm": Statement(
        "The length of p grows like the logarithm of time, share of squares", "≥", 0.99, "1"
    ),
    "with v": Statement(
        "Documents that select the same if v is trained with p", "≥", 1.0, "the same"
    ),
    "large step": Statement(
        "Lemma: the same share for a large eta_0 (256 times the usual)", "≥", 1.0, "1"
    ),
    "other steps": Statement("The same share for other eta_0"),
    "map": Statement("Map over d, n, T, vocabulary: the same share at values of 16", "≥", 1.0, "1"),
    "map below": Statement("Map: the same share at smaller values"),
    "map certified": Statement("Map: smallest value with n L(p0) < log 2"),
    "map settled": Statement("Map: share of flows that settle"),
    "several": Statement("Two relevant tokens a document: selected, share of documents"),
    "partly": Statement(
        "Partly relevant tokens: documents that select relevant tokens only", "≥", 0.95
    ),
    "turns": Statement("1 less the cosine of p's directions at a way of 60 and of 120", "≤", 1e-3),
    "negation, one layer": Statement("Negation: accuracy of one layer", "≤", 0.8),
    "negation, deeper": Statement("Negation: accuracy of two layers, or with an MLP", "≥", 0.95),
    "after p": Statement("Documents that keep their selection as E is trained after p", "≥", 0.95),
    "after p, v": Statement("The same as v alone is trained, which cannot change it"),
    "distance": Statement("Distance of documents from Assumption 1, mean"),
}

# Why lines fail, in four words: by the statement and a part of the line.
REASONS = {
    ("synthetic line", "full batch"): "optimiser: Adam flattens ends",
    ("synthetic rises", "full batch"): "optimiser: Adam flattens ends",
    ("rises", "Adam on E, p, v"): "optimiser: Adam flattens ends",
    ("accuracy", ""): "paper names no data",
    ("trained loss", ""): "paper names no data",
    ("scatter E.v", ""): "depends on stopping: ours",
    ("scatter E.p", ""): "depends on stopping: ours",
    ("scatter over range", ""): "wrong claim of ours",
    ("one step worse", ""): "wrong claim of ours",
    ("one step rises", ""): "wrong claim of ours",
    ("two layers U", ""): "open: lowest near end",
    ("mlp E.v", ""): "open: depends on start",
    ("lemma line", ""): "finite dimension: rare tokens",
    ("theorem selection", "d ="): "finite dimension: random start",
    ("with v", ""): "outside theorem: v trained",
    ("large step", "d ="): "finite dimension: random start",
    ("map", "d ="): "finite dimension: random start",
    ("partly", ""): "open: outside the theorem",
    ("turns", "two relevant"): "tolerance: flow still turns",
    ("turns", "partly"): "open: outside the theorem",
    ("negation, deeper", ""): "open: depends on start",
    ("after p", "partly"): "open: outside the theorem",
}
NO_REASON = "open: not yet explained"
# Lines that ask the same: those of a statement that differ only in these endings are one line.
SAME = {"stars": r", \d stars?$", "after p": ", (gradient descent|Adam)$"}


@dataclass(frozen=True)
class Row:
    """The numbers of one line, one per random start (or the only one)."""

    statement: str  # a key of STATEMENTS
    line: str
    numbers: tuple[float, ...]

    @property
    def verdict(self) -> str:
        """Whether the numbers of all random starts meet what is asked."""
        statement = STATEMENTS[self.statement]
        if not statement.sign:
            return "reported"
        return "holds" if all(statement.holds(number) for number in self.numbers) else "fails"


def row(statement: str, line: str, numbers: Any) -> Row:
    """Return the row of a line from a number or several."""
    numbers = np.atleast_1d(np.asarray(numbers, dtype=float))
    return Row(statement, line, tuple(float(number) for number in numbers))


def frame(rows: Iterable[tuple[str, Row]]) -> pd.DataFrame:
    """Return the full record, from names of experiments and their rows."""
    columns = "experiment statement line asked paper starts mean least largest verdict"
    records = []
    for experiment, each in rows:
        stated, numbers = STATEMENTS[each.statement], each.numbers
        measured = len(numbers), np.mean(numbers), np.min(numbers), np.max(numbers), each.verdict
        records.append((experiment, stated.words, each.line, stated.asked, stated.paper, *measured))
    return with_reasons(joined(pd.DataFrame(records, columns=columns.split())))


def joined(record: pd.DataFrame) -> pd.DataFrame:
    """Return the record without lines that ask what another one asks: the worst of them stays."""
    keys = {statement.words: key for key, statement in STATEMENTS.items()}
    record = record[record["statement"].isin(keys)].reset_index(drop=True)
    dropped: list[int] = []
    for key, ending in SAME.items():
        of_statement = record[record["statement"] == STATEMENTS[key].words]
        shared = of_statement["line"].str.replace(ending, "", regex=True)
        for line, group in of_statement.groupby(shared, sort=False):
            # All of these ask for "at least": the lowest start decides.
            worst = group["least"].idxmin()
            if len(group) > 1:
                record.loc[worst, "line"] = f"{line}, worst of {len(group)}"
                dropped += [index for index in group.index if index != worst]
    return record.drop(index=dropped).reset_index(drop=True)


def with_reasons(record: pd.DataFrame) -> pd.DataFrame:
    """Return the record with the column "reason", empty for lines that do not fail."""
    keys = {statement.words: key for key, statement in STATEMENTS.items()}
    reasons = []
    for statement, line, verdict in record[["statement", "line", "verdict"]].to_numpy():
        known = (
            reason
            for (key, part), reason in REASONS.items()
            if key == keys[statement] and part in line
        )
        reasons.append(next(known, NO_REASON) if verdict == "fails" else "")
    return record.assign(reason=reasons)


def summary(record: pd.DataFrame) -> str:
    """Return the page's table: one row for each statement of which something is asked."""
    lines = ["| statement | asked | paper | measured | lines that hold |", "|---|---|---|---|---|"]
    for words, group in record[record["verdict"] != "reported"].groupby("statement", sort=False):
        verdict = f"{(group['verdict'] == 'holds').sum()} of {len(group)}"
        means = group["mean"].to_numpy()
        defined = np.sort(means[~np.isnan(means)])
        form = ".1e" if 0 < np.abs(defined).max(initial=0) < 1e-2 else ".3g"
        ends = dict.fromkeys(f"{end:{form}}" for end in defined[[0, -1][: len(defined)]])
        measured = " to ".join(ends) or "not defined"
        if ends and len(defined) < len(means):
            measured += f" ({len(means) - len(defined)} not defined)"
        asked, paper = group["asked"].iloc[0], group["paper"].iloc[0] or "–"
        lines.append(f"| {words} | {asked} | {paper} | {measured} | {verdict} |")
    return "\n".join(lines)


def reasons(record: pd.DataFrame) -> str:
    """Return how many lines fail for each reason, in words, the most frequent first."""
    counts = record.loc[record["verdict"] == "fails", "reason"].value_counts()
    return "; ".join(f"{reason} ({n})" for reason, n in counts.items()) or "none"
