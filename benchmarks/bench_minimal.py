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

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import machine, problems  # noqa: E402
from benchmarks.explanations import documents, models, searches  # noqa: E402
from benchmarks.explanations.searches import Document, Places  # noqa: E402
from sklearn_clsattn import ClsAttentionClassifier  # noqa: E402
from sklearn_clsattn.inspection import Explanation, explain, label_issues  # noqa: E402

_N_TRIED = 1000
_FLIPPED = 0.05


Search = Callable[[Document], Places | None]


def _explained(document: Document) -> Explanation:
    return explain(document.pipeline, [document.text], removal=False, places=False)


def _ours_removed(document: Document) -> Places | None:
    (one,) = _explained(document).counterfactual()
    return one.entries if one.found else None


def _ours_kept(document: Document) -> Places | None:
    (one,) = _explained(document).sufficient()
    return one.entries if one.found else None


def _searched(search: Callable[..., Places | None]) -> Search:
    return lambda document: search(document.ask, document.n, np.random.default_rng(0))


def _without(document: Document, removed: Places) -> float:
    kept = np.ones((1, document.n), dtype=bool)
    kept[0, removed] = False
    return float(document.ask(kept)[0])


def _holds_at_random(document: Document, fixed: Places) -> float:
    """Return the share of documents that keep these and others at random with the same class."""
    rng = np.random.default_rng(1)
    kept = rng.random((_N_TRIED, document.n)) < rng.random((_N_TRIED, 1))
    kept[:, fixed] = True
    return float((document.ask(kept) > 0.5).mean())


def _holds_at_worst(document: Document, fixed: Places) -> bool:
    """Whether the worst of all documents that keep these has the same class.

    The worst leaves out all tokens whose terms are positive, which needs the model's numbers.
    """
    classifier = document.classifier
    side = 1.0 if document.code == 1 else -1.0
    values = classifier.token_values_[document.x.indices]
    bad = side * (values + classifier.intercept_[0]) < 0
    bad[fixed] = True
    return float(document.ask(bad[None])[0]) > 0.5


def race(pipeline: Any, texts: Sequence[str], n_slow: int, n_samples: int) -> list[list[str]]:
    """Return the rows of the table."""
    every = [Document(pipeline, text) for text in texts]
    removals: list[tuple[str, Search, int]] = [
        ("ours, sorted", _ours_removed, len(every)),
        ("greedy search (SEDC)", _searched(searches.greedy), len(every)),
        (
            "LIME's order",
            lambda one: searches.lime_order(one.ask, one.n, np.random.default_rng(0), n_samples),
            n_slow,
        ),
        ("DiCE's random search", _searched(searches.dice_random), n_slow),
    ]
    guarantees: list[tuple[str, Search, int]] = [
        ("ours, sorted", _ours_kept, len(every)),
        ("the search of Anchors", _searched(searches.anchor), n_slow),
    ]
    rows = []
    _ours_removed(every[0])  # imports and caches
    least = [_ours_removed(one) for one in every]
    for name, search, n in removals:
        found, seconds = _timed(search, every[:n])
        pairs = list(zip(every[:n], found, strict=True))
        tried = [places is not None and _without(one, places) < 0.5 for one, places in pairs]
        # Where nothing will do, to find nothing is right.
        right = [
            (places is None) == (known is None) and (places is None or ok)
            for (_, places), ok, known in zip(pairs, tried, least, strict=False)
        ]
        minimal = [
            len(places) == len(known)
            if places is not None and known is not None
            else places is known
            for (_, places), known in zip(pairs, least, strict=False)
        ]
        rows.append(
            [
                "removed",
                name,
                f"{n}",
                _size(found),
                f"{np.mean(minimal):.0%}",
                f"{np.mean(right):.0%}",
                "",
                _ms(seconds),
            ]
        )
    for name, search, n in guarantees:
        found, seconds = _timed(search, every[:n])
        pairs = [
            (one, places) for one, places in zip(every, found, strict=False) if places is not None
        ]
        at_random = [_holds_at_random(one, places) for one, places in pairs]
        worst = [_holds_at_worst(one, places) for one, places in pairs]
        rows.append(
            [
                "guarantee",
                name,
                f"{n}",
                _size(found),
                "",
                f"{np.mean(at_random):.1%}",
                f"{np.mean(worst):.0%}",
                _ms(seconds),
            ]
        )
    return rows


def _timed(search: Search, some: list[Document]) -> tuple[list[Places | None], list[float]]:
    found, seconds = [], []
    for one in some:
        started = time.perf_counter()
        found.append(search(one))
        seconds.append(time.perf_counter() - started)
    return found, seconds


def _length(places: Places | None) -> int | None:
    return None if places is None else len(places)


def _size(found: list[Places | None]) -> str:
    sizes = [len(places) for places in found if places is not None]
    return f"{np.mean(sizes):.1f}" if sizes else "–"


def _ms(seconds: list[float]) -> str:
    return f"{1000 * float(np.median(seconds)):.2g}"


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


def labels(X: Any, y: NDArray[Any]) -> list[str]:
    """Return how well flipped labels are found: from one fit, and by five-fold cross-validation."""
    rng = np.random.default_rng(0)
    flipped = rng.random(len(y)) < _FLIPPED
    codes = np.unique(y, return_inverse=True)[1]
    given = np.where(flipped, 1 - codes, codes)
    started = time.perf_counter()
    model = ClsAttentionClassifier().fit(X, given)
    fitted = time.perf_counter() - started
    margins = label_issues(model, X, given).set_index("document")["margin"].sort_index()
    judged = time.perf_counter() - started - fitted
    started = time.perf_counter()
    held_out = cross_val_predict(
        ClsAttentionClassifier(), X, given, cv=5, method="decision_function"
    )
    crossed = time.perf_counter() - started
    seen = model.decision_function(X)
    sides = 1 - 2 * given
    return [
        f"{len(y):,} documents, {flipped.sum():,} labels flipped; the fit takes {fitted:.1f} s",
        f"area under the curve: label_issues {roc_auc_score(flipped, -margins):.4f} "
        f"({judged:.1f} s), five-fold cross-validation "
        f"{roc_auc_score(flipped, sides * held_out):.4f} ({crossed:.1f} s), "
        f"decisions of the fit {roc_auc_score(flipped, sides * seen):.4f}",
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    threadpoolctl.threadpool_limits(1, "blas")
    reviews = problems.find_reviews(options.reviews)
    n_all, n_slow, n_samples = options.documents, options.slow, 5000
    rows = None
    if options.fast:
        n_all, n_slow, n_samples, rows = 6, 2, 300, problems.FAST_ROWS
    title = "Wrong labels" if options.labels else "The smallest changes and guarantees"
    described = machine.describe()
    parts = [f"# {title}", "", machine.summary(described), "", *machine.warning(described)]
    for spec in documents.specs(reviews)[: 1 if options.fast else None]:
        corpus = documents.load(spec, reviews, n_all, rows)
        problem = corpus.problem
        if options.labels:
            lines = labels(problem.X_train, problem.y_train)
        else:
            model = models.fit(corpus)
            table = race(model.pipeline, corpus.texts.tolist(), n_slow, n_samples)
            lines = [
                "| " + " | ".join(row) + " |" for row in (HEADER, ["---"] * len(HEADER), *table)
            ]
        parts += [f"## {problem.title}", "", *lines, ""]
    page = "\n".join(parts)
    print(page)
    if options.output is not None:
        options.output.write_text(page, encoding="utf-8")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--reviews", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--documents", type=int, default=100, help="documents for fast methods")
    parser.add_argument("--slow", type=int, default=20, help="documents for slow ones")
    parser.add_argument("--output", type=Path, help="file to write as well")
    parser.add_argument("--fast", action="store_true", help="a trial run")
    parser.add_argument("--labels", action="store_true", help="how wrong labels are found instead")
    return parser


if __name__ == "__main__":
    sys.exit(main())
