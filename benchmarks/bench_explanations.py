"""Are explanations true, and what do they cost? Ours, LIME, SHAP, Anchors and attention.

``python benchmarks/bench_explanations.py [--reviews FOLDER] [--documents 24]``

All explain the predictions of the same model, for the same test documents, one at a time and each
document by all in turn, from the text to a score per token. LIME and SHAP come from their own
packages (``pip install lime shap``); Anchors is its search. The model is ours, of counts of words.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import command_line, machine, problems  # noqa: E402
from benchmarks.explanations import documents, explainers, models  # noqa: E402
from benchmarks.explanations.explainers import Explainer  # noqa: E402
from benchmarks.explanations.measure import (  # noqa: E402
    MEASURES,
    K,
    Measured,
    interval,
    race,
)
from benchmarks.explanations.models import Model  # noqa: E402

OUTPUT = ROOT / "benchmarks" / "results" / "explanations.md"
MIN_SPEEDUP_OVER_LIME = 1000.0

# Explanations of ours, and what they are held against.
_OURS = ("greedy", "contributions")
_THEIRS = ("lime", "shap", "shap_text", "anchors", "attention")

Results = dict[str, list[Measured]]


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    missing = [name for name in ("lime", "shap") if not _installed(name)]
    if missing:
        _say(f"{' and '.join(missing)} not installed: pip install lime shap")
        return 2
    threadpoolctl.threadpool_limits(1, "blas")
    reviews = problems.find_reviews(options.reviews)
    if reviews is None:
        _say(f"no reviews in {options.reviews}: the documents are generated")
    rows, n_documents = (problems.FAST_ROWS, 4) if options.fast else (None, options.documents)
    described = machine.describe()
    results: Results = {}
    started = time.perf_counter()
    for spec in documents.raced(reviews):
        corpus = documents.load(spec, reviews, n_documents, rows)
        title = corpus.problem.title
        model = models.fit(corpus)
        results[title] = race(model, chosen(model, options.samples), n_documents, _say)
    text = page(results, described, options.samples, fast=options.fast)
    print(text)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(text, encoding="utf-8")
    _say(f"{options.output}, {time.perf_counter() - started:.0f} s")
    return 0


def chosen(model: Model, samples: int) -> list[Explainer]:
    """Return the explainers that are compared, in the order of the tables."""
    from benchmarks.explanations import lime_text, shap_values

    return [
        explainers.greedy(model),
        explainers.contributions(model),
        explainers.whole(model),
        lime_text.lime(model, samples),
        shap_values.of_tokens(model, samples),
        shap_values.of_text(model, min(samples, shap_values.EVALUATIONS)),
        explainers.anchors(model),
        explainers.attention(model),
        explainers.chance(model),
    ]


def page(results: Results, described: dict[str, Any], samples: int, *, fast: bool = False) -> str:
    """Return the whole report as Markdown."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("lime", "shap"))
    lines = [
        "# Are explanations true, and what do they cost?",
        "",
        f"`python benchmarks/bench_explanations.py`, {datetime.date.today().isoformat()}.",
        "",
        f"{machine.summary(described)} {packages}.",
        "",
    ]
    lines += machine.warning(described)
    if fast:
        lines += ["**A fast run**: few documents; the numbers mean little.", ""]
    lines += [_NOTES.format(samples=samples), "", "## The same model, explained", ""]
    lines += [table(results), "", "## Ours against the others", "", _GAINS, "", gains(results), ""]
    return "\n".join([*lines, "## Times, in pairs", "", _TIMES, "", times(results), ""])


_NOTES = f"""\
Every explanation is of the same model, ours on counts of words, and is judged on it by the drop in
the probability of the predicted class. *Comprehensiveness*: the {K} tokens that speak most for the
class are removed, in all their occurrences; higher is better. *Sufficiency*: only they are kept;
lower is better. *AOPC*: the same, averaged over the top 1, 5, 10, 20 and 50 % of the tokens
(ERASER). Tokens that do not speak for the class are never taken. Means over documents, ± half a
95 % interval.

*Contributions* are those of `explain`: of the predicted class, of several less those of the next.
*Exact order* is `metrics.greedy_scores`, which asks the model's formula after each token, once for
removing and once for keeping. LIME and SHAP of tokens remove a word in all its occurrences and have
{{samples:,}} evaluations of the model; SHAP of texts is that package's own choice for texts and has
its default. Anchors' tokens come first in the order found, the others by their precision alone."""

_GAINS = """\
The mean of the differences, document by document, ± half its 95 % interval; positive is better for
ours, and **bold** where it is so by more than the interval."""

_TIMES = """\
The processor's time, without waiting, from a text to its scores, one document at a time and each
by all in turn: a busy machine slows all alike. What takes less than 50 ms is the median of seven
calls. *Times as fast*: median over documents of the other's time over that of ours, and the lowest
tenth."""


def table(results: Results) -> str:
    """Return the measures of all explainers."""
    rows = []
    for title, measured in results.items():
        for one in measured:
            if one.explainer.name != "whole":
                means = (interval(one.values[measure]) for measure in MEASURES)
                cells = [f"{mean:.3f} ± {half:.3f}" for mean, half in means]
                rows.append([title, one.explainer.title, str(len(one.seconds)), *cells])
    return _table(["documents", "explanation", "explained", *MEASURES], rows)


def gains(results: Results) -> str:
    """Return how much better ours are than each of the others, with what is met in bold."""
    rows = []
    for title, by_name in _by_name(results):
        for other in _THEIRS:
            for ours in _OURS:
                cells = []
                for measure in MEASURES:
                    mean, half = interval(by_name[ours].gains_over(by_name[other], measure))
                    cell = f"{mean:+.4f} ± {half:.4f}"
                    cells.append(f"**{cell}**" if mean > half else cell)
                titles = [by_name[name].explainer.title for name in (ours, other)]
                rows.append([title, *titles, *cells])
    return _table(["documents", "ours", "other", *MEASURES], rows)


def times(results: Results) -> str:
    """Return the times a document, and how many times as fast ours are, with the target."""
    rows, lowest = [], np.inf
    for title, by_name in _by_name(results):
        for ours in ("contributions", "whole", "greedy"):
            own = by_name[ours].seconds
            cells = [f"{1000 * float(np.median(own)):,.3g}"]
            for other in ("lime", "shap", "shap_text", "anchors"):
                ratio = by_name[other].seconds / own
                cells.append(f"{np.median(ratio):,.0f} ({np.quantile(ratio, 0.1):,.0f})")
                if (ours, other) == ("contributions", "lime"):
                    lowest = min(lowest, float(np.median(ratio)))
            rows.append([title, by_name[ours].explainer.title, *cells])
    heads = ["documents", "ours", "ms a document"]
    some = next(iter(_by_name(results)))[1]
    heads += [
        f"times as fast as {some[name].explainer.title}"
        for name in ("lime", "shap", "shap_text", "anchors")
    ]
    met = "met" if lowest >= MIN_SPEEDUP_OVER_LIME else "missed"
    told = (
        f"Target: contributions at least {MIN_SPEEDUP_OVER_LIME:,.0f} times as fast as LIME, one "
        f"document at a time. Measured: {lowest:,.0f} times at least ({met})."
    )
    return f"{_table(heads, rows)}\n\n{told}"


def _by_name(results: Results) -> list[tuple[str, dict[str, Measured]]]:
    return [
        (title, {one.explainer.name: one for one in measured})
        for title, measured in results.items()
    ]


def _table(header: Sequence[str], rows: Any) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _parser() -> argparse.ArgumentParser:
    parser = command_line.reviews_parser(__file__, __doc__)
    parser.add_argument("--documents", type=int, default=24, help="to explain (default 24)")
    parser.add_argument(
        "--samples", type=int, default=5000, help="of LIME and SHAP (default 5,000)"
    )
    parser.add_argument("--fast", action="store_true", help="few documents")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where the page goes")
    return parser


def _installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ValueError:  # what Python says of a module that was blocked
        return False


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
