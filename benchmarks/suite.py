"""The benchmark as a whole: which problems, which competitors, and where the results go."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import threadpoolctl

from . import machine, memory, micro, problems, timing
from .competitors import COMPETITORS
from .competitors.base import Competitor
from .problems import Problem, Spec
from .report import markdown, targets_table, with_summary
from .targets import judge
from .text_competitors import left_out, text_competitors
from .tuning import tuned_value

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
README = ROOT / "README.md"
CHART = ROOT / "docs" / "images" / "benchmark.png"
_BLAS_VARIABLES = ("OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS")
_FAST = timing.Effort(max_runs=2, seconds=2.0)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    reviews = problems.find_reviews(options.reviews)
    if reviews is None and options.reviews:
        _say(f"no reviews in {options.reviews}: the documents are generated")
    available = {spec.name: spec for spec in problems.specs(reviews)}
    unknown = [name for name in options.problems or () if name not in available]
    if unknown:
        _say(f"no problem named {', '.join(unknown)}; there are {', '.join(available)}")
        return 2
    names = options.problems or list(available)
    # A second BLAS thread has nothing to gain on sparse documents, and makes the vector sums of
    # SciPy's L-BFGS up to ten times slower as soon as anything else runs on the machine.
    threadpoolctl.threadpool_limits(options.blas_threads, "blas")
    os.environ |= dict.fromkeys(_BLAS_VARIABLES, str(options.blas_threads))  # processes to come
    rows = problems.FAST_ROWS if options.fast else None
    started = time.perf_counter()
    results = run(
        [problems.load(available[name], reviews, n_rows=rows) for name in names],
        [COMPETITORS[name] for name in options.competitors or COMPETITORS],
        short=problems.short_documents(reviews),
        texts=[available[name] for name in names if available[name].from_text]
        if not options.competitors
        else [],
        reviews=reviews,
        fast=options.fast,
        retune=options.retune,
    )
    whole = not (options.problems or options.competitors)
    stem = "fast" if options.fast else "partial" if not whole else "latest"
    if stem == "latest" and reviews is None:
        stem = "generated"
    write(results, options.output, stem)
    if stem == "latest" and options.output == RESULTS:
        page = README.read_text(encoding="utf-8")
        README.write_text(with_summary(page, results), encoding="utf-8")
    # The documentation shows the whole benchmark on real reviews, nothing less.
    draw(results, CHART if stem == "latest" else options.output / f"{stem}.png")
    print(targets_table(results["targets"]))
    _say(f"{options.output / stem}.md, {time.perf_counter() - started:.0f} s")
    return 0


def run(
    chosen: list[Problem],
    competitors: list[Competitor],
    *,
    short: Problem | None,
    texts: Sequence[Spec] = (),
    reviews: Path | None = None,
    fast: bool,
    retune: bool = False,
    measure_memory: bool = True,
    cache: Path = problems.CACHE,
) -> dict[str, Any]:
    """Return everything measured, ready to be written as JSON.

    `texts` are the problems that are compared from raw text too, and `reviews` the folder of their
    reviews.
    """
    results: dict[str, Any] = {
        "command": "python benchmarks/run.py" + (" --fast" if fast else ""),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "fast": fast,
        "machine": machine.describe(),
        "problems": {},
    }
    effort = _FAST if fast else timing.Effort()
    with_ours = any(competitor.name == "ours" for competitor in competitors)
    for problem in chosen:
        tuned = [(c, c.untuned if fast else _tuned(problem, c, retune, cache)) for c in competitors]
        X = problem.X_train
        entry: dict[str, Any] = {
            "title": problem.title,
            "shape": list(X.shape),
            "test_rows": len(problem.y_test),
            "nnz": int(X.nnz),
            "n_classes": problem.n_classes,
            "dtype": str(X.dtype),
            "competitors": timing.compare(problem, tuned, effort=effort, report=_say),
        }
        if with_ours:
            _say(f"{problem.name}: gradient and prediction")
            runs = 7 if fast else 30
            entry["gradient"] = micro.gradient_against_products(problem, runs=runs)
            entry["prediction"] = micro.prediction(problem, runs=runs)
        if measure_memory:
            entry["memory"] = _memory(problem, tuned, fast)
        results["problems"][problem.name] = entry
    for spec in texts:
        results.setdefault("from_text", {})[spec.name] = _from_text(spec, reviews, fast)
    results["left_out"] = left_out() if texts else {}
    if with_ours and short is not None:
        _say(f"fit on {short.title}")
        results["short_fit"] = {
            "title": short.title,
            "shape": list(short.X_train.shape),
            **micro.short_fit(short, runs=5 if fast else 50),
        }
    results["targets"] = [verdict.as_dict() for verdict in judge(results)]
    return results


def _from_text(spec: Spec, reviews: Path | None, fast: bool) -> dict[str, Any]:
    """Return the comparison from raw text on one problem."""
    problem = problems.load_texts(spec, reviews, n_rows=problems.FAST_ROWS if fast else None)
    chosen = [(competitor, None) for competitor in text_competitors(spec.vectorizer)]
    effort = _FAST if fast else timing.Effort(max_runs=3)
    return {
        "title": spec.title,
        "rows": len(problem.y_train),
        "competitors": timing.compare(problem, chosen, effort=effort, report=_say),
    }


def write(results: dict[str, Any], folder: Path, stem: str) -> None:
    """Write JSON and Markdown, each whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {".json": json.dumps(results, indent=1) + "\n", ".md": markdown(results)}
    for suffix, text in texts.items():
        temporary = folder / f"{stem}{suffix}.{os.getpid()}.tmp"
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(folder / f"{stem}{suffix}")


def draw(results: dict[str, Any], path: Path) -> None:
    try:
        from .chart import save
    except ImportError:
        _say("no chart: matplotlib is not installed")
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    save(results, path)


def _tuned(problem: Problem, competitor: Competitor, retune: bool, cache: Path) -> float | None:
    return tuned_value(problem, competitor, retune=retune, cache=cache, report=_say)


def _memory(
    problem: Problem, tuned: list[tuple[Competitor, float | None]], fast: bool
) -> dict[str, Any]:
    measured = {}
    for competitor, value in tuned:
        if fast and competitor.name != "ours":  # a process each takes seconds
            continue
        measured[competitor.name] = memory.peak_of_fit(problem, competitor.name, value)
        _say(
            f"{problem.name}: {competitor.name} memory {measured[competitor.name]['ratio']:.2f} x X"
        )
    return measured


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks/run.py", description=__doc__)
    parser.add_argument(
        "--reviews",
        type=Path,
        default=ROOT.parent / "shared" / "data",
        help="folder with imdb_*.csv.gz and yelp_stars_*.csv.gz; documents are generated if not",
    )
    parser.add_argument("--fast", action="store_true", help="few rows, few runs, nothing tuned")
    parser.add_argument("--retune", action="store_true", help="do not use cached tuning")
    parser.add_argument("--problems", nargs="+", metavar="NAME", help="only these problems")
    parser.add_argument(
        "--competitors", nargs="+", metavar="NAME", choices=COMPETITORS, help="only these"
    )
    parser.add_argument(
        "--blas-threads", type=int, default=1, metavar="N", help="BLAS threads for all (default 1)"
    )
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for the results")
    return parser


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
