"""From raw text to fitted and predicted: ours beside CountVectorizer and LogisticRegression.

``python benchmarks/bench_raw_text.py [--reviews FOLDER] [--problems NAME ...]``

CPU seconds on one thread, vectorizing included, each pipeline in a fresh process of its own: the
first fit and prediction there, PyTorch's import with them (cold), and the best of some more (warm).
Everything has its default settings; ours on the same tokens is held against the target.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import command_line, machine, problems  # noqa: E402
from benchmarks.bench_counting import ONE_THREAD, cpu_seconds  # noqa: E402
from benchmarks.measures import quality  # noqa: E402
from benchmarks.targets import MAX_TEXT_FIT_RATIO  # noqa: E402
from benchmarks.text_competitors import text_competitors  # noqa: E402

BASELINE = "logistic_counts"
MEASURED = (BASELINE, "ours", "front_end")
TIMES = ("fit, cold", "fit, warm", "predict, cold", "predict, warm")


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if options.measure:
        print(json.dumps(measure(*options.measure, options)))
        return 0
    os.environ |= ONE_THREAD  # for the processes to come, and what is said of them
    described = machine.describe()
    print(machine.summary(described), *machine.warning(described), "", sep="\n")
    specs = problems.specs(problems.find_reviews(options.reviews))
    chosen = [s for s in specs if s.from_text and s.name in (options.problems or [s.name])]
    for spec in chosen:
        results = {name: in_fresh_process(spec.name, name, options) for name in MEASURED}
        print("\n".join(table(spec, results)), flush=True)
    return 0


def table(spec: problems.Spec, results: dict[str, dict[str, float]]) -> list[str]:
    """Return the lines of one problem's table, and whether the target is met."""
    titles = {one.name: one.title for one in text_competitors({})}
    lines = [f"| {spec.title} | {' | '.join(TIMES)} | accuracy | log loss |", "|---" * 7 + "|"]
    for name, result in results.items():
        cells = []
        for what in TIMES:
            ratio = result[what] / results[BASELINE][what]
            cells.append(f"{result[what]:.3g} s" + (f", {ratio:.2f}" if name != BASELINE else ""))
        cells += [f"{result['accuracy']:.4f}", f"{result['log_loss']:.4f}"]
        lines.append(f"| {titles[name]} | {' | '.join(cells)} |")
    for what in TIMES[:2]:
        ratio = results["ours"][what] / results[BASELINE][what]
        verdict = "PASS" if ratio <= MAX_TEXT_FIT_RATIO else "FAIL"
        lines.append(f"{what}: {ratio:.2f}, at most {MAX_TEXT_FIT_RATIO:g}: {verdict}")
    return [*lines, ""]


def in_fresh_process(problem: str, name: str, options: argparse.Namespace) -> dict[str, float]:
    """Return what `measure` says in a process of its own."""
    command = [sys.executable, str(Path(__file__).resolve()), "--measure", problem, name]
    command += ["--reviews", str(options.reviews), "--runs", str(options.runs)]
    if options.rows is not None:
        command += ["--rows", str(options.rows)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"measuring {name} failed:\n{done.stderr}")
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def measure(problem: str, name: str, options: argparse.Namespace) -> dict[str, float]:
    """Return CPU seconds and quality of one pipeline on one problem."""
    warnings.simplefilter("ignore")  # LogisticRegression stops at its default limit
    reviews = problems.find_reviews(options.reviews)
    spec = next(spec for spec in problems.specs(reviews) if spec.name == problem)
    data = problems.load_texts(spec, reviews, n_rows=options.rows)
    competitor = next(one for one in text_competitors(spec.vectorizer) if one.name == name)
    times: dict[str, list[float]] = {"fit": [], "predict": []}
    for _ in range(1 + options.runs):
        model = competitor.make(None, data.n_classes)
        times["fit"].append(cpu_seconds(partial(model.fit, data.X_train, data.y_train)))
        times["predict"].append(cpu_seconds(partial(model.predict_proba, data.X_test)))
    outputs = model.predict_proba(data.X_test)
    found = quality(model.classes_, data.y_test, outputs, probabilities=True)
    result = {what: found[what] for what in ("accuracy", "log_loss")}
    for what, seconds in times.items():
        result |= {f"{what}, cold": seconds[0], f"{what}, warm": min(seconds[1:])}
    return result


def _parser() -> argparse.ArgumentParser:
    parser = command_line.reviews_parser(__file__, __doc__)
    parser.add_argument("--problems", nargs="+", metavar="NAME", help="only these problems")
    parser.add_argument("--rows", type=int, help="of each half, for a trial")
    parser.add_argument("--runs", type=int, default=2, help="of what is warm: the best counts")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
