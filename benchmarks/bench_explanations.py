"""Are explanations true, and what do they cost? Ours, LIME, SHAP and attention.

``python -m benchmarks.bench_explanations [--reviews FOLDER] [--documents 24]``

All explain the predictions of the same model, for the same test documents, one at a time and each
document by all in turn, from the text to a score per token. LIME and SHAP come from their own
packages (``pip install lime shap``). The model is ours, of counts of words.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import threadpoolctl

from . import command_line, pages, problems
from .explainers import OURS, Array, Explain, Model, Scores, explainers
from .faithfulness import ERASER_FRACTIONS, comprehensiveness, sufficiency
from .problems import Spec
from .timing import timed

REAL = (
    Spec("imdb", "IMDB, words", "imdb"),
    Spec("yelp", "Yelp polarity, words", "yelp_stars", "polarity"),
)
NEWS = Spec("news", "20 newsgroups, words", "explore/20news")  # several classes
MIN_SPEEDUP_OVER_LIME = 1000.0
K = 10
# A function, what it is given, and the sign of what is better.
MEASURES: dict[str, tuple[Callable[..., Array], dict[str, Any], int]] = {
    f"comprehensiveness, k = {K}": (comprehensiveness, {"k": K}, 1),
    f"sufficiency, k = {K}": (sufficiency, {"k": K}, -1),
    "comprehensiveness, AOPC": (comprehensiveness, {"fractions": ERASER_FRACTIONS}, 1),
    "sufficiency, AOPC": (sufficiency, {"fractions": ERASER_FRACTIONS}, -1),
}
_OTHERS = ("LIME", "SHAP", "attention")
_Z95 = 1.96
# Below these seconds an explanation is timed so many times: the first finds other data in caches.
_SHORT, _REPEATS = 0.05, 7


@dataclass(frozen=True)
class Measured:
    """What was measured of one explainer: arrays of shape (n_documents,), by `MEASURES`."""

    values: dict[str, Array]
    seconds: Array  # the processor's: a busy machine's waiting would mostly fall on what takes long


Results = dict[str, dict[str, Measured]]  # by problem and explainer


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and return the exit status."""
    parser = command_line.parser("bench_explanations", __doc__, reviews=True)
    parser.add_argument("--documents", type=int, default=24, help="to explain (default 24)")
    parser.add_argument("--samples", type=int, default=5000, help="of LIME and SHAP")
    parser.add_argument("--fast", action="store_true", help="few documents")
    parser.add_argument("--output", type=Path, default=pages.RESULTS, help="folder of the page")
    options = parser.parse_args(arguments)
    missing = [name for name in ("lime", "shap") if not find_spec(name)]
    if missing:
        print(f"{' and '.join(missing)} not installed: pip install lime shap", file=sys.stderr)
        return 2
    threadpoolctl.threadpool_limits(1, "blas")
    reviews = problems.find_reviews(options.reviews)
    specs = REAL if reviews else problems.GENERATED[::2]
    if reviews and (reviews / f"{NEWS.stem}.csv.gz").is_file():
        specs = (*specs, NEWS)
    n_rows, n_documents = (problems.FAST_ROWS, 4) if options.fast else (None, options.documents)
    results: Results = {}
    for spec in specs:
        model = Model(problems.load_texts(spec, reviews, n_rows=n_rows), n_documents)
        results[spec.title] = race(model, explainers(model, options.samples))
    packages = ", ".join(f"{name} {version(name)}" for name in ("lime", "shap"))
    text = pages.page(
        "Are explanations true, and what do they cost?",
        "python -m benchmarks.bench_explanations" + " --reviews FOLDER" * bool(reviews),
        f"With {packages}." + ("\n\n**A fast run**: few documents." if options.fast else ""),
        _NOTES.format(samples=options.samples),
        "## The same model, explained",
        table(results),
        "## Ours against the others",
        _GAINS,
        gains(results),
        "## Times, in pairs",
        _TIMES,
        times(results),
    )
    pages.publish(text, options.output / "explanations.md")
    return 0


def race(model: Model, some: dict[str, Explain]) -> dict[str, Measured]:
    """Explain all documents by all explainers in turn, and ask the model about each."""
    texts = model.texts
    for explain in some.values():
        explain(min(texts, key=len))  # imports, compiles and allocates
    scores: list[list[Scores]] = [[] for _ in some]
    seconds = np.zeros((len(some), len(texts)))
    for at, text in enumerate(texts):
        for number, explain in enumerate(some.values()):
            answer, seconds[number, at] = _timed(explain, text)
            scores[number].append(answer)
        print(f"document {at + 1} of {len(texts)}", file=sys.stderr, flush=True)
    X = model.vectorizer.transform(texts)
    measured = {}
    for name, answers, taken in zip(some, scores, seconds, strict=True):
        rows = np.repeat(np.arange(len(answers)), [len(columns) for columns, _ in answers])
        columns, numbers = (np.concatenate([answer[at] for answer in answers]) for at in (0, 1))
        matrix = sp.coo_array((numbers, (rows, columns)), shape=X.shape).tocsr()
        values = {
            what: measure(model.classifier, X, matrix, **how)
            for what, (measure, how, _) in MEASURES.items()
        }
        measured[name] = Measured(values, taken)
    return measured


def _timed(explain: Explain, text: str) -> tuple[Scores, float]:
    """Return an explanation and the processor's time: of a short one, the median of several."""
    taken: list[float] = []
    while not taken or (len(taken) < _REPEATS and taken[0] < _SHORT):
        answer, seconds = timed(partial(explain, text), time.process_time)
        taken.append(seconds)
    return answer, float(np.median(taken))


def interval(values: Array) -> tuple[float, float]:
    """Return a mean and half the width of its 95 % interval, over documents."""
    half = _Z95 * values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.inf
    return float(values.mean()), float(half)


_NOTES = f"""\
All explanations are of the same model, ours on word counts, and are judged by the drop in the
probability of the predicted class. *Comprehensiveness*: the {K} tokens that support the class most
are removed, with all their occurrences; higher is better. *Sufficiency*: only they are kept;
lower is better. *AOPC*: the same, averaged over the top 1, 5, 10, 20 and 50 % of the tokens
(ERASER). Tokens that do not support the class are never used. Means over documents, ± half a
95 % interval.

*Contributions* are those of `explain` for the predicted class; for several, minus the runner-up's.
LIME and SHAP remove a word in all its occurrences and have {{samples:,}} evaluations each."""

_GAINS = """\
Mean of the differences per document, ± half its 95 % interval. Positive values favour our
contributions; they are **bold** if they exceed the interval."""

_TIMES = """\
CPU time, without waiting, from a text to its scores, one document at a time with all methods in
turn, so that a busy machine slows all alike. Times below 50 ms are medians of seven calls.
*Times as fast*: the median over documents of the other's time divided by ours, and the lowest
tenth."""


def table(results: Results) -> str:
    """Return the measures of all explainers."""
    rows = []
    for title, by_name in results.items():
        for name, one in by_name.items():
            means = (interval(one.values[measure]) for measure in MEASURES)
            cells = [f"{mean:.3f} ± {half:.3f}" for mean, half in means]
            rows.append([title, name, len(one.seconds), *cells])
    return pages.table(["documents", "explanation", "explained", *MEASURES], rows)


def gains(results: Results) -> str:
    """Return how much better contributions are than each of the others."""
    rows = []
    for title, by_name in results.items():
        for name in _OTHERS:
            cells = []
            for measure, (_, _, sign) in MEASURES.items():
                ours, other = (by_name[one].values[measure] for one in (OURS, name))
                mean, half = interval(sign * (ours - other))
                cell = f"{mean:+.4f} ± {half:.4f}"
                cells.append(f"**{cell}**" if mean > half else cell)
            rows.append([title, name, *cells])
    return pages.table(["documents", "other", *MEASURES], rows)


def times(results: Results) -> str:
    """Return the times a document, and how many times as fast ours are, with the target."""
    rows: list[list[Any]] = []
    lowest, others = np.inf, _OTHERS[:2]
    for title, by_name in results.items():
        ours = by_name[OURS].seconds
        ratios = [by_name[other].seconds / ours for other in others]
        cells = [f"{np.median(one):,.0f} ({np.quantile(one, 0.1):,.0f})" for one in ratios]
        lowest = min(lowest, float(np.median(ratios[0])))
        rows.append([title, f"{1000 * float(np.median(ours)):,.3g}", *cells])
    heads = [f"times as fast as {name}" for name in others]
    met = "met" if lowest >= MIN_SPEEDUP_OVER_LIME else "missed"
    return (
        f"{pages.table(['documents', 'ms a document', *heads], rows)}\n\n"
        f"Target: contributions at least {MIN_SPEEDUP_OVER_LIME:,.0f} times as fast as LIME, one "
        f"document at a time. Measured: {lowest:,.0f} times at least ({met})."
    )


if __name__ == "__main__":
    sys.exit(main())
