"""One step and the flow on all IMDB reviews: ``python -m benchmarks.paper.speed [--reviews F]``."""

from __future__ import annotations

import sys
import warnings

from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer

from benchmarks import command_line
from benchmarks.problems import Spec, labelled_texts
from benchmarks.timing import timed
from sklearn_clsattn.paper import OneStepClassifier


def main(argv: list[str] | None = None) -> None:
    """Print tokens, seconds, steps and how the flow ended."""
    options = command_line.parser("paper.speed", __doc__, reviews=True).parse_args(argv)
    texts, y = labelled_texts(Spec("imdb", "IMDB", "imdb"), options.reviews, "train")
    X = CountVectorizer(token_pattern=r"(?u)\b\w+\b").fit_transform(texts)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model, seconds = timed(lambda: OneStepClassifier().fit(X, y))
    end = str(caught[-1].message).split(":")[0] if caught else "converged"
    size = f"{X.shape[0]:,} reviews, {X.shape[1]:,} tokens"
    print(f"{size}: {seconds:.1f} s, {model.n_iter_} steps; {end}")


if __name__ == "__main__":
    sys.exit(main())
