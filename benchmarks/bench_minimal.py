"""The smallest changes and guarantees: ours against searches that ask for probabilities.

``python -m benchmarks.bench_minimal [--reviews FOLDER] [--documents 100] [--slow 20] [--labels]``

For the same test documents and the same model: the fewest tokens whose removal changes the
prediction (beside greedy search, LIME's order and DiCE's random search), and the fewest that
guarantee it (beside the search of Anchors). Every answer is tried: a removal on the model, a
guarantee on 1,000 documents that lose other tokens at random, and on the worst of all. `--labels`
prints how well wrong labels are found instead. Slow methods answer for the first documents alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.inspection import explain, label_issues

from . import command_line, pages, problems
from .explanations import documents, searches
from .explanations.documents import Document
from .explanations.searches import Numbers
from .timing import timed

_N_TRIED = 1000
_FLIPPED = 0.05
HEADER = ("question", "answered by", "documents", "mean size", "smallest", "holds when tried")
HEADER += ("in the worst case", "ms a document")

Search = Callable[[Document], Numbers | None]


def _ours(question: str) -> Search:
    def answer(document: Document) -> Numbers | None:
        answers = explain(document.model.pipeline, [document.text], places=False)
        (one,) = getattr(answers, question)()
        return one.entries if one.found else None

    return answer


def _searched(search: Callable[..., Numbers | None], **options: Any) -> Search:
    return lambda one: search(one.ask, one.n, np.random.default_rng(0), **options)


def _keeps_class(document: Document, kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return for rows of kept tokens whether the prediction is that of the whole document."""
    return document.ask(np.atleast_2d(kept)) > 0.5


def _is_changed(document: Document, removed: Numbers) -> bool:
    return not _keeps_class(document, ~np.isin(np.arange(document.n), removed))[0]


def _holds(document: Document, fixed: Numbers) -> tuple[float, float]:
    """Return how often the class stays with these and others at random, and with the worst others.

    The worst leaves out all tokens whose terms are positive, which needs the model's numbers.
    """
    rng, classifier = np.random.default_rng(1), document.model.classifier
    kept = rng.random((_N_TRIED, document.n)) < rng.random((_N_TRIED, 1))
    side = 1.0 if document.code == 1 else -1.0
    values = classifier.token_values_[document.x.indices]
    worst = side * (values + classifier.intercept_[0]) < 0
    kept[:, fixed] = worst[fixed] = True
    return float(_keeps_class(document, kept).mean()), float(_keeps_class(document, worst)[0])


def race(model: documents.Model, n_slow: int, n_samples: int) -> list[list[str]]:
    """Return the rows of the table."""
    every = [Document(model, text) for text in model.corpus.texts]
    known = [_ours("counterfactual")(one) for one in every]  # after imports and caches
    rows = []
    for question, name, search, n in (
        ("removed", "ours, sorted", _ours("counterfactual"), len(every)),
        ("removed", "greedy search (SEDC)", _searched(searches.greedy), len(every)),
        ("removed", "LIME's order", _searched(searches.lime_order, samples=n_samples), n_slow),
        ("removed", "DiCE's random search", _searched(searches.dice_random), n_slow),
        ("guarantee", "ours, sorted", _ours("sufficient"), len(every)),
        ("guarantee", "the search of Anchors", _searched(searches.anchor), n_slow),
    ):
        answers, seconds, judged = [], [], []
        for one, best in zip(every[:n], known, strict=False):
            answer, taken = timed(partial(search, one))
            seconds.append(taken)
            answers += [] if answer is None else [len(answer)]
            if question == "guarantee":
                judged += [] if answer is None else [_holds(one, answer)]
            elif answer is None or best is None:  # where nothing will do, to find nothing is right
                judged.append((answer is best, answer is best))
            else:
                judged.append((len(answer) == len(best), _is_changed(one, answer)))
        first, second = np.mean(judged, axis=0)
        cells = ["", f"{first:.1%}", f"{second:.0%}"]
        if question == "removed":
            cells = [f"{first:.0%}", f"{second:.0%}", ""]
        mean_size = f"{np.mean(answers):.1f}" if answers else "–"
        milliseconds = f"{1000 * float(np.median(seconds)):.2g}"
        rows.append([question, name, str(min(n, len(every))), mean_size, *cells, milliseconds])
    return rows


def labels(X: Any, y: NDArray[Any]) -> str:
    """Return how well flipped labels are found: from one fit, and by five-fold cross-validation."""
    flipped = np.random.default_rng(0).random(len(y)) < _FLIPPED
    codes = np.unique(y, return_inverse=True)[1]
    given = np.where(flipped, 1 - codes, codes)
    made, how = ClsAttentionClassifier(), {"cv": 5, "method": "decision_function"}
    model, fit = timed(lambda: made.fit(X, given))
    issues, ranking = timed(lambda: label_issues(model, X, given))
    decisions, folds = timed(lambda: cross_val_predict(made, X, given, **how))
    suspicion = -issues.set_index("document")["margin"].sort_index(), (1 - 2 * given) * decisions
    areas = [f"{roc_auc_score(flipped, found):.4f}" for found in suspicion]
    seconds = [f"{taken:.2g}" for taken in (fit, ranking, folds)]
    names = "the fit", "label_issues", "five-fold cross-validation"
    header = "", f"area, {flipped.sum():,} of {len(y):,} labels flipped", "seconds"
    return pages.table(header, zip(names, ["", *areas], seconds, strict=True))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and return the exit status."""
    parser = command_line.parser("bench_minimal", __doc__, reviews=True)
    parser.add_argument("--documents", type=int, default=100, help="documents for fast methods")
    parser.add_argument("--slow", type=int, default=20, help="documents for slow ones")
    parser.add_argument("--output", type=Path, help="file to write as well")
    parser.add_argument("--fast", action="store_true", help="a trial run")
    parser.add_argument("--labels", action="store_true", help="how wrong labels are found instead")
    options = parser.parse_args(arguments)
    threadpoolctl.threadpool_limits(1, "blas")
    reviews = problems.find_reviews(options.reviews)
    n_all, n_slow, n_samples, n_rows = options.documents, options.slow, 5000, None
    if options.fast:
        n_all, n_slow, n_samples, n_rows = 6, 2, 300, problems.FAST_ROWS
    parts = []
    for spec in documents.specs(reviews)[: 1 if options.fast else None]:
        corpus = documents.load(spec, reviews, n_all, n_rows)
        if options.labels:
            answer = labels(corpus.X_train, corpus.y_train)
        else:
            answer = pages.table(HEADER, race(documents.Model(corpus), n_slow, n_samples))
        parts += [f"## {spec.title}", answer]
    title = "Wrong labels" if options.labels else "The smallest changes and guarantees"
    command = "python -m benchmarks.bench_minimal" + " --labels" * options.labels
    pages.publish(pages.page(title, command, *parts), options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
