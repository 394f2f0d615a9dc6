"""The smallest changes and guarantees: ours against searches that ask for probabilities.

``python benchmarks/bench_minimal.py [--reviews FOLDER] [--documents 100] [--slow 20] [--labels]``

For the same test documents and the same model: the fewest tokens whose removal changes the
prediction (beside greedy search, LIME's order and DiCE's random search), and the fewest that
guarantee it (beside the search of Anchors). Every answer is tried: a removal on the model, a
guarantee on 1,000 documents that lose other tokens at random, and on the worst of all. `--labels`
prints how well wrong labels are found instead.

A method's size and shares are over its own documents: the slow ones answer for the first few. A
removal is right if the prediction changes, or if nothing is found where nothing will do.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import command_line, pages, problems  # noqa: E402
from benchmarks.explanations import documents, searches  # noqa: E402
from benchmarks.explanations.documents import Document  # noqa: E402
from benchmarks.explanations.searches import Numbers  # noqa: E402
from sklearn_clsattn import ClsAttentionClassifier  # noqa: E402
from sklearn_clsattn.inspection import Explanation, explain, label_issues  # noqa: E402

_N_TRIED = 1000
_FLIPPED = 0.05
HEADER = (
    "question",
    "answered by",
    "documents",
    "mean size",
    "smallest",
    "holds when tried",
    "in the worst case",
    "ms a document",
)

Search = Callable[[Document], Numbers | None]
Answers = list[Numbers | None]


def _ours(ask: Callable[[Explanation], Any]) -> Search:
    def answer(document: Document) -> Numbers | None:
        pipeline = document.model.pipeline
        (one,) = ask(explain(pipeline, [document.text], places=False))
        return one.entries if one.found else None

    return answer


def _searched(search: Callable[..., Numbers | None], **options: Any) -> Search:
    return lambda one: search(one.ask, one.n, np.random.default_rng(0), **options)


def _is_changed(document: Document, removed: Numbers) -> bool:
    kept = np.ones((1, document.n), dtype=bool)
    kept[0, removed] = False
    return float(document.ask(kept)[0]) < 0.5


def _holds_at_random(document: Document, fixed: Numbers) -> float:
    """Return the share of documents that keep these and others at random with the same class."""
    rng = np.random.default_rng(1)
    kept = rng.random((_N_TRIED, document.n)) < rng.random((_N_TRIED, 1))
    kept[:, fixed] = True
    return float((document.ask(kept) > 0.5).mean())


def _holds_at_worst(document: Document, fixed: Numbers) -> bool:
    """Whether the worst of all documents that keep these has the same class.

    The worst leaves out all tokens whose terms are positive, which needs the model's numbers.
    """
    classifier = document.model.classifier
    side = 1.0 if document.code == 1 else -1.0
    values = classifier.token_values_[document.x.indices]
    bad = side * (values + classifier.intercept_[0]) < 0
    bad[fixed] = True
    return float(document.ask(bad[None])[0]) > 0.5


def race(model: documents.Model, n_slow: int, n_samples: int) -> list[list[str]]:
    """Return the rows of the table."""
    every = [Document(model, text) for text in model.corpus.texts]
    ours_removed = _ours(lambda explanation: explanation.counterfactual())
    removals: list[tuple[str, Search, int]] = [
        ("ours, sorted", ours_removed, len(every)),
        ("greedy search (SEDC)", _searched(searches.greedy), len(every)),
        ("LIME's order", _searched(searches.lime_order, samples=n_samples), n_slow),
        ("DiCE's random search", _searched(searches.dice_random), n_slow),
    ]
    guarantees: list[tuple[str, Search, int]] = [
        ("ours, sorted", _ours(lambda explanation: explanation.sufficient()), len(every)),
        ("the search of Anchors", _searched(searches.anchor), n_slow),
    ]
    ours = [ours_removed(one) for one in every]  # after imports and caches
    rows = []
    for name, search, n in removals:
        answers, milliseconds = _timed(search, every[:n])
        # Where nothing will do, to find nothing is right.
        right = [
            (answer is None) == (known is None) and (answer is None or _is_changed(one, answer))
            for one, answer, known in zip(every[:n], answers, ours[:n], strict=True)
        ]
        smallest = [
            _size(answer) == _size(known) for answer, known in zip(answers, ours[:n], strict=True)
        ]
        cells = [f"{np.mean(smallest):.0%}", f"{np.mean(right):.0%}", "", milliseconds]
        rows.append(["removed", name, str(n), _mean_size(answers), *cells])
    for name, search, n in guarantees:
        answers, milliseconds = _timed(search, every[:n])
        pairs = [
            (one, some) for one, some in zip(every[:n], answers, strict=True) if some is not None
        ]
        at_random = np.mean([_holds_at_random(one, some) for one, some in pairs])
        at_worst = np.mean([_holds_at_worst(one, some) for one, some in pairs])
        cells = ["", f"{at_random:.1%}", f"{at_worst:.0%}", milliseconds]
        rows.append(["guarantee", name, str(n), _mean_size(answers), *cells])
    return rows


def _timed(search: Search, some: list[Document]) -> tuple[Answers, str]:
    """Return answers and the median of their milliseconds."""
    answers, seconds = [], []
    for one in some:
        started = time.perf_counter()
        answers.append(search(one))
        seconds.append(time.perf_counter() - started)
    return answers, f"{1000 * float(np.median(seconds)):.2g}"


def _size(answer: Numbers | None) -> int | None:
    return None if answer is None else len(answer)


def _mean_size(answers: Answers) -> str:
    sizes = [len(answer) for answer in answers if answer is not None]
    return f"{np.mean(sizes):.1f}" if sizes else "–"


def labels(X: Any, y: NDArray[Any]) -> str:
    """Return how well flipped labels are found: from one fit, and by five-fold cross-validation."""
    rng = np.random.default_rng(0)
    flipped = rng.random(len(y)) < _FLIPPED
    codes = np.unique(y, return_inverse=True)[1]
    given = np.where(flipped, 1 - codes, codes)
    clock = [time.perf_counter()]
    model = ClsAttentionClassifier().fit(X, given)
    clock.append(time.perf_counter())
    margins = label_issues(model, X, given).set_index("document")["margin"].sort_index()
    clock.append(time.perf_counter())
    held_out = cross_val_predict(
        ClsAttentionClassifier(), X, given, cv=5, method="decision_function"
    )
    clock.append(time.perf_counter())
    fitted, judged, crossed = np.diff(clock)
    area = partial(roc_auc_score, flipped)
    sides = 1 - 2 * given
    return (
        f"{len(y):,} documents, {flipped.sum():,} labels flipped; the fit takes {fitted:.1f} s\n"
        f"area under the curve: label_issues {area(-margins):.4f} ({judged:.1f} s), "
        f"five-fold cross-validation {area(sides * held_out):.4f} ({crossed:.1f} s), "
        f"decisions of the fit {area(sides * model.decision_function(X)):.4f}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and return the exit status."""
    parser = command_line.reviews_parser(__file__, __doc__)
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
    command = "python benchmarks/bench_minimal.py" + (" --labels" if options.labels else "")
    page = pages.page(title, command, *parts)
    print(page)
    if options.output is not None:
        pages.write(options.output, page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
