"""Are explanations true, and what do they cost? Ours, coefficients, LIME and SHAP.

``python benchmarks/bench_explanations.py [--reviews FOLDER] [--documents 200] [--slow 25]``

Each explainer explains the class that its model predicts for the same test documents, one at a
time, from the text to a score per token. LIME and SHAP come from their own packages (``pip install
lime shap``) and explain fewer documents, the first of the others'. Models are trained on counts of
words; logistic regressions are tuned on a split of the training documents.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import time
from collections.abc import Callable, Sequence
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
from benchmarks.explanations.measure import K, Measured, measure  # noqa: E402
from benchmarks.targets import Verdict  # noqa: E402

OUTPUT = ROOT / "benchmarks" / "results" / "explanations.md"
MAX_EXACTNESS_ERROR = 1e-10
MIN_SPEEDUP_OVER_LIME = 1000.0

# What our contributions' comprehensiveness is held against: (model, explainer).
_AGAINST = {
    ("logistic_counts", "coefficients"): "LR's own coefficients on counts",
    ("logistic_tfidf", "coefficients"): "LR's own coefficients on TF-IDF",
    ("ours", "borrowed"): "LR's coefficients, both explaining our model",
}

_TOGETHER = "`explain` of all documents in one call"
_ALONE = "contributions, one document at a time"

Results = dict[str, list[Measured]]

_HEADER = (
    "documents",
    "model",
    "explanation",
    "explained",
    f"comprehensiveness, k = {K}",
    f"sufficiency, k = {K}",
    "comprehensiveness, AOPC",
    "sufficiency, AOPC",
    "ms a document",
    "exactness error",
)


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
    rows = problems.FAST_ROWS if options.fast else None
    n_all, n_slow = (20, 2) if options.fast else (options.documents, options.slow)
    described = machine.describe()
    results: Results = {}
    started = time.perf_counter()
    for spec in documents.specs(reviews):
        corpus = documents.load(spec, reviews, n_all, rows)
        fitted = {
            name: models.fit(name, corpus, tune=not options.fast, report=_say)
            for name in models.NAMES
        }
        results[corpus.problem.title] = run(chosen(fitted, options.samples), n_all, n_slow, _say)
    text = page(results, described, fast=options.fast)
    print(text)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(text, encoding="utf-8")
    _say(f"{options.output}, {time.perf_counter() - started:.0f} s")
    return 0


def chosen(fitted: dict[str, models.Model], samples: int) -> list[Explainer]:
    """Return the explainers that are compared, in the order of the table."""
    from benchmarks.explanations import lime_text, shap_values

    ours, counts, tfidf = (fitted[name] for name in models.NAMES)
    return [
        explainers.contributions(ours),
        explainers.leave_one_out(ours),
        explainers.attention(ours),
        explainers.borrowed(ours, counts),
        lime_text.lime(ours, samples),
        shap_values.by_evaluations(ours),
        explainers.chance(ours),
        explainers.coefficients(counts),
        shap_values.linear(counts),
        lime_text.lime(counts, samples),
        explainers.chance(counts),
        explainers.coefficients(tfidf),
        explainers.chance(tfidf),
    ]


def run(
    compared: list[Explainer], n_all: int, n_slow: int, report: Callable[[str], None]
) -> list[Measured]:
    """Measure all explainers, the slow ones on the first `n_slow` documents."""
    measured = []
    for explainer in compared:
        measured.append(measure(explainer, n_slow if explainer.slow else n_all))
        one = measured[-1]
        report(
            f"{explainer.model.title}: {explainer.title}, {one.n_documents} documents, "
            f"{1000 * one.seconds:.3g} ms each"
        )
    return measured


def page(results: Results, described: dict[str, Any], *, fast: bool = False) -> str:
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
        lines += ["**A fast run**: few documents, nothing tuned; the numbers mean little.", ""]
    lines += [_NOTES, "", table(results), "", confidences(results), ""]
    lines += [first_documents(results), "", in_one_call(results), "", "Targets:", ""]
    return "\n".join([*lines, _table(_VERDICTS, map(_verdict_row, verdicts(results))), ""])


_NOTES = f"""\
Every explanation is judged on the model that it explains, by the drop in the probability of the
predicted class. *Comprehensiveness*: the {K} tokens that speak most for the class are removed, in
all their occurrences; higher is better. *Sufficiency*: only they are kept; lower is better. *AOPC*:
the same, averaged over the top 1, 5, 10, 20 and 50 % of the tokens (ERASER). Tokens that do not
speak for the class are never taken. Means over documents, ± one standard error. **Models differ**
in how strongly they react to missing words, and in how sure they are: compare explanations of one
model with each other and with its random order, models with caution. *LR's coefficient x count* are
those of the logistic regression on counts, tried on our model.

*Leave one out*: how far our model's log-odds really fall without a token, in closed form. *ms a
document*: median over documents, one at a time, from the text to the scores. *Exactness error*:
largest distance of the scores' sum plus the base value from the output that they explain (log-odds;
LIME: probability). LIME scores all words, from 5,000 samples unless told otherwise. SHAP is
`LinearExplainer` for logistic regression, else its default for texts, which gives log-odds to parts
of the text."""


def table(results: Results) -> str:
    """Return the one table."""
    rows = []
    for title, measured in results.items():
        for one in measured:
            explainer = one.explainer
            rows.append(
                (
                    title,
                    explainer.model.title,
                    explainer.title,
                    str(one.n_documents),
                    _mean(one.comprehensiveness),
                    _mean(one.sufficiency),
                    _mean(one.comprehensiveness_aopc),
                    _mean(one.sufficiency_aopc),
                    "–" if explainer.name == "chance" else f"{1000 * one.seconds:,.3g}",
                    "–" if one.error is None else f"{one.error:.1e}",
                )
            )
    return _table(_HEADER, rows)


def confidences(results: Results) -> str:
    """Return what the models are like that are explained, and our time for all documents."""
    lines = [
        "The models on these documents: mean probability of the predicted class, accuracy.",
        "",
    ]
    for title, measured in results.items():
        # Each model's random order was measured on all documents.
        floors = [one for one in measured if one.explainer.name == "chance"]
        listed = "; ".join(
            f"{one.explainer.model.title}: {one.confidence:.3f}, {one.accuracy:.3f}"
            for one in floors
        )
        lines.append(f"- {title}: {listed}.")
    return "\n".join(lines)


def in_one_call(results: Results) -> str:
    """Return what our explanations take a document when all are explained in one call."""
    lines = [
        "All documents in one call, median of five. `contributions`: texts to contributions. "
        "`explain`: all of an explanation, with every token's place in the text and the decision "
        "without it.",
        "",
    ]
    for title, measured in results.items():
        (ours,) = (one for one in measured if one.together)
        each = ", ".join(f"`{way}` {1000 * s:.2g} ms each" for way, s in ours.together.items())
        lines.append(f"- {title}, {ours.n_documents} documents: {each}.")
    return "\n".join(lines)


def first_documents(results: Results) -> str:
    """Return the comparison on the documents that LIME and SHAP explained as well."""
    lines = [f"Our model, comprehensiveness at k = {K} on the documents that all explained:"]
    for title, measured in results.items():
        ours = [one for one in measured if one.explainer.model.name == "ours"]
        n = min(one.n_documents for one in ours)
        listed = ", ".join(
            f"{one.explainer.title} {one.comprehensiveness[:n].mean():.3f}" for one in ours
        )
        lines.append(f"- {title}, {n} documents: {listed}.")
    return "\n".join([lines[0], "", *lines[1:]])


def verdicts(results: Results) -> list[Verdict]:
    """Return what the run says of the targets, at worst over the corpora."""
    errors: dict[str, float] = {}
    ratios: dict[str, dict[str, float]] = {_TOGETHER: {}, _ALONE: {}}
    found = []
    for title, measured in results.items():
        by_name = {(one.explainer.model.name, one.explainer.name): one for one in measured}
        ours = by_name["ours", "contributions"]
        errors[title] = ours.error or 0.0
        lime = by_name["ours", "lime"].seconds
        ratios[_TOGETHER][title] = lime / ours.together["explain"]
        ratios[_ALONE][title] = lime / ours.seconds
        for key, told in _AGAINST.items():
            theirs = by_name[key].comprehensiveness
            differences = ours.comprehensiveness - theirs
            found.append(
                Verdict(
                    f"comprehensiveness at k = {K}, {title}",
                    f"no worse than {told}",
                    f"{ours.comprehensiveness.mean():.3f} to {theirs.mean():.3f}, difference "
                    f"{_mean(differences, '+.3f')}",
                    bool(differences.mean() >= 0),
                    f"{-differences.mean():.3f}",
                )
            )
    largest = max(errors.values())
    return [
        Verdict(
            "exactness error of contributions",
            f"below {MAX_EXACTNESS_ERROR:g}",
            f"{largest:.1e}",
            largest < MAX_EXACTNESS_ERROR,
            f"{largest - MAX_EXACTNESS_ERROR:.1e}",
        ),
        *(_speedup(how, by_title) for how, by_title in ratios.items()),
        *found,
    ]


def _speedup(how: str, by_title: dict[str, float]) -> Verdict:
    slowest = min(by_title.values())
    each = ", ".join(f"{title} {ratio:,.0f}" for title, ratio in by_title.items())
    return Verdict(
        f"{how}, a document faster than by LIME",
        f"at least {MIN_SPEEDUP_OVER_LIME:,.0f} times",
        f"{slowest:,.0f} times ({each})",
        slowest >= MIN_SPEEDUP_OVER_LIME,
        f"{MIN_SPEEDUP_OVER_LIME - slowest:,.0f} times",
    )


_VERDICTS = ("what", "target", "measured", "verdict")


def _verdict_row(verdict: Verdict) -> tuple[str, ...]:
    return verdict.what, verdict.target, verdict.measured, verdict.words


def _mean(values: Any, form: str = ".3f") -> str:
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):{form}} ± {error:.3f}"


def _table(header: Sequence[str], rows: Any) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _parser() -> argparse.ArgumentParser:
    parser = command_line.reviews_parser(__file__, __doc__)
    parser.add_argument("--documents", type=int, default=200, help="to explain (default 200)")
    parser.add_argument(
        "--slow", type=int, default=25, help="of these, by LIME and SHAP (default 25)"
    )
    parser.add_argument("--samples", type=int, default=5000, help="of LIME (default 5,000)")
    parser.add_argument("--fast", action="store_true", help="few documents, nothing tuned")
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
