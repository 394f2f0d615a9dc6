"""What the places of words are worth: accuracy and log loss with and without gates.

``python benchmarks/bench_context.py --explore FOLDER [--sets mr trec] [--splits 2] [--characters]``

FOLDER has one ``NAME.csv.gz`` a set, with columns text and label; their documents are pooled and
split at random, by class, into three parts for training and one for testing. All variants have the
same words and pairs of words (and characters) and the same classifier; the bag without gates is
what they are compared with:

- order: gates by the number of words of an n-gram alone;
- positions: and by the distance from the start and the end;
- words before: by the number of words and the word before;
- all: what ContextVectorizer does;
- shuffled: the same with the places drawn from among those of the document, in training and
  testing: what would be left if places said nothing.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedShuffleSplit

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import command_line  # noqa: E402
from sklearn_clsattn import ClsAttentionClassifier  # noqa: E402
from sklearn_clsattn.text import ContextVectorizer  # noqa: E402
from sklearn_clsattn.text._places import Places  # noqa: E402
from sklearn_clsattn.text._tokens import Tokens  # noqa: E402

SETS = ("mr", "sst2", "subj", "trec", "r8", "banking77", "sms")


class Order(ContextVectorizer):
    """All places are the same place."""

    def _places(self, texts: list[str], tokens: Tokens) -> Places:
        places = super()._places(texts, tokens)
        nowhere = np.zeros_like(places.from_start)
        return Places(nowhere, nowhere, np.full_like(places.previous, -1))


class Positions(ContextVectorizer):
    """No word has a word before it."""

    def _places(self, texts: list[str], tokens: Tokens) -> Places:
        places = super()._places(texts, tokens)
        return replace(places, previous=np.full_like(places.previous, -1))


class Previous(ContextVectorizer):
    """All positions are the same position."""

    def _places(self, texts: list[str], tokens: Tokens) -> Places:
        places = super()._places(texts, tokens)
        nowhere = np.zeros_like(places.from_start)
        return replace(places, from_start=nowhere, from_end=nowhere)


class Shuffled(ContextVectorizer):
    """Every word has the place of some word of its document."""

    def _places(self, texts: list[str], tokens: Tokens) -> Places:
        places = super()._places(texts, tokens)
        random = np.random.default_rng(0).random(len(tokens.ids))
        order = np.lexsort((random, tokens.documents))
        return Places(places.from_start[order], places.from_end[order], places.previous[order])


VARIANTS: dict[str, type[ContextVectorizer]] = {
    "order": Order,
    "positions": Positions,
    "words before": Previous,
    "all": ContextVectorizer,
    "shuffled": Shuffled,
}


@dataclass(frozen=True)
class Result:
    """Percent of test documents classified correctly, mean log loss, CPU seconds of the steps."""

    accuracy: float
    log_loss: float
    vectorizing: float
    training: float


def measure(vectorizer: Any, train: pd.DataFrame, test: pd.DataFrame) -> Result:
    """Fit a vectorizer and the classifier, and test them."""
    start = time.process_time()
    X = vectorizer.fit_transform(train["text"], train["label"])
    vectorized = time.process_time()
    model = ClsAttentionClassifier(C=1.0, sublinear_counts=False).fit(X, train["label"])
    trained = time.process_time()
    probabilities = model.predict_proba(vectorizer.transform(test["text"]))
    right = model.classes_[probabilities.argmax(axis=1)] == test["label"].to_numpy()
    return Result(
        100 * float(right.mean()),
        float(log_loss(test["label"], probabilities, labels=model.classes_)),
        vectorized - start,
        trained - vectorized,
    )


def ablation(documents: pd.DataFrame, *, splits: int, **parameters: Any) -> pd.DataFrame:
    """Return the results of all variants, a row a variant, means over splits."""
    rows = []
    splitter = StratifiedShuffleSplit(splits, test_size=0.25, random_state=0)
    for at in splitter.split(documents, documents["label"]):
        train, test = (documents.iloc[rows_of] for rows_of in at)
        plain = ContextVectorizer(context=False, **parameters)
        rows.append({"variant": "none", **vars(measure(plain, train, test))})
        for name, variant in VARIANTS.items():
            rows.append({"variant": name, **vars(measure(variant(**parameters), train, test))})
    return pd.DataFrame(rows).groupby("variant").mean().loc[["none", *VARIANTS]]


def table(results: dict[str, pd.DataFrame]) -> str:
    """Return a Markdown table of differences from the bag without gates, set by set."""
    lines = ["| set | none | " + " | ".join(VARIANTS) + " |", "|---" * (len(VARIANTS) + 2) + "|"]
    differences = []
    for name, result in results.items():
        result = result[["accuracy", "log_loss"]]
        none = result.loc["none"]
        change = result.loc[list(VARIANTS)] - none
        differences.append(change)
        cells = [f"{row.accuracy:+.2f} / {row.log_loss:+.4f}" for row in change.itertuples()]
        lines.append(
            f"| {name} | {none['accuracy']:.2f} / {none['log_loss']:.4f} | "
            + " | ".join(cells)
            + " |"
        )
    stacked = np.stack([change.to_numpy() for change in differences])
    mean = stacked.mean(axis=0)
    cells = [f"{accuracy:+.2f} / {loss:+.4f}" for accuracy, loss in mean]
    lines.append("| **mean** | | " + " | ".join(cells) + " |")
    if len(stacked) > 1:
        error = stacked.std(axis=0, ddof=1) / np.sqrt(len(stacked))
        cells = [f"{accuracy:.2f} / {loss:.4f}" for accuracy, loss in error]
        lines.append("| standard error | | " + " | ".join(cells) + " |")
    better = np.stack([stacked[:, :, 0] > 0, stacked[:, :, 1] < 0], axis=2).sum(axis=0)
    cells = [f"{accuracy} / {loss}" for accuracy, loss in better]
    lines.append(f"| better, of {len(stacked)} sets | | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def read(path: Path) -> pd.DataFrame:
    """Return the texts and labels of a set, as strings."""
    frame = pd.read_csv(path, keep_default_na=False)
    return frame[["text", "label"]].astype(str)


def main(arguments: list[str] | None = None) -> int:
    args = _parser().parse_args(arguments)
    parameters = {} if args.characters else {"characters": None}
    results = {}
    for name in args.sets:
        path = args.explore / f"{name}.csv.gz"
        if not path.is_file():
            print(f"There is no {path}: left out.", file=sys.stderr)
            continue
        results[name] = ablation(read(path), splits=args.splits, **parameters)
        none, all_ = (results[name].loc[variant] for variant in ("none", "all"))
        print(
            f"{name}: CPU seconds of vectorizing {none['vectorizing']:.2f} without gates, "
            f"{all_['vectorizing']:.2f} with all, of training {all_['training']:.2f}",
            flush=True,
        )
    if not results:
        print(f"No set was found in {args.explore}.", file=sys.stderr)
        return 1
    print("\nPercent accuracy / log loss without gates, and what gates add:\n")
    print(table(results))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = command_line.parser(__file__, __doc__)
    parser.add_argument("--explore", type=Path, required=True, help="folder of the sets")
    parser.add_argument("--sets", nargs="+", default=list(SETS), metavar="NAME")
    parser.add_argument("--splits", type=int, default=2, help="random splits of each set")
    parser.add_argument("--characters", action="store_true", help="with character n-grams")
    return parser


if __name__ == "__main__":
    sys.exit(main())
