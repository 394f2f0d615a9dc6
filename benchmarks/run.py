"""The benchmark: ``python -m benchmarks.run [--reviews FOLDER] [--fast]`` (``make bench``).

It writes results/latest.md, the chart of the documentation and the README's table.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import threadpoolctl

from . import command_line, machine, pages, problems, report
from .competitors import COMPETITORS, from_texts
from .problems import Spec
from .processes import in_process
from .timing import compare, few_labels, short_fit, small_texts, tuned_value

README = command_line.ROOT / "README.md"
CHART = command_line.ROOT / "docs" / "images" / "benchmark.png"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = command_line.parser("run", __doc__, reviews=True)
    parser.add_argument("--fast", action="store_true", help="few rows, few runs, nothing tuned")
    parser.add_argument("--problems", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--output", type=Path, default=pages.RESULTS, help="folder of the page")
    options = parser.parse_args(arguments)
    reviews = problems.find_reviews(options.reviews)
    # LogisticRegression on sparse documents gains nothing from a second BLAS thread, and loses
    # much on a busy machine.
    threadpoolctl.threadpool_limits(1, "blas")
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "BLIS_NUM_THREADS": "1"}  # processes to come
    specs = problems.specs(reviews)
    if options.problems:
        specs = [spec for spec in specs if spec.name in options.problems]
    results = run(specs, reviews, fast=options.fast)
    page = report.markdown(results)
    official = reviews and not (options.fast or options.problems or options.output != pages.RESULTS)
    pages.write(options.output / ("latest.md" if official else "trial.md"), page)
    if official:
        readme = README.read_text(encoding="utf-8")
        pages.write(README, report.with_summary(readme, report.summary_table(results)))
        report.draw(results, CHART)
    print(page)
    return 0


def run(specs: Sequence[Spec], reviews: Path | None, *, fast: bool) -> dict[str, Any]:
    """Return everything that is measured."""
    rows = problems.FAST_ROWS if fast else None
    effort = {"max_runs": 1} if fast else {}
    command = "python -m benchmarks.run"
    if reviews:
        command += " --reviews FOLDER"
    if fast:
        command += " --fast"
    results: dict[str, Any] = {"command": command, "fast": fast, "machine": machine.describe()}
    results["problems"], results["from_text"] = {}, {}
    warnings.simplefilter("ignore")  # fast runs and defaults need not converge
    for spec in specs:
        problem = problems.load(spec, reviews, n_rows=rows)
        chosen = [
            (one, one.untuned if fast else tuned_value(problem.path, one.name))
            for one in COMPETITORS.values()
        ]
        found = compare(problem, chosen, **effort)
        for competitor, value in chosen if not fast else ():  # a process each takes seconds
            given = problem.path, competitor.name, value
            found[competitor.name]["memory"] = in_process("benchmarks.memory.peak_of_fit", *given)
        X = problem.X_train
        results["problems"][spec.name] = {
            "title": spec.title,
            "size": f"{X.shape[0]:,} documents, {X.shape[1]:,} tokens, {X.nnz:,} non-zeros",
            "competitors": found,
        }
        if spec.from_text:
            texts = problems.load_texts(spec, reviews, n_rows=rows)
            raw = [(one, None) for one in from_texts(spec.vectorizer).values()]
            found = compare(texts, raw, **({"max_runs": 3} | effort))
            results["from_text"][spec.name] = {
                "title": spec.title,
                "competitors": found,
                "few": few_labels(texts),
            }
    short = problems.load(problems.SHORT, None)
    results["short_fit"] = short_fit(short, runs=2 if fast else 50)
    results["small_texts"] = small_texts(runs=1 if fast else 7)
    return results


if __name__ == "__main__":
    sys.exit(main())
